"""What an earlier tree brings into the next one: its clusters, summaries and vectors (incremental building).

A page that is added joins the clusters that stand; only summaries whose children changed are made again. Not for:
making clusters (`cluster.py`) or nodes (`build.py`).
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.raptor.cluster import unit_rows
from pipeline.raptor.tree import Leaf, Quote, Tree, TreeNode

Floats = NDArray[np.float32]


class Earlier:
    """A finished tree, seen from one that grows from it; nodes are known by their ids."""

    def __init__(self, tree: Tree, leaves: Sequence[Leaf]) -> None:
        """Find which of `leaves`, those of the growing tree in order, the earlier `tree` has as well."""
        self._tree = tree
        self._places = {node.id: i for i, node in enumerate(tree.nodes)}
        self._now: dict[int, list[int]] = {}
        """Node of the earlier tree to the nodes that stand in its place now."""
        self._was: dict[int, list[int]] = {}
        """Node of the growing tree to the earlier nodes in whose place it stands."""
        for new, leaf in enumerate(leaves):
            if (old := self._places.get(leaf.id)) is not None:
                self._settle(old, new)
        self._parents: dict[int, list[int]] = {}
        for place, node in enumerate(tree.nodes):
            for child in node.children:
                self._parents.setdefault(child, []).append(place)

    def _settle(self, old: int, new: int) -> None:
        self._now.setdefault(old, []).append(new)
        self._was.setdefault(new, []).append(old)

    def vector(self, node_id: str) -> Floats | None:
        """Return the unit vector of the node with this id, None where the earlier tree has none."""
        place = self._places.get(node_id)
        if place is None:
            return None
        return np.asarray(unit_rows(self._tree.vectors[place : place + 1].astype(np.float32))[0])

    def summary(self, node_id: str) -> TreeNode | None:
        """Return the inner node with this id, its quotes on the leaves of the growing tree; None if there is none."""
        place = self._places.get(node_id)
        if place is None:
            return None
        node = self._tree.nodes[place]
        return node._replace(quotes=tuple(Quote(self._now[q.leaf][0], q.sentence) for q in node.quotes))

    def clusters(self, group: Sequence[int]) -> dict[int, list[int]]:
        """Return the earlier parents all of whose surviving children stand in `group`, with those children."""
        inside = set(group)
        known = {old for node in group for old in self._was.get(node, ())}
        found: dict[int, list[int]] = {}
        for parent in sorted({above for old in known for above in self._parents.get(old, ())}):
            members = {n for child in self._tree.nodes[parent].children for n in self._now.get(child, ())}
            if parent not in self._now and members and members <= inside:
                found[parent] = sorted(members)
        return found

    def settle(self, kept: dict[int, list[int]], made: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Note which new parents stand for the earlier ones: each for the one that it shares most children with."""
        above: dict[int, list[int]] = {}
        for parent, members in kept.items():
            for member in members:
                above.setdefault(member, []).append(parent)
        for node, children in made:
            shared = Counter(parent for child in children for parent in above.get(child, ()))
            if shared:
                self._settle(min(shared, key=lambda parent: (-shared[parent], parent)), node)
        for parent, members in kept.items():
            if parent not in self._now:
                node, _ = max(made, key=lambda one: len(set(members).intersection(one[1])))
                self._settle(parent, node)
