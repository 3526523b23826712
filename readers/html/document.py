"""From a fetched page to a document: clean, cut into content units, fill in what the
page says of itself.

Title, author, date and language come from its meta elements, JSON-LD, bylines and
elements of time, and a date from words that call it the page's: any other in the text
may be anyone's (figures: docs/log.md). Not for: fetching (`pipeline/fetch`), choosing
what to keep (`pipeline/prune`)."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Final
from urllib.parse import urljoin

from selectolax.lexbor import LexborNode

from readers.converted import MOSTLY_HIDDEN
from readers.html.addresses import base_of, rebase
from readers.html.blocks import content_blocks
from readers.html.clean import MAX_NODES, clean, clean_parsed
from readers.html.guard import MAX_TAGS, parse
from readers.html.page_data import Json
from readers.html.scripts import linked_data, may_be_filled, script_texts
from readers.page import LONGEST_AUTHOR, TITLE_CHARACTERS, Block, Document, Page
from readers.tree import LABEL_WORDS, Node, to_html

FROM_SCRIPTS: Final = "the page is built by scripts in a browser; text was taken from its JSON-LD or script data"
_KNOWN_TAG: Final = re.compile(
    r"</?(?:p|div|ul|ol|li|h[1-6]|br|table|strong|em|a|span|blockquote|section)\b",
    re.IGNORECASE,
)


_NUMBERED: Final = re.compile(r"\D{0,12}\d{1,4}/?")
_FRAMING: Final = re.compile(r"/(?:aside|footer|header|nav)\d*(?=/|$)")
_COPYRIGHT: Final = re.compile(r"©|\(c\) ?\d{4}|\bcopyright\b", re.IGNORECASE)
"""What says whose a site is, in whatever element."""

_ABOUT_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "ar": ("الكاتب", "تاريخ النشر"),
    "da": ("Forfatter", "Udgivet"),
    "de": ("Autor", "Veröffentlicht"),
    "en": ("Author", "Published"),
    "es": ("Autor", "Publicado"),
    "fi": ("Kirjoittaja", "Julkaistu"),
    "fr": ("Auteur", "Publié"),
    "it": ("Autore", "Pubblicato"),
    "ja": ("著者", "公開日"),
    "ko": ("글쓴이", "게시일"),
    "nl": ("Auteur", "Gepubliceerd"),
    "no": ("Forfatter", "Publisert"),
    "pl": ("Autor", "Opublikowano"),
    "pt": ("Autor", "Publicado"),
    "ru": ("Автор", "Опубликовано"),
    "sv": ("Författare", "Publicerad"),
    "tr": ("Yazar", "Yayın tarihi"),
    "uk": ("Автор", "Опубліковано"),
    "zh": ("作者", "发布日期"),
}
"""How languages name the author and the day of publication."""


def read_document(page: Page, *, most_nodes: int = MAX_NODES) -> Document:
    """Return `page` cleaned and cut into content units, its empty metadata filled from
    what it says of itself.

    A client-side page whose markup shows next to nothing is read from its JSON-LD or
    framework data, too, and says so in `page.notes`. Never fails on markup: a page
    without visible text gives a document without blocks. Text after `MAX_TAGS` tags is
    not read; `page.unread` says so. Elements after `most_nodes` are kept as text
    alone."""
    # 1. Parse once: what the page says of itself, what it shows. Its tree is freed before ours
    # grows into units.
    top = parse(page.html)
    metadata = None if top is None else read_metadata(page.html, top)
    root, unseen, hidden_shown, rows = (
        (Node("html"), 0, "", 0) if top is None else clean_parsed(top, most_nodes)
    )
    # 2. What its markup states. A date or name that the text alone has may be anyone's.
    base = page.final_url
    if top is not None and metadata is not None:
        if top.css_first("base") is not None:
            base = base_of(page.html, base)
        page = _stated(page, metadata, top)
        if address := _next_page(top, base, page.final_url):
            page = replace(page, unread=f"its next page, {address}", rest=address)
    del top
    # 3. Next to nothing to see: what would its scripts have drawn?
    about = _about(page)
    text, blocks = content_blocks(root, about)
    notes = (*page.notes, *[MOSTLY_HIDDEN] * (hidden_shown == "all"))
    drawn = _drawn(page.html, blocks[len(about) :])
    if drawn is not None:
        root.children.append(drawn)
        text, blocks = content_blocks(root, about)
        notes = (*notes, FROM_SCRIPTS)
    if base != page.final_url:
        rebase(root, base)
    if hidden_shown or drawn is not None:
        page = replace(page, trust="script")
    if unseen >= LABEL_WORDS:  # fewer are labels that a design moves away
        page = replace(page, hidden=page.hidden + unseen)
        notes = (
            *notes,
            f"hidden words removed: {unseen}",
        )
    if page.html.count("<") > MAX_TAGS:
        page = replace(
            page, unread=f"what follows its first {MAX_TAGS:,} tags", tables_whole=False
        )
    if rows:
        notes = (*notes, f"hidden rows of tables removed: {rows}")
    page = replace(page, notes=notes)
    return Document(page=page, html=to_html(root), text=text, blocks=blocks, root=root)


def _next_page(top: LexborNode, base: str, own: str) -> str:
    """Return the address of the next of the pages that a text is cut into, "" for none:
    its own with another number, or with a number after it (`/page-2`, `?p=3`).

    Posts and chapters that follow each other have names."""
    link = top.css_first('[rel~="next"][href]')
    own = own.partition("#")[0]
    if link is None or not own.startswith("http"):
        return ""
    address = ""
    with suppress(ValueError):
        address = urljoin(base, link.attributes["href"] or "").partition("#")[0]
    own_form, form = (re.sub(r"\d+", "#", url) for url in (own, address))
    is_further = address != own and (
        form == own_form or _NUMBERED.fullmatch(address.removeprefix(own))
    )
    return address if is_further else ""


def _stated(page: Page, metadata: "Metadata", top: LexborNode) -> Page:
    """Return a page with title, author, date and language as its markup states them, or
    its text the date; what a file says of itself comes first."""
    published = page.published or metadata.published
    # In a text file or PDF such a date may be of anything that it is about.
    if not published and "html" in page.media_type:
        published = _printed_date(top)
    return replace(
        page,
        title=page.title or metadata.title,
        author=page.author or metadata.author,
        published=published,
        language=page.language or metadata.language,
    )


def _about(page: Page) -> list[str]:
    """Return who wrote a page and when it came out, named in its language: what is
    asked of pages, and seldom so named in their text.

    Authors are cut to `LONGEST_AUTHOR`; what is not known is left out."""
    names = _ABOUT_NAMES.get(page.language, _ABOUT_NAMES["en"])
    values = (" ".join(page.author.split())[:LONGEST_AUTHOR], page.published)
    return [
        f"{name}: {value}" for name, value in zip(names, values, strict=True) if value
    ]


def _drawn(html: str, blocks: tuple[Block, ...]) -> Node | None:
    """Return the texts in a page's scripts as a body, or None if only the visible page
    counts."""
    main_blocks = [block for block in blocks if block.main]
    framing = {
        block.text: None
        for block in main_blocks
        if _FRAMING.search(block.path) or _COPYRIGHT.search(block.text)
    }
    if not may_be_filled(
        html,
        [block.text for block in main_blocks if block.text not in framing],
        framing,
    ):
        return None
    body = Node("body")
    for tag, text in script_texts(html):
        body.children += _nodes_of(tag, text)
    return body if body.children else None


def _nodes_of(tag: str, text: str) -> list[Node]:
    if tag == "noscript" or _KNOWN_TAG.search(text):
        return _fragment(text)
    return [_leaf(tag, line) for line in text.split("\n") if line.strip()]


def _fragment(html: str) -> list[Node]:
    """Return the body of HTML that came inside something else, as a block of another
    page."""
    nodes = [
        node
        for node in clean(html).children
        if isinstance(node, Node) and node.tag == "body"
    ]
    for node in nodes:
        node.tag = "div"
    return nodes


def _leaf(tag: str, text: str) -> Node:
    node = Node(tag)
    node.children.append(" ".join(text.split()))
    return node


# What a page says of itself

_AUTHORS: Final = (
    "author article:author parsely-author dc.creator dcterms.creator sailthru.author byl "
    "citation_author "
    "twitter:creator:name article:author_name"
)
_DATES: Final = (
    "article:published_time datepublished og:published_time date pubdate publishdate dc.date "
    "dcterms.created "
    "dc.date.issued parsely-pub-date sailthru.date citation_publication_date article:published "
    "publish-date "
    "og:article:published_time dcterms.date article:modified_time"
)
_BYLINES: Final = (
    '[itemprop="author"] [itemprop="name"], [rel="author"], [itemprop="author"], '
    'a[href*="/author/"], [class~="author"], '
    '[class*="author-name"], [class*="author__name"], [class*="byline"] a, [class*="byline"]'
)
_ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_PRINTED_DATE: Final = re.compile(
    r"\b(?:last\s+(?:modified|updated)|updated|published)(?:\s+on|:)?\s+(\d{4}-\d{2}-\d{2})",
    re.IGNORECASE,
)
"""A date that the text itself calls the page's; a page that has two is undated."""
_BY: Final = re.compile(
    r"^\s*(?:written\s+|posted\s+|published\s+)?by[:\s]+", re.IGNORECASE
)
_NO_NAME: Final = re.compile(
    r"https?://|@|\b(?:admin|editor|staff writer|unknown|guest)\b$|\d{3}", re.IGNORECASE
)


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
    meta = _meta(top)
    linked = linked_data(html)
    return Metadata(
        title=_title(top, meta, linked),
        author=_author(top, meta, linked),
        published=_published(top, meta, linked),
        language=_language(top, meta, linked),
    )


