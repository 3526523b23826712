"""Opening the folder of one store, and setting a broken one aside so that a fresh one can take its place.

Losing a cache costs time, never answers: a folder that SQLite cannot read is renamed (kept once, for a look) and built
anew. Not for: what entries hold (`cache/disk.py`) and what callers see (`cache/store.py`).
"""

import contextlib
import logging
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Final

import diskcache
from diskcache.core import DBNAME, DEFAULT_SETTINGS, METADATA

from cache.disk import PlainDisk
from errors import CacheError

_log = logging.getLogger(__name__)

LOCK_WAIT: Final = 5.0
"""Seconds that a call waits for another process's write before it does without the cache."""
_KNOWN_SETTINGS: Final = frozenset(DEFAULT_SETTINGS) | frozenset(METADATA)
BROKEN: Final = (sqlite3.DatabaseError, KeyError, TypeError, ValueError)
"""What diskcache raises while opening a damaged database: SQLite's own errors, or Python's over odd settings."""


def make_folder(folder: Path) -> None:
    """Make `folder` with access for its owner only.

    Raises:
        CacheError: It cannot be made, or cannot be written.
    """
    try:
        fresh = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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


def open_database(folder: Path, *, size_limit: int) -> diskcache.Cache:
    """Return diskcache on `folder`, which is set aside and built anew when it is damaged.

    Args:
        folder: The folder of one store; made if absent.
        size_limit: Bytes on disk; over it, the entries stored longest ago leave.

    Raises:
        CacheError: The folder cannot be used, or neither the old nor a fresh database opens.
    """
    make_folder(folder)
    try:
        return _open(folder, size_limit)
    except BROKEN as e:
        if _is_busy(e):
            raise CacheError(
                f"The cache in {str(folder)!r} is locked by another process.", hint="Wait for it, or end it."
            ) from e
        set_aside(folder, reason=str(e))
    try:
        make_folder(folder)
        return _open(folder, size_limit)
    except BROKEN as e:
        raise CacheError(
            f"No database can be opened in the cache folder {str(folder)!r}: {e}.",
            hint="Delete the folder, or name another one.",
        ) from e


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
        # A read writes nothing under this policy, so that readers never wait for each other.
        eviction_policy="least-recently-stored",
    )


def _check_settings(database: Path) -> None:
    """Raise ValueError over settings unknown to diskcache: it would take them as attributes of its own."""
    if not database.exists():
        return
    with contextlib.closing(sqlite3.connect(database, timeout=LOCK_WAIT)) as connection:
        try:
            names = {row[0] for row in connection.execute("SELECT key FROM Settings LIMIT 1000")}
        except sqlite3.OperationalError as e:
            if "no such table" in str(e):
                return  # another process is just making it
            raise
    if not names <= _KNOWN_SETTINGS:
        raise ValueError(f"unknown settings {sorted(map(str, names - _KNOWN_SETTINGS))[:3]}")


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells the present database file from a later one in its place; None when there is none."""
    try:
        found = (folder / DBNAME).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def set_aside(folder: Path, *, reason: str) -> None:
    """Rename `folder` to `<name>.broken-<time>`, without its value files, and forget the one set aside before."""
    for old in sorted(folder.parent.glob(f"{folder.name}.broken-*")):
        shutil.rmtree(old, ignore_errors=True)
    target = folder.with_name(f"{folder.name}.broken-{time.time_ns()}")
    try:
        folder.rename(target)
    except OSError as e:  # another process was faster, or the system holds the file: the fresh open will tell
        _log.warning("the damaged cache %s could not be set aside: %s", folder, e)
        return
    for values in target.glob("[0-9a-f][0-9a-f]"):
        shutil.rmtree(values, ignore_errors=True)
    _log.warning("the cache %s was damaged (%s); set aside as %s and begun anew", folder, reason, target.name)
