"""Proxies: public pages go through the one that is set, to the address that was checked; its key is
never shown."""

import asyncio
import base64
import ssl
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

import pytest

from errors import AddressRefused, SourceError, SourceTimeout, UsageError
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.limits import FetchLimits
from pipeline.fetch.proxy import Proxy, parse_proxy
from server.settings import read_settings
from tests.support.certificate import make_certificate
from tests.support.proxy import open_proxy
from tests.support.web_site import Reply, Site, failure_of, open_site

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.216.34"
KEY = base64.b64encode(b"ann:s3cret").decode()


def by_way_of(proxy: Proxy, *, seconds: float = 5.0, inner: Sequence[str] = ()) -> FetchLimits:
    """Return limits under which only the proxy leads anywhere."""
    networks = tuple(map(ip_network, inner))
    return FetchLimits(
        proxy=proxy,
        respect_robots=False,
        retry=False,
        total_seconds=seconds,
        allowed_networks=networks,
    )


async def public(_host: str, _port: int) -> list[str]:
    """Resolve every name to a public address, where nothing of this test is."""
    return [PUBLIC]


async def test_a_page_comes_through_the_proxy_from_the_address_that_was_checked() -> None:
    async with open_site({"/p": Reply()}) as site, open_proxy(site) as middle:
        limits = by_way_of(parse_proxy(f"http://127.0.0.1:{middle.port}"))
        async with open_fetcher(limits, pages=None, resolve=public) as fetcher:
            page = await fetcher.fetch(site.url("/p", host="piran.example"))
            await fetcher.fetch(site.url("/p", host="piran.example"))
    assert page.title == "Piran"
    assert middle.asked == [f"{PUBLIC}:{site.port}"]  # one tunnel for both, and no name in it
    assert site.asked[0].headers["host"] == f"piran.example:{site.port}"


FORBIDDEN = [
    *(
        "http://127.0.0.1/",
        "http://localhost/",
        "http://localhost./",
        "http://2130706433/",
        "http://0x7f000001/",
    ),
    *(
        "http://017700000001/",
        "http://127.1/",
        "http://0/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
    ),
    *(
        "http://[::ffff:7f00:1]/",
        "http://１２７.０.０.１/",
        "http://a@127.0.0.1/",
        "http://127.0.0.1.:80/",
    ),
    *(
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://169.254.169.254/",
        "http://10.0.0.1/",
    ),
]


@pytest.mark.parametrize("resolves", [False, True])
async def test_no_forbidden_address_is_asked_of_the_proxy(resolves: bool) -> None:
    async with open_site({}) as site, open_proxy(site) as middle:
        limits = by_way_of(parse_proxy(f"http://127.0.0.1:{middle.port}{' resolves' * resolves}"))
        async with open_fetcher(limits, pages=None, resolve=public) as fetcher:
            for url in FORBIDDEN:
                assert type(await failure_of(fetcher, url)) is AddressRefused
    assert middle.asked == []
    assert site.asked == []


async def test_a_name_that_leads_inside_is_refused_before_the_proxy_learns_of_it() -> None:
    answers = iter([PUBLIC, "10.0.0.1"])

    async def rebinding(_host: str, _port: int) -> list[str]:
        return [next(answers)]

    routes = {"/p": Reply(headers={"Connection": "close"})}
    async with open_site(routes) as site, open_proxy(site) as middle:
        limits = by_way_of(parse_proxy(f"http://127.0.0.1:{middle.port}"))
        async with open_fetcher(limits, pages=None, resolve=rebinding) as fetcher:
            await fetcher.fetch(site.url("/p", host="rebind.example"))
            error = await failure_of(fetcher, site.url("/p", host="rebind.example"))
    assert type(error) is AddressRefused
    assert middle.asked == [f"{PUBLIC}:{site.port}"]


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::ffff:7f00:1]/"]
)
async def test_a_redirect_to_inside_is_refused_behind_a_proxy_too(target: str) -> None:
    async with (
        open_site({"/p": Reply(status=302, headers={"Location": target})}) as site,
        open_proxy(site) as middle,
    ):
        limits = by_way_of(parse_proxy(f"http://127.0.0.1:{middle.port}"))
        async with open_fetcher(limits, pages=None, resolve=public) as fetcher:
            error = await failure_of(fetcher, site.url("/p", host="piran.example"))
    assert type(error) is AddressRefused
    assert len(middle.asked) == 1


