"""`winnow cache`: the stored data."""

import argparse
from typing import Final

from cli.subcommand import Subcommand
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = ["path", "clear"]
    parser.add_argument("action", nargs="?", choices=actions, default="path")


COMMAND: Final = Subcommand(
    "cache",
    help="show where the cache is, or empty it",
    arguments=_arguments,
    run=later("cli.kept", "look_after_cache"),
    place=40,
)
