"""Asking a tree: guided (default), collapsed or traversal, within a budget of tokens (RAPTOR §3 Querying, notes §3).

Guided returns leaves only, but a leaf's scores rise with those of its section and its neighbours; a collapsed tree
whose summaries compete with leaves for the room loses to its own leaves by 1 to 5 points. Not for: building
(`build.py`), citations (`pipeline/evidence/cite.py`), or writing an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from errors import UsageError
from models.protocols import Embedder
from pipeline.rank.fuse import blend
from pipeline.raptor.broad import is_broad
from pipeline.raptor.fill import fill, fill_once
from pipeline.raptor.tree import Tree
from pipeline.text.tokens import count_tokens, cut_to_tokens
from pipeline.trace import traced
from pipeline.work import in_thread

Floats = NDArray[np.float32]
Mode = Literal["guided", "collapsed", "traversal", "flat"]

SECTION_LIFT: Final = (0.25, 0.5)
"""Share of its section's score that a leaf gains, at small and at large budgets (`LIFT_BUDGETS`)."""
NEIGHBOUR_LIFT: Final = (0.15, 0.3)
"""Share of its two neighbours' mean score that a leaf gains, at small and at large budgets.

The large ones are the note's (§3, chosen on qasper, chunkeval and fairytale). Mean recall at 2,000 tokens on the two
halves of the questions of bench/raptor.py: no lift .697, .703; these .725, .743; twice these .742, .743, but covidqa
falls from .814 to .793 on the second half. At 500: no lift .480, .473; the small ones .485, .473; large .487, .460."""
ONE_DOCUMENT: Final = 2.0
"""Factor of both lifts where the tree has one document. Among many it favours whole documents (pooled covidqa at 1,000
tokens: -.069); within one it finds the place: qmsum_s at 500, 1,000, 2,000 tokens +.045, +.10, +.13 over fused leaves
against +.031, +.04, +.08 at 1; policyqa, and covidqa with a tree a paper, move within noise."""
LIFT_BUDGETS: Final = (500, 2000)
"""Tokens up to which the small lifts hold and from which the large ones do; between them they grow evenly."""
SUMMARY_SHARE: Final = 0.8
"""Most of the budget that summaries may take where the question is about the whole.

Words of the written answers to the 19 such questions of qmsum_s at 500, 1,000 and 2,000 tokens: share 0.4 .286, .397,
.527; 0.8 .304, .422, .549; 1.0 .312, .427, .561; leaves alone .262, .380, .509. Under 1: words of the page stay."""


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How a tree is asked."""

    mode: Mode = "guided"
    """`guided`; the paper's `collapsed` and `traversal`; `flat`: leaves as they score alone."""
    max_tokens: int = 2000
    """Most tokens of all passages together."""
    top_k: int = 10
    """For `traversal`: nodes kept a layer."""
    depth: int | None = None
    """For `traversal`: layers walked from the roots; None goes down to the leaves."""
    scores: Literal["fused", "cosine"] = "fused"
    """For `collapsed` and `traversal`: words and embedding, nothing said twice; or the paper's cosine alone."""
    broad: bool | None = None
    """Whether summaries may take part of a guided answer; None decides by the question's words."""

    def __post_init__(self) -> None:
        """Refuse numbers that cannot work.

        Raises:
            UsageError: A number is not positive.
        """
        if self.max_tokens < 1:
            raise UsageError(f"max_tokens is {self.max_tokens}.", hint="Ask for at least 1; 2000 is usual.")
        if self.top_k < 1 or (self.depth is not None and self.depth < 1):
            raise UsageError(f"top_k is {self.top_k}, depth {self.depth}.", hint="Both count from 1.")


@dataclass(frozen=True, slots=True)
class Passage:
    """A node that was chosen, with its place or the leaves that it stands on."""

    node: str
    """Id of the tree's node."""
    text: str
    tokens: int
    """`count_tokens(text)`."""
    is_summary: bool
    score: float
    """Comparable within one answer only."""
    leaves: tuple[int, ...]
    """Indices into `Tree.leaves` of all leaves below, in reading order; a leaf lists itself."""
    document: int
    """Index into `Tree.sources`; -1 for a summary over several documents."""
    url: str
    """Empty for a summary over several documents."""
    title: str
    heading_path: tuple[str, ...]
    start: int
    """Span in the document's text; for a summary from its first leaf to its last, -1 over several documents."""
    end: int
    cut: bool = False
    """Whether the text was shortened because nothing whole fitted the budget."""
    written: bool = False
    """Whether a generator wrote the text; it then stands on all of `leaves`, not on quoted sentences."""


@dataclass(frozen=True, slots=True)
class TreeAnswer:
    """What a question got from a tree."""

    passages: tuple[Passage, ...]
    """Documents by their best passage, reading order inside; summaries first."""
    tokens: int
    """Sum of the passages' tokens, never over the budget."""
    considered: int
    """Nodes that were scored."""
    mode: Mode
    broad: bool
    """Whether the question was taken to be about the whole, so that summaries were given room."""
    reason: str
    """One sentence: how the passages were chosen."""


