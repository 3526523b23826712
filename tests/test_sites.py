"""Whole sites as sources: what lists their pages, which are read, and what a hostile site costs."""

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from mcp import Client
from mcp_types import CallToolResult

from tests.support import Connect, Site, data_of, text_of
from tests.support.waiting import bounded

pytestmark = pytest.mark.anyio

XML = "application/xml"
TOPICS = (
    "install",
    "upgrade",
    "backup",
    "logging",
    "metrics",
    "users",
    "tokens",
    "webhooks",
    "queues",
    "storage",
)
RECORDS = "How long are records kept?"


def page(title: str, words: str, *, head: str = "", links: str = "") -> str:
    return (
        f"<!DOCTYPE html><html "
        f"lang=en><head><title>{title}</title>{head}</head><body><nav>{links}</nav>"
        f"<main><h1>{title}</h1><p>{words}</p></main></body></html>"
    )


def sitemap(*urls: str, of: str = "urlset") -> str:
    inner = "sitemap" if of == "sitemapindex" else "url"
    entries = "".join(
        f"<{inner}><loc>{url}</loc><lastmod>2026-01-02</lastmod></{inner}>" for url in urls
    )
    return (
        f'<?xml version="1.0"?><{of} '
        f'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</{of}>'
    )


@pytest.fixture
def manual(site: Site) -> list[str]:
    """A site of 60 pages whose start page links to none of them; return their addresses."""
    site.put("/", page("Orvane", "Orvane keeps records of boats."))
    urls = [
        site.put(
            f"/guide/{topic}-{number}",
            page(f"{topic} {number}", f"Part {number} explains how to {topic} a harbour."),
        )
        for number in range(6)
        for topic in TOPICS
    ]
    urls.append(
        site.put(
            "/guide/retention-of-records",
            page("Retention of records", "Records are kept for 413 days."),
        )
    )
    return urls


@asynccontextmanager
async def opened(connect: Connect, **settings: str) -> AsyncIterator[Client]:
    async with connect(networks="loopback", search="none", **settings) as client:
        yield client


async def extracted(client: Client, site: str, question: str = RECORDS) -> CallToolResult:
    return await client.call_tool("extract_relevant", {"question": question, "sources": [site]})


def read_pages(site: Site) -> list[str]:
    return [
        path for path in site.asked if path.startswith("/guide/") and not path.endswith("llms.txt")
    ]


@pytest.mark.parametrize(
    "how", ["robots and a packed index", "sitemap.xml", "feed", "llms.txt", "links"]
)
async def test_the_page_that_answers_is_found_by_whatever_lists_it(
    connect: Connect, site: Site, manual: list[str], how: str
) -> None:
    if how == "robots and a packed index":
        site.put(
            "/robots.txt",
            f"User-agent: *\nDisallow:\nSitemap: {site.url('/maps.xml')}\n",
            kind="text/plain",
        )
        site.put("/maps.xml", sitemap(site.url("/all.xml.gz"), of="sitemapindex"), kind=XML)
        site.put("/all.xml.gz", gzip.compress(sitemap(*manual).encode()), kind="application/gzip")
    elif how == "sitemap.xml":
        site.put("/sitemap.xml", sitemap(*manual), kind=XML)
    elif how == "feed":
        head = '<link rel=alternate type="application/rss+xml" href="/feed">'
        site.put("/", page("Orvane", "Orvane keeps records.", head=head))
        items = "".join(f"<item><title>Post</title><link>{url}</link></item>" for url in manual)
        site.put(
            "/feed",
            f"<rss><channel><title>News</title>{items}</channel></rss>",
            kind="application/rss+xml",
        )
    elif how == "llms.txt":
        site.put(
            "/llms.txt",
            "# Orvane\n\n" + "\n".join(f"- [Page]({url})" for url in manual),
            kind="text/plain",
        )
    else:
        site.put(
            "/",
            page(
                "Orvane", "Orvane.", links=" ".join(f'<a href="{url}">Page</a>' for url in manual)
            ),
        )
    async with opened(connect) as client:
        result = await extracted(client, f"site:{site.url('/')}")
    assert "413 days" in text_of(result)
    assert data_of(result)["pages"] == [site.url("/guide/retention-of-records")]
    assert len(read_pages(site)) <= 16


