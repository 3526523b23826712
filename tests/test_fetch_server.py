"""A small web server on loopback whose every byte a test decides, and tests that fetching from it
works at all."""

import asyncio

import anyio
import pytest

from pipeline.fetch.limits import FetchLimits
from tests.support.waiting import moment
from tests.support.web_site import PAGE, Reply, Site, open_local, open_site


@pytest.mark.anyio
async def test_a_page_comes_with_its_text_title_language_and_figures() -> None:
    async with open_site({"/p": Reply()}) as site, open_local() as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert (page.title, page.language, page.media_type) == ("Piran", "en", "text/html")
    assert "lighthouse" in page.html
    assert len(page.content_hash) == 32
    assert page.fetched_at.endswith("+00:00")


@pytest.mark.anyio
async def test_the_server_sees_who_we_are_and_gets_no_cookie_back() -> None:
    routes = {"/a": Reply(headers={"Set-Cookie": "id=7; Path=/"}), "/b": Reply()}
    async with open_site(routes) as site, open_local() as fetcher:
        await fetcher.fetch(site.url("/a"))
        await fetcher.fetch(site.url("/b"))
    last = site.asked[-1].headers
    assert last["user-agent"].startswith("Winnow (")
    assert "cookie" not in last
    assert {"gzip", "br", "zstd"} <= {name.strip() for name in last["accept-encoding"].split(",")}


@pytest.mark.anyio
async def test_one_connection_serves_many_requests_to_one_host() -> None:
    connections = 0
    site = Site({f"/{n}": Reply() for n in range(5)})

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await site.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    async with server, open_local() as fetcher:
        for n in range(5):
            await fetcher.fetch(site.url(f"/{n}"))
    assert connections == 1


@pytest.mark.anyio
async def test_requests_to_one_host_wait_for_a_place() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await moment()
        writer.write(PAGE)

    routes = {f"/{n}": Reply(stream=slow) for n in range(10)}
    limits = FetchLimits(allow_loopback=True, per_host=2, respect_robots=False)
    async with (
        open_site(routes) as site,
        open_local(limits) as fetcher,
        anyio.create_task_group() as tasks,
    ):
        for n in range(10):
            tasks.start_soon(fetcher.fetch, site.url(f"/{n}"))
    assert site.most_active == 2
    assert len(site.paths) == 10
