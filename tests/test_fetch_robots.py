"""robots.txt is read as RFC 9309 says, and respected where the setting is on; freshness as RFC 9111
says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from errors import AddressRefused
from pipeline.fetch.exchange import (
    ROBOTS_BYTES,
    lifetime,
    retry_after,
)
from pipeline.fetch.limits import FetchLimits
from tests.support.waiting import bounded
from tests.support.web_site import LOOPBACK, Reply, failure_of, open_local, open_site


def may(text: str, path: str, agent: str = "Winnow") -> bool:
    """Return whether a robots.txt allows a path."""
    return Protego.parse(text).can_fetch(f"https://a.example{path}", agent)


ROBOTS = """
User-agent: *
Disallow: /private
Allow: /private/open
Disallow: /*.php$
Disallow: /search?*q=
Disallow:

User-agent: OtherBot
User-agent: winnow
Disallow: /winnow-not-here
Allow: /
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("/private", False),
        ("/private/x", False),
        ("/privately", False),
        ("/private/open", True),
        ("/private/open/x", True),
        ("/a.php", False),
        ("/a.php?x=1", True),
        ("/search?lang=en&q=salt", False),
        ("/search?lang=en", True),
        ("/%70rivate", False),
        ("/winnow-not-here", True),
    ],
)
def test_the_longest_rule_wins_and_wildcards_work(path: str, allowed: bool) -> None:
    assert may(ROBOTS, path, "somebot") is allowed


def test_a_group_for_us_replaces_the_general_one() -> None:
    assert may(ROBOTS, "/private")
    assert not may(ROBOTS, "/winnow-not-here/x")


@given(st.text(max_size=300), st.text(max_size=60))
def test_no_robots_txt_and_no_path_raise(text: str, path: str) -> None:
    assert may(text, "/" + path) in {True, False}
    assert may(f"User-agent: *\nDisallow: /{text}", "/" + path) in {True, False}


def test_hostile_patterns_cost_linear_time() -> None:
    text = "User-agent: *\n" + "".join(f"Disallow: /{'*a' * 60}{n}$\n" for n in range(4000))
    with bounded():
        assert may(text, "/" + "a" * 5000)


@pytest.mark.anyio
async def test_a_disallowed_page_is_refused_and_not_asked_for() -> None:
    robots = Reply(b"User-agent: *\nDisallow: /p", kind="text/plain")
    async with (
        open_site({"/robots.txt": robots, "/p": Reply(), "/q": Reply()}) as site,
        open_local() as fetcher,
    ):
        error = await failure_of(fetcher, site.url("/p"))
        await fetcher.fetch(site.url("/q"))
    assert type(error) is AddressRefused
    assert "robots.txt" in error.what
    assert [asked.path for asked in site.asked] == ["/robots.txt", "/q"]


@pytest.mark.anyio
async def test_the_setting_switches_the_rule_off() -> None:
    robots = Reply(b"User-agent: *\nDisallow: /", kind="text/plain")
    limits = FetchLimits(allow_loopback=True, respect_robots=False)
    async with (
        open_site({"/robots.txt": robots, "/p": Reply()}) as site,
        open_local(limits) as fetcher,
    ):
        await fetcher.fetch(site.url("/p"))
    assert [asked.path for asked in site.asked] == ["/p"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "allowed"),
    [(404, True), (403, True), (401, True), (500, False), (503, False), (429, False)],
)
async def test_a_missing_robots_txt_allows_and_a_failing_one_refuses(
    status: int, allowed: bool
) -> None:
    async with (
        open_site({"/robots.txt": Reply(status=status), "/p": Reply()}) as site,
        open_local() as fetcher,
    ):
        if allowed:
            assert (await fetcher.fetch(site.url("/p"))).title == "Piran"
        else:
            error = await failure_of(fetcher, site.url("/p"))
            assert type(error) is AddressRefused
            assert "now, so the whole site" in error.what


@pytest.mark.anyio
async def test_a_robots_txt_over_500_kib_is_believed_as_far_as_that() -> None:
    rules = b"User-agent: *\nDisallow: /hidden\n" + b"# a remark\n" * 60_000 + b"Disallow: /\n"
    routes = {"/robots.txt": Reply(rules, kind="text/plain"), "/p": Reply(), "/hidden/x": Reply()}
    async with open_site(routes) as site, open_local() as fetcher:
        assert (await fetcher.fetch(site.url("/p"))).title == "Piran"
        assert type(await failure_of(fetcher, site.url("/hidden/x"))) is AddressRefused


@pytest.mark.anyio
async def test_half_a_rule_at_the_end_of_a_long_robots_txt_allows_nothing() -> None:
    rules = b"User-agent: *\nDisallow: /\n"
    rules = rules.ljust(ROBOTS_BYTES - len(b"\nAllow: /"), b"#") + b"\nAllow: /public\n"
    routes = {"/robots.txt": Reply(rules, kind="text/plain"), "/hidden": Reply()}
    async with open_site(routes) as site, open_local() as fetcher:
        assert type(await failure_of(fetcher, site.url("/hidden"))) is AddressRefused


@pytest.mark.anyio
async def test_rules_hold_on_the_page_that_a_redirect_leads_to() -> None:
    routes = {
        "/robots.txt": Reply(b"User-agent: *\nDisallow: /hidden", kind="text/plain"),
        "/p": Reply(status=302, headers={"Location": "/hidden/x"}),
        "/hidden/x": Reply(),
    }
    async with open_site(routes) as site, open_local() as fetcher:
        assert type(await failure_of(fetcher, site.url("/p"))) is AddressRefused
    assert site.paths == ["/p"]


@pytest.mark.anyio
async def test_a_redirected_robots_txt_is_followed_but_not_into_private_networks() -> None:
    routes = {
        "/robots.txt": Reply(status=301, headers={"Location": "/elsewhere.txt"}),
        "/elsewhere.txt": Reply(b"User-agent: *\nDisallow: /p", kind="text/plain"),
        "/p": Reply(),
    }
    async with open_site(routes) as site, open_local() as fetcher:
        assert "robots.txt" in (await failure_of(fetcher, site.url("/p"))).what
    private = {
        "/robots.txt": Reply(status=301, headers={"Location": "http://10.0.0.1/"}),
        "/p": Reply(),
    }
    async with open_site(private) as site, open_local(LOOPBACK) as fetcher:
        assert type(await failure_of(fetcher, site.url("/p"))) is AddressRefused


AGES = [
    ({}, 600.0),
    ({"cache-control": "max-age=30"}, 30.0),
    ({"cache-control": "public, max-age=30", "age": "10"}, 20.0),
    ({"cache-control": "max-age=30", "age": "40"}, 0.0),
    ({"cache-control": "max-age=999999999"}, 86_400.0),
    ({"cache-control": "max-age=x"}, 600.0),
    ({"cache-control": "no-cache"}, 0.0),
    ({"cache-control": "No-Store, max-age=5"}, None),
    ({"cache-control": 'max-age="50"'}, 50.0),
]


@pytest.mark.parametrize(("headers", "seconds"), AGES)
def test_freshness_follows_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert lifetime(headers, default=600.0) == seconds


@given(st.dictionaries(st.sampled_from(["cache-control", "age"]), st.text(max_size=40)))
def test_no_headers_break_freshness(headers: dict[str, str]) -> None:
    seconds = lifetime(headers, default=600.0)
    assert seconds is None or 0 <= seconds <= 86_400


def test_retry_after_is_read_as_seconds_or_a_date() -> None:
    assert retry_after({"retry-after": "12"}, now=0.0) == 12
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, now=20.0) == 40
    assert retry_after({"retry-after": "soon"}, now=0.0) is None
    assert retry_after({}, now=0.0) is None
