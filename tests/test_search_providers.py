"""The web providers over loopback: what they send, what they read, what each failure means."""

import importlib.util
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest

from cache.store import Store
from errors import SearchFailed, UsageError
from pipeline.fetch import USER_AGENT
from pipeline.search.chain import Chain
from pipeline.search.metasearch import Metasearch
from pipeline.search.providers.wikipedia import WIKIPEDIA as ARTICLES
from pipeline.search.query import SearchOutcome, SearchQuery, SearchStatus
from pipeline.search.web_api import WebApi, retry_after
from server.settings import read_settings
from tests.support import Clock, Connect, Site, data_of, text_of
from tests.support.model_server import loopback_client
from tests.support.providers import (
    AWAY,
    KEY,
    MAKERS,
    OWN,
    SERVICES,
    SHARED,
    Loopback,
    Reply,
    Row,
    fault_table,
    loopback,
)
from tests.support.search import ask_once

BRAVE = {
    "type": "search",
    "query": {"original": "lake orvane", "more_results_available": True},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Lake <strong>Orvane</strong>",
                "url": "https://e.org/orvane",
                "description": "213 metres deep.",
                "page_age": "2024-05-03T00:00:00",
                "age": "May 3, 2024",
                "language": "en",
                "extra_snippets": ["Cold &amp; clear."],
            }
        ],
    },
}
TAVILY = {
    "query": "lake orvane",
    "answer": None,
    "images": [],
    "results": [
        {
            "title": "Lake Orvane",
            "url": "https://e.org/orvane",
            "content": "213 metres deep.",
            "score": 0.81,
            "raw_content": None,
            "published_date": "Fri, 03 May 2024 10:00:00 GMT",
        }
    ],
    "response_time": 1.67,
}
EXA = {
    "requestId": "b5947044c4b78efa9552a7c89b306d95",
    "results": [
        {
            "id": "https://e.org/orvane",
            "title": "Lake Orvane",
            "url": "https://e.org/orvane",
            "publishedDate": "2024-05-03T00:00:00.000Z",
            "author": None,
            "highlights": ["213 metres deep.", "Cold."],
        }
    ],
}
SERPER = {
    "searchParameters": {"q": "lake orvane", "type": "search", "engine": "google"},
    "organic": [
        {
            "title": "Lake Orvane",
            "link": "https://e.org/orvane",
            "snippet": "213 metres deep.",
            "date": "May 3, 2024",
            "position": 1,
        }
    ],
    "credits": 1,
}
WIKIPEDIA = {
    "batchcomplete": True,
    "query": {
        "searchinfo": {"totalhits": 1},
        "search": [
            {
                "ns": 0,
                "title": "Lake Orvane",
                "pageid": 7,
                "snippet": '<span class="searchmatch">Lake</span> of 213 m',
            }
        ],
    },
}
BODIES: dict[str, Any] = {
    "brave": BRAVE,
    "tavily": TAVILY,
    "tavily-keyless": TAVILY,
    "exa": EXA,
    "serper": SERPER,
    "wikipedia": WIKIPEDIA,
}
EVERYTHING = SearchQuery(
    "lake orvane", "de", "week", "2024-01-02", "2024-03-04", "at", "e.org", "strict", 2
)


@pytest.fixture
def api() -> Iterator[Loopback]:
    """A search API on loopback."""
    with loopback() as state:
        yield state


def ask(
    provider: str, api: Loopback, query: SearchQuery | None = None, *, limit: int = 10
) -> SearchOutcome:
    """Ask a provider once."""
    return ask_once(lambda client: MAKERS[provider](client, api.address, 5.0), query, limit=limit)


def serve(api: Loopback, body: object) -> None:
    api.reply = Reply(200, json.dumps(body).encode(), {"Content-Type": "application/json"})


def sent(api: Loopback) -> dict[str, Any]:
    """What the last request asked for: its parameters, or its JSON body."""
    method, path, _headers, body = api.asked[-1]
    return (
        dict(json.loads(body))
        if method == "POST"
        else {k: v[0] for k, v in parse_qs(urlsplit(path).query).items()}
    )


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, str], Row]:
    """The fault table, made once."""
    return {(row.provider, row.fault): row for row in fault_table()}


