"""From a spec string to a model: which backend stands behind each role, and why.

`auto`, `none`, `onnx:embedded`, `onnx:FOLDER`, `llama:PATH` or `llama:OWNER/REPO/FILE.gguf`, `flag:NAME` or
`flag:FOLDER`, `openai:URL#MODEL`. `auto` takes what was pulled by name for the role, else what every installation has.
Choosing loads nothing and downloads nothing. Not for: running models, or reading settings.
"""

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

import httpx2

from errors import MissingExtra, ModelError, UsageError
from models.catalogue import MODELS, Role
from models.flag import FlagEmbedder, FlagReranker
from models.llama.model import LlamaEmbedder, LlamaGenerator, LlamaReranker
from models.memory import MemoryBudget
from models.onnx import EMBEDDED, OnnxEmbedder
from models.protocols import Backend, Embedder, Generator, Reranker
from models.pull import Hub, find_kept
from models.remote.endpoint import Endpoint
from models.remote.openai import OpenAIEmbedder, OpenAIGenerator, OpenAIReranker
from models.worker import Limits

FORMS: Final = {
    "embedder": "auto, none, onnx:embedded, onnx:FOLDER, llama:FILE.gguf, llama:OWNER/REPO/FILE.gguf, "
    "flag:BAAI/bge-m3, openai:http://127.0.0.1:11434/v1#MODEL",
    "reranker": "auto, none, llama:FILE.gguf, llama:OWNER/REPO/FILE.gguf, flag:BAAI/bge-reranker-v2-m3, "
    "openai:http://127.0.0.1:8080/v1#MODEL",
    "generator": "auto, none, llama:FILE.gguf, llama:OWNER/REPO/FILE.gguf, openai:http://127.0.0.1:11434/v1#MODEL",
}
"""The spec forms of each role, as messages show them."""

Model = TypeVar("Model", Embedder, Reranker, Generator)


@dataclass(frozen=True, slots=True)
class Place:
    """What models need from outside: the HTTP client and key of remote ones, downloads, and the memory they share."""

    http: httpx2.AsyncClient
    key: str = field(default="", repr=False)
    hub: Hub = field(default_factory=Hub)
    budget: MemoryBudget | None = None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class Chosen(Generic[Model]):
    """A model or none, and a sentence for a person that says why."""

    model: Model | None
    reason: str

    async def prepare(self) -> None:
        """Ask a remote server what it serves, so that name, window and dimension are known; raises nothing."""
        if isinstance(self.model, Backend):
            await self.model.prepare()

    async def aclose(self) -> None:
        """Let the model go: end its worker process, if it has one."""
        if isinstance(self.model, Backend):
            await self.model.aclose()


def choose_embedder(spec: str, place: Place) -> Chosen[Embedder]:
    """Return the embedder that `spec` names; `auto` is one that was pulled, or the embedded MiniLM.

    Raises:
        UsageError: The spec is not one of the forms, or names a file that is not there.
        MissingExtra: The package of the backend is not installed.
        ModelError: The carried weights are missing.
    """
    backend, rest = _split(spec, "embedder")
    match backend:
        case "auto":
            return _auto_embedder(place)
        case "none":
            return Chosen(None, "none was set: steps rank by words alone")
        case "onnx":
            model = _embedded() if rest == "embedded" else OnnxEmbedder(_onnx_folder(rest))
            return Chosen(model, f"{spec} was set")
        case "llama":
            gguf = LlamaEmbedder(_gguf(rest, place.hub), limits=place.limits, budget=place.budget)
            return Chosen(gguf, f"{spec} was set: llama.cpp in a process of its own")
        case "flag":
            return Chosen(FlagEmbedder(_flag(rest)), f"{spec} was set: FlagEmbedding on torch")
        case "openai":
            return Chosen(OpenAIEmbedder(_endpoint(rest, spec, place)), f"{spec} was set: a remote model")
    raise _unknown(spec, "embedder")


def _auto_embedder(place: Place) -> Chosen[Embedder]:
    if found := _pulled("embedder", place):
        return Chosen(LlamaEmbedder(found[0], limits=place.limits, budget=place.budget), found[1])
    return Chosen(_embedded(), "auto: the embedded all-MiniLM-L6-v2 (English, 8 bits) needs no download")


def choose_reranker(spec: str, place: Place) -> Chosen[Reranker]:
    """Return the reranker that `spec` names; `auto` is one that was pulled, or none, for no small one is carried.

    Raises:
        UsageError: The spec is not one of the forms, or names a file that is not there.
        MissingExtra: The package of the backend is not installed.
    """
    backend, rest = _split(spec, "reranker")
    match backend:
        case "auto":
            if found := _pulled("reranker", place):
                return Chosen(LlamaReranker(found[0], limits=place.limits, budget=place.budget), found[1])
            return Chosen(None, "auto: no reranker is carried; words and embeddings are fused instead")
        case "none":
            return Chosen(None, "none was set: words and embeddings are fused instead")
        case "llama":
            gguf = LlamaReranker(_gguf(rest, place.hub), limits=place.limits, budget=place.budget)
            return Chosen(gguf, f"{spec} was set: llama.cpp in a process of its own")
        case "flag":
            return Chosen(FlagReranker(_flag(rest)), f"{spec} was set: FlagEmbedding on torch")
        case "openai":
            return Chosen(OpenAIReranker(_endpoint(rest, spec, place)), f"{spec} was set: a remote model")
    raise _unknown(spec, "reranker")


