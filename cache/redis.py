"""Rows of the cache on a Valkey or Redis server, which several machines share (extra `redis`).

The server limits the size: set its `maxmemory` and an `allkeys-` eviction policy. What is written
without an expiry leaves after 30 days, so that a shared server never fills with what nobody asks
for.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cache.rows import LOT, CacheTrouble, Held
from errors import CacheError

ANSWER_SECONDS: Final = 1.0
"""A server on the same network answers in a millisecond; one that needs longer than this costs more
than it saves."""
KEEP_SECONDS: Final = timedelta(days=30).total_seconds()
_PREFIX: Final = "winnow/"
"""Every name of ours on a server that others may use too."""
_MOST_MEASURED: Final = LOT * 40
"""Entries of one store that are counted for the figures; 20,000 take about 0.3 s."""
_SWAP: Final = """
local found = redis.call('GET', KEYS[1])
if (found or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
"""


def connect(url: str) -> redis.Redis:
    """Return a client for `url` (redis, rediss, valkey, valkeys or unix://); nothing is asked
    before it is used.

    Raises `CacheError`, whose message holds no password, for an address that cannot be understood.
    """
    scheme, colon, rest = url.partition(":")
    scheme = {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
    try:
        return redis.Redis.from_url(
            f"{scheme}{colon}{rest}",
            socket_timeout=ANSWER_SECONDS,
            socket_connect_timeout=ANSWER_SECONDS,
            # One more try at once: a connection that was kept since the server's restart is found
            # dead only when used.
            retry=Retry(NoBackoff(), 1),
            client_name="winnow",
        )
    except ValueError as e:
        raise CacheError(
            "The address of the cache server cannot be understood.",
            hint="See WINNOW_CACHE_URL.",
        ) from e


def shown(url: str) -> str:
    """Return `url` without user, password and query, for people."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"unix://{parts.path}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or 6379}{parts.path.rstrip('/')}"


class RedisBackend:
    """Rows of one store on a server; what each method does stands at
    `cache.folder.FolderBackend`."""

    def __init__(
        self, client: redis.Redis, kind: str, *, place: str, shared: bool
    ) -> None:
        """Take the rows of store `kind`, which begin with its name; `place` is the address without
        its password."""
        self.shared: Final = shared
        self.place: Final = place
        self.note = ""
        """Whether the server makes room when it is full; known once it was asked."""
        self._client = client
        self._pattern = f"{_PREFIX}{kind}:*"
        self._swap = client.register_script(_SWAP)

    def open(self) -> None:
        """Ask the server whether it is there."""
        with self._guarded():
            self._client.ping()
            self.note = _advice(self._client)

    def get(self, rows: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of those rows that are there; what is no string is passed over."""
        found: dict[str, bytes] = {}
        with self._guarded():
            for start in range(0, len(rows), LOT):
                lot = rows[start : start + LOT]
                blobs = self._client.mget([_PREFIX + row for row in lot])
                found.update(
                    (row, bytes(blob))
                    for row, blob in zip(lot, blobs, strict=True)
                    if blob is not None
                )
        return found

    def names(self, prefix: str) -> list[str]:
        """Return the rows whose names begin with `prefix`; the server looks through all that it
        has."""
        with self._guarded():
            found = self._client.scan_iter(match=f"{_PREFIX}{prefix}*", count=LOT)
            return [
                name.decode("utf-8", "surrogatepass").removeprefix(_PREFIX)
                for name in dict.fromkeys(found)
            ]

    def put(self, blobs: Mapping[str, bytes], *, expire: float | None) -> None:
        """Write all rows in one transaction."""
        milliseconds = _milliseconds(expire)
        with self._guarded(), self._client.pipeline(transaction=True) as pipe:
            for row, blob in blobs.items():
                pipe.set(_PREFIX + row, blob, px=milliseconds)
            pipe.execute()

    def swap(
        self, row: str, old: bytes | None, new: bytes | None, *, expire: float
    ) -> bool:
        """Replace `old` by `new` in one script on the server; False when the row is not `old`."""
        with self._guarded():
            return bool(
                self._swap(
                    keys=[_PREFIX + row],
                    args=[old or b"", new or b"", _milliseconds(expire)],
                )
            )

    def clear(self) -> int:
        """Remove all rows of this store and nothing else; return how many there were."""
        count = 0
        with self._guarded():
            for names in self._names():
                count += int(self._client.unlink(*names))
        return count

    def measure(self) -> Held:
        """Return how much is held, counted over at most 20,000 entries; the server's own overhead
        is not in it."""
        entries = size = 0
        with self._guarded():
            for names in self._names():
                with self._client.pipeline(transaction=False) as pipe:
                    for name in names:
                        pipe.strlen(name)
                    size += sum(
                        int(length)
                        for length in pipe.execute(raise_on_error=False)
                        if isinstance(length, int)
                    )
                entries += len(names)
                if entries >= _MOST_MEASURED:
                    return Held(entries, size, partial=True)
        return Held(entries, size)

    def tidy(self) -> int:
        """Return 0: a server leaves nothing behind."""
        return 0

    def close(self) -> None:
        """Close the connections of the client, which all stores share."""
        self._client.close()

    def _names(self) -> Iterator[list[bytes]]:
        """Yield lots of the names of this store's rows; a name may come twice (SCAN promises no
        more)."""
        found = self._client.scan_iter(match=self._pattern, count=LOT)
        seen: set[bytes] = set()
        while lot := list(islice(found, LOT)):
            fresh = [name for name in dict.fromkeys(lot) if name not in seen]
            seen.update(fresh)
            if fresh:
                yield fresh

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (redis.ConnectionError, redis.TimeoutError) as e:
            raise CacheError(
                f"The cache server {self.place} cannot be used: "
                f"{str(e).rstrip('.') or type(e).__name__}.",
                hint="Check that it runs and that WINNOW_CACHE_URL names it.",
            ) from e
        except redis.RedisError as e:
            raise CacheTrouble(f"the server refused: {e}") from e


def _advice(client: redis.Redis) -> str:
    """Return what the server's settings lack for a cache; nothing where it does not tell them."""
    try:
        memory = client.info("memory")
    except redis.ResponseError:  # a server that hides INFO from its users
        return ""
    policy = str(memory.get("maxmemory_policy", ""))
    if not int(memory.get("maxmemory", 0)):
        return "the server has no maxmemory: it grows until entries expire"
    return (
        ""
        if policy.startswith("allkeys-")
        else f"the server refuses writes when it is full ({policy})"
    )


def _milliseconds(expire: float | None) -> int:
    return max(
        1, int(1000 * (KEEP_SECONDS if expire is None else min(expire, KEEP_SECONDS)))
    )
