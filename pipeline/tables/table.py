"""The data tables of a document, as columns and rows.

Not for: reading a table element (`pipeline/html/table.py`), working out what is asked of a table
(`query.py`), or showing one (`pipeline/evidence/forms.py`).
"""

import re
from collections.abc import Sequence
from typing import Final

from pipeline.document.page import Block, Document, table_of
from pipeline.document.table import GROUP_COLUMN, Table
from pipeline.html.clean import MAX_NODES
from pipeline.text.words import index_terms, meanings
from pipeline.work import check_cancelled

_NAME_PARTS: Final = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+|[%€$£°]")
_ROWS: Final = re.compile("<tr[ >]", re.IGNORECASE)
READ_ROWS: Final = 0.98
"""Share of a large page's rows that must have been read as rows; the others are empty, or lay
out."""


def tables_of(document: Document) -> list[Table]:
    """Return the data tables of a document, in reading order; columns without a name are
    called `column 1` and so on."""
    found: dict[str, list[int]] = {}
    for index, block in enumerate(document.blocks):
        if block.kind == "row":
            found.setdefault(table_of(block), []).append(index)
    return [
        _table(number, document, places)
        for number, places in enumerate(found.values(), start=1)
    ]


def all_rows(document: Document) -> bool:
    """Whether all rows of a document's source were read as rows: of very large ones the last lose
    their form."""
    if document.page.unread and not document.page.tables_whole:
        return False
    html = document.page.html
    read = sum(block.kind == "row" for block in document.blocks)
    return html.count("<") <= MAX_NODES or read >= READ_ROWS * len(_ROWS.findall(html))


def _table(number: int, document: Document, places: Sequence[int]) -> Table:
    check_cancelled()
    blocks = [document.blocks[index] for index in places]
    header = next((block.header for block in blocks if block.header), "")
    names = header.split(" | ") if header else []
    body = [index for index in places if _is_body(document.blocks[index], header)]
    read = [document.blocks[index] for index in body]
    # 1. What leads all rows is the title, what leads some is their group
    shared, groups = _leads(read)
    # 2. Columns and cells, as many in each row
    columns, rows = _columns_and_rows(names, read, groups)
    path = blocks[0].heading_path
    carried = tuple(block.carried for block in read)
    return Table(
        number,
        shared or (path[-1] if path else ""),
        columns,
        rows,
        tuple(body),
        " ".join(path),
        bool(header),
        carried if any(carried) else (),
    )


def _columns_and_rows(
    names: Sequence[str], body: Sequence[Block], groups: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the names of columns, and rows of as many cells; a last column has the
    group of each row, where some have one."""
    width = max([len(names), *(len(block.cells) for block in body)], default=0)
    columns = [*names, *[""] * (width - len(names))]
    rows = [(*block.cells, *[""] * (width - len(block.cells))) for block in body]
    if any(groups):
        columns.append(GROUP_COLUMN)
        rows = [(*row, group) for row, group in zip(rows, groups, strict=True)]
    named = (name or f"column {index}" for index, name in enumerate(columns, start=1))
    return tuple(named), tuple(rows)


def _is_body(block: Block, header: str) -> bool:
    """Whether a block is a row below `header`, and not one across the table, which heads those
    below it, as their lead says."""
    across = bool(header) and block.cells == (block.text,)
    return bool(block.header) == bool(header) and not across


def _leads(rows: Sequence[Block]) -> tuple[str, list[str]]:
    """Return the lines above all of `rows`, and of each row the first line that is above some
    only."""
    leads = [
        [line for line in block.lead.split("\n") if line and not line.startswith("| ")]
        for block in rows
    ]
    shared = [
        line
        for line in (leads[0] if leads else [])
        if all(line in lead for lead in leads)
    ]
    groups = [next((line for line in lead if line not in shared), "") for lead in leads]
    return " ".join(shared), groups


def name_terms(name: str, language: str) -> list[str]:
    """Return the index terms of a name, or of words about it: `per_kg_eur`, `Feb` and `FebMax` as
    people say them."""
    months = meanings("months.short")
    parts = " ".join(
        months.get(part, part) for part in map(str.lower, _NAME_PARTS.findall(name))
    )
    return index_terms(parts, language=language) or index_terms(
        parts, language=language, keep_stop_words=True
    )
