"""What a tool takes from its MCP context, and what every answer ends with: the calls that go on from it.

Not a tool itself. Not for: errors and deadlines, which the server puts around every tool (`server/app.py`).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice, repeat
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar

from mcp.server.apps import client_supports_apps
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ResourceLink, TextContent
from pydantic import BaseModel, Field

from errors import UsageError
from pipeline.documents import Document, Evidence, Failure, Page, Reading, SearchOutcome, Trust
from pipeline.evidence.assemble import Assembled
from pipeline.evidence.cite import count_origins
from pipeline.evidence.show import Sheet, shortened
from pipeline.evidence.view import View
from pipeline.fetch.handles import page_handle
from pipeline.gather import failure_line
from pipeline.services import Services
from pipeline.tables.table import Told, cited_row
from pipeline.text.frame import LONGEST, TITLE_TOKENS, address, one_line, quoted
from pipeline.work import Report, in_thread, time_left

PROGRESS_GAP: Final = 0.25
"""Seconds between two progress messages; a client that reads slowly would block the tool otherwise (notes/mcp §4.7)."""
FIRST: Final = 4
"""Of pages linked, failures told, and passages and pages in the structured part. Hosts that show links to the model pay
about 60 tokens for each; the text has all passages."""
MOST_TOKENS: Final = 20_000
"""Largest budget that a call may ask for."""
READERS: Final = ("fetch_and_prune_html", "extract_relevant", "raptor_query")
"""Tools that take sources by name."""
LEAST_TOKENS: Final = 100
"""Tokens below which the frame alone fills an answer."""
BUDGET: Final = Field(description="Token budget; 0: as much as helps.", ge=0, le=MOST_TOKENS)

VIEW: Final = "winnow/view"
"""Name of the desk's part in `_meta` of an answer; in that of a request the desk asks for it."""
TOOL: Final = "winnow/tool"
"""Name of an answer's tool in its `_meta`, for a desk whose host does not tell it."""
TRUST: Final = "Where the words come from; absent for what the page shows"
HIDDEN: Final = "Words that no reader of the page sees, left out"
SPEAKS: Final = "It speaks to a model that reads it, and is data all the same"

ToolContext = Context[Services, object]


class Next(BaseModel):
    """A call that goes on from an answer."""

    tool: str
    arguments: dict[str, object] = Field(description="What changes; the arguments of this call that fit stay")


class Passage(BaseModel):
    """One verbatim passage; its words, page and headings stand in the text part under `label`."""

    label: str = Field(description="Where the text part shows it, such as 1a")
    link: str = Field(description="To be put behind the page's address, so that it opens at these words")
    also: list[str] = Field(default=[], description="Citations of other pages that hold the same words")
    score: float = Field(description="0..1, the best unit of all at 1")
    trust: Trust = Field(default="visible", description=TRUST)
    speaks: bool = Field(default=False, description=SPEAKS)
    is_summary: bool = Field(default=False, description="Extracted or written over several leaves of a tree")
    sources: list[str] = Field(default=[], description="For a summary: citations of what it stands on, at most 8")


class PartFound(BaseModel):
    """How one part of the question stands."""

    question: str
    verdict: str
    label: str = Field(description="Its best passage, empty for none")


class ComputedValue(BaseModel):
    """What was computed over all rows of a table; its words stand in the text part."""

    rows: int = Field(description="Rows that it stands on")
    over: int = Field(description="Rows that were looked at")
    link: str = Field(description="To the first of its rows")


class Quoted(BaseModel):
    """What a result has that shows passages."""

    passages: list[Passage] = Field(description="The evidence; its words stand in the text part under each label")
    pages: list[str] = Field(description="Addresses of pages 1, 2, … of the text part")
    hidden: list[int] = Field(default=[], description=f"Of each page: {HIDDEN}")
    left_out: int = Field(description="Parts worth showing that did not fit")
    failures: list[str] = Field(description="Sources that could not be read, with the reason")
    next: list[Next] = Field(description="Calls that go on from here, best first")
    tokens: int = Field(description="Tokens of the text part")


