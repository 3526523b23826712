"""From a spec string to a model: which backend stands behind each role, and why.

`auto`, `none`, `onnx:embedded`, `onnx:FOLDER`, `llama:PATH` or `llama:OWNER/REPO/FILE.gguf`, `flag:NAME` or
`flag:FOLDER`, `openai:URL#MODEL`. `auto` takes what was pulled by name for the role, else what every installation has.
Choosing loads nothing and downloads nothing. Not for: running models, or reading settings.
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar

import httpx2

from errors import MissingExtra, UsageError
from models.catalogue import MODELS, Offered, Role
from models.flag import FlagEmbedder, FlagReranker
from models.llama.model import LlamaEmbedder, LlamaGenerator, LlamaReranker
from models.onnx import OnnxEmbedder
from models.protocols import Backend, CrossEncoder, Embedder, Generator, Reranker
from models.pull import Hub, kept_files
from models.reader import WEIGHTS, OnnxReader
from models.remote.endpoint import Endpoint
from models.remote.openai import OpenAIEmbedder, OpenAIGenerator, OpenAIReranker
from models.worker import MemoryBudget

_GGUF: Final = "llama:FILE.gguf, llama:OWNER/REPO/FILE.gguf"
FORMS: Final = {
    "embedder": f"auto, none, onnx:embedded, onnx:FOLDER, {_GGUF}, flag:BAAI/bge-m3, "
    "openai:http://127.0.0.1:11434/v1#MODEL",
    "reader": f"auto, none, onnx:FOLDER with {WEIGHTS} and its manifest.json",
    "reranker": f"auto, none, {_GGUF}, flag:BAAI/bge-reranker-v2-m3, openai:http://127.0.0.1:8080/v1#MODEL",
    "generator": f"auto, none, {_GGUF}, openai:http://127.0.0.1:11434/v1#MODEL",
}
"""The spec forms of each role, as messages show them."""
RUNS: Final = {
    "llama": ": llama.cpp in a process of its own",
    "flag": ": FlagEmbedding on torch",
    "openai": ": a remote model",
}
"""What is said of a backend beside the spec that was set."""


Model = TypeVar("Model", Embedder, Reranker, Generator, CrossEncoder)
Backends: TypeAlias = Mapping[str, Callable[[str], Model]]
"""By the name that a spec begins with, what makes a model of the rest of the spec."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What models need from outside: the HTTP client and key of remote ones, downloads, and the memory they share."""

    http: httpx2.AsyncClient
    key: str = field(default="", repr=False)
    hub: Hub = field(default_factory=Hub)
    budget: MemoryBudget | None = None


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


def choose_embedder(spec: str, resources: Resources) -> Chosen[Embedder]:
    """Return the embedder that `spec` names; `auto` is one that was pulled, or the embedded MiniLM.

    Raises:
        UsageError: The spec is not one of the forms, or names a file that is not there.
        MissingExtra: The package of the backend is not installed.
    """
    backends: Backends[Embedder] = {
        "onnx": lambda rest: OnnxEmbedder(_onnx_folder(rest)) if rest != "embedded" else OnnxEmbedder(),
        "llama": lambda rest: LlamaEmbedder(_gguf(rest, resources.hub), budget=resources.budget),
        "flag": lambda rest: FlagEmbedder(_flag(rest)),
        "openai": lambda rest: OpenAIEmbedder(_endpoint(rest, resources)),
    }
    found = _choose("embedder", spec, resources, backends, without="steps rank by words alone")
    if spec.strip() != "auto" or found.model is not None:
        return found
    return Chosen(OnnxEmbedder(), "auto: the embedded all-MiniLM-L6-v2 (English, 8 bits) needs no download")


def choose_reranker(spec: str, resources: Resources) -> Chosen[Reranker]:
    """Return the reranker that `spec` names; `auto` is one that was pulled, or none, for no small one is carried."""
    backends: Backends[Reranker] = {
        "llama": lambda rest: LlamaReranker(_gguf(rest, resources.hub), budget=resources.budget),
        "flag": lambda rest: FlagReranker(_flag(rest)),
        "openai": lambda rest: OpenAIReranker(_endpoint(rest, resources)),
    }
    return _choose("reranker", spec, resources, backends, without="words and embeddings are fused instead")


def choose_reader(spec: str) -> Chosen[CrossEncoder]:
    """Return the cross-encoder that `spec` names: `auto` is the one that is carried.

    Raises:
        UsageError: The spec is not one of the forms, or names a folder without a reader.
    """
    if spec.strip() == "auto":
        return Chosen(OnnxReader(), "auto: the embedded cross-encoder (English, 8 bits) needs no download")
    without = "words and embeddings alone say what bears on a question"
    backends: Backends[CrossEncoder] = {"onnx": lambda rest: OnnxReader(_folder_with([WEIGHTS], rest))}
    return _choose("reader", spec, None, backends, without=without)


