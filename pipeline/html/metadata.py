"""What a page says of itself: title, author, date, language, from its meta elements, JSON-LD and bylines.

Own code first: it reads the tree that cleaning has parsed anyway, at next to no cost. trafilatura is asked where that
finds no date; the figures of both are in docs/log.md. Not for: the text of the page.
"""

import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from selectolax.lexbor import LexborNode

from pipeline.html.guard import parse
from pipeline.read.scripts import Json, linked_data
from pipeline.text.frame import LONGEST, LONGEST_AUTHOR

_TITLES: Final = "og:title twitter:title dc.title parsely-title sailthru.title"
_AUTHORS: Final = (
    "author article:author parsely-author dc.creator dcterms.creator sailthru.author byl citation_author "
    "twitter:creator:name article:author_name"
)
_DATES: Final = (
    "article:published_time datepublished og:published_time date pubdate publishdate dc.date dcterms.created "
    "dc.date.issued parsely-pub-date sailthru.date citation_publication_date article:published publish-date "
    "og:article:published_time dcterms.date article:modified_time"
)
_BYLINES: Final = (
    '[itemprop="author"] [itemprop="name"], [rel="author"], [itemprop="author"], a[href*="/author/"], '
    '[class*="author-name"], [class*="author__name"], [class*="byline"] a, [class*="byline"]'
)
_TIMES: Final = '[itemprop="datePublished"], time[datetime], time[pubdate]'
_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_BY: Final = re.compile(r"^\s*(?:written\s+|posted\s+|published\s+)?by[:\s]+", re.IGNORECASE)
_NO_NAME: Final = re.compile(r"https?://|@|\b(?:admin|editor|staff writer|unknown|guest)\b$|\d{3}", re.IGNORECASE)
_OF_OTHERS: Final = (
    "cite, table:has(th), .references, .reflist, .reference, .citation, .bibliography, [role=doc-endnotes], "
    "[role=doc-bibliography]"
)
LARGEST: Final = 400_000
"""Characters; trafilatura reads 2 to 4 MB a second, so a longer page would cost more than its opinion is worth."""
_YEAR: Final = re.compile(r"(?:19|20)\d\d(?<!\d\d\d\d\d)(?!\d)")
_SHORT_DATE: Final = re.compile(r"\d[./-]\d{1,2}[./-]\d\d(?!\d)")
"""A page without either has no date to find, and asking takes as long as reading it. Two patterns, each of which begins
with a digit, so that the text is scanned for digits: as one they take five times as long."""
LXML: Final = threading.Lock()
"""trafilatura has one lxml parser for all threads, and two at once ended the process ("free(): invalid pointer")."""
FAILURES: Final = (ValueError, TypeError, AttributeError, LookupError, RecursionError, AssertionError)
"""What trafilatura raises on strange markup; AssertionError is lxml's own, on fragments such as an svg root."""
_log: Final = logging.getLogger("winnow.html")


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata of a page; empty strings for what it does not say."""

    title: str = ""
    author: str = ""
    published: str = ""
    """ISO date."""
    language: str = ""
    """ISO 639-1 code."""


def read_metadata(html: str, top: LexborNode) -> Metadata:
    """Return what a page says of itself.

    Args:
        html: The page as it came, for its JSON-LD.
        top: Its parsed root (`guard.parse`).
    """
    said = _meta(top)
    linked = linked_data(html)
    return Metadata(
        title=_title(top, said, linked),
        author=_author(top, said, linked),
        published=_published(top, said, linked),
        language=_language(top, said, linked),
    )


def _meta(top: LexborNode) -> dict[str, str]:
    """Return name or property, lowercased, to content; the first of equal names."""
    said: dict[str, str] = {}
    for node in top.css("meta[content]")[:500]:
        attributes = node.attributes
        name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop")
        name = name or attributes.get("http-equiv")
        content = " ".join((attributes.get("content") or "").split())
        if name and content:
            said.setdefault(name.lower(), content)
    return said


def _title(top: LexborNode, said: Mapping[str, str], linked: list[dict[str, Json]]) -> str:
    heads = [text for node in top.css("h1")[:10] if (text := " ".join(node.text(deep=True).split()))]
    element = top.css_first("head title")
    named = " ".join(element.text(deep=True).split()) if element is not None else ""
    # A single h1 that the title element repeats is the title without the site's name.
    for head in heads:
        if len(head) > 3 and head.lower() in named.lower():
            return head[:LONGEST]
    said_title = next((said[name] for name in _TITLES.split() if name in said), "")
    headline = next((value for item in linked if isinstance(value := item.get("headline"), str) and value), "")
    return (said_title or headline or named or (heads[0] if heads else ""))[:LONGEST]


def _author(top: LexborNode, said: Mapping[str, str], linked: list[dict[str, Json]]) -> str:
    for item in linked:
        names = [name for name in _names(item.get("author")) if _is_name(name)]
        if names:
            return ", ".join(dict.fromkeys(names))[: 2 * LONGEST_AUTHOR]
    for key in _AUTHORS.split():
        if key in said and _is_name(said[key]):
            return said[key]
    for node in top.css(_BYLINES)[:20]:
        text = _BY.sub("", " ".join(node.text(deep=True, separator=" ").split()))
        if _is_name(text) and 1 < len(text.split()) <= 6:
            return text
    return ""


def _names(value: Json) -> list[str]:
    if isinstance(value, str):
        return [" ".join(value.split())]
    if isinstance(value, list):
        return [name for item in value[:10] for name in (_names(item) if not isinstance(item, list) else [])]
    if isinstance(value, dict):
        return _names(value.get("name")) if not isinstance(value.get("name"), dict) else []
    return []


def _is_name(text: str) -> bool:
    return 1 < len(text) <= LONGEST_AUTHOR and not _NO_NAME.search(text)


def _published(top: LexborNode, said: Mapping[str, str], linked: list[dict[str, Json]]) -> str:
    candidates = [value for item in linked if isinstance(value := item.get("datePublished"), str)]
    candidates += [said[name] for name in _DATES.split() if name in said]
    candidates += [
        node.attributes.get("datetime") or node.attributes.get("content") or "" for node in top.css(_TIMES)[:5]
    ]
    return next((found for text in candidates if (found := _iso_date(text))), "")


def _iso_date(text: str) -> str:
    match = _DATE.search(text)
    if match is None:
        return ""
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).isoformat()
    except ValueError:
        return ""


def _language(top: LexborNode, said: Mapping[str, str], linked: list[dict[str, Json]]) -> str:
    spoken = [top.attributes.get("lang") or "", top.attributes.get("xml:lang") or ""]
    spoken += [said.get("og:locale", ""), said.get("content-language", ""), said.get("language", "")]
    spoken += [value for item in linked if isinstance(value := item.get("inLanguage"), str)]
    for value in spoken:
        code = re.split(r"[-_,;\s]", value.strip().lower(), maxsplit=1)[0]
        if len(code) == 2 and code.isalpha() and code.isascii():
            return code
    return ""


def find_metadata(html: str, url: str) -> Metadata:
    """Return the metadata that trafilatura finds; empty where it fails, or the page is undated or over `LARGEST`."""
    if len(html) > LARGEST or not (_YEAR.search(html) or _SHORT_DATE.search(html)):
        return Metadata()
    # Dates of what a page cites and lists are not its own: without this 41 of 71 Wikipedia pages took one, with it 3;
    # of 102 other pages that do not say their date as many got the right one.
    top = parse(html)
    for node in () if top is None else top.css(_OF_OTHERS):
        node.decompose()
    html = html if top is None else top.html or ""
    # Half a second of imports that pages which say their own date never need.
    from trafilatura.metadata import extract_metadata  # noqa: PLC0415

    try:
        with LXML:
            found = extract_metadata(html, default_url=url, extensive=False)
    except FAILURES as error:
        _log.info("trafilatura could not read the metadata of %s: %r", url, error)
        return Metadata()
    if found is None:
        return Metadata()
    author = str(found.author or "")
    return Metadata(
        title=str(found.title or ""),
        author=author.replace("; ", ", ") if len(author) <= LONGEST_AUTHOR else "",
        published=_iso_date(str(found.date or "")),
        language=str(found.language or "")[:2],
    )
