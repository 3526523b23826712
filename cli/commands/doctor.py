"""`winnow doctor`: whether every part of an installation works."""

import argparse
from collections.abc import Mapping
from typing import Final

import anyio

from cli.subcommand import Subcommand
from seams import later


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    code: int = anyio.run(later("cli.doctor", "doctor"), overrides, args.json)
    return code


COMMAND: Final = Subcommand(
    "doctor",
    help="check models, cache, folders, clients and search providers",
    run=_run,
    place=80,
)
