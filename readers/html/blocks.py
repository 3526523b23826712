"""Cutting a cleaned tree into content units, read once from top to bottom.

A unit is a heading, paragraph, list item, table row, listing, definition, caption or
other run of text, with its headings and what makes it readable alone. `content_blocks`
gives them to every other step; every visible word is in exactly one, in time linear in
the page. Not for: the paper's block tree (`papers/htmlrag`), choosing blocks
(`pipeline/prune`), or separating content from furniture (`furniture.py`)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import Final

from cancellation import check_cancelled
from readers.converted import is_box
from readers.html.furniture import NEIGHBOURS, PROSE, Mark, Unit, judge
from readers.html.ordinals import ordinals_of
from readers.html.table import Grid, read_grid
from readers.html.values import DESCRIBED_WORDS
from readers.page import Block, BlockKind, Ordinal, Trust
from readers.tree import (
    LABEL_WORDS,
    OPENED_NAME,
    Node,
    code_of,
    count_words,
    escaped,
    label_children,
    pieces,
    shape_of,
    text_of,
    to_html,
    walk,
)

CODE_LINES: Final = 30
"""A longer listing is cut at its empty lines."""
LEAD_WORDS: Final = 40
"""Longest lead-in that is repeated with an item."""
_HEADING_LEVELS: Final = {
    "h1": 1,
    "h2": 2,
    "h3": 3,
    "h4": 4,
    "h5": 5,
    "h6": 6,
    "summary": 7,
}
_RECORD: Final = re.compile(r".*?/(?:li|article)\d+(?=/|$)")
"""The path of one of several adjacent items or articles."""
_TWO_LETTERS: Final = re.compile(r"[^\W\d_]{2}")
NAMES: Final = " · "
"""Between the labels that a record is named by."""
MOST_LABELS: Final = 4
"""Maximum labels before a record's first sentences that are author and date; more are a
menu or a table."""
_LEVELS: Final = 4
"""Maximum boxes around a record's first label within it."""
_SCOPES: Final = frozenset(
    {
        "aside",
        "blockquote",
        "footer",
        "nav",
        "td",
        "th",
        "dialog",
        "details",
        "li",
        "dd",
    }
)
"""Elements whose headings say nothing about what follows them."""


def read_units(root: Node) -> list[Unit]:
    """Return the content units of a cleaned tree, in reading order.

    Each alt text is emitted once, and only if the page text does not contain it.
    """
    units = _UnitCollector(root).run()
    _name_records(units)
    shown_texts = {unit.text for unit in units if not unit.described}
    alt_units: dict[str, Unit] = {}
    for unit in units:
        if unit.described and unit.text not in shown_texts:
            alt_units.setdefault(unit.text, unit)
    return [
        unit for unit in units if not unit.described or alt_units.get(unit.text) is unit
    ]


def _name_records(units: list[Unit]) -> None:
    """Put author and date of a record (post, review, event, quotation) above its text,
    and a card's title above its price.

    They are the labels before the first sentences of one of several items, articles or
    boxes that begin alike."""
    boxes, box = _boxes(units), ""
    paths: list[str] = []
    for number, unit in enumerate(units):
        if not box or not unit.path.startswith(f"{box}/"):
            box = boxes.get(number, "")
        paths.append(match[0] if (match := _RECORD.match(unit.path)) else box)
    for path, record in groupby(zip(paths, units, strict=True), key=itemgetter(0)):
        if path:
            _name_record([unit for _, unit in record])


def _boxes(units: Sequence[Unit]) -> dict[int, str]:
    """Return, by first unit, the paths of boxes that begin with a label at the same
    position; fewer than `NEIGHBOURS` alike are none. They need not be adjacent."""
    boxes_by_shape: dict[tuple[str, str], dict[int, str]] = {}
    before = ""
    for number, unit in enumerate(units):
        box = unit.path
        for _ in range(_LEVELS if _is_label(unit) and unit.kind != "heading" else 0):
            box = box.rpartition("/")[0]
            if not box or before.startswith(f"{box}/"):
                break
            if box[-1].isdecimal():
                boxes_by_shape.setdefault(
                    (box.rpartition("/")[0], shape_of(unit.path[len(box) :])), {}
                )[number] = box
        before = unit.path
    repeated: dict[int, str] = {}
    for boxes in boxes_by_shape.values():
        if len(boxes) >= NEIGHBOURS:
            repeated |= {
                number: min(box, repeated.get(number, box), key=len)
                for number, box in boxes.items()
            }
    return repeated


