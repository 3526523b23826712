"""Searching a SearXNG instance through its JSON API.

SearXNG answers 200 with no results when every engine behind it was blocked; the reason stands in
`unresponsive_engines`, so an empty list is only "nothing found" when that list is empty too (notes/zeroindex §1,
recorded from a real instance). The base address is a person's own setting and may be loopback. Not for: setting up an
instance.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import httpx2

from pipeline.documents import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.search.providers.exchange import no_answer, on_site, read_body, retry_after, told, unmet, with_site
from pipeline.search.providers.plain import LONGEST_TITLE, iso_day, plain_text, web_address

TIMEOUT: Final = 6.0
"""Seconds; SearXNG gives its engines 3 s by default and answers soon after."""
LONGEST_QUERY: Final = 400
"""Characters sent; the engines behind cut or refuse more."""
SUSPENDED: Final[Mapping[SearchStatus, float]] = {"rate_limited": 180.0, "blocked": 180.0}
"""Seconds an instance, as it comes, rests an engine that said 429 or 403; a CAPTCHA rests an hour, but asking sooner
does no harm."""
_ABLE: Final = frozenset({"freshness", "language", "safe search", "paging"})
_SAFE: Final = {"off": "0", "moderate": "1", "strict": "2"}
_LOCALE: Final = "en"
"""Reasons come in the instance's own language otherwise, and could not be told apart (seen with a German one)."""
_COMMANDS: Final = "!:<"
"""What a word of SearXNG's own query language begins with: `!!g` sends the caller elsewhere, `:de` sets the language,
`<3` the time limit, and each is taken out of the words."""
_STATUS_WORDS: Final[Mapping[str, SearchStatus]] = {
    "captcha": "blocked",
    "access denied": "blocked",
    "cloudflare": "blocked",
    "too many requests": "rate_limited",
    "timeout": "timeout",
    "connection error": "unreachable",
    "network error": "unreachable",
    "proxy error": "unreachable",
}
"""What engines' reasons say, as a status; the first that any of them says counts, since it says most about what to
do."""
_LIMITER: Final = "where its limiter is on, every program is refused until `pass_ip` in its limiter.toml names us"
_JSON_OFF: Final = (
    "its JSON API is switched off: add `json` under `search: formats:` in its settings.yml and restart it"
)


