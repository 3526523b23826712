"""Arguments as models send them: guessed names, nulls, single values, text that is too long."""

import json
import subprocess
import sys
from typing import Any

import pytest
from mcp_types import Tool

from tests.support import LIBRARY, ROOT, Connect, text_of
from tools.common.tool import OURS

pytestmark = pytest.mark.anyio

TIMETABLE = str(LIBRARY / "ferry-timetable.html")
LISTED = ROOT / "server" / "tools_list.json"
PLAIN = {
    "type",
    "properties",
    "required",
    "description",
    "default",
    "enum",
    "minimum",
    "maximum",
    "items",
}


@pytest.mark.parametrize(
    ("tool", "arguments", "meant"),
    [
        ("research", {"question": "ferry", "max_token": 500}, "max_tokens"),
        ("search_web", {"question": "ferry", "max_result": 3}, "max_results"),
        (
            "extract_relevant",
            {"question": "ferry", "query": "boat", "sources": [TIMETABLE]},
            "question",
        ),
    ],
)
async def test_an_unknown_name_is_refused_with_the_nearest_one(
    connect: Connect, tool: str, arguments: dict[str, Any], meant: str
) -> None:
    async with connect() as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert meant in text_of(result)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_web", {"query": "When does the ferry to Skellmouth leave?", "limit": 3}),
        ("search_web", {"q": "When does the ferry to Skellmouth leave?"}),
        ("research", {"prompt": "When does the ferry to Skellmouth leave?"}),
        (
            "fetch_and_prune_html",
            {"url": TIMETABLE, "query": "When does the ferry to Skellmouth leave?"},
        ),
        (
            "extract_relevant",
            {"prompt": "When does the ferry to Skellmouth leave?", "sources": [TIMETABLE]},
        ),
    ],
)
async def test_usual_other_names_of_an_argument_are_understood(
    connect: Connect, tool: str, arguments: dict[str, Any]
) -> None:
    async with connect() as client:
        result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert "Skellmouth" in text_of(result)


async def test_null_means_the_default_and_one_source_means_a_list_of_one(connect: Connect) -> None:
    arguments = {"sources": TIMETABLE, "question": None, "max_tokens": None, "cursor": None}
    async with connect() as client:
        result = await client.call_tool("fetch_and_prune_html", arguments)
    assert not result.is_error, text_of(result)
    assert "Skellmouth" in text_of(result)


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("research", {"question": "x" * 2001}, "question"),
        ("research", {"question": ""}, "question"),
        ("fetch_and_prune_html", {"sources": []}, "sources"),
        ("extract_relevant", {"question": "x", "sources": ["a"] * 51}, "sources"),
        ("extract_relevant", {"question": "x"}, "sources"),
    ],
)
async def test_bounds_that_the_list_leaves_out_still_hold(
    connect: Connect, tool: str, arguments: dict[str, Any], named: str
) -> None:
    async with connect() as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert named in text_of(result)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"question": "x", "max_tokens": 90_000},
            "max_tokens is 90000: Input should be less than or equal to 20000.",
        ),
        ({"max_tokens": 500}, "question is missing."),
        (
            {"question": "x", "freshness": "never"},
            "freshness is 'never': Input should be 'any', 'day'",
        ),
        ({"question": "x" * 9000}, ": String should have at most 2000 characters."),
    ],
)
async def test_a_wrong_value_is_refused_in_one_sentence_with_its_bound(
    connect: Connect, arguments: dict[str, Any], said: str
) -> None:
    async with connect() as client:
        result = await client.call_tool("research", arguments)
    assert result.is_error
    assert said in text_of(result)
    assert len(text_of(result)) < 200
    assert "pydantic" not in text_of(result)


async def test_the_list_of_tools_is_what_the_code_says_and_what_was_reviewed(
    connect: Connect,
) -> None:
    """After a change that is meant: `python -m bench.mcp --tools` into `server/tools_list.json`,
    and read the diff."""
    async with connect() as client:
        tools = (await client.list_tools()).tools
    kept = json.loads(LISTED.read_text(encoding="utf-8"))
    printed = [sys.executable, "-m", "bench.mcp", "--tools"]
    assert kept == json.loads(subprocess.check_output(printed, cwd=ROOT))
    assert all(tool.pop(OURS)["command"] for tool in kept)  # for the command line, not for clients
    assert [shown(tool) for tool in tools] == kept


async def test_schemas_use_plain_keywords_only(connect: Connect) -> None:
    async with connect() as client:
        tools = (await client.list_tools()).tools
    for tool in tools:
        for part in parts(tool.input_schema):
            assert set(part) <= PLAIN, f"{tool.name}: {set(part) - PLAIN}"
            assert "items" in part or part.get("type") != "array"


def parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    below = [
        *schema.get("properties", {}).values(),
        *([schema["items"]] if "items" in schema else []),
    ]
    return [schema, *(part for child in below for part in parts(child))]


def shown(tool: Tool) -> dict[str, object]:
    # `_meta` says to hosts what draws an answer; no model reads it.
    listed: dict[str, object] = tool.model_dump(
        by_alias=True, exclude_none=True, mode="json", exclude={"meta"}
    )
    return listed
