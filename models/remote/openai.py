"""Embedder, reranker and generator behind a server: Ollama, LM Studio, llama-server, vLLM, TEI,
hosted ones.

OpenAI's `/embeddings` and `/chat/completions`; `/rerank` in the form of Jina and Cohere
(llama-server, vLLM, Infinity) or of TEI, and TEI's `/embed`. What the API has no field for
(context, dimension, which model it is) is asked of the server in its own way
(`models/remote/server.py`). Not for: starting servers.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from errors import QUOTED, ContextExceeded, ModelError
from models.protocols import CONTEXT_TOKENS, Ability, Prompt, Said, TextKind, Vectors, unit_rows
from models.remote.server import RemoteModel, by_index, shortened
from models.text import checked_json, instructions_for, printable

_STRANGE: Final = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What comes of reading JSON of another form than the documented one."""
LISTED: Final = 20
"""Tokens listed for one position: what OpenAI's API and vLLM allow at most."""
_FENCED: Final = re.compile(r"\s*```(?:json)?\s*\n(?P<inner>.*?)\n?\s*```\s*", re.DOTALL)


class OpenAIEmbedder(RemoteModel):
    """An `Embedder` behind `/embeddings`, or behind TEI's own `/embed`, which cuts long texts by
    itself."""

    _dimension = 0

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 until the server said it, or gave a first vector."""
        return self._dimension or self._facts.dimension

    def reads(self, text: str) -> bool:
        """Return True: a server does not say which scripts its model knows; whoever set it does."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; see `Embedder.embed`.

        The words that the model was trained to see before a query or a passage are put in front
        (`models/text.py`).
        """
        await self.prepare()
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        size = self.texts_a_request()
        words = instructions_for(self._endpoint.model)
        prepared = [words.prepend(text, kind=kind) for text in texts]
        parts = [prepared[start : start + size] for start in range(0, len(texts), size)]
        is_tei = self.server == "TEI"
        rows = [
            await self.in_known_form(partial(self._part, part), other_first=is_tei)
            for part in parts
        ]
        if len({part.shape[1] for part in rows}) != 1 or self._dimension not in (
            0,
            rows[0].shape[1],
        ):
            raise self._endpoint.nonsense("/embeddings", "vectors of different lengths")
        self._dimension = rows[0].shape[1]
        return np.concatenate(rows)

    async def _part(self, texts: Sequence[str], as_tei: bool) -> NDArray[np.float32]:
        path = f"{self._endpoint.root}/embed" if as_tei else "/embeddings"

        async def ask(cut: int) -> object:
            shown = shortened(texts, cut)
            if as_tei:
                return await self._endpoint.ask("POST", path, {"inputs": shown, "truncate": True})
            return await self._endpoint.post(path, {"input": shown, "encoding_format": "float"})

        answer = await self.fitting(ask)
        try:
            vectors = answer if as_tei else by_index(answer["data"], "embedding", len(texts))
            found = np.array(vectors, dtype=np.float32)
        except _STRANGE as error:
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
    """A `Reranker` behind `/rerank`."""

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], as the server gives them: higher is better, the
        scale is the model's."""
        await self.prepare()
        size = self.texts_a_request()
        found = [np.zeros(0, dtype=np.float32)]
        for start in range(0, len(texts), size):
            asked = partial(self._part, query, texts[start : start + size])
            found.append(await self.in_known_form(asked, other_first=self.server == "TEI"))
        return np.concatenate(found)

    async def _part(self, query: str, texts: Sequence[str], as_tei: bool) -> NDArray[np.float32]:
        async def ask(cut: int) -> object:
            shown = shortened(texts, cut)
            asked = shortened([query], cut)[0]
            if as_tei:
                # TEI keeps the call at its root, whatever base URL its OpenAI calls have, and cuts
                # texts itself.
                body: dict[str, object] = {
                    "query": asked,
                    "texts": shown,
                    "raw_scores": True,
                    "truncate": True,
                }
                return await self._endpoint.ask("POST", f"{self._endpoint.root}/rerank", body)
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
        except _STRANGE as error:
            raise self._endpoint.nonsense("/rerank", answer) from error
        if found.ndim != 1 or not np.isfinite(found).all():
            raise self._endpoint.nonsense("/rerank", answer)
        return found


