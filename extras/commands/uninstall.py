"""`winnow uninstall`: Winnow out of every client, and what it stored."""

import argparse
from typing import Final

from cli.subcommand import Subcommand
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="remove without asking")


COMMAND: Final = Subcommand(
    "uninstall",
    help="remove Winnow from your clients, with its cache and list of folders",
    arguments=_arguments,
    run=later("extras.install.install", "uninstall"),
    place=61,
)
