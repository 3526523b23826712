"""A generator that counts what it is asked: calls, failures, seconds, tokens.

Not for: what the answers are worth (`steps.py`).
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.protocols import (
    Ability,
    Backend,
    Chooser,
    Generator,
    Message,
    PathScores,
    Prompt,
    TreeScorer,
    abilities_of,
)


class Watched:
    """A `Generator`, with all that the one behind it can do, that keeps count from its making on."""

    def __init__(self, generator: Generator) -> None:
        """Watch `generator`."""
        self._generator = generator
        self._begun = False
        self._open = 0
        self._since = 0.0
        self.failed = 0
        """Calls that failed, or were given up because their time was over."""
        self.seconds = 0.0
        """Time during which a call was under way."""
        self.fault = ""
        """Why the last failed call failed; empty for none."""
        self._before: int | None = None
        self.replies: list[str] = []
        """Answers in the order in which they came."""

    @property
    def name(self) -> str:
        """Name of the generator behind."""
        return self._generator.name

    @property
    def context_tokens(self) -> int:
        """Context of the generator behind."""
        return self._generator.context_tokens

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the generator behind can do."""
        return abilities_of(self._generator)

    async def generate(self, messages: Sequence[Message], *, max_tokens: int, **held_to: Any) -> str:
        """Ask the generator behind, with the same schema or grammar; raises what it raises."""
        async with self._call():
            text = await self._generator.generate(messages, max_tokens=max_tokens, **held_to)
            self.replies.append(text)
            return text

    async def choose(self, prompt: Prompt, options: Sequence[str]) -> NDArray[np.float64]:
        """Ask the generator behind, whose `abilities` have it; raises what it raises."""
        async with self._call():
            return await cast(Chooser, self._generator).choose(prompt, options)

    async def score_tree(self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False) -> PathScores:
        """Ask the generator behind; raises what it raises."""
        async with self._call():
            return await cast(TreeScorer, self._generator).score_tree(prefix, paths, among_siblings=among_siblings)

    async def tokens(self) -> int | None:
        """Return how many tokens went through the model so far; None where its backend does not count them."""
        now = await self._counted() if self._begun else 0
        return max(0, now - (self._before or 0)) if now is not None else None

    async def _counted(self) -> int | None:
        if not isinstance(self._generator, Backend):
            return None
        tokens = (await self._generator.counters()).get("tokens")
        return tokens if isinstance(tokens, int) else None

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        self._begun = True
        self._open += 1
        if self._open == 1:
            self._since = time.perf_counter()
        done = False
        try:
            if self._before is None:
                self._before = await self._counted()
            yield
            done = True
        except ModelError as error:
            self.fault = str(error)
            raise
        finally:
            self._open -= 1
            if not self._open:
                self.seconds += time.perf_counter() - self._since
            if not done:
                self.failed += 1
                self.fault = self.fault or "its time was over"
