"""Rows of the cache in a folder on disk: one SQLite database, and a file for each value over 32 kB.

A write is there for every other process when it returns, and survives the end of ours by any signal
(a power cut may take the last ones). Nothing is unpickled. Losing a cache costs time, never
answers: a database that SQLite cannot read is renamed (kept once, for a look) and begun anew. Not
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

from cache.rows import CacheBusy, CacheTrouble, Held, RefusedRow
from errors import CacheError

OPEN_WAIT: Final = 1.0
"""Seconds that the opening of a store waits for another process; there are six of them."""
LOCK_WAIT: Final = 5.0
"""Seconds that a call waits for another process's write before it does without the cache."""
BROKEN: Final = (
    sqlite3.DatabaseError,
    diskcache.Timeout,
    KeyError,
    TypeError,
    ValueError,
)
"""What diskcache raises while opening a damaged database: SQLite's own errors, or Python's over odd
settings."""
DAMAGE: Final = (
    "malformed",
    "not a database",
    "no such table",
    "no such column",
    "disk image",
)
"""Words in SQLite's messages that mean a damaged file, not a busy or a full one."""
_KNOWN_SETTINGS: Final = frozenset(DEFAULT_SETTINGS) | frozenset(METADATA)
_FILENAME: Final = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val\Z")
"""The only names that diskcache gives to value files; anything else in a row could point out of the
folder."""

_log = logging.getLogger(__name__)


def is_value_name(name: object) -> bool:
    """Return whether `name` is one that this cache gives to value files, relative to its folder."""
    return isinstance(name, str) and _FILENAME.match(name) is not None


class PlainDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache is published without types
    """diskcache's serialiser, which refuses every row but text keys with bytes in the row or in a
    file of their own.

    diskcache unpickles whatever else it finds: who can write the folder could run code in our
    process (CVE-2025-69872).
    """

    def get(self, key: object, raw: object) -> str:
        """Return the key of a row; refuse one that diskcache would unpickle."""
        if not raw or not isinstance(key, str):
            raise RefusedRow("the key of a row is not plain text")
        return key

    def _write(
        self, full_path: str, iterator: object, mode: str, encoding: str | None = None
    ) -> object:
        """Write a value's file, or leave nothing of it: half a value on a full disk would only fill
        it further."""
        try:
            return super()._write(full_path, iterator, mode, encoding)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(full_path)
            raise

    def fetch(
        self, mode: object, filename: object, value: object, read: object
    ) -> bytes:
        """Return the bytes of a row; refuse one whose form `store` never writes, or whose value's
        file is gone."""
        if mode == MODE_RAW and isinstance(value, bytes | sqlite3.Binary):
            return bytes(value)
        if mode == MODE_BINARY and is_value_name(filename):
            try:
                return bytes(super().fetch(MODE_BINARY, filename, None, False))
            except FileNotFoundError as e:  # diskcache would take that for a miss
                raise RefusedRow("the file of its value is gone") from e
        raise RefusedRow(
            f"a row of mode {mode!r} with a {type(value).__name__} is none of ours"
        )

    def remove(self, file_path: object) -> None:
        """Delete a value's file, if the name is one that this cache gives."""
        if is_value_name(file_path):
            super().remove(file_path)


def make_folder(folder: Path) -> None:
    """Make `folder` with access for its owner only, and see that it can be written; raises
    CacheError."""
    try:
        fresh = not folder.is_dir()
        for missing in [
            path for path in (folder, *folder.parents) if not path.exists()
        ][::-1]:
            missing.mkdir(exist_ok=True, mode=0o700)
        if fresh:
            folder.chmod(0o700)
        probe = folder / f".write-{os.getpid()}-{time.monotonic_ns()}"
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as e:
        raise CacheError(
            f"The cache folder {str(folder)!r} cannot be used: {e.strerror or e}.",
            hint="Name a folder that can be written, or switch the cache off.",
        ) from e


