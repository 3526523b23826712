"""BGE-M3 (dense, sparse, multi-vector) and its reranker through FlagEmbedding on torch.

For those who have a graphics card or want the exact scores of the package; the same models as GGUF need no torch.

The package (extra `flag`) is imported at the first use, off the event loop: importing takes seconds and 465 MiB. Not
for: downloading; a model that is neither a folder nor in the Hugging Face cache is refused with the command that gets
it.
"""

import importlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from errors import MissingExtra, ModelError
from models.fingerprint import fingerprint
from models.protocols import Ability, TextKind, Vectors, unit_rows
from models.text import printable

PASSAGE_TOKENS: Final = 1_024
"""Tokens of a passage that are read. FlagEmbedding's own 512 cuts a block of 256 words with its heading path in many
languages without saying so; BGE-M3 reads up to 8 192, at a cost that grows with the square."""
FILES: Final = ("config.json", "tokenizer.json", "pytorch_model.bin", "sparse_linear.pt", "colbert_linear.pt")
"""What makes the answers, besides *.safetensors; part of the model's name."""
TEXTS_AT_ONCE: Final = 32
"""Texts of one call into torch; a cancelled call ends between two."""
BATCH: Final = TEXTS_AT_ONCE + 1
"""FlagEmbedding draws progress bars on stderr unless the texts are fewer than its batch."""


class _Flag:
    """What embedder and reranker share: where the model is, and loading it once."""

    def __init__(self, model: str) -> None:
        self._model_name = model
        self._lock = threading.Lock()
        self._loaded: Any = None

    @cached_property
    def name(self) -> str:
        """Model, runtime, and a digest of its files and of how many tokens are read."""
        folder = self._folder
        files = [path for path in (folder / name for name in FILES) if path.is_file()]
        digest = fingerprint([*files, *sorted(folder.glob("*.safetensors"))], PASSAGE_TOKENS)
        return f"{self._model_name}:flag:{digest}"

    @cached_property
    def _folder(self) -> Path:
        """The folder of the model's files; nothing is downloaded."""
        if Path(self._model_name).is_dir():
            return Path(self._model_name)
        hub = importlib.import_module("huggingface_hub")
        try:
            return Path(hub.snapshot_download(self._model_name, local_files_only=True))
        except (OSError, ValueError) as error:
            raise ModelError(
                f"flag:{self._model_name} is neither a folder nor in the Hugging Face cache; "
                "nothing is downloaded unasked.",
                hint=f"Download it with: hf download {self._model_name}",
            ) from error

    def _make(self, class_name: str, **options: object) -> Any:
        """Return the loaded model of FlagEmbedding's class, made once; called in a thread with the lock held."""
        if self._loaded is None:
            package, torch = _package(self._model_name)
            importlib.import_module("transformers.utils.logging").disable_progress_bar()
            cuda = bool(torch.cuda.is_available())
            try:
                # Apple's MPS is left out: torch leaks memory there for each new input shape (notes/models §4).
                self._loaded = getattr(package, class_name)(
                    str(self._folder), use_fp16=cuda, devices="cuda:0" if cuda else "cpu", **options
                )
            except (OSError, ValueError, RuntimeError) as error:
                raise ModelError(
                    f"FlagEmbedding cannot load {self._model_name}: {error}",
                    hint="Check that the folder holds this kind of model and that memory suffices.",
                ) from error
        return self._loaded


def _package(model: str) -> tuple[ModuleType, ModuleType]:
    try:
        return importlib.import_module("FlagEmbedding"), importlib.import_module("torch")
    except ModuleNotFoundError as error:
        raise MissingExtra("FlagEmbedding", extra="flag", needed_for=f"flag:{model}") from error


@dataclass(frozen=True, slots=True)
class Views:
    """What BGE-M3 makes of texts (its paper, §3): the three forms of one pass."""

    dense: Vectors
    """Unit rows [n, dimension]."""
    sparse: tuple[Mapping[int, float], ...]
    """For each text the weight of each of its token ids, special ones left out."""
    vectors: tuple[NDArray[np.float32], ...]
    """For each text unit rows [tokens, dimension], one for each of its tokens but the first; empty unless asked for."""


