"""Frames of a web page from its own site: fetched through the guard and inserted in
place.

Elements `frame`, `iframe`, `object` and `embed` with an address on the page's host are
fetched (at most `MOST_FRAMES`) and inserted as `srcdoc`, for cleaning. Not for: frames of
other hosts, which stay addresses among the page's links.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from html import escape
from typing import Final
from urllib.parse import urldefrag, urljoin, urlsplit

import anyio

from errors import SourceError
from pipeline.html.addresses import attributes_of, base_of
from pipeline.read.convert import Raw, kind_of
from pipeline.read.format import HTML
from pipeline.read.sniff import decode
from pipeline.work import in_thread

MOST_FRAMES: Final = 5
FRAME_CHARACTERS: Final = 2_000_000
"""Characters of a frame; a larger one is a page to be read by itself."""
FRAMED: Final = "frames from the page's own site were read as part of the page"
UNREAD_FRAME: Final = (
    'a frame of the page\'s own site was not read; part="links" names it'
)
_FRAME_BYTES: Final = re.compile(rb"<(?:i?frame|object|embed)\b", re.IGNORECASE)
_FRAME_TAG: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|textarea|title|noscript|noframes)\b.*?(?:</\1|\Z)"
    r"""|<(/?)(iframe|frame|frameset|object|embed)\b((?:"[^"]{0,2000}"|'[^']{0,2000}'|[^"'<>]|(?!))*+)>""",
    re.IGNORECASE | re.DOTALL,
)
"""A tag; what holds no elements is passed over."""
_ADDRESSES: Final = ("data-src", "data-lazy-src", "src", "data")
"""Where the address of a frame is; scripts copy the first two into the third as a
reader scrolls."""


async def with_frames(
    raw: Raw, get: Callable[[str], Awaitable[Raw]], seconds: float
) -> Raw:
    """Return a web page with what the frames of its own host hold; a note says so, and
    where one was not read.

    `get` fetches one of them and raises `SourceError`; all of them may take `seconds`.
    At most `MOST_FRAMES` frames are fetched."""
    if not _FRAME_BYTES.search(raw.body) or kind_of(raw) != HTML:
        return raw
    urls = await in_thread(_frame_addresses, raw)
    contents: dict[str, str] = {}
    notes: set[str] = set()

    async def read(url: str) -> None:
        try:
            answer = await get(url)
        except SourceError:
            return
        is_here = _host(answer.final_url) == _host(raw.final_url)
        if is_here and kind_of(answer) == HTML:
            html = await in_thread(_html_of, answer)
            if html:
                contents[url] = html
                notes.update(answer.notes)

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:
            for url in urls[:MOST_FRAMES]:
                group.start_soon(read, url)
    if len(contents) < len(urls):
        notes.add(UNREAD_FRAME)
    if contents:
        notes.add(FRAMED)
        body = await in_thread(_filled, raw, dict(contents))
        raw = replace(raw, body=body.encode("utf-8-sig", "replace"))
    return replace(raw, notes=(*raw.notes, *sorted(notes)))


def _frame_addresses(raw: Raw) -> list[str]:
    """Return the addresses on the page's host that its frames show."""
    text = decode(raw.body, content_type=raw.content_type).text
    base = base_of(text, raw.final_url)
    tags = (tag for tag in _FRAME_TAG.finditer(text) if tag[3])
    urls = (_frame_address(tag, base, raw.final_url) for tag in tags)
    return list(dict.fromkeys(filter(None, urls)))


def _frame_address(tag: re.Match[str], base: str, page: str) -> str:
    """Return what a frame of the page at the address `page` shows; "" where that is not
    on the page's host, or of another type than HTML."""
    attributes = attributes_of(tag[4])
    if "html" not in attributes.get("type", "html") or "srcdoc" in attributes:
        return ""
    written = next(
        (address for name in _ADDRESSES if (address := attributes.get(name))), ""
    )
    try:
        url = urldefrag(urljoin(base, "".join(written.split()))).url
        is_web = bool(written) and urlsplit(url).scheme in {"http", "https"}
    except ValueError:
        return ""
    is_other = url != urldefrag(page).url
    return url if is_web and is_other and _host(url) == _host(page) else ""


def _host(url: str) -> str:
    """Return host and port of an address, with and without `www.` alike."""
    return urlsplit(url).netloc.lower().removeprefix("www.")


def _html_of(answer: Raw) -> str:
    """Return the HTML of a frame, its addresses relative to its own; empty where it is
    too large."""
    text = decode(answer.body, content_type=answer.content_type).text
    base = escape(base_of(text, answer.final_url))
    return f'<base href="{base}">{text}' if len(text) <= FRAME_CHARACTERS else ""


def _filled(raw: Raw, contents: dict[str, str]) -> str:
    """Return a page whose frames are `iframe` elements with what they hold, each
    once."""
    text = decode(raw.body, content_type=raw.content_type).text
    base = base_of(text, raw.final_url)
    is_in_object = False

    def fill(tag: re.Match[str]) -> str:
        nonlocal is_in_object
        name = (tag[3] or "").lower()
        if name == "frameset":  # in which no other element is parsed
            return f"<{tag[2]}div>"
        if tag[2]:
            is_filled, is_in_object = name == "object" and is_in_object, False
            return "</iframe>" if is_filled else tag[0]
        url = _frame_address(tag, base, raw.final_url) if name else ""
        html = contents.pop(url, "")
        if not html:
            return f"<iframe{tag[4]}></iframe>" if name == "frame" else tag[0]
        is_in_object = name == "object"
        closing = "</iframe>" if name in {"frame", "embed"} else ""
        return f'<iframe{tag[4].rstrip(" /")} srcdoc="{escape(html)}">{closing}'

    return _FRAME_TAG.sub(fill, text)
