"""Reading by place: outlines, sections, links, pages, whole documents, and what a folder holds."""

import os
import re
from pathlib import Path

import pytest

from tests.support import Connect, data_of, text_of
from tests.support.pdf import make_pdf

pytestmark = pytest.mark.anyio

GUIDE = """---
title: Guide to the harbour
date: 2024-03-02
---
# Guide to the harbour

Where boats lie, and what it costs. See [the port](https://port.test/fees) and [the map](https://port.test/map).

## 1. Mooring

Boats lie at the west quay.

### 1.1 At night

Lights stay on.

## 2. Fees

A night costs 14 euros.

## 3. Rules

No fires.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guide.md").write_text(GUIDE)
    (tmp_path / "prices.csv").write_text("name,price\na,1\nb,2\nc,3\n")
    (tmp_path / ".env").write_text("SECRET=1")
    pages = [
        [(f"Chapter {number}", 20), ("", 12), (f"What chapter {number} says of salt.", 11)]
        for number in (1, 2, 3)
    ]
    (tmp_path / "book.pdf").write_bytes(make_pdf(pages, title="Book of salt"))
    return tmp_path


async def read(connect: Connect, folder: Path, source: str, part: str, **arguments: object) -> str:
    given = {"sources": [str(folder / source)], "part": part, **arguments}
    async with connect(folders=str(folder), cache=str(folder / ".cache")) as client:
        return text_of(await client.call_tool("fetch_and_prune_html", given))


async def test_an_outline_names_every_heading_at_its_depth_and_how_long_it_is(
    connect: Connect, folder: Path
) -> None:
    text = await read(connect, folder, "guide.md", "outline")
    assert re.findall(r"^( *)- ([^(]+) \(", text, re.MULTILINE) == [
        ("", "Guide to the harbour"),
        ("  ", "1. Mooring"),
        ("    ", "1.1 At night"),
        ("  ", "2. Fees"),
        ("  ", "3. Rules"),
    ]


async def test_the_outline_of_a_pdf_names_the_pages(connect: Connect, folder: Path) -> None:
    text = await read(connect, folder, "book.pdf", "outline")
    assert [int(page) for page in re.findall(r"\(p\. (\d+)", text)] == [1, 2, 3]


@pytest.mark.parametrize("heading", ["1. Mooring", "Mooring", "mooring", '"1. Mooring"'])
async def test_a_section_comes_whole_with_what_is_below_it(
    connect: Connect, folder: Path, heading: str
) -> None:
    text = await read(connect, folder, "guide.md", f"section {heading}")
    assert "west quay" in text
    assert "Lights stay on" in text
    assert "14 euros" not in text


async def test_a_section_that_is_not_there_is_answered_with_those_that_are(
    connect: Connect, folder: Path
) -> None:
    text = await read(connect, folder, "guide.md", "section Anchors")
    assert "There is no section 'Anchors'" in text
    assert "2. Fees" in text


TOWNS = """# Two towns

## Holt

### Fees

A night in Holt costs 14 euros.

## Arnvik

### Fees

