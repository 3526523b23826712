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


async def answer(connect: Connect, folder: Path, question: str, tool: str) -> str:
    arguments: dict[str, object] = {"question": question}
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


async def test_a_row_named_by_its_code_alone_comes_alone(connect: Connect, folder: Path) -> None:
    text = await answer(connect, folder, "What does the error code 407P1 mean?", "research")
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
