"""onnxruntime as our models use it: files checked and loaded at the first use, batches side by side in threads.

A session runs each batch on one thread; several batches run at once, over all models together no more than there are
cores. Not for: what a model's inputs and outputs mean (`onnx.py`, `reader.py`).
"""

import hashlib
import importlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from models.pipe import MOST_CORES, usable_cores
from models.protocols import Backend
from models.shares import piece
from models.wordpiece import Tokenizer, open_tokenizer

EMBEDDED: Final = Path(__file__).resolve().parent / "embedded"
"""The folder of the weights that Winnow carries."""

BATCH_TOKENS: Final = 256
"""Padded tokens a batch. Measured with one thread on MiniLM, tokens per CPU-second at 128 / 256 / 512 / 1 024 / 4 096:
texts of 24 tokens 10 100 / 9 800 / 9 400 / 8 800 / 5 100; of 4 to 200 tokens 7 900 / 9 000 / 8 400 / 8 200 / 6 300.
Small batches stay in the processor's cache, and a cancelled call ends sooner."""
HINT: Final = "Install Winnow again, or name another embedder in its settings ('none' works without one)."


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory."""

    session: Any
    """`onnxruntime.InferenceSession`, which is published without types."""
    tokenizer: Tokenizer
    inputs: frozenset[str]
    failures: tuple[type[Exception], ...]
    path: Path

    def run(self, feed: Mapping[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """Return all outputs for the inputs of `feed` that the model has; raises `ModelError`."""
        try:
            found: list[NDArray[np.float32]] = self.session.run(
                None, {name: feed[name] for name in feed if name in self.inputs}
            )
        except self.failures as error:
            rows, width = feed["input_ids"].shape
            raise ModelError(
                f"onnxruntime failed on {rows} texts of {width} tokens with {self.path}: {error}",
                hint="Try again; if it fails again, the file does not fit this runtime.",
            ) from error
        return found


class OnnxBackend(Backend, ABC):
    """A model in a folder, loaded at the first use, once, whichever thread asks."""

    def __init__(self, folder: Path = EMBEDDED) -> None:
        """Name the folder; it is read at the first use."""
        self._folder = folder
        self._lock = threading.Lock()
        self._model: Loaded | None = None

    @property
    def loaded(self) -> bool:
        """Whether the weights are in memory."""
        return self._model is not None

    @abstractmethod
    def _load(self) -> Loaded:
        """Return the model of the folder; called in a thread."""

    async def _ready(self) -> Loaded:
        """Return the model, loaded in a thread; see `load_model`."""

        def once() -> Loaded:
            with self._lock:
                self._model = self._model or self._load()
                return self._model

        return await anyio.to_thread.run_sync(once)


async def run_batches(lengths: Sequence[int], run: Callable[[list[int]], None]) -> None:
    """Call `run` in threads with the numbers of texts that make a batch, until each text was in one.

    A cancelled call stops after the running batches; so does one whose batch raised `ModelError`, which is passed on.
    """
    batches = _batches(lengths)
    failures: list[ModelError] = []

    async def work() -> None:
        for batch in batches:
            if failures:
                return
            try:
                async with piece():
                    await anyio.to_thread.run_sync(run, batch, limiter=_limiter())
            except ModelError as error:
                failures.append(error)
                return

    async with anyio.create_task_group() as group:
        for _ in range(_workers()):
            group.start_soon(work)
    if failures:
        raise failures[0]


def padded(batch: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return token ids [n, longest] filled up with zeros, and the mask of what is no filling."""
    ids = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return ids, mask


def read_file(path: Path, *, sha256: str | None = None) -> bytes:
    """Return a model's file; raises `ModelError` where it cannot be read, or its `sha256` is another."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"Cannot read {path}, a file of the model: {error.strerror}.", hint=HINT) from error
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise ModelError(f"{path} is damaged: it is not the file that its manifest.json names.", hint=HINT)
    return data


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield indices of texts, longest first, so that rows x longest row stays within BATCH_TOKENS."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        rows = max(1, BATCH_TOKENS // max(1, lengths[order[start]]))
        yield order[start : start + rows]
        start += rows


def _workers() -> int:
    """Return how many batches may run side by side: the cores this process may use, at most MOST_CORES."""
    return min(usable_cores(), MOST_CORES)


_limits: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("winnow_onnx_limit")


def _limiter() -> anyio.CapacityLimiter:
    """Return the event loop's one limiter of batches: all calls and models together use so many threads."""
    limiter = _limits.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_workers())
        _limits.set(limiter)
    return limiter


def load_model(path: Path, tokenizer: Path, *, sha256: Mapping[str, str], max_tokens: int | None = None) -> Loaded:
    """Return the model of an ONNX file and the tokeniser of a `tokenizer.json`.

    `sha256` has the hashes of our own files by name, and is empty for another's. `max_tokens` is `open_tokenizer`'s
    `most`. Raises `ModelError`: a file is missing, damaged, or none that can be read; `MissingExtra` where the
    tokeniser needs one.
    """
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    # One thread a batch, batches side by side: on two busy cores two threads in one batch of 512 tokens gave no more
    # tokens a second than one thread (5 600, 5 900). Spinning threads halve the speed.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # errors come as exceptions; the log would go to stderr
    if sha256:
        # Our graph is already in fused operators; further fusion brings SkipLayerNormalization, 15 % slower.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    for name in sha256:
        read_file(path.with_name(name), sha256=sha256[name])
    reading = read_tokenizer(tokenizer, most=max_tokens)
    # What onnxruntime raises has no base class of its own.
    state = onnxruntime.capi.onnxruntime_pybind11_state
    named = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile", "NotImplemented")
    failures = (RuntimeError, state.RuntimeException, *(getattr(state, name) for name in named))
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except failures as error:
        raise ModelError(f"{path} is not a model that onnxruntime can load: {error}", hint=HINT) from error
    return Loaded(session, reading, frozenset(item.name for item in session.get_inputs()), failures, path)


def read_tokenizer(path: Path, *, most: int | None = None) -> Tokenizer:
    """Return the tokeniser of a file; `most` and errors as in `open_tokenizer`."""
    return open_tokenizer(read_file(path), path, most=most, hint=HINT)
