"""Cache servers: what keeps the cache's rows instead of the folder, Valkey or Redis
(`extras/redis.py`).

Not for: keys, values and expiry (`store.py`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from cache.rows import StoreStats
from errors import CacheError
from extra import importing, require
from seams import later


class RowBackend(Protocol):
    """What keeps the rows of one store: sealed envelopes (`cache/rows.py`), opaque bytes
    to it.

    Every method may be called from several threads at once and may wait for disk or
    network. Each raises `CacheTrouble` if this operation failed, and
    `errors.CacheError` if the place cannot be used at all.
    """

    note: str
    """Events and advice for status reports."""

    @property
    def place(self) -> str:
        """Folder, or address without password."""

    @property
    def shared(self) -> bool:
        """Whether other servers may read these rows (a shared cache in RFC 9111)."""

    def open(self) -> None:
        """Open it, unless it is open."""

    def get(self, rows: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of existing rows; `b""` for one that was refused."""

    def names(self, prefix: str) -> list[str]:
        """Return the rows whose names start with `prefix`."""

    def put(self, blobs: Mapping[str, bytes], *, expire: float | None) -> None:
        """Write all rows or none; after `expire` seconds (None: as long as there is
        room) they may be dropped."""

    def swap(
        self, row: str, old: bytes | None, new: bytes | None, *, expire: float
    ) -> bool:
        """Replace `old` by `new` (None: no row) in one step; False when the row is not
        `old`."""

    def clear(self) -> int:
        """Delete all rows; return their number."""

    def measure(self) -> StoreStats:
        """Return entries and bytes."""

    def close(self) -> None:
        """Close it; the next call opens it again."""


ADDRESS: Final = re.compile(r"((redis|valkey)s?://[^/\s]+(/\d*)?|unix://\S+)(\?\S*)?")
"""Form of a cache server's address."""


def check_address(url: str) -> None:
    """Raise `CacheError` for what is not the address of a cache server, and
    `MissingExtra` where its package is not installed."""
    if not ADDRESS.fullmatch(url):
        raise CacheError(
            "The address of the cache server (WINNOW_CACHE_URL) is invalid.",
            hint="Use an address such as redis://127.0.0.1:6379/0.",
        )
    require("redis", "A cache server (cache_url)")


def backends_at(
    url: str, kinds: Iterable[str], *, shared: bool
) -> Mapping[str, RowBackend]:
    """Return a backend for each store name of `kinds`.

    Raises `CacheError` for an invalid address, `MissingExtra` and `BrokenExtra` for the
    package."""
    check_address(url)
    with importing("redis", "A cache server (cache_url)"):
        backends: Mapping[str, RowBackend] = later("extras.redis", "backends_at")(
            url, kinds, shared=shared
        )
    return backends
