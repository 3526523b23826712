"""robots.txt: which paths a site asks programs not to read (RFC 9309), for pages that the model chose.

Groups are matched by our product token, else `*`; the longest rule wins, `allow` on a tie; `*` and `$` work. Python's
own `urllib.robotparser` takes the first rule that fits and reads `*` literally. Not for: how long rules are believed
(`pipeline/fetch/sites.py`), nor the guard against private addresses.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

USER_AGENT: Final = "Winnow/0.1 (+https://github.com/winnow-mcp/winnow)"
MAX_BYTES: Final = 512_000
"""RFC 9309 asks for at least 500 KiB; more is not read."""
MAX_RULES: Final = 5_000
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
        fitting = ((len(pattern), allow) for allow, pattern in self.rules if _matches(pattern, asked))
        return max(fitting, default=(0, True))[1]


def parse_robots(text: str, *, agent: str = USER_AGENT) -> Rules:
    """Return the rules of a robots.txt for the program that a `User-Agent` header names before its `/`."""
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
