"""Questions in another language than the page's: found by their words, in the tools' answers and in
folder search."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support import Connect, Site, text_of

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


@pytest.mark.parametrize(
    ("question", "english"),
    [
        (
            "Wie viel wiegt die Electrolux EW7 aus dem Jahr 2021?",
            "how much weigh Electrolux EW7 from year 2021",
        ),
        ("Wo finde ich den Brückenkassenschalter?", "where find i bridge"),
        ("google sans flex award", ""),
        ("best plus-minus rating", ""),
        ("Who is the tallest Duke?", ""),
        ("Kuinka paljon lippu maksaa?", ""),
    ],
    ids=["names and numbers", "compound", "sans", "plus", "English", "no list"],
)
async def test_the_web_is_asked_in_english_too_where_a_list_of_words_knows_the_language(
    connect: Connect, site: Site, question: str, english: str
) -> None:
    site.put("/search", '{"results": [], "unresponsive_engines": []}', kind="application/json")
    given = {"searxng": site.url(""), "networks": "loopback", "folders": " "}
    async with connect(**given, embedder="none", reader="none") as client:
        result = await client.call_tool("search_web", {"question": question})
    asked = [parse_qs(urlsplit(path).query)["q"][0] for path in site.asked]
    translated = [query for query in asked if query != question]
    assert question in asked
    assert [query[: len(english)] for query in translated] == [english] * bool(english)
    assert not result.is_error
