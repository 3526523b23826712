"""Tables in a PDF, told from where the text stands: neighbouring lines whose pieces stand below one another.

A PDF knows no tables. Lines count as rows when each has two or more pieces with wide gaps between, and the pieces of
the lines overlap in the same columns. Not for: tables drawn column by column (their lines come one cell at a time),
rotated text, or cells that span columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pipeline.read.converted import escape

GAP: Final = 1.2
"""Widths of an em between two pieces of a line that make them two cells; a space is 0.25 to 0.35, justified text
stretches it to about 0.8."""
_GLYPH: Final = 0.5
"""Mean width of a letter in ems: Helvetica 0.50, Times 0.44 over English text."""
_WIDE: Final = 0.65
"""The same for capitals and fixed-width fonts."""
_FULL: Final = 1.0
"""The same for Chinese, Japanese and Korean."""
_STEP: Final = 3.2
"""Type heights between two rows at most; a row with cells of two lines has 2.4."""
_ROWS: Final = 3
"""Two lines with two aligned pieces each are too often a title page or a letter's head."""
_LONG: Final = 60
"""Mean characters of a cell above which the columns are running text, printed across."""
_MOST_COLUMNS: Final = 30
_EDGE: Final = 0.6
"""Ems by which the edges of cells in a column may differ."""
_SHARING: Final = 0.75
"""Share of the cells that must stand in line with their column."""


@dataclass(slots=True)
class Cell:
    """One piece of a line."""

    text: str
    left: float
    """Points from the page's left edge."""
    right: float
    """Estimated from the number of letters."""
    parts: list[tuple[str, float]]
    """The text in the pieces that it was set in, with their left edges."""


class Line(Protocol):
    """What is asked of a line."""

    @property
    def cells(self) -> Sequence[Cell]:
        """Its pieces from left to right."""
        ...

    @property
    def size(self) -> float:
        """Height of the type in points."""
        ...

    @property
    def y(self) -> float:
        """Place of the baseline in points."""
        ...

    @property
    def fixed(self) -> bool:
        """Whether it is set in a fixed-width font."""
        ...


def width_of(text: str, size: float, *, fixed: bool) -> float:
    """Return about how wide `text` is in points."""
    if fixed:
        return _WIDE * size * len(text)
    wide = sum(letter.isupper() or letter in "mwMW—" for letter in text)
    full = sum(letter > "⺀" for letter in text)
    return size * (_WIDE * wide + _FULL * full + _GLYPH * (len(text) - wide - full))


def find_tables(lines: Sequence[Line]) -> list[tuple[int, int, list[list[str]]]]:
    """Return the tables of a page as first line, line after the last, and rows of cells; linear in the lines."""
    found = []
    at = 0
    while at < len(lines):
        end = _run(lines, at)
        table = _table(lines[at:end]) if end - at >= _ROWS else None
        if table is None:
            at += 1 if end - at < _ROWS else end - at
            continue
        found.append((at, end, table))
        at = end
    return found


