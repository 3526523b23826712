"""Models on onnxruntime: files checked and loaded at the first use, batches side by
side; the embedder and the reader.

A session runs each batch on one thread; several batches run at once, over all models
together no more than there are cores. `manifest.json` describes the embedders that
Winnow carries.

The reader that Winnow carries is a cross-encoder that reads a question with a window of
sentences. Input, in training (`train/reader/`) as in reading: `[CLS] question [SEP]
above: sentence sentence … [SEP]`. The graph gives vectors of the tokens and the
answer's logit; a sentence's logit comes from the mean and the largest of its tokens,
and from how near it is to the question. Not for: making the files (`models/embedded/`),
caching, other runtimes, or choosing windows (`pipeline/reading/`)."""

import ctypes
import hashlib
import importlib
import json
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.fingerprint import DIGITS
from models.protocols import (
    HeldModel,
    TextKind,
    Vectors,
    Window,
    WindowReading,
    unit_rows,
)
from models.shares import MOST_CORES, piece, usable_cores
from models.text import (
    CHARACTERS_A_TOKEN,
    TEXTS_AT_ONCE,
    printable,
    reads_latin,
)
from models.tokenizer import PIECES, Ids, Tokenizer, open_tokenizer

EMBEDDED: Final = Path(__file__).resolve().parent / "embedded"
"""The folder of the weights that Winnow carries."""
MULTILINGUAL: Final = EMBEDDED / "multilingual"
"""The folder of the carried embedder of many languages."""

MATRICES: Final = "matrices.npz"
"""A file beside `model.onnx` with its matrices in 4 bits, where they are not in it."""
BATCH_TOKENS: Final = 256
"""Padded tokens per batch: small batches stay in the processor's cache, and a canceled
call ends sooner (measured: docs/log.md, 2026-11-27)."""
HINT: Final = (
    "Reinstall Winnow if it brought this model; else correct the "
    "files, or set another model or 'none'."
)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory."""

    session: Any
    """`onnxruntime.InferenceSession`, which is published without types."""
    tokenizer: Tokenizer
    inputs: frozenset[str]
    failures: tuple[type[Exception], ...]
    path: Path

    def run(self, feed: Mapping[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """Return all outputs for the inputs of `feed` that the model has; raises
        `ModelError` where onnxruntime fails."""
        try:
            outputs: list[NDArray[np.float32]] = self.session.run(
                None, {name: feed[name] for name in feed if name in self.inputs}
            )
        except self.failures as error:
            rows, width = feed["input_ids"].shape
            raise ModelError(
                f"onnxruntime failed on {rows} texts of {width} tokens with {self.path}: {error}",
                hint="Try again; if it fails again, the file does not fit this runtime.",
            ) from error
        return outputs


class OnnxBackend(HeldModel, ABC):
    """A model in a folder, loaded at the first use, once, whichever thread asks."""

    def __init__(self, folder: Path = EMBEDDED) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._model: LoadedModel | None = None

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory."""
        return self._model is not None

    @abstractmethod
    def _load(self) -> LoadedModel:
        """Return the model of the folder; called in a thread."""

    async def _ready(self) -> LoadedModel:
        """Return the model, loaded in a thread; see `load_model`. A load that failed is
        tried again at the next call."""

        def once() -> LoadedModel:
            with self._lock:
                self._model = self._model or self._load()
                return self._model

        return await anyio.to_thread.run_sync(once)


async def run_batches(lengths: Sequence[int], run: Callable[[list[int]], None]) -> None:
    """Call `run` in threads with the numbers of texts that make a batch, until each
    text was in one.

    A cancelled call stops after the running batches; so does one of which a batch
    failed, with that error."""
    batches = _batches(lengths)

    async def work() -> None:
        for batch in batches:
            async with piece():
                await anyio.to_thread.run_sync(run, batch, limiter=_limiter())

    try:
        async with anyio.create_task_group() as group:
            for _ in range(_workers()):
                group.start_soon(work)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures


def padded(
    batch: Sequence[Sequence[int]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return zero-padded token ids [n, longest], and the attention mask; `batch` must
    not be empty."""
    ids = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return ids, mask


def read_file(path: Path, *, sha256: str | None = None) -> bytes:
    """Return a model's file; raises `ModelError` where it cannot be read, or its
    `sha256` is another."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"Cannot read {path}, a file of the model: {error.strerror}.", hint=HINT
        ) from error
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise ModelError(
            (f"{path} is damaged: its SHA-256 is not the one in manifest.json."),
            hint=HINT,
        )
    return data


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield indices of texts, longest first, so that rows x longest row stays within
    BATCH_TOKENS; a longer text is a batch by itself."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        rows = max(1, BATCH_TOKENS // max(1, lengths[order[start]]))
        yield order[start : start + rows]
        start += rows


def _workers() -> int:
    """Return how many batches may run side by side: the cores this process may use, at
    most MOST_CORES."""
    return min(usable_cores(), MOST_CORES)


_limits: Final = anyio.lowlevel.RunVar[anyio.CapacityLimiter]("winnow_onnx_limit")


def _limiter() -> anyio.CapacityLimiter:
    """Return the event loop's one limiter of batches: all calls and models together use
    so many threads."""
    limiter = _limits.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_workers())
        _limits.set(limiter)
    return limiter


