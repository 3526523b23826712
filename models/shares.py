"""Fair CPU sharing between the concurrent callers of one process.

Threads and batches are handed out in the order in which they are asked for, so a caller
with many calls would get nearly all of them and slow others. If callers have different
numbers of running calls, those with more than the minimum get one piece of work at a
time. After it they pause for as long as it took. Not for: which calls may begin
(`server/calls.py`), or how many pieces of one kind run at once (`pipeline/work.py`,
`onnx.py`).
"""

import math
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Final

import anyio
from anyio.lowlevel import RunVar

MOST_CORES: Final = 4
"""Cores that one kind of work of ours takes: batches of models side by side,
conversions (for half as many), and calls, most of whose work holds the interpreter's
lock."""


class _Shares:
    """The callers of one event loop, and what each may have at work."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.limits: dict[str, anyio.CapacityLimiter] = {}

    def count(self, caller: str, change: int) -> None:
        """Note that a call of `caller` begins (1) or ends (-1), and update the
        shares."""
        self.calls[caller] += change
        if not self.calls[caller]:
            del self.calls[caller], self.limits[caller]
        least = min(self.calls.values(), default=0)
        for name, calls in self.calls.items():
            limit = self.limits.setdefault(name, anyio.CapacityLimiter(math.inf))
            limit.total_tokens = 1 if calls > least else math.inf


_shares: Final[RunVar[_Shares]] = RunVar("winnow_shares")
_piece: ContextVar[anyio.CapacityLimiter | None] = ContextVar(
    "winnow_piece", default=None
)


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


@contextmanager
def sharing(caller: str) -> Iterator[None]:
    """Have the steps of this task work on the share of `caller`, as one call of
    theirs."""
    shares = _shares.get(None)
    if shares is None:
        _shares.set(shares := _Shares())
    shares.count(caller, 1)
    before = _piece.set(shares.limits[caller])
    try:
        yield
    finally:
        _piece.reset(before)
        shares.count(caller, -1)


@asynccontextmanager
async def piece() -> AsyncIterator[None]:
    """Work on the share of the running call's caller, which may have to be waited for;
    none outside of a call.

    While others have fewer calls, it sleeps after the work for as long as that took.
    """
    limit = _piece.get()
    if limit is None:
        yield
        return
    async with limit:
        began = anyio.current_time()
        yield
        if limit.total_tokens < math.inf:
            await anyio.sleep(anyio.current_time() - began)
