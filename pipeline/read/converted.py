"""What every converter returns, and the few pieces of HTML writing that they share.

Not for: deciding which converter reads a body (`pipeline/read/convert.py`).
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

MAX_ITEMS: Final = 20_000
"""Rows, values, entries, style rules or parts of one document that are read; where they are content, the rest is
told as unread."""

Span = tuple[int, int]
"""First and last page wanted, 1-based; 0 as the last is the end."""
WHOLE: Final[Span] = (1, 0)


@dataclass(frozen=True, slots=True)
class Converted:
    """A document as HTML, with what it says about itself."""

    html: str
    title: str = ""
    language: str = ""
    author: str = ""
    published: str = ""
    notes: tuple[str, ...] = ()
    unread: str = ""
    """What of the source was not read, in a few words; empty where all was."""
    rest: str = ""
    """Pages that a further reading begins with, such as `501-1000`; empty where that is not possible."""


class Unreadable(Exception):
    """There is no text to read; the text says why, as the end of a sentence (`… holds no text: it is encrypted`)."""


def day_in(text: str) -> str:
    """Return the day that an ISO date begins with, empty for one that the calendar does not have."""
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        return ""


def escape(text: str) -> str:
    """Return `text` for use between tags."""
    return html.escape(text, quote=False)


def html_table(rows: Sequence[Sequence[str]], *, header: bool) -> str:
    """Return rows of cells as a table, the first one as its header where it is one."""
    tags = ["th" if header and number == 0 else "td" for number in range(len(rows))]
    lines = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in zip(tags, rows, strict=True))
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def whole_page(body: str, *, title: str = "", language: str = "") -> str:
    """Return an HTML page around `body`, which is HTML already."""
    lang = f' lang="{html.escape(language)}"' if language else ""
    return f"<!DOCTYPE html>\n<html{lang}><head><title>{escape(title)}</title></head>\n<body>\n{body}\n</body></html>\n"
