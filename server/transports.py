"""Serving over stdio and Streamable HTTP without a stray byte on stdout.

File descriptor 1 is the wire of a stdio server. Heavy imports run while it points at stderr, and both Python's and C's
buffers are flushed before the wire is given back and again at the end (notes/mcp §4.1). Not for: what is served.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from server.settings import Settings

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


def serve_stdio(settings: Settings) -> None:
    """Serve one client until its end of stdin, then leave the process."""
    with _stdout_kept_clean():
        from server.app import build_server  # noqa: PLC0415  heavy imports may print; stdout is diverted here

        server = build_server(settings, own_signals=True)
    server.run("stdio")
    _flush()
    # Threads that were abandoned by cancelled calls would hold the exit for as long as they run.
    os._exit(0)


def serve_http(settings: Settings, *, host: str, port: int, allowed_hosts: list[str]) -> None:
    """Serve many clients at `http://host:port/mcp` until a signal."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415  as above

    from server.app import build_server  # noqa: PLC0415  as above

    security = None
    if host not in LOOPBACK or allowed_hosts:
        names = [*allowed_hosts, f"{host}:{port}"]
        security = TransportSecuritySettings(
            allowed_hosts=names,
            allowed_origins=[f"{scheme}://{name}" for name in names for scheme in ("http", "https")],
        )
    server = build_server(settings, own_signals=True)
    server.run("streamable-http", host=host, port=port, transport_security=security)


@contextmanager
def _stdout_kept_clean() -> Iterator[None]:
    wire = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(wire, 1)
        os.close(wire)


def _flush() -> None:
    sys.stdout.flush()
    with suppress(OSError, AttributeError):  # no C library to ask, such as on Windows: nothing is buffered there then
        ctypes.CDLL(None).fflush(None)
