"""`winnow sessions`: a research session of this machine, by its handle."""

import argparse
from typing import Final

from cli.subcommand import Subcommand
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = ["show", "export", "remove"]
    parser.add_argument("action", choices=actions)
    parser.add_argument("handle", metavar="HANDLE", help="winnow://session/…")
    parser.add_argument(
        "--format",
        default="markdown",
        help=(
            "export: markdown (default), html, json, bibtex, ris, or "
            "a format that an installed package adds"
        ),
    )


COMMAND: Final = Subcommand(
    "sessions",
    help="show, export or remove a research session",
    arguments=_arguments,
    run=later("cli.kept", "look_after_sessions"),
    place=50,
)
