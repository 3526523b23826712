"""The stores of the cache: text keys to JSON or bytes, with expiry, and several processes at once.

A cache must never cost an answer: no method raises over the disk or the network. A lookup that
fails is a miss, a write that fails is not kept; a backend that cannot be used at all is left alone
for some seconds, then tried again. All of that is logged and counted in `stats()`. Five stores have
a sub-folder each, so that a burst of one kind never evicts another. Not for: keys and expiry, which
each step chooses where it writes, nor how rows lie on disk (`cache/folder.py`) or on a server
(`cache/redis.py`).
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
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from cache.folder import LOCK_WAIT, FolderBackend
from cache.rows import (
    LOT,
    CacheBusy,
    CacheCheck,
    CacheTrouble,
    Cipher,
    Entry,
    Held,
    Kind,
    RefusedRow,
    Verdict,
    judge,
    opened,
    seal,
    unseal,
)
from errors import CacheError
from extra import importing

if TYPE_CHECKING:
    from cache.redis import RedisBackend

    Backend: TypeAlias = FolderBackend | RedisBackend

JsonValue: TypeAlias = (
    "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
)
T = TypeVar("T")

SCHEMA: Final = "2"
"""Part of every row's name. Raised when the meaning of values changes: old entries are then never
found, and leave."""
LONGEST_AWAY: Final = 300.0
"""Seconds until a store that stays away is tried again; each try may wait for it."""
AWAY_SECONDS: Final = LOCK_WAIT
"""A backend that could not be used is tried again after this long; between, lookups are misses that
cost nothing."""
HELD_BYTES: Final = 32_000_000
"""Most that one store holds in memory of what may not, or cannot, be written."""
_BATCH: Final = LOT * 10
"""Writes in one transaction; one of 5,000 small values holds the lock for about 0.5 s, a tenth of
`LOCK_WAIT`."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds, and what this process has seen of it since it opened the store."""

    entries: int
    """Rows, those expired but not yet evicted included."""
    bytes: int
    """Bytes held; on disk the index included."""
    hits: int = 0
    misses: int = 0
    bytes_read: int = 0
    """Bytes of values that lookups brought."""
    bytes_written: int = 0
    problems: int = 0
    last_problem: str = ""
    away: str = ""
    """Why the store cannot be used at the moment; empty when it can."""
    partial: bool = False
    """Whether there is more than was counted."""
    note: str = ""
    """What happened that people should know, such as a damaged database that was begun anew."""


def store_text(stats: StoreStats) -> str:
    """Return what a store holds and how it has fared since this process began, on one line."""
    if stats.away:
        return "not used, answers are worked out anew each time"
    count = f"{'over ' if stats.partial else ''}{stats.entries} entries, {stats.bytes / 1e6:.1f} MB"
    seen = f"{stats.hits} hits, {stats.misses} misses"
    moved = f"{stats.bytes_read / 1e6:.1f} MB read, {stats.bytes_written / 1e6:.1f} MB written"
    trouble = (
        f"; {stats.problems} problems, the last: {stats.last_problem}"
        if stats.problems
        else ""
    )
    note = f"; {stats.note}" if stats.note else ""
    return f"{count}; since start {seen}, {moved}{trouble}{note}"


def cache_trouble(stores: dict[str, StoreStats]) -> str:
    """Return what is wrong with the cache on one line, nothing when it works."""
    away = {kind: stats.away for kind, stats in stores.items() if stats.away}
    failed = {
        kind: stats.last_problem
        for kind, stats in stores.items()
        if stats.problems and not stats.away
    }
    if away:
        return (
            f"NOT USED for {', '.join(away)}; Winnow works on without it. "
            f"{next(iter(away.values()))}"
        )
    if failed:
        return (
            f"had trouble with {', '.join(failed)}; Winnow worked on without it. "
            f"{next(iter(failed.values()))}"
        )
    return ""