@dataclass(frozen=True, slots=True)
class _Picked:
    nodes: list[int]
    scores: Floats
    """One score a node of the tree."""
    considered: int
    reason: str
    broad: bool = False


@traced("query_tree")
async def query_tree(tree: Tree, question: str, *, options: QueryOptions, embedder: Embedder | None) -> TreeAnswer:
    """Return the passages of `tree` that answer `question` best, within `options.max_tokens`.

    Args:
        tree: Any tree, also one without leaves.
        question: In any language; words alone count where no embedder reads it.
        options: Mode and budget.
        embedder: The one that the tree was built with; None, or another, leaves words only.

    Raises:
        UsageError: The question is empty.
        ModelError: The embedder failed.
    """
    question = question.strip()
    if not question:
        raise UsageError("The question is empty.", hint="Ask something of the sources.")
    vector = None
    if embedder is not None and embedder.name == tree.built_with.embedder and embedder.reads(question):
        vector = (await embedder.embed([question], kind="query"))[0]
    return await in_thread(_answer, tree, question, vector, options)


def _answer(tree: Tree, question: str, vector: Floats | None, options: QueryOptions) -> TreeAnswer:
    if not tree.leaves:
        return TreeAnswer((), 0, 0, options.mode, broad=False, reason="The sources hold no text.")
    if options.mode == "collapsed":
        picked = _collapsed(tree, question, vector, options)
    elif options.mode == "traversal":
        picked = _traversal(tree, question, vector, options)
    else:
        picked = _by_leaves(tree, question, vector, options)
    passages = _passages(tree, picked, options.max_tokens)
    tokens = sum(passage.tokens for passage in passages)
    return TreeAnswer(passages, tokens, picked.considered, options.mode, picked.broad, picked.reason)


def _by_leaves(tree: Tree, question: str, vector: Floats | None, options: QueryOptions) -> _Picked:
    guided = options.mode == "guided"
    scores = leaf_scores(tree, question, vector, lift_for=options.max_tokens if guided else None)
    order = np.argsort(-scores, kind="stable").tolist()
    broad = guided and (is_broad(question) if options.broad is None else options.broad)
    chosen: list[int] = []
    room = options.max_tokens
    if broad:
        chosen = _overview(tree, int(SUMMARY_SHARE * room))
        room -= sum(tree.nodes[i].tokens for i in chosen)
    chosen = chosen + fill(tree, order, room, distinct=guided)
    full = np.zeros(len(tree.nodes), dtype=np.float32)
    full[: len(scores)] = scores
    how = "leaves scored with their sections and neighbours" if guided else "leaves scored alone"
    by = "words and embedding" if vector is not None else "words only"
    about = "; the question is about the whole, so summaries come first" if broad else ""
    return _Picked(chosen, full, len(tree.leaves), f"{how}, by {by}{about}", broad)


def leaf_scores(tree: Tree, question: str, vector: Floats | None, *, lift_for: int | None) -> Floats:
    """Return one score a leaf, words and embedding blended.

    With `lift_for`, the budget in tokens, each list is lifted by sections and neighbours first; None leaves them alone.
    """
    lists = [tree.lexical.scores(question)]
    if vector is not None:
        lists.append(tree.vectors[: len(tree.leaves)].astype(np.float32) @ vector)
    if lift_for is not None:
        section = float(np.interp(lift_for, LIFT_BUDGETS, SECTION_LIFT))
        beside = float(np.interp(lift_for, LIFT_BUDGETS, NEIGHBOUR_LIFT))
        documents = _documents(tree)
        if documents[0] == documents[-1]:
            section, beside = ONE_DOCUMENT * section, ONE_DOCUMENT * beside
        lists = [lifted(scores, tree.runs, documents, section=section, beside=beside) for scores in lists]
    return np.asarray(blend(lists), dtype=np.float32)


def _documents(tree: Tree) -> NDArray[np.int64]:
    return np.asarray([leaf.document for leaf in tree.leaves], dtype=np.int64)


def lifted(
    scores: Floats,
    runs: Sequence[tuple[int, int]],
    documents: NDArray[np.int64],
    *,
    section: float,
    beside: float,
) -> Floats:
    """Return leaf scores [n] with `section` of their run's mean and `beside` of their neighbours' mean added."""
    starts = np.asarray([begin for begin, _ in runs])
    sizes = np.asarray([end - begin for begin, end in runs])
    of_run = np.repeat(np.add.reduceat(scores, starts) / sizes, sizes)
    same = (documents[1:] == documents[:-1]).astype(np.float32)
    around = np.zeros_like(scores)
    count = np.zeros_like(scores)
    around[1:] += scores[:-1] * same
    around[:-1] += scores[1:] * same
    count[1:] += same
    count[:-1] += same
    near = np.divide(around, count, out=scores.copy(), where=count > 0)
    return np.asarray(scores + section * of_run + beside * near, dtype=np.float32)


