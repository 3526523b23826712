"""Models of a server with OpenAI's API."""

from typing import Any, Final

import httpx2

from errors import UsageError
from models.backend import Backend, Resources
from models.catalogue import Role
from models.remote.openai import OpenAIEmbedder, OpenAIGenerator, OpenAIReranker
from models.remote.server import Endpoint


def _make(role: Role, name: str, resources: Resources) -> Any:
    url, _, model = name.partition("#")
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL("")
    web = parsed.scheme in ("http", "https") and parsed.host and not parsed.userinfo
    if not web or not model:
        raise UsageError(
            f"'openai:{name}' must name an http(s) address without a user name, and a "
            "model.",
            hint="Use openai:http://127.0.0.1:11434/v1#MODEL; its API key is "
            "WINNOW_KEYS=model=KEY.",
        )
    endpoint = Endpoint(
        http=resources.http, url=url.rstrip("/"), model=model, key=resources.key
    )
    if role == "generator":
        return OpenAIGenerator(endpoint, options=resources.options)
    return OpenAIEmbedder(endpoint) if role == "embedder" else OpenAIReranker(endpoint)


BACKEND: Final = Backend(
    prefix="openai",
    roles={
        "embedder": "openai:http://127.0.0.1:11434/v1#MODEL",
        "reranker": "openai:http://127.0.0.1:8080/v1#MODEL",
        "generator": "openai:http://127.0.0.1:11434/v1#MODEL",
    },
    make=_make,
)
