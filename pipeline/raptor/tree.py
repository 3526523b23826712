"""The tree over documents: its types, its handle, and how it is kept in a store.

    documents → Leaf… → TreeNode (layer 0) → TreeNode (layer 1, summary) → … → roots

A tree is plain data: JSON and arrays, never pickle. Node `i` has row `i` of
`Tree.vectors`; leaves come first, so leaf `i` is node `i`. Not for: building
(`build.py`), asking (`query.py`), showing (`outline.py`, `draw.py`)."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from cache.store import JsonValue, Store
from pipeline.document.page import Document
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, Floats
from pipeline.text.words import guess_language, index_terms

Chunking = Literal["sentences", "idms"]
Clustering = Literal["kmeans", "gmm", "umap"]
Half = NDArray[np.float16]

TREE_SCHEME: Final = "winnow://tree/"
TREE_VERSION: Final = 7
"""Raised when leaves, extracted summaries, ids or the stored form change: no old tree
is then taken for a new one."""


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """How a tree is built; part of its handle."""

    chunking: Chunking = "sentences"
    """`sentences` packs whole sentences to `leaf_tokens`; `idms` cuts where the subject
    changes."""
    leaf_tokens: int = 100
    """Length of a leaf as `count_tokens` counts (RAPTOR §3: 100)."""
    clustering: Clustering = "kmeans"
    """Soft spherical k-means; the paper's Gaussian mixture with BIC on components
    (`gmm`) or on UMAP."""
    summary_tokens: int = 130
    """Most tokens of a summary (RAPTOR App. C: mean 131)."""
    window_tokens: int = 3500
    """Most tokens of a cluster's texts; a larger cluster is clustered again (RAPTOR
    §3)."""

    @property
    def segment_tokens(self) -> tuple[int, int]:
        """Least and most tokens of an `idms` leaf. On 36 texts of ten paragraphs Pk is
        .084 with at most twice a leaf's length, .031 with three times, .025 with four
        times, as without a bound; the lower one costs nothing."""
        return self.leaf_tokens // 2, 4 * self.leaf_tokens


class Source(NamedTuple):
    """One document below the tree."""

    url: str
    title: str
    content_hash: str
    published: str
    unread: str = ""
    """What of it was not read; see `Page.unread`."""
    rest: str = ""


class Leaf(NamedTuple):
    """A stretch of a document: whole sentences, verbatim, with its place."""

    id: str
    """24 hex digits over URL and text, and earlier occurrences: insertions elsewhere do
    not change it."""
    text: str
    """`Document.text[start:end]`."""
    document: int
    """Index into `Tree.sources`."""
    heading_path: tuple[str, ...]
    """The headings above all of it, outermost first, without those that repeat the
    page's title."""
    block_path: str
    """Path of the block that the leaf begins in."""
    start: int
    end: int
    tokens: int
    """`count_tokens` of what is shown."""
    sentences: tuple[tuple[int, int], ...]
    """Spans of its sentences in `Document.text`, in order."""
    shown: str
    """What is read, scored and returned: table rows as `header: value` pairs, no
    invisible characters."""
    form: str = ""
    """What a generator wrote for the index beside it (IDMS)."""

    def sentence(self, number: int) -> str:
        """Return one of its sentences, verbatim."""
        start, end = self.sentences[number]
        return self.text[start - self.start : end - self.start]

    @property
    def heading_line(self) -> str:
        """The innermost two headings over it; the page's title before every leaf would
        cost 3 points of recall."""
        return " > ".join(self.heading_path[-2:])

    @property
    def embedded(self) -> str:
        """What an embedder reads: the heading line, then the text, or the form written
        for it."""
        return f"{self.heading_line}\n{self.form or self.shown}".strip()


class SummaryQuote(NamedTuple):
    """A sentence that a summary took over verbatim."""

    leaf: int
    """Index of its leaf."""
    sentence: int
    """Index into `Leaf.sentences`."""


