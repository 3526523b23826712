"""Bad input and bad answers: a table of what was tried, which error each gives, and the words that
say why."""

import asyncio
import gzip

import pytest

from errors import (
    AddressRefused,
    NeedsBrowser,
    SourceError,
    SourceNotFound,
    SourceTimeout,
    SourceTooLarge,
    SourceUnreadable,
)
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from tests.support.waiting import moment
from tests.support.web_site import PAGE, Reply, failure_of, open_local, open_site

pytestmark = pytest.mark.anyio

LIMITS = FetchLimits(
    allow_loopback=True,
    retry=False,
    respect_robots=False,
    total_seconds=1.0,
    max_bytes=200_000,
)

SOURCES: list[tuple[str, type[SourceError], str]] = [
    # schemes and forms
    ("ftp://example.com/a", AddressRefused, "scheme 'ftp'"),
    ("gopher://example.com/", AddressRefused, "scheme 'gopher'"),
    ("ws://example.com/", AddressRefused, "scheme 'ws'"),
    ("data:text/html,hello", AddressRefused, "scheme 'data'"),
    ("javascript:alert(1)", AddressRefused, "scheme 'javascript'"),
    ("about:blank", AddressRefused, "scheme 'about'"),
    ("view-source:http://example.com/", AddressRefused, "scheme 'view-source'"),
    ("http://", AddressRefused, "names no host"),
    ("http:///path", AddressRefused, "names no host"),
    ("http:example.com", AddressRefused, "names no host"),
    ("http://exa mple.com/", AddressRefused, "blanks"),
    ("http://example.com\\@evil.example/", AddressRefused, "backslashes"),
    ("http://example.com/\x00", AddressRefused, "control characters"),
    ("http://example.com/a\r\nHost: x", AddressRefused, "control characters"),
    ("http://" + "x" * 9000, AddressRefused, "longer than 8192"),
    ("http://[::1/", AddressRefused, "not a valid"),
    ("http://user@example.com/", AddressRefused, "user name"),
    ("http://user:pw@example.com/", AddressRefused, "user name"),
    ("http://example.com:80@127.0.0.1/", AddressRefused, "user name"),
    ("http://example.com:22/", AddressRefused, "port 22"),
    ("http://example.com:25/", AddressRefused, "port 25"),
    ("https://example.com:6379/", AddressRefused, "port 6379"),
    ("http://example.com:0/", AddressRefused, "port 0"),
    ("http://example.com:99999/", AddressRefused, "99999"),
    # this machine, and the network after it
    ("http://127.0.0.1/", AddressRefused, "loopback"),
    ("http://127.8.9.1/", AddressRefused, "loopback"),
    ("http://127.0.0.1./", AddressRefused, "loopback"),
    ("http://localhost/", AddressRefused, "this machine"),
    ("http://localhost./", AddressRefused, "this machine"),
    ("http://a.b.localhost/", AddressRefused, "this machine"),
    ("http://ip6-localhost/", AddressRefused, "this machine"),
    ("http://2130706433/", AddressRefused, "unusual spelling"),
    ("http://0x7f000001/", AddressRefused, "unusual spelling"),
    ("http://017700000001/", AddressRefused, "unusual spelling"),
    ("http://0177.0.0.1/", AddressRefused, "not a valid URL"),
    ("http://0x7f.0.0.1/", AddressRefused, "unusual spelling"),
    ("http://127.1/", AddressRefused, "unusual spelling"),
    ("http://127.0.1/", AddressRefused, "unusual spelling"),
    ("http://１２７.０.０.１/", AddressRefused, "not a valid URL"),
    ("http://127。0。0。1/", AddressRefused, "127.0.0.1"),
    ("http://[::1]/", AddressRefused, "loopback"),
    ("http://[0:0:0:0:0:0:0:1]/", AddressRefused, "loopback"),
    ("http://[::ffff:127.0.0.1]/", AddressRefused, "IPv4 inside IPv6"),
    ("http://[::ffff:7f00:1]/", AddressRefused, "IPv4 inside IPv6"),
    ("http://[::127.0.0.1]/", AddressRefused, "IPv4 inside IPv6"),
    ("http://[64:ff9b::7f00:1]/", AddressRefused, "IPv4 inside IPv6"),
    ("http://[64:ff9b:1::a00:1]/", AddressRefused, "IPv4 inside IPv6"),
    ("http://[2002:7f00:1::]/", AddressRefused, "IPv4 inside IPv6"),
    ("http://[2001:0:7f00:1::]/", AddressRefused, "IPv4 inside IPv6"),
    ("http://0.0.0.0/", AddressRefused, "unspecified"),
    ("http://[::]/", AddressRefused, "unspecified"),
    ("http://10.1.2.3/", AddressRefused, "private"),
    ("http://172.16.0.1/", AddressRefused, "private"),
    ("http://192.168.1.1/", AddressRefused, "private"),
    ("http://[fd00::1]/", AddressRefused, "private"),
    ("http://[fe80::1]/", AddressRefused, "link-local"),
    ("http://169.254.1.1/", AddressRefused, "link-local"),
    ("http://100.64.0.1/", AddressRefused, "carrier-grade NAT"),
    ("http://224.0.0.1/", AddressRefused, "multicast"),
    ("http://255.255.255.255/", AddressRefused, "reserved"),
    ("http://192.0.2.1/", AddressRefused, "reserved"),
    ("http://[2001:db8::1]/", AddressRefused, "reserved"),
    ("http://169.254.169.254/latest/meta-data/", AddressRefused, "cloud metadata"),
    ("http://100.100.100.200/", AddressRefused, "cloud metadata"),
    ("http://168.63.129.16/", AddressRefused, "cloud metadata"),
    ("http://[fd00:ec2::254]/", AddressRefused, "cloud metadata"),
    # names
    ("http://inside.example/", AddressRefused, "resolves to 10.0.0.7"),
    ("http://mixed.example/", AddressRefused, "resolves to 127.0.0.1"),
    ("http://translated.example/", AddressRefused, "IPv4 inside IPv6"),
    ("http://unknown.example/", SourceError, "cannot be resolved"),
    ("http://empty.example/", SourceError, "has no address"),
    ("http://odd.example/", SourceError, "cannot be resolved"),
    ("http://hanging.example/", SourceTimeout, "not complete after 1 s"),
    # files and handles
    ("file:///etc/passwd", AddressRefused, "/etc/passwd"),
    ("../../etc/passwd", AddressRefused, "etc/passwd"),
    ("file://elsewhere.example/x", AddressRefused, "elsewhere.example"),
    ("winnow://page/nonsense", SourceNotFound, "unknown or has expired"),
    ("winnow://page/" + "0" * 24, SourceNotFound, "unknown or has expired"),
]
NAMES = {
    "inside.example": ["10.0.0.7"],
    "mixed.example": ["93.184.216.34", "127.0.0.1"],
    "translated.example": ["64:ff9b::8.8.8.8"],
    "empty.example": [],
    "odd.example": ["nonsense"],
}


