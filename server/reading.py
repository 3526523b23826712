"""Content of the MCP resources: cleaned page, outline of a tree, session, server
status.

Importing it imports the pipeline. Not for: addresses and registration
(`server/resources.py`), which a server needs before its services are open."""

from typing import Final

from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from cache.store import cache_trouble, store_text
from errors import SourceNotFound
from pipeline.fetch.files import may_open
from pipeline.fetch.handles import find_page
from pipeline.raptor.overview import outline
from pipeline.raptor.tree import Tree
from pipeline.services import Services
from pipeline.session.export import export, exports
from pipeline.session.session import find_session
from pipeline.sources.gather import open_tree
from pipeline.text.frame import framed, new_mark, notice
from pipeline.text.tokens import count_tokens, cut_to_tokens
from pipeline.work import in_thread
from tools.common.context import LARGEST_BUDGET

OUTLINE_TOKENS: Final = LARGEST_BUDGET // 5
"""Maximum tokens of an outline; larger trees are read by questions."""


async def read_page(handle: str, services: Services) -> str:
    """Return the cleaned page of `handle`, whole or its beginning and how to continue.

    Raises `ResourceNotFoundError` for one that is unknown, expired, or a file outside
    the folders.
    """
    found = await in_thread(find_page, services.stores.pages, handle)
    if found is None or not may_open(found.final_url, services.roots):
        raise ResourceNotFoundError(
            f"{handle} is unknown or has expired; fetch the page again."
        )
    html = (await services.documents.read(found)).html
    if count_tokens(html) <= LARGEST_BUDGET:
        return _quoted(html)
    more = f"Cut; read the rest part by part with fetch_and_prune_html, sources=['{handle}']."
    return (
        f"{_quoted(cut_to_tokens(html, LARGEST_BUDGET - count_tokens(more)))}\n{more}"
    )


async def read_tree(handle: str, services: Services) -> str:
    """Return the outline of the tree of `handle`."""
    return _quoted(
        await in_thread(
            outline, await _tree(handle, services), max_tokens=OUTLINE_TOKENS
        )
    )


async def _tree(handle: str, services: Services) -> Tree:
    try:
        return await in_thread(open_tree, handle, services)
    except SourceNotFound as error:
        raise ResourceNotFoundError(str(error)) from error


async def read_session(
    handle: str, form: str, services: Services, *, owner: str
) -> str:
    """Return a session of `owner` in an export format; Markdown is framed as outside
    text.

    Raises `ResourceNotFoundError` for an unknown or expired session, another owner's,
    one with a file outside the folders, and for an unknown format.
    """
    found = await in_thread(
        find_session, services.stores, handle, owner=owner, roots=services.roots
    )
    if found is None:
        raise ResourceNotFoundError(
            f"{handle} is unknown or has expired. A new session begins with a call of research."
        )
    if form not in exports():
        raise ResourceNotFoundError(
            f"A session has no format {form!r}; its formats: {', '.join(sorted(exports()))}."
        )
    text = await in_thread(export, found, form)
    return _quoted(text) if form == "markdown" else text


def _quoted(text: str) -> str:
    mark = new_mark()
    return f"{notice(mark)}\n{framed(text, mark)}"


def status_text(services: Services) -> str:
    """Return models (with the reason for each), providers, folders and cache as text
    lines."""
    stores = services.stores.stats()
    return "\n".join(
        [
            *(f"{role}: {reason}" for role, reason in services.model_reasons.items()),
            f"search providers: {', '.join(services.chain.names) or 'none'}",
            f"folders: {', '.join(map(str, services.roots)) or 'none (set WINNOW_FOLDERS)'}",
            *(f"cache {kind}: {store_text(stores[kind])}" for kind in stores),
            f"cache: {cache_trouble(stores) or 'works'}",
        ]
    )
