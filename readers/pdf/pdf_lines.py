"""Lines of a PDF's page to HTML: headings by their size of type, paragraphs by their
leading, code, points, tables.

A table is adjacent lines whose pieces are in the same columns. Not for: finding the
lines (`readers/pdf/pdf_layout.py`); tables drawn column by column without rulings.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from readers.converted import escape, html_table
from readers.page import TITLE_CHARACTERS

MOST_BLANKS: Final = 1_000
"""Between two words, and before a line; a page of the smallest print is that many
letters wide."""
CELL_GAP: Final = 1.2
"""Heights of the type between two cells of a line; a space is 0.25 to 0.35, justified
text stretches it to about 0.8."""
ROW_STEP: Final = 3.2
"""Heights of the type from one row of a table to the next at most; a row with cells of
two lines has 2.4."""
HEADING: Final = 1.12
"""A line so many times larger than most text is a heading; LaTeX's smallest step is
1.2, Word's 1.08."""
LEADING: Final = 1.35
"""A paragraph ends where the step to the next line is so many times the usual one."""
TABLE_ROWS: Final = 3
"""Two lines with two aligned pieces each are too often a title page or a letter's
head."""
CELL_LETTERS: Final = 60
"""Mean letters of a cell above which columns are running text, printed across."""
ALIGNED: Final = 0.75
"""Share of a table's cells that are in one column."""
COLUMN_EDGE: Final = 0.6
"""Heights of the type by which print may begin beside its column's edge."""
PAGE_EDGE: Final = 0.12
"""Part of a page's height, above and below, in which running heads are looked for."""
SHORT: Final = 4
"""Words of a line such as `Page 3 of 12` that recurs below another running head."""
_PAGE_NUMBERS: Final = re.compile(r"\d+|\b[ivxlc]+\b")
_YEAR_HEAD: Final = re.compile(r"(?:19|20)\d\d")
"""A figure that may be the head of a column."""
_BULLETS: Final = frozenset("•–▪◦‣●■")
_LEADERS: Final = re.compile(r"(?:\. ?){5}")
"""The dots of a table of contents."""


@dataclass(slots=True)
class Cell:
    """A piece of a line with wide gaps around it."""

    left: float
    """Points from the page's left edge."""
    right: float
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
    """Whether all its letters have one width."""
    cells: list[Cell]
    """From left to right."""
    rows: list[list[str]] = field(default_factory=list)
    """Of a ruled table, which takes the place of a line; its text and cells are empty
    then."""


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
                gaps[round(_step(line, after), 1)] += 1
    body = sizes.most_common(1)[0][0] if sizes else 0.0
    larger = sorted(
        (size for size in sizes if body and size >= body * HEADING), reverse=True
    )
    levels = {size: min(index + 2, 6) for index, size in enumerate(larger)}
    return levels, gaps.most_common(1)[0][0] if gaps else 1.2


def html_of(
    page: Sequence[PrintLine], levels: dict[float, int], leading: float
) -> Iterator[str]:
    """Yield the blocks and tables of a page."""
    tables = _tables(page)
    start = 0
    while start < len(page):
        stop, rows = tables.get(start, (start + 1, page[start].rows))
        if rows:
            yield table_to_html(rows)
        else:
            while (
                stop < len(page)
                and stop not in tables
                and _joins(page[stop - 1], page[stop], levels, leading)
            ):
                stop += 1
            yield _block_to_html(page[start:stop], levels)
        start = stop


def _step(line: PrintLine, after: PrintLine) -> float:
    """Return how far a line is below another, in heights of the type."""
    return (line.y - after.y) / (line.size or 1.0)


# --- tables


