"""Models behind an OpenAI-compatible server: Ollama, LM Studio, llama-server, vLLM, TEI, or a hosted one.

`/embeddings`, `/rerank` (the form of Jina and Cohere that llama-server, vLLM and Infinity also speak) and
`/chat/completions`. The HTTP client is passed in and stays the caller's. The key travels in one header; it is in no
message, no name and no repr. Not for: starting servers, or log-probabilities (issue 4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio
import httpx2
import numpy as np
from numpy.typing import NDArray

from errors import ModelError, UsageError
from models.protocols import Message, TextKind, Vectors
from models.schema import checked_json
from models.text import printable
from models.vectors import unit_rows

TEXTS_A_REQUEST: Final = 64
"""Texts in one request: TEI refuses more than 32 to 64 unless told, and a cancelled call ends between requests."""
CHARACTERS: Final = 8_000
"""A text is cut here, about 2 000 tokens: servers answer 400 above their window, 512 to 8 192 for most."""
ASSUMED_CONTEXT: Final = 8_192
"""Context of a remote generator; the API has no field that says it, so the owner of the endpoint may."""
CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 120.0
"""A local server may load a model of several GB before its first token."""
RETRIED: Final = (429, 503)
LONGEST_WAIT: Final = 5.0
"""Seconds that `Retry-After` may ask for; the call fails at once above it."""
QUOTED: Final = 300
"""Characters of the server's own words in an error message."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served (base URL with its `/v1`), its name, the key, and the client to use."""

    http: httpx2.AsyncClient = field(repr=False)
    url: str
    model: str
    key: str = field(default="", repr=False)
    context_tokens: int = ASSUMED_CONTEXT
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
    def name(self) -> str:
        """Model and server, for cache keys and messages."""
        return f"{self.model}:openai:{self.url}"

    async def post(self, path: str, body: Mapping[str, object]) -> dict[str, object]:
        """Return the JSON object that the server answers; asks a second time after 429 and 503.

        Raises:
            ModelError: No answer, an error status, or an answer that is no JSON object; says which and what to do.
        """
        response = await self._send(path, body)
        if response.status_code in RETRIED and (wait := _wait(response)) <= LONGEST_WAIT:
            await anyio.sleep(wait)
            response = await self._send(path, body)
        if response.status_code != 200:
            raise self._refused(path, response)
        try:
            answer = response.json()
        except ValueError as error:
            raise self.nonsense(path, response.text) from error
        if not isinstance(answer, dict):
            raise self.nonsense(path, response.text)
        return answer

    def nonsense(self, path: str, text: str) -> ModelError:
        """Return the error for an answer that has not the documented form."""
        return ModelError(
            f"{self.url}{path} answered in no form that is known for model {self.model!r}: {self._quote(text)}",
            hint="Check that the URL is an OpenAI-compatible API, with its /v1 where it has one.",
        )

    async def _send(self, path: str, body: Mapping[str, object]) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        timeout = httpx2.Timeout(self.seconds, connect=min(self.seconds, CONNECT_SECONDS))
        try:
            return await self.http.post(
                self.url + path, json={"model": self.model, **body}, headers=headers, timeout=timeout
            )
        except httpx2.TimeoutException as error:
            raise ModelError(
                f"{self.url}{path} gave no answer in time ({type(error).__name__}, {self.seconds:g} s) "
                f"for model {self.model!r}.",
                hint="The model may be loading or too large for its machine: try again, or set a smaller one.",
            ) from error
        except httpx2.HTTPError as error:
            raise ModelError(
                f"{self.url}{path} cannot be reached: {type(error).__name__} {self._quote(str(error))}",
                hint="Check that the server runs and that the address is right.",
            ) from error

    def _refused(self, path: str, response: httpx2.Response) -> ModelError:
        status = response.status_code
        hints = {
            400: "The server refused the input: it may be longer than the model's window.",
            401: "Set the API key in the setting model_key (WINNOW_MODEL_KEY).",
            403: "The key is not allowed to use this model: check the setting model_key.",
            404: "Check the model's name, that it was pulled, and that the URL ends in /v1 where the server has it.",
            405: "The server has no such call: check the URL, or set this role to another backend.",
            413: "The input is too large for the server: set a larger window there.",
            429: "The server limits requests: wait, or use a local model.",
            501: "The server was started without this role (llama-server: --embeddings, --reranking).",
        }
        hint = hints.get(status, "Look into the server's log; try again." if status >= 500 else "Check the URL.")
        return ModelError(
            f"{self.url}{path} answered {status} for model {self.model!r}: {self._quote(response.text)}", hint=hint
        )

    def _quote(self, text: str) -> str:
        shown = " ".join(text.split())[:QUOTED]
        return shown.replace(self.key, "[key]") if self.key else shown


