"""The command line `winnow`: every tool as a subcommand, and what `subcommand.py` finds.

Exit codes: 0 an answer, 1 a failure, 2 wrong usage, 3 no answer. Not for: what a
subcommand does (`tool_calls.py`, `commands/`)."""

import argparse
import gc
import io
import os
import sys
from collections.abc import Mapping
from typing import NoReturn

from cli.output import FAILED, OK, USAGE
from cli.subcommand import subcommands
from cli.tool_calls import as_typed, tool_commands
from errors import UsageError, WinnowError
from server.settings import (
    Settings,
    did_you_mean,
    folder_list,
    refuse_unknown,
    survey_settings,
)
from server.version import VERSION


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code: 1 for a failure, 2 for wrong usage,
    130 after Ctrl-C.

    Output that is closed early, as by `| head`, counts as success.
    """
    gc.enable()  # off while modules are imported (`server/__main__.py`)
    argv = sys.argv[1:] if argv is None else argv
    _open_streams(wire=argv[:1] == ["serve"])
    try:
        parser, commands = command_line()
        argv = as_typed(argv)
        if argv and not argv[0].startswith("-") and argv[0] not in commands:
            hint = did_you_mean(argv[0], commands).strip() or "See winnow --help."
            raise UsageError(f"unknown command {argv[0]!r}.", hint=hint)
        args = parser.parse_args(argv)
        code = args.run(args, _given(args))
    except WinnowError as error:
        print(f"winnow: {error}", file=sys.stderr)
        code = USAGE if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The reader closed our output, as `| head` does; that is not a failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = OK
    sys.stdout.flush()
    sys.exit(code)


def settings_of_client(arguments: list[str], variables: Mapping[str, str]) -> Settings:
    """Return the settings of a stdio server that was started with `arguments` and
    `variables`; raises `UsageError`, and `SystemExit` for wrong arguments."""
    args = command_line()[0].parse_args(arguments)
    settings, faults = survey_settings(_given(args), variables, folder_list())
    for fault in faults.values():
        raise fault
    return settings


def _open_streams(*, wire: bool) -> None:
    """Make stdout and stderr writable in any locale, and if a descriptor is closed.

    If stdout is the protocol's `wire` it is not changed: reconfiguring would flush text
    that a library printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        # Otherwise the next opened file would get this descriptor and our output.
        if getattr(sys, name) is None and os.open(os.devnull, os.O_RDWR) == number:
            setattr(sys, name, open(number, "r" if number == 0 else "w"))  # noqa: SIM115  for the whole run
    for stream in (sys.stderr,) if wire else (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _given(args: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the command line."""
    overrides: dict[str, str] = {}
    for pair in args.set or []:
        # The value may be a key or a password, so it is not repeated.
        name, equals, value = pair.partition("=")
        refuse_unknown(name, f"--set {name!r}")
        if not equals:
            raise UsageError(
                f"--set {name} has no value.", hint=f"Write --set {name}=VALUE."
            )
        overrides[name] = value
    if folders := [*filter(None, [overrides.get("folders")]), *(args.folder or [])]:
        overrides["folders"] = os.pathsep.join(dict.fromkeys(folders))
    if args.searxng:
        overrides["searxng"] = args.searxng
    return overrides


def command_line() -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the parser of the command line, and the names of its commands."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object")
    common.add_argument(
        "-q", "--quiet", action="store_true", help="no progress on stderr"
    )
    common.add_argument(
        "--folder",
        action="append",
        metavar="DIR",
        help="folder to search and read; may be repeated",
    )
    common.add_argument(
        "--searxng", metavar="URL", help="base URL of a SearXNG instance"
    )
    common.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="any setting (docs/settings.md)",
    )
    parser = argparse.ArgumentParser(
        prog="winnow",
        description="The web and your own documents as small, cited evidence.",
        epilog="Exit codes: 0 an answer, 1 a failure, 2 wrong usage, 3 no answer.",
    )
    parser.add_argument("--version", action="version", version=f"winnow {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (*tool_commands(), *subcommands()):
        subparser = commands.add_parser(
            command.name, help=command.help, description=command.help, parents=[common]
        )
        subparser.set_defaults(run=command.run)
        command.arguments(subparser)
    return parser, list(commands.choices)
