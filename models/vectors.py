"""Arithmetic on vectors that every embedder ends with. Not for: comparing or storing them."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.protocols import Vectors

SMALLEST: Final = np.float32(1e-12)
"""Length below which a row is left as it is: a row of zeros has no direction."""


def unit_rows(vectors: NDArray[np.float32]) -> Vectors:
    """Return the rows [n, d] at length one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, SMALLEST), dtype=np.float32)
