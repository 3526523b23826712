"""The inner nodes of a tree: taken over from an earlier tree, or summarised by a generator or by extraction.

Not for: which nodes share a parent (`cluster.py`, `join.py`), nor how a summary is made (`summarise.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from errors import ModelError
from pipeline.messages import side_by_side
from pipeline.raptor.join import Earlier
from pipeline.raptor.lexical import LexicalIndex
from pipeline.raptor.summarise import Candidate, Summary, Writer, extract_summary, kept_summary
from pipeline.raptor.tree import Leaf, Quote, TreeNode, TreeOptions, parent_id
from pipeline.text.tokens import count_tokens
from pipeline.work import in_thread


@dataclass(slots=True)
class Growth:
    """What a build knows so far; grows layer by layer."""

    leaves: list[Leaf]
    lines: list[list[tuple[Quote, str, tuple[int, ...]]]]
    """Of each leaf, its sentences: place, text on one line, term numbers."""
    lexical: LexicalIndex
    idf: NDArray[np.float64]
    nodes: list[TreeNode]
    vectors: list[NDArray[np.float32]]
    """One block of rows a layer."""
    earlier: Earlier | None = None
    done: float = 0
    total: float = 1


class Parents:
    """Makes inner nodes; written summaries are kept by content, so a build that was killed writes none twice."""

    def __init__(self, store: Store | None, writer: Writer | None, options: TreeOptions) -> None:
        """Summarise with `writer`, or by extraction where there is none; keep in `store` what was written."""
        self._store = store
        self._writer = writer
        self._most = options.summary_tokens
        self.made = 0
        """Summaries that were not taken over from an earlier tree."""

    async def over(self, growth: Growth, clusters: Sequence[tuple[int, ...]]) -> list[TreeNode]:
        """Return the node over each of `clusters`, in order; a generator writes several summaries at once."""
        if self._writer is None:
            return [await self.parent(growth, members) for members in clusters]
        return await side_by_side([partial(self.parent, growth, members) for members in clusters])

    async def parent(self, growth: Growth, members: tuple[int, ...]) -> TreeNode:
        """Return the node over `members`, summarised."""
        children = [growth.nodes[i] for i in members]
        node_id = parent_id([child.id for child in children])
        known = growth.earlier.summary(node_id) if growth.earlier else None
        if known is not None:
            summary = Summary(known.text, known.quotes, known.unborne)
        else:
            self.made += 1
            written = await self._written([child.text for child in children])
            summary = written if written.text else await in_thread(self._extracted, growth, members)
        return TreeNode(
            id=node_id,
            layer=1 + max(child.layer for child in children),
            text=summary.text,
            children=members,
            leaves=tuple(sorted({leaf for child in children for leaf in child.leaves})),
            tokens=count_tokens(summary.text),
            is_summary=True,
            quotes=summary.quotes,
            unborne=summary.unborne,
        )

    async def _written(self, texts: list[str]) -> Summary:
        if self._writer is None:
            return Summary("", ())
        try:
            return await kept_summary(self._writer, texts, max_tokens=self._most, store=self._store)
        except ModelError:
            # One failed summary is extracted instead; a dead generator must not cost the tree.
            return Summary("", ())

    def _extracted(self, growth: Growth, members: tuple[int, ...]) -> Summary:
        return extract_summary(_candidates(growth, members), growth.idf, max_tokens=self._most)


def _candidates(growth: Growth, members: tuple[int, ...]) -> list[Candidate]:
    """The sentences that the children show: all of a leaf, the quoted ones of a summary."""
    children = [growth.nodes[i] for i in members]
    wanted: dict[int, set[int] | None] = {}
    shows: dict[int, int] = {}
    for number, child in enumerate(children, start=1):
        if child.quotes:
            for quote in child.quotes:
                shows.setdefault(quote.leaf, number)
                starts = wanted.setdefault(quote.leaf, set())
                if starts is not None:
                    starts.add(quote.start)
        else:
            for leaf in child.leaves[:40]:
                wanted[leaf] = None
                shows.setdefault(leaf, number if child.is_summary else 0)
    order = sorted(wanted)
    rows = growth.vectors[0][np.asarray(order)]
    centre = rows.mean(axis=0)
    likeness = rows @ (centre / max(float(np.linalg.norm(centre)), 1e-9))
    return [
        Candidate(quote, text, terms, float(likeness[place]), opens=n == 0, child=shows[leaf])
        for place, leaf in enumerate(order)
        for n, (quote, text, terms) in enumerate(growth.lines[leaf])
        if (starts := wanted[leaf]) is None or quote.start in starts
    ]