@cache
def load_model(
    path: Path,
    tokenizer: Path,
    hashes: tuple[tuple[str, str], ...],
    max_tokens: int | None = None,
) -> LoadedModel:
    """Return the model of an ONNX file and its tokeniser, loaded once a process: a
    session takes .1 s of processor time to load, and may run in many threads.

    `hashes` are file names and their sha256;
    `max_tokens` as in `open_tokenizer`. Raises `ModelError`: a file is missing,
    damaged, or none that can be read."""
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    # One thread per batch, batches in parallel; spinning threads halve the speed.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Errors come as exceptions; the log would go to stderr.
    options.log_severity_level = 4
    # Our graph is already in fused operators; more fusion makes it 15 % slower.
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_BASIC
    for name, digest in hashes:
        read_file(path.with_name(name), sha256=digest)
    if path.with_name(MATRICES).is_file():
        matrices = _unpacked(path.with_name(MATRICES))
        values = map(onnxruntime.OrtValue.ortvalue_from_numpy, matrices.values())
        options.add_external_initializers(list(matrices), list(values))
    # What onnxruntime raises has no base class of its own.
    raised = vars(onnxruntime.capi.onnxruntime_pybind11_state).values()
    failures = (RuntimeError, *(kind for kind in raised if _is_exception(kind)))
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except failures as error:
        raise ModelError(
            f"{path} is not a model that onnxruntime can load: {error}", hint=HINT
        ) from error
    _give_back_memory()
    inputs = frozenset(item.name for item in session.get_inputs())
    read = read_tokenizer(tokenizer, max_tokens=max_tokens)
    return LoadedModel(session, read, inputs, failures, path)


def _is_exception(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Exception)


def _give_back_memory() -> None:
    """Have the C library return freed memory to the system, where it can: of the
    embedder of many languages 44 MB are left over from loading."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


def _unpacked(path: Path) -> dict[str, NDArray[np.int8]]:
    """Return the matrices [in, out] of a file by name, from 4 bits to 8
    (`train/embedder/graph.py`).

    Each has the two halves of its bytes, the scale of each block of 32, what its
    columns are eased by, and the scale of each row in 8 bits."""
    matrices: dict[str, NDArray[np.int8]] = {}
    with np.load(path) as arrays:
        for name in dict.fromkeys(key.rpartition(":")[0] for key in arrays.files):
            packed, scales, easing, rows = (
                arrays[f"{name}:{number}"] for number in range(4)
            )
            halves = packed.reshape(*scales.shape, -1)
            steps = np.concatenate([halves & 15, halves >> 4], axis=2)
            floats = (steps.astype(np.float32) - 8) * scales[:, :, None]
            weights = floats.astype(np.float32).reshape(len(rows), -1)
            rounded = np.round(weights * easing / rows[:, None]).clip(-127, 127)
            matrices[name] = np.ascontiguousarray(rounded.astype(np.int8).T)
    return matrices


def read_tokenizer(path: Path, *, max_tokens: int | None = None) -> Tokenizer:
    """Return the tokeniser of a file; `max_tokens` as in `open_tokenizer`. Raises
    `ModelError` where it is none."""
    try:
        return open_tokenizer(read_file(path), path, max_tokens=max_tokens)
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelError(f"{path} is not a tokenizer: {error!r}", hint=HINT) from error


@dataclass(frozen=True, slots=True)
class _Card:
    """What a folder says of its model: facts that are known without loading it."""

    name: str
    dimension: int
    max_tokens: int
    latin_only: bool
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the files, by name."""
    prompts: Mapping[TextKind, str] = field(default_factory=dict)
    background: Mapping[str, float] | None = None
    """Cosine statistics of related and unrelated texts; None if not measured."""


