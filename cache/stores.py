"""The five stores of the cache, one sub-folder each, so that a burst of one kind never evicts another.

Not for: keys and expiry of what is kept; each step chooses those where it writes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cache.rows import Checked
from cache.store import Store, StoreStats
from errors import MissingExtra

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
    own: Store
    """For what is made of a person's own files: on this machine, wherever the rest is; `pages` where that is too."""
    place: str
    """Where the cache lies: its folder, or the address of a server without the password."""

    @property
    def by_kind(self) -> dict[str, Store]:
        """Each store by its name."""
        return {kind: getattr(self, kind) for kind in _SHARES}

    def stats(self) -> dict[str, StoreStats]:
        """Return the figures of each store by its name."""
        return {kind: store.stats() for kind, store in self.by_kind.items()}

    def clear(self) -> int:
        """Forget everything in every store; return how many entries left."""
        return sum(store.clear() for store in self._all)

    def verify(self) -> dict[str, Checked]:
        """Read every entry of each store, remove what is not whole, and return what was found by store."""
        return {kind: store.verify() for kind, store in self.by_kind.items()}

    def close(self) -> None:
        """Close every store."""
        for store in self._all:
            store.close()

    @property
    def _all(self) -> list[Store]:
        return [*self.by_kind.values(), *([self.own] if self.own is not self.pages else [])]


def open_stores(folder: Path, *, size_limit: int, clock: Callable[[], float] = time.time, url: str = "") -> Stores:
    """Open or make the cache; where it cannot be used the stores keep nothing, say so in `stats()`, and try again.

    Args:
        folder: The cache folder; made if absent, with access for its owner only.
        size_limit: Bytes on disk for all stores together.
        clock: Seconds since the epoch; decides expiry.
        url: Address of a Valkey or Redis server that keeps the entries instead of the folder.

    Raises:
        MissingExtra: `url` is set and the package `redis` is not installed.
        CacheError: `url` cannot be understood.
    """
    if not url:
        sizes = {kind: max(1, int(size_limit * share)) for kind, share in _SHARES.items()}
        made = {kind: Store(folder / kind, size_limit=size, clock=clock, kind=kind) for kind, size in sizes.items()}
        return Stores(**made, own=made["pages"], place=str(folder))
    try:
        from cache.redis import RedisBackend, connect, shown  # noqa: PLC0415  an extra that few install
    except ModuleNotFoundError as e:
        raise MissingExtra("redis", extra="redis", needed_for="A cache server (cache_url)") from e
    client, place = connect(url), shown(url)
    made = {kind: Store(RedisBackend(client, kind, place=place), clock=clock, kind=kind) for kind in _SHARES}
    own = Store(folder / "own", size_limit=size_limit, clock=clock, kind="own")
    return Stores(**made, own=own, place=place)
