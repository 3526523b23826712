"""Sentence embeddings on onnxruntime: the embedded default, and any folder with an exported encoder.

A folder holds `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`; ours also has `manifest.json`, others are
described by the files that sentence-transformers leaves (`config.json`, `sentence_bert_config.json`,
`1_Pooling/config.json`). Nothing is read before the first use. Not for: making the file (`models/embedded/`),
caching, other runtimes.
"""

import hashlib
import importlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from errors import ModelError
from models.fingerprint import DIGITS, fingerprint
from models.protocols import Backend, TextKind, Vectors, unit_rows
from models.text import CHARACTERS_A_TOKEN, MANY_SCRIPTS, TEXTS_AT_ONCE, printable, reads_latin

EMBEDDED: Final = Path(__file__).resolve().parent / "embedded"
"""The folder of the weights that Winnow carries."""

BATCH_TOKENS: Final = 256
"""Padded tokens a batch. Measured with one thread on MiniLM, tokens per CPU-second at 128 / 256 / 512 / 1 024 / 4 096:
texts of 24 tokens 10 100 / 9 800 / 9 400 / 8 800 / 5 100; of 4 to 200 tokens 7 900 / 9 000 / 8 400 / 8 200 / 6 300.
Small batches stay in the processor's cache, and a cancelled call ends sooner."""
MOST_WORKERS: Final = 4
"""Batches computed at the same time, each on one thread; fewer where the process may use fewer cores."""


@dataclass(frozen=True, slots=True)
class _Card:
    """What a folder says of its model: facts that are known without loading it."""

    name: str
    dimension: int
    max_tokens: int
    latin_only: bool
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the files that Winnow carries, by name; empty for a folder that is not ours."""
    pooling: str = "mean"
    prompts: Mapping[TextKind, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The model in memory."""

    session: Any
    """`onnxruntime.InferenceSession`, which is published without types."""
    tokenizer: Tokenizer
    inputs: frozenset[str]
    failures: tuple[type[Exception], ...]


class OnnxEmbedder(Backend):
    """An `Embedder` on the processor, in threads of this process.

    Safe to call from many tasks at once. A text longer than the model's window is cut at its end.
    """

    def __init__(self, folder: Path = EMBEDDED) -> None:
        """Name the folder; it is read at the first use."""
        self._folder = folder
        self._lock = threading.Lock()
        self._model: _Loaded | None = None

    @property
    def name(self) -> str:
        """Model, quantisation, runtime, and twelve digits of the weights' sha256."""
        return self._card.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._card.dimension

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory."""
        return self._model is not None

    def reads(self, text: str) -> bool:
        """Whether the model knows the text's script: six in ten letters are Latin, or the model is multilingual."""
        return not self._card.latin_only or reads_latin(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; see `Embedder.embed`.

        Work goes on in threads, a batch of equal lengths at a time; a cancelled call stops after the running batch.
        """
        found = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return found
        model = await anyio.to_thread.run_sync(self._load)
        ids: list[list[int]] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            ids += await anyio.to_thread.run_sync(self._tokenize, model, texts[start : start + TEXTS_AT_ONCE], kind)
        await self._run_all(model, ids, found)
        return found

    async def _run_all(self, model: _Loaded, ids: list[list[int]], found: Vectors) -> None:
        batches = _batches([len(tokens) for tokens in ids])
        failures: list[ModelError] = []

        async def work() -> None:
            for batch in batches:
                if failures:
                    return
                try:
                    rows = await anyio.to_thread.run_sync(
                        self._run, model, [ids[index] for index in batch], limiter=_limiter()
                    )
                except ModelError as error:
                    failures.append(error)
                    return
                found[batch] = rows

        async with anyio.create_task_group() as group:
            for _ in range(_workers()):
                group.start_soon(work)
        if failures:
            raise failures[0]

    @cached_property
    def _card(self) -> _Card:
        return _read_card(self._folder)

    def _load(self) -> _Loaded:
        with self._lock:
            if self._model is None:
                self._model = _load(self._folder, self._card)
            return self._model

    def _tokenize(self, model: _Loaded, texts: Sequence[str], kind: TextKind) -> list[list[int]]:
        card = self._card
        prompt = card.prompts.get(kind, "")
        limit = card.max_tokens * CHARACTERS_A_TOKEN
        cut = [prompt + printable(text[:limit]) for text in texts]
        return [encoding.ids for encoding in model.tokenizer.encode_batch_fast(cut)]

    def _run(self, model: _Loaded, batch: list[list[int]]) -> Vectors:
        width = max(map(len, batch))
        ids = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            output = model.session.run(None, {name: feed[name] for name in feed if name in model.inputs})[0]
        except model.failures as error:
            raise ModelError(
                f"onnxruntime failed on {len(batch)} texts of {width} tokens with the model in {self._folder}: {error}",
                hint="Try again; if it fails again, the file does not fit this runtime.",
            ) from error
        vectors = _pool(output, mask, self._card.pooling)
        if vectors.shape[1] != self.dimension or not np.isfinite(vectors).all():
            raise ModelError(
                f"The model in {self._folder} gave {vectors.shape}, not finite rows of {self.dimension}.",
                hint="Its config.json does not describe it, or the file is damaged: put the right files there.",
            )
        return vectors


def _pool(output: NDArray[np.float32], mask: NDArray[np.int64], pooling: str) -> Vectors:
    """Return unit rows from a sentence output [n, d] or a token output [n, s, d]."""
    if output.ndim == 3:
        weights = mask[:, :, None].astype(np.float32)
        output = output[:, 0] if pooling == "cls" else (output * weights).sum(axis=1)
    return unit_rows(output)


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Yield indices of texts, longest first, so that rows x longest row stays within BATCH_TOKENS."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        rows = max(1, BATCH_TOKENS // max(1, lengths[order[start]]))
        yield order[start : start + rows]
        start += rows


def _workers() -> int:
    """Return how many batches may run side by side: the cores this process may use, at most MOST_WORKERS."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, MOST_WORKERS))


_limits: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("winnow_onnx_limit")


def _limiter() -> anyio.CapacityLimiter:
    """Return the event loop's one limiter of batches: all calls and models together use MOST_WORKERS threads."""
    limiter = _limits.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_workers())
        _limits.set(limiter)
    return limiter


