"""Who may go at once: so many requests overall, so many to one host, one flight for one URL.

Not for: rates over time; a server that wants fewer requests says so with 429 and `Retry-After`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class Gates:
    """Counts of one fetcher. Hosts and URLs that nobody waits for are forgotten."""

    def __init__(self, *, overall: int, per_host: int) -> None:
        self._overall = anyio.Semaphore(overall)
        self._per_host = per_host
        self._hosts: dict[str, tuple[anyio.Semaphore, int]] = {}
        self._flights: dict[str, tuple[anyio.Lock, int]] = {}

    @asynccontextmanager
    async def request(self, host: str) -> AsyncIterator[None]:
        """Hold a place for one request to `host`."""
        semaphore, waiting = self._hosts.get(host) or (anyio.Semaphore(self._per_host), 0)
        self._hosts[host] = (semaphore, waiting + 1)
        try:
            # The host's place first: a slow host's queue must not hold places that others could use.
            async with semaphore, self._overall:
                yield
        finally:
            semaphore, waiting = self._hosts[host]
            if waiting == 1:
                del self._hosts[host]
            else:
                self._hosts[host] = (semaphore, waiting - 1)

    @asynccontextmanager
    async def flight(self, key: str) -> AsyncIterator[None]:
        """Be the only one that works on `key`; who comes later finds the result in the cache."""
        lock, waiting = self._flights.get(key) or (anyio.Lock(), 0)
        self._flights[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._flights[key]
            if waiting == 1:
                del self._flights[key]
            else:
                self._flights[key] = (lock, waiting - 1)
