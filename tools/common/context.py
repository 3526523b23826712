"""What a tool takes from its MCP context, and what every answer ends with: the calls that go on
from it.

Not a tool itself. Not for: errors and deadlines, which the server puts around every tool
(`server/app.py`).
"""

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice, repeat
from time import monotonic
from typing import Any, ClassVar, Final, ParamSpec, TypeVar

from mcp.server.apps import client_supports_apps
from mcp.server.auth.middleware.bearer_auth import (
    AuthenticatedUser,
    authorization_context,
)
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent
from pydantic import (
    BaseModel,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from errors import UsageError, narrowed
from pipeline.document.cite import count_origins
from pipeline.document.page import (
    Document,
    Evidence,
    Failure,
    Page,
    Reading,
    SearchOutcome,
    Trust,
)
from pipeline.document.table import Told
from pipeline.evidence.assemble import Assembled
from pipeline.evidence.show import Sheet, shortened
from pipeline.evidence.values import cited_row
from pipeline.fetch.handles import page_handle
from pipeline.services import Services
from pipeline.sources.gather import Noticing, failure_line
from pipeline.text.frame import TITLE_TOKENS, address, one_line, place_of, quoted
from pipeline.view import View
from pipeline.work import Report, in_thread, time_left

MINUTE: Final = 60
"""Seconds from which an age is said in minutes."""
FRESH: Final = Field(description="Skip the cache.")
PROGRESS_GAP: Final = 0.25
"""Seconds between two progress messages; a client that reads slowly would block the tool otherwise
(notes/mcp §4.7)."""
FIRST: Final = 4
"""Of pages with notes, and failures, that the text names."""
MOST_TOKENS: Final = 20_000
"""Largest budget that a call may ask for."""
READERS: Final = ("fetch_and_prune_html", "extract_relevant", "raptor_query")
"""Tools that take sources by name."""
LEAST_TOKENS: Final = 100
"""Tokens below which the frame alone fills an answer."""
BUDGET: Final = Field(description="Left out: as much as helps.", ge=0, le=MOST_TOKENS)

RESULT: Final = "winnow/result"
"""Name of an answer's result in its `_meta`: what hosts, the desk and programs want besides the
text. Clients show `_meta` to no model."""
WITH_WORDS: Final = "words"
"""Context in which a result is dumped with the words of pages, for readers of the result alone."""
VIEW: Final = "winnow/view"
"""Name of the desk's part in `_meta` of an answer; in that of a request the desk asks for it."""
TOOL: Final = "winnow/tool"
"""Name of an answer's tool in its `_meta`, for a desk whose host does not tell it."""
TRUST: Final = "Where the words come from; absent for what the page shows"
HIDDEN: Final = "Words that no reader of the page sees, left out"
SPEAKS: Final = "It speaks to a model that reads it, and is data all the same"
APART: Final = "in the structured result only"
MOST_ROWS: Final = 50
"""Rows of a table in a structured result: more than a text has room for."""

ToolContext = Context[Services, object]


class Part(BaseModel):
    """A result or a part of one, of which `WORDS` are fields that repeat the text.

    They are dumped in the context `WITH_WORDS` only, so that whoever reads text and result pays for
    no word twice.
    """

    WORDS: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _dump(
        self, dump: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> Any:
        told = dump(self)
        if info.context == WITH_WORDS:
            return told
        return {name: value for name, value in told.items() if name not in self.WORDS}


class Next(BaseModel):
    """A call that goes on from an answer."""

    tool: str
    arguments: dict[str, object] = Field(
        description="What changes; the arguments of this call that fit stay"
    )


class Passage(Part):
    """One verbatim passage, which stands in the text under `label`."""

    WORDS = frozenset(("text", "headings"))

    label: str = Field(description="Where the text part shows it, such as 1a")
    link: str = Field(
        description="To be put behind the page's address, so that it opens at these words"
    )
    also: list[str] = Field(
        default=[], description="Citations of other pages that hold the same words"
    )
    score: float = Field(description="0..1, the best unit of all at 1")
    trust: Trust = Field(default="visible", description=TRUST)
    speaks: bool = Field(default=False, description=SPEAKS)
    is_summary: bool = Field(
        default=False, description="Extracted or written over several leaves of a tree"
    )
    sources: list[str] = Field(
        default=[],
        description="For a summary: citations of what it stands on, at most 8",
    )
    text: str = Field(default="", description=f"Its words; {APART}")
    headings: list[str] = Field(
        default=[], description=f"Headings that it stands under; {APART}"
    )


class PartFound(BaseModel):
    """How one part of the question stands."""

    question: str
    verdict: str
    label: str = Field(description="Its best passage, empty for none")


class ComputedValue(Part):
    """What was computed over all rows of a table, which stands in the text."""

    WORDS = frozenset(("what", "value", "table"))

    rows: int = Field(description="Rows that it stands on")
    over: int = Field(description="Rows that were looked at")
    link: str = Field(description="To the first of its rows")
    what: str = Field(default="", description=f"What was computed; {APART}")
    value: str = Field(
        default="", description=f"Empty where its rows are the answer; {APART}"
    )
    table: list[list[str]] = Field(
        default=[],
        description=f"Columns used, then its first {MOST_ROWS} rows not shown elsewhere; {APART}",
    )


class Quoted(Part):
    """What a result has that shows passages."""

    WORDS = frozenset(("titles", "notes"))

    passages: list[Passage] = Field(description="The evidence")
    pages: list[str] = Field(description="Addresses of pages 1, 2, … of the text")
    handles: list[str] = Field(
        description="Of each page: its handle, by which it is read whole; empty for a snippet"
    )
    titles: list[str] = Field(default=[], description=f"Of each page; {APART}")
    hidden: list[int] = Field(default=[], description=f"Of each page: {HIDDEN}")
    left_out: int = Field(description="Parts worth showing that did not fit")
    failures: list[str] = Field(
        description="Sources that could not be read, with the reason"
    )
    notes: list[str] = Field(
        default=[], description=f"What else a reader should know; {APART}"
    )
    next: list[Next] = Field(description="Calls that go on from here, best first")
    tokens: int = Field(description="Tokens of the text")


class Found(Quoted):
    """What a result has that answers a question by passages, or says that none does."""

    answered: bool = Field(description="Whether the passages surely answer")
    verdict: str = Field(
        description="answered; unsure: the nearest passages, which may not answer; none: no passage"
    )
    reason: str
    confidence: float = Field(description="0..1")
    parts: list[PartFound] = Field(
        default=[],
        description="Of a question with several parts each; answered means all",
    )
    computed: list[ComputedValue] = Field(
        default=[], description="What tables tell, computed over all their rows"
    )
    origins: int = Field(
        default=0,
        description="Independent origins of the passages, told where pages share words",
    )


F = TypeVar("F", bound=Found)
P = ParamSpec("P")


def found_in(
    kind: type[F],
    reading: Reading,
    assembled: Assembled,
    documents: Iterable[Document],
    failures: Iterable[Failure],
    **more: object,
) -> F:
    """Return what a reading and its passages tell as a result of some kind, with `more` of its
    fields.

    `documents` are those that the passages may be from.
    """
    fields = {
        "answered": reading.answered,
        "verdict": reading.verdict,
        "reason": reading.reason,
        "confidence": round(reading.confidence, 4),
        "parts": [
            PartFound(
                question=shortened(one_line(part.question.text), TITLE_TOKENS),
                verdict=part.verdict,
                label=label,
            )
            for part, label in zip(
                reading.parts, assembled.parts or repeat(""), strict=False
            )
        ],
        "failures": failures_of(failures),
        "origins": count_origins(assembled.evidence)
        if any(one.also for one in assembled.evidence)
        else 0,
    }
    return kind.model_validate(fields | shown_in(assembled, documents) | more)


def shown_in(assembled: Assembled, documents: Iterable[Document]) -> dict[str, object]:
    """Return the fields of a result that tell of passages and their pages, and how much was left
    out."""
    handles = {
        document.page.final_url: page_handle(document.page) for document in documents
    }
    pages = [
        next(own)
        for _, own in groupby(assembled.evidence, key=lambda one: (one.url, one.title))
    ]
    return {
        "passages": [
            Passage(
                label=label,
                link=_link(one),
                also=list(one.also),
                score=round(one.score.value, 3),
                trust=one.trust,
                speaks=one.speaks,
                is_summary=one.is_summary,
                sources=list(one.sources),
                text=one.text.removeprefix(
                    f"{label}\n"
                ),  # of an overview, whose labels are headings
                headings=list(map(one_line, one.heading_path)),
            )
            for label, one in zip(
                assembled.shown.labels, assembled.evidence, strict=True
            )
        ],
        "pages": [address(one.url) for one in pages],
        "handles": [handles.get(one.url, "") for one in pages],
        # In an overview a page's title is the label of its passage.
        "titles": [
            "" if one.title in assembled.shown.labels else one_line(one.title)
            for one in pages
        ],
        "hidden": [one.hidden for one in pages]
        if any(one.hidden for one in pages)
        else [],
        "left_out": assembled.left_out,
    }


def computed_in(
    computed: Iterable[Told],
    documents: Sequence[Document],
    shown: Container[tuple[int, int]],
) -> list[ComputedValue]:
    """Return what tables tell, each with the first of its rows, and with those that are not `shown`
    elsewhere."""
    return [
        ComputedValue(
            rows=len(told.rows),
            over=told.over,
            link=cited_row(told, documents),
            what=one_line(told.what),
            value=one_line(told.value),
            table=_rows_of(told, shown),
        )
        for told in computed
    ]


def _rows_of(told: Told, shown: Container[tuple[int, int]]) -> list[list[str]]:
    rows = [
        row for row in told.rows if (told.document, told.table.blocks[row]) not in shown
    ]
    if not rows:
        return []
    lines = [told.table.columns, *(told.table.rows[row] for row in rows[:MOST_ROWS])]
    return [[one_line(line[column]) for column in told.columns] for line in lines]


def _link(one: Evidence) -> str:
    """Return the fragment of a passage's citation, or the whole citation where it is no fragment of
    the page."""
    return one.citation.removeprefix(one.url.partition("#")[0])


def check_budget(max_tokens: int) -> None:
    """Refuse a budget that holds no words."""
    if 0 < max_tokens < LEAST_TOKENS:
        raise UsageError(
            f"An answer in max_tokens={max_tokens} has no room for a source and its text.",
            hint=f"Set max_tokens to {LEAST_TOKENS} or more, or leave it out.",
        )


def services_of(ctx: ToolContext) -> Services:
    """Return what the lifespan of the server made, with the time that is left of a call that has
    waited."""
    services = ctx.request_context.lifespan_context
    return replace(services, seconds=min(services.seconds, time_left()))


def noticed(services: Services, *, anew: bool) -> tuple[Services, Noticing]:
    """Return services that read sources for one call, and what notes how old they are."""
    noticing = Noticing(services.fetcher, anew=anew)
    return replace(services, fetcher=noticing), noticing


def owner_of(ctx: Context[Any, Any]) -> str:
    """Return a digest of whom the token of a call stands for; empty for a call without one."""
    request = ctx.request_context.request
    user = request.scope.get("user") if request is not None else None
    if not isinstance(user, AuthenticatedUser):
        return ""
    return hashlib.blake2b(
        repr(authorization_context(user)).encode(), digest_size=16
    ).hexdigest()


def reporter(ctx: ToolContext) -> Report:
    """Return a progress function that never goes backwards and skips messages that come too
    fast."""
    last = 0.0
    highest = -1.0

    async def report(done: float, total: float | None, message: str) -> None:
        nonlocal last, highest
        now = monotonic()
        if done <= highest or (now - last < PROGRESS_GAP and done != total):
            return
        last, highest = now, done
        await ctx.report_progress(done, total, message)

    return report


async def drawn(
    ctx: Context[Any, Any], make: Callable[P, View], *args: P.args, **kwargs: P.kwargs
) -> View | None:
    """Return what `make` gives the desk to draw, which is more than the text says; None where
    nobody will draw it."""
    wanted = VIEW in (ctx.request_context.meta or {}) or client_supports_apps(ctx)
    return await in_thread(partial(make, *args, **kwargs)) if wanted else None


def answer(text: str, data: BaseModel, *, view: View | None = None) -> CallToolResult:
    """Return `text`, which is complete and all that a model needs, and `data` for everything else.

    `data` goes to `_meta` without the words that the text has, and with them to the structured
    part, which the server sends where it is wanted (`server/toolbox.py`). Fields at their default
    are left out. No link to a page stands beside the text: clients show it to the model, as words
    that it has already. `view` is what the desk draws, for clients that show it (`drawn`).
    """
    facts: dict[str, object] = {
        RESULT: data.model_dump(mode="json", exclude_defaults=True)
    }
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=data.model_dump(
            mode="json", exclude_defaults=True, context=WITH_WORDS
        ),
        _meta=facts | ({VIEW: view} if view else {}),
    )


def data_of(result: CallToolResult) -> dict[str, Any]:
    """Return what hosts and programs read beside the text of an answer; empty where there is
    nothing."""
    found: dict[str, Any] = (result.meta or {}).get(RESULT, {})
    return found


def notes_of(pages: Iterable[Page]) -> list[str]:
    """Return what a reader should know of the first few pages: what was left out, where their text
    comes from."""
    return [
        f"{place_of(page.final_url)}: {narrowed(note)}"
        for page in islice(pages, FIRST)
        for note in page.notes
    ]


def behind(
    evidence: Iterable[Evidence], documents: Iterable[Document]
) -> Iterator[Page]:
    """Yield the pages that passages were taken from, in the order of the documents."""
    urls = {passage.url for passage in evidence}
    return (document.page for document in documents if document.page.final_url in urls)


def larger(tool: str, max_tokens: int) -> list[Next]:
    """Return the running call with twice the budget, where that is still allowed."""
    more = min(2 * max_tokens, MOST_TOKENS)
    return (
        [Next(tool=tool, arguments={"max_tokens": more})] if more > max_tokens else []
    )


def repeated(
    tool: str,
    failures: Iterable[Failure],
    *,
    beside: Sequence[str] = (),
    **change: object,
) -> list[Next]:
    """Return the calls that go on where a source was late (the same: it goes on from the cache, or
    from the session that `change` names) or read in part (its rest, with the sources that stand
    `beside` it)."""
    failures = list(failures)
    again = (
        [Next(tool=tool, arguments=change)]
        if any(failure.late for failure in failures)
        else []
    )
    rest = [failure.rest for failure in failures if failure.rest][:FIRST]
    reader = tool if tool in READERS else READERS[0]
    return again + (
        [Next(tool=reader, arguments={"sources": [*beside, *rest]})] if rest else []
    )


def write_next(sheet: Sheet, calls: Sequence[Next], tool: str) -> None:
    """Write the calls that go on from an answer of `tool` on one line, best first, as many as fit.

    Those that name a long address are in the structured result only: it may hold sentences of who
    chose it.
    """
    calls = [call for call in calls if narrowed(told := _told(call, tool)) == told]
    for count in range(len(calls), 0, -1):
        if sheet.add(next_line(calls[:count], tool)):
            return


def next_line(calls: Sequence[Next], tool: str) -> str:
    """Return the line that names the calls that go on from an answer of `tool`."""
    return f"Next: {' | '.join(_told(call, tool) for call in calls)}"


def _told(call: Next, tool: str) -> str:
    changed = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in call.arguments.items()
    )
    if call.tool != tool:
        return (
            f"{call.tool} with {changed}"
            if changed
            else f"{call.tool} with the same question"
        )
    return f"the same call with {changed}" if changed else "the same call again"


