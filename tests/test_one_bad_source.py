"""A source that no reader foresaw costs itself, never the call: the other source is answered from, and
this one is read as legible text with a note, or said to be unread."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

import readers
from pipeline.services import DocumentMemory
from readers.page import Page
from tests.support import Connect, data_of, text_of

GOOD = "<title>Ferry</title><h1>Ferry</h1><p>The ferry to Ostholm leaves at 7:45 from pier two.</p>"
BAD = {
    "surrogate.xml": b"<?xml ><n>&#xD800;",
    "surrogate.rss": b"<rss><channel><title>News &#xD800;</title></channel></rss>",
    "short.ass": b"[Script Info]\n[Events]\nFormat: Layer, Start, End, Text\nDialogue: 0\n",
    "empty.rss": b"<rss><channel></channel></rss>",
    "frames.html": b"<frameset><frame></frameset>",
    "cut.docx": b"PK\x03\x04 no archive",
}
QUESTION = "When does the ferry to Ostholm leave?"


@pytest.mark.parametrize("name", BAD)
@pytest.mark.anyio
async def test_a_source_that_no_reader_foresaw_costs_itself_alone(
    name: str, connect: Connect, tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "ferry.html").write_text(GOOD)
    (folder / name).write_bytes(BAD[name])
    sources = [str(folder / "ferry.html"), str(folder / name)]
    async with connect(folders=str(folder), cache=str(tmp_path / "cache")) as client:
        for tool, arguments in (
            ("extract_relevant", {"sources": sources}),
            ("fetch_and_prune_html", {"sources": sources}),
            ("raptor_query", {"sources": [str(folder)]}),
            ("research", {}),
        ):
            result = await client.call_tool(tool, {"question": QUESTION, **arguments})
            assert not result.is_error
            assert "7:45" in text_of(result), tool
        hits = await client.call_tool("search_web", {"question": QUESTION})
        assert "ferry.html" in text_of(hits)


@pytest.mark.anyio
async def test_damaged_xml_is_read_as_the_text_that_it_shows(
    connect: Connect, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.xml"
    path.write_text(
        '<?xml version="1.0"?><r<row r="1">oot><d>The ferry to Ostholm leaves at 7:45.</d></root>'
    )
    async with connect(
        folders=str(tmp_path), cache=str(tmp_path.parent / "damaged-cache")
    ) as client:
        asked = {"question": QUESTION, "sources": [str(path)]}
        result = await client.call_tool("extract_relevant", asked)
        assert "leaves at 7:45" in text_of(result)
        assert data_of(result)["verdict"] != "none"


def long_page(number: int) -> str:
    """Return a page of 2 MB."""
    rows = (f"<p>Ticket {row} of {number} costs {row % 40} crowns." for row in range(40_000))
    return "".join(rows)


@pytest.mark.anyio
async def test_a_short_file_is_read_before_the_long_ones_that_are_named_first(
    connect: Connect, tmp_path: Path
) -> None:
    files = [tmp_path / f"long{number}.html" for number in range(3)]
    for number, path in enumerate(files):
        path.write_text(long_page(number))
    files.append(tmp_path / "ferry.html")
    files[-1].write_text(GOOD)
    said: list[str] = []

    async def keep(progress: float, total: float | None, message: str | None) -> None:
        said.append(message or "")

    cache = str(tmp_path.parent / f"{tmp_path.name}-cache")
    async with connect(folders=str(tmp_path), cache=cache) as client:
        asked = {"question": QUESTION, "sources": list(map(str, files))}
        result = await client.call_tool("extract_relevant", asked, progress_callback=keep)
    assert "ferry.html" in said[0]
    assert "7:45" in text_of(result)


@pytest.mark.anyio
async def test_a_short_page_that_comes_last_waits_for_no_two_long_ones() -> None:
    memory = DocumentMemory()
    read: list[int] = []

    async def keep(html: str) -> None:
        page = Page("https://a.example/", "https://a.example/", "", html, "text/html")
        await memory.read(replace(page, content_hash=html[-40:]))
        read.append(len(html))

    htmls = [*map(long_page, range(8, 11)), GOOD]
    async with anyio.create_task_group() as group:
        for html in htmls:
            group.start_soon(keep, html)
    assert read[0] == len(GOOD)


@pytest.mark.parametrize("header", ["To", "From", "Cc", "Sender", "Content-Type", "Date"])
@pytest.mark.parametrize("value", ["a: b@c.example; d: e@f.example; ", "(" * 300, "<@a,@b:" * 400])
def test_a_bad_header_costs_no_words_of_a_message(header: str, value: str) -> None:
    mail = f"{header}: {value}\nSubject: Ferry\n\nIt leaves at 7:45.\n"
    assert "It leaves at 7:45." in readers.read(mail.encode(), name="ferry.eml").text