EXPECTED: dict[str, SearchStatus] = {
    "400": "bad_response",
    "400 credits": "quota",
    "400 credits, bare": "quota",
    "401": "unauthorized",
    "402": "quota",
    "402 budget": "quota",
    "403": "unauthorized",
    "403 with the key": "unauthorized",
    "403 words": "bad_response",
    "404": "unauthorized",
    "422": "bad_response",
    "422 key": "unauthorized",
    "429": "rate_limited",
    "429 with Retry-After": "rate_limited",
    "429 without a tag": "rate_limited",
    "429 with windows": "rate_limited",
    "429 quota": "quota",
    "432": "quota",
    "433": "quota",
    "500": "bad_response",
    "502": "bad_response",
    "503": "bad_response",
    "504": "timeout",
    "empty": "empty",
    "slow": "timeout",
    "refused": "unreachable",
    "redirect": "bad_response",
    "HTML": "bad_response",
    "cut JSON": "bad_response",
    "cut transfer": "bad_response",
    "other JSON": "bad_response",
    "engines: 429": "rate_limited",
    "engines: suspended": "rate_limited",
    "engines: CAPTCHA": "blocked",
    "engines: 403": "blocked",
    "engines: slow": "timeout",
    "engines: HTML": "bad_response",
    "engines: crash": "bad_response",
    "engines: away": "unreachable",
    "200 ratelimited": "rate_limited",
    "200 maxlag": "rate_limited",
    "200 too busy": "rate_limited",
    "200 bad value": "bad_response",
    "200 busy": "rate_limited",
    "200 errCode": "bad_response",
    "200 error": "bad_response",
    "200 failed": "bad_response",
    "403 busy": "blocked",
    "404 route": "bad_response",
    "429 budget": "quota",
    "504 gateway": "timeout",
    "bomb": "bad_response",
    "cut feed": "bad_response",
}
OTHERWISE: dict[tuple[str, str], SearchStatus] = {
    ("searxng", "403"): "blocked",
    ("wikipedia", "403"): "blocked",
    ("openalex", "403 busy"): "rate_limited",
    ("arxiv", "503"): "rate_limited",
}


@pytest.mark.parametrize(
    ("provider", "fault"),
    [(provider, fault) for provider, own in OWN.items() for fault in [*own, *SHARED, AWAY]],
)
def test_every_failure_has_its_status_and_says_why(
    table: dict[tuple[str, str], Row], provider: str, fault: str
) -> None:
    row = table[provider, fault]
    assert row.status == OTHERWISE.get((provider, fault), EXPECTED[fault])
    assert len(row.reason) > 8
    assert KEY not in row.reason
    if fault == "429 with Retry-After":
        assert row.retry_after == (60.0 if "tavily" in provider else 17.0)


def test_a_service_that_repeats_the_key_does_not_make_us_report_it(
    table: dict[tuple[str, str], Row],
) -> None:
    repeated = [row for row in table.values() if "[key]" in row.reason]
    assert {row.provider for row in repeated} == {"brave", "tavily", "exa", "serper"}


@pytest.mark.parametrize(("provider", "keyless"), [("tavily-keyless", True), ("tavily", False)])
def test_a_refusal_names_a_key_only_where_one_was_sent(
    table: dict[tuple[str, str], Row], provider: str, keyless: bool
) -> None:
    reason = table[provider, "401"].reason
    assert ("none is set" in reason) == keyless
    assert ("the key was not accepted" in reason) != keyless


def test_of_several_rate_windows_the_used_up_one_counts(table: dict[tuple[str, str], Row]) -> None:
    assert table["brave", "429 with windows"].retry_after == 1.0
    assert table["brave", "429 quota"].retry_after == 14197.0
    assert retry_after({"retry-after": "²"}) is None


@pytest.mark.parametrize("provider", BODIES)
def test_a_success_is_read_as_title_address_plain_text_and_date(
    api: Loopback, provider: str
) -> None:
    serve(api, BODIES[provider])
    outcome = ask(provider, api)
    assert (outcome.status, outcome.reason, outcome.provider) == ("ok", "", provider)
    (result,) = outcome.results
    assert (result.title, result.engine, result.rank) == ("Lake Orvane", provider, 1)
    assert "213 m" in result.snippet
    assert "<" not in result.snippet
    if provider == "wikipedia":
        # The date of the last edit is none of publication.
        assert (result.url, result.published) == (f"{api.address}/wiki/Lake_Orvane", "")
    else:
        assert (result.url, result.published) == ("https://e.org/orvane", "2024-05-03")


