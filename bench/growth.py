"""Whether processor time grows with what is read, and no faster; whether the server answers
meanwhile and ends at its deadlines. Tests read no clock: this is where speed is held.

    python -m bench.growth            every row, with its factor
    python -m bench.growth --check    exits 1 where one grows too fast

A row does the same work on an input and on one that is larger; each counts by the least
processor time of three runs, so that a busy machine changes little. Not for: figures of
speed (`bench.fetch`, `bench.folder`, `bench.models`).
"""

import argparse
import gc
import gzip
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from mcp import Client
from mcp_types import CallToolResult
from selectolax.lexbor import LexborHTMLParser

from papers.raptor.cluster import cluster
from pipeline.document.units import split_sentences
from readers.html.clean import clean
from readers.secrets import is_secret
from readers.sniff import decode
from readers.unpack import unpacked
from server.app import build_server
from server.settings import read_settings
from tests.support import SHARED, text_of
from tests.test_fetch_charset import BODIES
from tests.test_html_clean import SHAPES
from tests.test_papers_raptor_cluster import layer, themes

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
FASTER: Final = 2.5
"""Times by which work may grow faster than its input; twice the size at squared growth is more."""
SHORT: Final = 0.05
"""Seconds that differ between two runs of anything."""
MOST_PARSES: Final = 20.0
"""Bare parses that cleaning may take: 16 were measured, half of them for the style of sheets."""
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
        WORDS[(number * 7 + place * (number % 11 + 1)) % len(WORDS)]
        for place in range(count)
    )


def headings(count: int) -> str:
    """Every heading is nearer to the question than the one paragraph is."""
    own = (
        f"<h2>{said(i, 3)}: the harbour light of Orvane was built {i}</h2>"
        for i in range(count)
    )
    return f"{''.join(own)}<p>Cheese is made by Goat Brothers in the valley.</p>"


def items(count: int) -> str:
    """A list of so many."""
    return f"<ul>{''.join(f'<li>{said(i, 8)} {i}</li>' for i in range(count))}</ul>{ANSWER}"


def links(count: int) -> str:
    """Links in paragraphs of ten."""
    own = (
        f"<a href='/r/{i}'>{said(i, 2)}</a>{'</p><p>' * (i % 10 == 9)}"
        for i in range(count)
    )
    return f"<p>{' '.join(own)}</p>{ANSWER}"


def rows(count: int) -> str:
    """A table of thirty columns."""
    head = "".join(f"<th>Column {column}</th>" for column in range(30))
    cells = (
        "".join(f"<td>{said(i + column, 1)} {i * column}</td>" for column in range(30))
        for i in range(count)
    )
    return f"{ANSWER}<table><tr>{head}</tr>{''.join(f'<tr>{own}</tr>' for own in cells)}</table>"


def paragraph(letters: int) -> str:
    """One paragraph of many sentences."""
    sentences: list[str] = []
    while letters > 0:
        sentences.append(f"{said(len(sentences), 12).capitalize()}.")
        letters -= len(sentences[-1]) + 1
    return (
        f"<p>{' '.join(sentences)} The harbour light of Orvane was built in 1871.</p>"
    )


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
            text = page.format(
                f"<p>{said(i, 12)}.</p><p>{said(i + 5, 12)}.</p>{ANSWER * (not i)}"
            )
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

    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    async def call(
        self, tools: Sequence[str], case: str, tenths: int, seconds: float
    ) -> list[tuple[CallToolResult, Watch]]:
        """Call tools in order with a deadline in seconds; return their answers and what each used.

        The first reads the documents, the others find them read: what they use is their own.
        """
        place = self.folder / f"{case}{next(self.numbers)}"
        place.mkdir()
        source = written(place / "docs", case, tenths)
        given = {
            "folders": str(place / "docs"),
            "cache": str(place / "cache"),
            "seconds": str(seconds),
        }
        called: list[tuple[CallToolResult, Watch]] = []
        settings = read_settings({"embedder": "none", "reader": "none", **given}, {})
        async with Client(build_server(settings)) as client:
            for tool in tools:
                sources = (
                    {} if tool in {"research", "search_web"} else {"sources": [source]}
                )
                async with watched() as watch:
                    result = await client.call_tool(
                        tool, {"question": QUESTION, **sources}
                    )
                called.append((result, watch))
        return called


class Row(NamedTuple):
    """Work on inputs of two sizes."""

    name: str
    work: Callable[[int], Callable[[], object]]
    """Returns what is to be timed, made ready for an input of so many."""
    small: int
    large: int


