"""RSS and Atom to HTML: one article an entry, with its title, link, date and text.

Not for: following the links of a feed.
"""

import html
from typing import Final

from pipeline.read.converted import Converted, escape, whole_page
from pipeline.read.fragment import fragment_to_html, plain_text
from pipeline.read.xml import Element, child_text, local_name, parse_xml
from pipeline.work import check_cancelled

_MAX_ENTRIES: Final = 500
_ENTRY: Final = {"item", "entry"}


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
        parts.append(f"<p>{escape(plain_text(about))}</p>")
    for entry in entries[:_MAX_ENTRIES]:
        check_cancelled()
        parts.append(_article(entry))
    notes = (f"feed: the first {_MAX_ENTRIES} of {len(entries)} entries",) if len(entries) > _MAX_ENTRIES else ()
    language = (child_text(channel, "language") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or "")[:2]
    return Converted(whole_page("\n".join(parts), title=title, language=language), title, language.lower(), notes=notes)


def _article(entry: Element) -> str:
    title = plain_text(child_text(entry, "title")) or "(without title)"
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
        parts.append(fragment_to_html(text))
    parts.append("</article>")
    return "\n".join(parts)