def _wait(response: httpx2.Response) -> float:
    asked = response.headers.get("retry-after", "")
    return float(asked) if asked.isdigit() else 0.5


class OpenAIEmbedder:
    """An `Embedder` behind `/embeddings`."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Keep the endpoint; nothing is asked of it before the first use."""
        self._endpoint = endpoint
        self._dimension = 0

    @property
    def name(self) -> str:
        """Model and server."""
        return self._endpoint.name

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 until the server has answered once, for the API does not say it."""
        return self._dimension

    def reads(self, text: str) -> bool:
        """Return True: which scripts a remote model knows is not told, and whoever set it knows."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return float32 vectors [n, dimension] of unit length, in the order of `texts`.

        Raises:
            ModelError: The server refused, was silent, or answered something else.
        """
        starts = range(0, len(texts), TEXTS_A_REQUEST)
        rows = [await self._part(texts[start : start + TEXTS_A_REQUEST]) for start in starts]
        if not rows:
            return np.zeros((0, self._dimension), dtype=np.float32)
        if len({part.shape[1] for part in rows}) != 1 or self._dimension not in (0, rows[0].shape[1]):
            raise self._endpoint.nonsense("/embeddings", "vectors of different lengths")
        self._dimension = rows[0].shape[1]
        return np.concatenate(rows)

    async def _part(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # Servers refuse an empty string; a blank gives the same vector as far as tokenisers go.
        body: dict[str, object] = {"input": [_sendable(text) or " " for text in texts], "encoding_format": "float"}
        answer = await self._endpoint.post("/embeddings", body)
        try:
            vectors = _by_index(answer["data"], "embedding", len(texts))
            found = np.array(vectors, dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise self._endpoint.nonsense("/embeddings", str(answer)) from error
        if found.ndim != 2 or found.shape[1] == 0 or not np.isfinite(found).all():
            raise self._endpoint.nonsense("/embeddings", str(answer))
        return unit_rows(found)


class OpenAIReranker:
    """A `Reranker` behind `/rerank`."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Keep the endpoint; nothing is asked of it before the first use."""
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        """Model and server."""
        return self._endpoint.name

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], as the server gives them: higher is better, the scale is the model's.

        Raises:
            ModelError: The server refused, was silent, or left texts without a score.
        """
        starts = range(0, len(texts), TEXTS_A_REQUEST)
        parts = [await self._part(query, texts[start : start + TEXTS_A_REQUEST]) for start in starts]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)

    async def _part(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        documents = [_sendable(text) or " " for text in texts]
        body = {"query": _sendable(query), "documents": documents, "top_n": len(texts), "return_documents": False}
        answer = await self._endpoint.post("/rerank", body)
        try:
            found = np.array(_by_index(answer["results"], "relevance_score", len(texts)), dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise self._endpoint.nonsense("/rerank", str(answer)) from error
        if found.ndim != 1 or not np.isfinite(found).all():
            raise self._endpoint.nonsense("/rerank", str(answer))
        return found


class OpenAIGenerator:
    """A `Generator` behind `/chat/completions`."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Keep the endpoint; nothing is asked of it before the first use."""
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        """Model and server."""
        return self._endpoint.name

    @property
    def context_tokens(self) -> int:
        """Tokens in prompt and answer together, as the endpoint says; the server may have fewer."""
        return self._endpoint.context_tokens

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the answer's text; with `schema`, JSON that was checked under it here.

        Raises:
            ModelError: The server refused, was silent, or its answer is not valid under `schema`.
        """
        body: dict[str, object] = {
            "messages": [{"role": message.role, "content": printable(message.content)} for message in messages],
            "max_tokens": max_tokens,
            "temperature": 0,
        }
        if schema is not None:
            form = {"name": "answer", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        answer = await self._endpoint.post("/chat/completions", body)
        try:
            choice = answer["choices"][0]  # type: ignore[index]  # checked by the except below
            text, ended = choice["message"]["content"], choice.get("finish_reason")
        except (KeyError, IndexError, TypeError) as error:
            raise self._endpoint.nonsense("/chat/completions", str(answer)) from error
        if not isinstance(text, str):
            raise self._endpoint.nonsense("/chat/completions", str(answer))
        return text if schema is None else checked_json(text, schema, model=self.name, cut=ended == "length")


def _sendable(text: str) -> str:
    return printable(text[:CHARACTERS])


def _by_index(items: object, value: str, count: int) -> list[object]:
    """Return `value` of each item, in the order of the items' own `index`.

    Raises:
        KeyError, TypeError, ValueError: The items are not one for each of `count` texts.
    """
    if not isinstance(items, list) or len(items) != count:
        raise ValueError(f"not a list of {count}")
    found = {int(item["index"]): item[value] for item in items}
    return [found[place] for place in range(count)]
