"""`winnow status`: what is in the index of folders; models, providers, cache."""

import argparse
from collections.abc import Mapping
from typing import Final

import anyio

from cli.subcommand import Subcommand, settings_from
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch",
        action="store_true",
        help="only the process that stdio clients share, each second, until it is stopped",
    )


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    if args.watch:
        later("cli.daemon", "watch_daemons")()
    show_status = later("cli.index", "show_status")
    code: int = anyio.run(show_status, settings_from(overrides), args)
    return code


COMMAND: Final = Subcommand(
    "status",
    help="show what of the folders is indexed, and models, providers and cache",
    arguments=_arguments,
    run=_run,
    place=23,
)
