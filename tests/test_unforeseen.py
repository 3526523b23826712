"""An error that no reader, provider or tool foresaw, each brought by another package: a source and a
provider cost themselves, the rest is answered; a tool says in a sentence that it failed, and the
server goes on."""

import json
import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.support import ROOT, Site, text_of

ERRORS = {
    "a missing field": 'KeyError("start")',
    "a wrong type": 'TypeError("no text")',
    "letters": 'UnicodeDecodeError("utf-8", b"x", 0, 1, "surrogates")',
    "depth": "RecursionError()",
    "a check": "AssertionError()",
    "an index": "IndexError()",
    "the system": 'OSError(5, "input")',
}
FORMAT = """
import re
from readers.format import Format
def to_html(body):
    raise {error}
FORMAT = Format(types=("application/x-boom",), to_html=to_html, endings=(".boom",),
    begins=re.compile(rb"BOOM"), heavy={heavy})
"""
PROVIDER = """
from pipeline.search.provider import over
from pipeline.search.service import Request, Service
def rows(answer):
    raise {error}
PROVIDER = over(Service(name="boom", title="Boom", address="{address}",
    write=lambda api, query, words, count: Request("GET", api.base, {{}}, {{"q": words}}),
    judge=lambda status, answer: None, able=frozenset(), most=50, longest=400, rows=rows,
    snippet=("x",)), key="Key.")
"""
TOOL = """
from mcp_types import CallToolResult
from tools.common.context import ToolContext
from tools.common.tool import Tool
async def boom(ctx: ToolContext) -> CallToolResult:
    \"\"\"Fail.\"\"\"
    raise {error}
TOOL = Tool(function=boom, title="Boom", command="boom", help="fail", advice="Never.")
"""
QUESTION = "When does the ferry to Ostholm leave?"
GOOD = "<title>Ferry</title><h1>Ferry</h1><p>The ferry to Ostholm leaves at 7:45 from pier two.</p>"
pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def package(folder: Path, **codes: str) -> Path:
    """Return a folder with an installed package of a format, a provider and a tool."""
    info, code = folder / "boom-1.0.dist-info", folder / "boom_parts"
    for made in (info, code):
        made.mkdir(parents=True)
    (code / "__init__.py").touch()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: boom\nVersion: 1.0\n")
    lines = []
    for kind, text in codes.items():
        (code / f"{kind}.py").write_text(text)
        lines += [f"[winnow.{kind}s]", f"boom = boom_parts.{kind}:{kind.upper()}"]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_that_was_not_foreseen_costs_its_part_alone(
    name: str, site: Site, tmp_path: Path
) -> None:
    error, folder = ERRORS[name], tmp_path / "pages"
    folder.mkdir()
    good, bad = folder / "ferry.html", folder / "bad.boom"
    good.write_text(GOOD)
    bad.write_text("BOOM The ferry to Ostholm leaves at nine.\n")
    site.put("/", json.dumps({"hits": []}), kind="application/json")
    other = package(
        tmp_path / "other",
        format=FORMAT.format(error=error, heavy=name == "depth"),
        provider=PROVIDER.format(error=error, address=site.url("")),
        tool=TOOL.format(error=error),
    )
    environment = os.environ | {
        "PYTHONPATH": str(other),
        "WINNOW_FOLDERS": str(folder),
        "WINNOW_CACHE": str(tmp_path / "cache"),
        "WINNOW_SEARCH": "boom,folder",
        "WINNOW_KEYS": "boom=k",
        "WINNOW_EMBEDDER": "none",
        "WINNOW_READER": "none",
    }
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "server"], env=environment, cwd=ROOT
    )
    async with Client(server) as client:
        failed = await client.call_tool("boom", {})
        assert failed.is_error
        assert "boom ended by a fault of Winnow" in text_of(failed)
        for tool, given in (
            ("extract_relevant", {"sources": [str(good), str(bad)]}),
            ("fetch_and_prune_html", {"sources": [str(good), str(bad)]}),
            ("raptor_query", {"sources": [str(folder)]}),
            ("research", {}),
            ("research", {}),
        ):
            result = await client.call_tool(tool, {"question": QUESTION, **given})
            assert "7:45" in text_of(result), (tool, text_of(result))
            assert not given or "bad.boom" in text_of(result), (tool, text_of(result))
        hits = text_of(await client.call_tool("search_web", {"question": QUESTION}))
        assert "ferry.html" in hits
        assert "boom: bad_response" in hits
