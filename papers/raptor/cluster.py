"""Grouping the nodes of one layer: soft clusters, global then local, none over the
summariser's window (RAPTOR §3).

Three methods with one result, clusters of node numbers that contain every node at least
once:
- `kmeans`: spherical k-means in two steps, some nodes in two clusters: the default, in
  less time than the others (`python -m bench.papers_raptor`).
- `umap`: as printed, a soft Gaussian mixture on UMAP's points, its size chosen by BIC.
- `gmm`: the same on principal components. Both need the extra `papers`.

Deterministic: one seed, ties to the lower number. Not for: summaries, or which nodes
make a layer (`build.py`)."""

import math
import warnings
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cancellation import check_cancelled
from extra import importing
from models.protocols import unit_rows
from papers.raptor.tree import Clustering
from pipeline.reading.bm25 import Floats

Doubles = NDArray[np.float64]
Rows = NDArray[np.floating]
Ints = NDArray[np.int64]
Groups = list[list[int]]

CHILDREN: Final = 7
"""Target number of children of a cluster (RAPTOR App. B: 6.7 on average)."""
MOST_CHILDREN: Final = 12
"""No k-means cluster is larger: a summary of 130 tokens cannot represent more."""
SPILL_SHARE: Final = 0.15
"""Most of the nodes that may join a second cluster, those nearest to it first."""
SPILL_GAP: Final = 0.08
"""Largest difference of cosine at which a node joins its second cluster as well:
without it, one more document changes half as many nodes again."""
KMEANS_ROUNDS: Final = 8
"""Rounds of k-means; assignments hardly change after six."""
COMPARED: Final = 1024
"""Nodes compared with all centres at a time, which bounds memory; also the clusters up
to which a node may spill into any of them and not only into those of its own coarse
group, which keeps time near linear."""
CENTRES: Final = 128
"""Most clusters of one coarse step, enough for 114,688 nodes (`CHILDREN` times its
square). With 32, the mean cosine of 32,000 nodes to their cluster's centre is .786, not
.813."""
FINE_NODES: Final = 3584
"""Most nodes of one fine step, four times as many as a coarse cluster has of 114,688. A
larger one, of nodes that are nearly equal or of more nodes, is cut again: a fine step's
time grows with the square of its nodes."""
DIMENSIONS: Final = 10
"""Dimensions that vectors are reduced to (the paper's code)."""
MOST_CLUSTERS: Final = 50
"""Largest mixture tried (the paper's code)."""
MEMBER: Final = 0.1
"""A node belongs to every cluster that it has at least this probability of (the paper's
code)."""
SEED: Final = 224
"""Of every random start (the paper's code), so that two builds agree."""
FIT_SEED: Final = 0
"""Of the mixture of the size that BIC chose (the paper's code)."""


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
        return (
            len(group) < MOST_CHILDREN
            and sum(self.tokens[i] for i in (*group, node)) <= self.window
        )


def cluster(layer: Layer, method: Clustering) -> list[tuple[int, ...]]:
    """Return clusters of 0..n-1, each in order, by first member; empty where clustering
    is infeasible.

    Infeasible means: fewer than two nodes, or no fewer clusters than nodes.
    """
    if len(layer.vectors) < 2:
        return []
    if method == "kmeans":
        return _in_order(_soft_kmeans(layer), layer)
    return _in_order(_mixture(layer, by_umap=method == "umap"), layer)


def _in_order(groups: Groups, layer: Layer) -> list[tuple[int, ...]]:
    clusters = sorted({tuple(sorted(set(group))) for group in groups if group})
    return clusters if len(clusters) < len(layer.vectors) else []


def _mixture(layer: Layer, *, by_umap: bool) -> Groups:
    """Soft clusters by Gaussian mixture, global then local; one over the window is
    clustered again, and halved where that leaves it whole. A single node over the window
    is a cluster."""
    clusters: Groups = []
    waiting = [list(range(len(layer.vectors)))]
    while waiting:
        part = waiting.pop()
        # Neighbours as in the paper's code: the square root of the nodes, then ten
        for rough in _mixed(
            layer, part, math.isqrt(len(part) - 1) if by_umap else None
        ):
            for group in _mixed(layer, rough, 10 if by_umap else None):
                fits = sum(layer.tokens[i] for i in group) <= layer.window
                if fits or len(group) == len(part):
                    clusters += _capped(layer, group, most=len(group))
                else:
                    waiting.append(group)
    return clusters


def _mixed(layer: Layer, group: list[int], neighbours: int | None) -> Groups:
    found = soft_mixture(layer.vectors[np.asarray(group)], neighbours=neighbours)
    return [[group[i] for i in part] for part in found]


