"""The walk over the parts of a Word file: what is not known is walked through, a short
list is dropped.

The body is read block by block, each freed when it is written, so that long files cost
no more memory than short ones. What the file holds is counted beside the walk
(`ledger.py`). Not for: which parts there are (`docx.py`), styles and numbers
(`docx_styles.py`), hidden text (`docx_looks.py`)."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from extras.documents.docx_layout import (
    CONTINUED,
    MARK,
    DocxCell,
    DocxRow,
    is_drop_cap,
    lists_html,
    sliced,
    table_html,
)
from extras.documents.docx_looks import Seen, W, value_in, value_of
from extras.documents.docx_styles import Number, Styles
from extras.documents.docx_symbols import symbol, without_private
from extras.documents.drawing import (
    ALTERNATIVES,
    CHOICE,
    FALLBACK,
    LARGE_IMAGE,
    RELATION,
    described,
    drawn,
    image_html,
    is_decorative,
)
from extras.documents.equations import EQUATION, MATH, equation_text
from extras.documents.package import MAX_PART_TAGS, Package, whole_number
from pipeline.document.converted import MAX_CELLS, Converted, Unreadable, escape
from pipeline.document.ledger import Ledger
from pipeline.document.tree import LABEL_WORDS
from pipeline.read.format import format_of
from pipeline.read.sniff import decode
from pipeline.read.text import XML_OPTIONS, fragment_to_html, has_own_entities
from pipeline.work import check_cancelled

_PARAGRAPH, _TABLE, _ROW, _CELL, _BODY = (
    f"{W}{name}" for name in ("p", "tbl", "tr", "tc", "body")
)
_TOP: Final = (_PARAGRAPH, _TABLE, f"{W}sdt")
"""What a body holds but for rare elements, which are read with the next of these."""
_CHUNK: Final = 1 << 18
"""Bytes of XML that are parsed at a time, some 1,000 paragraphs."""
_SLICE: Final = 60_000
"""Tags of a table that are in memory at once."""
_TEXT_ELEMENTS: Final = (f"{W}t", f"{MATH}t")
_DROPPED_ELEMENTS: Final = frozenset(
    f"{W}{name}"
    for name in (
        *(
            "instrText",
            "delInstrText",
            "fldData",
            "softHyphen",
            "sectPr",
            "sdtPr",
            "sdtEndPr",
            "rubyPr",
        ),
        *(
            "pPr",
            "rPr",
            "tblPr",
            "tblGrid",
            "trPr",
            "tcPr",
            "footnoteRef",
            "endnoteRef",
            "annotationRef",
        ),
        *("separator", "continuationSeparator", "proofErr", "binData"),
    )
)
"""Elements without text of the document."""
_DELETED: Final = frozenset({f"{W}del", f"{W}moveFrom"})
_BLANK_ELEMENTS: Final = {
    **dict.fromkeys((f"{W}tab", f"{W}ptab"), " "),
    **dict.fromkeys((f"{W}br", f"{W}cr"), "<br>"),
    f"{W}noBreakHyphen": "-",
}
_OFF: Final = frozenset({"0", "false", "off"})
_HYPERLINK: Final = re.compile(r"\s*HYPERLINK\s+\"?(https?://[^\s\"]+)")
_PAGE_NUMBER: Final = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES)\b")
_HEADER_WORDS: Final = 2
"""Words beside the page's number of a header's line that says no more (`Page 3 of
9`)."""
_LIST_LABEL: Final = re.compile(r"(\d{1,6}|[a-z]{1,6}|[A-Z]{1,6})[.)]\Z")


@dataclass(slots=True)
class _Field:
    """A field whose end was not met yet."""

    instruction: str = ""
    is_result: bool = False
    is_link: bool = False
    is_here: bool = True
    """Whether it began in the paragraph at hand."""


@dataclass(slots=True)
class Walk:
    """Writes one part of the file after the other."""

    package: Package
    main: str
    styles: Styles
    seen: Seen
    read_inner: Callable[[bytes], Converted]
    """Reads a Word file that is part of this one; raises `Unreadable`."""
    ledger: Ledger = field(default_factory=Ledger)
    part: str = ""
    """Name of the part that is read."""
    kinds: dict[str, tuple[str, str]] = field(default_factory=dict)
    links: dict[str, tuple[str, str]] = field(default_factory=dict)
    after: list[str] = field(default_factory=list)
    """HTML that follows the block that is read: its boxes, charts, notes and
    comments."""
    fields: list[_Field] = field(default_factory=list)
    notes: dict[tuple[str, str], etree._Element] = field(default_factory=dict)
    """Foot- and endnotes by part and id."""
    comments: dict[str, etree._Element] = field(default_factory=dict)
    numbered: int = 0
    """Notes that were written so far."""
    words: int = 0
    """Words that were written."""
    inserted: int = 0
    deleted: int = 0
    in_margin: bool = False
    """Whether a header or footer is read."""
    has_page_number: bool = False
    in_table: int = 0
    cells: int = 0
    """Cells of tables that were written."""
    initial: str = ""
    """A drop cap: a large first letter in a frame of its own, before the paragraph that
    it begins."""

    # Parts

    def begin(self, part: str) -> None:
        """Go to a part, whose relations are its own."""
        self.part = part
        self.kinds = self.package.targets(part)
        self.links = self.package.targets(part, outside=True)

    def body(self) -> Iterator[str]:
        """Yield the blocks of the main part."""
        return self.blocks(self._elements())

    def _elements(self) -> Iterator[etree._Element]:
        """Yield what the body holds, each freed when the next is asked for.

        Nothing where it declares entities of its own; raises `Unreadable` for one part
        of more than `MAX_PART_TAGS` tags."""
        source = self.package.read(self.main)
        if has_own_entities(source):
            return
        parser = etree.XMLPullParser(
            ("end",), tag=(*_TOP, _ROW), remove_comments=True, **XML_OPTIONS
        )
        tags = 0
        for start in range(0, len(source), _CHUNK):
            check_cancelled()
            chunk = source[start : start + _CHUNK]
            parser.feed(chunk)
            tags += chunk.count(b"<")
            done, last = _read_so_far(parser, is_long=tags > _SLICE)
            for element in done:
                yield from self._released(element)
            # A long table is read in slices, so that it is never whole in memory.
            if last is not None:
                yield self.hold(sliced(last))
            tags = 0 if done or last is not None else tags
            del done, last
            if tags > MAX_PART_TAGS:
                raise Unreadable(
                    "it is a Word file with a part of more than "
                    f"{MAX_PART_TAGS:,} XML elements: split the file"
                )
        root = parser.close()
        yield from (
            self.hold(left) for body in root.iterchildren(_BODY) for left in body
        )
        self.package.note_damage(self.main, parser.feed_error_log)

    def _released(self, element: etree._Element) -> Iterator[etree._Element]:
        """Yield what the body holds up to an element, each freed when the next is asked
        for."""
        body = element.getparent()
        while body is not None and element.getparent() is body:
            first = body[0]
            yield self.hold(first)
            # moving it with its children takes time by the square of their number
            first.clear()
            del body[0]

    def whole(self, part: etree._Element) -> list[str]:
        """Return the blocks of a further part or of a note."""
        return list(self.blocks(self.hold(part)))

    def hold(self, element: etree._Element) -> etree._Element:
        """Return an element without what is not seen, its words counted but for
        deletions and fallbacks."""
        self.seen.drop_unseen(element)
        count = count_words(element)
        for twin in element.iter(FALLBACK, *_DELETED):
            if not any(
                above.tag in {FALLBACK, *_DELETED} for above in twin.iterancestors()
            ):
                skipped = twin.tag != FALLBACK or _has_choice(twin)
                count -= count_words(twin) if skipped else 0
        self.ledger.hold("word", count)
        return element

    # Blocks

    def blocks(self, elements: Iterable[etree._Element]) -> Iterator[str]:
        """Yield elements of block level as HTML, items of lists that follow each other
        as one list."""
        items: list[tuple[Number, str]] = []
        for element in elements:
            number, made = self._block(element)
            if number is not None:
                items.append((number, made))
            elif items and (made or self.after):
                yield from lists_html(items, in_cell=self.in_table > 0)
                items = []
            if number is None and made:
                yield made
            if self.after and not self.in_table:
                after, self.after = self.after, []
                yield from lists_html(items, in_cell=self.in_table > 0)
                yield from after
                items = []
        yield from lists_html(items, in_cell=self.in_table > 0)
        if self.initial:  # nothing followed it
            initial, self.initial = self.initial, ""
            yield f"<p>{initial}</p>"

    def _block(self, element: etree._Element) -> tuple[Number | None, str]:
        """Return one element as HTML, with its number where it is an item of a list."""
        if element.tag == _PARAGRAPH:
            return self._paragraph(element)
        if element.tag in _DROPPED_ELEMENTS or not isinstance(element.tag, str):
            return None, ""
        return None, _OF_BLOCK.get(element.tag, Walk._other)(self, element)

    def _other(self, element: etree._Element) -> str:
        """Return an element that is not known by what it holds."""
        if next(element.iter(_PARAGRAPH, f"{W}altChunk"), None) is not None:
            return "\n".join(self.blocks(element))
        text = self.inline(element).strip()
        return f"<p>{text}</p>" if text else ""

    def _chosen_blocks(self, element: etree._Element) -> str:
        return "\n".join(self.blocks(_chosen(element)))

    def _paragraph(self, paragraph: etree._Element) -> tuple[Number | None, str]:
        number, level = self.styles.number(paragraph), self.styles.level(paragraph)
        self.has_page_number = False
        for one in self.fields:
            one.is_here = False
        text = self._children(paragraph)
        text += "</a>" * sum(one.is_link for one in self.fields)
        for one in self.fields:
            one.is_link = False
        text = text.strip()
        if not text or self._says_page_only(text):
            return None, ""
        if is_drop_cap(paragraph):
            self.initial += text
            return None, ""
        text, self.initial = f"{self.initial}{text}", ""
        if level:
            lead = f"{escape(number.text)} " if number and number.text else ""
            return None, f"<h{level}>{lead}{text}</h{level}>"
        return (number, text) if number is not None else (None, f"<p>{text}</p>")

    def _says_page_only(self, text: str) -> bool:
        """Whether a paragraph is a line of a header or footer with the page's number and
        little else."""
        numbers = self.in_margin and self.has_page_number
        return numbers and len(_plain(text).split()) <= _HEADER_WORDS

    def _table(self, table: etree._Element) -> str:
        self.in_table += 1
        rows = [self._row(row) for row in _parts(table, _ROW)]
        self.in_table -= 1
        return f"{MARK if table.get(CONTINUED) else ''}{table_html(rows)}"

    def _row(self, row: etree._Element) -> DocxRow:
        check_cancelled()
        about = row.find(f"{W}trPr")
        if about is not None and about.find(f"{W}del") is not None:
            self._delete(row)
            return DocxRow(0, False, [])
        before = value_in(about, "gridBefore")
        head = about is not None and _is_on(about.find(f"{W}tblHeader"))
        # What is beyond is missing in the ledger by its words.
        cells = (
            [self._cell(cell) for cell in _parts(row, _CELL)]
            if self.cells < MAX_CELLS
            else []
        )
        self.cells += len(cells)
        return DocxRow(whole_number(before, digits=11), head, cells)

    def _cell(self, cell: etree._Element) -> DocxCell:
        about = cell.find(f"{W}tcPr")
        blocks = list(self.blocks(cell))
        alone = (
            len(blocks) == 1
            and blocks[0].startswith("<p>")
            and blocks[0].count("<p>") == 1
        )
        inner = (
            blocks[0].removeprefix("<p>").removesuffix("</p>")
            if alone
            else "\n".join(blocks)
        )
        if about is None:
            return DocxCell(inner)
        merged = about.find(f"{W}vMerge")
        goes_on = merged is not None and merged.get(f"{W}val") != "restart"
        width = whole_number(value_in(about, "gridSpan"), 1, digits=11)
        return DocxCell(inner, max(1, width), 1, goes_on)

    def _chunk(self, element: etree._Element) -> str:
        """Return a file that is part of the text: HTML, plain text, RTF or another Word
        file; empty for one that is missing or of any other kind."""
        self.ledger.hold("embedded object")
        name = self.kinds.get(element.get(f"{RELATION}id", ""), ("", ""))[1]
        body = self.package.raw(name)
        made = ""
        if body.startswith(b"PK\x03\x04"):
            made = self._inner(body)
        elif body.startswith(b"{\\rtf"):
            rtf = format_of("application/rtf")
            made = _inside(rtf.to_html(decode(body).text).html) if rtf else ""
        elif (
            body
            and b"\x00" not in body[:1000]
            and not name.endswith((".mht", ".mhtml"))
        ):
            text = decode(body).text
            is_html = "<" in text and not name.endswith(".txt")
            made = fragment_to_html(text) if is_html else f"<p>{escape(text)}</p>"
        if made:
            self.ledger.give("embedded object")
        return made

    def _inner(self, body: bytes) -> str:
        try:
            made = self.read_inner(body)
        except Unreadable:
            return ""
        self.ledger.add(made.ledger)
        return _inside(made.html)

    def _delete(self, element: etree._Element) -> None:
        texts = element.iter(f"{W}delText", f"{W}t")
        self.deleted += sum(len((text.text or "").split()) for text in texts)

    # Inside of a paragraph

    def _children(self, element: etree._Element) -> str:
        return "".join([self.inline(child) for child in element])

    def inline(self, element: etree._Element) -> str:
        """Return an element inside of a paragraph as HTML; what is deleted or not shown
        is dropped, and of an unknown element its children are read."""
        tag = element.tag
        if tag == f"{W}t":
            text = element.text or ""
            self.words += len(text.split())
            return escape(text if text.isascii() else without_private(text))
        if tag == f"{W}r":
            return self._run(element)
        if tag in _DROPPED_ELEMENTS or not isinstance(tag, str):
            return self._instruct(element) if tag == f"{W}instrText" else ""
        write = _INLINE_WALKS.get(tag)
        if write is not None:
            return write(self, element)
        return (
            _BLANK_ELEMENTS[tag] if tag in _BLANK_ELEMENTS else self._children(element)
        )

    def _run(self, run: etree._Element) -> str:
        if self._is_in_unshown_field() and run.find(f"{W}fldChar") is None:
            self.words += count_words(run)
            return ""
        text = self._children(run)
        raised = value_in(run.find(f"{W}rPr"), "vertAlign") if text.strip() else ""
        mark = {"superscript": "sup", "subscript": "sub"}.get(raised)
        return f"<{mark}>{text}</{mark}>" if mark else text

    def _is_in_unshown_field(self) -> bool:
        """Whether a page's number in a margin is read, or the result of a field within
        another's instruction, such as what an IF compares."""
        is_page = any(
            one.is_result and _PAGE_NUMBER.match(one.instruction) for one in self.fields
        )
        is_asked = any(one.is_here and not one.is_result for one in self.fields[:-1])
        return (self.in_margin and is_page) or (is_asked and self.fields[-1].is_result)

    def _equation(self, element: etree._Element) -> str:
        self.words += count_words(element)
        return f" {escape(equation_text(element))} "

    def _symbol(self, element: etree._Element) -> str:
        return escape(symbol(element.get(f"{W}font", ""), element.get(f"{W}char", "")))

    def _struck(self, element: etree._Element) -> str:
        """Return a short deletion as one, and leave a long one out."""
        text = "".join(one.text or "" for one in element.iter(f"{W}delText"))
        self._delete(element)
        return (
            f"<del>{escape(text)}</del>" if 0 < len(text.split()) <= LABEL_WORDS else ""
        )

    def _moved(self, element: etree._Element) -> str:
        self._delete(element)
        return ""

    def _inserted(self, element: etree._Element) -> str:
        before = self.words
        text = self._children(element)
        self.inserted += self.words - before
        return f"<ins>{text}</ins>" if text.strip() else text

    def _ruby(self, element: etree._Element) -> str:
        base, reading = (
            "".join(map(self._children, element.iterchildren(f"{W}{name}")))
            for name in ("rubyBase", "rt")
        )
        return f"{base}({reading})" if reading.strip() else base

    def _alternatives(self, element: etree._Element) -> str:
        return "".join(map(self.inline, _chosen(element)))

    def _box(self, element: etree._Element) -> str:
        kept, self.after = self.after, []
        inner = list(self.blocks(element))
        self.after = [*kept, *inner, *self.after]
        return ""

    def _controlled(self, element: etree._Element) -> str:
        """Return the content of a form's control, a box to be ticked as it is ticked;
        empty for one without content."""
        about, content = element.find(f"{W}sdtPr"), element.find(f"{W}sdtContent")
        box = (
            next(about.iterchildren("{*}checkbox"), None) if about is not None else None
        )
        if box is not None:
            checked = next(box.iterchildren("{*}checked"), None)
            value = (
                next(iter(checked.attrib.values()), "1") if checked is not None else "0"
            )
            self.words += count_words(content) if content is not None else 0
            return _ticked(value not in _OFF)
        return self._children(content) if content is not None else ""

    def _field(self, element: etree._Element) -> str:
        """Follow the beginning, the result and the end of a field, whose result is
        written as any text.

        A mark outside of a field is dropped."""
        kind = element.get(f"{W}fldCharType")
        if kind == "begin":
            self.fields.append(_Field())
            return self._children(element)
        if not self.fields:
            return ""
        last = self.fields[-1]
        if kind == "separate":
            last.is_result = True
            self.has_page_number |= _PAGE_NUMBER.match(last.instruction) is not None
            link = _HYPERLINK.match(last.instruction)
            last.is_link = link is not None
            return f'<a href="{escape(link[1])}">' if link else ""
        if kind == "end":
            self.fields.pop()
            return "</a>" if last.is_link else ""
        return ""

    def _instruct(self, element: etree._Element) -> str:
        if self.fields:
            self.fields[-1].instruction += (element.text or "")[:2000]
        return ""

    def _simple_field(self, element: etree._Element) -> str:
        if self.in_margin and _PAGE_NUMBER.match(element.get(f"{W}instr", "")):
            self.has_page_number = True
            self.words += count_words(element)
            return ""
        return self._children(element)

    def _form_box(self, element: etree._Element) -> str:
        said = element.find(f"{W}checked")
        said = said if said is not None else element.find(f"{W}default")
        return _ticked(said is not None and _is_on(said))

    def _form_list(self, element: etree._Element) -> str:
        entries = [value_of(one) for one in element.iterchildren(f"{W}listEntry")]
        chosen = whole_number(value_in(element, "result"), digits=11)
        return escape(entries[chosen]) if chosen < len(entries) else ""

    def _link(self, element: etree._Element) -> str:
        target = self.links.get(element.get(f"{RELATION}id", ""), ("", ""))[1]
        text = self._children(element)
        if (
            not target.startswith(("http://", "https://", "mailto:"))
            or not text.strip()
        ):
            return text
        return f'<a href="{escape(target).replace(chr(34), "%22")}">{text}</a>'

    # What follows a block

    def _note(self, element: etree._Element) -> str:
        kind = "footnotes" if element.tag == f"{W}footnoteReference" else "endnotes"
        note = self.notes.pop((kind, element.get(f"{W}id", "")), None)
        if note is None:
            return ""
        self.numbered += 1
        mark = f"[{self.numbered}]"
        self._append("footnote", note, f"{mark} ")
        return f"<sup>{mark}</sup>"

    def _comment(self, element: etree._Element) -> str:
        comment = self.comments.pop(element.get(f"{W}id", ""), None)
        if comment is not None:
            self._append("comment", comment, _comment_lead(comment))
        return ""

    def _append(self, kind: "str", element: etree._Element, lead: str) -> None:
        """Write a note or comment after the current block."""
        kept, self.after, fields = self.after, [], self.fields
        self.fields = []
        blocks = self.whole(element)
        made = _led(lead, blocks)
        self.after, self.fields = [*kept, *made, *self.after], fields
        self.ledger.give("footnote" if kind == "footnote" else "comment")

    def rest(self) -> list[str]:
        """Return the comments that nothing refers to."""
        for comment in list(self.comments.values()):
            self._append("comment", comment, _comment_lead(comment))
        self.comments.clear()
        after, self.after = self.after, []
        return after

    def _drawing(self, element: etree._Element) -> str:
        """Return a drawing by its description; a chart and a diagram follow the block.

        A large image without a description is counted as unread."""
        before = len(self.after)
        self.after += drawn(element, self.package, self.kinds, self.ledger)
        inner = self._children(element)
        about = next(element.iter("{*}docPr"), None)
        alt = described(about)
        if next(element.iter("{*}blip"), None) is None:
            return inner or (
                image_html(alt) if alt and len(self.after) == before else ""
            )
        if alt:
            return f"{image_html(alt)}{inner}"
        is_content = not is_decorative(about) and not self.in_margin
        if is_content and _area(element) >= LARGE_IMAGE:
            self.ledger.hold("image")
        return inner

    def _word_art(self, element: etree._Element) -> str:
        return escape(element.get("string", ""))

    def _control(self, _: etree._Element) -> str:
        self.ledger.hold("form field")
        return ""

    def _object(self, element: etree._Element) -> str:
        if next(element.iter("{*}OLEObject"), None) is not None:
            self.ledger.hold("embedded object")
        return self._children(element)


