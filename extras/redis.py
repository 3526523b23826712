"""Rows of the cache on a Valkey or Redis server, which several machines share (extra
`redis`).

The server limits the size: set its `maxmemory` and an `allkeys-` eviction policy.
Entries without an expiry get 30 days, so that a shared server does not fill with unused
data.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cache.rows import LOT, CacheTrouble, StoreStats
from cache.server import RowBackend
from errors import CacheError

ANSWER_SECONDS: Final = 1.0
"""Timeout in seconds; slower answers would cost more than the cache saves."""
KEEP_SECONDS: Final = timedelta(days=30).total_seconds()
_KEY_PREFIX: Final = "winnow/"
"""Prefix of all our keys on the server."""
_MOST_MEASURED: Final = LOT * 40
"""Maximum entries of one store that are counted for statistics (about 0.3 s)."""
_SWAP: Final = """
local found = redis.call('GET', KEYS[1])
if (found or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
"""


def connect(url: str) -> redis.Redis:
    """Return a client for `url` (redis, rediss, valkey, valkeys or unix://); connects
    at the first use.

    Raises `CacheError` (without the password) for an invalid address.
    """
    scheme, colon, remainder = url.partition(":")
    scheme = {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
    try:
        return redis.Redis.from_url(
            f"{scheme}{colon}{remainder}",
            socket_timeout=ANSWER_SECONDS,
            socket_connect_timeout=ANSWER_SECONDS,
            # One retry: after a restart of the server, kept connections fail only when
            # used.
            retry=Retry(NoBackoff(), 1),
            client_name="winnow",
        )
    except ValueError as e:
        raise CacheError(
            "The address of the cache server (WINNOW_CACHE_URL) is invalid.",
            hint="Use an address such as redis://:PASSWORD@cache:6379/0.",
        ) from e


def backends_at(
    url: str, kinds: Iterable[str], *, shared: bool
) -> dict[str, RowBackend]:
    """Return a backend for each store name of `kinds`, over one client of `url`.

    Raises `CacheError` for an invalid address.
    """
    client, place = connect(url), shown(url)
    return {
        kind: RedisBackend(client, kind, place=place, shared=shared) for kind in kinds
    }


def shown(url: str) -> str:
    """Return `url` without user, password and query, for messages."""
    address_parts = urlsplit(url)
    if address_parts.scheme == "unix":
        return f"unix://{address_parts.path}"
    host = (
        f"[{address_parts.hostname}]"
        if ":" in (address_parts.hostname or "")
        else address_parts.hostname
    )
    return f"{address_parts.scheme}://{host}:{address_parts.port or 6379}{address_parts.path.rstrip('/')}"


class RedisBackend:
    """Rows of one store on a server: a `cache.server.RowBackend`."""

    def __init__(
        self, client: redis.Redis, kind: str, *, place: str, shared: bool
    ) -> None:
        """Set the store `kind` (the key prefix) and its address without password,
        `place`."""
        self.shared: Final = shared
        self.place: Final = place
        self.note = ""
        """Whether the server evicts entries when it is full; known after `open`."""
        self._client = client
        self._pattern = f"{_KEY_PREFIX}{kind}:*"
        self._swap = client.register_script(_SWAP)

    def open(self) -> None:
        """Ping the server and check its settings."""
        with self._guarded():
            self._client.ping()
            self.note = _advice(self._client)

    def get(self, rows: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of existing rows; values that are not strings are
        skipped."""
        rows_found: dict[str, bytes] = {}
        with self._guarded():
            for start in range(0, len(rows), LOT):
                lot = rows[start : start + LOT]
                blobs = self._client.mget([_KEY_PREFIX + row for row in lot])
                rows_found.update(
                    (row, bytes(blob))
                    for row, blob in zip(lot, blobs, strict=True)
                    if blob is not None
                )
        return rows_found

    def names(self, prefix: str) -> list[str]:
        """Return the rows whose names start with `prefix`; scans all keys of the
        server."""
        with self._guarded():
            rows_found = self._client.scan_iter(
                match=f"{_KEY_PREFIX}{prefix}*", count=LOT
            )
            return [
                name.decode("utf-8", "surrogatepass").removeprefix(_KEY_PREFIX)
                for name in dict.fromkeys(rows_found)
            ]

    def put(self, blobs: Mapping[str, bytes], *, expire: float | None) -> None:
        """Write all rows in one transaction."""
        milliseconds = _milliseconds(expire)
        with self._guarded(), self._client.pipeline(transaction=True) as pipe:
            for row, blob in blobs.items():
                pipe.set(_KEY_PREFIX + row, blob, px=milliseconds)
            pipe.execute()

    def swap(
        self, row: str, old: bytes | None, new: bytes | None, *, expire: float
    ) -> bool:
        """Replace `old` by `new` in one script on the server; False when the row is not
        `old` (None: no row)."""
        with self._guarded():
            return bool(
                self._swap(
                    keys=[_KEY_PREFIX + row],
                    args=[old or b"", new or b"", _milliseconds(expire)],
                )
            )

    def clear(self) -> int:
        """Delete all rows of this store; return their number."""
        count = 0
        with self._guarded():
            for names in self._names():
                count += int(self._client.unlink(*names))
        return count

    def measure(self) -> StoreStats:
        """Return entries and bytes, counted over at most 20,000 entries, without the
        server's overhead."""
        entries = size = 0
        with self._guarded():
            for names in self._names():
                with self._client.pipeline(transaction=False) as pipe:
                    for name in names:
                        pipe.strlen(name)
                    lengths = pipe.execute(raise_on_error=False)
                size += sum(length for length in lengths if isinstance(length, int))
                entries += len(names)
                if entries >= _MOST_MEASURED:
                    return StoreStats(entries, size, partial=True)
        return StoreStats(entries, size)

    def close(self) -> None:
        """Close the client's connections, shared by all stores."""
        self._client.close()

    def _names(self) -> Iterator[list[bytes]]:
        """Yield batches of this store's row names; SCAN may repeat a name."""
        rows_found = self._client.scan_iter(match=self._pattern, count=LOT)
        seen: set[bytes] = set()
        while lot := list(islice(rows_found, LOT)):
            unseen = [name for name in dict.fromkeys(lot) if name not in seen]
            seen.update(unseen)
            if unseen:
                yield unseen

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
    """Return a warning about the server's cache settings; "" if they are fine, or if the
    server refuses the command INFO."""
    try:
        memory = client.info("memory")
    except redis.ResponseError:  # the server does not allow INFO
        return ""
    policy = str(memory.get("maxmemory_policy", ""))
    if not int(memory.get("maxmemory", 0)):
        return "the server has no maxmemory: it grows until entries expire"
    if not policy.startswith("allkeys-"):
        return f"the server may refuse writes when it is full ({policy})"
    return ""


def _milliseconds(expire: float | None) -> int:
    return max(
        1, int(1000 * (KEEP_SECONDS if expire is None else min(expire, KEEP_SECONDS)))
    )
