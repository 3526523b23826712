"""What a question asks for whole: a named section, all of a list, an example, the steps of one
page; by the tools."""

from pathlib import Path

import numpy as np
import pytest
from mcp import Client

from pipeline.document.units import tag_sentences
from pipeline.evidence.passages import PassageMaker
from pipeline.question.kind import WantedWhole
from pipeline.question.question import Question
from pipeline.reading.reading import Reading
from tests.support import Connect, text_of
from tests.support.pages import document

pytestmark = pytest.mark.anyio
BARE = {"embedder": "none", "reader": "none"}
FILLER = (
    "The skiff is tarred in spring, and its oars are kept in the boat house behind the pier. " * 3
)
CODES = [
    f"{number} - the skiff met trouble of kind {word}" for number, word in enumerate("abcdefghij")
]
BOAT = f"""<title>Skiff</title><h1>Skiff</h1>
<p>{FILLER}</p><h2>Exit status</h2><ul>{"".join(f"<li>{code}</li>" for code in CODES)}</ul>
<h2>Errors</h2><p>An exit of the skiff with a code is an error that all codes are logged for.</p>
<p>{FILLER}</p>
<h2>Rowing Groups</h2><p>{FILLER}</p><p>{FILLER}</p><p>For example:</p>
<pre>group = RowingGroup()
group.add("Anna")
group.row()</pre><p>{FILLER * 5}</p>"""


@pytest.mark.parametrize(
    ("question", "wants"),
    [
        ("List all exit codes of skiff", WantedWhole(all=True, sample=False, steps=False)),
        ("Give me an example of RowingGroup", WantedWhole(all=False, sample=True, steps=False)),
        ("How do I tar the skiff?", WantedWhole(all=False, sample=False, steps=True)),
        ("How deep is Lake Orvane?", WantedWhole(all=False, sample=False, steps=False)),
        ("What does error code 40P01 mean?", WantedWhole(all=False, sample=False, steps=False)),
        ("Zeige ein Beispiel für RowingGroup", WantedWhole(all=False, sample=True, steps=False)),
    ],
)
def test_what_a_question_wants_whole(question: str, wants: WantedWhole) -> None:
    assert Question(question).whole == wants


@pytest.mark.parametrize("tool", ["extract_relevant", "fetch_and_prune_html"])
async def test_all_of_a_list_comes_under_the_heading_that_is_named(
    connect: Connect, tmp_path: Path, tool: str
) -> None:
    text = await asked(connect, tmp_path, tool, "List all exit codes of the skiff")
    assert [code for code in CODES if code not in text] == []


async def test_an_example_comes_whole_from_a_section_that_does_not_fit(
    connect: Connect, tmp_path: Path
) -> None:
    text = await asked(
        connect, tmp_path, "extract_relevant", "Example code for RowingGroup", max_tokens=256
    )
    assert 'group = RowingGroup()\ngroup.add("Anna")\ngroup.row()' in text


@pytest.mark.parametrize(
    ("question", "pages"), [("How do I tar the skiff?", [0, 0]), ("Who tars?", [0, 1])]
)
def test_how_questions_get_the_steps_of_one_page_before_mentions_on_others(
    question: str, pages: list[int]
) -> None:
    """The page of steps scores 1, .6, .6, the page that mentions them .9, and there is room for two
    passages."""
    steps = document(
        "".join(f"<h2>{name}</h2><p>{name}: {FILLER}</p>" for name in ("Pull", "Heat", "Brush")),
        title="A",
    )
    mention = document(
        f"<h2>Diary</h2><p>Tar: {FILLER}</p>", title="B", url="https://diary.example/"
    )
    tagged = (tag_sentences(steps), tag_sentences(mention))
    units = [unit for own in tagged for unit in own]
    scores = {"Pull:": 1.0, "Heat:": 0.6, "Brush:": 0.6, "Tar:": 0.9}
    values = np.array(
        [scores.get(unit.text.split(None, 1)[0], 0.1) for unit in units], dtype=np.float32
    )
    reading = Reading("answered", "", 1.0, tagged, values, "bm25", question=Question(question))
    maker = PassageMaker((steps, mention), reading, [20] * len(units))
    order = np.argsort(-values, kind="stable").tolist()
    chosen = maker.choose(order, lambda passage: 100, 200)
    assert [int(passage.best >= len(tagged[0])) for passage in chosen] == pages


