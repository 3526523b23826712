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
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import anyio
from pydantic import TypeAdapter, ValidationError

from cache.store import JsonValue, Store
from errors import SearchFailed, WinnowError
from pipeline.reading.bm25 import reciprocal_rank_fusion
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult, SearchStatus
from pipeline.text.frame import new_mark, quoted
from pipeline.text.words import INFORMATIVE_RUNS, word_runs
from pipeline.work import LONG_SHARE, STEP_SHARE, in_thread, time_left, traced

_TRACKING: Final = re.compile(
    r"utm_\w+|ga_\w+|mc_[ce]id|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|igsh|"
    r"li_fat_id|"
    r"_hs(?:enc|mi)|mkt_tok|vero_(?:id|conv)|oly_(?:anon|enc)_id|s_cid|cmpid|ncid|srsltid|wt_?\.?mc|ref_src|ref_url|"
    r"spm|scm|share_(?:source|from)|at_(?:medium|campaign)|trk|_ga|_gl|amp",
    re.IGNORECASE,
)
_DEFAULT_PORT: Final = {"http": 80, "https": 443}
_MOBILE_HOST: Final = re.compile(r"^(?:www\d?|m|mobile|amp|touch)\.(?=[^.]+\.)")
_MOBILE_LABEL: Final = re.compile(r"^([a-z]{2,3})\.m\.")
_INDEX_PAGE: Final = re.compile(
    r"/(?:index|default)\.(?:html?|php|aspx?)$", re.IGNORECASE
)
_AMP_PATH: Final = re.compile(
    r"(?:/amp(?:\.html)?|\.amp)/?$|^/amp(?=/.)", re.IGNORECASE
)
_AMP_CACHE: Final = re.compile(r"^/(?:[cvi]/)?(?:s/)?(?=[^/]+\.[^/]+)")
_SAME_SNIPPET: Final = 0.9
"""Share of common three-word runs from which two snippets are one text; mirrors and
syndicated copies lie at 0.95 and above, two pages about one event below 0.5."""


