"""Open connections: used again for the next page of a site, and closed when they are many."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from tests.support.waiting import until
from tests.support.web_site import PAGE, serving

pytestmark = pytest.mark.anyio

LIMITS = FetchLimits(allow_loopback=True, respect_robots=False, total_seconds=30.0)


@dataclass
class Counted:
    """A server on all of 127.0.0.0/8 that counts its connections."""

    port: int = 0
    opened: int = 0
    open: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    """Answers wait for it."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, all with the same page."""
        self.opened += 1
        self.open += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await self.hold.wait()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
                    % len(PAGE)
                )
                writer.write(PAGE)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    def url(self, host: int, path: str = "") -> str:
        """Return an address at one of 60,000 hosts, all of them this server."""
        return f"http://127.0.{host // 250}.{1 + host % 250}:{self.port}/{path}"


@asynccontextmanager
async def counted() -> AsyncIterator[Counted]:
    """Run a server that answers at once unless its `hold` is cleared."""
    server = Counted()
    server.hold.set()
    async with serving(server.answer, host="0.0.0.0") as server.port:  # noqa: S104  all of 127.0.0.0/8 is wanted
        yield server


async def closed_down_to(server: Counted, count: int) -> None:
    """Wait until the server has seen the last closed connection go."""
    await until(lambda: server.open <= count)


async def test_a_crawl_over_many_sites_opens_one_connection_to_each() -> None:
    async with counted() as server, open_fetcher(LIMITS, pages=None) as fetcher:
        for path in "abc":
            for host in range(40):
                await fetcher.fetch(server.url(host, path))
    assert server.opened == 40


async def test_of_a_hundred_sites_the_connections_of_the_last_64_stay_open() -> None:
    async with counted() as server, open_fetcher(LIMITS, pages=None) as fetcher:
        for host in range(100):
            await fetcher.fetch(server.url(host))
        await closed_down_to(server, 64)
        await fetcher.fetch(server.url(99, "again"))
        assert server.opened == 100
        await fetcher.fetch(server.url(0, "again"))
        assert server.opened == 101


async def test_a_site_that_still_answers_keeps_its_connection_beside_many_others() -> None:
    async with counted() as slow, counted() as quick, open_fetcher(LIMITS, pages=None) as fetcher:
        slow.hold.clear()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetcher.fetch, slow.url(1))
            await until(lambda: slow.open)
            for host in range(70):
                await fetcher.fetch(quick.url(host))
            assert slow.open == 1
            slow.hold.set()
    assert slow.opened == 1


async def test_closing_the_fetcher_closes_every_connection() -> None:
    async with counted() as server:
        async with open_fetcher(LIMITS, pages=None) as fetcher:
            for host in range(5):
                await fetcher.fetch(server.url(host))
            assert server.open == 5
        await closed_down_to(server, 0)
        assert server.open == 0