class TreeNode(NamedTuple):
    """A leaf (layer 0) or a summary (layer 1 and up)."""

    id: str
    """The leaf's, or a hash of the children's ids: the same content has the same id
    everywhere."""
    layer: int
    text: str
    children: tuple[int, ...]
    """Indices of the nodes below, empty for a leaf; a node may be the child of
    several."""
    leaves: tuple[int, ...]
    """Indices of all leaves below, in reading order; a leaf lists itself."""
    tokens: int
    quotes: tuple[SummaryQuote, ...] = ()
    """The sentences of an extractive summary, in order; empty for leaves and written
    summaries."""
    unsupported: tuple[str, ...] = ()
    """Numbers and names of a written summary that no child has; the sentences that held
    them were dropped."""

    @property
    def is_summary(self) -> bool:
        """Whether it is above the leaves."""
        return self.layer > 0


@dataclass(frozen=True, slots=True)
class BuiltWith:
    """What made a tree."""

    embedder: str
    """Its name, or `lexical` for word vectors."""
    summariser: str
    """`extractive`, or generator and prompt; then what cut `idms` leaves."""
    options: TreeOptions


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree (or several, where nothing joined them) over the leaves of some
    documents."""

    id: str
    """The handle, `winnow://tree/<24 hex digits>`."""
    nodes: tuple[TreeNode, ...]
    leaves: tuple[Leaf, ...]
    roots: tuple[int, ...]
    """Nodes without a parent, in reading order."""
    vectors: Half
    """Unit vectors [nodes, dimension]."""
    sources: tuple[Source, ...]
    built_with: BuiltWith
    _counted: dict[str, BM25] = field(default_factory=dict, init=False, repr=False)
    """By language of questions: the words of the leaves, counted at the first
    question."""

    def word_scores(self, question: Question) -> Floats:
        """Return the BM25 score of every leaf [leaves]; 0 where no word of `question`
        occurs."""
        language = question.language
        if language not in self._counted:
            texts = [
                f"{leaf.heading_line}\n{leaf.shown}\n{leaf.form}"
                for leaf in self.leaves
            ]
            self._counted[language] = BM25(texts, language=language)
        return self._counted[language].scores(question)

    @cached_property
    def layers(self) -> tuple[tuple[int, ...], ...]:
        """Node indices by layer, leaves first."""
        layers: list[list[int]] = [
            [] for _ in range(1 + max((node.layer for node in self.nodes), default=-1))
        ]
        for index, node in enumerate(self.nodes):
            layers[node.layer].append(index)
        return tuple(map(tuple, layers))

    @cached_property
    def leaves_of(self) -> tuple[tuple[Leaf, ...], ...]:
        """The leaves of each source, in order."""
        found: list[list[Leaf]] = [[] for _ in self.sources]
        for leaf in self.leaves:
            found[leaf.document].append(leaf)
        return tuple(map(tuple, found))

    @cached_property
    def spread(self) -> Counter[str]:
        """Number of leaves that contain each index term. All are taken for the language
        of the first three."""
        language = (
            guess_language(" ".join(leaf.shown for leaf in self.leaves[:3])) or "en"
        )
        return Counter(
            term
            for leaf in self.leaves
            for term in set(index_terms(leaf.shown, language=language))
        )

    def documents_below(self, node: TreeNode) -> list[int]:
        """Return the indices into `sources` of a node's documents, in order."""
        return sorted({self.leaves[leaf].document for leaf in node.leaves})


def leaf_node(index: int, leaf: Leaf) -> TreeNode:
    """Return the node of leaf number `index`."""
    return TreeNode(
        leaf.id, 0, leaf.shown, children=(), leaves=(index,), tokens=leaf.tokens
    )


def tree_handle(
    documents: Sequence[Document], built_with: BuiltWith, *, grown_from: str = ""
) -> str:
    """Return the handle of the tree that these documents, options and models give; no
    tree need exist.

    A tree that was grown from another has a handle of its own: its clusters are not
    those of a tree built at once."""
    parts = [
        str(TREE_VERSION),
        repr(built_with.options),
        built_with.embedder,
        built_with.summariser,
        grown_from,
    ]
    for document in documents:
        page = document.page
        parts.extend(
            (page.final_url or page.url, page.title, page.content_hash, document.text)
        )
    return TREE_SCHEME + hashed(parts)