def _load(folder: Path, card: _Card) -> _Loaded:
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    # One thread a batch, batches side by side: on two busy cores two threads in one batch of 512 tokens gave no more
    # tokens a second than one thread (5 600, 5 900). Spinning threads halve the speed.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # errors come as exceptions; the log would go to stderr
    if card.sha256:
        # Our graph is already in fused operators; further fusion brings SkipLayerNormalization, 15 % slower.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    path = _weights_file(folder)
    # By path, not by bytes, where the weights may be in a second file.
    source = _read(path, sha256=card.sha256["model.onnx"]) if card.sha256 else str(path)
    tokenizer_data = _read(folder / "tokenizer.json", sha256=card.sha256.get("tokenizer.json"))
    failures = _failures(onnxruntime.capi.onnxruntime_pybind11_state)
    try:
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except failures as error:
        raise ModelError(f"{path} is not a model that onnxruntime can load: {error}", hint=_HINT) from error
    try:
        tokenizer = Tokenizer.from_buffer(tokenizer_data)
    except Exception as error:  # tokenizers raises bare Exception and no class of its own
        raise ModelError(f"{folder / 'tokenizer.json'} is not a tokeniser: {error}", hint=_HINT) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(card.max_tokens)
    return _Loaded(session, tokenizer, frozenset(item.name for item in session.get_inputs()), failures)


def _failures(state: ModuleType) -> tuple[type[Exception], ...]:
    """Return what onnxruntime raises: classes of its own, with no base class of their own."""
    named = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile", "NotImplemented")
    return RuntimeError, state.RuntimeException, *(getattr(state, name) for name in named)


_HINT: Final = "Install Winnow again, or name another embedder in its settings ('none' works without one)."


def _read(path: Path, *, sha256: str | None = None) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"Cannot read {path}, a file of the embedding model: {error.strerror}.", hint=_HINT) from error
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise ModelError(f"{path} is damaged: it is not the file that its manifest.json names.", hint=_HINT)
    return data


def _weights_file(folder: Path) -> Path:
    inner = folder / "onnx" / "model.onnx"
    return inner if inner.is_file() else folder / "model.onnx"


def _read_card(folder: Path) -> _Card:
    try:
        if (folder / "manifest.json").is_file():
            return _own_card(json.loads(_read(folder / "manifest.json")))
        return _foreign_card(folder)
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"The files that describe the model in {folder} are broken: {error!r}.", hint=_HINT) from error


def _own_card(manifest: dict[str, object]) -> _Card:
    hashes = manifest["sha256"]
    if not isinstance(hashes, dict):
        raise TypeError("sha256")
    digest = str(hashes["model.onnx"])[:DIGITS]
    return _Card(
        name=f"{manifest['name']}:{manifest['quantisation']}:onnx:{digest}",
        dimension=int(str(manifest["dimension"])),
        max_tokens=int(str(manifest["max_tokens"])),
        latin_only=manifest.get("scripts") == ["Latin"],
        sha256={str(name): str(value) for name, value in hashes.items()},
    )


def _foreign_card(folder: Path) -> _Card:
    config = json.loads(_read(folder / "config.json"))
    sentence = _optional_json(folder / "sentence_bert_config.json")
    pooling = _optional_json(folder / "1_Pooling" / "config.json")
    prompts = _optional_json(folder / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    weights = _weights_file(folder)
    longest = int(config.get("max_position_embeddings", 512))
    # RoBERTa's positions start after the padding's: the table has two more than texts may have tokens.
    longest -= 2 if str(config.get("model_type", "")).endswith("roberta") else 0
    return _Card(
        name=f"{folder.name}:onnx:{fingerprint([weights, *sorted(weights.parent.glob(f'{weights.name}?data*'))])}",
        dimension=int(config["hidden_size"]),
        max_tokens=min(longest, int(str(sentence.get("max_seq_length") or longest))),
        latin_only=int(config.get("vocab_size", 0)) < MANY_SCRIPTS,
        pooling="cls" if pooling.get("pooling_mode_cls_token") else "mean",
        prompts={
            "query": str(prompts.get("query") or ""),
            "passage": str(prompts.get("passage") or prompts.get("document") or ""),
        },
    )


def _optional_json(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    found = json.loads(_read(path))
    return found if isinstance(found, dict) else {}
