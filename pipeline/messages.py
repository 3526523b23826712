"""Asking a generator: a chat message, one answer within a time and kept in a store, and inputs over a model's context.

Not for: prompts (`prompts/`), backends (`models/`), or what an answer means.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import anyio

from cache.store import Store
from errors import ModelError
from models.protocols import Generator
from pipeline.work import in_thread

KEPT_SECONDS: Final = 30 * 86_400.0
"""Answers are kept a month: one costs seconds, and the key holds all that it hangs on."""
_OVER: Final = "Its context is"
"""How the hint of a backend's refusal begins; it comes out of another process, so only its words tell."""


@dataclass(frozen=True, slots=True)
class Said:
    """A chat message; a `models.protocols.Message`."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Asking:
    """How to ask."""

    max_tokens: int
    """Most tokens of the answer."""
    seconds: float
    """Time for the answer, loading included."""
    version: str
    """Digest of the prompt file; part of the key of what is kept."""
    schema: dict[str, object] | None = None
    """JSON schema that the answer is held to."""


def over_context(error: ModelError) -> bool:
    """Whether a model refused an input because it is longer than its context."""
    return error.hint.startswith(_OVER)


async def ask(generator: Generator, messages: Sequence[Said], asking: Asking, *, store: Store | None) -> str:
    """Return the answer to `messages`, from `store` where the same was asked of the same model before.

    Raises:
        ModelError: The model failed, or gave no answer in time.
    """
    key = _key(generator, messages, asking)
    if store is not None:
        kept = await in_thread(store.get_json, key)
        if isinstance(kept, str):
            return kept
    text: str | None = None
    with anyio.move_on_after(asking.seconds):
        text = await generator.generate(messages, max_tokens=asking.max_tokens, schema=asking.schema)
    if text is None:
        raise ModelError(
            f"{generator.name} gave no answer in {asking.seconds:.0f} s.",
            hint="Raise WINNOW_SECONDS, or set a smaller generator.",
        )
    if store is not None:
        await in_thread(lambda: store.set_json(key, text, expire=KEPT_SECONDS))
    return text


def _key(generator: Generator, messages: Sequence[Said], asking: Asking) -> str:
    parts = [asking.version, asking.max_tokens, asking.schema, [[said.role, said.content] for said in messages]]
    raw = json.dumps(parts, sort_keys=True).encode()
    return f"generate:{generator.name}:{hashlib.blake2b(raw, digest_size=20).hexdigest()}"