def hashed(parts: Sequence[str]) -> str:
    """Return 24 hex digits over texts; other texts, or the same ones parted otherwise,
    give others."""
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class _Stored(NamedTuple):
    """The JSON part of a tree; vectors are kept beside it."""

    dimension: int
    sources: tuple[Source, ...]
    leaves: tuple[Leaf, ...]
    summaries: tuple[TreeNode, ...]
    roots: tuple[int, ...]
    built_with: BuiltWith


_STORED: Final = TypeAdapter(_Stored)


def keep_tree(store: Store, tree: Tree) -> None:
    """Write `tree` to `store` under its handle; the JSON part comes last, so an
    incomplete write is not a tree. An older one of that handle is replaced."""
    stored = _Stored(
        dimension=int(tree.vectors.shape[1]),
        sources=tree.sources,
        leaves=tree.leaves,
        summaries=tree.nodes[len(tree.leaves) :],
        roots=tree.roots,
        built_with=tree.built_with,
    )
    head = {
        "format": TREE_VERSION,
        "tree": cast(JsonValue, _STORED.dump_python(stored, mode="json")),
    }
    _write(store, tree.id, cast(JsonValue, head), tree.vectors.astype("<f2").tobytes())


def _write(store: Store, handle: str, head: JsonValue, vectors: bytes) -> None:
    store.set_bytes(f"{handle}:vectors", vectors, expire=CACHED_ANSWER_SECONDS)
    store.set_json(handle, head, expire=CACHED_ANSWER_SECONDS)
    # A used tree is written again once a day, so that it does not expire.
    store.set_json(f"{handle}:used", True, expire=CACHED_ANSWER_SECONDS / 30)


def _descendants(tree: Tree, top: int) -> list[int]:
    """Return the numbers of a node and of all below it, in order."""
    kept, waiting = {top}, [top]
    while waiting:
        children = set(tree.nodes[waiting.pop()].children) - kept
        kept |= children
        waiting.extend(children)
    return sorted(kept)


def below(tree: Tree, node_id: str) -> Tree | None:
    """Return the part of `tree` below one of its nodes, under the handle
    `winnow://tree/…#node`; None for no such node.

    It shares the tree's nodes and vectors, renumbered; sources that no leaf is from go.
    """
    top = next(
        (index for index, node in enumerate(tree.nodes) if node.id == node_id), None
    )
    if top is None:
        return None
    places = _descendants(tree, top)
    new = {index: number for number, index in enumerate(places)}
    leaves = [index for index in places if index < len(tree.leaves)]
    documents = sorted({tree.leaves[index].document for index in leaves})
    return replace(
        tree,
        id=f"{tree.id}#{node_id}",
        nodes=tuple(
            node._replace(
                children=tuple(map(new.__getitem__, node.children)),
                leaves=tuple(map(new.__getitem__, node.leaves)),
                quotes=tuple(
                    quote._replace(leaf=new[quote.leaf]) for quote in node.quotes
                ),
            )
            for node in map(tree.nodes.__getitem__, places)
        ),
        leaves=tuple(
            leaf._replace(document=documents.index(leaf.document))
            for leaf in map(tree.leaves.__getitem__, leaves)
        ),
        roots=(new[top],),
        vectors=tree.vectors[places],
        sources=tuple(tree.sources[document] for document in documents),
    )


def find_tree(store: Store, handle: str) -> Tree | None:
    """Return the tree kept under `handle`, or None where there is none, an old form, or
    a part is missing. A tree that is read is kept for longer."""
    head = store.get_json(handle)
    if not isinstance(head, dict) or head.get("format") != TREE_VERSION:
        return None
    vectors = store.get_bytes(f"{handle}:vectors")
    if vectors is None:
        return None
    if store.get_json(f"{handle}:used") is None:
        _write(store, handle, head, vectors)
    stored = _STORED.validate_python(head["tree"])
    nodes = (
        *(leaf_node(i, leaf) for i, leaf in enumerate(stored.leaves)),
        *stored.summaries,
    )
    rows = np.frombuffer(vectors, dtype="<f2").astype(np.float16)
    return Tree(
        id=handle,
        nodes=nodes,
        leaves=stored.leaves,
        roots=stored.roots,
        vectors=rows.reshape(len(nodes), stored.dimension),
        sources=stored.sources,
        built_with=stored.built_with,
    )