def _meta(top: LexborNode) -> dict[str, str]:
    """Return name or property, lowercased, to content; the first of equal names. Empty
    contents are left out, as are elements after the first 500."""
    meta: dict[str, str] = {}
    for node in top.css("meta[content]")[:500]:
        attributes = node.attributes
        name = (
            attributes.get("property")
            or attributes.get("name")
            or attributes.get("itemprop")
        )
        name = name or attributes.get("http-equiv")
        content = " ".join((attributes.get("content") or "").split())
        if name and content:
            meta.setdefault(name.lower(), content)
    return meta


def _title(
    top: LexborNode, meta: Mapping[str, str], linked: list[dict[str, Json]]
) -> str:
    heads = [
        text
        for node in top.css("h1")[:10]
        if (text := " ".join(node.text(deep=True).split()))
    ]
    element = top.css_first("head title")
    element_title = (
        " ".join(element.text(deep=True).split()) if element is not None else ""
    )
    # A single h1 that the title element repeats is the title without the site's name.
    for head in heads:
        if len(head) > 3 and head.lower() in element_title.lower():
            return head[:TITLE_CHARACTERS]
    titles = [
        meta[name]
        for name in [
            "og:title",
            "twitter:title",
            "dc.title",
            "parsely-title",
            "sailthru.title",
        ]
        if name in meta
    ]
    titles += [
        value for item in linked if isinstance(value := item.get("headline"), str)
    ]
    return next(filter(None, (*titles, element_title, *heads)), "")[:TITLE_CHARACTERS]


