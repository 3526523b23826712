"""Serving over stdio; nothing else may write to stdout.

File descriptor 1 is the wire of a stdio server. Imports run while it points at stderr,
and both Python's and C's buffers are flushed before the wire is given back; at the end
they are dropped. Not for: what is served, nor other
transports (`transport.py`)."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio

from server.settings import Settings

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer


def serve_stdio(settings: Settings) -> None:
    """Serve one client until its end of stdin, then leave the process."""
    with _stdout_kept_clean():
        from server.app import build_server  # noqa: PLC0415  heavy imports may print; stdout is diverted here
        from server.process import drop_unread_stderr, tune_process  # noqa: PLC0415  as the line above

        server = build_server(settings, own_signals=True)
    drop_unread_stderr()
    tune_process()
    anyio.run(_serve, server)


async def _serve(server: MCPServer[Any]) -> None:
    """Serve until the end of stdin and leave at once.

    Nothing is flushed: fd 1 is the wire again, and a buffer may contain some library's
    print. `os._exit`, because threads of canceled calls would delay a normal exit.
    """
    await server.run_stdio_async()
    os._exit(0)


@contextmanager
def _stdout_kept_clean() -> Iterator[None]:
    wire = os.dup(1)
    os.dup2(2, 1)
    gc.disable()  # collections during imports cost 0.12 s and free little
    try:
        yield
    finally:
        gc.enable()
        sys.stdout.flush()
        with suppress(
            OSError, AttributeError
        ):  # no C library, such as on Windows, which does not buffer
            ctypes.CDLL(None).fflush(None)
        os.dup2(wire, 1)
        os.close(wire)
