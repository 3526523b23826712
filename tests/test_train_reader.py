"""How the reader's training data is made: questions, windows, rules, and nothing of the evaluation
among them."""

import json
from pathlib import Path

import pytest

from train.reader.data import (
    Corpus,
    Question,
    Text,
    collect,
    load_own,
    load_public,
    read_text,
    split_of,
)
from train.reader.draw import Drawer, Example
from train.reader.overlap import findings, found_in

HTML = (
    "<html><head><title>Pell ferry</title></head><body><h1>Fares</h1><p>A bicycle costs 4.50 "
    "francs. Dogs are free.</p>"
    "<h2>Winter</h2><table><tr><th>Day</th><th>Last "
    "boat</th></tr><tr><td>Sunday</td><td>17:30</td></tr>"
    "<tr><td>Monday</td><td>18:10</td></tr></table></body></html>"
)
TOWNS = ("Brindle Quay", "Skellmouth", "Marlow", "Orvane", "Nebelau")
PAIRS = [(one, other) for one in TOWNS for other in TOWNS if one != other]
CREW = ("Ilse Marwood", "Rolf Aspenlund", "Gavril Horn", "Dana Keel", "Pell Island", "Old Grebe")
STORY = Text(
    [
        *(
            f"The boat from {one} to {other} leaves the pier at {9 + n}:{30 + n}."
            for n, (one, other) in enumerate(PAIRS)
        ),
        *(
            f"No one on the pier knows the lake as well as {name} does, who was born on it."
            for name in CREW * 2
        ),
    ],
    ["Ferries › Timetable"] * 32,
)
TABLE = Text(
    [
        f"Day: {day}; Last boat: {hour}"
        for day, hour in (("Sunday", 17), ("Monday", 18), ("Friday", 21))
    ],
    [""] * 3,
)


def _corpus() -> Corpus:
    asked = [
        Question(
            f"When does the boat from {one} to {other} leave?",
            "story",
            frozenset({n}),
            frozenset({n}),
            "own-fact",
        )
        for n, (one, other) in enumerate(PAIRS)
    ]
    twin = Question(
        "Who steers the boat from Marlow to Orvane?",
        "story",
        frozenset(),
        frozenset({10}),
        "own-fact",
    )
    key = Question(
        "When is the last boat on Monday?", "table", frozenset({1}), frozenset({1}), "wtq"
    )
    return Corpus({"story": STORY, "table": TABLE}, [*asked, twin, key])


def _drawn(seed: int = 0) -> list[tuple[Question, Example]]:
    corpus = _corpus()
    drawer = Drawer(corpus, seed=seed)
    return [
        (question, one)
        for _ in range(12)
        for question in corpus.questions
        for one in drawer.examples(question)
    ]


def test_a_page_is_read_as_the_product_reads_it() -> None:
    text = read_text(HTML, name="ferry")
    assert "Day: Sunday; Last boat: 17:30" in text.sentences
    assert text.above[text.sentences.index("Dogs are free.")] == "Pell ferry › Fares"


def test_written_questions_become_rows_with_the_texts_of_their_units(tmp_path: Path) -> None:
    row = {"k": "table", "q": "When is the last boat?", "g": [1], "t": "When is the first boat?"}
    (tmp_path / "ferry.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    parts = collect(
        tmp_path,
        {"ferry": {"site": "ferry.example", "units": ["Fares", "Day: Sunday; Last boat: 17:30"]}},
    )
    (found,) = parts[split_of("ferry.example")]
    assert found["gold"] == ["Day: Sunday; Last boat: 17:30"]
    assert found["twin"] == "When is the first boat?"


def test_a_tenth_of_the_sites_is_for_choosing_and_a_seventh_for_judging() -> None:
    parts = [split_of(f"site{number}.example") for number in range(2_000)]
    assert 0.08 < parts.count("dev") / 2_000 < 0.12
    assert 0.13 < parts.count("held") / 2_000 < 0.17


def test_every_answering_window_holds_its_answer_and_no_other_window_does() -> None:
    for question, one in _drawn():
        shown = {one.window.sentences[place] for place in one.gold}
        text = STORY if question.text == "story" else TABLE
        if one.kind == "answer":
            assert shown == {text.sentences[place] for place in question.gold}
        elif one.kind in ("near", "other", "foreign", "other word", "opposite", "swapped roles"):
            assert not shown
            if one.kind in ("other", "foreign"):
                assert not {text.sentences[place] for place in question.near} & set(
                    one.window.sentences
                )


def test_an_edit_of_question_and_window_alike_stays_answerable() -> None:
    both = [one for _, one in _drawn() if one.kind == "both"]
    assert both
    assert all(one.gold for one in both)


def test_rows_that_exchange_their_keys_exchange_the_answer() -> None:
    swapped = [one for _, one in _drawn() if one.kind == "swapped key"]
    assert swapped
    for one in swapped:
        (place,) = one.gold
        assert one.window.sentences[place].startswith("Day: Monday; ")
        assert one.window.sentences[place] != "Day: Monday; Last boat: 18"


def test_two_questions_joined_keep_both_answers_that_the_window_shows() -> None:
    joined = [one for _, one in _drawn() if one.kind == "joined"]
    assert any(len(one.gold) == 2 for one in joined)
    assert all(", and" in one.question for one in joined)


def test_headings_are_taken_away_from_some_windows() -> None:
    above = {one.window.above for _, one in _drawn() if one.kind == "answer"}
    assert above >= {"", "Ferries", "Ferries › Timetable"}


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    assert _drawn(1) == _drawn(1)
    assert _drawn(1) != _drawn(2)


def test_a_run_of_thirteen_equal_words_is_found_whatever_is_around_it() -> None:
    known = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen."
    assert found_in(
        [known],
        [
            "Before: two three four five six seven eight nine ten eleven twelve thirteen "
            "FOURTEEN, after"
        ],
    )
    assert not found_in(
        [known],
        ["two three four five six seven eight nine ten eleven twelve thirteen and after it more"],
    )
    assert found_in(["What is it?"], ["what is it"])


@pytest.mark.slow
@pytest.mark.nightly
def test_nothing_that_winnow_is_judged_by_is_trained_on(shared: Path) -> None:
    public, own = load_public("train"), load_own("train")
    assert len(own.questions) > 1_000
    found = findings(Corpus(public.texts | own.texts, public.questions + own.questions))
    assert found == {"question": [], "sentence": [], "page": []}
