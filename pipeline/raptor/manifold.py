"""UMAP for the paper's clustering: vectors laid out in few dimensions, neighbourhoods kept (RAPTOR §3; extra `umap`).

Slow (30 to 40 ms a leaf, notes/raptor §2) and no better for finding than components or k-means, hence not the default.
Seeded, so that two builds agree; that costs UMAP its threads. A layout that has begun runs to its end: a cancelled
call returns at once, its thread only then. Not for: clusters (`gauss.py`).
"""

import numpy as np
from numpy.typing import NDArray

from errors import MissingExtra
from pipeline.raptor.gauss import principal_components
from pipeline.work import check_cancelled

Doubles = NDArray[np.float64]

FEWEST = 16
"""Rows below which UMAP's layout is not defined well (its spectral start needs more rows than dimensions)."""


def umap_points(rows: Doubles, dimensions: int, *, neighbours: int, seed: int) -> Doubles:
    """Return the rows [n, d] as points [n, dimensions]; by principal components where there are fewer than `FEWEST`.

    Raises:
        MissingExtra: umap-learn is not installed.
    """
    if len(rows) < FEWEST:
        return principal_components(rows, dimensions)
    try:
        from umap import UMAP  # noqa: PLC0415  an extra that few install, and seconds to import
    except ModuleNotFoundError as e:
        raise MissingExtra("umap-learn", extra="umap", needed_for="Clustering by UMAP (clustering=umap)") from e
    check_cancelled()
    layout = UMAP(
        n_neighbors=min(max(2, neighbours), len(rows) - 1),
        n_components=dimensions,
        metric="cosine",
        random_state=seed,
        n_jobs=1,
    )
    return np.asarray(layout.fit_transform(rows), dtype=np.float64)
