"""How well some boundaries agree with the true ones: Pk and F1.

Not for: finding boundaries (`pipeline/segment`), or documents whose boundaries are known (`library.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Cut:
    """How well some boundaries agree with the true ones."""

    pk: float
    """Share of windows of half a true segment whose ends are wrongly taken for one segment, or for two; 0 is best."""
    f1: float
    """Of boundaries at exactly the true places."""
    count: int
    """Boundaries found."""


def agreement(found: Sequence[tuple[int, int]], true: Sequence[tuple[int, int]]) -> Cut:
    """Return how well the ranges `found` agree with `true`, both [start, end) and covering the same n > 1 items."""
    n = true[-1][1]
    ours, theirs = _labels(found, n), _labels(true, n)
    window = min(n - 1, max(1, round(n / len(true) / 2)))
    wrong = (ours[:-window] == ours[window:]) != (theirs[:-window] == theirs[window:])
    cuts, truth = {start for start, _ in found[1:]}, {start for start, _ in true[1:]}
    both = len(cuts) + len(truth)
    return Cut(float(np.mean(wrong)), 2 * len(cuts & truth) / both if both else 1.0, len(cuts))


def _labels(ranges: Sequence[tuple[int, int]], n: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    labels = np.zeros(n, dtype=np.int64)
    for number, (start, end) in enumerate(ranges):
        labels[start:end] = number
    return labels
