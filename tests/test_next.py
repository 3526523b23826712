"""What an answer says about going on: calls with what they change, in the text and for programs,
that work as is."""

import json
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult

from tests.support import LIBRARY, Connect, Site, data_of, text_of

pytestmark = pytest.mark.anyio

TIMETABLE = str(LIBRARY / "ferry-timetable.html")
QUESTION = "When does the first ferry leave on Sundays?"
FOREIGN = "Which enzyme unwinds the DNA double helix during replication?"
CALLS: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "search_web",
        {"question": "ferry timetable Sunday", "max_results": 3},
        ["fetch_and_prune_html", "search_web"],
    ),
    (
        "search_web",
        {"question": "ferry timetable", "max_tokens": 200},
        ["fetch_and_prune_html", "search_web"],
    ),
    (
        "fetch_and_prune_html",
        {"sources": [TIMETABLE], "question": "Sunday", "max_tokens": 450},
        ["fetch_and_prune_html"],
    ),
    (
        "extract_relevant",
        {"question": QUESTION, "sources": [TIMETABLE], "max_tokens": 450},
        ["extract_relevant"],
    ),
    ("extract_relevant", {"question": FOREIGN, "sources": [TIMETABLE]}, ["research"]),
    ("raptor_query", {"question": QUESTION, "sources": [TIMETABLE]}, ["raptor_query"]),
    ("research", {"question": QUESTION, "max_tokens": 1000}, ["research"]),
    ("research", {"question": FOREIGN, "max_pages": 2}, ["research"]),
]


def following(result: CallToolResult) -> list[dict[str, Any]]:
    assert not result.is_error, text_of(result)
    calls: list[dict[str, Any]] = data_of(result)["next"]
    return calls


async def works(client: Client, call: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether the call works with what changes, and of the call before what the tool takes too."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    known = tools[call["tool"]].input_schema["properties"]
    kept = {name: value for name, value in before.items() if name in known}
    return not (await client.call_tool(call["tool"], {**kept, **call["arguments"]})).is_error


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "arguments", "wanted"), CALLS)
async def test_every_call_that_an_answer_names_works_with_what_it_changes(
    connect: Connect, tool: str, arguments: dict[str, Any], wanted: list[str]
) -> None:
    async with connect() as client:
        calls = following(await client.call_tool(tool, arguments))
        assert [call["tool"] for call in calls][: len(wanted)] == wanted
        for call in calls:
            assert set(call) == {"tool", "arguments"}
            assert "question" not in call["arguments"]
            assert await works(client, call, arguments), call


@pytest.mark.parametrize(("tool", "arguments"), [call[:2] for call in CALLS])
async def test_the_text_names_the_first_of_them_with_what_it_changes_on_one_line(
    connect: Connect, tool: str, arguments: dict[str, Any]
) -> None:
    async with connect() as client:
        result = await client.call_tool(tool, arguments)
    first = following(result)[0]
    line = next(line for line in text_of(result).splitlines() if line.startswith("Next: "))
    named = line.removeprefix("Next: ").split(" | ")[0]
    assert named.startswith("the same call" if first["tool"] == tool else first["tool"])
    for name, value in first["arguments"].items():
        assert f"{name}={json.dumps(value, ensure_ascii=False)}" in named


async def test_where_everything_is_said_nothing_is_named(connect: Connect, site: Site) -> None:
    url = site.put(
        "/short", "<h1>Boats</h1><p>The boat to Pell Island is red and leaves at noon.</p>"
    )
    async with connect(networks="loopback") as client:
        result = await client.call_tool(
            "fetch_and_prune_html", {"sources": [url], "max_tokens": 1000}
        )
    assert following(result) == []
    assert "Next:" not in text_of(result)


@pytest.mark.parametrize(
    ("tool", "asked", "named"),
    [
        ("fetch_and_prune_html", {"question": "boat"}, "sources"),
        ("extract_relevant", {"question": "Which colour has the boat to Pell Island?"}, "sources"),
        ("raptor_query", {"question": "Which colour has the boat to Pell Island?"}, "sources"),
    ],
)
async def test_a_source_that_was_late_is_answered_by_the_same_call_again(
    connect: Connect, site: Site, tool: str, asked: dict[str, Any], named: str
) -> None:
    quick = site.put(
        "/quick", "<h1>Boats</h1><p>The boat to Pell Island is red and leaves at noon.</p>"
    )
    slow = site.put(
        "/slow", "<h1>Fares</h1><p>A bicycle to Pell Island costs 3 crowns each way.</p>"
    )
    arguments = {**asked, named: [quick, slow]}
    async with connect(networks="loopback", robots="false", seconds="8") as client:
        first = await client.call_tool(tool, arguments)
        assert {"tool": tool, "arguments": {}} in following(first)
        assert "red" in text_of(first)
        assert "the same call again" in text_of(first)
        site.hold.set()
        second = await client.call_tool(tool, arguments)
    assert {"tool": tool, "arguments": {}} not in following(second)
    assert data_of(second)["failures"] == []
