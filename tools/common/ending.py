"""How the answers of all tools end, in one order: what can be read on, the calls that
go on from here, what else was not read, notes on pages, their age; and how they are
handed over.

Not for: evidence (`pipeline/evidence`), and what a result says for programs
(`results.py`)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Self

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from errors import narrowed
from pipeline.answer import Answer
from pipeline.evidence.show import FIRST, Sheet
from pipeline.sources.gather import failures_of
from pipeline.tables.table import rows_around
from pipeline.text.frame import failure_text, opened, shown_location
from readers.page import Failure, Page
from tools.common.context import LARGEST_BUDGET
from tools.common.results import Next
from tools.common.view import VIEW_KEY, Drawing

MINUTES_FROM: Final = 60
"""Age in seconds above which it is shown in minutes."""
READERS: Final = ("fetch_and_prune_html", "extract_relevant", "raptor_query")
"""Tools that take sources by name."""
MANY_ROWS: Final = 20
"""Rows from which a table is rather queried than read."""
RESULT: Final = "winnow/result"
"""Key of the result in `_meta`, for hosts, the desk and programs. Clients show `_meta`
to no model."""
TOOL_KEY: Final = "winnow/tool"
"""Key of the tool's name in `_meta`, for hosts that do not pass it to the desk."""


@dataclass(slots=True)
class Ending:
    """The lines after the evidence of an answer: notes, failures, follow-up calls."""

    tool: str
    sheet: Sheet
    following: list[Next]
    """Follow-up calls, best first."""
    failures: Sequence[Failure] = ()
    """Sources that could not be read."""
    pages: Sequence[Page] = ()
    """Pages whose notes are shown."""
    ages: Mapping[str, float] = field(default_factory=dict)
    """Seconds since each was read, by its address; see `Noticing.ages`."""
    answered: bool = False
    """Whether `pages` answer: what others lack is no matter of the text then."""

    @classmethod
    def of(
        cls,
        tool: str,
        answer: Answer,
        following: list[Next],
        ages: Mapping[str, float] | None = None,
    ) -> Self:
        """Return the ending of an answer."""
        urls = {passage.url for passage in answer.assembled.evidence}
        pages = [
            document.page
            for document in answer.documents
            if document.page.final_url in urls
        ]
        return cls(
            tool,
            answer.sheet,
            following,
            answer.failures,
            pages,
            ages or {},
            answer.reading.answered,
        )

    def write(
        self,
        write_lines: Callable[[Sheet], object] | None = None,
        *,
        hinted: bool = True,
    ) -> None:
        """Write as many lines as fit: the follow-up calls if `hinted`, then by
        `write_lines` the tool's own; lines that do not fit are dropped."""
        self._write_unread(in_part=True)
        if hinted:
            write_next(self.sheet, self.following, self.tool)
        if write_lines is not None:
            write_lines(self.sheet)
        self._write_unread(in_part=False)
        for note in notes_of(self.pages):
            self.sheet.add(f"Note on {note}")
        self._write_age()

    def _write_unread(self, *, in_part: bool) -> None:
        """Write what was not read, or read `in_part`, sources with the same reason on
        one line."""
        urls = {page.final_url for page in self.pages}
        sources: dict[str, list[str]] = {}
        for failure in self.failures:
            is_aside = self.answered and failure.page and failure.page not in urls
            if bool(failure.rest) == in_part and not is_aside:
                sources.setdefault(failure.reason, []).append(failure.source)
        for reason, (*others, source) in islice(sources.items(), FIRST):
            named = [*map(shown_location, others[: FIRST - 1])]
            counted = (
                [f"{len(others) - len(named)} more"] if others[FIRST - 1 :] else []
            )
            line = ", ".join((*named, *counted, failure_text(source, reason)))
            self.sheet.add_cut(f"Not read: {line}")

    def _write_age(self) -> None:
        """Write the age of content that came from the cache without revalidation, and
        how to refresh it."""
        ages = [
            self.ages[page.final_url]
            for page in self.pages
            if page.final_url in self.ages
        ]
        if ages:
            oldest = max(ages)
            age = (
                f"{oldest:.0f} s"
                if oldest < MINUTES_FROM
                else f"{oldest / MINUTES_FROM:.0f} min"
            )
            self.sheet.add(f"As read {age} ago; fresh=true reads it again.")

    @property
    def facts(self) -> dict[str, object]:
        """What every result says of its end."""
        return {
            "failures": failures_of(self.failures),
            "next": self.following,
            "tokens": self.sheet.tokens,
        }


