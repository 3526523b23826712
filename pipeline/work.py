"""Running CPU work off the event loop so that a cancelled call really stops.

Steps are plain functions. A coroutine runs one with `in_thread`; inside, long loops call `check_cancelled()` now and
then. Not for: native model work, which has batches (`models/`) or a process of its own.
"""

import functools
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, Protocol, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

P = ParamSpec("P")
R = TypeVar("R")

Report = Callable[[float, float | None, str], Awaitable[None]]
"""Progress as a caller wants it: how much is done, of how much (if known), and a line for a person."""


class Flag(Protocol):
    """Whether to stop."""

    def is_set(self) -> bool:
        """Return whether to."""
        ...


_stop: ContextVar[Flag | None] = ContextVar("winnow_stop", default=None)

WORKERS = 4
"""Threads for CPU work. More than the cores helps little under the GIL; fewer lets one huge page stop the others."""


class Stopped(BaseException):
    """Raised inside a worker thread whose call was cancelled; never seen by a caller, hence no WinnowError."""


def check_cancelled() -> None:
    """Leave the running worker function if its caller has gone.

    Raises:
        Stopped: The call that this thread works for was cancelled.
    """
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Stopped


@contextmanager
def stopped_by(stop: Flag) -> Iterator[None]:
    """Let `check_cancelled` look at `stop`, in a process that works for calls of another."""
    before = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(before)


@functools.cache
def _limiter(_loop_token: object) -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(WORKERS)


async def in_thread(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `function` in a worker thread and return what it returns.

    On cancellation the coroutine ends at once and the thread is told to stop at its next `check_cancelled()`.
    """
    stop = threading.Event()
    before = _stop.set(stop)
    call = functools.partial(function, *args, **kwargs)
    try:
        return await anyio.to_thread.run_sync(
            call, abandon_on_cancel=True, limiter=_limiter(anyio.lowlevel.current_token())
        )
    finally:
        stop.set()
        _stop.reset(before)


def is_busy() -> bool:
    """Return whether a worker thread is at work for this event loop."""
    return _limiter(anyio.lowlevel.current_token()).borrowed_tokens > 0


async def no_report(done: float, total: float | None, message: str) -> None:
    """Take progress and do nothing with it."""
