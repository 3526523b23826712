"""The one place in which tests wait or bound work. No test reads a clock: what is only slow on a
busy machine passes, and how fast things are is measured by `bench.growth` and the other benches.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import anyio

BETWEEN = 0.02
"""Seconds between two looks at what another process, thread or socket does, which sends no event."""
LOOKS = 6_000
"""Looks until a test gives up, two minutes at least."""
ENOUGH = 60.0
"""Processor seconds in which work that grows with its input ends on any machine; what is squared by
a hostile input takes minutes."""


class TookTooLong(BaseException):
    """Raised inside a block that used more processor time than any machine needs for it."""


@contextmanager
def bounded(seconds: float = ENOUGH) -> Iterator[None]:
    """End the block with `TookTooLong` when this process has used so many processor seconds in it.

    The kernel counts and interrupts; other processes that are busy change nothing."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong(f"{seconds:g} processor seconds were not enough")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


async def until(holds: Callable[[], object]) -> None:
    """Return once `holds()` is true; fail when it never is."""
    for _ in range(LOOKS):
        if holds():
            return
        await anyio.sleep(BETWEEN)
    raise AssertionError("what was waited for did not happen")


def wait_until(holds: Callable[[], object]) -> None:
    """`until`, for a test without a loop."""
    for _ in range(LOOKS):
        if holds():
            return
        time.sleep(BETWEEN)
    raise AssertionError("what was waited for did not happen")


async def moment() -> None:
    """Let a little time pass, as between two bytes of a server that drips."""
    await anyio.sleep(BETWEEN)


def soon(seconds: float) -> float:
    """Return the end of a call that has so many seconds left, as `pipeline.work.Call` takes it."""
    return time.monotonic() + seconds
