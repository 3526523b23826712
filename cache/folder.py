"""Rows of the cache in a folder on disk: one SQLite database, and a file for each value
over 32 kB.

A finished write is visible to other processes and survives a crash of ours (a power cut
may lose the last ones). Nothing is unpickled. Losing a cache costs time, never answers:
a database that SQLite cannot read is deleted and recreated. Not
for: what callers see (`cache/store.py`).
"""

import contextlib
import logging
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import diskcache
from diskcache.core import DBNAME, DEFAULT_SETTINGS, METADATA, MODE_BINARY, MODE_RAW

from cache.rows import CacheTrouble, RefusedRow, StoreStats
from errors import CacheError

LOCK_WAIT: Final = 1.0
"""Seconds to wait for another process's write before the cache is set aside."""
STORE_FAILURES: Final = (
    sqlite3.Error,
    diskcache.Timeout,
    KeyError,
    TypeError,
    ValueError,
)
"""Exceptions of diskcache for a damaged database."""
_CORRUPT: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""SQLite's result codes for a damaged file, not a busy or full one."""
_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
"""Those for a file that another process locks."""
_OTHER_SCHEMA: Final = ("no such table", "no such column")
"""In SQLite's messages for another file than diskcache's, which have no code of their
own."""
_KNOWN_SETTINGS: Final = frozenset(DEFAULT_SETTINGS) | frozenset(METADATA)
_FILENAME: Final = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val\Z")
"""Names of diskcache's value files; any other name could point outside the folder."""

_log: Final = logging.getLogger("winnow.cache")


def is_value_name(name: object) -> bool:
    """Return whether `name` is a valid relative name of a value file."""
    return isinstance(name, str) and _FILENAME.match(name) is not None


class PlainDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache is published without types
    """diskcache's serialiser, which accepts only text keys with bytes, inline or in a
    file.

    diskcache unpickles other rows: write access to the folder would run code in our
    process (CVE-2025-69872).
    """

    def get(self, key: object, raw: object) -> str:
        """Return the key of a row; raises `RefusedRow` for a pickled one."""
        if not raw or not isinstance(key, str):
            raise RefusedRow("the key of a row is not plain text")
        return key

    def _write(
        self, full_path: str, iterator: object, mode: str, encoding: str | None = None
    ) -> object:
        """Write a value's file; if the write fails, for instance on a full disk, delete
        it and raise the `OSError`."""
        try:
            return super()._write(full_path, iterator, mode, encoding)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(full_path)
            raise

    def fetch(
        self, mode: object, filename: object, value: object, read: object
    ) -> bytes:
        """Return the bytes of a row; raises `RefusedRow` for an unknown format or a
        missing value file."""
        if mode == MODE_RAW and isinstance(value, bytes | sqlite3.Binary):
            return bytes(value)
        if mode == MODE_BINARY and is_value_name(filename):
            try:
                return bytes(super().fetch(MODE_BINARY, filename, None, False))
            except FileNotFoundError as e:  # diskcache would report a miss
                raise RefusedRow("its value file is missing") from e
        raise RefusedRow(
            f"its storage form is unknown: mode {mode!r} with a value of "
            f"type {type(value).__name__}"
        )

    def remove(self, file_path: object) -> None:
        """Delete a value's file if its name is valid."""
        if is_value_name(file_path):
            super().remove(file_path)


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing parents for the owner only, and check that it is
    writable; raises `CacheError`.

    A folder that exists keeps its permissions.
    """
    try:
        is_new = not folder.is_dir()
        for missing in [
            path for path in (folder, *folder.parents) if not path.exists()
        ][::-1]:
            missing.mkdir(exist_ok=True, mode=0o700)
        if is_new:
            folder.chmod(0o700)
        probe = folder / f".write-{os.getpid()}-{time.monotonic_ns()}"
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as e:
        raise CacheError(
            f"The cache folder {str(folder)!r} cannot be used: {e.strerror or e}.",
            hint="Set WINNOW_CACHE to a writable folder.",
        ) from e


def open_database(folder: Path, *, size_limit: int) -> tuple[diskcache.Cache, str]:
    """Return diskcache on `folder` and a note on repairs: a damaged database is deleted
    and recreated.

    Beyond `size_limit` bytes the oldest entries are removed. Raises `CacheError` if the
    folder or a new database cannot be used.
    """
    make_folder(folder)
    before = identity(folder)
    try:
        return _open(folder, size_limit), ""
    except STORE_FAILURES as e:
        if not _is_damage(e):
            raise _unusable(folder, e) from e
        note = discard(folder, before, reason=str(e))
    try:
        make_folder(folder)
        return _open(folder, size_limit), note
    except STORE_FAILURES as e:
        raise _unusable(folder, e) from e


def _unusable(folder: Path, error: Exception) -> CacheError:
    if _code(error) in _LOCKED or isinstance(error, diskcache.Timeout):
        return CacheError(
            f"The cache in {str(folder)!r} is locked by another process.",
            hint="Wait for that process, or stop it.",
        )
    return CacheError(
        f"No database can be opened in the cache folder {str(folder)!r}: {error}.",
        hint="Free disk space and check write access, or set WINNOW_CACHE to another folder.",
    )


def _open(folder: Path, size_limit: int) -> diskcache.Cache:
    _check_settings(folder / DBNAME)
    return diskcache.Cache(
        str(folder),
        timeout=LOCK_WAIT,
        disk=PlainDisk,
        size_limit=size_limit,
        cull_limit=10,
        statistics=0,
        tag_index=0,
        # A file that is cut short while it is mapped into memory would end the process with SIGBUS.
        sqlite_mmap_size=0,
        # Pages of 4 kB, for each thread and store; SQLite's own default of this size keeps memory
        # flat.
        sqlite_cache_size=500,
        # With this policy reads do not write, so readers never wait for each other.
        eviction_policy="least-recently-stored",
    )


def _check_settings(database: Path) -> None:
    """Raise ValueError for settings in the database that diskcache does not know (it
    would set them as attributes).

    Does nothing without a database. Raises `sqlite3.OperationalError` if another
    process locks it.
    """
    if not database.exists():
        return
    with contextlib.closing(
        sqlite3.connect(database, timeout=LOCK_WAIT, isolation_level=None)
    ) as connection:
        try:
            _see_free(connection)
            names = {
                row[0]
                for row in connection.execute("SELECT key FROM Settings LIMIT 1000")
            }
        except sqlite3.OperationalError as e:
            if "no such table" in str(e):
                return  # another process is creating it
            raise
    if not names <= _KNOWN_SETTINGS:
        raise ValueError(
            "unknown names in its table Settings: "
            f"{sorted(map(str, names - _KNOWN_SETTINGS))[:3]}"
        )


def _see_free(connection: sqlite3.Connection) -> None:
    """Raise `OperationalError` if another process locks a database (diskcache would
    wait a minute).

    Other errors are ignored.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        # An empty file beside another process's log is free, but for this.
        connection.execute("PRAGMA journal_mode = wal")
    except sqlite3.OperationalError as e:
        if _code(e) in _LOCKED:
            raise