class Searxng:
    """A provider in front of one SearXNG instance."""

    def __init__(
        self, client: httpx2.AsyncClient, base_url: str, *, name: str = "searxng", timeout: float = TIMEOUT
    ) -> None:
        """Ask the instance at `base_url` (without `/search`) through `client`."""
        self._client = client
        self._address = base_url.rstrip("/").removesuffix("/search") + "/search"
        self._name = name
        self._timeout = timeout

    @property
    def name(self) -> str:
        """Name in outcomes and errors."""
        return self._name

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return the first page of results, at most `limit`; never raises for what the instance does."""
        words, cut = with_site(replace(query, text=_without_commands(query.text)), longest=LONGEST_QUERY)
        parameters = {"q": words, "format": "json", "locale": _LOCALE}
        if query.language:
            parameters["language"] = f"{query.language}-{query.region.upper()}" if query.region else query.language
        if query.freshness != "any" and not (query.since or query.until):
            parameters["time_range"] = query.freshness
        if query.safe:
            parameters["safesearch"] = _SAFE[query.safe]
        if query.page > 1:
            parameters["pageno"] = str(query.page)
        try:
            async with self._client.stream("GET", self._address, params=parameters, timeout=self._timeout) as response:
                body = await read_body(response)
        except httpx2.TimeoutException:
            return self._failed("timeout", f"No answer from {self._address} within {self._timeout:g} s.")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return self._failed(*no_answer(self._address, error))
        if response.status_code != 200:
            return self._refused(response, body)
        able = _ABLE | {"region"} if query.language else _ABLE
        return self._answered(body, query, limit, told(unmet(query, able), cut))

    def _failed(self, status: SearchStatus, reason: str, *, retry_after: float | None = None) -> SearchOutcome:
        return SearchOutcome((), self._name, status, reason, retry_after)

    def _refused(self, response: httpx2.Response, body: bytes) -> SearchOutcome:
        """Statuses other than 200, each as a real instance uses it."""
        code = response.status_code
        wait = retry_after(response.headers)
        if code == 429:
            return self._failed(
                "rate_limited", f"The instance limits our requests (429); {_LIMITER}.", retry_after=wait
            )
        if code in (408, 504):
            return self._failed(
                "timeout", f"The instance, or what stands before it, timed out ({code}).", retry_after=wait
            )
        if code == 401:
            return self._failed("unauthorized", "The instance asks for a login (401).")
        if code == 403:
            return self._failed("blocked", f"The instance refuses (403); most likely {_JSON_OFF}.")
        said = plain_text(_error_text(body), longest=200)
        return self._failed("bad_response", f"HTTP {code}{': ' + said if said else ''}.", retry_after=wait)

    def _answered(self, body: bytes, query: SearchQuery, limit: int, notes: str) -> SearchOutcome:
        try:
            answer = json.loads(body)
            rows, silent = answer["results"], answer.get("unresponsive_engines") or []
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            if body.lstrip()[:1] == b"<":
                return self._failed("bad_response", f"HTML came where JSON was asked for; perhaps {_JSON_OFF}.")
            return self._failed("bad_response", "The answer is no SearXNG JSON.")
        if not isinstance(rows, list) or not isinstance(silent, list):
            return self._failed("bad_response", "The answer is no SearXNG JSON.")
        failures = _failures(silent)
        results = self._results([row for row in rows if _lies_on(row, query.site)])[:limit]
        silent_ones = "; ".join(f"{engine}: {reason}" for engine, reason in failures)
        if results:
            reason = f"Some engines failed ({silent_ones})." if failures else ""
            return SearchOutcome(results, self._name, "ok", told(reason, notes))
        if failures:
            status = _status_of([reason for _, reason in failures])
            return self._failed(
                status, f"No engine behind the instance answered ({silent_ones}).", retry_after=SUSPENDED.get(status)
            )
        return self._failed("empty", told("Nothing was found.", notes))

    def _results(self, rows: Sequence[object]) -> tuple[SearchResult, ...]:
        """Rows with an address, in SearXNG's order (its score counts engines and places, not relevance)."""
        results: list[SearchResult] = []
        for row in rows:
            if not isinstance(row, dict) or not (url := web_address(row.get("url"))):
                continue
            engines = row.get("engines") if isinstance(row.get("engines"), list) else [row.get("engine")]
            named = "+".join(filter(None, (plain_text(engine, longest=40) for engine in engines or [])))
            results.append(
                SearchResult(
                    title=plain_text(row.get("title"), longest=LONGEST_TITLE) or url,
                    url=url,
                    snippet=plain_text(row.get("content")),
                    published=iso_day(row.get("publishedDate")),
                    engine=f"{self._name}:{named}" if named else self._name,
                    rank=len(results) + 1,
                )
            )
        return tuple(results)


def _without_commands(text: str) -> str:
    return " ".join(filter(None, (word.lstrip(_COMMANDS) for word in text.split())))


def _lies_on(row: object, site: str) -> bool:
    """Whether a row is of the wished site; engines that know no `site:` operator answer with any."""
    return not site or (isinstance(row, dict) and on_site(web_address(row.get("url")), site))


def _failures(silent: Sequence[object]) -> list[tuple[str, str]]:
    """Engine and reason of each entry of `unresponsive_engines`."""
    pairs = [row for row in silent if isinstance(row, list) and len(row) >= 2]
    return [(plain_text(row[0], longest=40), plain_text(row[1], longest=120)) for row in pairs]


def _status_of(reasons: Sequence[str]) -> SearchStatus:
    """One status for several engines' reasons."""
    told = " ".join(reasons).lower()
    return next((status for words, status in _STATUS_WORDS.items() if words in told), "bad_response")


def _error_text(body: bytes) -> object:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return answer.get("error") if isinstance(answer, dict) else ""
