"""Transports beside stdio: the plug-in point for another.

Each module of `extras/transports/` binds one `Transport` to `TRANSPORT`, and other
wheels add theirs by entry points of the group `winnow.transports`. The options of
`winnow serve` follow from here. Not for: stdio (`stdio.py`), nor what is served
(`app.py`).
"""

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from seams import Seam
from server.settings import Settings


@dataclass(frozen=True, slots=True)
class Transport:
    """One transport: the option that chooses it, and what serves over it."""

    name: str
    """`winnow serve --NAME` chooses it."""
    help: str
    serve: Callable[[Settings, argparse.Namespace], None]
    """Serves until a signal. Raises `UsageError` for settings or options that do not
    fit, `CannotListen` for an address that cannot be used."""
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    """Adds its own options."""


SEAM: Final = Seam(("extras.transports",), "TRANSPORT", "winnow.transports", Transport)


@functools.cache
def transports() -> tuple[Transport, ...]:
    """Return every transport beside stdio."""
    return tuple(SEAM.found())
