"""DOCX to HTML: headings, lists, tables and links stay, images go.

mammoth reads files of ordinary length. It takes 35 to 60 µs an element and cannot be stopped, so that a 10 kB file can
hold it for 25 s; files of many elements are therefore read in one pass over their XML, about 4 µs an element, stopped
at any time, without links, footnotes, numbering and styles beyond headings. Runs that vanish, are under two points, or
have the colour of their ground are left out: a run's own properties, its styles', then the file's defaults decide
(ECMA-376 part 1, 17.7.2); a ground that cannot be known (a table's style, a drawn shape) hides nothing. Not for: older
`.doc` files, which are another format and are refused by their type.
"""

import io
import logging
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import mammoth
from lxml import etree

from pipeline.html.style import WHITE, Rgb, is_faint, rgb_of
from pipeline.read.converted import LEAST_SIZE, Converted, Unreadable, escape, whole_page
from pipeline.read.package import open_package
from pipeline.read.text import XML_OPTIONS, parse_xml
from pipeline.work import check_cancelled

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
RUN: Final = f"{W}r"
_DRAWN: Final = frozenset({f"{W}txbxContent", f"{W}pict", f"{W}drawing"})
_ON: Final = frozenset({"1", "true", "on"})
_NOTHING: Final = etree.Element("none")


class _Look(NamedTuple):
    """How runs with the same properties look."""

    said: list[etree._Element]
    gone: bool
    """Whether they are not seen on any ground."""
    ink: Rgb | None
    """None where that is the usual one."""


@dataclass(slots=True)
class Seen:
    """What a file's styles say, and how many words were taken out."""

    styles: dict[str, etree._Element] = field(default_factory=dict)
    default: etree._Element = field(default_factory=lambda: _NOTHING)
    """The `w:rPr` that holds where nothing else does."""
    first: str = ""
    """Id of the style of paragraphs that name none."""
    ground: Rgb | None = WHITE
    words: int = 0
    _looks: "dict[tuple[bytes, str], _Look]" = field(default_factory=dict)
    """By the properties that a run has of its own, and the style of its paragraph."""

    def drop_unseen(self, part: etree._Element) -> None:
        """Empty the runs of a part of the file that nobody sees."""
        for run in list(part.iter(RUN)):
            texts = [text for text in run.iter(f"{W}t") if text.text and text.text.strip()]
            if texts and self._is_unseen(run):
                self.words += sum(len((text.text or "").split()) for text in texts)
                for text in texts:
                    text.text = ""

    def _is_unseen(self, run: etree._Element) -> bool:
        paragraph = next(run.iterancestors(f"{W}p"), _NOTHING)
        own, name = run.find(f"{W}rPr"), _said(paragraph.find(f"{W}pPr"), "pStyle") or self.first
        key = (etree.tostring(own) if own is not None else b"", name)
        look = self._looks.get(key)
        if look is None:
            # What counts most first.
            said = [own, *self._of_style(_said(own, "rStyle"))] if own is not None else []
            look = self._looks[key] = self._look([*said, *self._of_style(name), self.default])
        if look.ink is None:
            return look.gone
        ground = self._ground(look.said, paragraph)
        return ground is not None and is_faint(look.ink, ground)

    def _look(self, said: list[etree._Element]) -> "_Look":
        size = _value(said, "sz") or ""
        small = size.isdigit() and int(size) < 2 * LEAST_SIZE  # in half points
        gone = small or any(_value(said, name) in _ON for name in ("vanish", "specVanish"))
        return _Look(said, gone, None if gone else rgb_of(f"#{_value(said, 'color') or 'auto'}"))

    def _of_style(self, name: str) -> Iterator[etree._Element]:
        for _ in range(len(self.styles)):
            style = self.styles.get(name)
            if style is None:
                return
            properties = style.find(f"{W}rPr")
            if properties is not None:
                yield properties
            name = _said(style, "basedOn")

    def _ground(self, said: list[etree._Element], paragraph: etree._Element) -> Rgb | None:
        """Return the colour behind a run, None where it cannot be known."""
        cell = next(paragraph.iterancestors(f"{W}tc"), None)
        shades = [*said, paragraph.find(f"{W}pPr"), cell.find(f"{W}tcPr") if cell is not None else None]
        for holder in shades:
            lit = _said(holder, "highlight")
            if lit and lit != "none":
                return rgb_of(lit)
            fill = _said(holder, "shd", "fill")
            if fill and fill != "auto":
                return rgb_of(f"#{fill}")
        table = next(paragraph.iterancestors(f"{W}tbl"), None)
        if table is not None and (table.find(f"{W}tblPr") is None or _said(table.find(f"{W}tblPr"), "tblStyle")):
            return None
        return None if any(above.tag in _DRAWN for above in paragraph.iterancestors()) else self.ground


