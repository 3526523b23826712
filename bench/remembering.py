"""An embedder for benchmarks that gives each text to the model once in a run, and shows
what the model cost.

Not for: serving, where vectors outlive the process (`pipeline/cached_models.py`).
"""

import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from models.protocols import Embedder, TextKind, Vectors


class Remembering:
    """An `Embedder` in front of another."""

    def __init__(self, embedder: Embedder, *, keeps: bool = True) -> None:
        """Wrap `embedder`; without `keeps` nothing is remembered, where memory is what
        is measured."""
        self._embedder = embedder
        self._keeps = keeps
        self._known: dict[tuple[str, str], NDArray[np.float32]] = {}
        self.seconds = 0.0
        """Processor seconds spent in the wrapped embedder."""

    @property
    def name(self) -> str:
        """Name of the wrapped embedder."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._embedder.dimension

    @property
    def background(self) -> Mapping[str, float] | None:
        """What the wrapped embedder says of its cosines."""
        return getattr(self._embedder, "background", None)

    def reads(self, text: str) -> bool:
        """Whether the wrapped embedder knows the script."""
        return self._embedder.reads(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]."""
        if not self._keeps:
            self._known = {}
        missing = [
            text for text in dict.fromkeys(texts) if (kind, text) not in self._known
        ]
        if missing:
            began = time.process_time()
            for text, vector in zip(
                missing, await self._embedder.embed(missing, kind=kind), strict=True
            ):
                self._known[kind, text] = vector
            self.seconds += time.process_time() - began
        return np.stack([self._known[kind, text] for text in texts])
