"""Pages that send their reader on by themselves: the `Refresh` header, `<meta
http-equiv=refresh>`, and a short script without conditions on a page without text.

Read as browsers do (HTML, "shared declarative refresh steps"), without running scripts.
Not for: following them (`pipeline/fetch/exchange.py`)."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborNode

from readers.html.addresses import base_of
from readers.html.guard import parse
from readers.html.scripts import shows
from readers.sniff import decode

MOST_REFRESHES: Final = 5
"""Of one request; pages that reload themselves for ever end there."""
AT_ONCE: Final = 5
"""Seconds up to which a page is no more than a way to another; who waits longer is
meant to read it."""
_SEARCHED_BYTES: Final = 65_536
"""Bytes in which it is looked for: a head, and the body of a page that says no more
than where to go."""
_READABLE_LETTERS: Final = 200
"""Visible letters from which a page that sends to itself is read."""
_CONTENT: Final = re.compile(
    r"\s*(\d{1,9})[\d.]*\s*[;,]?\s*(?:url\s*=)?\s*[\"']?([^\"']{0,2000})", re.IGNORECASE
)
_SCRIPT: Final = re.compile(
    r"<(?:script|body)\b[^<]{0,200}?\blocation(?:\s*\.\s*href)?\s*"
    r"(?:=|\.\s*(?:replace|assign)\s*\()\s*[\"']([^\"'<>]{1,2000})[\"'](?!\s*\+)"
)
"""An address that is written out; one that is put together needs a browser."""
_NO_TEXT_LETTERS: Final = 40
"""Visible letters from which a page is more than a way to another ("Redirecting …")."""


def refresh_of(headers: Mapping[str, str], body: bytes, url: str) -> str | None:
    """Return where the page that came from `url` sends its reader within `AT_ONCE`,
    absolute and without fragment; None for one that is meant to be read there.

    A page with text of its own is read where it sends to its own address, which is what
    it means where it names none. Only the beginning of its markup is looked at
    (`_SEARCHED_BYTES`)."""
    base, content = url, headers.get("refresh")
    if content is None:
        html = _html(headers, body[:_SEARCHED_BYTES])
        tag = _first_tag(html)
        if tag is None:
            return _scripted(html, url)
        base, content = base_of(html, url), tag.attributes.get("content") or ""
    address = _target(content, base, url)
    if address != url.partition("#")[0]:
        return address
    beginning = _html(headers, body[: 4 * _SEARCHED_BYTES])
    return None if shows(beginning, _READABLE_LETTERS) else address


def _html(headers: Mapping[str, str], body: bytes) -> str:
    """Return the markup of a page, "" of anything else."""
    kind = headers.get("content-type", "").lower()
    return decode(body, content_type=kind).text if "html" in kind or not kind else ""


def _first_tag(html: str) -> LexborNode | None:
    """Return the element that sends on, outside comments, scripts and templates."""
    if "refresh" not in html.lower():
        return None
    root = parse(html)
    return root.css_first('meta[http-equiv="refresh" i]') if root is not None else None


def _scripted(html: str, url: str) -> str | None:
    """Return where the script of a page without text sends its reader."""
    script = _SCRIPT.search(html) if "location" in html else None
    if script is None or "if" in script[0] or shows(html, _NO_TEXT_LETTERS):
        return None
    address = _target(f"0;{script[1]}", url, url)
    return address if address != url.partition("#")[0] else None


def _target(content: str, base: str, url: str) -> str | None:
    """Return the address that a refresh names, `url` where it names none; None for a
    malformed or later one, and for an address that is not http(s)."""
    match = _CONTENT.match(content)
    if match is None or int(match[1]) > AT_ONCE:
        return None
    try:
        address = urljoin(base, match[2].strip() or url).partition("#")[0]
        return address if urlsplit(address).scheme in {"http", "https"} else None
    except ValueError:
        return None
