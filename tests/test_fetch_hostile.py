"""Servers that mean harm, on loopback: each is answered in bounded time and memory, in words."""

import asyncio
import contextlib
import gzip
import io
import resource
import zlib

import anyio
import brotli  # type: ignore[import-untyped]  # published without types
import pytest

from errors import SourceError, SourceTimeout, SourceTooLarge, SourceUnreadable
from pipeline.fetch.limits import FetchLimits
from readers.html.document import FROM_SCRIPTS, read_document
from tests.support.waiting import bounded, moment
from tests.support.web_site import Reply, failure_of, open_local, open_site

zstd = pytest.importorskip("backports.zstd", reason="httpx2[zstd] brings it before Python 3.14")

QUICK = FetchLimits(allow_loopback=True, total_seconds=3.0, retry=False, respect_robots=False)
LONG = FetchLimits(allow_loopback=True, total_seconds=60.0, retry=False, respect_robots=False)


def peak_memory() -> int:
    """Return the most bytes that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def drip(writer: asyncio.StreamWriter) -> None:
    """One byte now and then, for ever."""
    while True:
        writer.write(b"<")
        await writer.drain()
        await moment()


async def flood(writer: asyncio.StreamWriter) -> None:
    """As much as is taken, for ever."""
    while True:
        writer.write(b"<p>more of the same</p>\n" * 4000)
        await writer.drain()


@pytest.mark.anyio
@pytest.mark.parametrize("reply", [Reply(silent=True), Reply(stream=drip)], ids=["silent", "drip"])
async def test_a_server_that_never_finishes_is_left_at_the_deadline(reply: Reply) -> None:
    async with open_site({"/p": reply, "/ok": Reply()}) as site, open_local(QUICK) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
        assert type(error) is SourceTimeout
        await fetcher.fetch(site.url("/ok"))


@pytest.mark.anyio
async def test_a_drip_of_redirects_and_robots_shares_one_deadline() -> None:
    limits = FetchLimits(allow_loopback=True, total_seconds=1.0)
    async with (
        open_site({"/robots.txt": Reply(stream=drip), "/p": Reply()}) as site,
        open_local(limits) as fetcher,
    ):
        await failure_of(fetcher, site.url("/p"))
    assert site.paths == []


@pytest.mark.anyio
async def test_an_endless_body_stops_at_the_cap() -> None:
    limits = FetchLimits(
        allow_loopback=True, max_bytes=2_000_000, retry=False, respect_robots=False
    )
    async with open_site({"/p": Reply(stream=flood)}) as site, open_local(limits) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
    assert type(error) is SourceTooLarge
    assert "has more than 2,000,000 bytes" in error.what


@pytest.mark.anyio
async def test_an_announced_50_mb_page_is_refused_unread() -> None:
    reply = Reply(body=b"x", headers={"Content-Length": "50000000", "Connection": "close"})
    async with open_site({"/p": reply}) as site, open_local(LONG) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
    assert type(error) is SourceTooLarge
    assert "50,000,000" in error.what


def packed(bomb: bytes) -> dict[str, bytes]:
    """Return bytes packed by each method, gzip also twice."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        file.write(bomb)
    packer = brotli.Compressor(quality=1)
    return {
        "gzip": out.getvalue(),
        "gzip, gzip": gzip.compress(out.getvalue()),
        "deflate": zlib.compress(bomb, 1),
        "br": packer.process(bomb) + packer.finish(),
        "zstd": zstd.compress(bomb, 1),
    }


