"""Cookies of a browser's exported file: to whom they are sent, what is kept of what they open, and
what is said."""

import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client

from cache.store import Store
from errors import UsageError
from extras.http.serve import serve_http
from pipeline.fetch.client import Fetcher, open_fetcher
from pipeline.fetch.cookies import Cookies
from server.settings import read_settings
from tests.support import Connect, data_of, text_of
from tests.support.commands import run_command
from tests.support.web_site import LOOPBACK, Asked, Reply, Route, open_site

pytestmark = pytest.mark.anyio

FAR = 4_000_000_000
HEAD = "# Netscape HTTP Cookie File\n# This is a generated file! Do not edit.\n\n"


def cookie_line(
    domain: str, name: str, *, path: str = "/", secure: bool = False, until: int = FAR
) -> str:
    below = "TRUE" if domain.startswith(".") else "FALSE"
    return (
        "\t".join((domain, below, path, str(secure).upper(), str(until), name, f"secret-{name}"))
        + "\n"
    )


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A file as a browser exports it."""
    lines = (
        cookie_line("127.0.0.1", "login"),
        "#HttpOnly_" + cookie_line("127.0.0.1", "hidden", until=0),
        cookie_line("127.0.0.1", "team", path="/team"),
        cookie_line("127.0.0.1", "tls", secure=True),
        cookie_line("127.0.0.1", "old", until=1_000_000_000),
        cookie_line("localhost", "other"),
        cookie_line(".example.org", "wide"),
        cookie_line("example.org", "narrow"),
    )
    path = tmp_path / "exported.txt"
    path.write_text(HEAD + "".join(lines))
    return path


def shown(asked: Asked) -> Reply:
    """Answer a member with the member's page, and everyone else with another."""
    member = "login=secret-login" in asked.headers.get("cookie", "")
    words = "The members meet at the old mill on Friday." if member else "Members see more."
    return Reply(f"<html lang=en><title>Club</title><p>{words}</p></html>".encode())


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "pages", size_limit=50_000_000, clock=lambda: 1_800_000_000.0)
    yield store
    store.close()


@asynccontextmanager
async def fetching(jar: Path | None, pages: Store | None = None) -> AsyncIterator[Fetcher]:
    limits = replace(LOOPBACK, cookies=Cookies(jar) if jar else None)
    async with open_fetcher(limits, pages=pages) as fetcher:
        yield fetcher


def test_each_goes_where_the_file_says(jar: Path) -> None:
    cookies = Cookies(jar)
    sent = {
        url: sorted(
            part.partition("=")[0]
            for part in cookies.headers(url).get("Cookie", "").split("; ")
            if part
        )
        for url in (
            "http://127.0.0.1:8000/",
            "https://127.0.0.1/team/x",
            "http://127.0.0.1/teams",
            "https://example.org/",
            "https://www.example.org/",
            "https://notexample.org/",
            "https://example.org.evil.test/",
        )
    }
    assert list(sent.values()) == [
        ["hidden", "login"],
        ["hidden", "login", "team", "tls"],
        ["hidden", "login"],
        ["narrow", "wide"],
        ["wide"],
        [],
        [],
    ]
    assert "secret" not in repr(cookies)


async def test_a_page_that_needs_a_login_is_read_and_says_so(
    connect: Connect, jar: Path, tmp_path: Path
) -> None:
    async with open_site({"/club": shown}) as site:
        given = {"question": "Where do the members meet?", "sources": [site.url("/club")]}
        async with connect(
            networks="loopback", cookies=str(jar), cache=str(tmp_path / "cache")
        ) as client:
            result = await client.call_tool("extract_relevant", given)
    assert "the old mill" in text_of(result)
    assert "read with your cookies" in text_of(result)
    robots = next(asked for asked in site.asked if asked.path == "/robots.txt")
    assert "cookie" not in robots.headers


