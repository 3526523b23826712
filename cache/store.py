"""The stores of the cache: text keys to JSON or bytes, with expiry, and several
processes at once.

Cache failures never fail a call: no method raises for I/O errors. A failed lookup is a
miss, a failed write is dropped. Where a database stays locked or a place cannot be used,
all stores of that place are set aside together for `ASIDE_SECONDS`, which is logged
once. Stores have separate limits, so that many entries of one kind never evict another.
Not for: keys and expiry, which each step chooses where it writes, nor storage on disk
(`cache/folder.py`) or on a server (`cache/server.py`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from cache.folder import FolderBackend
from cache.rows import (
    LOT,
    CacheTrouble,
    Cipher,
    Kind,
    RefusedRow,
    StoreStats,
    seal,
    unseal,
)
from cache.server import RowBackend, backends_at
from errors import CacheError

JsonValue: TypeAlias = (
    "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
)
T = TypeVar("T")

SCHEMA_VERSION: Final = "2"
"""Schema version in every row's name; increase it when the meaning of values
changes."""
ASIDE_SECONDS: Final = 15.0
"""Seconds until a place that could not be used is tried again."""
HELD_BYTES: Final = 32_000_000
"""Maximum bytes of unwritten values that a store keeps in memory."""

_log: Final = logging.getLogger("winnow.cache")


@dataclass(slots=True)
class Aside:
    """Why, and until when, the stores of one place are not used."""

    why: str = ""
    until: float = 0.0

    @property
    def active(self) -> bool:
        """Whether they are set aside now."""
        return time.monotonic() < self.until


def store_text(stats: StoreStats) -> str:
    """Return a line on a store's content."""
    over = "over " if stats.partial else ""
    note = f"; {stats.note}" if stats.note else ""
    return f"{over}{stats.entries} entries, {stats.bytes / 1e6:.1f} MB{note}"


