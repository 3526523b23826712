"""A proxy on loopback that leads every tunnel to one site, as if the public web were there."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.web_site import Site, serving


@dataclass
class Middle:
    """A proxy on loopback that leads every tunnel to `site`, and writes down what it was asked
    for."""

    port: int = 0
    site: int = 0
    asked: list[str] = field(default_factory=list)
    answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"
    key: str = ""
    silent: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer CONNECT."""
        both = [writer]
        try:
            if await self._connect(reader, writer):
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.site)
                both.append(far_writer)
                await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the fetcher has left, or the test is over
        finally:
            for each in both:
                each.close()
            await asyncio.gather(*(each.wait_closed() for each in both), return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.split(" ")[1])
        if self.silent:
            await asyncio.Event().wait()
        known = not self.key or f"Proxy-Authorization: Basic {self.key}" in head
        answer = (
            self.answer
            if known
            else b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\n\r\n"
        )
        writer.write(answer)
        await writer.drain()
        return b" 200 " in answer


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes until one side ends."""
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def open_proxy(site: Site, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Middle]:
    """Run a proxy that leads to `site`."""
    middle = Middle(site=site.port)
    async with serving(middle.serve, tls=tls) as middle.port:
        yield middle
