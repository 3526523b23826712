"""Grouping the nodes of one layer: soft clusters, global then local, none over the summariser's window (RAPTOR §3).

Three methods with one result, clusters of node numbers in which every node stands at least once:
- `kmeans`: spherical k-means in two steps, some nodes in two clusters. Loses 0 to 0.7 points of collapsed recall
  against UMAP and a Gaussian mixture at a three-hundredth of its time (notes/raptor §2, §3), hence the default.
- `gmm`: the paper's Gaussian mixture with BIC (`gauss.py`), on principal components instead of UMAP.
- `umap`: the same on UMAP's points, as in the paper (`manifold.py`, extra `umap`).
- `runs`: neighbours in the text, cut where the subject changes.
Deterministic: one seed, ties to the lower number. Not for: summaries, or which nodes make a layer (`build.py`).
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.raptor.gauss import soft_mixture
from pipeline.raptor.manifold import umap_points
from pipeline.raptor.tree import Clustering
from pipeline.segment.partition import partition
from pipeline.work import check_cancelled

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Reduction = Callable[[NDArray[np.float64], int], NDArray[np.float64]]

CHILDREN: Final = 7
"""Wished children a cluster (RAPTOR App. B: 6.7 on average)."""
MOST_CHILDREN: Final = 12
"""No k-means cluster is larger: a summary of 130 tokens cannot speak for more."""
SPILL_SHARE: Final = 0.15
"""Part of the nodes that join a second cluster: those whose two best centres are nearest in similarity."""
SPILL_GAP: Final = 0.08
"""Largest difference of similarity at which a node joins its second cluster as well."""
ROUNDS: Final = 8
"""Rounds of k-means; assignments hardly change after six."""
CELLS: Final = 4_000_000
"""Similarities held at a time (16 MB), which bounds memory however many nodes and centres there are."""
MOST_COMPARED: Final = 1024
"""Clusters up to which a node may spill into any; beyond, into those of its own coarse group, so that time stays near
linear in the nodes."""
RUN_TOKENS: Final = (300, 1200)
"""Least and most tokens of a run of neighbouring leaves."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The nodes to be grouped."""

    vectors: Floats
    """Unit vectors [n, d]."""
    tokens: Sequence[int]
    """Tokens of each node's text, [n]."""
    window: int
    """Most tokens of one cluster of two or more nodes."""
    seed: int


def cluster(layer: Layer, method: Clustering) -> list[tuple[int, ...]]:
    """Return clusters of 0..n-1, each in order, by first member; empty where clustering is infeasible.

    Infeasible means: fewer than two nodes, or a grouping that neither makes them fewer nor their texts shorter.
    """
    n = len(layer.vectors)
    if n < 2:
        return []
    methods: dict[Clustering, Callable[[Layer], list[list[int]]]] = {
        "kmeans": _soft_kmeans,
        "gmm": _mixture,
        "umap": _umap_mixture,
        "runs": _runs,
    }
    groups = methods[method](layer)
    clusters = sorted({tuple(sorted(set(group))) for group in groups if group})
    return clusters if len(clusters) < n else []


