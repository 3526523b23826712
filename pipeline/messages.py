"""Asking a generator: chat messages, answers within a time and kept in a store, several at once, and overlong inputs.

Not for: prompts (`prompts/`), backends (`models/`), or what an answer means.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import anyio

from cache.store import Store
from errors import ModelError
from models.protocols import Generator
from pipeline.work import in_thread

KEPT_SECONDS: Final = 30 * 86_400.0
"""Answers are kept a month: one costs seconds, and the key holds all that it hangs on."""
AT_ONCE: Final = 4
"""Calls asked side by side: a GGUF generator writes as many answers in shared batches, a server keeps more busy.
`python -m bench.costs` prints what that brings."""
_OVER: Final = "Its context is"
"""How the hint of a backend's refusal begins; it comes out of another process, so only its words tell."""


T = TypeVar("T")


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


async def side_by_side(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return the results of `calls` in their order, at most `AT_ONCE` of them under way at a time.

    Raises:
        ModelError: One of them failed; the others are cancelled.
    """
    found: dict[int, T] = {}
    failures: list[ModelError] = []
    places = anyio.CapacityLimiter(AT_ONCE)

    async def run(number: int, call: Callable[[], Awaitable[T]]) -> None:
        async with places:
            try:
                found[number] = await call()
            except ModelError as error:
                failures.append(error)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for number, call in enumerate(calls):
            group.start_soon(run, number, call)
    if failures:
        raise failures[0]
    return [found[number] for number in range(len(calls))]


def _key(generator: Generator, messages: Sequence[Said], asking: Asking) -> str:
    parts = [asking.version, asking.max_tokens, asking.schema, [[said.role, said.content] for said in messages]]
    raw = json.dumps(parts, sort_keys=True).encode()
    return f"generate:{generator.name}:{hashlib.blake2b(raw, digest_size=20).hexdigest()}"
