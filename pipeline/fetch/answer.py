"""What an HTTP answer says besides its body: whether it is a page, when to come back, how long it may be used again.

Not for: answers that never came (`pipeline/fetch/exchange.py`), nor where pages are kept (`pipeline/fetch/handles.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

from errors import SourceBlocked, SourceError, SourceNotFound, SourceUnavailable
from pipeline.fetch.address import Target

DAY: Final = timedelta(days=1).total_seconds()
"""A page is asked for again after a day, whatever its server promises: an `immutable` year is meant for assets."""
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_CHALLENGE_HEADERS: Final = ("cf-mitigated", "x-datadome", "x-amzn-waf-action")
"""Sent by services that check for robots, with any status."""
_LOGIN: Final = (SourceBlocked, "The page needs a login; use another source.")
_NOT_FOR_US: Final = (SourceBlocked, "The site does not serve this page to us; use another source.")
_GONE: Final = (SourceNotFound, "Check the address, or search for where the page is now.")
_MEANINGS: Final[Mapping[int, tuple[type[SourceError], str]]] = {
    **dict.fromkeys((401, 402, 407), _LOGIN),
    **dict.fromkeys((403, 406, 451), _NOT_FOR_US),
    **dict.fromkeys((404, 410), _GONE),
    429: (SourceBlocked, "Wait a minute, or use another source."),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a web server."""

    target: Target
    status: int
    headers: Mapping[str, str]
    """By names whose case is of no matter."""
    body: bytes
    """Unpacked; empty unless the status is 2xx."""

    @property
    def location(self) -> str:
        """Where a redirect leads, empty for any other answer."""
        return self.headers.get("location", "") if self.status in _REDIRECTS else ""


def error_for(answer: Answer, *, url: str, now: float) -> SourceError | None:
    """Return what an answer that is no page means for `url`: not 2xx, or a check against robots; None for a page."""
    status = answer.status
    if any(name in answer.headers for name in _CHALLENGE_HEADERS):
        return SourceBlocked(
            f"{url} shows a check against robots ({status}).", source=url, hint="Use another source for this."
        )
    if 200 <= status < 300:
        return None
    broken = "The site is broken or busy; try later." if status >= 500 else "Check the address, or use another source."
    kind, hint = _MEANINGS.get(status, (SourceUnavailable, broken))
    wait = retry_after(answer.headers, now=now)
    if wait is not None and kind is not SourceNotFound:
        hint = f"Try again in {wait:.0f} s."
    phrase = next((known.phrase for known in HTTPStatus if known == status), "(an unknown status)")
    return kind(f"{url} answered {status} {phrase}.", source=url, hint=hint)


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds that a server asks to be left alone, None when it does not say."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(min(int(value[:9]), 365 * DAY))
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now) if value else None
    except (ValueError, TypeError, OverflowError):
        return None


def lifetime(headers: Mapping[str, str], *, default: float, shared: bool = False) -> float | None:
    """Return the seconds that an answer stays fresh, 0 for one to be asked for each time, None for one never to keep.

    Args:
        headers: Of the answer (RFC 9111).
        default: Seconds for an answer that says nothing of its age.
        shared: Whether the cache serves more than one user (RFC 9111 §5.2.2.7, §5.2.2.10).
    """
    pairs = (part.partition("=") for part in headers.get("cache-control", "").lower().split(","))
    directives = {name.strip(): value.strip().strip('"') for name, _, value in pairs}
    if "no-store" in directives or (shared and "private" in directives):
        return None
    if "no-cache" in directives or headers.get("vary", "").strip() == "*":
        return 0.0
    spent = _seconds(headers.get("age", "")) or 0.0
    named = "s-maxage" if shared and "s-maxage" in directives else "max-age"
    promised = _seconds(directives[named]) if named in directives else _until_expires(headers)
    if named in directives and promised is None:
        return 0.0  # an unreadable age means stale (RFC 9111 §4.2.1)
    return default if promised is None else min(max(promised - spent, 0.0), DAY)


def validators(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with which to ask whether an answer that came with `headers` has changed."""
    asked = {"If-None-Match": headers.get("etag", ""), "If-Modified-Since": headers.get("last-modified", "")}
    return {name: value for name, value in asked.items() if value and value.isprintable() and len(value) <= 500}


def _seconds(value: str) -> float | None:
    value = value.strip()
    return float(int(value[:12])) if value.isascii() and value.isdecimal() else None


def _until_expires(headers: Mapping[str, str]) -> float | None:
    if "expires" not in headers:
        return None
    try:
        expires = parsedate_to_datetime(headers["expires"])
        return (expires - parsedate_to_datetime(headers["date"])).total_seconds()
    except (ValueError, TypeError, KeyError, OverflowError):
        return 0.0  # `Expires: 0` and the like mean stale
