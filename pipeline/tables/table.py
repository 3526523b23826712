"""The data tables of a document: as columns and rows, what they tell of a question, and both as
text.

What we computed stands in a line of ours, the words of the page between marks. Not for: reading a
table element (`pipeline/html/table.py`), or working out what is asked of a table (`query.py`,
`asked.py`).
"""

import csv
import io
import json
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from pipeline.documents import Block, Document, Evidence
from pipeline.evidence.cite import cite
from pipeline.evidence.show import shortened
from pipeline.html.clean import MAX_NODES
from pipeline.prune.forms import Form, Line, write
from pipeline.prune.render import table_of
from pipeline.tables.cells import Value, values_of
from pipeline.text.frame import SAID_TOKENS, framed, one_line, place_of, quoted
from pipeline.text.tokens import count_tokens
from pipeline.text.words import index_terms, meanings
from pipeline.work import check_cancelled

GROUP: Final = "group"
"""Name of the column that holds the rows across a table which head the rows below them."""
KNOWN: Final = 0.9
"""Share of a column's filled cells that are numbers, from which it is one of numbers, and of the
rows asked about that must be plain ones for a value to be computed over all; the others are `n/a`
and `–`."""
EMPTY: Final = frozenset(
    {"", "-", "–", "—", "−", "n/a", "na", "none", "null", "?", "…", "..", "tbd"}
)
"""Cells that say that nothing is known, in lower case."""
_PARTS: Final = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+|[%€$£°]")
_ROWS: Final = re.compile("<tr[ >]", re.IGNORECASE)
READ_ROWS: Final = 0.98
"""Share of a large page's rows that must have been read as rows; the others are empty, or lay
out."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equally many cells below named columns."""

    number: int
    """1-based on its page; 0 for a list that we made."""
    title: str
    """Its caption, or the heading above it."""
    columns: tuple[str, ...]
    """Empty names are `column 3`."""
    rows: tuple[tuple[str, ...], ...]
    blocks: tuple[int, ...] = ()
    """Index into `Document.blocks` of each row; empty for a list that we made."""
    about: str = ""
    """Headings above it."""
    named: bool = True
    """Whether the page names its columns."""
    carried: tuple[tuple[int, ...], ...] = ()
    """Columns of each row whose cell is that of the row above, which covers both; empty where no
    cell covers rows."""

    def cells(self, column: int) -> list[str]:
        """Return the cells of a column, from the top."""
        return [row[column] for row in self.rows]

    def values(self, column: int) -> list[Value | None]:
        """Return the numbers of a column, None for what is none."""
        return list(_values(tuple(self.cells(column))))

    def is_numeric(self, column: int) -> bool:
        """Whether nearly all that a column holds are numbers."""
        filled = [
            place for place, cell in enumerate(self.cells(column)) if cell.lower() not in EMPTY
        ]
        values = self.values(column)
        return bool(filled) and sum(values[place] is not None for place in filled) >= KNOWN * len(
            filled
        )


@dataclass(frozen=True, slots=True)
class Told:
    """What a table tells of a question, computed by us."""

    document: int
    """Place of the table's document among those that were asked."""
    table: Table
    value: str
    """Empty where the rows themselves are the answer."""
    what: str
    """What was computed, in the names of columns: `sum of quantity where city = Porto`."""
    rows: tuple[int, ...]
    """Rows that it stands on; of a choice those chosen."""
    over: int
    """Rows that were looked at."""
    columns: tuple[int, ...]
    """Columns that were used, the one that names the rows first."""
    fit: int = 0
    explained: int = 0
    """Words of the question that name columns or values."""


@lru_cache(maxsize=256)
def _values(cells: tuple[str, ...]) -> tuple[Value | None, ...]:
    return tuple(values_of(cells))


