"""Fetching 200 pages of 40 hosts on loopback, beside bare httpx2; and a call whose page is in the cache.

    python -m bench.fetch           the table
    python -m bench.fetch --check   fewer rounds; exit code 1 names each bar missed

The server runs in a process of its own and waits 50 ms before each answer, as a near site does. On a machine busy
with other work its bars say nothing. Not for: cleaning and pruning (`bench/run.py`), growth (`bench/growth.py`), or
the network."""

import argparse
import asyncio
import gzip
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final

import anyio
import httpx2
from mcp import Client, StdioServerParameters

from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits

HOSTS: Final = 40
URLS: Final = 200
TOGETHER: Final = 32
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


SHARE_BAR: Final = 0.8
"""Pages a second, as a share of bare httpx2's."""
REPEATED_BAR: Final = 6.0
"""Milliseconds of a call of the tool whose page is in the cache."""


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
    with _server() as port:
        ours, bare = anyio.run(_network, port, 4 if args.check else 10)
        repeated = anyio.run(_served, port)
    print("| | Winnow | bare httpx2 |\n|---|---|---|")
    print(f"| pages a second | {ours:.0f} | {bare:.0f} |")
    print(f"| the same call again, whole | {repeated:.1f} ms | |")
    missed = [f"{ours:.0f} pages a second"] * (ours < SHARE_BAR * bare)
    missed += [f"a repeated call takes {repeated:.1f} ms"] * (repeated > REPEATED_BAR)
    for line in missed:
        print(f"BAR MISSED: {line}")
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
    """Answer with a page of 60 kB, after `DELAY`; a path with `now` at once."""
    asyncio.run(_serve(sender))


async def _serve(sender: Connection) -> None:
    body = gzip.compress(page_of(60_000).encode(), 6)

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
                if b"now" not in path:
                    await asyncio.sleep(DELAY)
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n"
                writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=256)  # noqa: S104  all of 127.0.0.0/8 is wanted
    sender.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _network(port: int, rounds: int) -> tuple[float, float]:
    """Return the pages a second of our fetcher and of bare httpx2."""
    urls = [f"http://127.0.0.{1 + n % HOSTS}:{port}/{n}" for n in range(URLS)]
    ours: list[float] = []
    bare: list[float] = []
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
    return URLS / min(ours), URLS / min(bare)


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


async def _served(port: int) -> float:
    """Return the milliseconds of a repeated call, as a client on stdio waits for it."""
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

            page = f"http://127.0.0.1:{port}/now-warm"
            await fetch(page)
            return await _median_ms(fetch, page, 20)


if __name__ == "__main__":
    main()
