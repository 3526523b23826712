"""A model on an HTTP server: requests with timeouts, retries and clear errors; facts
about the model.

Facts come from llama-server (`/v1/models` with `meta`, `/props`), vLLM and SGLang
(`max_model_len`), Ollama (`/api/show`, `/api/tags`, `/api/ps`), LM Studio
(`/api/v0/models`), TEI (`/info`); facts are never guessed. The HTTP client is passed in
and stays the caller's. The key travels in one header; it is in no message, no name and
no repr. Not for: the calls of each role (`models/remote/openai.py`).
"""

import hashlib
import json
import math
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import anyio
import httpx2

from errors import ContextExceeded, ModelError, UsageError, said
from models.fingerprint import DIGITS
from models.protocols import HeldModel
from models.text import TEXTS_A_REQUEST, printable


class Waits(NamedTuple):
    """Times of a connection to a model server, in seconds."""

    answer: float = 120.0
    """For an answer: a local server may load a model of several GB before its first
    token."""
    short: float = 5.0
    """To connect; at most, where a busy server names a time; until one that was away is
    asked again."""
    pauses: tuple[float, ...] = (0.5, 1.0)
    """Before the second and the third request of a call, where the server names no
    time: one that restarts or loads is back within them or not at all."""
    facts: float = 3.0
    """Timeout for requesting facts, which delays the start of our server and calls."""
    fresh: float = 60.0
    """Until facts are requested again; a model replaced under the same name is noticed
    then."""


WAITS: Final = Waits()
RETRIED: Final = frozenset((429, 502, 503, 504))
"""Busy, loading (llama-server says 503), or a proxy whose server is away. Every call of
ours may be repeated."""
TOO_LONG: Final = (
    "too large",
    "too long",
    "maximum context",
    "context length",
    "context size",
    "max_input_length",
)
"""What servers say of an input over their window: llama-server with status 500, TEI
with 413, vLLM with 400."""
HINTS: Final = {
    400: "The server refused the input: it may be longer than the model's window.",
    401: "Set the API key as WINNOW_KEYS=model=KEY.",
    403: "The key is not allowed to use this model: check WINNOW_KEYS=model=KEY.",
    404: "Check the model's name, that it was pulled, and that the URL ends in /v1 where the "
    "server has it.",
    405: "The server does not support this request: check the URL, or set this role to another backend.",
    413: "The input is too large for the server: set a larger window there.",
    429: "The server limits requests: wait, or use a local model.",
    501: "The server was started without this role (llama-server: --embeddings, --reranking).",
}

Method = Literal["GET", "POST"]


