"""GGUF models through llama-cpp-python, each in a process of its own: embedder, reranker
and generator.

The process starts at the first use (`models/worker.py`) and computes one call at a time;
this file holds what the server's side knows: the requests, and the checks of what comes
back. Many calls at once, and cards to spread a model over, are for a model server
(`models/remote/openai.py`). Not for: calls of llama.cpp (`models/llama/process.py`)."""

import functools
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from errors import QUOTED, ModelError, said
from models.fingerprint import fingerprint
from models.options import THINKING, THOUGHTS, ModelOptions, answer_key
from models.pipe import Fields, Frame
from models.protocols import (
    CONTEXT_TOKENS,
    Ability,
    HeldModel,
    PathScores,
    Prompt,
    Said,
    TextKind,
    Vectors,
    unit_rows,
)
from models.text import (
    CHARACTERS_A_TOKEN,
    MANY_SCRIPTS,
    TEXTS_AT_ONCE,
    checked_json,
    instructed,
    printable,
    reads_latin,
    without_thoughts,
)
from models.worker import Limits, Worker

ENCODED_TOKENS: Final = 512
"""Tokens of a text to embed; of a query and a text to rerank, together, twice as
many."""


class GgufModel(HeldModel):
    """What the three share: file and process."""

    runs_on = "llama.cpp in a process of its own"
    role: ClassVar[str]
    longest: ClassVar[int] = ENCODED_TOKENS
    """Tokens of the context, where nothing else is set and the model was trained for
    as many."""

    def __init__(
        self,
        path: Path,
        *,
        limits: Limits | None = None,
        options: ModelOptions | None = None,
    ) -> None:
        self._path = path
        self._limits = limits
        self._options = options or {}
        self._worker: Worker | None = None
        self._served = ""
        """Fingerprint of the file that the process was started for."""
        self._facts: dict[str, Any] = {}
        """What the file's header says: name, dimension, context (tokens that the model
        was trained for) and vocabulary (its size); nothing before it was asked for."""

    @property
    def name(self) -> str:
        """File, runtime, and the file's fingerprint."""
        return f"{self._path.stem}:llama:{self._digest()}"

    @property
    def pid(self) -> int | None:
        """Process id of the model's process while it runs, for status displays."""
        return self._worker.pid if self._worker is not None else None

    async def prepare(self) -> None:
        """Ask the process for the facts in the file's header; raises nothing."""
        with suppress(ModelError):
            await self._describe()

    async def aclose(self) -> None:
        """End the process; a later call would start it again."""
        if self._worker is not None:
            await self._worker.aclose()

    async def _describe(self) -> Mapping[str, Any]:
        if not self._facts:
            self._facts = dict((await self._ask("describe")).fields)
        return self._facts

    async def _ask(self, doing: str, request: Fields | None = None) -> Frame:
        digest = self._digest()
        if self._worker is not None and self._served != digest:
            # The file was replaced: answers under its name must not come from the old one's
            # weights.
            await self._worker.aclose()
            self._worker, self._facts = None, {}
        if self._worker is None:
            self._served = digest
            self._worker = Worker(
                "models.llama.process",
                {
                    "path": str(self._path),
                    "role": self.role,
                    "longest": self._context(),
                    "options": dict(self._options),
                },
                label=f"{self.role} {self._path.name}",
                limits=self._limits,
            )
        return await self._worker.call({"do": doing}, json.dumps(request).encode())

    def _context(self) -> int:
        return self.longest

    def _digest(self) -> str:
        """Return the fingerprint of the file as it is now; raises `ModelError` where it
        cannot be read."""
        try:
            status = self._path.stat()
        except OSError:
            return fingerprint([self._path])
        seen = (status.st_size, status.st_mtime_ns, status.st_ino)
        return _fingerprint_of(self._path, seen)

    async def _encode(
        self, doing: str, texts: Sequence[str], *, width: int, query: str = ""
    ) -> NDArray[np.float32]:
        """Return a row for each text [n, width], the texts cut to what the process
        reads; no row for no texts.

        Raises `ModelError` where the model gives the wrong count of numbers, or some
        that are not finite.
        """
        rows_of_batches = [np.zeros((0, width), dtype=np.float32)]
        characters = self.longest * CHARACTERS_A_TOKEN
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            batch = [
                _sendable(text[:characters])
                for text in texts[start : start + TEXTS_AT_ONCE]
            ]
            request = {"texts": batch, "query": _sendable(query[:characters])}
            frame = await self._ask(doing, request)
            rows = np.frombuffer(frame.blob, dtype=np.float32)
            if rows.size != len(batch) * width or not np.isfinite(rows).all():
                raise ModelError(
                    (
                        f"{self._path} returned {rows.size} numbers for "
                        f"{len(batch)} texts, not a vector of {width} finite "
                        "numbers for each."
                    ),
                    hint="Set another GGUF file.",
                )
            rows_of_batches.append(rows.reshape(len(batch), width))
        return np.concatenate(rows_of_batches)


