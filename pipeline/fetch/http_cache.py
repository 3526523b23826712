"""How long an answer may be used again without asking (RFC 9111), and how to ask whether it changed.

Not for: where pages are kept (`pipeline/fetch/handles.py`).
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST: Final = 86_400.0
"""A page is asked for again after a day, whatever its server promises: an `immutable` year is meant for assets."""


def lifetime(headers: Mapping[str, str], *, default: float, shared: bool = False) -> float | None:
    """Return the seconds that an answer stays fresh, 0 for one to be asked for each time, None for one never to keep.

    Args:
        headers: Of the answer, by lower-case names.
        default: Seconds for an answer that says nothing of its age.
        shared: Whether the cache serves more than one user (RFC 9111 §5.2.2.7, §5.2.2.10).
    """
    directives = _directives(headers.get("cache-control", ""))
    if "no-store" in directives or (shared and "private" in directives):
        return None
    if "no-cache" in directives or headers.get("vary", "").strip() == "*":
        return 0.0
    spent = _seconds(headers.get("age", "")) or 0.0
    named = "s-maxage" if shared and "s-maxage" in directives else "max-age"
    promised = _seconds(directives[named]) if named in directives else _until_expires(headers)
    if named in directives and promised is None:
        return 0.0  # an unreadable age means stale (RFC 9111 §4.2.1)
    return default if promised is None else min(max(promised - spent, 0.0), LONGEST)


def validators(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with which to ask whether an answer that came with `headers` has changed."""
    asked = {"If-None-Match": headers.get("etag", ""), "If-Modified-Since": headers.get("last-modified", "")}
    return {name: value for name, value in asked.items() if value and value.isprintable() and len(value) <= 500}


def _directives(value: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in value.lower().split(","))
    return {name.strip(): argument.strip().strip('"') for name, _, argument in pairs if name.strip()}


def _seconds(value: str) -> float | None:
    value = value.strip()
    return float(int(value[:12])) if value.isascii() and value.isdecimal() else None


def _until_expires(headers: Mapping[str, str]) -> float | None:
    if "expires" not in headers:
        return None
    try:
        expires = parsedate_to_datetime(headers["expires"])
        sent = parsedate_to_datetime(headers["date"])
        return (expires - sent).total_seconds()
    except (ValueError, TypeError, KeyError, OverflowError):
        return 0.0  # `Expires: 0` and the like mean stale
