"""The data tables of a document, with all of their rows.

Not for: reading a table element (`readers/html/table.py`), typing columns
(`columns.py`), or queries (`sql.py`).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cancellation import check_cancelled
from errors import UsageError
from pipeline.text.frame import shown_location
from readers.html.clean import MAX_NODES
from readers.html.document import read_document
from readers.html.guard import MAX_TAGS
from readers.page import Block, Document, kept_with_document, table_of

SECTION: Final = "section"
"""Name of the column that holds the rows across a table, which head the rows below."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equally many cells below named columns."""

    title: str
    """Its caption, or the heading above it; "" without either."""
    columns: tuple[str, ...]
    """As the source names them, "" for a column without a name."""
    rows: Sequence[tuple[str, ...]]
    repeats: bool = False
    """Whether a cell that covers several rows is in each of them."""


def tables_of(document: Document) -> list[Table]:
    """Return the data tables of a document in reading order, without hidden rows.

    Raises `UsageError` where rows of the source were not read: a part of a table would
    answer queries wrongly."""
    page = document.page
    if page.unread and not page.tables_whole:
        reading_on = (
            f" Read on with #{page.rest.rpartition('#')[2]}." if page.rest else ""
        )
        raise UsageError(
            f"Tables of {shown_location(page.final_url)} are not whole: "
            f"not read was {page.unread}.",
            hint="Name a source that is read whole, such as fewer pages of a PDF "
            f"(#pages=1-50).{reading_on}",
        )
    if page.tables:
        return [
            _padded(title, rows)
            for title, rows in json.loads(page.tables)
            if len(rows) > 1
        ]
    if page.html.count("<") > MAX_NODES:  # the last rows of `document` lost their cells
        document = read_document(page, most_nodes=MAX_TAGS)
    return list(_block_tables(document.blocks))


def _padded(title: str, rows: Sequence[Sequence[str]]) -> Table:
    """Return rows of a data file, the first of which names the columns."""
    check_cancelled()
    width = max(map(len, rows))
    names, *body = ((*row, *[""] * (width - len(row))) for row in rows)
    return Table(title, names, [row for row in body if any(row)])


def name_in_sql(number: int) -> str:
    """Return what queries call the table with a number, counted from 1."""
    return f"t{number}"


def rows_around(document: Document, start: int, stop: int) -> int:
    """Return the number of all rows of the table that a stretch of `Document.text` has
    rows of; 0 for other text."""
    for numbers in body_rows(document).values():
        rows = (document.blocks[number] for number in numbers)
        if any(start <= row.start and row.end <= stop for row in rows):
            return len(numbers)
    return 0


@kept_with_document
def body_rows(document: Document) -> dict[str, frozenset[int]]:
    """Return the blocks that are rows of each table below its header, by its path."""
    numbers = {id(block): number for number, block in enumerate(document.blocks)}
    return {
        table_of(body[0]): frozenset(numbers[id(row)] for row in body)
        for _, body in _bodies(document.blocks)
    }


def _block_tables(blocks: Sequence[Block]) -> Iterator[Table]:
    for header, body in _bodies(blocks):
        check_cancelled()
        yield _block_table(header.split(" | ") if header else [], body)


def _bodies(blocks: Sequence[Block]) -> Iterator[tuple[str, list[Block]]]:
    """Yield the header of each table, "" without one, and the rows below it."""
    rows: dict[str, list[Block]] = {}
    for block in blocks:
        if block.kind == "row":
            rows.setdefault(table_of(block), []).append(block)
    for table_rows in rows.values():
        header = next((row.header for row in table_rows if row.header), "")
        body = [row for row in table_rows if _is_body(row, header)]
        if body:
            yield header, body


def _block_table(names: Sequence[str], body: Sequence[Block]) -> Table:
    title, sections = _leads(body)
    width = max(len(names), *(len(row.cells) for row in body))
    columns = (*names, *[""] * (width - len(names)))
    rows = [(*row.cells, *[""] * (width - len(row.cells))) for row in body]
    if any(sections):
        columns = (*columns, SECTION)
        rows = [(*row, section) for row, section in zip(rows, sections, strict=True)]
    path = body[0].heading_path
    return Table(
        title or (path[-1] if path else ""),
        columns,
        rows,
        any(row.carried for row in body),
    )


def _is_body(row: Block, header: str) -> bool:
    """Whether a row is below `header`, and not one across the table, which heads those
    below it, as their lead says."""
    across = bool(header) and row.cells == (row.text,)
    return bool(row.header) == bool(header) and not across


def _leads(rows: Sequence[Block]) -> tuple[str, list[str]]:
    """Return the lines above all of `rows`, which title the table, and of each row the
    first line that is above some only."""
    lead_lines = [
        [line for line in row.lead.split("\n") if line and not line.startswith("| ")]
        for row in rows
    ]
    shared = [
        line for line in lead_lines[0] if all(line in lines for lines in lead_lines)
    ]
    sections = [
        next((line for line in lines if line not in shared), "") for lines in lead_lines
    ]
    return " ".join(shared), sections
