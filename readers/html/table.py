"""Reading a table element as a grid of cells: headers, rows as `header: value`, or
nothing where it only lays out.

Spans are resolved: a cell that covers several rows belongs to each in the row's
`header: value` text, but the page's text has its words once. Not for: rendering
(`pipeline/prune`)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from typing import Final

from readers.tree import (
    CURRENCY_SIGNS,
    LABEL_WORDS,
    Node,
    count_words,
    label_children,
    text_of,
    walk,
)

MAX_SPAN: Final = 64
"""Columns that one cell may cover; 1,000 is legal, but no real page of 495 has more
than 40."""
MAX_CARRIED: Final = 20
"""Cells carried down by row spans, for each real cell; beyond, spans are ignored, so
that a grid stays linear. A table of 100,000 cells, 40,000 of them spanning all rows,
takes 4 processor seconds so, and 8 at 64."""
LONG_CELL: Final = 50
"""Words of a cell from which headings and forms in a table without header cells make it
a page's layout; prices, opening hours and carts have them as well."""
_BEFORE: Final = re.compile(
    rf"(?:[A-Z]{{1,3}}\s?)?[{''.join(CURRENCY_SIGNS)}]\s?\(?|\("
)
"""What filings have before a number, in a cell of its own."""
_AFTER: Final = re.compile(r"\)|\)?\s?[%‰]\s?\)?")
"""What they have so after one."""
_VALUE_BEGIN: Final = re.compile(r"[(+~<>≈-]*\s?\.?\d|\(?[−–—-]")
"""How a number begins, or a dash in place of one; its closing bracket may be in the next
cell."""
_REMARK: Final = re.compile(r"\(.*\)|")
"""What the label column of a header row may hold: nothing, or `(in millions)`."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a data table."""

    path: str
    """Below the table: `tr3`, `thead/tr`."""
    cells: tuple[str, ...]
    """One text a column: a cell that covers several rows is repeated, one that covers
    several columns where it is a short value without figures."""
    joined_text: str
    """Texts of the row's cells, joined by ` | `; those of a row above that cover a row
    of values are in it, and bars in its values are escaped as in Markdown."""
    text: str
    """`header: value; header: value`, empty where no header is known."""
    node: Node
    is_header: bool
    group: str
    """Text of the row across the whole table that heads this one and its neighbours,
    empty for none."""
    opened: tuple[int, ...] = ()
    """Children of the row's node with a table or listing of their own, which are read
    after it as containers."""
    carried: tuple[int, ...] = ()
    """Columns whose cell begins in a row above and covers this one."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A data table."""

    headers: tuple[str, ...]
    """One text a column, empty tuple where there is no header row."""
    rows: tuple[TableRow, ...]


@dataclass(slots=True)
class _Cell:
    text: str
    is_head: bool
    width: int
    height: int
    is_box: bool
    is_headlike: bool
    """Whether it may be a header by its looks: all of it is printed bold, or it is one."""


@dataclass(slots=True)
class _Source:
    """A row as the page has it."""

    path: str
    """Below the table."""
    node: Node
    in_head: bool
    cells: list[_Cell]


_Line = list[_Cell | None]
"""The cells of a row by column, with those that cover it from above."""
_Column = Sequence[_Cell | None]
"""The cells of a column by row."""


def read_grid(table: Node) -> Grid | None:
    """Return the grid of a data table; None for one without rows, and for a table that
    lays out a page (its cells are ordinary containers)."""
    sources = list(_sources(table))
    if not sources or _is_layout(table, sources):
        return None
    placed = _place([source.cells for source in sources])
    joined = _joined(sources, placed)
    heads = _header_rows(sources, joined)
    if joined is not placed and not heads:
        heads = _rows_above_labels(joined)
    placed = joined
    headers = _headers(placed, heads)
    return Grid(headers, tuple(_rows(sources, placed, heads, headers)))


