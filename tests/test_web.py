"""The whole pipeline over HTTP: a SearXNG that answers as recorded, pages after it, all on
loopback."""

import json

import pytest

from tests.support import Connect, Site, data_of, text_of

pytestmark = pytest.mark.anyio

LIGHT = (
    "<title>Orvane Light</title><h1>Orvane Light</h1><p>The light on Orvane Head was first "
    "lit on 4 May 1871.</p>"
)
QUESTION = "When was the light on Orvane Head first lit?"


def hits(*pairs: tuple[str, str]) -> str:
    results = [
        {"title": "Orvane Light", "url": url, "content": snippet, "engine": "mojeek", "engines": ["mojeek"],
         "positions": [place], "score": 1.0 / place, "category": "general", "publishedDate": None}
        for place, (url, snippet) in enumerate(pairs, start=1)
    ]  # fmt: skip
    return json.dumps({"query": QUESTION, "number_of_results": 0, "results": results, "answers": [], "corrections": [],
                       "infoboxes": [], "suggestions": [], "unresponsive_engines": []})  # fmt: skip


async def test_a_question_is_searched_read_and_answered_with_links_to_the_words(
    connect: Connect, site: Site
) -> None:
    page = site.put("/light", LIGHT)
    site.put("/search", hits((page, "A lighthouse.")), kind="application/json")
    async with connect(folders=" ", searxng=site.url(""), networks="loopback") as client:
        result = await client.call_tool("research", {"question": QUESTION, "max_tokens": 1500})
    assert data_of(result)["answered"]
    assert "4 May 1871" in text_of(result)
    assert data_of(result)["pages"][0] == page
    assert data_of(result)["passages"][0]["link"].startswith("#:~:text=")
    assert any("format=json" in path for path in site.asked)
    assert "/light" in site.asked


async def test_a_page_that_fails_is_named_and_its_snippet_still_counts(
    connect: Connect, site: Site
) -> None:
    gone = site.url("/gone")
    site.put(
        "/search",
        hits((gone, "The light on Orvane Head was first lit in May 1871.")),
        kind="application/json",
    )
    async with connect(folders=" ", searxng=site.url(""), networks="loopback") as client:
        result = await client.call_tool("research", {"question": QUESTION})
    assert "May 1871" in text_of(result)
    assert "404" in text_of(result)


async def test_blocked_engines_are_an_error_with_their_reasons_not_an_empty_answer(
    connect: Connect, site: Site
) -> None:
    blocked = json.dumps(
        {"query": QUESTION, "results": [], "unresponsive_engines": [["brave", "too many requests"]]}
    )
    site.put("/search", blocked, kind="application/json")
    async with connect(folders=" ", searxng=site.url(""), networks="loopback") as client:
        result = await client.call_tool("search_web", {"question": "lights that are blocked"})
    assert result.is_error
    assert "too many requests" in text_of(result)
    assert "searxng" in text_of(result)


async def test_the_users_folders_are_searched_beside_the_web(connect: Connect, site: Site) -> None:
    page = site.put("/light", LIGHT)
    site.put("/search", hits((page, "A lighthouse.")), kind="application/json")
    async with connect(searxng=site.url(""), networks="loopback") as client:
        result = await client.call_tool("search_web", {"question": "lighthouse lit again lens"})
    urls = [hit["url"] for hit in data_of(result)["hits"]]
    assert any(url.startswith("file:") for url in urls)
    assert page in urls
