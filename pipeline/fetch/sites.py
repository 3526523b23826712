"""What a fetcher remembers of each site, so that none is asked too much: places, rules, and requests for silence.

Not for: rates over time; a server that wants fewer requests says so with 429 and `Retry-After`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio

from pipeline.fetch.robots import Rules

HOUR: Final = 3600.0
"""For how long rules are believed, and silence is kept at most; RFC 9309 allows a day for rules."""
_MOST_SITES: Final = 512


@dataclass(slots=True)
class Site:
    """One scheme, host and port. Times are those of the fetcher's clock."""

    places: anyio.Semaphore
    asking: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while its robots.txt is fetched, so that this happens once."""
    rules: Rules = field(default_factory=Rules)
    rules_until: float = 0.0
    quiet_until: float = 0.0
    """Until when it asked to be left alone."""

    @property
    def is_idle(self) -> bool:
        """Whether nobody asks it, or waits to."""
        return self.places.value == self.places.max_value and not self.asking.locked()


class Sites:
    """The sites of one fetcher; of those that are idle, the one asked longest ago is forgotten first."""

    def __init__(self, *, overall: int, per_site: int) -> None:
        self._overall = anyio.Semaphore(overall)
        self._per_site = per_site
        self._sites: dict[str, Site] = {}

    def of(self, origin: str) -> Site:
        """Return what is known of a site such as `https://example.org:443`."""
        known = self._sites.pop(origin, None)
        site = known or Site(anyio.Semaphore(self._per_site, max_value=self._per_site))
        self._sites[origin] = site
        if len(self._sites) > _MOST_SITES:
            idle = (name for name, other in self._sites.items() if other.is_idle and other is not site)
            self._sites.pop(next(idle, ""), None)
        return site

    @asynccontextmanager
    async def place(self, origin: str) -> AsyncIterator[None]:
        """Hold a place for one request."""
        # The site's place first: a slow site's queue must not hold places that others could use.
        async with self.of(origin).places, self._overall:
            yield
