"""Output of commands: text or JSON on stdout, progress on stderr; exit codes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

OK, FAILED, USAGE, NO_ANSWER = range(4)
_BAR: Final = 20
"""Columns of a progress bar."""


class Check(NamedTuple):
    """One line of a report; unhealthy: configured but not working."""

    name: str
    line: str
    healthy: bool = True


def print_json(data: object) -> None:
    """Print one JSON object."""
    print(json.dumps(data, ensure_ascii=False, indent=2))


def show(data: Mapping[str, object], *, as_json: bool) -> None:
    """Print `data` as one JSON object, or as a line `name: value` each."""
    if as_json:
        print_json(data)
    else:
        print("\n".join(f"{name}: {value}" for name, value in data.items()))


@contextmanager
def drawn_progress(*, quiet: bool) -> Iterator[ProgressFnT | None]:
    """Yield a function that draws progress on stderr and clears it at the end; None
    with `quiet` or without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    width = min(100, shutil.get_terminal_size().columns) - 1

    async def draw(progress: float, total: float | None, message: str | None) -> None:
        share = ""
        if total:
            done = progress / total
            share = f"{'█' * int(_BAR * done):░<{_BAR}} {done:4.0%} "
        line = f"{share}{message or ''}"[:width]
        print(f"\r{line:{width}}", end="", file=sys.stderr, flush=True)

    yield draw
    print(f"\r{'':{width}}", end="\r", file=sys.stderr, flush=True)
