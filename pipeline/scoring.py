"""A reranker that remembers: scores of texts seen before, with the same query and model, come from the disk cache.

The key holds the model's name, which holds the hash of its files and its settings: another model, or the same with
other weights, never reads old scores. Not for: choosing or loading models.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cache.store import Store
from models.protocols import Reranker
from pipeline.work import in_thread

KEPT_SECONDS: Final = 30 * 86_400.0
"""Scores are kept a month: they cost a model call, and few queries come again later."""


@runtime_checkable
class Prepared(Protocol):
    """A model whose name is known only after it was asked (one behind a server)."""

    async def prepare(self) -> None:
        """Learn the name."""
        ...


class CachedReranker:
    """A `Reranker` in front of another, with a store between."""

    def __init__(self, reranker: Reranker, store: Store) -> None:
        """Wrap `reranker`; scores go to `store` under its name."""
        self._reranker = reranker
        self._store = store

    @property
    def name(self) -> str:
        """Name of the reranker behind."""
        return self._reranker.name

    async def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one float32 score a text [n]; only texts not scored before reach the model, each once.

        Raises:
            ModelError: The model failed.
        """
        if isinstance(self._reranker, Prepared):
            await self._reranker.prepare()
        keys = [self._key(query, text) for text in texts]
        known = await in_thread(self._store.get_many_bytes, sorted(set(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        fresh: dict[str, bytes] = {}
        if missing:
            scores = await self._reranker.score(query, list(missing.values()))
            fresh = {key: np.float32(score).tobytes() for key, score in zip(missing, scores, strict=True)}
            await in_thread(self._keep, fresh)
        found = [np.frombuffer(known.get(key) or fresh[key], dtype=np.float32) for key in keys]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.float32)

    def _keep(self, fresh: dict[str, bytes]) -> None:
        self._store.set_many_bytes(fresh, expire=KEPT_SECONDS)

    def _key(self, query: str, text: str) -> str:
        digest = hashlib.blake2b(digest_size=20)
        for part in (query, text):
            raw = part.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
        return f"rerank:{self._reranker.name}:{digest.hexdigest()}"
