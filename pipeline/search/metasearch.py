"""Searching through the library `ddgs` (extra `ddgs`), which reads engines' result
pages.

The first of the keyless providers where it is installed, as the README's one-line
install does. It imitates browsers, raises the same error for "blocked" and for "nothing
found", gives no dates, and unescapes addresses (run against a mock). Its calls are
synchronous: each runs in a thread of its own, with a deadline. Not used if an address,
a key or folders are set, unless it is named.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import anyio.to_thread

from extra import importing
from pipeline.search.chain import DEADLINE
from pipeline.search.query import (
    SearchOutcome,
    SearchQuery,
    SearchResult,
    SearchStatus,
)
from pipeline.search.results import hit, on_site, sentences, unmet, words_of
from pipeline.search.service import rows_of

BACKENDS: Final = "duckduckgo,brave,mojeek,startpage,yahoo"
"""Named, because `auto` asks two encyclopedias first and the rest in random order, and
an unknown name becomes it."""
_DDGS_FILTERS: Final = frozenset(
    {"freshness", "language", "region", "safe search", "paging"}
)
_PERIOD: Final = {"day": "d", "week": "w", "month": "m", "year": "y"}
_SAFE_SEARCH: Final = {"off": "off", "moderate": "moderate", "strict": "on"}
_NOT_KNOWN: Final = "blocked or nothing found: the library does not report which"


class Metasearch:
    """A provider over `ddgs`."""

    name: Final = "ddgs"

    def __init__(self, *, timeout: float = DEADLINE, backends: str = BACKENDS) -> None:
        """Load the library; raises `MissingExtra` where it is not installed,
        `BrokenExtra` where that fails."""
        with importing("ddgs", "The search provider ddgs"):
            self._library = importlib.import_module("ddgs")
            self._failures = importlib.import_module("ddgs.exceptions")
        self._timeout = timeout
        self._backends = backends
        # A call that is given up on keeps its thread until the library itself gives up
        self._threads = anyio.CapacityLimiter(2)

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return one page of results; never raises for what the engines do.

        It is `timeout` where they take too long, or where earlier searches that hang
        hold both threads. Nothing found is `blocked`, too: the library gives one error
        for both."""
        outcome = self._failed(
            "timeout", reason=f"No answer within {self._timeout:g} s."
        )
        with anyio.move_on_after(self._timeout):
            outcome = await anyio.to_thread.run_sync(
                self._ask, query, limit, abandon_on_cancel=True, limiter=self._threads
            )
        return outcome

    def _options(self, query: SearchQuery, limit: int) -> dict[str, object]:
        """Return the library's options for a query, besides its words."""
        options: dict[str, object] = {
            "region": f"{query.region or 'us'}-{query.language or 'en'}".lower(),
            "page": query.page,
            "max_results": limit,
            "backend": self._backends,
            "safesearch": _SAFE_SEARCH.get(query.safe, "moderate"),
        }
        if query.freshness != "any" and not (query.since or query.until):
            options["timelimit"] = _PERIOD[query.freshness]
        return options

    def _failed(
        self, status: SearchStatus, reason: str, wait: float | None = None
    ) -> SearchOutcome:
        return SearchOutcome((), self.name, status, reason, wait)

    def _results(
        self, rows: Sequence[Mapping[str, object]], query: SearchQuery
    ) -> tuple[SearchResult, ...]:
        """Return the results of the library's rows that lie on the query's site."""
        hits = (
            hit(
                self.name,
                url=row.get("href"),
                title=row.get("title"),
                snippet=row.get("body"),
            )
            for row in rows
        )
        return tuple(hit for hit in hits if hit and on_site(hit.url, query.site))

    def _ask(self, query: SearchQuery, limit: int) -> SearchOutcome:
        words, cut = words_of(query, operator=True)
        options = self._options(query, limit)
        try:
            answer = self._library.DDGS(timeout=max(1, round(self._timeout))).text(
                words, **options
            )
        except self._failures.TimeoutException as error:
            return self._failed(
                "timeout", reason=f"The engines were too slow ({error})."
            )
        except self._failures.RatelimitException as error:
            return self._failed(
                "rate_limited", reason=f"An engine limits our requests ({error})."
            )
        except self._failures.DDGSException as error:
            # The same words for 429, 403, a CAPTCHA and a true zero; no rest, because it may have
            # been the zero.
            said = (
                _NOT_KNOWN if "no results" in str(error).lower() else str(error)[:200]
            )
            return self._failed("blocked", f"Unknown: {said}.", wait=0.0)
        rows = rows_of(answer)
        if rows is None:
            return self._failed(
                "bad_response",
                reason="The ddgs library returned an unexpected format.",
            )
        kept = self._results(rows, query)[:limit]
        if not kept:
            return self._failed("blocked", f"Unknown: {_NOT_KNOWN}.", wait=0.0)
        broken = any("#" in result.url or " " in result.url for result in kept)
        damage = (
            "ddgs unescapes addresses: one with # or a space may lead elsewhere."
            if broken
            else ""
        )
        return SearchOutcome(
            kept, self.name, "ok", sentences(unmet(query, _DDGS_FILTERS), cut, damage)
        )
