"""`winnow install CLIENT`: Winnow in a client's configuration."""

import argparse
from typing import Final

from cli.subcommand import Subcommand
from extras.install.clients import CLIENTS, OTHER
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(CLIENTS)
    parser.add_argument(
        "client",
        choices=[*CLIENTS, OTHER],
        metavar="CLIENT",
        help=f"one of {names}; {OTHER} prints the entry for any other client",
    )
    parser.add_argument(
        "--scope",
        choices=["user", "project"],
        default="user",
        help="for your user account, or for this folder",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what would change"
    )
    parser.add_argument("--yes", action="store_true", help="write without confirmation")
    parser.add_argument(
        "--undo",
        action="store_true",
        help="remove Winnow from the client's configuration",
    )


COMMAND: Final = Subcommand(
    "install",
    help="add Winnow to a client's configuration",
    arguments=_arguments,
    run=later("extras.install.install", "install"),
    checks=later("extras.install.install", "client_checks"),
    place=60,
)