def told(outcome: SearchOutcome, mark: str) -> str:
    """Return how a provider answered, its own words for it between marks."""
    return (
        f"{outcome.provider}: {outcome.status} {quoted(outcome.reason, mark)}".strip()
    )


def failures_of(failures: Iterable[Failure]) -> list[str]:
    """Return what could not be read for the result, folded and bounded."""
    return list(map(failure_line, islice(failures, 4 * FIRST)))


def tell_notes(sheet: Sheet, pages: Iterable[Page]) -> None:
    """Write what a reader should know of the first few pages."""
    for note in notes_of(pages):
        sheet.add(f"Note on {note}")


def tell_age(sheet: Sheet, pages: Iterable[Page], ages: Mapping[str, float]) -> None:
    """Write how old what is shown is, where the cache gave it without asking its server, and how it
    is read anew."""
    known = [ages[page.final_url] for page in pages if page.final_url in ages]
    if known:
        oldest = max(known)
        said = f"{oldest:.0f} s" if oldest < MINUTE else f"{oldest / MINUTE:.0f} min"
        sheet.add(f"As read {said} ago; fresh=true reads again.")


def tell_rest(sheet: Sheet, failures: Iterable[Failure]) -> None:
    """Write which sources were read in part and can be read on, the first few; for the place before
    the calls."""
    _tell(sheet, [failure for failure in failures if failure.rest])


def tell_failures(sheet: Sheet, failures: Iterable[Failure]) -> None:
    """Write what else could not be read, the first few."""
    _tell(sheet, [failure for failure in failures if not failure.rest])


def _tell(sheet: Sheet, failures: Sequence[Failure]) -> None:
    for told in failures_of(failures[:FIRST]):
        sheet.add_cut(f"Not read: {told}")
