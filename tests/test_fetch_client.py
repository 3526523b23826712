"""Fetching through a real server on loopback: statuses, redirects, retries, encodings, the cache,
cancellation."""

import asyncio
import contextlib
import os
import socket
import time
from pathlib import Path

import anyio
import httpx2
import pytest

from cache.store import Store
from errors import AddressRefused, SourceError, SourceNotFound, SourceTimeout, SourceTooLarge
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from tests.support import Clock
from tests.support.waiting import moment, until
from tests.support.web_site import PAGE, Asked, Reply, failure_of, open_local, open_site

ONCE = FetchLimits(allow_loopback=True, total_seconds=30.0, retry=False, respect_robots=False)


STATUSES = [
    (400, "Check the address"),
    (401, "needs a login"),
    (402, "needs a login"),
    (403, "Access denied"),
    (404, "search for where"),
    (410, "search for where"),
    (418, "Check the address"),
    (429, "Wait a minute"),
    (451, "Access denied"),
    (500, "try later"),
    (502, "try later"),
    (503, "try later"),
    (520, "try later"),
    (799, "try later"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("status", "hint"), STATUSES)
async def test_each_refusing_status_says_what_to_do(status: int, hint: str) -> None:
    async with open_site({"/p": Reply(status=status)}) as site, open_local(ONCE) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
    assert isinstance(error, SourceNotFound) == (status in {404, 410})
    assert str(status) in error.what
    assert error.source == site.url("/p")
    assert hint in error.hint


@pytest.mark.anyio
async def test_retry_after_reaches_the_caller() -> None:
    replies = {
        "/a": Reply(status=429, headers={"Retry-After": "77"}),
        "/b": Reply(status=503, headers={"Retry-After": "9"}),
    }
    async with open_site(replies, host="0.0.0.0") as site, open_local() as fetcher:  # noqa: S104  two hosts of loopback
        first = await failure_of(fetcher, site.url("/a", host="127.0.0.1"))
        second = await failure_of(fetcher, site.url("/b", host="127.0.0.2"))
    assert "77 s" in first.hint
    assert "9 s" in second.hint
    assert site.paths == ["/a", "/b"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "wish", ["600", "Fri, 15 Jan 2027 08:10:00 GMT"], ids=["seconds", "a date"]
)
async def test_a_site_that_asks_for_silence_gets_it_and_is_asked_again_after(wish: str) -> None:
    clock = Clock()  # 15 January 2027, 08:00 UTC
    routes = {"/a": Reply(status=429, headers={"Retry-After": wish}), "/b": Reply()}
    async with open_site(routes) as site, open_fetcher(ONCE, pages=None, clock=clock) as fetcher:
        await failure_of(fetcher, site.url("/a"))
        silence = await failure_of(fetcher, site.url("/b"))
        clock.now += 601
        page = await fetcher.fetch(site.url("/b"))
    assert type(silence) is SourceError
    assert "rate-limiting us for another 600 s" in silence.what
    assert page.title == "Piran"
    assert site.paths == ["/a", "/b"]


@pytest.mark.anyio
async def test_a_short_wait_that_a_busy_server_asks_for_is_kept() -> None:
    wait = ""

    def busy(asked: Asked) -> Reply:
        nonlocal wait
        wait, seconds = "", wait
        return Reply(status=429, headers={"Retry-After": seconds}) if seconds else Reply()

    async with open_site({"/p": busy}) as site, open_local() as fetcher:
        wait = "1"
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"
        assert site.paths == ["/p", "/p"]
        wait = "2"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetcher.fetch, site.url("/p"))
            await until(lambda: len(site.paths) == 3)
            await moment()
            assert len(site.paths) == 3
            tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_callers_of_one_dead_page_fail_together_and_not_one_after_the_other() -> None:
    limits = FetchLimits(allow_loopback=True, total_seconds=0.5, retry=False, respect_robots=False)
    failures: list[SourceError] = []
    async with open_site({"/p": Reply(silent=True)}) as site, open_local(limits) as fetcher:

        async def call() -> None:
            failures.append(await failure_of(fetcher, site.url("/p")))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(call)
    assert [type(failure) for failure in failures] == [SourceTimeout] * 8
    assert len(site.paths) == 1


