"""`winnow models`: the model of each role, and downloads."""

import argparse
from typing import Final

from cli.subcommand import Subcommand
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=["show", "list", "pull", "remove"],
        default="show",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="for pull and remove: a name of the list, or OWNER/REPO/FILE.gguf",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="pull: only print what would be downloaded",
    )


COMMAND: Final = Subcommand(
    "models",
    help="show, list, pull or remove models",
    arguments=_arguments,
    run=later("cli.models", "run_models"),
    place=30,
)
