"""XLSX to HTML: the sheets that are shown, each cell as its format shows it, with
notes, charts, texts of drawings, and what its pages have above and below in print.

Rows are read one after the other, each freed when it is written down. Merged cells span
what they cover. Hidden rows, columns, sheets and values are left out and counted,
formulas that were never computed are written and said. Not for: older `.xls` and binary
`.xlsb` files, pivot caches, how rows become tables (`sheet_html.py`)."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from lxml import etree

from cancellation import check_cancelled
from readers.converted import (
    LEAST_SIZE,
    MAX_CELLS,
    Converted,
    Unreadable,
    escape,
    placed,
    shows_hidden,
    whole_page,
)
from readers.ledger import Ledger
from readers.office.number_format import (
    BUILT_IN,
    EPOCH,
    EPOCH_1904,
    shown,
    shown_text,
)
from readers.office.package import (
    CHUNK,
    ON,
    Package,
    all_of,
    hidden_notes,
    open_package,
    whole_number,
)
from readers.office.shapes import (
    FALLBACK,
    LARGE_IMAGE,
    RAISED,
    RELATION,
    drawn,
    picture,
    texts_of,
)
from readers.office.sheet_html import UNREAD_CELLS, Merged, Row, address, sheet_to_html
from readers.office.workbook_looks import unseen_styles
from readers.text.markup import XML_OPTIONS

X: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
MAX_ROW_BYTES: Final = 2_000_000
"""Of XML, which is held in memory as one; 16,384 cells take a third of it."""
_MARGIN_CODE: Final = re.compile(r'&(?:"[^"]*"|\d{1,3}|K[\dA-F]{6}|[A-Z])')
"""Fonts, sizes, colours and fields within a header or footer."""
_LAST_COLUMN: Final = 16_384
_LEAST_WIDTH: Final = 0.3
"""Letters of width below which a column shows none."""


@dataclass(slots=True)
class _Book:
    package: Package
    styles: etree._Element | None
    strings: Sequence[str] = ()
    formats: Sequence[str] = ()
    """By the number of a cell's style."""
    epoch: datetime = EPOCH
    ledger: Ledger = field(default_factory=Ledger)
    cells_left: int = MAX_CELLS
    """Cells that may still be read."""
    hidden: dict[str, int] = field(
        default_factory=lambda: {"sheets": 0, "rows": 0, "columns": 0, "words": 0}
    )
    """What was left out, by kind."""

    def text(self, cell: etree._Element) -> str:
        """Return a cell as it is shown; empty for one without content, and for a
        picture or record in a cell, which counts as unread."""
        kind = cell.get("t", "n")
        style = whole_number(cell.get("s", "0"), digits=5)
        form = self.formats[style] if style < len(self.formats) else "General"
        inline, value = cell.find(f"{X}is"), cell.findtext(f"{X}v")
        if kind == "inlineStr" and inline is not None:
            return shown_text(_string(inline), form)
        if not value:
            formula = cell.find(f"{X}f")
            if formula is None or kind == "str":
                return ""
            self.ledger.hold("formula")
            return f"={formula.text or '…'}"
        if kind == "e" and cell.get("vm"):
            self.ledger.hold("cell")  # a picture, or a record of another service
            value = ""
        elif kind == "b":
            value = "TRUE" if value == "1" else "FALSE"
        elif kind == "s":
            index = whole_number(value, len(self.strings), digits=9)
            value = self.strings[index] if index < len(self.strings) else ""
        number = _float(value) if kind == "n" else None
        if number is None:
            return shown_text(" ".join(value.split()), form)
        text = shown(number, form, self.epoch)
        self.hidden["words"] += not text
        return text


