"""ODT, ODS and ODP to HTML: headings, paragraphs, lists, tables; sheets by their cells; slides with number and notes.

One pass over `content.xml`, whose tree is dropped as it is read. What a file hides (text, sheets, slides by their
styles), comments and deleted text are left out. Not for: formulas, drawings, charts.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from pipeline.read.converted import Converted, Unreadable, escape, html_table, placed, whole_page
from pipeline.read.package import open_package
from pipeline.read.sheets import MAX_CELLS, UNREAD, Row, sheet_to_html
from pipeline.read.text import XML_OPTIONS, child_text
from pipeline.work import check_cancelled

_TEXT, _TABLES, _DRAW, _STYLE, _OFFICE, _SHOW = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("text", "table", "drawing", "style", "office", "presentation")
)
_H, _P, _ITEM, _SPAN = (f"{_TEXT}{name}" for name in ("h", "p", "list-item", "span"))
_TABLE, _ROW, _CELL, _COVERED = (
    f"{_TABLES}{name}" for name in ("table", "table-row", "table-cell", "covered-table-cell")
)
_PAGE, _FRAME, _NOTES, _NAMED = f"{_DRAW}page", f"{_DRAW}frame", f"{_SHOW}notes", f"{_STYLE}style"
_SHEETS: Final = f"{_OFFICE}spreadsheet"
_UNSHOWN: Final = (f"{_TEXT}tracked-changes", f"{_OFFICE}annotation")
_BLANKS: Final = {f"{_TEXT}s": " ", f"{_TEXT}tab": " ", f"{_TEXT}line-break": " "}
_FIELDS: Final = frozenset({"page-number", "header", "footer", "date-time"})
"""Frames of a slide that repeat on all."""
_HIDING: Final = {
    f"{_STYLE}text-properties": (f"{_TEXT}display", "none"),
    f"{_STYLE}table-properties": (f"{_TABLES}display", "false"),
    f"{_STYLE}drawing-page-properties": (f"{_SHOW}visibility", "hidden"),
}
"""What in a style hides text, a sheet or a slide."""


@dataclass(slots=True)
class _Reader:
    """What was read, and where the reading stands."""

    parts: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    """Of the outermost table, outside of sheets."""
    sheet: list[Row] = field(default_factory=list)
    hiding: set[str] = field(default_factory=set)
    """Names of styles that hide."""
    open: dict[str, int] = field(default_factory=dict)
    """How many elements of each name are open."""
    slides: int = 0
    hidden: int = 0
    row: int = 0
    left: int = MAX_CELLS
    """Cells that may still be read."""
    title: str = ""
    """Of the slide that is read."""
    frame: str = ""
    """What the frame of a slide that is read is for."""
    before: int = 0
    """Parts before the slide, and in `notes` before its notes."""
    notes: int = 0
    is_unseen: bool = False
    """Inside a sheet or slide that is not shown."""

    def start(self, element: etree._Element) -> None:
        tag = element.tag
        self.open[tag] = self.open.get(tag, 0) + 1
        if tag == _PAGE or (tag == _TABLE and self._in_sheets(element)):
            self.is_unseen = element.get(f"{_DRAW if tag == _PAGE else _TABLES}style-name") in self.hiding
            self.hidden += self.is_unseen
            self.slides += tag == _PAGE
            self.row = 0
            self.title, self.before = "", len(self.parts)
        elif tag == _NOTES:
            self.notes = len(self.parts)
        elif tag == _FRAME:
            self.frame = element.get(f"{_SHOW}class", "")

    def end(self, element: etree._Element) -> bool:
        """Take what ends; return whether it can be dropped."""
        tag = element.tag
        self.open[tag] -= 1
        if tag == _NAMED:
            self._style(element)
        elif tag in _UNSHOWN:
            return False  # what stands before a comment is text of its paragraph
        elif any(self.open.get(unshown) for unshown in _UNSHOWN) or self.is_unseen:
            pass
        elif tag in {_H, _P}:
            if self.open.get(_ROW):
                return False  # its row reads it
            self._block(element)
        elif tag == _NOTES and len(self.parts) > self.notes:
            self.parts.insert(self.notes, "<h3>Notes</h3>")
        elif tag == _FRAME:
            self.frame = ""
        elif tag == _PAGE:
            self._slide()
        elif tag == _ROW:
            if self.open[_ROW]:
                return False
            self._row(element)
        elif tag == _TABLE and not self.open[_TABLE]:
            self._table(element)
        return tag not in {_ITEM, _SHEETS, _FRAME}

    def _in_sheets(self, element: etree._Element) -> bool:
        parent = element.getparent()
        return parent is not None and parent.tag == _SHEETS

    def _style(self, element: etree._Element) -> None:
        for inner in element:
            name, value = _HIDING.get(inner.tag, ("", ""))
            if name and inner.get(name) == value:
                self.hiding.add(element.get(f"{_STYLE}name", ""))

    def _slide(self) -> None:
        inner = self.parts[self.before :]
        if inner or self.title:
            heading = f"<h2>{escape(self.title or f'Slide {self.slides}')}</h2>"
            self.parts[self.before :] = [placed("\n".join([heading, *inner]), f"slide={self.slides}")]

    def _block(self, element: etree._Element) -> None:
        text = self._text(element)
        if not text or self.frame in _FIELDS:
            return
        if self.frame == "title":
            self.title = f"{self.title} {text}".strip()
        elif element.tag == _H:
            level = element.get(f"{_TEXT}outline-level", "2")
            level = min(6, max(1, int(level))) if level.isdigit() else 2
            self.parts.append(f"<h{level}>{escape(text)}</h{level}>")
        else:
            tags = ("<ul><li>", "</li></ul>") if self.open.get(_ITEM) else ("<p>", "</p>")
            self.parts.append(escape(text).join(tags))

    def _row(self, element: etree._Element) -> None:
        times = _count(element, "number-rows-repeated")
        told = [
            (" ".join(filter(None, map(self._text, cell.iter(_H, _P)))), _count(cell, "number-columns-repeated"))
            for cell in element.iter(_CELL, _COVERED)
        ]
        while told and not told[-1][0]:
            told.pop()  # rows end in thousands of empty cells
        cells = [text for text, count in told for _ in range(min(count, self.left + 1))] if self.left >= 0 else []
        if self.open.get(_SHEETS):
            for number in range(self.row + 1, self.row + times + 1):
                if not cells or self.left < 0:
                    break
                self.left -= len(cells)
                self.sheet.append((number, cells))
            self.row += times
        elif any(cells):
            self.rows.append(cells)

    def _table(self, element: etree._Element) -> None:
        if self._in_sheets(element):
            self.parts.append(sheet_to_html(element.get(f"{_TABLES}name", ""), self.sheet, MAX_CELLS)[0])
        elif self.rows:
            self.parts.append(html_table(self.rows, header=len(self.rows) > 1))
        self.sheet, self.rows = [], []

    def _text(self, element: etree._Element) -> str:
        """Return the text of a paragraph that is seen."""
        pieces: list[str] = []
        stack: list[etree._Element | str] = [element]
        while stack:
            one = stack.pop()
            if isinstance(one, str):
                pieces.append(one)
                continue
            pieces.append(_BLANKS.get(one.tag, ""))
            if one.get(f"{_TEXT}style-name") not in self.hiding:
                for child in reversed(one):
                    stack.append(child.tail or "")
                    if isinstance(child.tag, str) and child.tag not in _UNSHOWN:
                        stack.append(child)
                stack.append(one.text or "")
        return " ".join("".join(pieces).split())


def _count(element: etree._Element, name: str) -> int:
    value = element.get(f"{_TABLES}{name}", "1")
    return int(value) if value.isdecimal() and len(value) < 8 else 1


def opendocument_to_html(body: bytes) -> Converted:
    """Return an OpenDocument file as HTML; raises `Unreadable` for one that is damaged, has a password, is too large
    unpacked, or without text."""
    with open_package(body, "an OpenDocument file") as package:
        if b"encryption-data" in package.read("META-INF/manifest.xml"):
            raise Unreadable("it is an OpenDocument file with a password: save a copy without one")
        meta = package.tree("meta.xml")
        about = meta[0] if meta is not None and len(meta) else None
        title = child_text(about, "title") if about is not None else ""
        author = child_text(about, "creator", "initial-creator") if about is not None else ""
        reader = _Reader()
        for event, element in _events(package.bounded("content.xml")):
            if event == "start":
                reader.start(element)
            elif reader.end(element):
                _drop(element)
    if not any(reader.parts):
        raise Unreadable("it is an OpenDocument file without text")
    kind = "slides" if reader.slides else "sheets"
    notes = (f"OpenDocument: {reader.hidden} hidden {kind} were left out",) if reader.hidden else ()
    unread = UNREAD if reader.left < 0 else ""
    html = whole_page("\n".join(reader.parts), title=title)
    return Converted(html, title, author=author, notes=notes, unread=unread)


def _events(content: bytes) -> Iterator[tuple[str, etree._Element]]:
    tags = (_H, _P, _ITEM, _TABLE, _ROW, _PAGE, _FRAME, _NOTES, _NAMED, _SHEETS, *_UNSHOWN)
    events = etree.iterparse(io.BytesIO(content), events=("start", "end"), tag=tags, **XML_OPTIONS)
    for number, (event, element) in enumerate(events):
        if number % 1000 == 0:
            check_cancelled()
        yield event, element


def _drop(element: etree._Element) -> None:
    """Free an element that was read, and what stands before it."""
    tail = element.tail
    element.clear()
    element.tail = tail
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
