"""One flight for one URL: calls that ask for the same page at once share one request, in this process and in others.

Not for: how many requests may go at once (`pipeline/fetch/gates.py`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

import anyio

from cache.claims import Claim
from cache.store import Store
from errors import SourceError
from pipeline.work import in_thread

T = TypeVar("T")

CLAIM_SECONDS: Final = 3.0
"""A process that was killed in a flight holds others up for at most this long; a living one renews its claim."""
_LOOKS: Final = (0.01, 0.02, 0.04, 0.08, 0.1)
"""Seconds between looks at another process's claim; the last one repeats."""


class _Flight(Generic[T]):
    """What one call found, for those who wait for it."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.result: T | None = None
        self.error: SourceError | None = None


class Flights(Generic[T]):
    """The flights of one process."""

    def __init__(self) -> None:
        """Start with none."""
        self._flights: dict[str, _Flight[T]] = {}

    async def share(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns, or what an equal flight under way returns; a failure is shared alike.

        When the call that flies is cancelled, one of those who wait flies anew.

        Raises:
            SourceError: `work` failed so, here or in the call that was waited for.
        """
        while (other := self._flights.get(key)) is not None:
            await other.done.wait()
            if other.error is not None:
                failed = other.error
                raise type(failed)(failed.what, source=failed.source, hint=failed.hint)
            if other.result is not None:
                return other.result
        flight = self._flights[key] = _Flight()
        try:
            flight.result = await work()
            return flight.result
        except SourceError as e:
            # A copy: the traceback of the first would keep its frames, and a whole body in them, alive.
            flight.error = type(e)(e.what, source=e.source, hint=e.hint)
            raise
        finally:
            del self._flights[key]
            flight.done.set()


@asynccontextmanager
async def alone(store: Store | None, key: str, *, patience: float, claim: Claim | None = None) -> AsyncIterator[float]:
    """Be the only process that works on `key`, or wait for the one that does.

    Args:
        store: Where claims lie; None for no other process to know of.
        key: What is worked on.
        patience: Seconds to wait for another process before going on beside it.
        claim: The claim on `key`, where the caller has it already (`look_or_claim`); it is given back here.

    Yields:
        Seconds that were waited; above 0 the other process may have left its result in the store.
    """
    if store is None:
        yield 0.0
        return
    started = anyio.current_time()
    looks = 0
    while claim is None and anyio.current_time() - started < patience:
        await anyio.sleep(_LOOKS[min(looks, len(_LOOKS) - 1)])
        looks += 1
        with anyio.CancelScope(shield=True):
            claim = await in_thread(store.claim, key, seconds=CLAIM_SECONDS)
    try:
        yield anyio.current_time() - started if looks else 0.0
    finally:
        if claim is not None:
            # A cancelled call gives its claim back all the same.
            with anyio.CancelScope(shield=True):
                await in_thread(store.release, claim)


async def look_or_claim(
    store: Store, key: str, look: Callable[[], T], *, enough: Callable[[T], bool]
) -> tuple[T, Claim | None]:
    """Return what `look` finds, and a claim on `key` where that is not enough and no other process has one.

    Both in one visit to a thread: a visit costs more than the look.
    """

    def both() -> tuple[T, Claim | None]:
        found = look()
        return found, None if enough(found) else store.claim(key, seconds=CLAIM_SECONDS)

    results: list[tuple[T, Claim | None]] = []
    # A claim whose caller has gone would be renewed for as long as the process lives.
    with anyio.CancelScope(shield=True):
        results.append(await in_thread(both))
    return results[0]