class LlamaEmbedder(GgufModel):
    """An `Embedder` from a GGUF file with a pooling type."""

    role = "embedder"

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 until the file was described."""
        return int(self._facts.get("dimension", 0))

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's script: a small vocabulary is taken for
        English."""
        return self._facts.get("vocabulary", 0) >= MANY_SCRIPTS or reads_latin(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension] of the texts, each cut to 512 tokens; see
        `Embedder.embed`.

        The words that the model was trained to see before a query or a passage are put
        in front (`models/text.py`)."""
        facts = await self._describe()
        prepared = instructed(texts, kind, facts["name"], self._path.stem)
        return unit_rows(
            await self._encode("embed", prepared, width=facts["dimension"])
        )


class LlamaReranker(GgufModel):
    """A `Reranker` from a GGUF file with a classification head: bge-reranker,
    jina-reranker, Qwen3-Reranker.

    Scores are as the head gives them: logits for most, a probability for
    Qwen3-Reranker. A BERT reranker loses a layer in the conversion to GGUF and ranks
    worse than its ONNX form."""

    role = "reranker"
    longest = 2 * ENCODED_TOKENS

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one score a text [n]; query and text are cut to 1 024 tokens together;
        see `Reranker.score`."""
        return (await self._encode("score", texts, width=1, query=query))[:, 0]


class LlamaGenerator(GgufModel):
    """A `Generator` from a GGUF file, with the file's own chat template; a file without
    one continues text."""

    role = "generator"
    longest = CONTEXT_TOKENS
    abilities: frozenset[Ability] = frozenset(
        {"generate", "schema", "grammar", "score_tree"}
    )

    @property
    def name(self) -> str:
        """File, runtime, fingerprint, and the options that change an answer."""
        key = answer_key(self._options)
        return f"{super().name}:{key}" if key else super().name

    @property
    def context_tokens(self) -> int:
        """Tokens in prompt and answer together; until the file was described, they may
        be more than the model was trained for."""
        return min(self._context(), self._facts.get("context") or self._context())

    async def generate(
        self,
        messages: Sequence[Said],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
        grammar: str | None = None,
    ) -> str:
        """Return the answer's text, the most likely token each time unless a
        temperature is set; see `Generator.generate`; with
        `grammar` (GBNF, start symbol `root`), a text of it.

        Control tokens that are spelled in the messages are broken. A schema is kept by
        a grammar and checked. Raises `ModelError` for a schema together with a grammar,
        for thoughts without an answer, and for JSON that is cut or invalid.
        """
        if schema is not None and grammar is not None:
            raise ModelError(
                "Both a schema and a grammar were given; pass only one.",
                hint="Give one.",
            )
        await self._describe()
        free = self._options.get(THINKING) and schema is None and grammar is None
        thoughts = min(THOUGHTS, self.context_tokens // 2) if free else 0
        request = {
            "prompt": _prompt(messages),
            "max_tokens": max_tokens + thoughts,
            "schema": schema,
            "grammar": grammar,
        }
        frame = await self._counted("generate", request)
        text = frame.blob.decode("utf-8", "replace")
        if schema is None:
            return text if grammar is not None else self._answer(text)
        return checked_json(
            text, schema, model=self.name, cut=frame.fields.get("ended") == "length"
        )

    def _answer(self, text: str) -> str:
        """Return the answer after a model's thoughts; raises `ModelError` if it is
        empty."""
        answer, thoughts = without_thoughts(text)
        if thoughts and not answer.strip():
            raise ModelError(
                f"{self.name} thought for {len(thoughts)} characters and returned no answer: "
                f"{said(thoughts[-QUOTED:])}",
                hint="Set a model that does not think, or one whose chat template can switch it "
                "off.",
            )
        return answer

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return log P(path | prefix) of each path; see `TreeScorer.score_tree`.

        Of a prefix that begins like the last one, or like its last path, only the rest
        is evaluated."""
        if not paths:
            return PathScores(np.zeros(0, dtype=np.float64), 0, 0, 0, 0)
        await self._describe()
        request = {
            "prompt": _prompt(prefix),
            "texts": list(map(_sendable, paths)),
            "among_siblings": among_siblings,
        }
        frame = await self._counted("score_tree", request)
        counts = ("evaluated", "prefix", "tree", "apart")
        evaluated, before, tree, apart = (
            int(str(frame.fields[count])) for count in counts
        )
        scores = np.frombuffer(frame.blob, dtype=np.float64)
        return PathScores(scores, evaluated, before, tree, before * len(paths) + apart)

    async def _counted(self, doing: str, request: Fields) -> Frame:
        frame = await self._ask(doing, request)
        self.tokens += int(str(frame.fields["evaluated"]))
        return frame

    def _context(self) -> int:
        return int(self._options.get("n_ctx", self.longest))


@functools.lru_cache(maxsize=16)
def _fingerprint_of(path: Path, _seen: tuple[int, int, int]) -> str:
    return fingerprint([path])


def _prompt(prompt: Prompt) -> str | list[dict[str, str]]:
    if isinstance(prompt, str):
        return _sendable(prompt)
    return [{"role": item.role, "content": _sendable(item.content)} for item in prompt]


def _sendable(text: str) -> str:
    # A NUL ends a C string early.
    return printable(text).replace("\x00", " ")
