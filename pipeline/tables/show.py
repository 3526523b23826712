"""Tables and what was computed of them as text: rows in Markdown, HTML, CSV, JSON or plain text.

What we computed stands in a line of ours, the words of the page between marks. Not for: computing.
"""

import csv
import io
import json
from collections.abc import Sequence
from typing import Final, Literal

from pipeline.documents import Document
from pipeline.evidence.cite import cite
from pipeline.evidence.show import shortened
from pipeline.prune.forms import Form, Line, write
from pipeline.tables.asked import Told
from pipeline.text.frame import SAID_TOKENS, address, framed, one_line, quoted
from pipeline.text.tokens import count_tokens

RowForm = Literal["html", "markdown", "text", "csv", "json"]
FORMS: Final[dict[RowForm, Form]] = {"html": "html", "markdown": "markdown", "text": "text"}
"""The forms that are not for tables only."""
SHARE: Final = 0.6
"""Part of an answer that a computed value may take with its rows: it is what was asked."""
MOST: Final = 200
"""The same in tokens."""


def rows_as(form: RowForm, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows below the names of their columns, in a form."""
    if form == "json":
        return json.dumps([dict(zip(columns, row, strict=True)) for row in rows], ensure_ascii=False)
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([columns, *rows])
        return text.getvalue().rstrip("\n")
    cleaned = [tuple(map(one_line, row)) for row in rows]
    return write([Line("table", header=tuple(map(one_line, columns)), rows=tuple(cleaned))], FORMS[form])


def told_values(computed: Sequence[Told], documents: Sequence[Document], mark: str, max_tokens: int) -> str:
    """Return what tables of `documents` tell, first in an answer of `max_tokens`; empty for none, or no room.

    `mark` is the answer's own for untrusted text.
    """
    told = (_told_value(one, documents, mark, max_tokens // len(computed)) for one in computed)
    return "\n".join(filter(None, told))


def _told_value(told: Told, documents: Sequence[Document], mark: str, max_tokens: int) -> str:
    page = documents[told.document].page
    what = quoted(shortened(told.what, SAID_TOKENS), mark)
    rows = f"{len(told.rows)} row{'s' * (len(told.rows) != 1)}"
    value = told.value if told.value.replace(".", "").replace("-", "").isdigit() else quoted(told.value, mark)
    head = (
        f"Computed by Winnow over all {told.over} rows of table {told.table.number} of {address(page.final_url)}: "
        f"{what}{f' = {value}' if value else ''}, from {rows}:"
    )
    room = min(int(SHARE * max_tokens), max(MOST, count_tokens(head) + MOST // 2))
    names = [told.table.columns[column] for column in told.columns]
    cells = [[told.table.rows[row][column] for column in told.columns] for row in told.rows]
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
