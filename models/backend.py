"""Model backends: the plug-in point for another kind of model.

Each module of `models/backends/` and `extras/backends/` binds one `Backend` to
`BACKEND`, and other wheels add theirs by entry points of the group `winnow.backends`. The prefixes of specs, messages
and extras are derived from it. Not for: which model a role gets (`choose.py`), nor
running one.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from models.catalogue import Role
from models.options import ModelOptions
from seams import Seam

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class Resources:
    """Shared resources of models: HTTP client, API key, downloads, options."""

    http: "httpx2.AsyncClient"
    key: str = field(default="", repr=False)
    downloads: Path | None = None
    """Folder of downloaded models; None: huggingface_hub's."""
    options: ModelOptions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Backend:
    """One way to run models: the prefix of its specs, and the function that makes a
    model."""

    prefix: str
    """Prefix of a spec, before the colon."""
    roles: Mapping[Role, str]
    """Supported roles, each with the spec forms shown in messages."""
    make: Callable[[Role, str, Resources], Any]
    """Takes a role, the text after the colon and the resources; returns a model of the
    role's protocol (`models/protocols.py`). Loads and downloads nothing. Raises
    `UsageError` for an invalid spec, `MissingExtra` if a package is not installed."""


SEAM: Final = Seam(
    ("models.backends", "extras.backends"), "BACKEND", "winnow.backends", Backend
)


@functools.cache
def backends() -> dict[str, Backend]:
    """Return every backend by its prefix."""
    return {backend.prefix: backend for backend in SEAM.found()}
