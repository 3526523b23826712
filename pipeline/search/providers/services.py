"""The search APIs on the web: what sets each apart is a row of a table and the request it wants.

Brave has an index of its own; its `offset` counts pages, and a wrong key is a 422. Tavily also answers a few requests
without a key; used-up plans are 432 and 433. Exa gives dates and passages. Serper brings Google's results; it documents
no errors, and users recorded 403 for a wrong key and 400 with words on credits once they are used up. Wikipedia, in any
of its languages, needs no key; an error may come with status 200. Not for: their other endpoints (news, answers, page
texts), or the call itself (`exchange.py`).
"""

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final
from urllib.parse import quote

import httpx2

from pipeline.documents import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.search.chain import DEADLINE
from pipeline.search.providers.exchange import (
    Exchange,
    Judge,
    Request,
    day_of,
    error_code,
    error_text,
    hit,
    joined,
    on_site,
    rows_of,
    sentences,
    unmet,
    words_of,
)

WIKIPEDIA: Final = "https://{language}.wikipedia.org"
AGENT: Final = "winnow-mcp/0.1 (https://github.com/winnow-mcp/winnow)"
"""Wikimedia's policy asks for a name and a way to reach its maker."""


@dataclass(frozen=True, slots=True)
class SearchCall:
    """What a request is written from."""

    query: SearchQuery
    words: str
    count: int
    base: str
    key: str
    today: date


@dataclass(frozen=True, slots=True)
class Service:
    """One search API that takes a key."""

    name: str
    title: str
    address: str
    write: Callable[[SearchCall], Request]
    judge: Judge
    able: frozenset[str]
    """What of a query it honours, in the words of `unmet`."""
    most: int
    """Results of one request."""
    longest: int
    """Characters of a query that it takes."""
    words: int = 1_000
    """Words of a query that it takes."""
    pages: int = 0
    """Pages that it has; without any, a later page is cut from one longer list, up to `most`."""
    rows: Callable[[Mapping[str, object]], object] = lambda answer: answer.get("results")
    """The list of results in an answer."""
    url: str = "url"
    """Field of a row with the address; the next ones are named in the same way."""
    snippet: tuple[str, ...] = ()
    """One text or several, or a list of texts."""
    published: str = ""
    language: str = ""


class WebApi:
    """A provider over one search API."""

    def __init__(
        self,
        service: Service,
        client: httpx2.AsyncClient,
        key: str = "",
        *,
        base_url: str = "",
        timeout: float = DEADLINE,
        today: Callable[[], date] = date.today,
    ) -> None:
        """Ask `service` with `key`.

        Args:
            service: A row of `SERVICES`.
            key: Of the person who asks; only Tavily answers without one.
            today: Turns a freshness into a date where that is all a service knows.
        """
        self.name = service.name if key else f"{service.name}-keyless"
        self._service = service
        self._exchange = Exchange(self.name, client, timeout, key, service.judge)
        self._base = (base_url or service.address).rstrip("/")
        self._key = key
        self._today = today

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return one page of results, at most `limit`; never raises for what the service does."""
        service = self._service
        first = 0 if service.pages else (query.page - 1) * limit
        if first >= service.most or 0 < service.pages < query.page:
            end = f"{service.pages} pages" if service.pages else f"{service.most} results"
            notes = f"{service.title} has no more than {end}."
            return self._exchange.finished([], query, limit=limit, notes=notes)
        operator = "site" not in service.able
        words, cut = words_of(query, longest=service.longest, words=service.words, operator=operator)
        count = min(first + limit, service.most)
        answer = await self._exchange.ask(
            service.write(SearchCall(query, words, count, self._base, self._key, self._today()))
        )
        if isinstance(answer, SearchOutcome):
            return answer
        rows = rows_of(service.rows(answer))
        if rows is None:
            return self._exchange.strange()
        notes = sentences(unmet(query, service.able), cut)
        return self._exchange.finished(map(self._result, rows[first:]), query, limit=limit, notes=notes)

    def _result(self, row: Mapping[str, object]) -> SearchResult | None:
        service = self._service
        found = hit(self.name, row, url=service.url, snippet=joined(map(row.get, service.snippet)))
        language = row.get(service.language)
        spoken = language[:2] if isinstance(language, str) else ""
        return found and replace(found, published=day_of(row.get(service.published)), language=spoken)


def _given(**fields: object) -> dict[str, object]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value}


# ---- Brave

_BRAVE_PERIOD: Final = {"any": "", "day": "pd", "week": "pw", "month": "pm", "year": "py"}
_BRAVE_LANGUAGE: Final = {"zh": "zh-hans", "pt": "pt-pt", "ja": "jp"}
"""Where Brave's code is not the ISO one."""
_BRAVE_JUDGED: Final[Mapping[str, SearchStatus]] = {
    "SUBSCRIPTION_TOKEN_INVALID": "unauthorized",
    "SUBSCRIPTION_NOT_FOUND": "unauthorized",
    "OPTION_NOT_IN_PLAN": "unauthorized",
    "RATE_LIMITED": "rate_limited",
    "QUOTA_LIMITED": "quota",
}


