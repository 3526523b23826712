"""robots.txt: which paths a site asks programs not to read (RFC 9309), for pages that the model chose.

Groups are matched by our product token, else `*`; the longest rule wins, `allow` on a tie; `*` and `$` work. Python's
own `urllib.robotparser` takes the first rule that fits and reads `*` literally. Not for: the guard against private
addresses.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

MAX_BYTES: Final = 512_000
"""RFC 9309 asks for at least 500 KiB; more is not read."""
MAX_RULES: Final = 5_000
FETCH_SECONDS: Final = 3.0
GOOD_SECONDS: Final = 3600.0
"""How long rules are believed; a day is the longest that the RFC allows."""
BAD_SECONDS: Final = 60.0
"""How long a site whose robots.txt fails is left alone."""
_MOST_SITES: Final = 512
_SAFE: Final = "/*$?=&:@!'(),;+~[]-._"


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
        best_length, best = -1, True
        for allow, pattern in self.rules:
            longer = len(pattern) > best_length or (len(pattern) == best_length and allow)
            if longer and _matches(pattern, asked):
                best_length, best = len(pattern), allow
        return best


def parse_robots(text: str, *, agent: str) -> Rules:
    """Return the rules for the product token `agent`, such as `winnow`, in a robots.txt."""
    groups: dict[str, list[tuple[bool, str]]] = {}
    named: list[str] = []
    in_rules = False
    count = 0
    for line in text.splitlines():
        field, colon, value = line.partition("#")[0].partition(":")
        field, value = field.strip().lower(), value.strip()
        if not colon:
            continue
        if field == "user-agent":
            named = [] if in_rules else named
            in_rules = False
            named.append(value.lower().split("/", 1)[0])
            groups.setdefault(named[-1], [])
        elif field in {"allow", "disallow"}:
            in_rules = True
            count += 1
            if value and count <= MAX_RULES:
                for name in named:
                    groups[name].append((field == "allow", _normal(value)))
    return Rules(tuple(groups.get(agent.lower(), groups.get("*", []))))


def product_token(user_agent: str) -> str:
    """Return the name that a robots.txt would use for a `User-Agent` header: what stands before `/`."""
    return user_agent.split("/", 1)[0].strip().lower()


class RobotsMemory:
    """Rules by site, for as long as they are believed; the oldest site is forgotten first."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, Rules]] = OrderedDict()

    def get(self, origin: str, *, now: float) -> Rules | None:
        """Return the rules of a site such as `https://example.org:443`, None when they must be fetched."""
        found = self._known.get(origin)
        return found[1] if found is not None and now < found[0] else None

    def keep(self, origin: str, rules: Rules, *, now: float) -> None:
        """Believe `rules` for an hour, or a failure for a minute."""
        self._known[origin] = (now + (GOOD_SECONDS if rules.reachable else BAD_SECONDS), rules)
        self._known.move_to_end(origin)
        if len(self._known) > _MOST_SITES:
            self._known.popitem(last=False)


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
