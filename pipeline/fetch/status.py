"""HTTP answers that are no page, as errors that say what to do next.

Not for: answers that never came (`pipeline/fetch/client.py` maps those).
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

from errors import SourceBlocked, SourceError, SourceNotFound, SourceUnavailable

_Meaning = tuple[type[SourceError], str]

_CHALLENGE_HEADERS: Final = ("cf-mitigated", "x-datadome", "x-amzn-waf-action")
_GONE: Final[_Meaning] = (SourceNotFound, "Check the address, or search for where the page is now.")
_LOGIN: Final[_Meaning] = (SourceBlocked, "The page needs a login; use another source.")
_NOT_FOR_US: Final[_Meaning] = (SourceBlocked, "The site does not serve this page to us; use another source.")
_BROKEN: Final[_Meaning] = (SourceUnavailable, "The site is broken or busy; try later.")
_ODD: Final[_Meaning] = (SourceUnavailable, "Check the address, or use another source.")
_MEANINGS: Final[Mapping[int, _Meaning]] = {
    404: _GONE,
    410: _GONE,
    401: _LOGIN,
    402: _LOGIN,
    407: _LOGIN,
    403: _NOT_FOR_US,
    406: _NOT_FOR_US,
    451: _NOT_FOR_US,
    429: (SourceBlocked, "Wait a minute, or use another source."),
}


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds that a server asks to be left alone, None when it does not say."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(min(int(value[:9]), 86_400 * 365))
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now) if value else None
    except (ValueError, TypeError, OverflowError):
        return None


def error_for(status: int, headers: Mapping[str, str], *, url: str, now: float) -> SourceError:
    """Return the error for an answer with `status`, which is no page: not 2xx, or a check against robots."""
    what = f"{url} answered {status} {_phrase(status)}."
    wait = retry_after(headers, now=now)
    if is_challenge(headers):
        return SourceBlocked(
            f"{url} shows a check against robots ({status}).", source=url, hint="Use another source for this."
        )
    kind, hint = _MEANINGS.get(status, _BROKEN if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _ODD)
    waiting = wait is not None and kind is not SourceNotFound
    return kind(what, source=url, hint=f"Try again in {wait:.0f} s." if waiting else hint)


def is_challenge(headers: Mapping[str, str]) -> bool:
    """Return whether an answer of any status is a check against robots, by the headers that such services send."""
    return any(name in headers for name in _CHALLENGE_HEADERS)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "(an unknown status)"
