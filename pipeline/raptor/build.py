"""From documents to a tree: leaves, vectors, then cluster and summarise layer by layer
(RAPTOR §3).

Every document gets a tree of its own and the roots are clustered above them: one more
document then changes only the top, 1 to 2 % of the summaries against 60 to 96 %. Not
for: asking a tree (`query.py`)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, starmap

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from errors import ModelError
from models.protocols import Embedder, unit_rows
from pipeline.document.page import Document, Sentence
from pipeline.messages import side_by_side
from pipeline.printed import printed
from pipeline.raptor.cluster import (
    CHILDREN,
    MOST_CHILDREN,
    Layer,
    cluster,
    join_clusters,
)
from pipeline.raptor.leaves import (
    Chunker,
    Ranges,
    main_sentences,
    make_leaves,
    pack_sentences,
    unbroken,
)
from pipeline.raptor.summarise import (
    EXTRACTIVE,
    Quotable,
    Summary,
    Writer,
    extract_summary,
    kept_summary,
)
from pipeline.raptor.tree import (
    BuiltWith,
    Leaf,
    Source,
    SummaryQuote,
    Tree,
    TreeNode,
    TreeOptions,
    find_tree,
    hashed,
    keep_tree,
    leaf_node,
    tree_handle,
)
from pipeline.reading.bm25 import rarities, word_vectors
from pipeline.reading.relevance import EMBEDDED_AT_ONCE
from pipeline.text.tokens import count_tokens
from pipeline.text.words import index_terms
from pipeline.work import Report, in_thread, no_report, traced

Floats = NDArray[np.float32]


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
    idms: Chunker | None = None,
) -> Tree:
    """Build the tree of `documents`, or take it from `store`.

    Args:
        documents: Any number; one without text adds a source and no leaf.
        embedder: Vectors for leaves and summaries; None, or one that cannot read the
            texts, gives word vectors.
        store: Where trees and written summaries are kept; None keeps nothing.
        writer: Generator and prompt for summaries; without one they are extracted.
        grown_from: An earlier tree over some of these documents. Leaves that it has
            keep their clusters, new ones join the nearest, and only summaries whose
            children changed are made again; a tree by another embedder, other options
            or another generator brings nothing.
        idms: Cuts `idms` leaves, and may write what the index reads beside them; None
            cuts them by embeddings.

    Returns: The tree; without leaves when there is no text. The same documents, options
        and models give the same ids.

    Raises:
        ModelError: The embedder failed; a failing generator only costs its summary.
        MissingExtra: `umap` was chosen and is not installed.
    """
    reading = await in_thread(_reading, documents, embedder)
    idms = (idms or printed("chunker")()) if options.chunking == "idms" else None
    built_with = BuiltWith(
        reading.name if reading else "lexical", _summariser(writer, idms), options
    )
    before = _continued(grown_from, built_with)
    origin = before.id if before else ""
    handle = tree_handle(documents, built_with, grown_from=origin)
    if (
        store is not None
        and (kept := await in_thread(find_tree, store, handle)) is not None
    ):
        await report(1, 1, "took the tree from the cache")
        return kept
    growth = _Growth(reading, options, store, writer, report)
    # 1. leaves: whole sentences, about 100 tokens
    await growth.cut(documents, idms)
    if (
        _summariser(writer, idms) != built_with.summariser
    ):  # something failed: not the tree that the handle names
        built_with = replace(built_with, summariser=_summariser(writer, idms))
        handle = tree_handle(documents, built_with, grown_from=origin)
    growth.earlier = Earlier(before, growth.leaves) if before else None
    # 2. a vector for every leaf
    await growth.embed_leaves()
    # 3. cluster and summarise, within each document, then over the documents' roots
    roots = await growth.grow()
    # 4. keep it under its handle
    tree = growth.finished(handle, documents, roots, built_with)
    if store is not None:
        await in_thread(keep_tree, store, tree)
    await growth.report(
        f"tree of {len(tree.leaves)} leaves and {len(tree.layers)} layers is ready",
        done=growth.total,
    )
    return tree


def _summariser(writer: Writer | None, idms: Chunker | None) -> str:
    summariser = writer.name if writer else EXTRACTIVE
    return f"{summariser}; {idms.version}" if idms and idms.version else summariser


def _continued(earlier: Tree | None, now: BuiltWith) -> Tree | None:
    """Return an earlier tree if its summaries may be reused with the present options,
    else None.

    Where summaries are extracted now, written ones stay: they were checked, and lack
    quotes, by which they are known."""
    if earlier is None:
        return None
    before = earlier.built_with
    if (before.embedder, before.options) != (now.embedder, now.options):
        return None
    (wrote, _, cut), (writes, _, cuts) = (
        before.summariser.partition("; "),
        now.summariser.partition("; "),
    )
    return earlier if cut == cuts and writes in (wrote, EXTRACTIVE) else None


def _reading(
    documents: Sequence[Document], embedder: Embedder | None
) -> Embedder | None:
    """Return the embedder if it knows the script of at least half of the text, else
    None."""
    if embedder is None:
        return None
    read = sum(len(d.text) for d in documents if embedder.reads(d.text[:20_000]))
    return embedder if 2 * read >= sum(len(d.text) for d in documents) else None


def _with_terms(
    chunks: Sequence[Sequence[str]], language: str
) -> list[list[tuple[str, list[str]]]]:
    return [
        [(text, index_terms(text, language=language)) for text in chunk]
        for chunk in chunks
    ]


@dataclass(slots=True)
class _Growth:
    """A tree that is being built: what is known so far, layer by layer."""

    _embedder: Embedder | None
    _options: TreeOptions
    _store: Store | None
    _writer: Writer | None
    _report: Report
    earlier: "Earlier | None" = None
    leaves: list[Leaf] = field(default_factory=list)
    nodes: list[TreeNode] = field(default_factory=list)
    vectors: list[Floats] = field(default_factory=list)
    """One block of rows a layer."""
    total: float = 1.0
    _done: float = 0.0
    _made: int = 0
    """Summaries that were not taken over from an earlier tree."""
    _sentences: list[list[tuple[str, list[str]]]] = field(default_factory=list)
    """Of each leaf, its sentences: text on one line, terms."""
    _terms: list[Counter[str]] = field(default_factory=list)
    _idf: dict[str, float] = field(default_factory=dict)

    async def report(self, message: str, *, done: float = 0.0) -> None:
        self._done = min(self._done + done, self.total)
        await self._report(self._done, self.total, message)

    async def cut(self, documents: Sequence[Document], idms: Chunker | None) -> None:
        """Cut the documents into leaves and count their terms. A second document with
        the same address and text is left out."""
        forms: list[str] = []
        seen: set[tuple[str, str]] = set()
        before: Counter[str] = Counter()
        for number, document in enumerate(documents):
            # Two addresses may lead to one page: its leaves are added once.
            named = (document.page.final_url or document.page.url, document.text)
            if named in seen:
                continue
            seen.add(named)
            language = document.page.language[:2].lower()
            sentences = await in_thread(main_sentences, document)
            ranges = await self._ranges(document, sentences, idms)
            chunks = [
                [sentence.text for sentence in sentences[begin:end]]
                for begin, end in ranges
            ]
            forms.extend(await idms.forms(chunks, language=language) if idms else ())
            self._sentences.extend(
                await in_thread(_with_terms, chunks, language or "en")
            )
            leaves = await in_thread(
                make_leaves, document, sentences, ranges, number=number, before=before
            )
            self.leaves.extend(leaves)
            message = f"cut {number + 1} of {len(documents)} documents into {len(self.leaves)} leaves"
            await self._report(0, None, message)
        if (
            idms is not None and idms.writes
        ):  # forms of some documents and not of others would tip the scales
            self.leaves = [
                leaf._replace(form=form)
                for leaf, form in zip(self.leaves, forms, strict=True)
            ]
        self._count_terms()
        self.nodes = list(starmap(leaf_node, enumerate(self.leaves)))
        # A tree in which every node has about `CHILDREN` children has one inner node for so many
        # leaves less one.
        self.total = max(1.0, len(self.leaves) * (1 + 1 / (CHILDREN - 1)))

    async def _ranges(
        self, document: Document, sentences: Sequence[Sentence], idms: Chunker | None
    ) -> Ranges:
        """Return the sentences of each leaf of a document."""
        if idms is None:
            return await in_thread(
                pack_sentences,
                document,
                sentences,
                leaf_tokens=self._options.leaf_tokens,
            )
        least, most = self._options.segment_tokens
        found = await idms.ranges(
            sentences, embedder=self._embedder, minimum=least, maximum=most
        )
        return unbroken(sentences, found)

    def _count_terms(self) -> None:
        terms = [
            Counter(term for _, terms in leaf for term in terms)
            for leaf in self._sentences
        ]
        self._idf = rarities(terms)
        # Counts of all leaves take 50 MB over a million tokens: they are kept for vectors of words
        # only.
        self._terms = terms if self._embedder is None else []

    async def embed_leaves(self) -> None:
        """Add the leaves' vectors: of the embedder, else of their words."""
        if self._embedder is None:
            self.vectors.append(await in_thread(word_vectors, self._terms))
            await self.report("counted the words of the leaves", done=len(self.leaves))
            return
        self.vectors.append(
            await self._embedded(
                self.nodes, [leaf.embedded for leaf in self.leaves], self._embedder
            )
        )

    async def _embedded(
        self, nodes: Sequence[TreeNode], texts: Sequence[str], embedder: Embedder
    ) -> Floats:
        """Embed the nodes' texts in batches, between which a build can be cancelled.

        What an earlier tree knows is taken over.
        """
        known = (
            {i: self.earlier.vector(node.id) for i, node in enumerate(nodes)}
            if self.earlier
            else {}
        )
        rows = {i: row for i, row in known.items() if row is not None}
        fresh = [i for i in range(len(nodes)) if i not in rows]
        self._done += len(rows)
        for low in range(0, len(fresh), EMBEDDED_AT_ONCE):
            part = fresh[low : low + EMBEDDED_AT_ONCE]
            rows.update(
                zip(
                    part,
                    await embedder.embed([texts[i] for i in part], kind="passage"),
                    strict=True,
                )
            )
            await self.report(
                f"embedded {low + len(part)} of {len(fresh)} nodes", done=len(part)
            )
        if not nodes:
            return np.zeros((0, embedder.dimension), dtype=np.float32)
        return np.stack([rows[i] for i in range(len(nodes))])

    def finished(
        self,
        handle: str,
        documents: Sequence[Document],
        roots: Sequence[int],
        built_with: BuiltWith,
    ) -> Tree:
        pages = [document.page for document in documents]
        return Tree(
            id=handle,
            nodes=tuple(self.nodes),
            leaves=tuple(self.leaves),
            roots=tuple(roots),
            vectors=np.concatenate([rows.astype(np.float16) for rows in self.vectors]),
            sources=tuple(
                Source(
                    p.final_url or p.url,
                    p.title,
                    p.content_hash,
                    p.published,
                    p.unread,
                    p.rest,
                )
                for p in pages
            ),
            built_with=built_with,
        )

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
            kept = [
                self.earlier.clusters(group) if self.earlier else {} for group in groups
            ]
            found = await in_thread(self._clusters, groups, kept, by_leaves=joined)
            if any(found):
                groups = await self._add_layer(groups, kept, found)
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
        kept: Sequence[Mapping[int, Sequence[int]]],
        *,
        by_leaves: bool,
    ) -> list[list[tuple[int, ...]]]:
        """Cluster each group of nodes, or add it to existing clusters.

        Returns the clusters of each group, in the order of `groups`; none for a group
        that cannot be clustered.

        With `by_leaves`, a node counts as the mean of its leaves: the whole text
        represents it better than a summary of 130 tokens."""
        found: list[list[tuple[int, ...]]] = []
        for group, earlier_groups in zip(groups, kept, strict=True):
            nodes = [self.nodes[i] for i in group]
            vectors = (
                self._mean_vectors(nodes)
                if by_leaves
                else np.stack([self._vector(i) for i in group])
            )
            layer = Layer(
                vectors, [node.tokens for node in nodes], self._options.window_tokens
            )
            index = {node: i for i, node in enumerate(group)}
            before = [
                [index[node] for node in members] for members in earlier_groups.values()
            ]
            method = self._options.clustering
            clusters = (
                join_clusters(layer, before, method)
                if before
                else cluster(layer, method)
            )
            found.append([tuple(group[i] for i in members) for members in clusters])
        return found

    async def _add_layer(
        self,
        groups: Sequence[list[int]],
        kept: Sequence[dict[int, list[int]]],
        found: Sequence[Sequence[tuple[int, ...]]],
    ) -> list[list[int]]:
        """Add a node over each cluster found; returns the groups above, a group without
        clusters as it was."""
        first, made = len(self.nodes), self._made
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
        for group, clusters, earlier_groups in zip(groups, found, kept, strict=True):
            parents = list(range(index, index + len(clusters)))
            index += len(clusters)
            above.append(parents or group)
            if self.earlier and earlier_groups and parents:
                self.earlier.settle(
                    earlier_groups, list(zip(parents, clusters, strict=True))
                )
        if self._embedder is not None:
            self.vectors.append(
                await self._embedded(
                    fresh, [node.text for node in fresh], self._embedder
                )
            )
        else:
            self.vectors.append(await in_thread(self._mean_vectors, fresh))
            self._done += len(fresh)
        layer = max(node.layer for node in fresh)
        await self.report(
            f"layer {layer}: {len(fresh)} summaries, {self._made - made} of them new"
        )
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
        """Return the node over `members`, taken over from an earlier tree, or
        summarised.

        Where the generator fails or writes nothing that is supported, sentences are
        extracted."""
        children = [self.nodes[i] for i in members]
        node_id = hashed(("node", *(child.id for child in children)))
        layer = 1 + max(child.layer for child in children)
        leaves = tuple(sorted({leaf for child in children for leaf in child.leaves}))
        if self.earlier and (known := self.earlier.summary(node_id)):
            return known._replace(layer=layer, children=members, leaves=leaves)
        self._made += 1
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


