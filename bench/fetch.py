"""Fetching and caching on loopback: throughput against bare httpx2, latency, cache
hits, decoding, documents, memory.

    python -m bench.fetch           all tables
    python -m bench.fetch --check   the same with fewer rounds, under 60 s; exit code 1 names each bar missed

The server runs in a process of its own and waits 50 ms before each answer, as a near
site does. What does not wait (the store, decoding, conversion) is measured in
processor time, the rest by the clock: on a machine busy with other work its bars say
nothing. Not for: cleaning and pruning (`bench/run.py`), or the network."""

import argparse
import asyncio
import gc
import gzip
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import anyio
import httpx2
from mcp import Client, StdioServerParameters

from cache.store import Store
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from readers.convert import Raw, to_page
from readers.sniff import decode

HOSTS: Final = 40
URLS: Final = 200
TOGETHER: Final = 32
SLOW_ROUNDS: Final = 2
PING_CALLS: Final = 3
"""The best of these counts: a busy machine makes any one ping late."""
DELAY: Final = 0.05
LIMITS: Final = FetchLimits(
    allow_loopback=True, overall=TOGETHER, respect_robots=False, retry=False
)
Work = Callable[[str], Awaitable[object]]
_SPAWN: Final = multiprocessing.get_context("spawn")
_SENTENCE: Final = (
    "The harbour of Piran was rebuilt in 1287, and its <b>lighthouse</b> still "
    "burns for the salt boats. "
)
_RUSSIAN: Final = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. "
_JAPANESE: Final = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
_CHINESE: Final = "北京是中华人民共和国的首都，是全国的政治中心、文化中心。"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value and the bar it is held to."""

    name: str
    value: float
    unit: str
    bar: float
    at_least: bool
    """Whether the bar is a floor; else it is a ceiling."""

    @property
    def holds(self) -> bool:
        """Whether the bar holds."""
        return self.value >= self.bar if self.at_least else self.value <= self.bar


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
    rounds = 4 if args.check else 10
    with _server() as port:
        figures = [
            *anyio.run(_network, port, rounds),
            *anyio.run(_served, port),
            *_cache(rounds),
            *_conversion(rounds),
        ]
    print(
        f"load of the machine (1 min): {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    print(f"{'':44}{'measured':>12}  bar")
    for figure in figures:
        bar = f"{'>=' if figure.at_least else '<='} {figure.bar:g} {figure.unit}"
        print(
            f"{figure.name:44}{figure.value:12.2f}  {bar}{'' if figure.holds else '   MISSED'}"
        )
    missed = [figure.name for figure in figures if not figure.holds]
    if missed:
        print("\nfalls short: " + "; ".join(missed))
    sys.exit(1 if missed and args.check else 0)


def page_of(size: int, sentence: str = _SENTENCE) -> str:
    """Return an HTML page of about `size` characters."""
    paragraphs = "".join(
        f"<p class=text id=p{n}>{sentence}</p>\n"
        for n in range(size // (len(sentence) + 27))
    )
    return (
        f"<!DOCTYPE html><html "
        f"lang=en><head><title>Piran</title></head><body>{paragraphs}</body></html>"
    )


@contextmanager
def _server() -> Iterator[int]:
    """Run the server on all of 127.0.0.0/8; yield its port."""
    receiver, sender = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=serve, args=(sender,), daemon=True)
    process.start()
    try:
        yield int(receiver.recv())
    finally:
        process.terminate()
        process.join()


def serve(sender: Connection) -> None:
    """Answer with a page of 60 kB; a path with `large` with 300 kB, `huge` 4 MB, `now`
    at once, `two` after 2 s."""
    asyncio.run(_serve(sender))


async def _serve(sender: Connection) -> None:
    small, large, huge = (
        gzip.compress(page_of(size).encode(), 6)
        for size in (60_000, 300_000, 4_000_000)
    )

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
                if b"now" not in path:
                    await asyncio.sleep(2.0 if b"two" in path else DELAY)
                body = huge if b"huge" in path else large if b"large" in path else small
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n"
                writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=256)  # noqa: S104  all of 127.0.0.0/8 is wanted
    sender.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _network(port: int, rounds: int) -> Sequence[Figure]:
    urls = [f"http://127.0.0.{1 + n % HOSTS}:{port}/{n}" for n in range(URLS)]
    one = f"http://127.0.0.1:{port}/now-large"
    ours: list[float] = []
    bare: list[float] = []
    memory: list[float] = []
    async with (
        open_fetcher(LIMITS, pages=None) as fetcher,
        httpx2.AsyncClient(limits=httpx2.Limits(max_connections=TOGETHER)) as client,
    ):

        async def fetch(url: str) -> None:
            await fetcher.fetch(url)

        async def get(url: str) -> None:
            assert (await client.get(url)).text

        for _ in range(rounds + 1):  # the first round opens connections on both sides
            bare.append(await _together(get, urls))
            ours.append(await _together(fetch, urls))
            gc.collect()
            memory.append(_resident())
        alone = await _median_ms(fetch, one, 10 * rounds)
        alone_bare = await _median_ms(get, one, 10 * rounds)
    print(
        f"{URLS} URLs on {HOSTS} hosts, {TOGETHER} at a time: {URLS / min(ours):.0f} pages/s, ",
        end="",
    )
    print(
        f"bare httpx2 {URLS / min(bare):.0f}; one page of 300 kB: {alone:.1f} ms, bare "
        f"{alone_bare:.1f} ms\n"
    )
    return [
        Figure(
            "throughput as a share of bare httpx2", min(bare) / min(ours), "", 0.8, True
        ),
        Figure(
            "one page of 300 kB, beyond bare httpx2, ms",
            alone - alone_bare,
            "ms",
            60,
            False,
        ),
        Figure(
            "memory growth after the first round, MB",
            memory[-1] - memory[0],
            "MB",
            30,
            False,
        ),
    ]


async def _together(work: Work, urls: Sequence[str]) -> float:
    """Return the seconds for all of `urls`, `TOGETHER` at a time."""
    waiting = iter(urls)

    async def worker() -> None:
        for url in waiting:
            await work(url)

    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(TOGETHER):
            tasks.start_soon(worker)
    return time.perf_counter() - started


async def _median_ms(work: Work, url: str, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        await work(url)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


async def _served(port: int) -> Sequence[Figure]:
    """Ask the server as a client does, over stdio: how long others wait while it reads
    a large page."""
    site = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **os.environ,
            "WINNOW_CACHE": folder,
            "WINNOW_NETWORKS": "loopback",
            "WINNOW_WEB": "named",
            "WINNOW_ROBOTS": "false",
        }
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "server"], env=env
        )
        async with Client(server, mode="legacy") as client:

            async def fetch(url: str) -> None:
                asked = {"sources": [url], "question": "lighthouse", "max_tokens": 500}
                result = await client.call_tool("fetch_and_prune_html", asked)
                assert not result.is_error, result.content

            await fetch(f"{site}/now-warm")
            worst = [
                await _worst_ping(client, partial(fetch, f"{site}/huge-{n}"))
                for n in range(PING_CALLS)
            ]
            together = []
            for attempt in range(SLOW_ROUNDS):
                started = time.perf_counter()
                async with anyio.create_task_group() as tasks:
                    for n in range(6):
                        tasks.start_soon(fetch, f"{site}/two-{attempt}-{n}")
                together.append(time.perf_counter() - started)
            repeated = await _median_ms(fetch, f"{site}/now-warm", 20)
    return [
        Figure(
            "worst ping while 4 MB are fetched and read, ms",
            min(worst),
            "ms",
            50,
            False,
        ),
        Figure("six pages of 2 s at once, s", min(together), "s", 2.2, False),
        Figure("repeated call of the tool, whole, ms", repeated, "ms", 6, False),
    ]


async def _worst_ping(client: Client, work: Callable[[], Awaitable[None]]) -> float:
    """Return the longest wait for a ping while `work` runs, in ms."""
    waits: list[float] = []

    async def ping() -> None:
        while True:
            started = time.perf_counter()
            await client.send_ping()
            waits.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(0.01)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ping)
        await work()
        tasks.cancel_scope.cancel()
    return max(waits)


def _resident() -> float:
    """Return the memory of this process in MB; 0 where the system does not show."""
    status = Path("/proc/self/statm")
    return (
        int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        if status.exists()
        else 0.0
    )


def _cache(rounds: int) -> Sequence[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "pages", size_limit=500_000_000, clock=time.time)
        hit = anyio.run(_hits, store, 40 * rounds)
        items = {f"text-{n}": os.urandom(768) for n in range(10_000)}
        started = time.process_time()
        store.set_many_bytes(items)
        written = time.process_time() - started
        reads = []
        for _ in range(2 * rounds):
            started = time.process_time()
            assert store.get_many_bytes(items) == items
            reads.append(time.process_time() - started)
        store.close()
    return [
        Figure("repeated fetch of 300 kB from the cache, ms", hit, "ms", 3, False),
        Figure("10,000 vectors of 768 bytes read, s", min(reads), "s", 0.5, False),
        Figure("10,000 vectors of 768 bytes written, s", written, "s", 2.0, False),
    ]


async def _hits(store: Store, rounds: int) -> float:
    body = page_of(300_000).encode()

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
            % len(body)
            + body
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, open_fetcher(LIMITS, pages=store) as fetcher:
        await fetcher.fetch(url)
        server.close()
        return await _median_ms(fetcher.fetch, url, rounds)


def _conversion(rounds: int) -> Sequence[Figure]:
    figures = []
    for name, sentence, codec, label, bar in (
        ("UTF-8, labelled", _RUSSIAN, "utf_8", "utf-8", 200.0),
        ("windows-1251, labelled", _RUSSIAN, "cp1251", "windows-1251", 50.0),
        ("Shift_JIS, labelled", _JAPANESE, "cp932", "shift_jis", 20.0),
        ("GB18030, unlabelled", _CHINESE, "gb18030", "", 20.0),
    ):
        body = page_of(2_000_000, sentence).encode(codec)
        speed = _megabytes_a_second(
            partial(decode, body, content_type=f"x; charset={label}"), body, rounds
        )
        figures.append(Figure(f"decoding {name}, MB/s", speed, "MB/s", bar, True))
    body = page_of(4_000_000).encode()
    raw = Raw(
        body,
        "https://example.org/",
        "https://example.org/",
        content_type="text/html; charset=utf-8",
    )
    speed = _megabytes_a_second(partial(to_page, raw), body, rounds)
    return [*figures, Figure("bytes to page, MB/s", speed, "MB/s", 10.0, True)]


def _megabytes_a_second(work: Callable[[], object], body: bytes, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return len(body) / 1e6 / min(times)


if __name__ == "__main__":
    main()
