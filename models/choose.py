"""Chooses the model of each role from its spec string, with the reason.

`auto`, `none`, or the prefix of a backend (`backends/`), a colon and what it takes.
`auto` uses a model pulled by name for the role, else a built-in one. Choosing loads
nothing and downloads nothing. Not for: running models, or reading settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from errors import UsageError
from extra import lacking
from models.backend import Resources, backends
from models.catalogue import MODELS, Offered, Role
from models.onnx import MULTILINGUAL, OnnxEmbedder, OnnxReader
from models.pair import PairedEmbedder
from models.protocols import CrossEncoder, Embedder, Generator, Reranker
from models.pull import kept_files

Model = TypeVar("Model", Embedder, Reranker, Generator, CrossEncoder)
_WITHOUT: Final[Mapping[Role, str]] = {
    "embedder": "ranking uses words only",
    "reader": "relevance is scored by words and embeddings only",
    "reranker": "words and embeddings are fused instead",
    "generator": "steps use rules and extracts",
}
"""What the pipeline does without a model of the role."""


@dataclass(frozen=True, slots=True)
class Chosen(Generic[Model]):
    """A model or None, and the reason as a sentence."""

    model: Model | None
    reason: str


def choose(role: Role, spec: str, resources: Resources) -> Chosen[Any]:
    """Return the model that `spec` names for a role (`auto`: pulled, else built-in,
    else none).

    Raises `UsageError` for an invalid spec or missing file, `MissingExtra` if the
    backend's package is not installed.
    """
    if spec.strip() == "none":
        return Chosen(None, f"set to none: {_WITHOUT[role]}")
    if spec.strip() == "auto":
        if (pulled := _pulled(role, resources)) is not None:
            reason = f"auto: {pulled.file} pulled for this role (undo: `winnow models remove`)"
            return Chosen(
                backends()["llama"].make(role, pulled.path, resources), reason
            )
        if role not in _CARRIED:
            return Chosen(None, f"auto: no {role} is built in; {_WITHOUT[role]}")
        make, name = _CARRIED[role]
        return Chosen(make(), f"auto: the built-in {name} needs no download")
    prefix, _, name = map(str.strip, spec.partition(":"))
    backend = backends().get(prefix)
    if backend is None or role not in backend.roles or not name:
        raise UsageError(
            f"{spec!r} is not a valid value for the {role}.",
            hint=f"Use one of: {forms_of(role)}.",
        )
    return Chosen(backend.make(role, name, resources), f"{spec} was set")


def forms_of(role: Role) -> str:
    """Return the spec forms of a role, as messages show them."""
    forms = [backend.roles.get(role) for backend in backends().values()]
    return ", ".join(["auto", "none", *filter(None, forms)])


def _pulled(role: Role, resources: Resources) -> Offered | None:
    """Return the largest model pulled by name for a role, or None.

    Only if llama-cpp-python is installed, and never a scoring-only model.
    """
    downloads = kept_files(resources.downloads)
    fitting = [
        offered
        for offered in MODELS.values()
        if offered.role == role and offered.writes and offered.path in downloads
    ]
    if lacking("llama"):
        return None
    return max(fitting, key=lambda offered: offered.megabytes, default=None)


_CARRIED: Final[Mapping[Role, tuple[Callable[[], Any], str]]] = {
    "embedder": (
        lambda: PairedEmbedder(OnnxEmbedder(), OnnxEmbedder(MULTILINGUAL)),
        "all-MiniLM-L6-v2 (English, 8 bits), with multilingual-e5-small for other languages,",
    ),
    "reader": (OnnxReader, "cross-encoder (English, 8 bits)"),
}
