"""Streamable HTTP, for many clients."""

import argparse
from typing import Final

from cli.subcommand import port
from seams import later
from server.settings import Settings
from server.transport import Transport


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=port, default=8765)
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="Host header to accept, as clients send it; the usual port may be left out",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="origin of web pages that may call this server (CORS)",
    )
    parser.add_argument(
        "--without-auth",
        action="store_true",
        help="accept all clients without authentication, also from other machines",
    )


def _serve(settings: Settings, args: argparse.Namespace) -> None:
    later("extras.http.serve", "serve_http")(
        settings,
        host=args.host,
        port=args.port,
        allowed_hosts=[*settings.http_hosts, *args.allow_host],
        allowed_origins=args.allow_origin,
        open_to_all=args.without_auth,
    )


TRANSPORT: Final = Transport(
    "http",
    help="Streamable HTTP instead of stdio",
    serve=_serve,
    arguments=_arguments,
)
