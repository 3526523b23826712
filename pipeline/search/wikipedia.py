"""Wikipedia, in any of its languages, without a key; an error may come with status 200.

Not for: being found as a provider (`providers/wikipedia.py`).
"""

import html
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

import httpx2

from pipeline.fetch.address import names_inside
from pipeline.search.chain import DEADLINE
from pipeline.search.exchange import Exchange, hit, on_site, sentences, unmet, words_of
from pipeline.search.provider import Access
from pipeline.search.providers.wikipedia import WIKIPEDIA
from pipeline.search.query import SearchOutcome, SearchQuery, SearchStatus
from pipeline.search.service import Request, agent, error_code, rows_of

_LANGUAGE_CODE: Final = re.compile(r"[a-z]{2,12}(?:-[a-z]{2,12})*")
_WIKIPEDIA_HOST: Final = re.compile(r"([a-z-]{2,30})\.wikipedia\.org")
_WIKI_JUDGED: Final[Mapping[str, SearchStatus]] = {
    "ratelimited": "rate_limited",
    "maxlag": "rate_limited",
    "cirrussearch-too-busy-error": "rate_limited",
    "readapidenied": "unauthorized",
    "blocked": "blocked",
}


def _wiki_judged(code: int, answer: object) -> SearchStatus | None:
    said = error_code(answer)
    return (
        _WIKI_JUDGED.get(said, "bad_response")
        if said
        else "blocked"
        if code == 403
        else None
    )


def made(access: Access) -> "Wikipedia":
    """Return the provider, which names the person's mail address where one is set."""
    return Wikipedia(access.http, access.contact)


class Wikipedia:
    """A provider over one Wikipedia a language, through MediaWiki's action API.

    The date that it gives is that of the last edit, not of publication, so results carry none.
    """

    name: Final = "wikipedia"

    def __init__(
        self,
        client: httpx2.AsyncClient,
        contact: str = "",
        *,
        base_url: str = WIKIPEDIA,
        timeout: float = DEADLINE,
    ) -> None:
        """Ask at `base_url`, in which `{language}` is replaced; `contact` is a mail address to be
        reached at."""
        self._agent = agent(contact)
        self._exchange = Exchange(
            self.name,
            client,
            timeout,
            judge=_wiki_judged,
            inside=names_inside(base_url),
        )
        self._base_url = base_url

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return articles of the Wikipedia that the query's site or language names,
        English where it names none.

        Any other site is `unsupported`: an empty answer would say that there is
        nothing. Nothing is raised for what it does; searches are cut to 300 characters.
        """
        # Its site names a Wikipedia, and more exactly than the language does
        named = _WIKIPEDIA_HOST.fullmatch(query.site.lower().removeprefix("www."))
        wished = named[1] if named else query.language.lower()
        language = wished if _LANGUAGE_CODE.fullmatch(wished) else "en"
        base = self._base_url.replace("{language}", language).rstrip("/")
        if not on_site(base, query.site):
            reason = f"Wikipedia searches only its own articles, not {query.site}."
            return self._exchange.failed("unsupported", reason)
        words, cut = words_of(query, longest=300)  # longer searches are refused
        parameters = {
            "action": "query",
            "list": "search",
            "srsearch": words,
            "srlimit": str(limit),
            "sroffset": str((query.page - 1) * limit),
            "srprop": "snippet",
            "format": "json",
            "formatversion": "2",
        }
        answer = await self._exchange.ask(
            Request("GET", f"{base}/w/api.php", {"User-Agent": self._agent}, parameters)
        )
        if isinstance(answer, SearchOutcome):
            return answer
        inner = answer.get("query")
        rows = rows_of(inner.get("search")) if isinstance(inner, dict) else None
        if rows is None:
            return self._exchange.strange()
        results = []
        for row in rows:
            title = html.unescape(str(row.get("title") or ""))
            url = (
                f"{base}/wiki/{quote(title.replace(' ', '_'), safe='/:@!$,;()*')}"
                if title
                else ""
            )
            found = hit(
                self.name, {**row, "url": url}, url="url", snippet=row.get("snippet")
            )
            results.append(found and replace(found, language=language))
        notes = sentences(unmet(query, frozenset({"language", "paging"})), cut)
        return self._exchange.finished(results, query, limit=limit, notes=notes)