def _author(
    top: LexborNode, meta: Mapping[str, str], linked: list[dict[str, Json]]
) -> str:
    for item in linked:
        names = [name for name in _names(item.get("author")) if _is_name(name)]
        if names:
            return ", ".join(dict.fromkeys(names))[: 2 * LONGEST_AUTHOR]
    for key in _AUTHORS.split():
        if key in meta and _is_name(meta[key]):
            return meta[key]
    for node in top.css(_BYLINES)[:20]:
        text = _BY.sub("", " ".join(node.text(deep=True, separator=" ").split()))
        if _is_name(text) and 1 < len(text.split()) <= 6:
            return text
    return ""


def _names(value: Json) -> list[str]:
    """Return the names that JSON-LD gives for an author: a text, an object with a name,
    or a list of such."""
    names = []
    for item in value[:10] if isinstance(value, list) else [value]:
        name = item.get("name") if isinstance(item, dict) else item
        names += [" ".join(name.split())] if isinstance(name, str) else []
    return names


def _is_name(text: str) -> bool:
    return 1 < len(text) <= LONGEST_AUTHOR and not _NO_NAME.search(text)


def _published(
    top: LexborNode, meta: Mapping[str, str], linked: list[dict[str, Json]]
) -> str:
    candidates = [
        value for item in linked if isinstance(value := item.get("datePublished"), str)
    ]
    candidates += [meta[name] for name in _DATES.split() if name in meta]
    candidates += [
        node.attributes.get("datetime") or node.attributes.get("content") or ""
        for node in top.css(
            '[itemprop="datePublished"], time[datetime], time[pubdate]'
        )[:5]
    ]
    return next((day for text in candidates if (day := _iso_date(text))), "")


def _printed_date(top: LexborNode) -> str:
    """Return the date that a page's text calls the page's; "" for none, and for two."""
    printed = {*_PRINTED_DATE.findall(top.text(deep=True, separator=" "))}
    return _iso_date(printed.pop()) if len(printed) == 1 else ""


def _iso_date(text: str) -> str:
    match = _ISO_DATE.search(text)
    with suppress(ValueError):
        return date.fromisoformat(match[0]).isoformat() if match else ""
    return ""


def _language(
    top: LexborNode, meta: Mapping[str, str], linked: list[dict[str, Json]]
) -> str:
    candidates: list[Json] = [top.attributes.get(key) for key in ("lang", "xml:lang")]
    candidates += [
        meta.get(name) for name in ("og:locale", "content-language", "language")
    ]
    candidates += [item.get("inLanguage") for item in linked]
    codes = (
        re.split(r"[-_,;\s]", value.strip().lower(), maxsplit=1)[0]
        for value in candidates
        if isinstance(value, str)
    )
    return next((code for code in codes if re.fullmatch("[a-z]{2}", code)), "")
