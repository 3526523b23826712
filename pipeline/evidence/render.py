"""A selection of content units as lines: in document order, with what makes each
readable; and the links of a page.

Headings above are on one line, if not shown yet; rows are under their header row, items
under their lead-in, each written once; gaps are marked by an ellipsis. Not for:
choosing (`prune.py`), how lines are written (`forms.py`), or HTML of whole trees
(`tree.to_html`)."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urldefrag, urljoin, urlsplit

from pipeline.evidence.forms import Form, Line, ListItem, write
from pipeline.evidence.show import GAP, has_gaps, listing
from pipeline.reading.bm25 import JOINT
from pipeline.tables.table import body_rows
from readers.html.blocks import NAMES
from readers.page import TITLE_CHARACTERS, Block, Document, kept_with_document, table_of
from readers.tree import shape_of, text_of, walk

_ITEM_PATH: Final = re.compile(r"/(ul|ol|menu|dir)\d*/li(\d*)(?=/|$)")
_HEADER_ROWS: Final = 4
"""Rows of headers that a table may have."""
POSTS: Final = 3
"""Headings of one shape from which they may be those of posts."""
_WORD: Final = re.compile(r"\w+")
_CODE_LANGUAGE: Final = re.compile(r'<pre class="language-([^"]+)">')


@dataclass(frozen=True, slots=True)
class Kept:
    """A unit, or a part of it, that was chosen."""

    block: int
    """Index into `Document.blocks`."""
    start: int = 0
    """Code point offsets into `Block.text`."""
    end: int = -1
    """-1 for the end of the text."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a selection is written."""

    form: Form = "markdown"
    titled: bool = False
    """Whether the page's title is shown above, so that a heading which repeats it is
    left out."""


def render(
    document: Document,
    kept: Sequence[Kept],
    style: Style,
    around: Set[int] | None = None,
) -> str:
    """Return the chosen units, written in the style asked for.

    `around` numbers what is none of a page's content where all that is chosen is:
    headings of it are not written, nor are names above fields of records, which are
    content by themselves or not."""
    title = document.page.title if style.titled else ""
    outside = None if around is None else around - _over_posts(document.blocks)
    writer = _LineWriter(document, title, outside)
    return write(writer.collect(kept), style.form)


def render_headings(
    document: Document, number: int, style: Style, around: Set[int] | None
) -> str:
    """Return the line of headings above a block, empty where there are none;
    `around` as of `render`."""
    writer = _LineWriter(document, document.page.title, around)
    writer.heading(headings_over(document)[number])
    return write(writer.lines, style.form)


def _over_posts(blocks: Sequence[Block]) -> Set[int]:
    """Return the different headings of one shape: above posts these are the authors."""
    of_shape: dict[str, list[int]] = {}
    for number, block in enumerate(blocks):
        if block.kind == "heading":
            of_shape.setdefault(shape_of(block.path), []).append(number)
    groups = (
        numbers
        for numbers in of_shape.values()
        if len(numbers) >= POSTS
        and len({blocks[number].text for number in numbers}) > 1
    )
    return frozenset(number for numbers in groups for number in numbers)


def headings_above(blocks: Sequence[Block]) -> list[tuple[int, ...]]:
    """Return for each block the indices of the heading blocks above it, outermost
    first."""
    latest: dict[tuple[str, ...], int] = {}
    chains: list[tuple[int, ...]] = []
    chain_of: dict[tuple[str, ...], tuple[int, ...]] = {}
    for number, block in enumerate(blocks):
        path = block.heading_path
        chain = chain_of.get(path)
        if chain is None:
            chain = tuple(
                latest[path[:k]] for k in range(1, len(path) + 1) if path[:k] in latest
            )
            chain_of[path] = chain
        chains.append(chain)
        if block.kind == "heading":
            own_path = (*path, block.text)
            latest[own_path] = number
            chain_of = {}
    return chains


def repeats_title(block: Block, title: str) -> bool:
    """Whether a heading says no more than the page's title: that one, or the topmost of
    its words, whatever quotation marks and dashes either has."""
    heading_words, title_words = (
        " ".join(_WORD.findall(text.casefold())) for text in (block.text, title)
    )
    return heading_words == title_words or (
        not block.heading_path and f" {heading_words} " in f" {title_words} "
    )