@dataclass(frozen=True, slots=True)
class Claim:
    """The sole right to work on something: it holds while `blob` lies under `row`."""

    row: str
    blob: bytes


class Store:
    """Keys to values. Safe for threads and processes; made by `open_stores`."""

    def __init__(
        self,
        place: Path | Backend,
        *,
        clock: Callable[[], float],
        size_limit: int = 0,
        kind: str = "",
        cipher: Cipher | None = None,
    ) -> None:
        """Open or make the store at `place`, its own folder or a backend; while that fails the
        store keeps nothing.

        Over `size_limit` bytes on disk the entries stored longest ago leave. `clock` gives seconds
        since the epoch and decides expiry; `kind` is part of every row's name, so that no entry is
        taken for one of another store. With a `cipher` values are locked, names are not.
        """
        self._backend: Backend = (
            FolderBackend(place, size_limit=size_limit)
            if isinstance(place, Path)
            else place
        )
        self._clock = clock
        self._prefix = f"{kind}:{SCHEMA}"
        self._cipher = cipher
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()
        self._last_problem = ""
        self._held: dict[str, bytes] = {}
        """What may not, or cannot, be written."""
        self._away = ""
        self._away_until = 0.0
        self._rests = AWAY_SECONDS
        self._logged: dict[str, float] = {}
        self._attempt("opening", self._backend.open, None)

    @property
    def shared(self) -> bool:
        """Whether other people's servers may read what is kept here."""
        return self._backend.shared

    def get_json(self, key: str) -> JsonValue:
        """Return the JSON value of `key`, None when there is none, it has expired, or it is
        bytes."""
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
        """Keep `value` for `expire` seconds (None: until evicted). It is there when this returns,
        problems aside."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        self._set([(key, text.encode("utf-8", "surrogatepass"))], b"J", expire)

    def get_bytes(self, key: str) -> bytes | None:
        """Return the bytes of `key`, None when there are none, they have expired, or the value is
        JSON."""
        held = self._held.get(key)
        return held if held is not None else self._lookup([key], b"B").get(key)

    def set_bytes(self, key: str, value: bytes, *, expire: float | None = None) -> bool:
        """Keep `value` for `expire` seconds (None: until evicted); return whether it is there
        now."""
        kept = self._set([(key, value)], b"B", expire)
        if kept:
            self._held.pop(key, None)
        return kept

    def hold(self, key: str, value: bytes) -> None:
        """Keep `value` in this process only: what may not, or cannot, be written. The oldest leave
        over 32 MB."""
        with self._lock:
            self._held.pop(key, None)
            if len(value) <= HELD_BYTES:
                self._held[key] = value
            while sum(map(len, self._held.values())) > HELD_BYTES:
                del self._held[next(iter(self._held))]

    def get_many_bytes(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of those of `keys` that are there; 10,000 small values take about 0.2
        s."""
        return self._lookup(keys, b"B")

    def set_many_bytes(
        self, items: Mapping[str, bytes], *, expire: float | None = None
    ) -> None:
        """Keep all `items`, up to 5,000 in one transaction: of each such lot all are kept, or
        none."""
        pairs = iter(items.items())
        while lot := list(islice(pairs, _BATCH)):
            self._set(lot, b"B", expire)

    def keys(self, prefix: str) -> list[str]:
        """Return the short keys that begin with `prefix`, of entries that have expired as well."""
        nothing: list[str] = []
        rows = self._attempt(
            "names", lambda: self._backend.names(self._row(prefix)), nothing
        )
        return [row.removeprefix(f"{self._prefix}:") for row in rows]

    def claim(self, key: str, *, seconds: float) -> Claim | None:
        """Return the sole right to work on `key` for `seconds`, None while another process or task
        holds it.

        Where the cache cannot be used everyone gets a right: work is then done twice rather than
        not at all.
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
        """Return a right that holds for `seconds` from now; one that has passed to another owner
        stays there."""
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
        """Give a right back; one that has passed to another owner stays with that owner."""
        self._swap(claim.row, claim.blob, None, 0.0)

    def clear(self) -> int:
        """Forget everything; return how many entries left."""
        self._held.clear()
        return self._attempt("clear", self._backend.clear, 0)

    def verify(self) -> CacheCheck:
        """Read every entry and remove those that are damaged, expired or of another schema."""

        def check() -> CacheCheck:
            before = self._backend.note
            counts: Counter[Verdict] = Counter()
            try:
                orphans = self._backend.tidy()
                rows = self._backend.names(self._prefix.removesuffix(SCHEMA))
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

    def entries(self) -> Iterator[Entry]:
        """Yield every entry that is whole and holds, rights to work aside; raises `CacheError`
        where that cannot be."""
        with _raising():
            rows = self._backend.names(self._prefix)
            for start in range(0, len(rows), LOT):
                for row, blob in self._backend.get(rows[start : start + LOT]).items():
                    name = row.removeprefix(self._prefix).removeprefix(":")
                    if self._judged(row, blob) == "whole" and not name.startswith(
                        "claim:"
                    ):
                        form, expires_at, payload = opened(row, blob)
                        yield Entry(
                            name, form, expires_at, self._unlocked(row, payload)
                        )

    def keep(self, entry: Entry) -> bool:
        """Put an entry in again; return False where its time is over. Raises `CacheError` where it
        cannot be kept."""
        seconds = entry.expires_at - self._clock()
        if seconds <= 0:
            return False
        row = f"{self._prefix}{'' if entry.name.startswith('#') else ':'}{entry.name}"
        blob = seal(
            row,
            self._locked(row, entry.payload),
            kind=entry.form,
            expires_at=entry.expires_at,
        )
        with _raising():
            self._backend.put(
                {row: blob}, expire=None if math.isinf(seconds) else seconds
            )
        return True

    def stats(self) -> StoreStats:
        """Return what the store holds and how it has fared."""
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
        """Return hits, misses, problems and whether the store is away (0 or 1), without a question
        to its place."""
        with self._lock:
            return {
                **{name: self._seen[name] for name in ("hits", "misses", "problems")},
                "away": int(bool(self._away)),
            }

    def close(self) -> None:
        """Let go of connections; the store reopens by itself when it is used again."""
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
        """Return whether a claim's row was replaced, and what is there if not; True where the cache
        is away."""

        def swap() -> tuple[bool, bytes | None]:
            if self._backend.swap(row, old, new, expire=seconds):
                return True, new
            return False, self._backend.get([row]).get(row)

        free: tuple[bool, bytes | None] = (True, None)
        return self._attempt("claim", swap, free)

    def _attempt(self, action: str, work: Callable[[], T], otherwise: T) -> T:
        """Return what `work` returns, `otherwise` where the backend refuses; log and count that."""
        if time.monotonic() < self._away_until:
            return otherwise
        result = otherwise
        try:
            result = work()
        except CacheTrouble as e:
            self._note(action, e)
            if isinstance(e, CacheBusy):  # each use would wait as long again
                self._rest()
                return otherwise
        except CacheError as e:
            if not self._away:
                self._count(problems=1)
                self._last_problem = str(e)
                _log.warning("the cache is not used until it can be: %s", e)
            self._away = str(e)
            self._rest()
            return otherwise
        self._rests = AWAY_SECONDS
        if self._away:
            self._away = ""
            _log.warning("the cache %s is used again", self._backend.place)
        return result

    def _rest(self) -> None:
        """Ask the backend for nothing for a while, each time for twice as long."""
        self._away_until = time.monotonic() + self._rests
        self._rests = min(2 * self._rests, LONGEST_AWAY)

    def _note(self, action: str, error: Exception) -> None:
        """Count a problem; log it unless the same one was logged in the last minute: a full disk
        would fill the log."""
        text = f"{action}: {error or type(error).__name__}"
        self._count(problems=1)
        self._last_problem = text
        now = time.monotonic()
        if now >= self._logged.get(text, 0.0):
            self._logged = {
                old: until for old, until in self._logged.items() if until > now
            }
            self._logged[text] = now + 60
            _log.warning(
                "the cache %s goes on without an entry; %s", self._backend.place, text
            )

    def _count(self, **seen: int) -> None:
        with self._lock:
            self._seen.update(seen)

    def _row(self, key: str) -> str:
        """Return the name of a key's row: readable where it is short, the hash of it where it is
        not."""
        if len(key) <= 250 and key.isascii():
            return f"{self._prefix}:{key}"
        digest = hashlib.blake2b(
            key.encode("utf-8", "surrogatepass"), digest_size=20
        ).hexdigest()
        return f"{self._prefix}#{digest}"


@contextmanager
def _raising() -> Iterator[None]:
    """Say as an error what an answer would go on without."""
    try:
        yield
    except (CacheTrouble, RefusedRow) as error:
        raise CacheError(
            f"The cache cannot be read or written: {error}.",
            hint="See `winnow cache verify`.",
        ) from error


_SHARES: Final = {
    "pages": 0.45,
    "searches": 0.05,
    "embeddings": 0.25,
    "scores": 0.05,
    "trees": 0.15,
    "sessions": 0.05,
}
"""Each store's part of the size limit. Pages are the largest single values; embeddings the most
numerous."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The open stores, by what they keep."""

    pages: Store
    searches: Store
    embeddings: Store
    scores: Store
    trees: Store
    sessions: Store
    own: Store
    """For what is made of a person's own files: on this machine, or `pages` where nobody else reads
    those."""
    place: str
    """Where the cache lies: its folder, or the address of a server without the password."""
    folders: Path
    """Where the index of a person's folders lies: on this machine."""

    @property
    def by_kind(self) -> dict[str, Store]:
        """Each store by its name."""
        return {kind: getattr(self, kind) for kind in _SHARES}

    def stats(self) -> dict[str, StoreStats]:
        """Return the figures of each store by its name."""
        return {kind: store.stats() for kind, store in self.by_kind.items()}

    def clear(self) -> int:
        """Forget everything in every store, and the index of folders; return how many entries
        left."""
        shutil.rmtree(self.folders, ignore_errors=True)
        return sum(store.clear() for store in self._all)

    def verify(self) -> dict[str, CacheCheck]:
        """Read every entry of each store, remove what is not whole, and return what was found by
        store."""
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
    """Open or make the cache; where it cannot be used the stores keep nothing, say so in `stats()`,
    and try again.

    `folder` is made if absent, with access for its owner only; `size_limit` is bytes on disk for
    all stores together. A Valkey or Redis server at `url` keeps the entries instead; `private` says
    that replicas of this server alone read it, so that it keeps what is made of a person's files as
    well. `clock` gives seconds since the epoch and decides expiry. With a `secret` values are
    locked; entries of another secret, or of none, are not seen. Raises `MissingExtra` without the
    package `redis`, `BrokenExtra` where it cannot be imported, `CacheError` for a `url` that cannot
    be understood.
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
    with importing("redis", "A cache server (cache_url)"):
        from cache.redis import RedisBackend, connect, shown  # noqa: PLC0415  an extra that few install
    client, place = connect(url), shown(url)
    backends = {
        kind: RedisBackend(client, names[kind], place=place, shared=not private)
        for kind in _SHARES
    }
    made = {kind: new(backend, kind=names[kind]) for kind, backend in backends.items()}
    own = (
        made["pages"]
        if private
        else new(folder / names["own"], size_limit=size_limit, kind=names["own"])
    )
    return Stores(**made, own=own, place=place, folders=folder / "folders")
