"""The process that serves: its log, what it opens behind its first answers, its end on a signal,
memory and traces.

A client waits for the answer to its first message. Importing the pipeline and opening its services
take as long as everything before that answer (0.4 of 0.9 CPU-seconds), and only a call needs them.
Not for: what is served, or opened (`server/wiring.py`); values that outlive a call
(`pipeline/services.py`).
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TextIO

import anyio

from errors import UsageError, WinnowError
from extra import importing
from pipeline.work import in_thread, is_busy
from server.calls import JsonLines, name_request
from server.settings import MEGABYTE, Settings
from server.version import VERSION

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from cache.store import Stores
    from pipeline.services import Services

    OpenServices = Callable[[Settings], AbstractAsyncContextManager[Services]]

Drain = Callable[[], Awaitable[None]]
"""Lets running calls end, and no other begin."""
LOG_BYTES: Final = 8_000
"""Bytes of warnings on stderr an hour: the pipe to a client that never reads it takes 64 kB, then
blocks us."""
_log: Final = logging.getLogger("winnow.settings")
HOUR: Final = timedelta(hours=1).total_seconds()
FORMAT: Final = "%(asctime)s %(name)s %(message)s"
DROPPED: Final = (
    "winnow: more is not shown this hour; WINNOW_LOG_FILE=FILE keeps all of it\n"
)
ENOUGH: Final = 10
"""Collections of the middle generation (7,000 new objects each) after which a full one is due, as
in Python itself."""
TOO_MANY: Final = ENOUGH * 100
"""After so many Python runs it in the middle of work too: garbage must not grow on a server that
never rests."""
LARGE_BYTES: Final = MEGABYTE
"""A block of at least so many bytes is the system's again once it is freed. glibc raises its own
bound to the largest block freed so far, up to 32 MB, and keeps the room in one heap a thread: the
hostile set (`tests/test_fetch_hostile_set.py`) then left 60 to 121 MB, and with this bound 25 to 33
(six and three runs)."""


def start_log(settings: Settings) -> None:
    """Send the log where the settings say, one line each: the SDK's own set-up draws boxes."""
    handler: logging.Handler
    if settings.log_file:
        handler = logging.FileHandler(
            settings.log_file, delay=True
        )  # opened with its first line
    elif settings.log_level in {"DEBUG", "INFO"}:  # asked for, so all of it
        handler = logging.StreamHandler()
    else:
        handler = Sparing(sys.stderr)
    handler.setFormatter(
        JsonLines() if settings.log_format == "json" else logging.Formatter(FORMAT)
    )
    handler.addFilter(name_request)
    logging.basicConfig(handlers=[handler], level=settings.log_level)
    # They write whole addresses, questions in them, and what servers put in the place of a status.
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name, warning in settings.warnings().items():
        _log.warning("%s: %s", name, warning)


def drop_what_nobody_reads() -> None:
    """Let writes to a stderr that is a full pipe fail instead of wait; a terminal or a file stays
    as it is."""
    if sys.platform != "win32" and stat.S_ISFIFO(os.fstat(2).st_mode):
        os.set_blocking(2, False)


class Sparing(logging.StreamHandler[TextIO]):
    """Writes `LOG_BYTES` an hour, says once that there was more, and drops that."""

    def __init__(
        self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(stream)
        self._clock = clock
        self._since = clock()
        self._left = LOG_BYTES

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record where there is room for it, and for the line that says that more was
        dropped."""
        now = self._clock()
        if now - self._since >= HOUR:
            self._since, self._left = now, LOG_BYTES
        if self._left <= 0:
            return
        cost = len(self.format(record).encode()) + 1
        if cost <= self._left - len(DROPPED):
            self._left -= cost
            super().emit(record)
        else:
            self._left = 0
            self.stream.write(DROPPED)
            self.flush()


async def watch_signals(
    clean_up: Callable[[], None], drain: Drain | None = None
) -> None:
    """Wait for SIGTERM or SIGINT, call `clean_up`, and end the process with 128 + the signal's
    number.

    By default SIGTERM would skip all cleanup, and SIGINT would hang until stdin closes. The first
    SIGTERM awaits `drain`; a second one, or SIGINT, does not wait for that.
    """
    wanted = (
        [signal.SIGTERM, signal.SIGINT] if sys.platform != "win32" else [signal.SIGINT]
    )

    async def end(received: int, drain: Drain | None) -> None:
        if drain is not None:
            await drain()
        clean_up()
        os._exit(128 + received)

    async with anyio.create_task_group() as group:
        with anyio.open_signal_receiver(*wanted) as signals:
            async for received in signals:
                group.start_soon(
                    end, received, drain if received == signal.SIGTERM else None
                )
                drain = None


def leave(error: WinnowError) -> None:
    """Say why this process cannot serve and end it: 2 for a setting that is wrong, 1 for anything
    else."""
    print(f"winnow: {error}", file=sys.stderr, flush=True)
    os._exit(2 if isinstance(error, UsageError) else 1)


def give_back_large_blocks() -> bool:
    """Have freed blocks of `LARGE_BYTES` and more go back to the system; return whether the C
    library can."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(
            ctypes.CDLL(None).mallopt(-3, LARGE_BYTES)
        )  # M_MMAP_THRESHOLD in malloc.h
    except (
        AttributeError
    ):  # a C library without the call, such as musl, which has no such bound to hold
        return False


