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
KEPT: Final = "It stays as it was before the call, also where a hook ends with an error code, and"
OPTIONS: Final = "\n\n".join(
    f"{option}\n    {text} {KEPT} the index is written {place} times at most."
    for place, (option, text) in enumerate(
        {
            "--keep-index": "Leave what is staged in the index while the rest is stashed.",
            "--staged": "Stash what is staged in the index, and nothing else.",
            "--all": "Stash files that are ignored or untracked, too, with the index.",
            "--patch": "Choose what is stashed by hand, hunk by hunk, from the index.",
            "--quiet": "Write no message about what is stashed of the index.",
            "--message": "Give the stash a name that its list shows beside the index.",
        }.items()
    )
)


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
    (tmp_path / "stash.txt").write_text(OPTIONS, "utf-8")
    return tmp_path


@pytest.mark.parametrize("tool", ["research", "extract_relevant"])
async def test_the_one_row_that_a_question_names_comes_without_the_rows_beside_it(
    connect: Connect, folder: Path, tool: str
) -> None:
    question = "What was the output of wind in 2012?"
    text = await answer(connect, folder / "output.csv" if "ext" in tool else folder, question, tool)
    assert "source: Wind; output: 13100" in text
    assert text.count("-01-01") == 1


@pytest.mark.parametrize("room", [{}, {"max_tokens": 300}])
async def test_a_row_named_by_its_code_alone_comes_alone(
    connect: Connect, folder: Path, room: dict[str, int]
) -> None:
    asked = "What does the error code 407P1 mean?"
    text = await answer(connect, folder, asked, "research", **room)
    assert "condition_7_of_53" in text
    assert set(re.findall(r"condition_\d+_of_\d+", text)) == {"condition_7_of_53"}


async def test_rows_that_a_question_names_alike_all_may_come(
    connect: Connect, folder: Path
) -> None:
    text = await answer(connect, folder, "List the output of nuclear by year", "research")
    assert text.count(" | Nuclear | ") > 3


async def test_a_named_option_comes_without_those_beside_it(connect: Connect, folder: Path) -> None:
    text = await answer(connect, folder, "What does --staged put into the stash?", "research")
    assert "nothing else" in text
    assert "hunk by hunk" not in text


@pytest.mark.parametrize("tool", ["research", "extract_relevant"])
async def test_an_extreme_asked_in_two_parts_is_its_value_and_its_row(
    connect: Connect, folder: Path, tool: str
) -> None:
    question = "Which source had the highest output, and in which year?"
    text = await answer(connect, folder / "output.csv" if "ext" in tool else folder, question, tool)
    assert "highest: output" in text
    assert "= 20200, from 1 row below" in text
    assert text.count("-01-01") == 1
    assert "Parts:" not in text


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


async def test_a_section_is_quoted_by_itself_and_the_one_that_answers_comes_first(
    connect: Connect, tmp_path: Path
) -> None:
    page = tmp_path / "faq.html"
    page.write_text(f"<title>Questions</title><h1>Questions</h1>{FAQ}", "utf-8")
    named = await answer(
        connect, page, "My backup disk is full, what can I do?", "extract_relevant"
    )
    assert "Delete some other files first" in named.partition("(a)")[2].partition("\n(")[0]

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
    assert "as number 2.2.29: Change the default server" in text


KETTLES: Final = ("Amber", "Birch", "Cedar", "Dune", "Ember", "Fjord", "Grove", "Heath")
PICTURE: Final = '<figure><img alt="A kettle on a table"></figure>'
CARDS: Final = "".join(
    f"<li><article>{PICTURE * (place % 2)}<p>Model: K{place}</p><h3>{name} kettle</h3>"
    f"<p>${place}.50</p><p>Add to cart</p></article></li>"
    for place, name in enumerate(KETTLES, start=30)
)


async def test_a_card_is_quoted_whole_although_its_name_is_in_its_middle(
    connect: Connect, tmp_path: Path
) -> None:
    page = tmp_path / "shop.html"
    page.write_text(f"<title>Shop</title><h1>Kettles</h1><ul>{CARDS}</ul>", "utf-8")

    text = await answer(
        connect, page, "What does the Dune kettle cost?", "extract_relevant", max_tokens=512
    )

    best = text.partition("(a)")[2].partition("\n(")[0]
    assert "Model: K33" in best and "Dune kettle" in best and "$33.50" in best
    assert "Model: K34" not in best


HANDBOOK: Final = """# Loom.js

Loom.js weaves command lines out of plain descriptions.

- [Loom.js](#loomjs)
- [Installing](#installing)
- [Optional thread](#optional-thread)
- [Mandatory thread](#mandatory-thread)
- [Repeated thread](#repeated-thread)

## Installing

Run the installer of your system, then open a new terminal and ask for the version.

## Optional thread

You may specify an optional thread using `.thread()`. A thread that is optional may be left out on
the command line, and the program sees that it has no value at all.

## Mandatory thread

You may specify a mandatory thread using `.mustThread()`. The thread must have a value after
parsing, from the command line or from its default.

    loom.mustThread('-w, --warp <name>', 'a cloth must have a warp');

The parser ends with an error code of 3 where the value is missing.

## Repeated thread

You may make a thread repeated by three dots behind its name when you specify it. A repeated thread
takes all values up to the next dash, and the program sees them as an array.
"""


@pytest.mark.parametrize("tool", ["research", "extract_relevant"])
async def test_a_how_question_ends_where_a_section_says_it_without_the_table_of_contents(
    connect: Connect, tmp_path: Path, tool: str
) -> None:
    (tmp_path / "loom.md").write_text(HANDBOOK, "utf-8")
    text = await answer(connect, tmp_path, "Loom.js: how do I make a thread mandatory?", tool)
    assert "must have a value after" in text, text
    assert "loom.mustThread(" in text and "error code of 3" in text, text
    assert "three dots" not in text, text
    assert "Installing" not in text, text
