"""Boundaries where the margin between neighbours falls below a threshold (IDMS, margin sampling chunking).

A margin says how much two neighbouring sentences belong together: P(yes) - P(no) of a generator, or the cosine of
their embeddings. The paper's running mean splits about half of all gaps whatever their level (notes/zeroindex §0.12),
so it is selectable and not the default. Not for: computing margins, or choosing boundaries together (`partition.py`).
"""

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Rule = Literal["valleys", "deviation", "running", "fixed"]

WIDEST: Final = 64
"""Most items of one segment of `partition_margins`, which bounds its work."""
_SHORT: Final = 1000.0
"""Price of a segment below the minimum, above any gain of a stretch that it could save."""
VALLEY_DEPTH: Final = 0.5
"""Standard deviations above the mean depth from which a valley is a boundary (TextTiling's own cut-off)."""


def cut_by_margins(
    margins: NDArray[np.floating],
    costs: Sequence[int],
    *,
    rule: Rule,
    threshold: float,
    minimum: int,
    maximum: int,
) -> list[tuple[int, int]]:
    """Return ranges [start, end) over n items.

    Args:
        margins: How much items i and i+1 belong together, [n - 1].
        costs: Tokens of each item, [n].
        rule: How boundaries are found, see `boundaries`.
        threshold: For `fixed`.
        minimum: A boundary that would close a shorter segment is passed over.
        maximum: A longer segment is cut at its lowest margin, until it fits or is one item.
    """
    n = len(costs)
    if n == 0:
        return []
    cuts = boundaries(np.asarray(margins, dtype=np.float64), rule, threshold=threshold)
    totals = np.concatenate(([0], np.cumsum(costs)))
    ranges: list[tuple[int, int]] = []
    start = 0
    for end in [*np.flatnonzero(cuts) + 1, n]:
        long_enough = totals[end] - totals[start] >= minimum
        rest_long_enough = end == n or totals[n] - totals[end] >= minimum
        if end == n or (long_enough and rest_long_enough):
            ranges.extend(_fitting(margins, totals, (start, int(end)), maximum))
            start = int(end)
    return ranges


def partition_margins(
    margins: NDArray[np.floating], costs: Sequence[int], *, minimum: int, maximum: int
) -> list[tuple[int, int]]:
    """Return the ranges whose boundaries together lie furthest below the mean margin less one deviation.

    Without bounds these are the boundaries of the rule `deviation`; with them all lengths are kept by one optimum
    instead of by passing over boundaries from left to right. One item may exceed `maximum` alone, and segments below
    `minimum` are taken only where nothing else fits. Time n x 64.

    Args:
        margins: How much items i and i+1 belong together, [n - 1].
        costs: Tokens of each item, [n].
        minimum: Least tokens of a segment.
        maximum: Most tokens of a segment.
    """
    n = len(costs)
    if n == 0:
        return []
    values = np.asarray(margins, dtype=np.float64)
    spread = float(values.std()) if n > 1 else 0.0
    gains = (values.mean() - spread - values) / (spread or 1.0) if n > 1 else values
    totals = np.concatenate(([0], np.cumsum(costs, dtype=np.int64)))
    best = np.zeros(n + 1)
    came_from = np.zeros(n + 1, dtype=np.int64)
    for j in range(1, n + 1):
        low = max(0, j - WIDEST)
        sizes = totals[j] - totals[low:j]
        # What the boundary before each start is worth; the document's begin is none.
        opened = np.concatenate(([0.0], gains))[low:j]
        worth = best[low:j] + opened - np.where(sizes < minimum, _SHORT, 0.0)
        worth[:-1][sizes[:-1] > maximum] = -np.inf
        start = int(np.argmax(worth))
        best[j], came_from[j] = worth[start], low + start
    return walk_back(came_from)


def walk_back(came_from: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the ranges [start, end) of a best partition in order; `came_from` [n + 1] tells each end's start."""
    ranges: list[tuple[int, int]] = []
    end = len(came_from) - 1
    while end > 0:
        ranges.append((int(came_from[end]), end))
        end = int(came_from[end])
    return ranges[::-1]


def boundaries(margins: NDArray[np.float64], rule: Rule, *, threshold: float = 0.0) -> NDArray[np.bool_]:
    """Return for each gap whether a segment ends there, [n - 1].

    `fixed`: below `threshold`. `running`: not above the mean of all margins before, which starts at 0 (the paper's
    rule). `deviation`: below the mean less one standard deviation. `valleys`: deeper than the peaks beside it by
    more than the mean depth and half a deviation (TextTiling).
    """
    if not len(margins):
        return np.zeros(0, dtype=np.bool_)
    if rule == "fixed":
        return np.asarray(margins < threshold)
    if rule == "running":
        before = np.concatenate(([0.0], np.cumsum(margins)[:-1] / np.arange(1, len(margins))))
        return np.asarray(margins <= before)
    if rule == "deviation":
        return np.asarray(margins < margins.mean() - margins.std())
    depths = valley_depths(margins)
    deep = depths > depths.mean() + VALLEY_DEPTH * depths.std()
    lowest = np.asarray(margins <= np.minimum(np.roll(margins, 1), np.roll(margins, -1)))
    lowest[0] = len(margins) < 2 or margins[0] <= margins[1]
    lowest[-1] = len(margins) < 2 or margins[-1] <= margins[-2]
    return np.asarray(deep & lowest)


def valley_depths(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far each margin lies below the peaks that rise to its left and right, summed, [n - 1]."""
    return _rise(margins) + _rise(margins[::-1])[::-1]


def _rise(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Height of the peak reached by climbing to the left from each point, above the point."""
    peaks = margins.copy()
    for i in range(1, len(margins)):
        if margins[i - 1] >= margins[i]:
            peaks[i] = peaks[i - 1]
    return peaks - margins


def _fitting(
    margins: NDArray[np.floating], totals: NDArray[np.int64], span: tuple[int, int], maximum: int
) -> list[tuple[int, int]]:
    """Cut `span` at its lowest margins until every piece costs at most `maximum` or is one item."""
    done: list[tuple[int, int]] = []
    waiting = [span]
    while waiting:
        start, end = waiting.pop()
        if totals[end] - totals[start] <= maximum or end - start < 2:
            done.append((start, end))
            continue
        # The middle half only, so that a long run of items is not peeled one by one.
        quarter = (end - start) // 4
        low, high = start + quarter, max(start + quarter + 1, end - 1 - quarter)
        cut = low + int(np.argmin(margins[low:high])) + 1
        waiting.extend(((start, cut), (cut, end)))
    return sorted(done)
