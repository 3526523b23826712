"""The scores and the verdict of reading documents for a question.

Not for: making them (`pipeline/reading/extract.py`), or choosing passages
(`pipeline/evidence/`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.question.question import NOTHING, Question
from readers.page import ScoreMaker, Sentence, Verdict


@dataclass(frozen=True)
class Reading:
    """The result of scoring documents for a question: one score per unit, and the
    verdict.

    Without slots, since `places` is made once and kept.
    """

    verdict: Verdict
    """`none` is the paper's None: no unit answers the question. `unsure`: the nearest
    ones may or may not."""
    note: str
    """What the verdict rests on beside the passages, as sentences; may be empty."""
    confidence: float
    """0..1; comparable across calls with the same models."""
    tagged: tuple[tuple[Sentence, ...], ...]
    """All units of each document in reading order."""
    values: NDArray[np.float32]
    """Scores [units], numbered through all documents; 0..1, comparable within this
    reading only."""
    made_by: ScoreMaker
    cut: bool = False
    """It is `unsure` because what could hold the answer was not read."""
    unread: tuple[str, ...] = ()
    """Addresses of documents that there was no time to read whole; `tagged` has what was
    read of them."""
    late: bool = False
    """Whether time ended before models had compared as much with the question as they
    otherwise do."""
    failure: str = ""
    """What a model that failed said; the scores are made without it."""
    question: Question = NOTHING
    """What was asked."""
    absent: tuple[str, ...] = ()
    """Names, numbers, options and versions of the question that nothing read has; the
    latter two alone where it surely answers."""
    only: frozenset[int] = frozenset()
    """Units that a model chose as the answer and the scores support, and the best
    others: they come first in the evidence. Empty without such a choice."""

    @property
    def answered(self) -> bool:
        """Whether the verdict is `answered`."""
        return self.verdict == "answered"

    @cached_property
    def places(self) -> Sequence[tuple[int, Sentence]]:
        """Index of the document and the unit of each score [units]."""
        return [
            (index, unit) for index, units in enumerate(self.tagged) for unit in units
        ]
