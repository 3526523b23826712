"""Embedder, reranker and generator on a server: Ollama, LM Studio, llama-server, vLLM,
TEI, hosted ones.

OpenAI's `/embeddings` and `/chat/completions`; `/rerank` in the form of Jina and Cohere
(llama-server, vLLM, Infinity) or of TEI, and TEI's `/embed`. What the API has no field
for (context, dimension, which model it is) is asked of the server in its own way
(`models/remote/server.py`); how each kind is asked for a chat is in
`models/remote/chat.py`. Not for: starting servers."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from errors import QUOTED, ContextExceeded, ModelError
from errors import said as quoted
from models.options import THINKING, THOUGHTS, ModelOptions, answer_key
from models.protocols import (
    CONTEXT_TOKENS,
    Ability,
    PathScores,
    Prompt,
    Said,
    TextKind,
    Vectors,
    unit_rows,
)
from models.remote.chat import (
    ChatRequest,
    Form,
    Reply,
    forms_of,
    in_words,
    json_in,
    listed_tokens,
    read_reply,
    request_of,
)
from models.remote.paths import score_paths
from models.remote.server import (
    Endpoint,
    RefusedCall,
    RemoteModel,
    by_index,
    shortened,
)
from models.text import checked_json, instructions_for, printable

STRANGE: Final = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""Exceptions when reading JSON of an undocumented form."""


OTHER_FORM: Final = frozenset((400, 404, 405, 422, 500))
"""What servers say to a form or a path that they do not know; llama-cpp-python's own
says 500."""


class OpenAIEmbedder(RemoteModel):
    """An `Embedder` over `/embeddings`, or TEI's own `/embed`, which truncates long
    texts itself."""

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
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        size = self.texts_a_request()
        words = instructions_for(self._endpoint.model)
        prepared = [words.prepend(text, kind=kind) for text in texts]
        parts = [prepared[start : start + size] for start in range(0, len(texts), size)]
        rows = [await self._part(part) for part in parts]
        if len({part.shape[1] for part in rows}) != 1 or self._dimension not in (
            0,
            rows[0].shape[1],
        ):
            raise self._endpoint.nonsense("/embeddings", "vectors of different lengths")
        self._dimension = rows[0].shape[1]
        return np.concatenate(rows)

    async def _part(self, texts: Sequence[str]) -> NDArray[np.float32]:
        as_tei = self.server == "TEI"
        path = f"{self._endpoint.root}/embed" if as_tei else "/embeddings"

        async def ask(cut: int) -> object:
            shown = shortened(texts, cut)
            if as_tei:
                return await self._endpoint.ask(
                    "POST", path, {"inputs": shown, "truncate": True}
                )
            return await self._endpoint.post(
                path, {"input": shown, "encoding_format": "float"}
            )

        answer = await self.fitting(ask)
        try:
            vectors = (
                answer if as_tei else by_index(answer["data"], "embedding", len(texts))
            )
            found = np.array(vectors, dtype=np.float32)
        except STRANGE as error:
            raise self._endpoint.nonsense(path, answer) from error
        if (
            found.ndim != 2
            or len(found) != len(texts)
            or found.shape[1] == 0
            or not np.isfinite(found).all()
        ):
            raise self._endpoint.nonsense(path, answer)
        return unit_rows(found)


