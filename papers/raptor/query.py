"""Asking a tree by its nodes: collapsed, traversal, flat (RAPTOR §3 Querying).

Summaries compete with leaves for the room (`python -m bench.papers_raptor --ablation`).
Not for: building (`build.py`), showing (`evidence.py`), the
default (`pipeline/raptor/query.py`)."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from models.protocols import Embedder
from papers.raptor.extract import SUMMARY_SENTENCE_TOKENS
from papers.raptor.tree import NodeTree, TreeNode
from pipeline.question.question import Question
from pipeline.raptor.query import cosines, leaf_scores, question_vector
from pipeline.reading.bm25 import Floats
from pipeline.text.tokens import Budget
from pipeline.text.words import index_terms
from pipeline.work import in_thread, traced

NodeMode = Literal["collapsed", "traversal", "flat"]


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


@traced("query_tree")
async def query_tree(
    tree: NodeTree,
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
    vector = await question_vector(tree, question, embedder)
    repeats = mode == "flat" or repeats or tree.built_with.nodes.clustering != "kmeans"
    return await in_thread(
        _answer, tree, question, vector, mode, max_tokens, walk=walk, repeats=repeats
    )


def _answer(
    tree: NodeTree,
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
    scores = (leaf_scores if mode == "flat" else _node_scores)(tree, question, vector)
    order = np.argsort(-scores, kind="stable").tolist()
    if mode == "traversal":
        walked = _walked(tree, scores, walk)
        # Root first, the summaries alone would fill the budget of a deep tree: the likeliest of all
        # walked go in.
        order = [i for i in order if i in walked]
    chosen = take(tree, order, max_tokens, distinct=not repeats)
    return tuple(_passages(tree, chosen, scores))


def _passages(
    tree: NodeTree, chosen: Sequence[int], scores: Floats
) -> list[ChosenNode]:
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


def _walked(tree: NodeTree, scores: Floats, walk: Traversal) -> set[int]:
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
    tree: NodeTree, order: Sequence[int], max_tokens: int, *, distinct: bool
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
            terms = index_terms(node.text, keep_stop_words=True)
            triples = set(zip(terms, terms[1:], terms[2:], strict=False))
            if triples and 2 * len(triples & said) >= len(triples):
                continue
            said |= triples
        chosen.append(i)
        budget.spend(node.tokens)
    return chosen


def _node_scores(tree: NodeTree, question: Question, vector: Floats | None) -> Floats:
    """One score a node: its cosine; without a vector the words of its leaves."""
    if vector is not None:
        return cosines(tree.vectors, vector)
    shared = tree.word_scores(question)
    return np.array(
        [shared[list(node.leaves)].mean() for node in tree.nodes], dtype=np.float32
    )
