"""Models with a disk cache: each text is computed once.

The key contains the model's name with a fingerprint of its files and settings, so that
other weights never read old values. Not for: choosing or loading models.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from models.pair import PairedEmbedder
from models.protocols import (
    CrossEncoder,
    Embedder,
    HeldModel,
    Named,
    Reranker,
    TextKind,
    Vectors,
    Window,
    WindowReading,
    unit_rows,
)
from pipeline.messages import CACHED_ANSWER_SECONDS
from pipeline.work import in_thread

M = TypeVar("M", bound=Named)
MOST_SENTENCES: Final = 100
"""Sentences of a window whose probabilities are cached; later ones count as 0."""
Compute: TypeAlias = Callable[[list[str]], Awaitable[NDArray[np.float32]]]
"""Calls the model; returns one row per text."""


class _Cached(Generic[M]):
    """A model with a cache: rows of numbers by key."""

    def __init__(
        self,
        model: M,
        store: Store,
        *,
        kind: type[np.floating] = np.float16,
        expire: float | None = CACHED_ANSWER_SECONDS,
    ) -> None:
        """Keep rows in `store` as numbers of `kind` for `expire` seconds (None: until
        evicted)."""
        self._model = model
        self._store = store
        self._kind = kind
        self._expire = expire

    @property
    def name(self) -> str:
        """Name of the wrapped model."""
        return self._model.name

    async def _rows(
        self,
        keys: Sequence[str],
        texts: Sequence[str],
        compute: Compute,
        *,
        width: Callable[[], int],
    ) -> NDArray[np.float32]:
        """Return the row of numbers of each key [n, width]; those that are new are
        computed from their texts.

        `width` returns the length of a row: 0 before a remote model's first answer.

        A stored row of another length is computed again; a failure of `compute` is
        raised."""
        texts_by_key = dict(zip(keys, texts, strict=True))
        stored = await in_thread(self._store.get_many_bytes, texts_by_key)
        rows = self._of_width(stored, width())
        while missing := [key for key in texts_by_key if key not in rows]:
            answer = await compute([texts_by_key[key] for key in missing])
            computed = {
                key: row.tobytes()
                for key, row in zip(missing, answer.astype(self._kind), strict=True)
            }
            await in_thread(
                partial(self._store.set_many_bytes, computed, expire=self._expire)
            )
            rows = self._of_width(rows, width()) | computed
        numbers = [np.frombuffer(rows[key], dtype=self._kind) for key in keys]
        return (
            np.stack(numbers).astype(np.float32)
            if numbers
            else np.zeros((0, width()), dtype=np.float32)
        )

    def _of_width(self, rows: Mapping[str, bytes], width: int) -> dict[str, bytes]:
        """Drop rows of another length, such as of a server whose model has changed."""
        size = np.dtype(self._kind).itemsize * width
        size = size or max(map(len, rows.values()), default=0)
        return {key: row for key, row in rows.items() if len(row) == size}


class CachedEmbedder(_Cached[Embedder]):
    """An `Embedder` with a cache."""

    def __init__(self, embedder: Embedder, store: Store) -> None:
        # Half the size, and the top 20 of a search overlap with those of 32-bit floats by 0.9999.
        super().__init__(embedder, store, expire=None)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._model.dimension

    @property
    def background(self) -> Mapping[str, float] | None:
        """Cosine statistics of the wrapped embedder; see `Embedder`."""
        return getattr(self._model, "background", None)

    def reads(self, text: str) -> bool:
        """Whether the wrapped embedder reads the script of `text`."""
        return self._model.reads(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; only texts not seen before reach the
        model; raises `ModelError`."""
        await _prepare(self._model)
        keys = [f"{self.name}:{kind}:{_digest(text)}" for text in texts]
        compute = partial(self._model.embed, kind=kind)
        return unit_rows(
            await self._rows(keys, texts, compute, width=lambda: self.dimension)
        )


def cached_embedder(embedder: Embedder, store: Store) -> Embedder:
    """Return `embedder` with a cache; both of a pair."""
    if isinstance(embedder, PairedEmbedder):
        return PairedEmbedder(
            CachedEmbedder(embedder.first, store), CachedEmbedder(embedder.other, store)
        )
    return CachedEmbedder(embedder, store)


class CachedReranker(_Cached[Reranker]):
    """A `Reranker` with a cache."""

    def __init__(self, reranker: Reranker, store: Store) -> None:
        """Wrap `reranker`; scores go to `store` under its name, for a while: few
        queries come again later."""
        super().__init__(reranker, store, kind=np.float32)

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n]; only texts not scored before reach the
        model; raises `ModelError`."""
        await _prepare(self._model)

        async def compute(missing: list[str]) -> NDArray[np.float32]:
            return (await self._model.score(query, missing)).reshape(-1, 1)

        keys = [f"rerank:{self.name}:{_digest(query, text)}" for text in texts]
        return (await self._rows(keys, texts, compute, width=lambda: 1))[:, 0]


class CachedCrossEncoder(_Cached[CrossEncoder]):
    """A `CrossEncoder` with a cache."""

    def reads(self, text: str) -> bool:
        """Whether the wrapped cross-encoder reads the script of `text`."""
        return self._model.reads(text)

    async def read(
        self, question: str, windows: Sequence[Window]
    ) -> list[WindowReading]:
        """Return one reading a window; only windows not read before reach the model,
        each once; raises `ModelError`.

        Sentences of a window beyond `MOST_SENTENCES` get 0."""
        keys = [
            f"read:{self.name}:{_digest(question, window.above, *window.sentences)}"
            for window in windows
        ]
        by_key = dict(zip(keys, windows, strict=True))

        async def compute(missing: list[str]) -> NDArray[np.float32]:
            rows = np.zeros((len(missing), 1 + MOST_SENTENCES), dtype=np.float32)
            readings = await self._model.read(
                question, [by_key[key] for key in missing]
            )
            for row, reading in zip(rows, readings, strict=True):
                row[0] = reading.answers
                row[1 : 1 + len(reading.keep)] = reading.keep[:MOST_SENTENCES]
            return rows

        rows = await self._rows(keys, keys, compute, width=lambda: 1 + MOST_SENTENCES)
        readings = []
        for row, window in zip(rows, windows, strict=True):
            keep = np.zeros(len(window.sentences), dtype=np.float32)
            keep[:MOST_SENTENCES] = row[1 : 1 + len(keep)]
            readings.append(WindowReading(keep, float(row[0])))
        return readings


async def _prepare(model: object) -> None:
    """Let a remote model request its identity, which is part of the cache keys."""
    if isinstance(model, HeldModel):
        await model.prepare()


def _digest(*texts: str) -> str:
    digest = hashlib.blake2b(digest_size=20)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()