def canonical_url(url: str) -> str:
    """Return the key under which one page's many addresses meet.

    Scheme, `www.`, mobile and AMP hosts and paths, default ports, fragments, tracking
    parameters, the order of parameters, `index.html` and a trailing slash make no
    difference. Other addresses are returned without their fragment. A malformed one
    stays as it is. The key is for comparing only: it has no scheme."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return url.strip()
    if parts.scheme not in _DEFAULT_PORT or not parts.hostname:
        return url.strip().split("#", 1)[0]
    host, path, query = parts.hostname.rstrip("."), parts.path, parts.query
    # AMP caches carry the real address in host and path
    if host.endswith(".cdn.ampproject.org") or (
        host.startswith("www.google.") and path.startswith("/amp/")
    ):
        inner = _AMP_CACHE.sub("", path.removeprefix("/amp"))
        host, _, path = inner.lstrip("/").partition("/")
        path = "/" + path
    host = _MOBILE_LABEL.sub(r"\1.", _MOBILE_HOST.sub("", host))
    path = _INDEX_PAGE.sub("/", _AMP_PATH.sub("", path))
    pairs = sorted(
        (key, value)
        for key, value in parse_qsl(query, keep_blank_values=True)
        if not _TRACKING.fullmatch(key)
    )
    shown = host if port in (None, _DEFAULT_PORT[parts.scheme]) else f"{host}:{port}"
    return f"//{shown}{_unquoted(path).rstrip('/')}" + (
        f"?{urlencode(pairs)}" if pairs else ""
    )


def _unquoted(path: str) -> str:
    """Undo percent escapes except of characters that would change the path (`/`, `?`,
    `#`, `%`)."""
    return "/".join(
        re.sub(
            r"[%?#/]",
            lambda match: f"%{ord(match[0]):02X}",
            unquote(part, errors="surrogateescape"),
        )
        for part in path.split("/")
    )


def distinct(results: Sequence[SearchResult]) -> tuple[SearchResult, ...]:
    """Return `results` in order without repeats: one an address, and one a snippet
    where snippets are the same text.

    What stays is the first, `merged` with the others. Snippets too short to compare
    count as different."""
    by_url: dict[str, SearchResult] = {}
    for result in results:
        key = _key(result)
        by_url[key] = merged(by_url[key], result) if key in by_url else result
    kept: list[SearchResult] = []
    known: list[frozenset[tuple[str, ...]]] = []
    for result in by_url.values():
        own = word_runs(result.snippet)
        shares = (
            len(own & other) / len(own | other)
            for other in known
            if min(len(own), len(other)) >= INFORMATIVE_RUNS
        )
        same = next(
            (number for number, share in enumerate(shares) if share >= _SAME_SNIPPET),
            None,
        )
        if same is not None:
            kept[same] = merged(kept[same], result)
            continue
        kept.append(result)
        known.append(own)
    return tuple(kept)


def _key(result: SearchResult) -> str:
    """The name under which catalogues and engines list one work, or one page."""
    return f"doi:{result.doi}" if result.doi else canonical_url(result.url)


def merged(first: SearchResult, other: SearchResult) -> SearchResult:
    """Return `first` with the engines of both, and what the other says of the page
    where it says nothing."""
    engines = dict.fromkeys(
        filter(None, (*first.engine.split("+"), *other.engine.split("+")))
    )
    return replace(
        first,
        engine="+".join(engines),
        published=first.published or other.published,
        language=first.language or other.language,
        author=first.author or other.author,
        doi=first.doi or other.doi,
        inside=first.inside or other.inside,
    )


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
_LASTING: Final[tuple[SearchStatus, ...]] = ("rate_limited", "quota")
"""Failures that are remembered on disk: another process would only meet them again."""
WORKS: Final = 50
"""Works that one request asks for by their DOIs: as many as OpenAlex takes in a
filter."""
SEAT: Final = 3
"""Of this many places one is for the results of a model's queries, however many it
wrote. Answering pages among the first 5 by rules / an oracle / noise of five draws: 60
dev questions .922, .956, .941, 58 test questions .991, 1.000, .995. As further lists of
the fusion they made .922, .956, .929 and .991, 1.000, .969; noise with a tenth of a
vote .936 and .978, with every second place .941, .978; with every fourth an oracle
makes .939 on the dev questions."""
UNDATED: Final = frozenset({"folder"})
"""Providers over a person's own files, whose results carry no dates."""
_RESULTS: Final = TypeAdapter(tuple[SearchResult, ...])
_NEXT_STEP: Final = {
    "blocked": "try again later or add another provider",
    "rate_limited": "wait, or add another provider",
    "unauthorized": "check the key or the access rules of the provider",
    "quota": "the plan is used up: wait for the next period or add another provider",
    "timeout": "the provider was too slow: try again, or raise its time limit",
    "unreachable": "check that it runs and that its address is right, or add another provider",
    "unsupported": "leave that condition out, or add a provider that knows it",
    "bad_response": "check that the address is that of the provider's API",
}


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
        accounts: Mapping[str, str] | None = None,
    ) -> None:
        """Keep the `providers`, used in order until one answers, and those used
        `beside` them in any case.

        The `scholarly` ones are one more line beside, for queries that ask for
        published research, and are asked for works by their DOIs.

        A search of the web takes `deadline` seconds at most; `clock` gives seconds, for
        the rests of providers. `accounts` has a fingerprint of each provider's key,
        never the key, so that another key is another account."""
        self._providers = tuple(providers)
        self._beside = tuple(beside)
        self._scholarly = tuple(scholarly)
        self._store = store
        self._clock = clock
        self._deadline = deadline
        self._accounts = accounts or {}
        self._resting: dict[str, tuple[float, SearchOutcome]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the providers, in order."""
        return tuple(
            dict.fromkeys(
                one.name for one in (*self._providers, *self._beside, *self._scholarly)
            )
        )

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
                    "There is nothing to search: WINNOW_SEARCH is 'none', or 'folder' "
                    "while WINNOW_FOLDERS names no folder. Unset WINNOW_SEARCH to search the web without "
                    "a key; a SearXNG instance (WINNOW_SEARXNG) or a key such as "
                    "WINNOW_KEYS=brave=KEY finds more."
                ),
            )
        # 1. Ask, every query on its own, all against one deadline
        asked = self._lines(tuple(dict.fromkeys(queries)))
        answers: list[list[SearchOutcome]] = [[] for _ in asked]
        began, most = anyio.current_time(), STEP_SHARE * time_left()
        async with anyio.create_task_group() as group:
            for (query, line), into in zip(asked, answers, strict=True):
                own = UNDATED.issuperset(provider.name for provider in line)
                ends = began + (most if own else min(self._deadline, most))
                # A folder's index ranks passages: of twice as many files no more answer.
                count = (limit + 1) // 2 if own else limit
                group.start_soon(self._ask, line, query, count, ends, into)
        # 2. Did anyone answer?
        outcomes = _flat(answers)
        if not any(map(_has_answered, outcomes)):
            raise _failure(outcomes)
        # 3. One list: fused over the queries, without repeats
        results = distinct(
            seated(
                _fused(_results(asked, answers, guessed=False)),
                _fused(_results(asked, answers, guessed=True)),
            )
        )
        ranked = [
            replace(result, rank=rank) for rank, result in enumerate(results, start=1)
        ]
        silent = [one for one in answers if not any(map(_has_answered, one))]
        return Findings(tuple(ranked[:limit]), outcomes, _flat(silent))

    def _lines(
        self, queries: Sequence[SearchQuery]
    ) -> list[tuple[SearchQuery, Sequence[Searcher]]]:
        """Return each query with each line of providers that is asked it."""
        lines = [self._providers, *((provider,) for provider in self._beside)]
        asked = [
            (query, line)
            for query in queries
            for line in lines
            if not _repeats(query, queries, line)
        ]
        besides = self._scholarly if self._scholarly not in lines else ()
        scholarly = [query for query in queries if query.scholarly and besides]
        return [*asked, *((query, besides) for query in scholarly)]

    async def look_up(self, dois: Sequence[str]) -> Findings:
        """Return what the catalogues of research know of works, each asked for those
        that the ones before lack.

        Nothing is raised: the outcomes say who answered, and there are none where no
        catalogue is set. A DOI that none of them knows has no result."""
        found: dict[str, SearchResult] = {}
        outcomes: list[SearchOutcome] = []
        ends = anyio.current_time() + min(self._deadline, STEP_SHARE * time_left())
        for provider in self._scholarly:
            missing = [doi for doi in dict.fromkeys(dois) if doi not in found]
            for start in range(0, len(missing), WORKS):
                wanted = tuple(missing[start : start + WORKS])
                query = SearchQuery("", dois=wanted)
                left = LONG_SHARE * max(0.0, ends - anyio.current_time())
                outcome = await self._rest_of(provider) or await self._answer(
                    provider, query, len(wanted), left
                )
                outcomes.append(outcome)
                found |= {one.doi: one for one in outcome.results}
        return Findings(tuple(found.values()), tuple(outcomes))

    async def _ask(
        self,
        line: Sequence[Searcher],
        query: SearchQuery,
        limit: int,
        ends: float,
        into: list[SearchOutcome],
    ) -> None:
        """Walk a line of providers for one query; every answer goes to `into` as it
        comes.

        It ends at the first `ok` or the second `empty`."""
        for provider in line:
            left = max(0.0, ends - anyio.current_time())
            # Others wait for it: it gets 4 s, and SearXNG's engines have 3 s.
            seconds = left if provider is line[-1] else left * LONG_SHARE
            outcome = await self._rest_of(provider) or await self._answer(
                provider, query, limit, seconds
            )
            into.append(outcome)
            empties = sum(one.status == "empty" for one in into)
            if outcome.status == "ok" or empties > 1:
                return

    async def _answer(
        self, provider: Searcher, query: SearchQuery, limit: int, seconds: float
    ) -> SearchOutcome:
        """One provider's answer to one query: remembered, or asked for within
        `seconds`.

        Nothing is raised for a provider: its error gives `bad_response`, a late answer
        `timeout`. Answers that are `ok` are kept for 15 minutes, those with local files
        are not."""
        key = cache_key(provider.name, query, limit)
        if self._store is not None and (
            known := _known(await in_thread(self._store.get_json, key))
        ):
            return SearchOutcome(known, provider.name, "ok")
        outcome = SearchOutcome(
            (), provider.name, "timeout", f"No answer within {seconds:.1f} s."
        )
        with anyio.move_on_after(seconds):
            try:
                outcome = await provider.search(query, limit=limit)
            except WinnowError as error:
                outcome = SearchOutcome((), provider.name, "bad_response", str(error))
        await self._remember_rest(outcome)
        # Local files may change at any moment and are cached file by file where they are read.
        is_local = any(result.url.startswith("file:") for result in outcome.results)
        if outcome.status == "ok" and self._store is not None and not is_local:
            # Long enough for an agent's repeats, short enough for news.
            await in_thread(
                self._store.set_json,
                key,
                _RESULTS.dump_python(outcome.results, mode="json"),
                expire=900.0,
            )
        return outcome

    async def _rest_of(self, provider: Searcher) -> SearchOutcome | None:
        """What a resting provider said last, with the seconds that are left; None when
        it may be asked."""
        until, said = self._resting.get(provider.name, (0.0, None))
        if said is None and self._store is not None:
            until, said = _rest_from(
                await in_thread(self._store.get_json, self._rest_key(provider.name)),
                provider.name,
            )
        left = until - self._clock()
        if said is None or left <= 0:
            self._resting.pop(provider.name, None)
            return None
        return replace(
            said,
            reason=f"{said.reason} Paused for {left:.0f} s.",
            retry_after=left,
        )

    async def _remember_rest(self, outcome: SearchOutcome) -> None:
        seconds = (
            outcome.retry_after
            if outcome.retry_after is not None
            else REST.get(outcome.status, 0.0)
        )
        if outcome.status in ("ok", "empty") or seconds <= 0:
            return
        seconds = min(seconds, timedelta(days=1).total_seconds())
        until = self._clock() + seconds
        self._resting[outcome.provider] = (until, outcome)
        # A refused key is put right and the server started again: only what waiting mends outlives
        # the process.
        if self._store is not None and outcome.status in _LASTING:
            kept: JsonValue = {
                "until": until,
                "status": outcome.status,
                "reason": outcome.reason,
            }
            await in_thread(
                self._store.set_json,
                self._rest_key(outcome.provider),
                kept,
                expire=seconds,
            )

    def _rest_key(self, name: str) -> str:
        return f"rest:{name}:{self._accounts.get(name, '')}"


def _rest_from(value: JsonValue, provider: str) -> tuple[float, SearchOutcome | None]:
    """A rest as it was kept; none where there is none, or where the entry has another
    form."""
    match value:
        case {
            "until": int() | float() as until,
            "status": str(status),
            "reason": str(reason),
        }:
            known = next((one for one in _LASTING if one == status), None)
            return (
                (until, SearchOutcome((), provider, known, reason))
                if known
                else (0.0, None)
            )
        case _:
            return 0.0, None


def _flat(answers: Iterable[Sequence[SearchOutcome]]) -> tuple[SearchOutcome, ...]:
    """Return the outcomes of all lines of providers together."""
    return tuple(outcome for answer in answers for outcome in answer)


def _has_answered(outcome: SearchOutcome) -> bool:
    return outcome.status in ("ok", "empty")


def _failure(outcomes: Sequence[SearchOutcome]) -> SearchFailed:
    """One sentence a provider: status, its own words for it between marks, next step;
    repeats over queries once."""
    mark = new_mark()
    named = dict.fromkeys(
        f"{outcome.provider}: {outcome.status} "
        f"({quoted(outcome.reason.rstrip('. '), mark) or 'no reason given'}); "
        + (f"again in {outcome.retry_after:.0f} s; " if outcome.retry_after else "")
        + _NEXT_STEP.get(outcome.status, "")
        for outcome in {(one.provider, one.status): one for one in outcomes}.values()
    )
    return SearchFailed(
        "No search provider answered, so nothing was searched. "
        + ". ".join(named)
        + ".",
        hint="Known addresses can still be read directly.",
    )


def _repeats(
    query: SearchQuery, queries: Sequence[SearchQuery], line: Sequence[Searcher]
) -> bool:
    """Return whether providers without date filters and languages already get the same
    query."""
    undated = replace(query, freshness="any")
    in_english = any(
        query.text == other.question.translated_to("en").text != other.text
        for other in queries
    )
    return (
        in_english or (undated != query and undated in queries)
    ) and UNDATED.issuperset(one.name for one in line)


def seated(known: Sequence[T], guessed: Sequence[T]) -> list[T]:
    """Return both lists as one, each in its order: every `SEAT`th place is for what is
    `guessed`, as long as both last."""
    joined = list(known)
    for number, one in enumerate(guessed, start=1):
        joined.insert(number * SEAT - 1, one)
    return joined


def _results(
    asked: Sequence[tuple[SearchQuery, Sequence[Searcher]]],
    answers: Sequence[Sequence[SearchOutcome]],
    *,
    guessed: bool,
) -> list[tuple[SearchResult, ...]]:
    """Return each outcome's results for queries that a model `guessed`, or for the
    others."""
    return [
        outcome.results
        for (query, _), answer in zip(asked, answers, strict=True)
        for outcome in answer
        if query.guessed == guessed and outcome.results
    ]


def _fused(lists: Sequence[Sequence[SearchResult]]) -> list[SearchResult]:
    """Return the pages of result lists by reciprocal ranks of their canonical
    addresses."""
    pages: dict[str, SearchResult] = {}
    orders = []
    for results in lists:
        keys = list(map(_key, results))
        for key, result in zip(keys, results, strict=True):
            pages[key] = merged(pages[key], result) if key in pages else result
        orders.append(dict.fromkeys(keys))
    numbers = {key: number for number, key in enumerate(pages)}
    scores = reciprocal_rank_fusion(
        [[numbers[key] for key in order] for order in orders], len(pages)
    )
    best_first = sorted(pages, key=lambda key: (-scores[numbers[key]], numbers[key]))
    return [pages[key] for key in best_first]


def cache_key(provider: str, query: SearchQuery, limit: int) -> str:
    """Return the key of an answer: provider, query, filters and, where freshness
    counts, the day."""
    day = datetime.now(UTC).date().isoformat() if query.freshness != "any" else ""
    parts = json.dumps(
        [provider, asdict(replace(query, asked=None, guessed=False)), limit, day]
    )
    return (
        "search:"
        + hashlib.blake2b(
            parts.encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest()
    )


def _known(value: JsonValue) -> tuple[SearchResult, ...]:
    """Results as they were kept; nothing where the entry has another form (another
    version wrote it)."""
    try:
        return _RESULTS.validate_python(value)
    except ValidationError:
        return ()