async def collect_when_quiet() -> None:
    """Look for garbage at quiet moments; on cancellation Python's own ways come back.

    A full collection holds every thread while it walks all objects, 100 to 250 ms once a few
    cleaned pages are kept. Python starts one while a large page is being cleaned, which was the
    longest wait of any ping. Young objects are still collected as always.
    """
    before = gc.get_threshold()
    gc.freeze()  # what the imports made stays for good and need not be walked again
    gc.set_threshold(*before[:2], TOO_MANY)
    done = _middle_collections()
    try:
        while True:
            await anyio.sleep(PAUSE)
            if _middle_collections() - done >= ENOUGH and not is_busy():
                gc.collect()
                done = _middle_collections()
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _middle_collections() -> int:
    return int(gc.get_stats()[1]["collections"])


def start_telemetry(collector: str) -> Callable[[], None]:
    """Export spans to `collector` (OTLP over HTTP) and return what to call at the end; nothing
    happens without one."""
    if not collector:
        return lambda: None
    with importing("otel", "WINNOW_OTLP"):
        from opentelemetry import trace  # noqa: PLC0415  the SDK below is an extra
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415  as above
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  as above
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  as above
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  as above
    provider = TracerProvider(
        resource=Resource.create({"service.name": "winnow", "service.version": VERSION})
    )
    address = (
        collector if collector.endswith("/v1/traces") else f"{collector}/v1/traces"
    )
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(endpoint=address, timeout=5))
    )
    trace.set_tracer_provider(provider)
    end: Callable[[], None] = provider.shutdown
    return end


PAUSE: Final = 0.3
"""Seconds that a server leaves to messages before work of its own: to the first ones before it
opens by itself, since imports in a thread slow an answer, between two looks for a quiet moment, and
to the last ones before it ends."""


class Opening:
    """The services of one run of a server, from before they are there until they are closed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._wanted = anyio.Event()
        self.settled = anyio.Event()
        """Set once the services are open, or cannot be opened."""
        self._ended = anyio.Event()
        self._services: Services | None = None
        self._error: WinnowError | None = None

    @property
    def seconds(self) -> float:
        """What a call may take."""
        return self._settings.seconds

    async def services(self) -> Services:
        """Return the services, opened now where they are not; raises what kept them from it, each
        time the same."""
        self._wanted.set()
        await self.settled.wait()
        if self._services is None:
            assert self._error is not None  # noqa: S101  settled means one or the other
            raise self._error
        return self._services

    @property
    def stores(self) -> Stores | None:
        """The cache, None before it is open."""
        return self._services.stores if self._services is not None else None

    def close_stores(self) -> None:
        """Close the cache, where it is open: what a signal leaves time for."""
        if self._services is not None:
            self._services.stores.close()

    @asynccontextmanager
    async def at_once(self) -> AsyncIterator[Opening]:
        """Open the services, and close them at the end."""
        async with _late()(self._settings) as self._services:
            self.settled.set()
            yield self

    @asynccontextmanager
    async def behind(
        self, failed: Callable[[WinnowError], None]
    ) -> AsyncIterator[Opening]:
        """Open the services after a pause, or when they are first wanted, and close them at the
        end.

        `failed` is called with the error where they cannot be opened; `services` raises that error,
        too.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._open_late, failed)
            try:
                yield self
            finally:
                self._ended.set()
                if not self.settled.is_set():
                    group.cancel_scope.cancel()

    async def _open_late(self, failed: Callable[[WinnowError], None]) -> None:
        with anyio.move_on_after(PAUSE):
            await self._wanted.wait()
        try:
            opened = await in_thread(_late)
            async with opened(self._settings) as self._services:
                self.settled.set()
                await self._ended.wait()
        except WinnowError as error:
            self._error = error
            self.settled.set()
            failed(error)


class OpenFirst:
    """Middleware that gives calls of tools the open services as their lifespan's context."""

    async def __call__(
        self, ctx: ServerRequestContext[Any], call_next: CallNext
    ) -> HandlerResult:
        """Wait for the services where a tool is called; pass on everything else."""
        opening: Opening = ctx.lifespan_context
        if ctx.method != "tools/call":
            return await call_next(ctx)
        from mcp_types import CallToolResult, TextContent  # noqa: PLC0415  loaded by the SDK before the first call

        services: Services | None = None
        with anyio.move_on_after(opening.seconds):
            services = await opening.services()
        if services is None:
            told = (
                f"Not ready after {opening.seconds:.0f} s: cache and models are still being "
                f"opened. Repeat the call."
            )
            return CallToolResult(
                is_error=True, content=[TextContent(type="text", text=told)]
            )
        return await call_next(replace(ctx, lifespan_context=services))


def _late() -> OpenServices:
    """Import what only calls need; in a thread, so that the server answers meanwhile."""
    gc.disable()  # imports make no garbage worth 0.12 s of collections
    try:
        from server import reading, toolbox, wiring  # noqa: F401, PLC0415  half of all imports: after the first answer

        return wiring.open_services
    finally:
        gc.enable()
