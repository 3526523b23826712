"""The built-in ONNX embedders, and a reader in a folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from errors import UsageError
from models.backend import Backend, Resources
from models.catalogue import Role
from models.onnx import (
    EMBEDDED,
    MULTILINGUAL,
    WEIGHTS,
    OnnxEmbedder,
    OnnxReader,
)

_OURS: Final[Mapping[str, Path]] = {"embedded": EMBEDDED, "multilingual": MULTILINGUAL}
"""Built-in embedders: name in a spec to folder."""


def _make(role: Role, name: str, _: Resources) -> Any:
    if role == "embedder" and name in _OURS:
        return OnnxEmbedder(_OURS[name])
    folder = Path(name).expanduser()
    if role == "embedder" or not (folder / WEIGHTS).is_file():
        raise UsageError(
            f"onnx:{name} is not a model for the {role}.",
            hint=f"Use one of: {ROLES[role]}; others as llama:FILE.gguf or on a server.",
        )
    return OnnxReader(folder.resolve())


ROLES: Final[Mapping[Role, str]] = {
    "embedder": "onnx:embedded, onnx:multilingual",
    "reader": f"onnx:FOLDER with {WEIGHTS} and its manifest.json",
}
BACKEND: Final = Backend(prefix="onnx", roles=ROLES, make=_make)
