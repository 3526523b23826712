"""Serving Streamable HTTP: the port, and the process that listens there.

Not for: the application (`app.py`).
"""

import errno
import socket
import sys
from typing import Final

import uvicorn

from errors import UsageError, WinnowError
from extras.http.app import build_app
from extras.http.gate import MOST_REQUESTS
from extras.http.protocol import PatientProtocol
from server.process import tune_process
from server.settings import Settings

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""Loopback hosts."""


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

    Ends the process with an error code if the server does not start. Raises
    `UsageError` for a non-loopback address without authentication, and if cookies are
    set (they belong to one person); `WinnowError` if the port is not available.
    """
    if settings.cookies:
        raise UsageError(
            "WINNOW_COOKIES is set, but cookies are not allowed on an HTTP server.",
            hint="Unset WINNOW_COOKIES, or serve stdio.",
        )
    guarded = settings.http_tokens or settings.http.issuer
    if host not in LOOPBACK and not guarded and not open_to_all:
        raise UsageError(
            f"{host} can be reached by others, but no authentication is set.",
            hint="Set WINNOW_HTTP_TOKENS, or issuer and resource in WINNOW_HTTP, or pass --without-auth on a "
            "network that you trust.",
        )
    tune_process()
    listening = listen(host, port)
    app = build_app(
        settings,
        host=host,
        port=port,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
    )
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=PatientProtocol,
        limit_concurrency=MOST_REQUESTS,
        # Clients can forge this header: only configured proxies are trusted.
        proxy_headers=bool(settings.http.proxies),
        forwarded_allow_ips=[str(network) for network in settings.http.proxies],
        log_level=settings.log.level.lower(),
        log_config=None,  # its log goes to ours
        access_log=False,  # calls are logged in server/calls.py
        server_header=False,
    )
    if sys.stderr.isatty():
        print(
            f"Serving at http://{host}:{port}/mcp until Ctrl-C.",
            file=sys.stderr,
            flush=True,
        )
    server = uvicorn.Server(config)
    server.run(sockets=[listening])
    if not server.started:
        sys.exit(3)  # as uvicorn's: the services cannot be opened


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, on which early connections wait; raises
    `WinnowError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise WinnowError(
                f"Port {port} of {host} is in use.",
                hint=f"Stop the other program, or use --port {port ^ 1}.",
            ) from error
        raise WinnowError(
            f"No server can listen at port {port} of {host}: {error.strerror or error}.",
            hint="Use --host 127.0.0.1 and a --port from 1024 up.",
        ) from error
