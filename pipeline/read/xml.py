"""One careful XML parser for what arrives as XML: no entities, no network, no document type, damaged input mended.

Not for: HTML, which has its own parser (`pipeline/html`).
"""

import re
from collections.abc import Iterator
from typing import Final, Protocol

from lxml import etree

_DOCTYPE: Final = re.compile(rb"<!(?:DOCTYPE|ENTITY)\b", re.IGNORECASE)
_PROLOG: Final = 4096
"""A document type stands before the first element; nothing after this many bytes is looked at."""


class Element(Protocol):
    """The part of lxml's element that is used here."""

    @property
    def tag(self) -> object:
        """Name with its namespace; a function for comments."""
        ...

    @property
    def text(self) -> str | None:
        """Text before the first child."""
        ...

    def get(self, key: str) -> str | None:
        """Return an attribute."""
        ...

    def __iter__(self) -> Iterator["Element"]: ...

    def itertext(self) -> Iterator[str]:
        """Yield all texts inside."""
        ...

    def iter(self) -> Iterator["Element"]:
        """Yield the element and all below it, in document order."""
        ...


def parse_xml(body: bytes) -> Element | None:
    """Return the root of an XML document, or None when there is none or it declares entities of its own."""
    if has_own_entities(body):
        return None
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_pis=True
    )
    try:
        root: Element | None = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return root


def has_own_entities(body: bytes) -> bool:
    """Return whether an internal document type with entities stands in front: the form of every XML bomb."""
    start = body[:_PROLOG].replace(b"\x00", b"")
    return b"<!ENTITY" in start.upper() and _DOCTYPE.search(start) is not None


def local_name(element: Element) -> str:
    """Return an element's name without its namespace, in lower case; empty for comments."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def child_text(element: Element, *names: str) -> str:
    """Return the text of the first child with one of `names`, in the order of the names; empty if there is none."""
    for name in names:
        for child in element:
            if local_name(child) == name:
                text = "".join(child.itertext()).strip()
                if text:
                    return text
    return ""
