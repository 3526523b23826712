"""A model on an HTTP server: requests with timeouts, retries and clear errors; facts
about the model.

Facts come from llama-server (`/v1/models` with `meta`, `/props`), vLLM and SGLang
(`max_model_len`), Ollama (`/api/show`) and TEI (`/info`); facts are never guessed. The
HTTP client is passed in and stays the caller's. The key travels in one header; it is in
no message, no name and no repr. Not for: the calls of each role
(`models/remote/openai.py`).
"""

import hashlib
import json
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

import anyio
import httpx2

from errors import ContextExceeded, ModelError, UsageError, said
from models.fingerprint import DIGITS
from models.protocols import HeldModel
from models.text import printable

SHORT_SECONDS: Final = 5.0
"""To connect; at most, where a busy server names a time; until one that was away is
asked again."""
FRESH_SECONDS: Final = 60.0
"""Until facts are requested again; a model replaced under the same name is noticed
then."""
PAUSES: Final = (0.5, 1.0)
"""Seconds before the second and the third request of a call: a server that restarts or
loads is back within them or not at all."""
RETRIED: Final = frozenset((429, 502, 503, 504))
"""Busy, loading (llama-server says 503), or a proxy whose server is away. Every call of
ours may be repeated."""
TOO_LONG: Final = ("too large", "too long", "context length", "context size")
"""What servers say of an input over their window: llama-server with status 500, TEI
with 413, vLLM with 400."""
HINTS: Final = {
    400: "The server refused the input: it may be longer than the model's window.",
    401: "Set the API key as WINNOW_KEYS=model=KEY.",
    403: "Set the API key as WINNOW_KEYS=model=KEY.",
    404: "Check the model's name (/models lists those there are), that it was pulled, and "
    "that the URL ends in /v1 where the server has it.",
    501: "The server was started without this role (llama-server: --embeddings, --reranking).",
}
"""What to do about a status."""
CHARACTERS: Final = 8_000
"""A text is cut here, about 2 000 tokens: no passage of ours is longer, and a whole
page costs a server minutes."""
FEWEST_CHARACTERS: Final = CHARACTERS // 16
"""Characters below which a text that is still refused as too long is an error: 512
tokens hold them in any script."""


