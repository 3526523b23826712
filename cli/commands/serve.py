"""`winnow serve`: the server, over stdio or another transport."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.output import OK
from cli.subcommand import Subcommand
from seams import later
from server.settings import read_settings
from server.transport import transports


def _arguments(parser: argparse.ArgumentParser) -> None:
    for one in transports():
        parser.add_argument(f"--{one.name}", action="store_true", help=one.help)
        one.arguments(parser)


def _run(args: argparse.Namespace, given: Mapping[str, str]) -> int:
    settings = read_settings(given)
    for one in transports():
        if getattr(args, one.name):
            one.serve(settings, args)
            return OK
    later("server.stdio", "serve_stdio")(settings)
    return OK


COMMAND: Final = Subcommand(
    "serve",
    help="serve MCP over stdio, or over HTTP with --http",
    arguments=_arguments,
    run=_run,
    place=20,
)
