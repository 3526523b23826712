"""Large pages: processor time grows with their size, the server answers meanwhile, deadlines are
kept.

Times are robust on a machine that others use: a wait counts only as far as this process used the
processor in it, so that a process which the machine holds up does not fail.
"""

import gc
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import pytest
from mcp_types import CallToolResult

from tests.support import Connect, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

QUESTION: Final = "When was the harbour light of Orvane built?"
ANSWER: Final = "<p>The harbour light of Orvane was built in 1871.</p>"
WORDS: Final = (
    "ferry",
    "lake",
    "council",
    "winter",
    "keeper",
    "island",
    "bridge",
    "market",
    "cheese",
    "storm",
)
TENTH: Final = 10
FIXED: Final = 0.5
"""Processor seconds of a call that its page's size does not change, and of what measuring adds."""
PING: Final = 0.2
"""Longest time in seconds for which the event loop may be held."""
TICK: Final = 0.01
OVER: Final = 2.0
"""Seconds after its deadline by which a call has ended."""
PATIENCE: Final = 300.0
"""Seconds of a call that is to end by itself, however slow the machine is."""
TOOLS: Final = (
    "research",
    "search_web",
    "fetch_and_prune_html",
    "extract_relevant",
    "raptor_query",
)


def said(number: int, count: int) -> str:
    """Return words that differ from those of the numbers beside it."""
    return " ".join(
        WORDS[(number * 7 + place * (number % 11 + 1)) % len(WORDS)] for place in range(count)
    )


def headings(count: int) -> str:
    """Every heading is nearer to the question than the one paragraph is."""
    own = (
        f"<h2>{said(i, 3)}: the harbour light of Orvane was built {i}</h2>" for i in range(count)
    )
    return f"{''.join(own)}<p>Cheese is made by Goat Brothers in the valley.</p>"


def items(count: int) -> str:
    return f"<ul>{''.join(f'<li>{said(i, 8)} {i}</li>' for i in range(count))}</ul>{ANSWER}"


def links(count: int) -> str:
    own = (f"<a href='/r/{i}'>{said(i, 2)}</a>{'</p><p>' * (i % 10 == 9)}" for i in range(count))
    return f"<p>{' '.join(own)}</p>{ANSWER}"


def rows(count: int) -> str:
    head = "".join(f"<th>Column {column}</th>" for column in range(30))
    cells = (
        "".join(f"<td>{said(i + column, 1)} {i * column}</td>" for column in range(30))
        for i in range(count)
    )
    return f"{ANSWER}<table><tr>{head}</tr>{''.join(f'<tr>{own}</tr>' for own in cells)}</table>"


def paragraph(letters: int) -> str:
    sentences: list[str] = []
    while letters > 0:
        sentences.append(f"{said(len(sentences), 12).capitalize()}.")
        letters -= len(sentences[-1]) + 1
    return f"<p>{' '.join(sentences)} The harbour light of Orvane was built in 1871.</p>"


PAGES: Final[dict[str, tuple[Callable[[int], str], int]]] = {
    "headings": (headings, 6_000),
    "items": (items, 20_000),
    "links": (links, 50_000),
    "rows": (rows, 3_000),
    "paragraph": (paragraph, 2_000_000),
}
FILES: Final = 300
CASES: Final = (*PAGES, "folder")


def written(folder: Path, case: str, tenths: int) -> str:
    """Write documents of so many tenths of the full size; return the source that names them."""
    folder.mkdir()
    page = "<title>Orvane</title><main><h1>Orvane</h1>{}</main>"
    if case == "folder":
        for i in range(FILES * tenths // TENTH):
            text = page.format(f"<p>{said(i, 12)}.</p><p>{said(i + 5, 12)}.</p>{ANSWER * (not i)}")
            (folder / f"note{i}.html").write_text(text, encoding="utf-8")
        return str(folder)
    make, size = PAGES[case]
    path = folder / "page.html"
    path.write_text(page.format(make(size * tenths // TENTH)), encoding="utf-8")
    return str(path)


@dataclass
class Watch:
    """What a stretch of work used."""

    seconds: float = 0.0
    """Processor seconds, or those of the clock where they were less."""
    longest: float = 0.0
    """Of the seconds between two turns of the event loop, counted alike."""


@asynccontextmanager
async def watched() -> AsyncIterator[Watch]:
    """Measure what happens within; as in a serving process, collections of garbage leave out what
    was made before, here by the tests that ran earlier."""
    gc.collect()
    gc.freeze()
    watch = Watch()

    def now() -> tuple[float, float]:
        return time.monotonic(), time.process_time()

    def since(before: tuple[float, float]) -> float:
        return min(after - was for after, was in zip(now(), before, strict=True))

    async def tick() -> None:
        while True:
            before = now()
            await anyio.sleep(TICK)
            watch.longest = max(watch.longest, since(before))

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await anyio.wait_all_tasks_blocked()
        watch.longest = 0.0
        began = now()
        yield watch
        watch.seconds = since(began)
        group.cancel_scope.cancel()


@dataclass
class Desk:
    """Calls of a fresh server over documents of some size, by rules alone."""

    connect: Connect
    folder: Path

    async def call(
        self, tools: Sequence[str], case: str, tenths: int, seconds: float
    ) -> list[tuple[CallToolResult, Watch]]:
        """Call tools in order with a deadline in seconds; return their answers and what each used.

        The first reads the documents, the others find them read: what they use is their own.
        """
        place = self.folder / f"{case}{tenths}"
        place.mkdir()
        source = written(place / "docs", case, tenths)
        given = {
            "folders": str(place / "docs"),
            "cache": str(place / "cache"),
            "seconds": str(seconds),
        }
        called: list[tuple[CallToolResult, Watch]] = []
        async with self.connect(embedder="none", reader="none", **given) as client:
            for tool in tools:
                sources = {} if tool in {"research", "search_web"} else {"sources": [source]}
                async with watched() as watch:
                    result = await client.call_tool(tool, {"question": QUESTION, **sources})
                called.append((result, watch))
        return called


@pytest.fixture
def desk(connect: Connect, tmp_path: Path) -> Desk:
    return Desk(connect, tmp_path)


@pytest.mark.parametrize("case", CASES)
async def test_a_page_ten_times_as_long_takes_little_more_than_ten_times_the_work_and_holds_no_ping(
    desk: Desk, case: str
) -> None:
    size = PAGES[case][1] if case in PAGES else FILES
    growth = TENTH * math.log(size) / math.log(size / TENTH)

    small = await desk.call(TOOLS, case, 1, PATIENCE)
    large = await desk.call(TOOLS, case, TENTH, PATIENCE)

    for tool, (_, before), (result, after) in zip(TOOLS, small, large, strict=True):
        assert not result.is_error, text_of(result)
        assert after.seconds <= growth * before.seconds + FIXED, tool
        assert after.longest <= PING, tool


@pytest.mark.parametrize("tool", ["research", "raptor_query"])
@pytest.mark.parametrize("case", ["items", "rows", "paragraph"])
async def test_a_call_over_a_long_page_ends_soon_after_its_deadline(
    desk: Desk, case: str, tool: str
) -> None:
    [(result, watch)] = await desk.call([tool], case, TENTH, 1)
    assert watch.seconds <= 1 + OVER
    assert text_of(result)
