"""Trees of the sets of `bench.longdoc`, asked in every way that `bench.raptor` compares.

Not for: sizes and costs (`bench/raptor_sizes.py`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.longdoc import Question, Spans, groups_of
from models.protocols import Embedder
from pipeline.raptor.build import build_tree
from pipeline.raptor.query import Mode, Passage, QueryOptions, fill, query_tree
from pipeline.raptor.tree import Tree, TreeOptions

METHODS: Final = (
    "leaves, cosine",
    "leaves, BM25",
    "leaves, fused",
    "paper's collapsed",
    "paper's traversal",
    "collapsed",
    "traversal",
    "guided",
)
MODES: Final[dict[str, Mode]] = {
    "leaves, fused": "flat",
    "paper's collapsed": "collapsed",
    "paper's traversal": "traversal",
    "collapsed": "collapsed",
    "traversal": "traversal",
    "guided": "guided",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A tree and the questions put to it."""

    tree: Tree
    questions: list[Question]


async def asked_trees(name: str, embedder: Embedder, options: TreeOptions, most: int | None) -> list[Asked]:
    """Build the trees of one set: one over all documents where the set is a corpus, else one a document."""
    return [
        Asked(await build_tree(group.documents, embedder=embedder, options=options, store=None), group.questions)
        for group in groups_of(name, most=most)
    ]


async def picked(tree: Tree, question: str, method: str, embedder: Embedder, budget: int) -> Spans:
    """Return the spans that `method` puts into `budget` tokens; of a summary, those of its sentences."""
    if method in MODES:
        options = QueryOptions(MODES[method], budget, by_cosine=method.startswith("paper's"))
        return spans_of(tree, await query_tree(tree, question, options=options, embedder=embedder))
    if method == "leaves, BM25":
        scores = tree.lexical.scores(question)
    else:
        vector = (await embedder.embed([question], kind="query"))[0]
        scores = tree.vectors[: len(tree.leaves)].astype(np.float32) @ vector
    chosen = fill(tree, np.argsort(-scores, kind="stable").tolist(), budget, distinct=False)
    return [(tree.leaves[i].document, tree.leaves[i].start, tree.leaves[i].end) for i in chosen]


def spans_of(tree: Tree, answer: tuple[Passage, ...]) -> Spans:
    """Return the places of an answer's passages in their documents."""
    spans: Spans = []
    for passage in answer:
        for quote in passage.node.quotes:
            leaf = tree.leaves[quote.leaf]
            spans.append((leaf.document, *leaf.sentences[quote.sentence]))
        if not passage.node.is_summary:
            leaf = tree.leaves[passage.node.leaves[0]]
            spans.append((leaf.document, leaf.start, leaf.end))
    return spans
