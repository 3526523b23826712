"""The tree over leaves: nodes, options, its id, and how it is kept in a store.

    leaves → TreeNode (layer 0) → TreeNode (layer 1, summary) → … → roots

Node `i` has row `i` of `NodeTree.vectors`; leaves come first, so leaf `i` is node `i`.
Not for: building (`build.py`), asking (`query.py`)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple, cast

import numpy as np
from pydantic import TypeAdapter

from cache.store import JsonValue, Store
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.raptor.tree import (
    BuiltWith,
    Half,
    Leaf,
    SummaryQuote,
    Tree,
    TreeOptions,
    hashed,
)

Clustering = Literal["kmeans", "gmm", "umap"]
NODES_VERSION: Final = 1
"""Raised when summaries, ids or the stored form change."""


@dataclass(frozen=True, slots=True)
class NodeOptions(TreeOptions):
    """How leaves are cut, clustered and summarised."""

    clustering: Clustering = "kmeans"
    """Soft spherical k-means; the paper's Gaussian mixture with BIC on components
    (`gmm`) or on UMAP."""
    summary_tokens: int = 130
    """Most tokens of a summary (RAPTOR App. C: mean 131)."""
    window_tokens: int = 3500
    """Most tokens of a cluster's texts; a larger cluster is clustered again (RAPTOR
    §3)."""


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
class GrownWith(BuiltWith):
    """What made a tree of nodes."""

    summariser: str
    """`extractive`, or generator and prompt."""
    nodes: NodeOptions


@dataclass(frozen=True, eq=False)
class NodeTree(Tree):
    """A tree (or several, where nothing joined them) over the leaves of some
    documents."""

    built_with: GrownWith
    nodes: tuple[TreeNode, ...]
    roots: tuple[int, ...]
    """Nodes without a parent, in reading order."""

    @cached_property
    def layers(self) -> tuple[tuple[int, ...], ...]:
        """Node indices by layer, leaves first."""
        layers: list[list[int]] = [
            [] for _ in range(1 + max((node.layer for node in self.nodes), default=-1))
        ]
        for index, node in enumerate(self.nodes):
            layers[node.layer].append(index)
        return tuple(map(tuple, layers))

    def documents_below(self, node: TreeNode) -> list[int]:
        """Return the indices into `sources` of a node's documents, in order."""
        return sorted({self.leaves[leaf].document for leaf in node.leaves})


def leaf_node(index: int, leaf: Leaf) -> TreeNode:
    """Return the node of leaf number `index`."""
    return TreeNode(
        leaf.id, 0, leaf.shown, children=(), leaves=(index,), tokens=leaf.tokens
    )


def nodes_id(tree: Tree, options: NodeOptions, summariser: str) -> str:
    """Return under which id the nodes over a tree of leaves are kept."""
    return "nodes:" + hashed((str(NODES_VERSION), tree.id, repr(options), summariser))


class _StoredNodes(NamedTuple):
    """The JSON part of the nodes above the leaves; their vectors are kept beside it."""

    summaries: tuple[TreeNode, ...]
    roots: tuple[int, ...]


_STORED_NODES: Final = TypeAdapter(_StoredNodes)


def keep_nodes(store: Store, tree: NodeTree) -> None:
    """Write the nodes above the leaves to `store`; the JSON part comes last, so an
    incomplete write is not found."""
    above = tree.nodes[len(tree.leaves) :]
    rows = tree.vectors[len(tree.leaves) :].astype("<f2").tobytes()
    key = nodes_id(tree, tree.built_with.nodes, tree.built_with.summariser)
    stored = _STORED_NODES.dump_python(_StoredNodes(above, tree.roots), mode="json")
    store.set_bytes(f"{key}:vectors", rows, expire=CACHED_ANSWER_SECONDS)
    store.set_json(key, cast(JsonValue, stored), expire=CACHED_ANSWER_SECONDS)


def find_nodes(
    store: Store, tree: Tree, options: NodeOptions, summariser: str
) -> NodeTree | None:
    """Return the tree of nodes over a tree of leaves, None where none is kept whole."""
    key = nodes_id(tree, options, summariser)
    head, vectors = store.get_json(key), store.get_bytes(f"{key}:vectors")
    if head is None or vectors is None:
        return None
    stored = _STORED_NODES.validate_python(head)
    above = np.frombuffer(vectors, dtype="<f2").astype(np.float16)
    width = tree.vectors.shape[1]
    return node_tree(
        tree,
        (*map(leaf_node, range(len(tree.leaves)), tree.leaves), *stored.summaries),
        stored.roots,
        np.concatenate([tree.vectors, above.reshape(len(stored.summaries), width)]),
        options,
        summariser,
    )


def node_tree(
    tree: Tree,
    nodes: tuple[TreeNode, ...],
    roots: tuple[int, ...],
    vectors: Half,
    options: NodeOptions,
    summariser: str,
) -> NodeTree:
    """Return a tree of leaves with the nodes above them."""
    made = tree.built_with
    grown = GrownWith(made.embedder, made.cut_by, made.options, summariser, options)
    return NodeTree(
        tree.id,
        tree.leaves,
        vectors,
        tree.sources,
        grown,
        nodes,
        roots,
    )