async def test_user_name_and_password_are_given_to_the_proxy_and_to_no_one_else() -> None:
    async with open_site({"/p": Reply()}) as site, open_proxy(site) as middle:
        middle.key = KEY
        good = by_way_of(parse_proxy(f"http://ann:s3cret@127.0.0.1:{middle.port}"))
        async with open_fetcher(good, pages=None, resolve=public) as fetcher:
            page = await fetcher.fetch(site.url("/p", host="piran.example"))
        errors = []
        for written in ("ann:wr0ng@", ""):
            bad = by_way_of(parse_proxy(f"http://{written}127.0.0.1:{middle.port}"))
            async with open_fetcher(bad, pages=None, resolve=public) as fetcher:
                errors.append(await failure_of(fetcher, site.url("/p", host="piran.example")))
            assert "wr0ng" not in repr(bad)
            assert "ann" not in repr(bad)
    assert page.title == "Piran"
    assert not any("proxy" in name for name in site.asked[0].headers)
    for error in errors:
        assert type(error) is SourceError
        assert "user name" in error.what
        assert "wr0ng" not in str(error)
        assert "WINNOW_PROXY" in error.hint


REFUSING = [
    (b"HTTP/1.1 403 Forbidden\r\n\r\n", "403"),
    (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "502"),
    (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
    (b"", "closed the connection"),
    (b"x" * 40_000, "did not answer"),
]


@pytest.mark.parametrize(
    ("answer", "says"), REFUSING, ids=["403", "502", "not HTTP", "nothing", "too much"]
)
async def test_a_proxy_that_opens_no_tunnel_is_named_with_its_reason(
    answer: bytes, says: str
) -> None:
    async with open_site({"/p": Reply()}) as site, open_proxy(site) as middle:
        middle.answer = answer
        limits = by_way_of(parse_proxy(f"http://ann:s3cret@127.0.0.1:{middle.port}"))
        async with open_fetcher(limits, pages=None, resolve=public) as fetcher:
            error = await failure_of(fetcher, site.url("/p", host="piran.example"))
    assert type(error) is SourceError
    assert says in error.what or "did not answer" in error.what
    assert f"127.0.0.1:{middle.port}" in error.what
    assert "s3cret" not in str(error)
    assert site.asked == []


async def test_a_proxy_that_is_away_or_silent_ends_in_words() -> None:
    async with open_site({"/p": Reply()}) as site, open_proxy(site) as middle:
        middle.silent = True
        async with open_fetcher(
            by_way_of(parse_proxy(f"http://127.0.0.1:{middle.port}"), seconds=0.5),
            pages=None,
            resolve=public,
        ) as fetcher:
            silent = await failure_of(fetcher, site.url("/p", host="piran.example"))
    async with open_fetcher(
        by_way_of(parse_proxy(f"http://ann:s3cret@127.0.0.1:{middle.port}")),
        pages=None,
        resolve=public,
    ) as fetcher:
        away = await failure_of(fetcher, "http://piran.example/")
    assert type(silent) is SourceTimeout
    assert type(away) is SourceError
    assert f"the proxy http://127.0.0.1:{middle.port} does not answer" in away.what
    assert "s3cret" not in str(away)


async def test_what_an_operator_opened_inside_is_asked_directly() -> None:
    async def inside(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    async with open_site({"/p": Reply()}) as site, open_proxy(site) as middle:
        limits = by_way_of(parse_proxy(f"http://127.0.0.1:{middle.port}"), inner=["127.0.0.0/8"])
        async with open_fetcher(limits, pages=None, resolve=inside) as fetcher:
            await fetcher.fetch(site.url("/p", host="wiki.example"))
    assert middle.asked == []


async def test_a_proxy_that_resolves_is_given_public_names_and_nothing_is_resolved_here() -> None:
    resolved: list[str] = []

    async def nowhere(host: str, _port: int) -> list[str]:
        resolved.append(host)
        raise OSError("no name server here")

    async with open_site({"/p": Reply()}) as site, open_proxy(site) as middle:
        limits = by_way_of(parse_proxy(f"http://127.0.0.1:{middle.port} resolves"))
        async with open_fetcher(limits, pages=None, resolve=nowhere) as fetcher:
            await fetcher.fetch(site.url("/p", host="piran.org"))
            for host in (
                "intranet",
                "metadata.google.internal",
                "printer.local",
                "wiki.corp",
                "db.home.arpa.",
            ):
                error = await failure_of(fetcher, site.url("/p", host=host))
                assert type(error) is AddressRefused
                assert "not a public name" in error.what
    assert middle.asked == [f"piran.org:{site.port}"]
    assert resolved == []


async def test_https_pages_are_checked_end_to_end_and_the_proxy_may_speak_tls_itself(
    tmp_path: Path,
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "proxy").mkdir()
    ours, theirs = (
        make_certificate(tmp_path / name, f"{name}.example") for name in ("site", "proxy")
    )
    served, between = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
    )
    served.load_cert_chain(ours)
    between.load_cert_chain(theirs)
    site = Site({"/p": Reply()})
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=served)
    site.port = server.sockets[0].getsockname()[1]

    async def resolve(host: str, _port: int) -> list[str]:
        return ["127.0.0.1"] if host == "proxy.example" else [PUBLIC]

    async with server, open_proxy(site, tls=between) as middle:
        trusted = ssl.create_default_context(cafile=str(theirs))
        proxy = Proxy("https", "proxy.example", middle.port, tls=trusted)
        trusting = ssl.create_default_context(cafile=str(ours))
        async with open_fetcher(
            by_way_of(proxy), pages=None, resolve=resolve, tls=trusting
        ) as fetcher:
            page = await fetcher.fetch(f"https://site.example:{site.port}/p")
            other = await failure_of(fetcher, f"https://other.example:{site.port}/p")
    assert page.title == "Piran"
    assert "certificate of other.example" in other.what
    assert middle.asked == [f"{PUBLIC}:{site.port}"] * 2


