"""From documents to a tree: leaves, vectors, then cluster and summarise layer by layer (RAPTOR §3).

By default every document gets a tree of its own and the roots are clustered above them: one more document then changes
only the top (1 to 2 % of the summaries against 60 to 96 %, notes/raptor §4). Not for: asking a tree (`query.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from models.protocols import Embedder
from pipeline.documents import Document
from pipeline.raptor.cluster import Layer, cluster, join_clusters, neighbour_runs
from pipeline.raptor.join import Earlier
from pipeline.raptor.leaves import embedded_text, heading_line, main_sentences, make_leaves, pack_sentences, unbroken
from pipeline.raptor.lexical import count_terms, word_vectors
from pipeline.raptor.parents import Growth, Parents
from pipeline.raptor.summarise import EXTRACTIVE, Writer
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
    tree_handle,
)
from pipeline.segment.idms import Idms
from pipeline.trace import traced
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


@traced("build_tree")
async def build_tree(  # noqa: PLR0913  what a tree is made with, each by its name
    documents: Sequence[Document],
    *,
    embedder: Embedder | None,
    options: TreeOptions,
    store: Store | None,
    report: Report = no_report,
    writer: Writer | None = None,
    grown_from: Tree | None = None,
    idms: Idms | None = None,
) -> Tree:
    """Build the tree of `documents`, or take it from `store`.

    With `grown_from`, leaves that it has keep their clusters, new ones join the nearest, and only summaries whose
    children changed are made again. A tree by another embedder, other options or another generator brings nothing.

    Args:
        documents: Any number; one without text adds a source and no leaf.
        embedder: Vectors for leaves and summaries; None, or one that cannot read the texts, gives word vectors.
        options: Chunking, clustering and lengths.
        store: Where trees and written summaries are kept; None keeps nothing.
        report: Progress in nodes.
        writer: Generator and prompt for summaries; without one they are extracted.
        grown_from: An earlier tree over some of these documents.
        idms: Cuts `idms` leaves, and may write what the index reads beside them; None cuts them by embeddings.

    Returns:
        The tree; without leaves when there is no text. The same documents, options and models give the same ids.

    Raises:
        ModelError: The embedder failed; a failing generator only costs its summary.
        MissingExtra: `umap` was chosen and is not installed.
    """
    reading = embedder if embedder is not None and await in_thread(_is_read, documents, embedder) else None
    idms = (idms or Idms()) if options.chunking == "idms" else None
    built_with = BuiltWith(reading.name if reading else LEXICAL, _summariser(writer, idms), options)
    before = grown_from if grown_from and _goes_on(grown_from.built_with, built_with) else None
    handle = tree_handle(documents, built_with, grown_from=before.id if before else "")
    if store is not None and (kept := await in_thread(find_tree, store, handle)) is not None:
        await report(1, 1, "took the tree from the cache")
        return kept
    # 1. leaves: whole sentences, about 100 tokens
    growth, forms = await _leaves(documents, reading, options, report, idms)
    if _summariser(writer, idms) != built_with.summariser:  # something failed: not the tree that the handle names
        built_with = replace(built_with, summariser=_summariser(writer, idms))
        handle = tree_handle(documents, built_with, grown_from=before.id if before else "")
    growth.earlier = Earlier(before, growth.nodes) if before else None
    # 2. a vector for every leaf
    await _embed_leaves(growth, forms, reading, report)
    # 3. runs of neighbours, the sections that guide questions
    runs = await in_thread(_all_runs, growth)
    # 4. cluster and summarise, within each document, then over the documents' roots
    roots = await _grow(growth, reading, options, Parents(store, writer, options), report)
    tree = _finished(growth, runs, roots, handle, documents, built_with)
    # 5. keep it under its handle
    if store is not None:
        await in_thread(keep_tree, store, tree)
    ready = f"tree of {len(tree.leaves)} leaves and {len(tree.layers)} layers is ready"
    await report(growth.total, growth.total, ready)
    return tree


def _finished(
    growth: Growth,
    runs: Sequence[tuple[int, int]],
    roots: Sequence[int],
    handle: str,
    documents: Sequence[Document],
    built_with: BuiltWith,
) -> Tree:
    return Tree(
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


def _summariser(writer: Writer | None, idms: Idms | None) -> str:
    summariser = writer.name if writer else EXTRACTIVE
    return f"{summariser}; {idms.version}" if idms and idms.version else summariser


def _goes_on(before: BuiltWith, now: BuiltWith) -> bool:
    """Whether what is in an earlier tree may stand in one that is made so now.

    Where summaries are extracted now, written ones stay: they were checked, and they lack quotes, which tells them.
    """
    if (before.embedder, before.options) != (now.embedder, now.options):
        return False
    (wrote, _, cut), (writes, _, cuts) = before.summariser.partition("; "), now.summariser.partition("; ")
    return cut == cuts and writes in (wrote, EXTRACTIVE)


def _source(document: Document) -> Source:
    page = document.page
    return Source(page.final_url or page.url, page.title, page.content_hash, page.published)


def _is_read(documents: Sequence[Document], embedder: Embedder) -> bool:
    """Whether the embedder knows the script of at least half of the text."""
    read = sum(len(d.text) for d in documents if embedder.reads(d.text[:20_000]))
    return 2 * read >= sum(len(d.text) for d in documents)


async def _leaves(
    documents: Sequence[Document],
    embedder: Embedder | None,
    options: TreeOptions,
    report: Report,
    idms: Idms | None,
) -> tuple[Growth, list[str]]:
    """Return the leaves with their terms, and what the index reads beside each, "" for nothing more."""
    leaves: list[Leaf] = []
    texts: list[list[str]] = []
    forms: list[str] = []
    languages: list[str] = []
    seen: set[tuple[str, str]] = set()
    for number, document in enumerate(documents):
        # Two addresses may lead to one page: its leaves stand in the tree once.
        named = (document.page.final_url or document.page.url, document.text)
        if named in seen:
            continue
        seen.add(named)
        sentences = await in_thread(main_sentences, document)
        if idms is not None:
            least, most = options.leaf_tokens // 2, 2 * options.leaf_tokens
            found = await idms.ranges(sentences, embedder=embedder, minimum=least, maximum=most)
            ranges = unbroken(sentences, found)
        else:
            ranges = await in_thread(pack_sentences, document, sentences, leaf_tokens=options.leaf_tokens)
        made = await in_thread(make_leaves, document, sentences, ranges, number=number)
        leaves.extend(made)
        if idms is not None:
            chunks = [[s.text for s in sentences[begin:end]] for begin, end in ranges]
            forms.extend(await idms.forms(chunks, language=document.page.language[:2].lower()))
        texts.extend(
            [heading_line(leaf), *(s.text for s in sentences[begin:end])]
            for leaf, (begin, end) in zip(made, ranges, strict=True)
        )
        languages.extend([document.page.language[:2].lower()] * len(made))
        await report(0, None, f"cut {number + 1} of {len(documents)} documents into {len(leaves)} leaves")
    if idms is None or not idms.writes:  # forms of some documents and not of others would tip the scales
        forms = [""] * len(leaves)
    pieces = [[*text, form] if form else text for text, form in zip(texts, forms, strict=True)]
    lexical, terms = await in_thread(count_terms, pieces, languages)
    lines = [
        [
            (Quote(place, *span), text, numbers)
            for span, text, numbers in zip(leaf.sentences, texts[place][1:], terms[place][1:], strict=False)
        ]
        for place, leaf in enumerate(leaves)
    ]
    nodes = [leaf_node(place, leaf) for place, leaf in enumerate(leaves)]
    total = max(1.0, len(leaves) * (1 + ABOVE_LEAVES))
    return Growth(leaves, lines, lexical, lexical.idf(), nodes, vectors=[], total=total), forms


async def _embed_leaves(growth: Growth, forms: Sequence[str], embedder: Embedder | None, report: Report) -> None:
    if embedder is None:
        growth.vectors.append(await in_thread(word_vectors, growth.lexical))
        growth.done = len(growth.leaves)
        return
    texts = [embedded_text(leaf, form) for leaf, form in zip(growth.leaves, forms, strict=True)]
    growth.vectors.append(await _embedded(growth.nodes, texts, growth, embedder, report))


async def _embedded(
    nodes: Sequence[TreeNode], texts: Sequence[str], growth: Growth, embedder: Embedder, report: Report
) -> Floats:
    """Embed the nodes' texts in batches, telling progress after each; what an earlier tree knows is taken over.

    Cancelling the task ends it between two batches.
    """
    known = {
        i: row for i, node in enumerate(nodes) if growth.earlier and (row := growth.earlier.vector(node.id)) is not None
    }
    fresh = [i for i in range(len(nodes)) if i not in known]
    growth.done += len(known)
    for low in range(0, len(fresh), BATCH):
        part = fresh[low : low + BATCH]
        known.update(zip(part, await embedder.embed([texts[i] for i in part], kind="passage"), strict=True))
        growth.done += len(part)
        message = f"embedded {min(low + BATCH, len(fresh))} of {len(fresh)} nodes"
        await report(min(growth.done, growth.total), growth.total, message)
    if not nodes:
        return np.zeros((0, embedder.dimension), dtype=np.float32)
    return np.stack([known[i] for i in range(len(nodes))])


def _all_runs(growth: Growth) -> list[tuple[int, int]]:
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
    growth: Growth, embedder: Embedder | None, options: TreeOptions, parents: Parents, report: Report
) -> list[int]:
    """Add layers until no group can be clustered; returns the roots in reading order."""
    spans = [(0, len(growth.leaves))] if options.pooled else _by_document(growth.leaves)
    groups = [list(range(*span)) for span in spans]
    joined = len(groups) < 2
    for _ in range(MOST_LAYERS):
        kept = [growth.earlier.clusters(group) if growth.earlier else {} for group in groups]
        found = await in_thread(_cluster_groups, growth, groups, kept, options)
        if not any(found):
            if joined:
                break
            groups, joined = [sorted(node for group in groups for node in group)], True
            continue
        above: list[list[int]] = []
        first, made = len(growth.nodes), parents.made
        parted = iter(await parents.over(growth, [members for clusters in found for members in clusters]))
        for group, clusters, stood in zip(groups, found, kept, strict=True):
            nodes = [next(parted) for _ in clusters]
            places = list(range(len(growth.nodes), len(growth.nodes) + len(nodes)))
            above.append(places or group)
            growth.nodes.extend(nodes)
            if growth.earlier and stood and places:
                growth.earlier.settle(stood, list(zip(places, clusters, strict=True)))
        fresh = growth.nodes[first:]
        if embedder is not None:
            vectors = await _embedded(fresh, [node.text for node in fresh], growth, embedder, report)
        else:
            vectors = await in_thread(_mean_vectors, growth, fresh)
            growth.done += len(fresh)
        growth.vectors.append(vectors)
        layer = max(node.layer for node in fresh)
        message = f"layer {layer}: {len(fresh)} summaries, {parents.made - made} of them new"
        await report(min(growth.done, growth.total), growth.total, message)
        groups = above
    return [node for group in groups for node in group]


def _cluster_groups(
    growth: Growth, groups: Sequence[Sequence[int]], kept: Sequence[Mapping[int, Sequence[int]]], options: TreeOptions
) -> list[list[tuple[int, ...]]]:
    """Cluster each group of nodes, or let it join the clusters that stood; empty where it cannot be."""
    rows = np.concatenate(growth.vectors)
    found: list[list[tuple[int, ...]]] = []
    for group, stood in zip(groups, kept, strict=True):
        tokens = [growth.nodes[i].tokens for i in group]
        layer = Layer(rows[np.asarray(group, dtype=np.int64)], tokens, options.window_tokens, options.seed)
        place = {node: i for i, node in enumerate(group)}
        before = [[place[node] for node in members] for members in stood.values()]
        clusters = join_clusters(layer, before, options.clustering) if before else cluster(layer, options.clustering)
        found.append([tuple(group[i] for i in members) for members in clusters])
    return found


def _mean_vectors(growth: Growth, nodes: Sequence[TreeNode]) -> Floats:
    rows = np.concatenate(growth.vectors)
    means = np.stack([rows[np.asarray(node.leaves)].mean(axis=0) for node in nodes])
    return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9), dtype=np.float32)
