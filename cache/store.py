"""One store of the disk cache: text keys to JSON or bytes, with expiry, a size cap and several processes at once.

A cache must never cost an answer: after opening, no method raises over the disk. A lookup that fails is a miss, a write
that fails is not kept; both are logged and counted in `stats()`. Not for: what is kept where and how long
(`cache/stores.py`), nor values other than JSON and bytes (`cache/disk.py` says why).
"""

import hashlib
import json
import logging
import math
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

import diskcache

from cache.disk import Kind, RefusedRow, seal, unseal
from cache.repair import identity, open_database, set_aside
from errors import CacheError

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

SCHEMA: Final = "1"
"""Part of every key. Raise it when the meaning of values changes: old entries are then never found, and age out."""
_LONGEST_KEY: Final = 250
"""Keys over this length, or outside ASCII, are kept by their hash."""
_BATCH: Final = 5_000
"""Writes in one transaction; one of 5,000 small values holds the lock for about 0.5 s, `LOCK_WAIT` is 5 s."""
_DAMAGE: Final = ("malformed", "not a database", "no such table", "no such column", "disk image")
"""Words in SQLite's messages that mean a damaged file, not a busy or a full one."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds on disk, and what this process has seen of it since it opened the store."""

    entries: int
    """Rows, those expired but not yet evicted included."""
    bytes: int
    """Bytes on disk, the index included."""
    folder: Path
    hits: int = 0
    misses: int = 0
    problems: int = 0
    """Lookups and writes that the disk refused."""
    last_problem: str = ""