@kept_with_document
def headings_over(document: Document) -> list[tuple[int, ...]]:
    """Return `headings_above` of a document, kept: each passage that is tried for an
    answer is rendered."""
    return headings_above(document.blocks)


def is_header_row(blocks: Sequence[Block], number: int) -> bool:
    """Whether a row is the header row that a row below it names in its lead, or one of
    several that it joins. Only the next `_HEADER_ROWS` rows are looked at."""
    block = blocks[number]
    if block.kind != "row" or block.header or len(block.cells) < 2:
        return False
    for row in blocks[number + 1 : number + 1 + _HEADER_ROWS]:
        if row.kind != "row" or table_of(row) != table_of(block):
            return False
        if row.header:
            columns = row.header.split(" | ")
            return row.header == " | ".join(block.cells) or all(
                not cell or (index < len(columns) and cell in columns[index])
                for index, cell in enumerate(block.cells)
            )
    return False


@dataclass(slots=True)
class _LineWriter:
    """Collects the lines of one page."""

    document: Document
    title: str
    """What no heading repeats."""
    around: Set[int] | None
    """As of `render`."""
    lines: list[Line] = field(default_factory=list)
    printed: set[str] = field(default_factory=set)
    """Lead-ins and captions already written."""
    chain: tuple[int, ...] = ()
    """The headings above the current output."""
    record: int = 0
    """Lines up to the end of the last record's."""

    def collect(self, kept: Sequence[Kept]) -> list[Line]:
        blocks = self.document.blocks
        chains = headings_over(self.document)
        spans: dict[int, list[tuple[int, int]]] = {}
        for piece in sorted(kept, key=lambda piece: (piece.block, piece.start)):
            end = piece.end if piece.end >= 0 else len(blocks[piece.block].text)
            spans.setdefault(piece.block, []).append((piece.start, end))
        numbers = sorted(spans)
        written_blocks = set(numbers).union(*(chains[number] for number in numbers))
        previous = -1
        position = 0
        while position < len(numbers):
            number = numbers[position]
            # A gap is marked between units under the same heading; a new heading says as much.
            is_new_heading = self.heading(
                (*chains[number], number)
                if blocks[number].kind == "heading"
                else chains[number]
            )
            if blocks[number].kind != "heading":
                if (
                    previous >= 0
                    and not is_new_heading
                    and any(
                        self._left_out(n, number, written_blocks)
                        for n in range(previous + 1, number)
                    )
                ):
                    self._gap(previous, number)
                if blocks[number].kind == "row":
                    count = self._table(numbers[position:], spans)
                    position += count - 1
                else:
                    self._block(number, spans[number])
            previous = numbers[position]
            position += 1
        return self.lines

    def _left_out(self, skipped: int, number: int, written_blocks: set[int]) -> bool:
        """Return whether a unit before `number` is missing, captions and headers of its
        row aside."""
        block = self.document.blocks[skipped]
        if skipped in written_blocks or is_header_row(self.document.blocks, skipped):
            return False
        return block.kind != "caption" or block.text not in self.document.blocks[
            number
        ].lead.split("\n")

    def _gap(self, previous: int, number: int) -> None:
        """Mark a gap; within a list as an item, in a numbered one not at all, since its
        numbers say so."""
        block = self.document.blocks[number]
        if block.kind == "item" and block.lead and not self._is_shown(block.lead):
            return  # its lead-in starts again
        before, after = (
            list_items_of(self.document.blocks[previous]),
            list_items_of(block),
        )
        if not after or not {item.list for item in before} & {
            item.list for item in after
        }:
            self.lines.append(Line("gap"))
        elif not after[-1].ordered:
            self.lines.append(Line("item", GAP, places=after))

    def heading(self, chain: tuple[int, ...]) -> bool:
        """Write the headings of `chain` that are not shown yet on one line; return
        whether a line was written."""
        blocks = self.document.blocks
        chain = tuple(number for number in chain if number not in (self.around or ()))
        same = 0
        while (
            same < min(len(chain), len(self.chain)) and chain[same] == self.chain[same]
        ):
            same += 1
        if same == len(chain):
            return False
        self.chain = chain
        headings = [
            blocks[number]
            for number in chain[same:]
            if not repeats_title(blocks[number], self.title)
        ]
        texts = [
            f"{block.ordinal.mark} {block.text}" if block.ordinal else block.text
            for block in headings
        ]
        if not texts:
            return False
        level = min(6, len(blocks[chain[-1]].heading_path) + 1)
        self.lines.append(Line("heading", JOINT.join(texts), level))
        return True

    def _block(self, number: int, spans: Sequence[tuple[int, int]]) -> None:
        block = self.document.blocks[number]
        places = list_items_of(block)
        if block.kind == "code":
            self._code(block, spans)
            return
        text = _joined(block.text, spans)
        is_name = block.lead in block.heading_path[-1:]
        has_lead = (is_name and self.around is None) or (
            not is_name and block.kind == "item"
        )
        if block.lead and has_lead and not self._is_shown(block.lead):
            self._lead(block, text, is_name=is_name)
        if (
            block.kind == "item"
            and places
            and (block.ordinal or not places[-1].ordered)
        ):
            self.lines.append(Line("item", text, places=places))
        elif block.kind == "definition" and ": " in text:
            self.lines.append(Line("definition", text))
        else:
            self.lines.append(Line("paragraph", text, places=places))
        self.record = len(self.lines) if is_name and block.lead else self.record

    def _code(self, block: Block, spans: Sequence[tuple[int, int]]) -> None:
        """Write a listing, as an item of its list where it has a number."""
        match = _CODE_LANGUAGE.match(block.html)
        places = list_items_of(block)
        if block.ordinal and spans[0][0] == 0:
            self.lines.append(Line("item", places=places))
        language = match[1] if match else ""
        text = _listing(block.text, spans)
        self.lines.append(Line("code", text, places=places, language=language))

    def _lead(self, block: Block, text: str, *, is_name: bool) -> None:
        """Write what leads a block with the words `text`; names of its record that are
        its labels already are left out."""
        self.printed.add(block.lead)
        lead = block.lead
        if is_name:
            lines = [line.text for line in self.lines[self.record :]]
            names = lead.split(NAMES)
            lead = NAMES.join(
                n for n in names if not any(text.endswith(n) for text in lines)
            )
        self.lines.extend(
            [Line("paragraph", lead, places=list_items_of(block)[:-1])] if lead else []
        )

    def _is_shown(self, lead: str) -> bool:
        lines = [line.text for line in self.lines[-40:]]
        return lead in {*self.printed, *lines} or all(
            any(text.endswith(name) for text in lines) for name in lead.split(NAMES)
        )

    def _table(
        self, numbers: Sequence[int], spans: dict[int, list[tuple[int, int]]]
    ) -> int:
        """Write the rows of one table that begin `numbers`; return how many of `numbers`
        that took."""
        blocks = self.document.blocks
        table = table_of(blocks[numbers[0]])
        rows: list[int] = []
        for number in numbers:
            if blocks[number].kind != "row" or table_of(blocks[number]) != table:
                break
            rows.append(number)
        header = next(
            (row_header for number in rows if (row_header := blocks[number].header)), ""
        )
        heads = [n for n in rows if header and is_header_row(blocks, n)]
        titles = [n for n in rows if heads and n < heads[0]]
        self._titles([blocks[number].text for number in titles])
        body = [n for n in rows if n not in {*heads, *titles}]
        self.lines.extend(
            Line("paragraph", line) for line in self._leads(blocks[(body or rows)[0]])
        )
        if _names_the_table(header):
            self._caption(header.partition(" | ")[0])
            header = ""
        if len(body) == 1 and _is_read_alone(blocks[body[0]], header):
            text = _joined(blocks[body[0]].text, spans[body[0]])
            self.lines.append(Line("paragraph", text))
            return len(rows)
        columns = tuple(header.split(" | ")) if header else ()
        self.lines.append(Line("table", header=columns, rows=tuple(self._cells(body))))
        count = len(body_rows(self.document).get(table, frozenset()).difference(rows))
        if count:
            others = f"{GAP} {count:,} other row{'s' * (count != 1)}"
            self.lines.append(Line("paragraph", others))
        return len(rows)

    def _caption(self, name: str) -> None:
        """Write the one cell over all columns, which names the table and no column."""
        self.lines.extend([] if self._is_shown(name) else [Line("paragraph", name)])
        self.printed.add(name)

    def _cells(self, body: Sequence[int]) -> Iterator[tuple[str, ...]]:
        """Yield the cells of each row, and before them what leads it, as a row of one
        cell."""
        for number in body:
            block = self.document.blocks[number]
            yield from ((line,) for line in self._leads(block))
            cells = block.cells or (block.text,)
            yield cells
            self.printed.add(block.text)

    def _titles(self, titles: Sequence[str]) -> None:
        """Write the title lines above a table's headers."""
        self.lines.extend(
            Line("paragraph", text) for text in titles if not self._is_shown(text)
        )
        self.printed.update(titles)

    def _leads(self, row: Block) -> list[str]:
        """Return the caption and group of a row that are not written yet."""
        leads = [
            line for line in row.lead.split("\n") if line and not line.startswith("| ")
        ]
        new_leads = [line for line in leads if not self._is_shown(line)]
        self.printed.update(new_leads)
        return new_leads


