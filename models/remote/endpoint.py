"""One model behind an HTTP server: address, name, key, and asking it with time limits, retries and plain errors.

The HTTP client is passed in and stays the caller's. The key travels in one header; it is in no message, no name and no
repr. Not for: what is asked (`models/remote/openai.py`), nor what a server tells of itself (`models/remote/server.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import anyio
import httpx2

from errors import ContextExceeded, ModelError, UsageError


class Waits(NamedTuple):
    """Times of a connection to a model server, in seconds."""

    answer: float = 120.0
    """For an answer: a local server may load a model of several GB before its first token."""
    short: float = 5.0
    """To connect; at most, where a busy server names a time; until one that was away is asked again."""
    pauses: tuple[float, ...] = (0.5, 1.0)
    """Before the second and the third request of a call, where the server names no time: one that restarts or loads is
    back within them or not at all."""
    facts: float = 3.0
    """For asking what the server serves: this stands before the start of our server and before calls."""
    fresh: float = 60.0
    """Until a server is asked anew: so long may a model that was swapped behind its name go unnoticed."""


WAITS: Final = Waits()
RETRIED: Final = frozenset((429, 502, 503, 504))
"""Busy, loading (llama-server says 503), or a proxy whose server is away. Every call of ours may be repeated."""
QUOTED: Final = 300
"""Characters of a server's or a model's own words in an error message."""
TOO_LONG: Final = ("too large", "too long", "maximum context", "context length", "context size", "max_input_length")
"""What servers say of an input over their window: llama-server with status 500, TEI with 413, vLLM with 400."""
HINTS: Final = {
    400: "The server refused the input: it may be longer than the model's window.",
    401: "Set the API key in the setting model_key (WINNOW_MODEL_KEY).",
    403: "The key is not allowed to use this model: check the setting model_key.",
    404: "Check the model's name, that it was pulled, and that the URL ends in /v1 where the server has it.",
    405: "The server has no such call: check the URL, or set this role to another backend.",
    413: "The input is too large for the server: set a larger window there.",
    429: "The server limits requests: wait, or use a local model.",
    501: "The server was started without this role (llama-server: --embeddings, --reranking).",
}

Method = Literal["GET", "POST"]


class RefusedCall(ModelError):
    """The server answered with an error status, for another reason than the length of the input."""

    def __init__(self, what: str, *, hint: str, status: int) -> None:
        """Keep the status beside the sentences."""
        super().__init__(what, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served (base URL with its `/v1`), its name, the key, and the client to use."""

    http: httpx2.AsyncClient = field(repr=False)
    url: str
    model: str
    key: str = field(default="", repr=False)
    seconds: float = WAITS.answer
    """Time for an answer."""

    def __post_init__(self) -> None:
        """Refuse a key that is no header value, without showing it."""
        if self.key and not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            raise UsageError(
                f"The API key for {self.url} has characters that no key has (not shown).", hint="Copy it again."
            )

    @property
    def root(self) -> str:
        """The server's address without `/v1`, where it keeps calls of its own."""
        return self.url.removesuffix("/v1")

    async def post(self, path: str, body: Mapping[str, object]) -> object:
        """Return the JSON value that `path` below the base URL answers to `body` with the model's name in it."""
        return await self.ask("POST", self.url + path, {"model": self.model, **body})

    async def ask(
        self, method: Method, address: str, body: Mapping[str, object] | None = None, *, again: bool = True
    ) -> object:
        """Return the JSON value that `address` answers; asks `again`, after a pause, on `RETRIED` and cut connections.

        Raises:
            ContextExceeded: The server says that the input is over the model's window.
            RefusedCall: The server answered with another error status.
            ModelError: No answer in time, no connection, or an answer that is no JSON.
        """
        for usual in WAITS.pauses if again else ():
            pause = usual
            response = await self._send(method, address, body, again=True)
            if response is not None:
                asked = response.headers.get("retry-after", "")
                pause = float(asked) if asked.isascii() and asked.isdigit() else usual
                if response.status_code not in RETRIED or pause > WAITS.short:
                    return self._read(address, response)
            await anyio.sleep(pause)
        response = await self._send(method, address, body, again=False)
        assert response is not None  # noqa: S101  `_send` raises where it may not be called again
        return self._read(address, response)

    def _read(self, address: str, response: httpx2.Response) -> object:
        if response.status_code != 200:
            raise self._refused(address, response)
        try:
            answer: object = response.json()
        except ValueError as error:
            raise self.nonsense(address, response.text) from error
        return answer

    def nonsense(self, address: str, answer: object) -> ModelError:
        """Return the error for an answer that has not the documented form; `address` may be a path below the base."""
        where = self.url + address if address.startswith("/") else address
        return ModelError(
            f"{where} answered in no form that is known for model {self.model!r}: {self._quote(str(answer))}",
            hint="Check that the URL is an OpenAI-compatible API, with its /v1 where it has one.",
        )

    async def _send(
        self, method: Method, address: str, body: Mapping[str, object] | None, *, again: bool
    ) -> httpx2.Response | None:
        """Return the response; None where the connection broke and the call may be made once more."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        timeout = httpx2.Timeout(self.seconds, connect=min(self.seconds, WAITS.short))
        try:
            return await self.http.request(method, address, json=body, headers=headers, timeout=timeout)
        except httpx2.TimeoutException as error:
            raise ModelError(
                f"{address} gave no answer in time ({type(error).__name__}, {self.seconds:g} s) "
                f"for model {self.model!r}.",
                hint="The model may be loading or too large for its machine: try again, or set a smaller one.",
            ) from error
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError) as error:
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
        hint = HINTS.get(status, "Look into the server's log; try again." if status >= 500 else "Check the URL.")
        what = f"{address} answered {status} for model {self.model!r}: {self._quote(response.text)}"
        if status == 413 or (status in (400, 422, 500) and any(said in words for said in TOO_LONG)):
            return ContextExceeded(what, hint=hint)
        return RefusedCall(what, hint=hint, status=status)

    def _quote(self, text: str) -> str:
        # The key goes before the cut, which could leave half of it standing.
        shown = text.replace(self.key, "[key]") if self.key else text
        return " ".join(shown.split())[:QUOTED]
