"""What every step may ask of a model: Embedder, Reranker, Generator (design §5).

Steps depend on these protocols only; which backend stands behind one is chosen in `models/choose.py`. All calls are
coroutines, so that cancelling the task stops the work between two batches. Not for: loading, caching or fallbacks.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
TextKind = Literal["query", "passage"]


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def reads(self, text: str) -> bool:
        """Whether the model knows the script of `text`; a step leaves the embedder out when it does not.

        An English model on Chinese text ranks worse than chance and drags a fused ranking down (notes/zeroindex §0.8).
        """
        ...

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return float32 vectors [n, dimension] of unit length, in the order of `texts`.

        Raises:
            ModelError: The backend failed; the message says how.
        """
        ...


class Reranker(Protocol):
    """Scores texts against a query, together."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], higher is better."""
        ...


class Message(Protocol):
    """One chat message."""

    @property
    def role(self) -> Literal["system", "user", "assistant"]:
        """Who speaks."""
        ...

    @property
    def content(self) -> str:
        """What is said."""
        ...


class Generator(Protocol):
    """Writes text."""

    @property
    def name(self) -> str:
        """Model, quantisation and runtime; part of every cache key."""
        ...

    @property
    def context_tokens(self) -> int:
        """How many of its own tokens fit in prompt and answer together."""
        ...

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the answer's text; with `schema`, JSON that is valid under it.

        Raises:
            ModelError: The backend failed or cannot do what is asked.
        """
        ...
