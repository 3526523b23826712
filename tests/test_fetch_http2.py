"""HTTP/2 over TLS against a real server: many pages on one connection, every compression, and its
ways to break."""

import asyncio
import gzip
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import brotli  # type: ignore[import-untyped]  # published without types
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

from errors import SourceError, SourceNotFound, SourceTooLarge
from pipeline.fetch.client import Fetcher, open_fetcher
from pipeline.fetch.cookies import Cookies
from pipeline.fetch.limits import FetchLimits
from tests.support.certificate import make_certificate, to_loopback
from tests.support.waiting import moment, until
from tests.support.web_site import PAGE, failure_of, serving

zstd = pytest.importorskip("backports.zstd", reason="httpx2[zstd] brings it before Python 3.14")

pytestmark = pytest.mark.anyio

LIMITS = FetchLimits(allow_loopback=True, respect_robots=False, total_seconds=30.0)
LARGE = b"<html><title>Piran</title>" + b"<p>A line about the lighthouse of Piran.</p>\n" * 8_000


@dataclass(frozen=True, slots=True)
class Said:
    """What the server says on one stream."""

    body: bytes = PAGE
    status: int = 200
    packed: str = ""
    together: int = 1
    """So many requests must be there before it answers."""
    reset: bool = False
    goodbye: bool = False
    """Ends the connection after the answer, with GOAWAY."""
    endless: bool = False


@dataclass
class Site2:
    """An HTTP/2 server."""

    routes: Mapping[str, Said | Callable[[], Said]]
    port: int = 0
    connections: int = 0
    asked: list[str] = field(default_factory=list)
    active: int = 0
    most_active: int = 0

    def url(self, path: str) -> str:
        """Return the address of `path`."""
        return f"https://two.example:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer all streams of one connection, each in a task of its own."""
        self.connections += 1
        http = H2Connection(H2Configuration(client_side=False))
        http.initiate_connection()
        window = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                writer.write(http.data_to_send())
                await writer.drain()
                data = await reader.read(65_536)
                if not data:
                    break
                for event in http.receive_data(data):
                    window.set()
                    if isinstance(event, RequestReceived):
                        path = str(dict(event.headers)[b":path"], "ascii")
                        tasks.add(
                            asyncio.create_task(
                                self._answer(http, writer, event.stream_id, path, window)
                            )
                        )
        except (OSError, ProtocolError, asyncio.CancelledError):
            pass  # the fetcher has left, we have said goodbye, or the test is over
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            writer.close()

    async def _answer(
        self,
        http: H2Connection,
        writer: asyncio.StreamWriter,
        stream: int,
        path: str,
        window: asyncio.Event,
    ) -> None:
        self.asked.append(path)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        route = self.routes.get(path, Said(b"not here", 404))
        said = route if isinstance(route, Said) else route()
        await until(lambda: self.most_active >= said.together)
        self.active -= 1
        if said.reset:
            http.reset_stream(stream, error_code=2)
            writer.write(http.data_to_send())
            return
        headers = [(":status", str(said.status)), ("content-type", "text/html; charset=utf-8")]
        http.send_headers(
            stream, headers + ([("content-encoding", said.packed)] if said.packed else [])
        )
        left = said.body
        while left or said.endless:
            room = min(http.local_flow_control_window(stream), http.max_outbound_frame_size)
            if not room:
                window.clear()
                writer.write(http.data_to_send())
                await window.wait()
                continue
            piece, left = left[:room], left[room:]
            http.send_data(stream, piece or b"<")
            writer.write(http.data_to_send())
            await writer.drain()
            if not left and said.endless:
                await moment()
        http.end_stream(stream)
        if said.goodbye:
            http.close_connection()
        writer.write(http.data_to_send())
        await writer.drain()


@asynccontextmanager
async def open_pair(
    folder: Path, routes: Mapping[str, Said | Callable[[], Said]], limits: FetchLimits = LIMITS
) -> AsyncIterator[tuple[Site2, Fetcher]]:
    """Run a server of HTTP/2 with `routes`, and a fetcher that trusts its certificate."""
    file = make_certificate(folder, "two.example")
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(file)
    served.set_alpn_protocols(["h2"])
    site = Site2(routes)
    trusting = ssl.create_default_context(cafile=str(file))
    async with (
        serving(site.serve, tls=served) as site.port,
        open_fetcher(limits, pages=None, resolve=to_loopback, tls=trusting) as fetcher,
    ):
        yield site, fetcher


