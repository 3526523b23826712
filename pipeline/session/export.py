"""Forms in which a session is handed on: the plug-in point for one more.

Each module of `extras/exports/` binds one `Export` to `EXPORT`, and other packages add
theirs by entry points of the group `winnow.exports`. Not for: what an answer of a tool
looks like (`pipeline/evidence/show.py`).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from errors import UsageError
from pipeline.session.session import Session
from seams import Seam


@dataclass(frozen=True, slots=True)
class Export:
    """One form of an export."""

    name: str
    write: Callable[[Session], str]
    """A pure transformation: the same session gives the same text."""


SEAM: Final = Seam(("extras.exports",), "EXPORT", "winnow.exports", Export)


@functools.cache
def exports() -> dict[str, Export]:
    """Return the forms by name."""
    return {form.name: form for form in SEAM.found()}


def export(session: Session, form: str) -> str:
    """Return a session in a form; raises `UsageError` for an unknown one."""
    if form not in exports():
        raise UsageError(
            f"Unknown export format: {form!r}.",
            hint=f"Use one of: {', '.join(exports()) or 'none is installed'}.",
        )
    return exports()[form].write(session)
