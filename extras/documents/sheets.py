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

from pipeline.document.converted import MAX_CELLS, escape, placed
from pipeline.work import check_cancelled

MOST_COVERED: Final = 400_000
"""Cells of a sheet that others cover; beyond, merged cells are read as their first."""
MOST_HEADS: Final = 3
"""Rows of names above a table."""
_NUMERIC_CELL: Final = re.compile(
    r"(?!(?:19|20)\d\d\Z)[-+]?[\d.,\s]*\d[\d.,\s]*%?|\d{4}-\d\d-\d\d.*"
)
"""A number or day; years may name columns."""

UNREAD_CELLS: Final = f"what follows its first {MAX_CELLS:,} cells"

Row = tuple[int, Sequence[str]]
"""1-based number of a row, and its cells from column A on."""


class Merged(NamedTuple):
    """A cell that covers others: rows count from 1, columns from 0, the last ones included."""

    top: int
    left: int
    bottom: int
    right: int


class Written(NamedTuple):
    """What came of a sheet."""

    html: str
    """Empty where it has no rows."""
    left: int
    """Cells that may still be read, below 0 where there were more."""
    cells: int
    """Cells with content that were written, each once."""


class _Covered(str):
    """The text of a cell, in a cell that it covers."""

    __slots__ = ("merged",)
    merged: Merged


def sheet_to_html(
    name: str, rows: Iterable[Row], left: int, merged: Sequence[Merged] = ()
) -> Written:
    """Return a sheet's rows, those that hold something, as tables under its name; ""
    without any.

    `left` cells may be read: the first row beyond them ends the sheet, and the `left`
    that is returned is then negative."""
    kept: list[Row] = []
    for number, cells in rows:
        if not any(cells):
            continue
        left -= next(column for column in range(len(cells), 0, -1) if cells[column - 1])
        if left < 0:
            break
        kept.append((number, cells))
    kept = _with_covered(kept, merged) if merged else kept
    width = max((len(cells) for _, cells in kept), default=0)
    parts, count = list[str](), 0
    for block, columns in _blocks(kept, range(width)):
        made, written = _table(name, block, columns)
        parts += made
        count += written
    return Written(
        "\n".join([f"<h2>{escape(name)}</h2>", *parts]) if parts else "", left, count
    )


def _with_covered(rows: list[Row], merged: Sequence[Merged]) -> list[Row]:
    """Return rows with the text of each merged cell in all cells that it covers.

    Beyond `MOST_COVERED` cells the rest stay empty."""
    numbers = [number for number, _ in rows]
    filled = [list(cells) for _, cells in rows]
    covered = 0
    for one in merged:
        first = bisect_left(numbers, one.top)
        cells = filled[first] if one.top in numbers[first : first + 1] else []
        text = cells[one.left] if one.left < len(cells) else ""
        if not text or isinstance(text, _Covered):
            continue
        last = bisect_right(numbers, one.bottom)
        covered += (last - first) * (one.right - one.left + 1)
        if covered > MOST_COVERED:
            break
        for line in filled[first:last]:
            check_cancelled()
            line.extend([""] * (one.right + 1 - len(line)))
            for column in range(one.left, one.right + 1):
                line[column] = copy = _Covered(text)
                copy.merged = one
    return list(zip(numbers, filled, strict=True))


def _blocks(
    rows: Sequence[Row], columns: range
) -> Iterator[tuple[Sequence[Row], range]]:
    """Yield the rows and columns of what may be tables, from the top, side by side from the
    left."""
    for block in _by_rows(rows, columns):
        spans = _by_columns(block, columns)
        if len(spans) == 1:
            yield block, columns
        else:
            for span in spans:
                yield from _blocks(block, span)


def _by_rows(rows: Sequence[Row], columns: range) -> Iterator[Sequence[Row]]:
    block: list[Row] = []
    before = 0
    for number, cells in rows:
        if not _filled(number, cells, columns):
            continue
        if block and number > before + 1 and _is_names(number, cells, columns):
            yield block
            block = []
        block.append((number, cells))
        before = number
    if block:
        yield block


def _by_columns(rows: Sequence[Row], columns: range) -> list[range]:
    """Return the columns of tables side by side: an empty column is between them, and each begins
    with names."""
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
        if spans and column == spans[-1].stop:
            spans[-1] = range(spans[-1].start, column + 1)
        else:
            spans.append(range(column, column + 1))
    return (
        spans
        if len(spans) > 1 and all(_begins_with_names(rows, span) for span in spans)
        else [columns]
    )


def _begins_with_names(rows: Sequence[Row], columns: range) -> bool:
    """Whether the first row of several cells names columns that hold something below."""
    own = [(number, cells) for number, cells in rows if _filled(number, cells, columns)]
    several = next((one for one in own if len(_filled(*one, columns)) > 1), None)
    return (
        several is not None and several is not own[-1] and _is_names(*several, columns)
    )


