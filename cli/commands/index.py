"""`winnow index [DIR…]`: the index of folders, built or gone on with."""

import argparse
import os
from collections.abc import Mapping
from typing import Final

import anyio

from cli.subcommand import Subcommand, settings_from
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="DIR", help="default: the folders of the settings"
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="go on until it is stopped: look for changes every ten seconds",
    )


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    if args.names:
        overrides = {**overrides, "folders": os.pathsep.join(args.names)}
    build_index = later("cli.index", "build_index")
    code: int = anyio.run(build_index, settings_from(overrides), args)
    return code


COMMAND: Final = Subcommand(
    "index",
    help="read what is new in the folders, so that questions need not wait for it",
    arguments=_arguments,
    run=_run,
    place=22,
)
