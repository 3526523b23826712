"""Lines of a PDF's page to HTML: headings by their size of type, paragraphs by their
leading, code, points, tables.

A table is adjacent lines with vertically aligned pieces. Not for: finding the lines
(`pipeline/read/pdf.py`); tables drawn column by column, cells that span columns.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from pipeline.document.converted import escape, html_table, letters_in
from pipeline.text.frame import TITLE_CHARACTERS

MOST_BLANKS: Final = 1_000
"""Between two words, and before a line; a page of the smallest print is that many
letters wide."""
Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge, in points from the lower left of the page as it is
shown."""


@dataclass(frozen=True, slots=True)
class _Type:
    """How print is set. Distances are in ems, that is in heights of the type."""

    ascent: float = 0.95
    """From the baseline to the top of a capital with an accent."""
    descent: float = 0.3
    """From the baseline down to the foot of the deepest letters."""
    letter: float = 0.5
    """Mean width of a letter: Helvetica 0.50, Times 0.44 over English text."""
    capital: float = 0.65
    """Mean width of a capital, or of any letter in a fixed-width font."""
    ideograph: float = 1.0
    gap: float = 1.2
    """Between two cells of a line; a space is 0.25 to 0.35, justified text stretches it
    to about 0.8."""
    edge: float = 0.6
    """By which the edges of the cells in a column may differ."""
    row: float = 3.2
    """From one row of a table to the next at most; a row with cells of two lines has
    2.4."""
    heading: float = 1.12
    """A line this many times larger than most text is a heading; LaTeX's smallest step
    is 1.2, Word's 1.08."""
    leading: float = 1.35
    """A paragraph ends where the step to the next line is this many times the usual
    one."""


@dataclass(frozen=True, slots=True)
class _TableLimits:
    """What lines must have to count as the rows of a table."""

    rows: int = 3
    """Two lines with two aligned pieces each are too often a title page or a letter's
    head."""
    columns: int = 30
    cell: int = 60
    """Mean characters of a cell above which the columns are running text, printed
    across."""
    share: float = 0.75
    """Minimum share of cells aligned with their column."""
    full: float = 0.8
    """Share of the rows that must have two cells or more with text."""


EDGE_TOP: Final = 0.88
EDGE_LOW: Final = 0.12
"""Parts of a page's height above and below which running heads are looked for."""
SHORT: Final = 4
"""Words of a line with numbers, such as `Page 3 of 12`, that recurs below another
running head."""
_PAGE_NUMBERS: Final = re.compile(r"\d+|\b[ivxlc]+\b")
TYPE: Final = _Type()
_TABLE: Final = _TableLimits()


@dataclass(slots=True)
class Cell:
    """A piece of a line with wide gaps around it."""

    left: float
    """Points from the page's left edge."""
    right: float
    """Estimated from the number of letters."""
    runs: list[tuple[str, float]]
    """The text in the pieces that it was set in, with their left edges."""

    @property
    def text(self) -> str:
        """The pieces joined."""
        return " ".join(text for text, _ in self.runs)


@dataclass(slots=True)
class PrintLine:
    """A line of print."""

    text: str
    size: float
    """Height of the type in points."""
    y: float
    """Place of the baseline, in points from the page's bottom."""
    fixed: bool
    cells: list[Cell]
    """From left to right."""
    rows: list[list[str]] = field(default_factory=list)
    """Of a ruled table, which takes the place of a line; its text and cells are empty
    then."""
    low: float = 0.0
    top: float = 0.0
    """How far its letters reach down and up; places like `y`."""
    turn: int = 0
    """Quarters of a circle by which it is turned to the left, as are all its places."""
    bands: list[Box] = field(default_factory=list)
    """The box of each of `rows`."""

    @property
    def box(self) -> Box:
        """Where it is printed; all zeros where it has no letters."""
        if not self.cells:
            return around(self.bands)
        left, right = (
            min(cell.left for cell in self.cells),
            max(cell.right for cell in self.cells),
        )
        match self.turn:
            case 0:
                return left, self.low, right, self.top
            case 1:
                return -self.top, left, -self.low, right
            case 2:
                return -right, -self.top, -left, -self.low
        return self.low, -right, self.top, -left


