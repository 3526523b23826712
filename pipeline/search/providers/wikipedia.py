"""Searching Wikipedia, in any of its languages, through MediaWiki's action API; needs no key.

An error may come with status 200 and stand in the body. The date it gives is that of the last edit, not of publication,
so results carry none. Not for: other wikis, or a page's text.
"""

import html
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

import httpx2

from pipeline.documents import SearchOutcome, SearchQuery, SearchStatus
from pipeline.search.providers.exchange import (
    TIMEOUT,
    Api,
    Request,
    cut_query,
    error_code,
    hit,
    on_site,
    rows_of,
    told,
    unmet,
)

ADDRESS: Final = "https://{language}.wikipedia.org"
AGENT: Final = "winnow-mcp/0.1 (https://github.com/winnow-mcp/winnow)"
"""Wikimedia's policy asks for a name and a way to reach its maker."""
MOST: Final = 100
LONGEST_QUERY: Final = 300
"""Characters; longer searches are refused."""
FALLBACK: Final = "en"
_LANGUAGE: Final = re.compile(r"[a-z]{2,12}(?:-[a-z]{2,12})*")
_SITE: Final = re.compile(r"([a-z-]{2,30})\.wikipedia\.org")
_ABLE: Final = frozenset({"language", "paging"})
_JUDGED: Final[Mapping[str, SearchStatus]] = {
    "ratelimited": "rate_limited",
    "maxlag": "rate_limited",
    "cirrussearch-too-busy-error": "rate_limited",
    "readapidenied": "unauthorized",
    "blocked": "blocked",
}


def _judged(code: int, answer: object) -> SearchStatus | None:
    said = error_code(answer)
    if said:
        return _JUDGED.get(said, "bad_response")
    return "blocked" if code == 403 else None


class Wikipedia:
    """A provider over one Wikipedia a language."""

    def __init__(self, client: httpx2.AsyncClient, *, base_url: str = ADDRESS, timeout: float = TIMEOUT) -> None:
        """Ask at `base_url`, in which `{language}` is replaced."""
        self._api = Api("wikipedia", client, timeout, judge=_judged)
        self._base_url = base_url

    @property
    def name(self) -> str:
        """Name in outcomes and errors."""
        return self._api.name

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return articles of the Wikipedia that the query's site or language names, English where it names none.

        Any other site is `unsupported`: an empty answer would say that there is nothing.
        """
        # Its site names a Wikipedia, and more exactly than the language does
        named = _SITE.fullmatch(query.site.lower().removeprefix("www."))
        wished = named[1] if named else query.language.lower()
        language = wished if _LANGUAGE.fullmatch(wished) else FALLBACK
        base = self._base_url.replace("{language}", language).rstrip("/")
        if not on_site(base, query.site):
            return self._api.failed(
                "unsupported", f"Wikipedia has its own articles only and cannot search {query.site}."
            )
        words, cut = cut_query(query, longest=LONGEST_QUERY)
        parameters = {
            "action": "query",
            "list": "search",
            "srsearch": words,
            "srlimit": str(min(limit, MOST)),
            "sroffset": str((query.page - 1) * min(limit, MOST)),
            "srprop": "snippet",
            "format": "json",
            "formatversion": "2",
        }
        answer = await self._api.ask(Request("GET", f"{base}/w/api.php", {"User-Agent": AGENT}, parameters))
        if isinstance(answer, SearchOutcome):
            return answer
        inner = answer.get("query")
        rows = rows_of(inner.get("search")) if isinstance(inner, dict) else None
        if rows is None:
            return self._api.strange("query.search")
        results = []
        for row in rows:
            title = html.unescape(str(row.get("title") or ""))
            place = f"{base}/wiki/{quote(title.replace(' ', '_'), safe='/:@!$,;()*')}" if title else ""
            found = hit(self.name, {**row, "place": place}, url="place", title="title", snippet=row.get("snippet"))
            results.append(found and replace(found, language=language))
        return self._api.finished(results, query, limit=limit, notes=told(unmet(query, _ABLE), cut))
