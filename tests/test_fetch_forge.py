"""Addresses of code forges over loopback: what is asked of the API, what is shown, and what happens
where it fails."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cache.store import Store
from errors import SourceError, SourceNotFound, UsageError
from extras.forge import forge_at, known_forges
from pipeline.evidence.render import all_links
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.page_source import known_sites, plan_for
from pipeline.sources.anchors import unit_of_address
from readers.html.document import read_document
from readers.page import Page
from server.settings import read_settings
from tests.support import Clock
from tests.support.forges import ADDRESSES, COMMENTS, FAILURES, GITHUB, GITLAB, SITES, say
from tests.support.web_site import LOOPBACK, Reply, Route, Site, open_site

pytestmark = pytest.mark.anyio

CLOSED = b"User-agent: *\nDisallow: /\n"


async def fetch(site: Site, kind: str, path: str) -> Page:
    """Read one address of a forge of `kind` that the site plays."""
    limits = replace(LOOPBACK, sites=(forge_at(kind, site.url("").rstrip("/")).plan,))
    async with open_fetcher(limits, pages=None, clock=Clock()) as fetcher:
        return await fetcher.fetch(site.url(path))


def words_of(page: Page) -> str:
    return read_document(page).text


@pytest.mark.parametrize(("kind", "path", "shown"), ADDRESSES)
async def test_an_address_of_a_forge_is_read_as_what_it_holds(
    kind: str, path: str, shown: Sequence[str]
) -> None:
    async with open_site({**SITES[kind], "/robots.txt": Reply(CLOSED, kind="text/plain")}) as site:
        page = await fetch(site, kind, path)
        reported = words_of(page)
        assert [words for words in shown if words not in reported] == []
        assert page.final_url == site.url(path)
        assert (page.notes, page.unread) == ((), "")


async def test_a_thread_has_its_author_and_day_and_what_it_says_is_text(
    site_path: str = "/lakes/orvane/issues/3",
) -> None:
    async with open_site(GITHUB) as site:
        page = await fetch(site, "github", "/lakes/orvane/issues/3")
    assert (page.author, page.published, page.title) == (
        "ada",
        "2024-05-03",
        "Depth is wrong at noon (#3)",
    )
    assert "<script" not in page.html
    steps = next(block for block in read_document(page).blocks if "Look at noon" in block.text)
    assert steps.heading_path[-2:] == ("ada, 2024-05-03 10:00", "Steps")


@pytest.mark.parametrize(
    ("kind", "path", "place", "said"),
    [
        ("github", "/lakes/orvane/issues/3", "issuecomment-31", "Fixed in 1.2."),
        ("gitea", "/lakes/orvane/issues/3", "issuecomment-31", "Fixed in 1.2."),
        ("gitlab", "/lakes/deep/orvane/-/issues/3", "note_41", "Sensor drifts by heat."),
    ],
)
async def test_the_address_of_one_remark_leads_to_it(
    kind: str, path: str, place: str, said: str
) -> None:
    async with open_site(SITES[kind]) as site:
        document = read_document(await fetch(site, kind, f"{path}#{place}"))
    start = unit_of_address(document)
    assert start is not None
    assert document.blocks[start + 1].text == said


async def test_links_of_a_readme_lead_into_the_repository() -> None:
    async with open_site(GITHUB) as site:
        page = await fetch(site, "github", "/lakes/orvane")
        links = all_links(read_document(page))
        assert site.url("/lakes/orvane/blob/trunk/docs/guide.md") in links


async def test_a_long_thread_is_read_to_its_end_and_one_without_end_says_so() -> None:
    remark = {"user": {"login": "bo"}, "created_at": "2024-05-03T12:30:00Z"}
    hundred = [{**remark, "body": f"Remark {number}"} for number in range(100)]
    address = "/api/v3/repos/lakes/orvane/issues/3/comments?per_page=100"
    async with open_site(
        {**GITHUB, address: say(hundred), f"{address}&page=2": say(COMMENTS)}
    ) as site:
        page = await fetch(site, "github", "/lakes/orvane/issues/3")
        assert "Remark 99" in words_of(page)
        assert "Fixed in 1.2." in words_of(page)
        assert page.unread == ""
    endless: dict[str, Route] = {f"{address}&page={number}": say(hundred) for number in range(2, 9)}
    async with open_site(GITHUB | endless | {address: say(hundred)}) as site:
        assert "comments" in (await fetch(site, "github", "/lakes/orvane/issues/3")).unread


async def test_a_thread_whose_comments_are_kept_back_says_that_they_are_missing() -> None:
    kept: dict[str, Route] = {
        name: reply for name, reply in GITLAB.items() if "discussions" not in name
    }
    async with open_site(kept) as site:
        page = await fetch(site, "gitlab", "/lakes/deep/orvane/-/issues/3")
    assert "It says 12 m." in words_of(page)
    assert "comments" in page.unread


@pytest.mark.parametrize("fault", FAILURES)
async def test_where_the_api_does_not_report_the_page_itself_is_read_and_says_why(
    fault: str,
) -> None:
    thread = "/lakes/orvane/issues/3"
    page_itself = Reply(
        b"<html><body><h1>Depth</h1><p>" + b"It says 12 m where the lake has 213 m. " * 9
    )
    async with open_site({f"/api/v3/repos{thread}": FAILURES[fault], thread: page_itself}) as site:
        page = await fetch(site, "github", thread)
        assert "213 m" in page.html
        assert "its API failed" in " ".join(page.notes)


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, SourceNotFound), (403, SourceError), (429, SourceError), (500, SourceError)],
)
async def test_what_neither_the_api_nor_the_page_reports_fails_with_its_kind(
    status: int, error: type[Exception]
) -> None:
    thread = "/lakes/orvane/issues/3"
    broken = Reply(b"", status)
    async with open_site({f"/api/v3/repos{thread}": broken, thread: broken}) as site:
        with pytest.raises(error):
            await fetch(site, "github", thread)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/",
        "https://github.com/lakes",
        "https://github.com/topics/lakes",
        "https://github.com/lakes/orvane/issues",
        "https://github.com/lakes/orvane/issues?q=depth",
        "https://github.com/lakes/orvane/releases?page=2",
        "https://github.com/lakes/orvane/wiki",
        "https://github.com/lakes/orvane/commit/abc",
        "https://github.com.evil.example/lakes/orvane/issues/3",
        "https://evil.example/github.com/lakes/orvane/issues/3",
        "https://docs.github.com/en/rest",
        "http://github.com/lakes/orvane",
        "https://gitlab.com/explore/projects",
        "https://gitlab.com/lakes",
        "https://example.org/lakes/orvane/-/issues/3",
        "https://[broken",
    ],
)
def test_other_addresses_are_left_alone(url: str) -> None:
    assert plan_for(url, known_sites()) is None


def test_everybodys_forges_are_asked_where_they_say_that_programs_should_ask() -> None:
    hub = plan_for("https://github.com/lakes/orvane/blob/main/a%20b/c.py#L10", known_sites())
    assert hub is not None
    assert known_forges()[0].api == "https://api.github.com"
    assert plan_for("https://codeberg.org/lakes/orvane/issues/3", known_sites()) is not None


def test_ones_own_forge_is_named_in_the_settings_with_its_kind() -> None:
    (own,) = read_settings({"forges": "gitlab=https://git.example.org/"}, {}).forges
    assert own("https://git.example.org/lakes/orvane/-/issues/3") is not None
    assert own("https://gitlab.com/lakes/orvane/-/issues/3") is None
    assert forge_at("gitlab", "https://git.example.org/").api == "https://git.example.org/api/v4"
    with pytest.raises(UsageError, match="gitlab=https://git"):
        read_settings({"forges": "bitbucket=https://git.example.org"}, {})


async def test_a_page_of_a_forge_is_kept_like_others(store: Store) -> None:
    async with open_site(GITHUB) as site:
        limits = replace(LOOPBACK, sites=(forge_at("github", site.url("").rstrip("/")).plan,))
        async with open_fetcher(limits, pages=store, clock=Clock()) as fetcher:
            first = await fetcher.fetch(site.url("/lakes/orvane/issues/3"))
            asked = len(site.asked)
            assert (await fetcher.fetch(site.url("/lakes/orvane/issues/3"))).html == first.html
            assert len(site.asked) == asked


async def test_a_forge_that_asks_for_silence_is_left_alone_with_all_its_pages() -> None:
    thread = "/lakes/orvane/issues/3"
    async with open_site(
        {f"/api/v3/repos{thread}": Reply(b"{}", 429, {"Retry-After": "60"}), thread: Reply()}
    ) as site:
        with pytest.raises(SourceError, match="60 s"):
            await fetch(site, "github", thread)
