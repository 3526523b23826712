"""The prompt of the last score with its last path, kept in a sequence of its own: what the next one shares is there.

Prompts that go on from each other seldom do so token by token: many vocabularies have one token for a full stop and the
line's end behind it. So the tokens from the first other one on are taken out, where the model allows that; one with a
state keeps its prefix whole or not at all. Not for: beginnings of answers (`models/llama/opening.py`).
"""

from collections.abc import Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from models.llama.native import Native


class Prefix:
    """What the context holds in sequence `number`."""

    def __init__(self, native: Native, number: int) -> None:
        """Keep it in sequence `number`, which nothing else uses."""
        self._native = native
        self._number = number
        self._tokens: list[int] = []
        self._read_at = 0
        self._logits: NDArray[np.float32] | None = None

    @property
    def cells(self) -> int:
        """Cells of the context that it takes."""
        return len(self._tokens)

    def begin(self, prompt: Sequence[int]) -> int:
        """Return how many tokens of `prompt` are there now, all of them only where `logits` are theirs too."""
        same = shared_tokens(self._tokens, prompt)
        known = self._logits is not None and same == self._read_at == len(prompt)
        keep = same if known else min(same, len(prompt) - 1)
        if keep < len(self._tokens) and not (keep and self._native.cut(self._number, keep)):
            self.let_go()
            return 0
        del self._tokens[keep:]
        if not known:
            self._logits = None
        return keep

    def reach(self, tokens: Sequence[int]) -> None:
        """Take note that the sequence goes on with `tokens`."""
        self._tokens.extend(tokens)

    def read(self, logits: NDArray[np.float32]) -> None:
        """Keep the logits [vocabulary] after all that is there: the prompt is whole."""
        self._read_at, self._logits = len(self._tokens), logits.copy()

    @property
    def logits(self) -> NDArray[np.float32] | None:
        """The logits after the prompt, None before `read`."""
        return self._logits

    def follow(self, sequence: int, tokens: Sequence[int]) -> None:
        """Keep the path `tokens` of `sequence` too, which began as a copy of this one: the next prompt may go that way.

        Not with a model that keeps a state: it could not go back to the prompt.
        """
        if not self._native.keeps_state:
            self._native.copy(sequence, [self._number])
            self._tokens.extend(tokens)

    def settle(self) -> None:
        """Take out what a batch that was given up may have left behind the known tokens."""
        if not (self._tokens and self._native.cut(self._number, len(self._tokens))):
            self.let_go()

    def let_go(self) -> None:
        """Forget it."""
        self._native.forget([self._number])
        self._tokens, self._read_at, self._logits = [], 0, None


def shared_tokens(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two lists have in common from their beginning on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
