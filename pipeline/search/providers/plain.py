"""Making one line of plain text, a safe address or a date out of what a provider sent.

Titles and snippets arrive with marks around the hits (`<b>`), entities and control characters, and were written by
strangers. Not for: pages (`pipeline/html`).
"""

import html
import re
from datetime import date
from typing import Final
from urllib.parse import urlsplit

LONGEST_TITLE: Final = 300
LONGEST_SNIPPET: Final = 2_000
"""Characters kept; real snippets have a median of 1,509 in the CRAG sample and a long tail (notes/zeroindex §5)."""
_TAG: Final = re.compile(r"<(?:!--[^<>]*|/?[a-zA-Z][^<>]*)>")
_HIDDEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\U000e0000-\U000e007f]"
)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


def plain_text(value: object, *, longest: int = LONGEST_SNIPPET) -> str:
    """Return `value` as one line without markup, entities and invisible characters; empty if it is no text."""
    if not isinstance(value, str):
        return ""
    bare = html.unescape(_TAG.sub("", value[: 4 * longest]))
    return " ".join(_HIDDEN.sub("", bare).split())[:longest]


def web_address(value: object) -> str:
    """Return `value` if it is an http(s) address with a host, else the empty string."""
    if not isinstance(value, str) or _HIDDEN.search(value):
        return ""
    try:
        parts = urlsplit(value.strip())
    except ValueError:
        return ""
    return value.strip() if parts.scheme in ("http", "https") and parts.hostname else ""


def iso_day(value: object) -> str:
    """Return the day `YYYY-MM-DD` that a date or time begins with, else the empty string."""
    match = _DAY.match(value) if isinstance(value, str) else None
    if match is None:
        return ""
    try:
        return date.fromisoformat(match[0]).isoformat()
    except ValueError:
        return ""
