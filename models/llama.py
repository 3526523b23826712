"""GGUF models through llama.cpp, each in a process of its own: an embedder and a generator.

The process starts at the first use (`models/worker.py`); this file holds what the server's side knows: the file's
header, the requests, the checks of what comes back. Not for: native calls (`models/llama_process.py`), rerankers
(issue 4).
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from errors import ModelError
from models.gguf import Header, read_header
from models.protocols import Message, TextKind, Vectors
from models.schema import checked_json
from models.text import CHARACTERS_A_TOKEN, MANY_SCRIPTS, printable, reads_latin
from models.vectors import unit_rows
from models.worker import Worker

CONTEXT: Final = 8_192
"""Most tokens of a generator's context: at 32 to 144 KiB a token (notes/models §5) this is 0.25 to 1.1 GB beside the
weights."""
TEXTS_A_REQUEST: Final = 256
"""Texts that go over the pipe at once."""
ENCODED_TOKENS: Final = 512
"""Tokens of a text that are read; the process cuts by tokens."""


class _Gguf:
    """What embedder and generator share: file, header, process."""

    def __init__(self, path: Path, *, role: str) -> None:
        self._path = path
        self._role = role
        self._worker: Worker | None = None

    @cached_property
    def _header(self) -> Header:
        return read_header(self._path)

    @property
    def name(self) -> str:
        """File, runtime, and a digest of the file's size and ends."""
        return f"{self._path.stem}:llama:{self._header.digest}"

    @property
    def pid(self) -> int | None:
        """Process id of the model's process while it runs, for status displays."""
        return self._worker.pid if self._worker is not None else None

    async def aclose(self) -> None:
        """End the process; a later call would start it again."""
        if self._worker is not None:
            await self._worker.aclose()

    def _process(self, context: int) -> Worker:
        if self._worker is None:
            arguments = {"path": str(self._path), "role": self._role, "context": context}
            self._worker = Worker("models.llama_process", arguments, label=f"{self._role} {self._path.name}")
        return self._worker


class LlamaEmbedder(_Gguf):
    """An `Embedder` from a GGUF file with a pooling type."""

    def __init__(self, path: Path) -> None:
        """Name the file; its header is read when first asked about, its weights at the first text."""
        super().__init__(path, role="embedder")

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._header.embedding_length

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's script: a small vocabulary is taken for English."""
        return self._header.vocabulary >= MANY_SCRIPTS or reads_latin(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return float32 vectors [n, dimension] of unit length, in the order of `texts`; each is cut to 512 tokens.

        Raises:
            ModelError: The process died, or the file is no embedding model.
        """
        worker = self._process(min(ENCODED_TOKENS, self._header.context_length))
        parts = [np.zeros((0, self.dimension), dtype=np.float32)]
        for start in range(0, len(texts), TEXTS_A_REQUEST):
            part = [
                _sendable(text[: ENCODED_TOKENS * CHARACTERS_A_TOKEN])
                for text in texts[start : start + TEXTS_A_REQUEST]
            ]
            frame = await worker.call({"do": "embed"}, json.dumps(part).encode())
            rows = np.frombuffer(frame.blob, dtype=np.float32)
            if rows.size != len(part) * self.dimension or not np.isfinite(rows).all():
                raise ModelError(
                    f"{self._path} gave {rows.size} numbers for {len(part)} texts of {self.dimension} dimensions.",
                    hint="Set a GGUF file of an embedding model.",
                )
            parts.append(rows.reshape(len(part), self.dimension))
        found = np.concatenate(parts)
        return unit_rows(found)


class LlamaGenerator(_Gguf):
    """A `Generator` from a GGUF file, with the file's own chat template; a file without one continues text."""

    def __init__(self, path: Path) -> None:
        """Name the file; its header is read when first asked about, its weights at the first answer."""
        super().__init__(path, role="generator")

    @property
    def context_tokens(self) -> int:
        """Tokens in prompt and answer together."""
        return min(CONTEXT, self._header.context_length)

    async def generate(
        self, messages: Sequence[Message], *, max_tokens: int, schema: dict[str, object] | None = None
    ) -> str:
        """Return the answer's text, the most likely token each time; with `schema`, JSON held to it by a grammar.

        Raises:
            ModelError: The process died, the prompt is longer than the context, or the answer was cut before its JSON
                was whole.
        """
        request = {
            "messages": [{"role": item.role, "content": _sendable(item.content)} for item in messages],
            "max_tokens": max_tokens,
            "schema": schema,
        }
        worker = self._process(self.context_tokens)
        frame = await worker.call({"do": "generate"}, json.dumps(request).encode())
        text = frame.blob.decode("utf-8", "replace")
        if schema is None:
            return text
        return checked_json(text, schema, model=self.name, cut=frame.fields.get("ended") == "length")


def _sendable(text: str) -> str:
    # A NUL ends a C string early.
    return printable(text).replace("\x00", " ")
