"""What a model said beside what the gate said: one verdict, one order of the sentences, one reason.

    gate        model names lines          model says None
    answered    answered                   unsure, the gate's order
    unsure      answered if it names one   none
                of the gate's best three,
                else unsure
    none        unsure                     none

Neither is believed alone against the other: a small model seldom says None, and the gate cannot read. Not for: asking
(`pipeline/extract/ask.py`), or the rules' verdict (`pipeline/rank/verdict.py`).
"""

from typing import Final

import numpy as np

from pipeline.documents import Verdict
from pipeline.extract.ask import Chosen
from pipeline.rank.fuse import Floats

ASK_FROM: Final = 0.05
"""Confidence of the gate below which no model is asked: a quarter of its threshold. A call of a model takes seconds."""
LIFT: Final = 0.25
"""What a vote of 1 adds to a sentence, as a share of the best score. SmolLM2 of 135 million parameters, the one model
measured (`python -m bench.asking`), orders HotpotQA worse at any lift from .1 on (R-precision .69 -> .61 and below); at
.25 its share of gold within 256 tokens is level with the rules' (.83; tags .89), and from .5 on it falls."""
NEAR: Final = 3
"""Best sentences of the gate, one of which the model must name to turn `unsure` into `answered`."""


def agree(verdict: Verdict, chosen: Chosen, values: Floats) -> tuple[Verdict, str]:
    """Return the verdict of both, and how the model came to stand to the gate, as a clause for the reason."""
    best = set(np.argsort(-values, kind="stable")[:NEAR].tolist())
    names = bool(chosen.rows)
    if verdict == "answered":
        return ("answered", "the model agrees") if names else ("unsure", "but the model finds no line that answers")
    if verdict == "unsure" and names:
        near = not best.isdisjoint(chosen.rows)
        return ("answered", "and the model agrees") if near else ("unsure", "and the model names other sentences")
    if verdict == "unsure":
        return "none", "and the model finds no line that answers"
    if names:
        return "unsure", "but the model names lines that may answer"
    return "none", "and the model agrees"


def lifted(values: Floats, chosen: Chosen, *, lift: float = LIFT) -> Floats:
    """Return the scores [size] with the model's weights added, `lift` times the best score for a weight of 1."""
    raised = values.copy()
    if len(values) and chosen.rows:
        rows = np.fromiter(chosen.weights, dtype=np.int64)
        raised[rows] += lift * float(values.max()) * np.fromiter(chosen.weights.values(), dtype=np.float32)
    return raised
