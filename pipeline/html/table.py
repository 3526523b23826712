"""Reading a table element as a grid of cells: headers, rows as `header: value`, or
nothing where it only lays out.

Spans are resolved: a cell that covers several rows belongs to each in the row's
`header: value` text, but the page's text has its words once. Not for: rendering
(`pipeline/prune`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.document.tree import (
    LABEL_WORDS,
    Node,
    count_words,
    label_children,
    pieces,
    text_of,
    walk,
)
from pipeline.html.ordinals import items_of, ordinals_of

MAX_SPAN: Final = 64
"""Columns that one cell may cover; 1,000 is legal, but no real page of 495 has more
than 40."""
_FEW_ROWS: Final = 2
"""Rows up to which a table without headers that holds another may lay out a page."""
MAX_CARRIED: Final = 20
"""Cells carried down by row spans, for each real cell; beyond, spans are ignored, so
that a grid stays linear. A table of 100,000 cells, 40,000 of them spanning all rows,
takes 4 processor seconds so, and 8 at 64."""
_NOT_IN_CELLS: Final = frozenset({"nav", "pre", "table"})
"""What no cell of a data table holds."""
_HEADED: Final = frozenset({"article", "form", "h1", "h2", "h3"})
LONG_CELL: Final = 50
"""Words of a cell from which headings and forms in a table without header cells make it
a page's layout; prices, opening hours and carts have them as well."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a data table."""

    path: str
    """Below the table: `tr3`, `thead/tr`."""
    cells: tuple[str, ...]
    """One text a column: a cell that covers several rows is repeated, one that covers
    several columns where it is a short value without figures."""
    joined_text: str
    """Texts of the cells that begin in this row, joined by ` | `."""
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
    is_bold: bool = False
    """Whether all of it is printed bold."""

    @property
    def is_headlike(self) -> bool:
        """Whether it may be a header by its looks."""
        return self.is_head or self.is_bold


def read_grid(table: Node) -> Grid | None:
    """Return the grid of a data table; None for one without rows, and for a table that
    lays out a page (its cells are ordinary containers)."""
    sources = list(_row_nodes(table))
    boxes = sum(node.boxed for _, node, _ in sources)
    if not sources or (
        2 * boxes >= len(sources)
        and not (_is_captioned(table) or _has_heads(sources[0]))
    ):
        return None
    raw = [(path, node, in_head, _cells(node)) for path, node, in_head in sources]
    if _is_layout(table, [cells for _, _, _, cells in raw]):
        return None
    placed = _place([cells for _, _, _, cells in raw])
    heads = _header_rows(raw, placed)
    headers = _headers(placed, heads)
    return Grid(headers, tuple(_rows(raw, placed, heads, headers)))


def _rows(
    raw: Sequence[tuple[str, Node, bool, list[_Cell]]],
    placed: list[list[_Cell | None]],
    heads: range,
    headers: tuple[str, ...],
) -> list[TableRow]:
    """Return each row of a grid by what it is: boxes opened, a header, a line across,
    or values.

    A line across names the group of the rows below it, unless it is longer than
    `LABEL_WORDS`."""
    width = max((len(row) for row in placed), default=0)
    rows: list[TableRow] = []
    group = ""
    for number, (path, node, _, cells) in enumerate(raw):
        texts = _by_column(placed[number], is_header=number in heads)
        joined_text = " | ".join(cell.text for cell in cells)
        opened = tuple(index for index, cell in enumerate(cells) if cell.is_box)
        if opened:
            text = _readable(placed[number], headers)
            rows.append(
                TableRow(
                    path, texts, joined_text, text, node, False, group, opened=opened
                )
            )
        elif number in heads:
            rows.append(TableRow(path, texts, joined_text, "", node, True, ""))
        elif _is_across(cells, width):
            group = (
                cells[0].text if count_words(cells[0].text) <= LABEL_WORDS else group
            )
            rows.append(
                TableRow(path, (cells[0].text,), joined_text, "", node, False, "")
            )
        else:
            carried = tuple(
                _carried(placed[number], placed[number - 1] if number else [])
            )
            text = _readable(placed[number], headers)
            rows.append(
                TableRow(
                    path, texts, joined_text, text, node, False, group, carried=carried
                )
            )
    return rows


