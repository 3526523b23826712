"""Answers of open size: of a table the rows that a question names, of a page what has the words that
count letter by letter."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.support import Connect, text_of

pytestmark = pytest.mark.anyio

SOURCES: Final = ("Coal", "Wind", "Nuclear")
OUTPUT: Final = {
    (year, source): 1_000 * (year - 1999) + 100 * place
    for year in range(2000, 2020)
    for place, source in enumerate(SOURCES)
}
CODES: Final = {f"4{place:02}P1": f"condition_{place}_of_{60 - place}" for place in range(60)}


async def answer(
    connect: Connect, folder: Path, question: str, tool: str, **further: object
) -> str:
    arguments: dict[str, object] = {"question": question, **further}
    arguments |= {"sources": [str(folder)]} if tool == "extract_relevant" else {}
    async with connect(folders=str(folder), search="folder") as client:
        return text_of(await client.call_tool(tool, arguments))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{year}-01-01,{source},{value}" for (year, source), value in OUTPUT.items()]
    (tmp_path / "output.csv").write_text("\n".join(["year,source,output", *rows]), "utf-8")
    cells = "".join(f"<tr><td>{code}<td>{name}" for code, name in CODES.items())
    (tmp_path / "codes.html").write_text(
        f"<title>Codes of errors</title><table><tr><th>Code<th>Condition{cells}</table>", "utf-8"
    )
    return tmp_path


@pytest.mark.parametrize("tool", ["research", "extract_relevant"])
async def test_the_one_row_that_a_question_names_is_shown(
    connect: Connect, folder: Path, tool: str
) -> None:
    question = "What was the output of wind in 2012?"
    text = await answer(connect, folder / "output.csv" if "ext" in tool else folder, question, tool)
    assert re.search(r"2012-01-01 \| Wind \| 13100|source: Wind; output: 13100", text)


@pytest.mark.parametrize("room", [{}, {"max_tokens": 300}])
async def test_a_row_named_by_its_code_alone_is_shown(
    connect: Connect, folder: Path, room: dict[str, int]
) -> None:
    asked = "What does the error code 407P1 mean?"
    text = await answer(connect, folder, asked, "research", **room)
    assert "condition_7_of_53" in text


async def test_rows_that_a_question_names_alike_all_may_come(
    connect: Connect, folder: Path
) -> None:
    text = await answer(connect, folder, "List the output of nuclear by year", "research")
    assert text.count(" | Nuclear | ") > 3


@pytest.mark.parametrize("tool", ["research", "extract_relevant"])
async def test_an_extreme_asked_in_two_parts_shows_its_row(
    connect: Connect, folder: Path, tool: str
) -> None:
    question = "Which source had the highest output, and in which year?"
    text = await answer(connect, folder / "output.csv" if "ext" in tool else folder, question, tool)
    assert "Nuclear | 20200" in text


FAQ: Final = "".join(
    f"<h2>{asked}</h2><p>{said}</p>"
    for asked, said in {
        "The cache takes too much disk space, what can I do?": "Delete its folder chunks.archive.d, "
        "and put an empty file of that name in its place, which is never written again.",
        "Can I turn off the check for free disk space?": "Set additional_free_space to less than "
        "nothing where the volume reports too little of it, as shares over a network may do.",
        "My backup disk is full, what can I do?": "Delete some other files first, since nothing "
        "works without any free space at all. A backup that stops there rolls back by itself.",
        "Can a backup of a disk be resumed?": "It goes on from its last checkpoint, and reads the "
        "files before that again, without storing them twice.",
    }.items()
)


async def test_sections_are_quoted_by_themselves(connect: Connect, tmp_path: Path) -> None:
    page = tmp_path / "faq.html"
    page.write_text(f"<title>Questions</title><h1>Questions</h1>{FAQ}", "utf-8")
    asked = "What can be done about disk space, the cache and backups?"
    several = await answer(connect, page, asked, "extract_relevant", max_tokens=600)
    passages = several.partition("(a)")[2].split("\n(")
    assert len(passages) > 1
    assert all(passage.count("?") == 1 for passage in passages)


async def test_a_heading_is_not_cut_before_the_number_that_answers(
    connect: Connect, tmp_path: Path
) -> None:
    page = tmp_path / "news.html"
    changes = {"2.2.28": "the cache of keys", "2.2.29": "the default server", "2.3.0": "the prompt"}
    sections = "".join(
        f"<h2>Written down on a Tuesday of the month, as number {version}</h2>"
        f"<p>Change {what}, which is asked for a key when none is known.</p>"
        for version, what in changes.items()
    )
    page.write_text(f"<title>News</title><h1>News</h1>{sections}", "utf-8")
    question = "What is asked for a key when none is known, by the default server?"
    text = await answer(connect, page, question, "extract_relevant", max_tokens=200)
    assert re.search(r"as number 2\.2\.29(: |\n)Change the default server", text)