def open_database(folder: Path, *, size_limit: int) -> tuple[diskcache.Cache, str]:
    """Return diskcache on `folder`, and what was done about damage: a damaged one is set aside and
    built anew.

    Over `size_limit` bytes on disk the entries stored longest ago leave. Raises `CacheError`: the
    folder cannot be used, or neither the old nor a fresh database opens.
    """
    make_folder(folder)
    before = identity(folder)
    try:
        return _open(folder, size_limit), ""
    except BROKEN as e:
        if not _is_damage(e):
            raise _unusable(folder, e) from e
        note = set_aside(folder, before, reason=str(e))
    try:
        make_folder(folder)
        return _open(folder, size_limit), note
    except BROKEN as e:
        raise _unusable(folder, e) from e


def _unusable(folder: Path, error: Exception) -> CacheError:
    if "locked" in str(error) or isinstance(error, diskcache.Timeout):
        return CacheError(
            f"The cache in {str(folder)!r} is locked by another process.",
            hint="Wait for it, or end it.",
        )
    return CacheError(
        f"No database can be opened in the cache folder {str(folder)!r}: {error}.",
        hint="Make room on its disk and see that it can be written, or name another folder.",
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
        # A read writes nothing under this policy, so that readers never wait for each other.
        eviction_policy="least-recently-stored",
    )


def _check_settings(database: Path) -> None:
    """Raise ValueError over settings unknown to diskcache: it would take them as attributes of its
    own."""
    if not database.exists():
        return
    with contextlib.closing(
        sqlite3.connect(database, timeout=OPEN_WAIT, isolation_level=None)
    ) as connection:
        try:
            _see_free(connection)
            names = {
                row[0]
                for row in connection.execute("SELECT key FROM Settings LIMIT 1000")
            }
        except sqlite3.OperationalError as e:
            if "no such table" in str(e):
                return  # another process is just making it
            raise
    if not names <= _KNOWN_SETTINGS:
        raise ValueError(
            f"unknown settings {sorted(map(str, names - _KNOWN_SETTINGS))[:3]}"
        )


def _see_free(connection: sqlite3.Connection) -> None:
    """Raise `OperationalError` where another process holds a database: opening writes, and
    diskcache waits a minute."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as e:
        if "locked" in str(e):
            raise


def _is_damage(error: Exception) -> bool:
    """Return whether an error means a damaged file, and not a busy, full or forbidden one."""
    if isinstance(error, sqlite3.OperationalError):
        return any(word in str(error) for word in DAMAGE)
    return not isinstance(error, diskcache.Timeout)


def identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells the present database file from a later one in its place; None when there is
    none."""
    try:
        found = (folder / DBNAME).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def set_aside(folder: Path, broken: tuple[int, int] | None, *, reason: str) -> str:
    """Rename `folder` to `<name>.broken-<time>`, without its value files, and forget the one set
    aside before.

    Nothing is done where another database than the `broken` one (its `identity`) lies there by now.
    `reason` is for the log. Returns what was done, on one line.
    """
    with _one_process_at_a_time(folder.parent):
        if identity(folder) != broken:
            return "a damaged database was begun anew by another process"
        forget_broken(folder)
        target = folder.with_name(f"{folder.name}.broken-{time.time_ns()}")
        try:
            folder.rename(target)
        except OSError as e:  # the system holds the file: the fresh open will tell
            _log.warning("the damaged cache %s could not be set aside: %s", folder, e)
            return "a damaged database could not be set aside"
        for values in target.glob("[0-9a-f][0-9a-f]"):
            shutil.rmtree(values, ignore_errors=True)
    _log.warning(
        "the cache %s was damaged (%s); set aside as %s and begun anew",
        folder,
        reason,
        target.name,
    )
    return f"the database was damaged ({reason}), set aside as {target.name} and begun anew"


def forget_broken(folder: Path) -> None:
    """Delete what was set aside of `folder`."""
    for old in folder.parent.glob(f"{folder.name}.broken-*"):
        shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _one_process_at_a_time(parent: Path) -> Iterator[None]:
    """Hold a lock that ends with its process: an exclusive transaction on an empty database beside
    the stores.

    Two servers that meet the same damage must not set each other's fresh database aside.
    """
    with contextlib.closing(
        sqlite3.connect(parent / "repair.lock", timeout=LOCK_WAIT, isolation_level=None)
    ) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except (
            sqlite3.DatabaseError
        ) as e:  # going on alone is a smaller risk than staying broken
            _log.warning("no lock for the repair of the cache in %s: %s", parent, e)
        yield


