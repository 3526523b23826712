"""What changed on a page since it was read before."""

import re
from pathlib import Path

import pytest
from mcp import Client

from cache.store import Store
from pipeline.document.page import Page
from pipeline.fetch.handles import MOST_VERSIONS, find_version, keep_page, page_handle
from pipeline.read.convert import content_hash
from tests.support import Connect, Site, data_of, text_of

pytestmark = pytest.mark.anyio

FEES = "<h1>Harbour</h1><h2>Fees</h2><p>A night costs {fee} euros.</p><p>Children pay nothing.</p>"
RULES = "<h2>Rules</h2><p>No fires on the quay.</p>{more}"


def page(fee: int = 14, more: str = "", menu: str = "Home") -> str:
    inner = FEES.format(fee=fee) + RULES.format(more=more)
    return (
        f"<html lang=en><title>Harbour</title><body><nav><a "
        f"href=/>{menu}</a></nav><main>{inner}</main></body></html>"
    )


async def read(client: Client, url: str, part: str) -> str:
    return text_of(await client.call_tool("fetch_and_prune_html", {"sources": [url], "part": part}))


async def since_first(
    connect: Connect, site: Site, cache: Path, *versions: str, part: str = ""
) -> str:
    """Return what has changed on a page between its first reading and its last."""
    async with connect(allow_loopback="true", cache=str(cache)) as client:
        handle = ""
        for html in versions:
            site.put("/fees", html)
            site.pages["/fees"][1]["Cache-Control"] = "no-cache"
            result = await client.call_tool(
                "fetch_and_prune_html", {"sources": [site.url("/fees")]}
            )
            handle = handle or data_of(result)["pages"][0]["handle"]
        return await read(client, site.url("/fees"), part or f"changes since {handle}")


async def test_blocks_that_came_and_went_are_reported_under_their_headings(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    text = await since_first(connect, site, tmp_path, page(), page(16, "<p>Dogs on a lead.</p>"))
    assert "2 blocks gained, 1 lost" in text
    lines = re.findall(r"^(?:@@|[-+]) .*", text, re.MULTILINE)
    assert lines == [
        "@@ Harbour > Fees @@",
        "- A night costs 14 euros.",
        "+ A night costs 16 euros.",
        "@@ Harbour > Rules @@",
        "+ Dogs on a lead.",
    ]


async def test_the_day_names_what_was_read_before_it_or_first_after_it(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    text = await since_first(
        connect, site, tmp_path, page(), page(15), page(16), part="changes since 2026-01-01"
    )
    assert "- A night costs 14 euros." in text
    assert "+ A night costs 16 euros." in text
    later = await since_first(connect, site, tmp_path, page(16), part="changes since 2999-01-01")
    assert "No change of its main text" in later


async def test_without_a_day_the_last_other_version_is_compared(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    text = await since_first(connect, site, tmp_path, page(14), page(15), page(16), part="changes")
    assert "- A night costs 15 euros." in text or "- A night costs 14 euros." in text
    assert "+ A night costs 16 euros." in text


@pytest.mark.parametrize(
    "other",
    [
        page(menu="Start"),
        page()
        .replace("<h2>Fees</h2><p>A night costs 14 euros.</p>", "<h2>Fees</h2>")
        .replace("nothing.</p>", "nothing.</p><p>A night costs 14 euros.</p>"),
    ],
    ids=["the menu", "the order"],
)
async def test_what_is_no_change_of_the_main_text_is_none(
    connect: Connect, site: Site, tmp_path: Path, other: str
) -> None:
    assert "No change of its main text since" in await since_first(
        connect, site, tmp_path, page(), other
    )


async def test_a_page_read_for_the_first_time_has_nothing_to_be_compared_with(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    site.put("/fees", page())
    async with connect(allow_loopback="true", cache=str(tmp_path)) as client:
        text = await read(client, site.url("/fees"), "changes since 2026-01-01")
        wrong = await read(client, site.url("/fees"), "changes since yesterday")
        gone = await read(client, site.url("/fees"), f"changes since winnow://page/{'0' * 24}")
    assert "No earlier version" in text
    assert 'part="changes since 2026-11-20"' in wrong
    assert "unknown or has expired" in gone


async def test_a_file_of_ones_own_is_compared_with_how_it_was(
    connect: Connect, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Plan\n\nWe sail at six.\n")
    async with connect(folders=str(tmp_path), cache=str(tmp_path / ".cache")) as client:
        await read(client, str(note), "whole")
        note.write_text("# Plan\n\nWe sail at seven.\n")
        text = await read(client, str(note), "changes")
    assert "- We sail at six." in text
    assert "+ We sail at seven." in text


async def test_a_page_of_many_changes_is_reported_in_parts(
    connect: Connect, site: Site, tmp_path: Path
) -> None:
    many = "".join(f"<p>Rule {number} is about boats of every kind.</p>" for number in range(80))
    async with connect(allow_loopback="true", cache=str(tmp_path)) as client:
        site.put("/fees", page())
        site.pages["/fees"][1]["Cache-Control"] = "no-cache"
        await read(client, site.url("/fees"), "whole")
        site.put("/fees", page(14, many))
        given = {"sources": [site.url("/fees")], "part": "changes", "max_tokens": 400}
        seen: list[str] = []
        cursor = ""
        for _ in range(12):
            result = await client.call_tool("fetch_and_prune_html", {**given, "cursor": cursor})
            seen += re.findall(r"^\+ Rule (\d+)", text_of(result), re.MULTILINE)
            cursor = data_of(result).get("next_cursor", "")
            if not cursor:
                break
    assert seen == [str(number) for number in range(80)]


def test_of_a_page_that_changes_every_minute_one_version_a_day_is_listed(store: Store) -> None:
    def version(day: int, minute: int) -> Page:
        html = f"<p>Day {day}, minute {minute}.</p>"
        read = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T10:{minute:02}:00+00:00"
        url = "https://port.test/"
        return Page(
            url, url, "", html, "text/html", fetched_at=read, content_hash=content_hash(html)
        )

    for day in range(2 * MOST_VERSIONS):
        for minute in range(3):
            keep_page(store, version(day, minute))
    now = page_handle(version(59, 2))
    found = [
        find_version(store, "https://port.test/", since, but=now)
        for since in ("2026-03-03", "2025-01-01", "")
    ]
    assert [one.html if one else "" for one in found] == [
        version(57, 2).html,
        version(0, 0).html,
        version(58, 2).html,
    ]
