"""Tables and what is computed of them, as text.

Computed values are in our own line, the page's words in delimiters. Not for:
working it out (`pipeline/tables`)."""

import csv
import io
import json
import re
from collections.abc import Container, Iterable, Sequence
from typing import Final, Literal

from pipeline.document.cite import cite
from pipeline.document.page import Document, Evidence
from pipeline.document.table import TableAnswer
from pipeline.evidence.forms import Form, Line, write
from pipeline.evidence.show import shortened
from pipeline.text.frame import SAID_TOKENS, framed, one_line, quoted, shown_location
from pipeline.text.tokens import count_tokens

_FORMULA: Final = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
    r"[=+\-@|\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]"
)
"""Beginnings of cells that spreadsheets would execute, in wide and small letters and
after invisible ones, too."""
_SIGNED: Final = re.compile(
    r"\s*[+-]\s*[\d.,'\u00a0\u202f ]*\d\s*(?:%|[A-Za-z€$£°]{1,4})?\s*|-+"
)
RowForm = Literal["html", "markdown", "text", "csv", "json"]
VALUE_FORMATS: Final[dict[RowForm, Form]] = {
    "html": "html",
    "markdown": "markdown",
    "text": "text",
}
"""The forms that are not for tables only."""
VALUE_SHARE: Final = 0.6
"""Part of an answer that a computed value may take with its rows: it is what was
asked."""
VALUE_TOKENS: Final = 200
"""Minimum tokens reserved for a computed value and its rows."""
LISTED_ROWS: Final = 5
"""Rows beside those that are quoted up to which they are listed, too; more are
counted."""


def rows_as(
    form: RowForm, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Return rows below the names of their columns, in a form. JSON raises `ValueError`
    for a row of another length."""
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
        [Line("table", header=tuple(map(one_line, columns)), rows=tuple(cleaned))],
        VALUE_FORMATS[form],
    )


def _uncomputed(cell: str) -> str:
    """Return a cell so that a spreadsheet which opens it computes nothing; numbers stay
    numbers."""
    return f"'{cell}" if _FORMULA.match(cell) and not _SIGNED.fullmatch(cell) else cell


def values_text(
    computed: Sequence[TableAnswer],
    documents: Sequence[Document],
    mark: str,
    max_tokens: int,
    shown: Container[tuple[int, int]] = (),
) -> str:
    """Return the text of values computed from tables of `documents`, for an answer of
    `max_tokens`; "" if none fit. Each value gets an equal share of the budget.

    Args:
        mark: The answer's own for untrusted text.
        shown: Blocks shown in the answer, each with its document's index: their rows
            are not repeated.
    """
    lines = (
        _value_text(one, documents, mark, max_tokens // len(computed), shown)
        for one in computed
    )
    return "\n".join(filter(None, lines))


def rows_shown(
    computed: Iterable[TableAnswer],
    documents: Sequence[Document],
    evidence: Iterable[Evidence],
) -> set[tuple[int, int]]:
    """Return the rows of computed values that passages show: document index and block.

    A row counts as shown only where one passage covers it and has all of its cells;
    summaries do not count."""
    passages = [one for one in evidence if not one.is_summary]
    found: set[tuple[int, int]] = set()
    for answer in computed:
        document = documents[answer.document]
        for row in answer.rows:
            place = answer.table.blocks[row]
            block = document.blocks[place]
            cells = [
                one_line(answer.table.rows[row][column]) for column in answer.columns
            ]
            if any(
                one.url == document.page.final_url
                and one.start <= block.start
                and block.end <= one.end
                and all(
                    cell in one.text for cell in cells
                )  # units between the first and the last may be left out
                for one in passages
            ):
                found.add((answer.document, place))
    return found


def _value_text(
    answer: TableAnswer,
    documents: Sequence[Document],
    mark: str,
    max_tokens: int,
    shown: Container[tuple[int, int]],
) -> str:
    page = documents[answer.document].page
    rest = [
        row
        for row in answer.rows
        if (answer.document, answer.table.blocks[row]) not in shown
    ]
    below = len(answer.rows) - len(rest)
    listed = [] if below and len(rest) > LISTED_ROWS else rest
    there = f", {below} of them in passages below" if below else ""
    here = ", the rest here" if below and listed else ""
    where = f"{there}{here}" if rest else " below"
    what = quoted(shortened(answer.what, SAID_TOKENS), mark)
    rows = f"{len(answer.rows)} row{'s' * (len(answer.rows) != 1)}"
    value = (
        answer.value
        if answer.value.replace(".", "").replace("-", "").isdigit()
        else quoted(answer.value, mark)
    )
    head = (
        f"Computed by Winnow over all {answer.over} rows of table {answer.table.number} of "
        f"{shown_location(page.final_url)}: "
        f"{what}{f' = {value}' if value else ''}, from {rows}{where}{':' if listed else '.'}"
    )
    if not listed:
        return head if count_tokens(head) <= int(VALUE_SHARE * max_tokens) else ""
    room = min(
        int(VALUE_SHARE * max_tokens),
        max(VALUE_TOKENS, count_tokens(head) + VALUE_TOKENS // 2),
    )
    names = [answer.table.columns[column] for column in answer.columns]
    cells = [
        [answer.table.rows[row][column] for column in answer.columns] for row in listed
    ]
    for count in range(len(cells), 0, -1):
        more = f"\n(more rows: {len(cells) - count})" if count < len(cells) else ""
        text = f"{head}\n{framed(rows_as('text', names, cells[:count]), mark)}{more}"
        if count_tokens(text) <= room:
            return text
    return ""


def cited_row(answer: TableAnswer, documents: Sequence[Document]) -> str:
    """Return the citation of the first row of a value."""
    document = documents[answer.document]
    block = document.blocks[answer.table.blocks[answer.rows[0]]]
    return cite(document, block.start, block.end)
