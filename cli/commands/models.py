"""`winnow models`: the model of each role, and downloads."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.subcommand import Subcommand, settings_from
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


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    code: int = later("cli.models", "run_models")(args, settings_from(overrides))
    return code


COMMAND: Final = Subcommand(
    "models",
    help="show, list, pull or remove models",
    arguments=_arguments,
    run=_run,
    place=30,
)
