"""Grouping the nodes of one layer: soft clusters, global then local, none over the summariser's window (RAPTOR §3).

Three methods with one result, clusters of node numbers in which every node stands at least once:
- `kmeans`: spherical k-means in two steps, some nodes in two clusters. Loses 0 to 0.7 points of collapsed recall
  against UMAP and a Gaussian mixture at a three-hundredth of their time, hence the default.
- `gmm`: the paper's Gaussian mixture with BIC (`mixture.py`), on principal components instead of UMAP.
- `umap`: the same on UMAP's points, as in the paper (extra `umap`).
Deterministic: one seed, ties to the lower number. Not for: summaries, or which nodes make a layer (`build.py`).
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.raptor.mixture import soft_mixture, spread_seeds
from pipeline.raptor.tree import Clustering
from pipeline.work import check_cancelled

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Groups = list[list[int]]

CHILDREN: Final = 7
"""Wished children a cluster (RAPTOR App. B: 6.7 on average)."""
MOST_CHILDREN: Final = 12
"""No k-means cluster is larger: a summary of 130 tokens cannot speak for more."""
SPILL_SHARE: Final = 0.15
"""Most of the nodes that may join a second cluster, those nearest to it first."""
SPILL_GAP: Final = 0.08
"""Largest difference of cosine at which a node joins its second cluster as well: without it, one more document changes
half as many nodes again."""
ROUNDS: Final = 8
"""Rounds of k-means; assignments hardly change after six."""
COMPARED: Final = 1024
"""Nodes compared with all centres at a time, which bounds memory; also the clusters up to which a node may spill into
any of them and not only into those of its own coarse group, which keeps time near linear."""


class Layer(NamedTuple):
    """The nodes to be grouped."""

    vectors: Floats
    """Unit vectors [n, d]."""
    tokens: Sequence[int]
    """Tokens of each node's text, [n]."""
    window: int
    """Most tokens of one cluster of two or more nodes."""

    def has_room(self, group: Sequence[int], node: int) -> bool:
        """Whether `node` can join `group` within the window and `MOST_CHILDREN`."""
        return len(group) < MOST_CHILDREN and sum(self.tokens[i] for i in (*group, node)) <= self.window


def cluster(layer: Layer, method: Clustering) -> list[tuple[int, ...]]:
    """Return clusters of 0..n-1, each in order, by first member; empty where clustering is infeasible.

    Infeasible means: fewer than two nodes, or no fewer clusters than nodes.
    """
    if len(layer.vectors) < 2:
        return []
    if method == "kmeans":
        return _in_order(_soft_kmeans(layer), layer)
    return _in_order(_mixture(layer, by_umap=method == "umap"), layer)


def join_clusters(layer: Layer, kept: Sequence[Sequence[int]], method: Clustering) -> list[tuple[int, ...]]:
    """Return the clusters `kept` with the nodes that none of them has let into the nearest; as `cluster` does.

    A cluster that becomes too large is cut in two, and a newcomer between two clusters may join both. Where less than
    half of the nodes are in `kept`, all are clustered anew.
    """
    n = len(layer.vectors)
    known = {i for group in kept for i in group}
    if 2 * len(known) < n:
        return cluster(layer, method)
    clusters = [list(group) for group in kept]
    fresh = sorted(set(range(n)) - known)
    most = max(MOST_CHILDREN, *map(len, clusters))
    if fresh:
        nearest, _ = _nearest(layer.vectors[np.asarray(fresh)], _centres(layer.vectors, clusters))
        for node, to in zip(fresh, nearest.tolist(), strict=True):
            clusters[to].append(node)
    clusters = [part for group in clusters for part in _capped(layer, group, most)]
    return _in_order(_spilled(layer, _without_singles(layer, clusters), only=frozenset(fresh)), layer)


def _in_order(groups: Groups, layer: Layer) -> list[tuple[int, ...]]:
    clusters = sorted({tuple(sorted(set(group))) for group in groups if group})
    return clusters if len(clusters) < len(layer.vectors) else []


def _mixture(layer: Layer, *, by_umap: bool) -> Groups:
    """Soft clusters by Gaussian mixture, global then local; those over the window are cut again."""
    # Neighbours as in the paper's code: the square root of the nodes for the whole, ten within a part.
    coarse = soft_mixture(layer.vectors, neighbours=math.isqrt(len(layer.vectors) - 1) if by_umap else None)
    clusters: Groups = []
    for rough in coarse:
        local = soft_mixture(layer.vectors[np.asarray(rough)], neighbours=10 if by_umap else None)
        clusters.extend([rough[i] for i in group] for group in local)
    if len(clusters) > len(layer.vectors) * 0.75:
        # The mixture found more themes than a tree can stand on: take the coarse step alone.
        clusters = coarse
    return [part for group in clusters for part in _capped(layer, group, most=len(group))]