def _name_record(record: list[Unit]) -> None:
    label_count = next(
        (number for number, unit in enumerate(record) if not _is_label(unit)),
        len(record),
    )
    label_texts = (
        unit.text
        for unit in record[:label_count]
        if unit.kind != "heading" and _TWO_LETTERS.search(unit.text)
    )
    labels = list(dict.fromkeys(label_texts))
    if 0 < len(labels) <= MOST_LABELS and any(
        count_words(unit.text) >= PROSE for unit in record[label_count:]
    ):
        _attribute(record[label_count:], NAMES.join(labels))
    elif labels and label_count == len(record) and _is_card(record):
        # Its first link is its title, and names the rest.
        titles = (
            unit.text for unit in record if 2 * unit.linked > len(unit.shown_text)
        )
        _attribute(record, next(titles, labels[0]))


def _is_card(labels: list[Unit]) -> bool:
    """Whether some labels are those of a card: few, without a heading."""
    return len(labels) <= 2 * MOST_LABELS and all(
        unit.kind != "heading" for unit in labels
    )


def _is_label(unit: Unit) -> bool:
    if unit.kind == "heading":
        return True
    is_text = (
        unit.kind not in {"row", "code"}
        and "/blockquote" not in unit.path
        and unit.text[-1] not in ".,:;!?"
    )
    return is_text and count_words(unit.text) <= LABEL_WORDS


def _attribute(units: list[Unit], name: str) -> None:
    for unit in units:
        if unit.kind not in {"heading", "row"} and not unit.lead and unit.text != name:
            unit.headings, unit.lead = (*unit.headings, name), name


@dataclass(slots=True)
class _Container:
    """A container that is being read."""

    node: Node
    path: str
    kind: BlockKind
    furniture: Mark | None
    """The innermost element around it, or it itself, that says it is furniture."""
    headings: tuple[tuple[int, str], ...] | None = None
    """Headings to go back to when it ends; None where its headings hold on."""
    lead: str = ""
    term: str = ""
    """Term of a definition list that waits for its definition."""
    labels: list[str] = field(default_factory=list)
    run: list[Node | str] = field(default_factory=list)
    """Inline content since the last block."""
    position: int = 0
    label_index: int = 0
    runs: int = 0
    """Units emitted from this container's own runs."""
    grid: Grid | None = None
    """Rows to be read, for a data table."""
    caption: str = ""
    ordinals: Iterator[Ordinal] | None = None
    """Numbers of the items to come, for an ordered list."""


