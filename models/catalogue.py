"""Catalog of downloadable models, and profiles: sets of models for a class of machine.

Both are listed in `catalogue.toml`. Not for: fetching (`models/pull.py`) or choosing
(`models/choose.py`).
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from errors import UsageError
from models.hardware import Hardware

Role = Literal["embedder", "reader", "reranker", "generator"]


@dataclass(frozen=True, slots=True)
class Offered:
    """One model file in a hub repository, with its role."""

    role: Role
    repository: str
    file: str
    megabytes: int
    licence: str
    note: str
    layers: int = 0
    """Transformer blocks of a generator."""
    token_kib: int = 0
    """KiB of KV cache per token of context, at 16 bits."""
    writes: bool = True
    """False for a generator that scores only."""

    @property
    def path(self) -> str:
        """OWNER/REPO/FILE on the hub."""
        return f"{self.repository}/{self.file}"

    @property
    def spec(self) -> str:
        """Spec for the setting of the role."""
        return f"llama:{self.path}"


@dataclass(frozen=True, slots=True)
class Profile:
    """A set of models, and the minimum machine for it."""

    name: str
    machine: str
    models: tuple[str, ...]
    """Names in `MODELS`."""
    resident: str
    """Memory with all of them loaded, estimated: weights, and 8 to 16 k tokens of
    context."""
    system: str = ""
    """Prefixes of system and processor names."""
    memory: float = 0.0
    """Minimum GB of main memory (a bit less than nominal: the system reserves some)."""
    graphics: float = 0.0
    """Minimum GB of GPU memory."""


with Path(__file__).with_name("catalogue.toml").open("rb") as _file:
    _listed = tomllib.load(_file)
MODELS: Final = {name: Offered(**fields) for name, fields in _listed["models"].items()}
PROFILES: Final = {
    name: Profile(name, **{**fields, "models": tuple(fields["models"])})
    for name, fields in _listed["profiles"].items()
}
"""Sorted, least demanding first."""


def wanted(names: tuple[str, ...]) -> list[Offered]:
    """Return the models for names of models, profiles, or OWNER/REPO/FILE.gguf, without
    duplicates.

    Raises `UsageError` for an unknown name. A file that the catalog lacks counts as a
    generator; whether the hub has it is not checked.
    """
    found: dict[str, Offered] = {}
    for name in names:
        for model in PROFILES[name].models if name in PROFILES else (name,):
            owner, repository, file = [
                *model.removeprefix("llama:").split("/", 2),
                "",
                "",
            ][:3]
            if model not in MODELS and not (
                owner and repository and file.endswith(".gguf")
            ):
                profiles = ", ".join(PROFILES)
                raise UsageError(
                    f"{model!r} is not a known model.",
                    hint=(
                        f"Use a profile ({profiles}), a name that `winnow models "
                        "list` shows, or OWNER/REPO/FILE.gguf."
                    ),
                )
            other = Offered(
                "generator", f"{owner}/{repository}", file, 0, "see its page", ""
            )
            offered = MODELS.get(model, other)
            found[offered.spec] = offered
    return list(found.values())


def fitting_profile(hardware: Hardware) -> Profile:
    """Return the most demanding profile whose minimum the machine meets.

    Only GPUs with memory of their own count: integrated ones are no faster than the
    processor.
    """
    graphics = max(
        (card.memory for card in hardware.cards if not card.integrated), default=0.0
    )
    system = f"{hardware.system} {hardware.processor}"
    return next(
        profile
        for profile in reversed(PROFILES.values())
        if graphics >= profile.graphics
        and hardware.memory >= profile.memory
        and system.startswith(profile.system)
    )