class Found(Quoted):
    """What a result has that answers a question by passages, or says that none does."""

    answered: bool = Field(description="Whether the passages surely answer")
    verdict: str = Field(description="answered; unsure: the nearest passages, which may not answer; none: no passage")
    reason: str
    confidence: float = Field(description="0..1")
    parts: list[PartFound] = Field(default=[], description="Of a question with several parts each; answered means all")
    computed: list[ComputedValue] = Field(default=[], description="What tables tell, computed over all their rows")
    origins: int = Field(default=0, description="Independent origins of the passages, told where pages share words")


F = TypeVar("F", bound=Found)
P = ParamSpec("P")


def found_in(kind: type[F], reading: Reading, assembled: Assembled, failures: Iterable[Failure], **more: object) -> F:
    """Return what a reading and its passages tell as a result of some kind, with `more` of its fields."""
    fields = {
        "answered": reading.answered,
        "verdict": reading.verdict,
        "reason": reading.reason,
        "confidence": round(reading.confidence, 4),
        "parts": [
            PartFound(question=shortened(one_line(part.question), TITLE_TOKENS), verdict=part.verdict, label=label)
            for part, label in zip(reading.parts, assembled.parts or repeat(""), strict=False)
        ],
        "failures": failures_of(failures),
        "origins": count_origins(assembled.evidence) if any(one.also for one in assembled.evidence) else 0,
    }
    return kind.model_validate(fields | shown_in(assembled) | more)


def shown_in(assembled: Assembled) -> dict[str, object]:
    """Return the fields of a result that tell of passages: the first few, all pages, and how much was left out."""
    pages = [next(own) for _, own in groupby(assembled.evidence, key=lambda one: (one.url, one.title))]
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
            )
            for label, one in told_of(assembled)
        ],
        "pages": [address(one.url) for one in pages],
        "hidden": [one.hidden for one in pages] if any(one.hidden for one in pages) else [],
        "left_out": assembled.left_out,
    }


def told_of(assembled: Assembled) -> list[tuple[str, Evidence]]:
    """Return the passages that the structured part tells of: the first few, and all that are not plainly seen words."""
    shown = enumerate(zip(assembled.shown.labels, assembled.evidence, strict=True))
    return [pair for place, pair in shown if place < FIRST or pair[1].trust != "visible" or pair[1].speaks]


def computed_in(computed: Iterable[Told], documents: Sequence[Document]) -> list[ComputedValue]:
    """Return what tables tell as the structured part has it."""
    return [ComputedValue(rows=len(told.rows), over=told.over, link=cited_row(told, documents)) for told in computed]


def _link(one: Evidence) -> str:
    """Return the fragment of a passage's citation, or the whole citation where it is no fragment of the page."""
    return one.citation.removeprefix(one.url.partition("#")[0])


def check_budget(max_tokens: int) -> None:
    """Refuse a budget that holds no words."""
    if 0 < max_tokens < LEAST_TOKENS:
        raise UsageError(
            f"An answer in max_tokens={max_tokens} has no room for a source and its text.",
            hint=f"Set max_tokens to {LEAST_TOKENS} or more, or leave it out.",
        )


def services_of(ctx: ToolContext) -> Services:
    """Return what the lifespan of the server made, with the time that is left of a call that has waited."""
    services = ctx.request_context.lifespan_context
    return replace(services, seconds=min(services.seconds, time_left()))


def owner_of(ctx: Context[Any, Any]) -> str:
    """Return a digest of whom the token of a call stands for; empty for a call without one."""
    request = ctx.request_context.request
    user = request.scope.get("user") if request is not None else None
    if not isinstance(user, AuthenticatedUser):
        return ""
    return hashlib.blake2b(repr(authorization_context(user)).encode(), digest_size=16).hexdigest()


def reporter(ctx: ToolContext) -> Report:
    """Return a progress function that never goes backwards and skips messages that come too fast."""
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


async def drawn(ctx: Context[Any, Any], make: Callable[P, View], *args: P.args, **kwargs: P.kwargs) -> View | None:
    """Return what `make` gives the desk to draw, which is more than the text says; None where nobody will draw it."""
    wanted = VIEW in (ctx.request_context.meta or {}) or client_supports_apps(ctx)
    return await in_thread(partial(make, *args, **kwargs)) if wanted else None


