"""What a tool takes from its MCP context: the services of the server, and progress at a bearable rate.

Not a tool itself. Not for: errors and deadlines, which the server puts around every tool (`server/app.py`).
"""

from time import monotonic
from typing import Final

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from pipeline.services import Services
from pipeline.work import Report

PROGRESS_GAP: Final = 0.25
"""Seconds between two progress messages; a client that reads slowly would block the tool otherwise (notes/mcp §4.7)."""

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


def answer(text: str, data: BaseModel) -> CallToolResult:
    """Return `text` for readers and `data` for programs; neither repeats the other."""
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=data.model_dump(mode="json")
    )
