"""What the resources hold: a whole cleaned page, the outline of a tree, the status of this server.

Not for: their addresses and registration (`server/offers.py`), which a server needs before its services are open.
"""

from typing import Final

from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from pipeline.fetch.handles import find_page
from pipeline.raptor.outline import outline
from pipeline.raptor.tree import find_tree
from pipeline.services import Services
from pipeline.text.frame import visible
from pipeline.text.tokens import count_tokens, cut_to_tokens
from pipeline.work import in_thread
from server.status import status_text

PAGE_TOKENS: Final = 20_000
"""Most tokens of one resource answer; hosts cut larger ones (notes/mcp §2.6)."""
OUTLINE_TOKENS: Final = 4_000


async def read_page(handle: str, services: Services) -> str:
    """Return the whole cleaned page behind `handle`, or its beginning and how to read on.

    Raises:
        ResourceNotFoundError: The handle is unknown or has expired.
    """
    found = await in_thread(find_page, services.stores.pages, handle)
    if found is None:
        raise ResourceNotFoundError(f"{handle} is unknown or has expired; fetch the page again.")
    document = await services.reader.read(found)
    html = visible(document.html)
    if count_tokens(html) <= PAGE_TOKENS:
        return html
    kept = cut_to_tokens(html, PAGE_TOKENS - 60)
    return f"{kept}\n<!-- cut; read the rest part by part with fetch_and_prune_html, sources=['{handle}'] -->"


async def read_tree(handle: str, services: Services) -> str:
    """Return the outline of the tree behind `handle`.

    Raises:
        ResourceNotFoundError: The handle is unknown or has expired.
    """
    found = await in_thread(find_tree, services.stores.trees, handle)
    if found is None:
        raise ResourceNotFoundError(f"{handle} is unknown or has expired; call raptor_query with the sources again.")
    return await in_thread(outline, found, max_tokens=OUTLINE_TOKENS)


async def read_status(services: Services) -> str:
    """Return models, providers and cache of this server."""
    return await in_thread(status_text, services)