def _soft_kmeans(layer: Layer) -> Groups:
    """Spherical k-means in two steps: coarse clusters, then each of those again."""
    x = layer.vectors
    bundles: list[Groups] = []
    for group in _coarse(x, list(range(len(x)))):
        fine = 1 if len(group) <= MOST_CHILDREN else math.ceil(len(group) / CHILDREN)
        parts = kmeans(x, group, fine)
        bundles.append(
            [piece for part in parts for piece in _capped(layer, part, MOST_CHILDREN)]
        )
    if sum(map(len, bundles)) <= COMPARED:
        bundles = [[piece for bundle in bundles for piece in bundle]]
    return [
        group
        for bundle in bundles
        for group in _spilled(layer, _without_singles(layer, bundle))
    ]


def _coarse(x: Floats, group: list[int]) -> Groups:
    """Cut `group` into about the square root of its clusters, and again what is too
    large for one fine step."""
    if len(group) <= MOST_CHILDREN:
        return [group]
    wished = math.ceil(math.sqrt(math.ceil(len(group) / CHILDREN)))
    fine: Groups = []
    for part in kmeans(x, group, min(wished, CENTRES)):
        if FINE_NODES < len(part) <= len(group) // 2:
            fine.extend(_coarse(x, part))
            continue
        # The vectors of a larger part are nearly equal: a coarse step would leave them together
        # once more.
        pieces = [part]
        while max(map(len, pieces)) > FINE_NODES:
            pieces = [
                half
                for piece in pieces
                for half in (_halves(x, piece) if len(piece) > FINE_NODES else [piece])
            ]
        fine.extend(pieces)
    return fine


