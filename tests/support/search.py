"""Asking a search provider on loopback."""

from collections.abc import Callable
from typing import Final

import anyio
import httpx2

from pipeline.search.chain import Searcher
from pipeline.search.query import SearchOutcome, SearchQuery
from tests.support.model_server import loopback_client

LAKE: Final = SearchQuery("lake orvane")


def ask_once(
    make: Callable[[httpx2.AsyncClient], Searcher],
    query: SearchQuery | None = None,
    *,
    limit: int = 10,
) -> SearchOutcome:
    """Return what the provider that `make` opens answers to a query, `LAKE` by default, over a
    client of its own."""

    async def main() -> SearchOutcome:
        async with loopback_client() as client:
            return await make(client).search(query or LAKE, limit=limit)

    return anyio.run(main)