class Store:
    """Keys to values on disk. Safe for threads and processes; made by `cache.stores.open_stores`."""

    def __init__(self, folder: Path, *, size_limit: int, clock: Callable[[], float]) -> None:
        """Open or make the store in `folder`.

        Args:
            folder: A folder for this store alone.
            size_limit: Bytes on disk; over it, the entries stored longest ago leave.
            clock: Seconds since the epoch; decides expiry.

        Raises:
            CacheError: The folder cannot be made or written.
        """
        self._folder = folder
        self._size_limit = size_limit
        self._clock = clock
        self._lock = threading.Lock()
        self._hits = self._misses = self._problems = 0
        self._last_problem = ""
        self._cache: diskcache.Cache = open_database(folder, size_limit=size_limit)
        self._identity = identity(folder)

    def get_json(self, key: str) -> JsonValue:
        """Return the JSON value of `key`, None when there is none, it has expired, or it is bytes."""
        found = self._get(key, b"J")
        if found is None:
            return None
        try:
            value: JsonValue = json.loads(found)
        except (ValueError, RecursionError) as e:
            self._note("reading JSON", e)
            return None
        return value

    def set_json(self, key: str, value: JsonValue, *, expire: float | None = None) -> None:
        """Keep `value` for `expire` seconds (None: until evicted). It is on disk when this returns, problems aside."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        self._set([(key, text.encode("utf-8", "surrogatepass"))], b"J", expire)

    def get_bytes(self, key: str) -> bytes | None:
        """Return the bytes of `key`, None when there are none, they have expired, or the value is JSON."""
        return self._get(key, b"B")

    def set_bytes(self, key: str, value: bytes, *, expire: float | None = None) -> None:
        """Keep `value` for `expire` seconds (None: until evicted)."""
        self._set([(key, value)], b"B", expire)

    def get_many_bytes(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of those of `keys` that are there; 10,000 small values take about 0.2 s."""
        found: dict[str, bytes] = {}
        refused: list[str] = []
        wanted = dict.fromkeys(keys)
        with self._surviving("lookup"):
            # One look at the folder and one guard for all keys: a third of the time of `get_bytes` for each.
            fetch, now = self._open_cache().get, self._clock()
            for key in wanted:
                row = _row_key(key)
                try:
                    blob = fetch(row)
                    value = unseal(row, blob, kind=b"B", now=now) if blob is not None else None
                except RefusedRow:
                    refused.append(key)
                    continue
                if value is not None:
                    found[key] = value
        for key in refused:
            self._get(key, b"B")  # which notes and deletes it
        self._hits += len(found)
        self._misses += len(wanted) - len(found) - len(refused)
        return found

    def set_many_bytes(self, items: Mapping[str, bytes], *, expire: float | None = None) -> None:
        """Keep all `items`, up to 5,000 in one transaction: of each such lot all are kept, or none."""
        pairs = iter(items.items())
        while lot := list(islice(pairs, _BATCH)):
            self._set(lot, b"B", expire)

    def delete(self, key: str) -> None:
        """Forget `key`."""
        with self._surviving("delete"):
            self._open_cache().delete(_row_key(key))

    def clear(self) -> int:
        """Forget everything; return how many entries left."""
        count = 0
        with self._surviving("clear"):
            count = int(self._open_cache().clear())
        return count

    def stats(self) -> StoreStats:
        """Return what the store holds and how it has fared."""
        entries = size = 0
        with self._surviving("stats"):
            cache = self._open_cache()
            entries, size = len(cache), int(cache.volume())
        return StoreStats(entries, size, self._folder, self._hits, self._misses, self._problems, self._last_problem)

    def close(self) -> None:
        """Close this thread's connection; the store reopens by itself when it is used again."""
        self._cache.close()

    def _get(self, key: str, kind: Kind) -> bytes | None:
        value: bytes | None = None
        row = _row_key(key)
        with self._surviving("lookup", row):
            blob = self._open_cache().get(row)
            if blob is not None:
                value = unseal(row, blob, kind=kind, now=self._clock())
        if value is None:
            self._misses += 1
        else:
            self._hits += 1
        return value

    def _set(self, pairs: list[tuple[str, bytes]], kind: Kind, expire: float | None) -> None:
        expires_at = math.inf if expire is None else self._clock() + expire
        with self._surviving("write"):
            cache = self._open_cache()
            if len(pairs) == 1:
                row = _row_key(pairs[0][0])
                cache.set(row, seal(row, pairs[0][1], kind=kind, expires_at=expires_at), expire=expire)
                return
            with cache.transact():
                for key, payload in pairs:
                    row = _row_key(key)
                    cache.set(row, seal(row, payload, kind=kind, expires_at=expires_at), expire=expire)

    def _open_cache(self) -> diskcache.Cache:
        """Return diskcache on the file that lies in the folder now: another process may have set the old one aside."""
        if identity(self._folder) != self._identity:
            self._reopen("it was replaced from outside")
        return self._cache

    def _reopen(self, reason: str) -> None:
        with self._lock:
            if identity(self._folder) == self._identity:
                return  # another thread has done it
            _log.info("the cache %s is opened again: %s", self._folder, reason)
            self._cache.close()
            self._cache = open_database(self._folder, size_limit=self._size_limit)
            self._identity = identity(self._folder)

    @contextmanager
    def _surviving(self, action: str, row: str = "") -> Iterator[None]:
        """Log and count what the disk refuses inside, and mend what can be mended."""
        try:
            yield
        except RefusedRow as e:
            self._note(action, e)
            with self._surviving("delete"):
                self._cache.delete(row)
        except (diskcache.Timeout, CacheError, OSError) as e:
            self._note(action, e)
        except sqlite3.DatabaseError as e:
            self._note(action, e)
            if any(word in str(e) for word in _DAMAGE):
                self._mend(str(e))

    def _mend(self, reason: str) -> None:
        try:
            if identity(self._folder) == self._identity:
                with self._lock:
                    self._cache.close()
                    set_aside(self._folder, reason=reason)
            self._reopen(reason)
        except CacheError as e:
            self._note("repair", e)

    def _note(self, action: str, error: Exception) -> None:
        self._problems += 1
        self._last_problem = f"{action}: {error or type(error).__name__}"
        _log.warning("the cache %s goes on without an entry; %s", self._folder, self._last_problem)


def _row_key(key: str) -> str:
    """Return the key in the database: readable where it is short, the hash of it where it is not."""
    if len(key) <= _LONGEST_KEY and key.isascii():
        return f"{SCHEMA}:{key}"
    return f"{SCHEMA}#{hashlib.blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=20).hexdigest()}"
