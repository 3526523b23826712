"""Summaries: central sentences without repeats, and checks of written ones."""

from dataclasses import replace

import pytest

from papers.raptor.extract import Quotable, extract_summary
from papers.raptor.summarise import Writer, supported_part, write_summary
from pipeline.raptor.tree import SummaryQuote
from pipeline.text.tokens import count_tokens
from pipeline.text.words import index_terms
from tests.support.raptor_pages import Author


def candidates(*leaves: str) -> tuple[list[Quotable], dict[str, float]]:
    """The sentences of leaves (parted by `|`), and an even idf."""
    found: list[Quotable] = []
    for leaf, text in enumerate(leaves):
        for n, sentence in enumerate(text.split("|")):
            found.append(
                Quotable(SummaryQuote(leaf, n), sentence.strip(), index_terms(sentence), 0.5)
            )
    return found, {term: 1.0 for one in found for term in one.terms}


def test_the_sentence_that_most_leaves_share_is_taken_first() -> None:
    found, idf = candidates(
        "The old harbour bridge was closed for repairs in spring. | My aunt likes plum cake with "
        "cream.",
        "No one may cross the harbour bridge while repairs go on. | The mayor wore a hat.",
        "Repairs of the harbour bridge cost two million crowns. | It rained on Tuesday in the "
        "hills.",
    )
    summary = extract_summary(found, idf, max_tokens=14)
    assert "harbour bridge" in summary.text
    assert len(summary.quotes) == 1


def test_a_summary_does_not_say_a_thing_twice() -> None:
    same = "The ferry to the island leaves at seven every morning."
    found, idf = candidates(
        same, same, same, "Bicycles travel free on weekdays outside the high season."
    )
    summary = extract_summary(found, idf, max_tokens=60)
    assert summary.text.count(same) == 1
    assert "Bicycles" in summary.text


def test_a_summary_keeps_its_length_and_the_order_of_the_text() -> None:
    found, idf = candidates(
        *(f"Report {i} describes harvest number {i} in the wide river valley." for i in range(40))
    )
    for budget in (20, 60, 130):
        summary = extract_summary(found, idf, max_tokens=budget)
        assert 0 < count_tokens(summary.text) <= budget
        assert [quote.leaf for quote in summary.quotes] == sorted(
            quote.leaf for quote in summary.quotes
        )


def test_a_row_of_a_table_gives_way_to_a_sentence_that_says_as_much() -> None:
    found, idf = candidates(
        "Station: Pell Head; Level: 412; Gate: open; Bottle: 200 | The gate at Pell Head was open "
        "at a level of 412.",
        "The level at Pell Head fell to 412 when the gate was open.",
    )
    assert "Bottle" not in extract_summary(found, idf, max_tokens=20).text
    rows, idf = candidates("Station: Pell Head; Level: 412", "Station: Osterhythe; Level: 409")
    assert extract_summary(rows, idf, max_tokens=40).text.startswith("Station: Pell Head")


def test_a_summary_of_summaries_lets_each_of_them_speak() -> None:
    long = (
        "Harbour {} of the northern lake keeps its old stone pier, its lamp and its keeper "
        "through the winter."
    )
    found, idf = candidates(
        *(long.format(i) for i in range(3)),
        "Cheese ripens in the old tunnel.",
        "Grebes nest in the tall reeds.",
    )
    reported = [replace(one, child=max(1, one.quote.leaf - 1)) for one in found]
    assert {one.child for one in reported} == {1, 2, 3}
    summary = extract_summary(reported, idf, max_tokens=50)
    assert {reported[quote.leaf].child for quote in summary.quotes} == {1, 2, 3}
    assert {quote.leaf for quote in extract_summary(found, idf, max_tokens=50).quotes} == {0, 1}


def test_one_endless_sentence_is_cut_to_the_length() -> None:
    found, idf = candidates("word " * 900)
    summary = extract_summary(found, idf, max_tokens=50)
    assert 0 < count_tokens(summary.text) <= 50
    assert summary.quotes == (found[0].quote,)


def test_written_sentences_with_new_numbers_or_names_are_dropped() -> None:
    context = "In 1932 the bridge at Orvik was opened by Marta Lind. It is 250 metres long."
    written = (
        "The bridge at Orvik was opened in 1932. Its builder was called Johan Berg. It is 300 "
        "metres long. "
        "Marta Lind opened it."
    )
    found = supported_part(written, context, max_tokens=100)
    assert found.text == "The bridge at Orvik was opened in 1932. Marta Lind opened it."
    assert found.unsupported == ("Johan", "Berg", "300")


def test_words_without_a_capital_are_no_new_names_in_any_script() -> None:
    russian = "Паром отходит от северного причала каждый день в семь часов утра."
    written = "Паром рано отходит от северного причала. Паром водит Пётр Ильин."
    found = supported_part(written, russian, max_tokens=100)
    assert found.text == "Паром рано отходит от северного причала."
    assert found.unsupported == ("Пётр", "Ильин")
    chinese = "渡船每天早上七点从北码头出发。"
    assert supported_part(chinese, f"时刻表：{chinese}", max_tokens=100).unsupported == ()


def test_written_summaries_are_bounded() -> None:
    context = "the river rises in spring and falls in autumn"
    written = "The river rises in spring. " * 50
    assert 0 < count_tokens(supported_part(written, context, max_tokens=30).text) <= 30


def test_a_number_counts_whole_and_thousands_may_be_marked_otherwise() -> None:
    context = "In 1932 some 12,500 tons of stone were moved over the river."
    found = supported_part(
        "They moved 12500 tons of stone in 1932. They moved 32 tons of stone.",
        context,
        max_tokens=99,
    )
    assert found.text == "They moved 12500 tons of stone in 1932."
    assert found.unsupported == ("32",)


def test_a_name_that_opens_a_sentence_is_checked_and_a_common_opening_is_not() -> None:
    context = "The bridge over the river was opened by the mayor after long repairs."
    written = (
        "Napoleon opened the bridge over the river. However, the mayor opened the bridge "
        "after repairs."
    )
    found = supported_part(written, context, max_tokens=99)
    assert found.text == "However, the mayor opened the bridge after repairs."
    assert found.unsupported == ("Napoleon",)


def test_a_sentence_about_the_passage_itself_says_nothing_and_is_dropped() -> None:
    context = "The river rises in spring, and the ferry then waits at the upper landing."
    written = (
        "The passage is a summary of the previous passage. The ferry waits while the river "
        "rises. The ferry waits"
    )
    found = supported_part(written, context, max_tokens=99)
    assert found.text == "The ferry waits while the river rises."


@pytest.mark.anyio
async def test_children_longer_than_the_generators_context_are_cut_to_their_shares() -> None:
    author = Author("The record talks of rivers.")
    texts = [f"Record {i} talks of rivers. " * 900 for i in range(4)]
    summary = await write_summary(Writer(author), texts, max_tokens=100)
    assert summary.text == "The record talks of rivers."
    assert count_tokens(author.asked[0]) < author.context_tokens
    assert all(f"Record {i} talks" in author.asked[0] for i in range(4))
    assert "at most 60 words" in author.asked[0]