class _UnitCollector:
    """Collects content units in one walk over a cleaned tree."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._units: list[Unit] = []
        self._headings: tuple[tuple[int, str], ...] = ()
        self._stack: list[_Container] = []
        self._place = ""
        """Where the units to come are, until another place begins."""
        self._numbered: tuple[str, Ordinal] | None = None
        """Path and number of an item none of whose units has the number yet."""

    def run(self) -> list[Unit]:
        self._push(self._root, self._root.tag, "block", None)
        steps = 0
        while self._stack:
            frame = self._stack[-1]
            if frame.grid is not None:
                self._next_row(frame, frame.grid)
                continue
            children = frame.node.children
            if frame.position == len(children):
                self._finish(frame)
                continue
            steps += 1
            if not steps & 0x3FFF:
                check_cancelled()
            child = children[frame.position]
            frame.position += 1
            if isinstance(child, str):
                frame.run.append(child)
                continue
            label = frame.labels[frame.label_index]
            frame.label_index += 1
            if not child.breaks:
                frame.run.append(child)
                continue
            self._flush(frame)
            self._place = child.place or self._place
            self._enter(frame, child, f"{frame.path}/{label}")
        return self._units

    def _add(self, unit: Unit) -> None:
        """Add a unit under the headings that hold, with the number of the item that it
        begins."""
        unit.headings = tuple(text for _, text in self._headings)
        unit.place = self._place
        if self._numbered and unit.kind in {"code", "heading", "item"}:
            path, ordinal = self._numbered
            if unit.path.startswith(path):
                unit.ordinal, self._numbered = ordinal, None
        self._units.append(unit)

    def _push(
        self,
        node: Node,
        path: str,
        kind: BlockKind,
        furniture: Mark | None,
        lead: str = "",
    ) -> _Container:
        is_repeated = node.tag == "article" and path[-1].isdigit()
        scoped = node.tag in _SCOPES or is_repeated
        back = self._headings if scoped else None
        frame = _Container(node, path, kind, furniture, headings=back, lead=lead)
        frame.labels = label_children(node)
        self._stack.append(frame)
        return frame

    def _open(
        self,
        node: Node,
        path: str,
        kind: BlockKind,
        furniture: Mark | None,
        lead: str = "",
    ) -> None:
        """Read a container; one that holds no block, as most do, is read at once."""
        if any(child.breaks for child in node.children if isinstance(child, Node)):
            self._push(node, path, kind, furniture, lead)
            return
        frame = _Container(node, path, kind, furniture, lead=lead)
        frame.run = list(node.children)
        self._flush(frame)

    def _finish(self, frame: _Container) -> None:
        self._flush(frame)
        self._stack.pop()
        if frame.term and frame.node.tag == "dd" and self._stack:
            self._stack[-1].term = frame.term
        elif frame.term:
            self._say_term(frame)
        if frame.headings is not None:
            self._headings = frame.headings

    def _enter(self, frame: _Container, child: Node, path: str) -> None:
        """Read a block-level child: emit it where it is one unit, else open it; a
        `title` is left out."""
        tag = child.tag
        furniture = _mark_of(child, path, frame.furniture)
        if _ends_term(frame, tag):
            self._say_term(frame)
        if tag in _HEADING_LEVELS:
            self._heading(frame, child, path, furniture)
        elif tag == "pre":
            self._code(frame, child, path, furniture)
        elif tag in {"dd", "dir", "dt", "li", "menu", "ol", "ul"}:
            self._enter_list(frame, child, path, furniture)
        elif tag == "table":
            container = self._push(child, path, "block", furniture)
            container.grid = read_grid(child)
            if container.grid is not None:
                self._caption(container)
        elif tag in _PASSING_TAGS or (tag == "p" and frame.kind != "block"):
            self._pass(frame, child, path, furniture)
        elif tag != "title":
            self._open(child, path, _KINDS.get(tag, "block"), furniture)

    def _pass(
        self, frame: _Container, child: Node, path: str, furniture: Mark | None
    ) -> None:
        """Read a child to which what waits in its container passes on: the lead and,
        where it begins an item or definition, kind and term."""
        begins_item = not frame.runs and frame.kind in {"item", "definition"}
        kind = frame.kind if begins_item else _KINDS.get(child.tag, "block")
        container = self._push(child, path, kind, furniture, frame.lead)
        if begins_item:
            container.term, frame.term = frame.term, ""
            frame.runs += 1

    def _enter_list(
        self, frame: _Container, child: Node, path: str, furniture: Mark | None
    ) -> None:
        """Read a list, an item, a term or its definition; a term is kept in `frame` for
        its definition."""
        if child.tag == "dt":
            term = text_of(child).rstrip(":： ")
            frame.term = ", ".join(filter(None, (frame.term, term)))
        elif child.tag == "dd":
            self._define(frame, child, path, furniture)
        elif child.tag == "li":
            if frame.ordinals is not None and (ordinal := next(frame.ordinals, None)):
                self._numbered = path, ordinal
            self._open(child, path, "item", furniture, frame.lead)
        else:
            outer_lead = frame.lead if frame.kind == "definition" else ""
            lead_in = self._lead_in(frame) or outer_lead
            container = self._push(child, path, "block", furniture, lead_in)
            container.ordinals = ordinals_of(child) if child.tag == "ol" else None

    def _define(
        self, frame: _Container, child: Node, path: str, furniture: Mark | None
    ) -> None:
        """Open a definition under the term that waits for it; a further one has it as
        its lead."""
        kind: BlockKind = "definition" if frame.term or frame.lead else "block"
        container = self._push(child, path, kind, furniture)
        container.term, frame.term = frame.term, ""
        container.lead = "" if container.term else frame.lead
        frame.lead = container.term or frame.lead

    def _say_term(self, frame: _Container) -> None:
        """Emit the term of a definition that is missing, or opens with a list, a table
        or a listing, whose lead it is."""
        term = frame.term
        self._emit(frame, f"{frame.path}/text{frame.runs + 1}", term, "definition")
        frame.lead, frame.runs = term, frame.runs + 1

    def _lead_in(self, frame: _Container) -> str:
        """Return the sentence that a list completes, or the item that it is nested in.

        Of a text over `LEAD_WORDS` words it is the last sentence; "" where the text
        ends in no colon, or is too long and has one sentence."""
        if not self._units:
            return ""
        previous_unit = self._units[-1]
        text = previous_unit.text
        nested = frame.kind == "item" and previous_unit.path.startswith(frame.path)
        is_leading = nested or text.endswith((":", "："))
        if not is_leading or previous_unit.kind not in {
            "paragraph",
            "block",
            "item",
            "definition",
        }:
            return ""
        if text.count(" ") < LEAD_WORDS:
            return text
        return text.rpartition(". ")[2] if not nested and ". " in text else ""

    def _flush(self, frame: _Container) -> None:
        """Emit the inline content since the last block, cut at empty lines; a part
        without text is dropped, with its alt texts unless a later part has text."""
        run = frame.run
        if not run:
            return
        frame.run = []
        segments = _cut_at_empty_lines(run)
        is_full = len(run) == len(frame.node.children) and len(segments) == 1
        for segment in segments:
            texts = [
                item if isinstance(item, str) else "".join(pieces(item))
                for item in segment
            ]
            text = " ".join("".join(texts).split())
            if not text:
                continue
            path = frame.path if is_full else f"{frame.path}/text{frame.runs + 1}"
            is_further = frame.runs and frame.kind in {"item", "definition", "caption"}
            self._emit(
                frame, path, text, "block" if is_further else frame.kind, segment
            )
            frame.runs += 1
        self._emit_descriptions(frame, run)

    def _emit_descriptions(self, frame: _Container, run: list[Node | str]) -> None:
        """Emit what the images of inline content are said to show."""
        images = (item for item in run if isinstance(item, Node))
        for alt in chain.from_iterable(map(_descriptions, images)):
            html = f"<p>{escaped(alt)}</p>"
            path = f"{frame.path}/text0{len(self._units)}"  # runs of text count from 1
            self._add(Unit(path, alt, html, "caption", frame.furniture, described=True))

    def _emit(
        self,
        frame: _Container,
        path: str,
        text: str,
        kind: BlockKind,
        segment: Sequence[Node | str] = (),
    ) -> None:
        nodes = (
            node for item in segment if isinstance(item, Node) for node in walk(item)
        )
        linked = sum(len(text_of(node)) for node in nodes if node.tag == "a")
        content = "".join(
            escaped(item) if isinstance(item, str) else to_html(item)
            for item in segment
        )
        html = f"<{_WRAPPERS[kind]}>{content}</{_WRAPPERS[kind]}>"
        if kind == "definition" and frame.term:
            html = f"<dl><dt>{escaped(frame.term)}</dt>{html if segment else ''}</dl>"
            text = f"{frame.term}: {text}" if segment else text
            frame.term = ""
        self._add(Unit(path, text, html, kind, frame.furniture, linked, frame.lead))

    def _heading(
        self, frame: _Container, node: Node, path: str, furniture: Mark | None
    ) -> None:
        text = text_of(node).strip("¶🔗\uf0c1").removesuffix("§").strip()
        if not text:
            return
        level = _HEADING_LEVELS[node.tag]
        self._headings = tuple(pair for pair in self._headings if pair[0] < level)
        html = f"<{node.tag}>{escaped(text)}</{node.tag}>"
        self._add(Unit(path, text, html, "heading", furniture))
        self._headings = (*self._headings, (level, text))
        frame.runs += frame.kind == "caption"

    def _code(
        self, frame: _Container, node: Node, path: str, furniture: Mark | None
    ) -> None:
        class_names = (element.attrs.get("class") for element in walk(node))
        name = next(filter(None, class_names), "")
        opening = f'<pre class="{name}">' if name else "<pre>"
        chunks = _cut_listing(code_of(node))
        for number, chunk in enumerate(chunks, start=1):
            html = f"{opening}{escaped(chunk)}</pre>"
            own_path = path if len(chunks) == 1 else f"{path}/text{number}"
            self._add(Unit(own_path, chunk, html, "code", furniture, lead=frame.lead))

    def _caption(self, frame: _Container) -> None:
        """Emit the captions of a data table, and text that is in no row of it."""
        texts = [child for child in frame.node.children if isinstance(child, str)]
        if stray := " ".join("".join(texts).split()):
            self._emit(frame, f"{frame.path}/text1", stray, "block", [stray])
        nodes = [child for child in frame.node.children if isinstance(child, Node)]
        for child, label in zip(nodes, frame.labels, strict=True):
            if child.tag == "caption" and (words := text_of(child)):
                frame.caption = words
                self._emit(frame, f"{frame.path}/{label}", words, "caption", [words])

    def _next_row(self, frame: _Container, grid: Grid) -> None:
        """Emit the next row of a data table under its headers; open its cells that hold
        a table of their own.

        A row without words is left out; after the last row the table is closed."""
        if frame.position == len(grid.rows):
            self._finish(frame)
            return
        row = grid.rows[frame.position]
        frame.position += 1
        path = f"{frame.path}/{row.path}"
        self._place = row.node.place or self._place
        row_text = row.joined_text.strip()
        if row_text.strip("| "):
            is_headed = grid.headers and not row.is_header
            header = f"| {' | '.join(grid.headers)} |" if is_headed else ""
            lines = "\n".join(filter(None, (frame.caption, row.group, header)))
            unit = Unit(
                path, row.text or row_text, to_html(row.node), "row", frame.furniture
            )
            unit.cells, unit.carried = row.cells, row.carried
            unit.lead, unit.shown_text = lines, row_text
            self._add(unit)
        if row.opened:
            cells = [child for child in row.node.children if isinstance(child, Node)]
            labels = label_children(row.node)
            for index in reversed(row.opened):
                cell_path = f"{path}/{labels[index]}"
                region = _mark_of(cells[index], cell_path, frame.furniture)
                self._push(cells[index], cell_path, "block", region)


_PASSING_TAGS: Final = frozenset({"div", "section", "center", "blockquote", "address"})
_KINDS: Final[dict[str, BlockKind]] = {
    "p": "paragraph",
    "figcaption": "caption",
    "caption": "caption",
    "legend": "caption",
}
"""Kinds of what is opened; of every other tag it is `block`."""
_WRAPPERS: Final[dict[BlockKind, str]] = {
    "heading": "p",
    "paragraph": "p",
    "item": "li",
    "row": "tr",
    "code": "pre",
    "definition": "dd",
    "caption": "p",
    "block": "p",
}


def _ends_term(frame: _Container, tag: str) -> bool:
    """Whether a child is none to which a definition's term passes on."""
    return (
        frame.term != ""
        and frame.kind == "definition"
        and tag != "p"
        and tag not in _PASSING_TAGS
    )


