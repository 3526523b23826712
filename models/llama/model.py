"""GGUF models through llama.cpp, each in a process of its own: embedder, reranker and
generator.

The process starts at the first use (`models/worker.py`); this file holds what the
server's side knows: the file's header, the requests, the checks of what comes back. Not
for: native calls (`models/llama/native.py`)."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from errors import QUOTED, ModelError, said
from models.llama.gguf import Header, read_header
from models.llama.placement import BATCH_TOKENS, BUFFERS, KV_SIZES, Plan, Weights
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
    instructions_for,
    printable,
    reads_latin,
    without_thoughts,
)
from models.tuning import THOUGHTS, USUAL, Tuning
from models.worker import Limits, MemoryBudget, Worker

TEXTS: Final = BATCH_TOKENS // 8
"""Texts of one batch of an embedder or a reranker."""
WIDE_CACHE: Final = 1_000_000_000
"""Bytes up to which a generator keeps keys and values as 32-bit floats: scores then
depend on what else is in a batch by 2e-5 nats instead of 1e-3."""


class GgufModel(HeldModel):
    """What the three share: file, header, process."""

    runs_on = "llama.cpp in a process of its own"

    def __init__(
        self,
        path: Path,
        *,
        limits: Limits | None = None,
        budget: MemoryBudget | None = None,
        tuning: Tuning = USUAL,
    ) -> None:
        """Name a GGUF file, the limits of its process, the memory that it shares with
        others, and how it is run; nothing is read."""
        self._path = path
        self.tuning = tuning
        self._limits = limits
        self._budget = budget
        self._worker: Worker | None = None
        self._working = ""
        """Fingerprint of the file that the process was started for."""
        self._read: tuple[tuple[int, int, int], Header] | None = None

    @property
    def _header(self) -> Header:
        """Header of the file as it is now; the last one read where the file was removed
        under a running process.

        Raises `ModelError` where neither can be had.
        """
        try:
            status = self._path.stat()
        except OSError:
            return self._read[1] if self._read is not None else read_header(self._path)
        seen = (status.st_size, status.st_mtime_ns, status.st_ino)
        if self._read is None or self._read[0] != seen:
            self._read = (seen, read_header(self._path))
        return self._read[1]

    @property
    def name(self) -> str:
        """File, runtime, and the file's fingerprint."""
        key = self.tuning.key
        return f"{self._path.stem}:llama:{self._header.digest}" + (
            f":{key}" if key else ""
        )

    @property
    def pid(self) -> int | None:
        """Process id of the model's process while it runs, for status displays."""
        return self._worker.pid if self._worker is not None else None

    @property
    def placement(self) -> Fields:
        """Backend, device, layers, threads and the reason, once the model was loaded;
        empty before."""
        return self._worker.facts if self._worker is not None else {}

    async def aclose(self) -> None:
        """End the process; a later call would start it again."""
        if self._worker is not None:
            await self._worker.aclose()

    async def counters(self) -> Fields:
        """Return what the process computed so far: calls, batches, tokens, most calls
        in a batch."""
        return (await self._ask("count")).fields

    @property
    def plan(self) -> Plan:
        """How its context is made."""
        raise NotImplementedError

    @property
    def weights(self) -> Weights:
        """Sizes that decide where it fits."""
        header, plan = self._header, self.plan
        cells = plan.context if plan.role == "generator" else 0
        bytes_of_cells = int(header.token_bytes * cells * KV_SIZES[plan.kv or "f16"])
        return Weights(
            header.layers + 1, header.file_bytes, bytes_of_cells, header.output_bytes
        )

    async def _ask(self, doing: str, request: object = None) -> Frame:
        header, plan = self._header, self.plan
        if self._worker is not None and self._working != header.digest:
            # The file was replaced: answers under its name must not come from the old one's
            # weights.
            old, self._worker = self._worker, None
            await old.aclose()
        if self._worker is None:
            self._working = header.digest
            weights = self.weights
            self._worker = Worker(
                "models.llama.process",
                {
                    "path": str(self._path),
                    "plan": asdict(plan),
                    "weights": asdict(weights),
                },
                label=f"{plan.role} {self._path.name}",
                limits=self._limits,
                budget=self._budget,
                needs=weights.file_bytes + weights.context_bytes + BUFFERS,
            )
        return await self._worker.call({"do": doing}, json.dumps(request).encode())

    async def _encode(
        self, doing: str, texts: Sequence[str], **request: object
    ) -> NDArray[np.float32]:
        """Return a row for each text [n, width], the texts cut to what the process
        reads; no row for no texts.

        Raises `ModelError` where the model gives the wrong count of numbers, or some
        that are not finite.
        """
        plan = self.plan
        found = [np.zeros((0, plan.width), dtype=np.float32)]
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = [
                _sendable(text[: plan.batch * CHARACTERS_A_TOKEN])
                for text in texts[start:][:TEXTS_AT_ONCE]
            ]
            frame = await self._ask(doing, {"texts": part, **request})
            rows = np.frombuffer(frame.blob, dtype=np.float32)
            if rows.size != len(part) * plan.width or not np.isfinite(rows).all():
                raise ModelError(
                    (
                        f"{self._path} returned {rows.size} numbers for "
                        f"{len(part)} texts, not a vector of {plan.width} finite "
                        "numbers for each."
                    ),
                    hint="Set another GGUF file.",
                )
            found.append(rows.reshape(len(part), plan.width))
        return np.concatenate(found)


