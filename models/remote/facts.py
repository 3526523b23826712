"""What a model server tells of itself: which one it is, context, dimension, and what identifies the model it serves.

llama-server (`/v1/models` with `meta`, `/props`), vLLM (`max_model_len`), Ollama (`/api/show`, `/api/tags`), LM Studio
(`/api/v0/models`), TEI (`/info`); a server that says nothing gets no facts, never guessed ones. Not for: errors; a
server that is away is told by the call that needs it.
"""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from errors import ModelError
from models.remote.client import Endpoint

OLLAMA_CONTEXT: Final = 4_096
"""Ollama's window where neither the model nor its owner sets `num_ctx`; it cuts longer prompts without saying so."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was told; 0 and "" where it was not."""

    server: str = ""
    context_tokens: int = 0
    dimension: int = 0
    batch: int = 0
    """Most texts in one request."""
    identity: str = ""
    """Twelve digits over what tells one model from another behind the same name; "" where the server tells nothing."""
    asked: bool = True
    """False when the server was away: the identity then holds for this process alone."""


async def ask_facts(endpoint: Endpoint) -> Facts:
    """Return what the server tells; asks two or three small questions, each once."""
    listed = await _question(endpoint, f"{endpoint.url}/models")
    if listed is None:
        told = await _question(endpoint, f"{endpoint.root}/info")
        if isinstance(told, Mapping) and "model_id" in told:
            return _tei(told)
        # No identity: entries of the cache written under this name are read by no other process.
        return Facts(identity=uuid.uuid4().hex[:12], asked=False)
    return await _told(endpoint, _entry(listed, endpoint.model))


async def _told(endpoint: Endpoint, entry: Mapping[str, object]) -> Facts:
    """Return the facts behind an entry of `/models`; which server wrote it is seen from its fields."""
    if isinstance(meta := entry.get("meta"), Mapping):
        return await _llama_server(endpoint, entry, meta)
    if _whole(entry.get("max_model_len")):
        identity = _digest(entry.get("root"), entry.get("parent"), entry["max_model_len"])
        return Facts("vLLM", context_tokens=_whole(entry["max_model_len"]), identity=identity)
    if entry.get("owned_by") == "library":
        return await _ollama(endpoint)
    if entry.get("owned_by") == "organization_owner":
        return await _lm_studio(endpoint)
    return Facts()


async def _llama_server(endpoint: Endpoint, entry: Mapping[str, object], meta: Mapping[str, object]) -> Facts:
    props = await _question(endpoint, f"{endpoint.root}/props")
    props = props if isinstance(props, Mapping) else {}
    settings = props.get("default_generation_settings")
    context = _whole(settings.get("n_ctx")) if isinstance(settings, Mapping) else 0
    return Facts(
        "llama-server",
        context_tokens=context or _whole(meta.get("n_ctx")) or _whole(meta.get("n_ctx_train")),
        dimension=_whole(meta.get("n_embd")),
        identity=_digest(dict(meta), entry.get("id"), props.get("model_path")),
    )


async def _ollama(endpoint: Endpoint) -> Facts:
    shown = await _question(endpoint, f"{endpoint.root}/api/show", {"model": endpoint.model})
    tags = await _question(endpoint, f"{endpoint.root}/api/tags")
    info = shown.get("model_info") if isinstance(shown, Mapping) else None
    info = info if isinstance(info, Mapping) else {}
    architecture = str(info.get("general.architecture", ""))
    longest = _whole(info.get(f"{architecture}.context_length"))
    window = _parameter(shown, "num_ctx") or OLLAMA_CONTEXT
    digests = [str(item.get("digest", "")) for item in _items(tags, "models") if _same(item, endpoint.model)]
    return Facts(
        "Ollama",
        context_tokens=min(window, longest) if longest else window,
        dimension=_whole(info.get(f"{architecture}.embedding_length")),
        identity=_digest(*digests) if any(digests) else "",
    )


async def _lm_studio(endpoint: Endpoint) -> Facts:
    entry = _entry(await _question(endpoint, f"{endpoint.root}/api/v0/models"), endpoint.model)
    context = _whole(entry.get("loaded_context_length")) or _whole(entry.get("max_context_length"))
    known = [entry.get(name) for name in ("publisher", "arch", "quantization", "compatibility_type")]
    return Facts("LM Studio", context_tokens=context, identity=_digest(*known) if any(known) else "")


def _tei(told: Mapping[str, object]) -> Facts:
    return Facts(
        "TEI",
        context_tokens=_whole(told.get("max_input_length")),
        batch=_whole(told.get("max_client_batch_size")),
        identity=_digest(told["model_id"], told.get("model_sha"), told.get("model_dtype")),
    )


async def _question(endpoint: Endpoint, address: str, body: Mapping[str, object] | None = None) -> object:
    """Return the answer, None where there is none."""
    try:
        return await endpoint.ask("GET" if body is None else "POST", address, body, tries=1)
    except ModelError:
        return None


def _entry(listed: object, model: str) -> Mapping[str, object]:
    """Return the entry of `model`, or the only one there is: llama-server serves one model under any name."""
    entries = _items(listed, "data")
    named = [item for item in entries if _same(item, model)]
    return named[0] if named else entries[0] if len(entries) == 1 else {}


def _items(listed: object, name: str) -> list[Mapping[str, object]]:
    found = listed.get(name) if isinstance(listed, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def _same(item: Mapping[str, object], model: str) -> bool:
    # Ollama lists a model pulled without a tag as NAME:latest.
    return any(str(item.get(name, "")) in (model, f"{model}:latest") for name in ("id", "name", "model"))


def _parameter(shown: object, name: str) -> int:
    text = str(shown.get("parameters", "")) if isinstance(shown, Mapping) else ""
    pairs = [line.split() for line in text.splitlines()]
    return next((int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] == name and pair[1].isdecimal()), 0)


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]
