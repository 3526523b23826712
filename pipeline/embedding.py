"""An embedder that remembers: vectors of texts seen before come from the disk cache.

Vectors are kept as float16 (top-20 overlap with float32 0.9999, notes/raptor §4). Not for: choosing or loading models.
"""

import hashlib
from collections.abc import Mapping, Sequence

import anyio
import numpy as np

from cache.store import Store
from models.protocols import Embedder, TextKind, Vectors
from pipeline.scoring import Prepared
from pipeline.work import in_thread


class _Batch:
    """Texts that one call has given to the model; other calls wait for them."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.vectors: dict[str, bytes] = {}
        """Filled before `done`; stays empty when the model failed or the call was cancelled."""


class CachedEmbedder:
    """An `Embedder` in front of another, with a store between."""

    def __init__(self, embedder: Embedder, store: Store) -> None:
        """Wrap `embedder`; vectors go to `store` under its name."""
        self._embedder = embedder
        self._store = store
        self._under_way: dict[str, _Batch] = {}

    @property
    def name(self) -> str:
        """Name of the embedder behind."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._embedder.dimension

    def reads(self, text: str) -> bool:
        """Whether the embedder behind knows the script of `text`."""
        return self._embedder.reads(text)

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors [n, dimension]; only texts not seen before reach the model, each once.

        Calls at the same time share the work: a text that one of them has given to the model the others wait for.
        """
        if isinstance(self._embedder, Prepared):
            await self._embedder.prepare()
        keys = [self._key(text, kind) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        # 1. what was seen before
        known = self._whole(await in_thread(self._store.get_many_bytes, wanted))
        while missing := {key: text for key, text in wanted.items() if key not in known}:
            batches = {self._under_way[key] for key in missing if key in self._under_way}
            # 2. what nobody is working on
            free = {key: text for key, text in missing.items() if key not in self._under_way}
            fresh = await self._compute(free, kind) if free else {}
            # 3. what others were working on; a text whose call failed is free in the next round
            for batch in batches:
                await batch.done.wait()
                fresh.update((key, batch.vectors[key]) for key in missing if key in batch.vectors)
            known = {**self._whole(known), **fresh}
        rows = [np.frombuffer(known[key], dtype=np.float16) for key in keys]
        found = np.stack(rows).astype(np.float32) if rows else np.zeros((0, self.dimension), dtype=np.float32)
        lengths = np.linalg.norm(found, axis=1, keepdims=True).astype(np.float32)
        unit: Vectors = (found / np.maximum(lengths, 1e-9)).astype(np.float32)
        return unit

    async def _compute(self, texts: Mapping[str, str], kind: TextKind) -> dict[str, bytes]:
        batch = _Batch()
        self._under_way.update(dict.fromkeys(texts, batch))
        try:
            vectors = await self._embedder.embed(list(texts.values()), kind=kind)
            batch.vectors = {k: vector.astype(np.float16).tobytes() for k, vector in zip(texts, vectors, strict=True)}
            await in_thread(self._store.set_many_bytes, batch.vectors)
        finally:
            for key in texts:
                del self._under_way[key]
            batch.done.set()
        return dict(batch.vectors)

    def _whole(self, found: dict[str, bytes]) -> dict[str, bytes]:
        """Leave out vectors of another length, such as of a server that has since changed its model."""
        # Before its first answer a remote model does not know its dimension: then the vectors must agree.
        width = 2 * self.dimension or next(iter(map(len, found.values())), 0)
        return {key: vector for key, vector in found.items() if len(vector) == width}

    def _key(self, text: str, kind: TextKind) -> str:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return f"{self._embedder.name}:{kind}:{digest}"
