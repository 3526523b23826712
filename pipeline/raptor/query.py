"""Asking a tree: guided (default), collapsed or traversal, within a budget of tokens (RAPTOR §3 Querying).

Guided returns leaves only, but a leaf's scores rise with those of its section and its neighbours; a collapsed tree
whose summaries compete with leaves for the room loses to its own leaves by 1 to 5 points. Only a question about the
whole gets summaries first. Not for: building (`build.py`), citations (`evidence.py`), or writing an answer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errors import UsageError
from models.protocols import Embedder
from pipeline.rank.fuse import blend
from pipeline.raptor.summarise import SENTENCE_TOKENS
from pipeline.raptor.tree import Tree, TreeNode
from pipeline.text.language import guess_language
from pipeline.text.lexicon import any_of, words
from pipeline.text.tokens import count_tokens, cut_to_tokens
from pipeline.text.words import is_cjk, raw_words
from pipeline.trace import traced
from pipeline.work import in_thread

Floats = NDArray[np.float32]
Mode = Literal["guided", "collapsed", "traversal", "flat"]

SECTION_LIFT: Final = (0.25, 0.5)
"""Share of its section's score that a leaf gains, at small and at large budgets (`LIFT_BUDGETS`)."""
NEIGHBOUR_LIFT: Final = (0.15, 0.3)
"""Share of its two neighbours' mean score that a leaf gains, at small and at large budgets.

The large ones were chosen on qasper, chunkeval and fairytale. Mean recall at 2,000 tokens on the two
halves of the questions of bench/raptor.py: no lift .697, .703; these .725, .743; twice these .742, .743, but covidqa
falls from .814 to .793 on the second half. At 500: no lift .480, .473; the small ones .485, .473; large .487, .460."""
ONE_DOCUMENT: Final = 2.0
"""Factor of both lifts where the tree has one document. Among many it favours whole documents (pooled covidqa at 1,000
tokens: -.069); within one it finds the place: qmsum_s at 500, 1,000, 2,000 tokens +.045, +.10, +.13 over fused leaves
against +.031, +.04, +.08 at 1; policyqa, and covidqa with a tree a paper, move within noise."""
LIFT_BUDGETS: Final = (500, 2000)
"""Tokens up to which the small lifts hold and from which the large ones do; between them they grow evenly."""
SUMMARY_SHARE: Final = 0.8
"""Most of the budget that summaries may take where the question is about the whole. Words of the written answers rise
with it on meetings (.381 with leaves alone, .422 with it, at 1,000 tokens); under 1, so that words of the page stay."""
SAID: Final = 0.5
"""A leaf with this part of its word triples, and a summary with this part of its leaves, in the answer is left out."""
LAYER_NODES: Final = 10
"""Nodes that a traversal keeps of each layer (RAPTOR's top-k)."""


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How a tree is asked."""

    mode: Mode = "guided"
    """`guided`; the paper's `collapsed` and `traversal`; `flat`: leaves as they score alone."""
    max_tokens: int = 2000
    """Most tokens of all passages together."""
    by_cosine: bool = False
    """For `collapsed` and `traversal`: the paper's cosine alone, repeats and all, as trees of the paper's clusterings
    (`gmm`, `umap`) are always asked. Else words and embedding, with nothing said twice."""

    def __post_init__(self) -> None:
        """Refuse a budget that cannot work.

        Raises:
            UsageError: It is not positive.
        """
        if self.max_tokens < 1:
            raise UsageError(f"max_tokens is {self.max_tokens}.", hint="Ask for at least 1; 2000 is usual.")


class Passage(NamedTuple):
    """A node that was chosen."""

    node: TreeNode
    text: str
    """The node's; or its beginning, or what a generator wrote in its place."""
    tokens: int
    """`count_tokens(text)`."""
    score: float
    """Comparable within one answer only."""
    cut: bool = False
    """Whether the text was shortened because nothing whole fitted the budget."""
    written: bool = False
    """Whether a generator wrote the text; it then stands on all leaves below, not on quoted sentences."""


