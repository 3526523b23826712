"""`winnow models`: models, their roles, downloads and speed."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.subcommand import Subcommand, settings_from
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=["show", "list", "pull", "remove", "bench"],
        default="show",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a profile, a model, or OWNER/REPO/FILE.gguf",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="pull: only print what would be downloaded",
    )


def _run(args: argparse.Namespace, given: Mapping[str, str]) -> int:
    code: int = later("cli.models", "run_models")(args, settings_from(given))
    return code


COMMAND: Final = Subcommand(
    "models",
    help="show, list, pull, remove or benchmark models",
    arguments=_arguments,
    run=_run,
    place=30,
)
