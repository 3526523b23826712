"""BGE-M3's dense vectors and its reranker through FlagEmbedding on torch.

For GPU users, or for the package's exact scores; the same models as GGUF need no torch.
The package (extra `flag`) is imported at the first use, off the event loop: importing
takes seconds and 465 MiB. Not for: downloading; a model that is neither a folder nor in
the Hugging Face cache is refused with the download command.
"""

import importlib
import json
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from errors import ModelError
from extra import importing
from models.fingerprint import fingerprint
from models.protocols import HeldModel, TextKind, Vectors, unit_rows
from models.text import TEXTS_A_REQUEST, printable

PASSAGE_TOKENS: Final = 1_024
"""Maximum tokens of a passage. FlagEmbedding's default of 512 silently cuts long
blocks; BGE-M3 reads up to 8,192 at quadratic cost."""
FILES: Final = (
    "config.json",
    "tokenizer.json",
    "pytorch_model.bin",
    "sparse_linear.pt",
    "colbert_linear.pt",
)
"""Files hashed into the model's name, besides *.safetensors."""
BATCH_TEXTS: Final = TEXTS_A_REQUEST + 1
"""FlagEmbedding draws progress bars on stderr unless the texts are fewer than its
batch."""


class FlagModel(HeldModel):
    """Base of embedder and reranker: locating, loading once, computing in batches."""

    runs_on = (
        "FlagEmbedding on a graphics card where torch finds CUDA, else on the processor"
    )

    def __init__(self, model: str) -> None:
        self._model_name = model
        self._spec = f"flag:{model}"
        self._lock = threading.Lock()
        self._loaded: Any = None

    @cached_property
    def name(self) -> str:
        """Model, runtime, and a digest of its files and of how many tokens are read.

        Raises `ModelError` where the model is not on this machine."""
        folder = self._folder
        files = [path for path in (folder / name for name in FILES) if path.is_file()]
        digest = fingerprint(
            [*files, *sorted(folder.glob("*.safetensors"))], PASSAGE_TOKENS
        )
        return f"{self._model_name}:flag:{digest}"

    @cached_property
    def _folder(self) -> Path:
        """Return the folder of the model's files; nothing is downloaded. Raises
        `ModelError` where the model is neither a folder nor in the Hugging Face
        cache."""
        if Path(self._model_name).is_dir():
            return Path(self._model_name)
        with importing("flag", self._spec):
            hub = importlib.import_module("huggingface_hub")
        try:
            return Path(hub.snapshot_download(self._model_name, local_files_only=True))
        except (OSError, ValueError) as error:
            what = f"{self._spec} is neither a folder nor in the Hugging Face cache"
            hint = f"Download it with: hf download {self._model_name}"
            raise ModelError(
                f"{what}; Winnow never downloads by itself.", hint=hint
            ) from error

    def _load(self, class_name: str, **options: object) -> Any:
        """Return the loaded model of FlagEmbedding's class, made once; called in a
        thread with the lock held.

        A later call returns the first model, whatever it asks for. Raises `ModelError`
        where the model cannot be loaded."""
        if self._loaded is not None:
            return self._loaded
        with importing("flag", self._spec):
            package, torch = (
                importlib.import_module("FlagEmbedding"),
                importlib.import_module("torch"),
            )
        importlib.import_module("transformers.utils.logging").disable_progress_bar()
        cuda = bool(torch.cuda.is_available())
        try:
            # Apple's MPS is left out: torch leaks memory there for each new input shape.
            self._loaded = getattr(package, class_name)(
                str(self._folder),
                use_fp16=cuda,
                devices="cuda:0" if cuda else "cpu",
                **options,
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"FlagEmbedding cannot load {self._model_name}: {error}",
                hint="Check that the folder contains this kind of model and that there is enough memory.",
            ) from error
        return self._loaded

    async def _in_parts(
        self, texts: Sequence[str], compute: Callable[[list[str]], Any]
    ) -> NDArray[np.float32]:
        """Return what `compute` makes of `texts` [n, …], in a thread; a cancelled call
        ends between parts.

        Waits without limit for other calls. Raises `ModelError` where the model fails;
        no texts raise `ValueError`."""

        def run(part: list[str]) -> NDArray[np.float32]:
            with self._lock:
                try:
                    return np.asarray(compute(part), dtype=np.float32)
                except (RuntimeError, AttributeError, KeyError) as error:
                    raise ModelError(
                        f"FlagEmbedding failed on {len(part)} texts: {error}",
                        hint="Try again.",
                    ) from error

        starts = range(0, len(texts), TEXTS_A_REQUEST)
        parts = [
            list(map(printable, texts[start : start + TEXTS_A_REQUEST]))
            for start in starts
        ]
        return np.concatenate(
            [await anyio.to_thread.run_sync(run, part) for part in parts]
        )


class FlagEmbedder(FlagModel):
    """An `Embedder`: the dense vectors of a model in BGE-M3's layout."""

    @cached_property
    def dimension(self) -> int:
        """Length of a vector; raises `ModelError` where `config.json` is missing or
        does not say it."""
        try:
            return int(
                json.loads((self._folder / "config.json").read_bytes())["hidden_size"]
            )
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                (
                    f"{self._folder / 'config.json'} does not give hidden_size, "
                    f"the length of the model's vectors: {error!r}."
                ),
                hint="Download it again.",
            ) from error

    def reads(self, text: str) -> bool:
        """Return True: BGE-M3 was trained on more than a hundred languages."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; see `Embedder.embed`.

        No texts give no rows; longer ones than `PASSAGE_TOKENS` are cut."""

        def compute(part: list[str]) -> Any:
            # The class reads `passage_max_length` for passages and `max_length` here: both, or it
            # cuts at 512.
            model = self._load(
                "BGEM3FlagModel",
                passage_max_length=PASSAGE_TOKENS,
                query_max_length=PASSAGE_TOKENS,
            )
            return model.encode(
                part, batch_size=BATCH_TEXTS, max_length=PASSAGE_TOKENS
            )["dense_vecs"]

        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return unit_rows(await self._in_parts(texts, compute))


class FlagReranker(FlagModel):
    """A `Reranker`: a cross-encoder of the bge-reranker family."""

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one score a text [n], between 0 and 1; see `Reranker.score`.

        No texts give no scores; longer pairs than `PASSAGE_TOKENS` are cut."""

        def compute(part: list[str]) -> Any:
            pairs = [(printable(query), text) for text in part]
            model = self._load("FlagReranker", max_length=PASSAGE_TOKENS)
            return np.reshape(
                model.compute_score(pairs, batch_size=BATCH_TEXTS, normalize=True), -1
            )

        return (
            await self._in_parts(texts, compute)
            if texts
            else np.zeros(0, dtype=np.float32)
        )
