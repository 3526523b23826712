"""Ways to a page that are not plain answer: cookies between hops, pages that send on, bodies that
break off."""

import asyncio
import gzip
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cache.store import Store
from errors import AddressRefused, SourceError
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.cookies import Cookies, Jar
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.refresh import refresh_of
from readers.format import is_paged
from readers.sniff import holds_text, media_type
from tests.support import Connect, text_of
from tests.support import Site as FixedSite
from tests.support.waiting import bounded
from tests.support.web_site import (
    LOOPBACK,
    PAGE,
    WORDS,
    Asked,
    Reply,
    Route,
    failure_of,
    open_local,
    open_site,
)

pytestmark = pytest.mark.anyio

ONCE = FetchLimits(allow_loopback=True, total_seconds=30.0, retry=False, respect_robots=False)


def to(place: str, cookie: str = "") -> Reply:
    """Redirect, setting a cookie."""
    return Reply(b"", 302, {"Location": place} | ({"Set-Cookie": cookie} if cookie else {}))


def wall(name: str) -> Callable[[Asked], Reply]:
    """Send back who has no cookie of this name yet, with one."""

    def answer(asked: Asked) -> Reply:
        return (
            Reply()
            if f"{name}=1" in asked.headers.get("cookie", "")
            else to(asked.path, f"{name}=1; Path=/")
        )

    return answer


# Cookies between the hops of one request


async def test_a_page_that_asks_for_its_cookie_back_is_read_and_the_next_request_has_none() -> None:
    async with open_site({"/p": wall("seen")}) as site, open_local(ONCE) as fetcher:
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"
    assert ["cookie" in asked.headers for asked in site.asked] == [False, True, False, True]


async def test_a_login_that_leads_over_other_addresses_and_back_is_read() -> None:
    def entry(asked: Asked) -> Reply:
        return Reply() if "ticket=7" in asked.headers.get("cookie", "") else to("/idp?back=/p")

    routes: dict[str, Route] = {
        "/p": entry,
        "/idp?back=/p": to("/check", "state=open; Path=/"),
        "/check": lambda asked: (
            to("/p", "ticket=7; Path=/") if "state=open" in asked.headers["cookie"] else Reply(b"")
        ),
    }
    async with open_site(routes) as site, open_local(ONCE) as fetcher:
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"


async def test_a_cookie_that_never_helps_ends_as_a_circle() -> None:
    async with open_site({"/p": to("/p", "id=1; Path=/")}) as site, open_local(ONCE) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
    assert "loop" in error.what
    assert len(site.asked) == 2


async def test_cookies_of_a_hop_never_reach_another_site() -> None:
    seen: list[str] = []

    def elsewhere(asked: Asked) -> Reply:
        seen.append(asked.headers.get("cookie", ""))
        return Reply()

    async with open_site({"/there": elsewhere}, host="127.0.0.2") as other:
        hop = to(other.url("/there"), "secret=1; Path=/")
        async with open_site({"/p": hop}) as site, open_local(ONCE) as fetcher:
            await fetcher.fetch(site.url("/p"))
    assert seen == [""]


SET = [
    ("https://a.example.org/x/y", "k=1", "https://a.example.org/x/z", True),
    ("https://a.example.org/x/y", "k=1", "https://a.example.org/", False),
    ("https://a.example.org/", "k=1", "https://b.example.org/", False),
    ("https://a.example.org/", "k=1", "https://sub.a.example.org/", False),
    ("https://a.example.org/", "k=1; Domain=example.org", "https://b.example.org/", True),
    ("https://a.example.org/", "k=1; Domain=.example.org", "https://example.org/", True),
    ("https://a.example.org/", "k=1; Domain=example.org", "https://badexample.org/", False),
    ("https://a.example.org/", "k=1; Domain=other.org", "https://other.org/", False),
    ("https://a.example.org/", "k=1; Domain=b.example.org", "https://b.example.org/", False),
    ("https://a.example.org/", "k=1; Domain=org", "https://b.org/", False),
    ("https://a.co.uk/", "k=1; Domain=co.uk", "https://b.co.uk/", False),
    ("https://1.2.3.4/", "k=1; Domain=3.4", "https://9.9.3.4/", False),
    ("https://a.example.org/", "k=1; Secure", "http://a.example.org/", False),
    ("https://a.example.org/", "k=1; Max-Age=0", "https://a.example.org/", False),
    (
        "https://a.example.org/",
        "k=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "https://a.example.org/",
        False,
    ),
    ("https://a.example.org/", f"k={'x' * 5000}", "https://a.example.org/", False),
]


