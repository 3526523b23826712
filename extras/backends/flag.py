"""FlagEmbedding's models, on torch."""

from pathlib import Path
from typing import Any, Final

from extra import require
from extras.flagembedding import FlagEmbedder, FlagReranker
from models.backend import Backend, Resources
from models.catalogue import Role


def _make(role: Role, name: str, _: Resources) -> Any:
    require("flag", f"flag:{name}")
    folder = Path(name).expanduser()
    name = str(folder.resolve()) if folder.is_dir() else name
    return FlagEmbedder(name) if role == "embedder" else FlagReranker(name)


BACKEND: Final = Backend(
    prefix="flag",
    roles={"embedder": "flag:BAAI/bge-m3", "reranker": "flag:BAAI/bge-reranker-v2-m3"},
    make=_make,
)