def _mark_of(node: Node, path: str, outer: Mark | None) -> Mark | None:
    """Return the innermost furniture mark that holds for a node's content: its own, or
    that of what is around it (`outer`); None where neither is furniture."""
    if not node.furniture or node.tag in {"article", "body", "html", "main"}:
        return outer
    return Mark(path, outer, opens=node.furniture == OPENED_NAME)


def _descriptions(node: Node) -> list[str]:
    """Return what the images below a node are said to show, where it is more than a
    name."""
    alts = [image.attrs.get("alt", "") for image in walk(node) if image.tag == "img"]
    return [alt for alt in alts if count_words(alt) >= DESCRIBED_WORDS]


def _cut_at_empty_lines(run: list[Node | str]) -> list[list[Node | str]]:
    """Cut inline content where two line breaks follow each other; parts of line breaks
    alone are dropped."""
    if not any(map(_is_break, run)):
        return [run]
    segments: list[list[Node | str]] = [[]]
    breaks = 0
    for item in run:
        if _is_break(item):
            breaks += 1
            if breaks == 2:
                segments.append([])
        elif isinstance(item, Node) or item.strip():
            breaks = 0
        segments[-1].append(item)
    return [segment for segment in segments if not all(map(_is_break, segment))]


def _is_break(item: Node | str) -> bool:
    return isinstance(item, Node) and item.tag == "br"


