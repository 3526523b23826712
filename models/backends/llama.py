"""GGUF models, run by llama.cpp in a process of its own."""

from pathlib import Path
from typing import Any, Final

from errors import UsageError
from extra import require
from models.backend import Backend, Resources
from models.catalogue import Role
from models.llama.model import LlamaEmbedder, LlamaGenerator, LlamaReranker
from models.pull import kept_files

_MODELS: Final[dict[Role, type[LlamaEmbedder | LlamaReranker | LlamaGenerator]]] = {
    "embedder": LlamaEmbedder,
    "reranker": LlamaReranker,
    "generator": LlamaGenerator,
}


def _make(role: Role, name: str, resources: Resources) -> Any:
    return _MODELS[role](_gguf(name, resources.downloads), options=resources.options)


def _gguf(name: str, downloads: Path | None) -> Path:
    require("llama", f"llama:{name}")
    path = Path(name).expanduser()
    if path.is_file():
        return path.resolve()
    if (download := kept_files(downloads).get(name)) is not None:
        return download
    if name.count("/") > 1 and name.endswith(".gguf") and not path.is_absolute():
        raise UsageError(
            f"llama:{name} is neither a file nor downloaded; Winnow never downloads "
            f"by itself.",
            hint=f"Download it with: winnow models pull {name}",
        )
    raise UsageError(
        f"llama:{name}: file not found.",
        hint="Give a GGUF file, or OWNER/REPO/FILE.gguf.",
    )


BACKEND: Final = Backend(
    prefix="llama",
    roles=dict.fromkeys(_MODELS, "llama:FILE.gguf, llama:OWNER/REPO/FILE.gguf"),
    make=_make,
)
