"""Searching with the Tavily API, with a key or, for a few requests, without one.

Used up plans answer 432 (plan) and 433 (pay as you go), which no standard knows. Not for: its extract and crawl
endpoints; pages are read by `pipeline/fetch`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import httpx2

from pipeline.documents import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.search.providers.exchange import TIMEOUT, Api, OneList, Request, day_of, hit

ADDRESS: Final = "https://api.tavily.com"
MOST: Final = 20
"""Results of one request; there are no further pages."""
LONGEST_QUERY: Final = 400
_ABLE: Final = frozenset({"freshness", "dates", "language", "paging"})
_QUOTA: Final = frozenset({432, 433})


def _judged(code: int, answer: object) -> SearchStatus | None:
    return "quota" if code in _QUOTA else None


class Tavily:
    """A provider over Tavily's search."""

    def __init__(
        self, client: httpx2.AsyncClient, key: str = "", *, base_url: str = ADDRESS, timeout: float = TIMEOUT
    ) -> None:
        """Ask with `key`, or in the keyless mode where it is empty."""
        api = Api("tavily" if key else "tavily-keyless", client, timeout, key, _judged)
        self._list = OneList(api, "Tavily", MOST, LONGEST_QUERY, _ABLE, self._request, self._result)
        self._url = f"{base_url.rstrip('/')}/search"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {"X-Tavily-Access-Mode": "keyless"}

    @property
    def name(self) -> str:
        """Name in outcomes and errors."""
        return self._list.api.name

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most 20 results over all pages; never raises for what the service does."""
        return await self._list.search(query, limit=limit)

    def _request(self, query: SearchQuery, words: str, count: int) -> Request:
        body: dict[str, object] = {"query": words, "max_results": count, "search_depth": "basic"}
        if query.since or query.until:
            body |= {name: day for name, day in (("start_date", query.since), ("end_date", query.until)) if day}
        elif query.freshness != "any":
            body["time_range"] = query.freshness
        if query.language:
            body["language"] = query.language
        if query.site:
            body["include_domains"] = [query.site]
        return Request("POST", self._url, self._headers, body=body)

    def _result(self, row: Mapping[str, object]) -> SearchResult | None:
        found = hit(self.name, row, url="url", title="title", snippet=row.get("content"))
        return found and replace(found, published=day_of(row.get("published_date")))
