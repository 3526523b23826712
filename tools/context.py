"""What a tool takes from its MCP context, and what every answer ends with: the calls that go on from it.

Not a tool itself. Not for: errors and deadlines, which the server puts around every tool (`server/app.py`).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from time import monotonic
from typing import Final, TypeVar

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ResourceLink, TextContent
from pydantic import BaseModel, Field

from errors import UsageError, without_password
from pipeline.documents import Document, Evidence, Failure, Page, Reading, SearchOutcome
from pipeline.evidence.assemble import Assembled
from pipeline.evidence.sheet import Sheet
from pipeline.fetch.handles import page_handle
from pipeline.services import Services
from pipeline.text.frame import LONGEST, address, one_line, quoted
from pipeline.work import Report, time_left

PROGRESS_GAP: Final = 0.25
"""Seconds between two progress messages; a client that reads slowly would block the tool otherwise (notes/mcp §4.7)."""
FIRST: Final = 5
"""Of pages linked, failures told, and passages and pages in the structured part. Hosts that show links to the model pay
about 60 tokens for each; the text has all passages."""
MOST_TOKENS: Final = 20_000
"""Largest budget that a call may ask for."""
FETCH_SHARE: Final = 0.6
"""Part of a call's time that sources may take to arrive."""
MODEL_SHARE: Final = 1 - FETCH_SHARE
"""Part that a generator may take; what it has not done by then is done without it."""
READERS: Final = ("fetch_and_prune_html", "extract_relevant", "raptor_query")
"""Tools that take sources by name."""
LEAST_TOKENS: Final = 100
"""Tokens below which the frame alone fills an answer."""
BUDGET: Final = Field(description="Token budget; 0 ends where more does not help.", ge=0, le=MOST_TOKENS)

ToolContext = Context[Services, object]


class Next(BaseModel):
    """A call that goes on from an answer."""

    tool: str
    arguments: dict[str, object] = Field(description="What changes; the arguments of this call that fit stay")


class Passage(BaseModel):
    """One verbatim passage; its words, page and headings stand in the text part under `label`."""

    label: str = Field(description="Where the text part shows it, such as 1a")
    link: str = Field(description="To be put behind the page's address, so that it opens at these words")
    also: list[str] = Field(description="Citations of other pages that hold the same words")
    score: float = Field(description="0..1, the best unit of all at 1")


class Found(BaseModel):
    """What a result has that answers a question by passages, or says that none does."""

    answered: bool = Field(description="Whether the passages surely answer")
    verdict: str = Field(description="answered; unsure: the nearest passages, which may not answer; none: no passage")
    reason: str
    confidence: float = Field(description="0..1")
    passages: list[Passage] = Field(description="The evidence; its words stand in the text part under each label")
    pages: list[str] = Field(description="Addresses of pages 1, 2, … of the text part")
    left_out: int = Field(description="Scored sentences that did not fit")
    failures: list[str] = Field(description="Sources that could not be read, with the reason")
    next: list[Next] = Field(description="Calls that go on from here, best first")
    tokens: int = Field(description="Tokens of the text part")


F = TypeVar("F", bound=Found)


def found_in(kind: type[F], reading: Reading, assembled: Assembled, failures: Iterable[Failure], **more: object) -> F:
    """Return what a reading and its passages tell as a result of some kind, with `more` of its fields."""
    shown = zip(assembled.shown.labels, assembled.evidence, strict=True)
    fields = {
        "answered": reading.answered,
        "verdict": reading.verdict,
        "reason": reading.reason,
        "confidence": round(reading.confidence, 4),
        "passages": [
            Passage(label=label, link=_link(one), also=list(one.also), score=round(one.score.value, 3))
            for label, one in islice(shown, FIRST)
        ],
        "pages": [address(url) for (url, _), _ in groupby(assembled.evidence, key=lambda one: (one.url, one.title))],
        "left_out": assembled.left_out,
        "failures": failures_of(failures),
    }
    return kind.model_validate(fields | more)


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


def answer(text: str, data: BaseModel, *, pages: Iterable[Page] = ()) -> CallToolResult:
    """Return `text` for readers and `data` for programs, neither repeating the other.

    Args:
        text: What a model reads.
        data: The structured part.
        pages: Pages that the answer stands on; the first few are linked, so that a host can open them whole.
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
        content=[TextContent(type="text", text=text), *links], structured_content=data.model_dump(mode="json")
    )


def behind(evidence: Iterable[Evidence], documents: Iterable[Document]) -> Iterator[Page]:
    """Yield the pages that passages were taken from, in the order of the documents."""
    urls = {passage.url for passage in evidence}
    return (document.page for document in documents if document.page.final_url in urls)


def larger(tool: str, max_tokens: int) -> list[Next]:
    """Return the running call with twice the budget, where that is still allowed."""
    return (
        [Next(tool=tool, arguments={"max_tokens": min(2 * max_tokens, MOST_TOKENS)})]
        if max_tokens < MOST_TOKENS
        else []
    )


def repeated(tool: str, failures: Iterable[Failure]) -> list[Next]:
    """Return the calls that go on where a source was late (the same: it goes on from the cache) or read in part."""
    failures = list(failures)
    again = [Next(tool=tool, arguments={})] if any(failure.late for failure in failures) else []
    rest = [failure.rest for failure in failures if failure.rest][:FIRST]
    reader = tool if tool in READERS else READERS[0]
    return again + ([Next(tool=reader, arguments={"sources": rest})] if rest else [])


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
    return [
        f"{address(f.source)[:LONGEST]}: {without_password(one_line(f.reason))[:LONGEST]}"
        for f in islice(failures, 4 * FIRST)
    ]


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
