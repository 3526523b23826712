"""Frames of a web page from its own site, which are not read as part of it: a note says
so, and `part="links"` names them."""

from typing import Final
from urllib.parse import urldefrag, urljoin, urlsplit

from readers.convert import Raw, kind_of
from readers.format import HTML
from readers.html.addresses import base_of
from readers.html.guard import parse
from readers.sniff import decode

UNREAD_FRAME: Final = (
    'a frame of the page\'s own site was not read; part="links" names it'
)
_FRAMES: Final = {
    "src": 'iframe[src]:not([srcdoc]), frame[src], embed[type="text/html"][src]',
    "data-src": "iframe[data-src]:not([srcdoc])",
    "data": 'object[type="text/html"][data]',
}
"""Elements that show another page, by the attribute with its address."""


def has_frames(raw: Raw) -> bool:
    """Return whether a web page shows other pages of its own host in frames."""
    body = raw.body.lower()
    if not any(tag in body for tag in (b"frame", b"<object", b"<embed")):
        return False
    if kind_of(raw) != HTML:
        return False
    text = decode(raw.body, content_type=raw.content_type).text
    root = parse(text)
    if root is None:
        return False
    base = base_of(text, raw.final_url)
    return any(
        _is_own_page(node.attributes.get(name) or "", base, raw.final_url)
        for name, selector in _FRAMES.items()
        for node in root.css(selector)
    )


def _is_own_page(address: str, base: str, page: str) -> bool:
    """Return whether an address is that of another page on the host of `page`."""
    try:
        url = urldefrag(urljoin(base, address)).url
    except ValueError:
        return False
    return url != urldefrag(page).url and _host(url) == _host(page)


def _host(url: str) -> str:
    """Return host and port of an address, with and without `www.` alike."""
    return urlsplit(url).netloc.lower().removeprefix("www.")
