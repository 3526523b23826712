"""`winnow logs`: what the process that stdio clients share has logged."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.subcommand import Subcommand
from seams import later


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    code: int = later("cli.daemon", "print_logs")()
    return code


COMMAND: Final = Subcommand(
    "logs",
    help="print the log of the process that stdio clients share",
    run=_run,
    place=25,
)
