"""Pieces of HTML that come as text inside something else (a feed's entry, a page's data), made safe to put in a page.

Not for: whole pages, which `pipeline/html` cleans.
"""

import html
import re
from typing import Final

import lxml.html
from lxml import etree

from pipeline.read.converted import DEEPEST, escape

_TAG: Final = re.compile(r"<[^<>]{0,2000}>")


def fragment_to_html(text: str) -> str:
    """Return a text that may be HTML as HTML whose tags are all closed: such texts are often cut anywhere."""
    if "<" not in text or _is_deep(text):
        return f"<p>{escape(plain_text(text))}</p>"
    try:
        div = lxml.html.fragment_fromstring(text.replace("\x00", ""), create_parent="div")
        return str(lxml.html.tostring(div, encoding="unicode"))
    except (etree.LxmlError, ValueError, AssertionError):
        return f"<p>{escape(plain_text(text))}</p>"


def plain_text(text: str) -> str:
    """Return a text that may be HTML as plain text on one line."""
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())


def _is_deep(text: str) -> bool:
    """Return whether elements may nest deeper than libxml2 reads.

    `<p>` and `<br>` count though they close by themselves, so that long texts may be taken for deep: those lose their
    markup, not their words.
    """
    depth = deepest = 0
    for match in _TAG.finditer(text):
        depth += -1 if match.group().startswith("</") else 1
        deepest = max(deepest, depth)
    return deepest > DEEPEST
