"""A Gaussian mixture with full covariance, its size chosen by BIC: the paper's clustering (RAPTOR §3).

Works on principal components unless another reduction is passed in (`manifold.py` has UMAP, 30 ms a leaf). With
components and *diagonal* covariances BIC wants clusters of two or three (notes/raptor §3); full covariances, priced by
their parameters, do not. Not for: the default clustering (`cluster.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.work import check_cancelled

Doubles = NDArray[np.float64]

DIMENSIONS: Final = 10
"""Components kept; the reference reduces to 10 as well."""
MOST_CLUSTERS: Final = 50
MEMBER: Final = 0.1
"""A node belongs to every cluster that it has at least this probability of (reference code)."""
STEPS: Final = 40
RIDGE: Final = 1e-3
"""Share of the mean variance added to every covariance, so that equal points do not collapse it."""
PATIENCE: Final = 3
"""Sizes tried after the best one before the search ends."""


@dataclass(frozen=True, slots=True)
class _Fit:
    bic: float
    members: Doubles
    """Probabilities [n, k]."""


def soft_mixture(
    vectors: NDArray[np.float32], *, seed: int, reduced: Callable[[Doubles, int], Doubles] | None = None
) -> list[list[int]]:
    """Return the clusters of the best mixture by BIC, each a list of row numbers; a row may stand in several.

    Args:
        vectors: Rows to cluster, [n, d].
        seed: Fixes the start of every fit.
        reduced: From rows [n, d] and a dimension to points [n, dimension]; None takes principal components.
    """
    n = len(vectors)
    # Fewer points than parameters of one Gaussian in two dimensions: there is nothing to choose by.
    if n <= 6:
        return [list(range(n))]
    points = (reduced or principal_components)(vectors.astype(np.float64), min(DIMENSIONS, max(2, n // 8)))
    if float(points.var(axis=0).sum()) < 1e-9:
        return [list(range(n))]
    best: _Fit | None = None
    since = 0
    for k in _sizes(n):
        check_cancelled()
        fit = _fitted(points, k, seed)
        if best is None or fit.bic < best.bic:
            best, since = fit, 0
        else:
            since += 1
            if since >= PATIENCE:
                break
    assert best is not None, "at least one size is tried"  # noqa: S101  tells mypy what _sizes guarantees
    inside = best.members >= MEMBER
    inside[np.arange(n), best.members.argmax(axis=1)] = True
    return [np.flatnonzero(column).tolist() for column in inside.T if column.any()]


def _sizes(n: int) -> list[int]:
    """Numbers of clusters to try: each up to 8, then in steps of a quarter."""
    sizes, k = [], 1
    while k <= min(MOST_CLUSTERS, max(1, n // 3)):
        sizes.append(k)
        k = k + 1 if k < 8 else k + k // 4
    return sizes


def principal_components(rows: Doubles, dimensions: int) -> Doubles:
    """Return the rows on their first principal components, [n, dimensions]; signs fixed so that runs agree."""
    centred = rows - rows.mean(axis=0)
    if len(rows) < rows.shape[1]:
        values, left = np.linalg.eigh(centred @ centred.T)
        order = np.argsort(values)[::-1][:dimensions]
        scores = left[:, order] * np.sqrt(np.maximum(values[order], 0))
    else:
        values, axes = np.linalg.eigh(centred.T @ centred)
        order = np.argsort(values)[::-1][:dimensions]
        scores = centred @ axes[:, order]
    signs = np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])])
    return np.asarray(scores * np.where(signs == 0, 1, signs), dtype=np.float64)


def _fitted(points: Doubles, k: int, seed: int) -> _Fit:
    """Expectation-maximisation from k-means++ seeds; returns BIC = ln(n) p - 2 ln L and the memberships."""
    n, d = points.shape
    ridge = RIDGE * float(points.var(axis=0).mean()) + 1e-9
    members = _start(points, k, seed)
    before = -np.inf
    likelihood = before
    for _ in range(STEPS):
        logs = _log_densities(points, members, ridge)
        top = logs.max(axis=1, keepdims=True)
        total = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
        members = np.exp(logs - total[:, None])
        likelihood = float(total.sum())
        if likelihood - before < 1e-4 * abs(likelihood):
            break
        before = likelihood
    parameters = k * (d + d * (d + 1) / 2) + k - 1
    return _Fit(bic=float(np.log(n) * parameters - 2 * likelihood), members=members)


def _start(points: Doubles, k: int, seed: int) -> Doubles:
    generator = np.random.default_rng(seed)
    chosen = [int(generator.integers(len(points)))]
    distance = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(k - 1):
        total = float(distance.sum())
        at = int(np.searchsorted(np.cumsum(distance), generator.random() * total)) if total > 0 else 0
        chosen.append(min(at, len(points) - 1))
        distance = np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    apart = ((points[:, None, :] - points[None, chosen, :]) ** 2).sum(axis=2)
    members = np.zeros((len(points), k))
    members[np.arange(len(points)), apart.argmin(axis=1)] = 1.0
    return members


def _log_densities(points: Doubles, members: Doubles, ridge: float) -> Doubles:
    """M-step from `members`, then ln(weight x density) of every point in every component, [n, k]."""
    n, d = points.shape
    k = members.shape[1]
    logs = np.empty((n, k))
    for c in range(k):
        share = members[:, c]
        weight = float(share.sum()) + 1e-9
        mean = share @ points / weight
        away = points - mean
        covariance = (away * share[:, None]).T @ away / weight + ridge * np.eye(d)
        lower = np.linalg.cholesky(covariance)
        solved = np.linalg.solve(lower, away.T)
        log_volume = 2 * float(np.log(np.diag(lower)).sum())
        logs[:, c] = np.log(weight / n) - 0.5 * (d * np.log(2 * np.pi) + log_volume + (solved**2).sum(axis=0))
    return logs
