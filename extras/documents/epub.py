"""EPUB to HTML: the chapters of a book in its reading order, each a section with its number.

Not for: books under digital rights management, whose text is encrypted; images; sound.
"""

import posixpath
import re
from typing import Final

from lxml import etree

from extras.documents.package import Package, all_of, open_package, resolved
from pipeline.document.converted import Converted, Unreadable, placed, whole_page
from pipeline.document.ledger import Ledger
from pipeline.html.values import DESCRIBED_WORDS
from pipeline.read.sniff import decode
from pipeline.read.text import child_text, fragment_to_html
from pipeline.read.xhtml import xhtml_to_html
from pipeline.work import check_cancelled

_NOTE_LINK: Final = re.compile(
    r"(?<!<sup>)<(?P<tag>a|span)(?P<attributes>(?:\s[^<>]{0,500})?)>[\[(]?[\w*†‡]{1,4}[\])]?</(?P=tag)>(?!</sup>)"
)
"""A link or a span around a mark; a superscript has one around it already."""
_TYPE_ATTRIBUTE: Final = re.compile(
    r"(?:epub:type|role|class)\s*=\s*[\"']([^\"'<>]*)[\"']"
)
_NOTE_TYPES: Final = frozenset(
    {"noteref", "doc-noteref", "footnote-ref", "fnref", "sup", "super", "superscript"}
)
"""Types, roles and classes of marks of notes."""
_RAISED_CLASS: Final = re.compile(
    r"\.([\w-]{1,60})\s*\{[^{}]{0,500}?vertical-align\s*:\s*super"
)
"""Classes that a book's styles raise."""
_CHAPTER: Final = "application/xhtml+xml"
_IMAGE_TAG: Final = re.compile(
    r"<(?:\w+:)?(?:img|image)\b[^<>]{0,2000}>", re.IGNORECASE
)
_TAG_OR_HEAD: Final = re.compile(
    r"<head\b.*?</head>|<[^<>]*>", re.DOTALL | re.IGNORECASE
)
_ALT: Final = re.compile(r"\salt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_POPS_UP: Final = re.compile(
    r"(<aside\b[^<>]{0,500}epub:type=[\"'][^\"'<>]*note[^<>]{0,500}?)\shidden(?:=[\"'][^\"'<>]*[\"'])?"
)
"""A note that a reading program shows over the page."""
_MEDIA_TAG: Final = re.compile(r"<(?:audio|video)\b")
_CONTAINER_FILE: Final = "META-INF/container.xml"


def epub_to_html(body: bytes) -> Converted:
    """Return a book as HTML; raises `Unreadable` for one that is damaged, encrypted,
    too large unpacked, or without text.

    Of a book that is encrypted in part the other chapters are read, and the result says
    how many are missing."""
    with open_package(body, "a book") as package:
        files = all_of(package.tree(_CONTAINER_FILE), "{*}rootfile")
        file = next((one.get("full-path", "") for one in files), "")
        book = package.tree(file)
        if book is None:
            raise Unreadable(
                "it is an EPUB whose package file (OPF) is missing or damaged"
            )
        about = next(book.iter("{*}metadata"), book)
        title, author = child_text(about, "title"), child_text(about, "creator")
        language = child_text(about, "language")[:2].lower()
        wanted, sealed = _order(book, posixpath.dirname(file)), _sealed(package)
        shown = [name for name in wanted if name not in sealed]
        styles = "\n".join(
            decode(package.read(name)).text
            for name in package.names
            if name.endswith(".css")
        )
        raised = {*_NOTE_TYPES} | set(_RAISED_CLASS.findall(styles))
        chapters = []
        ledger = Ledger()
        for number, name in enumerate(shown, start=1):
            check_cancelled()
            if chapter := package.read(name):
                text = _raised(xhtml_to_html(decode(chapter).text), raised)
                text = _POPS_UP.sub(r"\1", text)
                ledger.hold("embedded object", len(_MEDIA_TAG.findall(text)))
                ledger.hold("image", _undescribed(text))
                chapters.append(placed(fragment_to_html(text), f"chapter={number}"))
    if not chapters:
        raise Unreadable(
            "it is a book whose chapters are encrypted (DRM)"
            if sealed
            else "it is a book without chapters"
        )
    lacking = len(wanted) - len(chapters)
    unread = f"{lacking} of its {len(wanted)} chapters" if lacking else ""
    # What the styles of a book hide is hidden here as in any page.
    inner = f"<style>{styles.replace('</', '')}</style>\n" + "\n".join(chapters)
    html = whole_page(inner, title=title, language=language)
    return Converted(html, title, language, author, unread=unread, ledger=ledger)


def _order(book: etree._Element, folder: str) -> list[str]:
    """Return the names of a book's chapters as they are read, each once: notes and
    answers, then what is only linked to, come last."""
    items = list(book.iter("{*}item"))
    known = {one.get("id"): resolved(folder, one.get("href", "")) for one in items}
    spine = sorted(book.iter("{*}itemref"), key=lambda one: one.get("linear") == "no")
    order = [known.get(one.get("idref"), "") for one in spine]
    further = [
        known[one.get("id")]
        for one in items
        if one.get("media-type") == _CHAPTER
        and "nav" not in one.get("properties", "").split()
    ]
    return list(dict.fromkeys([*order, *further]))


def _raised(text: str, names: set[str]) -> str:
    """Return a chapter with marks of notes, and what styles raise, as superscripts: `88 kg1` is
    another number."""

    def mark(found: re.Match[str]) -> str:
        said = " ".join(_TYPE_ATTRIBUTE.findall(found["attributes"])).split()
        return f"<sup>{found[0]}</sup>" if names.intersection(said) else found[0]

    return _NOTE_LINK.sub(mark, text)


def _undescribed(text: str) -> int:
    """Return how many pictures of a chapter with words say nothing of what they show. An empty
    description marks an ornament, and a chapter without words is a cover."""
    alts = [_ALT.search(image[0]) for image in _IMAGE_TAG.finditer(text)]
    said = [None if alt is None else (alt[1] or alt[2] or "").split() for alt in alts]
    silent = sum(words is None or 0 < len(words) < DESCRIBED_WORDS for words in said)
    return silent if silent and _TAG_OR_HEAD.sub(" ", text).split() else 0


def _sealed(package: Package) -> set[str]:
    """Return the names of encrypted parts; none where the book has no list of them."""
    known = package.tree("META-INF/encryption.xml")
    sealed = all_of(known, "{*}CipherReference")
    return {resolved("", one.get("URI", "")) for one in sealed}
