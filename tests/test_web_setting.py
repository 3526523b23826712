"""Which addresses of the web a call may name (WINNOW_WEB): an order on a page, "now read
https://elsewhere/?notes=…", sends nothing out."""

import json
from pathlib import Path

import pytest

from errors import UsageError
from server.settings import read_settings
from tests.support import Connect, Site, data_of, text_of

PAGE = (
    "<title>Ferry</title><h1>Ferry</h1><p>The ferry to Ostholm leaves at 7:45 from pier two.</p>"
    "<p><a href='/elsewhere'>More</a></p>"
)
QUESTION = "When does the ferry to Ostholm leave?"
FREE = "WINNOW_WEB=named"
pytestmark = pytest.mark.anyio


def calls(url: str) -> list[tuple[str, dict[str, object]]]:
    """Return a call of each tool that names an address, as a page or a site."""
    site = f"site:{url}"
    return [
        ("extract_relevant", {"question": QUESTION, "sources": [url]}),
        ("extract_relevant", {"question": QUESTION, "sources": [f"[read]({url}#part)"]}),
        ("extract_relevant", {"draft": "The ferry leaves at 7:45.", "sources": [url]}),
        ("extract_relevant", {"question": QUESTION, "sources": [site]}),
        ("fetch_and_prune_html", {"sources": [url.replace("http", "HTTP")]}),
        ("fetch_and_prune_html", {"sources": [url], "part": "tables"}),
        ("raptor_query", {"question": QUESTION, "sources": [url]}),
        ("research", {"question": f"{QUESTION} {site}"}),
    ]


@pytest.mark.parametrize("web", ["auto", "search", "off"])
async def test_an_address_that_no_search_found_is_never_asked(
    web: str, connect: Connect, site: Site, tmp_path: Path
) -> None:
    url = site.put("/notes", PAGE)
    (tmp_path / "ferry.html").write_text(PAGE)
    async with connect(
        folders=str(tmp_path),
        web=web,
        networks="loopback",
        embedder="none",
        cache=str(tmp_path / "c"),
    ) as client:
        for tool, arguments in calls(url):
            result = await client.call_tool(tool, arguments)
            assert result.is_error, (tool, arguments)
            assert FREE in text_of(result)
        beside = {"question": QUESTION, "sources": [url, str(tmp_path / "ferry.html")]}
        result = await client.call_tool("extract_relevant", beside)
        assert "leaves at 7:45" in text_of(result)
        assert FREE in text_of(result)
        assert "7:45" in text_of(await client.call_tool("research", {"question": QUESTION}))
    assert not site.asked


async def test_what_a_search_found_and_where_that_leads_may_be_named(
    connect: Connect, site: Site
) -> None:
    there = site.put("/there", PAGE)
    site.pages["/moved"] = (302, {"Location": there, "Content-Length": "0"}, b"")
    moved = site.url("/moved")
    row = {"url": moved, "title": "Ferry", "content": "The ferry to Ostholm.", "engine": "fake"}
    site.put("/search", json.dumps({"results": [row]}), kind="application/json")
    elsewhere = site.put("/elsewhere", PAGE)
    async with connect(
        folders=" ", web="search", searxng=site.url(""), networks="loopback", embedder="none"
    ) as client:
        named = {"question": QUESTION, "sources": [moved]}
        assert (await client.call_tool("extract_relevant", named)).is_error
        found = await client.call_tool("search_web", {"question": QUESTION, "rank": "engine"})
        [following] = [call for call in data_of(found)["next"] if call["tool"] != "search_web"]
        answer = await client.call_tool(following["tool"], following["arguments"])
        assert "7:45" in text_of(answer)
        for source in (moved, there, f"{there}#more"):
            named = {"question": QUESTION, "sources": [source]}
            assert "7:45" in text_of(await client.call_tool("extract_relevant", named))
        for source in (elsewhere, f"{there}?notes=secret", f"site:{there}"):
            named = {"question": QUESTION, "sources": [source]}
            assert FREE in text_of(await client.call_tool("extract_relevant", named))
    assert not [path for path in site.asked if "notes" in path or "elsewhere" in path]


async def test_off_searches_nothing_on_the_web(connect: Connect, site: Site) -> None:
    row = {"url": site.put("/there", PAGE), "title": "Ferry", "content": "The ferry to Ostholm."}
    site.put("/search", json.dumps({"results": [row]}), kind="application/json")
    async with connect(web="off", searxng=site.url(""), networks="loopback") as client:
        await client.call_tool("search_web", {"question": QUESTION})
    assert not site.asked


def test_a_value_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="web is 'of'"):
        read_settings({"web": "of"}, {})
