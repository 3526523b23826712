"""Cutting a text into segments about one subject: all boundaries are chosen at once,
within bounds on their length.

One dynamic programme serves both kinds of evidence: how much the vectors of a segment
agree (the default), and how far the margin at each boundary falls short (IDMS, margin
sampling chunking). The running mean of the paper splits about half of all gaps whatever
their level, so it is a choice and not the default. Not for: margins (`idms.py`)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from cancellation import check_cancelled
from models.protocols import Embedder
from pipeline.raptor.leaves import Ranges, sentence_costs
from pipeline.reading.bm25 import Floats, word_vectors
from pipeline.reading.relevance import EMBEDDED_AT_ONCE
from pipeline.text.words import index_terms
from pipeline.work import in_thread
from readers.page import Sentence

Margins = NDArray[np.floating]
Rule = Literal["partition", "running"]

PRICE: Final = 1.1
"""What a further segment costs, in units of a unit vector's agreement with itself;
higher means longer segments."""
SEGMENT_ITEMS: Final = 64
"""Most items of one segment, which bounds the work to 64 ranges an item."""


async def segment(
    sentences: Sequence[Sentence],
    *,
    embedder: Embedder | None,
    rule: Rule = "partition",
    minimum: int,
    maximum: int,
) -> Ranges:
    """Cut a document's sentences into segments of `minimum` to `maximum` tokens, where
    the text allows it.

    By the vectors of `embedder`, or of words where it is None or cannot read the text;
    `rule` is `partition`, or the running mean over the cosines of neighbours. Raises
    `ModelError`: the embedder failed."""
    texts = [sentence.text for sentence in sentences]
    if not texts:
        return []
    if embedder is None or not embedder.reads(" ".join(texts)[:20_000]):
        vectors = await in_thread(
            lambda: word_vectors([Counter(index_terms(text)) for text in texts])
        )
    else:
        starts = range(0, len(texts), EMBEDDED_AT_ONCE)
        batches = [
            await embedder.embed(texts[i : i + EMBEDDED_AT_ONCE], kind="passage")
            for i in starts
        ]
        vectors = np.concatenate(batches)
    costs = await in_thread(sentence_costs, texts)
    if rule == "partition":
        return await in_thread(
            partition, vectors, costs, minimum=minimum, maximum=maximum
        )
    cosines = (vectors[:-1] * vectors[1:]).sum(axis=1)
    return await in_thread(
        cut_by_margins, cosines, costs, rule=rule, minimum=minimum, maximum=maximum
    )


def partition(
    vectors: Floats, costs: Sequence[int], *, minimum: int, maximum: int
) -> Ranges:
    """Return the segments whose members agree most.

    Maximises the sum over segments of |sum of its vectors|^2 / its size - `PRICE`: the
    least scatter about the means of the segments, with a price on every segment.
    `vectors` are unit vectors in order [n, d], `costs` the tokens of each item [n];
    segments below `minimum` tokens are taken only where nothing else fits, one item may
    exceed `maximum`. Time n x 64 x d, memory n."""
    return _best_ranges(
        _agreements(vectors), costs, minimum, maximum, short=3.0 * len(vectors)
    )


def _agreements(vectors: Floats) -> Iterator[NDArray[np.float64]]:
    """For each end j = 1..n, what the segments [start, j) are worth, for the last
    `SEGMENT_ITEMS` starts in order."""
    pairs = np.zeros(0)
    for j in range(1, len(vectors) + 1):
        low = max(0, j - SEGMENT_ITEMS)
        # pairs[i]: sum of the cosines of all pairs within [low + i, j).
        beside = vectors[low : j - 1] @ vectors[j - 1]
        before = pairs[len(pairs) - len(beside) :]
        pairs = np.append(before + np.cumsum(beside[::-1], dtype=np.float64)[::-1], 0.0)
        yield 1 + 2 * pairs / np.arange(j - low, 0, -1) - PRICE


def cut_by_margins(
    margins: Margins, costs: Sequence[int], *, rule: Rule, minimum: int, maximum: int
) -> Ranges:
    """Return the segments whose boundaries together fall furthest below what the rule
    asks of a margin.

    `margins` say how much items i and i+1 belong together [n - 1], `costs` are the
    tokens of each item [n]. Without bounds on the length there is a boundary wherever a
    margin is below the mean of all margins before it, which starts at 0 (`running`, the
    paper's; an equal margin is a boundary, too), or below the mean less one standard
    deviation (`partition`).
    """
    margins = np.asarray(margins, dtype=np.float64)
    gains: NDArray[np.floating] = np.zeros(0)
    if rule == "running" and len(margins):
        gains = (
            np.concatenate(
                ([0.0], np.cumsum(margins)[:-1] / np.arange(1, len(margins)))
            )
            - margins
            + 1e-9
        )
    elif len(margins):
        gains = margins.mean() - margins.std() - margins
    # A segment is worth what the boundary before it is; the beginning of the text is none.
    opened = np.concatenate(([0.0], gains))
    worths = (
        opened[max(0, end - SEGMENT_ITEMS) : end] for end in range(1, len(costs) + 1)
    )
    return _best_ranges(
        worths, costs, minimum, maximum, short=1 + 2 * float(np.abs(gains).sum())
    )


def _best_ranges(
    worths: Iterator[NDArray[np.float64]],
    costs: Sequence[int],
    minimum: int,
    maximum: int,
    *,
    short: float,
) -> Ranges:
    """Return the ranges that are worth most together, by dynamic programming over their
    ends.

    `worths` has for each end, in order, the worth of the ranges that end there, for the
    last `SEGMENT_ITEMS` starts. A range below `minimum` tokens pays `short`, more than all
    ranges together can be worth."""
    n = len(costs)
    totals = np.concatenate(([0], np.cumsum(costs, dtype=np.int64)))
    best = np.zeros(n + 1)
    came_from = [0] * (n + 1)
    for end, worth in enumerate(worths, start=1):
        if end % 1024 == 0:
            check_cancelled()
        low = end - len(worth)
        sizes = totals[end] - totals[low:end]
        value = best[low:end] + worth - np.where(sizes < minimum, short, 0.0)
        value[:-1][sizes[:-1] > maximum] = -np.inf
        start = int(np.argmax(value))
        best[end], came_from[end] = value[start], low + start
    ranges: Ranges = []
    while n > 0:
        ranges.append((came_from[n], n))
        n = came_from[n]
    return ranges[::-1]
