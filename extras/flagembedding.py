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
        kinds = ("config.json", "tokenizer.json", "*.bin", "*.pt", "*.safetensors")
        files = [path for kind in kinds for path in sorted(self._folder.glob(kind))]
        digest = fingerprint(files, PASSAGE_TOKENS)
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
            fault = f"{self._spec} is neither a folder nor in the Hugging Face cache"
            hint = f"Download it with: hf download {self._model_name}"
            raise ModelError(
                f"{fault}; Winnow never downloads by itself.", hint=hint
            ) from error

    def _load(self, class_name: str, **options: object) -> Any:
        """Return the loaded model of FlagEmbedding's class, made once; called in a
        thread with the lock held. Raises `ModelError` where it cannot be loaded."""
        if self._loaded is None:
            with importing("flag", self._spec):
                package = importlib.import_module("FlagEmbedding")
                torch = importlib.import_module("torch")
            importlib.import_module("transformers.utils.logging").disable_progress_bar()
            # Apple's MPS is left out: torch leaks memory there for each new input shape.
            cuda = bool(torch.cuda.is_available())
            device = "cuda:0" if cuda else "cpu"
            self._loaded = getattr(package, class_name)(
                str(self._folder), use_fp16=cuda, devices=device, **options
            )
        return self._loaded

    async def _in_batches(
        self, texts: Sequence[str], compute: Callable[[list[str]], Any], *, width: int
    ) -> NDArray[np.float32]:
        """Return what `compute` makes of `texts` [n, width], in a thread; a cancelled
        call ends between batches.

        Waits without limit for other calls. Raises `ModelError` where the model cannot
        be loaded, or fails."""

        def run(batch: list[str]) -> NDArray[np.float32]:
            with self._lock:
                try:
                    rows = np.asarray(compute(batch), dtype=np.float32)
                except (OSError, ValueError, RuntimeError, LookupError) as error:
                    raise ModelError(
                        f"FlagEmbedding cannot load or run {self._model_name}: {error}",
                        hint="Check that the folder contains this kind of model and that there is enough memory.",
                    ) from error
            return rows.reshape(len(batch), width)

        rows = [np.zeros((0, width), dtype=np.float32)]
        for start in range(0, len(texts), TEXTS_A_REQUEST):
            batch = list(map(printable, texts[start : start + TEXTS_A_REQUEST]))
            rows.append(await anyio.to_thread.run_sync(run, batch))
        return np.concatenate(rows)


class FlagEmbedder(FlagModel):
    """An `Embedder`: the dense vectors of a model in BGE-M3's layout."""

    @cached_property
    def dimension(self) -> int:
        """Length of a vector; raises `ModelError` where `config.json` is missing or
        does not say it."""
        path = self._folder / "config.json"
        try:
            return int(json.loads(path.read_bytes())["hidden_size"])
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"{path} does not give hidden_size, the length of vectors: {error!r}.",
                hint="Download it again.",
            ) from error

    def reads(self, text: str) -> bool:
        """Return True: BGE-M3 was trained on more than a hundred languages."""
        return True

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; see `Embedder.embed`.

        No texts give no rows; longer ones than `PASSAGE_TOKENS` are cut."""

        def compute(batch: list[str]) -> Any:
            # The class reads `passage_max_length` for passages and `max_length` here:
            # both, or it cuts at 512.
            lengths = {"passage_max_length": PASSAGE_TOKENS}
            model = self._load("BGEM3FlagModel", **lengths)
            return model.encode(
                batch, batch_size=BATCH_TEXTS, max_length=PASSAGE_TOKENS
            )["dense_vecs"]

        return unit_rows(await self._in_batches(texts, compute, width=self.dimension))


class FlagReranker(FlagModel):
    """A `Reranker`: a cross-encoder of the bge-reranker family."""

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one score a text [n], between 0 and 1; see `Reranker.score`.

        No texts give no scores; longer pairs than `PASSAGE_TOKENS` are cut."""

        def compute(batch: list[str]) -> Any:
            pairs = [(printable(query), text) for text in batch]
            model = self._load("FlagReranker", max_length=PASSAGE_TOKENS)
            return model.compute_score(pairs, batch_size=BATCH_TEXTS, normalize=True)

        return (await self._in_batches(texts, compute, width=1))[:, 0]
