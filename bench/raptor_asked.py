"""Trees of the sets of `bench.longdoc`, asked in every way that `bench.raptor`
compares.

Not for: sizes and costs (`bench/growth.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from bench.longdoc import Question, Spans, groups_of
from models.protocols import Embedder
from papers.raptor.build import build_tree
from papers.raptor.query import ChosenNode, NodeMode, query_tree, take
from papers.raptor.tree import NodeOptions, NodeTree
from pipeline.evidence.assemble import fill
from pipeline.question.broad import is_broad
from pipeline.question.question import Question as Analysed
from pipeline.raptor.overview import overview
from pipeline.raptor.query import read_leaves
from pipeline.reading.relevance import Blend, Reader
from pipeline.text.tokens import count_each
from readers.page import Document

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
MODES: Final[dict[str, NodeMode | Literal["guided"]]] = {
    "leaves, fused": "flat",
    "paper's collapsed": "collapsed",
    "paper's traversal": "traversal",
    "collapsed": "collapsed",
    "traversal": "traversal",
    "guided": "guided",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A tree, its documents, and the questions put to it."""

    tree: NodeTree
    documents: Sequence[Document]
    questions: list[Question]


async def asked_trees(
    name: str, embedder: Embedder, options: NodeOptions, most: int | None
) -> list[Asked]:
    """Build the trees of one set: one over all documents where the set is a corpus,
    else one a document."""
    return [
        Asked(
            await build_tree(
                group.documents, embedder=embedder, options=options, store=None
            ),
            group.documents,
            group.questions,
        )
        for group in groups_of(name, most=most)
    ]


async def picked(
    one: Asked, question: str, method: str, embedder: Embedder, budget: int
) -> Spans:
    """Return the spans that `method` puts into `budget` tokens; of a summary, those of
    its sentences."""
    tree = one.tree
    if method in MODES:
        repeats = method.startswith("paper's")
        return (
            await answered(
                one, question, MODES[method], embedder, budget, repeats=repeats
            )
        )[1]
    if method == "leaves, BM25":
        scores = tree.word_scores(Analysed(question))
    else:
        vector = (await embedder.embed([question], kind="query"))[0]
        scores = tree.vectors[: len(tree.leaves)].astype(np.float32) @ vector
    chosen = take(
        tree, np.argsort(-scores, kind="stable").tolist(), budget, distinct=False
    )
    return [
        (tree.leaves[i].document, tree.leaves[i].start, tree.leaves[i].end)
        for i in chosen
    ]


async def answered(
    one: Asked,
    question: str,
    mode: NodeMode | Literal["guided"],
    embedder: Embedder | None,
    budget: int,
    *,
    repeats: bool = False,
    reader: Reader | None = None,
) -> tuple[str, Spans]:
    """Return the words that a mode puts into `budget` tokens, without anything around
    them, and their places."""
    if mode != "guided":
        return reported_by(
            one.tree,
            await query_tree(
                one.tree,
                Analysed(question),
                mode=mode,
                max_tokens=budget,
                repeats=repeats,
                embedder=embedder,
            ),
        )
    if is_broad(question):
        return overview(one.tree, {}, max_tokens=budget, delimiter="0").shown.text, []

    async def pages(places: Sequence[int]) -> Mapping[int, Document]:
        return {place: one.documents[place] for place in places}

    documents, reading = await read_leaves(
        one.tree,
        Analysed(question),
        pages,
        reader=reader or Blend(embedder),
        embedder=embedder,
        max_tokens=budget,
    )
    costs = [
        tokens + 1 for tokens in count_each([unit.text for _, unit in reading.places])
    ]
    order = np.argsort(-reading.values, kind="stable").tolist()
    chosen = [
        reading.places[row]
        for row in fill(order, lambda rows: sum(costs[row] for row in rows), budget)
    ]
    number = {id(document): place for place, document in enumerate(one.documents)}
    spans = [
        (number[id(documents[place])], unit.start, unit.end) for place, unit in chosen
    ]
    return "\n".join(unit.text for _, unit in chosen), spans


def reported_by(tree: NodeTree, answer: tuple[ChosenNode, ...]) -> tuple[str, Spans]:
    """Return the words of an answer's passages and their places in the documents."""
    spans: Spans = []
    for passage in answer:
        for quote in passage.node.quotes:
            leaf = tree.leaves[quote.leaf]
            spans.append((leaf.document, *leaf.sentences[quote.sentence]))
        if not passage.node.is_summary:
            leaf = tree.leaves[passage.node.leaves[0]]
            spans.append((leaf.document, leaf.start, leaf.end))
    return "\n".join(passage.text for passage in answer), spans
