"""Converts XHTML to equivalent HTML: empty elements closed, CDATA as text.

To a parser of HTML `<title/>` and `<script/>` begin elements that swallow the rest of
the page, and `<a id="x"/>` and `<div/>` all that follows. Not for: pages that are HTML
by their type; browsers read those as HTML, too."""

import re
from typing import Final

from readers.converted import escape
from readers.tree import VOID_TAGS

_EMPTY_ELEMENT: Final = re.compile(r"<([A-Za-z][\w:.-]{0,100})((?:\s[^<>]{0,2000})?)/>")
_OPENS: Final = "<![CDATA["
_COMMENTED: Final = ("//", "/*")
"""Text before a CDATA section in a script or style, which is not content."""


def is_xhtml(kind: str, name: str, text: str) -> bool:
    """Return whether a page's markup is XML: by its declared type, the ending of its
    name, or how it begins."""
    media_type = kind.partition(";")[0].strip().lower()
    return (
        media_type.endswith(("+xml", "/xml"))
        or name.lower().endswith((".xhtml", ".xht"))
        or text[:200].lstrip("\ufeff \t\r\n").startswith("<?xml")
    )


def xhtml_to_html(text: str) -> str:
    """Return markup with empty elements closed as HTML has it, and CDATA sections as
    text."""
    return _EMPTY_ELEMENT.sub(
        _closed, _without_sections(text) if _OPENS in text else text
    )


def _closed(empty: re.Match[str]) -> str:
    name = empty[1].lower()
    return (
        empty[0]
        if name in VOID_TAGS or name in {"link", "meta"}
        else f"<{empty[1]}{empty[2]}></{empty[1]}>"
    )


def _without_sections(text: str) -> str:
    before_section, *sections = text.split(_OPENS)
    pieces = [before_section]
    for section in sections:
        content, ends, after_section = section.partition("]]>")
        is_code = pieces[-1].rstrip(" \t").endswith(_COMMENTED)
        pieces.append(
            f"{content}{after_section}"
            if is_code or not ends
            else f"{escape(content)}{after_section}"
        )
    return "".join(pieces)