BAD = [
    "proxy.example:3128",
    "ftp://proxy.example",
    "http://",
    "http://ann:s3cret@",
    "http://ann:s3cret@proxy.example:99999",
    "http://ann:s3cret@proxy.example/path",
    "http://ann:s3cret@[proxy",
    "s3cret@proxy.example:1",
    "socks5://ann:s3cret@proxy.example:1080",
]


@pytest.mark.parametrize("text", BAD)
def test_a_proxy_that_cannot_be_read_is_refused_without_repeating_its_password(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_proxy(text)
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(caught.value.__cause__)


def test_the_settings_do_not_show_a_proxys_password() -> None:
    settings = read_settings({"proxy": "http://ann:s3cret@proxy.example:3128"}, {})
    assert "s3cret" not in repr(settings)
    proxy = parse_proxy(settings.proxy)
    assert (proxy.user, proxy.password, str(proxy)) == (
        "ann",
        "s3cret",
        "http://proxy.example:3128",
    )
    assert "s3cret" not in repr(proxy)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("networks", "10.0.0.0/99"),
        ("networks", "home"),
        ("networks", "nat64=10.0.0.0/8"),
        ("networks", "nat64=64::/33"),
    ],
)
def test_networks_that_cannot_be_are_named(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        read_settings({name: value}, {})
