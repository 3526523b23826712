"""The chain of providers: parallel queries, one order of providers, honest failures,
each page and snippet once.

A provider that was blocked has not found nothing: its status, its reason and its
`retry_after` are kept, and only when no provider answered does the chain fail, naming
each. In the CRAG sample 12 of 50 addresses repeat within a question; the canonical form
is a key for comparing only, and what is fetched is the address as it was given. Not
for: speaking to a provider (`providers/`), ranking by relevance
(`pipeline/search/mixed.py`)."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import anyio
from pydantic import TypeAdapter, ValidationError

from cache.store import JsonValue, Store
from errors import SearchFailed, WinnowError
from pipeline.reading.bm25 import reciprocal_rank_fusion
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult
from pipeline.text.frame import new_delimiter, quoted
from pipeline.work import LONG_SHARE, STEP_SHARE, in_thread, time_left, traced

_log: Final = logging.getLogger("winnow.search")
_TRACKING: Final = (
    "utm_ mc_cid mc_eid fbclid gclid msclkid yclid igshid srsltid ref_src amp"
)
"""Beginnings of parameters that say where a reader comes from."""
_SAME_HOST: Final = frozenset({"www", "m", "mobile", "amp"})
_SAME_PATH: Final = frozenset({"index.html", "index.htm", "amp"})


def canonical_url(url: str) -> str:
    """Return the key under which one page's many addresses meet.

    Scheme, `www.`, mobile and AMP hosts and paths, default ports, fragments, tracking
    parameters, the order of parameters, `index.html` and a trailing slash make no
    difference. Other addresses are returned without their fragment. A malformed one
    stays as it is. The key is for comparing only: it has no scheme."""
    try:
        address = urlsplit(url.strip())
        port = address.port
    except ValueError:
        return url.strip()
    if address.scheme not in ("http", "https") or not address.hostname:
        return url.strip().partition("#")[0]
    labels = address.hostname.rstrip(".").split(".")
    names = [label for label in labels[:-2] if label not in _SAME_HOST]
    host = ".".join([*names, *labels[-2:]])
    folder, slash, name = address.path.rstrip("/").rpartition("/")
    path = folder if name.lower() in _SAME_PATH else folder + slash + name
    path = quote(path, safe="/%:@!$&'()*+,;=~", errors="ignore")
    parameters = sorted(
        pair
        for pair in parse_qsl(address.query, keep_blank_values=True)
        if not pair[0].lower().startswith(tuple(_TRACKING.split()))
    )
    named_port = "" if port in (None, 80, 443) else f":{port}"
    return f"//{host}{named_port}{path}?{urlencode(parameters)}".rstrip("?")


def _key(result: SearchResult) -> str:
    """The name under which catalogues and engines list one work, or one page."""
    return f"doi:{result.doi}" if result.doi else canonical_url(result.url)


def _by_page(results: Iterable[SearchResult]) -> dict[str, SearchResult]:
    """Return results by their keys, each page once, in order: the first, with the
    engines of all, and what a later one says of the page where it says nothing."""
    pages: dict[str, SearchResult] = {}
    for result in results:
        key = _key(result)
        page = pages.setdefault(key, result)
        engines = dict.fromkeys([*page.engine.split("+"), *result.engine.split("+")])
        pages[key] = replace(
            page,
            engine="+".join(filter(None, engines)),
            published=page.published or result.published,
            language=page.language or result.language,
            author=page.author or result.author,
            inside=page.inside or result.inside,
        )
    return pages


DEADLINE: Final = 7.0
"""Seconds for all queries and providers of the web together: APIs answer in 0.3 to 2 s,
SearXNG soon after the 3 s of its engines; a metasearch that needs longer does not come
back."""
REST: Final = {
    "rate_limited": 60.0,
    "quota": 3600.0,
    "unauthorized": 300.0,
    "blocked": 60.0,
}
"""Seconds for which a provider is paused when it names no time."""
SEAT: Final = 3
"""Of this many places one is for the results of a model's queries, however many it
wrote. With every second, noise costs right pages; with every fourth, an oracle gains
less."""
UNDATED: Final = frozenset({"folder"})
"""Providers over a person's own files, whose results carry no dates."""
_RESULTS: Final = TypeAdapter(tuple[SearchResult, ...])
_NEXT_STEP: Final = {
    "unauthorized": "check the key or the access rules of the provider",
    "unreachable": "check that it runs and that its address is right",
    "unsupported": "leave that condition out, or add a provider that knows it",
    "bad_response": "check that the address is that of the provider's API",
}
"""What to do after a failure that waiting does not mend."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What all queries brought together."""

    results: tuple[SearchResult, ...]
    """Fused order over the queries; `rank` is the place in it."""
    outcomes: tuple[SearchOutcome, ...]
    """Every provider's answer to every query, failures included."""
    silent: tuple[SearchOutcome, ...] = ()
    """Failures of sources that no other replaced: the answer may be there."""


