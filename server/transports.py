"""Serving over stdio and Streamable HTTP without a stray byte on stdout.

File descriptor 1 is the wire of a stdio server. Imports run while it points at stderr, and both
Python's and C's buffers are flushed before the wire is given back; at the end they are dropped. Not
for: what is served.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio

from errors import CannotListen, UsageError
from server.settings import Settings

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""Hosts that only this machine reaches."""
_NOT_STARTED: Final = 3
"""Exit code of a server that could not open its services, uvicorn's own."""
_TURN_SECONDS: Final = 0.002
"""How long one thread keeps Python to itself while another waits; an answer takes several turns.
Worst ping during a page of 4 MB, and six pages of 2 s at once (`bench.fetch`, three quiet runs
each): Python's own 5 ms 34 to 44 ms and 2.16 s, 2 ms 29 to 31 ms and 2.15 to 2.17 s, 1 ms 27 to 29
ms and 2.17 to 2.21 s."""


def serve_stdio(settings: Settings) -> None:
    """Serve one client until its end of stdin, then leave the process."""
    with _stdout_kept_clean():
        from server.app import build_server  # noqa: PLC0415  heavy imports may print; stdout is diverted here
        from server.process import drop_what_nobody_reads, give_back_large_blocks  # noqa: PLC0415  as the line above

        server = build_server(settings, own_signals=True)
    drop_what_nobody_reads()
    give_back_large_blocks()
    sys.setswitchinterval(_TURN_SECONDS)
    anyio.run(_serve, server)


async def _serve(server: MCPServer[Any]) -> None:
    """Serve until the end of stdin and leave at once.

    Not flushed: fd 1 is the wire again, and what is left in a buffer is some library's print; while
    an event loop is taken down such a buffer may fill up and go out by itself. Threads that were
    abandoned by cancelled calls would hold any other exit for as long as they run.
    """
    await server.run_stdio_async()
    os._exit(0)


def serve_http(
    settings: Settings,
    *,
    host: str,
    port: int,
    allowed_hosts: list[str],
    allowed_origins: list[str],
    open_to_all: bool,
) -> None:
    """Serve many clients at `http://host:port/mcp` until a signal.

    Raises `UsageError` where the address is not loopback, and nothing says who may call; and where
    cookies are set, which are one person's; `CannotListen` for a port that cannot be had.
    """
    if settings.cookies:
        raise UsageError(
            "Cookies are not for a server that others call.",
            hint="Unset WINNOW_COOKIES, or serve stdio.",
        )
    import uvicorn  # noqa: PLC0415  only this transport needs it

    from server.http import MOST_REQUESTS, PatientProtocol, build_app  # noqa: PLC0415  heavy imports, which `winnow --help` does without
    from server.process import give_back_large_blocks  # noqa: PLC0415  as the line above

    guarded = settings.http_tokens or settings.http_issuer
    if host not in LOOPBACK and not guarded and not open_to_all:
        raise UsageError(
            f"{host} can be reached by others, and nothing says who may call.",
            hint="Set WINNOW_HTTP_TOKENS or WINNOW_HTTP_ISSUER, or pass --without-auth on a "
            "network that you trust.",
        )
    give_back_large_blocks()
    listening = listen(host, port)
    app = build_app(
        settings,
        host=host,
        port=port,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
    )
    sys.setswitchinterval(_TURN_SECONDS)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=PatientProtocol,
        limit_concurrency=MOST_REQUESTS,
        # Whoever calls may write what it likes there: believed is what a proxy of ours has written.
        proxy_headers=bool(settings.http_proxies),
        forwarded_allow_ips=[str(network) for network in settings.http_proxies],
        log_level=settings.log_level.lower(),
        log_config=None,  # its lines go where ours go
        access_log=False,  # a call has a line of its own (server/calls.py); probes need none
        server_header=False,
    )
    if sys.stderr.isatty():
        print(
            f"Serving at http://{host}:{port}/mcp until Ctrl-C.",
            file=sys.stderr,
            flush=True,
        )
    server = uvicorn.Server(config)
    server.run(sockets=listening)
    if not server.started:
        sys.exit(_NOT_STARTED)


def listen(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of `host`; who connects before all is open waits.

    Raises `CannotListen`, which says what to do.
    """
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in dict.fromkeys(found):
            one = socket.socket(family)
            sockets.append(one)
            if os.name == "posix":  # elsewhere it would let two servers share a port
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.listen()
    except OSError as error:
        for one in sockets:
            one.close()
        raise _cannot_listen(host, port, error) from error
    return sockets


def _cannot_listen(host: str, port: int, error: OSError) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        other = (
            f"End the other program, or take another port: --port "
            f"{port + 1 if port % 2 else port - 1}."
        )
        return CannotListen(f"Port {port} of {host} is in use.", hint=other)
    if error.errno == errno.EACCES:
        return CannotListen(
            f"Port {port} is kept from this user.",
            hint="Take one from 1024 up: --port 8765.",
        )
    reason = error.strerror or str(error)
    return CannotListen(
        f"{host} is no address to listen at here ({reason}).",
        hint="Use --host 127.0.0.1.",
    )


@contextmanager
def _stdout_kept_clean() -> Iterator[None]:
    wire = os.dup(1)
    os.dup2(2, 1)
    gc.disable()  # imports make no garbage worth 0.12 s of collections
    try:
        yield
    finally:
        gc.enable()
        sys.stdout.flush()
        with suppress(
            OSError, AttributeError
        ):  # no C library to ask, such as on Windows, where it buffers nothing
            ctypes.CDLL(None).fflush(None)
        os.dup2(wire, 1)
        os.close(wire)
