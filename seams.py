"""The seams: source formats, search providers, model backends and tools, each one object in one file.

A seam is a folder of ours in which every module binds one object to the seam's name, and a group of
entry points by which other wheels add more. What of another wheel cannot be loaded is left out, and
`faults` says why. Not for: what each kind of object holds (`pipeline/read/format.py`,
`pipeline/search/provider.py`, `models/backend.py`, `tools/common/tool.py`).
"""

import importlib
import logging
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, TypeVar

from extra import FAILURES

_Kind = TypeVar("_Kind")
_log: Final = logging.getLogger("winnow.seams")
faults: Final[dict[str, str]] = {}
"""By entry point: why what another wheel adds was left out."""


@dataclass(frozen=True, slots=True)
class Seam(Generic[_Kind]):
    """One kind of thing that grows by files."""

    folders: tuple[str, ...]
    """Packages in which every module is one of it: the core's, then one of `extras`."""
    name: str
    """What each module binds the object to."""
    group: str
    """Entry points of other wheels, each `MODULE:OBJECT`."""
    kind: type[_Kind]

    def modules(self) -> list[str]:
        """Return our modules, packages aside, in order of their last names; none is imported."""
        found = [
            f"{folder}.{module.name}"
            for folder in self.folders
            for module in pkgutil.iter_modules(importlib.import_module(folder).__path__)
            if not module.ispkg
        ]
        return sorted(found, key=lambda name: name.rpartition(".")[2])

    def load(self, module: str) -> _Kind:
        """Return what one of our modules holds.

        Raises `TypeError` where it binds no such object.
        """
        found = getattr(importlib.import_module(module), self.name, None)
        if not isinstance(found, self.kind):
            raise TypeError(f"{module} binds no {self.name}.")
        return found

    def others(self) -> Sequence[EntryPoint]:
        """Return the entry points of other wheels, in order of their names; none is loaded."""
        return sorted(entry_points(group=self.group), key=lambda one: one.name)

    def add(self, entry: EntryPoint) -> _Kind | None:
        """Return what an entry point names; None where that cannot be loaded, which is logged."""
        try:
            found = entry.load()
        except FAILURES as error:
            self._leave_out(entry, f"{type(error).__name__}: {error}")
            return None
        if isinstance(found, self.kind):
            return found
        self._leave_out(entry, f"it is no {self.kind.__name__}")
        return None

    def found(self) -> list[_Kind]:
        """Return every object: ours in the order of their files, then those of other wheels."""
        ours = [self.load(module) for module in self.modules()]
        others = map(self.add, self.others())
        return [*ours, *(one for one in others if one is not None)]

    def _leave_out(self, entry: EntryPoint, why: str) -> None:
        name = f"{self.group}: {entry.name}"
        if name not in faults:
            _log.warning("%s (%s) is left out: %s", name, entry.value, why)
        faults[name] = f"{entry.value} is left out: {why}"


def later(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports what it calls when it is first called: `name` of `module`.

    A file of a seam is read at every start; what it needs to do its work may take long to import.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    return call