def _sources(table: Node) -> Iterator[_Source]:
    for path, node in _labelled(table):
        if node.tag == "tr":
            yield _Source(path, node, in_head=False, cells=list(_cells(node)))
        elif node.tag == "thead":
            for label, row in _labelled(node):
                if row.tag == "tr":
                    cells = list(_cells(row))
                    yield _Source(f"{path}/{label}", row, in_head=True, cells=cells)


def _labelled(node: Node) -> Iterator[tuple[str, Node]]:
    children = [child for child in node.children if isinstance(child, Node)]
    return zip(label_children(node), children, strict=True)


def _cells(row: Node) -> Iterator[_Cell]:
    for child in row.children:
        if isinstance(child, Node) and child.tag in {"td", "th"}:
            is_head = child.tag == "th"
            first_child = child.children[0] if len(child.children) == 1 else ""
            is_bold = isinstance(first_child, Node) and first_child.tag in {
                "b",
                "strong",
            }
            yield _Cell(
                "" if child.boxed else _cell_text(child),
                is_head,
                _span(child.attrs.get("colspan", ""), MAX_SPAN),
                _span(child.attrs.get("rowspan", ""), 65_534),
                child.boxed,
                is_head or is_bold,
            )


def _cell_text(cell: Node) -> str:
    """Return a cell's text, after the alt texts of its images (a flag, a tick) if the
    text lacks them."""
    text = text_of(cell)
    images = [node.attrs.get("alt", "") for node in walk(cell) if node.tag == "img"]
    alt_texts = [
        alt
        for alt in dict.fromkeys(images)
        if alt not in text and count_words(alt) <= LABEL_WORDS
    ]
    return " ".join((*alt_texts, text)).strip()


def _span(value: str, limit: int) -> int:
    return max(1, min(int(value), limit)) if value.isascii() and value.isdigit() else 1


# Data or layout


def _is_layout(table: Node, sources: Sequence[_Source]) -> bool:
    """Whether a table lays out a page: its role or children say so, it has one column,
    most of its rows hold boxes below no headers, or without header cells it has one row
    or cells that are parts of a page, or empty."""
    children = {child.tag for child in table.children if isinstance(child, Node)}
    if (
        table.attrs.get("role") == "presentation"
        or children - {"tr", "thead", "caption"}
        or max(len(source.cells) for source in sources) < 2
    ):
        return True
    if "caption" in children:
        return False
    boxes = sum(source.node.boxed for source in sources)
    if 2 * boxes >= len(sources) and not _has_heads(sources[0]):
        return True
    cells = [cell for source in sources for cell in source.cells]
    if any(cell.is_head for cell in cells):
        return False
    tags = {node.tag for node in walk(table) if node is not table}
    is_long = any(count_words(cell.text) > LONG_CELL for cell in cells)
    return (
        len(sources) < 2
        or not tags.isdisjoint({"nav", "pre", "table"})
        or (is_long and not tags.isdisjoint({"article", "form", "h1", "h2", "h3"}))
        or not any(cell.text for cell in cells)
    )


def _has_heads(source: _Source) -> bool:
    """Whether a table's first row holds column headers, so that what its cells hold
    lays out no page."""
    are_heads = source.in_head or all(cell.is_head for cell in source.cells)
    return not source.node.boxed and len(source.cells) > 1 and are_heads


# Spans


def _place(rows: list[list[_Cell]]) -> list[_Line]:
    """Return the rows with spans resolved: each covered place holds the cell that
    covers it.

    Where spans would make the grid larger than `MAX_CARRIED` allows, cells no longer go
    on below."""
    allowed = MAX_CARRIED * sum(len(row) for row in rows) + 1000
    carried: dict[int, tuple[_Cell, int]] = {}
    placed: list[_Line] = []
    for row in rows:
        line: _Line = []
        next_carried: dict[int, tuple[_Cell, int]] = {}
        waiting = iter(row)
        cell = next(waiting, None)
        last_column = max(carried, default=-1)
        while cell is not None or len(line) <= last_column:
            column = len(line)
            if column in carried:
                covering, rows_left = carried[column]
                line.append(covering)
                if rows_left > 1:
                    next_carried[column] = (covering, rows_left - 1)
            elif cell is None:
                line.append(None)
            else:
                for index in range(column, column + cell.width):
                    line.append(cell)
                    if cell.height > 1:
                        next_carried[index] = (cell, cell.height - 1)
                cell = next(waiting, None)
        allowed -= len(line)
        carried = next_carried if allowed > 0 else {}
        placed.append(line)
    return placed


