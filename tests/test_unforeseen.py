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
from tests.support.unforeseen import ERRORS, boom_file, package

QUESTION = "When does the ferry to Ostholm leave?"
GOOD = "<title>Ferry</title><h1>Ferry</h1><p>The ferry to Ostholm leaves at 7:45 from pier two.</p>"
pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_an_error_that_was_not_foreseen_costs_its_part_alone(
    site: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    good = folder / "ferry.html"
    good.write_text(GOOD)
    other = package(tmp_path / "other", site.url(""))
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
        for number, name in enumerate(ERRORS):
            site.put("/", json.dumps({"error": name}), kind="application/json")
            bad = folder / f"bad{number}.{'heavy' if number % 2 else 'light'}"
            bad.write_bytes(boom_file(name, heavy=number % 2 == 1))
            failed = await client.call_tool("boom", {"question": name})
            assert failed.is_error
            assert "boom ended by a fault of Winnow" in text_of(failed)
            sources = [str(good), str(bad)]
            asked = f"{QUESTION} {name}"
            for tool, given in (
                ("extract_relevant", {"sources": sources}),
                ("fetch_and_prune_html", {"sources": sources}),
                ("raptor_query", {"sources": [str(folder)]}),
                ("research", {}),
            ):
                result = await client.call_tool(tool, {"question": asked, **given})
                assert "7:45" in text_of(result), (name, tool, text_of(result))
                assert not given or bad.name in text_of(result), (name, tool, text_of(result))
            hits = text_of(await client.call_tool("search_web", {"question": asked}))
            assert "ferry.html" in hits
            assert "boom: bad_response" in hits
            bad.unlink()
