"""Plug-in points: source formats, search providers, model backends, tools, exports and
subcommands, one file each; and functions of `extras` that the core can do without.

A seam is a folder in which every module binds one object to the seam's name, plus a
group of entry points through which other packages add more. An entry point that fails
to load is skipped; `faults` gives the reason. Not for: what each kind of object holds
(`readers/format.py`, `pipeline/search/provider.py`, `models/backend.py`,
`tools/common/tool.py`).
"""

import functools
import importlib
import importlib.util
import logging
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, TypeVar

from extra import IMPORT_FAILURES

_Kind = TypeVar("_Kind")
_log: Final = logging.getLogger("winnow.seams")
faults: Final[dict[str, str]] = {}
"""Entry point name to the reason why it was skipped."""


@dataclass(frozen=True, slots=True)
class Seam(Generic[_Kind]):
    """One plug-in point: a folder of ours and a group of entry points."""

    folders: tuple[str, ...]
    """Packages whose modules each define one object: the core's, then one of `extras`."""
    name: str
    """Name of the object in each module."""
    group: str
    """Entry point group of other packages, each `MODULE:OBJECT`."""
    kind: type[_Kind]

    def modules(self) -> list[str]:
        """Return the dotted names of our modules, by their last part, without importing them."""
        names = [
            f"{folder}.{module.name}"
            for folder in self.folders
            for module in pkgutil.iter_modules(importlib.import_module(folder).__path__)
            if not module.ispkg
        ]
        return sorted(names, key=lambda name: name.rpartition(".")[2])

    def load(self, module: str) -> _Kind:
        """Return the object of one of our modules.

        Raises `TypeError` if the module does not define it; errors of its import pass
        through.
        """
        member = getattr(importlib.import_module(module), self.name, None)
        if not isinstance(member, self.kind):
            raise TypeError(f"{module} does not define {self.name}.")
        return member

    def others(self) -> Sequence[EntryPoint]:
        """Return the entry points of other packages, sorted by name, without loading
        them."""
        return sorted(entry_points(group=self.group), key=lambda entry: entry.name)

    def add(self, entry: EntryPoint) -> _Kind | None:
        """Return the object of an entry point; if it cannot be loaded, log it, return
        None."""
        try:
            member = entry.load()
        except IMPORT_FAILURES as error:
            self._leave_out(entry, f"{type(error).__name__}: {error}")
            return None
        if isinstance(member, self.kind):
            return member
        self._leave_out(entry, f"it is not a {self.kind.__name__}")
        return None

    def found(self) -> list[_Kind]:
        """Return all objects: ours by file name, then those of other packages."""
        ours = [self.load(module) for module in self.modules()]
        loaded = map(self.add, self.others())
        return [*ours, *(member for member in loaded if member is not None)]

    def _leave_out(self, entry: EntryPoint, why: str) -> None:
        name = f"{self.group}: {entry.name}"
        if name not in faults:
            _log.warning(
                "the plug-in %s (%s) could not be used: %s", name, entry.value, why
            )
        faults[name] = f"{entry.value} is left out: {why}"


def later(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports `name` from `module` on its first call.

    Files of a seam are imported at every start; their dependencies can be slow to
    import.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    return call


@functools.cache
def optional(module: str, name: str) -> Callable[..., Any] | None:
    """Return `later(module, name)`; None where this installation lacks the module."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a package above it is missing
        spec = None
    return later(module, name) if spec is not None else None
