"""What there is about a subject in a person's folders: documents, each by its title, date and one
line."""

from pathlib import Path

import pytest

from pipeline.question.wants import inventory_of
from tests.support import Connect, data_of, text_of

pytestmark = pytest.mark.anyio

ABOUT = {
    "moon.html": (
        "Why tides follow the moon",
        "Tides follow the moon, which pulls the sea towards it.",
    ),
    "harbour.html": ("Tides at the harbour", "At the harbour tides rise by four metres in spring."),
    "mill.html": ("A mill driven by tides", "The old mill was driven by tides until 1911."),
}
OTHERS = {
    "bread.html": (
        "How bread is baked",
        "The dough rests overnight before it is baked in the oven.",
    ),
    "invoice.html": ("Invoice of the printer", "Two hundred posters were printed for the concert."),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of pages, three of which are about tides."""
    place = tmp_path / "papers"
    place.mkdir()
    for name, (title, line) in {**ABOUT, **OTHERS}.items():
        more = (
            "<p>Further lines of this page speak of its author, and of nothing else at all.</p>" * 3
        )
        head = (
            f'<title>{title}</title><meta property="article:published_time" content="2024-05-06">'
        )
        main = f"<main><h1>{title}</h1><p>{line}</p>{more}</main>"
        page = f"<html lang='en'><head>{head}</head><body>{main}</body></html>"
        (place / name).write_text(page, encoding="utf-8")
    return place


@pytest.mark.parametrize(
    "question", ["What do I have about tides?", "List all documents about tides."]
)
async def test_documents_about_a_subject_are_listed_each_by_one_line(
    folder: Path, connect: Connect, question: str
) -> None:
    async with connect(folders=str(folder), search="folder") as client:
        result = await client.call_tool("research", {"question": question, "max_tokens": 1_000})
    text, passages = text_of(result), data_of(result)["passages"]
    assert sorted(url.rsplit("/", 1)[-1] for url in data_of(result)["pages"]) == sorted(ABOUT)
    assert len(passages) == len(ABOUT)
    for title, line in ABOUT.values():
        assert f"{title} (2024-05-06)" in text
        assert line in text
    assert "Further lines" not in text


async def test_a_question_that_only_begins_like_one_for_documents_is_answered(
    folder: Path, connect: Connect
) -> None:
    async with connect(folders=str(folder), search="folder") as client:
        result = await client.call_tool(
            "research", {"question": "What do I have to know of the mill's end?"}
        )
    assert "driven by tides until 1911" in text_of(result)


@pytest.mark.parametrize(
    ("request_", "subject"),
    [
        ("What do I have about the ferry?", "the ferry"),
        ("Was habe ich über Gezeiten?", "Gezeiten"),
        ("¿Qué tengo sobre mareas?", "mareas"),
        ("Qu’est-ce que j’ai sur le bac ?", "le bac"),
        ("Welke documenten heb ik over getijden?", "getijden"),
        ("What does the ferry cost?", ""),
        ("What do I have about?", ""),
        ("Was habe ich zu tun?", ""),
    ],
)
def test_a_request_for_documents_says_what_they_are_about(request_: str, subject: str) -> None:
    assert inventory_of(request_) == subject