def neighbour_runs(vectors: Floats, tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Return runs of neighbouring leaves of one document, as ranges that cover it (notes §3: best guides)."""
    least, most = RUN_TOKENS
    return partition(vectors, tokens, minimum=least, maximum=most)


def _runs(layer: Layer) -> list[list[int]]:
    most = min(layer.window, max(RUN_TOKENS[1], 2 * max(layer.tokens)))
    return [list(range(*run)) for run in partition(layer.vectors, layer.tokens, minimum=most // 4, maximum=most)]


def _umap_mixture(layer: Layer) -> list[list[int]]:
    # Neighbours as in the reference: the square root of the nodes for the whole, ten within a part.
    wide = functools.partial(umap_points, neighbours=math.isqrt(len(layer.vectors) - 1), seed=layer.seed)
    near = functools.partial(umap_points, neighbours=10, seed=layer.seed)
    return _mixture(layer, wide, near)


def _mixture(layer: Layer, wide: Reduction | None = None, near: Reduction | None = None) -> list[list[int]]:
    """Soft clusters by Gaussian mixture, global then local; those over the window are clustered again."""
    coarse = soft_mixture(layer.vectors, seed=layer.seed, reduced=wide)
    clusters: list[list[int]] = []
    for rough in coarse:
        members = np.asarray(rough)
        local = soft_mixture(layer.vectors[members], seed=layer.seed, reduced=near)
        clusters.extend([int(members[i]) for i in group] for group in local)
    if len(clusters) > len(layer.vectors) * 0.75:
        # The mixture found more themes than a tree can stand on: take the coarse step alone.
        clusters = [list(rough) for rough in coarse]
    return _within_window(layer, clusters)


def _within_window(layer: Layer, clusters: list[list[int]]) -> list[list[int]]:
    done: list[list[int]] = []
    waiting = [sorted(set(group)) for group in clusters]
    while waiting:
        group = waiting.pop()
        if len(group) < 2 or sum(layer.tokens[i] for i in group) <= layer.window:
            done.append(group)
        else:
            waiting.extend(_halves(layer.vectors, group, layer.seed))
    return done


def _soft_kmeans(layer: Layer) -> list[list[int]]:
    """Two-step spherical k-means: about the square root of the wished clusters, then each of those again."""
    x, n = layer.vectors, len(layer.vectors)
    wished = math.ceil(n / CHILDREN)
    coarse = math.ceil(math.sqrt(wished)) if n > MOST_CHILDREN else 1
    bundles: list[list[list[int]]] = []
    for group in _kmeans(x, list(range(n)), coarse, layer.seed):
        fine = 1 if len(group) <= MOST_CHILDREN else math.ceil(len(group) / CHILDREN)
        parts = _kmeans(x, group, fine, layer.seed)
        bundles.append([piece for part in parts for piece in _capped(layer, part)])
    if sum(map(len, bundles)) <= MOST_COMPARED:
        bundles = [[piece for bundle in bundles for piece in bundle]]
    return [group for bundle in bundles for group in _spilled(layer, _without_singles(layer, bundle))]


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
        nearest = _nearest(layer.vectors[np.asarray(fresh)], _centres(layer.vectors, clusters))
        for node, to in zip(fresh, nearest.tolist(), strict=True):
            clusters[to].append(node)
    clusters = [part for group in clusters for part in _capped(layer, group, most)]
    clusters = _spilled(layer, _without_singles(layer, clusters), only=frozenset(fresh))
    done = sorted({tuple(sorted(set(group))) for group in clusters if group})
    return done if len(done) < n else []


def _capped(layer: Layer, group: list[int], most: int = MOST_CHILDREN) -> list[list[int]]:
    """Cut `group` in two until every part is within `most` members and the window."""
    done: list[list[int]] = []
    waiting = [group]
    while waiting:
        part = waiting.pop()
        fits = len(part) <= most and sum(layer.tokens[i] for i in part) <= layer.window
        if fits or len(part) < 2:
            done.append(part)
        else:
            waiting.extend(_halves(layer.vectors, part, layer.seed))
    return done


def _halves(x: Floats, group: list[int], seed: int) -> list[list[int]]:
    """Two non-empty halves: by 2-means, or in reading order where that leaves one side (nearly) empty."""
    parts = _kmeans(x, group, 2, seed)
    if len(parts) == 2 and min(map(len, parts)) * 8 >= len(group):
        return parts
    middle = len(group) // 2
    ordered = sorted(group)
    return [ordered[:middle], ordered[middle:]]


def _kmeans(x: Floats, group: list[int], k: int, seed: int) -> list[list[int]]:
    """Spherical k-means over the rows `group` of `x`; returns the non-empty clusters."""
    if k < 2 or len(group) <= k:
        return [group] if k < 2 else [[i] for i in group]
    rows = x[np.asarray(group)]
    centres = rows[_spread_seeds(rows, k, seed)].copy()
    label = np.full(len(rows), -1, dtype=np.int64)
    for _ in range(ROUNDS):
        check_cancelled()
        nearest = _nearest(rows, centres)
        if np.array_equal(nearest, label):
            break
        label = nearest
        sums = np.zeros_like(centres)
        order = np.argsort(label, kind="stable")
        present, starts = np.unique(label[order], return_index=True)
        sums[present] = np.add.reduceat(rows[order], starts, axis=0)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(norms > 1e-9, sums / np.maximum(norms, 1e-9), centres)
    return [[group[i] for i in np.flatnonzero(label == c)] for c in range(k) if (label == c).any()]


def _nearest(rows: Floats, centres: Floats) -> Ints:
    step = max(1, CELLS // len(centres))
    found = [np.argmax(rows[i : i + step] @ centres.T, axis=1) for i in range(0, len(rows), step)]
    return np.concatenate(found)


def _spread_seeds(rows: Floats, k: int, seed: int) -> Ints:
    """k-means++ seeds by cosine distance, from a seeded generator."""
    generator = np.random.default_rng(seed)
    chosen = [int(generator.integers(len(rows)))]
    distance = np.maximum(1 - rows @ rows[chosen[0]], 0).astype(np.float64)
    for _ in range(k - 1):
        total = distance.sum()
        if total <= 1e-9:
            chosen.append(chosen[-1])
            continue
        at = int(np.searchsorted(np.cumsum(distance), generator.random() * total))
        chosen.append(min(at, len(rows) - 1))
        distance = np.minimum(distance, np.maximum(1 - rows @ rows[chosen[-1]], 0))
    return np.asarray(chosen, dtype=np.int64)


def _centres(x: Floats, clusters: list[list[int]]) -> Floats:
    means = np.stack([x[np.asarray(group)].mean(axis=0) for group in clusters])
    return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9), dtype=np.float32)


def _without_singles(layer: Layer, clusters: list[list[int]]) -> list[list[int]]:
    """Give the only member of a cluster to the nearest cluster with room; a node over one node tells nothing new."""
    if len(clusters) < 2:
        return clusters
    singles = [c for c, group in enumerate(clusters) if len(group) == 1]
    if not singles:
        return clusters
    centres = _centres(layer.vectors, clusters)
    totals = [sum(layer.tokens[i] for i in group) for group in clusters]
    for c in singles:
        if len(clusters[c]) != 1:
            continue
        node = clusters[c][0]
        likeness = centres @ layer.vectors[node]
        likeness[c] = -np.inf
        for other in np.argsort(-likeness, kind="stable")[:8]:
            group = clusters[other]
            if group and len(group) < MOST_CHILDREN and totals[other] + layer.tokens[node] <= layer.window:
                group.append(node)
                totals[other] += layer.tokens[node]
                clusters[c] = []
                break
    return [group for group in clusters if group]


def _spilled(layer: Layer, clusters: list[list[int]], only: frozenset[int] | None = None) -> list[list[int]]:
    """Let the nodes (of `only`, if given) that stand between two of `clusters` join both, within cap and window."""
    if len(clusters) < 2:
        return clusters
    members = np.concatenate([np.asarray(group) for group in clusters])
    own = np.repeat(np.arange(len(clusters)), [len(group) for group in clusters])
    second, gap = _second_best(layer.vectors[members], own, _centres(layer.vectors, clusters))
    totals = [sum(layer.tokens[i] for i in group) for group in clusters]
    nodes = len(members) if only is None else len(only)
    order = [i for i in np.lexsort((members, gap)).tolist() if only is None or int(members[i]) in only]
    for place in order[: int(SPILL_SHARE * nodes)]:
        node, to = int(members[place]), int(second[place])
        fits = totals[to] + layer.tokens[node] <= layer.window and len(clusters[to]) < MOST_CHILDREN
        if gap[place] <= SPILL_GAP and fits:
            clusters[to].append(node)
            totals[to] += layer.tokens[node]
    return clusters


def _second_best(rows: Floats, own: Ints, centres: Floats) -> tuple[Ints, Floats]:
    """For each row, the nearest centre but its own, and how much nearer its own is, in cosine."""
    second = np.empty(len(rows), dtype=np.int64)
    gap = np.empty(len(rows), dtype=np.float32)
    step = max(1, CELLS // len(centres))
    for low in range(0, len(rows), step):
        likeness = rows[low : low + step] @ centres.T
        here = np.arange(len(likeness))
        mine = likeness[here, own[low : low + step]].copy()
        likeness[here, own[low : low + step]] = -np.inf
        second[low : low + step] = np.argmax(likeness, axis=1)
        gap[low : low + step] = mine - likeness.max(axis=1)
    return second, gap