def test_brave_gets_the_whole_vocabulary_in_its_own_words(api: Loopback) -> None:
    serve(api, BRAVE)
    assert ask("brave", api, EVERYTHING).reason == ""
    asked = sent(api)
    assert api.asked[0][1].startswith("/v1/web/search?")
    assert api.asked[0][2]["x-subscription-token"] == KEY
    assert {
        name: asked[name]
        for name in ("q", "freshness", "country", "search_lang", "safesearch", "offset")
    } == {
        "q": "site:e.org lake orvane",
        "freshness": "2024-01-02to2024-03-04",
        "country": "AT",
        "search_lang": "de",
        "safesearch": "strict",
        "offset": "1",
    }
    ask("brave", api, SearchQuery("x", freshness="month"))
    assert sent(api)["freshness"] == "pm"


def test_brave_cuts_a_long_query(api: Loopback) -> None:
    serve(api, BRAVE)
    ask("brave", api, SearchQuery("word " * 80))
    assert len(sent(api)["q"].split()) == 50


def test_tavily_gets_dates_and_domain_and_says_what_it_cannot_do(api: Loopback) -> None:
    (first, *_) = cast("list[dict[str, object]]", TAVILY["results"])
    eight = [{**first, "url": f"https://e.org/{i}"} for i in range(8)]
    serve(api, {**TAVILY, "results": eight})
    outcome = ask("tavily", api, EVERYTHING, limit=4)
    assert outcome.reason == "Ignored filters: region, safe search."
    assert [result.url for result in outcome.results] == [f"https://e.org/{i}" for i in range(4, 8)]
    assert api.asked[0][2]["authorization"] == f"Bearer {KEY}"
    assert sent(api) == {
        "query": "lake orvane",
        "max_results": 8,
        "search_depth": "basic",
        "start_date": "2024-01-02",
        "end_date": "2024-03-04",
        "language": "de",
        "include_domains": ["e.org"],
    }


def test_tavily_without_a_key_asks_in_the_keyless_mode(api: Loopback) -> None:
    serve(api, TAVILY)
    ask("tavily-keyless", api)
    assert api.asked[0][2]["x-tavily-access-mode"] == "keyless"
    assert "authorization" not in api.asked[0][2]


def test_exa_gets_dates_country_and_domain_and_says_what_it_cannot_do(api: Loopback) -> None:
    serve(api, EXA)
    assert "language" in ask("exa", api, EVERYTHING, limit=1).reason
    assert api.asked[0][2]["x-api-key"] == KEY
    asked = sent(api)
    assert asked["startPublishedDate"] == "2024-01-02T00:00:00.000Z"
    assert asked["endPublishedDate"] == "2024-03-04T23:59:59.999Z"
    assert (
        asked["userLocation"],
        asked["includeDomains"],
        asked["moderation"],
        asked["numResults"],
    ) == (
        "AT",
        ["e.org"],
        True,
        2,
    )


def test_serper_gets_dates_country_and_page_and_says_what_it_cannot_do(api: Loopback) -> None:
    serve(api, SERPER)
    assert ask("serper", api, EVERYTHING).reason == "Ignored filters: safe search."
    assert api.asked[0][2]["x-api-key"] == KEY
    assert sent(api) == {
        "q": "site:e.org lake orvane",
        "num": 10,
        "tbs": "cdr:1,cd_min:1/2/2024,cd_max:3/4/2024",
        "hl": "de",
        "gl": "at",
        "page": 2,
    }
    ask("serper", api, SearchQuery("x", freshness="year"))
    assert sent(api)["tbs"] == "qdr:y"


def test_wikipedia_is_asked_politely_and_says_what_it_cannot_do(api: Loopback) -> None:
    serve(api, WIKIPEDIA)
    outcome = ask("wikipedia", api, SearchQuery("See", "de", "week", region="at", page=3))
    assert outcome.reason == "Ignored filters: freshness, region."
    assert api.asked[0][2]["user-agent"] == USER_AGENT
    assert sent(api)["sroffset"] == "20"
    assert outcome.results[0].language == "de"


