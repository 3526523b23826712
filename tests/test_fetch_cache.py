"""Repeated fetches: what is kept, for how long, and what a server is asked then."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from cache.store import Store
from errors import SourceError, SourceNotFound, SourceTimeout, SourceUnreadable
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.exchange import lifetime
from pipeline.fetch.handles import NO_COPY, keep_page, page_handle
from tests.support import Clock
from tests.support.waiting import moment
from tests.support.web_site import LOOPBACK, PAGE, Reply, failure_of, open_site


@pytest.fixture
def pages(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    store = Store(tmp_path / "pages", size_limit=50_000_000, clock=clock)
    yield store
    store.close()


@pytest.mark.anyio
async def test_a_repeated_fetch_comes_from_the_cache_until_it_is_old(
    pages: Store, clock: Clock
) -> None:
    async with (
        open_site({"/p": Reply()}) as site,
        open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher,
    ):
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
async def test_pages_marked_no_store_and_failures_are_never_kept(
    pages: Store, clock: Clock
) -> None:
    routes = {
        "/p": Reply(headers={"Cache-Control": "no-store"}),
        "/gone": Reply(status=404),
        "/empty": Reply(body=b" "),
    }
    async with (
        open_site(routes) as site,
        open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher,
    ):
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
        await moment()
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
async def test_a_page_can_be_named_by_its_handle_until_it_expires(
    pages: Store, clock: Clock
) -> None:
    async with (
        open_site({"/p": Reply()}) as site,
        open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher,
    ):
        page = await fetcher.fetch(site.url("/p"))
        again = await fetcher.fetch(page_handle(page))
        assert again == page
        clock.now += 31 * 86_400
        assert type(await failure_of(fetcher, page_handle(page))) is SourceNotFound
    assert len(site.paths) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=403),
        Reply(status=429, headers={"Cache-Control": "max-age=600", "ETag": '"x"'}),
        Reply(status=503, headers={"Retry-After": "60", "Cache-Control": "max-age=600"}),
        Reply(headers={"cf-mitigated": "challenge", "Cache-Control": "max-age=600"}),
        Reply(status=404, headers={"Cache-Control": "max-age=600"}),
    ],
)
async def test_a_refusal_is_never_kept_and_leaves_what_was_known(
    pages: Store, clock: Clock, refusal: Reply
) -> None:
    replies = [Reply(headers={"Cache-Control": "max-age=5"}), refusal]
    async with (
        open_site({"/p": lambda _: replies[0]}) as site,
        open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher,
    ):
        first = await fetcher.fetch(site.url("/p"))
        before = pages.stats().entries
        replies.pop(0)
        clock.now += 6
        assert isinstance(await failure_of(fetcher, site.url("/p")), SourceError)
        assert pages.stats().entries == before
        assert (await fetcher.fetch(page_handle(first))).html == first.html


@pytest.mark.anyio
async def test_calls_that_wait_for_one_flight_share_its_failure(pages: Store, clock: Clock) -> None:
    async with (
        open_site({"/p": Reply(silent=True)}) as site,
        open_fetcher(replace(LOOPBACK, total_seconds=1.0), pages=pages, clock=clock) as fetcher,
    ):
        failures: list[Exception] = []

        async def fail() -> None:
            failures.append(await failure_of(fetcher, site.url("/p")))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(fail)
    assert [type(failure) for failure in failures] == [SourceTimeout] * 8
    assert site.paths == ["/p"]


@pytest.mark.anyio
async def test_when_the_call_that_flies_is_cancelled_another_flies_on(
    pages: Store, clock: Clock
) -> None:
    arrived, go = anyio.Event(), anyio.Event()

    async def slow(writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await go.wait()
        writer.write(PAGE)

    found = []
    async with (
        open_site({"/p": Reply(stream=slow)}) as site,
        open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher,
        anyio.create_task_group() as tasks,
    ):
        with anyio.CancelScope() as first:

            async def leave() -> None:
                await arrived.wait()
                tasks.start_soon(stay)
                await anyio.lowlevel.checkpoint()
                first.cancel()
                go.set()

            async def stay() -> None:
                found.append(await fetcher.fetch(site.url("/p")))

            tasks.start_soon(leave)
            await fetcher.fetch(site.url("/p"))
    assert len(found) == 1
    assert site.paths == ["/p", "/p"]


@pytest.mark.parametrize(
    ("control", "alone", "shared"),
    [
        ("private, max-age=60", 60.0, None),
        ("no-store", None, None),
    ],
)
def test_a_cache_that_several_share_keeps_less(
    control: str, alone: float | None, shared: float | None
) -> None:
    headers = {"cache-control": control}
    assert lifetime(headers, default=600.0) == alone
    assert lifetime(headers, default=600.0, shared=True) == shared


@pytest.mark.anyio
async def test_a_page_that_may_not_be_copied_is_named_from_memory_and_never_written(
    pages: Store, clock: Clock
) -> None:
    routes = {"/p": Reply(headers={"Cache-Control": "no-store"})}
    async with (
        open_site(routes) as site,
        open_fetcher(LOOPBACK, pages=pages, clock=clock) as fetcher,
    ):
        page = await fetcher.fetch(site.url("/p"))
        assert NO_COPY in page.notes
        handle = keep_page(pages, page)
        assert await fetcher.fetch(handle) == page
    assert pages.stats().entries == 0


@pytest.mark.anyio
async def test_without_a_cache_pages_are_fetched_and_named_within_the_process(
    tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "file").write_text("in the way")
    broken = Store(tmp_path / "file" / "pages", size_limit=10_000_000, clock=clock)
    async with (
        open_site({"/p": Reply()}) as site,
        open_fetcher(LOOPBACK, pages=broken, clock=clock) as fetcher,
    ):
        page = await fetcher.fetch(site.url("/p"))
        assert (await fetcher.fetch(page_handle(page))).html == page.html
        await fetcher.fetch(site.url("/p"))
    assert site.paths == ["/p", "/p"]
    broken.close()