STEPS = [
    f"Step {word}: {FILLER[:86]}"
    for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")
]
TARRING = f"""<title>Skiff</title><h1>Skiff</h1><p>{FILLER}</p>
<h2>1.2. Tarring the hull with hot pitch</h2><p>The hull is tarred in this order:</p>
<ol>{"".join(f"<li>{step}</li>" for step in STEPS)}</ol><h2>Crew</h2><p>{FILLER}</p>"""
TAR = "How do I tar the hull with pitch, step by step?"


@pytest.mark.parametrize(("max_tokens", "least"), [(0, 8), (512, 8), (200, 3)])
async def test_a_procedure_whose_heading_is_nearly_named_is_cut_at_its_end_only(
    connect: Connect, tmp_path: Path, max_tokens: int, least: int
) -> None:
    text = await asked(
        connect, tmp_path, "extract_relevant", TAR, max_tokens=max_tokens, page=TARRING
    )
    shown = [step.split(":")[0] in text for step in STEPS]
    assert sum(shown) >= least
    assert shown == sorted(shown, reverse=True)
    assert all(shown) or f"{shown.count(False)} more items" in text


OPTIONS = f"""<title>reset</title><h1>reset</h1><p>With --merge and with --keep the tool resets. {FILLER}</p><dl>
<dt>--soft</dt><dd>Leaves everything. {FILLER}</dd><dt>--merge</dt><dd>Saves what is not staged.</dd>
<dt>--hard</dt><dd>Drops everything. {FILLER}</dd><dt>--keep</dt><dd>Stops at a changed file.</dd></dl>
<p>The difference between tools is discussed at length by their makers. {FILLER}</p>"""


async def test_both_sides_of_a_comparison_are_shown_by_their_definitions(
    connect: Connect, tmp_path: Path
) -> None:
    question = "What is the difference between reset --merge and reset --keep?"
    text = await asked(
        connect, tmp_path, "extract_relevant", question, max_tokens=200, page=OPTIONS
    )
    assert "Saves what is not staged." in text
    assert "Stops at a changed file." in text


HARBOUR = (
    "<title>Harbour handbook</title><h1>Harbour handbook</h1><h2>Summary</h2><ul><li>Two "
    "basins</li></ul>"
    + "".join(
        f"<h2>{name}</h2><p>{name} is run by the port office since 1871. "
        f"{FILLER}</p><p>{FILLER}</p>"
        for name in ("Pilotage", "Cranes", "Ice", "Fees")
    )
)


@pytest.mark.parametrize(
    "question", ["Summarise the harbour handbook", "What is this document about?"]
)
async def test_a_document_as_a_whole_is_answered_by_what_its_sections_begin_with(
    connect: Connect, tmp_path: Path, question: str
) -> None:
    text = await asked(
        connect, tmp_path, "extract_relevant", question, page=HARBOUR, max_tokens=400
    )
    assert "Two basins" in text
    for name in ("Pilotage", "Cranes", "Ice", "Fees"):
        assert f"{name}: {name} is run by the port office since 1871." in text
    assert "oars" not in text


async def asked(
    connect: Connect,
    folder: Path,
    tool: str,
    question: str,
    *,
    file: str = "skiff.html",
    max_tokens: int = 512,
    page: str = BOAT,
) -> str:
    """Return the text of an answer about a file of `folder`, which `page` is written to."""
    if file != ".":
        (folder / file).write_text(page, encoding="utf-8")
    source = str(folder if file == "." else folder / file)
    async with connect(folders=str(folder), cache=str(folder / ".cache"), **BARE) as client:
        return await _answer(client, tool, question, source, max_tokens)


async def _answer(client: Client, tool: str, question: str, source: str, max_tokens: int) -> str:
    arguments = {"question": question, "sources": [source]} | (
        {"max_tokens": max_tokens} if max_tokens else {}
    )
    return text_of(await client.call_tool(tool, arguments))