def test_wikipedia_says_that_it_cannot_search_another_site_and_asks_no_one(api: Loopback) -> None:
    serve(api, WIKIPEDIA)
    outcome = ask("wikipedia", api, SearchQuery("lake", site="e.org"))
    assert (outcome.status, outcome.results, api.asked) == ("unsupported", (), [])
    assert "e.org" in outcome.reason

    async def main() -> str:
        async with loopback_client() as client:
            with pytest.raises(SearchFailed) as caught:
                chain = Chain([MAKERS["wikipedia"](client, api.address, 5.0)], None, Clock())
                await chain.search([SearchQuery("lake", site="e.org")], limit=5)
            return str(caught.value)

    assert "leave that condition out" in anyio.run(main)


@pytest.mark.parametrize(
    ("site", "language", "host"),
    [
        ("fr.wikipedia.org", "en", "fr.wikipedia.org"),
        ("wikipedia.org", "de", "de.wikipedia.org"),
        ("www.wikipedia.org", "", "en.wikipedia.org"),
    ],
)
def test_wikipedia_asked_for_a_wikipedia_searches_that_one(
    api: Loopback, site: str, language: str, host: str
) -> None:
    serve(api, WIKIPEDIA)

    async def main() -> SearchOutcome:
        async with httpx2.AsyncClient(proxy=api.address) as client:
            provider = WebApi(ARTICLES, client, base_url="http://{language}.wikipedia.org")
            return await provider.search(SearchQuery("lake", language, site=site), limit=5)

    outcome = anyio.run(main)
    assert [result.url for result in outcome.results] == [f"http://{host}/wiki/Lake_Orvane"]
    assert urlsplit(api.asked[0][1]).netloc == host


def test_searxng_gets_the_vocabulary_and_says_that_it_has_no_dates(api: Loopback) -> None:
    rows = [
        {"url": "https://e.org/1", "title": "a", "content": "b"},
        {"url": "https://other.org/", "title": "c"},
    ]
    serve(api, {"results": rows, "unresponsive_engines": []})
    outcome = ask("searxng", api, EVERYTHING)
    assert outcome.reason == "Ignored filters: dates."
    assert [result.url for result in outcome.results] == ["https://e.org/1"]
    asked = sent(api)
    assert (asked["language"], asked["safesearch"], asked["pageno"]) == ("de-AT", "2", "2")
    assert "time_range" not in asked


