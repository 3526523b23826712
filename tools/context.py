"""What a tool takes from its MCP context, and what every answer ends with: the calls that go on from it.

Not a tool itself. Not for: errors and deadlines, which the server puts around every tool (`server/app.py`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import monotonic
from typing import Final

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ResourceLink, TextContent
from pydantic import BaseModel, Field

from pipeline.documents import Document, Evidence, Failure, Page
from pipeline.evidence.sheet import Sheet
from pipeline.fetch.handles import page_handle
from pipeline.services import Services
from pipeline.text.frame import one_line
from pipeline.text.tokens import count_tokens
from pipeline.work import Report

PROGRESS_GAP: Final = 0.25
"""Seconds between two progress messages; a client that reads slowly would block the tool otherwise (notes/mcp §4.7)."""
MOST_LINKS: Final = 5
"""Pages linked beside the text; hosts that show links to the model pay about 60 tokens for each."""
LONGEST_NAME: Final = 200
WHOLE_CALL: Final = 80
"""Most tokens of a call written out in the text, where the structured part has it anyway; longer ones are shortened."""
MOST_TOKENS: Final = 20_000
"""Largest budget that a call may ask for."""

ToolContext = Context[Services, object]


class Next(BaseModel):
    """A call that goes on from an answer; its arguments can be sent as they are."""

    tool: str = Field(description="A tool, or resources/read")
    arguments: dict[str, object]
    fill: list[str] = Field(default=[], description="Arguments that are still to be given")


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


def given(ctx: ToolContext) -> dict[str, object]:
    """Return the arguments of this call as the client sent them."""
    params = ctx.request_context.params or {}
    arguments = params.get("arguments")
    return dict(arguments) if isinstance(arguments, Mapping) else {}


def again(ctx: ToolContext, tool: str, **changed: object) -> Next:
    """Return the call that is running, with some arguments changed."""
    return Next(tool=tool, arguments={**given(ctx), **changed})


def larger(ctx: ToolContext, tool: str, max_tokens: int) -> list[Next]:
    """Return the call that is running with twice the budget, where that is still allowed."""
    return [again(ctx, tool, max_tokens=min(2 * max_tokens, MOST_TOKENS))] if max_tokens < MOST_TOKENS else []


def repeated(ctx: ToolContext, tool: str, failures: Iterable[Failure]) -> list[Next]:
    """Return the call that is running, as it is, where a source was late: it goes on from the cache."""
    return [again(ctx, tool)] if any(failure.late for failure in failures) else []


def write_next(sheet: Sheet, calls: Sequence[Next], ctx: ToolContext, *, short: bool = True) -> None:
    """Write the calls that go on from an answer on one line, best first, as many as fit.

    A call is written out where it is no longer than `WHOLE_CALL` and fits. Else, where it is the running call with
    other arguments, only these are named.

    Args:
        sheet: The answer so far.
        calls: Best first.
        ctx: The running call.
        short: Whether the shortened form may be used; not where the text has said the same already.
    """
    ways = [_forms(call, ctx, short=short) for call in calls]
    ways = [forms for forms in ways if forms]
    for count in range(len(ways), 0, -1):
        for form in (0, -1):
            if sheet.add(f"Next: {' | '.join(forms[form] for forms in ways[:count])}"):
                return


def _forms(call: Next, ctx: ToolContext, *, short: bool) -> list[str]:
    """Return the ways to write a call, the whole one first, without those that are too long."""
    arguments = {**call.arguments, **dict.fromkeys(call.fill, "…")}
    forms = [f"{call.tool} {json.dumps(arguments, ensure_ascii=False, separators=(',', ':'))}"]
    own = given(ctx)
    if short and call.tool == (ctx.request_context.params or {}).get("name") and own.keys() <= call.arguments.keys():
        changed = {name: value for name, value in call.arguments.items() if name not in own or own[name] != value}
        told = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in changed.items())
        forms.append(f"the same call with {told}" if told else "the same call again")
    return [form for form in forms if count_tokens(form) <= WHOLE_CALL]
