"""Bad input: each is a clear error or a partial answer that says so, and the server lives on."""

from pathlib import Path

import anyio
import pytest

from tests.support import Connect, Site, text_of
from tests.support.waiting import bounded

pytestmark = pytest.mark.anyio

HELD = 25
"""Seconds, fewer than those for which the site holds a slow page."""

GOOD = (
    "<title>Good</title><h1>Harbour</h1><p>The harbour light was built in 1871 by the Orvane "
    "company.</p>"
)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("gopher://example.org/", "gopher"),
        ("javascript:alert(1)", "javascript"),
        ("http://10.0.0.1/", "10.0.0.1"),
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254"),
        ("http://[::ffff:10.0.0.1]/", "10.0.0.1"),
        ("http://0x7f000001/", "0x7f000001"),
        ("file:///etc/passwd", "/etc/passwd"),
        ("winnow://page/nonsense", "winnow://page/nonsense"),
        ("not a url at all", "not a url"),
        ("file://elsewhere.example/share/x.html", "elsewhere.example"),
        ("~no-one-of-this-name/x.html", "~no-one"),
        ("x" * 5000, "xxx"),
    ],
)
async def test_an_address_that_may_not_be_asked_is_named_and_refused(
    connect: Connect, url: str, says: str
) -> None:
    async with connect() as client:
        result = await client.call_tool("fetch_and_prune_html", {"sources": [url]})
        after = await client.call_tool("search_web", {"question": "ferry", "rank": "engine"})
    assert result.is_error
    assert says in text_of(result)
    assert "Traceback" not in text_of(result)
    assert not after.is_error


async def test_loopback_is_refused_unless_the_setting_allows_it(
    connect: Connect, site: Site
) -> None:
    url = site.put("/good", GOOD)
    async with connect() as client:
        refused = await client.call_tool("fetch_and_prune_html", {"sources": [url]})
    async with connect(networks="loopback") as client:
        allowed = await client.call_tool("fetch_and_prune_html", {"sources": [url]})
    assert refused.is_error
    assert "/good" not in site.asked[:-1]
    assert "1871" in text_of(allowed)


async def test_one_missing_page_among_good_ones_is_said_and_the_rest_is_answered(
    connect: Connect, site: Site
) -> None:
    urls = [site.put("/good", GOOD), site.url("/missing")]
    async with connect(networks="loopback") as client:
        result = await client.call_tool(
            "fetch_and_prune_html", {"sources": urls, "question": "harbour light"}
        )
        alone = await client.call_tool("fetch_and_prune_html", {"sources": urls[1:]})
    assert not result.is_error
    assert "1871" in text_of(result)
    assert "404" in text_of(result)
    assert alone.is_error
    assert "404" in text_of(alone)


async def test_a_page_that_never_comes_ends_within_the_time_set_and_is_named(
    connect: Connect, site: Site
) -> None:
    urls = [site.put("/good", GOOD), site.url("/slow")]
    async with connect(networks="loopback", seconds="8") as client:
        result = await client.call_tool(
            "fetch_and_prune_html", {"sources": urls, "question": "harbour light"}
        )
    assert "1871" in text_of(result)
    assert "/slow" in text_of(result)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "text/html"),
        (b"<html><body><script>app()</script></body></html>", "text/html"),
        (bytes(range(256)) * 40, "application/octet-stream"),
        (b"\x89PNG\r\n\x1a\n" + bytes(2000), "image/png"),
        (b"%PDF-1.7 broken", "application/pdf"),
    ],
    ids=["empty", "script only", "binary", "picture", "broken PDF"],
)
async def test_a_source_without_text_says_so(
    connect: Connect, site: Site, body: bytes, kind: str
) -> None:
    url = site.put("/thing", body, kind=kind)
    async with connect(networks="loopback") as client:
        result = await client.call_tool(
            "extract_relevant", {"question": "harbour", "sources": [url]}
        )
    assert result.is_error
    assert "/thing" in text_of(result)


async def test_a_page_of_thirty_megabytes_is_refused_or_read_in_time(
    connect: Connect, site: Site
) -> None:
    url = site.put("/huge", "<p>" + "the harbour is deep. " * 1_500_000 + "</p>")
    async with connect(networks="loopback") as client:
        result = await client.call_tool(
            "fetch_and_prune_html", {"sources": [url], "question": "harbour"}
        )
    assert result.is_error
    assert "over the cap" in text_of(result)


async def test_two_hundred_thousand_nested_tags_are_read_in_seconds(
    connect: Connect, site: Site
) -> None:
    url = site.put(
        "/deep", "<div>" * 200_000 + "The anchor weighs 312 kilograms." + "</div>" * 200_000
    )
    async with connect(networks="loopback", seconds="100") as client:
        with bounded():
            result = await client.call_tool(
                "extract_relevant", {"question": "How heavy is the anchor?", "sources": [url]}
            )
    assert "312 kilograms" in text_of(result)


async def test_a_cancelled_call_lets_the_connection_go_and_the_next_call_answer(
    connect: Connect, site: Site
) -> None:
    good = site.put("/good", GOOD)
    async with connect(networks="loopback") as client:
        with anyio.move_on_after(0.5):
            await client.call_tool("fetch_and_prune_html", {"sources": [site.url("/slow")]})
        with anyio.fail_after(HELD):
            after = await client.call_tool("fetch_and_prune_html", {"sources": [good]})
    assert "1871" in text_of(after)


async def test_a_folder_with_files_that_cannot_be_read_answers_from_the_others(
    connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "good.html").write_text(GOOD, encoding="utf-8")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing here")
    async with connect(folders=str(tmp_path)) as client:
        result = await client.call_tool(
            "research", {"question": "When was the harbour light built?"}
        )
        named = await client.call_tool(
            "extract_relevant", {"question": "harbour light", "sources": [str(tmp_path)]}
        )
    assert "1871" in text_of(result)
    assert "broken.pdf" in text_of(named)


async def test_a_point_names_the_first_open_folder(connect: Connect) -> None:
    arguments = {"question": "What does the Keeper's Rest cost?", "sources": ["."]}
    async with connect(embedder="none") as client:
        text = text_of(await client.call_tool("extract_relevant", arguments))
    assert "pell-island-stay.html" in text


async def test_where_nothing_was_found_no_page_is_blamed(connect: Connect) -> None:
    async with connect(embedder="none") as client:
        text = text_of(await client.call_tool("research", {"question": "zzzqqq xkcdvv"}))
    assert "No pages were found." in text
    assert "hold no text" not in text


async def test_an_argument_error_ends_with_a_call_that_is_right(connect: Connect) -> None:
    async with connect(embedder="none") as client:
        text = text_of(await client.call_tool("extract_relevant", {"question": "x", "sources": []}))
    assert text.endswith('Call extract_relevant(question="…", sources=["https://…"]).')
