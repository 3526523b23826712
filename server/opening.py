"""Opening cache, network and models behind a server's first answers.

A client waits for the answer to its first message. Importing the pipeline and opening its services take as long as
everything before that answer (0.4 of 0.9 CPU-seconds), and only a call needs them. Not for: what is opened
(`server/wiring.py`).
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from errors import WinnowError
from pipeline.work import in_thread
from server.settings import Settings

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from cache.store import Stores
    from pipeline.services import Services

    OpenServices = Callable[[Settings], AbstractAsyncContextManager[Services]]

PAUSE: Final = 0.3
"""Seconds that a server leaves to the first messages before it opens by itself: imports in a thread slow an answer."""


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

    async def services(self) -> Services:
        """Return the services, opened now where they are not; raises what kept them from it, each time the same."""
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
    async def behind(self, failed: Callable[[WinnowError], None]) -> AsyncIterator[Opening]:
        """Open the services after a pause, or when they are first wanted, and close them at the end.

        `failed` is called with the error where they cannot be opened; `services` raises that error, too.
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

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Wait for the services where a tool is called; pass on everything else."""
        opening: Opening = ctx.lifespan_context
        if ctx.method != "tools/call":
            return await call_next(ctx)
        return await call_next(replace(ctx, lifespan_context=await opening.services()))


def _late() -> OpenServices:
    """Import what only calls need; in a thread, so that the server answers meanwhile."""
    gc.disable()  # imports make no garbage worth 0.12 s of collections
    try:
        from server import reading, toolbox, wiring  # noqa: F401, PLC0415  half of all imports: after the first answer

        return wiring.open_services
    finally:
        gc.enable()
