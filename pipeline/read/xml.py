"""XML to HTML: feeds as one article an entry, other documents as their texts, all by one careful parser.

The parser knows no entities, no network and no document type, and mends damaged input. Not for: HTML, which has its own
parser (`pipeline/html`), nor following the links of a feed.
"""

import html
import re
from typing import Final

from lxml import etree

from pipeline.html.guard import parse
from pipeline.read.converted import MAX_ITEMS, Converted, escape, whole_page
from pipeline.work import check_cancelled

_TAG: Final = re.compile(r"<[^<>]{0,2000}>")
_LANG: Final = "{http://www.w3.org/XML/1998/namespace}lang"


def parse_xml(body: bytes) -> etree._Element | None:
    """Return the root of an XML document, or None when there is none or it declares entities of its own."""
    if has_own_entities(body):
        return None
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_pis=True
    )
    try:
        return etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def has_own_entities(body: bytes) -> bool:
    """Return whether entities are declared in any place and width of letters: the form of every XML bomb."""
    return b"<!ENTITY" in body.replace(b"\x00", b"").upper()


def child_text(element: etree._Element, *names: str) -> str:
    """Return the text of the first child with one of `names`, in the order of the names; empty if there is none."""
    for name in names:
        for child in element:
            if _local_name(child) == name:
                text = "".join(child.itertext()).strip()
                if text:
                    return text
    return ""


def xml_to_html(body: bytes) -> Converted | None:
    """Return a feed, or one paragraph for each element that has text of its own; None for what is no XML."""
    root = parse_xml(body)
    if root is None:
        return None
    if _local_name(root) in {"rss", "feed", "rdf"}:
        return _feed(root)
    title = ""
    parts: list[str] = []
    for number, element in enumerate(root.iter()):
        if number % 1000 == 0:
            check_cancelled()
        name = _local_name(element)
        texts = [element.text or "", *(child.tail or "" for child in element)]
        own = " ".join(" ".join(texts).split())
        if not own or not name:
            continue
        title = title or (own if name == "title" else "")
        tag = "h2" if name == "title" else "p"
        parts.append(f"<{tag}>{escape(own)}</{tag}>")
    return Converted(whole_page("\n".join(parts), title=title), title)


def _feed(root: etree._Element) -> Converted:
    channel = next((child for child in root if _local_name(child) == "channel"), root)
    title = child_text(channel, "title")
    entries = [element for element in root.iter() if _local_name(element) in {"item", "entry"}]
    parts = [f"<h1>{escape(title)}</h1>"]
    about = child_text(channel, "description", "subtitle")
    if about:
        parts.append(f"<p>{escape(_plain_text(about))}</p>")
    for entry in entries[:MAX_ITEMS]:
        check_cancelled()
        parts.append(_article(entry))
    unread = f"what follows its first {MAX_ITEMS} of {len(entries)} entries" if len(entries) > MAX_ITEMS else ""
    language = (child_text(channel, "language") or root.get(_LANG) or "")[:2]
    inner = whole_page("\n".join(parts), title=title, language=language)
    return Converted(inner, title, language.lower(), unread=unread)


def _article(entry: etree._Element) -> str:
    title = escape(_plain_text(child_text(entry, "title")) or "(without title)")
    links = (child.get("href") or "" for child in entry if _local_name(child) == "link")
    link = child_text(entry, "link") or next(links, "")
    if link.startswith(("http://", "https://")):
        title = f'<a href="{html.escape(link)}">{title}</a>'
    parts = [f"<article>\n<h2>{title}</h2>"]
    when = child_text(entry, "pubdate", "published", "updated", "date")
    if when:
        parts.append(f"<p><time>{escape(when)}</time></p>")
    text = child_text(entry, "encoded", "content", "description", "summary")
    if text:
        parts.append(_fragment_to_html(text))
    return "\n".join([*parts, "</article>"])


def _local_name(element: etree._Element) -> str:
    """Return an element's name without its namespace, in lower case; empty for comments."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _fragment_to_html(text: str) -> str:
    """Return a text that may be HTML as HTML whose tags are all closed: such texts are often cut anywhere."""
    root = parse(text) if "<" in text else None
    body = root.css_first("body") if root is not None else None
    return f"<div>{body.inner_html}</div>" if body is not None else f"<p>{escape(_plain_text(text))}</p>"


def _plain_text(text: str) -> str:
    """Return a text that may be HTML as plain text on one line."""
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())