def _brave(call: SearchCall) -> Request:
    query = call.query
    between = f"{query.since or '1970-01-01'}to{query.until or '9999-12-31'}" if query.since or query.until else ""
    wished = _given(
        freshness=between or _BRAVE_PERIOD[query.freshness],
        search_lang=_BRAVE_LANGUAGE.get(query.language, query.language),
        country=query.region.upper() or "ALL",  # its own default is the United States
        safesearch=query.safe,
        offset=query.page - 1,
    )
    fixed = {"q": call.words, "count": call.count, "text_decorations": "false", "extra_snippets": "true"}
    sent = {name: str(value) for name, value in {**fixed, **wished}.items()}
    return Request("GET", f"{call.base}/v1/web/search", {"X-Subscription-Token": call.key}, sent)


def _brave_rows(answer: Mapping[str, object]) -> object:
    # Without any hit the member `web` is left out.
    web = answer.get("web", {"results": []})
    return web.get("results") if isinstance(web, dict) and answer.get("type") == "search" else None


# ---- Tavily


def _tavily(call: SearchCall) -> Request:
    query = call.query
    dated = bool(query.since or query.until)
    body = _given(
        query=call.words,
        max_results=call.count,
        search_depth="basic",
        start_date=query.since,
        end_date=query.until,
        time_range="" if dated or query.freshness == "any" else query.freshness,
        language=query.language,
        include_domains=[query.site] if query.site else [],
    )
    headers = {"Authorization": f"Bearer {call.key}"} if call.key else {"X-Tavily-Access-Mode": "keyless"}
    return Request("POST", f"{call.base}/search", headers, body=body)


# ---- Exa

_DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}
_REFUSED_WORDS: Final = frozenset({"PROHIBITED_CONTENT", "CONTENT_FILTER_ERROR"})
"""Tags of a 403 over the words that were asked for; the key is good for others."""


def _exa(call: SearchCall) -> Request:
    query = call.query
    since = query.since
    if not since and not query.until and query.freshness != "any":
        since = (call.today - timedelta(days=_DAYS[query.freshness])).isoformat()
    body = _given(
        query=call.words,
        type="auto",
        numResults=call.count,
        contents={"highlights": True},
        startPublishedDate=f"{since}T00:00:00.000Z" if since else "",
        endPublishedDate=f"{query.until}T23:59:59.999Z" if query.until else "",
        userLocation=query.region.upper(),
        includeDomains=[query.site] if query.site else [],
    )
    if query.safe:
        body["moderation"] = query.safe != "off"
    return Request("POST", f"{call.base}/search", {"x-api-key": call.key}, body=body)


# ---- Serper


def _serper(call: SearchCall) -> Request:
    query = call.query
    body = _given(
        q=call.words,
        num=call.count,
        tbs=_google_period(query),
        hl=query.language,
        gl=query.region.lower(),
        page=query.page if query.page > 1 else 0,
    )
    return Request("POST", f"{call.base}/search", {"X-API-KEY": call.key}, body=body)


def _google_period(query: SearchQuery) -> str:
    """Return Google's `tbs` for a freshness or for two dates, which it writes month first."""
    if query.since or query.until:
        named = (("cd_min", query.since), ("cd_max", query.until))
        days = [(name, date.fromisoformat(day)) for name, day in named if day]
        return ",".join(["cdr:1", *(f"{name}:{day.month}/{day.day}/{day.year}" for name, day in days)])
    return f"qdr:{query.freshness[0]}" if query.freshness != "any" else ""


