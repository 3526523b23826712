"""Serving over stdio; nothing else may write to stdout.

File descriptor 1 is the wire of a stdio server. Imports run while it points at stderr,
and both Python's and C's buffers are flushed before the wire is given back; at the end
they are dropped. A malformed line is answered: a client would wait for ever. Not for: what is
served, nor HTTP (`extras/http/`)."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio

from server.settings import Settings

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage


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
    # The SDK has no public way to serve these streams; its own drops malformed lines.
    lowlevel = server._lowlevel_server
    async with client_messages() as (messages, wire):
        await lowlevel.run(messages, wire, lowlevel.create_initialization_options())
    os._exit(0)


@asynccontextmanager
async def client_messages(
    lines: Any = None, wire: Any = None
) -> AsyncIterator[tuple[ReadStream[Any], WriteStream[SessionMessage]]]:
    """Yield the messages of a client and where the answers go; by default over stdin
    and stdout, else over `lines` to read and a `wire` to write."""
    from mcp.server.stdio import stdio_server  # noqa: PLC0415  loaded by now, with stdout diverted

    sender, messages = anyio.create_memory_object_stream[Any](0)
    async with (
        stdio_server(lines, wire) as (received, answers),
        anyio.create_task_group() as group,
    ):
        group.start_soon(_forward, received, sender, answers)
        yield messages, answers


async def _forward(
    lines: ReadStream[SessionMessage | Exception],
    sender: WriteStream[SessionMessage],
    wire: WriteStream[SessionMessage],
) -> None:
    """Forward messages to the server; answer malformed lines with an error whose id is null
    (JSON-RPC 2.0, section 5.1), also a request whose id is none: the SDK takes it for a
    notification."""
    from mcp_types import JSONRPCNotification  # noqa: PLC0415  loaded by now, with stdout diverted

    async with sender:
        async for message in lines:
            if isinstance(message, Exception):
                await wire.send(_refused(message))
            elif isinstance(
                message.message, JSONRPCNotification
            ) and not message.message.method.startswith("notifications/"):
                await wire.send(_refused())
            else:
                await sender.send(message)


def _refused(error: Exception | None = None) -> SessionMessage:
    """Return the error for a line that cannot be parsed, or is not a message of JSON-RPC."""
    from mcp.shared.message import SessionMessage  # noqa: PLC0415  loaded by now, with stdout diverted
    from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError  # noqa: PLC0415  as the line above
    from pydantic import ValidationError  # noqa: PLC0415  as the line above

    is_json = error is None or (
        isinstance(error, ValidationError)
        and error.errors()[0]["type"] != "json_invalid"
    )
    code, message = (
        (INVALID_REQUEST, "The line is not a JSON-RPC 2.0 message.")
        if is_json
        else (PARSE_ERROR, "The line is not JSON in UTF-8.")
    )
    reason = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=reason))


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
