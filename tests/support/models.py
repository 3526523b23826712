"""Models as a person sets them: the door of `models` is a role and a spec."""

from pathlib import Path
from typing import Any

import httpx2

from models.backend import Resources
from models.catalogue import Role
from models.choose import choose
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
    values = read_options(options) if isinstance(options, str) else options
    resources = Resources(http or loopback_client(), key, Path("no-such-folder"), values)
    return choose(role, spec, resources).model
