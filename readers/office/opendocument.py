"""ODT, ODS and ODP to HTML: headings, paragraphs, lists, tables; sheets by their cells;
slides with number and notes.

What a file hides (text, sheets, slides by their styles) and deleted text are left out;
comments, forms and what is embedded, charts and formulas as well, are said to be unread.
Not for: drawings."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from cancellation import check_cancelled
from readers.converted import (
    MAX_CELLS,
    Converted,
    Unreadable,
    escape,
    html_table,
    placed,
    shows_hidden,
    whole_page,
)
from readers.html.rules import PIXELS, length
from readers.ledger import Ledger
from readers.numerals import numeral
from readers.office.opendocument_looks import (
    DRAW,
    SHOW,
    STYLE,
    TABLES,
    TEXT,
    Looks,
)
from readers.office.package import all_of, hidden_notes, open_package, whole_number
from readers.office.shapes import LARGE_IMAGE
from readers.office.sheet_html import UNREAD_CELLS, Row, sheet_to_html
from readers.text.markup import child_text

_OFFICE, _FORM, _SVG = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("office", "form", "svg-compatible")
)
_H, _P, _ITEM, _NOTE, _LIST = (
    f"{TEXT}{name}" for name in ("h", "p", "list-item", "note", "list")
)
_TABLE, _ROW, _CELL, _COVERED = (
    f"{TABLES}{name}"
    for name in ("table", "table-row", "table-cell", "covered-table-cell")
)
_FRAME: Final = f"{DRAW}frame"
_GROUPS: Final = (f"{TABLES}table-row-group", f"{TABLES}table-column-group")
_UNSHOWN_ELEMENTS: Final = (
    f"{TEXT}tracked-changes",
    f"{_OFFICE}annotation",
    f"{_OFFICE}forms",
)
_APART: Final = frozenset({*_UNSHOWN_ELEMENTS, _H, _P, _TABLE})
"""What is inside of a paragraph without belonging to its text."""
_DESCRIPTION_TAGS: Final = frozenset(
    {f"{_SVG}title", f"{_SVG}desc", f"{DRAW}text-box", _TABLE}
)
"""What in a frame says the same as a picture in it, or more."""
_BLANK_TAGS: Final = {f"{TEXT}s": " ", f"{TEXT}tab": " ", f"{TEXT}line-break": " "}
_REPEATED: Final = frozenset({"header", "footer"})
"""Frames of a slide that repeat on all."""
_PLACEHOLDERS: Final = frozenset({"title", "page-number", "date-time"})
"""Frames of a slide that are its heading, its number or today."""
_EMBEDDED_OBJECTS: Final = tuple(
    f"{DRAW}{name}"
    for name in ("object", "object-ole", "plugin", "applet", "floating-frame")
)


@dataclass(slots=True)
class _OpenDocumentReader:
    looks: Looks
    numbers: dict[tuple[str, str], etree._Element]
    """How lists are numbered, by the name of their style and the level."""
    slides: int = 0
    hidden: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("slides", "sheets", "rows", "columns", "words"), 0
        )
    )
    lists: list[str] = field(default_factory=list)
    """Styles of those around what is read."""
    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    """The number of the item of a style and level that was read."""
    label: str = ""
    """The number of an item whose paragraph comes next."""
    cells_left: int = MAX_CELLS
    """Cells that may still be read."""
    ledger: Ledger = field(default_factory=Ledger)
    repeated: dict[str, None] = field(default_factory=dict)
    """Heads and feet of slides."""

    def blocks(self, parent: etree._Element) -> Iterator[str]:
        """Yield an element's content as HTML; a paragraph comes after the frames
        anchored in it."""
        for child in parent.iterchildren(tag=etree.Element):
            check_cancelled()
            if child.tag in _UNSHOWN_ELEMENTS or self._is_apart(child):
                continue
            if read := _WHOLE_ELEMENTS.get(child.tag):
                yield from read(self, child)
                continue
            if child.tag == _ITEM:
                self._next_item(child)
            yield from self.blocks(child)
            if child.tag in {_H, _P}:
                yield from self._paragraph(child)

    def _paragraph(self, element: etree._Element) -> Iterator[str]:
        """Yield a heading or paragraph with its number, then its notes, each with its
        mark; nothing where it has no text."""
        text = self._text(element)
        if not text:
            return
        label, self.label = self.label, ""
        numbered = escape(f"{label} {text}" if label else text)
        if element.tag == _H:
            level = whole_number(element.get(f"{TEXT}outline-level", ""), 2, digits=3)
            yield f"<h{min(6, max(1, level))}>{numbered}</h{min(6, max(1, level))}>"
        elif self.lists and not label:
            yield f"<ul><li>{numbered}</li></ul>"
        else:
            yield f"<p>{numbered}</p>"
        for note in element.iter(_NOTE):
            if next(note.iterancestors(_H, _P)) is element:
                words = " ".join(filter(None, map(self._text, note.iter(_H, _P))))
                yield f"<p>[{escape(_citation(note))}] {escape(words)}</p>"

    def _speaker_notes(self, element: etree._Element) -> Iterator[str]:
        blocks = list(self.blocks(element))
        yield from ["<h3>Notes</h3>", *blocks] if blocks else []

    def _is_apart(self, element: etree._Element) -> bool:
        """Whether an element is a hidden section, or a frame that is read elsewhere."""
        is_section = element.tag == f"{TEXT}section"
        if is_section and element.get(f"{TEXT}display", "true") != "true":
            self._miss(element)
            return True
        kind = element.get(f"{SHOW}class") if element.tag == _FRAME else None
        if kind in _REPEATED:
            self.repeated |= dict.fromkeys(self.blocks(element))
        return kind in _PLACEHOLDERS or kind in _REPEATED

    def _declared(self, element: etree._Element) -> Iterator[str]:
        """Keep the head or foot that slides have in common."""
        self.repeated[f"<p>{escape(' '.join(element.itertext()))}</p>"] = None
        yield from ()

    def margins(self, styles: etree._Element | None) -> Iterator[str]:
        """Yield heads and feet of pages and slides, and what their masters print, where
        they say something, each once."""
        for master in all_of(styles, f"{STYLE}master-page"):
            for shape in master.iterchildren(tag=etree.Element):
                is_shown = shape.get(f"{STYLE}display") != "false"
                is_placeholder = shape.get(f"{SHOW}class") is not None
                if is_shown and not is_placeholder and shape.tag != f"{SHOW}notes":
                    self.repeated |= dict.fromkeys(self.blocks(shape))
        for html in self.repeated:
            letters = re.sub(r"<[^>]*>|[\W\d_]", "", html)
            if len(letters) > 4:  # more than a page's number with its name
                yield html

    def count(self, content: etree._Element) -> None:
        """Count what a document holds beside its text."""
        self.ledger.hold(
            "comment", sum(1 for _ in content.iter(f"{_OFFICE}annotation"))
        )
        self.ledger.hold(
            "embedded object", sum(1 for _ in content.iter(*_EMBEDDED_OBJECTS))
        )
        for form in content.iter(f"{_FORM}form"):
            self.ledger.hold("form field", sum(1 for _ in form.iterchildren()))
        for frame in content.iter(_FRAME):
            tags = {child.tag for child in frame.iterchildren(tag=etree.Element)}
            is_read = bool(tags & {*_DESCRIPTION_TAGS, *_EMBEDDED_OBJECTS})
            if f"{DRAW}image" in tags and not is_read:
                self.ledger.hold("image", _area(frame) >= LARGE_IMAGE)

    def _list(self, element: etree._Element) -> Iterator[str]:
        """Yield the items of a list, numbered as its style says; one inside another
        goes on with the outer's style."""
        outer = self.lists[-1] if self.lists else ""
        self.lists.append(element.get(f"{TEXT}style-name") or outer)
        if element.get(f"{TEXT}continue-numbering") != "true":
            self.counts[self.lists[-1], len(self.lists)] = 0
        yield from self.blocks(element)
        self.lists.pop()
        self.label = ""

    def _next_item(self, item: etree._Element) -> None:
        """Count an item, and keep its number for its first paragraph; outside of lists
        nothing. A malformed start value is passed over."""
        style, depth = (self.lists or [""])[-1], len(self.lists)
        form = self.numbers.get((style, str(depth)))
        self.label = ""
        if form is None:
            return
        count = self.counts.get((style, depth), 0)
        start = "" if count else form.get(f"{TEXT}start-value", "")
        start = item.get(f"{TEXT}start-value") or start
        self.counts[style, depth] = whole_number(start, count + 1, digits=5)
        levels = whole_number(form.get(f"{TEXT}display-levels", ""), 1, digits=2)
        numbers = [
            self._number(style, level)
            for level in range(max(0, depth - levels) + 1, depth + 1)
        ]
        if any(numbers):
            prefix = form.get(f"{STYLE}num-prefix", "")
            suffix = form.get(f"{STYLE}num-suffix", "")
            self.label = f"{prefix}{'.'.join(filter(None, numbers))}{suffix}".strip()

    def _number(self, style: str, level: int) -> str:
        form = self.numbers.get((style, str(level)))
        kind = form.get(f"{STYLE}num-format", "") if form is not None else ""
        return numeral(self.counts.get((style, level), 1), kind) if kind else ""

    def _slide(self, page: etree._Element) -> Iterator[str]:
        self.slides += 1
        if self.looks.hides(page):
            self.hidden["slides"] += 1
            return
        frames = (
            frame for frame in page.iter(_FRAME) if frame.get(f"{SHOW}class") == "title"
        )
        lines = [self._text(line) for frame in frames for line in frame.iter(_H, _P)]
        title = " ".join(filter(None, lines))
        blocks = list(self.blocks(page))
        if blocks or title:
            heading = f"<h2>{escape(title or f'Slide {self.slides}')}</h2>"
            yield placed("\n".join([heading, *blocks]), f"slide={self.slides}")

    def _table(self, table: etree._Element) -> Iterator[str]:
        rows = (
            row for row in table.iter(_ROW) if next(row.iterancestors(_TABLE)) is table
        )
        if next(table.iterancestors()).tag != f"{_OFFICE}spreadsheet":
            cells = [texts for row in rows if any(texts := self._cells(row))]
            if cells:
                yield html_table(cells, header=len(cells) > 1)
        elif self.looks.hides(table):
            self.hidden["sheets"] += 1
        else:
            yield from self._sheet(table, rows)

    def _sheet(
        self, table: etree._Element, rows: Iterator[etree._Element]
    ) -> Iterator[str]:
        name, columns = table.get(f"{TABLES}name", ""), _hidden_columns(table)
        sheet = sheet_to_html(name, self._numbered(rows, columns))
        shapes = table.iterchildren(f"{TABLES}shapes")
        drawn = [block for shape in shapes for block in self.blocks(shape)]
        yield from [sheet or f"<h2>{escape(name)}</h2>" * bool(drawn), *drawn]
        self.hidden["columns"] += len(columns)

    def _numbered(
        self, rows: Iterator[etree._Element], columns: frozenset[int]
    ) -> Iterator[Row]:
        """Yield the filled rows of a sheet that are shown, as often as each is
        repeated, while cells are left.

        Hidden rows are counted and left out, hidden `columns` emptied."""
        number = 0
        for row in rows:
            check_cancelled()
            cells = self._shown_cells(row, columns)
            times = _count(row, "number-rows-repeated")
            for repeated in range(number + 1, number + 1 + times if cells else 0):
                if self.cells_left < 0:
                    return
                self.cells_left -= len(cells)
                yield repeated, cells
            number += times

    def _shown_cells(self, row: etree._Element, columns: frozenset[int]) -> list[str]:
        """Return the cells of a row of a sheet, those of hidden columns emptied, all of
        a hidden row; hidden words are counted."""
        cells = self._cells(row)
        if cells and _is_collapsed(row):
            self.hidden["rows"] += 1
            columns = frozenset(range(len(cells)))
        for column in columns.intersection(range(len(cells))):
            self.hidden["words"] += len(cells[column].split())
            cells[column] = ""
        return cells if any(cells) else []

    def _cells(self, row: etree._Element) -> list[str]:
        texts = [
            (
                " ".join(filter(None, map(self._text, cell.iter(_H, _P))))
                or cell.get(f"{_OFFICE}string-value", ""),
                _count(cell, "number-columns-repeated"),
            )
            for cell in row.iterchildren(_CELL, _COVERED)
        ]
        while texts and not texts[-1][0]:
            texts.pop()  # rows end in thousands of empty cells
        return [
            text
            for text, count in texts
            for _ in range(min(count, self.cells_left + 1))
        ]

    def _text(self, element: etree._Element) -> str:
        """Return the visible text of a paragraph, without its frames; "" for one that
        is hidden. Hidden words are counted."""
        if any(map(_is_on, element.iterchildren(f"{TEXT}hidden-paragraph"))):
            self._miss(element)
            return ""
        cell = next(element.iterancestors(_CELL), None)
        is_unseen = cell is not None and self.looks.is_unseen(cell, parent=False)
        return " ".join("".join(self._pieces(element, is_unseen)).split())

    def _pieces(self, element: etree._Element, is_unseen: bool) -> Iterator[str]:
        """Yield the texts of an element; `is_unseen`: whether those around it are."""
        is_field = element.tag == f"{TEXT}hidden-text" and _is_on(element)
        if (is_field or self.looks.hides(element)) and not shows_hidden():
            self._miss(element)
            return
        if element.tag == _NOTE:
            yield f"[{_citation(element)}]"
            return
        is_unseen = self.looks.is_unseen(element, parent=is_unseen)
        if not is_unseen and self._is_raised(element):
            yield "^"
        yield _BLANK_TAGS.get(element.tag, "")
        yield self._seen(element.text, is_unseen)
        for child in element:
            if isinstance(child.tag, str) and child.tag not in _APART:
                yield from self._pieces(child, is_unseen)
            yield self._seen(child.tail, is_unseen)

    def _seen(self, text: str | None, is_unseen: bool) -> str:
        self.hidden["words"] += is_unseen * len((text or "").split())
        return "" if is_unseen else text or ""

    def _is_raised(self, element: etree._Element) -> bool:
        """Whether a piece of text is a short raised one, as an exponent is."""
        name = element.get(f"{TEXT}style-name", "")
        height = self.looks.value(name, f"{STYLE}text-position")
        return height.startswith("super") and 0 < len(element.text or "") <= 4

    def _miss(self, element: etree._Element) -> None:
        """Count the words of what is left out."""
        self.hidden["words"] += len(" ".join(element.itertext()).split())


