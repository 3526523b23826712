"""The search APIs on the web: what sets each apart is a row of a table and the request it wants.

The catalogues of research (`scholarly.py`) are rows of the same form.

Brave has an index of its own; its `offset` counts pages, and a wrong key is a 422. Tavily also
answers a few requests without a key; used-up plans are 432 and 433. Exa gives dates and passages.
Serper brings Google's results; it documents no errors, and users recorded 403 for a wrong key and
400 with words on credits once they are used up. Wikipedia, in any of its languages, needs no key;
an error may come with status 200. Not for: their other endpoints (news, answers, page texts), or
the call itself (`exchange.py`).
"""

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final
from urllib.parse import quote

import anyio
import httpx2

from pipeline.documents import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.fetch.address import names_inside
from pipeline.search.chain import DEADLINE
from pipeline.search.providers.exchange import (
    Exchange,
    Judge,
    Request,
    at,
    day_of,
    error_code,
    error_text,
    hit,
    joined,
    on_site,
    plain_text,
    rows_of,
    sentences,
    unmet,
    words_of,
)

WIKIPEDIA: Final = "https://{language}.wikipedia.org"
AGENT: Final = "winnow-mcp/0.1 (https://github.com/winnow-mcp/winnow)"
"""Wikimedia's policy asks for a name and a way to reach its maker."""
Field = str | Callable[[Mapping[str, object]], object]
"""Where a value stands in a row: a path for `at`, or what works it out."""
_DOI: Final = re.compile(r"10\.\d{4,9}/[-._;()/:a-zA-Z0-9]{1,100}")
LONGEST_AUTHORS: Final = 20
"""Names of authors that are kept; papers of physics have thousands."""


def agent(contact: str) -> str:
    """Return the name we go by, with the address of the person who asks where one is set."""
    return f"{AGENT[:-1]}; mailto:{contact})" if contact else AGENT


