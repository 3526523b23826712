"""A real SearXNG in front of engines on loopback: asked by the provider, the command line and the
tools."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pipeline.search.providers.searxng import SEARXNG
from pipeline.search.query import SearchOutcome, SearchQuery, SearchStatus
from pipeline.search.web_api import WebApi
from tests.support import ROOT, Connect, data_of, text_of
from tests.support.real_servers import searxng
from tests.support.search import ask_once

pytestmark = pytest.mark.slow

PAGE = (
    "<title>Orvane Light</title><h1>Orvane Light</h1><p>The light on Orvane Head was first lit "
    "on 4 May 1871.</p>"
)
QUESTION = "When was the light on Orvane Head first lit?"
CHALLENGE = (
    b'<form action="/x?__cf_chl_jschl_tk__=1">' + b"/cdn-cgi/challenge-platform/orchestrate/"
)


@dataclass
class Engines:
    """Two engines and a page on loopback: `steady` finds the page unless asked for nothing,
    `fickle` does as asked."""

    address: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    """Parameters that `steady` got."""
    hold: threading.Event = field(default_factory=threading.Event)
    """What `fickle` is to answer slowly waits for it."""


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    state = Engines()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            query = given.get("q", "")
            row = {
                "url": f"{state.address}/page?utm_source=x",
                "title": "Orvane <b>Light</b>",
                "content": "A light.",
            }
            found = json.dumps({"results": [] if "nothing" in query else [row]}).encode()
            status, headers, body = 200, {"Content-Type": "application/json"}, found
            if parts.path == "/page":
                headers, body = {"Content-Type": "text/html"}, PAGE.encode()
            elif parts.path == "/steady":
                state.asked.append(given)
            elif "captcha" in query:
                status, headers, body = 503, {"Server": "cloudflare"}, CHALLENGE
            elif "garbage" in query:
                body = b"<html>"
            elif "slowly" in query:
                state.hold.wait()
            else:
                status = next((code for code in (429, 403, 500) if str(code) in query), 200)
            try:
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                self.close_connection = (
                    True  # SearXNG has given up, which is what the slow answer is for
                )

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    yield state
    state.hold.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def instance(engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A SearXNG whose pages and reasons are German unless it is asked otherwise."""
    with searxng(
        tmp_path_factory.mktemp("searxng"), engines=engines.address, ui={"default_locale": "de"}
    ) as url:
        yield url


def ask(address: str, query: SearchQuery) -> SearchOutcome:
    return ask_once(lambda client: WebApi(SEARXNG, client, base_url=address), query)


def test_two_engines_hit_is_one_result_with_both_names(instance: str, engines: Engines) -> None:
    outcome = ask(instance, SearchQuery("orvane light"))
    assert (outcome.status, outcome.reason) == ("ok", "")
    (result,) = outcome.results
    assert (result.title, result.snippet) == ("Orvane Light", "A light.")
    assert result.url.startswith(f"{engines.address}/page")
    assert set(result.engine.partition(":")[2].split("+")) == {"steady", "fickle"}


def test_language_freshness_safety_and_page_reach_the_engines(
    instance: str, engines: Engines
) -> None:
    ask(
        instance,
        SearchQuery("orvane", language="de", region="ch", freshness="week", safe="strict", page=2),
    )
    asked = engines.asked[-1]
    assert asked == {"q": "orvane", "page": "2", "lang": "de", "hours": "168", "filter": "strict"}


@pytest.mark.parametrize(
    "words",
    ["!!g orvane", ":de orvane", "<3 orvane", "!st orvane", "! orvane", ":de-AT !!w <1 orvane"],
)
def test_words_that_command_searxng_are_searched_for_instead(
    instance: str, engines: Engines, words: str
) -> None:
    outcome = ask(instance, SearchQuery(words))
    assert outcome.status == "ok"
    assert engines.asked[-1]["q"] == " ".join(
        filter(None, (word.lstrip("!:<") for word in words.split()))
    )
    assert engines.asked[-1]["lang"] == "en"


@pytest.mark.parametrize(
    ("failing", "status", "said"),
    [
        ("429", "rate_limited", "fickle: too many requests"),
        ("403", "blocked", "fickle: access denied"),
        ("captcha", "blocked", "fickle: CAPTCHA"),
        ("500", "bad_response", "fickle: HTTP error"),
        ("garbage", "bad_response", "fickle: parsing error"),
        ("slowly", "timeout", "fickle: timeout"),
    ],
)
def test_a_failed_engine_is_reported_in_english_and_typed(
    instance: str, failing: str, status: SearchStatus, said: str
) -> None:
    alone = ask(instance, SearchQuery(f"nothing {failing}"))
    assert (alone.status, alone.results) == (status, ())
    assert said in alone.reason
    beside = ask(instance, SearchQuery(f"orvane {failing}"))
    assert (beside.status, len(beside.results)) == ("ok", 1)
    assert said in beside.reason


def test_nothing_found_by_healthy_engines_is_empty(instance: str) -> None:
    assert ask(instance, SearchQuery("nothing")).status == "empty"


def test_the_command_line_searches_and_researches_through_it(instance: str, tmp_path: Path) -> None:
    settings = {
        "WINNOW_SEARXNG": instance,
        "WINNOW_CACHE": str(tmp_path),
        "WINNOW_NETWORKS": "loopback",
        "WINNOW_WEB": "named",
    }
    environment = {**os.environ, **settings, "PYTHONPATH": str(ROOT), "WINNOW_FOLDERS": ""}
    for verb, wanted in (("search", "Orvane Light"), ("research", "4 May 1871")):
        command = [sys.executable, "-m", "server", verb, QUESTION]
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert run.returncode == 0, run.stderr
        assert wanted in run.stdout


@pytest.mark.anyio
async def test_the_tools_search_and_answer_through_it(
    connect: Connect, instance: str, engines: Engines
) -> None:
    async with connect(folders=" ", searxng=instance, networks="loopback") as client:
        found = await client.call_tool("search_web", {"question": QUESTION})
        answer = await client.call_tool("research", {"question": QUESTION})
        failed = await client.call_tool("search_web", {"question": "nothing 429"})
    assert "Orvane Light" in text_of(found)
    assert data_of(answer)["answered"]
    assert data_of(answer)["pages"][0].startswith(f"{engines.address}/page")
    assert "4 May 1871" in text_of(answer)
    assert failed.is_error
    assert "fickle: too many requests" in text_of(failed)


def test_an_instance_without_json_says_which_setting_is_missing(
    engines: Engines, tmp_path: Path
) -> None:
    with searxng(tmp_path, engines=engines.address, search={"formats": ["html"]}) as address:
        outcome = ask(address, SearchQuery("orvane"))
    assert outcome.status == "blocked"
    assert "settings.yml" in outcome.reason
