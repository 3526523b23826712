"""What every converter returns, and the few pieces of HTML writing that they share.

Not for: deciding which converter reads a body (`pipeline/read/convert.py`).
"""

import html
from dataclasses import dataclass
from typing import Final

MAX_ITEMS: Final = 20_000
"""Rows, values, entries or parts of one document that are read; a note tells of the rest."""
DEEPEST: Final = 200
"""Elements inside one another: libxml2 leaves out what lies below a depth of 256."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A document as HTML, with what it says about itself."""

    html: str
    title: str = ""
    language: str = ""
    author: str = ""
    published: str = ""
    """ISO date, empty when unknown."""
    notes: tuple[str, ...] = ()


class Unreadable(Exception):
    """There is no text to read; the text says why, as the end of a sentence (`… holds no text: it is encrypted`)."""


def escape(text: str) -> str:
    """Return `text` for use between tags."""
    return html.escape(text, quote=False)


def whole_page(body: str, *, title: str = "", language: str = "") -> str:
    """Return an HTML page around `body`, which is HTML already."""
    lang = f' lang="{html.escape(language)}"' if language else ""
    return f"<!DOCTYPE html>\n<html{lang}><head><title>{escape(title)}</title></head>\n<body>\n{body}\n</body></html>\n"