_WHOLE_ELEMENTS: Final[
    dict[str, Callable[[_OpenDocumentReader, etree._Element], Iterator[str]]]
] = {
    f"{DRAW}page": _OpenDocumentReader._slide,
    _TABLE: _OpenDocumentReader._table,
    _LIST: _OpenDocumentReader._list,
    f"{SHOW}notes": _OpenDocumentReader._speaker_notes,
    f"{SHOW}header-decl": _OpenDocumentReader._declared,
    f"{SHOW}footer-decl": _OpenDocumentReader._declared,
    _NOTE: lambda _reader, _note: iter(()),  # after its paragraph
}
"""Elements that are read by one method with all that they hold."""


def _area(frame: etree._Element) -> float:
    """Return how large a frame is, in square EMU; 0 where that is not said."""
    width, height = (
        (length(frame.get(f"{_SVG}{side}", "")) or 0.0) * 360_000 / PIXELS["cm"]
        for side in ("width", "height")
    )
    return width * height


def _is_on(element: etree._Element) -> bool:
    """Whether a field hides now."""
    return bool(element.get(f"{TEXT}is-hidden", "true") != "false")


def _is_collapsed(element: etree._Element) -> bool:
    """Whether a row or column of a sheet is hidden, by itself or with a group around
    it."""
    return element.get(f"{TABLES}visibility", "visible") != "visible" or any(
        group.get(f"{TABLES}display") == "false"
        for group in element.iterancestors(*_GROUPS)
    )