def _row_nodes(table: Node) -> Iterator[tuple[str, Node, bool]]:
    """Yield path below the table, node, and whether it is in the head, for each row."""
    for path, node in _labelled(table):
        if node.tag == "tr":
            yield path, node, False
        elif node.tag == "thead":
            for row_path, row in _labelled(node):
                if row.tag == "tr":
                    yield f"{path}/{row_path}", row, True


def _is_captioned(table: Node) -> bool:
    return any(
        isinstance(child, Node) and child.tag == "caption" for child in table.children
    )


def _has_heads(source: tuple[str, Node, bool]) -> bool:
    """Whether a table's first row holds column headers, so that what its cells hold
    lays out no page."""
    _, row, in_head = source
    cells = [
        child
        for child in row.children
        if isinstance(child, Node) and child.tag in {"td", "th"}
    ]
    return (
        not row.boxed
        and len(cells) > 1
        and (in_head or all(cell.tag == "th" for cell in cells))
    )


def _labelled(node: Node) -> Iterator[tuple[str, Node]]:
    children = [child for child in node.children if isinstance(child, Node)]
    return zip(label_children(node), children, strict=True)


def _cells(row: Node) -> list[_Cell]:
    cells: list[_Cell] = []
    for child in row.children:
        if isinstance(child, Node) and child.tag in {"td", "th"}:
            table_text = _inner_text(child) if child.boxed else ""
            text = table_text if child.boxed else _cell_text(child)
            width = _span(child.attrs.get("colspan", ""), MAX_SPAN)
            height = _span(child.attrs.get("rowspan", ""), 65_534)
            cells.append(
                _Cell(
                    text,
                    child.tag == "th",
                    width,
                    height,
                    child.boxed and not table_text,
                    _is_bold(child),
                )
            )
    return cells


def _inner_text(cell: Node) -> str:
    """Return a small table in a cell on one line, its rows parted by strokes; empty for
    more than `LONG_CELL` words or a listing.

    Of anything with text outside of such rows the whole text is returned."""
    words = 0
    for node in walk(cell):
        words += sum(
            count_words(child) for child in node.children if isinstance(child, str)
        )
        if words > LONG_CELL or node.tag == "pre":
            return ""
    row_texts = [
        " ".join(text_of(node).split())
        for node in walk(cell)
        if node.tag == "tr" and not node.boxed
    ]
    full_text = " ".join(text_of(cell).split())
    return (
        " / ".join(filter(None, row_texts))
        if " ".join(filter(None, row_texts)) == full_text
        else full_text
    )


def _is_bold(cell: Node) -> bool:
    """Return whether one element makes all of a cell bold."""
    only = cell.children[0] if len(cell.children) == 1 else None
    return isinstance(only, Node) and only.tag in {"b", "strong"}


def _cell_text(cell: Node) -> str:
    """Return a cell's text with list numbers, after the alt texts of its images (a
    flag, a tick) if the text lacks them."""
    lists = [node for node in walk(cell) if node.tag == "ol"]
    marks = {
        id(item): number.mark
        for ordered_list in lists
        for item, number in zip(
            items_of(ordered_list), ordinals_of(ordered_list), strict=False
        )
    }
    text = " ".join("".join(pieces(cell, marks)).split()) if marks else text_of(cell)
    images = [node.attrs.get("alt", "") for node in walk(cell) if node.tag == "img"]
    alt_texts = [
        alt
        for alt in dict.fromkeys(images)
        if alt not in text and count_words(alt) <= LABEL_WORDS
    ]
    return " ".join((*alt_texts, text)).strip()


def _span(value: str, limit: int) -> int:
    return max(1, min(int(value), limit)) if value.isascii() and value.isdigit() else 1


def _is_across(cells: list[_Cell], width: int) -> bool:
    """Whether a row of a grid of this width is a line across."""
    if len(cells) != 1 or width < 2 or not cells[0].text:
        return False
    return cells[0].width >= width or cells[0].is_head


