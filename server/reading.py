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
from pipeline.services import Services
from pipeline.session.export import export, exports
from pipeline.session.session import find_session
from pipeline.sources.gather import open_tree
from pipeline.text.frame import framed, new_delimiter, notice
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
    page = await in_thread(find_page, services.stores.pages, handle)
    if page is None or not may_open(page.final_url, services.roots):
        raise ResourceNotFoundError(
            f"{handle} is unknown or has expired; fetch the page again."
        )
    html = (await services.documents.read(page)).html
    if count_tokens(html) <= LARGEST_BUDGET:
        return _quoted(html)
    hint = f"Cut; read the rest part by part with fetch_and_prune_html, sources=['{handle}']."
    room = LARGEST_BUDGET - count_tokens(hint)
    return f"{_quoted(cut_to_tokens(html, room))}\n{hint}"


async def read_tree(handle: str, services: Services) -> str:
    """Return the outline of the tree of `handle`."""
    try:
        tree = await in_thread(open_tree, handle, services)
    except SourceNotFound as error:
        raise ResourceNotFoundError(str(error)) from error
    return _quoted(await in_thread(outline, tree, max_tokens=OUTLINE_TOKENS))


async def read_session(
    handle: str, form: str, services: Services, *, owner: str
) -> str:
    """Return a session of `owner` in an export format; Markdown is framed as outside
    text.

    Raises `ResourceNotFoundError` for an unknown or expired session, another owner's,
    one with a file outside the folders, and for an unknown format.
    """
    session = await in_thread(
        find_session, services.stores, handle, owner=owner, roots=services.roots
    )
    if session is None:
        raise ResourceNotFoundError(
            f"{handle} is unknown or has expired. A new session begins with a call of research."
        )
    if form not in exports():
        raise ResourceNotFoundError(
            f"A session has no format {form!r}; its formats: {', '.join(sorted(exports()))}."
        )
    text = await in_thread(export, session, form)
    return _quoted(text) if form == "markdown" else text


def _quoted(text: str) -> str:
    delimiter = new_delimiter()
    return f"{notice(delimiter)}\n{framed(text, delimiter)}"


async def status_rows(services: Services) -> dict[str, str]:
    """Return what of the folders is in the index, models (with the reason for each),
    providers and cache, as names and texts."""
    stores = await in_thread(services.stores.stats)
    roots = ", ".join(map(str, services.roots))
    rows = {"folders": roots or "none; winnow folders add DIR"}
    if services.folder is not None:
        rows |= (await services.folder.status()).rows()
    rows |= services.model_reasons
    rows["search providers"] = ", ".join(services.chain.names) or "none"
    rows |= {f"cache {kind}": store_text(stores[kind]) for kind in stores}
    return {**rows, "cache": cache_trouble(stores) or "works"}