@pytest.mark.anyio
async def test_an_address_that_swallows_connections_costs_a_moment_and_not_the_page() -> None:
    """A full backlog drops what knocks, as a broken IPv6 route does; the next address is tried
    beside it."""
    with contextlib.ExitStack() as stack:
        hole = stack.enter_context(socket.socket())
        async with open_site({"/p": Reply()}) as site:
            hole.bind(("127.0.0.9", site.port))
            hole.listen(0)
            for _ in range(4):
                knock = stack.enter_context(socket.socket())
                knock.setblocking(False)
                knock.connect_ex(hole.getsockname())

            async def both(_host: str, _port: int) -> list[str]:
                return ["127.0.0.9", "127.0.0.1"]

            async with open_fetcher(ONCE, pages=None, resolve=both) as fetcher:
                page = await fetcher.fetch(site.url("/p", host="two.example"))
    assert page.title == "Piran"


@pytest.mark.anyio
async def test_a_check_against_robots_is_blocked_even_with_status_200() -> None:
    async with (
        open_site({"/p": Reply(headers={"cf-mitigated": "challenge"})}) as site,
        open_local() as fetcher,
    ):
        assert type(await failure_of(fetcher, site.url("/p"))) is SourceError


@pytest.mark.anyio
async def test_a_server_that_was_busy_is_asked_once_more() -> None:
    asked = 0

    def sometimes(_: Asked) -> Reply:
        nonlocal asked
        asked += 1
        return Reply(status=503) if asked == 1 else Reply()

    async with open_site({"/p": sometimes}) as site, open_local() as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert page.title == "Piran"
    assert asked == 2


@pytest.mark.anyio
async def test_a_server_that_stays_busy_is_asked_twice_and_no_more() -> None:
    async with open_site({"/p": Reply(status=502)}) as site, open_local() as fetcher:
        assert type(await failure_of(fetcher, site.url("/p"))) is SourceError
    assert len(site.paths) == 2


@pytest.mark.anyio
async def test_a_connection_that_breaks_in_the_body_is_tried_once_more() -> None:
    asked = 0

    def breaking(_: Asked) -> Reply:
        nonlocal asked
        asked += 1
        return (
            Reply(body=PAGE[:60], headers={"Content-Length": "5000", "Connection": "close"})
            if asked == 1
            else Reply()
        )

    async with open_site({"/p": breaking}) as site, open_local() as fetcher:
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"
    assert asked == 2


@pytest.mark.anyio
async def test_a_page_that_always_breaks_is_unavailable_and_never_half_a_page() -> None:
    reply = Reply(body=PAGE[:60], headers={"Content-Length": "5000", "Connection": "close"})
    async with open_site({"/p": reply}) as site, open_local() as fetcher:
        assert type(await failure_of(fetcher, site.url("/p"))) is SourceError


@pytest.mark.anyio
async def test_a_port_where_no_one_listens_is_unavailable() -> None:
    async with open_site({}) as site:
        url = site.url("/p")
    async with open_local(ONCE) as fetcher:
        error = await failure_of(fetcher, url)
    assert type(error) is SourceError
    assert "no connection" in error.what


@pytest.mark.anyio
async def test_redirects_are_followed_and_the_last_address_is_kept() -> None:
    routes = {
        "/a": Reply(status=301, headers={"Location": "/b?x=1"}),
        "/b?x=1": Reply(status=302, headers={"Location": "c#there"}),
        "/c": Reply(),
    }
    async with open_site(routes) as site, open_local() as fetcher:
        page = await fetcher.fetch(site.url("/a"))
    assert page.url == site.url("/a")
    assert page.final_url == site.url("/c")
    assert site.paths == ["/a", "/b?x=1", "/c"]


@pytest.mark.anyio
async def test_circles_and_endless_chains_of_redirects_end() -> None:
    routes = {f"/{n}": Reply(status=307, headers={"Location": f"/{n + 1}"}) for n in range(50)}
    routes |= {
        "/x": Reply(status=302, headers={"Location": "/y"}),
        "/y": Reply(status=302, headers={"Location": "/x"}),
    }
    async with open_site(routes) as site, open_local() as fetcher:
        chain = await failure_of(fetcher, site.url("/0"))
        circle = await failure_of(fetcher, site.url("/x"))
    assert "more than 20 times" in chain.what
    assert "loop" in circle.what
    assert len(site.paths) == 21 + 2