@pytest.mark.parametrize(
    ("first", "line", "then", "is_sent"), SET, ids=[f"{a} {b[:40]} {c}" for a, b, c, _ in SET]
)
def test_where_a_cookie_of_a_hop_goes(first: str, line: str, then: str, is_sent: bool) -> None:
    jar = Jar(None)
    jar.keep(first, [line])
    assert bool(jar.headers(then)) is is_sent


async def test_what_a_hop_sets_counts_before_the_cookie_of_the_persons_file(tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(
        "# Netscape HTTP Cookie File\n"
        "127.0.0.1\tFALSE\t/\tFALSE\t4000000000\tlogin\tme\n"
        "127.0.0.1\tFALSE\t/\tFALSE\t4000000000\tstep\told\n"
    )
    limits = replace(LOOPBACK, cookies=Cookies(file), respect_robots=False)
    routes: dict[str, Route] = {"/p": to("/next", "step=new; Path=/"), "/next": Reply()}
    async with open_site(routes) as site, open_fetcher(limits, pages=None) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert sorted(site.asked[-1].headers["cookie"].split("; ")) == ["login=me", "step=new"]
    assert page.own


# Pages that send their reader on


def sender(markup: str, text: str = "") -> Reply:
    return Reply(
        f"<html><head><title>Moved</title>{markup}</head><body>{text}</body></html>".encode()
    )


META = '<meta http-equiv="refresh" content="{}">'
FOLLOWED = [
    sender(META.format("0; url=/end")),
    sender(META.format("5;URL='end'")),
    sender(META.format("0,end")),
    sender(META.format("0;end#part")),
    sender("<META content='0; URL=&#47;end' HTTP-EQUIV=Refresh>"),
    sender("<meta content=0;url=/end http-equiv=refresh>"),
    sender(
        f'<base href="/"><!-- <meta http-equiv=refresh content="0;url=/no"> '
        f"-->{META.format('1; url=end')}"
    ),
    sender(
        f"<script>var a = '<meta http-equiv=refresh "
        f'content="0;url=/no">\'</script>{META.format("0;url=/end")}'
    ),
    sender("", f"<p>Redirecting…</p>{META.format('2; url=/end')}"),
    sender(META.format("0; url=/end"), WORDS),
    Reply(b"<p>x</p>", headers={"Refresh": "0; url=/end"}),
    Reply(PAGE, headers={"Refresh": "3;end"}),
]


@pytest.mark.parametrize("reply", FOLLOWED, ids=range(len(FOLLOWED)))
async def test_a_page_that_sends_its_reader_on_at_once_is_a_redirect(reply: Reply) -> None:
    end = Reply(b"<html><title>End</title><p>The key number is K-end, and here it is.</p></html>")
    async with open_site({"/p": reply, "/end": end}) as site, open_local(ONCE) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert page.title == "End"
    assert page.final_url == site.url("/end")
    assert page.url == site.url("/p")


STAYS = [
    sender(META.format("300"), WORDS),
    sender(META.format("0"), WORDS),
    sender(META.format("3; url=/p"), WORDS),
    sender(META.format("0; url="), WORDS),
    sender(META.format("0; url=javascript:go()"), WORDS),
    sender(META.format("0; url=data:text/html,no"), WORDS),
    sender(META.format("x; url=/end"), WORDS),
    sender(META.format("20; url=/end"), WORDS),
    sender(f"<!-- {META.format('0; url=/end')} -->", WORDS),
    sender(f"<template>{META.format('0; url=/end')}</template>", WORDS),
    sender(f"<noscript>{META.format('0; url=/end')}</noscript>", WORDS),
    sender("", f"<p>{WORDS}</p><pre>&lt;meta http-equiv=refresh content='0;url=/end'></pre>"),
    Reply(WORDS.encode() + b'<meta http-equiv="refresh" content="0; url=/end">', kind="text/plain"),
]


@pytest.mark.parametrize("reply", STAYS, ids=range(len(STAYS)))
async def test_a_page_that_is_meant_to_be_read_is_read(reply: Reply) -> None:
    async with open_site({"/p": reply}) as site, open_local(ONCE) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert "lighthouse" in page.html
    assert site.paths == ["/p"]


async def test_pages_that_send_on_for_ever_end_after_five() -> None:
    routes = {f"/{n}": sender(META.format(f"0; url=/{n + 1}"), WORDS) for n in range(9)}
    async with open_site(routes) as site, open_local(ONCE) as fetcher:
        page = await fetcher.fetch(site.url("/0"))
    assert len(site.paths) == 6
    assert "lighthouse" in page.html


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1/", "http://169.254.169.254/latest/", "http://127.0.0.1:22/"]
)
async def test_the_guard_is_before_each_page_that_is_sent_to(target: str) -> None:
    routes = {
        "/meta": sender(META.format(f"0; url={target}")),
        "/header": Reply(headers={"Refresh": f"0;{target}"}),
    }
    async with open_site(routes) as site, open_local(ONCE) as fetcher:
        errors = [await failure_of(fetcher, site.url(path)) for path in routes]
    assert [type(error) for error in errors] == [AddressRefused, AddressRefused]