class OpenAIReranker(RemoteModel):
    """A `Reranker` over `/rerank`."""

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], as the server gives them: higher is
        better, the scale is the model's."""
        await self.prepare()
        size = self.texts_a_request()
        parts = [
            await self._part(query, texts[start : start + size])
            for start in range(0, len(texts), size)
        ]
        return np.concatenate([np.zeros(0, dtype=np.float32), *parts])

    async def _part(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        async def ask(cut: int) -> object:
            shown = shortened(texts, cut)
            asked = shortened([query], cut)[0]
            if self.server == "TEI":
                # TEI keeps the call at its root, whatever base URL its OpenAI calls have, and cuts
                # texts itself.
                body: dict[str, object] = {
                    "query": asked,
                    "texts": shown,
                    "raw_scores": True,
                    "truncate": True,
                }
                return await self._endpoint.ask(
                    "POST", f"{self._endpoint.root}/rerank", body
                )
            body = {
                "query": asked,
                "documents": shown,
                "top_n": len(texts),
                "return_documents": False,
            }
            return await self._endpoint.post("/rerank", body)

        answer = await self.fitting(ask)
        try:
            rows = answer["results"] if isinstance(answer, Mapping) else answer
            key = "relevance_score" if isinstance(answer, Mapping) else "score"
            found = np.array(by_index(rows, key, len(texts)), dtype=np.float32)
        except STRANGE as error:
            raise self._endpoint.nonsense("/rerank", answer) from error
        if found.ndim != 1 or not np.isfinite(found).all():
            raise self._endpoint.nonsense("/rerank", answer)
        return found


class OpenAIGenerator(RemoteModel):
    """A `Generator` over `/chat/completions`, or Ollama's own `/api/chat`."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        options: ModelOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the endpoint and how its model is run; nothing is asked before `prepare`
        or the first use."""
        super().__init__(endpoint, clock=clock)
        self._options = options or {}
        self._tokens = 0
        """Tokens that the server says it read and wrote."""
        self._lists = True
        self._thinks = bool(self._options.get(THINKING))
        """Whether an answer of this model had thoughts that no switch stopped."""
        self._forms: dict[bool, Form] = {}
        """The form that the server takes, with a schema and without."""

    @property
    def name(self) -> str:
        """Model, server and identity, and the options that change an answer."""
        name, key = super().name, answer_key(self._options)
        return f"{name}:{key}" if key else name

    @property
    def abilities(self) -> frozenset[Ability]:
        """Generating under a schema; choosing, and scoring paths, until the server
        turns out to list no log-probabilities."""
        more: set[Ability] = {"choose"} if self._lists else set()
        if self._lists and self.server == "llama-server":
            more.add("score_tree")
        return frozenset({"generate", "schema", *more})

    @property
    def context_tokens(self) -> int:
        """Tokens in prompt and answer together: as set, else as the server says; 8,192
        where it says nothing."""
        asked = int(self._options.get("n_ctx", 0))
        if self.server == "Ollama" and asked:
            return min(asked, self._facts.longest or asked)
        return self._facts.context_tokens or asked or CONTEXT_TOKENS

    async def counters(self) -> Mapping[str, object]:
        """Return the tokens that the server says it read and wrote; empty where it says
        nothing."""
        return {"tokens": self._tokens} if self._tokens else {}

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
        said = _sendable(messages)
        reply = await self._answer(ChatRequest(said, max_tokens, schema))
        if schema is None:
            return reply.text
        try:
            return checked_json(
                json_in(reply.text), schema, model=self.name, cut=reply.cut
            )
        except ModelError as error:
            if reply.cut:
                raise
            asked = ChatRequest(said, max_tokens, schema)
            wrong = f"That is not valid: {error.what[-QUOTED:]} {in_words(asked)}"
            said += [
                {"role": "assistant", "content": printable(reply.text)},
                {"role": "user", "content": wrong},
            ]
        reply = await self._answer(ChatRequest(said, max_tokens, schema))
        return checked_json(json_in(reply.text), schema, model=self.name, cut=reply.cut)

    async def choose(
        self, prompt: Prompt, options: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return the probability of each option [n] as the answer's beginning, summing
        to 1 over the options.

        An approximation: only the first token of each option is compared, and a plain
        text is sent as a user message. A server lists 20 tokens (llama-server more), so
        an option outside the list gets the most that it can have; Ollama before 0.12.11
        and LM Studio list none. The exact form is the one in this process
        (`models/llama/model.py`). Raises `ModelError` where the server lists no
        log-probabilities (it then loses the ability `choose`), none of the options, or
        two options with the same first token; also without options, and for one that is
        empty or given twice.
        """
        await self.prepare()
        if not options or not all(options) or len(set(options)) < len(options):
            raise ModelError(
                f"The options {list(options)!r} cannot be compared.",
                hint="Give texts that differ, none of them empty.",
            )
        messages = (
            [{"role": "user", "content": printable(prompt)}]
            if isinstance(prompt, str)
            else _sendable(prompt)
        )
        answer = await self._sent(ChatRequest(messages, 1, lists=True))
        try:
            listed = listed_tokens(answer)
        except ModelError:
            self._lists = False
            raise
        except STRANGE as error:
            raise self._endpoint.nonsense("/chat/completions", answer) from error
        return _weigh(options, listed)

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return log P(path | prefix) of each path, as near as the server's lists of
        tokens allow; see `TreeScorer.score_tree` and `models/remote/paths.py`.

        Raises `ModelError` also for an answer in another form.
        """
        await self.prepare()
        if not paths:
            return PathScores(np.zeros(0, dtype=np.float64), 0, 0, 0, 0)
        given = prefix if isinstance(prefix, str) else _sendable(prefix)
        texts = [printable(path) for path in paths]
        try:
            return await score_paths(
                self._endpoint, given, texts, among_siblings=among_siblings
            )
        except STRANGE as error:
            raise self._endpoint.nonsense("/completions", repr(error)) from error

    async def _answer(self, asked: ChatRequest) -> Reply:
        """Return the reply, asked again with room for thoughts where they took all of it.

        Raises `ModelError` where there is no answer beside the thoughts,
        `ContextExceeded` where the server cut the prompt."""
        room = min(THOUGHTS, self.context_tokens // 2) + asked.max_tokens
        wide = asked._replace(max_tokens=room)
        reply = await self._reply(wide if self._thinks else asked)
        if (
            not self._thinks
            and reply.cut
            and (reply.thoughts or not reply.text.strip())
        ):
            self._thinks = True
            reply = await self._reply(wide)
        if reply.text.strip() or not (reply.cut or reply.thoughts):
            return reply
        spent = (
            f"it thought for {len(reply.thoughts)} characters, which end in "
            f"{quoted(reply.thoughts[-QUOTED:])}"
            if reply.thoughts
            else "the server does not show what it thought"
        )
        ended = (
            f"its {room} tokens ran out (finish_reason length)"
            if reply.cut
            else "its reply ended after its thoughts"
        )
        raise ModelError(
            f"{self.name} returned no answer: {ended}; {spent}.",
            hint="Switch its thinking off on the server, or set a model that does not think.",
        )

    async def _reply(self, asked: ChatRequest) -> Reply:
        answer = await self._sent(asked)
        try:
            reply = read_reply(answer)
        except STRANGE as error:
            raise self._endpoint.nonsense("/chat/completions", answer) from error
        self._tokens += reply.prompt_tokens + reply.written
        # Ollama cuts a prompt that is longer than its context without saying so.
        window = (
            self.context_tokens
            if self.server == "Ollama"
            else self._facts.context_tokens
        )
        if reply.prompt_tokens >= window > 0:
            raise ContextExceeded(
                f"{self.name} read {reply.prompt_tokens} tokens of the prompt, all that its "
                f"context holds.",
                hint="Shorten the input, or set a larger context on the server.",
            )
        return reply

    async def _sent(self, asked: ChatRequest) -> Any:
        """Return what the server answers to the first form of the request that it
        takes, which is kept.

        Raises the first refusal where the server takes none.
        """
        schema = asked.schema is not None
        known = self._forms.get(schema)
        forms = (known,) if known is not None else forms_of(self.server, schema=schema)
        first: RefusedCall | None = None
        for form in forms:
            body = request_of(self.server, form, asked, self._options)
            try:
                answer = await self._ask(form, body)
            except RefusedCall as error:
                # the first form is the one that most servers know: its refusal says more
                first = first or error
                if error.status not in OTHER_FORM:
                    raise
                continue
            self._forms[schema] = form
            return answer
        assert first is not None  # noqa: S101  each form was refused
        raise self.explained(first)

    async def _ask(self, form: Form, body: Mapping[str, object]) -> Any:
        endpoint = self._endpoint
        if form == "native":
            named = {"model": endpoint.model, **body}
            return await endpoint.ask("POST", f"{endpoint.root}/api/chat", named)
        return await endpoint.post("/chat/completions", body)


def _sendable(messages: Sequence[Said]) -> list[dict[str, str]]:
    return [
        {"role": message.role, "content": printable(message.content)}
        for message in messages
    ]


def _weigh(options: Sequence[str], listed: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the options' probabilities [n] by their first token, summing to 1, from
    the `listed` log-probabilities.

    An option that is not listed gets the most that it can have. Raises `ModelError`
    where none is listed, or two begin with the same token.
    """
    # The longest listed token that each option begins with, "" where none is.
    tokens = [
        max((t for t in listed if option.startswith(t)), key=len, default="")
        for option in options
    ]
    known = [token for token in tokens if token]
    if len(set(known)) < len(known):
        raise ModelError(
            (
                f"The options {list(options)!r} begin with the same token, "
                "and a chat server returns probabilities for the first token "
                "only."
            ),
            hint="Use options that differ at their beginning, or a GGUF model (llama:FILE.gguf).",
        )
    if not known:
        likely = sorted(listed, key=lambda token: listed[token], reverse=True)[:5]
        raise ModelError(
            f"None of {list(options)!r} is among the {len(listed)} tokens listed; the likeliest "
            f"are {likely!r}.",
            hint="Ask so that the answer begins with one of the options.",
        )
    left = 1.0 - sum(map(math.exp, listed.values()))
    most = max(min(left, math.exp(min(listed.values()))), 1e-12)
    found = np.array([math.exp(listed[token]) if token else most for token in tokens])
    shares: NDArray[np.float64] = found / max(float(found.sum()), 1e-300)
    return shares
