"""Markdown, CSV and XML to HTML that a person could read; an article for each entry of feeds, links
of sitemaps.

XML's one careful parser knows no entities, no network and no document type, and mends damaged
input. Not for: plain text (`plain.py`), JSON (`records.py`), nor finding out which of these a text
is (`sniff.py`).
"""

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from lxml import etree

from cancellation import check_cancelled
from readers.converted import (
    MAX_ITEMS,
    MAX_TABLE_CELLS,
    SLOW_LETTERS,
    Converted,
    day_in,
    escape,
    html_table,
    unplaced,
    whole_page,
)
from readers.html.guard import parse
from readers.sniff import decode
from readers.text.markdown import markdown_to_body
from readers.text.plain import plain_to_html, without_comments

WITHOUT_STRUCTURE: Final = "damaged: read as plain text, without its structure"
"""Note of a text of which only what is outside its tags was read."""
_FRONT_MATTER: Final = re.compile(
    r"\A(---|\+\+\+)[ \t]*\r?\n(.{0,4000}?)\r?\n\1[ \t]*(?:\r?\n|\Z)", re.DOTALL
)


def markdown_to_html(text: str, *, sheets: bool = True) -> Converted:
    """Return Markdown as HTML, HTML inside it as such; without `sheets` its style
    sheets go.

    Text over `SLOW_LETTERS` characters is read as plain text, with a note. Its title is
    the front matter's, else the first `h1`."""
    front = _FRONT_MATTER.match(text)
    front_matter = front[2] if front else ""
    text = text[front.end() :] if front else text
    title, author = _field("title", front_matter), _field("author", front_matter)
    published = day_in(_field("date|published|created", front_matter))
    if len(text) > SLOW_LETTERS:
        plain_page = plain_to_html(text)
        notes = ("Markdown over 5 million characters, read as plain text",)
        return Converted(
            plain_page.html, title, author=author, published=published, notes=notes
        )
    check_cancelled()
    front_html = f"<pre>{escape(front_matter)}</pre>" if front_matter else ""
    body_html = front_html + markdown_to_body(text, sheets=sheets)
    heading = re.search(r"<h1>(.{1,300}?)</h1>", body_html)
    headline = plain_text(heading[1]) if heading else ""
    return Converted(
        whole_page(body_html, title=title),
        title or headline,
        author=author,
        published=published,
    )


_ORG_MARKS: Final = (
    (re.compile(r"^(?![ \t]*\|)(.*\S.*\n)(?=[ \t]*\|)", re.M), r"\1\n"),
    (re.compile(r"^(\*{1,6}) +", re.M), lambda mark: "#" * len(mark[1]) + " "),
    (
        re.compile(r"^([ \t]*)#\+begin_(?:src|example)[ \t]*([\w-]*).*$", re.M | re.I),
        r"\1```\2",
    ),
    (re.compile(r"^([ \t]*)#\+end_(?:src|example).*$", re.M | re.I), r"\1```"),
    (re.compile(r"^([ \t]*)#\+\w+:?", re.M), r"\1"),
    (
        re.compile(r"^[ \t]*\|[-+]+\|?[ \t]*$", re.M),
        lambda rule: rule[0].replace("+", "|"),
    ),
    (re.compile(r"\[\[([^][\s]{1,500})\]\[([^][]{1,500})\]\]"), r"[\2](\1)"),
)
"""Marks of Org and what Markdown has for them: an empty line above a table, headings,
listings, other keywords, rules of tables, links."""


_ORG_COMMENT: Final = re.compile(r"^[ \t]*#(?: .*)?\n?$")
_ORG_LISTING: Final = re.compile(
    r"^[ \t]*#\+(?:(begin)|end)_(?:src|example)\b", re.IGNORECASE
)


def org_to_html(text: str) -> Converted:
    """Return a text in Org as Markdown's reader makes it, without comments, which no
    export shows; a note counts them. Its title is its own."""
    text, notes = without_comments(text, _ORG_COMMENT, _ORG_LISTING)
    title = re.search(r"^#\+title:[ \t]*(\S.*)$", text, re.M | re.I)
    for mark, markdown in _ORG_MARKS:
        text = mark.sub(markdown, text)
    as_html = markdown_to_html(text)
    return replace(
        as_html, title=title[1].strip() if title else as_html.title, notes=notes
    )


def _field(names: str, front_matter: str) -> str:
    """Return the first line of YAML with one of these names, without quotes; "" where
    it is missing, a list or a text of many lines."""
    match = re.search(
        rf"^(?:{names})[ \t]*[:=][ \t]+([\"']?)([^\s\[{{|>].*?)\1[ \t]*\r?$",
        front_matter,
        re.MULTILINE,
    )
    return match[2] if match else ""


