"""Searching a SearXNG instance through its JSON API.

SearXNG answers 200 with no results when all of its engines were blocked; the reason is
in `unresponsive_engines`, so an empty list is only "nothing found" when that list is
empty too (recorded from a real instance). The base address is a person's own setting
and may be loopback. Not
for: setting up an instance.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import unquote, urlsplit

import httpx2

from pipeline.fetch.address import names_inside
from pipeline.search.chain import DEADLINE
from pipeline.search.exchange import (
    Exchange,
    day_of,
    hit,
    plain_text,
    sentences,
    unmet,
    words_of,
)
from pipeline.search.provider import Access
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.search.service import Request, rows_of

SUSPENDED: Final[Mapping[SearchStatus, float]] = {
    "rate_limited": 180.0,
    "blocked": 180.0,
}
"""Seconds an instance, as it comes, rests an engine that said 429 or 403; a CAPTCHA
rests an hour, but asking sooner does no harm."""
_SEARXNG_FILTERS: Final = frozenset({"freshness", "language", "safe search", "paging"})
_SAFE_LEVELS: Final = {"off": "0", "moderate": "1", "strict": "2"}
_QUERY_SIGNS: Final = "!:<"
"""What a word of SearXNG's own query language begins with: `!!g` sends the caller
elsewhere, `:de` sets the language, `<3` the time limit, and each is taken out of the
words."""
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
"""What engines' reasons say, as a status; the first that any of them says counts, since
it says most about what to do."""
_SEARXNG_REASONS: Final[dict[SearchStatus, str]] = {
    "rate_limited": "the instance limits our requests; where its limiter is on, every program is "
    "refused until "
    "`pass_ip` in its limiter.toml names us",
    "blocked": "the instance refuses; most likely its JSON API is switched off: add `json` under "
    "`search: formats:` in "
    "its settings.yml and restart it",
}


_REFUSALS: Final[dict[SearchStatus, str]] = {
    "unauthorized": "the name and password in WINNOW_SEARXNG were not accepted"
}


def _basic(login: str) -> str:
    """Return name and password, percent-encoded as in an address, as the header has
    them (RFC 7617)."""
    return b64encode(unquote(login).encode()).decode("ascii")


def made(access: Access) -> "Searxng":
    """Return the provider over the instance of the setting.

    The instance is part of its name: answers are cached by it, and another instance is
    another provider."""
    host = urlsplit(access.address).netloc.rpartition("@")[2]
    return Searxng(access.http, access.address, name=f"searxng {host}")


def _parameters(query: SearchQuery, words: str) -> dict[str, str]:
    """Return the fields of a request for the results of `words`."""
    # Reasons come in the instance's own language without `locale`, and could not be
    # distinguished
    fields = {"q": words, "format": "json", "locale": "en"}
    if query.language:
        region = f"-{query.region.upper()}" if query.region else ""
        fields["language"] = f"{query.language}{region}"
    if query.freshness != "any" and not (query.since or query.until):
        fields["time_range"] = query.freshness
    if query.safe:
        fields["safesearch"] = _SAFE_LEVELS[query.safe]
    if query.page > 1:
        fields["pageno"] = str(query.page)
    return fields


def _with_reasons(silent: Sequence[object]) -> str:
    """Return the engines that failed, each with its reason, from pairs of both."""
    return "; ".join(
        f"{plain_text(row[0], longest=40)}: {plain_text(row[1], longest=120)}"
        for row in silent
        if isinstance(row, list) and len(row) >= 2
    )


class Searxng:
    """A provider in front of one SearXNG instance."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        base_url: str,
        *,
        name: str = "searxng",
        timeout: float = DEADLINE,
    ) -> None:
        """Ask the instance at `base_url` (without `/search`, with `user:password@`
        where it wants them) by `client`."""
        self.name = name
        parts = urlsplit(base_url)
        login, _, host = parts.netloc.rpartition("@")
        # In the URL they would appear in the client's log.
        bare = parts._replace(netloc=host).geturl()
        self._address = bare.rstrip("/").removesuffix("/search") + "/search"
        self._headers = {"Accept": "*/*"} | (
            {"Authorization": f"Basic {_basic(login)}"} if login else {}
        )
        self._exchange = Exchange(
            name,
            client,
            timeout,
            secret=unquote(login.partition(":")[2]),
            judge=lambda code, answer: "blocked" if code == 403 else None,
            meaning=_SEARXNG_REASONS | (_REFUSALS if login else {}),
            inside=names_inside(base_url),
        )

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return one page of results, at most `limit`; never raises for what the
        instance does.

        Without results, engines that failed make it a failure, not `empty`."""
        plain = " ".join(word.lstrip(_QUERY_SIGNS) for word in query.text.split())
        words, cut = words_of(replace(query, text=plain), operator=True)
        # Its limiter takes a program that accepts no HTML for a bot
        answer = await self._exchange.ask(
            Request("GET", self._address, self._headers, _parameters(query, words))
        )
        if isinstance(answer, SearchOutcome):
            return answer
        rows = rows_of(answer.get("results"))
        silent = answer.get("unresponsive_engines") or []
        if rows is None or not isinstance(silent, list):
            return self._exchange.strange()
        # SearXNG's order stays: its score counts engines and places, not relevance
        silent_ones = _with_reasons(silent)
        failed = f"Some engines failed ({silent_ones})." if silent_ones else ""
        filters = _SEARXNG_FILTERS | {"region"} if query.language else _SEARXNG_FILTERS
        outcome = self._exchange.finished(
            map(self._result, rows),
            query,
            limit=limit,
            notes=sentences(failed, unmet(query, filters), cut),
        )
        if outcome.results or not silent_ones:
            return outcome
        said = silent_ones.lower()
        status: SearchStatus = next(
            (status for words, status in _STATUS_WORDS.items() if words in said),
            "bad_response",
        )
        return self._exchange.failed(
            status,
            f"No engine of the instance answered ({silent_ones}).",
            wait=SUSPENDED.get(status),
        )

    def _result(self, row: Mapping[str, object]) -> SearchResult | None:
        engines = row.get("engines")
        listed = engines if isinstance(engines, list) else [row.get("engine")]
        named = "+".join(
            filter(None, (plain_text(engine, longest=40) for engine in listed))
        )
        found = hit(
            f"{self.name}:{named}" if named else self.name,
            row,
            url="url",
            snippet=row.get("content"),
        )
        return found and replace(found, published=day_of(row.get("publishedDate")))
