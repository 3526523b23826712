"""Catalogue of downloadable models, listed in `catalogue.toml`.

Not for: fetching (`models/pull.py`) or choosing (`models/choose.py`).
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from errors import UsageError

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


with Path(__file__).with_name("catalogue.toml").open("rb") as _file:
    MODELS: Final = {
        name: Offered(**fields) for name, fields in tomllib.load(_file).items()
    }


def offered_models(names: Sequence[str]) -> list[Offered]:
    """Return the models for names in the catalogue, or OWNER/REPO/FILE.gguf, without
    duplicates.

    Raises `UsageError` for an unknown name. A file that the catalogue lacks counts as a
    generator; whether the hub has it is not checked.
    """
    models = {name: _offered(name) for name in names}
    return list({model.spec: model for model in models.values()}.values())


def _offered(name: str) -> Offered:
    if name in MODELS:
        return MODELS[name]
    owner, _, path = name.removeprefix("llama:").partition("/")
    repository, _, file = path.partition("/")
    if not (owner and repository and file.endswith(".gguf")):
        raise UsageError(
            f"{name!r} is not a known model.",
            hint="Use a name that `winnow models list` shows, or OWNER/REPO/FILE.gguf.",
        )
    return Offered("generator", f"{owner}/{repository}", file, 0, "see its page", "")
