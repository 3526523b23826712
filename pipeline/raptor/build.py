"""From documents to a tree: leaves of whole sentences, and a vector for each (RAPTOR
§3).

One more document leaves the leaves of the others as they are, and their vectors are
taken over. Not for: asking a tree (`query.py`), or clusters above the leaves
(`papers/raptor`)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from models.protocols import Embedder
from pipeline.printed import printed
from pipeline.raptor.leaves import (
    Chunker,
    Ranges,
    main_sentences,
    make_leaves,
    pack_sentences,
    unbroken,
)
from pipeline.raptor.tree import (
    BuiltWith,
    Leaf,
    Source,
    Tree,
    TreeOptions,
    find_tree,
    keep_tree,
    tree_handle,
)
from pipeline.reading.bm25 import Floats, word_vectors
from pipeline.reading.relevance import EMBEDDED_AT_ONCE
from pipeline.text.words import index_terms
from pipeline.work import Report, in_thread, no_report, traced
from readers.page import Document, Sentence


@traced("build_tree")
async def build_tree(
    documents: Sequence[Document],
    *,
    embedder: Embedder | None,
    options: TreeOptions,
    store: Store | None,
    report: Report = no_report,
    grown_from: Tree | None = None,
    idms: Chunker | None = None,
) -> Tree:
    """Build the tree of `documents`, or take it from `store`.

    Args:
        documents: Any number; one without text adds a source and no leaf.
        embedder: Vectors for leaves; None, or one that cannot read the texts, gives
            word vectors.
        store: Where trees are kept; None keeps nothing.
        grown_from: An earlier tree over some of these documents: the vectors of leaves
            that it has are taken over, if they are by the same embedder.
        idms: Cuts `idms` leaves, and may write what the index reads beside them; None
            cuts them by embeddings.

    Returns: The tree; without leaves when there is no text. The same documents, options
        and models give the same ids.

    Raises:
        ModelError: The embedder failed.
    """
    reading = await in_thread(_reading, documents, embedder)
    idms = (idms or printed("chunker")()) if options.chunking == "idms" else None
    name = reading.name if reading else "lexical"
    built_with = BuiltWith(name, idms.version if idms else "", options)
    handle = tree_handle(documents, built_with)
    if store is not None:
        stored = await in_thread(find_tree, store, handle)
        if stored is not None:
            await report(1, 1, "took the tree from the cache")
            return stored
    # 1. Leaves: whole sentences, about 100 tokens
    leaves, terms = await _leaves(documents, options, reading, idms, report)
    if idms and idms.version != built_with.cut_by:
        # something failed: not the tree that the handle names
        built_with = replace(built_with, cut_by=idms.version)
        handle = tree_handle(documents, built_with)
    # 2. A vector for every leaf
    before = grown_from if grown_from and grown_from.built_with == built_with else None
    vectors = await _vectors(leaves, terms, reading, before, report)
    # 3. Keep it under its handle
    sources = tuple(_source(document) for document in documents)
    tree = Tree(handle, tuple(leaves), vectors, sources, built_with)
    if store is not None:
        await in_thread(keep_tree, store, tree)
    total = max(1, len(leaves))
    await report(total, total, f"tree of {len(leaves)} leaves is ready")
    return tree


def _source(document: Document) -> Source:
    page = document.page
    return Source(
        page.final_url or page.url,
        page.title,
        page.content_hash,
        page.published,
        page.unread,
        page.rest,
    )


def _reading(
    documents: Sequence[Document], embedder: Embedder | None
) -> Embedder | None:
    """Return the embedder if it knows the script of at least half of the text, else
    None."""
    if embedder is None:
        return None
    read = sum(len(d.text) for d in documents if embedder.reads(d.text[:20_000]))
    return embedder if 2 * read >= sum(len(d.text) for d in documents) else None


async def _leaves(
    documents: Sequence[Document],
    options: TreeOptions,
    embedder: Embedder | None,
    idms: Chunker | None,
    report: Report,
) -> tuple[list[Leaf], list[Counter[str]]]:
    """Return the leaves of the documents, and the terms of each where no `embedder`
    makes its vector. A second document with the same address and text is left out: two
    addresses may lead to one page."""
    leaves: list[Leaf] = []
    terms: list[Counter[str]] = []
    forms: list[str] = []
    seen: set[tuple[str, str]] = set()
    before: Counter[str] = Counter()
    for number, document in enumerate(documents):
        key = (document.page.final_url or document.page.url, document.text)
        if key in seen:
            continue
        seen.add(key)
        language = document.page.language[:2].lower()
        sentences = await in_thread(main_sentences, document)
        ranges = await _ranges(document, sentences, options, embedder, idms)
        chunks = [
            [sentence.text for sentence in sentences[start:stop]]
            for start, stop in ranges
        ]
        forms.extend(await idms.forms(chunks, language=language) if idms else ())
        if embedder is None:
            terms += await in_thread(_counted, chunks, language or "en")
        leaves += await in_thread(
            make_leaves, document, sentences, ranges, number=number, before=before
        )
        message = (
            f"cut {number + 1} of {len(documents)} documents into {len(leaves)} leaves"
        )
        await report(0, None, message)
    if idms is not None and idms.writes:
        # forms of some documents and not of others would tip the scales
        leaves = [
            leaf._replace(form=form) for leaf, form in zip(leaves, forms, strict=True)
        ]
    return leaves, terms


async def _ranges(
    document: Document,
    sentences: Sequence[Sentence],
    options: TreeOptions,
    embedder: Embedder | None,
    idms: Chunker | None,
) -> Ranges:
    if idms is None:
        return await in_thread(
            pack_sentences, document, sentences, leaf_tokens=options.leaf_tokens
        )
    least, highest = options.segment_tokens
    ranges = await idms.ranges(
        sentences, embedder=embedder, minimum=least, maximum=highest
    )
    return unbroken(sentences, ranges)


def _counted(chunks: Sequence[Sequence[str]], language: str) -> list[Counter[str]]:
    return [
        Counter(term for text in chunk for term in index_terms(text, language=language))
        for chunk in chunks
    ]


async def _vectors(
    leaves: Sequence[Leaf],
    terms: Sequence[Counter[str]],
    embedder: Embedder | None,
    before: Tree | None,
    report: Report,
) -> NDArray[np.float16]:
    """Return a vector of each leaf: of the embedder, in batches between which a build
    can be cancelled, else of its words. Those of an earlier tree are taken over."""
    if embedder is None:
        rows: Floats = await in_thread(word_vectors, terms)
        return rows.astype(np.float16)
    rows_before = (
        {leaf.id: row for row, leaf in enumerate(before.leaves)} if before else {}
    )
    vectors = np.zeros((len(leaves), embedder.dimension), dtype=np.float16)
    unembedded = []
    for number, leaf in enumerate(leaves):
        if before is not None and leaf.id in rows_before:
            vectors[number] = before.vectors[rows_before[leaf.id]]
        else:
            unembedded.append(number)
    for low in range(0, len(unembedded), EMBEDDED_AT_ONCE):
        batch = unembedded[low : low + EMBEDDED_AT_ONCE]
        texts = [leaves[number].embedded for number in batch]
        vectors[batch] = await embedder.embed(texts, kind="passage")
        done = low + len(batch)
        await report(
            done, len(unembedded), f"embedded {done} of {len(unembedded)} leaves"
        )
    return vectors