def least(work: Callable[[], object]) -> float:
    """Return the least processor time of three runs."""
    times = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
    finally:
        gc.enable()
    return min(times)


def growing() -> Iterator[Row]:
    """Yield work on hostile inputs that must not grow faster than they do."""

    def on(
        work: Callable[..., object], made: Callable[[int], object]
    ) -> Callable[[int], Callable[[], object]]:
        return lambda size: partial(work, made(size))

    def repeated(piece: bytes) -> Callable[[int], bytes]:
        return lambda size: (piece * size)[:size]

    for name, shape in SHAPES.items():
        yield Row(f"clean: {name}", on(clean, shape), 20_000, 80_000)
    shift = partial(decode, content_type="text/html; charset=shift_jis")
    for name, piece in BODIES.items():
        yield Row(f"decode: {name}", on(shift, repeated(piece)), 200_000, 3_200_000)
    for unit in (".", "? ", "。", "1. ", "(", "\n \n", "x", "\u00a0."):
        text = on(
            lambda body: split_sentences(body.decode("utf-8", "ignore")),
            repeated(unit.encode()),
        )
        yield Row(f"sentences: {unit!r}", text, 20_000, 160_000)
    for line in (b"\n", b"#\n", b"[client]\n", b"+ "):
        yield Row(f"keys: {line!r}", on(is_secret, repeated(line)), 40_000, 320_000)
    packed = on(unpacked, lambda size: gzip.compress(b"") * size)
    yield Row("streams of a packed file", packed, 4_000, 32_000)
    for alike in (0.0, 0.97):
        yield Row(f"clusters, {alike} alike", partial(clustering, alike), 8_000, 80_000)


def clustering(alike: float, nodes: int) -> Callable[[], object]:
    """Return the clustering of so many nodes, a share of them alike."""
    vectors = themes(nodes // 8, 8)
    vectors[: int(alike * nodes)] = vectors[0]
    return partial(cluster, layer(vectors), "kmeans")


def shapes() -> Iterator[str]:
    """Print a line for each row; yield what grows too fast."""
    for name, work, small, large in growing():
        before, after = least(work(small)), least(work(large))
        most = FASTER * large / small * before + SHORT
        print(f"{name:50}{before:8.3f} s{after:8.3f} s of at most {most:.3f}")
        if after > most:
            yield name


def parses() -> Iterator[str]:
    """Compare cleaning of real pages with a bare parse of them."""
    pages = [
        gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        for path in sorted((SHARED / "data" / "pages").glob("*.gz"))[::32]
    ]
    ours = least(lambda: [clean(page) for page in pages])
    bare = least(lambda: [LexborHTMLParser(page) for page in pages])
    print(f"cleaning, of a bare parse: {ours / bare:.1f} (bar {MOST_PARSES:g})")
    if ours > MOST_PARSES * bare:
        yield "cleaning beside a bare parse"


async def tools(desk: Desk) -> list[str]:
    """Print what each tool used over documents of two sizes, and after a deadline of a second;
    return what took too long."""
    missed = []
    for case in CASES:
        size = PAGES[case][1] if case in PAGES else FILES
        growth = TENTH * math.log(size) / math.log(size / TENTH)
        small = await desk.call(TOOLS, case, 1, PATIENCE)
        large = await desk.call(TOOLS, case, TENTH, PATIENCE)
        for tool, (_, before), (result, after) in zip(TOOLS, small, large, strict=True):
            print(
                f"{case:12}{tool:24}{before.seconds:7.2f} s{after.seconds:7.2f} s, loop held "
                f"{after.longest:.2f} s"
            )
            if (
                result.is_error
                or after.seconds > growth * before.seconds + FIXED
                or after.longest > PING
            ):
                missed.append(f"{case} by {tool}")
    for case in ("items", "rows", "paragraph"):
        for tool in ("research", "raptor_query"):
            [(result, watch)] = await desk.call([tool], case, TENTH, 1)
            print(f"{case:12}{tool:24}deadline 1 s: {watch.seconds:.2f} s")
            if watch.seconds > 1 + OVER or not text_of(result):
                missed.append(f"{case} by {tool} after its deadline")
    return missed


def main() -> None:
    """Measure, and end with 1 where `--check` is asked for and something is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 at a miss")
    check = parser.parse_args().check
    missed = [*shapes(), *parses()]
    with tempfile.TemporaryDirectory() as folder:
        missed += anyio.run(tools, Desk(Path(folder)))
    print("missed:", *missed or ["nothing"], sep="\n  ")
    sys.exit(bool(check and missed))


if __name__ == "__main__":
    main()
