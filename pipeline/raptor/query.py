"""Asking a tree: guided (the default), or by its nodes: collapsed, traversal, flat
(RAPTOR §3 Querying).

Guided: leaves that are near the question by the kept vectors and words are candidates,
the core reads their units (`pipeline/reading`), and a unit's neighbors raise its score.
A collapsed tree whose summaries compete with leaves for the room loses to its own
leaves by 1 to 5 points; a question about the whole gets an overview (`overview.py`).
Not for: building (`build.py`), showing (`evidence.py`), or writing an answer.
"""

from bisect import bisect, bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errors import UsageError
from models.protocols import Embedder
from pipeline.document.page import Document, Sentence
from pipeline.document.units import tag_sentences
from pipeline.question.question import Question
from pipeline.raptor.leaves import leaves_as_document
from pipeline.raptor.summarise import SUMMARY_SENTENCE_TOKENS
from pipeline.raptor.tree import Tree, TreeNode
from pipeline.reading.bm25 import PageUnits, blend, page_units, unit_range
from pipeline.reading.extract import read_documents, read_units
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import EMBED_TOKENS, Reader
from pipeline.text.tokens import Budget
from pipeline.text.words import word_runs
from pipeline.work import in_thread, traced

Floats = NDArray[np.float32]
NodeMode = Literal["collapsed", "traversal", "flat"]
Mode = Literal["guided", NodeMode]
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


class Traversal(NamedTuple):
    """How a traversal goes."""

    nodes: int = 10
    """Most nodes that it keeps of each layer (RAPTOR's k)."""
    depth: int = 0
    """Layers from the roots down (RAPTOR's d); 0 for all."""


WALK: Final = Traversal()


class ChosenNode(NamedTuple):
    """A node that was chosen."""

    node: TreeNode
    text: str
    tokens: int
    score: float
    """Comparable within one answer only."""


