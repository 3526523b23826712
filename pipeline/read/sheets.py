"""XLSX to HTML, and the tables that sheets of any format become: each row under the addresses of its cells.

A sheet has no tables, only cells: an empty row parts what stands above it from what begins with a row of names below
it; rows of one cell above the names are its caption. Numbers are written as they are, dates as ISO, per cents as shown.
Not for: older `.xls` files, OpenDocument's cells (`opendocument.py`), charts, formulas that were never computed.
"""

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Final
from urllib.parse import quote

from openpyxl import load_workbook
from openpyxl.cell import Cell
from openpyxl.utils import get_column_letter
from openpyxl.worksheet._read_only import ReadOnlyWorksheet

from pipeline.read.converted import Converted, Unreadable, escape, html_table, placed, whole_page
from pipeline.read.package import open_package
from pipeline.work import check_cancelled

MAX_CELLS: Final = 200_000
"""Of all sheets of a file, up to the last that is filled in each row; a page has room for fewer."""
MAX_ROW_BYTES: Final = 2_000_000
"""Of XML, which is held in memory as one; 16,384 cells take a third of it."""
_ROW_END: Final = re.compile(rb"</(?:\w+:)?row>")
_DECIMALS: Final = re.compile(r"0(?:\.(0+))?%")
_NUMBER: Final = re.compile(r"(?!(?:19|20)\d\d\Z)[-+]?[\d.,\s]*\d[\d.,\s]*%?|\d{4}-\d\d-\d\d.*")
"""A number or day; years may name columns."""

UNREAD: Final = f"what follows its first {MAX_CELLS:,} cells"

Row = tuple[int, Sequence[str]]
"""1-based number of a row, and its cells from column A on."""


def xlsx_to_html(body: bytes) -> Converted:
    """Return a workbook as HTML, a section for each sheet that is shown; raises `Unreadable` for one that is damaged,
    too large unpacked, or without text."""
    with open_package(body, "a workbook") as package:
        title, author = package.about()
        for name in package.names:
            if not name.startswith("xl/worksheets/"):
                package.bounded(name)
            elif max(map(len, _ROW_END.split(package.read(name)))) > MAX_ROW_BYTES:
                raise Unreadable(f"it is a workbook with a row of over {MAX_ROW_BYTES:,} bytes: save it as CSV")
        with warnings.catch_warnings(action="ignore"):  # openpyxl tells of what it leaves out, such as forms
            book = load_workbook(io.BytesIO(body), read_only=True, data_only=True, keep_links=False)
        left, sections, hidden = MAX_CELLS, list[str](), 0
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                hidden += 1
                continue
            made, left = sheet_to_html(sheet.title, _rows(sheet), left)
            sections.append(made)
    if not any(sections):
        raise Unreadable("it is a workbook without text")
    notes = (f"workbook: {hidden} hidden sheets were left out",) if hidden else ()
    inner = whole_page("\n".join(sections), title=title)
    return Converted(inner, title, author=author, notes=notes, unread=UNREAD if left < 0 else "")


def _rows(sheet: ReadOnlyWorksheet) -> Iterator[Row]:
    sheet.reset_dimensions()  # a file may claim a million rows, each of which would be filled up
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        if number % 1000 == 0:
            check_cancelled()
        yield number, [_shown(cell) for cell in cells]


def _shown(cell: Cell) -> str:
    """Return a cell's value as a person reads it."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes") if value.time() != time.min else value.date().isoformat()
    if isinstance(value, date | time | timedelta):
        return str(value)
    if isinstance(value, int | float):
        per_cent = _DECIMALS.search(cell.number_format or "")
        return f"{value:.{len(per_cent[1] or '')}%}" if per_cent else f"{value:.15g}"
    return " ".join(str(value).split())


def sheet_to_html(name: str, rows: Iterable[Row], left: int) -> tuple[str, int]:
    """Return a sheet's rows, those that hold something, as tables under its name; empty where it has none.

    `left` cells may be read; with it come those that still may be, below 0 where there were more.
    """
    parts: list[str] = []
    block: list[Row] = []
    before = 0
    for number, cells in rows:
        if not any(cells):
            continue
        left -= next(column for column in range(len(cells), 0, -1) if cells[column - 1])
        if left < 0:
            break
        if block and number > before + 1 and _is_names(cells):
            parts += _table(name, block)
            block = []
        block.append((number, cells))
        before = number
    parts += _table(name, block)
    return ("\n".join([f"<h2>{escape(name)}</h2>", *parts]) if parts else "", left)


def _table(name: str, rows: Sequence[Row]) -> list[str]:
    """Return rows that stand together as a table with its caption; rows of one cell alone as paragraphs."""
    filled = [[column for column, cell in enumerate(cells) if cell] for _, cells in rows]
    first = next((place for place, columns in enumerate(filled) if len(columns) > 1), len(rows))
    above = [(number, " ".join(filter(None, cells))) for number, cells in rows[:first]]
    if first == len(rows):
        return [
            placed(escape(text), address(name, number, filled[place][:1]), tag="p")
            for place, (number, text) in enumerate(above)
        ]
    left = min(columns[0] for columns in filled[first:])
    right = max(columns[-1] for columns in filled[first:]) + 1
    header = first + 1 < len(rows) and _is_names(rows[first][1])
    shown = [[*cells[left:right], *[""] * (right - max(left, len(cells)))] for _, cells in rows[first:]]
    places = [address(name, number, (left, right - 1)) for number, _ in rows[first:]]
    caption = f"<caption>{escape(' · '.join(text for _, text in above))}</caption>" if above else ""
    return [html_table(shown, header=header, places=places, caption=caption)]


def _is_names(cells: Sequence[str]) -> bool:
    """Whether a row may name the columns of those below it: several cells, and no number among them."""
    filled = [cell for cell in cells if cell]
    return len(filled) > 1 and not any(map(_NUMBER.fullmatch, filled))


def address(name: str, row: int, columns: Sequence[int]) -> str:
    """Return the address of some cells of a row as a link's fragment, such as `Costs!A4:C4`; columns count from 0."""
    first, last = (f"{get_column_letter(column + 1)}{row}" for column in (columns[0], columns[-1]))
    return f"{quote(name, safe='')}!{first}:{last}" if first != last else f"{quote(name, safe='')}!{first}"