def read_styles(styles: etree._Element | None) -> Seen:
    """Return what the part `word/styles.xml` says of how text looks."""
    if styles is None:
        return Seen()
    named = {style.get(f"{W}styleId", ""): style for style in styles.iter(f"{W}style")}
    usual = styles.find(f"{W}style[@{W}type='paragraph'][@{W}default='1']")
    first = usual.get(f"{W}styleId", "") if usual is not None else ""
    default = styles.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr")
    return Seen(named, default if default is not None else _NOTHING, first)


def _value(said: list[etree._Element], name: str) -> str | None:
    """Return the first value of a property, `1` for one that is switched on without a value."""
    for properties in said:
        found = properties.find(f"{W}{name}")
        if found is not None:
            return found.get(f"{W}val") or "1"
    return None


def _said(holder: etree._Element | None, name: str, attribute: str = "val") -> str:
    found = holder.find(f"{W}{name}") if holder is not None else None
    return found.get(f"{W}{attribute}", "") if found is not None else ""


_MAMMOTH_ELEMENTS: Final = 60_000
"""Elements of the text (some 15,000 paragraphs) that mammoth reads in about 3 s, its tree taking about 100 MB."""
_TEXT: Final = "word/document.xml"
_PARTS: Final = (_TEXT, "word/footnotes.xml", "word/endnotes.xml")
"""Parts whose text is read."""
_READ: Final = (*_PARTS, "word/styles.xml")
_PARAGRAPH, _TABLE, _ROW, _CELL = (f"{W}{name}" for name in ("p", "tbl", "tr", "tc"))
_HEADING: Final = re.compile(r"(?:heading|berschrift|titre|t[ií]tulo)\s?([1-6])\Z", re.IGNORECASE)
"""Names of the heading styles: English ones in most files whatever the language, German, French and Spanish ones."""
logging.getLogger("mammoth").setLevel(logging.ERROR)


def docx_to_html(body: bytes) -> Converted:
    """Return a DOCX file as HTML; raises `Unreadable` for one that is damaged, too large unpacked, or without text."""
    with open_package(body, "a Word file") as package:
        title, author = package.about()
        parts = {name: package.read(name) for name in package.names if name in _READ}
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
    if not inner.strip():
        raise Unreadable("it is a Word file without text")
    return Converted(whole_page(inner, title=title), title, "", author, "", tuple(notes), unread, hidden=seen.words)


def _only_seen(body: bytes, parts: dict[str, bytes], seen: Seen) -> io.BytesIO:
    """Return the file without the text that nobody sees; as it is where there is none."""
    roots = {name: parse_xml(parts[name]) for name in _PARTS if name in parts}
    for root in roots.values():
        if root is not None:
            seen.drop_unseen(root)
    if not seen.words:
        return io.BytesIO(body)
    changed: dict[str, bytes] = {
        name: etree.tostring(root, encoding="utf-8", xml_declaration=True)
        for name, root in roots.items()
        if root is not None
    }
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as archive, zipfile.ZipFile(written, "w") as copy:
        for part in archive.infolist():
            if part.filename.endswith((".xml", ".rels")):
                copy.writestr(part.filename, changed.get(part.filename, b"") or archive.read(part))
    written.seek(0)
    return written


def _long_to_html(document: bytes, seen: Seen) -> str:
    """Return the body of `word/document.xml` as HTML, the tree dropped as it is read; empty where it holds no text.

    A table inside a cell becomes text of that cell.
    """
    parts: list[str] = []
    cell: list[str] = []
    has_text, depth = False, 0
    tags = (_PARAGRAPH, _TABLE, _ROW, _CELL)
    events = etree.iterparse(io.BytesIO(document), events=("start", "end"), tag=tags, **XML_OPTIONS)
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
    properties = paragraph.find(f"{W}pPr")
    heading = _HEADING.search(_said(properties, "pStyle"))
    if heading:
        return f"<h{heading.group(1)}>{escape(text)}</h{heading.group(1)}>"
    if properties is not None and properties.find(f"{W}numPr") is not None:
        return f"<ul><li>{escape(text)}</li></ul>"
    return f"<p>{escape(text)}</p>"
