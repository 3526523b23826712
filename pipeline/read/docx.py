"""DOCX to HTML with mammoth: headings, lists, tables and links stay, images go.

mammoth takes 35 to 60 µs an element and cannot be stopped, so that a 10 kB file can hold it for 25 s; files of many
elements are read by `pipeline/read/docx_long.py`. Not for: older `.doc` files, which are another format and are
refused by their type.
"""

import io
import logging
import zipfile
import zlib
from typing import Final
from xml.parsers.expat import ExpatError

import mammoth

from pipeline.read.converted import Converted, Unreadable, whole_page
from pipeline.read.docx_long import long_docx_to_html
from pipeline.read.xml import child_text, has_own_entities, parse_xml
from pipeline.work import check_cancelled

_MAX_UNPACKED: Final = 30_000_000
"""Bytes of all XML parts together."""
_MAX_PARTS: Final = 5_000
_MAMMOTH_ELEMENTS: Final = 60_000
"""Elements of the text (some 15,000 paragraphs) that mammoth reads in about 3 s, its tree taking about 100 MB."""
_TEXT: Final = "word/document.xml"
_DAMAGED: Final = (
    *(zipfile.BadZipFile, zlib.error, ExpatError, ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(NotImplementedError, OSError, EOFError),
)

logging.getLogger("mammoth").setLevel(logging.ERROR)


def docx_to_html(body: bytes) -> Converted:
    """Return a DOCX file as HTML.

    Raises:
        Unreadable: Damaged, too large unpacked, or without text.
    """
    try:
        title, author, published = _inspect(body)
        check_cancelled()
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            text = archive.read(_TEXT)
        notes: tuple[str, ...] = ()
        if text.count(b"<") > 2 * _MAMMOTH_ELEMENTS:
            inner = long_docx_to_html(text)
            notes = ("a long Word file: its links and footnotes were left out",)
        else:
            inner = mammoth.convert_to_html(
                io.BytesIO(body), convert_image=_no_image, include_embedded_style_map=False
            ).value
    except _DAMAGED as e:
        raise Unreadable(f"it is a damaged Word file ({type(e).__name__})") from e
    if not inner.strip():
        raise Unreadable("it is a Word file without text")
    return Converted(whole_page(inner, title=title), title, "", author, published, notes)


def _no_image(_image: object) -> list[object]:
    """Return nothing for an image: neither embedded nor linked ones are opened."""
    return []


def _inspect(body: bytes) -> tuple[str, str, str]:
    """Return title, author and ISO date of a file whose parts are of a sound size and form."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        parts = [part for part in archive.infolist() if part.filename.endswith((".xml", ".rels"))]
        if len(parts) > _MAX_PARTS:
            raise Unreadable(f"it is a Word file of {len(parts):,} parts, over the cap of {_MAX_PARTS:,}")
        unpacked = sum(part.file_size for part in parts)
        if unpacked > _MAX_UNPACKED:
            raise Unreadable(f"it is a Word file that unpacks to {unpacked:,} bytes, over the cap of {_MAX_UNPACKED:,}")
        if any(has_own_entities(archive.read(part)) for part in parts):
            raise Unreadable("it is a Word file with XML entities of its own, as only attacks have them")
        core = parse_xml(archive.read("docProps/core.xml")) if "docProps/core.xml" in archive.NameToInfo else None
    if core is None:
        return "", "", ""
    return child_text(core, "title"), child_text(core, "creator"), child_text(core, "created")[:10]
