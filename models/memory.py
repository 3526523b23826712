"""A bound on the memory of all models' processes together: the least recently used one goes. Not for: what one takes.

A process that computes is never ended for another; the one that wants in waits until enough are idle.
"""

import os
import re
from pathlib import Path
from typing import Final, Protocol

import anyio

from errors import ModelError

SHARE: Final = 0.7
"""Part of the memory that is free at the start which models may take; the rest is the system's and the buffers'."""
LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at whether a busy process has become idle."""


class Tenant(Protocol):
    """A process that takes memory: a `Worker`."""

    @property
    def label(self) -> str:
        """How messages name it."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id while it lives."""
        ...

    @property
    def busy(self) -> bool:
        """Whether it computes or starts; it is not ended then."""
        ...

    async def aclose(self) -> None:
        """End it; it calls `MemoryBudget.left`."""
        ...


class MemoryBudget:
    """Bytes that the processes of one server share. Belongs to one event loop."""

    def __init__(self, limit: int | None = None) -> None:
        """Take `limit` bytes as the bound; None for 70 % of what is free now."""
        self.limit = limit if limit is not None else int(free_memory() * SHARE)
        self._held: dict[Tenant, int] = {}
        self._entering = anyio.Lock()

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """Label and bytes of each process that runs, least recently used first."""
        return tuple((tenant.label, size) for tenant, size in self._held.items())

    async def make_room(self, tenant: Tenant, needs: int) -> None:
        """Let `tenant` in with `needs` bytes: end idle processes, least recently used first, wait for busy ones.

        Raises:
            ModelError: It needs more than the whole budget.
        """
        if needs > self.limit:
            raise ModelError(
                f"{tenant.label} needs about {needs / 1e6:.0f} MB; models may take {self.limit / 1e6:.0f} MB.",
                hint="Set a smaller model or quantisation, or allow models more memory.",
            )
        async with self._entering:
            self._held.pop(tenant, None)
            while not await self._fits(needs):
                await anyio.sleep(LOOK_AGAIN)
            self._held[tenant] = needs

    def used(self, tenant: Tenant) -> None:
        """Note that `tenant` was just called: it goes last."""
        if tenant in self._held:
            self._held[tenant] = self._held.pop(tenant)

    def left(self, tenant: Tenant) -> None:
        """Note that the process of `tenant` ended."""
        self._held.pop(tenant, None)

    async def _fits(self, needs: int) -> bool:
        for other in list(self._held):
            if other.pid is None and not other.busy:
                self.left(other)  # it ended by itself
        for other in list(self._held):
            if sum(self._held.values()) + needs <= self.limit:
                return True
            if not other.busy:
                await other.aclose()
                self.left(other)
        return sum(self._held.values()) + needs <= self.limit


def free_memory() -> int:
    """Return the bytes that programs may still take: what Linux calls available; elsewhere half of what is built in."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 4 << 30
