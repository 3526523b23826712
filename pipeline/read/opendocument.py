"""ODT, ODS and ODP to HTML: headings, paragraphs, lists, tables; sheets by their cells; slides with number and notes.

What a file hides (text, sheets, slides by their styles), comments and deleted text are left out. Not for: formulas,
drawings, charts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from pipeline.read.converted import Converted, Unreadable, escape, html_table, placed, whole_page
from pipeline.read.package import open_package
from pipeline.read.sheets import MAX_CELLS, UNREAD, Row, sheet_to_html
from pipeline.read.text import child_text
from pipeline.work import check_cancelled

_TEXT, _TABLES, _DRAW, _STYLE, _OFFICE, _SHOW = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("text", "table", "drawing", "style", "office", "presentation")
)
_H, _P, _ITEM = (f"{_TEXT}{name}" for name in ("h", "p", "list-item"))
_TABLE, _ROW, _CELL, _COVERED = (
    f"{_TABLES}{name}" for name in ("table", "table-row", "table-cell", "covered-table-cell")
)
_PAGE, _FRAME, _NOTES, _NAMED = f"{_DRAW}page", f"{_DRAW}frame", f"{_SHOW}notes", f"{_STYLE}style"
_SHEETS: Final = f"{_OFFICE}spreadsheet"
_UNSHOWN: Final = (f"{_TEXT}tracked-changes", f"{_OFFICE}annotation")
_BLANKS: Final = {f"{_TEXT}s": " ", f"{_TEXT}tab": " ", f"{_TEXT}line-break": " "}
_APART: Final = frozenset({"title", "page-number", "header", "footer", "date-time"})
"""Frames of a slide that are its heading, or repeat on all."""
_HIDING: Final = {
    f"{_STYLE}text-properties": (f"{_TEXT}display", "none"),
    f"{_STYLE}table-properties": (f"{_TABLES}display", "false"),
    f"{_STYLE}drawing-page-properties": (f"{_SHOW}visibility", "hidden"),
}
"""What in a style hides text, a sheet or a slide."""


@dataclass(slots=True)
class _Reader:
    """What was read so far."""

    hiding: frozenset[str]
    """Names of styles that hide."""
    slides: int = 0
    hidden: int = 0
    left: int = MAX_CELLS
    """Cells that may still be read."""

    def blocks(self, parent: etree._Element, *, in_item: bool = False) -> Iterator[str]:
        """Yield what stands in an element as HTML; a paragraph behind the frames that are anchored in it."""
        for child in parent.iterchildren(tag=etree.Element):
            check_cancelled()
            if child.tag in _UNSHOWN or (child.tag == _FRAME and child.get(f"{_SHOW}class") in _APART):
                continue
            if child.tag in {_PAGE, _TABLE}:
                yield from self._slide(child) if child.tag == _PAGE else self._table(child)
                continue
            inner = self.blocks(child, in_item=in_item or child.tag == _ITEM)
            if child.tag == _NOTES:
                said = list(inner)
                inner = iter(["<h3>Notes</h3>", *said] if said else [])
            yield from inner
            if child.tag in {_H, _P} and (text := self._text(child)):
                yield _block(child, escape(text), in_item=in_item)

    def _is_hidden(self, element: etree._Element, space: str) -> bool:
        hides = element.get(f"{space}style-name") in self.hiding
        self.hidden += hides
        return hides

    def _slide(self, page: etree._Element) -> Iterator[str]:
        self.slides += 1
        if self._is_hidden(page, _DRAW):
            return
        titles = (frame for frame in page.iter(_FRAME) if frame.get(f"{_SHOW}class") == "title")
        title = " ".join(filter(None, (self._text(line) for frame in titles for line in frame.iter(_H, _P))))
        inner = list(self.blocks(page))
        if inner or title:
            heading = f"<h2>{escape(title or f'Slide {self.slides}')}</h2>"
            yield placed("\n".join([heading, *inner]), f"slide={self.slides}")

    def _table(self, table: etree._Element) -> Iterator[str]:
        rows = (row for row in table.iter(_ROW) if next(row.iterancestors(_TABLE)) is table)
        if table.getparent().tag != _SHEETS:
            cells = [told for row in rows if any(told := self._cells(row))]
            if cells:
                yield html_table(cells, header=len(cells) > 1)
        elif not self._is_hidden(table, _TABLES):
            for shapes in table.iterchildren(f"{_TABLES}shapes"):
                yield from self.blocks(shapes)
            yield sheet_to_html(table.get(f"{_TABLES}name", ""), self._numbered(rows), MAX_CELLS).html

    def _numbered(self, rows: Iterator[etree._Element]) -> Iterator[Row]:
        """Yield the filled rows of a sheet, as often as each is repeated, while cells are left."""
        number = 0
        for row in rows:
            check_cancelled()
            cells, times = self._cells(row), _count(row, "number-rows-repeated")
            for repeated in range(number + 1, number + 1 + times if cells else 0):
                if self.left < 0:
                    return
                self.left -= len(cells)
                yield repeated, cells
            number += times

    def _cells(self, row: etree._Element) -> list[str]:
        told = [
            (" ".join(filter(None, map(self._text, cell.iter(_H, _P)))), _count(cell, "number-columns-repeated"))
            for cell in row.iterchildren(_CELL, _COVERED)
        ]
        while told and not told[-1][0]:
            told.pop()  # rows end in thousands of empty cells
        return [text for text, count in told for _ in range(min(count, self.left + 1))]

    def _text(self, element: etree._Element) -> str:
        """Return the text of a paragraph that is seen, without what stands in frames of its own."""
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
                    if isinstance(child.tag, str) and child.tag not in {*_UNSHOWN, _H, _P, _TABLE}:
                        stack.append(child)
                stack.append(one.text or "")
        return " ".join("".join(pieces).split())


def _block(element: etree._Element, text: str, *, in_item: bool) -> str:
    if element.tag == _H:
        level = element.get(f"{_TEXT}outline-level", "2")
        level = min(6, max(1, int(level))) if level.isdigit() else 2
        return f"<h{level}>{text}</h{level}>"
    return f"<ul><li>{text}</li></ul>" if in_item else f"<p>{text}</p>"


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
        content = package.tree("content.xml")
        reader = _Reader(_hiding(content) if content is not None else frozenset())
        parts = list(reader.blocks(content)) if content is not None else []
    if not any(parts):
        raise Unreadable("it is an OpenDocument file without text")
    kind = "slides" if reader.slides else "sheets"
    notes = (f"OpenDocument: {reader.hidden} hidden {kind} were left out",) if reader.hidden else ()
    unread = UNREAD if reader.left < 0 else ""
    html = whole_page("\n".join(parts), title=title)
    return Converted(html, title, author=author, notes=notes, unread=unread)


def _hiding(content: etree._Element) -> frozenset[str]:
    """Return the names of the styles that hide what has them."""
    return frozenset(
        style.get(f"{_STYLE}name", "")
        for style in content.iter(_NAMED)
        for inner in style.iterchildren(*_HIDING)
        if inner.get(_HIDING[inner.tag][0]) == _HIDING[inner.tag][1]
    )