def _filled(number: int, cells: Sequence[str], columns: range) -> list[int]:
    """Return the columns of a row with a text of their own; cells beside their merged one have
    none."""
    return [
        column
        for column in range(columns.start, min(columns.stop, len(cells)))
        if (cell := cells[column])
        and not (isinstance(cell, _Covered) and column > cell.merged.left)
    ]


def _is_names(number: int, cells: Sequence[str], columns: range) -> bool:
    """Whether a row may name the columns of those below it: several cells, and no number among
    them."""
    filled = [cells[column] for column in _filled(number, cells, columns)]
    return len(filled) > 1 and not any(
        cell[0] == "=" or _NUMERIC_CELL.fullmatch(cell) for cell in filled
    )


def _table(name: str, rows: Sequence[Row], columns: range) -> tuple[list[str], int]:
    """Return rows that belong together as a table with its caption, rows of one cell alone as
    paragraphs; and how many cells they are."""
    filled = [_filled(number, cells, columns) for number, cells in rows]
    own = sum(
        not _is_below(cells[column], number)
        for (number, cells), some in zip(rows, filled, strict=True)
        for column in some
    )
    first = next(
        (index for index, some in enumerate(filled) if len(some) > 1), len(rows)
    )
    above = [
        (number, " ".join(cells[column] for column in filled[index]))
        for index, (number, cells) in enumerate(rows[:first])
    ]
    if first == len(rows):
        made = [
            placed(escape(text), address(name, number, filled[index][:1]), tag="p")
            for index, (number, text) in enumerate(above)
        ]
        return made, own
    said = escape(" · ".join(text for _, text in above))
    caption = f"<caption>{said}</caption>" if above else ""
    inner = _lines(name, rows[first:], filled[first:], columns)
    return [f"<table>{caption}\n{inner}\n</table>"], own


def _lines(
    name: str, rows: Sequence[Row], filled: list[list[int]], columns: range
) -> str:
    """Return rows of a table as HTML, from the first of their filled columns to the last,
    with what a cell there covers."""
    left = min(some[0] for some in filled)
    right = max(some[-1] for some in filled) + 1
    end = max(right, *(_reach(cells, right) for _, cells in rows))
    heads = _heads(rows, columns)
    return "\n".join(
        placed(
            _line(rows, index, range(left, end), is_head=index < heads),
            address(name, number, (left, end - 1)),
            tag="tr",
        )
        for index, (number, _) in enumerate(rows)
    )


def _is_below(cell: str, number: int) -> bool:
    """Whether a cell is covered by one above."""
    return isinstance(cell, _Covered) and number > cell.merged.top


def _reach(cells: Sequence[str], right: int) -> int:
    """Return where the last cell of a row ends, with what it covers."""
    last = cells[right - 1] if right <= len(cells) else ""
    return (
        min(last.merged.right + 1, len(cells)) if isinstance(last, _Covered) else right
    )


def _heads(rows: Sequence[Row], columns: range) -> int:
    """Return how many rows at the top name the columns, at most `MOST_HEADS` and never
    all: names that cover several go on in the next row."""
    count = 0
    while count < min(len(rows) - 1, MOST_HEADS) and _is_names(*rows[count], columns):
        covers = [cell.merged for cell in rows[count][1] if isinstance(cell, _Covered)]
        count += 1
        if not any(
            one.right > one.left or one.bottom > rows[count - 1][0] for one in covers
        ):
            break
    return count


def _line(rows: Sequence[Row], index: int, columns: range, *, is_head: bool) -> str:
    """Return the cells of a row as HTML, those that another covers left out."""
    cells = rows[index][1]
    tag = "th" if is_head else "td"
    parts = []
    for column in columns:
        cell = cells[column] if column < len(cells) else ""
        spans = ""
        if isinstance(cell, _Covered):
            one = cell.merged
            if column > max(one.left, columns.start) or (
                index and rows[index - 1][0] >= one.top
            ):
                continue
            wide = min(one.right + 1, columns.stop) - column
            high = next(
                (n for n, (other, _) in enumerate(rows[index:]) if other > one.bottom),
                len(rows) - index,
            )
            spans = f' colspan="{wide}"' * (wide > 1) + f' rowspan="{high}"' * (
                high > 1
            )
        parts.append(f"<{tag}{spans}>{escape(cell)}</{tag}>")
    return "".join(parts)


def address(name: str, row: int, columns: Sequence[int]) -> str:
    """Return the address of some cells of a row as a link's fragment, such as
    `Costs!A4:C4`; columns count from 0.

    No columns raise `IndexError`."""
    first, last = (f"{letters(column)}{row}" for column in (columns[0], columns[-1]))
    return (
        f"{quote(name, safe='')}!{first}:{last}"
        if first != last
        else f"{quote(name, safe='')}!{first}"
    )


@lru_cache(16_384)
def letters(column: int) -> str:
    """Return the letters of a column that is counted from 0, such as `AB`; "" for a
    negative one."""
    text = ""
    number = column + 1
    while number > 0:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