T = TypeVar("T")


class Searcher(Protocol):
    """Somewhere to search.

    It never raises for what the other side does (blocked, slow, broken): it answers
    with a status, and the chain decides what comes next."""

    @property
    def name(self) -> str:
        """Short name, unique in a chain; part of outcomes, errors and cache keys."""
        ...

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Return at most `limit` results and how it went; `reason` also names the
        filters of `query` that were ignored."""
        ...


class Chain:
    """Asks providers in order until one answers."""

    def __init__(
        self,
        providers: Sequence[Searcher],
        store: Store | None,
        clock: Callable[[], float],
        *,
        beside: Sequence[Searcher] = (),
        scholarly: Sequence[Searcher] = (),
        deadline: float = DEADLINE,
    ) -> None:
        """Keep the `providers`, used in order until one answers, and those used
        `beside` them in any case.

        The `scholarly` ones are one more line beside, for queries that ask for
        published research.

        A search of the web takes `deadline` seconds at most; `clock` gives seconds, for
        the pauses of providers."""
        self._providers = tuple(providers)
        self._beside = tuple(beside)
        self._scholarly = tuple(scholarly)
        self._store = store
        self._clock = clock
        self._deadline = deadline
        self._paused: dict[str, tuple[float, SearchOutcome]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the providers, in order."""
        providers = (*self._providers, *self._beside, *self._scholarly)
        return tuple(dict.fromkeys(provider.name for provider in providers))

    @traced("search")
    async def search(self, queries: Sequence[SearchQuery], *, limit: int) -> Findings:
        """Return at most `limit` distinct results over all `queries`.

        The first provider that answers `ok` ends a query; after `empty` one more
        provider is asked; any other status moves on. An empty answer of a healthy
        provider is an answer. Raises `SearchFailed` where no provider is set up, or
        none of them answered any query. A late provider counts as `timeout`."""
        if not self._providers and not self._beside:
            raise SearchFailed(
                "No search provider is set up.",
                hint=(
                    "There is nothing to search: no folder is listed, and WINNOW_SEARCH or "
                    "WINNOW_WEB forbids the web. Add a folder (winnow folders add DIR), or unset both to search "
                    "the web without a key; a SearXNG instance (WINNOW_SEARXNG) or a key such as "
                    "WINNOW_KEYS=brave=KEY finds more."
                ),
            )
        # 1. Ask, every query on its own, all against one deadline
        calls = self._lines(tuple(dict.fromkeys(queries)))
        answers: list[list[SearchOutcome]] = [[] for _ in calls]
        began, left = anyio.current_time(), time_left()
        async with anyio.create_task_group() as group:
            for (query, line), outcomes in zip(calls, answers, strict=True):
                is_local = _is_local(line)
                # Without the folder's words there is no answer at all; the web has others.
                seconds = (
                    LONG_SHARE * left
                    if is_local
                    else min(self._deadline, STEP_SHARE * left)
                )
                # A folder's index ranks passages: of twice as many files no more answer.
                count = (limit + 1) // 2 if is_local else limit
                group.start_soon(
                    self._ask, line, query, count, began + seconds, outcomes
                )
        # 2. Did anyone answer?
        silent = [outcomes for outcomes in answers if not _has_answer(outcomes)]
        if len(silent) == len(answers):
            raise _failure(_flat(answers))
        # 3. One list: fused over the queries, without repeats
        lists: dict[bool, list[Sequence[SearchResult]]] = {False: [], True: []}
        for (query, _), outcomes in zip(calls, answers, strict=True):
            lists[query.guessed] += [outcome.results for outcome in outcomes]
        pages = _by_page(seated(_fused(lists[False]), _fused(lists[True])))
        ranked = [
            replace(page, rank=rank)
            for rank, page in enumerate(pages.values(), start=1)
        ]
        return Findings(tuple(ranked[:limit]), _flat(answers), _flat(silent))

    def _lines(
        self, queries: Sequence[SearchQuery]
    ) -> list[tuple[SearchQuery, Sequence[Searcher]]]:
        """Return each query with each line of providers that is asked it."""
        always = [self._providers, *((provider,) for provider in self._beside)]
        lines: list[tuple[SearchQuery, Sequence[Searcher]]] = [
            (query, line) for query in queries for line in always if line
        ]
        if self._scholarly and self._scholarly != self._providers:
            lines += [(query, self._scholarly) for query in queries if query.scholarly]
        return lines

    async def _ask(
        self,
        line: Sequence[Searcher],
        query: SearchQuery,
        limit: int,
        ends: float,
        outcomes: list[SearchOutcome],
    ) -> None:
        """Walk a line of providers for one query; every answer goes to `outcomes` as it
        comes.

        It ends at the first `ok` or the second `empty`."""
        for provider in line:
            seconds = max(0.0, ends - anyio.current_time())
            # Others wait for it: it gets 4 s, and SearXNG's engines have 3 s.
            seconds *= 1 if provider is line[-1] else LONG_SHARE
            outcome = await self._answer(provider, query, limit, seconds)
            outcomes.append(outcome)
            empties = sum(outcome.status == "empty" for outcome in outcomes)
            if outcome.status == "ok" or empties > 1:
                return

    async def _answer(
        self, provider: Searcher, query: SearchQuery, limit: int, seconds: float
    ) -> SearchOutcome:
        """One provider's answer to one query: remembered, or asked for within
        `seconds` unless it is paused.

        Nothing is raised for a provider: its error gives `bad_response`, a late answer
        `timeout`. Answers that are `ok` are kept for 15 minutes, those with local files
        are not."""
        ends, outcome = self._paused.get(provider.name, (0.0, None))
        if outcome is not None and (pause := ends - self._clock()) > 0:
            reason = f"{outcome.reason} Paused for {pause:.0f} s."
            return replace(outcome, reason=reason, retry_after=pause)
        key = cache_key(provider.name, query, limit)
        if self._store is not None:
            results = _remembered(await in_thread(self._store.get_json, key))
            if results:
                return SearchOutcome(results, provider.name, "ok")
        outcome = SearchOutcome(
            (), provider.name, "timeout", f"No answer within {seconds:.1f} s."
        )
        with anyio.move_on_after(seconds):
            try:
                outcome = await provider.search(query, limit=limit)
            except Exception as error:  # noqa: BLE001  a service may answer anything
                _log.exception("the search provider %s failed", provider.name)
                why = (
                    str(error)
                    if isinstance(error, WinnowError)
                    else type(error).__name__
                )
                outcome = SearchOutcome((), provider.name, "bad_response", why)
        self._pause(outcome)
        # Local files may change at any moment.
        is_local = any(result.url.startswith("file:") for result in outcome.results)
        if outcome.status == "ok" and self._store is not None and not is_local:
            results_json = _RESULTS.dump_python(outcome.results, mode="json")
            # Long enough for an agent's repeats, short enough for news.
            await in_thread(self._store.set_json, key, results_json, expire=900.0)
        return outcome

    def _pause(self, outcome: SearchOutcome) -> None:
        """Leave a provider alone for as long as it says, a day at most."""
        seconds = outcome.retry_after
        if seconds is None:
            seconds = REST.get(outcome.status, 0.0)
        if outcome.status not in ("ok", "empty") and seconds > 0:
            ends = self._clock() + min(seconds, 86_400.0)
            self._paused[outcome.provider] = ends, outcome


