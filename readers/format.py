"""Source formats: the plug-in point for another file type.

Each module of `readers/formats/` binds one `Format` to
`FORMAT`, and other wheels add theirs by entry points of the group `winnow.formats`. Which format a body has
(`sniff.py`), how it becomes HTML (`convert.py`), which files of a folder are documents
(`pipeline/fetch/files.py`) and how they are counted (`pipeline/search/word_index.py`)
follow from here. Web pages, generic XML, plain text and programs are not formats: they
are the fallback. Not for: the conversion itself.
"""

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from extra import lacking
from seams import Seam

HTML: Final = "text/html"
PDF: Final = "application/pdf"
CSV: Final = "text/csv"
FEED: Final = "application/feed+xml"
JSON: Final = "application/json"
MARKDOWN: Final = "text/markdown"
PLAIN: Final = "text/plain"
SOURCE: Final = "text/x-source"
XML: Final = "application/xml"


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file: how it is known, and what makes HTML of it."""

    types: tuple[str, ...]
    """Its media types, as pages carry them."""
    to_html: Callable[..., Any]
    """Takes the bytes, or the text where `reads` says so, and returns a
    `readers.converted.Converted`; None for a body that only looks like this
    format, which is read as plain text then. Raises `Unreadable` where there is no
    text. Of a paged format: takes bytes, span, and the options of
    `readers.pdf.pdf_reading.PdfReading`, and returns such a reading."""
    reads: Literal["bytes", "text"] = "bytes"
    endings: tuple[str, ...] = ()
    """Endings of file names, in lower case with their dots."""
    also: tuple[str, ...] = ()
    """Media types by which servers call it beside the first of `types`."""
    binary: bool = False
    """Whether it is known by its signature alone. Of a text without one, what a server
    says and what its name ends in count."""
    magic: Mapping[bytes, str] = field(default_factory=dict)
    """First bytes of a binary file, and the media type they mean."""
    begins: re.Pattern[bytes] | None = None
    """How a text of it begins, matched at its first kilobyte."""
    parts: tuple[str, ...] = ()
    """Of a ZIP archive: how the name of a part begins that only this format has. An
    archive whose part `mimetype` names one of `types` needs none."""
    heavy: bool = False
    """Whether it is converted in a process of its own, whatever its size, and a
    folder's file must be converted to know its words."""
    paged: bool = False
    """Whether it has pages that are images or may be, which are read piece by piece."""
    pictures: bool = False
    """Whether it is nothing but images: its text must be recognised, which takes
    seconds, where that is installed."""
    extra: str = ""
    """The extra that has the packages it needs."""
    form_of: str = ""
    """The media type whose form it has as well, so that a name says more than a
    server."""
    indexed: Literal["text", "markup", "json"] = "text"
    """How its words are counted where the file is not converted for that. As text that
    is markup a server may show one: then its name does not count."""

    @property
    def is_installed(self) -> bool:
        """Whether what it needs is there."""
        return not self.extra or not lacking(self.extra)


SEAM: Final = Seam(("readers.formats",), "FORMAT", "winnow.formats", Format)


@functools.cache
def formats() -> tuple[Format, ...]:
    """Return every format: ours in the order of their files, then those of other
    wheels."""
    return tuple(SEAM.found())


@functools.cache
def format_of(kind: str) -> Format | None:
    """Return the format of a media type, None for one of no format."""
    return next(
        (file_format for file_format in formats() if kind in file_format.types), None
    )


def is_heavy(kind: str) -> bool:
    """Return whether a media type is converted in a process of its own, whatever its
    size."""
    file_format = format_of(kind)
    return file_format is not None and file_format.heavy


def is_paged(kind: str) -> bool:
    """Return whether a media type has pages that are images or may be."""
    file_format = format_of(kind)
    return file_format is not None and file_format.paged


def endings_of(chosen: Iterable[Format]) -> frozenset[str]:
    """Return the endings of some formats that can be read here."""
    return frozenset(
        ending
        for file_format in chosen
        if file_format.is_installed
        for ending in file_format.endings
    )


def version() -> bytes:
    """Return a digest of the formats that are not always there: of the extras that are
    installed, and of other wheels, by what names them and their versions."""
    code = hashlib.blake2b(digest_size=8)
    for extra in sorted({form.extra for form in formats() if form.is_installed}):
        code.update(f"{extra}\n".encode())
    for entry in SEAM.others():
        made_by = entry.dist.version if entry.dist is not None else ""
        code.update(f"{entry.value} {made_by}\n".encode())
    return code.digest()