@traced("read_tree")
async def read_tree(
    tree: Tree,
    question: Question,
    pages: Pages,
    *,
    reader: Reader,
    embedder: Embedder | None,
    max_tokens: int,
) -> tuple[list[Document], Reading]:
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
        ModelError: A model failed.
    """
    # 1. Candidates: the best leaves by words and kept vectors
    vector = await _vector(tree, question, embedder)
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
        or leaves_as_document(tree.sources[index], [tree.leaves[leaf] for leaf in own])
        for index, own in by_place.items()
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


async def _vector(
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
    found: Floats = (await embedder.embed([question.text], kind="query"))[0]
    return found


def _candidates(
    tree: Tree, question: Question, vector: Floats | None, most: int
) -> list[int]:
    """The best leaves of at most `most` tokens together, in reading order; the very
    best even where it is longer."""
    tokens = np.asarray([leaf.tokens for leaf in tree.leaves])
    if tokens.sum() <= most:
        return list(range(len(tokens)))
    order = np.argsort(-_scores(tree, question, vector), kind="stable")
    kept = np.cumsum(tokens[order]) <= most
    kept[0] = True
    return sorted(order[kept].tolist())


def _scores(tree: Tree, question: Question, vector: Floats | None) -> Floats:
    """One score a leaf: words and cosine blended."""
    shared = tree.word_scores(question)
    if vector is None:
        return shared
    return blend([shared, _cosines(tree.vectors[: len(tree.leaves)], vector)])


def _node_scores(tree: Tree, question: Question, vector: Floats | None) -> Floats:
    """One score a node: its cosine; without a vector the words of its leaves."""
    if vector is not None:
        return _cosines(tree.vectors, vector)
    shared = tree.word_scores(question)
    return np.array(
        [shared[list(node.leaves)].mean() for node in tree.nodes], dtype=np.float32
    )


def _cosines(rows: NDArray[np.float16], vector: Floats) -> Floats:
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
    for document, own in zip(documents, leaves, strict=True):
        starts = [tree.leaves[leaf].start for leaf in own]
        ends = [tree.leaves[leaf].end for leaf in own]
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
        kept = [
            (own[leaf], unit)
            for leaf, unit in places
            if starts[leaf] <= unit.start < ends[leaf]
        ]
        tagged.append(tuple(unit for _, unit in kept))
        vectors = (
            tree.vectors[[leaf for leaf, _ in kept]].astype(np.float32)
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
    near = np.concatenate(
        [_around(reading.values[low:high]) for low, high in pairwise(edges)]
        or [reading.values]
    )
    blocks = [documents[index].blocks[unit.block] for index, unit in reading.places]
    gains = np.array(
        [block.main and not block.injection for block in blocks], dtype=np.float32
    )
    values = reading.values + np.float32(SURROUNDINGS_LIFT) * gains * unit_range(
        near
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


@traced("query_tree")
async def query_tree(
    tree: Tree,
    question: Question,
    *,
    mode: NodeMode,
    max_tokens: int,
    embedder: Embedder | None,
    walk: Traversal = WALK,
    repeats: bool = False,
) -> tuple[ChosenNode, ...]:
    """Return the nodes of `tree` that answer `question` best, within `max_tokens`
    tokens in all.

    Summaries come first, then documents by their best passage, each in reading order.

    A tree without leaves gives none; a node that does not fit is passed over.

    Args:
        question: In any language; words alone count where no embedder reads it.
        mode: The paper's `collapsed` and `traversal`, by cosine; `flat`: leaves as they
            score alone.
        embedder: The one that the tree was built with; None, or another, leaves words
            only.
        walk: How a traversal goes.
        repeats: Whether `collapsed` and `traversal` may say a thing twice, as printed
            and as trees of the paper's clusterings (`gmm`, `umap`) always do.

    Raises:
        UsageError: The question is empty.
        ModelError: The embedder failed.
    """
    vector = await _vector(tree, question, embedder)
    repeats = (
        mode == "flat" or repeats or tree.built_with.options.clustering != "kmeans"
    )
    return await in_thread(
        _answer, tree, question, vector, mode, max_tokens, walk=walk, repeats=repeats
    )


def _answer(
    tree: Tree,
    question: Question,
    vector: Floats | None,
    mode: NodeMode,
    max_tokens: int,
    *,
    walk: Traversal,
    repeats: bool,
) -> tuple[ChosenNode, ...]:
    if not tree.leaves:
        return ()
    scores = (_scores if mode == "flat" else _node_scores)(tree, question, vector)
    order = np.argsort(-scores, kind="stable").tolist()
    if mode == "traversal":
        walked = _walked(tree, scores, walk)
        # Root first, the summaries alone would fill the budget of a deep tree: the likeliest of all
        # walked go in.
        order = [i for i in order if i in walked]
    chosen = take(tree, order, max_tokens, distinct=not repeats)
    return tuple(_passages(tree, chosen, scores))


def _passages(tree: Tree, chosen: Sequence[int], scores: Floats) -> list[ChosenNode]:
    """The chosen nodes: summaries from the top, then documents by their best passage,
    reading order inside."""
    best: dict[int, float] = {}
    for i in chosen:
        if i < len(tree.leaves):
            document = tree.leaves[i].document
            best[document] = max(best.get(document, -np.inf), float(scores[i]))

    def place(i: int) -> tuple[int, float, int, int]:
        node = tree.nodes[i]
        if node.is_summary:
            return (0, -node.layer, node.leaves[0], i)
        document = tree.leaves[i].document
        return (1, -best[document], document, i)

    nodes = [(tree.nodes[i], float(scores[i])) for i in sorted(chosen, key=place)]
    return [ChosenNode(node, node.text, node.tokens, score) for node, score in nodes]


def _walked(tree: Tree, scores: Floats, walk: Traversal) -> set[int]:
    """The likeliest nodes of each layer, from the roots down among the children of
    those above. A `walk.depth` of 0 is all layers."""
    walked: set[int] = set()
    level = set(tree.roots)
    for _ in range(walk.depth or len(tree.layers)):
        best = sorted(level, key=lambda i: (-float(scores[i]), i))[: walk.nodes]
        walked.update(best)
        level = {child for node in best for child in tree.nodes[node].children} - walked
    return walked


def take(
    tree: Tree, order: Sequence[int], max_tokens: int, *, distinct: bool
) -> list[int]:
    """Return nodes of `order` whose tokens together are at most `max_tokens`; what does
    not fit is skipped.

    Labels and buttons, which are shorter than a sentence, are passed over.

    Args:
        order: Node indices, best first.
        distinct: Say nothing twice: pass over nodes half of whose runs of three terms
            are chosen already, such as a summary of leaves that are shown; their room
            goes to the next node."""
    chosen: list[int] = []
    said: set[tuple[str, ...]] = set()
    budget = Budget(max_tokens)
    for i in order:
        node = tree.nodes[i]
        if budget.left < SUMMARY_SENTENCE_TOKENS.start:
            break
        if not SUMMARY_SENTENCE_TOKENS.start <= node.tokens <= budget.left:
            continue
        if distinct:
            triples = word_runs(node.text)
            if triples and 2 * len(triples & said) >= len(triples):
                continue
            said |= triples
        chosen.append(i)
        budget.spend(node.tokens)
    return chosen
