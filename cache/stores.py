"""The five stores of the cache, one sub-folder each, so that a burst of one kind never evicts another.

Not for: keys and expiry of what is kept; each step chooses those where it writes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from cache.repair import make_folder
from cache.store import Store, StoreStats

_SHARES: Final = {"pages": 0.5, "searches": 0.05, "embeddings": 0.25, "scores": 0.05, "trees": 0.15}
"""Each store's part of the size limit. Pages are the largest single values; embeddings the most numerous."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The open stores, by what they keep."""

    pages: Store
    searches: Store
    embeddings: Store
    scores: Store
    trees: Store

    def stats(self) -> dict[str, StoreStats]:
        """Return the figures of each store by its name."""
        return {field.name: getattr(self, field.name).stats() for field in fields(self)}

    def clear(self) -> int:
        """Forget everything in every store; return how many entries left."""
        return sum(getattr(self, field.name).clear() for field in fields(self))

    def close(self) -> None:
        """Close every store."""
        for field in fields(self):
            getattr(self, field.name).close()


def open_stores(folder: Path, *, size_limit: int, clock: Callable[[], float] = time.time) -> Stores:
    """Open or make the cache in `folder`, with access for its owner only.

    Args:
        folder: The cache folder; made if absent.
        size_limit: Bytes on disk for all stores together.
        clock: Seconds since the epoch; decides expiry.

    Raises:
        CacheError: The folder cannot be made or written.
    """
    make_folder(folder)
    return Stores(
        **{
            name: Store(folder / name, size_limit=max(1, int(size_limit * share)), clock=clock)
            for name, share in _SHARES.items()
        }
    )
