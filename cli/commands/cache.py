"""`winnow cache`: the stored data, and backups of it."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cli.subcommand import Subcommand, settings_from
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = ["stats", "clear", "verify", "path", "backup", "restore"]
    parser.add_argument("action", nargs="?", choices=actions, default="stats")
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        help="backup: file to create; restore: file to read",
    )


def _run(args: argparse.Namespace, given: Mapping[str, str]) -> int:
    code: int = later("cli.kept", "look_after_cache")(
        settings_from(given), args.action, args.file, as_json=args.json
    )
    return code


COMMAND: Final = Subcommand(
    "cache",
    help="show, clear, verify, back up or restore the cache",
    arguments=_arguments,
    run=_run,
    place=40,
)
