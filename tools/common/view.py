"""The view of answers: the plug-in point for a page that clients with MCP Apps draw
answers with.

Each module of `extras/views/` binds one `View` to `VIEW`, and other wheels add theirs
by entry points of the group `winnow.views`; the first is used. It gets its data in the
`_meta` of a result, which no model reads. Not for: what an answer says (`answer.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp.server.apps import client_supports_apps

from pipeline.work import in_thread
from seams import Seam

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

    from pipeline.document.page import Document
    from pipeline.evidence.assemble import Assembled
    from pipeline.prune.prune import Pruned
    from pipeline.reading.reading import Reading

Drawing = dict[str, object]
"""JSON that the page draws."""
VIEW_KEY: Final = "winnow/view"
"""Key of the drawing in `_meta` of a result; in a request it asks for one."""


@dataclass(frozen=True, slots=True)
class View:
    """One page, and what makes its data."""

    uri: str
    """Its resource, `ui://…`."""
    name: str
    title: str
    html: Callable[[], str]
    """Returns the page as one file."""
    evidence: Callable[
        [str, Assembled, Sequence[Document], Reading | None, int], Drawing
    ]
    """Takes the question, the passages, documents and reading that they are from (None:
    nodes of a tree were scored), and max_tokens."""
    pages: Callable[[str, Sequence[Document], Pruned], Drawing]
    """Takes the question, the documents, and what was kept of them."""


SEAM: Final = Seam(("extras.views",), "VIEW", "winnow.views", View)


@functools.cache
def view() -> View | None:
    """Return the view in use."""
    return next(iter(SEAM.found()), None)


async def draw_evidence(
    ctx: Context[Any, Any],
    question: str,
    assembled: Assembled,
    documents: Sequence[Document],
    reading: Reading | None,
    max_tokens: int,
) -> Drawing | None:
    """Return the drawing of passages, or None if the client shows none."""
    if (used := _wanted(ctx)) is None:
        return None
    return await in_thread(
        used.evidence, question, assembled, documents, reading, max_tokens
    )


async def draw_pages(
    ctx: Context[Any, Any],
    question: str,
    documents: Sequence[Document],
    pruned: Pruned,
) -> Drawing | None:
    """Return the drawing of pages, or None if the client shows none."""
    if (used := _wanted(ctx)) is None:
        return None
    return await in_thread(used.pages, question, documents, pruned)


def _wanted(ctx: Context[Any, Any]) -> View | None:
    asked = VIEW_KEY in (ctx.request_context.meta or {}) or client_supports_apps(ctx)
    return view() if asked else None
