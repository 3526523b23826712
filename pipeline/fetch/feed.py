"""RSS and Atom to HTML: one article an entry, with its title, link, date and text.

Not for: following the links of a feed.
"""

import html
import re
from typing import Final

import lxml.html
from lxml import etree

from pipeline.fetch.converted import Converted, escape, whole_page
from pipeline.fetch.xml import Element, child_text, local_name, parse_xml
from pipeline.work import check_cancelled

_MAX_ENTRIES: Final = 500
_ENTRY: Final = {"item", "entry"}
_DEEPEST: Final = 200
"""Tags left open at once; `<p>` and `<br>` count though they close by themselves, so that long texts may be taken for
deep. Those lose their markup, not their words."""
_TAG: Final = re.compile(r"<[^<>]{0,2000}>")


def feed_to_html(body: bytes) -> Converted | None:
    """Return a feed as HTML, or None when the body is not a feed."""
    root = parse_xml(body)
    if root is None or local_name(root) not in {"rss", "feed", "rdf"}:
        return None
    channel = next((child for child in root if local_name(child) == "channel"), root)
    title = child_text(channel, "title")
    entries = [element for element in root.iter() if local_name(element) in _ENTRY]
    parts = [f"<h1>{escape(title)}</h1>"]
    about = child_text(channel, "description", "subtitle")
    if about:
        parts.append(f"<p>{escape(_plain(about))}</p>")
    for entry in entries[:_MAX_ENTRIES]:
        check_cancelled()
        parts.append(_article(entry))
    notes = (f"feed: the first {_MAX_ENTRIES} of {len(entries)} entries",) if len(entries) > _MAX_ENTRIES else ()
    language = (child_text(channel, "language") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or "")[:2]
    return Converted(whole_page("\n".join(parts), title=title, language=language), title, language.lower(), notes=notes)


def _article(entry: Element) -> str:
    title = _plain(child_text(entry, "title")) or "(without title)"
    link = child_text(entry, "link") or next(
        (child.get("href") or "" for child in entry if local_name(child) == "link"), ""
    )
    when = child_text(entry, "pubdate", "published", "updated", "date")
    text = child_text(entry, "encoded", "content", "description", "summary")
    heading = (
        f'<a href="{html.escape(link)}">{escape(title)}</a>'
        if link.startswith(("http://", "https://"))
        else escape(title)
    )
    parts = [f"<article>\n<h2>{heading}</h2>"]
    if when:
        parts.append(f"<p><time>{escape(when)}</time></p>")
    if text:
        parts.append(_inner(text))
    parts.append("</article>")
    return "\n".join(parts)


def _inner(text: str) -> str:
    """Return an entry's text as HTML whose tags are all closed: entries carry HTML as text, often cut anywhere."""
    if "<" not in text or _is_deep(text):
        return f"<p>{escape(_plain(text))}</p>"
    try:
        div = lxml.html.fragment_fromstring(text.replace("\x00", ""), create_parent="div")
        return str(lxml.html.tostring(div, encoding="unicode"))
    except (etree.LxmlError, ValueError, AssertionError):
        return f"<p>{escape(_plain(text))}</p>"


def _is_deep(text: str) -> bool:
    """Return whether elements may nest deeper than libxml2 reads: it leaves out what lies below a depth of 256."""
    depth = deepest = 0
    for match in _TAG.finditer(text):
        depth += -1 if match.group().startswith("</") else 1
        deepest = max(deepest, depth)
    return deepest > _DEEPEST


def _plain(text: str) -> str:
    """Return a text that may be HTML as plain text on one line."""
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())
