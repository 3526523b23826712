"""Density and what is done about it: factors from 0 to 1, written forms beside the text, nothing
invented."""

from collections.abc import Sequence

import numpy as np
import pytest

from models.onnx import OnnxEmbedder
from models.protocols import Ability, PathScores, Prompt, Said
from papers.idms.density import ITERATIONS, DensityModels, densities, enrich
from pipeline.text.tokens import count_tokens
from pipeline.text.words import find_entities

pytestmark = pytest.mark.anyio
CHUNKS = (
    (
        "Well, it was a day like any other day, and so they went on with what they did.",
        "And so on it went.",
    ),
    (
        "Marie Curie met Paul Langevin in Brussels in 1911.",
        "Albert Einstein and Max Planck were at Solvay's council.",
    ),
    ("The council took place at the Hotel Metropole.", "It was paid for by Ernest Solvay."),
    ("A river needs water to run.", "Rain brings water to the river."),
)


class Writer:
    """Rates by length and writes what it is reported to."""

    name = "writer"
    context_tokens = 4_000
    abilities: frozenset[Ability] = frozenset({"generate", "score_tree"})

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the next answer."""
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return .8 for yes."""
        return PathScores(np.log([0.8, 0.2]), 1, 1, 1, 1)


async def test_a_chunk_of_names_is_denser_than_idle_talk(embedder: OnnxEmbedder) -> None:
    found = await densities(CHUNKS, DensityModels(embedder), language="en")
    assert found[1] > found[0] == found.min()
    assert len(await densities((), DensityModels(embedder), language="en")) == 0


async def test_density_as_printed_is_the_product_summed_over_the_entities(
    embedder: OnnxEmbedder,
) -> None:
    found = await densities(CHUNKS, DensityModels(embedder, printed=True), language="en")
    whole = await embedder.embed([" ".join(chunk) for chunk in CHUNKS], kind="passage")
    names = find_entities(" ".join(CHUNKS[1]), language="en")
    around = await embedder.embed([*CHUNKS[1], *names], kind="passage")
    effective = float(np.clip(around[len(CHUNKS[1]) :] @ whole[1], 0, 1).sum())
    pairs = around[: len(CHUNKS[1])] @ around[: len(CHUNKS[1])].T
    cohesion = float(pairs[~np.eye(len(pairs), dtype=bool)].mean()) if len(pairs) > 1 else 1.0
    relation = max(float(whole[i] @ whole[1]) for i in range(len(CHUNKS)) if i != 1)
    length = count_tokens(" ".join(CHUNKS[1]))
    printed = effective * len(names) * cohesion * relation / length
    assert len(names) > 1 and found[1] == pytest.approx(printed, rel=1e-4)


async def test_a_rating_counts_and_entities_that_a_generator_lists_must_stand_in_the_text(
    embedder: OnnxEmbedder,
) -> None:
    plain = await densities(CHUNKS, DensityModels(embedder), language="en")
    rated = await densities(CHUNKS, DensityModels(embedder, Writer("")), language="en")
    assert (rated != plain).all()
    found = {}
    for names in ('["Niels Bohr"]', "[]", '["Ernest Solvay", "Niels Bohr"]'):
        listing = DensityModels(embedder, Writer(f'{{"entities": {names}}}'), "model")
        found[names] = await densities(CHUNKS, listing, language="en")
    assert (found['["Niels Bohr"]'] == found["[]"]).all()
    assert (found['["Ernest Solvay", "Niels Bohr"]'] > found["[]"]).tolist() == [
        False,
        False,
        True,
        False,
    ]


CHATTER = (
    "The lighthouse of Quoxholm was, as everybody there knows, built in the year 1868, or "
    "so it is said."
)
AROUND = [("Rain fell.",), ("The wind blew.",), ("Fog came.",)]


async def test_a_condensed_form_is_beside_the_text(embedder: OnnxEmbedder) -> None:
    short = "The lighthouse of Quoxholm was built in 1868."
    levels = np.array([0.1, 0.5, 0.5, 0.5])
    found = await enrich(
        [(CHATTER,), *AROUND], levels, Writer(short), DensityModels(embedder), language="en"
    )
    assert found[0] == (short, "condensed")
    assert found[1:] == [("", "kept")] * 3


@pytest.mark.parametrize(
    "answer",
    [
        "The lighthouse of Quoxholm was built in 1968.",
        "The lighthouse was built in 1868.",
        "The lighthouse of Quoxholm is old.",
        "The lighthouse of Quoxholm was built by Ida Finch in 1868.",
        f"{CHATTER} And it still is there, as it always did.",
        "",
    ],
)
async def test_a_form_that_loses_or_invents_is_thrown_away(
    answer: str, embedder: OnnxEmbedder
) -> None:
    levels = np.array([0.1, 0.5, 0.5, 0.5])
    found = await enrich(
        [(CHATTER,), *AROUND], levels, Writer(answer), DensityModels(embedder), language="en"
    )
    assert found[0] == ("", "refused")


async def test_supplementing_takes_from_elsewhere_and_ends(embedder: OnnxEmbedder) -> None:
    chunks = [("Curie met him there in 1911.",), ("Rain fell.",)] + [
        (f"Paul Langevin, number {n}, was at the Solvay council.",) for n in range(40)
    ]
    levels = np.array([0.9, *(0.5 for _ in chunks[1:])])
    model = Writer("Curie met Paul Langevin there in 1911.")
    found = await enrich(chunks, levels, model, DensityModels(embedder), language="en")
    assert found[0] == ("Curie met Paul Langevin there in 1911.", "supplemented")
    assert 2 <= model.asked <= ITERATIONS
    assert all(form.way == "kept" for form in found[1:])
