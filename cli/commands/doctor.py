"""`winnow doctor`: whether every part of an installation works."""

import argparse
from typing import Final

from cli.subcommand import Subcommand
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report",
        action="store_true",
        help="for an issue: versions and which parts fail; no folder, key or question",
    )


COMMAND: Final = Subcommand(
    "doctor",
    help="check models, cache, folders, clients and search providers",
    arguments=_arguments,
    run=later("cli.doctor", "doctor"),
    place=80,
)
