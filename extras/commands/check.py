"""`winnow check REPORT [SOURCE…]`: what of a draft is in its sources, shown in full."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cli.subcommand import Subcommand
from cli.tool_calls import TOOL_OF_COMMAND, absolute, call, with_sources
from errors import UsageError
from server.settings import read_settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit code 3: something is in no source."
    parser.add_argument("report", help="Markdown, HTML or text; - for standard input")
    parser.add_argument(
        "sources",
        nargs="*",
        help="URLs, files or a session; default: what the report cites",
    )


def _run(args: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    from tools.common.context import LARGEST_BUDGET  # noqa: PLC0415  the SDK, which other commands start without

    settings = read_settings(with_sources(overrides, args.sources))
    arguments = {
        "draft": _draft(args.report),
        "sources": [absolute(source) for source in args.sources],
        "max_tokens": LARGEST_BUDGET,
    }
    return call(args, settings, TOOL_OF_COMMAND["extract"], arguments)


def _draft(name: str) -> str:
    """Return a report's text; `-` reads standard input. Raises `UsageError` for a file
    that cannot be read as UTF-8."""
    try:
        if name == "-":
            return sys.stdin.read()
        return Path(name).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The report {name!r} cannot be read: {error}.",
            hint="Give a UTF-8 text file.",
        ) from error


COMMAND: Final = Subcommand(
    "check",
    help="look up a report's quotations, numbers, names and references in its sources",
    arguments=_arguments,
    run=_run,
    place=10,
)
