"""Models that may be fetched by name, the profiles of machines that they make up, and which profile
fits this machine.

Both are listed in `catalogue.toml`. Not for: fetching (`models/pull.py`) or choosing
(`models/choose.py`).
"""

import os
import platform
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from errors import UsageError

Role = Literal["embedder", "reader", "reranker", "generator"]


@dataclass(frozen=True, slots=True)
class Offered:
    """One file of a repository on the hub, and what it is for."""

    role: Role
    repository: str
    file: str
    megabytes: int
    licence: str
    note: str
    writes: bool = True
    """False for a generator that scores only."""

    @property
    def path(self) -> str:
        """OWNER/REPO/FILE on the hub."""
        return f"{self.repository}/{self.file}"

    @property
    def spec(self) -> str:
        """What the setting of the role is set to."""
        return f"llama:{self.path}"


@dataclass(frozen=True, slots=True)
class Profile:
    """Models for one kind of machine, and what a machine of the kind has at least."""

    name: str
    machine: str
    models: tuple[str, ...]
    """Names in `MODELS`."""
    resident: str
    """Memory with all of them loaded, estimated: weights, and 8 to 16 k tokens of context."""
    system: str = ""
    """How `Machine.system` begins."""
    memory: float = 0.0
    """GB of main memory; less than it is sold with, for the system keeps some for itself."""
    graphics: float = 0.0
    """GB of a graphics card."""


with Path(__file__).with_name("catalogue.toml").open("rb") as _file:
    _listed = tomllib.load(_file)
MODELS: Final = {name: Offered(**fields) for name, fields in _listed["models"].items()}
PROFILES: Final = {
    name: Profile(name, **{**fields, "models": tuple(fields["models"])})
    for name, fields in _listed["profiles"].items()
}
"""Less demanding ones first."""


def wanted(names: tuple[str, ...]) -> list[Offered]:
    """Return what names of models or profiles, or OWNER/REPO/FILE.gguf, stand for, each once."""
    found: dict[str, Offered] = {}
    for name in names:
        for model in PROFILES[name].models if name in PROFILES else (name,):
            owner, repository, file = [*model.removeprefix("llama:").split("/", 2), "", ""][:3]
            if model not in MODELS and not (owner and repository and file.endswith(".gguf")):
                profiles = ", ".join(PROFILES)
                raise UsageError(
                    f"{model!r} is no model that Winnow knows.",
                    hint=f"Use a profile ({profiles}), a name of `winnow models list`, or "
                    f"OWNER/REPO/FILE.gguf.",
                )
            other = Offered("generator", f"{owner}/{repository}", file, 0, "see its page", "")
            offered = MODELS.get(model, other)
            found[offered.spec] = offered
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine has; 0 where a figure is not known."""

    system: str
    """`Linux`, `Darwin`, `Windows`, with the processor's kind."""
    memory: float
    """GB of main memory."""
    graphics: float
    """GB of the largest NVIDIA card."""

    def __str__(self) -> str:
        """The facts as a person reads them."""
        card = f", graphics card with {self.graphics:.0f} GB" if self.graphics else ""
        return f"{self.system}, {self.memory:.0f} GB{card}"


def this_machine() -> Machine:
    """Return what this machine has; asks `nvidia-smi` where it is installed."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, ValueError, OSError):
        memory = 0.0  # Windows has no sysconf
    return Machine(f"{platform.system()} {platform.machine()}", memory, _graphics())


def fitting_profile(machine: Machine) -> Profile:
    """Return the most demanding profile that a machine meets."""
    return next(
        profile
        for profile in reversed(PROFILES.values())
        if machine.graphics >= profile.graphics
        and machine.memory >= profile.memory
        and machine.system.startswith(profile.system)
    )


def _graphics() -> float:
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0.0
    command = [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603  a program of the system, fixed arguments
    except (OSError, subprocess.TimeoutExpired):
        return 0.0
    figures = [int(line) for line in done.stdout.splitlines() if line.strip().isdecimal()]
    return max(figures, default=0) * 1.048576 / 1_000
