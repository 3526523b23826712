"""Questions at the door hold their floors: the sample library's by `research`, those of real pages by
words alone.

Floors are what was measured less the worth of one question, so that a change which loses answers is
seen. The library's test split is left to `python -m bench run library_test`.
"""

import json
from pathlib import Path
from typing import Final

import pytest

from bench.run import Given, measure, share
from bench.sets import Asked, QuestionSet, read_set, shown

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LIBRARY: Final = {1_000: 0.9, 3_000: 0.93}
"""Shares shown within each budget."""
NOT_ANSWERED: Final = 0.83
"""Of what nothing answers; those are all about things that are in the library, see docs/log.md."""
BY_WORDS: Final = {256: 0.76, 512: 0.82}
UNNAMED: Final = (0.9, 600)
"""Share shown where no budget is named, and mean tokens."""


@pytest.mark.nightly
async def test_gold_is_in_the_evidence_and_what_nothing_answers_is_not_answered() -> None:
    found = await measure(read_set("library_dev"), ["research"], list(LIBRARY))
    for budget, floor in LIBRARY.items():
        rows = [row for row in found if row.budget == budget]
        assert share(row.shown for row in rows if row.answerable) >= floor
        assert (
            share(row.verdict != "answered" for row in rows if not row.answerable) >= NOT_ANSWERED
        )


async def test_a_question_about_something_else_altogether_is_never_called_answered() -> None:
    library = read_set("library_dev")
    odd = Asked("x", "far", "What is the boiling point of liquid nitrogen?", ())
    questions = QuestionSet("library", [odd], library.files, shown)
    [row] = await measure(questions, ["research"], [1_000])
    assert row.verdict != "answered"


async def by_words(every: int, budgets: list[int], *names: str) -> list[Given]:
    """Ask a spread sample of real pages, without models."""
    found = []
    for name in names:
        sample = read_set(name, len(read_set(name).asked) // every)
        found += await measure(
            sample, ["fetch_and_prune_html"], budgets, ["bm25"], embedder="none", reader="none"
        )
    return found


async def test_answers_are_kept_above_the_floors_and_above_plain_chunks(shared: Path) -> None:
    assert shared.is_dir()
    found = await by_words(12, list(BY_WORDS), "html_qa", "tables")
    for budget, floor in BY_WORDS.items():
        rows = [row for row in found if row.budget == budget]
        kept = share(row.shown for row in rows)
        assert kept >= floor
        assert kept >= share(row.beside["bm25"] for row in rows)


async def test_with_no_budget_named_the_first_call_answers_in_few_tokens(shared: Path) -> None:
    assert shared.is_dir()
    found = await by_words(10, [0], "html_qa")
    assert share(row.shown for row in found) >= UNNAMED[0]
    assert sum(row.tokens for row in found) / len(found) <= UNNAMED[1]


async def test_a_folder_of_ones_own_is_asked_of_the_server_without_its_settings_too(
    tmp_path: Path,
) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "boats.md").write_text("The boat Curlew sails at dawn.", "utf-8")
    (tmp_path / "library" / "taxes.md").write_text("The tax of Brindle is nine crowns.", "utf-8")
    rows = (
        {"question": "When does the Curlew sail?", "answers": [["At dawn"]], "pages": ["boats.md"]},
        {"question": "What is the tax?", "answers": [["ten crowns"]], "pages": ["taxes.md"]},
        {"question": "Who paints?", "answers": []},
    )
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "questions.jsonl").write_text(lines, encoding="utf-8")
    bare = {"embedder": "none", "reader": "none"}
    found = await measure(read_set(str(tmp_path)), ["extract_relevant"], [256], ["plain"], **bare)
    assert [(row.id, row.shown, row.beside) for row in found] == [
        ("1", True, {"plain": True}),
        ("2", False, {"plain": False}),
    ]
