"""One flight for one URL: calls that ask for the same page at once share one request, in this process and in others.

Not for: how many requests may go at once (`pipeline/fetch/sites.py`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio

from cache.store import Claim, Store
from errors import SourceError
from pipeline.work import in_thread

T = TypeVar("T")


class _Flight(Generic[T]):
    """What one call found, for those who wait for it."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.result: T | None = None
        self.error: SourceError | None = None


class Flights(Generic[T]):
    """The flights of one process."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def share(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns, or what an equal flight under way returns; a failure is shared alike.

        When the call that flies is cancelled, one of those who wait flies anew.
        """
        while (other := self._flights.get(key)) is not None:
            await other.done.wait()
            if other.error is not None:
                raise _copy(other.error)
            if other.result is not None:
                return other.result
        flight = self._flights[key] = _Flight()
        try:
            flight.result = await work()
            return flight.result
        except SourceError as e:
            flight.error = _copy(e)
            raise
        finally:
            del self._flights[key]
            flight.done.set()


def _copy(error: SourceError) -> SourceError:
    """Return an equal error without a traceback, which would keep its frames, and a whole body in them, alive."""
    return type(error)(error.what, source=error.source, hint=error.hint)


@asynccontextmanager
async def alone(
    store: Store, key: str, look: Callable[[], T], *, enough: Callable[[T], bool], patience: float
) -> AsyncIterator[tuple[T, float]]:
    """Look for a result, and be the only process that works on it where what is found is not enough.

    Args:
        store: Where claims lie.
        key: What is worked on.
        look: Finds what this or another process has left; runs in a thread.
        enough: Whether nothing needs to be done about what was found.
        patience: Seconds to wait for another process, which may have been killed, before going on beside it.

    Yields:
        What was found, and the seconds that were waited for another process.
    """

    def look_or_claim(again: bool) -> tuple[T, Claim | None]:
        found = look()
        claim = None if enough(found) else store.claim(key, seconds=patience)
        # The process that was waited for may have left its result between the look and the claim.
        return (look() if claim is not None and again else found), claim

    started = anyio.current_time()
    pause = waited = 0.0
    while True:
        with anyio.CancelScope(shield=True):  # nobody would give back the claim of a caller that has gone
            found, claim = await in_thread(look_or_claim, bool(waited))
        if claim is not None or enough(found) or waited >= patience:
            break
        pause = min(pause + 0.01, 0.1)
        await anyio.sleep(pause)
        waited = anyio.current_time() - started
    try:
        yield found, waited
    finally:
        if claim is not None:
            with anyio.CancelScope(shield=True):
                await in_thread(store.release, claim)
