"""A source that no reader foresaw costs itself, never the call: the other source is answered from, and
this one is read as legible text with a note, or said to be unread."""

from pathlib import Path

import pytest

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
