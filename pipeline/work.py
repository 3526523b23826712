"""CPU work in threads: cancelable, and shared between processes.

Steps are plain functions. A coroutine runs one with `in_thread`; inside, long loops
call `check_cancelled()` now and then. A step that could go on for long asks
`time_left()` and gives its best so far. What several processes come by (a page, a batch
of vectors, a level of a tree) is done by one of them, `alone`. Not for: native model
work, which has batches (`models/`) or a process of its own; who may begin
(`server/calls.py`); tasks of one process that want the same
(`pipeline/fetch/client.py`)."""

import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.lowlevel import RunVar
from opentelemetry import trace

from cancellation import stopped_by
from models.shares import piece

if TYPE_CHECKING:  # a server opens its cache after the first responses
    from cache.store import Claim, Store

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

Report = Callable[[float, float | None, str], Awaitable[None]]
"""Progress callback: done, total (if known), message."""


_call: ContextVar["Call | None"] = ContextVar("winnow_call", default=None)

TRACER: Final = trace.get_tracer("winnow")
STEP_SHARE = 0.4
"""Share of the call's remaining time for one step, so that later steps can still
answer."""
LONG_SHARE = 1 - STEP_SHARE
"""Share of the time limit for the longest step of a call: loading sources, reading
pages, building a tree, the first provider."""
WORKERS = 2
"""Threads for CPU work. Under the GIL more do not do more, and who waits for it waits
for each. Light calls have as many to themselves, or they would wait for a call that
reads twenty pages."""

RENEWALS: Final = 3
"""Renewals per lease period, so that one late renewal does not lose the lease."""


class Call:
    """One tool call and its deadline."""

    def __init__(self, ends: float, *, light: bool) -> None:
        """Open the account of a call that has to answer at `ends`, by `time.monotonic`.
        A `light` one is expected to use little."""
        self.ends = ends
        self.light = light

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count this task as the call's."""
        before = _call.set(self)
        try:
            yield
        finally:
            _call.reset(before)


def time_left() -> float:
    """Return the seconds until the running call has to answer; without end outside of a
    call."""
    call = _call.get()
    return math.inf if call is None else max(0.0, call.ends - time.monotonic())


_limits: Final = {
    light: RunVar[anyio.CapacityLimiter](f"winnow_workers_{light=}")
    for light in (True, False)
}


def _limiter(*, light: bool) -> anyio.CapacityLimiter:
    """Return the event loop's one limiter of worker threads, for light calls or for all
    others."""
    limiter = _limits[light].get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(WORKERS)
        _limits[light].set(limiter)
    return limiter


async def in_thread(
    function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Run `function` in a worker thread and return what it returns.

    On cancellation the coroutine ends at once and the thread stops at its next
    `check_cancelled()`. It waits without limit for one of `WORKERS` threads."""
    call = _call.get()
    light = call is None or call.light
    stop = threading.Event()
    with stopped_by(stop.is_set):
        try:
            async with piece():
                return await anyio.to_thread.run_sync(
                    partial(function, *args, **kwargs),
                    abandon_on_cancel=True,
                    limiter=_limiter(light=light),
                )
        finally:
            stop.set()


async def no_report(done: float, total: float | None, message: str) -> None:
    """Take progress and do nothing with it."""


def traced(name: str) -> Callable[[T], T]:
    """Return a decorator that runs a step, a function or coroutine function, within the
    span `winnow.{name}`.

    Free unless an exporter is set up (`server/process.py`). The SDK opens a span for
    every MCP message; these hang below it, with names and durations only: a question or
    an address is the user's."""
    return TRACER.start_as_current_span(f"winnow.{name}")


@asynccontextmanager
async def beside(
    function: Callable[[], Coroutine[object, object, object]],
) -> AsyncIterator[None]:
    """Run `function` while the context is open, and cancel it at the end."""
    group = anyio.create_task_group()
    # No `async with`: an error of the block is none of the group's, to be wrapped as such.
    await group.__aenter__()
    group.start_soon(function)
    try:
        yield
    finally:
        group.cancel_scope.cancel()
        await group.__aexit__(None, None, None)


@asynccontextmanager
async def alone(
    store: "Store | None",
    key: str,
    look: Callable[[], T],
    *,
    enough: Callable[[T], bool],
    patience: float,
) -> AsyncIterator[tuple[T, float]]:
    """Yield the result of `look` (in a thread) and the seconds waited for another
    process.

    Where that is not `enough`, this is the only process that works on `key`, by a claim
    in `store`, for as long as it takes; the claim of a process that was killed passes
    on `patience` seconds after. Others wait without limit for that. Without a store
    none waits."""
    if store is None:
        yield await in_thread(look), 0.0
        return

    def look_or_claim() -> "tuple[T, Claim | None]":
        found = look()
        claim = None if enough(found) else store.claim(key, seconds=patience)
        # Another process may have left its result between the look and the claim.
        return (look() if claim is not None else found), claim

    started = anyio.current_time()
    pause = waited = 0.0
    while True:
        with anyio.CancelScope(
            shield=True
        ):  # otherwise the lease of a canceled caller would not be released
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
    holder = threading.Thread(
        target=_hold, args=(store, claim, patience, done), daemon=True
    )
    holder.start()
    try:
        yield found, waited
    finally:
        done.set()
        with anyio.CancelScope(shield=True):
            await in_thread(holder.join)


def _hold(
    store: "Store", claim: "Claim", seconds: float, done: threading.Event
) -> None:
    """Renew a lease until `done`, then release it."""
    while not done.wait(seconds / RENEWALS):
        claim = store.renew(claim, seconds=seconds)
    store.release(claim)
