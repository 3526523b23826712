"""The stores of the cache: text keys to JSON or bytes, with expiry, and several
processes at once.

Cache failures never fail a call: no method raises for I/O errors. A failed lookup is a
miss, a failed write is dropped; an unusable backend is retried after some seconds.
Failures are logged and counted in `stats()`. Five stores have separate limits, so that
many entries of one kind never evict another. Not for: keys and expiry, which each step
chooses where it writes, nor storage on disk (`cache/folder.py`) or on a server
(`cache/server.py`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from cache.folder import LOCK_WAIT, FolderBackend
from cache.rows import (
    LOT,
    CacheBusy,
    CacheCheck,
    CacheTrouble,
    Cipher,
    Held,
    Kind,
    RefusedRow,
    Verdict,
    judge,
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
LONGEST_AWAY: Final = 300.0
"""Maximum seconds between two retries of an unusable backend."""
AWAY_SECONDS: Final = LOCK_WAIT
"""Seconds until an unusable backend is first retried; meanwhile lookups are misses."""
HELD_BYTES: Final = 32_000_000
"""Maximum bytes of unwritten values that a store keeps in memory."""
_BATCH_WRITES: Final = LOT * 10
"""Maximum writes per transaction: 5,000 small values lock for about 0.5 s."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Content of a store, and counts of this process since it opened the store."""

    entries: int
    """Rows, including expired ones that are not yet evicted."""
    bytes: int
    """Bytes held; on disk the index included."""
    hits: int = 0
    misses: int = 0
    bytes_read: int = 0
    """Bytes of values that lookups returned."""
    bytes_written: int = 0
    problems: int = 0
    last_problem: str = ""
    away: str = ""
    """Why the store is unusable now; "" if it is usable."""
    partial: bool = False
    """Whether there is more than was counted."""
    note: str = ""
    """Events for status reports, such as a damaged database that was recreated."""


def store_text(stats: StoreStats) -> str:
    """Return a line on a store: content, and hits, misses and problems of this process.

    Of an unusable store it says only that nothing is cached.
    """
    if stats.away:
        return "not used, nothing is cached"
    count = f"{'over ' if stats.partial else ''}{stats.entries} entries, {stats.bytes / 1e6:.1f} MB"
    seen = f"{stats.hits} hits, {stats.misses} misses"
    moved = f"{stats.bytes_read / 1e6:.1f} MB read, {stats.bytes_written / 1e6:.1f} MB written"
    trouble = (
        f"; problems: {stats.problems}, the last: {stats.last_problem}"
        if stats.problems
        else ""
    )
    note = f"; {stats.note}" if stats.note else ""
    return f"{count}; since start {seen}, {moved}{trouble}{note}"