def csv_to_html(text: str) -> Converted:
    """Return a table, its first row as the header; the separator is the likeliest of
    comma, tab and semicolon in the first line.

    Malformed CSV is read as plain text; rows after `MAX_ITEMS` are named as unread, and
    are in `Converted.tables` up to `MAX_TABLE_CELLS` cells."""
    separator = max(",\t;", key=text.partition("\n")[0].count)
    rows: list[list[str]] = []
    cells = 0
    try:
        for row in csv.reader(io.StringIO(text), delimiter=separator):
            rows.append(row)
            cells += len(row)
            if cells > MAX_TABLE_CELLS and len(rows) > MAX_ITEMS:
                break
    except csv.Error:
        return plain_to_html(text)
    unread = f"what follows its first {MAX_ITEMS} rows" if len(rows) > MAX_ITEMS else ""
    tables = json.dumps([["", rows]]) if cells <= MAX_TABLE_CELLS else ""
    del rows[MAX_ITEMS:]
    places = [
        f"row={number}" for number in range(1, len(rows) + 1)
    ]  # as RFC 7111 counts them
    return Converted(
        whole_page(html_table(rows, header=True, places=places)),
        unread=unread,
        tables=tables,
    )


_BOUNDED_TAG: Final = re.compile(r"<[^<>]{0,2000}>")
_XML_LANG: Final = "{http://www.w3.org/XML/1998/namespace}lang"
XML_OPTIONS: Final[dict[str, Any]] = dict.fromkeys(
    ("resolve_entities", "load_dtd", "huge_tree"), False
) | {
    "no_network": True,
    "recover": True,
}


def parse_xml(body: bytes) -> etree._Element | None:
    """Return the root of an XML document, or None when there is none or it declares
    entities of its own; broken markup is mended where that can be done."""
    if has_own_entities(body):
        return None
    parser = etree.XMLParser(**XML_OPTIONS, remove_pis=True)
    try:
        return etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def has_own_entities(body: bytes) -> bool:
    """Return whether entities are declared in any place and width of letters: the form of every XML
    bomb."""
    return b"<!ENTITY" in body.replace(b"\x00", b"").upper()


def child_text(element: etree._Element, *names: str) -> str:
    """Return the text of the first child with one of `names`, in the order of the names; empty if
    there is none."""
    child_texts = (
        "".join(child.itertext()).strip()
        for name in names
        for child in element
        if local_name(child) == name
    )
    return next(filter(None, child_texts), "")


def legible_text(text: str) -> Converted:
    """Return what a damaged text says outside its tags, as plain text, with a note."""
    bare = html.unescape(_BOUNDED_TAG.sub(" ", text)).replace("\x00", "")
    bare = bare.encode("utf-8", "replace").decode("utf-8")
    plain = plain_to_html(bare)
    return replace(plain, notes=(WITHOUT_STRUCTURE, *plain.notes))


def xml_to_html(body: bytes) -> Converted | None:
    """Return a feed or site map by their own rules, else one paragraph for each element
    that has text of its own. Of damaged XML without such an element, its legible text.

    None for what is not XML, or declares entities of its own."""
    root = parse_xml(body)
    if root is None:
        return None
    page, text = _known_xml(root), decode(body).text
    is_read = plain_text(page.html) or not plain_text(text)
    return page if is_read else legible_text(text)


def _known_xml(root: etree._Element) -> Converted:
    if local_name(root) in {"rss", "feed", "rdf"}:
        return _feed(root)
    if local_name(root) in {"urlset", "sitemapindex"}:
        return _sitemap(root)
    if local_name(root) == "opml":
        return _outlines(root)
    return _elements(root)


def _elements(root: etree._Element) -> Converted:
    """Return a paragraph for each element that has text of its own."""
    title = ""
    paragraphs: list[str] = []
    for number, element in enumerate(root.iter()):
        if number % 1000 == 0:
            check_cancelled()
        name = local_name(element)
        texts = [element.text or "", *(child.tail or "" for child in element)]
        own_text = " ".join(" ".join(texts).split())
        if not own_text or not name:
            continue
        title = title or (own_text if name == "title" else "")
        if "</" in own_text and name != "title":
            paragraphs.append(fragment_to_html(own_text))  # HTML as a text
            continue
        tag = "h2" if name == "title" else "p"
        paragraphs.append(f"<{tag}>{escape(own_text)}</{tag}>")
    return Converted(whole_page("\n".join(paragraphs), title=title), title)


