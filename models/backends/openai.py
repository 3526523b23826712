"""Models of a server with OpenAI's API."""

from typing import Any, Final

import httpx2

from errors import UsageError
from models.backend import Backend, Resources
from models.catalogue import Role
from models.remote.openai import OpenAIEmbedder, OpenAIGenerator, OpenAIReranker
from models.remote.server import Endpoint

_SPEC_HINT: Final = (
    "Use openai:http://127.0.0.1:11434/v1#MODEL; its API key is WINNOW_KEYS=model=KEY."
)


def _make(role: Role, rest: str, given: Resources) -> Any:
    url, _, model = rest.partition("#")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise UsageError(
            f"'openai:{rest}' has no valid address: {error}.", hint=_SPEC_HINT
        ) from error
    if (
        parsed.scheme not in ("http", "https")
        or not parsed.host
        or not model
        or parsed.userinfo
    ):
        raise UsageError(
            (
                f"'openai:{rest}' must name an http(s) address without a user "
                "name, and a model."
            ),
            hint=_SPEC_HINT,
        )
    endpoint = Endpoint(
        http=given.http, url=url.rstrip("/"), model=model, key=given.key
    )
    if role == "generator":
        return OpenAIGenerator(endpoint, options=given.options)
    return OpenAIEmbedder(endpoint) if role == "embedder" else OpenAIReranker(endpoint)


BACKEND: Final = Backend(
    prefix="openai",
    roles={
        "embedder": "openai:http://127.0.0.1:11434/v1#MODEL",
        "reranker": "openai:http://127.0.0.1:8080/v1#MODEL",
        "generator": "openai:http://127.0.0.1:11434/v1#MODEL",
    },
    make=_make,
    says="a remote model",
)
