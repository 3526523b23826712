"""Embeddings and rerank scores through llama.cpp, with the texts of concurrent calls in shared batches.

Runs in a model's own process. A text over the micro-batch, which ends the process, is cut first, its closing token
kept. Not for: generators (`models/llama/decode.py`).
"""

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.counters import Counters
from models.llama.native import DONE, Native, Row
from models.pipe import Fields, Frame, refusal

PACKED: Final = 512
"""Tokens of a batch of several texts: llama.cpp's attention spans the whole micro-batch, so that a larger one is slower
for short texts (notes/models §1). One longer text goes alone."""
RANK: Final = 4
"""llama.cpp's pooling type of a classification head."""
QUERY_SHARE: Final = 2
"""A query takes at most one part in this many of a pair."""


@dataclass(frozen=True, slots=True)
class _Text:
    """One text of a call."""

    call: int
    place: int
    tokens: list[int]


@dataclass(slots=True)
class _Asked:
    """One call: its rows as far as they are computed."""

    rows: NDArray[np.float32]
    missing: int


@dataclass(slots=True)
class _TextCounters(Counters):
    texts: int = 0


@dataclass(slots=True)
class Encoder:
    """An `Engine` for embedders and rerankers."""

    native: Native
    role: Literal["embedder", "reranker"]
    width: int
    cancelled: set[int]
    running: set[int]
    """The calls of the batch that is computed now; shared with the abort callback."""
    _waiting: deque[_Text] = field(default_factory=deque)
    _asked: dict[int, _Asked] = field(default_factory=dict)
    _ready: list[tuple[int, Frame]] = field(default_factory=list)
    _counters: _TextCounters = field(default_factory=_TextCounters)

    @property
    def facts(self) -> Fields:
        """Device, layers and reason."""
        return {
            **self.native.facts,
            "longest": self.native.plan.batch,
        }

    @property
    def busy(self) -> bool:
        """Whether a text waits."""
        return bool(self._waiting or self._ready)

    def accept(self, call: int, frame: Frame) -> None:
        """Take in `embed` (texts), `score` (query and texts) or `count`.

        Raises:
            ModelError: The model has no vector for a text.
        """
        doing = frame.fields.get("do")
        if doing == "count":
            self._ready.append((call, Frame(self._counters.told())))
            return
        if self.native.pooling == 0:
            raise ModelError(
                f"{self.native.path} gives a vector a token, not a text.",
                hint="Set a GGUF file with a pooling type, made for embeddings.",
            )
        asked = json.loads(frame.blob)
        texts = asked if doing == "embed" else asked["texts"]
        query = None if doing == "embed" else asked["query"]
        self._counters.calls += 1
        self._asked[call] = _Asked(np.zeros((len(texts), self.width), dtype=np.float32), len(texts))
        for place, text in enumerate(texts):
            tokens = self._cut(text) if query is None else self._pair(query, text)
            self._waiting.append(_Text(call, place, tokens))
        self._finish(call)

    def drop(self, call: int) -> None:
        """Forget a call's texts."""
        self._asked.pop(call, None)
        self._waiting = deque(text for text in self._waiting if text.call != call)

    def step(self) -> list[tuple[int, Frame]]:
        """Compute one batch of the texts that wait, whichever calls they are of; return what is done."""
        batch: list[_Text] = []
        size = 0
        while self._waiting and len(batch) < self.native.plan.sequences:
            longer = size + len(self._waiting[0].tokens)
            if batch and longer > min(PACKED, self.native.plan.batch):
                break
            batch.append(self._waiting.popleft())
            size = longer
        if batch:
            self._compute(batch)
        done, self._ready = self._ready, []
        return done

    def _compute(self, batch: list[_Text]) -> None:
        rows = [
            Row(token, position, (sequence,), wanted=True)
            for sequence, text in enumerate(batch)
            for position, token in enumerate(text.tokens)
        ]
        calls = {text.call for text in batch}
        self.running.clear()
        self.running.update(calls)
        try:
            if self.native.compute(rows) != DONE:
                # Aborted: all of its calls are cancelled, and dropped when the message that says so is read.
                self.native.forget(range(len(batch)))
                return
            for sequence, text in enumerate(batch):
                if text.call in self._asked:
                    self._asked[text.call].rows[text.place] = self.native.vector(sequence, self.width)
                    self._asked[text.call].missing -= 1
        except ModelError as error:
            for call in calls:
                self.drop(call)
                self._ready.append((call, refusal(error)))
            return
        finally:
            self.running.clear()
        self.native.forget(range(len(batch)))
        self._counters.texts += len(batch)
        self._counters.add_batch(tokens=len(rows), calls=len(calls))
        for call in calls:
            self._finish(call)

    def _finish(self, call: int) -> None:
        asked = self._asked.get(call)
        if asked is not None and asked.missing == 0:
            del self._asked[call]
            self._ready.append((call, Frame({"width": self.width}, asked.rows.tobytes())))

    def _cut(self, text: str) -> list[int]:
        """Return the tokens of a text, at most the micro-batch. Text is data: one that spells [SEP] does not get it."""
        tokens = self.native.tokenize(text)
        most = self.native.plan.batch
        if not tokens:
            return [max(self.native.edges[0], 0)]
        if len(tokens) <= most:
            return tokens
        closing = tokens[-1] in self.native.edges[1:]
        return [*tokens[: most - 1], tokens[-1]] if closing else tokens[:most]

    def _pair(self, query: str, text: str) -> list[int]:
        """Return the tokens of a query and a text as the model was trained to see them together, the text cut to
        fit."""
        template = self.native.metadata("tokenizer.chat_template.rerank")
        if template:
            return self._templated(template, query, text)
        first, last, between = self.native.edges
        ends = last if last >= 0 else between
        parts = [between if between >= 0 else ends] if self._two_separators() else []
        asked = self.native.tokenize(query, ends=False)[: self.native.plan.batch // QUERY_SHARE]
        room = self.native.plan.batch - len(asked) - 4
        told = self.native.tokenize(text, ends=False)[:room]
        whole = [first, *asked, ends, *parts, *told, ends]
        return [token for token in whole if token >= 0]

    def _two_separators(self) -> bool:
        """Whether a second token stands between query and text: in XLM-RoBERTa's form it does, in BERT's it does not.

        Files of 2025 and later say so; earlier ones are judged by their tokeniser.
        """
        told = self.native.metadata("tokenizer.ggml.add_sep_token")
        return told == "true" if told is not None else self.native.metadata("tokenizer.ggml.model") != "bert"

    def _templated(self, template: str, query: str, text: str) -> list[int]:
        """Return the tokens of the file's own rerank template, with the text cut by its tokens."""
        before, _, after = template.partition("{document}")
        defused = self.native.template.defused
        asked = defused(query)
        head = self.native.tokenize(before.replace("{query}", asked), special=True)
        tail = self.native.tokenize(after.replace("{query}", asked), special=True, ends=False)
        room = self.native.plan.batch - len(head) - len(tail)
        if room <= 0:
            raise ModelError(
                f"The query takes all {self.native.plan.batch} tokens of the reranker.", hint="Shorten it."
            )
        return [*head, *self.native.tokenize(defused(text), ends=False)[:room], *tail]