_ORPHAN_SECONDS: Final = LOCK_WAIT * 2
"""A value file that no row names is left alone while it is younger: its writer may still wait for
the lock."""


class FolderBackend:
    """Rows of bytes in a folder; moves sealed envelopes (`cache/rows.py`) and knows nothing of what
    is in them.

    Every method may be called from several threads at once and may wait for the disk. Each raises
    CacheTrouble when this operation failed, and `errors.CacheError` when the folder cannot be used
    at all.
    """

    shared: Final = False
    """Whether other people's servers may read what is kept here (RFC 9111 calls that a shared
    cache)."""

    def __init__(self, folder: Path, *, size_limit: int) -> None:
        """Take the folder of one store and its cap in bytes; nothing is opened yet."""
        self.place: Final = str(folder)
        self.note = ""
        """What happened here that people should know, such as a database that was begun anew."""
        self._folder = folder
        self._size_limit = size_limit
        self._opening = threading.Lock()
        # SQLite lets writers of one process wait for each other with growing sleeps; a lock wakes
        # them at once.
        self._writing = threading.RLock()
        self._cache: diskcache.Cache | None = None
        self._identity: tuple[int, int] | None = None

    def open(self) -> None:
        """Open the database that lies in the folder now: another process may have set the old one
        aside."""
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
        """Return the bytes of those rows that are there; no bytes (`b""`) for one that was refused,
        and removed."""
        with self._guarded() as cache:
            return {
                row: blob
                for row in rows
                if (blob := self._read(cache, row)) is not None
            }

    def names(self, prefix: str) -> list[str]:
        """Return the rows whose names begin with `prefix`, in the order in which they were first
        written."""
        with self._guarded() as cache:
            # A range, for which SQLite takes the index of keys; LIKE would read them all.
            select = "SELECT key FROM Cache WHERE key >= ? AND key < ? ORDER BY rowid"
            return [
                str(key)
                for (key,) in cache._sql(select, (prefix, f"{prefix}\U0010ffff"))
            ]

    def put(self, blobs: Mapping[str, bytes], *, expire: float | None) -> None:
        """Write all rows or none; after `expire` seconds they may be dropped."""
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

    def tidy(self) -> int:
        """Look through the database, and delete value files that no row names, which killed writers
        leave; return how many."""
        with self._guarded() as cache:
            problem = str(cache._sql("PRAGMA quick_check(1)").fetchall()[0][0])
            if problem != "ok":
                raise sqlite3.DatabaseError(f"malformed: {problem}")
            named = {
                name
                for (name,) in cache._sql(
                    "SELECT filename FROM Cache WHERE filename IS NOT NULL"
                )
            }
        removed = 0
        for path in self._folder.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*.val"):
            with contextlib.suppress(OSError):
                name = os.path.join(*path.parts[-3:])
                if (
                    name not in named
                    and path.stat().st_mtime < time.time() - _ORPHAN_SECONDS
                ):
                    path.unlink()
                    removed += 1
        return removed

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
        """Return the bytes of a row, None where there is none; no bytes for a damaged one, which is
        removed."""
        with contextlib.suppress(
            RefusedRow
        ):  # another process may be replacing it just now
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
        """Give the open database; turn what it refuses into our errors, and mend what can be
        mended."""
        self.open()
        cache, before = self._cache, self._identity
        assert cache is not None  # noqa: S101  `open` raises or sets it
        try:
            yield cache
        except diskcache.Timeout as e:
            # diskcache says this of every refusal to begin a write; what SQLite said stands behind
            # it.
            why = str(e.__context__ or "")
            locked = f"another process held the database for {LOCK_WAIT:g} s"
            if "locked" in why or not why:
                raise CacheBusy(locked) from e
            raise CacheTrouble(why) from e
        except OSError as e:
            raise CacheTrouble(str(e)) from e
        except sqlite3.DatabaseError as e:
            if any(word in str(e) for word in DAMAGE):
                cache.close()
                self.note = set_aside(self._folder, before, reason=str(e))
                self.open()
            raise (CacheBusy if "locked" in str(e) else CacheTrouble)(str(e)) from e
