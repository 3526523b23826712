"""The cache measured: hits and misses by size on both backends, several processes at
once, memory over many pages.

    python -m bench.cache           all tables
    python -m bench.cache --check   fewer rounds, under 30 s; exit code 1 names each bar missed

Bars are those of issue 3; latencies are medians, because the machine is shared. The
server part is left out where no Valkey or Redis is installed. Not for: fetching
(`bench/fetch.py`)."""

import argparse
import gc
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cache.store import Stores, open_stores
from pipeline.fetch.handles import (
    KeptPage,
    find_answer,
    find_page,
    keep_answer,
    keep_page,
)
from readers.convert import content_hash
from readers.page import Page

SIZES: Final = (3_000, 30_000, 300_000, 4_000_000)
SIZE_LIMIT: Final = 400_000_000
HIT_BAR: Final = 3.0
"""Milliseconds for a page of 300 kB, median."""
MEMORY_BAR: Final = 40.0
"""MB that the process may grow over many pages after the first ones; the pages
themselves are some hundred MB."""
_SPAWN: Final = multiprocessing.get_context("spawn")
_LINE: Final = (
    '<p class="text">The harbour of Piran was rebuilt in 1287 for the salt boats — '
    "čoln, морс, 塩.</p>\n"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value and the bar it is held to; no bar where it is only
    reported."""

    name: str
    value: float
    unit: str
    bar: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the bar, a ceiling, holds."""
        return self.bar is None or self.value <= self.bar


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="fewer rounds; exit 1 when a bar falls short",
    )
    args = parser.parse_args()
    rounds = 60 if args.check else 400
    with tempfile.TemporaryDirectory() as folder:
        figures = [
            *_latency("folder", folder, "", rounds),
            *_together(folder, ""),
            _memory(folder, 150 + rounds),
        ]
        with _server(folder) as url:
            if url:
                figures += [
                    *_latency("server", folder, url, rounds),
                    *_together(folder, url),
                ]
            else:
                print(
                    "no Valkey or Redis server, or no extra `redis`: the folder alone is measured",
                    file=sys.stderr,
                )
    for figure in figures:
        bar = (
            ""
            if figure.bar is None
            else f"  <= {figure.bar:g}{'' if figure.holds else '   MISSED'}"
        )
        print(f"{figure.name:58}{figure.value:10.3f} {figure.unit:6}{bar}")
    missed = [figure.name for figure in figures if not figure.holds]
    if missed:
        print("\nfalls short: " + "; ".join(missed))
    sys.exit(1 if missed and args.check else 0)


