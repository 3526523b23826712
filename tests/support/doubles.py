"""Models that are not real ones: an embedder of letters, and what a model does that died."""

from collections.abc import Sequence

import numpy as np

from errors import ModelError
from models.protocols import PathScores, Prompt, TextKind, Vectors


class Letters:
    """A real embedder for tests: counts of letters, of unit length."""

    name = "letters"
    dimension = 26

    def reads(self, text: str) -> bool:
        """Whether every character is a letter that is counted."""
        return text.isascii()

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the shares of the letters a to z."""
        rows = np.array(
            [[text.lower().count(chr(97 + i)) + 1e-3 for i in range(26)] for text in texts]
        )
        shares: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return shares


class Dead:
    """Put before a model's class: it died, and scores no paths."""

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Fail."""
        raise ModelError("It died of signal 9.", hint="Try again.")