_OF_BLOCK: Final = {
    _TABLE: Walk._table,
    f"{W}altChunk": Walk._chunk,
    ALTERNATIVES: Walk._chosen_blocks,
    **dict.fromkeys(_DELETED, Walk._moved),
}
_INLINE_WALKS: Final = {
    EQUATION: Walk._equation,
    f"{W}sym": Walk._symbol,
    f"{W}ruby": Walk._ruby,
    ALTERNATIVES: Walk._alternatives,
    f"{W}txbxContent": Walk._box,
    f"{W}sdt": Walk._controlled,
    f"{W}fldChar": Walk._field,
    f"{W}fldSimple": Walk._simple_field,
    f"{W}checkBox": Walk._form_box,
    f"{W}ddList": Walk._form_list,
    f"{W}hyperlink": Walk._link,
    f"{W}commentReference": Walk._comment,
    f"{W}drawing": Walk._drawing,
    f"{W}object": Walk._object,
    f"{W}control": Walk._control,
    "{urn:schemas-microsoft-com:vml}textpath": Walk._word_art,
    f"{W}ins": Walk._inserted,
    f"{W}del": Walk._struck,
    f"{W}moveFrom": Walk._moved,
    **dict.fromkeys((f"{W}footnoteReference", f"{W}endnoteReference"), Walk._note),
}