def cache_trouble(stores: dict[str, StoreStats]) -> str:
    """Return a line on the cache's problems, or ""; it gives the reason of the first
    store only. Unusable stores hide those with single failures."""
    away = {kind: stats.away for kind, stats in stores.items() if stats.away}
    failed = {
        kind: stats.last_problem
        for kind, stats in stores.items()
        if stats.problems and not stats.away
    }
    if away:
        return (
            f"NOT USED for {', '.join(away)}; Winnow continues without it. "
            f"{next(iter(away.values()))}"
        )
    if failed:
        return (
            f"had problems with {', '.join(failed)}; Winnow continued without it. "
            f"{next(iter(failed.values()))}"
        )
    return ""


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
    ) -> None:
        """Open or create the store at `place`, a folder or a backend; if that fails it
        keeps nothing, and tries again later.

        Beyond `size_limit` bytes the oldest entries are removed. `clock` returns
        seconds since the epoch, for expiry; `kind` is part of every row's name. A
        `cipher` encrypts values, not names.
        """
        self._backend: RowBackend = (
            FolderBackend(place, size_limit=size_limit)
            if isinstance(place, Path)
            else place
        )
        self._clock = clock
        self._prefix = f"{kind}:{SCHEMA_VERSION}"
        self._cipher = cipher
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()
        self._last_problem = ""
        self._held: dict[str, bytes] = {}
        """Values that may not, or could not, be written."""
        self._away = ""
        self._away_until = 0.0
        self._rests = AWAY_SECONDS
        self._logged: dict[str, float] = {}
        self._attempt("opening", self._backend.open, None)

    @property
    def shared(self) -> bool:
        """Whether other servers may read this store."""
        return self._backend.shared

    def get_json(self, key: str) -> JsonValue:
        """Return the JSON value of `key`; None if missing, expired, bytes, or invalid
        JSON (counted as a problem)."""
        found = self._lookup([key], b"J").get(key)
        if found is None:
            return None
        try:
            value: JsonValue = json.loads(found)
        except (ValueError, RecursionError) as e:
            self._note("reading JSON", e)
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
        kept = self._set([(key, value)], b"B", expire)
        if kept:
            self._held.pop(key, None)
        return kept

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
        """Store `items` in transactions of up to 5,000: all or none of each batch."""
        pairs = iter(items.items())
        while lot := list(islice(pairs, _BATCH_WRITES)):
            self._set(lot, b"B", expire)

    def keys(self, prefix: str) -> list[str]:
        """Return the short keys that start with `prefix`, including expired ones."""
        nothing: list[str] = []
        rows = self._attempt(
            "names", lambda: self._backend.names(self._row(prefix)), nothing
        )
        return [row.removeprefix(f"{self._prefix}:") for row in rows]

    def claim(self, key: str, *, seconds: float) -> Claim | None:
        """Return a lease on `key` for `seconds`; None while another process or task has
        it.

        An expired or damaged lease is taken over. If the cache is unusable every caller
        gets a lease: work may be done twice, but is done.
        """
        mine = self._fresh_claim(self._row(f"claim:{key}"), seconds)
        done, found = self._swap(mine.row, None, mine.blob, seconds)
        if (
            not done
            and found is not None
            and judge(mine.row, found, now=self._clock()) != "whole"
        ):
            done, _ = self._swap(mine.row, found, mine.blob, seconds)
        return mine if done else None

    def renew(self, claim: Claim, *, seconds: float) -> Claim:
        """Return the lease renewed for `seconds`, unless another owner has it now."""
        mine = self._fresh_claim(claim.row, seconds)
        return (
            mine if self._swap(claim.row, claim.blob, mine.blob, seconds)[0] else claim
        )

    def _fresh_claim(self, row: str, seconds: float) -> Claim:
        return Claim(
            row,
            seal(
                row, uuid.uuid4().bytes, kind=b"B", expires_at=self._clock() + seconds
            ),
        )

    def release(self, claim: Claim) -> None:
        """Release a lease, unless another owner has it now."""
        self._swap(claim.row, claim.blob, None, 0.0)

    def clear(self) -> int:
        """Delete all entries; return their number."""
        self._held.clear()
        return self._attempt("clear", self._backend.clear, 0)

    def verify(self) -> CacheCheck:
        """Read every entry; remove damaged and expired ones and those of another
        schema.

        If the cache fails, the result has only the note `not checked`; a damaged
        database, which is recreated, counts as one damaged entry.
        """

        def check() -> CacheCheck:
            before = self._backend.note
            counts: Counter[Verdict] = Counter()
            try:
                orphans = self._backend.tidy()
                rows = self._backend.names(self._prefix.removesuffix(SCHEMA_VERSION))
                for start in range(0, len(rows), LOT):
                    for row, blob in self._backend.get(
                        rows[start : start + LOT]
                    ).items():
                        counts[verdict := self._judged(row, blob)] += 1
                        if verdict != "whole":
                            self._backend.swap(row, blob, None, expire=0.0)
            except CacheTrouble:
                if self._backend.note == before:
                    raise
                return CacheCheck(damaged=1, note=self._backend.note)
            return CacheCheck(
                counts["whole"], counts["damaged"], counts["expired"], orphans
            )

        return self._attempt("verify", check, CacheCheck(note="not checked"))

    def _judged(self, row: str, blob: bytes) -> Verdict:
        found = judge(row, blob, now=self._clock())
        current = row.startswith((f"{self._prefix}:", f"{self._prefix}#"))
        return found if current or found == "damaged" else "expired"

    def stats(self) -> StoreStats:
        """Return the statistics of the store; without entries and bytes if they cannot
        be counted."""
        held = self._attempt("stats", self._backend.measure, Held(0, 0))
        with self._lock:
            return StoreStats(
                held.entries,
                held.bytes,
                hits=self._seen["hits"],
                misses=self._seen["misses"],
                bytes_read=self._seen["bytes_read"],
                bytes_written=self._seen["bytes_written"],
                problems=self._seen["problems"],
                last_problem=self._last_problem,
                away=self._away,
                partial=held.partial,
                note=self._backend.note,
            )

    def seen(self) -> dict[str, int]:
        """Return hits, misses, problems and 1 if unusable, without accessing the
        backend."""
        with self._lock:
            return {
                **{name: self._seen[name] for name in ("hits", "misses", "problems")},
                "away": int(bool(self._away)),
            }

    def close(self) -> None:
        """Close connections; the next use reopens the store."""
        self._backend.close()

    def _lookup(self, keys: Iterable[str], kind: Kind) -> dict[str, bytes]:
        rows = {self._row(key): key for key in keys}
        nothing: dict[str, bytes] = {}
        found: dict[str, bytes] = {}
        now = self._clock()
        for row, blob in self._attempt(
            "lookup", lambda: self._backend.get(list(rows)), nothing
        ).items():
            try:
                value = unseal(row, blob, kind=kind, now=now)
                value = self._unlocked(row, value) if value is not None else None
            except RefusedRow as e:
                self._note("lookup", e)
                self._attempt(
                    "delete",
                    partial(self._backend.swap, row, blob, None, expire=0.0),
                    False,
                )
                continue
            if value is not None:
                found[rows[row]] = value
        self._count(
            hits=len(found),
            misses=len(rows) - len(found),
            bytes_read=sum(map(len, found.values())),
        )
        return found

    def _set(
        self, pairs: list[tuple[str, bytes]], kind: Kind, expire: float | None
    ) -> bool:
        expires_at = math.inf if expire is None else self._clock() + expire
        rows = [(self._row(key), payload) for key, payload in pairs]
        blobs = {
            row: seal(row, self._locked(row, payload), kind=kind, expires_at=expires_at)
            for row, payload in rows
        }

        def write() -> bool:
            self._backend.put(blobs, expire=expire)
            return True

        written = self._attempt("write", write, False)
        self._count(bytes_written=sum(map(len, blobs.values())) if written else 0)
        return written

    def _locked(self, row: str, payload: bytes) -> bytes:
        return self._cipher.lock(row, payload) if self._cipher else payload

    def _unlocked(self, row: str, kept: bytes) -> bytes:
        return self._cipher.open(row, kept) if self._cipher else kept

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
        return self._attempt("claim", swap, free)

    def _attempt(self, action: str, work: Callable[[], T], otherwise: T) -> T:
        """Return the result of `work`, or `otherwise` if the backend fails (logged and
        counted).

        After a lock or an unusable cache `work` is not called for some time.
        """
        if time.monotonic() < self._away_until:
            return otherwise
        result = otherwise
        try:
            result = work()
        except CacheTrouble as e:
            self._note(action, e)
            if isinstance(e, CacheBusy):  # each use would wait for the timeout again
                self._rest()
                return otherwise
        except CacheError as e:
            if not self._away:
                self._count(problems=1)
                self._last_problem = str(e)
                _log.warning("the cache is unusable and will be retried: %s", e)
            self._away = str(e)
            self._rest()
            return otherwise
        self._rests = AWAY_SECONDS
        if self._away:
            self._away = ""
            _log.warning("the cache %s is used again", self._backend.place)
        return result

    def _rest(self) -> None:
        """Pause use of the backend, each time twice as long."""
        self._away_until = time.monotonic() + self._rests
        self._rests = min(2 * self._rests, LONGEST_AWAY)

    def _note(self, action: str, error: Exception) -> None:
        """Count a problem; log it unless the same one was logged in the last minute: a
        full disk would fill the log."""
        text = f"{action}: {error or type(error).__name__}"
        self._count(problems=1)
        self._last_problem = text
        now = time.monotonic()
        if now >= self._logged.get(text, 0.0):
            self._logged = {
                old: until for old, until in self._logged.items() if until > now
            }
            self._logged[text] = now + 60
            _log.warning("the cache %s skipped an entry: %s", self._backend.place, text)

    def _count(self, **seen: int) -> None:
        with self._lock:
            self._seen.update(seen)

    def _row(self, key: str) -> str:
        """Return a key's row name: the key if it is ASCII of at most 250 characters,
        else its hash."""
        if len(key) <= 250 and key.isascii():
            return f"{self._prefix}:{key}"
        digest = hashlib.blake2b(
            key.encode("utf-8", "surrogatepass"), digest_size=20
        ).hexdigest()
        return f"{self._prefix}#{digest}"


