"""Density and what is done about it: factors from 0 to 1, written forms beside the text, nothing invented."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from models.onnx import OnnxEmbedder
from models.protocols import Ability, Message, Prompt
from pipeline.segment.density import Density, Reading, densities
from pipeline.segment.enrich import ITERATIONS, enrich

pytestmark = pytest.mark.anyio
CHUNKS = (
    ("Well, it was a day like any other day, and so they went on with what they did.", "And so on it went."),
    ("Marie Curie met Paul Langevin in Brussels in 1911.", "Albert Einstein and Max Planck were at Solvay's council."),
    ("The council took place at the Hotel Metropole.", "It was paid for by Ernest Solvay."),
    ("A river needs water to run.", "Rain brings water to the river."),
)


class Writer:
    """Rates by length and writes what it is told to."""

    name = "writer"
    context_tokens = 4_000
    abilities: frozenset[Ability] = frozenset({"generate", "choose"})

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the next answer."""
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]

    async def choose(self, prompt: Prompt, options: Sequence[str]) -> NDArray[np.float64]:
        """Return .8 for yes."""
        return np.array([0.8, 0.2])


async def test_a_chunk_of_names_is_denser_than_idle_talk(embedder: OnnxEmbedder) -> None:
    found = await densities(CHUNKS, Reading(embedder), language="en")
    assert found[1].value > found[0].value
    assert found[0].level == "low"
    assert "Marie Curie" in found[1].entities
    for one in found:
        assert one.rating is None
        assert all(0 <= value <= 1 for value in (one.effectiveness, one.variety, one.cohesion, one.relation))


async def test_a_generator_rates_and_lists_entities_that_must_stand_in_the_text(embedder: OnnxEmbedder) -> None:
    model = Writer('{"entities": ["Ernest Solvay", "Niels Bohr"]}')
    found = await densities(CHUNKS, Reading(embedder, model, "model"), language="en")
    assert {one.rating for one in found} == {0.8}
    assert found[2].entities == ("Ernest Solvay",)


def level(name: str) -> Density:
    return Density(1, 1, 1, 1, None, 1, 20, (), name)  # type: ignore[arg-type]  # one of the levels


async def test_a_condensed_form_stands_beside_the_text(embedder: OnnxEmbedder) -> None:
    chunk = ("The lighthouse of Quoxholm was, as everybody there knows, built in the year 1868, or so it is told.",)
    short = "The lighthouse of Quoxholm was built in 1868."
    (one,) = await enrich([chunk], [level("low")], Writer(short), Reading(embedder), language="en")
    assert one.way == "condensed"
    assert one.written == short
    assert one.text == chunk[0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("The lighthouse of Quoxholm was built in 1968.", "invents the figure 1968"),
        ("The lighthouse was built in 1868.", "names"),
        ("The lighthouse of Quoxholm is old.", "loses the figure 1868"),
        ("", "nothing was written"),
    ],
)
async def test_a_form_that_loses_or_invents_is_thrown_away(answer: str, why: str, embedder: OnnxEmbedder) -> None:
    chunk = ("The lighthouse of Quoxholm was, as everybody there knows, built in the year 1868, or so it is told.",)
    (one,) = await enrich([chunk], [level("low")], Writer(answer), Reading(embedder), language="en")
    assert one.way == "kept"
    assert one.written == one.text
    assert why in one.refused


async def test_supplementing_takes_from_elsewhere_and_ends(embedder: OnnxEmbedder) -> None:
    chunks = [("Curie met him there in 1911.",), ("Rain fell.",)] + [
        (f"Paul Langevin, number {n}, was at the Solvay council.",) for n in range(40)
    ]
    levels = [level("high"), *(level("middle") for _ in chunks[1:])]
    model = Writer("Curie met Paul Langevin there in 1911.")
    found = await enrich(chunks, levels, model, Reading(embedder), language="en")
    assert found[0].way == "supplemented"
    assert "Paul Langevin" in found[0].written
    assert found[0].iterations == 1
    assert model.asked <= ITERATIONS
    assert all(one.way == "kept" for one in found[1:])
