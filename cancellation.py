"""Leaving a long step whose caller has gone.

Long loops call `check_cancelled()` now and then; who runs them says by `stopped_by` how
that is asked: `pipeline/work.py` for a thread, `pipeline/conversion/process.py` for a
process that works for calls of another."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_stop: ContextVar[Callable[[], bool] | None] = ContextVar("winnow_stop", default=None)


class Stopped(BaseException):
    """Raised inside a worker thread whose call was cancelled; never seen by a caller,
    hence no WinnowError."""


def check_cancelled() -> None:
    """Leave the running worker function if its caller has gone.

    Raises `Stopped`: the call that this thread works for was cancelled. Outside of such
    a function nothing happens."""
    stop = _stop.get()
    if stop is not None and stop():
        raise Stopped


@contextmanager
def stopped_by(stop: Callable[[], bool]) -> Iterator[None]:
    """Let `check_cancelled` ask `stop` whether to."""
    before = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(before)