class RefusedCall(ModelError):
    """The server answered with an error status, for another reason than the length of
    the input."""

    def __init__(self, message: str, *, hint: str, status: int) -> None:
        super().__init__(message, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served (base URL with its `/v1`), its name, the key, and the
    client to use."""

    http: httpx2.AsyncClient = field(repr=False)
    url: str
    model: str
    key: str = field(default="", repr=False)
    answer_seconds: float = 120.0
    """For an answer: a local server may load a model of several GB before its first
    token."""
    facts_seconds: float = 3.0
    """Timeout for requesting facts, which delays the start of our server and calls."""

    def __post_init__(self) -> None:
        """Raise `UsageError` for a key that is not a valid header value, without
        showing it."""
        if self.key and not (
            self.key.isascii() and self.key.isprintable() and " " not in self.key
        ):
            raise UsageError(
                f"The API key for {self.url} contains invalid characters (not shown).",
                hint="Copy it again.",
            )

    @property
    def root(self) -> str:
        """The server's address without `/v1`, where it keeps calls of its own."""
        return self.url.removesuffix("/v1")

    async def post(self, path: str, body: Mapping[str, object]) -> Any:
        """Return the JSON value that `path` below the base URL answers to `body` with
        the model's name in it."""
        return await self.ask(self.url + path, {"model": self.model, **body})

    async def ask(
        self,
        address: str,
        body: Mapping[str, object] | None = None,
        *,
        pauses: tuple[float, ...] = PAUSES,
    ) -> Any:
        """Return the JSON value that `address` answers to a POST of `body`, or to a
        GET; asks again, after a pause, on `RETRIED` and broken connections.

        A `Retry-After` that is too long is not waited for. Raises `ContextExceeded`
        where the server says that the input is over the model's window, `RefusedCall`
        for another error status, else `ModelError`: no answer in time, no connection,
        or no JSON.
        """
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        connect = min(self.answer_seconds, SHORT_SECONDS)
        timeout = httpx2.Timeout(self.answer_seconds, connect=connect)
        method = "GET" if body is None else "POST"
        for pause in (*pauses, None):
            try:
                response = await self.http.request(
                    method, address, json=body, headers=headers, timeout=timeout
                )
            except httpx2.TimeoutException as error:
                raise ModelError(
                    f"{address} did not answer in time ({type(error).__name__}, "
                    f"{self.answer_seconds:g} s) for model {self.model!r}.",
                    hint="The model may still be loading, or be too large for its "
                    "machine: try again, or set a smaller one.",
                ) from error
            except httpx2.HTTPError as error:
                if pause is None:
                    reason = f"{type(error).__name__} {self._quote(str(error))}"
                    raise ModelError(
                        f"{address} cannot be reached: {reason.rstrip()}",
                        hint="Check that the server runs and that the address is right.",
                    ) from error
            else:
                busy = response.status_code in RETRIED
                pause_asked = response.headers.get("retry-after", "")
                too_long = (
                    pause_asked.isdecimal() and float(pause_asked) > SHORT_SECONDS
                )
                if pause is None or not busy or too_long:
                    return self._read(address, response)
            await anyio.sleep(pause)
        raise AssertionError("the last request returns or raises")

    def _read(self, address: str, response: httpx2.Response) -> Any:
        status = response.status_code
        if status != 200:
            default = "Check the server's log; try again."
            hint = HINTS.get(status, default)
            text = response.text
            message = f"{address} answered {status} for model {self.model!r}: {self._quote(text)}"
            said_long = any(words in text.lower() for words in TOO_LONG)
            if status == 413 or (status in (400, 422, 500) and said_long):
                raise ContextExceeded(message, hint=hint)
            raise RefusedCall(message, hint=hint, status=status)
        try:
            return response.json()
        except ValueError as error:
            raise self.nonsense(address, response.text) from error

    def nonsense(self, address: str, answer: object) -> ModelError:
        """Return the error for an answer that has not the documented form."""
        return ModelError(
            f"{self.url} returned an unknown response format for model {self.model!r} "
            f"at {address}: {self._quote(str(answer))}",
            hint="Check that the URL is an OpenAI-compatible API, with its /v1 where it has one.",
        )

    def _quote(self, text: str) -> str:
        # The key goes before the cut, which could leave half of it standing.
        return said(text.replace(self.key, "[key]") if self.key else text)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself and its model; 0 and "" where it does not."""

    server: str = ""
    context_tokens: int = 0
    dimension: int = 0
    identity: str = ""
    """Hash (12 digits) that identifies the model's version under its name; "" if
    unknown."""
    asked: bool = True
    """False when the server was away: the identity then holds for this process
    alone."""


class RemoteModel(HeldModel):
    """Base of remote embedder, reranker and generator: the endpoint and its facts."""

    def __init__(
        self, endpoint: Endpoint, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._facts = Facts(identity=uuid.uuid4().hex[:DIGITS], asked=False)
        self._asked_at = -math.inf
        self._characters = CHARACTERS

    @property
    def name(self) -> str:
        """Model, server and version hash; before `prepare`, a name that no cache
        contains."""
        endpoint, identity = self._endpoint, self._facts.identity
        name = f"{endpoint.model}:openai:{endpoint.url}"
        return f"{name}:{identity}" if identity else name

    @property
    def server(self) -> str:
        """Kind of server, "" where it is not known."""
        return self._facts.server

    @property
    def runs_on(self) -> str:  # type: ignore[override]  # read only, and known once the server was asked
        """The kind of server, and whether it answered when it was asked for its
        facts."""
        server = self.server or "a server with OpenAI's API"
        silence = "" if self._facts.asked else ", which did not answer at /models"
        return server + silence

    async def prepare(self) -> None:
        """Request the model's facts, valid for a minute. Raises nothing; without an
        answer the earlier facts stay."""
        valid = FRESH_SECONDS if self._facts.asked else SHORT_SECONDS
        if self._clock() - self._asked_at < valid:
            return
        with anyio.move_on_after(self._endpoint.facts_seconds):
            # A server that is away for a moment keeps the name it had.
            self._facts = await _ask_facts(self._endpoint) or self._facts
        self._asked_at = self._clock()

    async def fitting(
        self, texts: Sequence[str], ask: Callable[[list[str]], Awaitable[Any]]
    ) -> Any:
        """Return the answer of `ask` to the texts as a server takes them: in UTF-8,
        none of them empty, and cut to half as often as it calls them too long.

        Servers say neither their window for a text nor how many tokens a text has. The
        cut stays for later calls. Raises `ContextExceeded` where `FEWEST_CHARACTERS`
        characters are still too long.
        """
        while True:
            # A blank gives the same vector as an empty string, which servers refuse.
            cut = [printable(text[: self._characters]) or " " for text in texts]
            try:
                return await ask(cut)
            except ContextExceeded:
                if self._characters <= FEWEST_CHARACTERS:
                    raise
                self._characters = max(FEWEST_CHARACTERS, self._characters // 2)


async def _ask_facts(endpoint: Endpoint) -> Facts | None:
    """Return the server's facts, None where it is away; sends one or two small
    requests. Which server it is shows in the fields of its answers."""
    model, root = endpoint.model, endpoint.root
    listed = await _ask_once(endpoint, f"{endpoint.url}/models")
    if not listed:
        info = await _ask_once(endpoint, f"{root}/info")
        if "model_id" not in info:
            return None
        identity = _digest(info["model_id"], info.get("model_sha"))
        return Facts("TEI", _count(info, "max_input_length"), identity=identity)
    rows = listed.get("data")
    entries: list[Mapping[str, Any]] = list(
        filter(_is_object, rows if isinstance(rows, list) else ())
    )
    # llama-server serves one model under any name.
    matching = [entry for entry in entries if entry.get("id") == model]
    sole = entries if len(entries) == 1 else [{}]
    entry = (matching or sole)[0]
    if _is_object(meta := entry.get("meta")):
        props = await _ask_once(endpoint, f"{root}/props")
        settings = props.get("default_generation_settings")
        context = _count(settings, "n_ctx") or _count(meta, "n_ctx")
        return Facts(
            "llama-server",
            context or _count(meta, "n_ctx_train"),
            _count(meta, "n_embd"),
            _digest(meta, entry.get("id"), props.get("model_path")),
        )
    if length := _count(entry, "max_model_len"):
        kind = "SGLang" if entry.get("owned_by") == "sglang" else "vLLM"
        return Facts(kind, length, identity=_digest(entry.get("root"), length))
    described = await _ask_once(endpoint, f"{root}/api/show", {"model": model})
    if _is_object(card := described.get("model_info")):
        kind = str(card.get("general.architecture"))
        return Facts(
            "Ollama",
            _count(card, f"{kind}.context_length"),
            _count(card, f"{kind}.embedding_length"),
            _digest(described.get("modified_at"), described.get("details"), card),
        )
    return Facts()


async def _ask_once(
    endpoint: Endpoint, address: str, body: Mapping[str, object] | None = None
) -> Mapping[str, Any]:
    """Return the JSON object that `address` answers; an empty one for anything else."""
    try:
        answer = await endpoint.ask(address, body, pauses=())
    except ModelError:
        return {}
    return answer if _is_object(answer) else {}


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _count(fields: object, name: str) -> int:
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 0


def _digest(*facts: object) -> str:
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