FORBIDDEN_TARGETS = [
    "http://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://192.168.1.1/admin",
    "http://[fd00::1]/",
    "http://2130706433/",
    "file:///etc/passwd",
    "ftp://127.0.0.1/x",
    "data:text/html,hello",
    "javascript:alert(1)",
    "http://user:secret@10.1.1.1/",
    "http://127.0.0.1:22/",
    "//100.64.0.1/",
]


@pytest.mark.anyio
@pytest.mark.parametrize("target", FORBIDDEN_TARGETS)
async def test_a_redirect_to_a_forbidden_address_is_refused(target: str) -> None:
    async with (
        open_site({"/p": Reply(status=302, headers={"Location": target})}) as site,
        open_local() as fetcher,
    ):
        error = await failure_of(fetcher, site.url("/p"))
    assert type(error) is AddressRefused
    assert "redirects" in error.what
    assert site.paths == ["/p"]


@pytest.mark.anyio
async def test_a_redirect_from_a_public_name_to_loopback_never_arrives() -> None:
    """The first hop is allowed by its network, the second is loopback, which is not."""
    from_public = FetchLimits(retry=False, respect_robots=False)
    async with (
        open_site({"/secret": Reply()}) as inside,
        open_fetcher(from_public, pages=None) as fetcher,
    ):
        error = await failure_of(fetcher, inside.url("/secret"))
        named = await failure_of(fetcher, inside.url("/secret", host="localhost"))
    assert type(error) is AddressRefused
    assert type(named) is AddressRefused
    assert inside.asked == []


@pytest.mark.anyio
async def test_a_name_is_resolved_once_and_the_checked_address_is_dialled() -> None:
    """DNS rebinding: the second answer would be private, but no one asks for it."""
    answers = iter(["127.0.0.1", "10.0.0.1", "10.0.0.1"])
    resolved: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        resolved.append(f"{host}:{port}")
        return [next(answers)]

    routes = {"/p": Reply(headers={"Connection": "close"})}
    async with (
        open_site(routes) as site,
        open_fetcher(ONCE, pages=None, resolve=rebinding) as fetcher,
    ):
        page = await fetcher.fetch(site.url("/p", host="rebind.example"))
        again = await failure_of(fetcher, site.url("/p", host="rebind.example"))
    assert page.title == "Piran"
    assert site.asked[0].headers["host"] == f"rebind.example:{site.port}"
    assert type(again) is AddressRefused
    assert "10.0.0.1" in again.what
    assert len(resolved) == 2
    assert site.paths == ["/p"]


