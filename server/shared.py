"""What the services of several servers in one process use together, because it takes
memory.

Imports little: a process has it before the pipeline. Not for: making any of it
(`server/wiring.py`)."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import anyio


@dataclass(frozen=True, slots=True)
class Shared:
    """Models, and the processes that convert documents."""

    stack: AsyncExitStack
    """Closes them."""
    held: dict[tuple[object, ...], Any] = field(default_factory=dict)
    """Each by what it was made from."""
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while a model is made and asked what it is."""

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        models = [getattr(held, "model", None) for held in self.held.values()]
        return [model.name for model in models if model is not None]