def tables_of(document: Document) -> list[Table]:
    """Return the data tables of a document, in reading order."""
    found: dict[str, list[int]] = {}
    for place, block in enumerate(document.blocks):
        if block.kind == "row":
            found.setdefault(table_of(block), []).append(place)
    return [
        _table(number, document, places) for number, places in enumerate(found.values(), start=1)
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
    blocks = [document.blocks[place] for place in places]
    header = next((block.header for block in blocks if block.header), "")
    names = header.split(" | ") if header else []
    body = [place for place in places if _is_body(document.blocks[place], header)]
    read = [document.blocks[place] for place in body]
    # 1. Columns and cells, as many in each row
    width = max([len(names), *(len(block.cells) for block in read)], default=0)
    columns = [*names, *[""] * (width - len(names))]
    rows = [(*block.cells, *[""] * (width - len(block.cells))) for block in read]
    # 2. What leads all rows is the title, what leads some is their group
    shared, groups = _leads(read)
    if any(groups):
        columns.append(GROUP)
        rows = [(*row, group) for row, group in zip(rows, groups, strict=True)]
    path = blocks[0].heading_path
    carried = tuple(block.carried for block in read)
    return Table(
        number,
        shared or (path[-1] if path else ""),
        tuple(name or f"column {place}" for place, name in enumerate(columns, start=1)),
        tuple(rows),
        tuple(body),
        " ".join(path),
        bool(header),
        carried if any(carried) else (),
    )


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
    shared = [line for line in (leads[0] if leads else []) if all(line in lead for lead in leads)]
    groups = [next((line for line in lead if line not in shared), "") for lead in leads]
    return " ".join(shared), groups


def name_terms(name: str, language: str) -> list[str]:
    """Return the index terms of a name, or of words about it: `per_kg_eur`, `Feb` and `FebMax` as
    people say them."""
    months = meanings("months.short")
    parts = " ".join(months.get(part, part) for part in map(str.lower, _PARTS.findall(name)))
    return index_terms(parts, language=language) or index_terms(
        parts, language=language, keep_stop_words=True
    )


# As text

_FORMULA: Final = re.compile(r"[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20|]")
"""How cells begin that spreadsheets compute, in wide letters too."""
_SIGNED: Final = re.compile(r"\s*[+-]\s*[\d.,'\u00a0\u202f ]*\d\s*(?:%|[A-Za-z€$£°]{1,4})?\s*|-+")
RowForm = Literal["html", "markdown", "text", "csv", "json"]
FORMS: Final[dict[RowForm, Form]] = {"html": "html", "markdown": "markdown", "text": "text"}
"""The forms that are not for tables only."""
SHARE: Final = 0.6
"""Part of an answer that a computed value may take with its rows: it is what was asked."""
MOST: Final = 200
"""The same in tokens."""
LISTED: Final = 5
"""Rows beside those that are quoted up to which they are listed, too; more are counted."""


def rows_as(form: RowForm, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows below the names of their columns, in a form."""
    if form == "json":
        return json.dumps(
            [dict(zip(columns, row, strict=True)) for row in rows], ensure_ascii=False
        )
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            [map(_uncomputed, row) for row in (columns, *rows)]
        )
        return text.getvalue().rstrip("\n")
    cleaned = [tuple(map(one_line, row)) for row in rows]
    return write(
        [Line("table", header=tuple(map(one_line, columns)), rows=tuple(cleaned))], FORMS[form]
    )


def _uncomputed(cell: str) -> str:
    """Return a cell so that a spreadsheet which opens it computes nothing; numbers stay numbers."""
    return f"'{cell}" if _FORMULA.match(cell) and not _SIGNED.fullmatch(cell) else cell


def told_values(
    computed: Sequence[Told],
    documents: Sequence[Document],
    mark: str,
    max_tokens: int,
    shown: Container[tuple[int, int]] = (),
) -> str:
    """Return what tables of `documents` tell, first in an answer of `max_tokens`; empty for none,
    or no room.

    Args:
        mark: The answer's own for untrusted text.
        shown: Blocks that stand below in the answer, each with its document's place: their rows are not repeated.
    """
    told = (
        _told_value(one, documents, mark, max_tokens // len(computed), shown) for one in computed
    )
    return "\n".join(filter(None, told))


def values_room(
    computed: Sequence[Told], documents: Sequence[Document], mark: str, max_tokens: int
) -> int:
    """Return the tokens that `told_values` may take, with the break before it."""
    told = told_values(computed, documents, mark, max_tokens)
    return count_tokens(told) + 1 if told else 0


def rows_shown(
    computed: Iterable[Told], documents: Sequence[Document], evidence: Iterable[Evidence]
) -> set[tuple[int, int]]:
    """Return the blocks of those rows behind values that passages show, each with its document's
    place."""
    passages = [one for one in evidence if not one.is_summary]
    found: set[tuple[int, int]] = set()
    for told in computed:
        document = documents[told.document]
        for row in told.rows:
            place = told.table.blocks[row]
            block = document.blocks[place]
            cells = [one_line(told.table.rows[row][column]) for column in told.columns]
            if any(
                one.url == document.page.final_url
                and one.start <= block.start
                and block.end <= one.end
                and all(
                    cell in one.text for cell in cells
                )  # units between the first and the last may be left out
                for one in passages
            ):
                found.add((told.document, place))
    return found


def _told_value(
    told: Told,
    documents: Sequence[Document],
    mark: str,
    max_tokens: int,
    shown: Container[tuple[int, int]],
) -> str:
    page = documents[told.document].page
    rest = [row for row in told.rows if (told.document, told.table.blocks[row]) not in shown]
    below = len(told.rows) - len(rest)
    where = f", {below} of them below" if below and rest else " below" * (not rest)
    if below and len(rest) > LISTED:
        rest = []
    what = quoted(shortened(told.what, SAID_TOKENS), mark)
    rows = f"{len(told.rows)} row{'s' * (len(told.rows) != 1)}"
    value = (
        told.value
        if told.value.replace(".", "").replace("-", "").isdigit()
        else quoted(told.value, mark)
    )
    head = (
        f"Computed by Winnow over all {told.over} rows of table {told.table.number} of "
        f"{place_of(page.final_url)}: "
        f"{what}{f' = {value}' if value else ''}, from {rows}{where}{':' if rest else '.'}"
    )
    if not rest:
        return head if count_tokens(head) <= int(SHARE * max_tokens) else ""
    room = min(int(SHARE * max_tokens), max(MOST, count_tokens(head) + MOST // 2))
    names = [told.table.columns[column] for column in told.columns]
    cells = [[told.table.rows[row][column] for column in told.columns] for row in rest]
    for count in range(len(cells), 0, -1):
        more = f"\n(and {len(cells) - count} more rows)" if count < len(cells) else ""
        text = f"{head}\n{framed(rows_as('text', names, cells[:count]), mark)}{more}"
        if count_tokens(text) <= room:
            return text
    return ""


def cited_row(told: Told, documents: Sequence[Document]) -> str:
    """Return the citation of the first row that a value stands on."""
    document = documents[told.document]
    block = document.blocks[told.table.blocks[told.rows[0]]]
    return cite(document, block.start, block.end)
