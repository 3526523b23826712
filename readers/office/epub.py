"""EPUB to HTML: the chapters of a book in its reading order, each a section with its number.

Not for: books under digital rights management, whose text is encrypted; images; sound.
"""

import posixpath
import re
from typing import Final

from lxml import etree

from cancellation import check_cancelled
from readers.converted import Converted, Unreadable, placed, whole_page
from readers.html.xhtml import xhtml_to_html
from readers.ledger import Ledger
from readers.office.package import Package, all_of, open_package, resolved
from readers.sniff import decode
from readers.text.markup import child_text, fragment_to_html, plain_text

_NOTE_LINK: Final = re.compile(
    r"(?<!<sup>)<(?P<tag>a|span)(?:\s[^<>]{0,300}?)?\s(?:epub:type|role|class)\s*=\s*[\"']"
    r"(?P<types>[^\"'<>]{1,100})[^<>]{0,300}>[\[(]?[\w*†‡]{1,4}[\])]?</(?P=tag)>(?!</sup>)"
)
"""A link or a span around a mark; a superscript has one around it already."""
_NOTE_TYPES: Final = frozenset(
    {"noteref", "doc-noteref", "footnote-ref", "fnref", "sup", "super", "superscript"}
)
"""Types, roles and classes of marks of notes."""
_SILENT_IMAGE: Final = re.compile(
    r"<(?:\w+:)?(?:img|image)\b(?![^<>]{0,900}\salt\s?=\s?(?:\"\"|''|[\"'][^\"'<>]{0,90}\s))",
    re.IGNORECASE,
)
"""A picture that says nothing of what it shows, or one word; an empty description marks
an ornament."""
_POPS_UP: Final = re.compile(
    r"(<aside\b[^<>]{0,500}epub:type=[\"'][^\"'<>]*note[^<>]{0,500}?)\shidden(?:=[\"'][^\"'<>]*[\"'])?"
)
"""A note that a reading program shows over the page."""


def epub_to_html(body: bytes) -> Converted:
    """Return a book as HTML; raises `Unreadable` for one that is damaged, encrypted,
    too large unpacked, or without text.

    Of a book that is encrypted in part the other chapters are read, and the result says
    how many are missing."""
    with open_package(body, "a book") as package:
        files = all_of(package.tree("META-INF/container.xml"), "{*}rootfile")
        file = next((element.get("full-path", "") for element in files), "")
        book = package.tree(file)
        if book is None:
            raise Unreadable(
                "it is an EPUB whose package file (OPF) is missing or damaged"
            )
        about = next(book.iter("{*}metadata"), book)
        title, author = child_text(about, "title"), child_text(about, "creator")
        language = child_text(about, "language")[:2].lower()
        order, sealed = _order(book, posixpath.dirname(file)), _sealed(package)
        styles = "\n".join(
            decode(package.read(name)).text
            for name in package.names
            if name.endswith(".css")
        )
        rules = r"\.([\w-]{1,60})\s*\{[^{}]{0,500}?vertical-align\s*:\s*super"
        raised = {*_NOTE_TYPES, *re.findall(rules, styles)}
        chapters, ledger = list[str](), Ledger()
        readable = (name for name in order if name not in sealed)
        for number, name in enumerate(readable, start=1):
            check_cancelled()
            if chapter := package.read(name):
                html = _chapter(decode(chapter).text, raised, ledger)
                chapters.append(placed(html, f"part={number}"))
    if not chapters:
        why = "whose chapters are encrypted (DRM)" if sealed else "without chapters"
        raise Unreadable(f"it is a book {why}")
    if not any(plain_text(chapter) or " alt=" in chapter for chapter in chapters):
        raise Unreadable("it is a book whose chapters have no text")
    lacking = len(order) - len(chapters)
    unread = f"{lacking} of its {len(order)} chapters" if lacking else ""
    # What the styles of a book hide is hidden here as in any page.
    content = f"<style>{styles.replace('</', '')}</style>\n" + "\n".join(chapters)
    html = whole_page(content, title=title, language=language)
    return Converted(html, title, language, author, unread=unread, ledger=ledger)


def _chapter(text: str, raised: set[str], ledger: Ledger) -> str:
    """Return a chapter as HTML, marks of notes, and what styles raise, as superscripts:
    `88 kg1` is another number. What it does not show is counted, but for a cover, which
    has no words."""

    def mark(link: re.Match[str]) -> str:
        is_raised = raised.intersection(link["types"].split())
        return f"<sup>{link[0]}</sup>" if is_raised else link[0]

    text = _POPS_UP.sub(r"\1", _NOTE_LINK.sub(mark, xhtml_to_html(text)))
    html = fragment_to_html(text)
    ledger.hold("embedded object", len(re.findall(r"<(?:audio|video)\b", text)))
    if plain_text(html):
        ledger.hold("image", len(_SILENT_IMAGE.findall(text)))
    return html


def _order(book: etree._Element, folder: str) -> list[str]:
    """Return the names of a book's chapters as they are read, each once: notes and
    answers, then what is only linked to, come last."""
    items = list(book.iter("{*}item"))
    names = {item.get("id"): resolved(folder, item.get("href", "")) for item in items}
    spine = sorted(book.iter("{*}itemref"), key=lambda item: item.get("linear") == "no")
    linked = [
        item.get("id")
        for item in items
        if item.get("media-type") == "application/xhtml+xml"
        and "nav" not in item.get("properties", "").split()
    ]
    order = [*(item.get("idref") for item in spine), *linked]
    return list(dict.fromkeys(names.get(key, "") for key in order))


def _sealed(package: Package) -> set[str]:
    sealed = all_of(package.tree("META-INF/encryption.xml"), "{*}CipherReference")
    return {resolved("", element.get("URI", "")) for element in sealed}