@contextmanager
def _raising() -> Iterator[None]:
    """Convert a cache failure, which answers ignore, into a `CacheError`."""
    try:
        yield
    except (CacheTrouble, RefusedRow) as error:
        raise CacheError(
            f"The cache cannot be read or written: {error}.",
            hint="Run `winnow cache verify`, which removes damaged entries.",
        ) from error


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

    def verify(self) -> dict[str, CacheCheck]:
        """Verify every store; return the results by name."""
        return {kind: store.verify() for kind, store in self.by_kind.items()}

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
    names = {
        kind: f"{kind}-{cipher.name}" if cipher else kind for kind in (*_SHARES, "own")
    }
    new = partial(Store, clock=clock, cipher=cipher)
    if not url:
        sizes = {
            kind: max(1, int(size_limit * share)) for kind, share in _SHARES.items()
        }
        made = {
            kind: new(folder / names[kind], size_limit=size, kind=names[kind])
            for kind, size in sizes.items()
        }
        return Stores(
            **made, own=made["pages"], place=str(folder), folders=folder / "folders"
        )
    on_server = backends_at(url, (names[kind] for kind in _SHARES), shared=not private)
    backends = {kind: on_server[names[kind]] for kind in _SHARES}
    place = backends["pages"].place
    made = {kind: new(backend, kind=names[kind]) for kind, backend in backends.items()}
    own = (
        made["pages"]
        if private
        else new(folder / names["own"], size_limit=size_limit, kind=names["own"])
    )
    return Stores(**made, own=own, place=place, folders=folder / "folders")