def _is_layout(table: Node, rows: list[list[_Cell]]) -> bool:
    is_narrow = max(map(len, rows), default=0) < 2
    if is_narrow or table.attrs.get("role") == "presentation":
        return True
    tags = {child.tag for child in table.children if isinstance(child, Node)}
    if tags - {"tr", "thead", "caption"}:
        return True
    if _is_captioned(table) or any(cell.is_head for row in rows for cell in row):
        return False
    return len(rows) < 2 or _holds_page(table, rows)


def _holds_page(table: Node, rows: list[list[_Cell]]) -> bool:
    """Whether the cells of a table without headers are parts of a page, or empty."""
    tags = {node.tag for node in walk(table) if node is not table}
    if _is_even(rows):
        tags -= {"table"}
    if not tags.isdisjoint(_NOT_IN_CELLS):
        return True
    if not tags.isdisjoint(_HEADED) and _has_long(rows):
        return True
    return not any(cell.text for row in rows for cell in row)


def _has_long(rows: list[list[_Cell]]) -> bool:
    """Whether a cell holds more words than a value has."""
    return any(count_words(cell.text) > LONG_CELL for row in rows for cell in row)


def _is_even(rows: list[list[_Cell]]) -> bool:
    """Whether rows are as long as each other and their cells short, small tables in
    them included: values, no page.

    False for `_FEW_ROWS` rows and fewer."""
    cells = [cell for row in rows for cell in row]
    even = (
        len(rows) > _FEW_ROWS
        and len({sum(cell.width for cell in row) for row in rows}) == 1
    )
    return even and all(
        not cell.is_box and count_words(cell.text) <= 2 * LABEL_WORDS for cell in cells
    )


def _place(rows: list[list[_Cell]]) -> list[list[_Cell | None]]:
    """Return the rows with spans resolved: each covered place holds the cell that
    covers it.

    Where spans would make the grid larger than `MAX_CARRIED` allows, cells no longer go
    on below."""
    allowed = MAX_CARRIED * sum(len(row) for row in rows) + 1000
    carried: dict[int, tuple[_Cell, int]] = {}
    placed: list[list[_Cell | None]] = []
    for row in rows:
        line: list[_Cell | None] = []
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


def _carried(
    line: list[_Cell | None], previous_line: list[_Cell | None]
) -> Iterator[int]:
    pairs = enumerate(zip(line, previous_line, strict=False))
    return (
        column
        for column, (cell, upper_cell) in pairs
        if cell is not None and cell is upper_cell
    )


def _by_column(line: list[_Cell | None], *, is_header: bool) -> tuple[str, ...]:
    """Return the text of each column; a value over several columns is one of each of
    them, as in a rota, but not a label in front (`Total`), a number or a sentence.

    Empty columns at the end are dropped."""
    texts: list[str] = []
    previous: _Cell | None = None
    for cell in line:
        is_again = cell is previous and (
            is_header or cell is line[0] or not _may_be_shared(cell)
        )
        texts.append("" if cell is None or is_again else cell.text)
        previous = cell
    while texts and not texts[-1]:
        texts.pop()
    return tuple(texts)


def _may_be_shared(cell: _Cell | None) -> bool:
    if cell is None or count_words(cell.text) > LABEL_WORDS:
        return False
    return not any(letter.isdigit() for letter in cell.text)


def _header_rows(
    raw: list[tuple[str, Node, bool, list[_Cell]]], placed: list[list[_Cell | None]]
) -> range:
    """Return which rows at the top hold column headers; a title over all columns may be
    above them.

    If every row looks like one, only the first counts, and none in a table of one
    row."""
    width = max((len(row) for row in placed), default=0)
    start = 0
    while start < len(raw) - 2 and _is_title(raw[start][3], width):
        start += 1
    end = start
    while end < len(raw) and _is_header(raw, placed, end, start):
        end += 1
    if end == len(raw):
        end = min(end, start + 1) if len(raw) > start + 1 else start
    return range(start, end) if end > start else range(_unmarked_header(placed))