def _is_damage(error: Exception) -> bool:
    """Return whether an error means a damaged file (not a busy, full or forbidden
    one)."""
    if isinstance(error, sqlite3.OperationalError):
        return _is_unreadable(error)
    return not isinstance(error, diskcache.Timeout)


def _is_unreadable(error: sqlite3.DatabaseError) -> bool:
    """Return whether SQLite says that a file is damaged, or none of diskcache's."""
    return _code(error) in _CORRUPT or any(
        words in str(error) for words in _OTHER_SCHEMA
    )


def _code(error: BaseException) -> int:
    """Return SQLite's primary result code; 0 for an error that has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def identity(folder: Path) -> tuple[int, int] | None:
    """Return an id of the present database file; None if it does not exist."""
    try:
        status = (folder / DBNAME).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def discard(folder: Path, broken: tuple[int, int] | None, *, reason: str) -> str:
    """Delete a damaged database and its values; return what was done, on one line.

    Does nothing if the folder no longer contains the `broken` database (by `identity`),
    or cannot be renamed, for instance because a file in it is open.
    """
    if identity(folder) != broken:
        return "a damaged database was recreated by another process"
    target = folder.with_name(f"{folder.name}.broken-{time.time_ns()}")
    try:
        folder.rename(target)
    except OSError as e:  # opening it again will show the state
        return f"a damaged database could not be deleted: {e}"
    shutil.rmtree(target, ignore_errors=True)
    _log.warning("the cache %s was damaged (%s) and recreated", folder, reason)
    return f"the database was damaged ({reason}) and recreated"


class FolderBackend:
    """Rows of one store in a folder: a `cache.server.RowBackend`."""

    shared: Final = False

    def __init__(self, folder: Path, *, size_limit: int) -> None:
        """Set the folder of one store and its limit in bytes; nothing is opened yet."""
        self.place: Final = str(folder)
        self.note = ""
        """Events for status reports, such as a database that was recreated."""
        self._folder = folder
        self._size_limit = size_limit
        self._opening = threading.Lock()
        # SQLite's writers sleep while they wait; a lock wakes them at once.
        self._writing = threading.RLock()
        self._cache: diskcache.Cache | None = None
        self._identity: tuple[int, int] | None = None

    def open(self) -> None:
        """Open the database unless it is open; again if another process replaced it.
        Raises `CacheError` if the folder cannot be used."""
        if self._is_open():
            return
        with self._opening:
            if self._is_open():  # another thread opened it
                return
            if self._cache is not None:
                _log.info("the cache %s was replaced and is reopened", self._folder)
                with contextlib.suppress(*STORE_FAILURES):
                    self._cache.close()
            # A thread that found it open may take it at any moment: it is never None again.
            self._cache, note = open_database(self._folder, size_limit=self._size_limit)
            self.note = note or self.note
            self._identity = identity(self._folder)

    def get(self, rows: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of existing rows; `b""` for a row that was refused and
        removed."""
        with self._guarded() as cache:
            return {
                row: blob
                for row in rows
                if (blob := self._read(cache, row)) is not None
            }

    def names(self, prefix: str) -> list[str]:
        """Return the rows whose names start with `prefix`, in insertion order."""
        with self._guarded() as cache:
            # A range query uses the index of keys; LIKE would scan the table.
            select = "SELECT key FROM Cache WHERE key >= ? AND key < ? ORDER BY rowid"
            return [
                str(key)
                for (key,) in cache._sql(select, (prefix, f"{prefix}\U0010ffff"))
            ]

    def put(self, blobs: Mapping[str, bytes], *, expire: float | None) -> None:
        """Write all rows or none; after `expire` seconds (None: never) they may be
        dropped."""
        with self._guarded() as cache, self._writing:
            if (
                len(blobs) == 1
            ):  # outside a transaction a value's file is written before the database is locked
                ((row, blob),) = blobs.items()
                cache.set(row, blob, expire=expire)
                return
            with cache.transact():
                for row, blob in blobs.items():
                    cache.set(row, blob, expire=expire)

    def swap(
        self, row: str, old: bytes | None, new: bytes | None, *, expire: float
    ) -> bool:
        """Replace `old` by `new` (None: no row) in one step; False when the row is not
        `old` (None: missing or damaged)."""
        with self._guarded() as cache, self._writing, cache.transact():
            if (self._read(cache, row) or None) != old:
                return False
            if new is None:
                cache.delete(row)
            else:
                cache.set(row, new, expire=expire)
            return True

    def clear(self) -> int:
        """Delete all rows, and files that killed writers left; return the number of
        rows."""
        with self._guarded() as cache, self._writing:
            count = int(cache.clear())
        for values in self._folder.glob("[0-9a-f][0-9a-f]"):
            shutil.rmtree(values, ignore_errors=True)
        return count

    def measure(self) -> StoreStats:
        """Return the stored entries and bytes, index included."""
        with self._guarded() as cache:
            return StoreStats(len(cache), int(cache.volume()))

    def close(self) -> None:
        """Close this thread's connection; the next call opens it again."""
        if self._cache is not None:
            self._cache.close()

    def _is_open(self) -> bool:
        return (
            self._cache is not None
            and self._identity is not None
            and identity(self._folder) == self._identity
        )

    def _read(self, cache: diskcache.Cache, row: str) -> bytes | None:
        """Return the bytes of a row, None if missing, b"" for a damaged one, which is
        removed."""
        with contextlib.suppress(RefusedRow):  # another process may be replacing it
            return _bytes(cache.get(row))
        # In a transaction the row cannot change: if it cannot be read, it is damaged.
        with self._writing, cache.transact():
            try:
                return _bytes(cache.get(row))
            except RefusedRow as e:
                _log.info("the cache %s removed an entry: %s", self._folder, e)
                cache.delete(row)
                return b""

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[diskcache.Cache]:
        """Yield the open database; convert its errors to ours, and repair damage.

        Raises `CacheError` if the database stays locked, else `CacheTrouble`, also after
        a repair: the operation is not repeated.
        """
        self.open()
        cache, before = self._cache, self._identity
        assert cache is not None  # noqa: S101  `open` raises or sets it
        try:
            yield cache
        except diskcache.Timeout as e:
            # diskcache raises this for every failed write; SQLite's error is its
            # context, and where there is none another process holds the lock.
            raise _trouble(e.__context__) from e
        except OSError as e:
            raise CacheTrouble(str(e)) from e
        except sqlite3.DatabaseError as e:
            if _is_unreadable(e):
                with contextlib.suppress(*STORE_FAILURES):
                    cache.close()
                self.note = discard(self._folder, before, reason=str(e))
                self.open()
            raise _trouble(e) from e
        except (sqlite3.Error, KeyError, TypeError, ValueError) as e:
            # diskcache meets rows it did not write, in a file that is cut or replaced.
            raise CacheTrouble(f"{type(e).__name__}: {e}") from e


def _trouble(error: BaseException | None) -> CacheTrouble | CacheError:
    if error is None or _code(error) in _LOCKED:
        return CacheError(f"another process locked the database for {LOCK_WAIT:g} s")
    return CacheTrouble(str(error))


def _bytes(value: object) -> bytes | None:
    return value if isinstance(value, bytes) else None
