"""The reader that Winnow carries: a cross-encoder on onnxruntime that reads a question with a window of sentences.

Input, in training (`train/reader/`) as in reading: `[CLS] question [SEP] above: sentence sentence … [SEP]`. The graph
gives vectors of the tokens and the answer's logit; a sentence's logit comes from the mean and the largest of its
tokens, and from how near it is to the question. Not for: choosing windows (`pipeline/rank/`), making the file.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.fingerprint import DIGITS
from models.onnx import HINT, Loaded, OnnxBackend, load_model, padded, read_file, run_batches
from models.protocols import Vectors, Window, WindowReading, unit_rows
from models.text import CHARACTERS_A_TOKEN, Ids, Tokenizer, printable, reads_latin

MOST_TOKENS: Final = 256
"""Of question, what stands above, and sentences together: the positions that the graph has."""
QUESTION_TOKENS: Final = 48
ABOVE_TOKENS: Final = QUESTION_TOKENS // 2
"""The last ones: the innermost heading tells more than the title."""
SENTENCE_TOKENS: Final = 80
WEIGHTS: Final = "reader.onnx"
TOKENIZER: Final = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A question and a window as token ids."""

    ids: Ids
    asked: int
    """Tokens of the first part, `[CLS] question [SEP]`, which are of type 0."""
    starts: Ids
    """Where each sentence that fits begins, and where the last one ends."""


class OnnxReader(OnnxBackend):
    """A `CrossEncoder` on the processor, in threads of this process; safe to call from many tasks at once."""

    @property
    def name(self) -> str:
        """Model, quantisation, runtime, and twelve digits of the weights' sha256."""
        return self._card[0]

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's script: six in ten letters are Latin."""
        return reads_latin(text)

    async def read(self, question: str, windows: Sequence[Window]) -> list[WindowReading]:
        """Return one reading a window; see `CrossEncoder.read`.

        Windows of like length are read together, in threads; a cancelled call stops after the running batch.
        """
        if not windows:
            return []
        model = await self._ready()
        encoded = await anyio.to_thread.run_sync(encode, model.tokenizer, question, windows)
        found: dict[int, WindowReading] = {}

        def run(batch: list[int]) -> None:
            readings = self._run(model, [encoded[place] for place in batch])
            for place, (keep, answers) in zip(batch, readings, strict=True):
                whole = np.zeros(len(windows[place].sentences), dtype=np.float32)
                whole[: len(keep)] = keep
                found[place] = WindowReading(whole, answers)

        await run_batches([len(window.ids) for window in encoded], run)
        return [found[place] for place in range(len(windows))]

    @cached_property
    def _card(self) -> tuple[str, dict[str, str]]:
        """The model's name, and the hashes of its files by their names."""
        try:
            manifest = json.loads(read_file(self._folder / "manifest.json"))
            own = manifest["reader"]
            sha256 = {name: str(manifest["sha256"][name]) for name in (TOKENIZER, own.get("shares")) if name}
            sha256[WEIGHTS] = str(own["sha256"])
            return f"{own['name']}:{own['quantisation']}:onnx:{own['sha256'][:DIGITS]}", sha256
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{self._folder / 'manifest.json'} describes no reader: {error!r}.", hint=HINT) from error

    def _load(self) -> Loaded:
        return load_model(self._folder / WEIGHTS, self._folder / TOKENIZER, sha256=self._card[1])

    def _run(self, model: Loaded, batch: list[Encoded]) -> list[tuple[Vectors, float]]:
        ids, mask = padded([window.ids for window in batch])
        types = mask.copy()
        for row, window in enumerate(batch):
            types[row, : window.asked] = 0
        outputs = model.run({"input_ids": ids, "attention_mask": mask, "token_type_ids": types})
        hidden, tokens, answer, head = outputs
        readings = [
            (sigmoid(keep_logits(hidden[row], tokens[row], head, window)), float(sigmoid(answer[row])))
            for row, window in enumerate(batch)
        ]
        if not all(np.isfinite(answers) and np.isfinite(keep).all() for keep, answers in readings):
            raise ModelError(f"{model.path} gave probabilities that are not finite.", hint=HINT)
        return readings


def encode(tokenizer: Tokenizer, question: str, windows: Sequence[Window]) -> list[Encoded]:
    """Return question and window together, for each window."""
    texts = [question, *(text for window in windows for text in (window.above, *window.sentences))]
    ids = iter(tokenize(tokenizer, texts))
    asked = next(ids)
    return [join(tokenizer, asked, next(ids), [next(ids) for _ in window.sentences]) for window in windows]


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Ids]:
    """Return the token ids of texts, without special tokens; no text is longer than `MOST_TOKENS` could need."""
    # What stands above counts from its end, and is short.
    cut = [printable(text[: SENTENCE_TOKENS * CHARACTERS_A_TOKEN]) for text in texts]
    return tokenizer.encode(cut)


def join(tokenizer: Tokenizer, question: Ids, above: Ids, sentences: Sequence[Ids]) -> Encoded:
    """Return one input of at most `MOST_TOKENS`; from the first sentence that does not fit, none is in it."""
    first, last, unknown, colon = tokenizer.ids_of("[CLS]", "[SEP]", "[UNK]", ":")
    ids = [first, *question[:QUESTION_TOKENS], last]
    asked = len(ids)
    if above:
        ids += [*above[-ABOVE_TOKENS:], colon]
    starts = [len(ids)]
    for sentence in sentences:
        # A sentence without tokens (an image's, or signs that the vocabulary drops) keeps a place of its own.
        ids += sentence[:SENTENCE_TOKENS] or [unknown]
        if len(ids) >= MOST_TOKENS:
            break
        starts.append(len(ids))
    return Encoded([*ids[: starts[-1]], last], asked, starts)


def keep_logits(hidden: Vectors, tokens: Vectors, head: Vectors, window: Encoded) -> Vectors:
    """Return a logit for each sentence of `window` that fits.

    `hidden` are the last layer's vectors [tokens, width], `tokens` the same through the head's own layer; `head` has
    the weights of a sentence's mean, its maximum and its nearness to the question, and a bias [3 width + 1].
    """
    width = hidden.shape[1]
    starts = np.asarray(window.starts[:-1])
    if not len(starts):
        return np.zeros(0, dtype=np.float32)
    end = window.starts[-1]
    lengths = np.diff(window.starts)[:, None].astype(np.float32)
    mean = np.add.reduceat(tokens[:end], starts) / lengths
    largest = np.maximum.reduceat(tokens[:end], starts)
    question = unit_rows(hidden[1 : window.asked].sum(axis=0, keepdims=True))
    near = unit_rows(np.add.reduceat(hidden[:end], starts)) * question
    return np.asarray(np.concatenate([mean, largest, near], axis=1) @ head[: 3 * width] + head[-1], dtype=np.float32)


def sigmoid(logits: NDArray[np.float32]) -> Vectors:
    """Return probabilities."""
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))), dtype=np.float32)
