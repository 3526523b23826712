"""Models as a person sets them: the door of `models` is a role and a spec."""

from pathlib import Path
from typing import Any

import httpx2

from models.backend import Resources
from models.catalogue import MODELS, Role
from models.choose import Chosen, choose
from models.options import ModelOptions, read_options
from tests.support.model_server import loopback_client


def model_of(
    role: Role,
    spec: str,
    *,
    http: httpx2.AsyncClient | None = None,
    key: str = "",
    options: str | ModelOptions = "",
) -> Any:
    """Return the model that a spec names for a role, without any that was downloaded."""
    return chosen(role, spec, http=http, key=key, options=options).model


def chosen(
    role: Role,
    spec: str,
    *,
    http: httpx2.AsyncClient | None = None,
    key: str = "",
    options: str | ModelOptions = "",
    downloads: Path = Path("no-such-folder"),
) -> Chosen[Any]:
    """Return the same with the reason that a person reads."""
    values = read_options(options) if isinstance(options, str) else options
    return choose(role, spec, Resources(http or loopback_client(), key, downloads, values))


def pull(folder: Path, name: str) -> str:
    """Put a file where a model of the catalogue is once it was pulled; return its spec."""
    offered = MODELS[name]
    kept = f"models--{offered.repository.replace('/', '--')}"
    path = folder / kept / "snapshots" / "0123abcd" / offered.file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    return offered.spec