class OnnxEmbedder(OnnxBackend):
    """An `Embedder` on the processor, in threads of this process.

    Safe to call from many tasks at once. A text longer than the model's window is cut
    at its end."""

    @property
    def name(self) -> str:
        """Model, quantisation, runtime, and twelve digits of the weights' sha256."""
        return self._card.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._card.dimension

    @property
    def background(self) -> Mapping[str, float] | None:
        """Cosines of texts that are related and that are not: `mean`, `deviation`,
        `near`; None where the folder does not say
        (`pipeline/reading/background.py`)."""
        return self._card.background

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's script: six in ten letters are Latin, or
        the model is multilingual."""
        return not self._card.latin_only or reads_latin(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; see `Embedder.embed`.

        Work goes on in threads, a batch of equal lengths at a time; a cancelled call
        stops after the running batch."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return vectors
        model = await self._ready()
        ids: list[list[int]] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            ids += await anyio.to_thread.run_sync(
                self._tokenize, model, texts[start : start + TEXTS_AT_ONCE], kind
            )

        def run(batch: list[int]) -> None:
            vectors[batch] = self._run(model, [ids[index] for index in batch])

        await run_batches([len(tokens) for tokens in ids], run)
        return vectors

    @cached_property
    def _card(self) -> _Card:
        try:
            return _read_card(json.loads(read_file(self._folder / "manifest.json")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"The files that describe the model in {self._folder} are broken: {error!r}.",
                hint=HINT,
            ) from error

    def _load(self) -> LoadedModel:
        card = self._card
        tokenizer = self._folder / (PIECES if PIECES in card.sha256 else TOKENIZER)
        hashes = tuple(card.sha256.items())
        return load_model(
            self._folder / "model.onnx", tokenizer, hashes, card.max_tokens
        )

    def _tokenize(
        self, model: LoadedModel, texts: Sequence[str], kind: TextKind
    ) -> list[list[int]]:
        card = self._card
        prompt = card.prompts.get(kind, "")
        limit = card.max_tokens * CHARACTERS_A_TOKEN
        cut = [prompt + printable(text[:limit]) for text in texts]
        return model.tokenizer.encode(cut)

    def _run(self, model: LoadedModel, batch: list[list[int]]) -> Vectors:
        ids, mask = padded(batch)
        output = model.run(
            {
                "input_ids": ids,
                "attention_mask": mask,
                "token_type_ids": np.zeros_like(ids),
            }
        )[0]
        vectors = unit_rows(output)
        if vectors.shape[1] != self.dimension or not np.isfinite(vectors).all():
            raise ModelError(
                (
                    f"The model in {self._folder} returned an array of shape "
                    f"{vectors.shape}; expected were finite vectors of "
                    f"{self.dimension} numbers."
                ),
                hint="Its manifest does not describe it: reinstall Winnow.",
            )
        return vectors


def _read_card(manifest: dict[str, Any]) -> _Card:
    hashes = manifest["sha256"]
    digest = hashes["model.onnx"][:DIGITS]
    return _Card(
        name=f"{manifest['name']}:{manifest['quantisation']}:onnx:{digest}",
        dimension=int(manifest["dimension"]),
        max_tokens=int(manifest["max_tokens"]),
        latin_only=manifest.get("scripts") == ["Latin"],
        sha256=hashes,
        prompts=manifest.get("prompts", {}),
        background=manifest.get("background"),
    )


# The reader

READER_TOKENS: Final = 256
"""Maximum tokens of question, headings and sentences together (positions of the
graph)."""
QUESTION_TOKENS: Final = 48
ABOVE_TOKENS: Final = QUESTION_TOKENS // 2
"""Maximum tokens of the headings, counted from the end: inner headings are more
specific."""
READER_SENTENCE_TOKENS: Final = 80
WEIGHTS: Final = "reader.onnx"
BERT_SIGNS: Final = ("[CLS]", "[SEP]", "[UNK]", ":")
"""Pieces of a vocabulary: the first, the last of a part, the unknown one, and the one after
headings."""
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
    """A `CrossEncoder` on the processor, in threads of this process; safe to call from
    many tasks at once."""

    @property
    def name(self) -> str:
        """Model, quantisation, runtime, and twelve digits of the weights' sha256."""
        return self._card[0]

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's script: six in ten letters are Latin."""
        return reads_latin(text)

    async def read(
        self, question: str, windows: Sequence[Window]
    ) -> list[WindowReading]:
        """Return one reading a window; see `CrossEncoder.read`.

        Windows of like length are read together, in threads; a cancelled call stops
        after the running batch. A sentence that does not fit in its window has 0.
        """
        if not windows:
            return []
        model = await self._ready()
        encoded = await anyio.to_thread.run_sync(
            encode, model.tokenizer, question, windows
        )
        readings: dict[int, WindowReading] = {}

        def run(batch: list[int]) -> None:
            outputs = self._run(model, [encoded[index] for index in batch])
            for index, (keep, answers) in zip(batch, outputs, strict=True):
                cut = len(windows[index].sentences) - len(keep)
                readings[index] = WindowReading(np.pad(keep, (0, cut)), answers)

        await run_batches([len(window.ids) for window in encoded], run)
        return [readings[index] for index in range(len(windows))]

    @cached_property
    def _card(self) -> tuple[str, dict[str, str]]:
        """The model's name with its quantisation and digest, and the hashes of its
        files by their names, as `manifest.json` gives them.

        Raises `ModelError` where that cannot be read or does not describe a reader.
        """
        try:
            manifest = json.loads(read_file(self._folder / "manifest.json"))
            reader = manifest["reader"]
            digest = reader["sha256"]
            hashes = {WEIGHTS: digest, TOKENIZER: manifest["sha256"][TOKENIZER]}
            if shared := reader.get("shares"):
                hashes[shared] = manifest["sha256"][shared]
            name = f"{reader['name']}:{reader['quantisation']}:onnx:{digest[:DIGITS]}"
            return name, hashes
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"{self._folder / 'manifest.json'} does not describe a reader: "
                f"{error!r}.",
                hint=HINT,
            ) from error

    def _load(self) -> LoadedModel:
        hashes = self._card[1]
        return load_model(
            self._folder / WEIGHTS, self._folder / TOKENIZER, tuple(hashes.items())
        )

    def _run(
        self, model: LoadedModel, batch: list[Encoded]
    ) -> list[tuple[Vectors, float]]:
        ids, mask = padded([window.ids for window in batch])
        types = mask.copy()
        for row, window in enumerate(batch):
            types[row, : window.asked] = 0
        hidden, tokens, answer, head = model.run(
            {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        )
        readings = [
            (
                sigmoid(keep_logits(hidden[row], tokens[row], head, window)),
                float(sigmoid(answer[row])),
            )
            for row, window in enumerate(batch)
        ]
        if not all(
            np.isfinite(answers) and np.isfinite(keep).all()
            for keep, answers in readings
        ):
            raise ModelError(
                f"{model.path} gave probabilities that are not finite.", hint=HINT
            )
        return readings


def encode(
    tokenizer: Tokenizer, question: str, windows: Sequence[Window]
) -> list[Encoded]:
    """Return question and window together, for each window."""
    texts = [
        question,
        *(text for window in windows for text in (window.above, *window.sentences)),
    ]
    ids = iter(tokenize(tokenizer, texts))
    question_ids = next(ids)
    return [
        join(tokenizer, question_ids, next(ids), [next(ids) for _ in window.sentences])
        for window in windows
    ]


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Ids]:
    """Return the token ids of texts, without special tokens; each text is cut first to
    the characters that `READER_SENTENCE_TOKENS` could need."""
    # Headings are truncated at their start, and are short.
    cut = [
        printable(text[: READER_SENTENCE_TOKENS * CHARACTERS_A_TOKEN]) for text in texts
    ]
    return tokenizer.encode(cut)


