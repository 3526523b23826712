"""Follow-ups: what a question leaves out is taken from the one before it; a complete question stays
as it is."""

import csv
import json
import random
from pathlib import Path

import pytest
from mcp import Client

from pipeline.question.question import Question
from pipeline.question.turns import completed, subject
from tests.support import LIBRARY, Connect, data_of, text_of

ROOT = Path(__file__).parent.parent
BEFORE = "What does the --threshold option of massif mean?"
FALSE = 0.02
"""Share of complete questions that may be completed all the same."""


def rows(kind: str) -> list[dict[str, str]]:
    with (ROOT / "bench/turns.tsv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in found if row["kind"] == kind]


@pytest.mark.parametrize("part", ["dev", "held"])
def test_nine_of_ten_follow_ups_get_the_names_that_they_leave_out(part: str) -> None:
    asked = [row for row in rows("refers") if row["set"] == part]
    found = [completed(Question(row["question"]), row["before"]) for row in asked]
    right = sum(
        bool(one) and all(word in one for word in row["must"].split())
        for one, row in zip(found, asked, strict=True)
    )
    assert right >= 0.9 * len(asked) >= 30


def test_complete_questions_stay_as_they_are() -> None:
    asked = [(row["question"], row["before"]) for row in rows("complete")]
    lines = (ROOT / "bench/asked/kinds.jsonl").read_text(encoding="utf-8").splitlines()
    whole = [json.loads(line)["question"] for line in lines]
    draw = random.Random(0)
    asked += [(question, draw.choice(whole)) for question in whole]
    changed = [question for question, before in asked if completed(Question(question), before)]
    assert len(changed) <= FALSE * len(asked), changed


@pytest.mark.parametrize(
    ("question", "understood"),
    [
        ("What is its default?", "What is its default? (--threshold option of massif)"),
        ("What about --time-unit?", "What about --time-unit? (--threshold option of massif)"),
        ("And on Windows?", "And on Windows? (--threshold option of massif)"),
        ("Why?", "Why? (--threshold option of massif)"),
        ("What is Massif?", ""),
        ("Is it possible to mount an archive with borg?", ""),
        ("The output was: it failed with an error of its own", ""),
    ],
)
def test_what_a_follow_up_is_understood_as(question: str, understood: str) -> None:
    assert completed(Question(question), BEFORE) == understood


def test_a_third_question_still_knows_what_the_first_was_about() -> None:
    second = completed(Question("What is its default?"), BEFORE)
    third = completed(Question("How do I change it?"), second)
    assert third == "How do I change it? (default, --threshold option of massif)"


def test_a_long_question_is_taken_up_by_its_beginning_and_its_names() -> None:
    about = subject(
        "Which of " + "the many small boats " * 8 + "sail to Brindle Quay on the Nightbird?"
    )
    assert "Brindle Quay" in about
    assert len(about.split()) < 25


def test_without_an_earlier_question_nothing_is_completed() -> None:
    assert completed(Question("What is its default?"), "") == ""


@pytest.mark.anyio
async def test_a_follow_up_finds_the_page_of_the_question_before_and_says_how_it_was_read(
    connect: Connect, tmp_path: Path
) -> None:
    settings = {
        "folders": str(LIBRARY),
        "cache": str(tmp_path),
        "embedder": "none",
        "reader": "none",
    }
    async with connect(**settings) as client:
        first = await _asked(client, "What does the Nightbird minibus cost?")
        second = await _asked(client, "How long does its journey take?", session=first["session"])
        third = await _asked(client, "How deep is Lake Orvane?", session=first["session"])
    assert second["understood"].startswith("How long does its journey take? (")
    assert "Understood as: How long does its journey take? (" in second["text"]
    assert "55 minutes" in second["text"]
    assert "understood" not in third
    assert "Understood as" not in third["text"]


async def _asked(client: Client, question: str, session: str = "") -> dict[str, str]:
    """Return what `research` says, with its text."""
    result = await client.call_tool("research", {"question": question, "session": session})
    return {**data_of(result), "text": text_of(result)}