class LlamaEmbedder(GgufModel):
    """An `Embedder` from a GGUF file with a pooling type."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._header.embedding_length

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's script: a small vocabulary is taken for
        English."""
        return self._header.vocabulary >= MANY_SCRIPTS or reads_latin(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension] of the texts, each cut to 512 tokens; see
        `Embedder.embed`.

        The words that the model was trained to see before a query or a passage are put
        in front (`models/text.py`)."""
        words = instructions_for(self._header.name, self._path.stem)
        return unit_rows(
            await self._encode(
                "embed", [words.prepend(text, kind=kind) for text in texts]
            )
        )

    @property
    def plan(self) -> Plan:
        """How its context is made: a text is read in one batch."""
        return _encoder_plan(
            "embedder", BATCH_TOKENS, self._header, self.tuning, width=self.dimension
        )


class LlamaReranker(GgufModel):
    """A `Reranker` from a GGUF file with a classification head: bge-reranker,
    jina-reranker, Qwen3-Reranker.

    Scores are as the head gives them: logits for most, a probability for
    Qwen3-Reranker. A BERT reranker loses a layer in the conversion to GGUF and ranks
    worse than its ONNX form."""

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one score a text [n]; query and text are cut to 1 024 tokens together;
        see `Reranker.score`.

        Raises `ModelError` for a file without a classification head.
        """
        if not self._header.classifies:
            # Rank pooling without these tensors ends the process.
            raise ModelError(
                f"{self._path} has no classification head, so it cannot rerank.",
                hint=(
                    "Set a GGUF file of a reranker; convert Qwen3-Reranker with "
                    "llama.cpp's convert_hf_to_gguf.py."
                ),
            )
        asked = _sendable(query[: self.plan.batch * CHARACTERS_A_TOKEN])
        return (await self._encode("score", texts, query=asked))[:, 0]

    @property
    def plan(self) -> Plan:
        """How its context is made: query and text are read in one batch."""
        return _encoder_plan(
            "reranker", 2 * BATCH_TOKENS, self._header, self.tuning, width=1
        )


class LlamaGenerator(GgufModel):
    """A `Generator` from a GGUF file, with the file's own chat template; a file without
    one continues text."""

    abilities: frozenset[Ability] = frozenset(
        {"generate", "schema", "grammar", "choose", "score_tree"}
    )

    @property
    def context_tokens(self) -> int:
        """Tokens in prompt and answer together."""
        return min(self.tuning.context or CONTEXT_TOKENS, self._header.context_length)

    async def generate(
        self,
        messages: Sequence[Said],
        *,
        max_tokens: int,
        schema: dict[str, object] | None = None,
        grammar: str | None = None,
    ) -> str:
        """Return the answer's text, the most likely token each time unless a
        temperature is set; see `GrammarWriter.generate`.

        Control tokens that are spelled in the messages are broken. A schema is kept by
        a grammar and checked. Raises `ModelError` for a schema together with a grammar,
        for thoughts without an answer, and for JSON that is cut or invalid.
        """
        if schema is not None and grammar is not None:
            raise ModelError(
                "Both a schema and a grammar were given; pass only one.",
                hint="Give one.",
            )
        free = self.tuning.thinking and schema is None and grammar is None
        thoughts = min(THOUGHTS, self.context_tokens // 2) if free else 0
        request = {
            "prompt": _prompt(messages),
            "max_tokens": max_tokens + thoughts,
            "schema": schema,
            "grammar": grammar,
        }
        frame = await self._ask("generate", request)
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

    async def choose(
        self, prompt: Prompt, options: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return the probability of each option [n], exact, from one pass over the
        prompt; see `Chooser.choose`. Empty without options."""
        if not options:
            return np.zeros(0, dtype=np.float64)
        frame = await self._ask(
            "choose",
            {"prompt": _prompt(prompt), "texts": list(map(_sendable, options))},
        )
        return np.frombuffer(frame.blob, dtype=np.float64)

    async def score_tree(
        self, prefix: Prompt, paths: Sequence[str], *, among_siblings: bool = False
    ) -> PathScores:
        """Return log P(path | prefix) of each path; see `TreeScorer.score_tree`.

        Of a prefix that begins like the last one, or like its last path, only the rest
        is evaluated."""
        if not paths:
            return PathScores(np.zeros(0, dtype=np.float64), 0, 0, 0, 0)
        texts = list(map(_sendable, paths))
        request = {
            "prompt": _prompt(prefix),
            "texts": texts,
            "among_siblings": among_siblings,
        }
        frame = await self._ask("score_tree", request)
        counts = ("evaluated", "prefix", "tree", "apart")
        evaluated, before, tree, apart = (
            int(str(frame.fields[name])) for name in counts
        )
        scores = np.frombuffer(frame.blob, dtype=np.float64)
        return PathScores(scores, evaluated, before, tree, before * len(texts) + apart)

    @property
    def plan(self) -> Plan:
        """How its context is made: one cache that all sequences share."""
        context = self.context_tokens
        wide = 2 * self._header.token_bytes * context <= WIDE_CACHE
        kv = self.tuning.kv or ("f32" if wide else "")
        batch = min(self.tuning.batch or BATCH_TOKENS, context)
        return Plan("generator", context, batch, kv=kv, tuning=self.tuning)


def _encoder_plan(
    role: Literal["embedder", "reranker"],
    usual: int,
    header: Header,
    tuning: Tuning,
    *,
    width: int,
) -> Plan:
    longest = min(tuning.context or usual, header.context_length)
    return Plan(role, longest, longest, TEXTS, width=width, tuning=tuning)


def _prompt(prompt: Prompt) -> str | list[dict[str, str]]:
    if isinstance(prompt, str):
        return _sendable(prompt)
    return [{"role": item.role, "content": _sendable(item.content)} for item in prompt]


def _sendable(text: str) -> str:
    # A NUL ends a C string early.
    return printable(text).replace("\x00", " ")