def join(
    tokenizer: Tokenizer,
    question: Ids,
    above: Ids,
    sentences: Sequence[Ids],
    signs: Sequence[str] = BERT_SIGNS,
) -> Encoded:
    """Return one input of at most `READER_TOKENS`; from the first sentence that does not
    fit, none is in it.

    Question and sentences are cut at their ends, what is `above` at its beginning. A
    sentence without tokens gets the unknown token.
    """
    opening, closing, unknown, colon = tokenizer.ids_of(*signs)
    ids = [opening, *question[:QUESTION_TOKENS], closing]
    question_end = len(ids)
    if above:
        ids += [*above[-ABOVE_TOKENS:], colon]
    starts = [len(ids)]
    for sentence in sentences:
        # A sentence without tokens (an image's, or signs that the vocabulary drops) keeps a place
        # of its own.
        ids += sentence[:READER_SENTENCE_TOKENS] or [unknown]
        if len(ids) >= READER_TOKENS:
            break
        starts.append(len(ids))
    return Encoded([*ids[: starts[-1]], closing], question_end, starts)


def keep_logits(
    hidden: Vectors, tokens: Vectors, head: Vectors, window: Encoded
) -> Vectors:
    """Return a logit for each sentence of `window` that fits; none if none does.

    `hidden` are the last layer's vectors [tokens, width], `tokens` the same through the
    head's own layer; `head` has the weights of a sentence's mean, its maximum and its
    nearness to the question, and a bias [3 width + 1].
    """
    width = hidden.shape[1]
    starts = np.asarray(window.starts[:-1])
    if not len(starts):
        return np.zeros(0, dtype=np.float32)
    length = window.starts[-1]
    lengths = np.diff(window.starts)[:, None].astype(np.float32)
    mean = np.add.reduceat(tokens[:length], starts) / lengths
    largest = np.maximum.reduceat(tokens[:length], starts)
    question = unit_rows(hidden[1 : window.asked].sum(axis=0, keepdims=True))
    nearness = unit_rows(np.add.reduceat(hidden[:length], starts)) * question
    return np.asarray(
        np.concatenate([mean, largest, nearness], axis=1) @ head[: 3 * width]
        + head[-1],
        dtype=np.float32,
    )


def sigmoid(logits: NDArray[np.float32]) -> Vectors:
    """Return probabilities."""
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))), dtype=np.float32)