def _read_so_far(
    parser: "etree.XMLPullParser[etree._Element]", *, is_long: bool
) -> tuple[list[etree._Element], etree._Element | None]:
    """Return what of the body ended since the last time; where nothing did, the last row
    of a table that `is_long`."""
    done, last = list[etree._Element](), None
    for _, one in parser.read_events():
        # Of rows one is held at most: removing what Python still holds takes time by the
        # square.
        if _is_top(one):
            done.append(one)
        elif is_long and one.tag == _ROW and _is_top(one.getparent()):
            last = one
    return done, None if done else last


def _is_top(element: etree._Element | None) -> bool:
    above = element.getparent() if element is not None else None
    return above is not None and above.tag == _BODY


def _parts(element: etree._Element, tag: str) -> Iterator[etree._Element]:
    """Yield rows of a table or cells of a row, those inside of controls and insertions
    as well."""
    for child in element:
        if child.tag == tag:
            yield child
        elif isinstance(child.tag, str) and child.tag not in _DROPPED_ELEMENTS | {
            _CELL,
            _ROW,
            _TABLE,
            _PARAGRAPH,
        }:
            yield from _parts(child, tag)


def _chosen(element: etree._Element) -> list[etree._Element]:
    """Return what is read of alternatives: the first choice with content, else the
    fallback."""
    choice = element.find(CHOICE)
    if choice is not None and (len(choice) or (choice.text or "").strip()):
        return list(choice)
    fallback = element.find(FALLBACK)
    return list(fallback) if fallback is not None else []