def table_to_html(rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its first row is the header where it holds no figures and the rows below do."""
    first, rest = rows[0], rows[1:]
    header = not any(map(_is_figure, first)) and any(_is_figure(cell) for row in rest for cell in row)
    parts = []
    for number, row in enumerate(rows):
        tag = "th" if header and number == 0 else "td"
        parts.append("<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>")
    return "<table>\n" + "\n".join(parts) + "\n</table>"


def _is_figure(text: str) -> bool:
    digits = sum(map(str.isdigit, text))
    return digits > 0 and digits * 3 >= len(text.replace(" ", ""))


def _run(lines: Sequence[Line], start: int) -> int:
    """Return where the lines that may be rows of one table end; a line of one cell may continue the row above."""
    if not 2 <= len(lines[start].cells) <= _MOST_COLUMNS or lines[start].fixed:
        return start
    end = start + 1
    while end < len(lines):
        before, line = lines[end - 1], lines[end]
        step = (before.y - line.y) / (before.size or 1.0)
        if line.fixed or len(line.cells) > _MOST_COLUMNS or not -0.5 < step <= _STEP:
            break
        if len(line.cells) >= 2:
            if not _aligned(lines[max(start, end - 3) : end], line):
                break
        elif not (step > 0 and _continues(lines, end, before, line)):
            break
        end += 1
    while end > start and len(lines[end - 1].cells) < 2:
        end -= 1  # a line below the last row is text after the table
    return end


def _aligned(above: Sequence[Line], line: Line) -> bool:
    """Return whether two or more cells overlap cells of one of the last rows."""
    return any(sum(any(_overlap(cell, other) for other in row.cells) for cell in line.cells) >= 2 for row in above)


def _continues(lines: Sequence[Line], place: int, before: Line, line: Line) -> bool:
    """Return whether a lone piece stands below a cell, narrower than the row, with another row after it."""
    after = lines[place + 1] if place + 1 < len(lines) else None
    return (
        after is not None
        and len(after.cells) >= 2
        and len(line.cells) == 1
        and sum(_overlap(line.cells[0], cell) for cell in before.cells) <= 1
    )


def _overlap(one: Cell, other: Cell) -> bool:
    return one.left < other.right and other.left < one.right


def _table(lines: Sequence[Line]) -> list[list[str]] | None:
    """Return the rows of a table, None where the lines share no columns."""
    rows = [line for line in lines if len(line.cells) >= 2]
    columns = _columns(rows)
    if len(rows) < _ROWS or not 2 <= len(columns) <= _MOST_COLUMNS:
        return None
    cells = [cell for line in rows for cell in line.cells]
    if sum(len(cell.text) for cell in cells) > _LONG * len(cells):
        return None
    if not _in_line(rows, columns):
        return None
    table: list[list[str]] = []
    for line in lines:
        row = [""] * len(columns)
        for cell in line.cells:
            place = _column_of(cell, columns)
            for text, left in cell.parts:
                # Columns may stand so near that two cells look like one; what begins where a column does is of it.
                begun = [n for n, column in enumerate(columns) if abs(column[0] - left) < _EDGE * line.size]
                place = begun[0] if begun else place
                row[place] = f"{row[place]} {text}".strip()
        if len(line.cells) >= 2:
            table.append(row)
        else:
            table[-1] = [f"{upper} {lower}".strip() for upper, lower in zip(table[-1], row, strict=True)]
    full = sum(sum(bool(cell) for cell in row) >= 2 for row in table)
    return table if full * 5 >= len(table) * 4 else None


def _in_line(rows: Sequence[Line], columns: Sequence[tuple[float, float]]) -> bool:
    """Return whether the cells of the columns share a left edge, a right edge or a middle: prose with gaps does not."""
    in_line = counted = 0
    for number in range(len(columns)):
        found = [(cell, line.size) for line in rows for cell in line.cells if _column_of(cell, columns) == number]
        if len(found) < 2:
            continue
        counted += len(found)
        in_line += max(
            _sharing([(cell.left, _EDGE * size) for cell, size in found]),
            _sharing([(cell.right, 2 * _EDGE * size) for cell, size in found]),
            _sharing([((cell.left + cell.right) / 2, _EDGE * size) for cell, size in found]),
        )
    return counted > 0 and in_line >= _SHARING * counted


def _sharing(places: Sequence[tuple[float, float]]) -> int:
    """Return how many places lie within their tolerance of the middle one."""
    middle = sorted(place for place, _ in places)[len(places) // 2]
    return sum(abs(place - middle) <= tolerance for place, tolerance in places)


def _columns(rows: Sequence[Line]) -> list[tuple[float, float]]:
    """Return the columns as the row with most cells has them, widened by the cells that overlap one column only."""
    widest = max(rows, key=lambda line: len(line.cells))
    columns = [(cell.left, cell.right) for cell in widest.cells]
    for line in rows:
        for cell in line.cells:
            over = [n for n, (left, right) in enumerate(columns) if cell.left < right and left < cell.right]
            if len(over) == 1:
                left, right = columns[over[0]]
                columns[over[0]] = (min(left, cell.left), max(right, cell.right))
    return columns


def _column_of(cell: Cell, columns: Sequence[tuple[float, float]]) -> int:
    """Return the column that a cell shares most with, or the nearest one."""
    shared = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
    return max(range(len(columns)), key=shared.__getitem__)