async def resolve(host: str, _port: int) -> list[str]:
    """Know a few names, hang over one, and none else."""
    if host == "hanging.example":
        await asyncio.Event().wait()
    if host not in NAMES:
        raise OSError("Name or service not known")
    return NAMES[host]


@pytest.mark.parametrize(
    ("source", "kind", "says"), SOURCES, ids=[repr(source)[:60] for source, *_ in SOURCES]
)
async def test_a_source_that_may_not_or_cannot_be_asked(
    source: str, kind: type[SourceError], says: str
) -> None:
    limits = FetchLimits(total_seconds=1.0, retry=False, respect_robots=False)
    async with open_fetcher(limits, pages=None, resolve=resolve) as fetcher:
        error = await failure_of(fetcher, source)
    assert type(error) is kind
    assert says in error.what
    assert error.hint
    assert error.source


async def drip(writer: asyncio.StreamWriter) -> None:
    """One byte now and then, for ever."""
    while True:
        writer.write(b"<")
        await writer.drain()
        await moment()


ANSWERS: list[tuple[str, Reply, type[SourceError], str]] = [
    ("400", Reply(status=400), SourceError, "400 Bad Request"),
    ("401", Reply(status=401), SourceError, "401 Unauthorized"),
    ("402", Reply(status=402), SourceError, "402"),
    ("403", Reply(status=403), SourceError, "403 Forbidden"),
    ("404", Reply(status=404), SourceNotFound, "404 Not Found"),
    ("406", Reply(status=406), SourceError, "406"),
    ("407", Reply(status=407), SourceError, "407"),
    ("410", Reply(status=410), SourceNotFound, "410 Gone"),
    ("429", Reply(status=429), SourceError, "429"),
    ("451", Reply(status=451), SourceError, "451"),
    ("500", Reply(status=500), SourceError, "500"),
    ("503", Reply(status=503), SourceError, "503"),
    ("599", Reply(status=599), SourceError, "599"),
    ("304 unasked", Reply(b"", 304), SourceError, "304"),
    ("300 to nowhere", Reply(status=300), SourceError, "300"),
    ("301 to nowhere", Reply(status=301), SourceError, "301"),
    ("circle", Reply(status=302, headers={"Location": "/p"}), SourceError, "loop"),
    (
        "to ftp",
        Reply(status=302, headers={"Location": "ftp://a.example/"}),
        AddressRefused,
        "redirects to a refused address",
    ),
    (
        "to private",
        Reply(status=307, headers={"Location": "http://10.0.0.1/"}),
        AddressRefused,
        "private",
    ),
    (
        "to metadata",
        Reply(status=308, headers={"Location": "http://169.254.169.254/"}),
        AddressRefused,
        "metadata",
    ),
    (
        "to a port",
        Reply(status=302, headers={"Location": "http://127.0.0.1:25/"}),
        AddressRefused,
        "port 25",
    ),
    (
        "to nonsense",
        Reply(status=302, headers={"Location": "http://[::1"}),
        SourceError,
        "invalid address",
    ),
    (
        "challenge",
        Reply(headers={"cf-mitigated": "challenge"}),
        SourceError,
        "behind a bot check",
    ),
    ("never", Reply(silent=True), SourceTimeout, "not complete after 1 s"),
    ("drip", Reply(stream=drip), SourceTimeout, "not complete after 1 s"),
    (
        "cut off",
        Reply(PAGE[:60], headers={"Content-Length": "9999", "Connection": "close"}),
        SourceError,
        "broke",
    ),
    ("too large", Reply(b"x" * 300_000), SourceTooLarge, "300,000 bytes, over the cap of 200,000"),
    (
        "bomb",
        Reply(gzip.compress(b"x" * 900_000), headers={"Content-Encoding": "gzip"}),
        SourceTooLarge,
        "has more than 200,000 bytes",
    ),
    (
        "bad gzip",
        Reply(headers={"Content-Encoding": "gzip"}),
        SourceUnreadable,
        "compression is damaged",
    ),
    (
        "bad brotli",
        Reply(headers={"Content-Encoding": "br"}),
        SourceUnreadable,
        "compression is damaged",
    ),
    (
        "bad zstd",
        Reply(headers={"Content-Encoding": "zstd"}),
        SourceUnreadable,
        "compression is damaged",
    ),
    ("empty", Reply(b""), SourceUnreadable, "empty"),
    ("blank", Reply(b"<html><body> </body></html>"), SourceUnreadable, "without visible text"),
    ("picture", Reply(b"\x89PNG\r\n\x1a\n" + bytes(900)), SourceUnreadable, "image"),
    (
        "broken PDF",
        Reply(b"%PDF-1.7 broken", kind="application/pdf"),
        SourceUnreadable,
        "cannot be read as text",
    ),
    ("no HTTP headers", Reply(headers={"A B": "x"}), SourceError, "broke"),
    ("endless header", Reply(headers={"X": "x" * 200_000}), SourceError, "broke"),
    (
        "scripts only",
        Reply(b"<html><body><div id=root></div><script src=/a.js></script></body></html>"),
        NeedsBrowser,
        "JavaScript",
    ),
]


@pytest.mark.parametrize(
    ("name", "reply", "kind", "says"), ANSWERS, ids=[name for name, *_ in ANSWERS]
)
async def test_an_answer_that_is_no_page(
    name: str, reply: Reply, kind: type[SourceError], says: str
) -> None:
    async with open_site({"/p": reply, "/ok": Reply()}) as site, open_local(LIMITS) as fetcher:
        error = await failure_of(fetcher, site.url("/p"))
        assert (await fetcher.fetch(site.url("/ok"))).title == "Piran", name
    assert type(error) is kind
    assert says in error.what
    assert error.hint
    assert error.source == site.url("/p")
