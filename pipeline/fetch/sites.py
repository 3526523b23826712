"""What sites ask of programs, kept so that none is asked too much: robots.txt (RFC 9309), silence, places at a time.

Groups of a robots.txt are matched by our product token, else `*`; the longest rule wins, `allow` on a tie; `*` and `$`
work. Python's own `urllib.robotparser` takes the first rule that fits and reads `*` literally. Not for: rates over
time, since a server that wants fewer requests says so with 429 and `Retry-After`; the guard against private addresses.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import quote, unquote

import anyio

USER_AGENT: Final = "Winnow/0.1 (+https://github.com/winnow-mcp/winnow)"
MAX_BYTES: Final = 512_000
"""RFC 9309 asks for at least 500 KiB; more is not read."""
MAX_RULES: Final = MAX_BYTES // 100
"""Rules that are read: sorting and matching them must not hold up the event loop."""
_SAFE: Final = "/*$?=&:@!'(),;+~[]-._"
HOUR: Final = timedelta(hours=1).total_seconds()
"""For how long rules are believed, and silence is kept at most; RFC 9309 allows a day for rules."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one robots.txt says to one program."""

    rules: tuple[tuple[bool, str], ...] = ()
    """Whether it allows, and the normalised pattern."""
    reachable: bool = True
    """False when the file could not be had: nothing may be read until it can."""

    def allows(self, path: str) -> bool:
        """Return whether a path (with its query) may be read."""
        if not self.reachable:
            return False
        asked = _normal(path or "/")
        fitting = ((len(pattern), allow) for allow, pattern in self.rules if _matches(pattern, asked))
        return max(fitting, default=(0, True))[1]


@dataclass(slots=True)
class Site:
    """One scheme, host and port. Times are those of the fetcher's clock."""

    asking: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while its robots.txt is fetched, so that this happens once."""
    rules: Rules = field(default_factory=Rules)
    rules_until: float = 0.0
    quiet_until: float = 0.0
    """Until when it asked to be left alone."""


class Sites:
    """The sites of one fetcher, the one asked longest ago forgotten first, and who may ask them at once."""

    def __init__(self, *, overall: int, per_host: int) -> None:
        self._overall = anyio.Semaphore(overall)
        self._per_host = per_host
        self._places: dict[str, anyio.Semaphore] = {}
        """By host; hosts that nobody asks are forgotten."""
        self._sites: dict[str, Site] = {}

    def of(self, origin: str) -> Site:
        """Return what is known of a site such as `https://example.org:443`."""
        site = self._sites.pop(origin, None) or Site()
        self._sites[origin] = site
        if len(self._sites) > 512:
            oldest = (name for name, other in self._sites.items() if not other.asking.locked())
            self._sites.pop(next(oldest, ""), None)
        return site

    @asynccontextmanager
    async def place(self, host: str) -> AsyncIterator[None]:
        """Hold a place for one request."""
        places = self._places.setdefault(host, anyio.Semaphore(self._per_host, max_value=self._per_host))
        try:
            # The host's place first: a slow host's queue must not hold places that others could use.
            async with places, self._overall:
                yield
        finally:
            if places.value == self._per_host:
                self._places.pop(host, None)


def parse_robots(text: str, *, agent: str = USER_AGENT) -> Rules:
    """Return the rules of a robots.txt for the program that a `User-Agent` header names before its `/`."""
    groups: dict[str, list[tuple[bool, str]]] = {}
    named: list[str] = []
    in_rules = False
    count = 0
    for line in text.splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            named = [] if in_rules else named
            in_rules = False
            named.append(value.lower().split("/", 1)[0])
            groups.setdefault(named[-1], [])
        elif key in {"allow", "disallow"}:
            in_rules = True
            count += 1
            if value and count <= MAX_RULES:
                for name in named:
                    groups[name].append((key == "allow", _normal(value)))
    return Rules(tuple(groups.get(agent.partition("/")[0].lower(), groups.get("*", []))))


def _normal(path: str) -> str:
    """Return a path or pattern with one spelling for each character."""
    return quote(unquote(path, errors="surrogateescape"), safe=_SAFE, errors="surrogateescape")


def _matches(pattern: str, path: str) -> bool:
    """Return whether a pattern fits the start of `path`; linear, since each piece is looked for once."""
    at_end = pattern.endswith("$")
    first, *pieces = (pattern[:-1] if at_end else pattern).split("*")
    if not path.startswith(first):
        return False
    if not pieces:
        return not at_end or path == first
    position = len(first)
    last = pieces.pop()
    for piece in pieces:
        found = path.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    if at_end:
        return path.endswith(last) and len(path) - len(last) >= position
    return path.find(last, position) >= 0
