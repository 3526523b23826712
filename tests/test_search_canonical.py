"""One page, many addresses."""

import json

import pytest

from tests.support import Connect, Site, data_of

pytestmark = pytest.mark.anyio


async def listed(connect: Connect, site: Site, *urls: str) -> list[str]:
    """Return the addresses that a search lists of those that its engine names."""
    rows = [{"title": "Boats", "url": url, "content": "Boats are red."} for url in urls]
    found = json.dumps({"results": rows, "unresponsive_engines": []})
    site.put("/search", found, kind="application/json")
    given = {"searxng": site.url(""), "networks": "loopback", "folders": " "}
    async with connect(**given, embedder="none", reader="none") as client:
        asked = {"question": f"boats {site.port}", "rank": "engine"}
        result = await client.call_tool("search_web", asked)
    return [row["url"] for row in data_of(result)["hits"]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://e.org/a", "http://e.org/a"),
        ("https://e.org/a", "https://www.e.org/a/"),
        ("https://e.org/a", "https://E.ORG:443/a#part"),
        ("http://e.org/a", "http://e.org:80/a"),
        ("https://e.org/a", "https://e.org/a?utm_source=x&utm_medium=mail&fbclid=1&gclid=2"),
        ("https://e.org/a?b=1&c=2", "https://e.org/a?c=2&b=1"),
        ("https://e.org/a", "https://m.e.org/a"),
        ("https://e.org/a", "https://mobile.e.org/a"),
        ("https://de.wikipedia.org/wiki/See", "https://de.m.wikipedia.org/wiki/See"),
        ("https://e.org/a", "https://amp.e.org/a"),
        ("https://e.org/a", "https://e.org/a/amp/"),
        ("https://e.org/a", "https://e.org/a?amp=1"),
        ("https://e.org/docs/", "https://e.org/docs/index.html"),
        ("https://e.org/wiki/Zürich", "https://e.org/wiki/Z%C3%BCrich"),
        ("https://e.org", "https://e.org/"),
        ("https://e.org./a", "https://e.org/a"),
    ],
)
async def test_addresses_of_one_page_are_one_result(
    connect: Connect, site: Site, one: str, other: str
) -> None:
    assert len(await listed(connect, site, one, other)) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://e.org/a", "https://e.org/b"),
        ("https://e.org/a", "https://e.org:8443/a"),
        ("https://e.org/a?id=1", "https://e.org/a?id=2"),
        ("https://e.org/a%2Fb", "https://e.org/a/b"),
        ("https://e.org/a%23b", "https://e.org/a#b"),
        ("https://e.org/a%3Fb", "https://e.org/a?b"),
        ("https://m.org/a", "https://org/a"),
        ("https://e.org/A", "https://e.org/a"),
        ("https://e.org/ramp", "https://e.org/r"),
        ("https://www.google.com/maps", "https://www.google.com/"),
        ("https://news.e.org/a", "https://e.org/a"),
    ],
)
async def test_addresses_of_different_pages_are_two(
    connect: Connect, site: Site, one: str, other: str
) -> None:
    assert len(await listed(connect, site, one, other)) == 2


@pytest.mark.parametrize(
    "url",
    ["", "http://[", "http://e.org:99999/a", "mailto:a@e.org", "http://", "::", "http://e.org/%ff"],
)
async def test_odd_addresses_do_no_harm_to_the_others(
    connect: Connect, site: Site, url: str
) -> None:
    assert "https://e.org/boats" in await listed(connect, site, url, "https://e.org/boats")
