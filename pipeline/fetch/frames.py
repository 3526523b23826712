"""Frames of a web page from its own site: fetched through the guard and inserted in
place.

Elements `frame`, `iframe`, `object` and `embed` with an address on the page's host are
fetched (at most `MOST_FRAMES`) and inserted as `srcdoc`, for cleaning. Not for: frames of
other hosts, which stay addresses among the page's links.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
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
_FRAME_ELEMENT: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|textarea|title|noscript|noframes)\b.*?(?:</\1|\Z)"
    r"""|<(iframe|frame|object|embed)\b((?:"[^"]{0,2000}"|'[^']{0,2000}'|[^"'<>]|(?!))*+)>""",
    re.IGNORECASE | re.DOTALL,
)
_ADDRESSES: Final = ("src", "data-src", "data-lazy-src")
"""Where the address of a frame is; scripts copy the others into the first as a reader
scrolls."""
_OBJECT_END: Final = re.compile(r"</object\s*>", re.IGNORECASE)
_FRAMESET: Final = re.compile(r"<(/?)frameset\b[^<>]*>", re.IGNORECASE)
_LONE: Final = re.compile(r"<frame\b([^<>]*)>", re.IGNORECASE)
_NO_PAGE: Final = re.compile(
    r"\.(?:pdf|svg|png|jpe?g|gif|webp|swf|mp[34]|webm|mov|avi|zip)$", re.IGNORECASE
)
_HIDDEN: Final = re.compile(
    r"""\bhidden\b(?!\s*-)|display\s*:\s*none|\b(?:width|height)\s*=\s*["']?[012](?:px)?["'\s]"""
)
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame of a page."""

    name: str
    start: int
    end: int
    attributes: str
    """As written."""
    url: str


async def with_frames(
    raw: Raw, get: Callable[[str], Awaitable[Raw]], seconds: float
) -> Raw:
    """Return a web page with what the frames of its own host hold; a note says so, and
    where one was not read.

    `get` fetches one of them and raises `SourceError`; all of them may take `seconds`.
    At most `MOST_FRAMES` frames are fetched."""
    if not _FRAME_BYTES.search(raw.body) or kind_of(raw) != HTML:
        return raw
    text, frames = await in_thread(_frames, raw)
    urls = list(dict.fromkeys(frame.url for frame in frames))
    found: dict[str, str] = {}
    said: set[str] = set()

    async def read(url: str) -> None:
        try:
            answer = await get(url)
        except SourceError:
            return
        if kind_of(answer) == HTML and _host(answer.final_url) == _host(raw.final_url):
            found[url] = await in_thread(_inside, answer)
            said.update(answer.notes)

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:
            for url in urls[:MOST_FRAMES]:
                group.start_soon(read, url)
    whole = {url: inner for url, inner in found.items() if inner}
    notes = sorted(said)
    if len(whole) < len(urls):
        notes.append(UNREAD_FRAME)
    if not whole:
        return replace(raw, notes=(*raw.notes, *notes)) if notes else raw
    body = _BOM + (await in_thread(_filled, text, frames, whole)).encode(
        "utf-8", "replace"
    )
    return replace(raw, body=body, notes=(*raw.notes, FRAMED, *notes))


def _frames(raw: Raw) -> tuple[str, list[_Frame]]:
    """Return the text of a page and its frames with an address on its host that a
    reader may see."""
    text = decode(raw.body, content_type=raw.content_type).text
    base = base_of(text, raw.final_url)
    frames = (_frame(tag, base, raw.final_url) for tag in _FRAME_ELEMENT.finditer(text))
    return text, [frame for frame in frames if frame is not None]


def _frame(tag: re.Match[str], base: str, page: str) -> _Frame | None:
    """Return a frame of the page at the address `page`; None where its own address is
    not on the page's host, names another type than HTML, or a reader does not see it."""
    if tag[2] is None:
        return None
    name, attributes = tag[2].lower(), attributes_of(tag[3])
    is_seen = "html" in attributes.get("type", "html") and "srcdoc" not in attributes
    if not is_seen or _HIDDEN.search(f"{tag[3]} "):
        return None
    address = _address(name, attributes)
    url = _joined(base, address) if address else ""
    if not url or _host(url) != _host(page) or url == urldefrag(page).url:
        return None
    return _Frame(name, tag.start(), tag.end(), tag[3], url)


def _address(name: str, attributes: Mapping[str, str]) -> str:
    """Return what an element's frame shows; "" where it has no address."""
    said = (
        attributes.get(one, "").strip()
        for one in (("data",) if name == "object" else _ADDRESSES)
    )
    return next((one for one in said if one and not one.startswith("about:")), "")


def _joined(base: str, address: str) -> str:
    """Return an address of a page without its fragment, empty for what is malformed,
    not http(s) or no page by its ending."""
    try:
        url = urldefrag(urljoin(base, "".join(address.split()))).url
        parts = urlsplit(url)
    except ValueError:
        return ""
    return (
        url
        if parts.scheme in {"http", "https"} and not _NO_PAGE.search(parts.path)
        else ""
    )


def _host(url: str) -> str:
    """Return host and port of an address, with and without `www.` alike."""
    try:
        return urlsplit(url).netloc.lower().removeprefix("www.")
    except ValueError:
        return ""


def _inside(answer: Raw) -> str:
    """Return the HTML of a frame, its addresses relative to its own; empty where it is
    too large."""
    text = decode(answer.body, content_type=answer.content_type).text
    base = escape(base_of(text, answer.final_url))
    return f'<base href="{base}">{text}' if len(text) <= FRAME_CHARACTERS else ""


def _filled(text: str, frames: list[_Frame], inside: dict[str, str]) -> str:
    """Return a page whose frames are `iframe` elements with what they hold, each
    once."""
    parts: list[str] = []
    at = 0
    left = dict(inside)
    for frame in frames:
        if frame.start < at or (held := left.pop(frame.url, None)) is None:
            continue
        end = frame.end
        if frame.name == "object" and (closing := _OBJECT_END.search(text, end)):
            end = closing.end()
        attributes = frame.attributes.rstrip(" /")
        closed = "" if frame.name == "iframe" else "</iframe>"
        parts += [
            text[at : frame.start],
            f'<iframe{attributes} srcdoc="{escape(held)}">{closed}',
        ]
        at = end
    filled = "".join([*parts, text[at:]])
    if _FRAMESET.search(filled) is None:
        return filled
    # In a set of frames no other element is parsed.
    return _FRAMESET.sub(r"<\1div>", _LONE.sub(r"<iframe\1></iframe>", filled))
