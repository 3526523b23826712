"""Calls to a generator: chat messages, time limit, cache, overlong inputs.

Not for: prompts (`prompts/`), backends (`models/`), or what an answer means.
"""

import hashlib
import json
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import anyio

from cache.store import Store
from errors import ModelError
from models.protocols import Generator, Said
from pipeline.work import in_thread

CACHED_ANSWER_SECONDS: Final = 30 * 86_400.0
"""Seconds (a month) for which answers are cached; the key covers all that they depend
on."""
ANSWER_TOKENS: Final = 350
"""Maximum tokens of a short answer: five sentences with labels, or three queries and
six names."""
SHRINK: Final = 0.6
"""Factor by which an input is shortened when it exceeds the model's context."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How to ask."""

    max_tokens: int
    """Most tokens of the answer."""
    seconds: float
    """Time for the answer, loading included."""
    version: str
    """Digest of the prompt file; part of the key of what is kept."""
    schema: dict[str, object] | None = None
    """JSON schema that the answer is held to."""


async def ask(
    generator: Generator,
    messages: Sequence[Said],
    asking: AskOptions,
    *,
    store: Store | None,
) -> str:
    """Return the answer to `messages`, from `store` if cached; None keeps nothing.

    Raises:
        ContextExceeded: The messages are longer than the model's context.
        ModelError: The model failed, or did not answer in time.
    """
    key = _key(generator, messages, asking)
    if store is not None:
        kept = await in_thread(store.get_json, key)
        if isinstance(kept, str):
            return kept
    call = generator.generate(
        messages, max_tokens=asking.max_tokens, schema=asking.schema
    )
    text = await within(asking.seconds, call, model=generator.name)
    if store is not None:
        await in_thread(lambda: store.set_json(key, text, expire=CACHED_ANSWER_SECONDS))
    return text


async def within(seconds: float, call: Awaitable[T], *, model: str) -> T:
    """Return what `call`, which asks `model`, returns.

    Raises `ModelError`: it failed, or was not done within `seconds`. Any other error of
    `call` is raised as it is."""
    with anyio.move_on_after(seconds):
        return await call
    raise ModelError(
        f"{model} did not answer in {seconds:.0f} s.",
        hint=("Raise WINNOW_SECONDS, or set WINNOW_GENERATOR to a smaller model."),
    )


def shrinking(size: int) -> Iterator[int]:
    """Yield decreasing sizes of an input to try while the model raises
    `ContextExceeded`."""
    while size:
        yield size
        size = int(size * SHRINK)


def _key(generator: Generator, messages: Sequence[Said], asking: AskOptions) -> str:
    parts = [
        asking.version,
        asking.max_tokens,
        asking.schema,
        [[said.role, said.content] for said in messages],
    ]
    raw = json.dumps(parts, sort_keys=True).encode()
    return (
        f"generate:{generator.name}:{hashlib.blake2b(raw, digest_size=20).hexdigest()}"
    )