@dataclass(frozen=True, slots=True)
class Service:
    """One search API."""

    name: str
    title: str
    address: str
    write: "Callable[[WebApi, SearchQuery, str, int], Request]"
    """Takes who asks, for what, in which words, and how many results are wanted."""
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
    headline: str = "title"
    """Where the title stands in a row; the next ones are told in the same way."""
    url: Field = "url"
    """An address, or a DOI."""
    snippet: tuple[Field, ...] = ()
    """One text or several, or a list of texts."""
    published: str = ""
    language: str = ""
    authors: Field = ""
    """A list of names."""
    doi: str = ""
    retracted: Callable[[Mapping[str, object]], bool] = lambda row: False
    read: Callable[[bytes], object] = json.loads
    """A body as values."""
    pause: float = 0.0
    """Seconds between requests, one at a time, where a service asks for that."""
    keyless: bool = False
    """Whether it has no keys; the mail address of the person who asks then stands where others have
    the key."""


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
        """Ask `service` with the `key` of the person who asks; a keyless service takes their mail
        address in its place.

        `today` turns a freshness into a date where that is all a service knows.
        """
        self.name = service.name if key or service.keyless else f"{service.name}-keyless"
        self._service = service
        self.base = (base_url or service.address).rstrip("/")
        self._exchange = Exchange(
            self.name,
            client,
            timeout,
            key,
            service.judge,
            read=service.read,
            inside=names_inside(self.base),
        )
        self.key = key
        self.today = today
        self._turn = anyio.Lock()
        self._free_at = 0.0

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return one page of results, at most `limit`; never raises for what the service does."""
        service = self._service
        first = 0 if service.pages else (query.page - 1) * limit
        if first >= service.most or 0 < service.pages < query.page:
            end = f"{service.pages} pages" if service.pages else f"{service.most} results"
            notes = f"{service.title} has no more than {end}."
            return self._exchange.finished([], query, limit=limit, notes=notes)
        if query.dois and "dois" not in service.able:
            return self._exchange.failed("unsupported", f"{service.title} is not asked by DOI.")
        operator = "site" not in service.able
        words, cut = words_of(
            query, longest=service.longest, words=service.words, operator=operator
        )
        count = min(first + limit, service.most)
        answer = await self._ask(service.write(self, query, words, count))
        if isinstance(answer, SearchOutcome):
            return answer
        rows = rows_of(service.rows(answer))
        if rows is None:
            return self._exchange.strange()
        notes = sentences(unmet(query, service.able), cut)
        return self._exchange.finished(
            map(self._result, rows[first:]), query, limit=limit, notes=notes
        )

    async def _ask(self, request: Request) -> dict[str, object] | SearchOutcome:
        if not self._service.pause:
            return await self._exchange.ask(request)
        async with self._turn:
            await anyio.sleep_until(self._free_at)
            answer = await self._exchange.ask(request)
            self._free_at = anyio.current_time() + self._service.pause
            return answer

    def _result(self, row: Mapping[str, object]) -> SearchResult | None:
        service = self._service
        url = _value(row, service.url)
        address = f"https://doi.org/{url}" if isinstance(url, str) and _DOI.fullmatch(url) else url
        bare = {"title": at(row, service.headline), "url": address}
        snippet = joined(_value(row, field) for field in service.snippet)
        found = hit(self.name, bare, url="url", snippet=snippet)
        language = at(row, service.language)
        doi = _DOI.search(str(at(row, service.doi) or ""))
        names = _value(row, service.authors)
        authors = (
            [plain_text(name) for name in names[:LONGEST_AUTHORS]]
            if isinstance(names, list)
            else []
        )
        return found and replace(
            found,
            published=day_of(at(row, service.published)),
            language=language[:2] if isinstance(language, str) else "",
            author="; ".join(filter(None, authors)),
            doi=doi[0].lower() if doi else "",
            retracted=service.retracted(row),
        )


def _value(row: Mapping[str, object], field: Field) -> object:
    return at(row, field) if isinstance(field, str) else field(row)


def _given(**fields: object) -> dict[str, object]:
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


def _brave(api: WebApi, query: SearchQuery, words: str, count: int) -> Request:
    between = (
        f"{query.since or '1970-01-01'}to{query.until or '9999-12-31'}"
        if query.since or query.until
        else ""
    )
    wished = _given(
        freshness=between or _BRAVE_PERIOD[query.freshness],
        search_lang=_BRAVE_LANGUAGE.get(query.language, query.language),
        country=query.region.upper() or "ALL",  # its own default is the United States
        safesearch=query.safe,
        offset=query.page - 1,
    )
    fixed = {"q": words, "count": count, "text_decorations": "false", "extra_snippets": "true"}
    sent = {name: str(value) for name, value in {**fixed, **wished}.items()}
    return Request("GET", f"{api.base}/v1/web/search", {"X-Subscription-Token": api.key}, sent)


def _brave_rows(answer: Mapping[str, object]) -> object:
    # Without any hit the member `web` is left out.
    web = answer.get("web", {"results": []})
    return web.get("results") if isinstance(web, dict) and answer.get("type") == "search" else None


# ---- Tavily


def _tavily(api: WebApi, query: SearchQuery, words: str, count: int) -> Request:
    dated = bool(query.since or query.until)
    body = _given(
        query=words,
        max_results=count,
        search_depth="basic",
        start_date=query.since,
        end_date=query.until,
        time_range="" if dated or query.freshness == "any" else query.freshness,
        language=query.language,
        include_domains=[query.site] if query.site else [],
    )
    headers = (
        {"Authorization": f"Bearer {api.key}"} if api.key else {"X-Tavily-Access-Mode": "keyless"}
    )
    return Request("POST", f"{api.base}/search", headers, body=body)


# ---- Exa

_DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}


def since_of(api: WebApi, query: SearchQuery) -> str:
    """Return the first day that `query` wants, for services that know days and no periods; empty
    for any."""
    if query.since or query.until or query.freshness == "any":
        return query.since
    return (api.today() - timedelta(days=_DAYS[query.freshness])).isoformat()


_REFUSED_WORDS: Final = frozenset({"PROHIBITED_CONTENT", "CONTENT_FILTER_ERROR"})
"""Tags of a 403 over the words that were asked for; the key is good for others."""


def _exa(api: WebApi, query: SearchQuery, words: str, count: int) -> Request:
    since = since_of(api, query)
    body = _given(
        query=words,
        type="auto",
        numResults=count,
        contents={"highlights": True},
        startPublishedDate=f"{since}T00:00:00.000Z" if since else "",
        endPublishedDate=f"{query.until}T23:59:59.999Z" if query.until else "",
        userLocation=query.region.upper(),
        includeDomains=[query.site] if query.site else [],
    )
    if query.safe:
        body["moderation"] = query.safe != "off"
    return Request("POST", f"{api.base}/search", {"x-api-key": api.key}, body=body)


# ---- Serper


def _serper(api: WebApi, query: SearchQuery, words: str, count: int) -> Request:
    body = _given(
        q=words,
        num=count,
        tbs=_google_period(query),
        hl=query.language,
        gl=query.region.lower(),
        page=query.page if query.page > 1 else 0,
    )
    return Request("POST", f"{api.base}/search", {"X-API-KEY": api.key}, body=body)


def _google_period(query: SearchQuery) -> str:
    """Return Google's `tbs` for a freshness or for two dates, which it writes month first."""
    if query.since or query.until:
        named = (("cd_min", query.since), ("cd_max", query.until))
        days = [(name, date.fromisoformat(day)) for name, day in named if day]
        return ",".join(
            ["cdr:1", *(f"{name}:{day.month}/{day.day}/{day.year}" for name, day in days)]
        )
    return f"qdr:{query.freshness[0]}" if query.freshness != "any" else ""


SERVICES: Final[dict[str, Service]] = {
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
            judge=lambda code, answer: (
                "bad_response" if code == 403 and error_code(answer) in _REFUSED_WORDS else None
            ),
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
                "quota"
                if code in (400, 402, 403) and "credit" in error_text(answer).lower()
                else None
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
    return _WIKI_JUDGED.get(said, "bad_response") if said else "blocked" if code == 403 else None


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
            self.name, client, timeout, judge=_wiki_judged, inside=names_inside(base_url)
        )
        self._base_url = base_url

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return articles of the Wikipedia that the query's site or language names, English where
        it names none.

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
                f"{base}/wiki/{quote(title.replace(' ', '_'), safe='/:@!$,;()*')}" if title else ""
            )
            found = hit(self.name, {**row, "url": url}, url="url", snippet=row.get("snippet"))
            results.append(found and replace(found, language=language))
        notes = sentences(unmet(query, frozenset({"language", "paging"})), cut)
        return self._exchange.finished(results, query, limit=limit, notes=notes)