@dataclass(slots=True)
class _SheetPart:
    book: _Book
    body: bytes
    part_name: str
    unseen: frozenset[str]
    """Styles of cells that show nothing."""
    merged: list[Merged] = field(default_factory=list)
    hidden_columns: set[int] = field(default_factory=set)
    """Counted from 0."""
    emptied: set[int] = field(default_factory=set)
    """Hidden columns that held something."""
    margins: dict[str, None] = field(default_factory=dict)
    """Headers and footers of the printed pages, each once."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows that are shown, while cells are left, hidden columns emptied.

        What follows the row that exceeds `cells_left` is not read; a sheet whose XML breaks
        off is noted as damaged."""
        tags = tuple(
            f"{X}{name}" for name in ("row", "col", "mergeCell", "headerFooter")
        )
        parser = etree.XMLPullParser(
            ("end",), tag=tags, remove_comments=True, **XML_OPTIONS
        )
        number = 0
        for start in range(0, len(self.body), CHUNK):
            check_cancelled()
            parser.feed(self.body[start : start + CHUNK])
            for element in [element for _, element in parser.read_events()]:
                if element.tag == f"{X}row":
                    number = whole_number(element.get("r", ""), number + 1, digits=7)
                    if cells := self._cells(element):
                        self.book.cells_left -= len(cells)
                        if self.book.cells_left < 0:
                            return
                        yield number, cells
                else:
                    self._about(element)
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
        parser.close()
        self.book.package.note_damage(self.part_name, parser.feed_error_log)

    def _about(self, element: etree._Element) -> None:
        """Take what is said beside the rows: hidden columns, merged cells, headers and
        footers."""
        if element.tag == f"{X}col":
            start, stop = (
                whole_number(element.get(side, ""), 1, digits=5)
                for side in ("min", "max")
            )
            width = _float(element.get("width", ""))
            is_narrow = width is not None and width < _LEAST_WIDTH
            if element.get("hidden") in ON or is_narrow:
                self.hidden_columns.update(range(start - 1, min(stop, _LAST_COLUMN)))
        elif element.tag == f"{X}mergeCell":
            corners = element.get("ref", "").split(":")
            (start, top), (stop, bottom) = map(_position, (corners[0], corners[-1]))
            self.merged.append(Merged(top, start, bottom, stop))
        else:
            for part in re.split("&[LCR]", "&C".join(element.itertext())):
                text = " ".join(_MARGIN_CODE.sub(" ", part).split())
                if text:
                    self.margins[text] = None

    def _cells(self, row: etree._Element) -> list[str]:
        """Return the cells of a row up to the last that holds something, none of a
        hidden row. Hidden words are counted."""
        height = _float(row.get("ht", ""))
        is_low = height is not None and height < LEAST_SIZE
        is_hidden = is_low or row.get("hidden") in ON
        cells: dict[int, str] = {}
        column, is_emptied = -1, False
        for cell in row.iterchildren(f"{X}c"):
            reference = _position(cell.get("r", ""))[0]
            column = reference if reference >= 0 else column + 1
            text = self.book.text(cell)
            in_hidden = is_hidden or column in self.hidden_columns
            if text and (in_hidden or cell.get("s", "0") in self.unseen):
                self.book.hidden["words"] += len(text.split())
                is_emptied |= is_hidden
                self.emptied |= {column} if in_hidden and not is_hidden else set()
            elif text:
                cells[column] = text
        self.book.hidden["rows"] += is_emptied
        return [cells.get(column, "") for column in range(max(cells, default=-1) + 1)]