def _capped(layer: Layer, group: list[int], most: int) -> Groups:
    """Cut `group` in two until every part is within `most` members and the window. A
    single member over the window stays."""
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
    """Two non-empty halves: by 2-means, or in reading order where that leaves one side
    (nearly) empty."""
    parts = kmeans(x, group, 2)
    if len(parts) == 2 and min(map(len, parts)) * 8 >= len(group):
        return parts
    ordered = sorted(group)
    return [ordered[: len(group) // 2], ordered[len(group) // 2 :]]


def kmeans(x: Floats, group: list[int], k: int) -> Groups:
    """Spherical k-means over the rows `group` of `x`; returns the non-empty clusters,
    each row alone where there are at most `k`."""
    if k < 2 or len(group) <= k:
        return [group] if k < 2 else [[i] for i in group]
    rows = x[np.asarray(group)]
    centres = rows[spread_seeds(rows, k)].copy()
    label = np.full(len(rows), -1, dtype=np.int64)
    for _ in range(KMEANS_ROUNDS):
        check_cancelled()
        nearest, _ = _nearest(rows, centres)
        if np.array_equal(nearest, label):
            break
        label = nearest
        order = np.argsort(label, kind="stable")
        present, starts = np.unique(label[order], return_index=True)
        centres[present] = unit_rows(np.add.reduceat(rows[order], starts, axis=0))
    return [
        [group[i] for i in np.flatnonzero(label == c)]
        for c in range(k)
        if (label == c).any()
    ]


def _centres(x: Floats, clusters: Groups) -> Floats:
    return unit_rows(
        np.stack([x[np.asarray(group)].mean(axis=0) for group in clusters])
    )


def _nearest(
    rows: Floats, centres: Floats, *, but: Ints | None = None
) -> tuple[Ints, Floats]:
    """For each row [n] the nearest centre, other than the one in `but`, and the cosine
    to it."""
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
    """Give the only member of a cluster to the nearest cluster with room; a node with
    one child adds nothing. Where none has room, it stays alone."""
    singles = [c for c, group in enumerate(clusters) if len(group) == 1]
    if not singles or len(clusters) < 2:
        return clusters
    centres = _centres(layer.vectors, clusters)
    for c in singles:
        if len(clusters[c]) != 1:
            continue
        node = clusters[c][0]
        for other in np.argsort(
            -(centres @ layer.vectors[node]), kind="stable"
        ).tolist():
            if other != c and clusters[other] and layer.has_room(clusters[other], node):
                clusters[other].append(node)
                clusters[c] = []
                break
    return [group for group in clusters if group]


def _spilled(layer: Layer, clusters: Groups) -> Groups:
    """Let nodes between two `clusters` join both, within cap and window. At most
    `SPILL_SHARE` of them do; `clusters` itself is changed."""
    if len(clusters) < 2:
        return clusters
    members = np.concatenate([np.asarray(group) for group in clusters])
    own = np.repeat(np.arange(len(clusters)), [len(group) for group in clusters])
    rows, centres = layer.vectors[members], _centres(layer.vectors, clusters)
    second, cosine = _nearest(rows, centres, but=own)
    gap = (rows * centres[own]).sum(axis=1) - cosine
    order = np.lexsort((members, gap)).tolist()
    for i in order[: int(SPILL_SHARE * len(members))]:
        node, to = int(members[i]), int(second[i])
        if gap[i] <= SPILL_GAP and layer.has_room(clusters[to], node):
            clusters[to].append(node)
    return clusters


# The mixture


def soft_mixture(vectors: Rows, *, neighbours: int | None = None) -> list[list[int]]:
    """Return the clusters of the best mixture by BIC, each a list of row numbers; a row
    may be in several.

    Up to `DIMENSIONS` + 1 rows, or rows that are equal, are one cluster.

    Args:
        vectors: Rows to cluster, [n, d].
        neighbours: Neighbours of a row in UMAP's layout; None takes principal
            components.

    Raises:
        MissingExtra: The extra `papers` is not installed.
    """
    n = len(vectors)
    # So few are one cluster, as at the local step of the paper's code.
    if n <= DIMENSIONS + 1:
        return [list(range(n))]
    rows = vectors.astype(np.float64)
    if float(rows.var(axis=0).sum()) < 1e-9:
        return [list(range(n))]
    points = (
        principal_components(rows, DIMENSIONS)
        if neighbours is None
        else umap_points(rows, DIMENSIONS, neighbours)
    )
    members = best_mixture(points)
    inside = members > MEMBER
    inside[np.arange(n), members.argmax(axis=1)] = True
    return [np.flatnonzero(column).tolist() for column in inside.T if column.any()]


def best_mixture(points: Doubles) -> Doubles:
    """Return the probabilities [n, k] of the mixture of the lowest BIC, of all sizes
    below `MOST_CLUSTERS` and the points: scikit-learn's, as in the paper's code.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    with importing("papers", "Clustering by a mixture (clustering=gmm, umap)"):
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415  an extra that few install
        from sklearn.mixture import GaussianMixture  # noqa: PLC0415  the same
    fits = []
    for size in range(1, min(MOST_CLUSTERS, len(points))):
        check_cancelled()
        with warnings.catch_warnings():
            # Equal points make fewer clusters than are tried; BIC judges such a fit, too.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = GaussianMixture(size, random_state=SEED).fit(points)
        fits.append((float(fit.bic(points)), size))
    _, size = min(fits)
    fit = GaussianMixture(size, random_state=FIT_SEED).fit(points)
    return np.asarray(fit.predict_proba(points), dtype=np.float64)


def umap_points(rows: Doubles, dimensions: int, neighbours: int) -> Doubles:
    """Return the rows [n, d] as points [n, dimensions] whose neighbourhoods are those
    of the rows, by cosine.

    Seeded, so that two builds agree, which costs UMAP its threads. A layout that has
    begun runs to its end: a cancelled call returns at once, its thread only then.

    Raises:
        MissingExtra: umap-learn is not installed.
    """
    with importing("papers", "Clustering by UMAP (clustering=umap)"):
        from umap import UMAP  # noqa: PLC0415  an extra that few install, and seconds to import
    check_cancelled()
    layout = UMAP(
        n_neighbors=min(max(2, neighbours), len(rows) - 1),
        n_components=dimensions,
        metric="cosine",
        random_state=SEED,
        n_jobs=1,
    )
    return np.asarray(layout.fit_transform(rows), dtype=np.float64)


def principal_components(rows: Doubles, dimensions: int) -> Doubles:
    """Return the rows on their first principal components, [n, at most dimensions];
    signs fixed so that runs agree."""
    centred = rows - rows.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    scores = (left * values)[:, :dimensions]
    signs = np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])])
    return np.asarray(scores * np.where(signs == 0, 1, signs), dtype=np.float64)


def spread_seeds(rows: Rows, k: int, seed: int = SEED) -> list[int]:
    """Return k-means++ seeds by squared distance, from a seeded generator; row numbers,
    repeated if rows are equal."""
    generator = np.random.default_rng(seed)
    norms = (rows * rows).sum(axis=1)
    chosen = [int(generator.integers(len(rows)))]
    distance = np.full(len(rows), np.inf)
    for _ in range(k - 1):
        last = chosen[-1]
        distance = np.minimum(
            distance, np.maximum(norms + norms[last] - 2 * (rows @ rows[last]), 0)
        )
        reached = np.cumsum(distance, dtype=np.float64)
        at = (
            int(np.searchsorted(reached, generator.random() * reached[-1]))
            if reached[-1] > 1e-9
            else last
        )
        chosen.append(min(at, len(rows) - 1))
    return chosen
