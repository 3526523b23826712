"""What every converter returns, and the few pieces of HTML writing that they share.

Not for: deciding which converter reads a body (`readers/convert.py`).
"""

import html
import re
import struct
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Final

from errors import BrokenExtra, MissingExtra
from extra import lacking
from readers.ledger import Ledger

if sys.platform != "win32":  # which has no such limits
    import resource

if (
    TYPE_CHECKING
):  # settings are read before anything that takes a tenth of a second to import
    from readers.page import Trust

MOST_HIDDEN: Final = 100
"""Words of a file, or of a PDF's page, that may be hidden though they are more than those
that are shown."""
MOSTLY_HIDDEN: Final = "most words are marked as hidden, and shown here"
"""Note of what is shown since more would be hidden."""
MAX_ITEMS: Final = 20_000
"""Rows, values, entries, style rules or parts of one document that are read; where they
are content, the rest is reported as unread."""

MAX_CELLS: Final = 200_000
"""Of all tables of a file, up to the last that is filled in each row; a page has room for fewer."""
MAX_TABLE_CELLS: Final = 2_000_000
"""Of the tables of a data file that queries are asked of: about 30 MB of it."""
MAX_PAGES: Final = 500
"""Of one reading: some 250,000 words, more than any call shows. The rest can be asked
for."""
MAX_UNPACKED: Final = 30_000_000
"""Bytes of one source, as it comes and unpacked, where no setting says otherwise
(`WINNOW_PAGE_MB`); of an archive, all parts that hold text together."""
MOST_MEGABYTES: Final = 1000
"""Largest value of that setting."""
_allowed: Final[ContextVar[int]] = ContextVar("allowed", default=MAX_UNPACKED)
_shows_hidden: Final[ContextVar[bool]] = ContextVar("shows_hidden", default=False)
SLOW_LETTERS: Final = 5_000_000
"""Characters that are given to a library which cannot be stopped; markdown-it and
striprtf need 1 s a million."""
PLACE: Final = "data-place"
"""Our attribute with an element's position in its file, valid until the next one
(`Block.place`). It is removed from outside HTML (`unplaced`)."""
_ADD_EXTRA: Final = "an operator can add the extra {extra} (winnow doctor)"
INSTALL_OCR: Final = _ADD_EXTRA.format(extra="ocr")
WHOLE_PICTURE: Final = "xywh=percent:0,0,100,100"
"""How the position of a picture whose text was recognised ends (W3C Media Fragments)."""
MOST_PIXELS: Final = 36_000_000
"""Of an image whose text is recognised: a sheet of A4 at 600 dpi. Larger ones are
refused before they are decoded."""
DAMAGED: Final = (
    *(
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        AssertionError,
        RuntimeError,
        SyntaxError,
    ),
    *(OSError, EOFError, struct.error, zlib.error),
)
"""What the libraries that read documents are known to raise over damaged files, besides
errors of their own."""
PAGE_SECONDS: Final = 8.0
"""Maximum processor seconds for a PDF page; a page that needs more is left out (100
times the slowest of 906 real pages)."""
LEAST_SIZE: Final = 2.0
"""Points of height below which type cannot be read; footnotes and superscripts have 5
or more."""
Span = tuple[int, int]
"""First and last page wanted, 1-based; 0 as the last is the end."""
ALL_PAGES: Final[Span] = (1, 0)


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
    """What was not read of the source, in a few words, or ""."""
    rest: str = ""
    """Pages that a further reading begins with, such as `501-1000`; empty where that is
    not possible."""
    trust: "Trust" = "visible"
    hidden: int = 0
    """Number of removed hidden words (of a PDF: text pieces)."""
    ledger: Ledger = field(default_factory=Ledger)
    """What the file holds against what `html` has."""
    tables: str = ""
    """`Page.tables`."""


class Unreadable(Exception):
    """There is no text to read; the text says why, as the end of a sentence (`… holds
    no text: it is encrypted`)."""

    def __init__(self, why: str, *, hint: str = "") -> None:
        """Keep what to do about it; empty for what helps with any source."""
        super().__init__(why)
        self.hint = hint


def without_extra(error: MissingExtra | BrokenExtra) -> str:
    """Return what is said of a format whose extra is missing or cannot be imported; the
    hint of `error` is for the operator, since it names folders of the server."""
    if isinstance(error, MissingExtra):
        return _ADD_EXTRA.format(extra=error.extra)
    return error.shown.removesuffix(".")