def _soft_kmeans(layer: Layer) -> Groups:
    """Two-step spherical k-means: about the square root of the wished clusters, then each of those again."""
    x, n = layer.vectors, len(layer.vectors)
    coarse = math.ceil(math.sqrt(math.ceil(n / CHILDREN))) if n > MOST_CHILDREN else 1
    bundles: list[Groups] = []
    for group in _kmeans(x, list(range(n)), coarse):
        fine = 1 if len(group) <= MOST_CHILDREN else math.ceil(len(group) / CHILDREN)
        parts = _kmeans(x, group, fine)
        bundles.append([piece for part in parts for piece in _capped(layer, part, MOST_CHILDREN)])
    if sum(map(len, bundles)) <= COMPARED:
        bundles = [[piece for bundle in bundles for piece in bundle]]
    return [group for bundle in bundles for group in _spilled(layer, _without_singles(layer, bundle))]


def _capped(layer: Layer, group: list[int], most: int) -> Groups:
    """Cut `group` in two until every part is within `most` members and the window."""
    done: Groups = []
    waiting = [group]
    while waiting:
        part = waiting.pop()
        fits = len(part) <= most and sum(layer.tokens[i] for i in part) <= layer.window
        if fits or len(part) < 2:
            done.append(part)
        else:
            waiting.extend(_halves(layer.vectors, part))
    return done


def _halves(x: Floats, group: list[int]) -> Groups:
    """Two non-empty halves: by 2-means, or in reading order where that leaves one side (nearly) empty."""
    parts = _kmeans(x, group, 2)
    if len(parts) == 2 and min(map(len, parts)) * 8 >= len(group):
        return parts
    ordered = sorted(group)
    return [ordered[: len(group) // 2], ordered[len(group) // 2 :]]


def _kmeans(x: Floats, group: list[int], k: int) -> Groups:
    """Spherical k-means over the rows `group` of `x`; returns the non-empty clusters."""
    if k < 2 or len(group) <= k:
        return [group] if k < 2 else [[i] for i in group]
    rows = x[np.asarray(group)]
    centres = rows[spread_seeds(rows, k)].copy()
    label = np.full(len(rows), -1, dtype=np.int64)
    for _ in range(ROUNDS):
        check_cancelled()
        nearest, _ = _nearest(rows, centres)
        if np.array_equal(nearest, label):
            break
        label = nearest
        order = np.argsort(label, kind="stable")
        present, starts = np.unique(label[order], return_index=True)
        centres[present] = unit_rows(np.add.reduceat(rows[order], starts, axis=0))
    return [[group[i] for i in np.flatnonzero(label == c)] for c in range(k) if (label == c).any()]


def unit_rows(rows: Floats) -> Floats:
    """Return the rows [n, d] at unit length."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), dtype=np.float32)


def _centres(x: Floats, clusters: Groups) -> Floats:
    return unit_rows(np.stack([x[np.asarray(group)].mean(axis=0) for group in clusters]))


def _nearest(rows: Floats, centres: Floats, *, but: Ints | None = None) -> tuple[Ints, Floats]:
    """For each row [n] the nearest centre, other than the one in `but`, and the cosine to it."""
    nearest = np.empty(len(rows), dtype=np.int64)
    cosine = np.empty(len(rows), dtype=np.float32)
    for low in range(0, len(rows), COMPARED):
        part = slice(low, low + COMPARED)
        likeness = rows[part] @ centres.T
        if but is not None:
            likeness[np.arange(len(likeness)), but[part]] = -np.inf
        nearest[part] = likeness.argmax(axis=1)
        cosine[part] = likeness.max(axis=1)
    return nearest, cosine


def _without_singles(layer: Layer, clusters: Groups) -> Groups:
    """Give the only member of a cluster to the nearest cluster with room; a node over one node tells nothing new."""
    singles = [c for c, group in enumerate(clusters) if len(group) == 1]
    if not singles or len(clusters) < 2:
        return clusters
    centres = _centres(layer.vectors, clusters)
    for c in singles:
        if len(clusters[c]) != 1:
            continue
        node = clusters[c][0]
        for other in np.argsort(-(centres @ layer.vectors[node]), kind="stable").tolist():
            if other != c and clusters[other] and layer.has_room(clusters[other], node):
                clusters[other].append(node)
                clusters[c] = []
                break
    return [group for group in clusters if group]


def _spilled(layer: Layer, clusters: Groups, only: frozenset[int] | None = None) -> Groups:
    """Let the nodes (of `only`, if given) that stand between two of `clusters` join both, within cap and window."""
    if len(clusters) < 2:
        return clusters
    members = np.concatenate([np.asarray(group) for group in clusters])
    own = np.repeat(np.arange(len(clusters)), [len(group) for group in clusters])
    rows, centres = layer.vectors[members], _centres(layer.vectors, clusters)
    second, cosine = _nearest(rows, centres, but=own)
    gap = (rows * centres[own]).sum(axis=1) - cosine
    order = [i for i in np.lexsort((members, gap)).tolist() if only is None or int(members[i]) in only]
    for i in order[: int(SPILL_SHARE * (len(members) if only is None else len(only)))]:
        node, to = int(members[i]), int(second[i])
        if gap[i] <= SPILL_GAP and layer.has_room(clusters[to], node):
            clusters[to].append(node)
    return clusters
