"""Asking a tree.

Leaves that are near the question by the kept vectors and words are candidates, the core
reads their units (`pipeline/reading`), and a unit's neighbors raise its score. Not for:
building (`build.py`), a question about the whole (`overview.py`), summaries
(`papers/raptor`), or writing an answer.
"""

from bisect import bisect, bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from errors import ModelError, UsageError
from models.protocols import Embedder
from pipeline.document.units import is_injected, tag_sentences
from pipeline.question.question import Question
from pipeline.raptor.leaves import leaves_as_document
from pipeline.raptor.tree import Tree
from pipeline.reading.bm25 import Floats, PageUnits, blend, page_units, unit_range
from pipeline.reading.extract import read_documents, read_units
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import EMBED_TOKENS, Reader
from pipeline.work import in_thread, traced
from readers.page import Document, Sentence

Pages = Callable[[Sequence[int]], Awaitable[Mapping[int, Document]]]
"""Gives the pages with these indices into `Tree.sources`, as far as they are at
hand."""

LIFT_REACH: Final = 20
"""Units on either side that lift one: about as much as is said about one subject. On
the even half of the questions of bench/raptor.py, meetings at 500, 1,000, 2,000 tokens:
.28, .44, .59 with 20, .26, .43, .60 with 40, .28, .40, .55 with 8; .26, .41, .58 with
the mean of a section (a run of leaves); .23, .34, .48 without a lift. All with 0.7 as
`SURROUNDINGS_LIFT`."""
SURROUNDINGS_LIFT: Final = 0.6
"""Part of the way to the best score by which the best surroundings lift a unit; the
best unit stays the best. Between 0.5, which finds .01 to .02 less on meetings than 0.7,
and 0.7, which shows .015 less of the asked questions at 512."""


@traced("read_leaves")
async def read_leaves(
    tree: Tree,
    question: Question,
    pages: Pages,
    *,
    reader: Reader,
    embedder: Embedder | None,
    max_tokens: int,
) -> tuple[Sequence[Document], Reading]:
    """Return the pages of `tree` that are worth reading and the core's reading of them,
    never a `none`.

    A tree that is small enough is read whole, as the core reads its pages; of a larger
    one the units of the best leaves, which replace the vectors of their units.

    Args:
        tree: Any tree, also one without leaves.
        question: In any language; words alone choose leaves where no embedder reads it.
        pages: Where documents come from; the leaves replace missing ones.
        embedder: The one that the tree was built with; None, or another, leaves words
            to choose leaves.

    Raises:
        UsageError: The question is empty.
    """
    # 1. Candidates: the best leaves by words and kept vectors
    try:
        vector = await question_vector(tree, question, embedder)
    except ModelError:  # the reading of the units names it
        vector = None
    leaves = await in_thread(
        _candidates, tree, question, vector, max(EMBED_TOKENS, 2 * max_tokens)
    )
    # 2. Their pages
    by_place: dict[int, list[int]] = {}
    for leaf in leaves:
        by_place.setdefault(tree.leaves[leaf].document, []).append(leaf)
    at_hand = await pages(list(by_place))
    documents = [
        at_hand.get(index)
        or leaves_as_document(
            tree.sources[index], [tree.leaves[leaf] for leaf in numbers]
        )
        for index, numbers in by_place.items()
    ]
    # 3. The core's reading of their units
    if len(leaves) == len(tree.leaves):
        reading = await read_documents(question, documents, reader=reader)
    else:
        units = await in_thread(
            _units,
            tree,
            documents,
            list(by_place.values()),
            with_vectors=vector is not None,
        )
        reading = await read_units(question, documents, *units, reader=reader)
    # 4. Surroundings lift
    return documents, lifted(documents, reading)


async def question_vector(
    tree: Tree, question: Question, embedder: Embedder | None
) -> Floats | None:
    """Return the question's vector where the tree's vectors can be compared with it,
    else None; raises `UsageError` for an empty question."""
    if not question:
        raise UsageError(
            "The question is empty.", hint="Pass a question about the sources."
        )
    if (
        embedder is None
        or embedder.name != tree.built_with.embedder
        or not embedder.reads(question.text)
    ):
        return None
    vectors: Floats = (await embedder.embed([question.text], kind="query"))[0]
    return vectors