class OpenAIGenerator(RemoteModel):
    """A `Generator` behind `/chat/completions`."""

    _lists = True

    @property
    def abilities(self) -> frozenset[Ability]:
        """Generating under a schema; choosing, until the server turns out to list no
        log-probabilities."""
        return frozenset(
            {"generate", "schema", "choose"} if self._lists else {"generate", "schema"}
        )

    @property
    def context_tokens(self) -> int:
        """Tokens in prompt and answer together, as the server tells; 8,192 where it does not."""
        return self._facts.context_tokens or CONTEXT_TOKENS

    async def generate(
        self, messages: Sequence[Said], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the answer's text; with `schema`, JSON that was checked under it here.

        Servers differ in whether they hold a model to a schema or only mention it; an answer that
        is not valid is shown to the model once, with what is wrong.
        """
        await self.prepare()
        said = _sendable(messages)
        text, cut = await self._answer(said, max_tokens, schema)
        if schema is None:
            return text
        try:
            return checked_json(_unfenced(text), schema, model=self.name, cut=cut)
        except ModelError as error:
            if cut:
                raise
            wrong = (
                f"That is not valid: {error.what[-QUOTED:]} Answer again, with the corrected "
                f"JSON alone."
            )
            said += [
                {"role": "assistant", "content": printable(text)},
                {"role": "user", "content": wrong},
            ]
        text, cut = await self._answer(said, max_tokens, schema)
        return checked_json(_unfenced(text), schema, model=self.name, cut=cut)

    async def choose(self, prompt: Prompt, options: Sequence[str]) -> NDArray[np.float64]:
        """Return the probability of each option [n] as the answer's beginning, summing to 1 over
        the options.

        A near form: only the first token of each option is seen, and a plain text is sent as a
        user's message. A server lists 20 tokens (llama-server more), so an option outside the list
        gets the most that it can have; Ollama before 0.12.11 and LM Studio list none. The exact
        form is the one in this process (`models/llama/model.py`). Raises `ModelError` where the
        server lists no log-probabilities (it then loses the ability `choose`), none of the options,
        or cannot tell two of them apart.
        """
        await self.prepare()
        if not options or not all(options) or len(set(options)) < len(options):
            raise ModelError(
                f"The options {list(options)!r} cannot be weighed.", hint="Give different texts."
            )
        messages = (
            [{"role": "user", "content": printable(prompt)}]
            if isinstance(prompt, str)
            else _sendable(prompt)
        )
        count = LISTED * 10 if self.server == "llama-server" else LISTED
        body = {
            "messages": messages,
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": count,
        }
        answer = await self._endpoint.post("/chat/completions", body)
        try:
            listed = _listed_tokens(answer["choices"][0])
        except ModelError:
            self._lists = False
            raise
        except _STRANGE as error:
            raise self._endpoint.nonsense("/chat/completions", answer) from error
        return _weigh(options, listed)

    async def _answer(
        self, said: Sequence[Mapping[str, str]], max_tokens: int, schema: dict[str, object] | None
    ) -> tuple[str, bool]:
        """Return the answer's text, and whether it ended because its tokens ran out."""
        body: dict[str, object] = {
            "messages": list(said),
            "max_tokens": max_tokens,
            "temperature": 0,
        }

        async def ask(older: bool) -> object:
            """Ask with the schema in OpenAI's form, or in llama.cpp's older one where the server
            knows only that."""
            newer = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            }
            form = {"type": "json_object", "schema": schema} if older else newer
            return await self._endpoint.post("/chat/completions", {**body, "response_format": form})

        if schema is None:
            answer = await self._endpoint.post("/chat/completions", body)
        else:
            answer = await self.in_known_form(ask)
        try:
            choice = answer["choices"][0]
            text, cut = choice["message"]["content"], choice.get("finish_reason") == "length"
            count = (answer.get("usage") or {}).get("prompt_tokens")
        except _STRANGE as error:
            raise self._endpoint.nonsense("/chat/completions", answer) from error
        if not isinstance(text, str):
            raise self._endpoint.nonsense("/chat/completions", answer)
        # Ollama cuts a prompt that is longer than its context without saying so.
        if isinstance(count, int) and count >= self._facts.context_tokens > 0:
            raise ContextExceeded(
                f"{self.name} read {count} tokens of the prompt, all that its context holds.",
                hint="Shorten the input, or set a larger context on the server.",
            )
        return text, cut


def _sendable(messages: Sequence[Said]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": printable(message.content)} for message in messages]


def _unfenced(text: str) -> str:
    """Return the inside of a Markdown fence around the whole answer, as chat models write JSON
    where nothing holds them."""
    found = _FENCED.fullmatch(text)
    return found["inner"] if found else text


def _weigh(options: Sequence[str], listed: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the options' probabilities [n] by their first token, summing to 1, from the `listed`
    log-probabilities."""
    # The longest listed token that each option begins with, "" where none is.
    tokens = [
        max((t for t in listed if option.startswith(t)), key=len, default="") for option in options
    ]
    known = [token for token in tokens if token]
    if len(set(known)) < len(known):
        raise ModelError(
            f"The options {list(options)!r} begin with the same token, and a chat server shows "
            f"the first one only.",
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


def _listed_tokens(choice: Mapping[str, Any]) -> dict[str, float]:
    """Return token to log-probability for the first position of an answer, in the form of chats or
    of completions."""
    told = choice.get("logprobs") or {}
    content, older = told.get("content"), told.get("top_logprobs")
    listed = (
        [(one["token"], one["logprob"]) for one in content[0].get("top_logprobs") or ()]
        if content
        else []
    )
    if older and not content:
        listed = list(older[0].items())
    found = {
        str(token): min(float(value), 0.0)
        for token, value in listed
        if token and not math.isnan(value)
    }
    if not found:
        raise ModelError(
            "The server lists no log-probabilities, so it cannot weigh options.",
            hint="Use llama-server, vLLM or Ollama 0.12.11, or a GGUF model (llama:FILE.gguf).",
        )
    return found
