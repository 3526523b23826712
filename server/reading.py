"""What the resources hold: a whole cleaned page, the outline of a tree, the status of this server.

Importing it imports the pipeline. Not for: addresses and registration (`server/resources.py`), which a server needs
before its services are open.
"""

from typing import Final

from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from cache.store import StoreStats
from pipeline.fetch.files import may_open
from pipeline.fetch.handles import find_page
from pipeline.raptor.outline import outline
from pipeline.services import Services
from pipeline.sources import open_tree
from pipeline.text.frame import visible
from pipeline.text.tokens import count_tokens, cut_to_tokens
from pipeline.work import in_thread
from tools.context import MOST_TOKENS

OUTLINE_TOKENS: Final = MOST_TOKENS // 5
"""A tree that needs more is read part by part, by asking it."""


async def read_page(handle: str, services: Services) -> str:
    """Return the whole cleaned page behind `handle`, or its beginning and how to read on."""
    found = await in_thread(find_page, services.stores.pages, handle)
    if found is None or not may_open(found.final_url, services.roots):
        raise ResourceNotFoundError(f"{handle} is unknown or has expired; fetch the page again.")
    document = await services.documents.read(found)
    html = visible(document.html)
    if count_tokens(html) <= MOST_TOKENS:
        return html
    more = f"\n<!-- cut; read the rest part by part with fetch_and_prune_html, sources=['{handle}'] -->"
    return cut_to_tokens(html, MOST_TOKENS - count_tokens(more)) + more


async def read_tree(handle: str, services: Services) -> str:
    """Return the outline of the tree behind `handle`."""
    found = await in_thread(open_tree, handle, services)
    if found is None:
        raise ResourceNotFoundError(f"{handle} is unknown or has expired; call raptor_query with the sources again.")
    return await in_thread(outline, found, max_tokens=OUTLINE_TOKENS)


def status_text(services: Services) -> str:
    """Return models with the reason for each, search providers, folders and cache, as lines a person reads."""
    stores = services.stores.stats()
    return "\n".join(
        [
            *(f"{role}: {reason}" for role, reason in services.model_reasons.items()),
            f"search providers: {', '.join(services.chain.names) or 'none'}",
            f"folders: {', '.join(map(str, services.roots)) or 'none (set WINNOW_FOLDERS)'}",
            *(f"cache {kind}: {store_text(stats)}" for kind, stats in stores.items()),
            f"cache: {cache_trouble(stores) or 'works'}",
        ]
    )


def store_text(stats: StoreStats) -> str:
    """Return what a store holds and how it has fared since this process began, on one line."""
    if stats.away:
        return "not used, answers are worked out anew each time"
    count = f"{'over ' if stats.partial else ''}{stats.entries} entries, {stats.bytes / 1e6:.1f} MB"
    seen = f"{stats.hits} hits, {stats.misses} misses"
    moved = f"{stats.bytes_read / 1e6:.1f} MB read, {stats.bytes_written / 1e6:.1f} MB written"
    trouble = f"; {stats.problems} problems, the last: {stats.last_problem}" if stats.problems else ""
    note = f"; {stats.note}" if stats.note else ""
    return f"{count}; since start {seen}, {moved}{trouble}{note}"


def cache_trouble(stores: dict[str, StoreStats]) -> str:
    """Return what is wrong with the cache on one line, nothing when it works."""
    away = {kind: stats.away for kind, stats in stores.items() if stats.away}
    failed = {kind: stats.last_problem for kind, stats in stores.items() if stats.problems and not stats.away}
    if away:
        return f"NOT USED for {', '.join(away)}; Winnow works on without it. {next(iter(away.values()))}"
    if failed:
        return f"had trouble with {', '.join(failed)}; Winnow worked on without it. {next(iter(failed.values()))}"
    return ""