class FlagEmbedder(_Flag):
    """An `Embedder`: the dense vectors of a model in BGE-M3's layout; `views` gives its other two outputs."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """Embedding."""
        return frozenset({"embed"})

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        try:
            return int(json.loads((self._folder / "config.json").read_bytes())["hidden_size"])
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"{self._folder / 'config.json'} does not say the model's size: {error!r}.", hint="Download it again."
            ) from error

    def reads(self, text: str) -> bool:
        """Return True: BGE-M3 was trained on more than a hundred languages."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return float32 vectors [n, dimension] of unit length, in the order of `texts`.

        Raises:
            MissingExtra: FlagEmbedding or torch is not installed.
            ModelError: The model cannot be loaded or failed.
        """
        parts = [np.zeros((0, self.dimension), dtype=np.float32)]
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = list(map(printable, texts[start : start + TEXTS_AT_ONCE]))
            parts.append(await anyio.to_thread.run_sync(self._part, part))
        return np.concatenate(parts)

    async def views(self, texts: Sequence[str], *, multi_vector: bool = False) -> Views:
        """Return dense and sparse forms of `texts`, and one vector a token with `multi_vector`, from one pass.

        Raises:
            MissingExtra: FlagEmbedding or torch is not installed.
            ModelError: The model cannot be loaded, failed, or has no sparse head.
        """
        dense, sparse, vectors = [np.zeros((0, self.dimension), dtype=np.float32)], [], []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = list(map(printable, texts[start : start + TEXTS_AT_ONCE]))
            found = await anyio.to_thread.run_sync(self._encoded, part, True, multi_vector)
            dense.append(unit_rows(np.asarray(found["dense_vecs"], dtype=np.float32)))
            sparse += [{int(token): float(weight) for token, weight in row.items()} for row in found["lexical_weights"]]
            vectors += [np.asarray(rows, dtype=np.float32) for rows in found["colbert_vecs"] or ()]
        return Views(np.concatenate(dense), tuple(sparse), tuple(vectors))

    def _part(self, texts: list[str]) -> Vectors:
        return unit_rows(np.asarray(self._encoded(texts, False, False)["dense_vecs"], dtype=np.float32))

    def _encoded(self, texts: list[str], sparse: bool, multi_vector: bool) -> Any:
        with self._lock:
            # The class reads `passage_max_length` for passages and `max_length` here: both, or it cuts at 512.
            model = self._make("BGEM3FlagModel", passage_max_length=PASSAGE_TOKENS, query_max_length=PASSAGE_TOKENS)
            try:
                return model.encode(
                    texts,
                    batch_size=BATCH,
                    max_length=PASSAGE_TOKENS,
                    return_dense=True,
                    return_sparse=sparse,
                    return_colbert_vecs=multi_vector,
                )
            except (RuntimeError, AttributeError, KeyError) as error:
                raise ModelError(f"FlagEmbedding failed on {len(texts)} texts: {error}", hint="Try again.") from error


class FlagReranker(_Flag):
    """A `Reranker`: a cross-encoder of the bge-reranker family."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """Reranking."""
        return frozenset({"rerank"})

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n], between 0 and 1, higher is better.

        Raises:
            MissingExtra: FlagEmbedding or torch is not installed.
            ModelError: The model cannot be loaded or failed.
        """
        parts = [np.zeros(0, dtype=np.float32)]
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            pairs = [(printable(query), printable(text)) for text in texts[start : start + TEXTS_AT_ONCE]]
            parts.append(await anyio.to_thread.run_sync(self._part, pairs))
        return np.concatenate(parts)

    def _part(self, pairs: list[tuple[str, str]]) -> NDArray[np.float32]:
        with self._lock:
            model = self._make("FlagReranker", max_length=PASSAGE_TOKENS)
            try:
                scores = model.compute_score(pairs, batch_size=BATCH, normalize=True)
            except RuntimeError as error:
                raise ModelError(f"FlagEmbedding failed on {len(pairs)} pairs: {error}", hint="Try again.") from error
        return np.asarray(scores, dtype=np.float32).reshape(-1)