async def test_a_check_that_sets_a_cookie_and_sends_to_itself_is_passed() -> None:
    def check(asked: Asked) -> Reply:
        if "passed=1" in asked.headers.get("cookie", ""):
            return Reply()
        return replace(
            sender(META.format("0; url=/p"), "One moment"),
            headers={"Set-Cookie": "passed=1; Path=/"},
        )

    async with open_site({"/p": check}) as site, open_local(ONCE) as fetcher:
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"


async def test_a_hostile_head_costs_little_time() -> None:
    heads = [
        "<meta 'refresh" * 5_000,
        "<!-- refresh" * 5_000,
        "<script>refresh" * 5_000,
        '<a "refresh' * 6_000,
    ]
    for head in heads:
        with bounded():
            refresh_of({}, head.encode() + PAGE, "https://example.org/")


# Bodies that break off

CUT = {"Content-Length": "9999", "Connection": "close"}
PACKED = gzip.compress(
    PAGE.replace(b"</p>", b" ".join(b"word%d" % (n * n) for n in range(60_000)) + b"</p>")
)


async def stall(writer: asyncio.StreamWriter) -> None:
    """Send the beginning of a page, and nothing any more."""
    writer.write(PAGE[:-20])
    await writer.drain()
    await asyncio.Event().wait()


async def half_chunk(writer: asyncio.StreamWriter) -> None:
    """Send a chunk whole, and one in part."""
    writer.write(b"%x\r\n%b\r\n" % (len(PAGE[:-20]), PAGE[:-20]) + b"ff\r\nmore")
    await writer.drain()


BROKEN = [
    ("length", Reply(PAGE, headers=CUT), "broke"),
    ("middle", Reply(PAGE[:-90], headers=CUT), "broke"),
    ("chunk", Reply(headers={"Transfer-Encoding": "chunked"}, stream=half_chunk), "broke"),
    ("stalled", Reply(stream=stall), "in time"),
    ("packed", Reply(PACKED[:9000], headers={**CUT, "Content-Encoding": "gzip"}), "broke"),
    ("packed, of no length", Reply(PACKED[:9000], headers={"Content-Encoding": "gzip"}), "broke"),
    ("checksum", Reply(PACKED[:-8] + bytes(8), headers={"Content-Encoding": "gzip"}), "damaged"),
    ("text", Reply(WORDS.encode(), kind="text/plain", headers=CUT), "broke"),
]


@pytest.mark.parametrize(("name", "reply", "says"), BROKEN, ids=[name for name, *_ in BROKEN])
async def test_a_body_that_breaks_off_is_read_as_far_as_it_came(
    name: str, reply: Reply, says: str
) -> None:
    limits = replace(ONCE, total_seconds=3.0)
    async with open_site({"/p": reply}) as site, open_local(limits) as fetcher:
        page = await fetcher.fetch(site.url("/p"))
    assert "rebuilt in 1287" in page.html, name
    assert says in page.unread
    assert "what follows its first" in page.unread
    assert not page.tables_whole


async def test_of_two_broken_bodies_the_longer_one_is_read() -> None:
    bodies = iter([PAGE[:-60], PAGE[:-200]])
    limits = replace(ONCE, retry=True, retry_pause=(0.0, 0.01))
    async with (
        open_site({"/p": lambda _: Reply(next(bodies), headers=CUT)}) as site,
        open_local(limits) as fetcher,
    ):
        page = await fetcher.fetch(site.url("/p"))
    assert f"first {len(PAGE) - 60:,} bytes" in page.unread
    assert len(site.paths) == 2


