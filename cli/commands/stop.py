"""`winnow stop`: the end of the process that stdio clients share."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.subcommand import Subcommand
from seams import later


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    code: int = later("cli.daemon", "stop_daemons")()
    return code


COMMAND: Final = Subcommand(
    "stop",
    help="end the process that stdio clients share",
    run=_run,
    place=24,
)
