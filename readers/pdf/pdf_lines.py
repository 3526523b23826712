"""Lines of a PDF's page to HTML: headings by their size of type, paragraphs by their
leading, code, points, tables.

A table is adjacent lines whose pieces are in the same columns. Not for: finding the
lines (`readers/pdf/pdf_layout.py`); tables drawn column by column without rulings.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Final

from readers.converted import escape, html_table
from readers.numerals import roman
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
TEXT_SHARE: Final = 0.25
"""Share of all letters in lines below one of their size, from which a size is of text:
listings in smaller type may hold more letters."""
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
_WORD_OR_NUMBER: Final = re.compile(r"\d+|[^\W\d_]+")
_ROMAN_NUMBERS: Final = {roman(number): number for number in range(1, 100)}
_YEAR_HEAD: Final = re.compile(r"(?:19|20)\d\d")
"""A figure that may be the head of a column."""
_BULLETS: Final = frozenset("•–▪◦‣●■")
_COMPOUND: Final = re.compile(r"\w+(?:-\w+)+")
_NO_WORD: Final = re.compile(r"[^\w-]+")
_LEADERS: Final = re.compile(r"(?:\. ?){5}|(?:\. ?){2}\d+$")
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
    aside: bool = False
    """Whether it is turned against most print of its page, as a stamp or the name of an
    axis is."""


def sizes_of(pages: Sequence[list[PrintLine]]) -> tuple[dict[float, int], float]:
    """Return the sizes of type that are headings, with their levels (from 2), and the
    usual leading, in heights of the type (1.2 where no lines follow each other)."""
    sizes: Counter[float] = Counter()
    flowing: Counter[float] = Counter()
    gaps: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
        for line, after in pairwise(page):
            flowing[after.size] += len(after.text) if line.size == after.size else 0
            if line.y > after.y:
                gaps[round(_step(line, after), 1)] += 1
    texts = (size for size in flowing if flowing[size] > TEXT_SHARE * sizes.total())
    body = max([*texts, *(size for size, _ in sizes.most_common(1))], default=0.0)
    larger = sorted(
        (size for size in sizes if body and size >= body * HEADING), reverse=True
    )
    levels = {size: min(index + 2, 6) for index, size in enumerate(larger)}
    return levels, gaps.most_common(1)[0][0] if gaps else 1.2


def compounds_of(pages: Sequence[list[PrintLine]]) -> set[str]:
    """Return the words with hyphens within the lines of a document, but those that it
    has without a hyphen as well: what keeps its hyphen at the end of a line."""
    texts = [line.text.casefold() for page in pages for line in page]
    compounds = set(chain.from_iterable(map(_COMPOUND.findall, texts)))
    joined = {compound.replace("-", ""): compound for compound in compounds}
    for text in texts:
        for word in _WORD_OR_NUMBER.findall(text):
            compounds.discard(joined.get(word, ""))
    return compounds


def html_of(
    page: Sequence[PrintLine],
    levels: dict[float, int],
    leading: float,
    compounds: Container[str],
) -> Iterator[str]:
    """Yield the blocks and tables of a page; `sizes_of` and `compounds_of` return what
    it takes of the document."""
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
            yield _block_to_html(page[start:stop], levels, compounds)
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


def _block_to_html(
    lines: Sequence[PrintLine], levels: dict[float, int], compounds: Container[str]
) -> str:
    """Return lines as code, a point, a heading or a paragraph."""
    text = _flowing(lines, compounds)
    if text[:1] in _BULLETS:
        return f"<ul><li>{escape(text[1:].strip())}</li></ul>"
    if lines[0].fixed:
        return f"<pre>{escape(chr(10).join(_indented(lines)))}</pre>"
    level = None if lines[0].aside else levels.get(lines[0].size)
    is_heading = level is not None and len(text) <= TITLE_CHARACTERS
    if is_heading and any(map(str.isalpha, text)) and not any(map(_is_entry, lines)):
        return f"<h{level}>{escape(text)}</h{level}>"
    return f"<p>{escape(text)}</p>"


def _is_entry(line: PrintLine) -> bool:
    """Whether a line is one of a table of contents: dots, or a gap, and a number."""
    is_numbered = len(line.cells) > 1 and line.cells[-1].text.isdecimal()
    return is_numbered or _LEADERS.search(line.text) is not None


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


def _flowing(lines: Sequence[PrintLine], compounds: Container[str]) -> str:
    """Return the text of lines on one line, words that a hyphen parts as one; the
    hyphen of a compound stays."""
    text = lines[0].text.strip()
    for before, line in pairwise(lines):
        after = line.text.strip()
        if text.endswith("-") and text[-2:-1].isalpha() and after[:1].islower():
            begun, ended = before.text.strip().split()[-1], after.split()[0]
            parted = _NO_WORD.split(begun)[-1] + _NO_WORD.split(ended)[0]
            text = (text if parted.casefold() in compounds else text[:-1]) + after
        else:
            blank = "" if is_ideograph(text[-1:]) and is_ideograph(after[:1]) else " "
            text = f"{text}{blank}{after}"
    return text


# --- what recurs


@dataclass(frozen=True, slots=True)
class _EdgeLine:
    """One of the outermost lines of a page."""

    line: PrintLine
    page: int
    """Index of the page."""
    place: int
    """Its height, in whole points."""
    tokens: list[str]
    """Its words and numbers."""
    forms: list[tuple[str, int]]
    """What recurs on other pages, with its place: the line as it is, then with each of
    its numbers as one that grows from page to page."""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(token for token in self.tokens if _number(token) is None)


def drop_running(pages: Sequence[list[PrintLine]], heights: Sequence[float]) -> None:
    """Take running heads and feet away: the outermost lines of pages at a height where
    three of five pages in a row have the same, but for a page number that grows.

    At such a height a number alone goes, too, and what is a line elsewhere, such as the
    title of a section. Of what recurs and is not said elsewhere the first stays, often
    the title; headings that differ by a number alone (`Chapter 3`) stay. Pages that
    would be left empty stay as they are. Changes `pages`."""
    headings, leading = sizes_of(pages)
    tabled = {
        id(line)
        for page in pages
        for start, (stop, _) in _tables(page).items()
        for line in page[start:stop]
    }
    # A second head or foot, often the page number, has a gap to the text.
    for least_step in (0.0, LEADING * leading):
        edges = [
            edge
            for number, (page, height) in enumerate(zip(pages, heights, strict=True))
            for edge in _edge_lines(page, number, height, least_step)
            if id(edge.line) not in tabled
        ]
        recurring = _recurring(edges)
        shares = Counter[int]()
        for edge in edges:
            recurs = any(form in recurring for form in edge.forms)
            shares[edge.place] += 1 if recurs else -1
        # A line of code may end three pages; running heads are at most such places.
        running = [edge for edge in edges if shares[edge.place] >= 0]
        dropped = _dropped(pages, running, recurring, headings)
        for page in pages:
            if any(id(line) not in dropped for line in page):
                page[:] = [line for line in page if id(line) not in dropped]


def _recurring(edges: Sequence[_EdgeLine]) -> set[tuple[str, int]]:
    """Return the forms of lines that three of five pages in a row have."""
    pages: dict[tuple[str, int], dict[int, None]] = defaultdict(dict)
    for edge in edges:
        for form in edge.forms:
            pages[form][edge.page] = None
    return {
        form
        for form, numbers in pages.items()
        if any(
            third - first < 5
            for first, third in zip(numbers, [*numbers][2:], strict=False)
        )
    }


def _dropped(
    pages: Sequence[list[PrintLine]],
    running: Sequence[_EdgeLine],
    recurring: set[tuple[str, int]],
    headings: Container[float],
) -> set[int]:
    """Return the ids of those lines that are left out, of all at the heights of running
    heads; `headings` are sizes of type."""
    apart = {id(edge.line) for edge in running}
    said = {
        tuple(token for token in _tokens(line) if _number(token) is None)
        for page in pages
        for line in page
        if id(line) not in apart
    } - {()}
    vocabulary = set(chain.from_iterable(said))
    seen: dict[int, set[tuple[str, ...]]] = defaultdict(set)
    dropped = set()
    for edge in running:
        words, before = edge.words, seen[edge.place]
        is_heading = edge.line.size in headings
        as_it_is, *grown = (form in recurring for form in edge.forms)
        recurs, numbers = as_it_is or any(grown), len(edge.tokens) - len(words)
        is_said = (
            words in said
            or (  # `Chapter 3: Rates` over the chapter `3 Rates`
                words[1:] in said
                and edge.tokens[0] in vocabulary
                and _number(edge.tokens[1]) is not None
            )
        )
        if not words:
            goes = recurs or not is_heading
        elif is_heading and not recurs:
            goes = False
            before.clear()  # what comes back after another title is a title
        elif is_heading and not as_it_is and numbers == 1 and words not in said:
            goes = False
        else:
            goes = (recurs and words in before) or (is_said and not is_heading)
            before.add(words)
        if goes:
            dropped.add(id(edge.line))
    return dropped


def _tokens(line: PrintLine) -> list[str]:
    return _WORD_OR_NUMBER.findall(line.text.casefold())


def _number(token: str) -> int | None:
    return int(token[:9]) if token.isdecimal() else _ROMAN_NUMBERS.get(token)


def _edge_lines(
    page: Sequence[PrintLine], number: int, height: float, least_step: float
) -> Iterator[_EdgeLine]:
    """Yield the lines on the uppermost and on the lowest baseline of a page, so many
    heights of the type from the next; no ruled table, and none longer than a title."""
    upright = [line for line in page if 0 <= line.y <= height]
    ys = sorted({round(line.y) for line in upright})
    outermost = {
        ys[end]: abs(ys[end] - ys[after]) for end, after in ((0, 1), (-1, -2)) if ys[1:]
    }
    for line in upright:
        place = round(line.y)
        is_text = len(line.text) <= TITLE_CHARACTERS and not line.rows
        is_apart = outermost.get(place, -1) >= least_step * line.size
        if is_apart and is_text:
            tokens = _tokens(line)
            forms = [*_forms(tokens, number, place)]
            yield _EdgeLine(line, number, place, tokens, forms)


def _forms(tokens: Sequence[str], page: int, place: int) -> Iterator[tuple[str, int]]:
    """Yield the `forms` of an edge line with these words and numbers."""
    yield " ".join(tokens), place
    numbers = list(map(_number, tokens))
    for index, number in enumerate(numbers):
        if number is not None:
            # `form 3, page 3 of 9` has it twice, `page 9 of 9` but once
            for places in ({index}, set(range(index, len(numbers)))):
                grown = [
                    f"{number - page:+}"
                    if position in places and numbers[position] == number
                    else token
                    for position, token in enumerate(tokens)
                ]
                yield " ".join(grown), place
