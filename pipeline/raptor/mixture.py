"""The paper's soft clustering: Gaussian mixtures, their size chosen by BIC, on few dimensions (RAPTOR §3).

The dimensions are principal components, or the layout of UMAP (extra `umap`; 30 to 40 ms a leaf, and no better for
finding). With components and *diagonal* covariances BIC wants clusters of two or three; full covariances, priced by
their parameters, do not. Not for: the default clustering (`cluster.py`).
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from errors import MissingExtra
from pipeline.work import check_cancelled

Doubles = NDArray[np.float64]
Rows = NDArray[np.floating]

DIMENSIONS: Final = 10
"""Dimensions that vectors are reduced to (the paper's code)."""
MOST_CLUSTERS: Final = 50
"""Largest mixture tried (the paper's code)."""
MEMBER: Final = 0.1
"""A node belongs to every cluster that it has at least this probability of (the paper's code)."""
SEED: Final = 224
"""Of every random start (the paper's code), so that two builds agree."""
PATIENCE: Final = 3
"""Sizes tried after the best one before the search ends."""


class _Fit(NamedTuple):
    bic: float
    members: Doubles
    """Probabilities [n, k]."""


def soft_mixture(vectors: Rows, *, neighbours: int | None = None) -> list[list[int]]:
    """Return the clusters of the best mixture by BIC, each a list of row numbers; a row may stand in several.

    Args:
        vectors: Rows to cluster, [n, d].
        neighbours: Neighbours of a row in UMAP's layout; None takes principal components.

    Raises:
        MissingExtra: UMAP is wanted, and umap-learn is not installed.
    """
    n = len(vectors)
    # Fewer points than parameters of one Gaussian in two dimensions: there is nothing to choose by.
    if n <= 6:
        return [list(range(n))]
    rows, dimensions = vectors.astype(np.float64), min(DIMENSIONS, max(2, n // 8))
    # The spectral start of a layout needs clearly more rows than dimensions.
    layout = neighbours is not None and n >= 2 * DIMENSIONS
    points = umap_points(rows, dimensions, neighbours or 2) if layout else principal_components(rows, dimensions)
    if float(points.var(axis=0).sum()) < 1e-9:
        return [list(range(n))]
    best = _fitted(points, 1)
    since = 0
    size = 2
    while size <= min(MOST_CLUSTERS, n // 3) and since < PATIENCE:
        check_cancelled()
        fit = _fitted(points, size)
        best, since = (fit, 0) if fit.bic < best.bic else (best, since + 1)
        # Each size up to 8, then in steps of a quarter.
        size += max(1, size // 4) if size >= 8 else 1
    inside = best.members >= MEMBER
    inside[np.arange(n), best.members.argmax(axis=1)] = True
    return [np.flatnonzero(column).tolist() for column in inside.T if column.any()]


def umap_points(rows: Doubles, dimensions: int, neighbours: int) -> Doubles:
    """Return the rows [n, d] as points [n, dimensions] whose neighbourhoods are those of the rows, by cosine.

    Seeded, so that two builds agree, which costs UMAP its threads. A layout that has begun runs to its end: a cancelled
    call returns at once, its thread only then.

    Raises:
        MissingExtra: umap-learn is not installed.
    """
    try:
        from umap import UMAP  # noqa: PLC0415  an extra that few install, and seconds to import
    except ModuleNotFoundError as e:
        raise MissingExtra("umap-learn", extra="umap", needed_for="Clustering by UMAP (clustering=umap)") from e
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
    """Return the rows on their first principal components, [n, dimensions]; signs fixed so that runs agree."""
    centred = rows - rows.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    scores = (left * values)[:, :dimensions]
    signs = np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])])
    return np.asarray(scores * np.where(signs == 0, 1, signs), dtype=np.float64)


def spread_seeds(rows: Rows, k: int) -> list[int]:
    """Return k-means++ seeds by squared distance, from a seeded generator; row numbers, repeated if rows are equal."""
    generator = np.random.default_rng(SEED)
    norms = (rows * rows).sum(axis=1)
    chosen = [int(generator.integers(len(rows)))]
    distance = np.full(len(rows), np.inf)
    for _ in range(k - 1):
        last = chosen[-1]
        distance = np.minimum(distance, np.maximum(norms + norms[last] - 2 * (rows @ rows[last]), 0))
        reached = np.cumsum(distance, dtype=np.float64)
        at = int(np.searchsorted(reached, generator.random() * reached[-1])) if reached[-1] > 1e-9 else last
        chosen.append(min(at, len(rows) - 1))
    return chosen


def _fitted(points: Doubles, k: int) -> _Fit:
    """Expectation-maximisation from k-means++ seeds; BIC = ln(n) p - 2 ln L, with the memberships."""
    n, d = points.shape
    # A share of the mean variance on every covariance, so that equal points do not collapse it.
    ridge = 1e-3 * float(points.var(axis=0).mean()) + 1e-9
    apart = ((points[:, None, :] - points[None, spread_seeds(points, k), :]) ** 2).sum(axis=2)
    members = np.zeros((n, k))
    members[np.arange(n), apart.argmin(axis=1)] = 1.0
    before, likelihood = -np.inf, -1e300
    while likelihood - before >= 1e-4 * abs(likelihood):
        before = likelihood
        logs = _log_densities(points, members, ridge)
        top = logs.max(axis=1, keepdims=True)
        total = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
        members = np.exp(logs - total[:, None])
        likelihood = float(total.sum())
    parameters = k * (d + d * (d + 1) / 2) + k - 1
    return _Fit(bic=float(np.log(n) * parameters - 2 * likelihood), members=members)


def _log_densities(points: Doubles, members: Doubles, ridge: float) -> Doubles:
    """M-step from `members`, then ln(weight x density) of every point in every component, [n, k]."""
    n, d = points.shape
    logs = np.empty(members.shape)
    for c, share in enumerate(members.T):
        weight = float(share.sum()) + 1e-9
        away = points - share @ points / weight
        covariance = (away * share[:, None]).T @ away / weight + ridge * np.eye(d)
        lower = np.linalg.cholesky(covariance)
        solved = np.linalg.solve(lower, away.T)
        log_volume = 2 * float(np.log(np.diag(lower)).sum())
        logs[:, c] = np.log(weight / n) - 0.5 * (d * np.log(2 * np.pi) + log_volume + (solved**2).sum(axis=0))
    return logs