def _float(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@lru_cache(65_536)
def _position(reference: str) -> tuple[int, int]:
    """Return the column of a cell's address (at most three capitals), counted from 0, and
    its row; -1 and 0 where these are missing."""
    column = 0
    digits = reference.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for letter in reference[: min(3, len(reference) - len(digits))]:
        column = column * 26 + ord(letter) - 64
    return column - 1, whole_number(digits, digits=7)


def xlsx_to_html(body: bytes) -> Converted:
    """Return a workbook as HTML, a section for each sheet that is shown; raises
    `Unreadable` for one that is damaged, too large unpacked, or without text.

    Hidden sheets are left out, and a note says how many. Cells beyond the cap are named
    as unread."""
    with open_package(body, "a workbook") as package:
        title, author = package.about()
        main = package.main("xl/workbook.xml")
        links = package.targets(main)
        book = _open(package, main, links)
        sections = list[str]()
        for sheet in all_of(package.tree(main), f"{X}sheet"):
            kind, part_name = links.get(sheet.get(f"{RELATION}id", ""), ("", ""))
            if sheet.get("state", "visible") != "visible":
                book.hidden["sheets"] += bool(package.read(part_name))
            elif kind not in {"worksheet", "chartsheet"}:
                book.ledger.hold("sheet", bool(package.read(part_name)))
            elif book.cells_left >= 0:
                name = " ".join(sheet.get("name", "").split())
                sections.append(_sheet(book, name, part_name))
    if not any(sections):
        raise Unreadable(
            f"it is a workbook {'that is damaged' if package.damaged else 'without text'}"
        )
    return Converted(
        whole_page("\n".join(filter(None, sections)), title=title),
        title,
        author=author,
        notes=hidden_notes("workbook", book.hidden),
        unread="; ".join(
            filter(None, (UNREAD_CELLS if book.cells_left < 0 else "", package.unread))
        ),
        hidden=book.hidden["words"],
        ledger=book.ledger,
    )


def _open(package: Package, main: str, links: dict[str, tuple[str, str]]) -> _Book:
    """Return what holds for all sheets; a missing part of strings or styles holds
    nothing."""
    names = dict(reversed(links.values()))

    def tree(kind: str) -> etree._Element | None:
        return package.tree(names.get(kind, f"xl/{kind}.xml"))

    styles = tree("styles")
    codes = dict(BUILT_IN)
    for form in all_of(styles, f"{X}numFmt"):
        number = whole_number(form.get("numFmtId", ""), digits=7)
        codes[number] = form.get("formatCode", "")
    cells = styles.iterfind(f"{X}cellXfs/*") if styles is not None else ()
    numbers = (whole_number(cell.get("numFmtId", ""), digits=7) for cell in cells)
    book = _Book(
        package,
        styles,
        [_string(string) for string in all_of(tree("sharedStrings"), f"{X}si")],
        [codes.get(number, "General") for number in numbers],
    )
    for about in all_of(package.tree(main), f"{X}workbookPr"):
        book.epoch = EPOCH_1904 if about.get("date1904") in ON else EPOCH
    return book


def _string(element: etree._Element) -> str:
    """Return the text of a string with its raised digits marked, its readings for
    pronunciation left out."""
    texts = []
    for run in element.iterchildren(f"{X}t", f"{X}r"):
        text = run.text if run.tag == f"{X}t" else run.findtext(f"{X}t")
        raised = run.find(f"{X}rPr/{X}vertAlign")
        is_raised = raised is not None and raised.get("val") == "superscript"
        is_power = is_raised and RAISED.fullmatch(text or "")
        texts.append(f"^{text}" if is_power else text or "")
    return " ".join("".join(texts).split())


def _sheet(book: _Book, name: str, part_name: str) -> str:
    """Return a sheet with what belongs to it as HTML, empty where it has nothing.

    Raises `Unreadable` for a row of over `MAX_ROW_BYTES` bytes."""
    body = book.package.read(part_name)
    if max(map(len, re.split(rb"</(?:\w+:)?row>", body))) > MAX_ROW_BYTES:
        raise Unreadable(
            f"it is a workbook with a row of over {MAX_ROW_BYTES:,} bytes: save it as CSV"
        )
    # Tables and conditions fill cells by rules of their own.
    is_filled = b"<tablePart" in body or b"conditionalFormatting" in body
    unseen = (
        frozenset()
        if shows_hidden()
        else unseen_styles(book.styles, is_filled=is_filled)
    )
    sheet = _SheetPart(book, body, part_name, unseen)
    html = sheet_to_html(name, sheet.rows(), sheet.merged)
    book.hidden["columns"] += len(sheet.emptied)
    links = book.package.targets(part_name)
    after = [f"<p>{escape(text)}</p>" for text in sheet.margins]
    after += [*_comments(book, name, links), *_drawings(book, links)]
    for root in book.package.roots(links, "vmlDrawing"):  # buttons and boxes
        for box in root.iter("{urn:schemas-microsoft-com:vml}textbox"):
            text = " ".join(" ".join(box.itertext()).split())
            after += [f"<p>{escape(text)}</p>"] if text else []
    if b"oleObject " in body:
        kinds = [kind for kind, _ in links.values() if kind in {"oleObject", "package"}]
        book.ledger.hold("embedded object", len(kinds))
    if not after:
        return html
    return "\n".join([html or f"<h2>{escape(name)}</h2>", *after])


def _note(sheet: str, position: str, text: str) -> str:
    """Return what is said at a cell, or at a range by its first cell."""
    column, row = _position(position.partition(":")[0])
    fragment = address(sheet, row, [column])
    return placed(escape(f"Note at {position}: {text}"), fragment, tag="p")


def _comments(
    book: _Book, name: str, links: dict[str, tuple[str, str]]
) -> Iterator[str]:
    """Yield the notes of a sheet, which hold its conversations as well."""
    for root in book.package.roots(links, "comments"):
        for comment in root.iter(f"{X}comment"):
            texts = (text.text or "" for text in comment.iter(f"{X}t"))
            if text := " ".join("".join(texts).split()):
                yield _note(name, comment.get("ref", ""), text)


def _drawings(book: _Book, links: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the charts, texts and described pictures that are drawn over a sheet; what
    cannot be read counts as unread."""
    for kind, part_name in links.values():
        root = book.package.tree(part_name) if kind == "drawing" else None
        if root is None:
            continue
        for twin in list(root.iter(FALLBACK)):
            twin.clear()
        for shape in root.iter("{*}sp", "{*}cxnSp", "{*}pic"):
            texts = [f"<p>{escape(text)}</p>" for text in texts_of(shape) if text]
            about = next(shape.iter("{*}cNvPr"), None)
            if not texts and (alt := picture(shape, about, LARGE_IMAGE, book.ledger)):
                texts = [f"<p>{alt}</p>"]
            yield from texts
        yield from drawn(
            root, book.package, book.package.targets(part_name), book.ledger
        )