def _candidates(
    tree: Tree, question: Question, vector: Floats | None, max_tokens: int
) -> list[int]:
    """The best leaves of at most `max_tokens` together, in reading order; the very
    best even where it is longer."""
    tokens = np.asarray([leaf.tokens for leaf in tree.leaves])
    if tokens.sum() <= max_tokens:
        return list(range(len(tokens)))
    order = np.argsort(-leaf_scores(tree, question, vector), kind="stable")
    fitting = np.cumsum(tokens[order]) <= max_tokens
    fitting[0] = True
    return sorted(order[fitting].tolist())


def leaf_scores(tree: Tree, question: Question, vector: Floats | None) -> Floats:
    """One score a leaf: words and cosine blended."""
    shared = tree.word_scores(question)
    if vector is None:
        return shared
    return blend([shared, cosines(tree.vectors[: len(tree.leaves)], vector)])


def cosines(rows: NDArray[np.float16], vector: Floats) -> Floats:
    """Return the cosine of each row [n, d] with a unit vector [d]."""
    return np.asarray(rows.astype(np.float32) @ vector, dtype=np.float32)


def _units(
    tree: Tree,
    documents: Sequence[Document],
    leaves: Sequence[Sequence[int]],
    *,
    with_vectors: bool,
) -> tuple[list[PageUnits], tuple[tuple[Sentence, ...], ...]]:
    """The units of some leaves of each document, with the vectors of their leaves."""
    pages: list[PageUnits] = []
    tagged: list[tuple[Sentence, ...]] = []
    for document, numbers in zip(documents, leaves, strict=True):
        starts = [tree.leaves[leaf].start for leaf in numbers]
        ends = [tree.leaves[leaf].end for leaf in numbers]
        # Of a long document few blocks hold a candidate, and cutting all of them takes longer than
        # the rest of a query.
        blocks = [
            index
            for index, block in enumerate(document.blocks)
            if bisect(ends, block.start) < bisect_left(starts, block.end)
        ]
        places = [
            (bisect(starts, unit.start) - 1, unit)
            for unit in tag_sentences(document, blocks)
        ]
        units = [
            (numbers[leaf], unit)
            for leaf, unit in places
            if starts[leaf] <= unit.start < ends[leaf]
        ]
        tagged.append(tuple(unit for _, unit in units))
        vectors = (
            tree.vectors[[leaf for leaf, _ in units]].astype(np.float32)
            if with_vectors
            else None
        )
        pages.append(replace(page_units(document, tagged[-1]), vectors=vectors))
    return pages, tuple(tagged)


def lifted(documents: Sequence[Document], reading: Reading) -> Reading:
    """Return a reading whose units gain from their neighbors; its verdict is never
    `none`.

    Furniture and prompt injections gain nothing.
    """
    edges = np.cumsum([0, *map(len, reading.tagged)]).tolist()
    surroundings = np.concatenate(
        [_around(reading.values[low:high]) for low, high in pairwise(edges)]
        or [reading.values]
    )
    gains = np.array(
        [
            documents[index].blocks[unit.block].main
            and not is_injected(documents[index], unit.block)
            for index, unit in reading.places
        ],
        dtype=np.float32,
    )
    values = reading.values + np.float32(SURROUNDINGS_LIFT) * gains * unit_range(
        surroundings
    ) * (1 - reading.values)
    return replace(
        reading,
        values=values,
        verdict="unsure" if reading.verdict == "none" else reading.verdict,
    )


def _around(values: Floats) -> Floats:
    """The mean of the values that are at most `LIFT_REACH` places away [n]."""
    running = np.pad(np.cumsum(values, dtype=np.float64), (1, 0))
    places = np.arange(len(values))
    low, high = (
        np.maximum(places - LIFT_REACH, 0),
        np.minimum(places + LIFT_REACH + 1, len(values)),
    )
    return np.asarray((running[high] - running[low]) / (high - low), dtype=np.float32)
