"""The pairs of a question and its almost-answered twin: what may not be wrong with them."""

import json

import pytest

from bench.pairs import Row, faults, rows
from bench.pairs_documents import pairs as pairs_on_documents
from bench.pairs_documents import sources

ROW: Row = {
    "id": "1",
    "page": "ferry",
    "site": "ferry.example",
    "part": "held",
    "kind": "fact",
    "twin_kind": "other_time",
    "question": "When does the last boat leave on Sunday?",
    "gold": ["Sunday 17:30"],
    "answer": "17:30",
    "twin": "When does the last boat leave on Easter Sunday?",
    "units": ["Day: Sunday; Last boat: 17:30"],
}
"""A row that is right."""


def test_the_pairs_on_english_pages_have_no_faults() -> None:
    pairs = rows()
    assert len(pairs) >= 1_300
    assert list(faults(pairs)) == []


def test_the_pairs_on_long_documents_and_in_other_languages_have_no_faults() -> None:
    pairs = pairs_on_documents()
    assert len(pairs) >= 1_100
    assert list(faults(pairs)) == []
    assert {row["document"] for row in pairs} == set(sources())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "riddle"}, "unknown kind"),
        ({"twin_kind": "riddle"}, "unknown kind"),
        ({"gold": []}, "no gold"),
        ({"twin": ROW["question"]}, "asked before"),
        ({"id": "2"}, "asked before in 1"),
        ({"id": "2", "question": "How?", "twin": "Who?", "part": "train"}, "in both parts"),
    ],
)
def test_a_row_that_is_wrong_is_named(changed: Row, said: str) -> None:
    assert list(faults([ROW])) == []
    wrong = [ROW, {**ROW, **changed}] if "id" in changed else [{**ROW, **changed}]
    found = list(faults(wrong))
    assert found, json.dumps(changed)
    assert said in found[0]
