"""The server process: log, opening services in the background, signals, tracing.

A client waits for the answer to its first message. Importing the pipeline and opening
its services take as long as everything before that answer (0.4 of 0.9 CPU-seconds), and
only a call needs them. Not for: what is served, or opened (`server/wiring.py`); values
that outlive a call (`pipeline/services.py`)."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import anyio

from errors import UsageError, WinnowError
from extra import importing
from pipeline.work import in_thread
from server.calls import JsonLines, name_request
from server.settings import MEGABYTE, Settings
from server.shared import Shared
from server.version import VERSION

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from cache.store import Stores
    from pipeline.services import Services

    OpenServices = Callable[
        [Settings, Shared | None], AbstractAsyncContextManager[Services]
    ]

Drain = Callable[[], Awaitable[None]]
"""Function that refuses new calls and waits for the running ones."""
_log: Final = logging.getLogger("winnow.settings")
_TURN_SECONDS: Final = 0.002
"""Seconds of the interpreter's switch interval: shorter gives faster pings during heavy
work. Measurements: docs/log.md, 2026-11-27."""
LARGE_BYTES: Final = MEGABYTE
"""Freed blocks of at least this many bytes return to the system (M_MMAP_THRESHOLD).
glibc raises its own threshold up to 32 MB and keeps the memory in one heap per thread
(docs/log.md, 2026-11-27)."""


def start_log(settings: Settings) -> None:
    """Configure logging by the settings, one line a record (the SDK's default draws
    boxes).

    Below WARNING only loggers of ours (`winnow`) write, save at DEBUG: those of
    libraries name addresses, files and sessions. If the root logger has a handler, that
    one stays and no level is set.
    """
    handler: logging.Handler = logging.StreamHandler()
    if settings.log.file:
        handler = logging.FileHandler(settings.log.file, delay=True)
    lines = logging.Formatter("%(asctime)s %(name)s %(message)s")
    handler.setFormatter(JsonLines() if settings.log.format == "json" else lines)
    handler.addFilter(name_request)
    if not logging.root.handlers:
        level = settings.log.level
        logging.basicConfig(
            handlers=[handler], level="WARNING" if level == "INFO" else level
        )
        logging.getLogger("winnow").setLevel(level)
    # These loggers write full URLs (with questions) and unchecked server text.
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name, warning in settings.warnings().items():
        _log.warning("%s: %s", name, warning)


def drop_unread_stderr() -> None:
    """Make stderr non-blocking if it is a pipe, so that a full pipe cannot block the
    server."""
    logging.raiseExceptions = False  # what does not fit is dropped without a word
    if sys.platform != "win32" and stat.S_ISFIFO(os.fstat(2).st_mode):
        os.set_blocking(2, False)


async def watch_signals(
    clean_up: Callable[[], None],
    drain: Drain | None = None,
    *,
    platform: str = sys.platform,
) -> None:
    """Wait for SIGTERM or SIGINT, call `clean_up`, and end the process with 128 + the
    signal's number.

    By default SIGTERM would skip all cleanup, and SIGINT would hang until stdin closes.
    The first SIGTERM awaits `drain`; a second one, or SIGINT, does not wait for that.
    On Windows, whose event loop delivers no signals, SIGINT alone ends it, undrained.
    """
    if platform == "win32":

        def end(received: int, _: object) -> None:
            clean_up()
            os._exit(128 + received)

        signal.signal(signal.SIGINT, end)
        return

    async def shut_down(received: int, drain: Drain | None) -> None:
        if drain is not None:
            await drain()
        clean_up()
        os._exit(128 + received)

    async with anyio.create_task_group() as group:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for received in signals:
                group.start_soon(
                    shut_down, received, drain if received == signal.SIGTERM else None
                )
                drain = None


def exit_code(error: WinnowError) -> int:
    """Return the code of a process that cannot serve: 2 for a wrong setting, else 1."""
    return 2 if isinstance(error, UsageError) else 1


def leave(error: WinnowError) -> None:
    """Print why this process cannot serve, and exit."""
    print(f"winnow: {error}", file=sys.stderr, flush=True)
    os._exit(exit_code(error))


def give_back_large_blocks() -> bool:
    """Set `LARGE_BYTES` in the C library; return whether it supports that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(
            ctypes.CDLL(None).mallopt(-3, LARGE_BYTES)
        )  # M_MMAP_THRESHOLD in malloc.h
    except (
        AttributeError
    ):  # a C library without mallopt, such as musl, has no such threshold
        return False


def tune_process() -> None:
    """Set up a process that only serves: memory, and how long a thread may run."""
    give_back_large_blocks()
    sys.setswitchinterval(_TURN_SECONDS)


