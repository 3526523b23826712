"""Steps that the core can do without: the plug-in point for each.

Each module of `extras/steps/` binds one `Step` to `STEP`, and other packages add theirs
by entry points of the group `winnow.steps`. The caller of a step says what it takes and
returns, and does without it where it is not there. Not for: formats, providers,
backends and tools, which have seams of their own.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from errors import UsageError
from seams import Seam


@dataclass(frozen=True, slots=True)
class Step:
    """One step under the name by which its caller looks for it."""

    name: str
    run: Callable[..., Any]
    """Reached by `seams.later` where it takes long to import."""


SEAM: Final = Seam(("extras.steps",), "STEP", "winnow.steps", Step)


@functools.cache
def steps() -> dict[str, Callable[..., Any]]:
    """Return what runs each step, by its name; a package's replaces ours of that
    name."""
    return {one.name: one.run for one in SEAM.found()}


def required_step(name: str, otherwise: UsageError) -> Callable[..., Any]:
    """Return what runs the step `name`; raises `otherwise` where it is not installed."""
    run = steps().get(name)
    if run is None:
        raise otherwise
    return run