async def test_six_pages_at_once_share_one_connection(tmp_path: Path) -> None:
    routes: Mapping[str, Said | Callable[[], Said]] = {
        f"/{n}": Said(together=6) for n in range(6)
    } | {"/": Said()}
    async with open_pair(tmp_path, routes) as (site, fetcher):
        await fetcher.fetch(site.url("/"))
        async with anyio.create_task_group() as tasks:
            for n in range(6):
                tasks.start_soon(fetcher.fetch, site.url(f"/{n}"))
    assert site.connections == 1
    assert site.most_active == 6


async def test_large_pages_come_whole_in_every_compression(tmp_path: Path) -> None:
    packed = {
        "": LARGE,
        "gzip": gzip.compress(LARGE),
        "br": brotli.compress(LARGE),
        "zstd": zstd.compress(LARGE),
    }
    async with open_pair(
        tmp_path, {f"/{name}": Said(body, packed=name) for name, body in packed.items()}
    ) as (
        site,
        fetcher,
    ):
        for name in packed:
            assert len((await fetcher.fetch(site.url(f"/{name}"))).html) == len(LARGE)
    assert site.connections == 1


async def test_a_stream_that_is_reset_is_asked_once_more_and_then_given_up(tmp_path: Path) -> None:
    times = iter(range(9))
    routes: Mapping[str, Said | Callable[[], Said]] = {
        "/once": lambda: Said(reset=next(times) == 0),
        "/always": Said(reset=True),
    }
    async with open_pair(tmp_path, routes) as (site, fetcher):
        assert (await fetcher.fetch(site.url("/once"))).title == "Piran"
        error = await failure_of(fetcher, site.url("/always"))
    assert type(error) is SourceError
    assert site.asked == ["/once", "/once", "/always", "/always"]


async def test_after_a_goodbye_the_next_page_comes_on_a_new_connection(tmp_path: Path) -> None:
    async with open_pair(tmp_path, {"/last": Said(goodbye=True), "/next": Said()}) as (
        site,
        fetcher,
    ):
        assert (await fetcher.fetch(site.url("/last"))).title == "Piran"
        assert (await fetcher.fetch(site.url("/next"))).title == "Piran"
    assert site.connections == 2


async def test_an_endless_stream_ends_at_the_deadline_and_the_next_page_comes_at_once(
    tmp_path: Path,
) -> None:
    limits = FetchLimits(allow_loopback=True, respect_robots=False, total_seconds=3.0, retry=False)
    async with open_pair(tmp_path, {"/p": Said(endless=True), "/next": Said()}, limits) as (
        site,
        fetcher,
    ):
        page = await fetcher.fetch(site.url("/p"))
        await fetcher.fetch(site.url("/next"))
    assert "not there in time" in page.unread


async def test_cookies_are_sent_and_stand_in_no_log_at_any_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    jar = tmp_path / "cookies.txt"
    jar.write_text(
        "# Netscape HTTP Cookie File\ntwo.example\tFALSE\t/\tTRUE\t4000000000\tlogin\tsecret\n"
    )
    limits = replace(LIMITS, cookies=Cookies(jar))
    with caplog.at_level(logging.DEBUG):
        async with open_pair(tmp_path, {"/": Said()}, limits) as (site, fetcher):
            page = await fetcher.fetch(site.url("/"))
    assert page.own
    assert "secret" not in caplog.text


async def test_statuses_and_bombs_are_what_they_are_in_http_1(tmp_path: Path) -> None:
    bomb = Said(gzip.compress(b"boom" * 10_000_000), packed="gzip")
    async with open_pair(tmp_path, {"/bomb": bomb, "/p": Said()}) as (site, fetcher):
        assert type(await failure_of(fetcher, site.url("/bomb"))) is SourceTooLarge
        assert type(await failure_of(fetcher, site.url("/gone"))) is SourceNotFound
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"
