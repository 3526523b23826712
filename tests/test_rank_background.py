"""What a model's cosines mean: on one scale, and none at all where they say nothing."""

import hashlib
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
import pytest

from models.onnx import OnnxEmbedder
from models.protocols import Embedder, TextKind, Vectors, unit_rows
from pipeline.question.question import Question
from pipeline.reading.background import SCALE, Background, background_of, background_texts, measured
from pipeline.reading.bm25 import PageUnits
from pipeline.reading.relevance import Blend
from pipeline.reading.verdict import judge

SHIFT = 1.6
"""Length of what all vectors share, beside a vector of length 1: cosines then lie from .7 on."""
PAGE = (
    "The ferry leaves Brindle Quay at nine in the morning and at five in the afternoon.",
    "Bicycles travel free of charge, cars pay eleven crowns for each crossing.",
    "In winter the boat sails on Saturdays only, since the harbour may freeze.",
)
PAGE_UNITS = PageUnits(PAGE, [""] * len(PAGE), "en")
UNRELATED = "Which enzyme breaks down lactose?"
RELATED = "At what time does the boat depart?"


class Shifted:
    """The wrapped model with one direction added to every vector, as E5's and BGE-M3's are."""

    name = "shifted"

    def __init__(self, behind: Embedder) -> None:
        self._behind = behind
        self.dimension = behind.dimension + 1

    def reads(self, text: str) -> bool:
        """Whether the wrapped model reads it."""
        return self._behind.reads(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the vectors after, all nearer to each other."""
        found = await self._behind.embed(texts, kind=kind)
        return unit_rows(np.hstack([found, np.full((len(texts), 1), SHIFT, dtype=np.float32)]))


class Chance:
    """A model without training: the vector of a text is drawn from its letters' digest."""

    name = "chance"
    dimension = 384

    def reads(self, text: str) -> bool:
        """Whether it takes any text."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return vectors in a narrow cone."""
        seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts]
        rows = [1 + np.random.default_rng(seed).normal(size=384) / 2 for seed in seeds]
        return unit_rows(np.array(rows, dtype=np.float32))


@pytest.mark.anyio
@pytest.mark.slow
async def test_the_carried_models_figures_are_those_that_its_texts_give(
    embedder: OnnxEmbedder,
) -> None:
    questions, passages = background_texts()
    assert len(questions) == len(set(questions)) == len(passages) == 24
    asked = await embedder.embed(questions, kind="query")
    found = measured(asked, await embedder.embed(passages, kind="passage"))
    for name in ("mean", "deviation", "near"):
        assert getattr(found, name) == pytest.approx(getattr(SCALE, name), abs=0.01)
    assert await background_of(embedder) == SCALE
    assert SCALE.separates


def test_a_cosine_keeps_its_place_between_unrelated_texts_and_answers() -> None:
    other = Background(mean=0.75, deviation=0.02, near=0.85)
    cosines = np.array([0.75, 0.79, np.nan], dtype=np.float32)
    scaled = other.on_scale(cosines)
    assert scaled[0] == pytest.approx(SCALE.mean)
    assert scaled[1] == pytest.approx(SCALE.mean + 2 * SCALE.deviation, abs=1e-4)
    assert np.isnan(scaled[2])


@pytest.mark.anyio
@pytest.mark.slow
async def test_cosines_from_seven_tenths_on_say_what_the_model_behind_says(
    embedder: OnnxEmbedder,
) -> None:
    shifted = Shifted(embedder)
    own, other = [
        [
            await Blend(one).read(Question(question), [PAGE_UNITS])
            for question in (UNRELATED, RELATED)
        ]
        for one in (embedder, shifted)
    ]
    for question, first, second in zip((UNRELATED, RELATED), own, other, strict=True):
        assert judge(Question(question), first).word == judge(Question(question), second).word
    assert judge(Question(UNRELATED), other[0]).word == "none"
    assert judge(Question(RELATED), other[1]).word != "none"


@pytest.mark.anyio
@pytest.mark.slow
async def test_a_model_of_random_weights_gives_no_cosines_and_silences_no_none() -> None:
    found = await Blend(Chance()).read(Question(UNRELATED), [PAGE_UNITS])
    assert found.cosines is None
    assert judge(Question(UNRELATED), found).word == "none"


@pytest.mark.anyio
async def test_a_question_in_another_language_has_a_mean_of_its_own(
    embedder: OnnxEmbedder,
) -> None:
    class Many(Shifted):
        background = MappingProxyType(
            {"mean": 0.75, "deviation": 0.02, "near": 0.85, "across": 0.72, "zh": 0.82}
        )

    many = Many(embedder)
    means = {
        (asked, *spoken): (await background_of(many, asked, spoken)).mean
        for asked, spoken in (("", ["ru"]), ("ru", ["ru"]), ("zh", ["zh"]), ("ru", ["en"]))
    }
    assert list(means.values()) == [0.75, 0.75, 0.82, 0.72]
