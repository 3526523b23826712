"""What a fetcher remembers of each site, so that none is asked too much: places, rules, and requests for silence.

Not for: rates over time; a server that wants fewer requests says so with 429 and `Retry-After`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from pipeline.fetch.robots import Rules

_REMEMBERED: Final = 3600.0
"""Seconds for which rules are believed and silence is kept at most; RFC 9309 allows a day for rules."""
_UNREACHABLE: Final = _REMEMBERED / 60
"""Seconds for which a site whose robots.txt fails is left alone."""
_MOST_SITES: Final = 512


class Site:
    """One scheme, host and port."""

    def __init__(self, places: int) -> None:
        self.places = anyio.Semaphore(places, max_value=places)
        self.asking = anyio.Lock()
        """Held while its robots.txt is fetched, so that this happens once."""
        self._rules = Rules()
        self._rules_until = 0.0
        self._quiet_until = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nobody asks it, or waits to."""
        return self.places.value == self.places.max_value and not self.asking.locked()

    def rules(self, *, now: float) -> Rules | None:
        """Return what its robots.txt says, None when that must be fetched."""
        return self._rules if now < self._rules_until else None

    def believe(self, rules: Rules, *, now: float) -> None:
        """Take `rules` for what its robots.txt says."""
        self._rules = rules
        self._rules_until = now + (_REMEMBERED if rules.reachable else _UNREACHABLE)

    def silence(self, *, now: float) -> float:
        """Return the seconds for which it is still to be left alone."""
        return max(self._quiet_until - now, 0.0)

    def leave_alone(self, seconds: float, *, now: float) -> None:
        """Keep silence for `seconds`, as it asked with `Retry-After`."""
        if seconds > 0:
            self._quiet_until = now + min(seconds, _REMEMBERED)


class Sites:
    """The sites of one fetcher; of those that are idle, the one asked longest ago is forgotten first."""

    def __init__(self, *, overall: int, per_site: int) -> None:
        self._overall = anyio.Semaphore(overall)
        self._per_site = per_site
        self._sites: dict[str, Site] = {}

    def of(self, origin: str) -> Site:
        """Return what is known of a site such as `https://example.org:443`."""
        site = self._sites.pop(origin, None) or Site(self._per_site)
        self._sites[origin] = site
        if len(self._sites) > _MOST_SITES:
            idle = next((name for name, other in self._sites.items() if other.is_idle and other is not site), None)
            self._sites.pop(idle or "", None)
        return site

    @asynccontextmanager
    async def place(self, origin: str) -> AsyncIterator[None]:
        """Hold a place for one request."""
        # The site's place first: a slow site's queue must not hold places that others could use.
        async with self.of(origin).places, self._overall:
            yield
