"""What commands print: data for people or for machines on stdout, progress on stderr; and their
exit codes."""

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
PATIENCE: Final = 1800.0
"""Seconds for what a command does without a tool's deadline: a person waits longer than a
caller."""


class Check(NamedTuple):
    """One line of a report; not healthy is what was asked for by a setting and does not work."""

    name: str
    line: str
    healthy: bool = True


def print_json(data: object) -> None:
    """Print one JSON object for machines."""
    print(json.dumps(data, ensure_ascii=False, indent=2))


def show(data: Mapping[str, object], *, as_json: bool) -> None:
    """Print `data` as one JSON object, or as a line `name: value` each."""
    if as_json:
        print_json(data)
    else:
        print("\n".join(f"{name}: {value}" for name, value in data.items()))


@contextmanager
def drawn_progress(*, quiet: bool) -> Iterator[ProgressFnT | None]:
    """Give a function that draws progress on stderr, cleared at the end; None where nobody would
    see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # noqa: PLC0415  time that serving does without

    # A terminal that does not tell its size counts as one of 80 by 24; tqdm would draw nothing
    # there.
    size = shutil.get_terminal_size()
    form = "{bar:20} {desc}"
    with tqdm(
        total=10,
        file=sys.stderr,
        leave=False,
        ncols=min(100, size.columns),
        nrows=size.lines,
        bar_format=form,
    ) as bar:

        async def draw(
            progress: float, total: float | None, message: str | None
        ) -> None:
            bar.total = total or max(progress, 1)
            bar.n = progress
            bar.set_description_str((message or "")[:80])

        yield draw
