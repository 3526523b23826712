"""`winnow folders`: the list of folders that are searched and read."""

import argparse
from typing import Final

from cli.subcommand import Subcommand
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = ["add", "remove", "list"]
    parser.add_argument("action", nargs="?", choices=actions, default="list")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="DIR",
        help="folders, or single files; DIR=https://… if readers have that address for it",
    )


COMMAND: Final = Subcommand(
    "folders",
    help="add, remove or list the folders that are searched unless others are named",
    arguments=_arguments,
    run=later("cli.folders", "change_list"),
    place=21,
)