def _flat(answers: Iterable[Sequence[SearchOutcome]]) -> tuple[SearchOutcome, ...]:
    """Return the outcomes of all lines of providers together."""
    return tuple(outcome for answer in answers for outcome in answer)


def _has_answer(outcomes: Sequence[SearchOutcome]) -> bool:
    return any(
        outcome.status in ("ok", "empty") or outcome.unread for outcome in outcomes
    )


def _is_local(line: Sequence[Searcher]) -> bool:
    """Whether providers search a person's own files alone."""
    return UNDATED.issuperset(provider.name for provider in line)


def _failure(outcomes: Sequence[SearchOutcome]) -> SearchFailed:
    """One sentence a provider: status, its own words for it between marks, next step;
    repeats over queries once."""
    delimiter = new_delimiter()
    reasons: dict[tuple[str, str], str] = {}
    for outcome in outcomes:
        reason = quoted(outcome.reason.rstrip(". "), delimiter) or "no reason given"
        again = f"again in {outcome.retry_after:.0f} s; " if outcome.retry_after else ""
        step = _NEXT_STEP.get(
            outcome.status, "try again later, or add another provider"
        )
        reasons[outcome.provider, outcome.status] = (
            f"{outcome.provider}: {outcome.status} ({reason}); {again}{step}"
        )
    return SearchFailed(
        "No search provider answered, so nothing was searched. "
        + ". ".join(reasons.values())
        + ".",
        hint="Known addresses can still be read directly.",
    )