def _names_the_table(header: str) -> bool:
    """Whether a header is one cell over all columns."""
    columns = header.split(" | ")
    return len(columns) > 1 and len(set(columns)) == 1


def _is_read_alone(row: Block, header: str) -> bool:
    """Whether a row reads as `header: value`, which is shorter than a table but says
    nothing of empty columns."""
    return not has_gaps(row) and (
        len(row.cells) < 2 or bool(header) or ": " in row.text
    )


def list_items_of(block: Block) -> tuple[ListItem, ...]:
    """Return the list items around a unit, outermost first."""
    places = [
        ListItem(block.path[: match.end()], match[1] == "ol", int(match[2] or 1))
        for match in _ITEM_PATH.finditer(block.path)
    ]
    if places and block.ordinal:
        value, form, mark = block.ordinal
        places[-1] = replace(places[-1], number=value, form=form, mark=mark)
    return tuple(places)


def _joined(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the parts of a unit, with an ellipsis where something between them is left
    out."""
    parts: list[str] = []
    written_to = 0
    for start, end in spans:
        if start > written_to and text[written_to:start].strip():
            parts.append(GAP)
        parts.append(text[start:end].strip())
        written_to = end
    if text[written_to:].strip():
        parts.append(GAP)
    return " ".join(parts)


def _listing(code: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return parts of a listing, with an ellipsis on its own line wherever lines are
    left out."""
    before, after = code[: spans[0][0]].strip(), code[spans[-1][1] :].strip()
    return "\n".join(
        [*[GAP] * bool(before), listing(code, spans), *[GAP] * bool(after)]
    )


# Links


FRAME: Final = "(frame)"
"""Text in the list of links for a link that a page shows in a frame."""


def all_links(document: Document) -> dict[str, str]:
    """Return the words of each link to another page, by its address, in the order of
    the page; of an address linked twice, those of the first."""
    base = urldefrag(document.page.final_url).url
    links: dict[str, str] = {}
    for node in walk(document.root):
        words = (
            FRAME if node.tag == "iframe" else text_of(node) if node.tag == "a" else ""
        )
        href = node.attrs.get("href", "")
        if words and (
            address := absolute(href, base)
            or (_beside(href, base) if words == FRAME else "")
        ):
            links.setdefault(address, words)
    return links


def _beside(href: str, base: str) -> str:
    """Return the address of a file that a file shows in a frame, empty for any other, a
    malformed one and one over `TITLE_CHARACTERS`."""
    try:
        address = urljoin(base, href.strip())
        is_file = urlsplit(base).scheme == urlsplit(address).scheme == "file"
    except ValueError:
        return ""
    return address if is_file and len(address) <= TITLE_CHARACTERS else ""


def absolute(href: str, base: str) -> str:
    """Return the address of a link to another page of the web, empty for any other: a
    part of this page, a file, a malformed address.

    Longer ones than `TITLE_CHARACTERS` carry tracking data and are not worth their tokens; they
    are empty, too."""
    try:
        href = "".join(href.split())
        if href.startswith("//") and base.startswith("file:"):
            href = f"https:{href}"  # a saved page does not say which scheme it came by
        address = urljoin(base, href)
        split_address = urlsplit(address)
    except ValueError:
        return ""
    if (
        split_address.scheme not in {"http", "https"}
        or not split_address.netloc
        or len(address) > TITLE_CHARACTERS
    ):
        return ""
    return "" if urldefrag(address).url == base else address