@traced("query_tree")
async def query_tree(
    tree: Tree, question: str, *, options: QueryOptions, embedder: Embedder | None
) -> tuple[Passage, ...]:
    """Return the passages of `tree` that answer `question` best, within `options.max_tokens` tokens in all.

    Summaries come first, then documents by their best passage, each in reading order.

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


def _answer(tree: Tree, question: str, vector: Floats | None, options: QueryOptions) -> tuple[Passage, ...]:
    if not tree.leaves:
        return ()
    if options.mode in ("guided", "flat"):
        chosen, scores = _by_leaves(tree, question, vector, options)
    else:
        chosen, scores = _by_nodes(tree, question, vector, options)
    if not chosen:
        # Nothing fits whole: the beginning of the best leaf, unless not one word fits.
        best = int(np.argmax(scores[: len(tree.leaves)]))
        text = cut_to_tokens(tree.nodes[best].text, options.max_tokens)
        cut = Passage(tree.nodes[best], text, count_tokens(text), float(scores[best]), cut=True)
        return (cut,) if text else ()
    return tuple(_passages(tree, chosen, scores))


def _passages(tree: Tree, chosen: Sequence[int], scores: Floats) -> list[Passage]:
    """The chosen nodes: summaries from the top, then documents by their best passage, reading order inside."""
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
    return [Passage(node, node.text, node.tokens, score) for node, score in nodes]


def _by_leaves(tree: Tree, question: str, vector: Floats | None, options: QueryOptions) -> tuple[list[int], Floats]:
    """Nodes chosen by the scores of leaves, and a score for each node; a broad question gets summaries first."""
    guided = options.mode == "guided"
    broad = guided and is_broad(question)
    leaves = leaf_scores(tree, question, vector, lift_for=options.max_tokens if guided else None)
    # Summaries that answer a question about the whole are worth more than any leaf.
    scores = np.full(len(tree.nodes), 1 + leaves.max(), dtype=np.float32)
    scores[: len(leaves)] = leaves
    summaries = _overview(tree, int(SUMMARY_SHARE * options.max_tokens)) if broad else []
    room = options.max_tokens - sum(tree.nodes[i].tokens for i in summaries)
    order = np.argsort(-leaves, kind="stable").tolist()
    return summaries + fill(tree, order, room, distinct=guided), scores


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
        if sum(tree.nodes[i].tokens for i in level) > room:
            return chosen or fill(tree, level, room, distinct=False)
        # One layer is enough: the next one says the same in more words, and takes its place while it fits.
        chosen = level
        level = sorted({c for node in level for c in tree.nodes[node].children if tree.nodes[c].is_summary})
    return chosen


def _by_nodes(tree: Tree, question: str, vector: Floats | None, options: QueryOptions) -> tuple[list[int], Floats]:
    """Nodes of all layers by their own scores, and a score for each node."""
    by_cosine = options.by_cosine or tree.built_with.options.clustering in ("gmm", "umap")
    scores = _node_scores(tree, question, vector, by_cosine=by_cosine)
    order = np.argsort(-scores, kind="stable").tolist()
    if options.mode == "traversal":
        walked = _walk(tree, scores)
        # Root first, the summaries alone would fill the budget of a deep tree: the likeliest of all walked go in.
        order = [i for i in order if i in walked]
    return fill(tree, order, options.max_tokens, distinct=not by_cosine), scores


def _node_scores(tree: Tree, question: str, vector: Floats | None, *, by_cosine: bool) -> Floats:
    """One score a node: words (a summary's by its leaves' mean) and cosine blended, or the paper's cosine alone."""
    cosine = None if vector is None else np.asarray(tree.vectors.astype(np.float32) @ vector, dtype=np.float32)
    if cosine is not None and by_cosine:
        return cosine
    shared = tree.lexical.scores(question)
    inner = tree.nodes[len(shared) :]
    if inner:
        sizes = np.asarray([len(node.leaves) for node in inner])
        below = np.fromiter(chain.from_iterable(node.leaves for node in inner), dtype=np.int64, count=int(sizes.sum()))
        means = np.add.reduceat(shared[below], np.cumsum(sizes) - sizes) / sizes
        shared = np.concatenate((shared, means.astype(np.float32)))
    return shared if cosine is None else blend([shared, cosine])


