"""The beginning that prompts of answers share, kept in a sequence of its own: instructions are evaluated once.

The second prompt in a row that begins like the one before leaves that beginning behind; those after it go on from
there. Whole sequences only, so models with a state can do it too. Not for: prefixes of scores (`models/llama/decode.py`
keeps the last one whole).
"""

from collections.abc import Sequence
from typing import Final

from models.llama.native import Native
from models.llama.prefix import shared_tokens

SHARED: Final = 32
"""Fewest tokens worth keeping: templates alone share some twenty."""


class Opening:
    """What the context holds of a beginning, in sequence `number`."""

    def __init__(self, native: Native, number: int) -> None:
        """Keep it in sequence `number`, which nothing else uses."""
        self._native = native
        self._number = number
        self._tokens: list[int] = []
        self._ready = False
        self._maker = -1
        self._last: list[int] = []

    @property
    def cells(self) -> int:
        """Cells of the context that it may take."""
        return len(self._tokens)

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
        self._native.forget([self._number])
        self._tokens, self._ready, self._maker = [], False, -1
