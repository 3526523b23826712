"""From documents to a tree: leaves, vectors, then cluster and summarise layer by layer (RAPTOR §3).

By default every document gets a tree of its own and the roots are clustered above them: one more document then changes
only the top (1 to 2 % of the summaries against 60 to 96 %, notes/raptor §4). Not for: asking a tree (`query.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from errors import ModelError
from models.protocols import Embedder
from pipeline.documents import Document
from pipeline.raptor.cluster import Layer, cluster, neighbour_runs
from pipeline.raptor.leaves import embedded_text, heading_line, main_sentences, make_leaves, pack_sentences, unbroken
from pipeline.raptor.lexical import LexicalIndex, count_terms, word_vectors
from pipeline.raptor.summarise import EXTRACTIVE, Candidate, Summary, Writer, extract_summary, write_summary
from pipeline.raptor.tree import (
    BuiltWith,
    Leaf,
    Quote,
    Source,
    Tree,
    TreeNode,
    TreeOptions,
    find_tree,
    keep_tree,
    layers_of,
    leaf_node,
    parent_id,
    tree_handle,
)
from pipeline.segment.partition import SegmentOptions, segment
from pipeline.tokens import count_tokens
from pipeline.work import Report, in_thread, no_report

Floats = NDArray[np.float32]

BATCH: Final = 64
"""Texts embedded between two points where a build can be cancelled and tells its progress: about 0.7 s of MiniLM."""
LEXICAL: Final = "lexical"
"""Name of the word vectors that stand in where no embedder reads the texts."""
ABOVE_LEAVES: Final = 0.25
"""Inner nodes a leaf, for the total of the progress; 0.16 to 0.2 in practice."""
MOST_LAYERS: Final = 24
"""A stop for trees that would not end; twelvefold layers over a million leaves are six."""


@dataclass(slots=True)
class _Growth:
    """What a build knows so far; grows layer by layer."""

    leaves: list[Leaf]
    lines: list[list[tuple[Quote, str, tuple[int, ...]]]]
    """Of each leaf, its sentences: place, text on one line, term numbers."""
    lexical: LexicalIndex
    idf: NDArray[np.float64]
    nodes: list[TreeNode]
    vectors: list[Floats]
    """One block of rows a layer."""
    done: float = 0
    total: float = 1


async def build_tree(
    documents: Sequence[Document],
    *,
    embedder: Embedder | None,
    options: TreeOptions,
    store: Store | None,
    report: Report = no_report,
    writer: Writer | None = None,
) -> Tree:
    """Build the tree of `documents`, or take it from `store`.

    Args:
        documents: Any number; one without text adds a source and no leaf.
        embedder: Vectors for leaves and summaries; None, or one that cannot read the texts, gives word vectors.
        options: Chunking, clustering and lengths.
        store: Where trees and written summaries are kept; None keeps nothing.
        report: Progress in nodes.
        writer: Generator and prompt for summaries; without one they are extracted.

    Returns:
        The tree; without leaves when there is no text. The same documents, options and models give the same ids.

    Raises:
        ModelError: The embedder failed; a failing generator only costs its summary.
    """
    summariser = writer.name if writer else EXTRACTIVE
    reading = embedder if embedder is not None and await in_thread(_is_read, documents, embedder) else None
    built_with = BuiltWith(reading.name if reading else LEXICAL, summariser, options)
    handle = tree_handle(documents, options=options, embedder=built_with.embedder, summariser=summariser)
    if store is not None and (kept := await in_thread(find_tree, store, handle)) is not None:
        await report(1, 1, "took the tree from the cache")
        return kept
    # 1. leaves: whole sentences, about 100 tokens
    growth = await _leaves(documents, reading, options, report)
    # 2. a vector for every leaf
    await _embed_leaves(growth, reading, report)
    # 3. runs of neighbours, the sections that guide questions
    runs = await in_thread(_all_runs, growth)
    # 4. cluster and summarise, within each document, then over the documents' roots
    roots = await _grow(growth, reading, options, _Keeper(store, writer, options), report)
    tree = Tree(
        id=handle,
        nodes=tuple(growth.nodes),
        leaves=tuple(growth.leaves),
        layers=layers_of(growth.nodes),
        roots=tuple(roots),
        vectors=np.concatenate(growth.vectors).astype(np.float16),
        runs=tuple(runs),
        lexical=growth.lexical,
        sources=tuple(_source(document) for document in documents),
        built_with=built_with,
    )
    # 5. keep it under its handle
    if store is not None:
        await in_thread(keep_tree, store, tree)
    await report(
        growth.total, growth.total, f"tree of {len(tree.leaves)} leaves and {len(tree.layers)} layers is ready"
    )
    return tree


def _source(document: Document) -> Source:
    page = document.page
    return Source(page.final_url or page.url, page.title, page.content_hash, page.published)


def _is_read(documents: Sequence[Document], embedder: Embedder) -> bool:
    """Whether the embedder knows the script of at least half of the text."""
    read = sum(len(d.text) for d in documents if embedder.reads(d.text[:20_000]))
    return 2 * read >= sum(len(d.text) for d in documents)


async def _leaves(
    documents: Sequence[Document], embedder: Embedder | None, options: TreeOptions, report: Report
) -> _Growth:
    leaves: list[Leaf] = []
    texts: list[list[str]] = []
    languages: list[str] = []
    seen: set[tuple[str, str]] = set()
    for number, document in enumerate(documents):
        # Two addresses may lead to one page: its leaves stand in the tree once.
        named = (document.page.final_url or document.page.url, document.text)
        if named in seen:
            continue
        seen.add(named)
        sentences = await in_thread(main_sentences, document)
        if options.chunking == "idms":
            least, most = options.leaf_tokens // 2, 2 * options.leaf_tokens
            found = await segment(sentences, embedder=embedder, options=SegmentOptions(minimum=least, maximum=most))
            ranges = unbroken(sentences, found)
        else:
            ranges = await in_thread(pack_sentences, document, sentences, leaf_tokens=options.leaf_tokens)
        made = await in_thread(make_leaves, document, sentences, ranges, number=number)
        leaves.extend(made)
        texts.extend(
            [heading_line(leaf), *(s.text for s in sentences[begin:end])]
            for leaf, (begin, end) in zip(made, ranges, strict=True)
        )
        languages.extend([document.page.language[:2].lower()] * len(made))
        await report(0, None, f"cut {number + 1} of {len(documents)} documents into {len(leaves)} leaves")
    lexical, terms = await in_thread(count_terms, texts, languages)
    lines = [
        [
            (Quote(place, *span), text, numbers)
            for span, text, numbers in zip(leaf.sentences, texts[place][1:], terms[place][1:], strict=True)
        ]
        for place, leaf in enumerate(leaves)
    ]
    nodes = [leaf_node(place, leaf) for place, leaf in enumerate(leaves)]
    total = max(1.0, len(leaves) * (1 + ABOVE_LEAVES))
    return _Growth(leaves, lines, lexical, lexical.idf(), nodes, vectors=[], total=total)


async def _embed_leaves(growth: _Growth, embedder: Embedder | None, report: Report) -> None:
    if embedder is None:
        growth.vectors.append(await in_thread(word_vectors, growth.lexical))
        growth.done = len(growth.leaves)
        return
    growth.vectors.append(await _embedded([embedded_text(leaf) for leaf in growth.leaves], growth, embedder, report))


async def _embedded(texts: Sequence[str], growth: _Growth, embedder: Embedder, report: Report) -> Floats:
    """Embed in batches, telling progress after each; cancelling the task ends it between two batches."""
    blocks: list[Floats] = []
    for low in range(0, len(texts), BATCH):
        part = texts[low : low + BATCH]
        blocks.append(await embedder.embed(part, kind="passage"))
        growth.done += len(part)
        message = f"embedded {min(low + BATCH, len(texts))} of {len(texts)} nodes"
        await report(min(growth.done, growth.total), growth.total, message)
    return np.concatenate(blocks) if blocks else np.zeros((0, embedder.dimension), dtype=np.float32)


def _all_runs(growth: _Growth) -> list[tuple[int, int]]:
    """Runs of neighbouring leaves in every document, over all leaves."""
    runs: list[tuple[int, int]] = []
    tokens = [leaf.tokens for leaf in growth.leaves]
    for begin, end in _by_document(growth.leaves):
        found = neighbour_runs(growth.vectors[0][begin:end], tokens[begin:end])
        runs.extend((begin + low, begin + high) for low, high in found)
    return runs


def _by_document(leaves: Sequence[Leaf]) -> list[tuple[int, int]]:
    edges = [i for i in range(len(leaves)) if i == 0 or leaves[i].document != leaves[i - 1].document]
    return list(pairwise([*edges, len(leaves)]))


async def _grow(
    growth: _Growth, embedder: Embedder | None, options: TreeOptions, keeper: "_Keeper", report: Report
) -> list[int]:
    """Add layers until no group can be clustered; returns the roots in reading order."""
    spans = [(0, len(growth.leaves))] if options.pooled else _by_document(growth.leaves)
    groups = [list(range(*span)) for span in spans]
    joined = len(groups) < 2
    for _ in range(MOST_LAYERS):
        found = await in_thread(_cluster_groups, growth, groups, options)
        if not any(found):
            if joined:
                break
            groups, joined = [sorted(node for group in groups for node in group)], True
            continue
        above: list[list[int]] = []
        first = len(growth.nodes)
        for group, clusters in zip(groups, found, strict=True):
            nodes = [await keeper.parent(growth, members) for members in clusters]
            above.append(list(range(len(growth.nodes), len(growth.nodes) + len(nodes))) or group)
            growth.nodes.extend(nodes)
        fresh = growth.nodes[first:]
        if embedder is not None:
            vectors = await _embedded([node.text for node in fresh], growth, embedder, report)
        else:
            vectors = await in_thread(_mean_vectors, growth, fresh)
            growth.done += len(fresh)
        growth.vectors.append(vectors)
        message = f"layer {max(node.layer for node in fresh)}: {len(fresh)} summaries"
        await report(min(growth.done, growth.total), growth.total, message)
        groups = above
    return [node for group in groups for node in group]


def _cluster_groups(
    growth: _Growth, groups: Sequence[Sequence[int]], options: TreeOptions
) -> list[list[tuple[int, ...]]]:
    """Cluster each group of nodes; empty where it cannot be."""
    rows = np.concatenate(growth.vectors)
    found: list[list[tuple[int, ...]]] = []
    for group in groups:
        tokens = [growth.nodes[i].tokens for i in group]
        layer = Layer(rows[np.asarray(group, dtype=np.int64)], tokens, options.window_tokens, options.seed)
        clusters = cluster(layer, options.clustering)
        found.append([tuple(group[i] for i in members) for members in clusters])
    return found


def _mean_vectors(growth: _Growth, nodes: Sequence[TreeNode]) -> Floats:
    rows = np.concatenate(growth.vectors)
    means = np.stack([rows[np.asarray(node.leaves)].mean(axis=0) for node in nodes])
    return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9), dtype=np.float32)


class _Keeper:
    """Makes inner nodes; written summaries are kept by content, so a build that was killed writes none twice."""

    def __init__(self, store: Store | None, writer: Writer | None, options: TreeOptions) -> None:
        self._store = store
        self._writer = writer
        self._most = options.summary_tokens

    async def parent(self, growth: _Growth, members: tuple[int, ...]) -> TreeNode:
        """Return the node over `members`, summarised."""
        children = [growth.nodes[i] for i in members]
        node_id = parent_id([child.id for child in children])
        written = await self._written(node_id, [child.text for child in children])
        summary = Summary(written, ()) if written else await in_thread(self._extracted, growth, members)
        return TreeNode(
            id=node_id,
            layer=1 + max(child.layer for child in children),
            text=summary.text,
            children=members,
            leaves=tuple(sorted({leaf for child in children for leaf in child.leaves})),
            tokens=count_tokens(summary.text),
            is_summary=True,
            quotes=summary.quotes,
        )

    async def _written(self, node_id: str, texts: Sequence[str]) -> str:
        if self._writer is None:
            return ""
        key = f"summary:{self._writer.name}:{self._most}:{node_id}"
        kept = await in_thread(self._store.get_json, key) if self._store else None
        if isinstance(kept, str):
            return kept
        try:
            text = await write_summary(self._writer, texts, max_tokens=self._most)
        except ModelError:
            # One failed summary is extracted instead; a dead generator must not cost the tree.
            return ""
        if self._store:
            await in_thread(self._store.set_json, key, text)
        return text

    def _extracted(self, growth: _Growth, members: tuple[int, ...]) -> Summary:
        return extract_summary(_candidates(growth, members), growth.idf, max_tokens=self._most)


def _candidates(growth: _Growth, members: tuple[int, ...]) -> list[Candidate]:
    """The sentences that the children show: all of a leaf, the quoted ones of a summary."""
    children = [growth.nodes[i] for i in members]
    wanted: dict[int, set[int] | None] = {}
    for child in children:
        if child.quotes:
            for quote in child.quotes:
                starts = wanted.setdefault(quote.leaf, set())
                if starts is not None:
                    starts.add(quote.start)
        else:
            for leaf in child.leaves[:40]:
                wanted[leaf] = None
    order = sorted(wanted)
    rows = growth.vectors[0][np.asarray(order)]
    centre = rows.mean(axis=0)
    likeness = rows @ (centre / max(float(np.linalg.norm(centre)), 1e-9))
    return [
        Candidate(quote, text, terms, float(likeness[place]), opens=n == 0)
        for place, leaf in enumerate(order)
        for n, (quote, text, terms) in enumerate(growth.lines[leaf])
        if (starts := wanted[leaf]) is None or quote.start in starts
    ]
