"""What a cosine means for a model: how near to each other it puts texts that have
nothing to do with each other, and a question and its answer.

An embedder's cosines lie where its training left them: unrelated texts have about .05
with MiniLM, .75 with E5. So a cosine is converted to standard deviations above the mean
of unrelated texts, on the scale of the built-in English model, to which the verdict's
weights were fitted. A model that puts a question no nearer to its answer than to other
texts (random weights, a broken server) gives no cosines at all: they would say that
everything is near. Carried models have these figures in their manifest; for others they
are measured once, on the texts of `background.json`, two dozen questions with a passage
that answers each. Not for: ranking, which standardises by itself (`relevance.py`)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, cast

import numpy as np

from models.pair import ENGLISH
from models.protocols import Embedder, Vectors
from pipeline.reading.bm25 import Floats

ACROSS, BEST = "across", "best_across"
"""Where a manifest has the mean of texts in two languages, and `Background.best` of
these."""
PLAUSIBLE: Final = 2.0
"""Deviations by which a question must be nearer to its answer than to unrelated texts,
in the mean, before a model's cosines say anything; carried models have more than twice
as many."""


@dataclass(frozen=True, slots=True)
class Background:
    """Cosines of a model."""

    mean: float
    """Of questions with passages that do not answer them."""
    deviation: float
    near: float
    """Mean of questions with the passages that answer them."""
    unrelated: Vectors | None = field(default=None, compare=False)
    """Vectors of questions that no page answers, where a page's nearness to these is to
    be taken off; see `beside`."""
    best: float = 0.0
    """Mean cosine of such a question with the nearest window of a page."""

    @property
    def separates(self) -> bool:
        """Whether cosines separate answers from unrelated text."""
        return self.near - self.mean >= PLAUSIBLE * max(self.deviation, 1e-6)

    def beside(self, nearest: float) -> "Background":
        """Return the figures for pages to whose nearest windows unrelated questions
        have the mean cosine `nearest`."""
        lean = LEANING * (nearest - self.best)
        return Background(self.mean + lean, self.deviation, self.near + lean)

    def on_scale(self, cosines: Floats) -> Floats:
        """Return cosines on the scale of the carried English model; NaN stays."""
        if self == SCALE:
            return cosines
        steps = (cosines - self.mean) / self.deviation
        return np.asarray(SCALE.mean + SCALE.deviation * steps, dtype=np.float32)


LEANING: Final = 0.75
"""Part that is taken off across languages, where cosines say least, of what a question
is nearer to unrelated texts than others are, and a page to unrelated questions."""
SCALE: Final = Background(0.0336, 0.0775, 0.4436)
"""Of the carried English model, to which weights and bounds of cosines were fitted."""
_measured: Final[dict[str, Background]] = {}
_unrelated: Final[dict[str, tuple[Vectors, Vectors]]] = {}
"""Vectors of the questions and of the passages of `background_texts`, by model."""


async def background_of(
    embedder: Embedder,
    question_language: str = "",
    page_languages: Sequence[str] = (),
    questions: Vectors | None = None,
) -> Background:
    """Return the figures of a model: its own, or measured at its first use; raises
    `ModelError`.

    A model may say another mean for a language, or `across` languages: texts in one
    language are nearer to each other than to texts in another. Across languages the
    mean is also that of the question itself, whose vectors are `questions`. What was
    measured is kept until the process ends."""
    measured_before = cast(
        Mapping[str, float] | None, getattr(embedder, "background", None)
    )
    if measured_before:
        kind = (
            question_language
            if not question_language or question_language in page_languages
            else ACROSS
        )
        apart = measured_before["near"] - measured_before["mean"]
        mean = measured_before.get(kind, measured_before["mean"])
        if kind == ACROSS and BEST in measured_before and questions is not None:
            unrelated_questions, passages = await _unrelated_texts(embedder)
            usual = measured_before["mean"] if question_language == ENGLISH else mean
            mean += LEANING * (float((questions @ passages.T).mean()) - usual)
            return Background(
                mean,
                measured_before["deviation"],
                mean + apart,
                unrelated_questions,
                measured_before[BEST],
            )
        return Background(mean, measured_before["deviation"], mean + apart)
    if embedder.name not in _measured:
        _measured[embedder.name] = measured(*await _unrelated_texts(embedder))
    return _measured[embedder.name]


async def _unrelated_texts(embedder: Embedder) -> tuple[Vectors, Vectors]:
    """Return the vectors of questions and passages, which are embedded once; raises
    `ModelError`."""
    if embedder.name not in _unrelated:
        questions, passages = background_texts()
        queries = await embedder.embed(questions, kind="query")
        _unrelated[embedder.name] = (
            queries,
            await embedder.embed(passages, kind="passage"),
        )
    return _unrelated[embedder.name]


def measured(queries: Vectors, passages: Vectors) -> Background:
    """Return the figures of vectors of `background_texts`."""
    cosines = (queries @ passages.T).astype(np.float64)
    apart = cosines[~np.eye(len(cosines), dtype=bool)]
    mean, deviation, near = (
        round(float(value), 4)
        for value in (apart.mean(), apart.std(), np.diag(cosines).mean())
    )
    return Background(mean, deviation, near)


@cache
def background_texts() -> tuple[list[str], list[str]]:
    """Return questions, and the passage that answers each."""
    pairs = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return [question for question, _ in pairs], [passage for _, passage in pairs]
