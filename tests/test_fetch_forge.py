"""Addresses of code forges over loopback: what is asked of the API, what is shown, and what happens where it fails."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cache.store import Store
from errors import SourceBlocked, SourceNotFound, SourceUnavailable, UsageError
from pipeline.documents import Page
from pipeline.fetch.client import open_fetcher
from pipeline.fetch.forge import FORGES, forge_at, plan_for
from pipeline.html.document import read_document
from server.settings import read_settings
from tests.support import Clock
from tests.support.web_site import LOOPBACK, Reply, Route, Site, open_site

pytestmark = pytest.mark.anyio

README = b"# Orvane\n\nReads the depth of lakes. See [the guide](docs/guide.md).\n\n## Install\n\nRun `make`.\n"
GUIDE = b"# Guide\n\nTurn it on."
CLOSED = b"User-agent: *\nDisallow: /\n"


def say(value: object, **headers: str) -> Reply:
    return Reply(json.dumps(value).encode(), kind="application/json; charset=utf-8", headers=headers)


def issue(number: int, **more: Any) -> dict[str, Any]:
    """One issue as GitHub and Gitea tell it."""
    return {
        "id": 1,
        "number": number,
        "title": "Depth is wrong at noon",
        "user": {"login": "ada", "id": 7},
        "labels": [{"name": "bug", "color": "f00"}],
        "state": "closed",
        "comments": 2,
        "created_at": "2024-05-03T10:00:00Z",
        "closed_at": "2024-05-04T10:00:00Z",
        "body": "It says **12 m** where the lake has 213 m.\n\n## Steps\n\nLook at noon. <script>alert(1)</script>",
        **more,
    }


COMMENTS = [
    {"id": 2, "user": {"login": "bo"}, "created_at": "2024-05-03T12:30:00Z", "body": "The sensor drifts by heat."},
    {"id": 3, "user": None, "created_at": "2024-05-04T09:00:00Z", "body": "Fixed in 1.2."},
]
REPOSITORY = {
    "id": 5,
    "full_name": "lakes/orvane",
    "description": "Depths of lakes",
    "default_branch": "trunk",
    "language": "Python",
    "license": {"key": "mit", "name": "MIT License"},
    "stargazers_count": 41,
    "pushed_at": "2024-06-01T08:00:00Z",
}
TREE = {
    "sha": "abc",
    "tree": [
        {"path": "README.md", "mode": "100644", "type": "blob", "size": 90},
        {"path": "docs", "mode": "040000", "type": "tree"},
        {"path": "docs/guide.md", "mode": "100644", "type": "blob", "size": 12},
        {"path": "src/depth.py", "mode": "100644", "type": "blob", "size": 400},
    ],
    "truncated": False,
}
RELEASE = {
    "tag_name": "v1.2",
    "name": "Noon",
    "published_at": "2024-06-01T08:00:00Z",
    "author": {"login": "bo"},
    "body": "- The sensor is read at noon",
}
GITHUB: dict[str, Route] = {
    "/api/v3/repos/lakes/orvane": say(REPOSITORY),
    "/api/v3/repos/lakes/orvane/git/trees/trunk?recursive=1": say(TREE),
    "/api/v3/repos/lakes/orvane/git/trees/v1?recursive=1": say(TREE),
    "/lakes/orvane/raw/trunk/README.md": Reply(README, kind="text/plain; charset=utf-8"),
    "/lakes/orvane/raw/v1/docs/guide.md": Reply(GUIDE, kind="text/plain; charset=utf-8"),
    "/api/v3/repos/lakes/orvane/issues/3": say(issue(3)),
    "/api/v3/repos/lakes/orvane/issues/3/comments?per_page=100": say(COMMENTS),
    "/api/v3/repos/lakes/orvane/issues/4": say(issue(4, pull_request={"merged_at": "2024-05-05T00:00:00Z"})),
    "/api/v3/repos/lakes/orvane/issues/4/comments?per_page=100": say(COMMENTS[:1]),
    "/api/v3/repos/lakes/orvane/pulls/4/comments?per_page=100": say(
        [{"user": {"login": "cy"}, "created_at": "2024-05-03T11:00:00Z", "path": "README.md", "body": "Why noon?"}]
    ),
    "/api/v3/repos/lakes/orvane/pulls/4/reviews": say(
        [{"user": {"login": "cy"}, "submitted_at": "2024-05-03T11:01:00Z", "state": "APPROVED", "body": ""}]
    ),
    "/api/v3/repos/lakes/orvane/discussions/5": say(issue(5, title="Which lakes?", state="open", labels=[])),
    "/api/v3/repos/lakes/orvane/discussions/5/comments?per_page=100": say(COMMENTS),
    "/api/v3/repos/lakes/orvane/releases?per_page=20": say([RELEASE]),
    "/api/v3/repos/lakes/orvane/releases/tags/v1.2": say(RELEASE),
    "/api/v3/gists/0123456789abcdef0123": say(
        {
            "description": "Depth by hand",
            "owner": {"login": "ada"},
            "created_at": "2024-05-03T10:00:00Z",
            "files": {"depth.py": {"filename": "depth.py", "content": "print(213)", "truncated": False}},
        }
    ),
}
LAB = "/api/v4/projects/lakes%2Fdeep%2Forvane"
BO, ADA = {"name": "Bo", "username": "bo"}, {"name": "Ada", "username": "ada"}
NOTES = [
    {
        "id": "a",
        "notes": [
            {"note": "Sensor drifts by heat.", "author": BO, "created_at": "2024-05-03T12:30:00Z"},
            {"note": "closed", "system": True, "author": ADA, "created_at": "2024-05-04T12:30:00Z"},
        ],
    }
]
LAB_ISSUE = {
    "iid": 3,
    "title": "Depth is wrong at noon",
    "description": "It says 12 m.",
    "state": "closed",
    "labels": ["bug"],
    "author": ADA,
    "created_at": "2024-05-03T10:00:00Z",
}
GITLAB: dict[str, Route] = {
    LAB: say({"path_with_namespace": "lakes/deep/orvane", "default_branch": "trunk", "description": "Depths"}),
    f"{LAB}/repository/tree?ref=trunk&recursive=true&per_page=100": say(TREE["tree"]),
    f"{LAB}/repository/files/README.md/raw?ref=trunk": Reply(README, kind="text/plain"),
    f"{LAB}/repository/files/docs%2Fguide.md/raw?ref=v1": Reply(GUIDE, kind="text/plain"),
    f"{LAB}/issues/3": say(LAB_ISSUE),
    "/lakes/deep/orvane/-/issues/3/discussions.json": say(NOTES),
    f"{LAB}/merge_requests/4": say({**LAB_ISSUE, "merged_at": "2024-05-05T00:00:00Z"}),
    "/lakes/deep/orvane/-/merge_requests/4/discussions.json": say(NOTES),
    f"{LAB}/releases/v1.2": say({**RELEASE, "description": RELEASE["body"], "body": None}),
}
GITEA: dict[str, Route] = {
    "/api/v1/repos/lakes/orvane": say({**REPOSITORY, "stars_count": 41}),
    "/api/v1/repos/lakes/orvane/git/trees/trunk?recursive=1": say(TREE),
    "/api/v1/repos/lakes/orvane/raw/README.md?ref=trunk": Reply(README, kind="text/plain"),
    "/api/v1/repos/lakes/orvane/contents/docs/guide.md?ref=v1": say(
        {"name": "guide.md", "type": "file", "encoding": "base64", "content": base64.b64encode(GUIDE).decode()}
    ),
    "/api/v1/repos/lakes/orvane/contents/docs?ref=v1": say(
        [{"name": "guide.md", "path": "docs/guide.md", "type": "file"}]
    ),
    "/api/v1/repos/lakes/orvane/issues/3": say(issue(3)),
    "/api/v1/repos/lakes/orvane/issues/3/comments?per_page=100": say(COMMENTS),
    "/api/v1/repos/lakes/orvane/issues/4": say(issue(4, pull_request={"merged_at": "2024-05-05T00:00:00Z"})),
    "/api/v1/repos/lakes/orvane/issues/4/comments?per_page=100": say(COMMENTS),
    "/api/v1/repos/lakes/orvane/releases?per_page=20": say([RELEASE]),
}
SITES: dict[str, dict[str, Route]] = {"github": GITHUB, "gitlab": GITLAB, "gitea": GITEA}


async def fetch(site: Site, kind: str, path: str) -> Page:
    """Read one address of a forge of `kind` that the site plays."""
    limits = replace(LOOPBACK, forges=(forge_at(kind, site.url("").rstrip("/")),))
    async with open_fetcher(limits, pages=None, clock=Clock()) as fetcher:
        return await fetcher.fetch(site.url(path))


def words_of(page: Page) -> str:
    return read_document(page).text


ADDRESSES: list[tuple[str, str, list[str]]] = [
    ("github", "/lakes/orvane", ["Reads the depth of lakes.", "Depths of lakes", "MIT License", "src/depth.py"]),
    ("github", "/lakes/orvane.git", ["Reads the depth of lakes."]),
    ("github", "/lakes/orvane/tree/v1/docs", ["docs/guide.md"]),
    ("github", "/lakes/orvane/blob/v1/docs/guide.md", ["Turn it on."]),
    ("github", "/lakes/orvane/issues/3", ["ada, 2024-05-03 10:00", "bo, 2024-05-03 12:30", "drifts", "someone"]),
    ("github", "/lakes/orvane/pull/4", ["State: merged", "cy, 2024-05-03 11:00, on README.md", "Why noon?"]),
    ("github", "/lakes/orvane/discussions/5", ["Which lakes? (#5)", "The sensor drifts by heat."]),
    ("github", "/lakes/orvane/releases", ["Noon (v1.2), 2024-06-01, bo", "The sensor is read at noon"]),
    ("github", "/lakes/orvane/releases/tag/v1.2", ["The sensor is read at noon"]),
    ("github", "/gist/ada/0123456789abcdef0123", ["Depth by hand", "depth.py", "print(213)"]),
    ("gitlab", "/lakes/deep/orvane", ["Reads the depth of lakes.", "src/depth.py"]),
    ("gitlab", "/lakes/deep/orvane/-/blob/v1/docs/guide.md", ["Turn it on."]),
    ("gitlab", "/lakes/deep/orvane/-/issues/3", ["ada, 2024-05-03 10:00", "bo, 2024-05-03 12:30", "drifts", "bug"]),
    ("gitlab", "/lakes/deep/orvane/-/work_items/3", ["Depth is wrong at noon (#3)"]),
    ("gitlab", "/lakes/deep/orvane/-/merge_requests/4", ["State: merged", "Sensor drifts by heat."]),
    ("gitlab", "/lakes/deep/orvane/-/releases/v1.2", ["The sensor is read at noon"]),
    ("gitea", "/lakes/orvane", ["Reads the depth of lakes.", "Stars: 41"]),
    ("gitea", "/lakes/orvane/src/tag/v1/docs/guide.md", ["Turn it on."]),
    ("gitea", "/lakes/orvane/src/tag/v1/docs", ["docs/guide.md"]),
    ("gitea", "/lakes/orvane/issues/3", ["ada, 2024-05-03 10:00", "The sensor drifts by heat."]),
    ("gitea", "/lakes/orvane/pulls/4", ["State: merged", "Fixed in 1.2."]),
    ("gitea", "/lakes/orvane/releases", ["Noon (v1.2), 2024-06-01, bo"]),
]


@pytest.mark.parametrize(("kind", "path", "shown"), ADDRESSES)
async def test_an_address_of_a_forge_is_read_as_what_it_holds(kind: str, path: str, shown: Sequence[str]) -> None:
    async with open_site({**SITES[kind], "/robots.txt": Reply(CLOSED, kind="text/plain")}) as site:
        page = await fetch(site, kind, path)
        told = words_of(page)
        assert [words for words in shown if words not in told] == []
        assert page.final_url == site.url(path)
        assert (page.notes, page.unread) == ((), "")


async def test_a_thread_has_its_author_and_day_and_what_it_says_is_text(
    site_path: str = "/lakes/orvane/issues/3",
) -> None:
    async with open_site(GITHUB) as site:
        page = await fetch(site, "github", "/lakes/orvane/issues/3")
    assert (page.author, page.published, page.title) == ("ada", "2024-05-03", "Depth is wrong at noon (#3)")
    assert "<script" not in page.html
    steps = next(block for block in read_document(page).blocks if "Look at noon" in block.text)
    assert steps.heading_path[-2:] == ("ada, 2024-05-03 10:00", "Steps")


async def test_links_of_a_readme_lead_into_the_repository() -> None:
    async with open_site(GITHUB) as site:
        page = await fetch(site, "github", "/lakes/orvane")
        assert f'href="{site.url("/lakes/orvane/blob/trunk/docs/guide.md")}"' in page.html


async def test_a_long_thread_is_read_to_its_end_and_one_without_end_says_so() -> None:
    remark = {"user": {"login": "bo"}, "created_at": "2024-05-03T12:30:00Z"}
    hundred = [{**remark, "body": f"Remark {number}"} for number in range(100)]
    address = "/api/v3/repos/lakes/orvane/issues/3/comments?per_page=100"
    async with open_site({**GITHUB, address: say(hundred), f"{address}&page=2": say(COMMENTS)}) as site:
        page = await fetch(site, "github", "/lakes/orvane/issues/3")
        assert "Remark 99" in words_of(page)
        assert "Fixed in 1.2." in words_of(page)
        assert page.unread == ""
    endless: dict[str, Route] = {f"{address}&page={number}": say(hundred) for number in range(2, 9)}
    async with open_site(GITHUB | endless | {address: say(hundred)}) as site:
        assert "comments" in (await fetch(site, "github", "/lakes/orvane/issues/3")).unread


async def test_a_thread_whose_comments_are_kept_back_says_that_they_are_missing() -> None:
    kept: dict[str, Route] = {name: reply for name, reply in GITLAB.items() if "discussions" not in name}
    async with open_site(kept) as site:
        page = await fetch(site, "gitlab", "/lakes/deep/orvane/-/issues/3")
    assert "It says 12 m." in words_of(page)
    assert "comments" in page.unread


LIMITED = Reply(
    b'{"message": "API rate limit exceeded for 127.0.0.1."}',
    403,
    {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800003600"},
    "application/json",
)
FAILURES: dict[str, Reply] = {
    "403 limit": LIMITED,
    "404": Reply(b'{"message": "Not Found"}', 404, kind="application/json"),
    "410": Reply(b'{"message": "This issue was deleted"}', 410, kind="application/json"),
    "429": Reply(b"{}", 429),
    "451": Reply(b'{"message": "Repository access blocked"}', 451, kind="application/json"),
    "500": Reply(b"", 500),
    "502": Reply(b"<html>Bad Gateway</html>", 502),
    "HTML": Reply(b"<html><body>Sign in</body></html>"),
    "cut JSON": Reply(b'{"title": "Depth is', kind="application/json"),
    "cut transfer": Reply(b'{"title": ', headers={"Content-Length": "4000"}, kind="application/json"),
    "other JSON": say({"hello": "world"}),
    "a list": say([]),
    "null": say(None),
    "slow": Reply(silent=True),
    "redirect loop": Reply(b"", 302, {"Location": "/api/v3/repos/lakes/orvane/issues/3"}),
    "redirect away": Reply(b"", 302, {"Location": "http://169.254.169.254/latest"}),
}


@pytest.mark.parametrize("fault", FAILURES)
async def test_where_the_api_does_not_tell_the_page_itself_is_read_and_says_why(fault: str) -> None:
    thread = "/lakes/orvane/issues/3"
    page_itself = Reply(b"<html><body><h1>Depth</h1><p>" + b"It says 12 m where the lake has 213 m. " * 9)
    async with open_site({f"/api/v3/repos{thread}": FAILURES[fault], thread: page_itself}) as site:
        page = await fetch(site, "github", thread)
        assert "213 m" in page.html
        assert "its API did not tell" in " ".join(page.notes)


@pytest.mark.parametrize(
    ("status", "error"), [(404, SourceNotFound), (403, SourceBlocked), (429, SourceBlocked), (500, SourceUnavailable)]
)
async def test_what_neither_the_api_nor_the_page_tells_fails_with_its_kind(status: int, error: type[Exception]) -> None:
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
    assert plan_for(url, FORGES) is None


def test_everybodys_forges_are_asked_where_they_say_that_programs_should_ask() -> None:
    hub = plan_for("https://github.com/lakes/orvane/blob/main/a%20b/c.py#L10", FORGES)
    assert hub is not None
    assert hub.forge.api == "https://api.github.com"
    assert hub.forge.raw.startswith("https://raw.githubusercontent.com/")
    assert plan_for("https://gist.github.com/ada/0123456789abcdef0123", FORGES) is not None
    assert plan_for("https://codeberg.org/lakes/orvane/issues/3", FORGES) is not None


def test_ones_own_forge_is_named_in_the_settings_with_its_kind() -> None:
    (own,) = read_settings({"forges": "gitlab=https://git.example.org/"}, {}).forges
    assert (own.kind, own.site, own.api) == ("gitlab", "https://git.example.org", "https://git.example.org/api/v4")
    with pytest.raises(UsageError, match="gitlab=https://git"):
        read_settings({"forges": "bitbucket=https://git.example.org"}, {})


async def test_a_page_of_a_forge_is_kept_like_others(store: Store) -> None:
    async with open_site(GITHUB) as site:
        limits = replace(LOOPBACK, forges=(forge_at("github", site.url("").rstrip("/")),))
        async with open_fetcher(limits, pages=store, clock=Clock()) as fetcher:
            first = await fetcher.fetch(site.url("/lakes/orvane/issues/3"))
            asked = len(site.asked)
            assert (await fetcher.fetch(site.url("/lakes/orvane/issues/3"))).html == first.html
            assert len(site.asked) == asked


async def test_a_forge_that_asks_for_silence_is_left_alone_with_all_its_pages() -> None:
    thread = "/lakes/orvane/issues/3"
    async with open_site({f"/api/v3/repos{thread}": Reply(b"{}", 429, {"Retry-After": "60"}), thread: Reply()}) as site:
        with pytest.raises(SourceBlocked, match="60 s"):
            await fetch(site, "github", thread)
