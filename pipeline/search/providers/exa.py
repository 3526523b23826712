"""Searching with the Exa API, which gives dates and passages; needs a key.

Not for: its answer, research and contents endpoints.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Final

import httpx2

from pipeline.documents import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.search.providers.exchange import TIMEOUT, Api, OneList, Request, day_of, error_code, hit, joined

ADDRESS: Final = "https://api.exa.ai"
MOST: Final = 100
"""Results of one request; there are no further pages."""
LONGEST_QUERY: Final = 1_000
_ABLE: Final = frozenset({"freshness", "dates", "region", "safe search", "paging"})
_DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}
_REFUSED_QUERY: Final = frozenset({"PROHIBITED_CONTENT", "CONTENT_FILTER_ERROR"})
"""Tags of a 403 over the words that were asked for; the key is good for others."""


def _judged(code: int, answer: object) -> SearchStatus | None:
    return "bad_response" if code == 403 and error_code(answer) in _REFUSED_QUERY else None


class Exa:
    """A provider over Exa's search."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        key: str,
        *,
        today: Callable[[], date] = date.today,
        base_url: str = ADDRESS,
        timeout: float = TIMEOUT,
    ) -> None:
        """Ask with `key`; `today` turns a freshness into a date, which is all that Exa knows."""
        api = Api("exa", client, timeout, key, _judged)
        self._list = OneList(api, "Exa", MOST, LONGEST_QUERY, _ABLE, self._request, _result)
        self._url = f"{base_url.rstrip('/')}/search"
        self._key = key
        self._today = today

    @property
    def name(self) -> str:
        """Name in outcomes and errors."""
        return self._list.api.name

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most 100 results over all pages; never raises for what the service does."""
        return await self._list.search(query, limit=limit)

    def _request(self, query: SearchQuery, words: str, count: int) -> Request:
        body: dict[str, object] = {"query": words, "type": "auto", "numResults": count}
        body["contents"] = {"highlights": True}
        since = query.since
        if not since and not query.until and query.freshness != "any":
            since = (self._today() - timedelta(days=_DAYS[query.freshness])).isoformat()
        if since:
            body["startPublishedDate"] = f"{since}T00:00:00.000Z"
        if query.until:
            body["endPublishedDate"] = f"{query.until}T23:59:59.999Z"
        if query.region:
            body["userLocation"] = query.region.upper()
        if query.site:
            body["includeDomains"] = [query.site]
        if query.safe:
            body["moderation"] = query.safe != "off"
        return Request("POST", self._url, {"x-api-key": self._key}, body=body)


def _result(row: Mapping[str, object]) -> SearchResult | None:
    best = row.get("highlights")
    text = joined(best) if isinstance(best, list) else ""
    found = hit("exa", row, url="url", title="title", snippet=text or row.get("text"))
    return found and replace(found, published=day_of(row.get("publishedDate")))
