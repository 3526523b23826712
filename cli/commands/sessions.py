"""`winnow sessions`: a research session of this machine, by its handle."""

import argparse
from collections.abc import Mapping
from typing import Final

from cli.subcommand import Subcommand, settings_from
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = ["show", "export", "remove"]
    parser.add_argument("action", choices=actions)
    parser.add_argument("handle", metavar="HANDLE", help="winnow://session/…")
    parser.add_argument(
        "--format",
        default="markdown",
        help=(
            "export: markdown (default), html, json, bibtex, ris, or "
            "a format that an installed package adds"
        ),
    )


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    code: int = later("cli.kept", "look_after_sessions")(
        settings_from(overrides),
        args.action,
        args.handle,
        form=args.format,
        as_json=args.json,
    )
    return code


COMMAND: Final = Subcommand(
    "sessions",
    help="show, export or remove a research session",
    arguments=_arguments,
    run=_run,
    place=50,
)
