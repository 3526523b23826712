"""Many calls at once, slow sources and slow models: who runs, who waits, who is reported to come
again, what each gets."""

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio import CapacityLimiter, to_thread
from mcp import Client
from mcp_types import CallToolResult
from starlette.responses import JSONResponse, Response

from errors import Busy
from pipeline.question.question import Question
from pipeline.research import research
from pipeline.search.chain import Findings
from pipeline.search.query import SearchQuery, SearchResult
from pipeline.sources.gather import Wanted
from pipeline.work import Call, in_thread, no_report
from server.calls import Admission
from server.settings import read_settings
from server.wiring import open_services
from tests.support import LIBRARY, Connect, Site, data_of, text_of
from tests.support.model_server import Remote

pytestmark = pytest.mark.anyio

QUESTION = {"question": "When does the first ferry leave on Sundays?"}
PAGE = {"sources": [str(LIBRARY / "lake-orvane.html")], "question": "How deep is Lake Orvane?"}
QUIET = (
    "<h1>Cheese</h1><p>The dairy on the hill makes a soft cheese from the milk of eleven "
    "goats each spring.</p>"
)
CALLS = 40
"""More than run and wait for a call of ten seconds on any machine."""


def slow_web(site: Site) -> dict[str, str]:
    """Return settings of a web whose only page comes when the test says so."""
    slow = site.put("/slow-page", QUIET)
    row = {"title": "Cheese", "url": slow, "content": "Cheese", "engine": "mojeek"}
    found = {"query": "", "results": [row], "unresponsive_engines": []}
    site.put("/search", json.dumps(found), kind="application/json")
    return {"searxng": site.url(""), "networks": "loopback", "robots": "false"}


async def quiet(waited: float, what: str) -> None:
    """Listen to nothing."""


async def test_calls_beyond_the_places_wait_or_are_refused_with_different_times(
    connect: Connect, site: Site
) -> None:
    ended: list[CallToolResult] = []
    reported: list[str] = []
    waiting, refused = anyio.Event(), anyio.Event()

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        if (message or "").startswith("waiting"):
            reported.append(message or "")
            waiting.set()

    async def call(client: Client) -> None:
        result = await client.call_tool("research", QUESTION, progress_callback=listen)
        ended.append(result)
        if result.is_error:
            refused.set()

    async with (
        connect(**slow_web(site), seconds="10") as client,
        anyio.create_task_group() as group,
    ):
        for _ in range(CALLS):
            group.start_soon(call, client)
        await waiting.wait()
        await refused.wait()
        site.hold.set()
    busy = [data_of(one) for one in ended if one.is_error]
    assert [text_of(one) for one in ended if one.is_error and "Retry in" not in text_of(one)] == []
    assert {one["error"] for one in busy} == {"busy"}
    assert len({one["retry_after"] for one in busy}) > 1
    assert all("Retry in" in text_of(one) for one in ended if one.is_error)
    assert len(ended) - len(busy) >= 2
    assert "calls before" in reported[0]


