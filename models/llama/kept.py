"""What stays in the KV cache between calls, each in a sequence of its own: what the next prompt shares is there.

Not for: evaluating (`models/llama/decode.py`).
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.llama.native import Native

SHARED: Final = 32
"""Fewest tokens of a beginning worth keeping: chat templates alone share some twenty."""


class _Kept:
    """Tokens in a sequence of their own."""

    def __init__(self, native: Native, number: int) -> None:
        """Keep them in sequence `number`, which nothing else uses."""
        self._native = native
        self._number = number
        self.let_go()

    @property
    def cells(self) -> int:
        """Cells of the context that they may take."""
        return len(self._tokens)

    def let_go(self) -> None:
        """Forget them."""
        self._native.forget([self._number])
        self._tokens: list[int] = []


class Opening(_Kept):
    """The beginning that prompts of answers share: instructions are evaluated once.

    The second prompt in a row that begins like the one before leaves that beginning behind; those after it go on from
    there. Whole sequences only, so models with a state can do it too.
    """

    _last: Sequence[int] = ()
    _ready = False
    _maker = -1

    def begin(self, prompt: Sequence[int], slot: int) -> int:
        """Return how many tokens of `prompt` sequence `slot` holds now; it evaluates the rest.

        Where `prompt` begins like the last one instead, the beginning stays behind for the prompts that follow once
        `slot` has evaluated it.
        """
        last, self._last = self._last, list(prompt)
        if self._ready and len(prompt) > len(self._tokens) and list(prompt[: len(self._tokens)]) == self._tokens:
            self._native.copy(self._number, [slot])
            return len(self._tokens)
        if self._maker >= 0:
            return 0
        same = shared_tokens(last, prompt[:-1])
        if same >= SHARED:
            self.let_go()
            self._tokens, self._maker = list(prompt[:same]), slot
        return 0

    def stop(self, slot: int, position: int, count: int) -> int:
        """Return how many of `count` tokens of `slot` may be evaluated at once: the one that makes it stops at its end,
        for no model that keeps a state can go back there."""
        left = len(self._tokens) - position
        return min(count, left) if slot == self._maker and left > 0 else count

    def reached(self, slot: int, position: int) -> None:
        """Take note that `slot` has evaluated all tokens before `position`; the beginning's are kept when whole."""
        if slot == self._maker and position >= len(self._tokens):
            self._native.copy(slot, [self._number])
            self._ready, self._maker = True, -1

    def left(self, slot: int) -> None:
        """Take note that `slot` is given up; a beginning that it was making goes with it."""
        if slot == self._maker:
            self.let_go()

    def let_go(self) -> None:
        """Forget it."""
        super().let_go()
        self._ready, self._maker = False, -1


class Prefix(_Kept):
    """The prompt of the last score with its last path: what the next one shares is there.

    Prompts that go on from each other seldom do so token by token: many vocabularies have one token for a full stop and
    the line's end behind it. So the tokens from the first different one on are taken out, where the model allows that;
    one with a state keeps its prefix whole or not at all.
    """

    logits: NDArray[np.float32] | None = None
    """Those after the prompt [vocabulary], None before `read`."""
    _read_at = 0

    def begin(self, prompt: Sequence[int]) -> int:
        """Return how many tokens of `prompt` are there now, all of them only where `logits` are theirs too."""
        same = shared_tokens(self._tokens, prompt)
        known = self.logits is not None and same == self._read_at == len(prompt)
        keep = same if known else min(same, len(prompt) - 1)
        if keep < len(self._tokens) and not (keep and self._native.cut(self._number, keep)):
            self.let_go()
            return 0
        del self._tokens[keep:]
        if not known:
            self.logits = None
        return keep

    def reach(self, tokens: Sequence[int]) -> None:
        """Take note that the sequence goes on with `tokens`."""
        self._tokens.extend(tokens)

    def read(self, logits: NDArray[np.float32]) -> None:
        """Keep the logits [vocabulary] after all that is there: the prompt is whole."""
        self._read_at, self.logits = len(self._tokens), logits.copy()

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
        super().let_go()
        self._read_at = 0
        self.logits = None


def shared_tokens(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two lists have in common from their beginning on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
