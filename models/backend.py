"""What a model backend is: the seam by which Winnow learns to run one more kind of model.

Each module of `models/backends/` and `extras/backends/` binds one `Backend` to `BACKEND`, and other
wheels add theirs by entry points of the group `winnow.backends`. What a spec may begin with, its
messages and the extras follow from here. Not for: which model a role gets (`choose.py`), nor
running one.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypedDict

from models.catalogue import Role
from models.pull import Hub
from models.tuning import USUAL, Tuning
from models.worker import MemoryBudget
from seams import Seam

if TYPE_CHECKING:
    import httpx2


class Run(TypedDict):
    """What a model from a GGUF file is made with."""

    budget: MemoryBudget | None
    tuning: Tuning


@dataclass(frozen=True, slots=True)
class Resources:
    """What models need from outside: the HTTP client and key of remote ones, downloads, and the
    memory they share."""

    http: "httpx2.AsyncClient"
    key: str = field(default="", repr=False)
    hub: Hub = field(default_factory=Hub)
    budget: MemoryBudget | None = None
    tunings: Mapping[str, Tuning] = field(default_factory=dict)
    """How the model of each role is run."""

    def of(self, role: Role) -> Run:
        """Return what a GGUF model of a role is made with, beside its file."""
        return {"budget": self.budget, "tuning": self.tunings.get(role, USUAL)}


@dataclass(frozen=True, slots=True)
class Backend:
    """One way to run models: what a spec begins with, and what makes a model of the rest."""

    prefix: str
    """What a spec begins with, before its colon."""
    roles: Mapping[Role, str]
    """The roles that it can fill, each with the forms of a spec, as messages show them."""
    make: Callable[[Role, str, Resources], Any]
    """Takes a role, what follows the colon, and what models need; returns a model of the role's
    protocol (`models/protocols.py`). Loads and downloads nothing, and raises `UsageError` for what
    cannot be, `MissingExtra` where a package is not installed."""
    extra: str = ""
    """The extra whose package it needs."""
    says: str = ""
    """What is said of it beside the spec that was set."""


SEAM: Final = Seam(
    ("models.backends", "extras.backends"), "BACKEND", "winnow.backends", Backend
)


@functools.cache
def backends() -> dict[str, Backend]:
    """Return every backend by its prefix."""
    return {one.prefix: one for one in SEAM.found()}