async def test_what_broke_off_is_not_kept_for_the_next_call(tmp_path: Path) -> None:
    bodies = iter([Reply(PAGE[:-90], headers=CUT), Reply()])
    store = Store(tmp_path / "pages", size_limit=50_000_000, clock=time.time)
    async with (
        open_site({"/p": lambda _: next(bodies)}) as site,
        open_local(ONCE, pages=store) as fetcher,
    ):
        first, second = [await fetcher.fetch(site.url("/p")) for _ in range(2)]
    store.close()
    assert first.unread
    assert not second.unread


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"PK\x03\x04" + bytes(500), kind="application/zip", headers=CUT),
        Reply(PAGE[:60], headers=CUT),
        Reply(PACKED[:9], headers={**CUT, "Content-Encoding": "gzip"}),
    ],
    ids=["an archive", "a head", "a stream"],
)
async def test_a_beginning_that_says_nothing_is_a_connection_that_broke(reply: Reply) -> None:
    async with open_site({"/p": reply}) as site, open_local(ONCE) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
    assert type(error) is SourceError
    assert "broke" in error.what


# Pages that are in the cache


@pytest.mark.parametrize("tool", ["fetch_and_prune_html", "extract_relevant"])
async def test_a_page_from_the_cache_says_its_age_and_is_read_again_on_request(
    connect: Connect, site: FixedSite, tool: str
) -> None:
    question = (
        {}
        if tool == "fetch_and_prune_html"
        else {"question": "When was the harbour of Piran rebuilt?"}
    )
    url = site.put(f"/aged-{tool}", PAGE)
    async with connect(folders=" ", search="none", networks="loopback") as client:

        async def ask(**more: bool) -> str:
            return text_of(await client.call_tool(tool, {"sources": [url], **question, **more}))

        first, second = await ask(), await ask()
        site.put(f"/aged-{tool}", PAGE.replace(b"1287", b"1391"))
        kept, fresh, after = await ask(), await ask(fresh=True), await ask()
    assert "As read" not in first
    assert re.search(r"As read \d+ s ago; fresh=true reads it again", second)
    assert "1287" in kept
    assert "1391" in fresh
    assert "As read" not in fresh
    assert "1391" in after


# Types that servers say and bytes do not

HTML_PAGE = PAGE.decode()
CSV = "ship,fee\nTern,12\nGull,19\n"
SAID = [
    (HTML_PAGE, "application/json", "/api", "text/html"),
    (HTML_PAGE, "text/csv", "/fees.csv", "text/html"),
    (HTML_PAGE, "text/plain", "/page", "text/html"),
    (HTML_PAGE, "image/png", "/map.png", "text/html"),
    (HTML_PAGE, "application/pdf", "/plan.pdf", "text/html"),
    ('{"ship": "Tern", "note": "<b>12</b>"}', "text/html", "/api", "application/json"),
    ('[{"ship": "Tern"}]', "text/html; charset=utf-8", "/api", "application/json"),
    (CSV, "text/html", "/fees.csv", "text/csv"),
    (CSV, "application/vnd.ms-excel", "/export", "text/csv"),
    ("WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n", "text/html", "/a", "text/vtt"),
    ("BEGIN:VCALENDAR\nEND:VCALENDAR\n", "image/gif", "/a", "text/calendar"),
    ("export const depth: number = 4\n", "video/mp2t", "/depth.ts", "text/x-source"),
    ("first line\nsecond line\n", "text/html", "/log", "text/plain"),
    ("first line\nsecond line\n", "audio/x-mpegurl", "/log", "text/plain"),
    ("<p>Fish &amp; chips", "text/html", "/p", "text/html"),
    ("Fish &amp; chips", "text/html", "/p", "text/html"),
    (
        "<h1 align=center>Harbour</h1>\n\n# Install\n",
        "text/markdown",
        "/README.md",
        "text/markdown",
    ),
    ("Use `<html>` first.\n", "text/plain", "/notes", "text/plain"),
    (
        '<svg xmlns="http://www.w3.org/2000/svg"><text>Quay</text></svg>',
        "image/svg+xml",
        "/q.svg",
        "application/xml",
    ),
]


@pytest.mark.parametrize(("body", "said", "name", "kind"), SAID, ids=range(len(SAID)))
def test_the_bytes_decide_where_they_are_clear(body: str, said: str, name: str, kind: str) -> None:
    assert media_type(body.encode(), content_type=said, name=name) == kind


@pytest.mark.parametrize(
    "said", ["image/png", "video/mp2t", "application/octet-stream", "text/html"]
)
def test_bytes_that_are_no_text_are_none_whatever_is_said(said: str) -> None:
    noise = bytes(range(256)) * 8
    assert not holds_text(media_type(noise, content_type=said)) or is_paged(said)


async def test_a_page_that_was_packed_without_a_word_is_unpacked() -> None:
    async with open_site({"/p": Reply(gzip.compress(PAGE))}) as site, open_local(ONCE) as fetcher:
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"