def _has_choice(fallback: etree._Element) -> bool:
    above = fallback.getparent()
    choice = above.find(CHOICE) if above is not None else None
    return choice is not None and len(choice) > 0


def _led(lead: str, blocks: list[str]) -> list[str]:
    """Return blocks with a lead-in before the first."""
    if blocks and blocks[0].startswith("<p>"):
        return [f"<p>{lead}{blocks[0][3:]}", *blocks[1:]]
    return [f"<p>{lead}</p>", *blocks]


def _comment_lead(comment: etree._Element) -> str:
    author = " ".join(comment.get(f"{W}author", "").split())
    return f"Comment by {escape(author)}: " if author else "Comment: "


def count_words(element: etree._Element) -> int:
    """Return the words of an element's text nodes."""
    return sum(len((text.text or "").split()) for text in element.iter(*_TEXT_ELEMENTS))


def _plain(html: str) -> str:
    return re.sub(r"<[^<>]*>", "", html)


def _inside(page: str) -> str:
    """Return what is between the body's tags of a page of ours."""
    return page.partition("<body>")[2].rpartition("</body>")[0].strip()


def _ticked(is_on: bool) -> str:
    return "[x]" if is_on else "[ ]"


def _is_on(element: etree._Element | None) -> bool:
    """Whether a switch is on: one without a value is."""
    return element is not None and element.get(f"{W}val", "1") not in _OFF


def _area(drawing: etree._Element) -> int:
    """Return the extent of a drawing in square EMU, 0 where it has none."""
    extent = next(drawing.iter("{*}extent"), None)
    if extent is None:
        return 0
    width, height = (
        whole_number(extent.get(key, ""), digits=11) for key in ("cx", "cy")
    )
    return width * height