async def test_what_cookies_opened_is_for_no_server_without_them(
    connect: Connect, jar: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    other = tmp_path / "other.txt"
    other.write_text(HEAD + cookie_line("127.0.0.1", "guest"))

    async def reported(client: Client, source: str) -> tuple[str, str]:
        result = await client.call_tool("fetch_and_prune_html", {"sources": [source]})
        handle = "" if result.is_error else data_of(result)["pages"][0]["handle"]
        return text_of(result), handle

    async with open_site({"/club": shown}) as site:
        async with connect(networks="loopback", cookies=str(jar), cache=str(cache)) as client:
            mine, handle = await reported(client, site.url("/club"))
        for settings in ({}, {"cookies": str(other)}):
            async with connect(networks="loopback", cache=str(cache), **settings) as client:
                theirs, _ = await reported(client, site.url("/club"))
                named, _ = await reported(client, handle)
            assert "old mill" not in theirs + named
    assert "old mill" in mine
    assert "unknown or has expired" in named


async def test_another_account_in_the_same_file_is_asked_for_again(jar: Path, pages: Store) -> None:
    async with open_site({"/club": shown}) as site:
        async with fetching(jar, pages) as fetcher:
            mine = await fetcher.fetch(site.url("/club"))
        jar.write_text(HEAD + cookie_line("127.0.0.1", "guest"))
        async with fetching(jar, pages) as fetcher:
            theirs = await fetcher.fetch(site.url("/club"))
    assert "old mill" in mine.html
    assert "old mill" not in theirs.html


async def test_no_cookie_goes_across_a_redirect_to_another_site_nor_back(jar: Path) -> None:
    async with open_site({"/home": shown}) as home, open_site({}) as stranger:
        elsewhere = f"http://localhost:{stranger.port}"
        home.routes["/out"] = Reply(status=302, headers={"Location": f"{elsewhere}/in"})
        home.routes["/same"] = Reply(status=302, headers={"Location": "/home"})
        stranger.routes["/in"] = Reply(status=302, headers={"Location": home.url("/home")})
        async with fetching(jar) as fetcher:
            back = await fetcher.fetch(home.url("/out"))
            same = await fetcher.fetch(home.url("/same"))
    assert "old mill" not in back.html
    assert "old mill" in same.html
    assert all("cookie" not in asked.headers for asked in stranger.asked)


async def test_pages_without_a_cookie_are_kept_as_ever_and_what_a_site_sets_is_never_sent(
    jar: Path, pages: Store
) -> None:
    jar.write_text(HEAD + cookie_line("example.org", "login"))
    routes: dict[str, Route] = {
        "/a": Reply(headers={"Set-Cookie": "track=1; Path=/"}),
        "/b": Reply(),
    }
    async with open_site(routes) as site, fetching(jar, pages) as fetcher:
        first = await fetcher.fetch(site.url("/a"))
        await fetcher.fetch(site.url("/b"))
        await fetcher.fetch(site.url("/a"))
    assert site.paths == ["/a", "/b"]
    assert not any("cookie" in asked.headers for asked in site.asked)
    assert not first.own


async def test_no_log_and_no_error_says_a_value(
    jar: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with open_site({"/club": shown}) as site, fetching(jar) as fetcher:
            await fetcher.fetch(site.url("/club"))
    assert "secret" not in caplog.text
    broken = tmp_path / "broken.txt"
    for text in (HEAD + "127.0.0.1\tTRUE\tsecret-half\n", "127.0.0.1\tsecret", "\xff secret"):
        broken.write_text(text, encoding="latin-1")
        with pytest.raises(UsageError) as caught:
            Cookies(broken)
        assert "secret" not in f"{caught.value}{caught.value.__cause__}"
        assert caught.value.__suppress_context__
    with pytest.raises(UsageError, match="cannot be read"):
        Cookies(tmp_path / "absent.txt")


async def test_the_file_itself_is_not_read_even_where_its_folder_is_open(
    connect: Connect, tmp_path: Path
) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    names = ("cookies.txt", "www.port.test_cookies.txt", "renamed.txt")
    for name in names:
        (folder / name).write_text(HEAD + cookie_line("127.0.0.1", "login"))
    (folder / "note.txt").write_text("The login of the harbour is at the gate.")
    async with connect(folders=str(folder), cache=str(tmp_path / "cache")) as client:
        found = await client.call_tool("search_web", {"question": "secret login"})
        read = [
            await client.call_tool("fetch_and_prune_html", {"sources": [str(folder / name)]})
            for name in names
        ]
    assert "secret-login" not in "".join(map(text_of, (found, *read)))
    assert all(one.is_error for one in read)


def test_a_server_that_others_call_refuses_them(jar: Path, tmp_path: Path) -> None:
    settings = read_settings({"cookies": str(jar), "cache": str(tmp_path)}, {})
    with pytest.raises(UsageError, match="Unset WINNOW_COOKIES"):
        serve_http(
            settings,
            host="127.0.0.1",
            port=0,
            allowed_hosts=[],
            allowed_origins=[],
            open_to_all=False,
        )


@pytest.mark.slow
def test_doctor_says_of_how_many_hosts_they_are_and_no_value(jar: Path, tmp_path: Path) -> None:
    given = ["--set", "search=none", "--set", f"cache={tmp_path / 'cache'}"]
    own = {**os.environ, "WINNOW_COOKIES": str(jar), "HOME": str(tmp_path)}
    run = run_command("doctor", *given, environment=own, seconds=110)
    assert "in use; hosts: 3;" in run.stdout
    assert "secret" not in run.stdout + run.stderr