class Band(NamedTuple):
    """A line or a row of a table, as it is printed."""

    box: Box
    letters: int
    """And digits, of its text."""


class PrintPart(NamedTuple):
    """A block or a table of a page."""

    html: str
    bands: list[Band]


def around(boxes: Sequence[Box]) -> Box:
    """Return the least box that holds some; all zeros for none."""
    if not boxes:
        return 0.0, 0.0, 0.0, 0.0
    lefts, lows, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(lows), max(rights), max(tops)


class _PrintTable(NamedTuple):
    """A table of a page."""

    start: int
    stop: int
    """Its first line, and the line after its last."""
    rows: list[list[str]]
    boxes: list[Box]
    """Of each row."""


def find_tables(lines: Sequence[PrintLine]) -> Iterator[_PrintTable]:
    """Yield the tables of a page that have no rulings, of `_TABLE.rows` rows and more;
    linear in the lines."""
    start = 0
    while start < len(lines):
        stop = _run(lines, start)
        if stop - start < _TABLE.rows:
            start += 1
            continue
        table = _table(lines[start:stop])
        if table is not None:
            yield _PrintTable(start, stop, *table)
        start = stop


def table_to_html(rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its first row is the header where it holds no figures and the
    rows below do; without rows it raises `IndexError`."""
    first_row, body_rows = rows[0], rows[1:]
    header = not any(map(_is_figure, first_row)) and any(
        _is_figure(cell) for row in body_rows for cell in row
    )
    return html_table(rows, header=header)


def _is_figure(text: str) -> bool:
    digits = sum(map(str.isdigit, text))
    return digits > 0 and digits * 3 >= len(text.replace(" ", ""))


def _run(lines: Sequence[PrintLine], start: int) -> int:
    """Return where the lines that may be rows of one table end; a line of one cell may
    continue the row above."""
    if not 2 <= len(lines[start].cells) <= _TABLE.columns or lines[start].fixed:
        return start
    stop = start + 1
    while stop < len(lines) and _is_row(lines, start, stop):
        stop += 1
    while stop > start and len(lines[stop - 1].cells) < 2:
        stop -= 1  # a line below the last row is text after the table
    return stop


def _is_row(lines: Sequence[PrintLine], start: int, index: int) -> bool:
    """Return whether a line is a row of the table that began at `start`, or continues
    the row above."""
    before, line = lines[index - 1], lines[index]
    step = (before.y - line.y) / (before.size or 1.0)
    if line.fixed or len(line.cells) > _TABLE.columns or not -0.5 < step <= TYPE.row:
        return False
    if len(line.cells) < 2:
        return step > 0 and _continues(lines, index, before, line)
    # Two cells or more overlap cells of one of the last rows.
    return any(
        sum(any(_overlap(c, row_cell) for row_cell in row.cells) for c in line.cells)
        >= 2
        for row in lines[max(start, index - 3) : index]
    )


def _continues(
    lines: Sequence[PrintLine], index: int, before: PrintLine, line: PrintLine
) -> bool:
    """Return whether a single piece is below a cell, narrower than the row, with
    another row after it."""
    after = lines[index + 1] if index + 1 < len(lines) else None
    return (
        after is not None
        and len(after.cells) >= 2
        and len(line.cells) == 1
        and sum(_overlap(line.cells[0], cell) for cell in before.cells) <= 1
    )


def _overlap(cell: Cell, other_cell: Cell) -> bool:
    return cell.left < other_cell.right and other_cell.left < cell.right


def _table(lines: Sequence[PrintLine]) -> tuple[list[list[str]], list[Box]] | None:
    """Return the rows of a table and their boxes; None where the lines share no
    columns, their cells are long like prose, or too few rows have two cells."""
    rows = [line for line in lines if len(line.cells) >= 2]
    columns = _columns(rows)
    if not _are_rows(rows, columns):
        return None
    table: list[list[str]] = []
    boxes: list[Box] = []
    for line in lines:
        row = _row(line, columns)
        if len(line.cells) >= 2:
            table.append(row)
            boxes.append(line.box)
        else:
            boxes[-1] = around((boxes[-1], line.box))
            table[-1] = [
                f"{upper} {lower}".strip()
                for upper, lower in zip(table[-1], row, strict=True)
            ]
    full = sum(sum(bool(cell) for cell in row) >= 2 for row in table)
    return (table, boxes) if full >= _TABLE.full * len(table) else None


def _are_rows(
    lines: Sequence[PrintLine], columns: Sequence[tuple[float, float]]
) -> bool:
    """Whether lines of several cells share the columns, and their cells are short."""
    if len(lines) < _TABLE.rows or not 2 <= len(columns) <= _TABLE.columns:
        return False
    cells = [cell for line in lines for cell in line.cells]
    characters = sum(len(cell.text) for cell in cells)
    return characters <= _TABLE.cell * len(cells) and _in_line(lines, columns)


def _row(line: PrintLine, columns: Sequence[tuple[float, float]]) -> list[str]:
    """Return the text of a line in each column."""
    row = [""] * len(columns)
    for cell in line.cells:
        index = _column_of(cell, columns)
        for text, run_left in cell.runs:
            # Columns may be so close that two cells look like one; text that begins
            # where a column does belongs to it.
            starting_columns = [
                n
                for n, column in enumerate(columns)
                if abs(column[0] - run_left) < TYPE.edge * line.size
            ]
            index = starting_columns[0] if starting_columns else index
            row[index] = f"{row[index]} {text}".strip()
    return row


def _in_line(rows: Sequence[PrintLine], columns: Sequence[tuple[float, float]]) -> bool:
    """Return whether the cells of the columns share a left edge, a right edge or a
    middle: prose with gaps does not."""
    in_line = counted = 0
    for number in range(len(columns)):
        column_cells = [
            (cell, line.size)
            for line in rows
            for cell in line.cells
            if _column_of(cell, columns) == number
        ]
        if len(column_cells) < 2:
            continue
        counted += len(column_cells)
        in_line += max(
            _sharing([(cell.left, TYPE.edge * size) for cell, size in column_cells]),
            _sharing(
                [(cell.right, 2 * TYPE.edge * size) for cell, size in column_cells]
            ),
            _sharing(
                [
                    ((cell.left + cell.right) / 2, TYPE.edge * size)
                    for cell, size in column_cells
                ]
            ),
        )
    return counted > 0 and in_line >= _TABLE.share * counted


def _sharing(places: Sequence[tuple[float, float]]) -> int:
    """Return how many places lie within their tolerance of the middle one."""
    middle = sorted(index for index, _ in places)[len(places) // 2]
    return sum(abs(index - middle) <= tolerance for index, tolerance in places)


def _columns(rows: Sequence[PrintLine]) -> list[tuple[float, float]]:
    """Return the columns as the row with most cells has them, widened by the cells that
    overlap one column only."""
    widest = max(rows, key=lambda line: len(line.cells))
    columns = [(cell.left, cell.right) for cell in widest.cells]
    for line in rows:
        for cell in line.cells:
            over = [
                n
                for n, (left, right) in enumerate(columns)
                if cell.left < right and left < cell.right
            ]
            if len(over) == 1:
                left, right = columns[over[0]]
                columns[over[0]] = (min(left, cell.left), max(right, cell.right))
    return columns


def _column_of(cell: Cell, columns: Sequence[tuple[float, float]]) -> int:
    """Return the column that a cell shares most with, or the nearest one."""
    shared = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
    return max(range(len(columns)), key=shared.__getitem__)


_BULLETS: Final = frozenset("•–▪◦‣●■")
_LEADERS: Final = re.compile(r"(?:\. ?){5}")
"""The dots of a table of contents."""


def sizes_of(pages: Sequence[list[PrintLine]]) -> tuple[dict[float, int], float]:
    """Return the sizes of type that are headings, with their levels (from 2), and the
    usual leading, in heights of the type (1.2 where no lines follow each other)."""
    sizes: Counter[float] = Counter()
    gaps: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
        for line, after in pairwise(page):
            if line.y > after.y:
                gaps[round((line.y - after.y) / (line.size or 1.0), 1)] += 1
    body = sizes.most_common(1)[0][0] if sizes else 0.0
    larger = sorted(
        (size for size in sizes if body and size >= body * TYPE.heading), reverse=True
    )
    levels = {size: min(index + 2, 6) for index, size in enumerate(larger)}
    return levels, gaps.most_common(1)[0][0] if gaps else 1.2


def parts_of(
    page: list[PrintLine], levels: dict[float, int], leading: float
) -> Iterator[PrintPart]:
    """Yield the blocks and tables of a page."""
    block_start = 0
    ruled = [
        _PrintTable(number, number + 1, line.rows, line.bands)
        for number, line in enumerate(page)
        if line.rows
    ]
    page_end = _PrintTable(len(page), len(page), [], [])
    for table_start, table_stop, rows, boxes in [
        *sorted([*ruled, *find_tables(page)]),
        page_end,
    ]:
        for block in _blocks(page[block_start:table_start], levels, leading):
            yield _block(block, levels)
        if rows:
            bands = [
                Band(box, letters_in("".join(row)))
                for row, box in zip(rows, boxes, strict=True)
            ]
            yield PrintPart(table_to_html(rows), bands)
        block_start = table_stop


def _blocks(
    page: list[PrintLine], levels: dict[float, int], leading: float
) -> list[list[PrintLine]]:
    """Return the page's lines in groups: one heading, one paragraph, one piece of code
    each."""
    blocks: list[list[PrintLine]] = []
    for line in page:
        before = blocks[-1][-1] if blocks else None
        if before is not None and _joins(before, line, levels, leading):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _joins(
    before: PrintLine, line: PrintLine, levels: dict[float, int], leading: float
) -> bool:
    if line.text.lstrip()[:1] in _BULLETS:
        return False
    if before.fixed != line.fixed or levels.get(before.size) != levels.get(line.size):
        return False
    step = (before.y - line.y) / (before.size or 1.0)
    return 0 <= step <= max(leading, 1.0) * TYPE.leading * (1.6 if line.fixed else 1.0)


def _indented(lines: Sequence[PrintLine]) -> Iterator[str]:
    """Yield lines of code, each as far from the margin as it is set; all letters are of
    one width.

    At most `MOST_BLANKS` blanks are set before a line."""
    margin = min(line.cells[0].left for line in lines)
    widths = sorted(
        (line.cells[-1].right - line.cells[0].left) / max(len(line.text), 1)
        for line in lines
    )
    letter = widths[len(widths) // 2] or 1.0
    for line in lines:
        blanks = min(round((line.cells[0].left - margin) / letter), MOST_BLANKS)
        yield " " * blanks + line.text


def is_ideograph(letter: str) -> bool:
    """Return whether a letter is of a writing that sets no blanks: Chinese or Japanese,
    with their stops and full-width forms; not those beyond the first plane."""
    return (
        "\u2e80" <= letter <= "\u9fff"
        or "\uf900" <= letter <= "\ufaff"
        or "\uff00" <= letter <= "\uffef"
    )


def _block(lines: list[PrintLine], levels: dict[float, int]) -> PrintPart:
    return PrintPart(
        _written(lines, levels),
        [Band(line.box, letters_in(line.text)) for line in lines],
    )


def _flowing(lines: Sequence[PrintLine]) -> str:
    """Return the text of lines on one line, words that a hyphen parts as one."""
    text = lines[0].text.strip()
    for line in lines[1:]:
        after = line.text.strip()
        hyphen = text.endswith("-") and text[-2:-1].isalpha() and after[:1].islower()
        blank = "" if is_ideograph(text[-1:]) and is_ideograph(after[:1]) else " "
        text = text[:-1] + after if hyphen else f"{text}{blank}{after}"
    return text


def _written(lines: list[PrintLine], levels: dict[float, int]) -> str:
    item = lines[0].text.lstrip()[:1] in _BULLETS
    if lines[0].fixed and not item:
        return f"<pre>{escape(chr(10).join(_indented(lines)))}</pre>"
    text = _flowing(lines)
    if item:
        return f"<ul><li>{escape(text[1:].strip())}</li></ul>"
    level = levels.get(lines[0].size)
    if (
        level is not None
        and not _LEADERS.search(text)
        and len(text) <= TITLE_CHARACTERS
        and any(letter.isalpha() for letter in text)
    ):
        return f"<h{level}>{escape(text)}</h{level}>"
    return f"<p>{escape(text)}</p>"


# --- what recurs
# ------------------------------------------------------------------------------------------------------


def drop_running(pages: Sequence[list[PrintLine]], heights: Sequence[float]) -> None:
    """Take running heads and feet away: what recurs, numbers aside, at the edge of most
    pages, or of every second one.

    The first of each kind stays at the head of its page, where it is often the title;
    page numbers go. Files of fewer than four pages, and pages that would be left empty,
    stay as they are. Changes `pages`."""
    if len(pages) < 4:
        return
    edges = [_edges(page, height) for page, height in zip(pages, heights, strict=True)]
    recurring = _recurring(
        [[_unnumbered(line) for line in (*top, *foot)] for top, foot in edges]
    )
    seen: set[str] = set()
    for page, (top, foot) in zip(pages, edges, strict=True):
        dropped = {
            id(line)
            for side, is_foot in ((top, False), (foot, True))
            for line in _again(side, recurring, seen, is_foot=is_foot)
        }
        if len(dropped) < len(page):
            page[:] = [line for line in page if id(line) not in dropped]


def _unnumbered(line: PrintLine) -> str:
    return _PAGE_NUMBERS.sub("#", line.text.strip())


def _recurring(edges: Sequence[Sequence[str]]) -> set[str]:
    """Return the texts at the edges of most pages, or of many pages of one hand."""
    edge_texts = [set(texts) for texts in edges]
    every = Counter(text for texts in edge_texts for text in texts)
    halves = [
        Counter(text for texts in edge_texts[half::2] for text in texts)
        for half in (0, 1)
    ]
    return {
        text
        for text, count in every.items()
        if 2 * count > len(edge_texts)
        or any(half[text] >= 3 and 3 * half[text] > len(edge_texts) for half in halves)
    }


def _again(
    side: Sequence[PrintLine], recurring: set[str], seen: set[str], *, is_foot: bool
) -> Iterator[PrintLine]:
    """Yield the lines of an edge, outermost first, that are page numbers or in `seen`,
    to which all that recur are added."""
    for depth, line in enumerate(side):
        text = _unnumbered(line)
        is_short = text == line.text.strip() or len(text.split()) <= SHORT
        if text not in recurring or (depth and not is_short):
            return
        if text in seen or ("#" in text and (is_foot or len(text.split()) <= SHORT)):
            yield line
        seen.add(text)


def _edges(
    page: Sequence[PrintLine], height: float
) -> tuple[list[PrintLine], list[PrintLine]]:
    """Return the lines at the top and at the foot of a page, the outermost first."""
    lines = sorted((line for line in page if not line.rows), key=lambda line: -line.y)
    top = [line for line in lines if line.y > EDGE_TOP * height]
    foot = [line for line in reversed(lines) if line.y < EDGE_LOW * height]
    return top, foot
