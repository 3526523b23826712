"""What a question means is found once for a call, however many steps of it ask."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from pipeline.question.question import Question
from pipeline.text import words
from tests.support import Connect, text_of

pytestmark = pytest.mark.anyio

ANALYSED = {one.__code__ for one in (words.guess_language, words.index_terms, words.find_entities)}


@contextmanager
def counted(text: str) -> Iterator[Counter[str]]:
    """Count how often each analysis is made of `text`, by its name and what else it is given."""
    found: Counter[str] = Counter()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in ANALYSED:
            given = dict(frame.f_locals)
            if given.pop("text") == text:
                found[f"{frame.f_code.co_name} {given}"] += 1

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def test_a_call_of_research_analyses_its_question_once(
    tmp_path: Path, connect: Connect
) -> None:
    question = "Was kostet die Fähre nach Arnvik für ein Fahrrad?"
    for name in ("ferry", "island"):
        said = f"The {name} of Arnvik costs 9 crowns for a bicycle, a ticket for a person 4."
        (tmp_path / f"{name}.txt").write_text(said, "utf-8")
    with counted(question) as found:
        async with connect(
            folders=str(tmp_path), search="folder", embedder="none", reader="none"
        ) as client:
            answer = text_of(await client.call_tool("research", {"question": question}))
    assert "9 crowns" in answer
    assert {name.partition(" ")[0] for name in found} == {code.co_name for code in ANALYSED}
    assert set(found.values()) == {1}, found


def test_a_question_is_its_words_whatever_is_around_them() -> None:
    assert Question("  How deep is it?\n") == Question("How deep is it?")
    assert not Question(" ")
