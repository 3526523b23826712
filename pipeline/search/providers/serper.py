"""Searching Google's results through the Serper API; needs a key.

Its error bodies are not documented. Recorded by several users: 403 for a wrong key, 400 with words on credits once they
are used up. Not for: Google's own APIs, which are closed to new customers.
"""

from dataclasses import replace
from datetime import date
from typing import Final

import httpx2

from pipeline.documents import SearchOutcome, SearchQuery, SearchStatus
from pipeline.search.providers.exchange import (
    TIMEOUT,
    Api,
    Request,
    day_of,
    error_text,
    hit,
    rows_of,
    told,
    unmet,
    with_site,
)

ADDRESS: Final = "https://google.serper.dev"
MOST: Final = 100
LONGEST_QUERY: Final = 2_000
_ABLE: Final = frozenset({"freshness", "dates", "language", "region", "paging"})


def _judged(code: int, answer: object) -> SearchStatus | None:
    said = str(error_text(answer)).lower()
    return "quota" if code in (400, 402, 403) and "credit" in said else None


class Serper:
    """A provider over Google's results."""

    def __init__(
        self, client: httpx2.AsyncClient, key: str, *, base_url: str = ADDRESS, timeout: float = TIMEOUT
    ) -> None:
        """Ask with `key`."""
        self._api = Api("serper", client, timeout, key, _judged)
        self._url = f"{base_url.rstrip('/')}/search"
        self._key = key

    @property
    def name(self) -> str:
        """Name in outcomes and errors."""
        return self._api.name

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return one page of results; never raises for what the service does."""
        words, cut = with_site(query, longest=LONGEST_QUERY)
        body: dict[str, object] = {"q": words, "num": min(limit, MOST)}
        if period := _period(query):
            body["tbs"] = period
        if query.language:
            body["hl"] = query.language
        if query.region:
            body["gl"] = query.region.lower()
        if query.page > 1:
            body["page"] = query.page
        answer = await self._api.ask(Request("POST", self._url, {"X-API-KEY": self._key}, body=body))
        if isinstance(answer, SearchOutcome):
            return answer
        rows = rows_of(answer.get("organic"))
        if rows is None:
            return self._api.strange("organic")
        results = []
        for row in rows:
            found = hit(self.name, row, url="link", title="title", snippet=row.get("snippet"))
            results.append(found and replace(found, published=day_of(row.get("date"))))
        return self._api.finished(results, query, limit=limit, notes=told(unmet(query, _ABLE), cut))


def _period(query: SearchQuery) -> str:
    """Return Google's `tbs` for a freshness or for two dates, which it writes month first."""
    if query.since or query.until:
        named = (("cd_min", query.since), ("cd_max", query.until))
        days = [(name, date.fromisoformat(day)) for name, day in named if day]
        return ",".join(["cdr:1", *(f"{name}:{day.month}/{day.day}/{day.year}" for name, day in days)])
    return f"qdr:{query.freshness[0]}" if query.freshness != "any" else ""
