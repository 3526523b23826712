"""Searching with the Exa API, which gives dates and passages; needs a key.

Not for: its answer, research and contents endpoints.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Final

import httpx2

from pipeline.documents import SearchOutcome, SearchQuery
from pipeline.search.exchange import TIMEOUT, Api, Request, cut_query, day_of, hit, joined, rows_of, told, unmet

ADDRESS: Final = "https://api.exa.ai"
MOST: Final = 100
"""Results of one request; there are no further pages, so a later page is cut from one longer list."""
LONGEST_QUERY: Final = 1_000
_ABLE: Final = frozenset({"freshness", "dates", "region", "safe search", "paging"})
_DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}


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
        self._api = Api("exa", client, timeout, key)
        self._url = f"{base_url.rstrip('/')}/search"
        self._key = key
        self._today = today

    @property
    def name(self) -> str:
        """Name in outcomes and errors."""
        return self._api.name

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most 100 results over all pages; never raises for what the service does."""
        first = (query.page - 1) * limit
        if first >= MOST:
            return self._api.finished([], query, limit=limit, notes=f"Exa has no more than {MOST} results.")
        words, cut = cut_query(query, longest=LONGEST_QUERY)
        body = self._body(query, words, min(first + limit, MOST))
        answer = await self._api.ask(Request("POST", self._url, {"x-api-key": self._key}, body=body))
        if isinstance(answer, SearchOutcome):
            return answer
        rows = rows_of(answer.get("results"))
        if rows is None:
            return self._api.strange("results")
        results = []
        for row in rows[first:]:
            best = row.get("highlights")
            text = joined(best) if isinstance(best, list) else ""
            found = hit(self.name, row, url="url", title="title", snippet=text or row.get("text"))
            results.append(found and replace(found, published=day_of(row.get("publishedDate"))))
        return self._api.finished(results, query, limit=limit, notes=told(unmet(query, _ABLE), cut))

    def _body(self, query: SearchQuery, words: str, count: int) -> dict[str, object]:
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
        return body
