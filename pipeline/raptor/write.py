"""A generator writes the summaries of a kept tree, from the lowest layer up (RAPTOR §3,
App. C).

Trees are built with extracted summaries, because a generator on a processor takes about
20 s for each. What it writes replaces them in the kept tree, under the same handle, a
layer at a time; a summary that its children do not support stays extracted. Not for:
trees whose clusters depend on what is written (`build.py` with a `Writer`), or the
checks (`summarise.py`)."""

from dataclasses import replace
from functools import partial

import numpy as np

from cache.store import Store
from models.protocols import Embedder
from pipeline.raptor.summarise import EXTRACTIVE, Writer, kept_summary
from pipeline.raptor.tree import Tree, TreeNode, keep_tree
from pipeline.text.tokens import count_tokens
from pipeline.work import Report, between_calls, in_thread


def is_extracted(tree: Tree) -> bool:
    """Return whether a tree has summaries, and no generator has been through all of them."""
    return tree.built_with.summariser.startswith(EXTRACTIVE) and len(tree.layers) > 1


async def write_tree(
    tree: Tree,
    writer: Writer,
    *,
    embedder: Embedder | None,
    store: Store,
    report: Report,
) -> Tree:
    """Return `tree` with written summaries, kept in `store` after each layer.

    Each summary is written while no call is under way, which is waited for without
    limit. One of which the texts support too little is left extracted. All are kept by
    their children's texts, so that what was stopped goes on where it was.

    Args:
        tree: One of `store` with extracted summaries.
        embedder: The one that the tree was built with; with None, or another, vectors stay.

    Raises:
        ModelError: A model failed; the layers below are kept.
    """
    most = tree.built_with.options.summary_tokens
    total = sum(map(len, tree.layers[1:]))
    tried = written = 0
    for layer in tree.layers[1:]:
        changed: dict[int, TreeNode] = {}
        for index in layer:
            node = tree.nodes[index]
            texts = [tree.nodes[child].text for child in node.children]
            write = partial(kept_summary, writer, texts, max_tokens=most, store=store)
            summary = await between_calls(write)
            tried += 1
            if summary.text:
                written += 1
                changed[index] = node._replace(
                    text=summary.text,
                    tokens=count_tokens(summary.text),
                    quotes=(),
                    unsupported=summary.unsupported,
                )
            await report(
                tried,
                total,
                f"Summaries that the generator wrote: {written} of {tried}; {total - tried} to come.",
            )
        tree = await _with(tree, changed, embedder)
        await in_thread(keep_tree, store, tree)
    cut = tree.built_with.summariser.partition(EXTRACTIVE)[2]
    made = replace(tree.built_with, summariser=f"{writer.name}{cut}")
    tree = replace(tree, built_with=made)
    await in_thread(keep_tree, store, tree)
    return tree


async def _with(
    tree: Tree, changed: dict[int, TreeNode], embedder: Embedder | None
) -> Tree:
    """Return a tree with some of its nodes changed, and their vectors."""
    nodes = tuple(changed.get(i, node) for i, node in enumerate(tree.nodes))
    vectors = tree.vectors
    if embedder is not None and embedder.name == tree.built_with.embedder and changed:
        texts = [node.text for node in changed.values()]
        rows = await embedder.embed(texts, kind="passage")
        vectors = vectors.copy()
        vectors[list(changed)] = rows.astype(np.float16)
    return replace(tree, nodes=nodes, vectors=vectors)
