"""Questions in another language than the page's: found by their words, in the tools' answers and in
folder search."""

from pathlib import Path

import pytest

from pipeline.question.question import Question
from tests.support import Connect, text_of

pytestmark = pytest.mark.anyio

FILLER = [
    "The harbour office sells tickets for the island until noon.",
    "Visitors may leave their bags at the museum while they walk along the shore.",
    "In winter the café serves soup, and the bakery opens an hour later.",
    "A new bridge was paid for by the county and by gifts of the inhabitants.",
    "Dogs are welcome on the lower deck if they are kept on a lead.",
    "The lighthouse keeper writes down the weather three times a day.",
]
ANSWER = "Renewing a lost library card costs four crowns and takes two days."
ENGLISH = "".join(f"<p>{line}</p>" for line in [*FILLER * 4, ANSWER, *FILLER * 4])
ASKED = {
    "de": "Was kostet es, einen verlorenen Bibliotheksausweis zu erneuern?",
    "fr": "Combien coûte le renouvellement d'une carte de bibliothèque perdue ?",
    "es": "¿Cuánto cuesta renovar un carné de biblioteca perdido?",
    "ru": "Сколько стоит восстановить потерянный читательский билет библиотеки?",
    "zh": "补办丢失的图书证要花多少钱？",
}
RUSSIAN = "".join(
    f"<p>{line}</p>"
    for line in [
        *["Касса порта продаёт билеты на остров до полудня.", "Зимой в кафе подают суп."] * 8,
        "Последний автобус в город уходит в десять часов вечера.",
        *["Смотритель маяка записывает погоду три раза в день.", "Собак держат на поводке."] * 8,
    ]
)


def page(folder: Path, language: str, body: str) -> Path:
    path = folder / f"{language}.html"
    path.write_text(
        f'<html lang="{language}"><title>Orvane</title><main>{body}</main></html>', encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("language", ASKED)
@pytest.mark.parametrize("tool", ["extract_relevant", "fetch_and_prune_html"])
async def test_an_english_page_answers_in_a_few_words_what_it_is_asked_in_another_language(
    connect: Connect, tmp_path: Path, language: str, tool: str
) -> None:
    async with connect(folders=str(tmp_path)) as client:
        arguments = {
            "question": ASKED[language],
            "sources": [str(page(tmp_path, "en", ENGLISH))],
            "max_tokens": 150,
        }
        assert ANSWER in text_of(await client.call_tool(tool, arguments))


async def test_a_russian_page_answers_an_english_question(connect: Connect, tmp_path: Path) -> None:
    async with connect(folders=str(tmp_path)) as client:
        source = str(page(tmp_path, "ru", RUSSIAN))
        arguments = {
            "question": "When does the last bus leave for the city?",
            "sources": [source],
            "max_tokens": 200,
        }
        assert "десять часов вечера" in text_of(
            await client.call_tool("extract_relevant", arguments)
        )


async def test_a_folder_is_searched_in_its_documents_language(
    connect: Connect, tmp_path: Path
) -> None:
    for place, line in enumerate([*FILLER, ANSWER]):
        (tmp_path / f"note{place}.md").write_text(f"# Note {place}\n\n{line}\n", encoding="utf-8")
    async with connect(folders=str(tmp_path), search="folder", embedder="none") as client:
        found = text_of(
            await client.call_tool("search_web", {"question": ASKED["es"], "max_results": 1})
        )
    assert "four crowns" in found


def test_names_numbers_and_unknown_words_stay_as_they_are() -> None:
    assert Question("Wie viel wiegt die Electrolux EW7 aus dem Jahr 2021?").translated_to(
        "en"
    ).text.split()[-4:] == [
        "EW7",
        "from",
        "year",
        "2021",
    ]


def test_a_german_compound_is_found_by_its_parts() -> None:
    assert (
        Question("Wo finde ich den Brückenkassenschalter?")
        .translated_to("en")
        .text.startswith("where find i bridge")
    )


@pytest.mark.parametrize(
    "question", ["google sans flex award", "best plus-minus rating", "Who is the tallest Duke?"]
)
def test_an_english_question_with_a_foreign_word_is_left_alone(question: str) -> None:
    assert Question(question).translated_to("en").text == question


def test_a_language_without_a_list_is_left_alone() -> None:
    assert (
        Question("Kuinka paljon lippu maksaa?").translated_to("en").text
        == "Kuinka paljon lippu maksaa?"
    )
    assert (
        Question("What does the ticket cost?").translated_to("fi").text
        == "What does the ticket cost?"
    )