def _overview(tree: Tree, room: int) -> list[int]:
    """Summaries from the roots down whose layer still fits whole, else as many as fit."""
    chosen: list[int] = []
    level = [root for root in tree.roots if tree.nodes[root].is_summary]
    while level:
        below = sorted({c for node in level for c in tree.nodes[node].children if tree.nodes[c].is_summary})
        if sum(tree.nodes[i].tokens for i in level) > room:
            return chosen or fill(tree, level, room, distinct=False)
        # One layer is enough: the next one says the same in more words, and takes its place while it fits.
        chosen = level
        level = below
    return chosen


def _node_scores(tree: Tree, question: str, vector: Floats | None, options: QueryOptions) -> Floats:
    """One score a node: words (a summary's by its leaves' mean) and cosine blended, or the paper's cosine alone."""
    if vector is not None:
        cosine = np.asarray(tree.vectors.astype(np.float32) @ vector, dtype=np.float32)
        if options.scores == "cosine":
            return cosine
    words = tree.lexical.scores(question)
    inner = tree.nodes[len(words) :]
    if inner:
        sizes = np.asarray([len(node.leaves) for node in inner])
        below = np.fromiter(chain.from_iterable(node.leaves for node in inner), dtype=np.int64, count=int(sizes.sum()))
        means = np.add.reduceat(words[below], np.cumsum(sizes) - sizes) / sizes
        words = np.concatenate((words, means.astype(np.float32)))
    return words if vector is None else blend([words, cosine])


def _collapsed(tree: Tree, question: str, vector: Floats | None, options: QueryOptions) -> _Picked:
    scores = _node_scores(tree, question, vector, options)
    order = np.argsort(-scores, kind="stable").tolist()
    chosen = _filled(tree, order, options)
    return _Picked(chosen, scores, len(tree.nodes), "nodes of all layers by likeness to the question (collapsed tree)")


def _filled(tree: Tree, order: Sequence[int], options: QueryOptions) -> list[int]:
    """As many nodes of all layers as fit: the paper's way by cosine alone, else with nothing said twice."""
    if options.scores == "cosine":
        return fill(tree, order, options.max_tokens, distinct=False)
    return fill_once(tree, order, options.max_tokens)


def _traversal(tree: Tree, question: str, vector: Floats | None, options: QueryOptions) -> _Picked:
    scores = _node_scores(tree, question, vector, options)
    level = list(tree.roots)
    walked: list[int] = []
    considered = 0
    steps = options.depth if options.depth is not None else len(tree.layers)
    for _ in range(steps):
        fresh = sorted(set(level) - set(walked))
        if not fresh:
            break
        considered += len(fresh)
        best = sorted(fresh, key=lambda i: -float(scores[i]))[: options.top_k]
        walked.extend(best)
        level = [child for node in best for child in tree.nodes[node].children]
    # Root first, the summaries alone would fill the budget of a deep tree; the likeliest of all that was walked go in.
    walked.sort(key=lambda i: (-float(scores[i]), i))
    chosen = _filled(tree, walked, options)
    reason = f"the {options.top_k} likeliest nodes of each layer from the roots down (tree traversal)"
    return _Picked(chosen, scores, considered, reason)


def _passages(tree: Tree, picked: _Picked, max_tokens: int) -> tuple[Passage, ...]:
    """The chosen nodes: summaries first, then documents by their best passage, reading order inside."""
    if not picked.nodes:
        return _shortened(tree, picked, max_tokens)
    best: dict[int, float] = {}
    for i in picked.nodes:
        node = tree.nodes[i]
        if not node.is_summary:
            document = tree.leaves[node.leaves[0]].document
            best[document] = max(best.get(document, -np.inf), float(picked.scores[i]))

    def place(i: int) -> tuple[int, float, int, int]:
        node = tree.nodes[i]
        if node.is_summary:
            return (0, -node.layer, node.leaves[0], i)
        document = tree.leaves[i].document
        return (1, -best[document], document, i)

    return tuple(_passage(tree, i, float(picked.scores[i])) for i in sorted(set(picked.nodes), key=place))


def _shortened(tree: Tree, picked: _Picked, max_tokens: int) -> tuple[Passage, ...]:
    """The best leaf's beginning, where no node fits the budget whole; nothing where not one word fits."""
    best = int(np.argmax(picked.scores[: len(tree.leaves)]))
    text = cut_to_tokens(tree.nodes[best].text, max_tokens)
    if not text:
        return ()
    return (_passage(tree, best, float(picked.scores[best]), text=text),)


def _passage(tree: Tree, i: int, score: float, *, text: str | None = None) -> Passage:
    node = tree.nodes[i]
    first, last = tree.leaves[node.leaves[0]], tree.leaves[node.leaves[-1]]
    one = first.document == last.document
    shown = node.text if text is None else text
    return Passage(
        node=node.id,
        text=shown,
        tokens=count_tokens(shown),
        is_summary=node.is_summary,
        score=score,
        leaves=node.leaves,
        document=first.document if one else -1,
        url=first.url if one else "",
        title=first.title if one else "",
        heading_path=first.heading_path if not node.is_summary else (),
        start=first.start if one else -1,
        end=last.end if one else -1,
        cut=text is not None,
        written=node.is_summary and not node.quotes,
    )