# Values in several cells


def _joined(sources: Sequence[_Source], placed: list[_Line]) -> list[_Line]:
    """Return the rows of a table that keeps currency signs, brackets or percent signs
    apart from their numbers, with each value in one cell and without the empty columns
    between; `placed` itself for every other table.

    The cells of `sources` change with their rows."""
    cells = [cell for source in sources for cell in source.cells]
    if not any(map(_is_sign, cells)) or any(cell.is_box for cell in cells):
        return placed
    columns = _without_spacers(list(zip_longest(*placed)))
    values = _values(columns)
    if len(values) == len(columns):
        return placed
    made: dict[tuple[int, ...], _Cell] = {}
    lines: list[_Line] = []
    for number, source in enumerate(sources):
        own = set(map(id, source.cells))
        line: _Line = []
        for value in values:
            parts = [cell for column in value if (cell := column[number]) is not None]
            line.append(_one_cell(parts, made))
            own |= {id(line[-1])} if any(id(cell) in own for cell in parts) else set()
        widths = Counter(map(id, line))
        for cell in filter(None, line):
            cell.width = widths[id(cell)]
        source.cells = [cell for cell in _once(line) if id(cell) in own]
        lines.append(line)
    return lines


def _is_sign(cell: _Cell) -> bool:
    return bool(_BEFORE.fullmatch(cell.text) or _AFTER.fullmatch(cell.text))


def _without_spacers(columns: Sequence[_Column]) -> list[_Column]:
    """Return the columns in which a cell has text that is in neither of the columns
    beside it."""
    kept: list[_Column] = []
    for column, following in zip_longest(columns, columns[1:], fillvalue=()):
        beside = (kept[-1] if kept else (), following)
        if any(
            cell and cell.text and cell is not left and cell is not right
            for cell, left, right in zip_longest(column, *beside)
        ):
            kept.append(column)
    return kept


def _values(columns: Sequence[_Column]) -> list[list[_Column]]:
    """Return the columns that hold one value each, together: a number's, after that of
    the sign before it and before those of the signs after it. The first, of labels, is
    alone."""
    values: list[list[_Column]] = []
    before: list[_Column] = []
    for index, column in enumerate(columns):
        following = columns[index + 1 : index + 2]
        if before or index == 0:
            values.append([*before, column])
            before = []
        elif index > 1 and _holds_signs(_AFTER, column, values[-1]):
            values[-1].append(column)
        elif following and _holds_signs(_BEFORE, column, following):
            before = [column]
        else:
            values.append([column])
    return values


def _holds_signs(
    form: re.Pattern[str], column: _Column, beside: Sequence[_Column]
) -> bool:
    """Whether a column has signs of a form, each beside a number or nothing and one at
    least beside a number, and else no text but what goes on in the columns beside it."""
    are_beside_number = False
    for cell, *others in zip(column, *beside, strict=True):
        if cell is None or not cell.text or any(cell is other for other in others):
            continue
        texts = [other.text for other in others if other and other.text]
        is_number = any(map(_VALUE_BEGIN.match, texts))
        if not form.fullmatch(cell.text) or (texts and not is_number):
            return False
        are_beside_number |= is_number
    return are_beside_number


def _one_cell(
    cells: Sequence[_Cell], made: dict[tuple[int, ...], _Cell]
) -> _Cell | None:
    """Return the cell of a value whose parts are in some cells, the same one for the
    same cells (`made`)."""
    parts = list({id(cell): cell for cell in cells if cell.text}.values())
    if len(parts) < 2:
        return next(iter((*parts, *cells)), None)
    key = tuple(map(id, parts))
    if key not in made:
        made[key] = _Cell(
            "".join(part.text for part in parts),
            all(part.is_head for part in parts),
            1,
            max(part.height for part in parts),
            is_box=False,
            is_headlike=all(part.is_headlike for part in parts),
        )
    return made[key]


