"""ONNX models in a folder, and the built-in ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from errors import UsageError
from models.backend import Backend, Resources
from models.catalogue import Role
from models.onnx import (
    EMBEDDED,
    MULTILINGUAL,
    TOKENIZER,
    WEIGHTS,
    OnnxEmbedder,
    OnnxReader,
)

_OURS: Final[Mapping[str, Path]] = {"embedded": EMBEDDED, "multilingual": MULTILINGUAL}
"""Built-in embedders: name in a spec to folder."""


def _make(role: Role, name: str, _: Resources) -> Any:
    if role == "reader":
        return OnnxReader(_folder_with([WEIGHTS], name))
    return OnnxEmbedder(_OURS.get(name) or _folder_with([TOKENIZER], name))


def _folder_with(files: Sequence[str], name: str) -> Path:
    folder = Path(name).expanduser()
    missing = [str(folder / file) for file in files if not (folder / file).is_file()]
    if missing:
        raise UsageError(
            f"onnx:{name} does not contain a model; missing: {', '.join(missing)}.",
            hint="An embedder's folder has model.onnx (or onnx/model.onnx), tokenizer.json and "
            "config.json; "
            f"a reader's {WEIGHTS}, tokenizer.json and manifest.json.",
        )
    return folder.resolve()


BACKEND: Final = Backend(
    prefix="onnx",
    roles={
        "embedder": "onnx:embedded, onnx:multilingual, onnx:FOLDER",
        "reader": f"onnx:FOLDER with {WEIGHTS} and its manifest.json",
    },
    make=_make,
)
