"""The tables that sheets of any format become: each row under the addresses of its cells.

A sheet has no tables, only cells. An empty row parts what is above it from what begins with a row
of names below it; an empty column parts two tables that both begin with names. Rows of one cell
above the names are the caption. Cells that cover others span what they cover. Not for: reading
cells (`workbook.py`, `opendocument.py`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

from cancellation import check_cancelled
from readers.converted import MAX_CELLS, escape, placed
from readers.numerals import lettered
from readers.office.package import cell_html

MOST_COVERED: Final = 400_000
"""Cells of a sheet that others cover; beyond, merged cells are read as their first."""
MOST_HEADS: Final = 3
"""Rows of names above a table."""
_NUMERIC_CELL: Final = re.compile(
    r"(?!(?:19|20)\d\d\Z)[-+]?[\d.,\s]*\d[\d.,\s]*%?|\d{4}-\d\d-\d\d.*"
)
"""A number or day; years may name columns."""

UNREAD_CELLS: Final = f"what follows its first {MAX_CELLS:,} cells"

Row = tuple[int, list[str]]
"""1-based number of a row, and its cells from column A on."""


class Merged(NamedTuple):
    """A cell that covers others: rows count from 1, columns from 0, the last ones included."""

    top: int
    left_column: int
    bottom: int
    right_column: int


def sheet_to_html(name: str, rows: Iterable[Row], merged: Sequence[Merged] = ()) -> str:
    """Return a sheet's rows, those that hold something, as tables under its name; ""
    without any. `merged` is read after the rows."""
    filled = [(number, cells) for number, cells in rows if any(cells)]
    sheet = _Sheet(name, filled, merged)
    width = max((len(cells) for _, cells in filled), default=0)
    tables = [
        html
        for block, columns in sheet.blocks(filled, range(width))
        for html in sheet.table(block, columns)
    ]
    if not tables:
        return ""
    # Without a place of its own the name would have that of the sheet before.
    number, cells = filled[0]
    used = [column for column, cell in enumerate(cells) if cell]
    heading = placed(escape(name), address(name, number, used), tag="h2")
    return "\n".join([heading, *tables])


class _Sheet:
    """The rows of a sheet, and which cells others cover."""

    def __init__(
        self, name: str, rows: Sequence[Row], merged: Sequence[Merged]
    ) -> None:
        """Write the text of each merged cell into all cells that it covers; beyond
        `MOST_COVERED` cells the rest stay empty."""
        self.name = name
        self.covers: dict[tuple[int, int], Merged] = {}
        numbers = [number for number, _ in rows]
        for area in merged:
            check_cancelled()
            start = bisect_left(numbers, area.top)
            covered = rows[start : bisect_right(numbers, area.bottom)]
            texts = covered[0][1] if covered and covered[0][0] == area.top else []
            text = texts[area.left_column] if area.left_column < len(texts) else ""
            count = len(covered) * (area.right_column - area.left_column + 1)
            if len(self.covers) + count > MOST_COVERED:
                break
            for number, cells in covered if text else ():
                cells.extend([""] * (area.right_column + 1 - len(cells)))
                for column in range(area.left_column, area.right_column + 1):
                    cells[column] = text
                    self.covers[number, column] = area

    def blocks(
        self, rows: Sequence[Row], columns: range
    ) -> Iterator[tuple[Sequence[Row], range]]:
        """Yield the rows and columns of what may be tables, from the top, side by side from
        the left."""
        block: list[Row] = []
        previous = 0
        for row in rows:
            if not self._filled(row, columns):
                continue
            if block and row[0] > previous + 1 and self._is_names(row, columns):
                yield from self._side_by_side(block, columns)
                block = []
            block.append(row)
            previous = row[0]
        if block:
            yield from self._side_by_side(block, columns)

    def _side_by_side(
        self, rows: Sequence[Row], columns: range
    ) -> Iterator[tuple[Sequence[Row], range]]:
        """Yield rows as tables side by side, where an empty column is between them and each
        begins with names; else as one."""
        used = sorted(
            {
                column
                for _, cells in rows
                for column in range(columns.start, min(columns.stop, len(cells)))
                if cells[column]
            }
        )
        spans: list[range] = []
        for column in used:
            start = column
            if spans and column == spans[-1].stop:
                start = spans.pop().start
            spans.append(range(start, column + 1))
        if len(spans) > 1 and all(
            self._begins_with_names(rows, span) for span in spans
        ):
            for span in spans:
                yield from self.blocks(rows, span)
        else:
            yield rows, columns

    def _begins_with_names(self, rows: Sequence[Row], columns: range) -> bool:
        filled = [row for row in rows if self._filled(row, columns)]
        tables = (row for row in filled[:-1] if len(self._filled(row, columns)) > 1)
        return self._is_names(next(tables, (0, [])), columns)

    def _filled(self, row: Row, columns: range) -> list[int]:
        """Return the columns of a row with a text of their own; cells beside their merged
        one have none."""
        number, cells = row
        filled = []
        for column in range(columns.start, min(columns.stop, len(cells))):
            area = self.covers.get((number, column))
            if cells[column] and (area is None or column == area.left_column):
                filled.append(column)
        return filled

    def _is_names(self, row: Row, columns: range) -> bool:
        """Whether a row may name the columns of those below it: several cells, and no
        number among them."""
        filled = [row[1][column] for column in self._filled(row, columns)]
        return len(filled) > 1 and not any(
            cell[0] == "=" or _NUMERIC_CELL.fullmatch(cell) for cell in filled
        )

    def table(self, rows: Sequence[Row], columns: range) -> Iterator[str]:
        """Yield rows that belong together as a table with its caption, rows of one cell
        alone as paragraphs."""
        filled = [self._filled(row, columns) for row in rows]
        start = next(
            (n for n, in_row in enumerate(filled) if len(in_row) > 1), len(rows)
        )
        singles = [(rows[n], filled[n][0]) for n in range(start)]
        if start == len(rows):
            for (number, cells), column in singles:
                fragment = address(self.name, number, [column])
                yield placed(escape(cells[column]), fragment, tag="p")
            return
        titles = escape(" · ".join(cells[column] for (_, cells), column in singles))
        caption = f"<caption>{titles}</caption>" if titles else ""
        rows, filled = rows[start:], filled[start:]
        left_column = min(in_row[0] for in_row in filled)
        right_column = max(
            self._end(row, in_row[-1]) for row, in_row in zip(rows, filled, strict=True)
        )
        heads = self._heads(rows, columns)
        lines = "\n".join(
            placed(
                self._line(
                    rows, index, range(left_column, right_column), is_head=index < heads
                ),
                address(self.name, number, (left_column, right_column - 1)),
                tag="tr",
            )
            for index, (number, _) in enumerate(rows)
        )
        yield f"<table>{caption}\n{lines}\n</table>"

    def _end(self, row: Row, column: int) -> int:
        area = self.covers.get((row[0], column))
        return area.right_column + 1 if area is not None else column + 1

    def _heads(self, rows: Sequence[Row], columns: range) -> int:
        """Return how many rows at the top name the columns, at most `MOST_HEADS` and never
        all: names that cover several go on in the next row."""
        for count, row in enumerate(rows[: min(len(rows) - 1, MOST_HEADS)]):
            if not self._is_names(row, columns):
                return count
            areas = [self.covers.get((row[0], column)) for column in columns]
            if not any(
                area is not None
                and (area.right_column > area.left_column or area.bottom > row[0])
                for area in areas
            ):
                return count + 1
        return min(len(rows) - 1, MOST_HEADS)

    def _line(
        self, rows: Sequence[Row], index: int, columns: range, *, is_head: bool
    ) -> str:
        """Return the cells of a row as HTML, those that another covers left out."""
        number, cells = rows[index]
        tag, html = "th" if is_head else "td", ""
        for column in columns:
            area, width, height = self.covers.get((number, column)), 1, 1
            if area is not None:
                is_below = index and rows[index - 1][0] >= area.top
                if is_below or column > max(area.left_column, columns.start):
                    continue
                width = min(area.right_column + 1, columns.stop) - column
                under = rows[index : index + area.bottom - number + 1]
                height = sum(lower <= area.bottom for lower, _ in under)
            cell = cells[column] if column < len(cells) else ""
            html += cell_html(tag, escape(cell), width, height)
        return html


def address(name: str, row: int, columns: Sequence[int]) -> str:
    """Return the address of some cells of a row as a link's fragment, such as
    `Costs!A4:C4`; columns count from 0.

    No columns raise `IndexError`."""
    start, stop = f"{letters(columns[0])}{row}", f"{letters(columns[-1])}{row}"
    cells = f"{start}:{stop}" if start != stop else start
    return f"{quote(name, safe='')}!{cells}"


@lru_cache(16_384)
def letters(column: int) -> str:
    """Return the letters of a column that is counted from 0, such as `AB`; "" for a
    negative one."""
    return lettered(column + 1).upper()
