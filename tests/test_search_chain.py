"""The chain of providers: who is asked, what counts as an answer, what is remembered."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from cache.store import JsonValue, Store
from errors import SearchFailed, UsageError
from pipeline.search.chain import Chain, Findings, cache_key
from pipeline.search.query import SearchOutcome, SearchQuery, SearchResult, SearchStatus

Answer = Callable[[SearchQuery], SearchOutcome]


@dataclass
class Scripted:
    """A provider that answers as it is reported and counts its calls."""

    name: str
    answer: Answer
    asked: list[SearchQuery] = field(default_factory=list)

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Answer from the script."""
        self.asked.append(query)
        return self.answer(query)


@dataclass
class Silent:
    """A provider that never answers."""

    name: str = "silent"

    async def search(self, query: SearchQuery, *, limit: int) -> SearchOutcome:
        """Wait until cancelled."""
        await anyio.sleep_forever()
        raise AssertionError("never reached")


@dataclass
class Clock:
    """Seconds that pass when reported to."""

    now: float = 1_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def hit(url: str, *, snippet: str = "", engine: str = "") -> SearchResult:
    return SearchResult(title=url.rsplit("/", 1)[-1], url=url, snippet=snippet, engine=engine)


def finds(name: str, *urls: str) -> Scripted:
    """A provider with results."""
    results = tuple(hit(url, engine=name) for url in urls)
    return Scripted(name, lambda query: SearchOutcome(results, name, "ok"))


def fails(
    name: str, status: SearchStatus, reason: str = "", retry_after: float | None = None
) -> Scripted:
    """A provider without results."""
    return Scripted(name, lambda query: SearchOutcome((), name, status, reason, retry_after))


def search(chain: Chain, *texts: str, limit: int = 10) -> Findings:
    """Run one search."""

    async def main() -> Findings:
        return await chain.search([SearchQuery(text) for text in texts or ("lake",)], limit=limit)

    return anyio.run(main)


def urls(found: Findings) -> list[str]:
    return [result.url for result in found.results]


def test_the_first_provider_that_answers_wins_and_the_next_is_not_asked() -> None:
    first, second = finds("first", "https://a.org/1"), finds("second", "https://b.org/1")
    assert urls(search(Chain([first, second], None, Clock()))) == ["https://a.org/1"]
    assert second.asked == []


@pytest.mark.parametrize(
    "status",
    [
        "blocked",
        "rate_limited",
        "unauthorized",
        "quota",
        "timeout",
        "unreachable",
        "unsupported",
        "bad_response",
    ],
)
def test_every_failure_moves_on_to_the_next_provider(status: SearchStatus) -> None:
    found = search(
        Chain([fails("first", status, "why"), finds("second", "https://b.org/1")], None, Clock())
    )
    assert urls(found) == ["https://b.org/1"]
    assert [(outcome.provider, outcome.status) for outcome in found.outcomes] == [
        ("first", status),
        ("second", "ok"),
    ]


def test_empty_moves_on_once_and_is_then_an_answer() -> None:
    third = finds("third", "https://c.org/1")
    found = search(Chain([fails("first", "empty"), fails("second", "empty"), third], None, Clock()))
    assert found.results == ()
    assert third.asked == []


def test_empty_of_one_and_failure_of_the_rest_is_an_answer_without_results() -> None:
    found = search(
        Chain([fails("first", "empty"), fails("second", "blocked", "captcha")], None, Clock())
    )
    assert found.results == ()
    assert [outcome.status for outcome in found.outcomes] == ["empty", "blocked"]


def test_when_all_fail_each_is_named_with_reason_and_next_step() -> None:
    chain = Chain(
        [
            fails("searxng", "blocked", "x: CAPTCHA."),
            fails("brave", "unauthorized", "key refused", 30.0),
        ],
        None,
        Clock(),
    )
    with pytest.raises(SearchFailed) as failure:
        search(chain)
    reported = str(failure.value)
    assert re.search(r"searxng: blocked \(«(\w+)» x: CAPTCHA «/\1»\)", reported)
    assert re.search(r"brave: unauthorized \(«(\w+)» key refused «/\1»\)", reported)
    assert "again in 30 s" in reported
    assert "check the key" in reported
    assert "so nothing was searched" in reported


