"""What a place for cache entries must be able to do: the folder on disk and a Valkey or Redis server both do.

A backend moves sealed envelopes (`cache/disk.py`) by row names and knows nothing of what is in them. Not for: expiry
by our clock, counting and going on without the cache (`cache/store.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class CacheTrouble(Exception):
    """One operation failed (a full disk, a lock, damage that was mended); the next may succeed.

    A backend that cannot be used at all raises `errors.CacheError` instead.
    """


@dataclass(frozen=True, slots=True)
class Held:
    """How much a backend holds."""

    entries: int
    bytes: int
    partial: bool = False
    """Whether there is more than was counted."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a look at every entry found; all but the whole ones were removed."""

    whole: int = 0
    damaged: int = 0
    """Wrong checksum, foreign form, or a value whose file is gone."""
    expired: int = 0
    """Past their time, or of an older schema."""
    orphans: int = 0
    """Value files that no entry names, left by killed writers."""
    note: str = ""
    """What else happened, such as a database that was set aside."""


class Backend(Protocol):
    """Rows of bytes. Every method may be called from several threads at once and may wait for the disk or network.

    Each raises CacheTrouble when this operation failed, `errors.CacheError` when the place cannot be used at all, and
    `cache.disk.RefusedRow` for a row that this cache never wrote, which it has removed then.
    """

    @property
    def place(self) -> str:
        """Where the rows lie, for people; holds no password."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other people's servers may read what is kept here (RFC 9111 calls that a shared cache)."""
        ...

    @property
    def note(self) -> str:
        """What happened here that people should know, such as a database that was begun anew."""
        ...

    def open(self) -> None:
        """Make the place ready; a no-op when it is."""
        ...

    def get(self, row: str) -> bytes | None:
        """Return the bytes of a row."""
        ...

    def get_many(self, rows: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
        """Return the bytes of those rows that are there, and the names of rows that were refused."""
        ...

    def put(self, blobs: Mapping[str, bytes], *, expire: float | None) -> None:
        """Write all rows or none; `expire` in seconds is a hint after which they may be dropped."""
        ...

    def peek(self, row: str, length: int) -> tuple[bytes, int] | None:
        """Return the first `length` bytes of a row and the size of the whole, without reading the rest."""
        ...

    def swap(self, row: str, old: bytes | None, new: bytes | None, *, expire: float) -> bool:
        """Replace `old` by `new` (None: no row) in one step; False when the row is not `old`."""
        ...

    def delete(self, row: str) -> None:
        """Remove a row."""
        ...

    def clear(self) -> int:
        """Remove all rows; return how many there were."""
        ...

    def measure(self) -> Held:
        """Return how much is held."""
        ...

    def check(self, verdict: Callable[[str, bytes], str]) -> Checked:
        """Read every row; remove those that `verdict(row, blob)` calls "damaged" or "expired" and not "whole"."""
        ...

    def close(self) -> None:
        """Let go of connections; the next call takes them up again."""
        ...
