"""A proxy on loopback that leads every tunnel to one site, as if the public web were there."""

import asyncio
import base64
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
        """Answer CONNECT or SOCKS5, by the first byte."""
        both = [writer]
        try:
            first = await reader.readexactly(1)
            opened = await (
                self._socks(reader, writer)
                if first == b"\x05"
                else self._connect(first, reader, writer)
            )
            if opened:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.site)
                both.append(far_writer)
                await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the fetcher has left, or the test is over
        finally:
            for each in both:
                each.close()
            await asyncio.gather(*(each.wait_closed() for each in both), return_exceptions=True)

    async def _connect(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.split(" ")[1])
        if self.silent:
            await asyncio.sleep(30)
        known = not self.key or f"Proxy-Authorization: Basic {self.key}" in head
        answer = (
            self.answer
            if known
            else b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\n\r\n"
        )
        writer.write(answer)
        await writer.drain()
        return b" 200 " in answer

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        if self.key and 2 not in methods:
            writer.write(b"\x05\xff")
            return False
        writer.write(b"\x05\x02" if self.key else b"\x05\x00")
        if self.key:
            _, length = await reader.readexactly(2)
            user = await reader.readexactly(length)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            good = base64.b64encode(user + b":" + password).decode() == self.key
            writer.write(b"\x01\x00" if good else b"\x01\x01")
            if not good:
                return False
        kind = (await reader.readexactly(4))[3]
        size = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        place = await reader.readexactly(size)
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{'.'.join(map(str, place)) if kind == 1 else place.decode()}:{port}")
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        return True


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
