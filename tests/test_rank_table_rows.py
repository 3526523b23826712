"""Questions that choose among a table's rows: the row that is meant comes first, whatever its words
are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.question.question import Question
from pipeline.reading.extract import lift_rows, read_documents
from pipeline.reading.relevance import Blend
from pipeline.text.cells import number_of
from readers.html.document import read_document
from readers.page import Document, Page
from tests.support import best_units

pytestmark = pytest.mark.anyio

RIVERS = [
    ("Orva", "1,310 km", "13 May 1871", "3:55"),
    ("Tesk", "912 km", "2 June 1903", "2:07"),
    ("Hallow", "2,240 km", "1890", "11:20"),
    ("Pirn", "640 km", "9 March 1866", "4:12"),
    ("Gavril", "1,004 km", "1911[3]", "1:02:10"),
    ("Morn", "875 km", "1899", "7:30"),
]


def page(*rows: tuple[str, ...], extra: str = "") -> Document:
    head = "<tr><th>River</th><th>Length</th><th>Surveyed</th><th>Passage</th></tr>"
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    prose = (
        "<p>The survey of the rivers took many years and was led by the office of waters.</p>" * 2
    )
    return read(f"<h1>Survey</h1>{prose}{extra}<table>{head}{body}</table>{prose}")


def read(html: str) -> Document:
    whole = f"<html lang=en><body><main>{html}</main></body></html>"
    return read_document(
        Page("https://survey.test/", "https://survey.test/", "Survey", whole, "text/html")
    )


async def rivers(question: str, document: Document) -> list[str]:
    """Rivers of the rows in the order of the extraction."""
    found = await read_documents(Question(question), [document], reader=Blend(None))
    cells = [document.blocks[unit.block].cells for unit in best_units(found)]
    return [row[0] for row in cells if row and row[0] != "River"]


@pytest.mark.parametrize(
    ("question", "river"),
    [
        ("Which surveyed river has the greatest length?", "Hallow"),
        ("Which river of the survey has the lowest length?", "Pirn"),
        ("Which river of the survey has the shortest passage?", "Tesk"),
        ("Which river has the longest passage?", "Gavril"),
        ("Welche river hat die geringste length?", "Pirn"),
    ],
)
async def test_the_row_with_the_extreme_of_the_named_column_is_among_the_first_two(
    question: str, river: str
) -> None:
    assert river in (await rivers(question, page(*RIVERS)))[:2]


async def test_the_last_row_is_among_the_first_two_for_the_last() -> None:
    assert set((await rivers("What is the last river of the list?", page(*RIVERS)))[:2]) == {
        "Orva",
        "Morn",
    }


async def test_the_earliest_date_comes_first_beside_the_ends_of_the_table() -> None:
    found = await rivers("Which river was surveyed earliest?", page(*RIVERS))
    assert set(found[:3]) == {"Orva", "Morn", "Pirn"}


async def test_a_question_that_chooses_nothing_is_scored_as_it_was() -> None:
    assert (await rivers("How long is the river Tesk?", page(*RIVERS)))[0] == "Tesk"


async def test_no_row_is_lifted_above_the_sentence_that_answers() -> None:
    with_answer = page(*RIVERS, extra="<p>The last king of Orva was Edric, crowned in 1632.</p>")
    found = await read_documents(
        Question("Who was the last king of Orva?"), [with_answer], reader=Blend(None)
    )
    assert "Edric" in best_units(found)[0].text


async def test_an_extreme_that_many_rows_share_chooses_none() -> None:
    rows = [
        (f"River{number}", "700 km", f"in May of {number}", "a long one") for number in range(1, 8)
    ]
    document = page(*rows)
    plain = await read_documents(
        Question("Which river has what length?"), [document], reader=Blend(None)
    )
    asked = lift_rows(
        Question("Which river has the greatest length?"), [document], plain.tagged, plain.values
    )
    assert asked.tolist() == pytest.approx(plain.values.tolist())


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1,310 km", 1310),
        ("1.310,5 km", 1310.5),
        ("3,5 %", 3.5),
        ("$ 12.40", 12.4),
        ("US$1,200,000", 1_200_000),
        ("−4 °C", -4),
        ("3:55", 235),
        ("1:02:10", 3730),
        ("12[4]", 12),
        (".31 percussion", 0.31),
        ("2 June 1903", 1903 + 5 / 12 + 2 / 400),
        ("June 1903", 1903 + 5 / 12),
        ("none", None),
        ("", None),
        ("The bridge of 1932 was the third of its kind in the land", None),
        ("1.2.3.4", 1234),
        ("9" * 40, 9999999999999999999999),
        ("٣٤", 34),
    ],
)
def test_numbers_are_read_as_tables_write_them(cell: str, number: float | None) -> None:
    found = number_of(cell)
    assert found == (pytest.approx(number) if number is not None else None)


@settings(deadline=None)
@given(st.text(alphabet="0123456789.,:+-− $€[]()%a\u00a0\u0664²½", max_size=40))
def test_whatever_is_in_a_cell_is_a_number_or_none(cell: str) -> None:
    found = number_of(cell)
    assert found is None or np.isfinite(found)


@pytest.mark.parametrize(
    ("request_", "ends", "least", "most"),
    [
        ("the last stop", True, False, False),
        ("fewest points", False, True, False),
        ("le plus petit lac", False, True, True),
        ("самый длинный", False, True, True),
        ("最高的山", False, True, True),
        ("最後の駅", True, True, True),
        ("how many stops", False, False, False),
    ],
)
def test_words_that_choose_are_known_in_several_languages(
    request_: str, ends: bool, least: bool, most: bool
) -> None:
    choice = Question(request_).choice
    assert (choice.ends, choice.least, choice.most) == (ends, least, most)


async def test_a_word_that_no_page_holds_names_its_column_and_is_no_reason_for_none() -> None:
    rows = [
        ("Fen", "742", "1,180"),
        ("Rill", "518", "395"),
        ("Scout", "311", "149"),
        ("Aurum", "901", "2,950"),
    ]
    body = "".join(
        f"<tr><td>{name}</td><td>{weight}</td><td>{price}</td></tr>" for name, weight, price in rows
    )
    head = "<tr><th>Binoculars</th><th>Weight (g)</th><th>Price</th></tr>"
    document = read(
        f"<h1>Binoculars compared</h1><p>Six pairs, four weeks of "
        f"rain.</p><table>{head}{body}</table>"
    )
    for question, name in (
        ("Which binoculars are the lightest?", "Scout"),
        ("the heaviest binoculars", "Aurum"),
    ):
        found = await read_documents(Question(question), [document], reader=Blend(None))
        cells = [document.blocks[unit.block].cells for unit in best_units(found)]
        assert name in [row[0] for row in cells if row and row[0] != "Binoculars"][:2]
