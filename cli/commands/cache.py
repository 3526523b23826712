"""`winnow cache`: the stored data."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.subcommand import Subcommand, settings_from
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = ["path", "clear"]
    parser.add_argument("action", nargs="?", choices=actions, default="path")


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    code: int = later("cli.kept", "look_after_cache")(
        settings_from(overrides), args.action, as_json=args.json
    )
    return code


COMMAND: Final = Subcommand(
    "cache",
    help="show where the cache is, or empty it",
    arguments=_arguments,
    run=_run,
    place=40,
)
