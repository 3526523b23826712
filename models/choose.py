"""From a spec string to a model: which backend stands behind each role, and why (design §5).

`auto`, `none`, `onnx:embedded`, `onnx:FOLDER`, `llama:PATH` or `llama:OWNER/REPO/FILE.gguf`, `flag:NAME` or
`flag:FOLDER`, `openai:URL#MODEL`. Choosing loads nothing and downloads nothing. Not for: running models, or reading
settings.
"""

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import httpx2

from errors import MissingExtra, ModelError, UsageError
from models.flag import FlagEmbedder, FlagReranker
from models.llama import LlamaEmbedder, LlamaGenerator
from models.onnx import EMBEDDED, OnnxEmbedder
from models.openai import Endpoint, OpenAIEmbedder, OpenAIGenerator, OpenAIReranker
from models.protocols import Embedder, Generator, Reranker

FORMS: Final = {
    "embedder": "auto, none, onnx:embedded, onnx:FOLDER, llama:FILE.gguf, llama:OWNER/REPO/FILE.gguf, "
    "flag:BAAI/bge-m3, openai:http://127.0.0.1:11434/v1#MODEL",
    "reranker": "auto, none, flag:BAAI/bge-reranker-v2-m3, openai:http://127.0.0.1:8080/v1#MODEL",
    "generator": "auto, none, llama:FILE.gguf, llama:OWNER/REPO/FILE.gguf, openai:http://127.0.0.1:11434/v1#MODEL",
}
"""The spec forms of each role, as messages show them."""

Model = TypeVar("Model", Embedder, Reranker, Generator)


@dataclass(frozen=True, slots=True)
class Chosen(Generic[Model]):
    """A model or none, and a sentence for a person that says why."""

    model: Model | None
    reason: str

    async def aclose(self) -> None:
        """Let the model go: end its worker process, if it has one."""
        if isinstance(self.model, LlamaEmbedder | LlamaGenerator):
            await self.model.aclose()


def choose_embedder(spec: str, *, http: httpx2.AsyncClient, key: str = "") -> Chosen[Embedder]:
    """Return the embedder that `spec` names; `auto` is the embedded MiniLM.

    `http` and `key` serve `openai:` specs; the client stays the caller's to close.

    Raises:
        UsageError: The spec is not one of the forms, or names a file that is not there.
        MissingExtra: The package of the backend is not installed.
        ModelError: The carried weights are missing.
    """
    backend, rest = _split(spec, "embedder")
    match backend:
        case "auto":
            return Chosen(_embedded(), "auto: the embedded all-MiniLM-L6-v2 (English, 8 bits) needs no download")
        case "none":
            return Chosen(None, "none was set: steps rank by words alone")
        case "onnx":
            model = _embedded() if rest == "embedded" else OnnxEmbedder(_onnx_folder(rest))
            return Chosen(model, f"{spec} was set")
        case "llama":
            return Chosen(LlamaEmbedder(_gguf(rest)), f"{spec} was set: llama.cpp in a process of its own")
        case "flag":
            return Chosen(FlagEmbedder(_flag(rest)), f"{spec} was set: FlagEmbedding on torch")
        case "openai":
            return Chosen(OpenAIEmbedder(_endpoint(rest, spec, http, key)), f"{spec} was set: a remote model")
    raise _unknown(spec, "embedder")


def choose_reranker(spec: str, *, http: httpx2.AsyncClient, key: str = "") -> Chosen[Reranker]:
    """Return the reranker that `spec` names; `auto` is none, for no small one is carried.

    Raises:
        UsageError: The spec is not one of the forms.
        MissingExtra: The package of the backend is not installed.
        ModelError: The backend has no reranker.
    """
    backend, rest = _split(spec, "reranker")
    match backend:
        case "auto":
            return Chosen(None, "auto: no reranker is carried; words and embeddings are fused instead")
        case "none":
            return Chosen(None, "none was set: words and embeddings are fused instead")
        case "llama":
            raise ModelError(
                f"The reranker {spec!r} cannot be used: reranking through llama.cpp is not supported.",
                hint=f"Use one of: {FORMS['reranker']}.",
            )
        case "flag":
            return Chosen(FlagReranker(_flag(rest)), f"{spec} was set: FlagEmbedding on torch")
        case "openai":
            return Chosen(OpenAIReranker(_endpoint(rest, spec, http, key)), f"{spec} was set: a remote model")
    raise _unknown(spec, "reranker")


def choose_generator(spec: str, *, http: httpx2.AsyncClient, key: str = "") -> Chosen[Generator]:
    """Return the generator that `spec` names; `auto` is none: every step has a form without one.

    Raises:
        UsageError: The spec is not one of the forms, or names a file that is not there.
        MissingExtra: The package of the backend is not installed.
    """
    backend, rest = _split(spec, "generator")
    match backend:
        case "auto":
            return Chosen(None, "auto: no generator is carried; steps work by rules and extracts")
        case "none":
            return Chosen(None, "none was set: steps work by rules and extracts")
        case "llama":
            return Chosen(LlamaGenerator(_gguf(rest)), f"{spec} was set: llama.cpp in a process of its own")
        case "openai":
            return Chosen(OpenAIGenerator(_endpoint(rest, spec, http, key)), f"{spec} was set: a remote model")
    raise _unknown(spec, "generator")


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


def _gguf(rest: str) -> Path:
    _need("llama_cpp", package="llama-cpp-python", extra="llama", needed_for=f"llama:{rest}")
    path = Path(rest).expanduser()
    if path.is_file():
        return path.resolve()
    owner, _, tail = rest.partition("/")
    repository, _, file = tail.partition("/")
    if owner and repository and file.endswith(".gguf") and not path.is_absolute():
        # Imported here because it takes longer than the rest of the choice and only this form needs it; tokenizers
        # brings it.
        hub = importlib.import_module("huggingface_hub")
        try:
            cached = hub.try_to_load_from_cache(f"{owner}/{repository}", file)
        except hub.errors.HFValidationError as error:
            raise UsageError(f"llama:{rest} is neither a file here nor a repository's name: {error}") from error
        if isinstance(cached, str):
            return Path(cached)
        raise UsageError(
            f"llama:{rest} is neither a file here nor in the Hugging Face cache; nothing is downloaded unasked.",
            hint=f"Download it with: hf download {owner}/{repository} {file}",
        )
    raise UsageError(f"llama:{rest}: there is no such file.", hint="Name a GGUF file, or OWNER/REPO/FILE.gguf.")


def _flag(rest: str) -> str:
    _need("FlagEmbedding", package="FlagEmbedding", extra="flag", needed_for=f"flag:{rest}")
    folder = Path(rest).expanduser()
    return str(folder.resolve()) if folder.is_dir() else rest


def _need(module: str, *, package: str, extra: str, needed_for: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(package, extra=extra, needed_for=needed_for)


def _endpoint(rest: str, spec: str, http: httpx2.AsyncClient, key: str) -> Endpoint:
    url, _, model = rest.partition("#")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise UsageError(f"{spec!r} has no valid address: {error}.", hint=_ENDPOINT_HINT) from error
    if parsed.scheme not in ("http", "https") or not parsed.host or not model or parsed.userinfo:
        raise UsageError(f"{spec!r} does not name an http(s) address and a model.", hint=_ENDPOINT_HINT)
    return Endpoint(http=http, url=url.rstrip("/"), model=model, key=key)


_ENDPOINT_HINT: Final = "Write openai:http://127.0.0.1:11434/v1#MODEL; a key goes to the setting model_key, not here."
