"""`winnow folders`: the list of folders that are searched and read."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.subcommand import Subcommand
from seams import later
from server.settings import folder_list


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = ["add", "remove", "list"]
    parser.add_argument("action", nargs="?", choices=actions, default="list")
    parser.add_argument(
        "names", nargs="*", metavar="DIR", help="folders, or single files"
    )


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    code: int = later("cli.folders", "change_list")(
        folder_list(), args.action, args.names, as_json=args.json
    )
    return code


COMMAND: Final = Subcommand(
    "folders",
    help="add, remove or list the folders that are searched unless others are named",
    arguments=_arguments,
    run=_run,
    place=21,
)
