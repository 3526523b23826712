"""A small web server on loopback whose every byte a test decides, and fetchers that may ask it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cache.store import Store
from errors import SourceError
from pipeline.fetch.client import Fetcher, open_fetcher
from pipeline.fetch.files import Files
from pipeline.fetch.limits import FetchLimits

WORDS = (
    "The harbour of Piran was rebuilt in 1287 after the great storm, and its lighthouse still "
    "burns. " * 4
)


PAGE = (
    f"<!DOCTYPE html><html "
    f"lang=en><head><title>Piran</title></head><body><p>{WORDS}</p></body></html>"
).encode()


Stream = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server says to one request."""

    body: bytes = PAGE
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "text/html; charset=utf-8"
    stream: Stream | None = None
    """Writes the body itself, without a length; the connection closes after it."""
    silent: bool = False
    """Never answers."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]


Route = Reply | Callable[[Asked], Reply]


@dataclass(slots=True)
class Site:
    """A running server."""

    routes: dict[str, Route]
    port: int = 0
    host: str = "127.0.0.1"
    asked: list[Asked] = field(default_factory=list)
    active: int = 0
    most_active: int = 0

    def url(self, path: str = "/", *, host: str = "") -> str:
        """Return the address of `path`."""
        return f"http://{host or self.host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        """Paths asked for, robots.txt left out."""
        return [asked.path for asked in self.asked if asked.path != "/robots.txt"]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            k.strip().lower(): v.strip()
            for k, _, v in (line.partition(":") for line in head[1:] if line)
        }
        asked = Asked(head[0].split(" ")[1], headers)
        self.asked.append(asked)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            route = self.routes.get(asked.path, Reply(b"not here", 404))
            return await self._say(route if isinstance(route, Reply) else route(asked), writer)
        finally:
            self.active -= 1

    async def _say(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        if reply.silent:
            await asyncio.Event().wait()
        lines = [f"HTTP/1.1 {reply.status} Said", f"Content-Type: {reply.kind}"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        if reply.stream is not None:
            writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode())
            await reply.stream(writer)
            return False
        length = [] if "Content-Length" in reply.headers else [f"Content-Length: {len(reply.body)}"]
        writer.write("\r\n".join([*lines, *length, "", ""]).encode() + reply.body)
        await writer.drain()
        return reply.headers.get("Connection") != "close"


@asynccontextmanager
async def serving(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Let `answer` take the connections of a free port, which is yielded; those still open at the
    end are cut."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await answer(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()  # the test is over, and the loop closes
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, host, port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def open_site(routes: Mapping[str, Route], *, host: str = "127.0.0.1") -> AsyncIterator[Site]:
    """Run a server with `routes` by path; every other path answers 404."""
    site = Site(dict(routes), host=host)
    async with serving(site.serve, host=host) as site.port:
        yield site


LOOPBACK = FetchLimits(allow_loopback=True, total_seconds=30.0, retry_pause=(0.0, 0.01))


@asynccontextmanager
async def open_local(
    limits: FetchLimits = LOOPBACK, *, pages: Store | None = None, roots: Sequence[Path] = ()
) -> AsyncIterator[Fetcher]:
    """Open a fetcher that may ask loopback."""
    async with open_fetcher(limits, pages=pages, files=Files(roots, store=pages)) as fetcher:
        yield fetcher


async def failure_of(fetcher: Fetcher, url: str) -> SourceError:
    """Return the error that fetching `url` raises."""
    with pytest.raises(SourceError) as caught:
        await fetcher.fetch(url)
    return caught.value