def _is_title(cells: list[_Cell], width: int) -> bool:
    return (
        width > 1
        and len(cells) == 1
        and bool(cells[0].text)
        and cells[0].is_headlike
        and cells[0].width >= width
    )


def _is_header(
    raw: list[tuple[str, Node, bool, list[_Cell]]],
    placed: list[list[_Cell | None]],
    number: int,
    header_start: int,
) -> bool:
    """Whether a row, all above which are headers from `header_start` on, holds headers as
    well."""
    _, _, in_head, cells = raw[number]
    filled = _filled(cells)
    only_heads = bool(filled) and all(cell.is_head for cell in filled)
    if in_head or (only_heads and len(filled) > 1):
        return True
    if number > header_start:
        spanned = any(cell.height > 1 for cell in filter(None, placed[number]))
        return (only_heads and spanned) or _goes_on(placed[number - 1], placed[number])
    after = raw[number + 1][3] if number + 1 < len(raw) else []
    return _is_bold_header(filled, _filled(after))


def _filled(cells: list[_Cell]) -> list[_Cell]:
    return [cell for cell in cells if cell.text]


def _is_bold_header(row: list[_Cell], next_row: list[_Cell]) -> bool:
    """Whether the filled cells of a first row are headers by their bold print: with a
    cell over several columns, and more than one in the row below, bold as well."""
    wide = any(cell.width > 1 for cell in row)
    return (
        wide
        and len(next_row) > 1
        and all(cell.is_headlike for cell in (*row, *next_row))
    )


def _goes_on(header_row: list[_Cell | None], row: list[_Cell | None]) -> bool:
    """Whether a row names the columns below headers that cover several: labels under
    those, nothing new elsewhere."""
    under = 0
    for column, cell in enumerate(row):
        head = header_row[column] if column < len(header_row) else None
        if cell is None or cell is head or not cell.text:
            continue
        if head is None or not _names_column(cell, head):
            return False
        under += head.width > 1
    return under > 1


def _names_column(cell: _Cell, head: _Cell) -> bool:
    """Whether a cell may be the header of a column below another header."""
    if not (head.width > 1 or not head.text or (head.is_bold and cell.is_bold)):
        return False
    is_short = count_words(cell.text) <= LABEL_WORDS
    return cell.is_headlike or (is_short and not any(map(str.isdigit, cell.text)))


def _unmarked_header(placed: list[list[_Cell | None]]) -> int:
    """Return 1 where the first row reads like headers: short distinct words over
    columns with figures, else 0."""
    if len(placed) < 3 or any(
        cell is not None and cell.is_head for row in placed for cell in row[:1]
    ):
        return 0
    labels = [cell.text if cell else "" for cell in placed[0]]
    if not _are_names(labels):
        return 0
    return int(any(_holds_figures(placed[1:], column) for column in range(len(labels))))


def _are_names(texts: list[str]) -> bool:
    """Whether the texts of a row are short distinct words, two or more."""
    if len(texts) < 2 or not all(texts) or len(set(texts)) < len(texts):
        return False
    return not any(
        count_words(text) > LABEL_WORDS or _has_figures(text) for text in texts
    )


def _holds_figures(rows: list[list[_Cell | None]], column: int) -> bool:
    """Whether more than half of a column's values have figures, of two or more."""
    cells = (row[column] for row in rows if column < len(row))
    values = [cell.text for cell in cells if cell is not None]
    return len(values) > 1 and 2 * sum(map(_has_figures, values)) > len(values)


def _has_figures(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def _headers(placed: list[list[_Cell | None]], heads: range) -> tuple[str, ...]:
    """Return one header a column, the texts of several header rows joined ("" for an
    empty one); none without header rows."""
    if not heads:
        return ()
    width = max(len(row) for row in placed)
    headers: list[str] = []
    for column in range(width):
        texts: list[str] = []
        for row in placed[heads.start : heads.stop]:
            cell = row[column] if column < len(row) else None
            if cell is not None and cell.text and cell.text not in texts:
                texts.append(cell.text)
        headers.append(" ".join(texts))
    return tuple(headers)


def _readable(line: list[_Cell | None], headers: tuple[str, ...]) -> str:
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
