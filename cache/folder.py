"""Cache entries in a folder on disk: one SQLite database, and a file for each value over 32 kB.

A write is there for every other process when it returns, and survives the end of ours by any signal (a power cut may
take the last ones). A database that breaks is set aside and begun anew. Not for: values and expiry (`cache/store.py`).
"""

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import diskcache
from diskcache.core import MODE_BINARY

from cache.backend import CacheTrouble, Checked, Held
from cache.disk import PlainDisk, RefusedRow, ValueGone, is_value_name
from cache.repair import DAMAGE, LOCK_WAIT, forget_broken, identity, open_database, set_aside

_READS: Final = 3
"""Looks at a row whose file has just gone, because another process replaced it meanwhile."""
_ORPHAN_SECONDS: Final = 60.0
"""A value file that no row names is left alone while it is younger: its row may be on the way."""
_CHECKED_AT_ONCE: Final = 200

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the database as `check` sees it; `blob` is None where it cannot be read."""

    number: int
    key: str
    filename: object
    value: object
    blob: bytes | None


class FolderBackend:
    """Rows in `folder`; see `cache.backend.Backend` for what each method does."""

    def __init__(self, folder: Path, *, size_limit: int) -> None:
        """Take the folder of one store and its cap in bytes; nothing is opened yet."""
        self._folder = folder
        self._size_limit = size_limit
        self._opening = threading.Lock()
        # SQLite lets writers of one process wait for each other with growing sleeps; a lock wakes them at once.
        self._writing = threading.RLock()
        self._cache: diskcache.Cache | None = None
        self._note = ""
        self._identity: tuple[int, int] | None = None

    @property
    def place(self) -> str:
        """The folder."""
        return str(self._folder)

    @property
    def shared(self) -> bool:
        """A folder is its owner's."""
        return False

    @property
    def note(self) -> str:
        """Whether a damaged database was begun anew."""
        return self._note

    def open(self) -> None:
        """Open the database that lies in the folder now: another process may have set the old one aside."""
        now = identity(self._folder)
        if self._cache is not None and now is not None and now == self._identity:
            return
        with self._opening:
            if self._cache is not None and (now := identity(self._folder)) is not None and now == self._identity:
                return  # another thread has done it
            if self._cache is not None:
                _log.info("the cache %s is opened again: it was replaced", self._folder)
                self._cache.close()
                self._cache = None
            self._cache, note = open_database(self._folder, size_limit=self._size_limit)
            self._note = note or self._note
            self._identity = identity(self._folder)

    def get(self, row: str) -> bytes | None:
        """Return the bytes of a row."""
        with self._guarded() as cache:
            return self._read(cache, row)

    def get_many(self, rows: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
        """Return the bytes of those rows that are there, and the names of rows that were refused."""
        found: dict[str, bytes] = {}
        refused: list[str] = []
        with self._guarded() as cache:
            # One look at the folder and one guard for all rows: a third of the time of `get` for each.
            for row in rows:
                try:
                    blob = self._read(cache, row)
                except RefusedRow:
                    refused.append(row)
                    continue
                if blob is not None:
                    found[row] = blob
        return found, refused

    def put(self, blobs: Mapping[str, bytes], *, expire: float | None) -> None:
        """Write all rows or none."""
        with self._guarded() as cache, self._writing:
            if len(blobs) == 1:
                ((row, blob),) = blobs.items()
                cache.set(row, blob, expire=expire)
                return
            with cache.transact():
                for row, blob in blobs.items():
                    cache.set(row, blob, expire=expire)

    def peek(self, row: str, length: int) -> tuple[bytes, int] | None:
        """Return the first `length` bytes of a row and the size of the whole."""
        with self._guarded() as cache:
            select = "SELECT mode, filename, substr(value, 1, ?), length(value) FROM Cache WHERE key = ? AND raw = 1"
            found = cache._sql(select, (length, row)).fetchall()
            if not found:
                return None
            mode, name, head, size = found[0]
            if mode != MODE_BINARY:
                return (bytes(head), int(size)) if isinstance(head, bytes) else None
            if not is_value_name(name):
                return None
            try:
                with open(self._folder / name, "rb") as file:
                    return file.read(length), os.fstat(file.fileno()).st_size
            except FileNotFoundError:
                return None

    def swap(self, row: str, old: bytes | None, new: bytes | None, *, expire: float) -> bool:
        """Replace `old` by `new` in one transaction; False when the row is not `old`."""
        with self._guarded() as cache, self._writing, cache.transact():
            if self._read(cache, row) != old:
                return False
            if new is None:
                cache.delete(row)
            else:
                cache.set(row, new, expire=expire)
            return True

    def delete(self, row: str) -> None:
        """Remove a row."""
        with self._guarded() as cache, self._writing:
            cache.delete(row)

    def clear(self) -> int:
        """Remove all rows, and what was set aside as broken."""
        forget_broken(self._folder)
        with self._guarded() as cache, self._writing:
            return int(cache.clear())

    def measure(self) -> Held:
        """Return how much is held, the index included."""
        with self._guarded() as cache:
            return Held(len(cache), int(cache.volume()))

    def check(self, verdict: Callable[[str, bytes], str]) -> Checked:
        """Read every row and every value file; remove what is not whole."""
        try:
            with self._guarded() as cache:
                problem = str(cache._sql("PRAGMA quick_check(1)").fetchall()[0][0])
                if problem != "ok":
                    raise sqlite3.DatabaseError(f"malformed: {problem}")
        except CacheTrouble as e:
            return Checked(damaged=1, note=f"the database was damaged and begun anew ({e})")
        counts = {"whole": 0, "damaged": 0, "expired": 0}
        with self._guarded() as cache:
            for lot in self._rows(cache):
                bad = []
                for found in lot:
                    judged = verdict(found.key, found.blob) if found.blob is not None else "damaged"
                    counts[judged] += 1
                    if judged != "whole":
                        bad.append(found)
                with self._writing, cache.transact():
                    for row in bad:
                        # Under the same number another process may have written anew since.
                        same = "rowid = ? AND filename IS ? AND value IS ?"
                        cache._sql(f"DELETE FROM Cache WHERE {same}", (row.number, row.filename, row.value))  # noqa: S608  ours
                for row in bad:
                    cache.disk.remove(row.filename)
            orphans = self._remove_orphans(cache)
        return Checked(counts["whole"], counts["damaged"], counts["expired"], orphans)

    def close(self) -> None:
        """Close this thread's connection."""
        if self._cache is not None:
            self._cache.close()

    def _rows(self, cache: diskcache.Cache) -> Iterator[Iterable[_Row]]:
        """Yield lots of rows, each read when it is asked for."""
        after = -(2**63)
        select = "SELECT rowid, key, raw, mode, filename, value FROM Cache WHERE rowid > ? ORDER BY rowid LIMIT ?"
        while found := cache._sql(select, (after, _CHECKED_AT_ONCE)).fetchall():
            after = found[-1][0]
            yield (self._row(cache.disk, *row) for row in found)

    @staticmethod
    def _row(disk: PlainDisk, number: int, *columns: object) -> _Row:
        key, raw, mode, filename, value = columns
        try:
            name, blob = disk.get(key, raw), disk.fetch(mode, filename, value, False)
        except (RefusedRow, ValueGone, OSError):
            return _Row(number, "", filename, value, None)
        return _Row(number, name, filename, value, blob)

    def _remove_orphans(self, cache: diskcache.Cache) -> int:
        """Delete value files that no row names, which killed writers leave; return how many."""
        named = {name for (name,) in cache._sql("SELECT filename FROM Cache WHERE filename IS NOT NULL")}
        removed = 0
        for path in self._folder.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*.val"):
            with contextlib.suppress(OSError):
                name = os.path.join(*path.parts[-3:])
                if name not in named and path.stat().st_mtime < time.time() - _ORPHAN_SECONDS:
                    path.unlink()
                    removed += 1
        return removed

    def _read(self, cache: diskcache.Cache, row: str) -> bytes | None:
        for _ in range(_READS):
            with contextlib.suppress(ValueGone, RefusedRow):
                found = cache.get(row)
                return bytes(found) if found is not None else None
        # Nobody can replace the row during a transaction: what cannot be read now is damaged.
        with self._writing, cache.transact():
            try:
                found = cache.get(row)
                return bytes(found) if found is not None else None
            except (ValueGone, RefusedRow) as e:
                refusal = e
                cache.delete(row)
        raise RefusedRow(f"an entry was removed: {refusal}") from refusal

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[diskcache.Cache]:
        """Give the open database; say in our words what it refuses inside, and mend what can be mended."""
        self.open()
        cache, before = self._cache, self._identity
        assert cache is not None  # noqa: S101  `open` raises or sets it
        try:
            yield cache
        except diskcache.Timeout as e:
            # diskcache says this of every refusal to begin a write; what SQLite said stands behind it.
            why = str(e.__context__ or "")
            locked = f"another process held the database for {LOCK_WAIT:g} s"
            raise CacheTrouble(locked if "locked" in why or not why else why) from e
        except OSError as e:
            raise CacheTrouble(str(e)) from e
        except sqlite3.DatabaseError as e:
            if any(word in str(e) for word in DAMAGE):
                cache.close()
                self._note = set_aside(self._folder, before, reason=str(e))
                self.open()
            raise CacheTrouble(str(e)) from e