A night in Arnvik costs 9 euros, and the second night is free.
"""


@pytest.mark.parametrize(
    ("section", "fee", "said"),
    [
        ("Fees", "14 euros", "Sections of the same name: 1 more"),
        ("Holt › Fees", "14 euros", ""),
        ("Two towns › Arnvik › Fees", "9 euros", ""),
    ],
)
async def test_a_section_is_named_by_its_path_where_others_have_its_name(
    connect: Connect, folder: Path, section: str, fee: str, said: str
) -> None:
    (folder / "towns.md").write_text(TOWNS)
    text = await read(connect, folder, "towns.md", f"section {section}")
    assert text.count(" euros") == 1 and fee in text
    assert said in text and (said != "") == ("same name" in text)


async def test_an_item_over_the_budget_is_cut_and_the_answer_says_so(
    connect: Connect, folder: Path
) -> None:
    words = " ".join(f"Tide {number} is late." for number in range(200))
    (folder / "tides.md").write_text(f"# Tides\n\n## Late\n\n{words}\n\nIt rained.\n")
    given = {"sources": [str(folder / "tides.md")], "part": "section Late", "max_tokens": 200}
    texts: list[str] = []
    async with connect(folders=str(folder)) as client:
        cursor = ""
        while len(texts) < 5 and (cursor or not texts):
            result = await client.call_tool("fetch_and_prune_html", given | {"cursor": cursor})
            texts.append(text_of(result))
            cursor = data_of(result)["next_cursor"]
    (cut,) = (text for text in texts if "Tide 3 is late" in text)
    assert "Cut: a larger max_tokens shows all of this item." in cut
    assert "It rained." in texts[-1] and cursor == ""


async def test_links_come_with_their_words(connect: Connect, folder: Path) -> None:
    text = await read(connect, folder, "guide.md", "links")
    assert "the port | https://port.test/fees" in text
    assert "the map | https://port.test/map" in text


async def test_pages_of_a_pdf_are_read_alone(connect: Connect, folder: Path) -> None:
    text = await read(connect, folder, "book.pdf", "pages 2-3")
    assert "chapter 1 says" not in text
    assert "chapter 2 says" in text
    assert "chapter 3 says" in text
    assert "chapter 2 says" not in await read(connect, folder, "book.pdf", "page 3")


async def test_the_whole_page_is_read_in_parts_by_cursor(connect: Connect, folder: Path) -> None:
    (folder / "guide.md").write_text(
        "# Long\n\n" + "\n\n".join(f"Paragraph {n} says a little." for n in range(90))
    )
    seen: list[str] = []
    cursor = ""
    async with connect(folders=str(folder), cache=str(folder / ".cache")) as client:
        given = {"sources": [str(folder / "guide.md")], "part": "whole", "max_tokens": 250}
        for room in [*range(250, 1_300, 50)]:
            given["max_tokens"] = room
            result = await client.call_tool("fetch_and_prune_html", {**given, "cursor": cursor})
            seen += re.findall(r"Paragraph (\d+)", text_of(result))
            cursor = data_of(result).get("next_cursor", "")
            if not cursor:
                break
    assert seen == [str(n) for n in range(90)]


async def test_a_folder_lists_its_documents_newest_first_without_what_is_hidden(
    connect: Connect, folder: Path
) -> None:
    os.utime(folder / "guide.md", (1e9, 1e9))
    text = await read(connect, folder, ".", "files")
    assert "3 files, newest first:" in text
    assert re.search(r"guide\.md \| 2\d{3}-\d\d-\d\d \| md \| 1 kB", text)
    assert text.index("prices.csv") < text.index("guide.md")
    assert ".env" not in text


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        ("files", ["letters/", "letters/old/", "guide.md", "letters/ann.md", "letters/old/ann.md"]),
        ("files ann", ["letters/ann.md", "letters/old/ann.md"]),
        ("files letters/*.MD", ["letters/ann.md", "letters/old/ann.md"]),
        ("files old", ["letters/old/", "letters/old/ann.md"]),
    ],
)
async def test_a_folder_lists_its_folders_first_and_files_by_their_names(
    connect: Connect, tmp_path: Path, part: str, rows: list[str]
) -> None:
    for age, name in enumerate(("guide.md", "letters/ann.md", "letters/old/ann.md")):
        (path := tmp_path / name).parent.mkdir(exist_ok=True)
        path.write_text("A letter.")
        os.utime(path, (2e9 - age * 1e6, 2e9 - age * 1e6))
    text = await read(connect, tmp_path, ".", part)
    assert re.findall(r"^(\S+) \| 20", text, re.MULTILINE) == rows
    assert "such documents" in await read(connect, tmp_path, ".", "files bob")


@pytest.mark.parametrize(
    ("source", "part", "said"),
    [
        ("guide.md", "chapter 3", "is not a valid part"),
        ("guide.md", "pages x", "is not a page range"),
        ("guide.md", "sql: SELECT * FROM t1", "There are no tables"),
        ("prices.csv", "links", "There are no links"),
        ("prices.csv", "outline", "There are no headings"),
        ("guide.md", "files", "is not an allowed folder"),
    ],
)
async def test_a_place_that_is_not_there_is_answered_with_how_to_name_one(
    connect: Connect, folder: Path, source: str, part: str, said: str
) -> None:
    text = await read(connect, folder, source, part)
    assert said in text
    assert "part=" in text or "Allowed folders" in text


async def test_a_part_that_is_cut_says_how_to_go_on_in_a_small_budget_too(
    connect: Connect, folder: Path
) -> None:
    (folder / "guide.md").write_text(
        "# Long\n\n" + "\n\n".join(f"Paragraph {n} says a little." for n in range(90))
    )
    text = await read(connect, folder, "guide.md", "section Long", max_tokens=200)
    assert re.search(r'Next: the same call with cursor="\d+\.', text)


async def test_pages_of_what_has_none_are_said_to_be_the_whole(
    connect: Connect, folder: Path
) -> None:
    assert "only PDF files and images have pages" in await read(
        connect, folder, "guide.md", "pages 2-3"
    )


async def test_many_pages_of_which_nothing_is_shown_take_one_line(
    connect: Connect, folder: Path
) -> None:
    for number in range(1, 12):
        reported = (
            f"Queue number {number} of the manual holds {number * 7} records before it is "
            f"emptied by its reader."
        )
        (folder / f"p{number}.md").write_text(f"# Chapter {number}\n\n{reported}\n")
    sources = [str(folder / f"p{number}.md") for number in range(1, 12)]
    async with connect(folders=str(folder), cache=str(folder / ".cache")) as client:
        given = {"sources": sources, "question": "queue 6"}
        text = text_of(await client.call_tool("fetch_and_prune_html", given))
    assert "42 records" in text
    assert "10 further pages (nothing of this page is shown)" in text


@pytest.mark.parametrize(
    "form",
    [
        "<{}>",
        '"{}"',
        "`{}`",
        "[the guide]({})",
        " {} ",
        "<{}>.",
        '"{}",',
        "[the guide]({}).",
        "[the guide](<{}>)",
    ],
)
async def test_a_source_is_understood_as_models_write_it(
    connect: Connect, folder: Path, form: str
) -> None:
    source = form.format(folder / "guide.md")
    async with connect(folders=str(folder), cache=str(folder / ".cache")) as client:
        for part in ("section Fees", ""):
            given = {"sources": [source], "part": part}
            assert "14 euros" in text_of(await client.call_tool("fetch_and_prune_html", given))
