"""`winnow serve`: the server, over stdio or Streamable HTTP."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.output import OK
from cli.subcommand import Subcommand, port
from errors import UsageError
from seams import later, optional
from server.settings import read_settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--http", action="store_true", help="Streamable HTTP instead of stdio"
    )
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
    parser.add_argument("--daemon", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument(
        "--without-auth",
        action="store_true",
        help="accept all clients without authentication, also from other machines",
    )


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    # Who is served over HTTP may be another person than the one whose list of folders it is.
    settings = read_settings(overrides, for_others=args.http)
    if args.daemon:
        settings_of = later("cli.command", "settings_of_client")
        later("server.daemon.serve", "serve_daemon")(
            *args.daemon, settings_of, settings
        )
    if not args.http:
        later("server.stdio", "serve_stdio")(settings)
        return OK
    serve_http = optional("extras.http.serve", "serve_http")
    if serve_http is None:
        raise UsageError(
            "This installation lacks `extras/http`, which serves HTTP.",
            hint="Serve over stdio, without --http.",
        )
    serve_http(
        settings,
        host=args.host,
        port=args.port,
        allowed_hosts=[*settings.http.hosts, *args.allow_host],
        allowed_origins=args.allow_origin,
        open_to_all=args.without_auth,
    )
    return OK


COMMAND: Final = Subcommand(
    "serve",
    help="serve MCP over stdio, or over HTTP with --http",
    arguments=_arguments,
    run=_run,
    place=20,
)
