"""The view of answers: the page that clients with MCP Apps draw answers with, Winnow's
desk (`extras/desk/`).

It gets its data in the `_meta` of a result, which no model reads. Not for: what an
answer says (`pipeline/answer.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from mcp.server.apps import client_supports_apps

from pipeline.work import in_thread
from seams import optional

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

    from pipeline.answer import Answer
    from pipeline.prune.prune import Pruned
    from readers.page import Document

Drawing = dict[str, object]
"""JSON that the page draws."""
VIEW_KEY: Final = "winnow/view"
"""Key of the drawing in `_meta` of a result; in a request it asks for one."""


VIEW_URI: Final = "ui://winnow/desk"
"""The page's resource."""


def view_page() -> Callable[[], str] | None:
    """Return what makes the page as one HTML file; None where this installation lacks
    the desk."""
    return optional("extras.desk.page", "desk_html")


async def draw_evidence(
    ctx: Context[Any, Any], question: str, answer: Answer, max_tokens: int
) -> Drawing | None:
    """Return the drawing of passages, or None if the client shows none."""
    draw = optional("extras.desk.view", "view_evidence")
    if draw is None or not _is_shown(ctx):
        return None
    drawing: Drawing = await in_thread(
        draw,
        question,
        answer.assembled,
        answer.documents,
        answer.reading,
        max_tokens,
    )
    return drawing


async def draw_pages(
    ctx: Context[Any, Any],
    question: str,
    documents: Sequence[Document],
    pruned: Pruned,
) -> Drawing | None:
    """Return the drawing of pages, or None if the client shows none."""
    draw = optional("extras.desk.view", "view_pages")
    if draw is None or not _is_shown(ctx):
        return None
    drawing: Drawing = await in_thread(draw, question, documents, pruned)
    return drawing


def _is_shown(ctx: Context[Any, Any]) -> bool:
    """Return whether the client draws the view, or the request asks for its data."""
    return VIEW_KEY in (ctx.request_context.meta or {}) or client_supports_apps(ctx)