@pytest.mark.anyio
async def test_bombs_of_every_method_stop_at_the_cap_in_little_memory() -> None:
    # Held to the end: the peak of memory is that of the process so far, and room that was free
    # again would hide what a page takes.
    bomb = b"<p>boom boom boom boom</p>\n" * (300_000_000 // 27)
    routes = {
        f"/{n}": Reply(body=body, headers={"Content-Encoding": name})
        for n, (name, body) in enumerate(packed(bomb).items())
    }
    async with open_site(routes) as site, open_local(LONG) as fetcher:
        before = peak_memory()
        for path in routes:
            with bounded():
                error = await failure_of(fetcher, site.url(path))
                assert type(error) is SourceTooLarge, path
    assert peak_memory() - before < 100_000_000
    assert bomb.startswith(b"<p>boom")


@pytest.mark.anyio
@pytest.mark.parametrize("method", ["gzip", "br", "zstd", "deflate"])
async def test_damaged_compression_is_said(method: str) -> None:
    reply = Reply(
        body=b"this is not packed at all, not in the least" * 9,
        headers={"Content-Encoding": method},
    )
    async with open_site({"/p": reply}) as site, open_local(LONG) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
    assert type(error) is SourceUnreadable


@pytest.mark.anyio
async def test_a_page_of_30_mb_that_came_packed_is_read_whole() -> None:
    body = b"<html><title>big</title>" + b"<p>A line about the lighthouse of Piran.</p>\n" * 660_000
    assert 29_000_000 < len(body) < 30_000_000
    reply = Reply(body=gzip.compress(body, 1), headers={"Content-Encoding": "gzip"})
    async with open_site({"/p": reply}) as site, open_local(LONG) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert len(page.html) == len(body)


@pytest.mark.anyio
async def test_200_000_nested_elements_are_read_in_seconds() -> None:
    body = b"<div>" * 200_000 + b"deep inside lies the answer " * 20
    async with open_site({"/p": Reply(body=body)}) as site, open_local(LONG) as fetcher:
        with bounded():
            page = await fetcher.fetch(site.url("/p"))
    assert "answer" in page.html


HOSTILE_TEXTS = {
    "unclosed tags": b"<a " * 400_000,
    "unclosed comments": b"<!-- " * 200_000 + b"text " * 100,
    "unclosed scripts": b"<script>" * 200_000,
    "unclosed quotes": b'<p title="' * 200_000,
    "angle brackets": b"<" * 1_000_000,
    "metas": b"<meta charset=" * 100_000,
    "titles": b"<title>" * 200_000 + b" words" * 100,
    "nested noscript": b"<noscript>" * 150_000 + b" javascript words" * 100,
    "entities": b"&" * 1_000_000,
    "high bytes": bytes(range(128, 256)) * 8_000,
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", HOSTILE_TEXTS)
async def test_hostile_text_costs_linear_time(name: str) -> None:
    async with (
        open_site({"/p": Reply(body=HOSTILE_TEXTS[name], kind="text/html")}) as site,
        open_local(LONG) as fetcher,
    ):
        with (
            bounded(),
            contextlib.suppress(SourceUnreadable),
        ):  # a page without text may be called that
            await fetcher.fetch(site.url("/p"))


BINARIES = {
    "png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 30,
    "jpeg": b"\xff\xd8\xff\xe0" + bytes(range(256)) * 30,
    "zip": b"PK\x03\x04" + bytes(range(256)) * 30,
    "gzip": gzip.compress(bytes(range(256)) * 30),
    "elf": b"\x7fELF" + bytes(range(256)) * 30,
    "zeros": b"\x00" * 4000,
    "noise": bytes((n * 7919) % 251 for n in range(9000)),
    "mp4": b"\x00\x00\x00\x20ftypisom" + bytes(range(256)) * 4,
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", BINARIES)
async def test_binary_data_that_is_called_html_is_refused_in_words(name: str) -> None:
    async with open_site({"/p": Reply(body=BINARIES[name])}) as site, open_local(LONG) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
    assert type(error) is SourceUnreadable
    assert "cannot be read as text" in error.what or "is empty" in error.what


@pytest.mark.anyio
async def test_answers_that_are_no_http_are_unavailable() -> None:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\nnothing of HTTP\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, open_local(LONG) as fetcher:
        error = await failure_of(fetcher, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert type(error) is SourceError


SHELL = (
    b"<!doctype html><html><head><title>App</title><script src=/main.js></script></head><body>"
    b"<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>%s</body></html>"
)
LD = (
    b'<script type="application/ld+json">{"@context":"https://schema.org","@type":"NewsArticle","headline":"Harbour '
    b'rebuilt","articleBody":"The harbour of Piran was rebuilt in 1287 after the great storm; the lighthouse came with '
    b'it and burns until today, tended by the same family."}</script>'
)


@pytest.mark.anyio
async def test_a_page_that_only_a_browser_fills_says_so() -> None:
    async with open_site({"/p": Reply(body=SHELL % b"")}) as site, open_local(LONG) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
    assert isinstance(error, SourceUnreadable)
    assert "JavaScript" in error.what


@pytest.mark.anyio
async def test_such_a_page_gives_the_text_of_its_json_ld_and_says_from_where() -> None:
    async with open_site({"/p": Reply(body=SHELL % LD)}) as site, open_local(LONG) as fetcher:
        document = read_document(await fetcher.fetch(site.url("/p")))
    assert document.text.startswith("Harbour rebuilt\nThe harbour of Piran was rebuilt in 1287")
    assert FROM_SCRIPTS in document.page.notes


@pytest.mark.anyio
async def test_a_short_page_that_mentions_scripts_is_still_a_page() -> None:
    words = (
        b"<p>The salt office of Piran opens at nine and closes at five, every day but Monday; "
        b"bring your own sack.</p>"
    )
    async with open_site({"/p": Reply(body=(SHELL % words))}) as site, open_local(LONG) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert "salt office" in page.html
    assert any("browser" in note for note in page.notes)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body", [b"", b" \n\t", b"<html><body></body></html>", b"<html><body><p> </p></body></html>"]
)
async def test_an_empty_page_is_an_error_and_no_success(body: bytes) -> None:
    async with open_site({"/p": Reply(body=body)}) as site, open_local(LONG) as fetcher:
        assert type(await failure_of(fetcher, site.url("/p"))) is SourceUnreadable


@pytest.mark.anyio
async def test_the_loop_answers_others_while_a_large_page_is_fetched_and_read() -> None:
    body = (
        b"<html><title>large</title>" + b"<p>A line about the lighthouse of Piran.</p>\n" * 90_000
    )
    reply = Reply(body=gzip.compress(body, 1), headers={"Content-Encoding": "gzip"})
    turns = 0

    async def ping() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with (
        open_site({"/p": reply}) as site,
        open_local(LONG) as fetcher,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ping)
        page = await fetcher.fetch(site.url("/p"))
        tasks.cancel_scope.cancel()
    assert len(page.html) == len(body)
    assert turns > 20