def cache_trouble(stores: Mapping[str, StoreStats]) -> str:
    """Return a line on the cache's first trouble, or ""."""
    return next((stats.trouble for stats in stores.values() if stats.trouble), "")


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease on a piece of work: valid while `row` contains `blob`."""

    row: str
    blob: bytes


class Store:
    """Keys to values. Safe for threads and processes; made by `open_stores`."""

    def __init__(
        self,
        place: Path | RowBackend,
        *,
        clock: Callable[[], float],
        size_limit: int = 0,
        kind: str = "",
        cipher: Cipher | None = None,
        aside: Aside | None = None,
    ) -> None:
        """Open or create the store at `place`, a folder or a backend; if that fails it
        keeps nothing, and tries again later.

        Beyond `size_limit` bytes the oldest entries are removed. `clock` returns
        seconds since the epoch, for expiry; `kind` is part of every row's name. A
        `cipher` encrypts values, not names; `aside` is shared by stores of one place.
        """
        self._backend: RowBackend = (
            FolderBackend(place, size_limit=size_limit)
            if isinstance(place, Path)
            else place
        )
        self._clock = clock
        self._prefix = f"{kind}:{SCHEMA_VERSION}"
        self._cipher = cipher
        self.aside = aside or Aside()
        self._lock = threading.Lock()
        self._held: dict[str, bytes] = {}
        """Values that may not, or could not, be written."""
        self._trouble = ""
        self._attempt(self._backend.open, None)

    @property
    def shared(self) -> bool:
        """Whether other servers may read this store."""
        return self._backend.shared

    def get_json(self, key: str) -> JsonValue:
        """Return the JSON value of `key`; None if missing, expired, bytes, or invalid
        JSON."""
        text = self._lookup([key], b"J").get(key)
        if text is None:
            return None
        try:
            value: JsonValue = json.loads(text)
        except (ValueError, RecursionError) as e:
            self._skipped(e)
            return None
        return value

    def set_json(
        self, key: str, value: JsonValue, *, expire: float | None = None
    ) -> None:
        """Store `value` for `expire` seconds (None: until evicted)."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        self._set([(key, text.encode("utf-8", "surrogatepass"))], b"J", expire)

    def get_bytes(self, key: str) -> bytes | None:
        """Return the bytes of `key`; None if missing, expired, or JSON."""
        held = self._held.get(key)
        return held if held is not None else self._lookup([key], b"B").get(key)

    def set_bytes(self, key: str, value: bytes, *, expire: float | None = None) -> bool:
        """Store `value` for `expire` seconds (None: until evicted); return whether it
        succeeded."""
        written = self._set([(key, value)], b"B", expire)
        if written:
            self._held.pop(key, None)
        return written

    def hold(self, key: str, value: bytes) -> None:
        """Keep `value` in this process only; beyond 32 MB the oldest are dropped, and a
        larger value is not kept."""
        with self._lock:
            self._held.pop(key, None)
            if len(value) <= HELD_BYTES:
                self._held[key] = value
            while sum(map(len, self._held.values())) > HELD_BYTES:
                del self._held[next(iter(self._held))]

    def get_many_bytes(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of existing keys; 10,000 small values take about 0.2 s."""
        return self._lookup(keys, b"B")

    def set_many_bytes(
        self, items: Mapping[str, bytes], *, expire: float | None = None
    ) -> None:
        """Store `items` in transactions of up to 500: all or none of each batch."""
        pairs = iter(items.items())
        while lot := list(islice(pairs, LOT)):
            self._set(lot, b"B", expire)

    def keys(self, prefix: str) -> list[str]:
        """Return the short keys that start with `prefix`, including expired ones."""
        nothing: list[str] = []
        rows = self._attempt(lambda: self._backend.names(self._row(prefix)), nothing)
        return [row.removeprefix(f"{self._prefix}:") for row in rows]

    def claim(self, key: str, *, seconds: float) -> Claim | None:
        """Return a lease on `key` for `seconds`; None while another process or task has
        it.

        An expired or damaged lease is taken over. If the cache is unusable every caller
        gets a lease: work may be done twice, but is done.
        """
        lease = self._fresh_claim(self._row(f"claim:{key}"), seconds)
        done, present = self._swap(lease.row, None, lease.blob, seconds)
        if not done and present is not None and not self._is_valid(lease.row, present):
            done, _ = self._swap(lease.row, present, lease.blob, seconds)
        return lease if done else None

    def renew(self, claim: Claim, *, seconds: float) -> Claim:
        """Return the lease renewed for `seconds`, unless another owner has it now."""
        lease = self._fresh_claim(claim.row, seconds)
        done, _ = self._swap(claim.row, claim.blob, lease.blob, seconds)
        return lease if done else claim

    def release(self, claim: Claim) -> None:
        """Release a lease, unless another owner has it now."""
        self._swap(claim.row, claim.blob, None, 0.0)

    def clear(self) -> int:
        """Delete all entries; return their number."""
        self._held.clear()
        return self._attempt(self._backend.clear, 0)

    def stats(self) -> StoreStats:
        """Return the statistics of the store; without entries and bytes if they cannot
        be counted."""
        content = self._attempt(self._backend.measure, StoreStats(0, 0))
        if self.aside.active:
            trouble = f"NOT USED; Winnow continues without it. {self.aside.why}"
        else:
            trouble = f"skipped: {self._trouble}" if self._trouble else ""
        return content._replace(trouble=trouble, note=self._backend.note)

    def close(self) -> None:
        """Close connections; the next use reopens the store."""
        self._backend.close()

    def _fresh_claim(self, row: str, seconds: float) -> Claim:
        ends = self._clock() + seconds
        return Claim(row, seal(row, uuid.uuid4().bytes, kind=b"B", expires_at=ends))

    def _is_valid(self, row: str, blob: bytes) -> bool:
        try:
            return unseal(row, blob, kind=b"B", now=self._clock()) is not None
        except RefusedRow:
            return False

    def _lookup(self, keys: Iterable[str], kind: Kind) -> dict[str, bytes]:
        rows = {self._row(key): key for key in keys}
        nothing: dict[str, bytes] = {}
        values: dict[str, bytes] = {}
        now = self._clock()
        blobs = self._attempt(lambda: self._backend.get(list(rows)), nothing)
        for row, blob in blobs.items():
            try:
                value = unseal(row, blob, kind=kind, now=now)
                if value is not None and self._cipher:
                    value = self._cipher.open(row, value)
            except RefusedRow as e:
                self._skipped(e)
                drop = partial(self._backend.swap, row, blob, None, expire=0.0)
                self._attempt(drop, False)
                continue
            if value is not None:
                values[rows[row]] = value
        return values

    def _set(
        self, pairs: list[tuple[str, bytes]], kind: Kind, expire: float | None
    ) -> bool:
        expires_at = math.inf if expire is None else self._clock() + expire
        blobs = {}
        for key, payload in pairs:
            row = self._row(key)
            sealed = self._cipher.lock(row, payload) if self._cipher else payload
            blobs[row] = seal(row, sealed, kind=kind, expires_at=expires_at)

        def write() -> bool:
            self._backend.put(blobs, expire=expire)
            return True

        return self._attempt(write, False)

    def _swap(
        self, row: str, old: bytes | None, new: bytes | None, seconds: float
    ) -> tuple[bool, bytes | None]:
        """Return whether a lease's row was replaced, and its value if not; True if the
        cache is unusable."""

        def swap() -> tuple[bool, bytes | None]:
            if self._backend.swap(row, old, new, expire=seconds):
                return True, new
            return False, self._backend.get([row]).get(row)

        free: tuple[bool, bytes | None] = (True, None)
        return self._attempt(swap, free)

    def _attempt(self, work: Callable[[], T], otherwise: T) -> T:
        """Return the result of `work`, or `otherwise` if the backend fails or is set
        aside."""
        if self.aside.active:
            return otherwise
        try:
            result = work()
        except CacheError as e:
            if not self.aside.why:
                _log.warning("the cache %s is not used: %s", self._backend.place, e)
            self.aside.why = str(e)
            self.aside.until = time.monotonic() + ASIDE_SECONDS
            return otherwise
        except CacheTrouble as e:
            self._skipped(e)
            return otherwise
        if self.aside.why:
            self.aside.why = ""
            _log.warning("the cache %s is used again", self._backend.place)
        return result

    def _skipped(self, error: Exception) -> None:
        """Log a failed operation, the first of its kind only: a full disk would fill
        the log."""
        why = str(error) or type(error).__name__
        if why != self._trouble:
            self._trouble = why
            _log.warning("the cache %s skipped an entry: %s", self._backend.place, why)

    def _row(self, key: str) -> str:
        """Return a key's row name: the key if it is ASCII of at most 250 characters,
        else its hash."""
        if len(key) <= 250 and key.isascii():
            return f"{self._prefix}:{key}"
        digest = hashlib.blake2b(
            key.encode("utf-8", "surrogatepass"), digest_size=20
        ).hexdigest()
        return f"{self._prefix}#{digest}"


_SHARES: Final = {
    "pages": 0.45,
    "searches": 0.05,
    "embeddings": 0.25,
    "scores": 0.05,
    "trees": 0.15,
    "sessions": 0.05,
}
"""Share of each store in the size limit; pages are largest, embeddings most
numerous."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The open stores by content."""

    pages: Store
    searches: Store
    embeddings: Store
    scores: Store
    trees: Store
    sessions: Store
    own: Store
    """For data from local files: on this machine, or `pages` if that is not shared."""
    place: str
    """Folder of the cache, or the server's address without password."""
    folders: Path
    """Path of the index of local folders, on this machine."""

    @property
    def by_kind(self) -> dict[str, Store]:
        """Stores by name."""
        return {kind: getattr(self, kind) for kind in _SHARES}

    def stats(self) -> dict[str, StoreStats]:
        """Return the statistics of each store by name."""
        return {kind: store.stats() for kind, store in self.by_kind.items()}

    def clear(self) -> int:
        """Delete all entries of every store and the folder index; return the number of
        entries."""
        shutil.rmtree(self.folders, ignore_errors=True)
        return sum(store.clear() for store in self._all)

    def close(self) -> None:
        """Close every store."""
        for store in self._all:
            store.close()

    @property
    def _all(self) -> list[Store]:
        return [
            *self.by_kind.values(),
            *([self.own] if self.own is not self.pages else []),
        ]


_PART: Final = re.compile(
    rf"({'|'.join((*_SHARES, 'own', 'folders', 'cookies'))})(-[0-9a-f]+)?(\.broken-\d+)?"
)
"""Name of a folder that `open_stores` makes; `cookies-…` is a cache of its own."""


def parts_of_cache(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names in a cache's folder that are of the cache, and the others, which
    a person put there."""
    names = sorted(os.listdir(folder))
    ours = [
        name for name in names if _PART.fullmatch(name) and (folder / name).is_dir()
    ]
    return ours, [name for name in names if name not in ours]


def open_stores(
    folder: Path,
    *,
    size_limit: int,
    clock: Callable[[], float] = time.time,
    url: str = "",
    private: bool = False,
    secret: str = "",
) -> Stores:
    """Open or create the cache; if that fails the stores keep nothing, report it in
    `stats()`, and retry.

    `folder` is created for its owner only; `size_limit` is in bytes on disk for all
    stores. A server at `url` keeps the entries instead; `private`: only
    replicas of this server read it, so it also keeps data from local files. `clock`
    returns seconds since the epoch. A `secret` encrypts values; entries of another
    secret, or of none, are not found. Raises `CacheError` for an invalid `url`,
    `MissingExtra` and `BrokenExtra` for the package that its server needs.
    """
    cipher = Cipher(secret) if secret else None
    kinds = (*_SHARES, "own")
    names = {kind: f"{kind}-{cipher.name}" if cipher else kind for kind in kinds}
    new = partial(Store, clock=clock, cipher=cipher)
    on_disk = partial(new, aside=Aside())
    if not url:

        def in_folder(kind: str) -> Store:
            size = max(1, int(size_limit * _SHARES[kind]))
            return on_disk(folder / names[kind], size_limit=size, kind=names[kind])

        # At once: databases that another process holds are waited for together.
        with ThreadPoolExecutor(len(_SHARES)) as pool:
            stores = dict(zip(_SHARES, pool.map(in_folder, _SHARES), strict=True))
        return Stores(
            **stores, own=stores["pages"], place=str(folder), folders=folder / "folders"
        )
    on_server = backends_at(url, (names[kind] for kind in _SHARES), shared=not private)
    aside = Aside()
    stores = {
        kind: new(on_server[names[kind]], kind=names[kind], aside=aside)
        for kind in _SHARES
    }
    own = stores["pages"]
    if not private:
        own = on_disk(folder / names["own"], size_limit=size_limit, kind=names["own"])
    place = on_server[names["pages"]].place
    return Stores(**stores, own=own, place=place, folders=folder / "folders")