def answer(text: str, data: BaseModel, *, pages: Iterable[Page] = (), view: View | None = None) -> CallToolResult:
    """Return `text` for readers and `data` for programs, neither repeating the other.

    Fields of `data` at their default are left out. The first few of the `pages` that the answer stands on are linked,
    so that a host can open them whole. `view` is what the desk draws, for clients that show it (`drawn`).
    """
    links = [
        ResourceLink(
            type="resource_link",
            uri=page_handle(page),
            name=address(page.final_url)[:LONGEST],
            mime_type="text/html",
        )
        for page in islice(pages, FIRST)
    ]
    return CallToolResult(
        content=[TextContent(type="text", text=text), *links],
        structured_content=data.model_dump(mode="json", exclude_defaults=True),
        _meta={VIEW: view} if view else None,
    )


def behind(evidence: Iterable[Evidence], documents: Iterable[Document]) -> Iterator[Page]:
    """Yield the pages that passages were taken from, in the order of the documents."""
    urls = {passage.url for passage in evidence}
    return (document.page for document in documents if document.page.final_url in urls)


def larger(tool: str, max_tokens: int) -> list[Next]:
    """Return the running call with twice the budget, where that is still allowed."""
    more = min(2 * max_tokens, MOST_TOKENS)
    return [Next(tool=tool, arguments={"max_tokens": more})] if more > max_tokens else []


def repeated(tool: str, failures: Iterable[Failure], *, beside: Sequence[str] = (), **change: object) -> list[Next]:
    """Return the calls that go on where a source was late (the same: it goes on from the cache, or from the session
    that `change` names) or read in part (its rest, with the sources that stand `beside` it)."""
    failures = list(failures)
    again = [Next(tool=tool, arguments=change)] if any(failure.late for failure in failures) else []
    rest = [failure.rest for failure in failures if failure.rest][:FIRST]
    reader = tool if tool in READERS else READERS[0]
    return again + ([Next(tool=reader, arguments={"sources": [*beside, *rest]})] if rest else [])


def write_next(sheet: Sheet, calls: Sequence[Next], tool: str) -> None:
    """Write the calls that go on from an answer of `tool` on one line, best first, as many as fit."""
    told = [_told(call, tool) for call in calls]
    for count in range(len(told), 0, -1):
        if sheet.add(f"Next: {' | '.join(told[:count])}"):
            return


def _told(call: Next, tool: str) -> str:
    changed = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
    if call.tool != tool:
        return f"{call.tool} with {changed}" if changed else f"{call.tool} with the same question"
    return f"the same call with {changed}" if changed else "the same call again"


def told(outcome: SearchOutcome, mark: str) -> str:
    """Return how a provider answered, its own words for it between marks."""
    return f"{outcome.provider}: {outcome.status} {quoted(outcome.reason, mark)}".strip()


def failures_of(failures: Iterable[Failure]) -> list[str]:
    """Return what could not be read for the structured part, folded and bounded."""
    return list(map(failure_line, islice(failures, 4 * FIRST)))


def tell_notes(sheet: Sheet, pages: Iterable[Page]) -> None:
    """Write what a reader should know of pages: what was left out of them, where their text comes from."""
    for page in islice(pages, FIRST):
        for note in page.notes:
            sheet.add(f"Note on {address(page.final_url)}: {note}")


def tell_rest(sheet: Sheet, failures: Iterable[Failure]) -> None:
    """Write which sources were read in part and can be read on, the first few; for the place before the calls."""
    _tell(sheet, [failure for failure in failures if failure.rest])


def tell_failures(sheet: Sheet, failures: Iterable[Failure]) -> None:
    """Write what else could not be read, the first few."""
    _tell(sheet, [failure for failure in failures if not failure.rest])


def _tell(sheet: Sheet, failures: Sequence[Failure]) -> None:
    for told in failures_of(failures[:FIRST]):
        sheet.add_cut(f"Not read: {told}")