async def test_a_call_says_how_many_pages_are_left_and_the_next_reads_on(
    connect: Connect, site: Site, manual: list[str]
) -> None:
    site.put("/sitemap.xml", sitemap(*manual), kind=XML)
    site.put("/guide/storage-5", page("storage 5", "The zeppelin lies in shed nine."))
    question = "Where does the airship lie?"
    async with opened(connect) as client:
        first = await extracted(client, f"site:{site.url('/')}", question)
        sources = [f"site:{site.url('/')}"]
        seen: list[set[str]] = []
        for _ in range(4):
            before = len(site.asked)
            result = await client.call_tool(
                "extract_relevant", {"question": question, "sources": sources}
            )
            seen.append({path for path in site.asked[before:] if path.startswith("/guide/")})
            following = data_of(result)["next"]
            rest = [call for call in following if "sources" in call["arguments"]]
            sources = rest[0]["arguments"]["sources"] if rest else []
    assert "46 of its 62 pages" in text_of(first)
    assert sources == []
    assert set().union(*seen[1:]).isdisjoint(seen[0])
    assert len({path for path in site.asked if path.startswith("/guide/")}) >= 61


async def test_research_within_a_site_asks_no_one_else_and_goes_on_in_its_session(
    connect: Connect, site: Site, manual: list[str]
) -> None:
    site.put("/sitemap.xml", sitemap(*manual), kind=XML)
    async with opened(connect) as client:
        asked = {"question": f"site:{site.url('/guide/')} {RECORDS}"}
        result = await client.call_tool("research", asked)
    text = text_of(result)
    assert "413 days" in text
    assert "without a key" not in text
    data = data_of(result)
    assert data["next"][-1]["arguments"] == {
        "question": f"site:{site.url('/guide/')}#pages=17-32 {RECORDS}",
        "session": data["session"].rpartition("/")[2],
    }


async def test_a_tree_of_a_site_grows_by_its_further_pages(
    connect: Connect, site: Site, manual: list[str]
) -> None:
    site.put("/sitemap.xml", sitemap(*manual), kind=XML)
    reported: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append(message or "")

    async with opened(connect) as client:
        asked = {"question": "How are queues kept?", "sources": [f"site:{site.url('/')}"]}
        result = await client.call_tool("raptor_query", asked, progress_callback=progress)
        more = data_of(result)["next"][1]["arguments"]["sources"]
        grown = await client.call_tool("raptor_query", {**asked, "sources": more})
    assert reported[0] == f"site:{site.url('/')}: pages listed: 62"
    assert more[1] == f"site:{site.url('/')}#pages=17-32"
    assert data_of(grown)["leaves"] > data_of(result)["leaves"]


async def test_twins_in_markdown_are_read_in_place_of_pages(
    connect: Connect, site: Site, manual: list[str]
) -> None:
    listed = (
        f"# Orvane\n\n- [Records](/guide/retention-of-records.md): how long they stay\n- "
        f"[x]({manual[0]})"
    )
    site.put("/llms.txt", listed, kind="text/plain")
    site.put(
        "/guide/retention-of-records.md",
        "# Records\n\nRecords are kept for 413 days.",
        kind="text/markdown",
    )
    site.put("/sitemap.xml", sitemap(*manual), kind=XML)
    async with opened(connect) as client:
        by_list = await extracted(client, f"site:{site.url('/')}")
    assert data_of(by_list)["pages"] == [site.url("/guide/retention-of-records.md")]
    assert "/guide/retention-of-records" not in site.asked


async def test_only_the_named_part_of_the_site_and_no_other_host_is_read(
    connect: Connect, site: Site, manual: list[str]
) -> None:
    site.put("/blog/records", page("Records", "Records of the blog are kept for 8 days."))
    site.put(
        "/robots.txt",
        f"User-agent: *\nDisallow: /guide/users\nSitemap: {site.url('/maps.xml')}",
        kind="text/plain",
    )
    other = f"http://localhost:{site.port}"
    site.put(
        "/maps.xml",
        sitemap(site.url("/all.xml"), f"{other}/other.xml", of="sitemapindex"),
        kind=XML,
    )
    more = (
        site.url("/blog/records"),
        f"{other}/guide/records-elsewhere",
        f"{other}/guide/records-again",
    )
    site.put("/all.xml", sitemap(*manual, *more), kind=XML)
    async with opened(connect) as client:
        text = text_of(await extracted(client, f"site:{site.url('/guide/')}"))
        users = text_of(
            await extracted(client, f"site:{site.url('/guide/')}", "How many users are there?")
        )
    assert "413 days" in text
    assert "8 days" not in text
    assert not {"/blog/records", "/other.xml", "/guide/records-elsewhere"} & set(site.asked)
    assert "robots.txt disallows" in users
    assert not any(path.startswith("/guide/users") for path in site.asked)


