"""Two replicas behind HAProxy with one cache server: what one returned the other goes on with, and
one may die."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from tests.support import LIBRARY, Site, data_of, text_of
from tests.support.balanced import Replicas, balanced
from tests.support.cache_server import cache_server
from tests.support.processes import as_caller, ready

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FERRY = "When does the first ferry leave on Sundays?"
TOKENS = "first,second"


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    """Two replicas, each with a folder of its own, and what they share."""
    with (
        cache_server(tmp_path / "shared") as shared,
        balanced(
            tmp_path, cache_url=f"{shared.url}?private=true", robots="0", http_tokens=TOKENS
        ) as made,
    ):
        yield made


async def at(url: str, tool: str, *, mode: str = "auto", **arguments: Any) -> CallToolResult:
    """Call a tool as a client that has just come."""
    async with as_caller(url, "first", mode=mode) as connected:
        return await connected.call_tool(tool, arguments)


async def test_every_handle_that_a_dead_replica_returned_the_other_goes_on_with(
    replicas: Replicas,
) -> None:
    for number in (0, 1):
        await ready(replicas.of(number))
    one, other = replicas.of(0), replicas.of(1)
    whole: dict[str, Any] = {
        "sources": [str(LIBRARY / "lake-orvane.html")],
        "question": "How deep is it?",
        "max_tokens": 200,
    }
    found = await at(one, "research", question=FERRY)
    cut = await at(one, "fetch_and_prune_html", **whole)
    tree = await at(one, "raptor_query", question=FERRY, sources=whole["sources"])
    session, cursor = data_of(found)["session"], data_of(cut)["next_cursor"]
    page = data_of(found)["handles"][0]
    replicas.kill(0)

    further = data_of(await at(other, "research", question="And on Mondays?", session=session))
    assert further["session"] == session
    rest = await at(other, "fetch_and_prune_html", **whole, cursor=cursor)
    assert text_of(rest) not in ("", text_of(cut))
    data_of(await at(other, "extract_relevant", question=FERRY, sources=[page]))
    again = data_of(
        await at(other, "raptor_query", question=FERRY, sources=[data_of(tree)["tree"]])
    )
    assert again["tree"] == data_of(tree)["tree"]
    async with as_caller(other, "second") as theirs:
        refused = await theirs.call_tool("research", {"question": FERRY, "session": session})
    assert "unknown" in text_of(refused)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_killed_replica_costs_each_call_at_most_one_retry_and_may_come_back(
    replicas: Replicas, site: Site, mode: str
) -> None:
    for number in (0, 1):
        await ready(replicas.of(number))
    await ready(replicas.url)
    pages = [
        site.put(f"/slow-{number}", f"<p>Ferry {number} leaves at noon.</p>") for number in range(4)
    ]
    retries = dict.fromkeys(pages, 0)
    answers: dict[str, str] = {}

    async def ask(page: str) -> None:
        while page not in answers:
            try:
                result = await at(replicas.url, "fetch_and_prune_html", mode=mode, sources=[page])
                answers[page] = text_of(result)
            except* (MCPError, httpx2.HTTPError):
                retries[page] += 1
                assert retries[page] < 3

    async with anyio.create_task_group() as group:
        for page in pages:
            group.start_soon(ask, page)
        async with as_caller(replicas.of(1), "first") as watching:
            while len({path for path in site.asked if path.startswith("/slow")}) < len(pages):
                await watching.list_tools()
        replicas.kill(0)
        site.hold.set()
    for number, page in enumerate(pages):
        assert f"Ferry {number}" in answers[page]
    assert max(retries.values()) <= 1

    replicas.start(0)
    await ready(replicas.of(0))
    replicas.kill(1)
    await ready(replicas.url)
    data_of(await at(replicas.url, "research", mode=mode, question=FERRY))