def start_telemetry(collector: str) -> Callable[[], None]:
    """Export spans to `collector` (OTLP over HTTP); return the shutdown function. ""
    disables it.

    Without the package nothing is exported, and the log says so. Raises `BrokenExtra`;
    a collector that is not reached raises nothing.
    """
    if not collector:
        return lambda: None
    if find_spec("opentelemetry") is None:
        # Other programs of this machine may be what that variable is set for.
        _log.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the extra otel is missing."
        )
        return lambda: None
    with importing("otel", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        from opentelemetry import trace  # noqa: PLC0415  the SDK below is an extra
        from opentelemetry.exporter.otlp.proto.http import trace_exporter  # noqa: PLC0415  as above
        from opentelemetry.sdk import resources  # noqa: PLC0415  as above
        from opentelemetry.sdk import trace as sdk  # noqa: PLC0415  as above
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  as above
    about = {"service.name": "winnow", "service.version": VERSION}
    provider = sdk.TracerProvider(resource=resources.Resource.create(about))
    address = f"{collector.removesuffix('/v1/traces')}/v1/traces"
    exporter = trace_exporter.OTLPSpanExporter(endpoint=address, timeout=5)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    shut_down: Callable[[], None] = provider.shutdown
    return shut_down


PAUSE: Final = 0.3
"""Seconds in which messages have priority over own work: before services open, before
exit."""


class Opening:
    """Opens the services of one server run, waits for them, and closes them."""

    def __init__(self, settings: Settings, shared: Shared | None = None) -> None:
        self.settings = settings
        self._shared = shared
        self._wanted = anyio.Event()
        self.settled = anyio.Event()
        """Set when the services are open or have failed to open."""
        self._ended = anyio.Event()
        self._services: Services | None = None
        self._error: WinnowError | None = None

    async def services(self) -> Services:
        """Return the services, opening them if needed; raises the same error each time
        if that failed.

        Waits for the opening without limit.
        """
        self._wanted.set()
        await self.settled.wait()
        if self._services is None:
            assert self._error is not None  # noqa: S101  settled: either services or an error
            raise self._error
        return self._services

    @property
    def stores(self) -> Stores | None:
        """The cache stores; None before they are open."""
        return self._services.stores if self._services is not None else None

    def close_stores(self) -> None:
        """Close the cache if it is open (on a signal there is only time for this)."""
        if self._services is not None:
            self._services.stores.close()

    @asynccontextmanager
    async def at_once(self) -> AsyncIterator[Opening]:
        """Open the services, and close them at the end."""
        async with _late()(self.settings, self._shared) as self._services:
            self.settled.set()
            yield self

    @asynccontextmanager
    async def in_background(
        self, failed: Callable[[WinnowError], None]
    ) -> AsyncIterator[Opening]:
        """Open the services after a pause or at the first call, and close them at the
        end.

        If they cannot be opened, `failed` is called with the error, and `services`
        raises it.
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
            gc.freeze()  # no collection walks over imported modules
            async with opened(self.settings, self._shared) as self._services:
                self.settled.set()
                await self._ended.wait()
        except WinnowError as error:
            self._error = error
            self.settled.set()
            failed(error)


async def show_addresses(
    ctx: ServerRequestContext[Any], call_next: CallNext
) -> HandlerResult:
    """Middleware: a client names what is below a folder with an address by it, and gets
    it named so.

    The text of an answer is written so, since its tokens are counted, and the words that
    it quotes stay as they are."""
    pairs = ctx.lifespan_context.settings.addresses
    if not pairs or ctx.method not in {"tools/call", "resources/read"}:
        return await call_next(ctx)
    from pipeline.text.frame import OPENED_AT, exchanged  # noqa: PLC0415  the pipeline, imported after the first answer

    params = exchanged(ctx.params, tuple((to, by) for by, to in pairs))
    before = OPENED_AT.set(pairs)
    try:
        result = await call_next(replace(ctx, params=params))
    finally:
        OPENED_AT.reset(before)
    if not isinstance(result, dict):  # not ready, or no such argument
        return result
    return {
        name: value if name == "content" else exchanged(value, pairs)
        for name, value in result.items()
    }


async def open_first(
    ctx: ServerRequestContext[Any], call_next: CallNext
) -> HandlerResult:
    """Middleware: wait for the services and pass them to a tool call, with the time that
    is left of it; after the time limit return an error result that asks to repeat the
    call."""
    opening: Opening = ctx.lifespan_context
    if ctx.method != "tools/call":
        return await call_next(ctx)
    from mcp_types import CallToolResult, TextContent  # noqa: PLC0415  loaded by the SDK before the first call

    services: Services | None = None
    with anyio.move_on_after(opening.settings.seconds) as waiting:
        services = await opening.services()
    if services is not None:
        left = replace(services, seconds=waiting.deadline - anyio.current_time())
        return await call_next(replace(ctx, lifespan_context=left))
    message = "Not ready: cache and models are still being opened. Repeat the call."
    text = TextContent(type="text", text=message)
    return CallToolResult(is_error=True, content=[text])


def _late() -> OpenServices:
    """Import the pipeline in a thread, so that the server answers meanwhile."""
    gc.disable()  # collections during imports cost 0.12 s and free little
    try:
        from server import reading, toolbox, wiring  # noqa: F401, PLC0415  half of all imports: after the first answer

        return wiring.open_services
    finally:
        gc.enable()