def page_of(size: int, number: int = 0) -> Page:
    """Return a page whose HTML has about `size` characters."""
    html = f"<p>{number}</p>" + _LINE * (size // len(_LINE))
    url = f"https://example.org/{number}"
    return Page(
        url=url,
        final_url=url,
        title="Piran",
        html=html,
        media_type="text/html",
        language="en",
        fetched_at="2026-01-02T03:04:05+00:00",
        content_hash=content_hash(html),
    )


def _latency(name: str, folder: str, url: str, rounds: int) -> Iterator[Figure]:
    """Milliseconds of each operation by size of the page."""
    stores = open_stores(Path(folder) / "latency", size_limit=SIZE_LIMIT, url=url)
    pages = stores.pages
    yield Figure(
        f"{name}: lookup that misses",
        _median(lambda: pages.get_bytes("nothing"), rounds),
        "ms",
        2.0,
    )
    for size in SIZES:
        yield from _of_page(
            f"{name}: page of {size // 1000} kB",
            stores,
            size,
            max(10, rounds // (1 + size // 300_000)),
        )
    yield Figure(
        f"{name}: claim and release", _median(lambda: _claim(stores), rounds), "ms"
    )
    stores.close()


def _of_page(name: str, stores: Stores, size: int, times: int) -> Iterator[Figure]:
    pages, page = stores.pages, page_of(size)
    bar = HIT_BAR if size == 300_000 else None
    handle = keep_page(pages, page)
    yield Figure(
        f"{name} found", _median(lambda: find_page(pages, handle), times), "ms", bar
    )
    # A repeated fetch finds the URL, then the page.
    keep_answer(pages, page.url, KeptPage(page, time.time() + 600))
    yield Figure(
        f"{name} found by URL",
        _median(lambda: find_answer(pages, page.url), times),
        "ms",
        bar,
    )
    yield Figure(
        f"{name} kept again", _median(lambda: keep_page(pages, page), times), "ms"
    )
    changed = page_to_keep(page)
    yield Figure(
        f"{name} written", _median(lambda: keep_page(pages, changed()), times), "ms"
    )


def page_to_keep(page: Page) -> Callable[[], Page]:
    """Return a function that makes the page another one each time, so that it has to be
    written."""
    numbers = iter(range(1_000_000))
    return lambda: replace(page, author=f"author {next(numbers)}")


def _claim(stores: Stores) -> None:
    claim = stores.pages.claim("job", seconds=3)
    assert claim is not None
    stores.pages.release(claim)


def _median(work: Callable[[], object], rounds: int) -> float:
    took = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        took.append(1000 * (time.perf_counter() - started))
    return statistics.median(took)


def _together(folder: str, url: str) -> Iterator[Figure]:
    """Four processes that write and read pages of 60 kB in one cache: wall time of a
    write and read, what was lost."""
    name = "server" if url else "folder"
    target = str(Path(folder) / "together")
    with _SPAWN.Pool(4) as pool:
        pool.map(
            _write_and_read, [(target, url, worker, 2) for worker in range(4)]
        )  # imports, first opening
        started = time.perf_counter()
        lost = sum(
            pool.map(
                _write_and_read, [(target, url, worker, 60) for worker in range(4)]
            )
        )
        took = 1000 * (time.perf_counter() - started) / 240
    yield Figure(f"{name}: four processes, write and read of 60 kB", took, "ms")
    yield Figure(f"{name}: entries that four processes lost", lost, "", 0.0)


def _write_and_read(given: tuple[str, str, int, int]) -> int:
    folder, url, worker, count = given
    stores = open_stores(Path(folder), size_limit=SIZE_LIMIT, url=url)
    lost = 0
    for number in range(count):
        value = os.urandom(16) * 3750
        stores.pages.set_bytes(f"{worker}:{number}", value)
        lost += stores.pages.get_bytes(f"{worker}:{number}") != value
    trouble = stores.pages.stats().trouble
    stores.close()
    return lost + bool(trouble)


def _memory(folder: str, count: int) -> Figure:
    """MB of growth over `count` pages of 1 MB that are kept and found, after fifty to
    warm up."""
    stores = open_stores(Path(folder) / "memory", size_limit=SIZE_LIMIT)
    before = 0.0
    for number in range(count):
        if number == 50:
            gc.collect()
            before = _resident()
        page = page_of(1_000_000, number)
        assert find_page(stores.pages, keep_page(stores.pages, page)) == page
    gc.collect()
    grown = _resident() - before
    stores.close()
    return Figure(f"memory over {count - 50} pages of 1 MB", grown, "MB", MEMORY_BAR)


def _resident() -> float:
    pages = (
        int(Path("/proc/self/statm").read_text().split()[1])
        if Path("/proc/self/statm").exists()
        else 0
    )
    return pages * 4096 / 1e6


@contextmanager
def _server(folder: str) -> Iterator[str]:
    """Run a Valkey or Redis server on loopback; yield its address, nothing where there
    is none."""
    program = shutil.which("valkey-server") or shutil.which("redis-server")
    try:
        import redis  # noqa: F401, PLC0415  an extra; only whether it is there counts
    except ModuleNotFoundError:
        program = None
    if program is None:
        yield ""
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = [
        "--bind",
        "127.0.0.1",
        "--port",
        str(port),
        "--dir",
        folder,
        "--save",
        "",
        "--appendonly",
        "no",
    ]
    with subprocess.Popen([program, *own], stdout=subprocess.DEVNULL) as process:  # noqa: S603  ours
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.01)
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()


if __name__ == "__main__":
    main()