def choose_generator(spec: str, place: Place) -> Chosen[Generator]:
    """Return the generator that `spec` names; `auto` is one that was pulled, or none: every step has a form without.

    Raises:
        UsageError: The spec is not one of the forms, or names a file that is not there.
        MissingExtra: The package of the backend is not installed.
    """
    backend, rest = _split(spec, "generator")
    match backend:
        case "auto":
            if found := _pulled("generator", place):
                return Chosen(LlamaGenerator(found[0], limits=place.limits, budget=place.budget), found[1])
            return Chosen(None, "auto: no generator is carried; steps work by rules and extracts")
        case "none":
            return Chosen(None, "none was set: steps work by rules and extracts")
        case "llama":
            gguf = LlamaGenerator(_gguf(rest, place.hub), limits=place.limits, budget=place.budget)
            return Chosen(gguf, f"{spec} was set: llama.cpp in a process of its own")
        case "openai":
            return Chosen(OpenAIGenerator(_endpoint(rest, spec, place)), f"{spec} was set: a remote model")
    raise _unknown(spec, "generator")


def _pulled(role: Role, place: Place) -> tuple[Path, str] | None:
    """Return the file that was pulled by name for a role and the reason to take it, the largest where there are many.

    Only where llama-cpp-python is installed, and never a model that writes no answers.
    """
    if importlib.util.find_spec("llama_cpp") is None:
        return None
    for offered in sorted(MODELS.values(), key=lambda model: model.megabytes, reverse=True):
        if offered.role == role and offered.writes:
            path = find_kept(place.hub, offered.repository, offered.file)
            if path is not None:
                return path, f"auto: {offered.file} was pulled for this role (`winnow models remove` undoes it)"
    return None


def _split(spec: str, role: str) -> tuple[str, str]:
    backend, colon, rest = spec.strip().partition(":")
    if backend in ("auto", "none") and not colon:
        return backend, ""
    if not rest.strip() or backend in ("auto", "none"):
        raise _unknown(spec, role)
    return backend, rest.strip()


def _unknown(spec: str, role: str) -> UsageError:
    return UsageError(f"{spec!r} is no specification of the {role}.", hint=f"Use one of: {FORMS[role]}.")


def _embedded() -> OnnxEmbedder:
    if not (EMBEDDED / "model.onnx").is_file():
        raise ModelError(
            f"The carried weights are not at {EMBEDDED / 'model.onnx'}.",
            hint="Install Winnow again, or set the embedder to none.",
        )
    return OnnxEmbedder()


def _onnx_folder(rest: str) -> Path:
    folder = Path(rest).expanduser()
    files = [folder / "tokenizer.json"]
    if not any((folder / name).is_file() for name in ("model.onnx", "onnx/model.onnx")):
        files.append(folder / "model.onnx")
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise UsageError(
            f"onnx:{rest} does not hold a model: {', '.join(missing)} is not there.",
            hint="Name a folder with model.onnx (or onnx/model.onnx), tokenizer.json and config.json.",
        )
    return folder.resolve()


def _gguf(rest: str, hub: Hub) -> Path:
    _need("llama_cpp", package="llama-cpp-python", extra="llama", needed_for=f"llama:{rest}")
    path = Path(rest).expanduser()
    if path.is_file():
        return path.resolve()
    owner, _, tail = rest.partition("/")
    repository, _, file = tail.partition("/")
    if owner and repository and file.endswith(".gguf") and not path.is_absolute():
        kept = find_kept(hub, f"{owner}/{repository}", file)
        if kept is not None:
            return kept
        raise UsageError(
            f"llama:{rest} is neither a file here nor among the downloads; nothing is downloaded unasked.",
            hint=f"Download it with: winnow models pull {rest}",
        )
    raise UsageError(f"llama:{rest}: there is no such file.", hint="Name a GGUF file, or OWNER/REPO/FILE.gguf.")


def _flag(rest: str) -> str:
    _need("FlagEmbedding", package="FlagEmbedding", extra="flag", needed_for=f"flag:{rest}")
    folder = Path(rest).expanduser()
    return str(folder.resolve()) if folder.is_dir() else rest


def _need(module: str, *, package: str, extra: str, needed_for: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(package, extra=extra, needed_for=needed_for)


def _endpoint(rest: str, spec: str, place: Place) -> Endpoint:
    url, _, model = rest.partition("#")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise UsageError(f"{spec!r} has no valid address: {error}.", hint=_ENDPOINT_HINT) from error
    if parsed.scheme not in ("http", "https") or not parsed.host or not model or parsed.userinfo:
        raise UsageError(f"{spec!r} does not name an http(s) address and a model.", hint=_ENDPOINT_HINT)
    return Endpoint(http=place.http, url=url.rstrip("/"), model=model, key=place.key)


_ENDPOINT_HINT: Final = "Write openai:http://127.0.0.1:11434/v1#MODEL; a key goes to the setting model_key, not here."
