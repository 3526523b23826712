"""Memory of a process that serves: garbage looked for when it is quiet, and the room of large pages
given back."""

import gc
import subprocess
import sys
from typing import Any

import pytest

from readers.page import Document
from tests.support import ROOT, Connect, text_of

pytestmark = pytest.mark.anyio


def documents() -> set[int]:
    """Which documents are in memory."""
    gc.collect()
    return {
        id(each) for each in gc.get_objects() if type(each) is Document
    }  # asking some of torch warns


async def test_a_server_that_has_ended_keeps_no_page(connect: Connect) -> None:
    """Nor what was made of it on the way to an answer: each tool keeps something of a page for its
    next call."""
    before = documents()
    question, sources = "When does the first ferry leave on Sundays?", ["ferry-timetable.html"]
    calls: dict[str, dict[str, Any]] = {
        "research": {"question": question},
        "search_web": {"query": question},
        "fetch_and_prune_html": {"question": question, "sources": sources},
        "extract_relevant": {"question": question, "sources": sources},
        "raptor_query": {"question": question, "sources": sources},
    }
    async with connect() as client:
        for tool, arguments in calls.items():
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, text_of(result)
        during = documents()
    del client, result
    assert during - before
    assert documents() <= before


PAGES = """
import sys
from typing import Any
from pathlib import Path
from server.process import give_back_large_blocks

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

if sys.argv[1] == "server" and not give_back_large_blocks():
    raise SystemExit("no such call")
before = resident()
for size in (24_000_000, 20_000_000):  # the first teaches glibc the size; the second then lies in its heap
    page = b"x" * size
    kept = b"x" * 900_000  # above the page, which holds the heap's end where it is
    del page
print(resident() - before)
"""


def test_a_server_gives_the_room_of_a_large_page_back() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("the bound is glibc's")

    def left(who: str) -> float:
        ran = subprocess.run(
            [sys.executable, "-c", PAGES, who],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if "no such call" in ran.stderr:
            pytest.skip("this C library has no such bound")
        return float(ran.stdout)

    assert left("plain") > 15
    assert left("server") < 5
