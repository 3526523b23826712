"""A client of the SDK that is cancelled, runs out of time, loses its server and comes
back: what it sees.

`python -m bench.mcp --transcript` prints it; exits 1 when a step does not go as the
words say. Not for: figures."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from bench.loopback import Answer, serving
from bench.mcp_served import LIBRARY, ROOT, environment, tree
from tools.common.ending import data_of

QUESTION: Final = "What changed at the harbour?"
SECONDS: Final = 3
"""The server's budget of a call in the second step."""


async def transcript(python: str) -> list[str]:
    """Print what a client sees in each step; return the steps that did not go as they
    should."""
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder, _site() as site:
        parameters = StdioServerParameters(
            command=python,
            args=["-m", "server"],
            env=environment(Path(folder), seconds=str(SECONDS), robots="0"),
            cwd=ROOT,
        )
        async with Client(parameters) as client:
            tree_handle = await _cancelled(client, failed)
            await _out_of_time(client, site, failed)
            await _killed(client, failed)
        async with Client(parameters) as client:
            await _reconnected(client, site, tree_handle, failed)
    return failed


async def _cancelled(client: Client, failed: list[str]) -> str:
    print("1. A call is cancelled by its client")
    began = time.perf_counter()
    with anyio.move_on_after(0.5) as scope:
        await client.call_tool(
            "raptor_query", {"question": QUESTION, "sources": [str(LIBRARY)]}
        )
    _reported(began, "raptor_query over the whole library: given up by the client")
    failed += ["the call was done before it was cancelled"] * (
        not scope.cancelled_caught
    )
    began = time.perf_counter()
    tools = (await client.list_tools()).tools
    _reported(began, f"tools/list, right after: {len(tools)} tools")
    began = time.perf_counter()
    page = str(LIBRARY / "ferry-timetable.html")
    result = await client.call_tool(
        "raptor_query", {"question": QUESTION, "sources": [page]}
    )
    _reported(began, f"raptor_query over one page: {_line(result, 'Next: ')}")
    failed += ["no answer after a cancel"] * result.is_error
    data: dict[str, Any] = data_of(result)
    return str(data.get("tree", ""))


async def _out_of_time(client: Client, site: "_Site", failed: list[str]) -> None:
    print(f"2. A call runs out of its {SECONDS} seconds, and is repeated")
    arguments = {
        "sources": [site.url("quick"), site.url("slow")],
        "question": "What does a bicycle cost?",
        "max_tokens": 600,
    }
    began = time.perf_counter()
    first = await client.call_tool("fetch_and_prune_html", arguments)
    seconds = _reported(
        began, f"fetch_and_prune_html of two pages: {_line(first, 'Not read: ')}"
    )
    print(f"           {_line(first, 'Next: ')}")
    failed += [f"an answer took {seconds:.1f} s"] * (seconds > SECONDS + 3)
    site.release()
    calls = data_of(first).get("next", [])
    failed += ["the answer does not name the call again"] * (not calls)
    began = time.perf_counter()
    second = (
        await client.call_tool(calls[0]["tool"], calls[0]["arguments"])
        if calls
        else first
    )
    _reported(
        began,
        f"the call it names: {_line(second, 'A bicycle ')}; the quick page was asked "
        f"{site.asked('quick')} time",
    )
    failed += ["the repeated call misses a page"] * bool(
        data_of(second).get("failures")
    )
    failed += ["the quick page was fetched again"] * (site.asked("quick") != 1)


async def _killed(client: Client, failed: list[str]) -> None:
    print("3. The server is killed in the middle of a call")
    server = tree(os.getpid())[1]
    seen = ""
    began = time.perf_counter()

    async def call() -> None:
        nonlocal seen
        try:
            await client.call_tool(
                "raptor_query", {"question": QUESTION, "sources": [str(LIBRARY)]}
            )
        except MCPError as error:
            seen = str(error)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await anyio.sleep(0.5)
        os.kill(server, signal.SIGKILL)
        with anyio.move_on_after(5):
            while not seen:
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    _reported(began, f"the client receives: {seen or 'nothing'}")
    failed += ["the client was not informed that its server is gone"] * (not seen)


async def _reconnected(
    client: Client, site: "_Site", handle: str, failed: list[str]
) -> None:
    print("4. The client starts the server again")
    began = time.perf_counter()
    result = await client.call_tool(
        "raptor_query", {"question": "What do bicycles cost?", "sources": [handle]}
    )
    data: dict[str, Any] = data_of(result)
    _reported(
        began,
        f"raptor_query of the tree from before ({handle}): {len(data.get('passages', []))} "
        f"passages",
    )
    failed += ["the tree from before is gone"] * result.is_error
    began = time.perf_counter()
    again = await client.call_tool(
        "extract_relevant", {"question": "bicycle", "sources": [site.url("slow")]}
    )
    _reported(
        began,
        f"extract_relevant of the page from before: asked {site.asked('slow')} times in all",
    )
    failed += ["a page from before is gone"] * again.is_error


def _reported(began: float, text: str) -> float:
    seconds = time.perf_counter() - began
    print(f"   {seconds:5.2f} s  {text}")
    return seconds


def _line(result: CallToolResult, start: str) -> str:
    """Return the first line of an answer with `start` in it, shortened."""
    text = "\n".join(
        part.text for part in result.content if isinstance(part, TextContent)
    )
    found = next(
        (line[line.index(start) :] for line in text.splitlines() if start in line),
        text[:100],
    )
    return found[:110]


class _Site:
    """Two pages on loopback; `slow` is held until it is released."""

    def __init__(
        self, port: int, counts: dict[str, int], held: threading.Event
    ) -> None:
        self._port = port
        self._counts = counts
        self._held = held

    def url(self, name: str) -> str:
        """Return the address of a page."""
        return f"http://127.0.0.1:{self._port}/{name}"

    def asked(self, name: str) -> int:
        """Return how often a page was asked for."""
        return self._counts.get(name, 0)

    def release(self) -> None:
        """Let `slow` answer."""
        self._held.set()


@contextmanager
def _site() -> Iterator[_Site]:
    counts: dict[str, int] = {}
    held = threading.Event()
    texts = {
        "quick": "<h1>Boats</h1><p>The boat to Pell Island is red and leaves at noon.</p>",
        "slow": "<h1>Fares</h1><p>A bicycle to Pell Island costs 3 crowns each way.</p>",
    }

    def answer(path: str) -> Answer:
        name = path.strip("/")
        counts[name] = counts.get(name, 0) + 1
        if name == "slow":
            held.wait(30)
        return Answer(
            texts.get(name, "").encode(), headers={"Cache-Control": "max-age=600"}
        )

    with serving(answer) as port:
        try:
            yield _Site(port, counts, held)
        finally:
            held.set()
