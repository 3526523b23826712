"""Subcommands of `winnow`: the plug-in point for another.

Each module of `cli/commands/` and `extras/commands/` binds one `Subcommand` to
`COMMAND`, and other wheels add theirs by entry points of the group `winnow.commands`.
These files are read at every start: what takes long to import is reached by
`seams.later`. Not for: tools, which become commands by themselves (`tool_calls.py`).
"""

import argparse
import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cli.output import Check
from seams import Seam
from server.settings import Settings, read_settings


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand: its name, its arguments, and what runs it."""

    name: str
    help: str
    run: Callable[[argparse.Namespace, Mapping[str, str]], int]
    """Takes the arguments and the settings of the command line; returns the exit
    code."""
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    """Adds its arguments; all subcommands have `--json`, `--quiet`, `--folder`,
    `--searxng` and `--set`."""
    checks: Callable[[], list[Check]] = list
    """Returns what `winnow doctor` reports of it."""
    place: int = 100
    """Its position in the help, lowest first."""


SEAM: Final = Seam(
    ("cli.commands", "extras.commands"), "COMMAND", "winnow.commands", Subcommand
)


@functools.cache
def subcommands() -> tuple[Subcommand, ...]:
    """Return every subcommand, without those of tools."""
    return tuple(
        sorted(SEAM.found(), key=lambda command: (command.place, command.name))
    )


def settings_from(overrides: Mapping[str, str]) -> Settings:
    """Return the settings; print warnings, for commands without a server's log."""
    settings = read_settings(overrides)
    for name, warning in settings.warnings().items():
        print(f"winnow: {name}: {warning}", file=sys.stderr)
    return settings


def port(text: str) -> int:
    """Return a port; raises `ArgumentTypeError` for another text."""
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port; use a number up to 65535"
        )
    return int(text)
