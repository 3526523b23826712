"""An embedder that remembers: vectors of texts seen before come from the disk cache.

Vectors are kept as float16 (top-20 overlap with float32 0.9999, notes/raptor §4). Not for: choosing or loading models.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from cache.store import Store
from models.protocols import Embedder, TextKind, Vectors
from pipeline.work import in_thread


class CachedEmbedder:
    """An `Embedder` in front of another, with a store between."""

    def __init__(self, embedder: Embedder, store: Store) -> None:
        """Wrap `embedder`; vectors go to `store` under its name."""
        self._embedder = embedder
        self._store = store

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
        """Return unit vectors [n, dimension]; only texts not seen before reach the model, each once."""
        keys = [self._key(text, kind) for text in texts]
        known = await in_thread(self._store.get_many_bytes, sorted(set(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        fresh: dict[str, bytes] = {}
        if missing:
            vectors = await self._embedder.embed(list(missing.values()), kind=kind)
            fresh = {key: vector.astype(np.float16).tobytes() for key, vector in zip(missing, vectors, strict=True)}
            await in_thread(self._store.set_many_bytes, fresh)
        rows = [np.frombuffer(known.get(key) or fresh[key], dtype=np.float16) for key in keys]
        found = np.stack(rows).astype(np.float32) if rows else np.zeros((0, self.dimension), dtype=np.float32)
        lengths = np.linalg.norm(found, axis=1, keepdims=True).astype(np.float32)
        unit: Vectors = (found / np.maximum(lengths, 1e-9)).astype(np.float32)
        return unit

    def _key(self, text: str, kind: TextKind) -> str:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return f"{self._embedder.name}:{kind}:{digest}"