def person(author: str, tools: str) -> str:
    """Return the author that a file names, empty where that is one of the `tools` that
    made the file."""
    return "" if author.strip().casefold() in tools.casefold() else author.strip()


def day_in(text: str) -> str:
    """Return the day that an ISO date begins with, empty for one that the calendar does
    not have."""
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        return ""


def unplaced(html: str) -> str:
    """Return HTML from outside without the attribute that only converters write."""
    return (
        re.sub(PLACE, "data-was", html, flags=re.IGNORECASE)
        if PLACE in html.lower()
        else html
    )


def placed(content: str, position: str, *, tag: str = "section") -> str:
    """Return HTML as an element at a place; `position` is percent-encoded already."""
    return f'<{tag} {PLACE}="{escape(position)}">{content}</{tag}>'


def can_recognise() -> bool:
    """Return whether the text of images is read: by `readers/media`, with the extra
    `ocr`."""
    return not lacking("ocr")


@contextmanager
def unpacking(max_bytes: int) -> Iterator[None]:
    """Let sources that are converted inside have `max_bytes` bytes unpacked; what converters
    ask by `most_unpacked`."""
    before = _allowed.set(max_bytes)
    try:
        yield
    finally:
        _allowed.reset(before)


@contextmanager
def showing_hidden() -> Iterator[None]:
    """Let sources that are converted inside hide no text by its looks; what converters ask
    by `shows_hidden`."""
    before = _shows_hidden.set(True)
    try:
        yield
    finally:
        _shows_hidden.reset(before)


def shows_hidden() -> bool:
    """Return whether text that looks hidden is shown of the source at hand."""
    return _shows_hidden.get()


def most_unpacked() -> int:
    """Return the bytes that the source at hand may have unpacked."""
    return _allowed.get()


def raising_the_cap(size: int) -> str:
    """Return how a source of `size` bytes, which is over the cap, is read."""
    megabytes = -(-size // 1_000_000)
    if megabytes > MOST_MEGABYTES:
        return f"Split it: no more than {MOST_MEGABYTES} MB can be allowed."
    return (
        f"Start the server with WINNOW_PAGE_MB={megabytes}, or use: winnow fetch "
        f"SOURCE --set page_mb={megabytes}"
    )


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Kill this converter process if the block takes more than `seconds` of processor
    time.

    In a process without a memory limit, and on Windows, nothing is limited."""
    if (
        sys.platform == "win32"
        or resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    ):
        yield
    else:
        before = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(
            resource.RLIMIT_CPU, (int(time.process_time() + seconds), before[1])
        )
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_CPU, before)


def is_box(position: str) -> bool:
    """Return whether a position is the image of a page (OCR)."""
    return position.endswith(WHOLE_PICTURE)


def letters_in(text: str) -> int:
    """Return how many letters and digits a text has."""
    return sum(map(str.isalnum, text))


def escape(text: str) -> str:
    """Return `text` for use between tags."""
    return html.escape(text, quote=False)


def html_table(
    rows: Sequence[Sequence[str]],
    *,
    header: bool,
    places: Sequence[str] = (),
    caption: str = "",
) -> str:
    """Return rows of cells as a table, the first one as its header where it is one,
    each at its place in the file. `caption` is HTML and not escaped; `places`, where
    given, has one for each row."""
    lines = []
    for number, row in enumerate(rows):
        tag = "th" if header and number == 0 else "td"
        cells = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        lines.append(
            placed(cells, places[number], tag="tr") if places else f"<tr>{cells}</tr>"
        )
    return f"<table>{caption}\n" + "\n".join(lines) + "\n</table>"


def whole_page(body: str, *, title: str = "", language: str = "") -> str:
    """Return an HTML page around `body`, which is HTML already."""
    lang = f' lang="{html.escape(language)}"' if language else ""
    return (
        f"<!DOCTYPE "
        f"html>\n<html{lang}><head><title>{escape(title)}</title></head>\n<body>\n{body}\n</body></html>\n"
    )


def inside(page: Converted) -> str:
    """Return the body of a converter's page, without positions (they refer to another
    file)."""
    return unplaced(page.html.partition("<body>")[2].rpartition("</body>")[0].strip())
