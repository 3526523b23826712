"""What anyone who runs a server sees of it: health, figures for Prometheus, and a log that shows no
word of a page."""

import json
import signal
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from bench.mcp_served import free_port
from tests.support import LIBRARY, Site, text_of
from tests.support.extras import need
from tests.support.processes import EXIT_SECONDS, HELLO, ready, served

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PLACE = "Zanzibar"


async def test_the_log_has_a_line_a_call_and_no_word_of_question_or_page(
    cache_folder: Path, site: Site, tmp_path: Path
) -> None:
    page = site.put("/quiet", f"<p>The ferry to {PLACE} leaves at noon, every day of the year.</p>")
    log = tmp_path / "log"
    given = {
        "networks": "loopback",
        "web": "named",
        "robots": "0",
        "log": f"level=INFO format=json file={log}",
    }
    with served(cache_folder, **given) as (_, url):
        await ready(url)
        async with (
            httpx2.AsyncClient(headers={"X-Request-Id": "from-the-balancer"}, timeout=60) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            asked = {"question": f"When does the ferry to {PLACE} leave?", "sources": [page]}
            assert PLACE in text_of(await client.call_tool("extract_relevant", asked))
            lost = await client.call_tool("extract_relevant", {**asked, "sources": []})
            assert lost.is_error
    written = log.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    calls = [line for line in lines if line["logger"] == "winnow.calls"]
    assert [(line["tool"], line["outcome"]) for line in calls] == [
        ("extract_relevant", "answered"),
        ("extract_relevant", "failed"),
    ]
    assert {line["request"] for line in calls} == {"from-the-balancer"}
    assert [line["message"].partition(" after")[0] for line in calls] == [
        "extract_relevant answered",
        "extract_relevant failed",
    ]
    assert PLACE.lower() not in written.lower()


async def test_failed_calls_leave_neither_path_address_question_nor_session_in_the_log(
    cache_folder: Path, site: Site, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    given = {"networks": "loopback", "web": "named", "log": f"level=INFO file={log}"}
    gone = site.url(f"/{PLACE}.html")
    with served(cache_folder, **given) as (_, url):
        await ready(url)
        async with Client(f"{url}/mcp") as client:
            for source in (gone, f"{LIBRARY}/{PLACE}.md", f"winnow://page/{PLACE}"):
                asked = {"question": f"Where is {PLACE}?", "sources": [source]}
                assert (await client.call_tool("extract_relevant", asked)).is_error
            table = {"sources": [str(LIBRARY / "ferry-timetable.html")]}
            wrong = {**table, "part": "sql: SELECT zanzibar FROM t1"}
            assert (await client.call_tool("fetch_and_prune_html", wrong)).is_error
            with pytest.raises(MCPError):
                await client.read_resource(f"winnow://page/{PLACE}")
        async with httpx2.AsyncClient(timeout=60) as http:
            accept = {"Accept": "application/json, text/event-stream"}
            opened = await http.post(f"{url}/mcp", headers=accept, json=HELLO)
    written = log.read_text(encoding="utf-8")
    assert written.count("extract_relevant failed after") == 3
    assert PLACE.lower() not in written.lower()
    assert opened.headers["Mcp-Session-Id"] not in written


async def test_an_answer_names_its_request_as_it_was_named_or_by_a_fresh_name(
    cache_folder: Path,
) -> None:
    with served(cache_folder) as (_, url):
        await ready(url)
        async with httpx2.AsyncClient(timeout=60) as http:
            named = await http.get(f"{url}/healthz", headers={"X-Request-Id": "abc-1"})
            odd = await http.get(f"{url}/healthz", headers={"X-Request-Id": "a b\tc" * 40})
    assert named.headers["X-Request-Id"] == "abc-1"
    assert len(odd.headers["X-Request-Id"]) == 32


async def test_figures_count_calls_and_are_served_without_a_token(
    cache_folder: Path,
) -> None:
    need("metrics")
    at = f"127.0.0.1:{free_port()}"
    with served(cache_folder, http=f"metrics={at}") as (_, url):
        await ready(url)
        async with Client(f"{url}/mcp") as client:
            await client.call_tool("search_web", {"question": "When does the first ferry leave?"})
            await client.call_tool("extract_relevant", {"question": "ferry?", "sources": []})
        async with httpx2.AsyncClient(timeout=60) as http:
            reported = (await http.get(f"http://{at}/metrics")).text
    assert 'winnow_calls_total{outcome="answered",tool="search_web"} 1.0' in reported
    assert 'winnow_calls_total{outcome="failed",tool="extract_relevant"} 1.0' in reported
    assert 'winnow_call_seconds_count{tool="search_web"} 1.0' in reported
    assert 'winnow_calls_now{kind="heavy",state="waiting"} 0.0' in reported
    assert "winnow_cache_unused 0.0" in reported


async def test_a_server_that_drains_is_alive_and_not_ready(cache_folder: Path, site: Site) -> None:
    slow = site.put("/slow", "<p>The ferry leaves at noon.</p>")
    with served(cache_folder, networks="loopback", robots="0", seconds="60") as (process, url):
        await ready(url)

        async def call() -> None:
            async with Client(f"{url}/mcp") as client:
                await client.call_tool("fetch_and_prune_html", {"sources": [slow]})

        async with httpx2.AsyncClient(timeout=60) as http, anyio.create_task_group() as group:
            group.start_soon(call)
            while "/slow" not in site.asked:
                assert (await http.get(f"{url}/readyz")).status_code == 200
            process.send_signal(signal.SIGTERM)
            while (await http.get(f"{url}/readyz")).status_code != 503:
                assert (await http.get(f"{url}/healthz")).json()["status"] == "ok"
            assert (await http.get(f"{url}/healthz")).status_code == 200
            site.hold.set()
        assert process.wait(EXIT_SECONDS) == 128 + signal.SIGTERM