# Headers


def _rows_above_labels(placed: Sequence[_Line]) -> range:
    """Return the rows at the top that have no label in the first column; none where all
    are such, or hold no words."""
    above = list(
        takewhile(
            lambda line: line[0] is None or _REMARK.fullmatch(line[0].text), placed
        )
    )
    has_words = any(cell and cell.text for line in above for cell in line)
    return range(len(above) if has_words and len(above) < len(placed) else 0)


def _header_rows(sources: Sequence[_Source], placed: Sequence[_Line]) -> range:
    """Return which rows at the top hold column headers; a title over all columns may be
    above them.

    If every row looks like one, only the first counts, and none in a table of one
    row."""
    width = max(map(len, placed))
    start = 0
    while start < len(sources) - 2 and _is_title(sources[start].cells, width):
        start += 1
    stop = start
    while stop < len(sources) and (
        _is_header(sources[stop], placed[stop])
        or (stop > start and _goes_on(placed[stop - 1], placed[stop]))
        or (stop == start and _is_bold_header(sources[stop : stop + 2]))
    ):
        stop += 1
    if stop == len(sources):
        stop = min(stop, start + 1) if len(sources) > start + 1 else start
    return range(start, stop) if stop > start else range(_unmarked_header(placed))


def _is_title(cells: Sequence[_Cell], width: int) -> bool:
    return (
        width > 1
        and len(cells) == 1
        and cells[0].text != ""
        and cells[0].is_headlike
        and cells[0].width >= width
    )


def _is_header(source: _Source, line: _Line) -> bool:
    """Whether a row, all above which are headers, holds headers alone."""
    filled = [cell for cell in source.cells if cell.text]
    is_spanned = any(cell.height > 1 for cell in line if cell)
    only_heads = bool(filled) and all(cell.is_head for cell in filled)
    return source.in_head or (only_heads and (len(filled) > 1 or is_spanned))


def _is_bold_header(sources: Sequence[_Source]) -> bool:
    """Whether the first of two rows holds headers by their bold print: it has a cell over
    several columns, and the second row is bold as well."""
    cells = [cell for source in sources for cell in source.cells if cell.text]
    is_wide = any(cell.width > 1 for cell in sources[0].cells)
    return is_wide and all(cell.is_headlike for cell in cells)


def _goes_on(header_row: _Line, row: _Line) -> bool:
    """Whether a row names the columns below headers that cover several: labels under
    those, nothing new elsewhere."""
    pairs = [
        (head, cell)
        for head, cell in zip(header_row, row, strict=False)
        if head and cell and cell.text and cell is not head
    ]
    return sum(head.width > 1 for head, _ in pairs) > 1 and all(
        (head.width > 1 or not head.text or cell.is_headlike)
        and (cell.is_headlike or _is_name(cell.text))
        for head, cell in pairs
    )


def _unmarked_header(placed: Sequence[_Line]) -> int:
    """Return 1 where the first row reads like headers: short distinct words over
    columns with figures, else 0."""
    if len(placed) < 3 or any(
        cell and cell.is_head for row in placed for cell in row[:1]
    ):
        return 0
    labels = [cell.text if cell else "" for cell in placed[0]]
    are_names = len(set(labels)) == len(labels) > 1 and all(map(_is_name, labels))
    return int(
        are_names
        and any(_holds_figures(placed[1:], column) for column in range(len(labels)))
    )


def _is_name(text: str) -> bool:
    """Whether a text is a few words without figures."""
    return 0 < count_words(text) <= LABEL_WORDS and not _has_figures(text)


def _holds_figures(rows: Sequence[_Line], column: int) -> bool:
    """Whether more than half of a column's values have figures, of two or more."""
    cells = (row[column] for row in rows if column < len(row))
    values = [cell.text for cell in cells if cell is not None]
    return len(values) > 1 and 2 * sum(map(_has_figures, values)) > len(values)


def _has_figures(text: str) -> bool:
    return any(map(str.isdigit, text))


