"""From a spec string to a model: which backend stands behind each role, and why.

`auto`, `none`, or the prefix of a backend (`backends/`), a colon and what it takes. `auto` takes
what was pulled by name for the role, else what every installation has. Choosing loads nothing and
downloads nothing. Not for: running models, or reading settings.
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
    "embedder": "steps rank by words alone",
    "reader": "words and embeddings alone say what bears on a question",
    "reranker": "words and embeddings are fused instead",
    "generator": "steps work by rules and extracts",
}
"""What the steps of a role do without a model."""


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
    prefix, colon, rest = (part.strip() for part in spec.partition(":"))
    if prefix == "none" and not colon:
        return Chosen(None, f"none was set: {_WITHOUT[role]}")
    if prefix == "auto" and not colon:
        if (pulled := _pulled(role, resources)) is not None:
            reason = f"auto: {pulled.file} was pulled for this role (`winnow models remove` undoes it)"
            return Chosen(
                backends()["llama"].make(role, pulled.path, resources), reason
            )
        if role not in _CARRIED:
            return Chosen(None, f"auto: no {role} is carried; {_WITHOUT[role]}")
        make, name = _CARRIED[role]
        return Chosen(make(), f"auto: the embedded {name} needs no download")
    found = backends().get(prefix)
    if found is None or role not in found.roles or not rest:
        raise UsageError(
            f"{spec!r} is no specification of the {role}.",
            hint=f"Use one of: {forms_of(role)}.",
        )
    says = f": {found.says}" if found.says else ""
    return Chosen(found.make(role, rest, resources), f"{spec} was set{says}")


def forms_of(role: Role) -> str:
    """Return the forms of a spec that a role can have, as messages show them."""
    return ", ".join(
        [
            "auto",
            "none",
            *(one.roles[role] for one in backends().values() if role in one.roles),
        ]
    )


def _pulled(role: Role, resources: Resources) -> Offered | None:
    """Return the largest model that was pulled by name for a role.

    Only where llama-cpp-python is installed, and never a model that writes no answers.
    """
    kept = kept_files(resources.hub)
    fitting = [
        one
        for one in MODELS.values()
        if one.role == role and one.writes and one.path in kept
    ]
    if not fitting or lacking("llama"):
        return None
    return max(fitting, key=lambda offered: offered.megabytes)


_CARRIED: Final[Mapping[Role, tuple[Callable[[], Any], str]]] = {
    "embedder": (
        lambda: PairedEmbedder(OnnxEmbedder(), OnnxEmbedder(MULTILINGUAL)),
        "all-MiniLM-L6-v2 (English, 8 bits), with multilingual-e5-small for other languages,",
    ),
    "reader": (OnnxReader, "cross-encoder (English, 8 bits)"),
}