def table_to_html(rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its first row is the header where it holds no figures but years,
    and the rows below do; without rows it raises `IndexError`."""
    first_row, body_rows = rows[0], rows[1:]
    header = not any(map(_is_figure, first_row)) and any(
        _is_figure(cell) for row in body_rows for cell in row
    )
    return html_table(rows, header=header)


def with_one_head(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows of a table, the second joined to the first where both are heads
    above figures: it has nothing in the first column that the first row does not have, or
    is below cells that are empty, or repeated since they span several."""
    if len(rows) < 3:
        return rows
    (above, below, *body), corners = rows, {"", rows[0][0]}
    spans = len(set(above)) < len(above) and not above[0]
    if (
        any(map(_is_figure, (*above, *below)))
        or not any(_is_figure(cell) for row in body for cell in row)
        or not (spans or below[0] in corners)
        or sum(map(bool, below)) < 2
    ):
        return rows
    joined = [
        " ".join(dict.fromkeys(filter(None, cells)))
        for cells in zip(above, below, strict=True)
    ]
    return [joined, *body]


def _is_figure(text: str) -> bool:
    digits = sum(map(str.isdigit, text))
    is_number = digits > 0 and digits * 3 >= len(text.replace(" ", ""))
    return is_number and not _YEAR_HEAD.fullmatch(text)


def _tables(page: Sequence[PrintLine]) -> dict[int, tuple[int, list[list[str]]]]:
    """Return the tables of a page that have no rulings, by their first lines: the line
    after each, and its rows. Linear in the lines."""
    tables = {}
    start = 0
    while start < len(page):
        stop, rows = _table(page, start)
        if rows:
            tables[start] = stop, rows
        start = max(stop, start + 1)
    return tables


def _table(page: Sequence[PrintLine], start: int) -> tuple[int, list[list[str]]]:
    """Return the line after the lines that may be rows from a line on, and the rows;
    none where they do not form one."""
    stop = start
    while stop < len(page) and _may_be_row(page, start, stop):
        stop += 1
    while stop > start and len(page[stop - 1].cells) < 2:
        stop -= 1  # a line below the last row is text after the table
    lines = page[start:stop]
    rows = [line for line in lines if len(line.cells) >= 2]
    columns = _columns(rows)
    cells = [cell for line in rows for cell in line.cells]
    aligned = sum(len(_overlapped(cell, columns)) == 1 for cell in cells)
    letters = sum(len(cell.text) for cell in cells)
    if (
        len(rows) < TABLE_ROWS
        or len(columns) < 2
        or letters > CELL_LETTERS * len(cells)
        or aligned < ALIGNED * len(cells)
    ):
        return stop, []
    table: list[list[str]] = []
    for line in lines:
        if len(line.cells) >= 2:
            table.append([""] * len(columns))
        for cell in line.cells:
            column = _nearest(cell, columns)
            for text, left in cell.runs:
                # Columns may be so close that two cells look like one.
                column = next(
                    (
                        number
                        for number, (start_edge, _) in enumerate(columns)
                        if abs(start_edge - left) < COLUMN_EDGE * line.size
                    ),
                    column,
                )
                table[-1][column] = f"{table[-1][column]} {text}".strip()
    is_apart = all(len(_overlapped(cell, columns)) == 1 for cell in rows[0].cells)
    return stop, with_one_head(table) if is_apart else table


def _may_be_row(page: Sequence[PrintLine], start: int, index: int) -> bool:
    """Whether a line has cells, or continues a cell of the table that began at
    `start`."""
    line = page[index]
    if line.fixed or line.rows:
        return False
    if index == start:
        return len(line.cells) >= 2
    before = page[index - 1]
    if not -0.5 < _step(before, line) <= ROW_STEP:
        return False
    if len(line.cells) >= 2:
        return True
    columns = [(cell.left, cell.right) for cell in before.cells]
    return len(_overlapped(line.cells[0], columns)) <= 1 if line.cells else False


def _columns(rows: Sequence[PrintLine]) -> list[tuple[float, float]]:
    """Return the columns as the rows with most cells have them; none where those do not
    agree."""
    count = max((len(row.cells) for row in rows), default=0)
    widest = [row.cells for row in rows if len(row.cells) == count]
    columns = [
        (min(cell.left for cell in cells), max(cell.right for cell in cells))
        for cells in zip(*widest, strict=True)
    ]
    agree = all(left[1] <= right[0] for left, right in pairwise(columns))
    return columns if agree else []


def _overlapped(cell: Cell, columns: Sequence[tuple[float, float]]) -> list[int]:
    return [
        number
        for number, (left, right) in enumerate(columns)
        if cell.left < right and left < cell.right
    ]


def _nearest(cell: Cell, columns: Sequence[tuple[float, float]]) -> int:
    """Return the column that a cell shares most with, or the nearest one."""
    shared = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
    return max(range(len(columns)), key=shared.__getitem__)


# --- blocks


def _joins(
    before: PrintLine, line: PrintLine, levels: dict[float, int], leading: float
) -> bool:
    """Whether a line goes on the block of the line before it."""
    if line.rows or line.text.lstrip()[:1] in _BULLETS:
        return False
    if before.fixed != line.fixed or levels.get(before.size) != levels.get(line.size):
        return False
    limit = max(leading, 1.0) * LEADING * (1.6 if line.fixed else 1.0)
    return 0 <= _step(before, line) <= limit


def _block_to_html(lines: Sequence[PrintLine], levels: dict[float, int]) -> str:
    """Return lines as code, a point, a heading or a paragraph."""
    text = _flowing(lines)
    if text[:1] in _BULLETS:
        return f"<ul><li>{escape(text[1:].strip())}</li></ul>"
    if lines[0].fixed:
        return f"<pre>{escape(chr(10).join(_indented(lines)))}</pre>"
    level = levels.get(lines[0].size)
    is_heading = level is not None and len(text) <= TITLE_CHARACTERS
    if is_heading and any(map(str.isalpha, text)) and not _LEADERS.search(text):
        return f"<h{level}>{escape(text)}</h{level}>"
    return f"<p>{escape(text)}</p>"


def _indented(lines: Sequence[PrintLine]) -> Iterator[str]:
    """Yield lines of code, each as far from the margin as it is set, up to
    `MOST_BLANKS` blanks; all letters are of one width."""
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


def _flowing(lines: Sequence[PrintLine]) -> str:
    """Return the text of lines on one line, words that a hyphen parts as one."""
    text = lines[0].text.strip()
    for line in lines[1:]:
        after = line.text.strip()
        hyphen = text.endswith("-") and text[-2:-1].isalpha() and after[:1].islower()
        blank = "" if is_ideograph(text[-1:]) and is_ideograph(after[:1]) else " "
        text = text[:-1] + after if hyphen else f"{text}{blank}{after}"
    return text


# --- what recurs


def drop_running(pages: Sequence[list[PrintLine]], heights: Sequence[float]) -> None:
    """Take running heads and feet away: what recurs, numbers aside, at the edge of more
    than a third of the pages, three at least.

    The first of each kind stays at the head of its page, where it is often the title;
    page numbers go, unless they are words in the type of headings (`Chapter 3`). Files
    of fewer than four pages, and pages that would be left empty, stay as they are.
    Changes `pages`."""
    if len(pages) < 4:
        return
    headings, _ = sizes_of(pages)
    edges = [
        _edge_lines(page, height) for page, height in zip(pages, heights, strict=True)
    ]
    counts = Counter(
        text for lines in edges for text in {_unnumbered(line) for line in lines}
    )
    recurring = {
        text for text, count in counts.items() if count >= 3 and 3 * count > len(pages)
    }
    seen: set[str] = set()
    for page, lines in zip(pages, edges, strict=True):
        dropped = set()
        for line in lines:
            text = _unnumbered(line)
            if text in recurring:
                is_number = "#" in text and len(text.split()) <= SHORT
                is_title = line.size in headings and text.strip("# ") != ""
                if not is_title if is_number else text in seen:
                    dropped.add(id(line))
                seen.add(text)
        if len(dropped) < len(page):
            page[:] = [line for line in page if id(line) not in dropped]


def _unnumbered(line: PrintLine) -> str:
    return _PAGE_NUMBERS.sub("#", line.text.strip())


def _edge_lines(page: Sequence[PrintLine], height: float) -> list[PrintLine]:
    """Return the lines at the top and at the foot of a page: the outermost, and short
    ones."""
    heights = [line.y for line in page]
    outermost = {min(heights, default=0.0), max(heights, default=0.0)}
    return [
        line
        for line in page
        if not line.rows
        and not PAGE_EDGE * height <= line.y <= (1 - PAGE_EDGE) * height
        and (line.y in outermost or len(line.text.split()) <= SHORT)
    ]
