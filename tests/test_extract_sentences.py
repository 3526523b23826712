"""Sentence boundaries: the golden rules, real treebanks, exact spans on any text, and time that
grows linearly."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.document.units import UNIT_CHARACTERS, split_sentences
from tests.support.waiting import bounded

GOLDEN_FLOORS = {"en": 42, "de": 32, "es": 31, "ru": 40, "fr": 5, "ja": 5, "zh": 2}


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize("language", sorted(GOLDEN_FLOORS))
def test_golden_rules_pass_at_least_at_the_floor(language: str, shared: Path) -> None:
    cases = json.loads((shared / "data" / "seg" / "golden.json").read_text(encoding="utf-8"))[
        language
    ]
    passed = sum(
        ["".join(part.split()) for part in cut(text)] == ["".join(part.split()) for part in wanted]
        for text, wanted in cases
    )
    assert passed >= GOLDEN_FLOORS[language]


@pytest.mark.parametrize(
    "text",
    [
        "Version 2.0.1 of node.js is on example.com/a.b?c=d. See there.",
        "Mail a.b@example.org at 5 p.m. on Monday. He replied.",
        "It costs 3.50 Euro, i.e. 1,000.75 Yen. Cheap.",
        "Am 3. Oktober kam Dr. Meier, z. B. mit dem Zug. Er blieb.",
        "В 1990 г. А. С. Пушкин, т. е. поэт, жил на ул. Мира. Он писал.",
        "The end.[12] Next one follows.",
        "He said „Das ist gut.“ Then he left.",
        "The tool reads setup.py and file.name.Next runs. Good.",
    ],
)
def test_periods_that_end_nothing_do_not_cut(text: str) -> None:
    assert len(cut(text)) == 2


def test_cjk_stops_cut_without_white_space_but_not_inside_titles_and_quotations() -> None:
    assert cut("他来了。我走了！真的吗？") == ["他来了。", "我走了！", "真的吗？"]
    assert cut("我们看《摔跤吧！爸爸》好吗？好！") == ["我们看《摔跤吧！爸爸》好吗？", "好！"]
    assert cut("「行くよ。」と言った。次の日。") == ["「行くよ。」と言った。", "次の日。"]


def test_a_list_run_together_is_cut_at_its_markers() -> None:
    assert cut("1) The first item 2) The second item") == [
        "1) The first item",
        "2) The second item",
    ]
    assert cut("• one thing • another thing") == ["• one thing", "• another thing"]


def test_a_blank_line_cuts_and_a_single_line_break_does_not() -> None:
    assert cut("a heading\n\nsome text\nthat goes on") == ["a heading", "some text\nthat goes on"]


def test_text_without_stops_is_cut_below_the_cap_at_the_best_mark() -> None:
    pieces = cut("word " * 1000)
    assert max(map(len, pieces)) <= UNIT_CHARACTERS
    assert all(piece.startswith("word") and piece.endswith("word") for piece in pieces)
    assert [len(piece) for piece in cut("x" * (2 * UNIT_CHARACTERS + 5))] == [
        UNIT_CHARACTERS,
        UNIT_CHARACTERS,
        5,
    ]


@given(
    st.text(
        alphabet=st.one_of(
            st.sampled_from(".!?…。！？ \n\t\u00a0\"'”)（）「」1aA•-"), st.characters()
        ),
        max_size=400,
    )
)
def test_spans_are_ordered_disjoint_trimmed_and_cover_every_visible_character(text: str) -> None:
    spans = split_sentences(text)
    covered = 0
    last = 0
    for start, end in spans:
        assert last <= start < end <= start + UNIT_CHARACTERS
        assert text[start:end] == text[start:end].strip()
        covered += sum(not c.isspace() for c in text[start:end])
        last = end
    assert covered == sum(not c.isspace() for c in text)


@pytest.mark.parametrize(
    "unit", [".", "? ", "。", "「。", "《！", "1. ", "a. ", "(", "\n \n", "x", "\u00a0.", "・"]
)
def test_hostile_repetition_takes_linear_time(unit: str) -> None:
    text = unit * (1_600_000 // len(unit))
    with bounded():
        spans = split_sentences(text)
    assert spans == sorted(spans)