def _hidden_columns(table: etree._Element) -> frozenset[int]:
    """Return the columns of a sheet that are hidden, counted from 0."""
    columns: set[int] = set()
    start = 0
    for column in table.iter(f"{TABLES}table-column"):
        times = min(_count(column, "number-columns-repeated"), MAX_CELLS)
        if _is_collapsed(column) and start < MAX_CELLS:
            columns.update(range(start, start + times))
        start += times
    return frozenset(columns)


def _citation(note: etree._Element) -> str:
    return child_text(note, "note-citation") or "*"


def _count(element: etree._Element, name: str) -> int:
    return whole_number(element.get(f"{TABLES}{name}", ""), 1, digits=7)


def opendocument_to_html(body: bytes) -> Converted:
    """Return an OpenDocument file as HTML; raises `Unreadable` for one that is damaged,
    has a password, is too large unpacked, or without text."""
    with open_package(body, "an OpenDocument file") as package:
        if b"encryption-data" in package.read("META-INF/manifest.xml"):
            raise Unreadable(
                "it is an OpenDocument file with a password: save a copy without one"
            )
        meta, content = package.tree("meta.xml"), package.tree("content.xml")
        if content is None:
            raise Unreadable("it is an OpenDocument file without text")
        about = meta[0] if meta is not None and len(meta) else None
        return _converted(about, content, package.tree("styles.xml"))