SERVICES: Final[Mapping[str, Service]] = {
    service.name: service
    for service in (
        Service(
            name="brave",
            title="Brave",
            address="https://api.search.brave.com/res",
            write=_brave,
            judge=lambda code, answer: _BRAVE_JUDGED.get(error_code(answer)),
            able=frozenset({"freshness", "dates", "language", "region", "safe search", "paging"}),
            most=20,
            longest=400,
            words=50,
            pages=10,
            rows=_brave_rows,
            snippet=("description", "extra_snippets"),
            published="page_age",
            language="language",
        ),
        Service(
            name="tavily",
            title="Tavily",
            address="https://api.tavily.com",
            write=_tavily,
            judge=lambda code, answer: "quota" if code in (432, 433) else None,
            able=frozenset({"freshness", "dates", "language", "site", "paging"}),
            most=20,
            longest=400,
            snippet=("content",),
            published="published_date",
        ),
        Service(
            name="exa",
            title="Exa",
            address="https://api.exa.ai",
            write=_exa,
            judge=lambda code, answer: "bad_response" if code == 403 and error_code(answer) in _REFUSED_WORDS else None,
            able=frozenset({"freshness", "dates", "region", "site", "safe search", "paging"}),
            most=100,
            longest=1_000,
            snippet=("highlights",),
            published="publishedDate",
        ),
        Service(
            name="serper",
            title="Serper",
            address="https://google.serper.dev",
            write=_serper,
            judge=lambda code, answer: (
                "quota" if code in (400, 402, 403) and "credit" in error_text(answer).lower() else None
            ),
            able=frozenset({"freshness", "dates", "language", "region", "paging"}),
            most=100,
            longest=2_000,
            pages=100,
            rows=lambda answer: answer.get("organic"),
            url="link",
            snippet=("snippet",),
            published="date",
        ),
    )
}
"""The APIs that take a key, by name."""


# ---- Wikipedia

_LANGUAGE: Final = re.compile(r"[a-z]{2,12}(?:-[a-z]{2,12})*")
_SITE: Final = re.compile(r"([a-z-]{2,30})\.wikipedia\.org")
_WIKI_JUDGED: Final[Mapping[str, SearchStatus]] = {
    "ratelimited": "rate_limited",
    "maxlag": "rate_limited",
    "cirrussearch-too-busy-error": "rate_limited",
    "readapidenied": "unauthorized",
    "blocked": "blocked",
}


def _wiki_judged(code: int, answer: object) -> SearchStatus | None:
    said = error_code(answer)
    if said:
        return _WIKI_JUDGED.get(said, "bad_response")
    return "blocked" if code == 403 else None


class Wikipedia:
    """A provider over one Wikipedia a language, through MediaWiki's action API.

    The date that it gives is that of the last edit, not of publication, so results carry none.
    """

    name: Final = "wikipedia"

    def __init__(self, client: httpx2.AsyncClient, *, base_url: str = WIKIPEDIA, timeout: float = DEADLINE) -> None:
        """Ask at `base_url`, in which `{language}` is replaced."""
        self._exchange = Exchange(self.name, client, timeout, judge=_wiki_judged)
        self._base_url = base_url

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return articles of the Wikipedia that the query's site or language names, English where it names none.

        Any other site is `unsupported`: an empty answer would say that there is nothing.
        """
        # Its site names a Wikipedia, and more exactly than the language does
        named = _SITE.fullmatch(query.site.lower().removeprefix("www."))
        wished = named[1] if named else query.language.lower()
        language = wished if _LANGUAGE.fullmatch(wished) else "en"
        base = self._base_url.replace("{language}", language).rstrip("/")
        if not on_site(base, query.site):
            reason = f"Wikipedia has its own articles only and cannot search {query.site}."
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
        answer = await self._exchange.ask(Request("GET", f"{base}/w/api.php", {"User-Agent": AGENT}, parameters))
        if isinstance(answer, SearchOutcome):
            return answer
        inner = answer.get("query")
        rows = rows_of(inner.get("search")) if isinstance(inner, dict) else None
        if rows is None:
            return self._exchange.strange()
        results = []
        for row in rows:
            title = html.unescape(str(row.get("title") or ""))
            url = f"{base}/wiki/{quote(title.replace(' ', '_'), safe='/:@!$,;()*')}" if title else ""
            found = hit(self.name, {**row, "url": url}, url="url", snippet=row.get("snippet"))
            results.append(found and replace(found, language=language))
        notes = sentences(unmet(query, frozenset({"language", "paging"})), cut)
        return self._exchange.finished(results, query, limit=limit, notes=notes)