def result_of(
    text: str, data: BaseModel, *, view: Drawing | None = None
) -> CallToolResult:
    """Return a tool result: `text` for the model, `data` for programs.

    `data` goes to `_meta`, its fields at their default omitted. There is no structured
    content, which many clients give their model in place of the text, and there are no
    resource links, which they show to it as repeated text.
    `view` is the drawing, of `draw_evidence` or `draw_pages`.
    """
    facts: dict[str, object] = {
        RESULT: data.model_dump(mode="json", exclude_defaults=True)
    }
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        _meta=facts | ({VIEW_KEY: view} if view else {}),
    )


def data_of(result: CallToolResult) -> dict[str, Any]:
    """Return the data of a tool result for programs; {} if none."""
    facts: dict[str, Any] = (result.meta or {}).get(RESULT, {})
    return facts


def notes_of(pages: Iterable[Page]) -> list[str]:
    """Return notes on the first few pages: removed text, origin of the text."""
    return [
        f"{shown_location(page.final_url)}: {narrowed(note)}"
        for page in islice(pages, FIRST)
        for note in page.notes
    ]


def larger(tool: str, max_tokens: int) -> list[Next]:
    """Return this call with twice the budget, if allowed."""
    doubled = min(2 * max_tokens, LARGEST_BUDGET)
    return (
        [Next(tool=tool, arguments={"max_tokens": doubled})]
        if doubled > max_tokens
        else []
    )


def tables_to_query(answer: Answer) -> list[Next]:
    """Return the call that names the tables to query, where the best passage is of one
    with `MANY_ROWS` or more and does not show all."""
    passage = next(iter(answer.assembled.evidence), None)
    document = next(
        (
            document
            for document in answer.documents
            if passage and document.page.final_url == passage.url
        ),
        None,
    )
    if passage is None or document is None or passage.start < 0:
        return []
    rows = rows_around(document, passage.start, passage.end)
    if rows < MANY_ROWS or passage.text.count("\n") >= rows:
        return []
    tables: dict[str, object] = {"sources": [passage.url], "part": "tables"}
    return [Next(tool=READERS[0], arguments=tables)]


def repeated(
    tool: str,
    failures: Iterable[Failure],
    *,
    beside: Sequence[str] = (),
    **change: object,
) -> list[Next]:
    """Return follow-up calls for late sources (repeat: continues from the cache, or the
    session in `change`) and partly read ones (the rest of at most `FIRST`, with the
    sources `beside` it)."""
    failures = list(failures)
    again = (
        [Next(tool=tool, arguments=change)]
        if any(failure.late for failure in failures)
        else []
    )
    unread = [failure.rest for failure in failures if failure.rest][:FIRST]
    reader = tool if tool in READERS else READERS[0]
    return again + (
        [Next(tool=reader, arguments={"sources": [*beside, *unread]})] if unread else []
    )


def write_next(sheet: Sheet, calls: Sequence[Next], tool: str) -> None:
    """Write follow-up calls of `tool` on one line, best first, as many as fit.

    Calls with a long address are in the structured result only, since an address may
    contain sentences.
    """
    calls = [call for call in calls if narrowed(text := _call_text(call, tool)) == text]
    for count in range(len(calls), 0, -1):
        if sheet.add(next_line(calls[:count], tool)):
            return


def next_line(calls: Sequence[Next], tool: str) -> str:
    """Return the line with follow-up calls of `tool`."""
    return f"Next: {' | '.join(_call_text(call, tool) for call in calls)}"


def _call_text(call: Next, tool: str) -> str:
    changed = ", ".join(
        f"{name}={opened(json.dumps(value, ensure_ascii=False))}"
        for name, value in call.arguments.items()
    )
    if call.tool != tool:
        return (
            f"{call.tool} with {changed}"
            if changed
            else f"{call.tool} with the same question"
        )
    return f"the same call with {changed}" if changed else "the same call again"
