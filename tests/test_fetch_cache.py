"""Repeated fetches: what is kept, for how long, and what a server is asked then."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from cache.store import Store
from errors import (
    SourceNotFound,
    SourceUnreadable,
)
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.handles import page_handle
from tests.support import Clock
from tests.test_fetch_server import LOOPBACK, PAGE, Asked, Reply, Route, failure_of, open_site


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pages(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    store = Store(tmp_path / "pages", size_limit=50_000_000, clock=clock)
    yield store
    store.close()


@pytest.mark.anyio
async def test_a_repeated_fetch_comes_from_the_cache_until_it_is_old(pages: Store, clock: Clock) -> None:
    async with open_site({"/p": Reply()}) as site, open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher:
        first = await fetcher.fetch(site.url("/p"))
        second = await fetcher.fetch(site.url("/p#part"))
        clock.now += 601
        await fetcher.fetch(site.url("/p"))
    assert second.html == first.html
    assert second.url == site.url("/p#part")
    assert site.paths == ["/p", "/p"]


@pytest.mark.anyio
async def test_the_cache_outlives_the_process_that_filled_it(tmp_path: Path, clock: Clock) -> None:
    async with open_site({"/p": Reply()}) as site:
        for _ in range(2):
            store = Store(tmp_path / "pages", size_limit=10_000_000, clock=clock)
            async with open_fetcher(LOOPBACK, pages=store, clock=clock) as fetcher:
                await fetcher.fetch(site.url("/p"))
            store.close()
    assert [asked.path for asked in site.asked] == ["/robots.txt", "/p"]


@pytest.mark.anyio
async def test_an_old_page_is_revalidated_and_not_sent_again(pages: Store, clock: Clock) -> None:
    def conditional(asked: Asked) -> Reply:
        if asked.headers.get("if-none-match") == '"v1"':
            return Reply(body=b"", status=304, headers={"Cache-Control": "max-age=60"})
        return Reply(
            headers={"ETag": '"v1"', "Last-Modified": "Fri, 02 Jan 2026 10:00:00 GMT", "Cache-Control": "max-age=5"}
        )

    async with open_site({"/p": conditional}) as site, open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher:
        first = await fetcher.fetch(site.url("/p"))
        clock.now += 6
        second = await fetcher.fetch(site.url("/p"))
        clock.now += 59
        third = await fetcher.fetch(site.url("/p"))
    assert first.html == second.html == third.html
    assert second.fetched_at > first.fetched_at
    assert len(site.paths) == 2
    assert site.asked[-1].headers["if-modified-since"] == "Fri, 02 Jan 2026 10:00:00 GMT"


@pytest.mark.anyio
async def test_pages_marked_no_store_and_failures_are_never_kept(pages: Store, clock: Clock) -> None:
    routes = {
        "/p": Reply(headers={"Cache-Control": "no-store"}),
        "/gone": Reply(status=404),
        "/empty": Reply(body=b" "),
    }
    async with open_site(routes) as site, open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher:
        for path in ("/p", "/gone", "/empty"):
            for _ in range(2):
                try:
                    await fetcher.fetch(site.url(path))
                except (SourceNotFound, SourceUnreadable):
                    assert path != "/p"
    assert site.paths == ["/p", "/p", "/gone", "/gone", "/empty", "/empty"]
    assert pages.stats().entries == 0


@pytest.mark.anyio
async def test_equal_fetches_at_once_ask_the_server_once(pages: Store, clock: Clock) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(PAGE)

    async with (
        open_site({"/p": Reply(stream=slow)}) as site,
        open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(8):
            tasks.start_soon(fetcher.fetch, site.url("/p"))
    assert site.paths == ["/p"]


@pytest.mark.anyio
async def test_a_page_can_be_named_by_its_handle_until_it_expires(pages: Store, clock: Clock) -> None:
    async with open_site({"/p": Reply()}) as site, open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
        again = await fetcher.fetch(page_handle(page))
        assert again == page
        clock.now += 8 * 86_400
        assert type(await failure_of(fetcher, page_handle(page))) is SourceNotFound
    assert len(site.paths) == 1


@pytest.mark.anyio
async def test_validators_of_one_address_are_not_shown_to_where_it_redirects(pages: Store, clock: Clock) -> None:
    moved = False

    def page(_: Asked) -> Reply:
        if moved:
            return Reply(status=302, headers={"Location": "/new"})
        return Reply(headers={"ETag": '"old"', "Cache-Control": "no-cache"})

    routes: dict[str, Route] = {"/p": page, "/new": Reply()}
    async with open_site(routes) as site, open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher:
        await fetcher.fetch(site.url("/p"))
        moved = True
        await fetcher.fetch(site.url("/p"))
    asked = [request for request in site.asked if request.path != "/robots.txt"]
    assert [(request.path, request.headers.get("if-none-match")) for request in asked] == [
        ("/p", None),
        ("/p", '"old"'),
        ("/new", None),
    ]
