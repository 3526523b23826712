"""One model behind an HTTP server: address, name, key, and asking it with time limits, retries and plain errors.

The HTTP client is passed in and stays the caller's. The key travels in one header; it is in no message, no name and no
repr. Not for: what is asked (`models/remote/openai.py`, `models/remote/rerank.py`), nor what a server tells of itself
(`models/remote/facts.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import anyio
import httpx2

from errors import ModelError, UsageError

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 120.0
"""A local server may load a model of several GB before its first token."""
TRIES: Final = 3
"""Requests for one call: a server that restarts or loads is back within two pauses or not at all."""
RETRIED: Final = (429, 502, 503, 504)
"""Busy, loading (llama-server says 503), or a proxy whose server is away. Every call of ours may be repeated."""
PAUSE: Final = 0.5
"""Seconds before the second request, and twice that before the third, where the server names no time."""
LONGEST_WAIT: Final = 5.0
"""Seconds that `Retry-After` may ask for; the call fails at once above it."""
QUOTED: Final = 300
"""Characters of the server's own words in an error message."""
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
    """The server answered with an error status; `too_long` says that the input was over its window."""

    def __init__(self, what: str, *, hint: str, status: int, too_long: bool) -> None:
        """Keep the status beside the sentences."""
        super().__init__(what, hint=hint)
        self.status = status
        self.too_long = too_long


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served (base URL with its `/v1`), its name, the key, and the client to use."""

    http: httpx2.AsyncClient = field(repr=False)
    url: str
    model: str
    key: str = field(default="", repr=False)
    seconds: float = ANSWER_SECONDS

    def __post_init__(self) -> None:
        """Refuse a key that is no header value, without showing it.

        Raises:
            UsageError: The key has blanks, line ends or letters outside ASCII.
        """
        if self.key and not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            raise UsageError(
                f"The API key for {self.url} has characters that no key has (not shown).", hint="Copy it again."
            )

    @property
    def root(self) -> str:
        """The server's address without `/v1`, where it keeps calls of its own."""
        return self.url.removesuffix("/v1")

    async def post(self, path: str, body: Mapping[str, object]) -> object:
        """Return the JSON value that `path` below the base URL answers to `body` with the model's name in it.

        Raises:
            RefusedCall: The server answered with an error status, after retries where one may pass.
            ModelError: No answer, or an answer that is no JSON; says which and what to do.
        """
        return await self.ask("POST", self.url + path, {"model": self.model, **body})

    async def ask(
        self, method: Method, address: str, body: Mapping[str, object] | None = None, *, tries: int = TRIES
    ) -> object:
        """Return the JSON value that `address` answers; asks again, with a pause, after `RETRIED` and cut connections.

        Raises:
            RefusedCall: The server answered with an error status.
            ModelError: No answer in time, no connection, or an answer that is no JSON.
        """
        for left in reversed(range(tries)):
            response = await self._send(method, address, body, again=left > 0)
            pause = _wait(response, tries - 1 - left)
            if response is not None and (response.status_code not in RETRIED or not left or pause > LONGEST_WAIT):
                break
            await anyio.sleep(pause)
        assert response is not None  # noqa: S101  `_send` raises where it may not be called again
        if response.status_code != 200:
            raise self._refused(address, response)
        try:
            answer: object = response.json()
        except ValueError as error:
            raise self.nonsense(address, response.text) from error
        return answer

    def nonsense(self, address: str, answer: object) -> ModelError:
        """Return the error for an answer that has not the documented form; `address` may be a path below the base."""
        place = self.url + address if address.startswith("/") else address
        return ModelError(
            f"{place} answered in no form that is known for model {self.model!r}: {self._quote(str(answer))}",
            hint="Check that the URL is an OpenAI-compatible API, with its /v1 where it has one.",
        )

    async def _send(
        self, method: Method, address: str, body: Mapping[str, object] | None, *, again: bool
    ) -> httpx2.Response | None:
        """Return the response; None where the connection broke and the call may be made once more."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        timeout = httpx2.Timeout(self.seconds, connect=min(self.seconds, CONNECT_SECONDS))
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

    def _refused(self, address: str, response: httpx2.Response) -> RefusedCall:
        status, words = response.status_code, response.text.lower()
        hint = HINTS.get(status, "Look into the server's log; try again." if status >= 500 else "Check the URL.")
        return RefusedCall(
            f"{address} answered {status} for model {self.model!r}: {self._quote(response.text)}",
            hint=hint,
            status=status,
            too_long=status == 413 or (status in (400, 422, 500) and any(said in words for said in TOO_LONG)),
        )

    def _quote(self, text: str) -> str:
        # The key goes before the cut, which could leave half of it standing.
        shown = text.replace(self.key, "[key]") if self.key else text
        return " ".join(shown.split())[:QUOTED]


def _wait(response: httpx2.Response | None, made: int) -> float:
    asked = response.headers.get("retry-after", "") if response is not None else ""
    return float(asked) if asked.isascii() and asked.isdigit() else PAUSE * 2**made
