"""From leaves to a tree of nodes: cluster and summarise, layer by layer (RAPTOR §3).

Every document gets a tree of its own, and the roots are clustered above them. Not for:
leaves and their vectors (`pipeline/raptor/build.py`), asking (`query.py`)."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, starmap

import numpy as np

from cache.store import Store
from errors import ModelError
from models.protocols import Embedder, unit_rows
from papers.raptor.cluster import MOST_CHILDREN, Layer, cluster
from papers.raptor.extract import Quotable, Summary, extract_summary, sentences_of
from papers.raptor.summarise import EXTRACTIVE, Writer, kept_summary
from papers.raptor.tree import (
    NodeOptions,
    NodeTree,
    TreeNode,
    find_nodes,
    keep_nodes,
    leaf_node,
    node_tree,
)
from papers.side_by_side import side_by_side
from pipeline.raptor.build import build_tree as build_leaves
from pipeline.raptor.leaves import Chunker
from pipeline.raptor.tree import Leaf, SummaryQuote, Tree, TreeOptions, hashed
from pipeline.reading.bm25 import Floats, rarities
from pipeline.text.tokens import count_tokens
from pipeline.work import Report, in_thread, no_report, traced
from readers.page import Document


async def build_tree(
    documents: Sequence[Document],
    *,
    embedder: Embedder | None,
    options: NodeOptions,
    store: Store | None,
    report: Report = no_report,
    writer: Writer | None = None,
    idms: Chunker | None = None,
) -> NodeTree:
    """Build leaves of `documents` and the nodes above them; see `build_leaves` and
    `grow_tree`."""
    leaves = await build_leaves(
        documents,
        embedder=embedder,
        options=TreeOptions(options.chunking, options.leaf_tokens),
        store=store,
        report=report,
        idms=idms,
    )
    return await grow_tree(
        leaves,
        embedder=embedder,
        options=options,
        store=store,
        report=report,
        writer=writer,
    )


@traced("grow_tree")
async def grow_tree(
    tree: Tree,
    *,
    embedder: Embedder | None,
    options: NodeOptions,
    store: Store | None,
    report: Report = no_report,
    writer: Writer | None = None,
) -> NodeTree:
    """Return a tree of leaves with the nodes above them, or take it from `store`.

    Args:
        embedder: The one that the leaves are embedded by; with None, or another, a
            node's vector is the mean of its leaves'.
        store: Where nodes and written summaries are kept; None keeps nothing. A build
            that was stopped writes no summary twice.
        writer: Generator and prompt for summaries; without one they are extracted.

    Raises:
        ModelError: The embedder failed; a failing generator only costs its summary.
        MissingExtra: `gmm` or `umap` was chosen without the extra `papers`.
    """
    summariser = writer.name if writer else EXTRACTIVE
    if store is not None:
        kept = await in_thread(find_nodes, store, tree, options, summariser)
        if kept is not None:
            return kept
    fits = embedder is not None and embedder.name == tree.built_with.embedder
    growth = _Growth(tree, embedder if fits else None, options, store, writer, report)
    await in_thread(growth.begin)
    roots = await growth.grow()
    vectors = np.concatenate([rows.astype(np.float16) for rows in growth.vectors])
    grown = node_tree(
        tree, tuple(growth.nodes), tuple(roots), vectors, options, summariser
    )
    if store is not None:
        await in_thread(keep_nodes, store, grown)
    return grown


@dataclass(slots=True)
class _Growth:
    """A tree that is being built: what is known so far, layer by layer."""

    tree: Tree
    _embedder: Embedder | None
    _options: NodeOptions
    _store: Store | None
    _writer: Writer | None
    _report: Report
    nodes: list[TreeNode] = field(default_factory=list)
    vectors: list[Floats] = field(default_factory=list)
    """One block of rows a layer."""
    _sentences: list[list[tuple[str, list[str]]]] = field(default_factory=list)
    """Of each leaf, its sentences: text on one line, terms."""
    _idf: dict[str, float] = field(default_factory=dict)

    @property
    def leaves(self) -> Sequence[Leaf]:
        return self.tree.leaves

    def begin(self) -> None:
        """Count the terms of the leaves, which are the first layer."""
        self._sentences = sentences_of(self.tree)
        self._idf = rarities(
            [
                Counter(term for _, terms in leaf for term in terms)
                for leaf in self._sentences
            ]
        )
        self.nodes = list(starmap(leaf_node, enumerate(self.leaves)))
        self.vectors = [unit_rows(self.tree.vectors.astype(np.float32))]

    async def grow(self) -> list[int]:
        """Add layers until no group can be clustered; returns the roots in reading
        order."""
        groups = [
            list(own)
            for _, own in groupby(
                range(len(self.leaves)), key=lambda i: self.leaves[i].document
            )
        ]
        joined = False
        while True:
            found = await in_thread(self._clusters, groups, by_leaves=joined)
            if any(found):
                groups = await self._add_layer(groups, found)
            elif len(groups) > 1:
                groups, joined = (
                    [sorted(node for group in groups for node in group)],
                    True,
                )
            else:
                return [node for group in groups for node in group]

    def _clusters(
        self,
        groups: Sequence[Sequence[int]],
        *,
        by_leaves: bool,
    ) -> list[list[tuple[int, ...]]]:
        """Cluster each group of nodes.

        Returns the clusters of each group, in the order of `groups`; none for a group
        that cannot be clustered.

        With `by_leaves`, a node counts as the mean of its leaves: the whole text
        represents it better than a summary of 130 tokens."""
        found: list[list[tuple[int, ...]]] = []
        for group in groups:
            nodes = [self.nodes[i] for i in group]
            vectors = (
                self._mean_vectors(nodes)
                if by_leaves
                else np.stack([self._vector(i) for i in group])
            )
            layer = Layer(
                vectors, [node.tokens for node in nodes], self._options.window_tokens
            )
            clusters = cluster(layer, self._options.clustering)
            found.append([tuple(group[i] for i in members) for members in clusters])
        return found

    async def _add_layer(
        self,
        groups: Sequence[list[int]],
        found: Sequence[Sequence[tuple[int, ...]]],
    ) -> list[list[int]]:
        """Add a node over each cluster found; returns the groups above, a group without
        clusters as it was."""
        first = len(self.nodes)
        calls = [
            partial(self._parent, members) for clusters in found for members in clusters
        ]
        # A generator writes several summaries at once; extraction is work for one thread.
        fresh = (
            await side_by_side(calls)
            if self._writer
            else [await call() for call in calls]
        )
        self.nodes.extend(fresh)
        above: list[list[int]] = []
        index = first
        for group, clusters in zip(groups, found, strict=True):
            parents = list(range(index, index + len(clusters)))
            index += len(clusters)
            above.append(parents or group)
        if self._embedder is not None:
            texts = [node.text for node in fresh]
            self.vectors.append(await self._embedder.embed(texts, kind="passage"))
        else:
            self.vectors.append(await in_thread(self._mean_vectors, fresh))
        layer = max(node.layer for node in fresh)
        await self._report(0, None, f"layer {layer}: {len(fresh)} summaries")
        return above

    def _vector(self, node: int) -> Floats:
        """Return the vector of a node; one array of all would need twice the memory."""
        layer = 0
        while node >= len(self.vectors[layer]):
            node -= len(self.vectors[layer])
            layer += 1
        vector: Floats = self.vectors[layer][node]
        return vector

    def _mean_vectors(self, nodes: Sequence[TreeNode]) -> Floats:
        return unit_rows(
            np.stack(
                [
                    self.vectors[0][np.asarray(node.leaves)].mean(axis=0)
                    for node in nodes
                ]
            )
        )

    async def _parent(self, members: tuple[int, ...]) -> TreeNode:
        """Return the node over `members`, summarised.

        Where the generator fails or writes nothing that is supported, sentences are
        extracted."""
        children = [self.nodes[i] for i in members]
        node_id = hashed(("node", *(child.id for child in children)))
        layer = 1 + max(child.layer for child in children)
        leaves = tuple(sorted({leaf for child in children for leaf in child.leaves}))
        summary = Summary("")
        if self._writer is not None:
            # One failed summary is extracted instead; a dead generator must not cost the tree.
            # Those that are written are kept by content, so a build that was killed writes none
            # twice.
            with suppress(ModelError):
                texts, most = (
                    [child.text for child in children],
                    self._options.summary_tokens,
                )
                summary = await kept_summary(
                    self._writer, texts, max_tokens=most, store=self._store
                )
        if not summary.text:
            summary = await in_thread(self._extracted, children)
        tokens = count_tokens(summary.text)
        return TreeNode(
            node_id,
            layer,
            summary.text,
            members,
            leaves,
            tokens,
            summary.quotes,
            summary.unsupported,
        )

    def _extracted(self, children: Sequence[TreeNode]) -> Summary:
        """Summarise the sentences that the children show: all of a leaf, the quoted
        ones of a summary."""
        shown: dict[SummaryQuote, int] = {}
        for number, child in enumerate(children, start=1):
            # A written summary has no quotations: its first leaves represent it.
            speaking = child.leaves[:MOST_CHILDREN]
            whole = (
                SummaryQuote(leaf, n)
                for leaf in speaking
                for n in range(len(self._sentences[leaf]))
            )
            for quote in child.quotes or whole:
                shown.setdefault(quote, number if child.is_summary else 0)
        leaves = sorted({quote.leaf for quote in shown})
        rows = self.vectors[0][np.asarray(leaves)]
        cosines = rows @ unit_rows(rows.mean(axis=0, keepdims=True))[0]
        likeness = dict(zip(leaves, cosines.tolist(), strict=True))
        candidates = [
            Quotable(
                quote,
                *self._sentences[quote.leaf][quote.sentence],
                likeness[quote.leaf],
                shown[quote],
            )
            for quote in sorted(shown)
        ]
        return extract_summary(
            candidates, self._idf, max_tokens=self._options.summary_tokens
        )