async def test_a_page_at_hand_is_read_while_research_holds_every_place(
    connect: Connect, site: Site
) -> None:
    async def research(client: Client) -> None:
        await client.call_tool("research", QUESTION)

    async with (
        connect(**slow_web(site), seconds="40") as client,
        anyio.create_task_group() as group,
    ):
        for _ in range(CALLS // 2):
            group.start_soon(research, client)
        await to_thread.run_sync(site.held.wait, limiter=CapacityLimiter(1))
        result = await client.call_tool("fetch_and_prune_html", PAGE)
        assert not site.hold.is_set()
        site.hold.set()
    assert not result.is_error
    assert "213 metres" in text_of(result)


async def test_the_queue_is_fair_by_caller(anyio_backend: str) -> None:
    admission = Admission(places=1)
    order: list[str] = []
    first = anyio.Event()

    async def call(caller: str, name: str) -> None:
        async with admission.call(caller, light=False, seconds=1000, report=quiet):
            order.append(name)
            if name == "busy 0":
                await first.wait()

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(call, "busy", f"busy {number}")
            await anyio.wait_all_tasks_blocked()
        group.start_soon(call, "seldom", "seldom")
        await anyio.wait_all_tasks_blocked()
        first.set()
    assert order == ["busy 0", "seldom", "busy 1", "busy 2", "busy 3"]


async def test_a_caller_of_whom_no_call_runs_begins_at_once_though_another_has_every_place(
    anyio_backend: str,
) -> None:
    admission = Admission(places=2)
    running: list[str] = []
    let_go = anyio.Event()

    async def call(caller: str) -> None:
        async with admission.call(caller, light=False, seconds=1000, report=quiet):
            running.append(caller)
            await let_go.wait()

    async with anyio.create_task_group() as group:
        for caller in ["many"] * 5 + ["one", "one"]:
            group.start_soon(call, caller)
        await anyio.wait_all_tasks_blocked()
        assert sorted(running) == ["many", "many", "one"]
        let_go.set()


async def test_a_caller_with_many_calls_has_one_piece_of_work_beside_another(
    anyio_backend: str,
) -> None:
    admission = Admission(places=4)
    at_work, most = 0, 0
    begun, all_in = anyio.Event(), anyio.Event()
    both = threading.Barrier(2, timeout=60)
    counting = threading.Lock()

    def theirs() -> None:
        nonlocal at_work, most
        with counting:
            at_work += 1
            most = max(most, at_work)
        sum(range(30_000))  # long enough for another to begin
        with counting:
            at_work -= 1

    async def greedy() -> None:
        async with admission.call("many", light=False, seconds=1000, report=quiet):
            await begun.wait()
            while not all_in.is_set():
                await in_thread(theirs)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(greedy)
        await anyio.wait_all_tasks_blocked()
        async with admission.call("one", light=False, seconds=1000, report=quiet):
            begun.set()
            for _ in range(5):
                async with anyio.create_task_group() as own:
                    own.start_soon(in_thread, both.wait)
                    own.start_soon(in_thread, both.wait)
            beside_another = most  # afterwards pieces that waited may run side by side
            all_in.set()
    assert beside_another == 1


async def test_a_server_that_is_stopped_answers_who_waits_and_refuses_who_comes(
    anyio_backend: str,
) -> None:
    admission = Admission(places=1)
    let_go = anyio.Event()
    ends: list[str] = []

    async def call(name: str) -> None:
        try:
            async with admission.call(name, light=False, seconds=1000, report=quiet):
                await let_go.wait()
                ends.append(f"{name} ran")
        except Busy as error:
            ends.append(f"{name}: {error}")

    async with anyio.create_task_group() as group:
        group.start_soon(call, "first")
        await anyio.wait_all_tasks_blocked()
        group.start_soon(call, "waits")
        await anyio.wait_all_tasks_blocked()
        admission.close()
        group.start_soon(call, "comes")
        await anyio.wait_all_tasks_blocked()
        let_go.set()
    assert [end.partition(":")[0] for end in ends] == ["comes", "first ran", "waits ran"]
    assert "shutting down" in ends[0]


async def test_a_call_that_is_cancelled_while_it_waits_leaves_no_gap_in_the_queue(
    anyio_backend: str,
) -> None:
    admission = Admission(places=1)
    let_go, ran = anyio.Event(), anyio.Event()

    async def call(until: anyio.Event) -> None:
        async with admission.call("one", light=False, seconds=1000, report=quiet):
            await until.wait()
            ran.set()

    async with anyio.create_task_group() as group:
        group.start_soon(call, let_go)
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as given_up:
            given_up.start_soon(call, anyio.Event())
            await anyio.wait_all_tasks_blocked()
            given_up.cancel_scope.cancel()
        group.start_soon(call, let_go)
        await anyio.wait_all_tasks_blocked()
        let_go.set()
    assert ran.is_set()


async def test_where_a_source_was_late_nothing_found_is_unsure_and_the_same_call_goes_on(
    connect: Connect, site: Site
) -> None:
    quick, slow = site.put("/quick", QUIET), site.put("/slow", QUIET)
    asked = {"question": "Who was the first king of Portugal?", "sources": [quick, slow]}
    async with connect(networks="loopback", robots="false", seconds="10") as client:
        result = await client.call_tool("extract_relevant", asked)
    data = data_of(result)
    assert data is not None
    assert (data["verdict"], data["answered"]) == ("unsure", False)
    assert "not everything was read" in data["reason"] and f"Not read: {slow}" in data["reason"]
    assert "not everything was read" in text_of(result)
    assert {"tool": "extract_relevant", "arguments": {}} in data["next"]


@pytest.mark.parametrize(("status", "verdict"), [(404, "none"), (500, "unsure")])
async def test_a_page_that_does_not_exist_holds_no_answer_and_one_that_failed_may(
    connect: Connect, site: Site, status: int, verdict: str
) -> None:
    quick, other = site.put("/quick", QUIET), site.put("/other", "gone", status=status)
    asked = {"question": "Who was the first king of Portugal?", "sources": [quick, other]}
    async with connect(networks="loopback", robots="false") as client:
        result = await client.call_tool("extract_relevant", asked)
    assert data_of(result)["verdict"] == verdict


async def test_a_web_that_failed_beside_the_folder_makes_nothing_found_unsure(
    connect: Connect, site: Site
) -> None:
    site.put("/search", "out of order", status=500)
    async with connect(searxng=site.url(""), networks="loopback") as client:
        result = await client.call_tool(
            "research", {"question": "Who was the first king of Portugal?"}
        )
    assert data_of(result)["verdict"] == "unsure"
    assert "searxng" in data_of(result)["reason"]


@pytest.mark.slow  # waits for a real deadline of three seconds
@pytest.mark.parametrize(
    ("tool", "role"),
    [
        ("research", "embedder"),
        ("extract_relevant", "embedder"),
        ("raptor_query", "embedder"),
        ("search_web", "embedder"),
        ("fetch_and_prune_html", "embedder"),
        ("extract_relevant", "reranker"),
    ],
)
async def test_a_model_that_does_not_answer_in_time_costs_no_answer(
    connect: Connect, remote: Remote, tool: str, role: str
) -> None:
    def never(body: dict[str, object]) -> Response:
        remote.release.wait(60)
        return JSONResponse({}, 503)

    remote.will("/embeddings", never)
    remote.will("/rerank", never)
    page = {"sources": [str(LIBRARY / "ferry-timetable.html")]}
    given = QUESTION | (page if tool not in {"research", "search_web"} else {})
    async with connect(**{role: f"openai:{remote.url}#slow"}, seconds="30") as client:
        result = await client.call_tool(tool, given)
        remote.release.set()
    assert not result.is_error, text_of(result)
    assert ("ferry-timetable" if tool == "search_web" else "09:15") in text_of(result)
    if tool == "raptor_query":
        assert data_of(result)["tree"] == ""
        assert {"tool": tool, "arguments": {}} in data_of(result)["next"]


async def test_research_whose_time_is_up_answers_from_what_the_search_said(tmp_path: Path) -> None:
    class Engine:
        names = ("engine",)

        async def search(self, queries: Sequence[SearchQuery], *, limit: int) -> Findings:
            said = SearchResult(
                "Light",
                "http://127.0.0.1:1/light",
                "The harbour light was built in 1871.",
                "engine",
            )
            return Findings((said,), ())

    wanted = Wanted(Question("When was the harbour light built?"), 8)
    async with open_services(read_settings({"cache": str(tmp_path)}, {})) as services:
        with Call(-math.inf, light=False).running():
            found = await research(
                wanted,
                replace(services, chain=Engine()),
                max_tokens=1000,
                reserve=0,
                report=no_report,
            )
    assert "built in 1871" in found.answer.sheet.text
    assert found.gathered.missing()
