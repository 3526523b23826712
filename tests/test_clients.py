"""What clients make of an answer before their model reads it: the words arrive by each way, and
arrive once.

Each way is named by the clients that take it, with where that was seen. Many give their model
structured content where there is any, and not the text: so there is none. Not for: the clients
themselves (`bench/clients.py`).
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, ResourceLink, TextContent

from server.app import build_server
from server.settings import read_settings
from tests.support import LIBRARY, data_of, text_of
from tests.support.clients import ANSWER, ASKED, GONE, PAGE, QUESTION, TWICE, read_twice, runs_of
from tests.support.tokens import cut_to_tokens

CUT: Final = 25_000
"""Tokens after which Claude Code cuts a result (MAX_MCP_OUTPUT_TOKENS;
code.claude.com/docs/en/mcp)."""
FOREIGN: Final = "Which enzyme unwinds the DNA double helix during replication?"
DRAFT: Final = f"The minibus costs 9 crowns [1].\n\nIt takes 20 minutes [1].\n\n[1] file://{PAGE}"


STOCK: Final = """<title>Stock</title><h1>Stock</h1><p>Ask about <a href="https://example.org/bolts">bolts</a>.</p>
<table><tr><th>Item<th>Quantity<th>City<tr><td>bolt<td>4<td>Porto<tr><td>hinge<td>8<td>Porto<tr><td>hose<td>5<td>Graz
</table>"""
EMPTY: Final = frozenset(("nothing found", "nothing to read"))
"""Kinds of answer of a server whose folder is empty."""
ERRORS: Final = frozenset(("failed", "refused", "wrong"))


class Kind(NamedTuple):
    """A kind of answer: the call, and what a model must read of its answer."""

    tool: str
    arguments: dict[str, Any]
    needed: tuple[str, ...]


BARE: Final = {"sources": [PAGE]}
KINDS: Final = {
    "hits": Kind(
        "search_web", {"question": QUESTION}, (ANSWER, "Last Sunday boat", "fetch_and_prune_html")
    ),
    "few hits": Kind(
        "search_web", {"question": QUESTION, "max_results": 1, "max_tokens": 300}, (ANSWER, "page")
    ),
    "kept": Kind("fetch_and_prune_html", ASKED, (ANSWER, "Last Sunday boat")),
    "kept, cut": Kind("fetch_and_prune_html", {**ASKED, "max_tokens": 500}, (ANSWER, "cursor")),
    "as HTML": Kind("fetch_and_prune_html", {**ASKED, "format": "html"}, (ANSWER,)),
    "from the top": Kind(
        "fetch_and_prune_html", BARE, (ANSWER, "Last Sunday boat", "cursor", "49")
    ),
    "whole": Kind("fetch_and_prune_html", {**BARE, "part": "whole"}, (ANSWER, "Last Sunday boat")),
    "outline": Kind(
        "fetch_and_prune_html", {**BARE, "part": "outline"}, ("A look at the numbers",)
    ),
    "section": Kind(
        "fetch_and_prune_html", {**BARE, "part": "section A look at the numbers"}, ("88.1",)
    ),
    "tables": Kind(
        "fetch_and_prune_html", {**BARE, "part": "tables"}, ("Average passengers", "Weekday")
    ),
    "table": Kind(
        "fetch_and_prune_html",
        {**BARE, "part": "sql: SELECT * FROM t1 WHERE departure = 'Morning'"},
        ("88.1", "Weekday"),
    ),
    "files": Kind(
        "fetch_and_prune_html",
        {"sources": [str(LIBRARY)], "part": "files", "max_tokens": 200},
        ("binoculars",),
    ),
    "links": Kind(
        "fetch_and_prune_html", {"sources": ["stock.html"], "part": "links"}, ("example.org/bolts",)
    ),
    "kept in part": Kind(
        "fetch_and_prune_html", {**ASKED, "sources": [PAGE, GONE]}, (ANSWER, "gone.html")
    ),
    "extracted": Kind("extract_relevant", ASKED, (ANSWER, "Last Sunday boat")),
    "extracted, small": Kind("extract_relevant", {**ASKED, "max_tokens": 130}, (ANSWER,)),
    "extracted in part": Kind(
        "extract_relevant", {**ASKED, "sources": [PAGE, GONE]}, (ANSWER, "gone.html")
    ),
    "parts": Kind(
        "extract_relevant",
        {**ASKED, "question": f"{QUESTION[:-1]}, and when did the Sunday crossing begin?"},
        (ANSWER, "1958"),
    ),
    "none": Kind(
        "extract_relevant", {"question": FOREIGN, "sources": [PAGE]}, ("none", "research")
    ),
    "draft": Kind(
        "extract_relevant",
        {"question": "", "sources": [], "draft": DRAFT},
        ("The minibus costs 9 crowns", "takes 20 minutes", "55 minutes"),
    ),
    "tree": Kind("raptor_query", ASKED, (ANSWER, "winnow://tree/")),
    "tree, collapsed": Kind(
        "raptor_query", {**ASKED, "mode": "collapsed"}, (ANSWER, "winnow://tree/")
    ),
    "tree, walked": Kind(
        "raptor_query", {**ASKED, "mode": "traversal"}, (ANSWER, "winnow://tree/")
    ),
    "overview": Kind(
        "raptor_query",
        {**BARE, "question": "What is this about?"},
        ("A look at the numbers", "winnow://tree/"),
    ),
    "evidence": Kind("research", {"question": QUESTION}, (ANSWER, "Last Sunday boat", "ession")),
    "evidence, small": Kind("research", {"question": QUESTION, "max_tokens": 150}, (ANSWER,)),
    "unsure": Kind(
        "research", {"question": "What does the Nightbird cost in winter?"}, ("unsure",)
    ),
    "no evidence": Kind("research", {"question": FOREIGN}, ("none: ", "ession")),
    "no model writes": Kind(
        "research", {"question": QUESTION, "answer": True}, (ANSWER, "No answer was written")
    ),
    "nothing found": Kind("search_web", {"question": QUESTION}, ("empty", "folder")),
    "nothing to read": Kind("research", {"question": QUESTION}, ("empty", "ession")),
    "failed": Kind("fetch_and_prune_html", {"sources": [GONE]}, ("gone.html", "Check the path")),
    "refused": Kind("extract_relevant", {"question": "", "sources": []}, ("question is empty",)),
    "wrong": Kind("research", {"question": QUESTION, "max_tokens": 5}, ("max_tokens",)),
}


def texts_joined(result: CallToolResult) -> str:
    """opencode (its #38923), Cursor, Claude.ai, kimi-code (#3234), fastmcp, adk-go and agentscope
    (links dropped)."""
    return text_of(result)


def first_text(result: CallToolResult) -> str:
    """Claude Code over HTTP (anthropics/claude-code #89630), crewAI (its PR 5226), camel (its
    #4263)."""
    return next(part.text for part in result.content if isinstance(part, TextContent))


def last_block(result: CallToolResult) -> str:
    """openJiuwen agent-core until its #290: whatever is last in `content`."""
    part = result.content[-1]
    return part.text if isinstance(part, TextContent) else str(part)


def structured_if_any(result: CallToolResult) -> str:
    """Claude Code to 2.1.280 (#79944, #55677), Codex (`as_function_call_output_payload`), VS Code
    (microsoft/vscode #290063), Copilot CLI (its #3258), adk-go (#1391), smolagents with
    `structured_output`.

    Of an error they take the text (anthropics/claude-code #86032).
    """
    if result.structured_content is None or result.is_error:
        return text_of(result)
    return as_json(result.structured_content)


def structured_if_all_is_text(result: CallToolResult) -> str:
    """pydantic-ai 2.68, `_map_mcp_call_tool_result`; of an error it takes any structured part."""
    texts = all(isinstance(part, TextContent) for part in result.content)
    if result.structured_content is None or not (texts or result.is_error):
        return text_of(result)
    return as_json(result.structured_content)


def blocks_as_json(result: CallToolResult) -> str:
    """Open WebUI (usememos/memos #6226), openai-agents for more blocks than one: `content` dumped
    whole."""
    return as_json([part.model_dump(mode="json", exclude_none=True) for part in result.content])


def all_as_json(result: CallToolResult) -> str:
    """Copilot CLI (its #4515) and Copilot for IntelliJ (#2058): both parts, wrapped one the
    other."""
    return as_json(result.model_dump(mode="json", exclude_none=True, exclude={"meta"}))


def cut_long(result: CallToolResult) -> str:
    """Claude Code cuts what it takes at 25,000 tokens."""
    return cut_to_tokens(structured_if_any(result), CUT)


def links_listed(result: CallToolResult) -> str:
    """pydantic-ai, langchain-mcp-adapters, mcp-use: a link is its address, or its JSON, after the
    text."""
    parts = (part.model_dump_json() for part in result.content if isinstance(part, ResourceLink))
    return "\n".join((text_of(result), *parts))


WAYS: Final[dict[str, Callable[[CallToolResult], str]]] = {
    way.__name__: way
    for way in (
        texts_joined,
        first_text,
        last_block,
        structured_if_any,
        structured_if_all_is_text,
        blocks_as_json,
        all_as_json,
        cut_long,
        links_listed,
    )
}
Answers = Mapping[str, CallToolResult]


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


pytestmark = pytest.mark.slow
"""All answers together take 8 s of the processor."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """An answer of each kind."""
    return anyio.run(ask_all, tmp_path_factory.mktemp("clients"))


async def ask_all(folder: Path) -> Answers:
    stock = folder / "own" / "stock.html"
    stock.parent.mkdir(exist_ok=True)
    stock.write_text(STOCK, encoding="utf-8")
    (folder / "empty").mkdir(exist_ok=True)
    answers: dict[str, CallToolResult] = {}
    for empty, folders in ((False, f"{LIBRARY}:{stock.parent}"), (True, str(folder / "empty"))):
        settings = {
            "folders": folders,
            "cache": str(folder / "cache"),
            "seconds": "300",
        }
        async with Client(build_server(read_settings(settings, {}))) as client:
            for name, kind in KINDS.items():
                if (name in EMPTY) == empty:
                    given = dict(kind.arguments)
                    if given.get("sources") == [stock.name]:
                        given["sources"] = [str(stock)]
                    answers[name] = await client.call_tool(kind.tool, given)
    return answers


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_the_words_of_every_answer_reach_the_model_by_every_way(
    answers: Answers, name: str, way: str
) -> None:
    read = WAYS[way](answers[name])
    assert [
        words for words in KINDS[name].needed if words.casefold() not in read.casefold()
    ] == [], read


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_no_model_reads_anything_twice(answers: Answers, name: str, way: str) -> None:
    read = WAYS[way](answers[name])
    assert read_twice(read) <= TWICE, read


@pytest.mark.parametrize("name", KINDS)
def test_an_answer_is_one_text_and_an_error_nothing_else(answers: Answers, name: str) -> None:
    result = answers[name]
    assert [part.type for part in result.content] == ["text"]
    assert result.is_error == (name in ERRORS), text_of(result)
    assert result.structured_content is None


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if ANSWER in kind.needed])
def test_what_hosts_read_beside_the_text_repeats_no_page(answers: Answers, name: str) -> None:
    text, beside = text_of(answers[name]), as_json(data_of(answers[name]))
    framed = re.finditer(
        r"^«(?P<mark>\w+)»\n(?P<words>.*?)^«/(?P=mark)»$", text, re.DOTALL | re.MULTILINE
    )
    pages = "\n".join(found["words"] for found in framed)
    assert ANSWER in pages
    assert set(runs_of(pages)) & set(runs_of(beside)) == set()
