"""Rows of the cache in a folder on disk: one SQLite database, and a file for each value over 32 kB.

A write is there for every other process when it returns, and survives the end of ours by any signal (a power cut may
take the last ones). A database that breaks is set aside and begun anew (`cache/database.py`).
"""

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import diskcache

from cache.database import (
    DAMAGE,
    LOCK_WAIT,
    PlainDisk,
    forget_broken,
    identity,
    open_database,
    set_aside,
)
from cache.rows import LOT, CacheTrouble, Checked, Held, RefusedRow, Verdict

_ORPHAN_SECONDS: Final = LOCK_WAIT * 2
"""A value file that no row names is left alone while it is younger: its writer may still wait for the lock."""

_log = logging.getLogger(__name__)


class FolderBackend:
    """Rows of bytes in a folder; moves sealed envelopes (`cache/rows.py`) and knows nothing of what is in them.

    Every method may be called from several threads at once and may wait for the disk. Each raises CacheTrouble when
    this operation failed, and `errors.CacheError` when the folder cannot be used at all.
    """

    shared: Final = False
    """Whether other people's servers may read what is kept here (RFC 9111 calls that a shared cache)."""

    def __init__(self, folder: Path, *, size_limit: int) -> None:
        """Take the folder of one store and its cap in bytes; nothing is opened yet."""
        self.place: Final = str(folder)
        self.note = ""
        """What happened here that people should know, such as a database that was begun anew."""
        self._folder = folder
        self._size_limit = size_limit
        self._opening = threading.Lock()
        # SQLite lets writers of one process wait for each other with growing sleeps; a lock wakes them at once.
        self._writing = threading.RLock()
        self._cache: diskcache.Cache | None = None
        self._identity: tuple[int, int] | None = None

    def open(self) -> None:
        """Open the database that lies in the folder now: another process may have set the old one aside."""
        if self._is_open():
            return
        with self._opening:
            if self._is_open():  # another thread has done it
                return
            if self._cache is not None:
                _log.info("the cache %s is opened again: it was replaced", self._folder)
                self._cache.close()
                self._cache = None
            self._cache, note = open_database(self._folder, size_limit=self._size_limit)
            self.note = note or self.note
            self._identity = identity(self._folder)

    def get(self, rows: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of those rows that are there; no bytes (`b""`) for one that was refused, and removed."""
        with self._guarded() as cache:
            return {row: blob for row in rows if (blob := self._read(cache, row)) is not None}

    def put(self, blobs: Mapping[str, bytes], *, expire: float | None) -> None:
        """Write all rows or none; after `expire` seconds they may be dropped."""
        with self._guarded() as cache, self._writing:
            if len(blobs) == 1:  # outside a transaction a value's file is written before the database is locked
                ((row, blob),) = blobs.items()
                cache.set(row, blob, expire=expire)
                return
            with cache.transact():
                for row, blob in blobs.items():
                    cache.set(row, blob, expire=expire)

    def swap(self, row: str, old: bytes | None, new: bytes | None, *, expire: float) -> bool:
        """Replace `old` by `new` (None: no row) in one step; False when the row is not `old`."""
        with self._guarded() as cache, self._writing, cache.transact():
            if (self._read(cache, row) or None) != old:
                return False
            if new is None:
                cache.delete(row)
            else:
                cache.set(row, new, expire=expire)
            return True

    def clear(self) -> int:
        """Remove all rows, and what was set aside as broken; return how many rows there were."""
        forget_broken(self._folder)
        with self._guarded() as cache, self._writing:
            return int(cache.clear())

    def measure(self) -> Held:
        """Return how much is held, the index included."""
        with self._guarded() as cache:
            return Held(len(cache), int(cache.volume()))

    def check(self, verdict: Callable[[str, bytes], Verdict]) -> Checked:
        """Read every row and every value file; remove what `verdict(row, blob)` does not call whole."""
        try:
            with self._guarded() as cache:
                problem = str(cache._sql("PRAGMA quick_check(1)").fetchall()[0][0])
                if problem != "ok":
                    raise sqlite3.DatabaseError(f"malformed: {problem}")
        except CacheTrouble as e:
            return Checked(damaged=1, note=f"the database was damaged and begun anew ({e})")
        counts: Counter[Verdict] = Counter()
        select = "SELECT rowid, filename, value, key, raw, mode FROM Cache WHERE rowid > ? ORDER BY rowid LIMIT ?"
        after = -(2**63)
        with self._guarded() as cache:
            while lot := cache._sql(select, (after, LOT)).fetchall():
                after = lot[-1][0]
                verdicts = [_verdict(cache.disk, verdict, *columns) for _, *columns in lot]
                counts.update(verdicts)
                bad = [row[:3] for row, judged in zip(lot, verdicts, strict=True) if judged != "whole"]
                with self._writing, cache.transact():
                    for row in bad:
                        # Under the same number another process may have written anew since.
                        cache._sql("DELETE FROM Cache WHERE rowid = ? AND filename IS ? AND value IS ?", row)
                for _, filename, _ in bad:
                    cache.disk.remove(filename)
            orphans = self._remove_orphans(cache)
        return Checked(counts["whole"], counts["damaged"], counts["expired"], orphans)

    def close(self) -> None:
        """Close this thread's connection; the next call opens it again."""
        if self._cache is not None:
            self._cache.close()

    def _is_open(self) -> bool:
        return self._cache is not None and self._identity is not None and identity(self._folder) == self._identity

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
        """Return the bytes of a row, None where there is none; no bytes for a damaged one, which is removed."""
        with contextlib.suppress(RefusedRow):  # another process may be replacing it just now
            found = cache.get(row)
            return bytes(found) if found is not None else None
        # Nobody can replace the row during a transaction: what cannot be read now is damaged.
        with self._writing, cache.transact():
            try:
                found = cache.get(row)
                return bytes(found) if found is not None else None
            except RefusedRow as e:
                _log.info("the cache %s removed an entry: %s", self._folder, e)
                cache.delete(row)
                return b""

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[diskcache.Cache]:
        """Give the open database; turn what it refuses into our errors, and mend what can be mended."""
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
                self.note = set_aside(self._folder, before, reason=str(e))
                self.open()
            raise CacheTrouble(str(e)) from e


def _verdict(
    disk: PlainDisk, verdict: Callable[[str, bytes], Verdict], filename: object, value: object, *columns: object
) -> Verdict:
    key, raw, mode = columns
    try:
        return verdict(disk.get(key, raw), disk.fetch(mode, filename, value, False))
    except (RefusedRow, OSError):
        return "damaged"