def test_a_failure_over_several_queries_is_shown_once() -> None:
    with pytest.raises(SearchFailed) as failure:
        search(
            Chain([fails("searxng", "bad_response", "HTTP 500")], None, Clock()),
            "one",
            "two",
            "three",
        )
    assert str(failure.value).count("searxng:") == 1


def test_without_a_provider_the_error_says_how_to_set_one_up() -> None:
    with pytest.raises(SearchFailed) as failure:
        search(Chain([], None, Clock()))
    assert "SearXNG" in failure.value.hint
    assert "folder" in failure.value.hint


def test_a_provider_that_asked_for_rest_is_left_alone_until_then() -> None:
    clock = Clock()
    first, second = fails("first", "rate_limited", "429", 120.0), finds("second", "https://b.org/1")
    chain = Chain([first, second], None, clock)
    search(chain)
    clock.now += 100
    found = search(chain)
    assert len(first.asked) == 1
    assert found.outcomes[0].retry_after == pytest.approx(20.0)
    assert "Paused for 20 s" in found.outcomes[0].reason
    clock.now += 21
    search(chain)
    assert len(first.asked) == 2


def test_a_slow_or_broken_answer_asks_for_no_rest() -> None:
    first = fails("first", "timeout")
    chain = Chain([first, finds("second", "https://b.org/1")], None, Clock())
    search(chain)
    search(chain)
    assert len(first.asked) == 2


def test_a_provider_over_the_deadline_counts_as_timed_out() -> None:
    with pytest.raises(SearchFailed, match="silent: timeout"):
        search(Chain([Silent()], None, Clock(), deadline=0.05))


def test_one_query_over_the_deadline_does_not_cost_the_others() -> None:
    def answer(query: SearchQuery) -> SearchOutcome:
        return SearchOutcome(
            (hit("https://a.org/1"),), "first", "ok" if query.text == "fast" else "timeout"
        )

    found = search(Chain([Scripted("first", answer)], None, Clock(), deadline=5), "fast", "slow")
    assert urls(found) == ["https://a.org/1"]


def test_the_first_provider_leaves_time_for_the_next() -> None:
    second = finds("second", "https://b.org/1")
    found = search(Chain([Silent(), second], None, Clock(), deadline=0.4))
    assert urls(found) == ["https://b.org/1"]


def test_queries_are_fused_so_that_agreement_counts() -> None:
    lists = {
        "one": ["https://a.org/1", "https://c.org/1"],
        "two": ["https://b.org/1", "https://c.org/1"],
    }
    provider = Scripted(
        "p", lambda query: SearchOutcome(tuple(map(hit, lists[query.text])), "p", "ok")
    )
    found = search(Chain([provider], None, Clock()), "one", "two")
    assert urls(found) == ["https://c.org/1", "https://a.org/1", "https://b.org/1"]
    assert [result.rank for result in found.results] == [1, 2, 3]


def test_one_page_under_several_addresses_comes_once_and_keeps_its_engines() -> None:
    lists = {
        "one": hit("https://a.org/1?utm_source=x", engine="p:brave"),
        "two": hit("http://www.a.org/1/", engine="p:mojeek"),
    }
    provider = Scripted("p", lambda query: SearchOutcome((lists[query.text],), "p", "ok"))
    (result,) = search(Chain([provider], None, Clock()), "one", "two").results
    assert result.url == "https://a.org/1?utm_source=x"
    assert result.engine == "p:brave+p:mojeek"


def test_the_limit_holds_over_all_queries() -> None:
    provider = Scripted(
        "p",
        lambda query: SearchOutcome(
            tuple(hit(f"https://{query.text}.org/{i}") for i in range(9)), "p", "ok"
        ),
    )
    assert len(search(Chain([provider], None, Clock()), "one", "two", limit=5).results) == 5


