"""Searching with the Brave Search API, an index of its own; needs a key.

Its `offset` counts pages, not results, and ends at 9; a wrong key is a 422, not a 401. Not for: its news, image and
answer endpoints.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import httpx2

from pipeline.documents import SearchOutcome, SearchQuery, SearchStatus
from pipeline.search.providers.exchange import (
    TIMEOUT,
    Api,
    Request,
    day_of,
    error_code,
    hit,
    joined,
    rows_of,
    told,
    unmet,
    with_site,
)

ADDRESS: Final = "https://api.search.brave.com/res"
MOST: Final = 20
"""Results of one page."""
LAST_PAGE: Final = 10
LONGEST_QUERY: Final = 400
MOST_WORDS: Final = 50
_ABLE: Final = frozenset({"freshness", "dates", "language", "region", "safe search", "paging"})
_PERIOD: Final = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}
_LANGUAGE: Final = {"zh": "zh-hans", "pt": "pt-pt", "ja": "jp"}
"""Where Brave's code is not the ISO one."""
_JUDGED: Final[Mapping[str, SearchStatus]] = {
    "SUBSCRIPTION_TOKEN_INVALID": "unauthorized",
    "SUBSCRIPTION_NOT_FOUND": "unauthorized",
    "OPTION_NOT_IN_PLAN": "unauthorized",
    "RATE_LIMITED": "rate_limited",
    "QUOTA_LIMITED": "quota",
}


class Brave:
    """A provider over Brave's web search."""

    def __init__(
        self, client: httpx2.AsyncClient, key: str, *, base_url: str = ADDRESS, timeout: float = TIMEOUT
    ) -> None:
        """Ask with `key`; `base_url` is the part before `/v1`."""
        self._api = Api("brave", client, timeout, key, lambda code, answer: _JUDGED.get(error_code(answer)))
        self._url = f"{base_url.rstrip('/')}/v1/web/search"
        self._key = key

    @property
    def name(self) -> str:
        """Name in outcomes and errors."""
        return self._api.name

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return one page of at most 20 results; never raises for what the service does."""
        words, cut = with_site(query, longest=LONGEST_QUERY, words=MOST_WORDS)
        if query.page > LAST_PAGE:
            return self._api.finished([], query, limit=limit, notes=f"Brave has no more than {LAST_PAGE} pages.")
        answer = await self._api.ask(
            Request("GET", self._url, {"X-Subscription-Token": self._key}, _parameters(query, words, limit))
        )
        if isinstance(answer, SearchOutcome):
            return answer
        # Without any hit the member `web` is left out.
        web = answer.get("web", {"results": []})
        rows = rows_of(web.get("results")) if isinstance(web, dict) else None
        if rows is None or answer.get("type") != "search":
            return self._api.strange("web.results")
        results = []
        for row in rows:
            extra = row.get("extra_snippets")
            text = joined([row.get("description"), *(extra if isinstance(extra, list) else [])])
            found = hit(self.name, row, url="url", title="title", snippet=text)
            language = row.get("language")
            spoken = language[:2] if isinstance(language, str) else ""
            results.append(found and replace(found, published=day_of(row.get("page_age")), language=spoken))
        return self._api.finished(results, query, limit=limit, notes=told(unmet(query, _ABLE), cut))


def _parameters(query: SearchQuery, words: str, limit: int) -> dict[str, str]:
    parameters = {"q": words, "count": str(min(limit, MOST)), "text_decorations": "false", "extra_snippets": "true"}
    if query.since or query.until:
        parameters["freshness"] = f"{query.since or '1970-01-01'}to{query.until or '9999-12-31'}"
    elif query.freshness != "any":
        parameters["freshness"] = _PERIOD[query.freshness]
    if query.language:
        parameters["search_lang"] = _LANGUAGE.get(query.language, query.language)
    # Brave's default is the United States.
    parameters["country"] = query.region.upper() or "ALL"
    if query.safe:
        parameters["safesearch"] = query.safe
    if query.page > 1:
        parameters["offset"] = str(query.page - 1)
    return parameters