def _headers(placed: Sequence[_Line], heads: range) -> tuple[str, ...]:
    """Return one header a column, the texts of several header rows joined ("" for an
    empty one); none without header rows."""
    rows = placed[heads.start : heads.stop]
    width = max(map(len, placed)) if rows else 0
    columns = (
        [row[column] for row in rows if column < len(row)] for column in range(width)
    )
    return tuple(
        " ".join(dict.fromkeys(cell.text for cell in column if cell and cell.text))
        for column in columns
    )


# Rows


def _rows(
    sources: Sequence[_Source],
    placed: Sequence[_Line],
    heads: range,
    headers: tuple[str, ...],
) -> Iterator[TableRow]:
    """Yield each row of a grid by what it is: a header, a line across, or values.

    A line across names the group of the rows below it, unless it is longer than
    `LABEL_WORDS`."""
    width = max(map(len, placed))
    group = ""
    previous: _Line = []
    for number, (source, line) in enumerate(zip(sources, placed, strict=True)):
        cells, is_header = source.cells, number in heads
        is_across = not is_header and _is_across(cells, width)
        if is_across and count_words(cells[0].text) <= LABEL_WORDS:
            group = cells[0].text
        is_value = not (is_header or is_across)
        pairs = enumerate(zip(line, previous, strict=False))
        yield TableRow(
            source.path,
            (cells[0].text,) if is_across else _by_column(line, is_header=is_header),
            " | ".join(_shown(_once(line)) if is_value else [c.text for c in cells]),
            _readable(line, headers) if is_value else "",
            source.node,
            is_header,
            group if is_value else "",
            tuple(index for index, cell in enumerate(cells) if cell.is_box),
            tuple(
                n for n, (cell, upper) in pairs if is_value and cell and cell is upper
            ),
        )
        previous = line


def _shown(cells: Sequence[_Cell]) -> list[str]:
    """Return the texts of a row of values, bars in those of several escaped as in
    Markdown."""
    is_row = len(cells) > 1
    return [cell.text.replace("|", "\\|") if is_row else cell.text for cell in cells]


def _once(line: _Line) -> list[_Cell]:
    """Return the cells of a row in order, one over several columns once."""
    return list({id(cell): cell for cell in line if cell is not None}.values())


def _is_across(cells: Sequence[_Cell], width: int) -> bool:
    """Whether a row of a grid of this width is a line across."""
    if len(cells) != 1 or width < 2 or not cells[0].text:
        return False
    return cells[0].width >= width or cells[0].is_head


def _by_column(line: _Line, *, is_header: bool) -> tuple[str, ...]:
    """Return the text of each column; a value over several columns is one of each of
    them, as in a rota, but not a label in front (`Total`), a number or a sentence.

    Empty columns at the end are dropped."""
    texts: list[str] = []
    previous: _Cell | None = None
    for cell in line:
        is_again = cell is not None and cell is previous
        is_shared = not is_header and cell is not line[0]
        is_shown = cell and (not is_again or (is_shared and _is_name(cell.text)))
        texts.append(cell.text if cell and is_shown else "")
        previous = cell
    while texts and not texts[-1]:
        texts.pop()
    return tuple(texts)


def _readable(line: _Line, headers: tuple[str, ...]) -> str:
    """Return `header: value; header: value` of a body row; the row's own label first.

    Empty where it has neither headers nor a label; a cell over several columns counts
    once."""
    fields: list[str] = []
    seen: set[int] = set()
    label = ""
    for column, cell in enumerate(line):
        if cell is None or not cell.text or id(cell) in seen:
            continue
        seen.add(id(cell))
        header = headers[column] if column < len(headers) else ""
        if not header and column == 0 and cell.is_head:
            label = cell.text.rstrip(":")
        else:
            fields.append(_with_label(header.rstrip(":"), cell.text))
    return _with_label(label, "; ".join(fields)) if headers or label else ""


def _with_label(label: str, text: str) -> str:
    """Return a text after its label, or what there is of both."""
    return ": ".join(filter(None, (label, text)))