async def test_what_is_late_is_reported_and_the_same_call_goes_on(
    connect: Connect, site: Site, manual: list[str]
) -> None:
    slow = site.put("/slow/records", page("Records of old", "Old records are kept for 99 years."))
    site.put("/sitemap.xml", sitemap(slow, *manual), kind=XML)
    async with opened(connect, seconds="12") as client:
        first = await extracted(client, f"site:{site.url('/')}")
        site.hold.set()
        again = await extracted(client, f"site:{site.url('/')}", "How long are old records kept?")
    assert "413 days" in text_of(first)
    assert "/slow/records was not ready" in text_of(first)
    assert {"tool": "extract_relevant", "arguments": {}} in data_of(first)["next"]
    assert "99 years" in text_of(again)


@pytest.mark.parametrize(
    ("trick", "said"),
    [
        ("endless", "it lists more pages than were examined"),
        ("loop", "keeps records of boats"),
        ("bomb", "unpacks to more than 30,000,000 bytes"),
        ("wide", "19984 of its 20000 pages"),
        ("entities", "keeps records of boats"),
        ("long", "keeps records of boats"),
        ("odd addresses", "keeps records of boats"),
    ],
)
async def test_a_hostile_site_costs_a_bounded_number_of_requests_and_seconds(
    connect: Connect, site: Site, manual: list[str], trick: str, said: str
) -> None:
    site.put(
        "/robots.txt", f"User-agent: *\nDisallow:\nSitemap: {site.url('/m.xml')}", kind="text/plain"
    )
    if trick == "endless":
        names = [f"/m{number}.xml" for number in range(500)]
        for name in ("/m.xml", *names):
            site.put(name, sitemap(*map(site.url, names), of="sitemapindex"), kind=XML)
    elif trick == "loop":
        site.put(
            "/m.xml", sitemap(site.url("/m.xml"), site.url("/m.xml#a"), of="sitemapindex"), kind=XML
        )
    elif trick == "bomb":
        packed = gzip.compress(sitemap(*manual).encode() + b" " * 60_000_000, 9)
        site.put(
            "/robots.txt", f"User-agent: *\nSitemap: {site.url('/m.xml.gz')}", kind="text/plain"
        )
        site.put("/m.xml.gz", packed, kind="application/gzip")
    elif trick == "wide":
        site.put("/m.xml", sitemap(*(site.url(f"/guide/{n}") for n in range(60_000))), kind=XML)
    elif trick == "entities":
        entity = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
        site.put(
            "/m.xml",
            sitemap(site.url("/guide/&b;")).replace("<urlset", f"{entity}<urlset"),
            kind=XML,
        )
    elif trick == "long":
        site.put("/m.xml", sitemap(site.url("/guide/" + "records" * 3000)), kind=XML)
    else:
        site.put(
            "/robots.txt",
            f"User-agent: *\nSitemap: https://[x\nSitemap: {site.url('/m.xml')}",
            kind="text/plain",
        )
        odd = "".join(
            f"<link rel={rel} href='http://[x'>"
            for rel in ("sitemap", "'alternate' type='text/markdown'")
        )
        site.put(
            "/",
            page(
                "Orvane",
                "Orvane keeps records of boats.",
                head=odd,
                links="<a href='http://[x'>x</a>",
            ),
        )
        site.put("/m.xml", sitemap("http://[x", "//", "javascript:x", "http://[::1"), kind=XML)
    with bounded():
        async with opened(connect, seconds="110") as client:
            text = text_of(await extracted(client, f"site:{site.url('/')}"))
    assert len(site.asked) < 40
    assert said in text


async def test_a_site_that_is_not_there_is_a_typed_failure_and_others_are_read(
    connect: Connect, site: Site, manual: list[str]
) -> None:
    async with opened(connect) as client:
        gone = await extracted(client, f"site:{site.url('/nothing/')}")
        odd = await extracted(client, "site:http://[x")
        both = await client.call_tool(
            "extract_relevant",
            {"question": RECORDS, "sources": [manual[-1], f"site:{site.url('/nothing/')}"]},
        )
    assert gone.is_error
    assert "404" in text_of(gone)
    assert "is not a site" in text_of(odd)
    assert "413 days" in text_of(both)
    assert "Not read" in text_of(both)
