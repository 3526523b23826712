"""Vectors in the cache: each text is embedded once, anyone who asks, and no foreign vector is taken
for one."""

import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from cache.store import Store
from errors import ModelError
from models.protocols import TextKind, Vectors
from pipeline.cached_models import CachedEmbedder


class Letters:
    """An embedder that counts letters, notes what it was asked, and waits until it may answer."""

    def __init__(self, dimension: int = 8, *, known: bool = True) -> None:
        self.width = dimension
        self.asked: list[list[str]] = []
        self.go = anyio.Event()
        self.fails = 0
        self._known = known

    @property
    def name(self) -> str:
        """The name that keys begin with."""
        return "letters"

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 until it has answered, where it is like a remote model."""
        return self.width if self._known else 0

    def reads(self, text: str) -> bool:
        """Every script."""
        return text is not None

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return counts of letters by their code."""
        self.asked.append(list(texts))
        await self.go.wait()
        if self.fails:
            self.fails -= 1
            raise ModelError("The model failed.")
        self._known = True
        found = np.array(
            [
                [1.0 + sum(ord(c) % self.width == n for c in t) for n in range(self.width)]
                for t in texts
            ]
        )
        unit: Vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
        return unit


@pytest.mark.anyio
@pytest.mark.parametrize("known", [True, False])
async def test_vectors_of_another_length_are_computed_again(store: Store, known: bool) -> None:
    before = Letters(8)
    before.go.set()
    await CachedEmbedder(before, store).embed(["a", "b"], kind="query")
    after = Letters(12, known=known)
    after.go.set()
    found = await CachedEmbedder(after, store).embed(["a", "b", "c"], kind="query")
    assert found.shape == (3, 12)
    assert sorted(text for batch in after.asked for text in batch) == ["a", "b", "c"]


@pytest.mark.anyio
async def test_without_a_cache_vectors_come_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    broken = Store(tmp_path / "file" / "x", size_limit=10_000_000, clock=time.time)
    behind = Letters()
    behind.go.set()
    cached = CachedEmbedder(behind, broken)
    for _ in range(2):
        assert (await cached.embed(["a", "b"], kind="query")).shape == (2, 8)
    assert len(behind.asked) == 2
    assert (await cached.embed([], kind="query")).shape == (0, 8)
    broken.close()
