"""ONNX models in a folder, and the built-in ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from errors import UsageError
from models.backend import Backend, Resources
from models.catalogue import Role
from models.onnx import EMBEDDED, MULTILINGUAL, WEIGHTS, OnnxEmbedder, OnnxReader

_OURS: Final[Mapping[str, Path]] = {"embedded": EMBEDDED, "multilingual": MULTILINGUAL}
"""Built-in embedders: name in a spec to folder."""


def _make(role: Role, rest: str, _: Resources) -> Any:
    if role == "reader":
        return OnnxReader(_folder_with([WEIGHTS], rest))
    return OnnxEmbedder(_OURS.get(rest) or _onnx_folder(rest))


def _onnx_folder(rest: str) -> Path:
    inner = (Path(rest).expanduser() / "onnx" / "model.onnx").is_file()
    return _folder_with(["tokenizer.json", *([] if inner else ["model.onnx"])], rest)


def _folder_with(files: Sequence[str], rest: str) -> Path:
    folder = Path(rest).expanduser()
    missing = [str(folder / name) for name in files if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"onnx:{rest} does not contain a model; missing: {', '.join(missing)}.",
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