def seated(results: Sequence[T], guessed: Sequence[T]) -> list[T]:
    """Return both lists as one, each in its order: every `SEAT`th place is for what is
    `guessed`, as long as both last."""
    joined = list(results)
    for number, guess in enumerate(guessed, start=1):
        joined.insert(number * SEAT - 1, guess)
    return joined


def _fused(lists: Sequence[Sequence[SearchResult]]) -> list[SearchResult]:
    """Return the pages of result lists by reciprocal ranks of their canonical
    addresses."""
    pages = _by_page(result for results in lists for result in results)
    numbers = {key: number for number, key in enumerate(pages)}
    orders = [
        [numbers[key] for key in dict.fromkeys(map(_key, results))] for results in lists
    ]
    scores = reciprocal_rank_fusion(orders, len(pages))
    ranked = sorted(pages, key=lambda key: (-scores[numbers[key]], numbers[key]))
    return [pages[key] for key in ranked]


def cache_key(provider: str, query: SearchQuery, limit: int) -> str:
    """Return the key of an answer: provider, query, filters and, where freshness
    counts, the day."""
    day = datetime.now(UTC).date().isoformat() if query.freshness != "any" else ""
    fields = json.dumps(
        [provider, asdict(replace(query, asked=None, guessed=False)), limit, day]
    )
    return (
        "search:"
        + hashlib.blake2b(
            fields.encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest()
    )


def _remembered(value: JsonValue) -> tuple[SearchResult, ...]:
    """Results as they were kept; nothing where the entry has another form (another
    version wrote it)."""
    try:
        return _RESULTS.validate_python(value)
    except ValidationError:
        return ()
