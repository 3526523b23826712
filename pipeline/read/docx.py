"""DOCX to HTML: headings, lists, tables and links stay, images go.

mammoth reads files of ordinary length. It takes 35 to 60 µs an element and cannot be stopped, so that a 10 kB file can
hold it for 25 s; files of many elements are therefore read in one pass over their XML, about 4 µs an element, stopped
at any time, without links, footnotes, numbering and styles beyond headings. Not for: older `.doc` files, which are
another format and are refused by their type.
"""

import io
import logging
import re
import zipfile
import zlib
from typing import Final
from xml.parsers.expat import ExpatError

import mammoth
from lxml import etree

from pipeline.read.converted import MAX_ITEMS, Converted, Unreadable, day_in, escape, whole_page
from pipeline.read.docx_ink import Seen, W, read_styles
from pipeline.read.xml import child_text, has_own_entities, parse_xml
from pipeline.work import check_cancelled

_MAX_UNPACKED: Final = 30_000_000
"""Bytes of all XML parts together."""
_MAMMOTH_ELEMENTS: Final = 60_000
"""Elements of the text (some 15,000 paragraphs) that mammoth reads in about 3 s, its tree taking about 100 MB."""
_TEXT: Final = "word/document.xml"
_PARTS: Final = (_TEXT, "word/footnotes.xml", "word/endnotes.xml")
"""Parts whose text is read."""
_READ: Final = (*_PARTS, "word/styles.xml")
_PARAGRAPH, _TABLE, _ROW, _CELL = (f"{W}{name}" for name in ("p", "tbl", "tr", "tc"))
_HEADING: Final = re.compile(r"(?:heading|berschrift|titre|t[ií]tulo)\s?([1-6])\Z", re.IGNORECASE)
"""Names of the heading styles: English ones in most files whatever the language, German, French and Spanish ones."""
_DAMAGED: Final = (
    *(zipfile.BadZipFile, zlib.error, ExpatError, etree.XMLSyntaxError, ValueError, LookupError, TypeError),
    *(AttributeError, RecursionError, NotImplementedError, OSError, EOFError),
)

logging.getLogger("mammoth").setLevel(logging.ERROR)


def docx_to_html(body: bytes) -> Converted:
    """Return a DOCX file as HTML.

    Raises:
        Unreadable: Damaged, too large unpacked, or without text.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            title, author, published = _inspect(archive)
            parts = {name: archive.read(name) for name in archive.namelist() if name in _READ}
        check_cancelled()
        seen = read_styles(parse_xml(parts["word/styles.xml"]) if "word/styles.xml" in parts else None)
        unread, notes = "", list[str]()
        if parts[_TEXT].count(b"<") > 2 * _MAMMOTH_ELEMENTS:
            inner = _long_to_html(parts[_TEXT], seen)
            unread = "links and footnotes of a long Word file"
        else:
            # No image is opened, neither embedded nor linked ones.
            inner = mammoth.convert_to_html(
                _only_seen(body, parts, seen), convert_image=lambda _image: [], include_embedded_style_map=False
            ).value
        if seen.words:
            notes.append(f"Word: {seen.words} words that no reader sees were left out")
    except _DAMAGED as e:
        raise Unreadable(f"it is a damaged Word file ({type(e).__name__})") from e
    if not inner.strip():
        raise Unreadable("it is a Word file without text")
    return Converted(whole_page(inner, title=title), title, "", author, published, tuple(notes), unread)


def _only_seen(body: bytes, parts: dict[str, bytes], seen: Seen) -> io.BytesIO:
    """Return the file without the text that nobody sees; as it is where there is none."""
    changed: dict[str, bytes] = {}
    for name in _PARTS:
        before, root = seen.words, parse_xml(parts[name]) if name in parts else None
        if root is not None:
            seen.drop_unseen(root)
        if root is not None and seen.words > before:
            changed[name] = etree.tostring(root, encoding="utf-8", xml_declaration=True)
    if not changed:
        return io.BytesIO(body)
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as archive, zipfile.ZipFile(written, "w") as copy:
        for part in archive.infolist():
            if part.filename.endswith((".xml", ".rels")):
                copy.writestr(part.filename, changed.get(part.filename) or archive.read(part))
    written.seek(0)
    return written


def _inspect(archive: zipfile.ZipFile) -> tuple[str, str, str]:
    """Return title, author and ISO date of a file whose parts are of a sound size and form."""
    parts = [part for part in archive.infolist() if part.filename.endswith((".xml", ".rels"))]
    if len(parts) > MAX_ITEMS:
        raise Unreadable(f"it is a Word file of {len(parts):,} parts, over the cap of {MAX_ITEMS:,}")
    unpacked = sum(part.file_size for part in parts)
    if unpacked > _MAX_UNPACKED:
        raise Unreadable(f"it is a Word file that unpacks to {unpacked:,} bytes, over the cap of {_MAX_UNPACKED:,}")
    if any(has_own_entities(archive.read(part)) for part in parts):
        raise Unreadable("it is a Word file with XML entities of its own, as only attacks have them")
    core = parse_xml(archive.read("docProps/core.xml")) if "docProps/core.xml" in archive.NameToInfo else None
    if core is None:
        return "", "", ""
    return child_text(core, "title"), child_text(core, "creator"), day_in(child_text(core, "created"))


def _long_to_html(document: bytes, seen: Seen) -> str:
    """Return the body of `word/document.xml` as HTML, the tree dropped as it is read; empty where it holds no text.

    A table inside a cell becomes text of that cell.
    """
    parts: list[str] = []
    cell: list[str] = []
    has_text, depth = False, 0
    events = etree.iterparse(
        io.BytesIO(document),
        events=("start", "end"),
        tag=(_PARAGRAPH, _TABLE, _ROW, _CELL),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
    )
    for number, (event, element) in enumerate(events):
        if number % 1000 == 0:
            check_cancelled()
        starts, tag = event == "start", element.tag
        if tag == _TABLE:
            depth += 1 if starts else -1
            if depth == int(starts):
                parts.append("<table>" if starts else "</table>")
        elif depth == 1 and tag == _ROW:
            parts.append("<tr>" if starts else "</tr>")
        elif depth == 1 and tag == _CELL and starts:
            cell.clear()
        elif depth == 1 and tag == _CELL:
            parts.append(f"<td>{escape(' '.join(cell))}</td>")
        elif tag == _PARAGRAPH and not starts:
            seen.drop_unseen(element)
            text = "".join(part.text or "" for part in element.iter(f"{W}t")).strip()
            has_text = has_text or bool(text)
            if text:
                (cell if depth else parts).append(text if depth else _block(element, text))
        if not starts:
            element.clear()
            while element.getprevious() is not None and element.getparent() is not None:
                del element.getparent()[0]
    return "\n".join(parts) if has_text else ""


def _block(paragraph: etree._Element, text: str) -> str:
    """Return a paragraph with `text` as a heading, an item or a paragraph."""
    style = paragraph.find(f"{W}pPr/{W}pStyle")
    heading = _HEADING.search(style.get(f"{W}val", "") if style is not None else "")
    if heading:
        return f"<h{heading.group(1)}>{escape(text)}</h{heading.group(1)}>"
    if paragraph.find(f"{W}pPr/{W}numPr") is not None:
        return f"<ul><li>{escape(text)}</li></ul>"
    return f"<p>{escape(text)}</p>"
