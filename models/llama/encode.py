"""Embeddings and rerank scores through llama.cpp, with the texts of concurrent calls in
shared batches.

Runs in a model's own process. A text over the micro-batch, which ends the process, is
cut first, its closing token kept. Not for: generators (`models/llama/decode.py`)."""

import json
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.llama.native import Code, Native, TokenRow
from models.llama.placement import BATCH_TOKENS
from models.pipe import Fields, Frame, refusal


@dataclass(frozen=True, slots=True)
class _EncodedText:
    """One text of a call."""

    call: int
    index: int
    tokens: list[int]


@dataclass(slots=True)
class _EncodeCall:
    """One call: its rows as far as they are computed."""

    rows: NDArray[np.float32]
    missing: int


class Encoder:
    """An `Engine` for embedders and rerankers."""

    def __init__(self, native: Native) -> None:
        """Take a loaded model."""
        self._native = native
        self.facts: Fields = native.facts
        self.counters = native.counters
        self._width = native.plan.width
        self._most = native.plan.batch
        self._waiting: deque[_EncodedText] = deque()
        self._asked: dict[int, _EncodeCall] = {}
        self._ready: list[tuple[int, Frame]] = []

    @property
    def busy(self) -> bool:
        """Whether a text waits."""
        return bool(self._waiting or self._ready)

    def accept(self, call: int, frame: Frame) -> None:
        """Take in `embed` (texts) or `score` (query and texts).

        Raises `ModelError` for a model without pooling. Without texts the answer is
        empty.
        """
        if self._native.pooling == 0:
            raise ModelError(
                f"{self._native.path} returns a vector per token, not per text.",
                hint="Set a GGUF file with a pooling type, made for embeddings.",
            )
        request = json.loads(frame.blob)
        texts, query = request["texts"], request.get("query")
        self._asked[call] = _EncodeCall(
            np.zeros((len(texts), self._width), dtype=np.float32), len(texts)
        )
        for index, text in enumerate(texts):
            tokens = self._cut(text) if query is None else self._pair(query, text)
            self._waiting.append(_EncodedText(call, index, tokens))
        self._finish(call)

    def drop(self, call: int) -> None:
        """Forget a call's texts."""
        self._asked.pop(call, None)
        self._waiting = deque(text for text in self._waiting if text.call != call)

    def step(self) -> list[tuple[int, Frame]]:
        """Compute one batch of the texts that wait, whichever calls they are of; return
        what is done."""
        batch: list[_EncodedText] = []
        size = 0
        while self._waiting and len(batch) < self._native.plan.sequences:
            longer = size + len(self._waiting[0].tokens)
            if batch and longer > min(BATCH_TOKENS, self._most):
                break  # a longer text goes alone
            batch.append(self._waiting.popleft())
            size = longer
        if batch:
            self._compute(batch)
        done, self._ready = self._ready, []
        return done

    def _compute(self, batch: list[_EncodedText]) -> None:
        rows = [
            TokenRow(token, position, (sequence,), wanted=True)
            for sequence, text in enumerate(batch)
            for position, token in enumerate(text.tokens)
        ]
        calls = {text.call for text in batch}
        try:
            # After an abort all of its calls are cancelled; they are dropped when the message that
            # says so is read.
            if self._native.compute(rows, calls) == Code.DONE:
                self._keep(batch)
            self._native.forget(range(len(batch)))
        except ModelError as error:
            for call in calls:
                self.drop(call)
                self._ready.append((call, refusal(error)))

    def _keep(self, batch: list[_EncodedText]) -> None:
        """Put the rows of a batch where they belong, and finish the calls that have all
        of theirs; rows of dropped calls are ignored."""
        for sequence, text in enumerate(batch):
            if text.call in self._asked:
                self._asked[text.call].rows[text.index] = self._native.vector(
                    sequence, self._width
                )
                self._asked[text.call].missing -= 1
        for call in {text.call for text in batch}:
            self._finish(call)

    def _finish(self, call: int) -> None:
        asked = self._asked.get(call)
        if asked is not None and asked.missing == 0:
            del self._asked[call]
            self._ready.append((call, Frame({}, asked.rows.tobytes())))

    def _cut(self, text: str) -> list[int]:
        """Return the tokens of a text to embed, at most the micro-batch, with its
        closing token kept (pairs to rerank: `_pair`).

        Text is data: one that spells [SEP] does not get it. An empty text gives one
        token.
        """
        tokens = self._native.tokenize(text)
        if not tokens:
            return [max(self._native.edges[0], 0)]
        if len(tokens) <= self._most:
            return tokens
        closing = tokens[-1] in self._native.edges[1:]
        return (
            [*tokens[: self._most - 1], tokens[-1]] if closing else tokens[: self._most]
        )

    def _pair(self, query: str, text: str) -> list[int]:
        """Return the tokens of a query and a text as the model was trained to see them
        together. The query is cut to half of the micro-batch, the text to the rest."""
        template = self._native.metadata("tokenizer.chat_template.rerank")
        if template:
            return self._templated(template, query, text)
        first, last, between = self._native.edges
        ends = last if last >= 0 else between
        # XLM-RoBERTa has a second separator between query and text, BERT has not. Files
        # of 2025 and later say so; earlier ones are judged by their tokeniser.
        added = self._native.metadata("tokenizer.ggml.add_sep_token")
        two = (
            added == "true"
            if added is not None
            else self._native.metadata("tokenizer.ggml.model") != "bert"
        )
        parts = [between if between >= 0 else ends] if two else []
        asked = self._native.tokenize(query, ends=False)[: self._most // 2]
        room = self._most - len(asked) - 4
        shown = self._native.tokenize(text, ends=False)[:room]
        whole = [first, *asked, ends, *parts, *shown, ends]
        return [token for token in whole if token >= 0]

    def _templated(self, template: str, query: str, text: str) -> list[int]:
        """Return the tokens of the file's own rerank template, with the text cut by its
        tokens.

        The query is not cut: raises `ModelError` where it leaves no token for the text.
        """
        before, _, after = template.partition("{document}")
        defused = self._native.template.defused
        asked = defused(query)
        head = self._native.tokenize(before.replace("{query}", asked), special=True)
        tail = self._native.tokenize(
            after.replace("{query}", asked), special=True, ends=False
        )
        room = self._most - len(head) - len(tail)
        if room <= 0:
            raise ModelError(
                f"The query takes all {self._most} tokens of the reranker.",
                hint="Shorten it.",
            )
        return [*head, *self._native.tokenize(defused(text), ends=False)[:room], *tail]