@pytest.mark.anyio
async def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    async def mixed(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1", "192.168.0.7"]

    async with (
        open_site({"/p": Reply()}) as site,
        open_fetcher(ONCE, pages=None, resolve=mixed) as fetcher,
    ):
        assert (
            type(await failure_of(fetcher, site.url("/p", host="mixed.example"))) is AddressRefused
        )
    assert site.asked == []


@pytest.mark.anyio
async def test_the_next_address_of_a_name_is_tried_when_one_does_not_answer() -> None:
    async def two(_host: str, _port: int) -> list[str]:
        return ["127.0.0.9", "127.0.0.1"]

    async with (
        open_site({"/p": Reply()}) as site,
        open_fetcher(ONCE, pages=None, resolve=two) as fetcher,
    ):
        assert (await fetcher.fetch(site.url("/p", host="two.example"))).title == "Piran"


@pytest.mark.anyio
async def test_unknown_names_and_hanging_name_servers_end_in_words() -> None:
    async def unknown(host: str, _port: int) -> list[str]:
        raise OSError(f"no such name {host}")

    async def hanging(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    limits = FetchLimits(total_seconds=0.4)
    async with open_fetcher(limits, pages=None, resolve=unknown) as fetcher:
        assert type(await failure_of(fetcher, "http://nowhere.example/")) is SourceError
    async with open_fetcher(limits, pages=None, resolve=hanging) as fetcher:
        assert type(await failure_of(fetcher, "http://slow.example/")) is SourceTimeout


@pytest.mark.anyio
async def test_a_cancelled_fetch_ends_at_once_and_leaves_the_fetcher_usable() -> None:
    async with (
        open_site({"/never": Reply(silent=True), "/p": Reply()}) as site,
        open_local(ONCE) as fetcher,
    ):
        with anyio.move_on_after(0.2) as scope:
            await fetcher.fetch(site.url("/never"))
        assert scope.cancelled_caught
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"


@pytest.mark.anyio
async def test_six_pages_of_one_host_are_asked_for_at_once() -> None:
    """Each is answered when all six were asked for: one after another none would be."""
    together = asyncio.Barrier(6)

    async def wait_for_others(writer: asyncio.StreamWriter) -> None:
        await together.wait()
        writer.write(PAGE)

    routes = {f"/{n}": Reply(stream=wait_for_others) for n in range(6)}
    async with (
        open_site(routes) as site,
        open_local() as fetcher,
        anyio.create_task_group() as tasks,
    ):
        for n in range(6):
            tasks.start_soon(fetcher.fetch, site.url(f"/{n}"))


@pytest.mark.anyio
async def test_the_library_resolves_nothing_by_itself() -> None:
    """The pool dials through our backend: a name that our resolver sends to loopback arrives
    there."""

    async def always(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    async with (
        open_site({"/p": Reply()}) as site,
        open_fetcher(ONCE, pages=None, resolve=always) as fetcher,
    ):
        page = await fetcher.fetch(site.url("/p", host="does-not-exist.invalid"))
        assert httpx2.URL(page.final_url).host == "does-not-exist.invalid"
        tight = FetchLimits(allow_loopback=True, max_bytes=100, respect_robots=False)
        async with open_fetcher(tight, pages=None, resolve=always) as small:
            assert (
                type(await failure_of(small, site.url("/p", host="other.invalid")))
                is SourceTooLarge
            )


@pytest.mark.anyio
async def test_files_are_fetched_below_the_roots_and_a_forgotten_scheme_is_reported(
    tmp_path: Path,
) -> None:
    (tmp_path / "salt.txt").write_text("Salt of Piran.")
    async with open_local(roots=[tmp_path]) as fetcher:
        for source in (str(tmp_path / "salt.txt"), (tmp_path / "salt.txt").as_uri(), "salt.txt"):
            page = await fetcher.fetch(source)
            assert page.url == source
            assert "Salt of Piran" in page.html
        assert type(await failure_of(fetcher, "file:///etc/passwd")) is AddressRefused
        assert type(await failure_of(fetcher, "../etc/passwd")) is AddressRefused
        assert "https://example.org/page" in (await failure_of(fetcher, "example.org/page")).hint


@pytest.mark.anyio
async def test_a_file_is_converted_once_a_writing_and_stays_out_of_shared_caches(
    tmp_path: Path,
) -> None:
    path, store = (
        tmp_path / "salt.txt",
        Store(tmp_path / ".cache", size_limit=10_000_000, clock=time.time),
    )
    async with open_local(roots=[tmp_path], pages=store) as fetcher:

        async def text(written: str, changed: int) -> str:
            path.write_text(written)
            os.utime(path, ns=(changed, changed))
            return (await fetcher.fetch("salt.txt")).html

        assert "Salt of Piran" in await text("Salt of Piran", 1)
        assert "Salt of Piran" in await text(
            "Salt of Izola", 1
        )  # the same time and size: taken for the same file
        assert "Salt of Izola" in await text("Salt of Izola", 2)
        assert "Salt of Strunjan" in await text("Salt of Strunjan", 2)
    store.close()


@pytest.mark.anyio
async def test_hidden_files_are_refused_by_any_name_unless_their_folder_was_opened(
    tmp_path: Path,
) -> None:
    for name in (".env", ".ssh/id", "notes/.git/config"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("secret")
    (tmp_path / "plain.txt").symlink_to(tmp_path / ".env")
    async with open_local(roots=[tmp_path]) as fetcher:
        for source in (
            ".env",
            str(tmp_path / ".ssh" / "id"),
            "notes/.git/config",
            "notes/../.env",
            "plain.txt",
        ):
            error = await failure_of(fetcher, source)
            assert type(error) is AddressRefused
            assert "hidden" in error.what
        assert "hidden" in (await failure_of(fetcher, ".not-there")).what
    async with open_local(roots=[tmp_path, tmp_path / "notes" / ".git"]) as fetcher:
        assert "secret" in (await fetcher.fetch("config")).html


@pytest.mark.anyio
async def test_names_are_resolved_by_the_system_where_nothing_else_is_given() -> None:
    async with open_site({"/p": Reply()}) as site, open_local(ONCE) as fetcher:
        page = await fetcher.fetch(site.url("/p", host="localhost"))
    assert page.final_url.startswith("http://localhost:")
    assert site.asked[0].headers["host"] == f"localhost:{site.port}"
