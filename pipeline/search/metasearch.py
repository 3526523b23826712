"""Searching through the library `ddgs` (extra `ddgs`), which reads engines' result
pages.

The first of the keyless providers where it is installed, as the README's one-line
install does. It imitates browsers, raises the same error for "blocked" and for "nothing
found", gives no dates, and unescapes addresses (run against a mock). Its calls are
synchronous: each runs in a thread of its own, with a deadline. Not used if an address,
a key or folders are set, unless it is named.
"""

import importlib
from dataclasses import replace
from typing import Final

import anyio
import anyio.to_thread

from extra import importing
from pipeline.search.chain import DEADLINE
from pipeline.search.query import SearchOutcome, SearchQuery, SearchStatus
from pipeline.search.results import hit, on_site, unmet, words_of
from pipeline.search.service import rows_of

BACKENDS: Final = "duckduckgo,brave,mojeek,startpage,yahoo"
"""Named, because `auto` asks two encyclopedias first and the rest in random order, and
an unknown name becomes it."""
_UNKNOWN: Final = (
    "Unknown: blocked or nothing found: the library does not report which."
)


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
        outcome = self._failed("timeout", f"No answer within {self._timeout:g} s.")
        with anyio.move_on_after(self._timeout):
            outcome = await anyio.to_thread.run_sync(
                self._ask, query, limit, abandon_on_cancel=True, limiter=self._threads
            )
        return outcome

    def _failed(self, status: SearchStatus, reason: str) -> SearchOutcome:
        # A block is a guess: it may have been a true zero, which asks for no pause.
        pause = 0.0 if status == "blocked" else None
        return SearchOutcome((), self.name, status, reason, pause)

    def _ask(self, query: SearchQuery, limit: int) -> SearchOutcome:
        words = words_of(query, operator=True)
        is_dated = query.since or query.until or query.freshness == "any"
        try:
            rows = self._library.DDGS(timeout=max(1, round(self._timeout))).text(
                words,
                region=f"{query.region or 'us'}-{query.language or 'en'}".lower(),
                page=query.page,
                max_results=limit,
                backend=self._backends,
                safesearch={"off": "off", "strict": "on"}.get(query.safe, "moderate"),
                **({} if is_dated else {"timelimit": query.freshness[0]}),
            )
        except self._failures.TimeoutException as error:
            return self._failed("timeout", f"The engines were too slow ({error}).")
        except self._failures.RatelimitException as error:
            reason = f"An engine limits our requests ({error})."
            return self._failed("rate_limited", reason)
        except self._failures.DDGSException as error:
            is_unknown = "no results" in str(error).lower()
            reason = _UNKNOWN if is_unknown else f"{str(error)[:200]}."
            return self._failed("blocked", reason)
        results = [
            hit(
                self.name,
                url=row.get("href"),
                title=row.get("title"),
                snippet=row.get("body"),
            )
            for row in rows_of(rows) or ()
        ]
        hits = [hit for hit in results if hit and on_site(hit.url, query.site)][:limit]
        if not hits:
            return self._failed("blocked", _UNKNOWN)
        able = {"freshness", "language", "region", "safe search", "paging"}
        ranked = (replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))
        notes = unmet(query, frozenset(able))
        return SearchOutcome(tuple(ranked), self.name, "ok", notes)
