"""`winnow status`: what is in the index of folders; models, providers, cache."""

import argparse
from collections.abc import Mapping
from typing import Final

import anyio

from cli.subcommand import Subcommand, settings_from
from seams import later


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    show_status = later("cli.index", "show_status")
    code: int = anyio.run(show_status, settings_from(overrides), args)
    return code


COMMAND: Final = Subcommand(
    "status",
    help="show what of the folders is indexed, and models, providers and cache",
    run=_run,
    place=23,
)