@pytest.mark.parametrize("provider", SERVICES)
def test_a_key_is_in_no_log_no_error_and_no_cache(
    api: Loopback, tmp_path: Path, caplog: pytest.LogCaptureFixture, provider: str
) -> None:
    caplog.set_level(logging.DEBUG)
    clock = Clock()
    store = Store(tmp_path / "searches", size_limit=10_000_000, clock=clock)

    async def main() -> str:
        async with loopback_client() as client:
            chain = Chain([MAKERS[provider](client, api.address, 5.0)], store, clock)
            serve(api, BODIES[provider])
            await chain.search([SearchQuery("found")], limit=5)
            api.reply = Reply(429, json.dumps({"message": f"Limit of {KEY}"}).encode())
            with pytest.raises(SearchFailed) as caught:
                await chain.search([SearchQuery("refused")], limit=5)
            return str(caught.value)

    error = anyio.run(main)
    store.close()
    assert "[key]" in error
    assert KEY not in error
    assert KEY not in caplog.text
    assert KEY not in repr(MAKERS[provider](loopback_client(), api.address, 5.0))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(KEY.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"search": "google"}, "google"),
        ({"search": "brave"}, "WINNOW_KEYS=brave=KEY"),
        ({"search": "searxng"}, "WINNOW_SEARXNG"),
        ({"keys": "exa=two words"}, "keys"),
    ],
)
def test_an_order_that_cannot_work_is_refused_with_what_is_missing(
    given: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        read_settings(given, {})
    assert "two words" not in str(caught.value)


def test_keys_are_not_shown_with_the_settings() -> None:
    shown = repr(
        read_settings({f"{name}_key": KEY for name in ("brave", "tavily", "exa", "serper")}, {})
    )
    assert KEY not in shown
    assert "search=()" in shown


@pytest.mark.anyio
async def test_the_order_of_the_settings_is_the_order_of_the_chain(
    connect: Connect, site: Site
) -> None:
    order = {"search": "serper,searxng,brave,wikipedia,tavily", "keys": f"brave={KEY} serper={KEY}"}
    async with connect(searxng=site.url(""), **order) as client:
        status = str((await client.read_resource("winnow://status")).contents[0])
    assert KEY not in status
    places = [
        status.index(name)
        for name in ("serper", "searxng 127", "brave", "wikipedia", "tavily-keyless")
    ]
    assert places == sorted(places)


@pytest.mark.anyio
async def test_a_page_found_is_opened_by_its_handle_without_another_request(
    connect: Connect, site: Site
) -> None:
    page = site.put(
        "/light",
        "<html lang=en><title>Light</title><h1>Light</h1><p>First lit on 4 May 1871.</p></html>",
    )
    rows = [
        {
            "title": "Light",
            "url": page,
            "content": "A lighthouse.",
            "engine": "mojeek",
            "engines": ["mojeek"],
        }
    ]
    site.put(
        "/search",
        json.dumps({"results": rows, "unresponsive_engines": []}),
        kind="application/json",
    )
    async with connect(folders=" ", searxng=site.url(""), networks="loopback") as client:
        found = await client.call_tool(
            "search_web", {"question": "light handle test", "site": "127.0.0.1", "page": 2}
        )
        (hit,) = data_of(found)["hits"]
        before = len(site.asked)
        opened = await client.call_tool(
            "fetch_and_prune_html", {"sources": [hit["handle"]], "question": "first lit"}
        )
    assert (hit["url"], hit["language"]) == (page, "en")
    assert hit["engine"].endswith("mojeek")
    assert hit["handle"] in text_of(found)
    assert "4 May 1871" in text_of(opened)
    assert len(site.asked) == before
    assert any("pageno=2" in path and "site%3A127.0.0.1" in path for path in site.asked)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "value"), [("after", "2024-02-31"), ("site", "e.org/path"), ("region", "austria")]
)
async def test_a_filter_that_cannot_be_is_refused_by_name(
    connect: Connect, name: str, value: str
) -> None:
    async with connect() as client:
        result = await client.call_tool("search_web", {"question": "x", name: value})
    assert result.is_error
    assert value in text_of(result) or name in text_of(result)


needs_ddgs = pytest.mark.needs("ddgs")


@pytest.fixture
def mojeek(api: Loopback) -> Iterator[Loopback]:
    """One engine of the real library, reported that it lives on loopback; the library has no
    argument for it."""
    engine = importlib.import_module("ddgs.engines.mojeek").Mojeek
    address, engine.search_url = engine.search_url, f"{api.address}/search"
    yield api
    engine.search_url = address


def scraped(*, timeout: float = 5.0) -> SearchOutcome:
    """Ask the real library."""
    provider = Metasearch(timeout=timeout, backends="mojeek")
    return anyio.run(lambda: provider.search(SearchQuery("lake orvane"), limit=5))


@needs_ddgs
def test_ddgs_reads_results(mojeek: Loopback) -> None:
    html = (
        '<ul class="results"><li><h2><a href="https://e.org/a%2Fb%23c">Lake</a></h2><p '
        'class="s">213 m</p></li></ul>'
    )
    mojeek.reply = Reply(200, html.encode(), {"Content-Type": "text/html"})
    outcome = scraped()
    assert [result.title for result in outcome.results] == ["Lake"]


@needs_ddgs
@pytest.mark.parametrize("status", [200, 202, 403, 429])
def test_ddgs_never_calls_an_empty_list_nothing_found(mojeek: Loopback, status: int) -> None:
    mojeek.reply = Reply(status, b"<html><body>are you a robot?</body></html>")
    outcome = scraped()
    assert outcome.status == "blocked"
    assert "blocked or nothing found" in outcome.reason


@needs_ddgs
def test_ddgs_has_a_deadline_of_its_own(mojeek: Loopback) -> None:
    mojeek.hold = Event()
    assert scraped(timeout=0.3).status == "timeout"
    mojeek.hold.set()
