"""Cache servers: the plug-in point for a server that keeps the cache's rows instead of
the folder.

Each module of `extras/caches/` binds one `CacheServer` to `CACHE`, and other wheels add
theirs by entry points of the group `winnow.caches`. The setting `cache_url` chooses one
by its address. Not for: keys, values and expiry (`store.py`).
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cache.rows import Held
from errors import CacheError
from seams import Seam


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

    def measure(self) -> Held:
        """Return entries and bytes."""

    def tidy(self) -> int:
        """Delete orphaned data; return its number."""

    def close(self) -> None:
        """Close it; the next call opens it again."""


class Connect(Protocol):
    """Opens backends at an address."""

    def __call__(
        self, url: str, kinds: Iterable[str], *, shared: bool
    ) -> Mapping[str, RowBackend]:
        """Return a backend for each store name; raises `CacheError` for an invalid
        address, `MissingExtra` and `BrokenExtra` for the package."""


@dataclass(frozen=True, slots=True)
class CacheServer:
    """One kind of cache server."""

    address: re.Pattern[str]
    """Form of its addresses."""
    form: str
    """An example, for messages."""
    connect: Connect
    extra: str = ""
    """The extra whose package it needs."""


SEAM: Final = Seam(("extras.caches",), "CACHE", "winnow.caches", CacheServer)


@functools.cache
def cache_servers() -> tuple[CacheServer, ...]:
    """Return every kind of cache server."""
    return tuple(SEAM.found())


def server_at(url: str) -> CacheServer:
    """Return the kind of server at an address; raises `CacheError` if there is none."""
    for one in cache_servers():
        if one.address.fullmatch(url):
            return one
    raise CacheError(
        "The address of the cache server (WINNOW_CACHE_URL) is invalid.",
        hint=f"Use an address such as {' or '.join(one.form for one in cache_servers())}.",
    )