def choose_generator(spec: str, resources: Resources) -> Chosen[Generator]:
    """Return the generator that `spec` names; `auto` is one that was pulled, or none: every step has a form without."""
    backends: Backends[Generator] = {
        "llama": lambda rest: LlamaGenerator(_gguf(rest, resources.hub), budget=resources.budget),
        "openai": lambda rest: OpenAIGenerator(_endpoint(rest, resources)),
    }
    return _choose("generator", spec, resources, backends, without="steps work by rules and extracts")


def _choose(
    role: Role, spec: str, resources: Resources | None, backends: Backends[Model], *, without: str
) -> Chosen[Model]:
    """Return what `spec` names among the role's `backends`; `without` says what its steps do where it is none."""
    backend, colon, rest = (part.strip() for part in spec.partition(":"))
    if backend == "none" and not colon:
        return Chosen(None, f"none was set: {without}")
    if backend == "auto" and not colon and resources is not None:
        pulled = _pulled(role, resources)
        if pulled is None:
            return Chosen(None, f"auto: no {role} is carried; {without}")
        reason = f"auto: {pulled.file} was pulled for this role (`winnow models remove` undoes it)"
        return Chosen(backends["llama"](pulled.path), reason)
    if backend not in backends or not rest:
        raise UsageError(f"{spec!r} is no specification of the {role}.", hint=f"Use one of: {FORMS[role]}.")
    return Chosen(backends[backend](rest), f"{spec} was set{RUNS.get(backend, '')}")


def _pulled(role: Role, resources: Resources) -> Offered | None:
    """Return the largest model that was pulled by name for a role.

    Only where llama-cpp-python is installed, and never a model that writes no answers.
    """
    if importlib.util.find_spec("llama_cpp") is None:
        return None
    kept = kept_files(resources.hub)
    fitting = [one for one in MODELS.values() if one.role == role and one.writes and one.path in kept]
    return max(fitting, key=lambda offered: offered.megabytes, default=None)


def _onnx_folder(rest: str) -> Path:
    inner = (Path(rest).expanduser() / "onnx" / "model.onnx").is_file()
    return _folder_with(["tokenizer.json", *([] if inner else ["model.onnx"])], rest)


def _folder_with(files: Sequence[str], rest: str) -> Path:
    folder = Path(rest).expanduser()
    missing = [str(folder / name) for name in files if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"onnx:{rest} does not hold a model: {', '.join(missing)} is not there.",
            hint="An embedder's folder has model.onnx (or onnx/model.onnx), tokenizer.json and config.json; "
            f"a reader's {WEIGHTS}, tokenizer.json and manifest.json.",
        )
    return folder.resolve()


def _gguf(rest: str, hub: Hub) -> Path:
    if importlib.util.find_spec("llama_cpp") is None:
        raise MissingExtra("llama-cpp-python", extra="llama", needed_for=f"llama:{rest}")
    path = Path(rest).expanduser()
    if path.is_file():
        return path.resolve()
    if (kept := kept_files(hub).get(rest)) is not None:
        return kept
    if rest.count("/") > 1 and rest.endswith(".gguf") and not path.is_absolute():
        raise UsageError(
            f"llama:{rest} is neither a file here nor among the downloads; nothing is downloaded unasked.",
            hint=f"Download it with: winnow models pull {rest}",
        )
    raise UsageError(f"llama:{rest}: there is no such file.", hint="Name a GGUF file, or OWNER/REPO/FILE.gguf.")


def _flag(rest: str) -> str:
    if importlib.util.find_spec("FlagEmbedding") is None:
        raise MissingExtra("FlagEmbedding", extra="flag", needed_for=f"flag:{rest}")
    folder = Path(rest).expanduser()
    return str(folder.resolve()) if folder.is_dir() else rest


def _endpoint(rest: str, resources: Resources) -> Endpoint:
    url, _, model = rest.partition("#")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise UsageError(f"'openai:{rest}' has no valid address: {error}.", hint=_ENDPOINT_HINT) from error
    if parsed.scheme not in ("http", "https") or not parsed.host or not model or parsed.userinfo:
        raise UsageError(f"'openai:{rest}' does not name an http(s) address and a model.", hint=_ENDPOINT_HINT)
    return Endpoint(http=resources.http, url=url.rstrip("/"), model=model, key=resources.key)


_ENDPOINT_HINT: Final = "Write openai:http://127.0.0.1:11434/v1#MODEL; a key goes to the setting model_key, not here."
