"""The main job on the sample library holds its floors: the dev questions through an MCP client, at
both budgets.

The floors are what was measured less the worth of one question, so that a change which loses
answers is seen. The test split is left to `python -m bench.research`.
"""

import json
from pathlib import Path

import pytest

from bench.research import ask_all, is_right
from tests.support import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
BUDGETS = (1000, 3000)
FLOORS = (0.9, 0.93, 0.83)
"""Shares shown within each budget, and of what nothing answers that is not called answered; those
are all about things that are in the library, see docs/log.md."""


@pytest.mark.nightly
async def test_gold_answers_stand_in_the_evidence_and_unanswerable_questions_are_not_called_answered(
    cache_folder: Path,
) -> None:
    lines = (ROOT / "examples" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [question for question in map(json.loads, lines) if question["split"] == "dev"]
    outcomes = await ask_all(questions, cache=cache_folder)
    *floors, none_floor = FLOORS
    for budget, floor in zip(BUDGETS, floors, strict=True):
        right = [is_right(q, outcomes[q["id"], budget]) for q in questions if q["answers"]]
        assert sum(right) / len(right) >= floor, budget
    refused = [is_right(q, outcomes[q["id"], 3000]) for q in questions if not q["answers"]]
    assert sum(refused) / len(refused) >= none_floor


async def test_a_question_about_something_else_altogether_is_never_called_answered(
    cache_folder: Path,
) -> None:
    question = {
        "id": "x",
        "question": "What is the boiling point of liquid nitrogen?",
        "answers": [],
        "split": "dev",
    }
    outcomes = await ask_all([question], cache=cache_folder)
    assert outcomes["x", 1000][0] != "answered"
