"""Asking one page again: the same answer as the first time, for less work, and never another question's or page's."""

from collections.abc import Sequence

import pytest

from models.protocols import TextKind, Vectors
from pipeline.documents import Document
from pipeline.prune.candidates import QUESTIONS, REMEMBERED
from pipeline.prune.prune import Pruned, PruneOptions, prune
from tests.support.doubles import Letters
from tests.support.pages import RIVERS, document

pytestmark = pytest.mark.anyio
COUNTRIES = "How many countries does the Danube flow through?"


class Counting(Letters):
    """The embedder of the other tests, counting what it is asked."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.texts = 0

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Count `texts`, and embed them."""
        self.texts += len(texts)
        return await super().embed(texts, kind=kind)


async def ask(page: Document, query: str, embedder: Letters | None = None, *, part: int = 1) -> Pruned:
    return await prune([page], query, options=PruneOptions(max_tokens=60, part=part), embedder=embedder)


async def test_a_question_asked_again_has_the_same_answer_and_the_embedder_is_not_asked_again() -> None:
    page, embedder = document(), Counting()
    first = await ask(page, "Which river is longest?", embedder)
    asked = embedder.texts
    assert asked > 0
    assert await ask(page, "Which river is longest?", embedder) == first
    assert embedder.texts == asked


async def test_the_next_part_of_an_answer_costs_no_embedding_and_repeats_nothing() -> None:
    page, embedder = document(), Counting()
    first = await ask(page, "Which river is longest?", embedder)
    asked = embedder.texts
    second = await ask(page, "Which river is longest?", embedder, part=2)
    assert embedder.texts == asked
    assert second.pages[0].text not in first.pages[0].text


async def test_another_question_about_a_page_that_was_asked_before_has_the_answer_of_a_fresh_page() -> None:
    page = document()
    await ask(page, "Which river is longest?", Counting())
    assert await ask(page, "How is a river measured?", Counting()) == await ask(
        document(), "How is a river measured?", Counting()
    )


async def test_another_embedder_is_asked_itself() -> None:
    page, other = document(), Counting("other")
    await ask(page, "Which river is longest?", Counting())
    await ask(page, "Which river is longest?", other)
    assert other.texts > 0


async def test_a_page_that_changed_is_read_anew() -> None:
    await ask(document(), COUNTRIES)
    changed = document(RIVERS.replace("ten countries", "twelve countries"))
    assert "twelve countries" in (await ask(changed, COUNTRIES)).pages[0].text


async def test_more_pages_and_questions_than_are_remembered_are_answered_all_the_same() -> None:
    pages = [document(RIVERS.replace("ten countries", f"{number} countries")) for number in range(REMEMBERED + 3)]
    for _ in range(2):
        for number, page in enumerate(pages):
            assert f" {number} countries" in (await ask(page, COUNTRIES)).pages[0].text
    fresh = await ask(document(), "Which river is longest?")
    page = document()
    for number in range(QUESTIONS + 3):
        await ask(page, f"Which of the {number} rivers is longest?")
    assert await ask(page, "Which river is longest?") == fresh