def _converted(
    about: etree._Element | None,
    content: etree._Element,
    styles: etree._Element | None,
) -> Converted:
    """Return a file as HTML by what it says of itself, its content and its styles.

    Hidden parts are left out, and notes say how many. Raises `Unreadable` for a file
    without text."""
    title = child_text(about, "title") if about is not None else ""
    author = (
        child_text(about, "creator", "initial-creator") if about is not None else ""
    )
    # Automatic styles of the other part are those of headers and masters, by the same names.
    common = styles.find(f"{_OFFICE}styles") if styles is not None else None
    reader = _OpenDocumentReader(
        Looks(common, content), _numbers(styles) | _numbers(content)
    )
    body = content.find(f"{_OFFICE}body")
    body = content if body is None else body
    blocks = list(reader.blocks(body))
    reader.count(body)
    blocks += reader.margins(styles)
    if not any(blocks):
        raise Unreadable("it is an OpenDocument file without text")
    return Converted(
        whole_page("\n".join(blocks).replace("</ul>\n<ul>", ""), title=title),
        title,
        author=author,
        notes=hidden_notes("OpenDocument", reader.hidden),
        unread=UNREAD_CELLS if reader.cells_left < 0 else "",
        hidden=reader.hidden["words"],
        ledger=reader.ledger,
    )


def _numbers(tree: etree._Element | None) -> dict[tuple[str, str], etree._Element]:
    return {
        (style.get(f"{STYLE}name", ""), level.get(f"{TEXT}level", "1")): level
        for style in all_of(tree, f"{TEXT}list-style")
        for level in style.iterchildren(f"{TEXT}list-level-style-number")
    }
