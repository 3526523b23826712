"""What a tool takes from its MCP context: the services of the server, and progress at a bearable rate.

Not a tool itself. Not for: errors and deadlines, which the server puts around every tool (`server/app.py`).
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from time import monotonic
from typing import Final

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ResourceLink, TextContent
from pydantic import BaseModel

from pipeline.documents import Document, Evidence, Page
from pipeline.fetch.handles import page_handle
from pipeline.frame import one_line
from pipeline.services import Services
from pipeline.work import Report

PROGRESS_GAP: Final = 0.25
"""Seconds between two progress messages; a client that reads slowly would block the tool otherwise (notes/mcp §4.7)."""
MOST_LINKS: Final = 5
"""Pages linked beside the text; hosts that show links to the model pay about 60 tokens for each."""
LONGEST_NAME: Final = 200

ToolContext = Context[Services, object]


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
