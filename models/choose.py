"""From a spec string to a model: which backend stands behind each role, and why.

`auto`, `none`, `onnx:embedded`, `onnx:FOLDER`, `llama:PATH` or `llama:OWNER/REPO/FILE.gguf`,
`flag:NAME` or `flag:FOLDER`, `openai:URL#MODEL`. `auto` takes what was pulled by name for the role,
else what every installation has. Choosing loads nothing and downloads nothing. Not for: running
models, or reading settings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypedDict, TypeVar

import httpx2

from errors import UsageError
from extra import lacking, require
from models.catalogue import MODELS, Offered, Role
from models.flag import FlagEmbedder, FlagReranker
from models.llama.model import LlamaEmbedder, LlamaGenerator, LlamaReranker
from models.onnx import EMBEDDED, MULTILINGUAL, WEIGHTS, OnnxEmbedder, OnnxReader
from models.pair import PairedEmbedder
from models.protocols import CrossEncoder, Embedder, Generator, Reranker
from models.pull import Hub, kept_files
from models.remote.openai import OpenAIEmbedder, OpenAIGenerator, OpenAIReranker
from models.remote.server import Endpoint
from models.tuning import USUAL, Tuning
from models.worker import MemoryBudget

_GGUF: Final = "llama:FILE.gguf, llama:OWNER/REPO/FILE.gguf"
FORMS: Final = {
    "embedder": f"auto, none, onnx:embedded, onnx:multilingual, onnx:FOLDER, {_GGUF}, flag:BAAI/bge-m3, "
    "openai:http://127.0.0.1:11434/v1#MODEL",
    "reader": f"auto, none, onnx:FOLDER with {WEIGHTS} and its manifest.json",
    "reranker": f"auto, none, {_GGUF}, flag:BAAI/bge-reranker-v2-m3, "
    f"openai:http://127.0.0.1:8080/v1#MODEL",
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
_WITHOUT: Final[Mapping[Role, str]] = {
    "embedder": "steps rank by words alone",
    "reader": "words and embeddings alone say what bears on a question",
    "reranker": "words and embeddings are fused instead",
    "generator": "steps work by rules and extracts",
}
"""What the steps of a role do without a model."""


class Run(TypedDict):
    """What a model from a GGUF file is made with."""

    budget: MemoryBudget | None
    tuning: Tuning


@dataclass(frozen=True, slots=True)
class Resources:
    """What models need from outside: the HTTP client and key of remote ones, downloads, and the
    memory they share."""

    http: httpx2.AsyncClient
    key: str = field(default="", repr=False)
    hub: Hub = field(default_factory=Hub)
    budget: MemoryBudget | None = None
    tunings: Mapping[str, Tuning] = field(default_factory=dict)
    """How the model of each role is run."""

    def of(self, role: Role) -> "Run":
        """Return what a GGUF model of a role is made with, beside its file."""
        return {"budget": self.budget, "tuning": self.tunings.get(role, USUAL)}


@dataclass(frozen=True, slots=True)
class Chosen(Generic[Model]):
    """A model or none, and a sentence for a person that says why."""

    model: Model | None
    reason: str


def choose(role: Role, spec: str, resources: Resources) -> Chosen[Any]:
    """Return the model of a role that `spec` names; `auto` is one that was pulled, else what is
    carried, else none.

    Raises `UsageError` for a spec of no known form, or with a file that is not there, and
    `MissingExtra` where the package of the backend is not installed.
    """
    backend, colon, rest = (part.strip() for part in spec.partition(":"))
    if backend == "none" and not colon:
        return Chosen(None, f"none was set: {_WITHOUT[role]}")
    if backend == "auto" and not colon:
        if (pulled := _pulled(role, resources)) is not None:
            reason = (
                f"auto: {pulled.file} was pulled for this role (`winnow models remove` undoes it)"
            )
            return Chosen(_BACKENDS[role]["llama"](pulled.path, resources), reason)
        if role not in _CARRIED:
            return Chosen(None, f"auto: no {role} is carried; {_WITHOUT[role]}")
        make, name = _CARRIED[role]
        return Chosen(make(), f"auto: the embedded {name} needs no download")
    if backend not in _BACKENDS[role] or not rest:
        raise UsageError(
            f"{spec!r} is no specification of the {role}.", hint=f"Use one of: {FORMS[role]}."
        )
    return Chosen(
        _BACKENDS[role][backend](rest, resources), f"{spec} was set{RUNS.get(backend, '')}"
    )


def _pulled(role: Role, resources: Resources) -> Offered | None:
    """Return the largest model that was pulled by name for a role.

    Only where llama-cpp-python is installed, and never a model that writes no answers.
    """
    kept = kept_files(resources.hub)
    fitting = [
        one for one in MODELS.values() if one.role == role and one.writes and one.path in kept
    ]
    if not fitting or lacking("llama"):
        return None
    return max(fitting, key=lambda offered: offered.megabytes)


def _onnx_folder(rest: str) -> Path:
    inner = (Path(rest).expanduser() / "onnx" / "model.onnx").is_file()
    return _folder_with(["tokenizer.json", *([] if inner else ["model.onnx"])], rest)


def _folder_with(files: Sequence[str], rest: str) -> Path:
    folder = Path(rest).expanduser()
    missing = [str(folder / name) for name in files if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"onnx:{rest} does not hold a model: {', '.join(missing)} is not there.",
            hint="An embedder's folder has model.onnx (or onnx/model.onnx), tokenizer.json and "
            "config.json; "
            f"a reader's {WEIGHTS}, tokenizer.json and manifest.json.",
        )
    return folder.resolve()


def _gguf(rest: str, hub: Hub) -> Path:
    require("llama", f"llama:{rest}")
    path = Path(rest).expanduser()
    if path.is_file():
        return path.resolve()
    if (kept := kept_files(hub).get(rest)) is not None:
        return kept
    if rest.count("/") > 1 and rest.endswith(".gguf") and not path.is_absolute():
        raise UsageError(
            f"llama:{rest} is neither a file here nor among the downloads; nothing is downloaded "
            f"unasked.",
            hint=f"Download it with: winnow models pull {rest}",
        )
    raise UsageError(
        f"llama:{rest}: there is no such file.", hint="Name a GGUF file, or OWNER/REPO/FILE.gguf."
    )


def _flag(rest: str) -> str:
    require("flag", f"flag:{rest}")
    folder = Path(rest).expanduser()
    return str(folder.resolve()) if folder.is_dir() else rest


def _endpoint(rest: str, resources: Resources) -> Endpoint:
    url, _, model = rest.partition("#")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise UsageError(
            f"'openai:{rest}' has no valid address: {error}.", hint=_ENDPOINT_HINT
        ) from error
    if parsed.scheme not in ("http", "https") or not parsed.host or not model or parsed.userinfo:
        raise UsageError(
            f"'openai:{rest}' does not name an http(s) address and a model.", hint=_ENDPOINT_HINT
        )
    return Endpoint(http=resources.http, url=url.rstrip("/"), model=model, key=resources.key)


_ENDPOINT_HINT: Final = (
    "Write openai:http://127.0.0.1:11434/v1#MODEL; a key goes to the setting model_key, not here."
)
_CARRIED: Final[Mapping[Role, tuple[Callable[[], Any], str]]] = {
    "embedder": (
        lambda: PairedEmbedder(OnnxEmbedder(), OnnxEmbedder(MULTILINGUAL)),
        "all-MiniLM-L6-v2 (English, 8 bits), with multilingual-e5-small for other languages,",
    ),
    "reader": (OnnxReader, "cross-encoder (English, 8 bits)"),
}
_OURS: Final[Mapping[str, Path]] = {"embedded": EMBEDDED, "multilingual": MULTILINGUAL}
"""Folders of embedders that Winnow carries, by what a spec calls them."""
_BACKENDS: Final[Mapping[Role, Mapping[str, Callable[[str, Resources], Any]]]] = {
    "embedder": {
        "onnx": lambda rest, _: OnnxEmbedder(_OURS.get(rest) or _onnx_folder(rest)),
        "llama": lambda rest, given: LlamaEmbedder(_gguf(rest, given.hub), **given.of("embedder")),
        "flag": lambda rest, _: FlagEmbedder(_flag(rest)),
        "openai": lambda rest, given: OpenAIEmbedder(_endpoint(rest, given)),
    },
    "reader": {"onnx": lambda rest, _: OnnxReader(_folder_with([WEIGHTS], rest))},
    "reranker": {
        "llama": lambda rest, given: LlamaReranker(_gguf(rest, given.hub), **given.of("reranker")),
        "flag": lambda rest, _: FlagReranker(_flag(rest)),
        "openai": lambda rest, given: OpenAIReranker(_endpoint(rest, given)),
    },
    "generator": {
        "llama": lambda rest, given: LlamaGenerator(
            _gguf(rest, given.hub), **given.of("generator")
        ),
        "openai": lambda rest, given: OpenAIGenerator(
            _endpoint(rest, given), tuning=given.of("generator")["tuning"]
        ),
    },
}
"""What makes a model of the rest of a spec, by the name that the spec begins with."""