class RefusedCall(ModelError):
    """The server answered with an error status, for another reason than the length of
    the input."""

    def __init__(self, what: str, *, hint: str, status: int) -> None:
        """Keep the status beside the sentences."""
        super().__init__(what, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served (base URL with its `/v1`), its name, the key, and the
    client to use."""

    http: httpx2.AsyncClient = field(repr=False)
    url: str
    model: str
    key: str = field(default="", repr=False)
    waits: Waits = WAITS

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
        return await self.ask("POST", self.url + path, {"model": self.model, **body})

    async def ask(
        self,
        method: Method,
        address: str,
        body: Mapping[str, object] | None = None,
        *,
        again: bool = True,
    ) -> Any:
        """Return the JSON value that `address` answers; asks `again`, after a pause, on
        `RETRIED` and cut connections.

        A `Retry-After` that is too long is not waited for. Raises `ContextExceeded`
        where the server says that the input is over the model's window, `RefusedCall`
        for another error status, else `ModelError`: no answer in time, no connection,
        or no JSON.
        """
        for usual in self.waits.pauses if again else ():
            pause = usual
            response = await self._send(method, address, body, again=True)
            if response is not None:
                asked = response.headers.get("retry-after", "")
                pause = float(asked) if asked.isascii() and asked.isdigit() else usual
                if response.status_code not in RETRIED or pause > self.waits.short:
                    return self._read(address, response)
            await anyio.sleep(pause)
        response = await self._send(method, address, body, again=False)
        assert response is not None  # noqa: S101  `_send` raises where it may not be called again
        return self._read(address, response)

    def _read(self, address: str, response: httpx2.Response) -> Any:
        if response.status_code != 200:
            raise self._refused(address, response)
        try:
            return response.json()
        except ValueError as error:
            raise self.nonsense(address, response.text) from error

    def nonsense(self, address: str, answer: object) -> ModelError:
        """Return the error for an answer that has not the documented form; `address`
        may be a path below the base."""
        where = self.url + address if address.startswith("/") else address
        return ModelError(
            f"{where} returned an unknown response format for model {self.model!r}: "
            f"{self._quote(str(answer))}",
            hint="Check that the URL is an OpenAI-compatible API, with its /v1 where it has one.",
        )

    async def _send(
        self,
        method: Method,
        address: str,
        body: Mapping[str, object] | None,
        *,
        again: bool,
    ) -> httpx2.Response | None:
        """Return the response; None where the connection broke and the call may be made
        once more.

        Raises `ModelError` without an answer in time or a connection, and for a broken
        one without `again`.
        """
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        timeout = httpx2.Timeout(
            self.waits.answer, connect=min(self.waits.answer, self.waits.short)
        )
        try:
            return await self.http.request(
                method, address, json=body, headers=headers, timeout=timeout
            )
        except httpx2.TimeoutException as error:
            raise ModelError(
                f"{address} did not answer in time ({type(error).__name__}, "
                f"{self.waits.answer:g} s) for model {self.model!r}.",
                hint="The model may still be loading, or be too large for its machine: "
                "try again, or set a smaller one.",
            ) from error
        except (
            httpx2.ReadError,
            httpx2.WriteError,
            httpx2.RemoteProtocolError,
        ) as error:
            # A kept connection that the server has closed, or a server that died over the call.
            if again:
                return None
            raise self._away(address, error) from error
        except httpx2.HTTPError as error:
            raise self._away(address, error) from error

    def _away(self, address: str, error: Exception) -> ModelError:
        return ModelError(
            f"{address} cannot be reached: {type(error).__name__} {self._quote(str(error))}".rstrip(),
            hint="Check that the server runs and that the address is right.",
        )

    def _refused(self, address: str, response: httpx2.Response) -> ModelError:
        status, words = response.status_code, response.text.lower()
        hint = HINTS.get(
            status,
            "Check the server's log; try again." if status >= 500 else "Check the URL.",
        )
        what = f"{address} answered {status} for model {self.model!r}: {self._quote(response.text)}"
        if status == 413 or (
            status in (400, 422, 500) and any(said in words for said in TOO_LONG)
        ):
            return ContextExceeded(what, hint=hint)
        return RefusedCall(what, hint=hint, status=status)

    def _quote(self, text: str) -> str:
        # The key goes before the cut, which could leave half of it standing.
        return said(text.replace(self.key, "[key]") if self.key else text)


CHARACTERS: Final = 8_000
"""A text is cut here, about 2 000 tokens: no passage of ours is longer, and a whole
page costs a server minutes."""
FEWEST_CHARACTERS: Final = CHARACTERS // 16
"""Characters below which a text that is still refused as too long is an error: 512
tokens hold them in any script."""
OLLAMA_CONTEXT: Final = 4_096
"""Ollama's window where neither the model nor its owner sets `num_ctx`; it cuts longer
prompts without saying so."""
_NUM_CTX: Final = re.compile(r"^num_ctx\s+(\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself and its model; 0 and "" where it does not."""

    server: str = ""
    context_tokens: int = 0
    longest: int = 0
    """Tokens that the model was trained for, where that is more than the server gives
    it."""
    dimension: int = 0
    batch: int = 0
    identity: str = ""
    """Hash (12 digits) that identifies the model's version under its name; "" if
    unknown."""
    asked: bool = True
    """False when the server was away: the identity then holds for this process
    alone."""
    others: tuple[str, ...] = ()
    """Models that the server lists, where ours is none of them."""


class RemoteModel(HeldModel):
    """Base of remote embedder, reranker and generator: the endpoint and its facts."""

    def __init__(
        self, endpoint: Endpoint, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Keep the endpoint; nothing is asked of it before `prepare` or the first
        use."""
        self._endpoint = endpoint
        self._clock = clock
        self._facts = _unknown()
        self._asked_at = -math.inf
        self._cut = CHARACTERS

    @property
    def name(self) -> str:
        """Model, server and version hash; before `prepare`, a name that no cache
        contains."""
        endpoint, identity = self._endpoint, self._facts.identity
        return f"{endpoint.model}:openai:{endpoint.url}" + (
            f":{identity}" if identity else ""
        )

    @property
    def server(self) -> str:
        """Kind of server, "" where it is not known."""
        return self._facts.server

    @property
    def runs_on(self) -> str:  # type: ignore[override]  # read only, and known once the server was asked
        """The kind of server, and whether it answered when it was asked for its
        facts."""
        server = self.server or "a server with OpenAI's API"
        away = "" if self._facts.asked else ", which did not answer at /models"
        return server + away

    async def prepare(self) -> None:
        """Request the model's facts, valid for a minute. Raises nothing; without an
        answer the earlier facts stay."""
        waits = self._endpoint.waits
        if self._clock() - self._asked_at < (
            waits.fresh if self._facts.asked else waits.short
        ):
            return
        with anyio.move_on_after(waits.facts):
            facts = await _ask_facts(self._endpoint)
            # A server that is away for a moment keeps the name it had.
            self._facts = facts if facts.asked else self._facts
        self._asked_at = self._clock()

    def texts_a_request(self) -> int:
        """Return how many texts the server takes at once, as far as it says."""
        return min(self._facts.batch or TEXTS_A_REQUEST, TEXTS_A_REQUEST)

    def explained(self, error: RefusedCall) -> RefusedCall:
        """Return the refusal of a model that is not there with the names of those that
        the server lists, any other one as it is."""
        others = self._facts.others
        if error.status != 404 or not others:
            return error
        hint = (
            f"The server lists {said(', '.join(others))}, not {self._endpoint.model!r}: "
            "set one of those, or pull the model there."
        )
        return RefusedCall(error.what, hint=hint, status=error.status)

    async def fitting(self, ask: Callable[[int], Awaitable[Any]]) -> Any:
        """Return the answer of `ask(characters)`, texts cut to half as often as the
        server calls them too long.

        Servers say neither their window for a text nor how many tokens a text has; TEI
        and Ollama cut by themselves, llama-server and vLLM refuse. The cut stays for
        later calls. Raises `RefusedCall` as `explained`, and `ContextExceeded` where
        `FEWEST_CHARACTERS` characters are still too long.
        """
        while True:
            try:
                return await ask(self._cut)
            except ContextExceeded:
                if self._cut <= FEWEST_CHARACTERS:
                    raise
                self._cut = max(FEWEST_CHARACTERS, self._cut // 2)
            except RefusedCall as error:
                raise self.explained(error) from error


def shortened(texts: Sequence[str], characters: int) -> list[str]:
    """Return texts as a server takes them: cut, in UTF-8, and none of them empty."""
    # Servers refuse an empty string; a blank gives the same vector as far as tokenisers go.
    return [printable(text[:characters]) or " " for text in texts]


def by_index(items: object, value: str, count: int) -> list[object]:
    """Return `value` of each of `count` items, in the order of their own `index`;
    raises `ValueError` for another count, `KeyError` where one is missing."""
    if not isinstance(items, list) or len(items) != count:
        raise ValueError(f"not a list of {count}")
    found = {int(item["index"]): item[value] for item in items}
    return [found[index] for index in range(count)]


async def _ask_facts(endpoint: Endpoint) -> Facts:
    """Return the server's facts; sends two or three small requests."""
    listed = await _ask_once(endpoint, f"{endpoint.url}/models")
    if listed is None:
        info = _fields(await _ask_once(endpoint, f"{endpoint.root}/info"))
        return _tei(info) if "model_id" in info else _unknown()
    entry = _entry(listed, endpoint.model)
    # Which server it is shows in the fields of its entry.
    if "meta" in entry:
        return await _llama_server(endpoint, entry)
    owner = entry.get("owned_by")
    if _whole(entry.get("max_model_len")):
        kind = "SGLang" if owner == "sglang" else "vLLM"
        identity = _digest(
            entry.get("root"), entry.get("parent"), entry["max_model_len"]
        )
        return Facts(
            kind, context_tokens=_whole(entry["max_model_len"]), identity=identity
        )
    if owner == "organization_owner":
        return await _lm_studio(endpoint)
    # Ollama reports the publisher as owner; ask its version if the server kind is
    # unknown.
    if owner == "library" or await _is_ollama(endpoint, owner):
        return await _ollama(endpoint)
    names = () if entry else (item.get("id") for item in _items(listed, "data"))
    return Facts(others=tuple(map(str, filter(None, names))))


async def _is_ollama(endpoint: Endpoint, owner: object) -> bool:
    if not isinstance(owner, str) or not owner:
        return False
    version = _fields(await _ask_once(endpoint, f"{endpoint.root}/api/version"))
    return isinstance(version.get("version"), str)


def _unknown() -> Facts:
    """Return no facts, and an identity of this process alone: no other reads what is
    kept under the name."""
    return Facts(identity=uuid.uuid4().hex[:DIGITS], asked=False)


async def _llama_server(endpoint: Endpoint, entry: Mapping[str, object]) -> Facts:
    meta = _fields(entry["meta"])
    props = _fields(await _ask_once(endpoint, f"{endpoint.root}/props"))
    context = _whole(_fields(props.get("default_generation_settings")).get("n_ctx"))
    return Facts(
        "llama-server",
        context_tokens=context
        or _whole(meta.get("n_ctx"))
        or _whole(meta.get("n_ctx_train")),
        dimension=_whole(meta.get("n_embd")),
        identity=_digest(dict(meta), entry.get("id"), props.get("model_path")),
    )


async def _ollama(endpoint: Endpoint) -> Facts:
    shown = _fields(
        await _ask_once(
            endpoint, f"{endpoint.root}/api/show", {"model": endpoint.model}
        )
    )
    tags = await _ask_once(endpoint, f"{endpoint.root}/api/tags")
    loaded = await _ask_once(endpoint, f"{endpoint.root}/api/ps")
    given = [
        _whole(item.get("context_length"))
        for item in _items(loaded, "models")
        if _same(item, endpoint.model)
    ]
    info = _fields(shown.get("model_info"))
    architecture = str(info.get("general.architecture", ""))
    longest = _whole(info.get(f"{architecture}.context_length"))
    window = (
        int(found[1])
        if (found := _NUM_CTX.search(str(shown.get("parameters"))))
        else OLLAMA_CONTEXT
    )
    digests = [
        str(item.get("digest", ""))
        for item in _items(tags, "models")
        if _same(item, endpoint.model)
    ]
    # What it is loaded with counts: a person may have set the server's own context length.
    window = next(filter(None, given), window)
    return Facts(
        "Ollama",
        context_tokens=min(window, longest) if longest else window,
        longest=longest,
        dimension=_whole(info.get(f"{architecture}.embedding_length")),
        identity=_digest(*digests) if any(digests) else "",
    )


async def _lm_studio(endpoint: Endpoint) -> Facts:
    entry = _entry(
        await _ask_once(endpoint, f"{endpoint.root}/api/v0/models"), endpoint.model
    )
    context = _whole(entry.get("loaded_context_length")) or _whole(
        entry.get("max_context_length")
    )
    known = [
        entry.get(name)
        for name in ("publisher", "arch", "quantization", "compatibility_type")
    ]
    return Facts(
        "LM Studio",
        context_tokens=context,
        identity=_digest(*known) if any(known) else "",
    )


def _tei(info: Mapping[str, object]) -> Facts:
    return Facts(
        "TEI",
        context_tokens=_whole(info.get("max_input_length")),
        batch=_whole(info.get("max_client_batch_size")),
        identity=_digest(
            info["model_id"], info.get("model_sha"), info.get("model_dtype")
        ),
    )


async def _ask_once(
    endpoint: Endpoint, address: str, body: Mapping[str, object] | None = None
) -> object:
    try:
        return await endpoint.ask(
            "GET" if body is None else "POST", address, body, again=False
        )
    except ModelError:
        return None


def _entry(listed: object, model: str) -> Mapping[str, object]:
    """Return the entry of `model`, or the only one there is: llama-server serves one
    model under any name."""
    entries = _items(listed, "data")
    named = [item for item in entries if _same(item, model)]
    return named[0] if named else entries[0] if len(entries) == 1 else {}


def _items(listed: object, name: str) -> list[Mapping[str, object]]:
    found = _fields(listed).get(name)
    return (
        [item for item in found if isinstance(item, Mapping)]
        if isinstance(found, list)
        else []
    )


def _fields(value: object) -> Mapping[str, object]:
    """Return a JSON object; an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def _same(item: Mapping[str, object], model: str) -> bool:
    # Ollama lists a model pulled without a tag as NAME:latest.
    return any(
        str(item.get(name, "")) in (model, f"{model}:latest")
        for name in ("id", "name", "model")
    )


def _whole(value: object) -> int:
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and value > 0
        else 0
    )


def _digest(*parts: object) -> str:
    return hashlib.sha256(
        json.dumps(parts, sort_keys=True, default=str).encode()
    ).hexdigest()[:DIGITS]
