"""Pages that send their reader on by themselves: the `Refresh` header, `<meta
http-equiv=refresh>`, and a script that does nothing else, at once or after a moment.

Read as browsers do (HTML, "shared declarative refresh steps"), without running scripts:
one linear scan over the beginning of a page, which skips comments and elements with raw
text. A script counts where the page shows next to nothing and all of the script gives
`location` an address. Not for: following them (`pipeline/fetch/exchange.py`), and
scripts that decide."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from pipeline.html.addresses import attributes_of
from pipeline.html.scripts import shows
from pipeline.read.sniff import decode

MOST_REFRESHES: Final = 5
"""Of one request; pages that reload themselves for ever end there."""
AT_ONCE: Final = 5.0
"""Seconds up to which a page is no more than a way to another; who waits longer is
meant to read it."""
_SEARCHED_BYTES: Final = 65_536
"""Bytes in which it is looked for: a head, and the body of a page that says no more
than where to go."""
_OWN_TEXT: Final = 200
"""Visible letters from which a page is read itself where only readers without scripts
are sent on, or to itself."""
_ATTRIBUTE_CHARACTERS: Final = 2_000
"""Letters of an attribute and of an address."""
_REFRESH_CONTENT: Final = re.compile(
    r"\s*(?=[\d.])(\d{0,9})[\d.]*(?:\s*[;,]\s*|\s+|$)(?:url\s*=\s*|(?!))?+(.*)",
    re.IGNORECASE | re.DOTALL,
)
_REFRESH_TAG: Final = re.compile(
    r"<(/?)([a-z][a-z0-9]*)((?:[^<>\"']|\"[^\"]{0,2000}\"|'[^']{0,2000}')*)>",
    re.IGNORECASE,
)
_RAW: Final = frozenset(
    {
        "script",
        "style",
        "title",
        "textarea",
        "template",
        "iframe",
        "xmp",
        "noembed",
        "noframes",
    }
)
"""Elements whose content is not markup."""
_SCRIPT: Final = re.compile(
    r"<script\b[^<>]*>([^<]{1,2000})</script"
    r"|<body\b[^<>]{0,500}?\sonload\s*=\s*(?:\"([^\"<>]{1,2000})|'([^'<>]{1,2000}))",
    re.IGNORECASE,
)
_GOES: Final = re.compile(
    r"""\s*(?:(?:window\s*\.\s*)?(?:setTimeout\s*\(|onload\s*=)\s*)?"""
    r"""(?:(?:function\s*\(\s*\)|\(\s*\)\s*=>)\s*\{?)?"""
    r"""\s*(?:(?:window|document|self|top)\s*\.\s*)?location(?:\s*\.\s*href)?\s*"""
    r"""(?:=|\.\s*(?:replace|assign)\s*\()\s*(["'])([^"'\\]{1,2000})\1\s*\)?\s*;?"""
    r"""\s*\}?\s*(?:,\s*(\d{1,6})\s*\))?\s*;?\s*"""
)
"""A script that gives the page another address, after so many milliseconds, and does
nothing else."""
_NO_TEXT_LETTERS: Final = 40
"""Visible letters from which a page is more than a way to another ("Redirecting …")."""


class Refresh(NamedTuple):
    """Where a page sends its reader."""

    seconds: float
    address: str
    """Absolute, without fragment."""

    @property
    def at_once(self) -> bool:
        """Whether it is a redirect."""
        return self.seconds <= AT_ONCE


def refresh_of(headers: Mapping[str, str], body: bytes, url: str) -> Refresh | None:
    """Return where the page that came from `url` sends its reader; None for one that is
    meant to be read there.

    A page with text of its own is read where it sends on only readers without scripts,
    or to its own address, which is what it means where it names none. Only the
    beginning of its markup is looked at (`_SEARCHED_BYTES`)."""
    for content, base, unscripted in _said_by(headers, body):
        found = _parsed(content, urljoin(url, base), url)
        if found is not None:
            is_own = unscripted or found.address == url.partition("#")[0]
            return None if is_own and _shows(body, headers) else found
    return _scripted(headers, body, url)


def _scripted(headers: Mapping[str, str], body: bytes, url: str) -> Refresh | None:
    """Return where the script of a page without text sends its reader; None where it
    shows text or is long, or its scripts do anything else."""
    if len(body) > _SEARCHED_BYTES or b"location" not in body:
        return None
    html = _text(body, headers)
    scripts = (
        unescape(found[1] or found[2] or found[3]) for found in _SCRIPT.finditer(html)
    )
    goes = next(filter(None, map(_GOES.fullmatch, scripts)), None)
    if goes is None or shows(html, _NO_TEXT_LETTERS):
        return None
    sent = _parsed(f"{int(goes[3] or 0) // 1000};url={goes[2]}", url)
    return sent if sent is not None and sent.address != url.partition("#")[0] else None


def _said_by(
    headers: Mapping[str, str], body: bytes
) -> Iterator[tuple[str, str, bool]]:
    """Yield what header and markup say of it, with the base of addresses, and whether
    it is for who runs no scripts."""
    yield headers.get("refresh", ""), "", False
    start = body[:_SEARCHED_BYTES]
    if b"efresh" in start or b"EFRESH" in start:
        yield from _declared(_text(start, headers))


def _text(body: bytes, headers: Mapping[str, str]) -> str:
    kind = headers.get("content-type", "").lower()
    return decode(body, content_type=kind).text if "html" in kind or not kind else ""


def _shows(body: bytes, headers: Mapping[str, str]) -> bool:
    return shows(_text(body[: 4 * _SEARCHED_BYTES], headers), _OWN_TEXT)


def _parsed(content: str, base: str, own: str = "") -> Refresh | None:
    """Return what a refresh says, `own` where it names no address; None for a malformed
    refresh, and for an address that is too long or not http(s)."""
    found = _REFRESH_CONTENT.fullmatch(content[: 2 * _ATTRIBUTE_CHARACTERS])
    if found is None:
        return None
    said = found[2].strip() or own
    if said[:1] in {"'", '"'}:
        said = said[1:].partition(said[0])[0]
    try:
        address = urljoin(base, said.strip()).partition("#")[0]
        known = (
            urlsplit(address).scheme in {"http", "https"}
            and 0 < len(said) <= _ATTRIBUTE_CHARACTERS
        )
    except ValueError:
        return None
    return Refresh(float(found[1] or 0), address) if known else None


def _declared(html: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each refresh of a page's markup, with its base, and whether it is for
    readers without scripts."""
    base, unscripted = "", False
    for tag in _tags(html):
        name = tag[2].lower()
        if name == "noscript":
            unscripted = not tag[1]
        elif name in {"meta", "base"}:
            given = attributes_of(tag[3])
            base = base or (given.get("href", "") if name == "base" else "")
            if given.get("http-equiv", "").strip().lower() == "refresh":
                yield given.get("content", ""), base, unscripted


def _tags(html: str) -> Iterator[re.Match[str]]:
    """Yield the tags outside comments, scripts and styles; one of these without its end
    hides all that follows."""
    at, lowered = 0, html.lower()
    while (start := html.find("<", at)) >= 0:
        if html.startswith("<!--", start):
            end = html.find("-->", start + 2)
            if end < 0:
                return
            at = end + 3
            continue
        tag = _REFRESH_TAG.match(html, start)
        at = tag.end() if tag is not None else start + 1
        if tag is None:
            continue
        name = tag[2].lower()
        if name in _RAW and not tag[1] and not tag[3].endswith("/"):
            at = lowered.find(f"</{name}", at)
            if at < 0:
                return
        else:
            yield tag