class Earlier:
    """A finished tree, seen from one that grows from it: its clusters, summaries and
    vectors, nodes known by their ids.

    An added page joins the existing clusters; only summaries whose children
    changed are made again."""

    def __init__(self, tree: Tree, leaves: Sequence[Leaf]) -> None:
        """Find which of `leaves`, those of the growing tree in order, the earlier
        `tree` has as well."""
        self._tree = tree
        self._places = {node.id: i for i, node in enumerate(tree.nodes)}
        self._now: dict[int, list[int]] = {}
        """Node of the earlier tree to the nodes that replace it."""
        self._was: dict[int, list[int]] = {}
        """Node of the growing tree to the earlier nodes that it replaces."""
        for new, leaf in enumerate(leaves):
            if (old := self._places.get(leaf.id)) is not None:
                self._settle(old, new)
        self._parents: dict[int, list[int]] = {}
        for index, node in enumerate(tree.nodes):
            for child in node.children:
                self._parents.setdefault(child, []).append(index)

    def _settle(self, old: int, new: int) -> None:
        self._now.setdefault(old, []).append(new)
        self._was.setdefault(new, []).append(old)

    def vector(self, node_id: str) -> Floats | None:
        """Return the unit vector of the node with this id, None where the earlier tree
        has none."""
        index = self._places.get(node_id)
        if index is None:
            return None
        return np.asarray(
            unit_rows(self._tree.vectors[index : index + 1].astype(np.float32))[0]
        )

    def summary(self, node_id: str) -> TreeNode | None:
        """Return the inner node with this id, its quotes on the leaves of the growing
        tree; None if there is none."""
        index = self._places.get(node_id)
        if index is None:
            return None
        node = self._tree.nodes[index]
        return node._replace(
            quotes=tuple(
                SummaryQuote(self._now[q.leaf][0], q.sentence) for q in node.quotes
            )
        )

    def clusters(self, group: Sequence[int]) -> dict[int, list[int]]:
        """Return the earlier parents whose surviving children are all in `group`, with
        those children."""
        inside = set(group)
        known = {old for node in group for old in self._was.get(node, ())}
        found: dict[int, list[int]] = {}
        for parent in sorted(
            {above for old in known for above in self._parents.get(old, ())}
        ):
            members = {
                n
                for child in self._tree.nodes[parent].children
                for n in self._now.get(child, ())
            }
            if parent not in self._now and members and members <= inside:
                found[parent] = sorted(members)
        return found

    def settle(
        self, kept: dict[int, list[int]], made: Sequence[tuple[int, Sequence[int]]]
    ) -> None:
        """Record which new parent replaces each earlier one: the one that shares most
        children."""
        above: dict[int, list[int]] = {}
        for parent, members in kept.items():
            for member in members:
                above.setdefault(member, []).append(parent)
        for node, children in made:
            shared = Counter(
                parent for child in children for parent in above.get(child, ())
            )
            if shared:
                self._settle(
                    min(shared, key=lambda parent: (-shared[parent], parent)), node
                )
        for parent, members in kept.items():
            if parent not in self._now:
                node, _ = max(
                    made, key=lambda one: len(set(members).intersection(one[1]))
                )
                self._settle(parent, node)
