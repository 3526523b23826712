"""Long DOCX files to HTML in one pass over their XML: headings, paragraphs, list items and tables.

About 4 µs an element, stopped at any time, the tree dropped as it is read. Not for: links, footnotes, numbering and
styles beyond headings, for which shorter files go through mammoth (`pipeline/read/docx.py`).
"""

import io
import re
from typing import Final

from lxml import etree

from pipeline.read.converted import Unreadable, escape
from pipeline.work import check_cancelled

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _TABLE, _ROW, _CELL = (f"{_W}{name}" for name in ("p", "tbl", "tr", "tc"))
_HEADING: Final = re.compile(r"(?:heading|berschrift|titre|t[ií]tulo)\s?([1-6])\Z", re.IGNORECASE)
"""Names of the heading styles: English ones in most files whatever the language, German, French and Spanish ones."""
_MAX_PARTS: Final = 400_000


def long_docx_to_html(document: bytes) -> str:
    """Return the body of `word/document.xml` as HTML; empty where it holds no text.

    Raises:
        Unreadable: It is no XML.
    """
    writer = _Writer()
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
    try:
        for number, (event, element) in enumerate(events):
            if number % 1000 == 0:
                check_cancelled()
            if len(writer.parts) > _MAX_PARTS:
                break
            if event == "start":
                writer.enter(element.tag)
            else:
                writer.leave(element)
    except etree.XMLSyntaxError as e:
        raise Unreadable("it is a damaged Word file (its text is no XML)") from e
    return "\n".join(writer.parts) if writer.has_text else ""


class _Writer:
    """Writes paragraphs and tables as their elements end; a table inside a cell becomes text of that cell."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.has_text = False
        self._depth = 0
        self._cell: list[str] = []

    def enter(self, tag: str) -> None:
        """Take the start of an element."""
        if tag == _TABLE:
            self._depth += 1
            if self._depth == 1:
                self.parts.append("<table>")
        elif self._depth == 1 and tag == _ROW:
            self.parts.append("<tr>")
        elif self._depth == 1 and tag == _CELL:
            self._cell.clear()

    def leave(self, element: etree._Element) -> None:
        """Take a whole element, and drop what it held."""
        tag = element.tag
        if tag == _PARAGRAPH:
            self._paragraph(element)
        elif tag == _TABLE:
            self._depth -= 1
            if self._depth == 0:
                self.parts.append("</table>")
        elif self._depth == 1 and tag == _CELL:
            self.parts.append(f"<td>{escape(' '.join(self._cell))}</td>")
        elif self._depth == 1 and tag == _ROW:
            self.parts.append("</tr>")
        element.clear()
        while element.getprevious() is not None and element.getparent() is not None:
            del element.getparent()[0]

    def _paragraph(self, element: etree._Element) -> None:
        text = "".join(part.text or "" for part in element.iter(f"{_W}t")).strip()
        if not text:
            return
        self.has_text = True
        if self._depth:
            self._cell.append(text)
            return
        style = element.find(f"{_W}pPr/{_W}pStyle")
        heading = _HEADING.search(style.get(f"{_W}val", "") if style is not None else "")
        if heading:
            self.parts.append(f"<h{heading.group(1)}>{escape(text)}</h{heading.group(1)}>")
        elif element.find(f"{_W}pPr/{_W}numPr") is not None:
            self.parts.append(f"<ul><li>{escape(text)}</li></ul>")
        else:
            self.parts.append(f"<p>{escape(text)}</p>")