def _cut_listing(listing: str) -> list[str]:
    """Cut a long listing at its empty lines into parts of about `CODE_LINES` lines.

    Empty lines are the only cuts: a listing without one stays whole. Empty lines at the
    ends of a part are dropped."""
    lines = listing.split("\n")
    if len(lines) <= CODE_LINES:
        return [listing] if listing.strip() else []
    chunks: list[str] = []
    chunk_lines: list[str] = []
    for line in lines:
        if not line.strip() and len(chunk_lines) >= CODE_LINES // 2:
            chunks.append("\n".join(chunk_lines))
            chunk_lines = []
        elif line.strip() or chunk_lines:
            chunk_lines.append(line)
    if chunk_lines:
        chunks.append("\n".join(chunk_lines))
    return [cut for chunk in chunks if (cut := chunk.strip("\n")).strip()]


# Blocks


def content_blocks(
    root: Node, about: Sequence[str] = ()
) -> tuple[str, tuple[Block, ...]]:
    """Return the visible text of a cleaned tree, one content unit a line, and the units
    in reading order.

    Every word below `root` (the `title` element aside) is in exactly one unit, and
    `text[block.start:block.end]` is the unit as on the page: cells joined by
    ` | ` for rows, line breaks kept for code. `Block.text` of a row under known headers
    reads `header: value; header: value` instead. Alt texts follow the adjacent text.

    Args:
        root: The cleaned tree.
        about: What a page with any text says of itself beside its text, each a unit
    before all others."""
    units = read_units(root)
    main = judge(units)
    if units:
        units = [
            *(_about(root, index, text) for index, text in enumerate(about, start=1)),
            *units,
        ]
        main = [*[True] * (len(units) - len(main)), *main]
    starts = list(accumulate((len(unit.shown_text) + 1 for unit in units), initial=0))
    blocks = tuple(
        Block(
            path=unit.path,
            heading_path=unit.headings,
            text=unit.text,
            html=unit.html,
            kind=unit.kind,
            start=start,
            end=start + len(unit.shown_text),
            main=main,
            cells=unit.cells,
            carried=unit.carried,
            lead=unit.lead,
            ordinal=unit.ordinal,
            place=unit.place,
            trust=_trust(unit),
            closed=unit.furniture is not None
            and unit.furniture.closed
            and not unit.described,
        )
        for unit, start, main in zip(units, starts[:-1], main, strict=True)
    )
    return "\n".join(unit.shown_text for unit in units), blocks


def _trust(unit: Unit) -> Trust:
    """Return the origin of a unit's text; only recognized text (OCR) has a box on its
    page."""
    if unit.described or unit.kind == "about":
        return "attribute"
    return "recognised" if is_box(unit.place) else "visible"


def _about(root: Node, index: int, text: str) -> Unit:
    path = f"{root.tag}/head/about{index}"
    return Unit(path, text, f"<p>{escaped(text)}</p>", "about", None)
