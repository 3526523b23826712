"""Global partition of sentences into segments by their embeddings: the default in place of a model's margins.

All boundaries are chosen at once by dynamic programming, so none depends on a threshold that history drags along
(notes/zeroindex §0.12). Not for: thresholds over margins (`margins.py`) or packing sentences to a length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from errors import ModelError, UsageError
from models.protocols import Embedder
from pipeline.documents import Sentence
from pipeline.raptor.lexical import count_terms, word_vectors
from pipeline.segment.judge import Judge
from pipeline.segment.margins import Rule, cut_by_margins, partition_margins, walk_back
from pipeline.text.tokens import count_tokens
from pipeline.work import check_cancelled, in_thread

Floats = NDArray[np.float32]
Ranges = tuple[tuple[int, int], ...]

PRICE: Final = 1.1
"""A segment's price, in units of a unit vector's own agreement with itself. On paragraphs strung together from foreign
articles 1.0, 1.1 and 1.2 give Pk .045, .023 and .026, on those of one article .228, .231, .231 (MiniLM, dev half)."""
LIKE: Final = 0.2
"""Similarity of neighbours below which the rule `fixed` sets a boundary; `python -m bench.segments`."""
_SHORT: Final = 1000.0
"""Price of a segment below the minimum, above any gain of a stretch that it could save."""
LONGEST: Final = 64
"""Most items of one segment, which bounds the work to 64 pairs an item."""
BATCH: Final = 64
"""Sentences embedded between two points where a call can be cancelled."""


def partition(
    vectors: Floats, costs: Sequence[int], *, minimum: int, maximum: int, price: float = PRICE
) -> list[tuple[int, int]]:
    """Cut a sequence into the segments whose members agree most.

    Maximises the sum over segments of |sum of its vectors|^2 / its size - `price`, which is the least scatter about the
    segments' means with a price on every segment. Of all partitions whose segments cost at most `maximum`, those
    with segments below `minimum` are taken only where nothing else fits. Time n x 64 x d, memory n.

    Args:
        vectors: Unit vectors in order, [n, d].
        costs: Tokens of each item, [n].
        minimum: Least tokens of a segment.
        maximum: Most tokens of a segment; one item may exceed it alone.
        price: What a further segment costs; higher means longer segments.

    Returns:
        Ranges [start, end) that cover 0..n in order.
    """
    n = len(vectors)
    totals = np.concatenate(([0], np.cumsum(costs, dtype=np.int64)))
    best = np.zeros(n + 1)
    came_from = np.zeros(n + 1, dtype=np.int64)
    pairs = np.zeros(0)
    for j in range(1, n + 1):
        if j % 1024 == 0:
            check_cancelled()
        low = max(0, j - LONGEST)
        # pairs[i]: similarity of all pairs within [low + i, j), for every start that is not too far back.
        beside = vectors[low : j - 1] @ vectors[j - 1]
        before = pairs[len(pairs) - len(beside) :]
        pairs = np.append(before + np.cumsum(beside[::-1], dtype=np.float64)[::-1], 0.0)
        size = np.arange(j - low, 0, -1)
        cost = totals[j] - totals[low:j]
        value = best[low:j] + 1 + 2 * pairs / size - price - np.where(cost < minimum, _SHORT, 0.0)
        value[:-1][cost[:-1] > maximum] = -np.inf
        start = int(np.argmax(value))
        best[j], came_from[j] = value[start], low + start
    return walk_back(came_from)


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """How sentences become segments."""

    minimum: int = 50
    """Least tokens of a segment, where the text is that long."""
    maximum: int = 200
    """Most tokens of a segment, unless one sentence is longer."""
    rule: Literal["partition"] | Rule = "partition"
    """`partition` chooses all boundaries together; the others are thresholds over neighbours (`margins.py`)."""
    threshold: float | None = None
    """For `fixed`: below it a boundary is set; None is 0 for margins (as likely yes as no), 0.2 for similarities."""

    def __post_init__(self) -> None:
        """Refuse lengths that cannot work.

        Raises:
            UsageError: The minimum is negative or not below the maximum.
        """
        if not 0 <= self.minimum < self.maximum:
            raise UsageError(
                f"Segments of {self.minimum} to {self.maximum} tokens are impossible.", hint="Set minimum < maximum."
            )


@dataclass(frozen=True, slots=True)
class Segmented:
    """Segments, and what found them."""

    ranges: Ranges
    """[start, end) of sentence indices that cover all of them in order; empty for no sentence."""
    made_by: str
    """The generator, the embedder, or `words`."""
    fallback: str = ""
    """Why a generator that is set did not find them."""


async def segment_by(
    sentences: Sequence[Sentence], *, judge: Judge | None, embedder: Embedder | None, options: SegmentOptions
) -> Segmented:
    """Cut a document's sentences into segments: by a generator's margins where there is one, else by embeddings.

    Args:
        sentences: In reading order.
        judge: Asks the generator; None, or one that fails, leaves it to `segment`.
        embedder: As for `segment`.
        options: Lengths and rule; `partition` chooses all boundaries over the margins together.

    Raises:
        ModelError: The embedder failed.
    """
    fallback = ""
    if judge is not None and len(sentences) > 1:
        try:
            judged = await judge.margins([sentence.text for sentence in sentences])
        except ModelError as error:
            fallback = judge.trouble = f"Boundaries by embeddings: {error}"
        else:
            costs = await in_thread(lambda: [count_tokens(sentence.text) + 1 for sentence in sentences])
            return Segmented(tuple(await in_thread(_cut_margins, judged.margins, costs, options, 0.0)), judge.name)
    ranges = await segment(sentences, embedder=embedder, options=options)
    return Segmented(ranges, embedder.name if embedder is not None else "words", fallback)


async def segment(sentences: Sequence[Sentence], *, embedder: Embedder | None, options: SegmentOptions) -> Ranges:
    """Cut a document's sentences into segments about one subject each.

    Args:
        sentences: In reading order.
        embedder: Makes the sentence vectors; None, or one that cannot read the text, gives word vectors.
        options: Lengths and rule.

    Returns:
        Ranges [start, end) of sentence indices that cover all of them in order; empty for no sentence.

    Raises:
        ModelError: The embedder failed.
    """
    texts = [sentence.text for sentence in sentences]
    if not texts:
        return ()
    costs = [count_tokens(text) + 1 for text in texts]
    if embedder is None or not embedder.reads(" ".join(texts)[:20_000]):
        vectors = await in_thread(_lexical_vectors, texts)
    else:
        batches = [await embedder.embed(texts[i : i + BATCH], kind="passage") for i in range(0, len(texts), BATCH)]
        vectors = np.concatenate(batches)
    return tuple(await in_thread(_cut, vectors, costs, options))


def _lexical_vectors(texts: Sequence[str]) -> Floats:
    index, _ = count_terms([[text] for text in texts], [""] * len(texts))
    return word_vectors(index)


def _cut(vectors: Floats, costs: Sequence[int], options: SegmentOptions) -> list[tuple[int, int]]:
    if options.rule == "partition":
        return partition(vectors, costs, minimum=options.minimum, maximum=options.maximum)
    return _cut_margins((vectors[:-1] * vectors[1:]).sum(axis=1), costs, options, LIKE)


def _cut_margins(
    margins: NDArray[np.floating], costs: Sequence[int], options: SegmentOptions, threshold: float
) -> list[tuple[int, int]]:
    if options.rule == "partition":
        return partition_margins(margins, costs, minimum=options.minimum, maximum=options.maximum)
    return cut_by_margins(
        margins,
        costs,
        rule=options.rule,
        threshold=threshold if options.threshold is None else options.threshold,
        minimum=options.minimum,
        maximum=options.maximum,
    )