def _feed(root: etree._Element) -> Converted:
    channel = next((child for child in root if local_name(child) == "channel"), root)
    title = child_text(channel, "title")
    entries = [
        element for element in root.iter() if local_name(element) in {"item", "entry"}
    ]
    blocks = [f"<h1>{escape(title)}</h1>"]
    if about := child_text(channel, "description", "subtitle"):
        blocks.append(f"<p>{escape(plain_text(about))}</p>")
    for entry in entries[:MAX_ITEMS]:
        check_cancelled()
        blocks.append(_article(entry))
    unread = (
        f"what follows its first {MAX_ITEMS} of {len(entries)} entries"
        if len(entries) > MAX_ITEMS
        else ""
    )
    language = (child_text(channel, "language") or root.get(_XML_LANG) or "")[:2]
    page_html = whole_page("\n".join(blocks), title=title, language=language)
    return Converted(page_html, title, language.lower(), unread=unread)


def _sitemap(root: etree._Element) -> Converted:
    """Return a list of links, those of an index to further sitemaps with
    `rel="sitemap"`; entries without an address are dropped, as are those after
    `MAX_ITEMS`."""
    rel = ' rel="sitemap"' if local_name(root) == "sitemapindex" else ""
    list_items: list[str] = []
    for entry in islice(root, MAX_ITEMS):
        link, when = (
            html.escape(child_text(entry, "loc")),
            escape(child_text(entry, "lastmod")),
        )
        list_items += (
            [f'<li><a href="{link}"{rel}>{link}</a> {when}</li>'] if link else []
        )
    unread = (
        f"what follows its first {MAX_ITEMS} of {len(root)} addresses"
        if len(root) > MAX_ITEMS
        else ""
    )
    return Converted(
        whole_page("<ul>" + "\n".join(list_items) + "</ul>", title="Sitemap"),
        "Sitemap",
        unread=unread,
    )


def _outlines(root: etree._Element) -> Converted:
    """Return OPML, whose texts are attributes, as nested lists; what follows its first
    `MAX_ITEMS` outlines is left out."""
    title = next(
        (child_text(head, "title") for head in root.iterchildren("{*}head")), ""
    )
    items_left = iter(range(MAX_ITEMS))

    def listed(parent: etree._Element) -> str:
        items = ""
        for outline in parent.iterchildren("{*}outline"):
            if next(items_left, None) is None:
                break
            texts = map(outline.get, ("text", "title", "description", "_note"))
            label = escape(
                " · ".join(
                    dict.fromkeys(filter(None, map(plain_text, filter(None, texts))))
                )
            )
            address = (
                outline.get("htmlUrl")
                or outline.get("xmlUrl")
                or outline.get("url")
                or ""
            )
            if address.startswith(("http://", "https://")):
                label = (
                    f'<a href="{html.escape(address)}">{label or escape(address)}</a>'
                )
            items += f"<li>{label}{listed(outline)}</li>"
        return f"<ul>{items}</ul>" if items else ""

    lists = "".join(map(listed, root.iterchildren("{*}body")))
    is_cut = next(items_left, None) is None
    unread = f"what follows its first {MAX_ITEMS} outlines" if is_cut else ""
    return Converted(whole_page(lists, title=title), title, unread=unread)


def _attributes(entry: etree._Element, tag: str, name: str) -> Iterator[str]:
    """Yield an attribute of each child with a tag, "" where a child lacks it."""
    for child in entry:
        if local_name(child) == tag:
            yield child.get(name) or ""


def _article(entry: etree._Element) -> str:
    title = escape(plain_text(child_text(entry, "title")) or "(without title)")
    links = _attributes(entry, "link", "href")
    link = child_text(entry, "link") or next(links, "")
    if link.startswith(("http://", "https://")):
        title = f'<a href="{html.escape(link)}">{title}</a>'
    blocks = [f"<article>\n<h2>{title}</h2>"]
    if when := child_text(entry, "pubdate", "published", "updated", "date"):
        blocks.append(f"<p><time>{escape(when)}</time></p>")
    blocks += [  # of a podcast's episode
        f'<p><a href="{html.escape(address)}">Transcript: {escape(address)}</a></p>'
        for address in _attributes(entry, "transcript", "url")
        if address.startswith(("http://", "https://"))
    ]
    if text := child_text(entry, "encoded", "content", "description", "summary"):
        blocks.append(fragment_to_html(text))
    return "\n".join([*blocks, "</article>"])


def local_name(element: etree._Element) -> str:
    """Return an element's name without its namespace, in lower case; empty for comments."""
    return (
        element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""
    )


def fragment_to_html(text: str) -> str:
    """Return a text that may be HTML as HTML whose tags are all closed, without its
    sheets, which would hide what others say: such texts are often cut anywhere.

    Text without a tag is one paragraph."""
    root = parse(unplaced(text)) if "<" in text else None
    body = root.css_first("body") if root is not None else None
    if body is None:
        return f"<p>{escape(plain_text(text))}</p>"
    for node in body.css("style, link"):
        node.decompose()
    return f"<div>{body.inner_html}</div>"


def plain_text(text: str) -> str:
    """Return a text that may be HTML as plain text on one line."""
    return " ".join(html.unescape(_BOUNDED_TAG.sub(" ", text)).split())