def _walk(tree: Tree, scores: Floats) -> set[int]:
    """The `LAYER_NODES` likeliest nodes of each layer, from the roots down among the children of those above."""
    walked: set[int] = set()
    level = set(tree.roots)
    while level:
        best = sorted(level, key=lambda i: (-float(scores[i]), i))[:LAYER_NODES]
        walked.update(best)
        level = {child for node in best for child in tree.nodes[node].children} - walked
    return walked


def fill(tree: Tree, order: Sequence[int], max_tokens: int, *, distinct: bool) -> list[int]:
    """Return nodes of `order` whose tokens together are at most `max_tokens`; what does not fit is skipped.

    Labels and buttons, which are shorter than a sentence, are passed over.

    Args:
        tree: The tree.
        order: Node indices, best first.
        max_tokens: The budget, exact.
        distinct: Say nothing twice: pass over leaves that mostly repeat words already chosen, and leave out summaries
            of what is mostly shown in full; their room goes to the next node.
    """
    banned: set[int] = set()
    while True:
        chosen: list[int] = []
        said: set[tuple[str, ...]] = set()
        room = max_tokens
        for i in order:
            node = tree.nodes[i]
            if room < SENTENCE_TOKENS.start:
                break
            if i in banned or not SENTENCE_TOKENS.start <= node.tokens <= room:
                continue
            if distinct:
                triples = word_triples(node.text)
                if triples and len(triples & said) >= SAID * len(triples):
                    continue
                said |= triples
            chosen.append(i)
            room -= node.tokens
        shown = set(chosen)
        nodes = [(i, tree.nodes[i]) for i in chosen if tree.nodes[i].is_summary]
        repeated = {i for i, node in nodes if len(shown.intersection(node.leaves)) > SAID * len(node.leaves)}
        if not (distinct and repeated):
            return chosen
        banned |= repeated


def word_triples(text: str) -> set[tuple[str, ...]]:
    """Return the sets of three words in a row; single characters count as words where the text is Chinese or alike."""
    found = [w for word in raw_words(text.lower()) for w in (word if is_cjk(word) else (word,))]
    if len(found) < 3:
        return {tuple(found)} if found else set()
    return set(zip(found, found[1:], found[2:], strict=False))


def is_broad(question: str) -> bool:
    """Whether a question is about a text as a whole: it asks for that, and no word of it narrows that down.

    It asks by a word such as "summary", or by "what" together with a word for the text. Words are in
    `pipeline/text/words/*.txt`, sections `whole.*`.
    """
    text = question.lower()
    rest, asks = _pattern("whole.asking").subn(" ", text)
    rest, names = _pattern("whole.text").subn(" ", rest)
    rest, what = _pattern("whole.what").subn(" ", rest)
    if not (asks or (names and what)):
        return False
    stops = words("stop", guess_language(question) or "en") | words("stop", "en")
    return all(word in stops for word in raw_words(_pattern("whole.filler").sub(" ", rest)))


@cache
def _pattern(section: str) -> re.Pattern[str]:
    """Matches the section's words of all languages: whole words, or anywhere where words stand without blanks."""
    entries = words(section)
    run = {entry for entry in entries if is_cjk(entry)}
    return re.compile(rf"(?<!\w)(?:{any_of(entries - run)})(?!\w)|{any_of(run)}")
