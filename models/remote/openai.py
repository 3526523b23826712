"""Embedder, reranker and generator on a server: Ollama, LM Studio, llama-server, vLLM,
TEI, hosted ones.

OpenAI's `/embeddings` and `/chat/completions`; `/rerank` in the form of Jina and Cohere
(llama-server, vLLM, Infinity) or of TEI. What the API has no field for (context,
dimension, which model it is) is asked of the server in its own way
(`models/remote/server.py`); how each kind is asked for a chat is in
`models/remote/chat.py`. Not for: starting servers."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from errors import QUOTED, ContextExceeded, ModelError, said
from models.options import THINKING, THOUGHTS, ModelOptions, answer_key
from models.protocols import (
    CONTEXT_TOKENS,
    Ability,
    Said,
    TextKind,
    Vectors,
    unit_rows,
)
from models.remote.chat import (
    ChatRequest,
    Reply,
    json_in,
    ollama_body,
    openai_body,
    read_reply,
    schema_in_words,
)
from models.remote.server import Endpoint, RefusedCall, RemoteModel
from models.text import TEXTS_A_REQUEST, checked_json, instructed, printable

STRANGE: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Exceptions when reading JSON of an undocumented form."""
SCHEMA_REFUSED: Final = frozenset((400, 404, 422, 500))
"""What servers say to a `response_format` that they do not know; llama-cpp-python's own
says 500."""