def test_a_repeated_query_is_asked_once() -> None:
    provider = finds("p", "https://a.org/1")
    search(Chain([provider], None, Clock()), "same", "same")
    assert len(provider.asked) == 1


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store whose clock is still."""
    return Store(tmp_path / "searches", size_limit=10_000_000, clock=lambda: 1_000_000.0)


def test_an_answer_is_remembered_for_the_same_query_only(store: Store) -> None:
    provider = finds("p", "https://a.org/1")
    first = search(Chain([provider], store, Clock()), "lake")
    again = search(Chain([provider], store, Clock()), "lake")
    assert again.results == first.results
    assert len(provider.asked) == 1
    search(Chain([provider], store, Clock()), "sea")
    assert len(provider.asked) == 2


@pytest.mark.parametrize("status", ["empty", "blocked", "timeout"])
def test_failures_and_empty_answers_are_never_remembered(
    store: Store, status: SearchStatus
) -> None:
    first, second = fails("first", status), finds("second", "https://b.org/1")
    for _ in range(2):
        search(Chain([first, second], store, Clock()))
    assert len(first.asked) == 2


def test_local_files_are_not_remembered_by_the_chain(store: Store) -> None:
    provider = finds("folder", "file:///library/a.html")
    for _ in range(2):
        search(Chain([provider], store, Clock()))
    assert len(provider.asked) == 2


@pytest.mark.parametrize(
    "entry", [[{"nonsense": 1}], {"a": 1}, "text", [["title", "https://a.org"]], [{"title": 5}], []]
)
def test_an_entry_of_another_form_is_asked_for_again(store: Store, entry: JsonValue) -> None:
    provider = finds("p", "https://a.org/1")
    store.set_json(cache_key("p", SearchQuery("lake"), 10), entry)
    assert urls(search(Chain([provider], store, Clock()), "lake")) == ["https://a.org/1"]
    assert len(provider.asked) == 1


def test_a_provider_that_raises_one_of_our_errors_counts_as_failed() -> None:
    def answer(query: SearchQuery) -> SearchOutcome:
        raise UsageError("The key is missing.", hint="Set it.")

    found = search(
        Chain([Scripted("first", answer), finds("second", "https://b.org/1")], None, Clock())
    )
    first, second = found.outcomes
    assert (first.status, first.reason) == ("bad_response", "The key is missing. Set it.")
    assert second.status == "ok"


def test_a_provider_beside_is_asked_anyone_who_answers() -> None:
    web, own = (
        finds("web", "https://a.org/1", "https://a.org/2"),
        finds("folder", "file:///library/a.html"),
    )
    found = search(Chain([web], None, Clock(), beside=[own]))
    assert sorted(urls(found)) == ["file:///library/a.html", "https://a.org/1", "https://a.org/2"]
    assert found.results[2].url == "https://a.org/2"  # both firsts come before any second


def test_a_provider_beside_answers_for_a_web_that_fails() -> None:
    found = search(
        Chain(
            [fails("web", "blocked")],
            None,
            Clock(),
            beside=[finds("folder", "file:///library/a.html")],
        )
    )
    assert urls(found) == ["file:///library/a.html"]
    assert [outcome.status for outcome in found.outcomes] == ["blocked", "ok"]


def test_a_models_queries_take_a_third_of_the_places_however_many_they_are() -> None:
    found = {
        "lake": tuple(hit(f"https://a.org/{n}") for n in range(6)),
        "guess": tuple(hit(f"https://b.org/{n}") for n in range(6)),
        "second guess": tuple(hit(f"https://b.org/{n}") for n in range(9)),
    }
    provider = Scripted("one", lambda query: SearchOutcome(found[query.text], "one", "ok"))
    queries = [SearchQuery(text, guessed=text != "lake") for text in found]

    async def main() -> Findings:
        return await Chain([provider], None, Clock()).search(queries, limit=9)

    places = [result.url[8] for result in anyio.run(main).results]
    assert "".join(places) == "aabaabaab"
    assert [result.rank for result in anyio.run(main).results] == list(range(1, 10))
