"""Open connections, kept by origin so that the next page of a site needs no new one.

One pool for all sites looks at every connection it holds, twice a request; a crawl over many sites then spends more on
looking than on asking. Not for: how many requests may go at once (`pipeline/fetch/gates.py`).
"""

import ssl
import time
from collections.abc import Callable
from typing import Final

import httpcore2

_MOST_ORIGINS: Final = 64
"""Sites whose connections stay open; more than requests may be under way, so that none of those is closed."""
_IDLE_SECONDS: Final = 15.0
_MOST_IDLE: Final = 6
"""Idle connections to one origin, as many as browsers open."""


class OriginPools(httpcore2.AsyncConnectionPool):
    """A pool that is many: one for each origin, the one that was not used for longest closed first."""

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext,
        network_backend: httpcore2.AsyncNetworkBackend,
        max_connections: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open nothing yet.

        Args:
            ssl_context: Which certificates are trusted.
            network_backend: Opens the connections.
            max_connections: For each origin.
            clock: Seconds of a clock that only moves forward.
        """
        super().__init__(ssl_context=ssl_context, network_backend=network_backend)
        self._context = ssl_context
        self._backend = network_backend
        self._most = max_connections
        self._clock = clock
        self._pools: dict[str, tuple[httpcore2.AsyncConnectionPool, float]] = {}
        """With the time of the last use; the one used last at the end."""

    @property
    def connections(self) -> list[httpcore2.AsyncConnectionInterface]:
        """All connections that are open or being opened."""
        return [connection for pool, _ in self._pools.values() for connection in pool.connections]

    async def handle_async_request(self, request: httpcore2.Request) -> httpcore2.Response:
        """Send a request over a connection to its origin.

        Raises:
            httpcore2.ConnectError: No connection could be opened; and what else a pool raises.
        """
        await self._close_old()
        origin = str(request.url.origin)
        known = self._pools.pop(origin, None)
        pool = self._new() if known is None else known[0]
        # No await between here and the pool's own bookkeeping: it counts the request before it waits for anything.
        self._pools[origin] = pool, self._clock()
        return await pool.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        pools = list(self._pools.values())
        self._pools.clear()
        for pool, _ in pools:
            await pool.aclose()

    def _new(self) -> httpcore2.AsyncConnectionPool:
        return httpcore2.AsyncConnectionPool(
            ssl_context=self._context,
            max_connections=self._most,
            max_keepalive_connections=_MOST_IDLE,
            keepalive_expiry=_IDLE_SECONDS,
            http1=True,
            http2=True,
            network_backend=self._backend,
        )

    async def _close_old(self) -> None:
        """Close what was not used for a while, and the oldest beyond `_MOST_ORIGINS`."""
        stale = self._clock() - _IDLE_SECONDS
        closing: list[httpcore2.AsyncConnectionPool] = []
        for origin, (pool, used) in list(self._pools.items()):
            if used > stale and len(self._pools) < _MOST_ORIGINS:
                break
            if all(connection.is_idle() for connection in pool.connections):
                del self._pools[origin]
                closing.append(pool)
        for pool in closing:
            await pool.aclose()