class OpenAIEmbedder(RemoteModel):
    """An `Embedder` over `/embeddings`."""

    _dimension = 0

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 until the server said it, or gave a first vector."""
        return self._dimension or self._facts.dimension

    def reads(self, text: str) -> bool:
        """Return True: a server does not report the scripts of its model; the user
        chose it."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; see `Embedder.embed`.

        The words that the model was trained to see before a query or a passage are put
        in front (`models/text.py`). Raises `ModelError` where vectors have different
        lengths, or not the length of earlier ones.
        """
        await self.prepare()
        prepared = instructed(texts, kind, self._endpoint.model)
        rows = [
            await self._embedded(prepared[start : start + TEXTS_A_REQUEST])
            for start in range(0, len(texts), TEXTS_A_REQUEST)
        ]
        lengths = {self._dimension, *(vectors.shape[1] for vectors in rows)} - {0}
        if len(lengths) > 1:
            raise self._endpoint.nonsense("/embeddings", "vectors of different lengths")
        if not rows:
            return np.zeros((0, self.dimension), dtype=np.float32)
        self._dimension = rows[0].shape[1]
        return np.concatenate(rows)

    async def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        async def ask(cut: list[str]) -> Any:
            body = {"input": cut, "encoding_format": "float"}
            return await self._endpoint.post("/embeddings", body)

        answer = await self.fitting(texts, ask)
        vectors = _numbers(self._endpoint, answer, "data", "embedding", len(texts))
        if vectors.ndim != 2 or not vectors.any(axis=1).all():
            raise self._endpoint.nonsense("/embeddings", answer)
        return unit_rows(vectors)


class OpenAIReranker(RemoteModel):
    """A `Reranker` over `/rerank`."""

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], as the server gives them: higher is
        better, the scale is the model's."""
        await self.prepare()
        scores = [
            await self._scored(query, texts[start : start + TEXTS_A_REQUEST])
            for start in range(0, len(texts), TEXTS_A_REQUEST)
        ]
        return np.concatenate([np.zeros(0, dtype=np.float32), *scores])

    async def _scored(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        async def ask(cut: list[str]) -> Any:
            question, *passages = cut
            body: dict[str, object] = {"query": question}
            if self.server == "TEI":
                # Kept at its root, whatever base URL its OpenAI calls have.
                body |= {"texts": passages, "raw_scores": True}
                rows = await self._endpoint.ask(f"{self._endpoint.root}/rerank", body)
                return {"results": rows}
            body |= {"documents": passages, "top_n": len(passages)}
            return await self._endpoint.post("/rerank", body)

        answer = await self.fitting([query, *texts], ask)
        name = "score" if self.server == "TEI" else "relevance_score"
        scores = _numbers(self._endpoint, answer, "results", name, len(texts))
        if scores.ndim != 1:
            raise self._endpoint.nonsense("/rerank", answer)
        return scores


def _numbers(
    endpoint: Endpoint, answer: Any, rows: str, name: str, count: int
) -> NDArray[np.float32]:
    """Return the field `name` of each of `count` `rows` of an answer, in the order of
    their own `index`; raises `ModelError` for another form, and for numbers that are
    not finite."""
    try:
        by_index = {int(row["index"]): row[name] for row in answer[rows]}
        values = [by_index[index] for index in range(count)]
        # What is over float32 becomes infinite, and is refused below.
        with np.errstate(over="ignore"):
            numbers = np.array(values, dtype=np.float32)
    except STRANGE as error:
        raise endpoint.nonsense(f"/{rows}", answer) from error
    if not np.isfinite(numbers).all():
        raise endpoint.nonsense(f"/{rows}", answer)
    return numbers


class OpenAIGenerator(RemoteModel):
    """A `Generator` over `/chat/completions`, or Ollama's own `/api/chat`."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        options: ModelOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(endpoint, clock=clock)
        self._options = options or {}
        self._thinks = bool(self._options.get(THINKING))
        """Whether an answer of this model had thoughts that no switch stopped."""
        self._schema_in_words = False
        """Whether the server refused a schema in `response_format`."""

    @property
    def name(self) -> str:
        """Model, server and identity, and the options that change an answer."""
        name, key = super().name, answer_key(self._options)
        return f"{name}:{key}" if key else name

    abilities: frozenset[Ability] = frozenset({"generate", "schema"})

    @property
    def context_tokens(self) -> int:
        """Tokens in prompt and answer together: as the server says, else as set, else
        8,192. Ollama gives what it is asked for: as set, else 8,192, at most those that
        the model was trained for."""
        configured = int(self._options.get("n_ctx", 0)) or CONTEXT_TOKENS
        reported = self._facts.context_tokens or configured
        return min(reported, configured) if self.server == "Ollama" else reported

    async def generate(
        self,
        messages: Sequence[Said],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
    ) -> str:
        """Return the answer's text without thoughts; with `schema`, JSON that was
        checked under it here.

        Servers differ in whether they hold a model to a schema or only mention it; an
        answer that is not valid is shown to the model once, with what is wrong. Raises
        `ModelError` where it is still not valid, or was cut at `max_tokens` (then it is
        not asked again).
        """
        await self.prepare()
        request = ChatRequest(_sendable(messages), max_tokens, schema)
        reply = await self._answer(request)
        if schema is None:
            return reply.text
        try:
            return self._valid(reply, schema)
        except ModelError as error:
            if reply.cut:
                raise
            fault = (
                f"That is not valid: {error.what[-QUOTED:]} {schema_in_words(schema)}"
            )
        repair = [
            *request.messages,
            {"role": "assistant", "content": printable(reply.text)},
            {"role": "user", "content": fault},
        ]
        return self._valid(
            await self._answer(request._replace(messages=repair)), schema
        )

    def _valid(self, reply: Reply, schema: dict[str, object]) -> str:
        return checked_json(json_in(reply.text), schema, model=self.name, cut=reply.cut)

    async def _answer(self, request: ChatRequest) -> Reply:
        """Return the reply, asked again with room for thoughts where they took all of it.

        Raises `ModelError` where there is no answer beside the thoughts,
        `ContextExceeded` where the server cut the prompt."""
        room = min(THOUGHTS, self.context_tokens // 2) + request.max_tokens
        wide = request._replace(max_tokens=room)
        reply = await self._reply(wide if self._thinks else request)
        if (
            not self._thinks
            and reply.cut
            and (reply.thoughts or not reply.text.strip())
        ):
            self._thinks = True
            reply = await self._reply(wide)
        if reply.text.strip() or not (reply.cut or reply.thoughts):
            return reply
        ended = (
            f"its {room} tokens ran out (finish_reason length)"
            if reply.cut
            else "it ended"
        )
        raise ModelError(
            f"{self.name} returned no answer: {ended} after {len(reply.thoughts)} "
            f"characters of thoughts: {said(reply.thoughts[-QUOTED:])}",
            hint="Switch its thinking off on the server, or set a model that does not think.",
        )

    async def _reply(self, request: ChatRequest) -> Reply:
        answer = await self._sent(request)
        try:
            reply = read_reply(answer)
        except STRANGE as error:
            raise self._endpoint.nonsense("/chat/completions", answer) from error
        self.tokens += reply.prompt_tokens + reply.written
        # Ollama cuts a prompt that is longer than its context without saying so.
        if self._facts.context_tokens and reply.prompt_tokens >= self.context_tokens:
            raise ContextExceeded(
                f"{self.name} read {reply.prompt_tokens} tokens of the prompt, all that its "
                f"context holds.",
                hint="Shorten the input, or set a larger context on the server.",
            )
        return reply

    async def _sent(self, request: ChatRequest) -> Any:
        """Return what the server answers; a schema that it refuses goes in words from
        then on."""
        endpoint = self._endpoint
        if self.server == "Ollama":
            body = ollama_body(
                request, self._options, context_tokens=self.context_tokens
            )
            address = f"{endpoint.root}/api/chat"
            return await endpoint.ask(address, {"model": endpoint.model, **body})
        body, in_words = (
            openai_body(self.server, request, self._options, in_words=in_words)
            for in_words in (self._schema_in_words, True)
        )
        try:
            return await endpoint.post("/chat/completions", body)
        except RefusedCall as error:
            if body == in_words or error.status not in SCHEMA_REFUSED:
                raise
            answer = await endpoint.post("/chat/completions", in_words)
        self._schema_in_words = True
        return answer


def _sendable(messages: Sequence[Said]) -> list[dict[str, str]]:
    return [
        {"role": message.role, "content": printable(message.content)}
        for message in messages
    ]
