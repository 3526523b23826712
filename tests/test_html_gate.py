"""A small set of real questions with pinned floors, so that a loss of quality fails the suite."""

from pathlib import Path
from typing import Final

import pytest

from bench.html import ours, unnamed
from bench.html_peers import best_chunks, text_chunks
from bench.html_questions import judged, questions
from pipeline.reading.relevance import Blend

pytestmark = pytest.mark.slow

# By words alone (no embedder), every twelfth question; floors a few points below what was measured.
RECALL_AT_256: Final = 0.76
RECALL_AT_512: Final = 0.82
UNNAMED: Final = (0.9, 600)


def test_answers_are_kept_above_the_floors_and_above_plain_chunks(shared: Path) -> None:
    assert shared.is_dir()
    asked = questions()[::12]
    keep, chunks = ours(Blend(None)), best_chunks(text_chunks, None)
    for budget, floor in ((256, RECALL_AT_256), (512, RECALL_AT_512)):
        mine = sum(judged(question, keep(question, budget))[0] for question in asked) / len(asked)
        theirs = sum(judged(question, chunks(question, budget))[0] for question in asked) / len(
            asked
        )
        assert mine >= floor
        assert mine >= theirs


def test_with_no_budget_named_the_first_call_answers_in_few_tokens(shared: Path) -> None:
    assert shared.is_dir()
    asked = [question for question in questions()[::10] if question.set != "table"]
    found = [unnamed(question, Blend(None)) for question in asked]
    assert sum(hit for hit, _ in found) / len(found) >= UNNAMED[0]
    assert sum(tokens for _, tokens in found) / len(found) <= UNNAMED[1]
