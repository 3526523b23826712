"""One process at a time for a piece of work that several come by: a page, a batch of vectors, a level of a tree.

Not for: tasks of one process that want the same (`pipeline/fetch/client.py`).
"""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import anyio

from cache.store import Claim, Store
from pipeline.work import in_thread

T = TypeVar("T")
RENEWALS: Final = 3
"""Times that a claim is renewed while it would last, so that one that comes late loses nothing."""


@asynccontextmanager
async def alone(
    store: Store, key: str, look: Callable[[], T], *, enough: Callable[[T], bool], patience: float
) -> AsyncIterator[tuple[T, float]]:
    """Give what `look` finds (in a thread) and the seconds that were waited for another process.

    Where that is not `enough`, this is the only process that works on `key`, by a claim in `store`, for as long as it
    takes; the claim of a process that was killed passes on `patience` seconds after.
    """

    def look_or_claim() -> tuple[T, Claim | None]:
        found = look()
        claim = None if enough(found) else store.claim(key, seconds=patience)
        # Another process may have left its result between the look and the claim.
        return (look() if claim is not None else found), claim

    started = anyio.current_time()
    pause = waited = 0.0
    while True:
        with anyio.CancelScope(shield=True):  # nobody would give back the claim of a caller that has gone
            found, claim = await in_thread(look_or_claim)
        if claim is not None or enough(found):
            break
        pause = min(pause + 0.01, 0.1)
        await anyio.sleep(pause)
        waited = anyio.current_time() - started
    if claim is None:
        yield found, waited
        return
    done = threading.Event()
    holder = threading.Thread(target=_hold, args=(store, claim, patience, done), daemon=True)
    holder.start()
    try:
        yield found, waited
    finally:
        done.set()
        with anyio.CancelScope(shield=True):
            await in_thread(holder.join)


def _hold(store: Store, claim: Claim, seconds: float, done: threading.Event) -> None:
    """Renew a claim until `done`, then give it back."""
    while not done.wait(seconds / RENEWALS):
        claim = store.renew(claim, seconds=seconds)
    store.release(claim)
