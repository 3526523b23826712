"""What a tool takes from its MCP context, and what every answer ends with: the calls that go on from it.

Not a tool itself. Not for: errors and deadlines, which the server puts around every tool (`server/app.py`).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import Final

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ResourceLink, TextContent
from pydantic import BaseModel, Field

from errors import UsageError
from pipeline.documents import Document, Evidence, Failure, Page
from pipeline.evidence.sheet import Sheet
from pipeline.fetch.handles import page_handle
from pipeline.services import Services
from pipeline.text.frame import one_line
from pipeline.work import Report

PROGRESS_GAP: Final = 0.25
"""Seconds between two progress messages; a client that reads slowly would block the tool otherwise (notes/mcp §4.7)."""
MOST_LINKS: Final = 5
"""Pages linked beside the text; hosts that show links to the model pay about 60 tokens for each."""
LONGEST_NAME: Final = 200
LONGEST_REASON: Final = 300
MOST_FAILURES: Final = 20
TOLD_FAILURES: Final = 5
"""Failures that the text names; the structured part has up to `MOST_FAILURES`."""
MOST_TOKENS: Final = 20_000
"""Largest budget that a call may ask for."""

LEAST_TOKENS: Final = 100
"""Tokens below which the frame alone fills an answer."""
BUDGET: Final = Field(description="Token budget; 0 ends where more does not help.", ge=0, le=MOST_TOKENS)

ToolContext = Context[Services, object]


class Next(BaseModel):
    """A call that goes on from an answer."""

    tool: str
    arguments: dict[str, object] = Field(description="What changes; the arguments of this call that fit stay")


def check_budget(max_tokens: int) -> None:
    """Refuse a budget that holds no words.

    Raises:
        UsageError: It is above 0 and below `LEAST_TOKENS`.
    """
    if 0 < max_tokens < LEAST_TOKENS:
        raise UsageError(
            f"An answer in max_tokens={max_tokens} has no room for a source and its text.",
            hint=f"Set max_tokens to {LEAST_TOKENS} or more, or leave it out.",
        )


def services_of(ctx: ToolContext) -> Services:
    """Return what the lifespan of the server made."""
    return ctx.request_context.lifespan_context


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
            name=one_line(page.title)[:LONGEST_NAME] or page.final_url[:LONGEST_NAME],
            description=one_line(page.final_url)[:LONGEST_NAME],
            mime_type="text/html",
        )
        for page in islice(pages, MOST_LINKS)
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
    """Return the running call as it is, where a source was late: it goes on from the cache."""
    return [Next(tool=tool, arguments={})] if any(failure.late for failure in failures) else []


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


def failures_of(failures: Iterable[Failure]) -> list[str]:
    """Return what could not be read for the structured part, folded and bounded."""
    return [
        f"{one_line(f.source)[:LONGEST_NAME]}: {one_line(f.reason)[:LONGEST_REASON]}"
        for f in islice(failures, MOST_FAILURES)
    ]


def tell_failures(sheet: Sheet, failures: Iterable[Failure]) -> None:
    """Write what could not be read, the first few."""
    for told in failures_of(islice(failures, TOLD_FAILURES)):
        sheet.add_cut(f"Not read: {told}")
