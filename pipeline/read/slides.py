"""PPTX to HTML: a section for each slide in the order shown, with its title, texts, tables and speaker's notes.

Slides and shapes that are hidden are left out. Not for: pictures, charts, older `.ppt` files, OpenDocument
presentations (`opendocument.py`).
"""

from collections.abc import Iterator
from typing import Final

from lxml import etree

from pipeline.read.converted import Converted, Unreadable, escape, html_table, placed, whole_page
from pipeline.read.package import Package, open_package
from pipeline.work import check_cancelled

_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_ID: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_SHAPES: Final = (f"{_P}sp", f"{_P}graphicFrame")
_TITLES: Final = frozenset({"title", "ctrTitle"})
_FIELDS: Final = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
"""Places of a slide that repeat on all: its number, date, header and footer."""


def pptx_to_html(body: bytes) -> Converted:
    """Return a presentation as HTML; raises `Unreadable` for one that is damaged, too large unpacked, or without
    text."""
    with open_package(body, "a presentation") as package:
        title, author = package.about()
        shown = package.tree("ppt/presentation.xml")
        known = package.targets("ppt/presentation.xml")
        order = [known[one.get(_ID, "")][1] for one in (shown.iter(f"{_P}sldId") if shown is not None else ())]
        sections, hidden = [], 0
        for number, name in enumerate(dict.fromkeys(order), start=1):
            check_cancelled()
            slide = package.tree(name)
            if slide is None or slide.get("show") in {"0", "false"}:
                hidden += slide is not None
            elif inner := _slide(package, name, slide, number):
                sections.append(placed(inner, f"slide={number}"))
    if not sections:
        raise Unreadable("it is a presentation without text")
    notes = (f"presentation: {hidden} hidden slides were left out",) if hidden else ()
    return Converted(whole_page("\n".join(sections), title=title), title, author=author, notes=notes)


def _slide(package: Package, name: str, slide: etree._Element, number: int) -> str:
    heading, parts = "", list[str]()
    for shape in _shapes(slide):
        kind = _kind(shape)
        if kind in _TITLES and not heading:
            heading = " ".join(_texts(shape))
        elif kind not in _FIELDS:
            parts += _shape(shape)
    notes = [other for kind, other in package.targets(name).values() if kind == "notesSlide"]
    spoken = package.tree(notes[0]) if notes else None
    if spoken is not None:
        said = [text for shape in _shapes(spoken) if _kind(shape) == "body" for text in _texts(shape)]
        parts += ["<h3>Notes</h3>" * bool(said), *(f"<p>{escape(text)}</p>" for text in said)]
    if not heading and not any(parts):
        return ""
    return "\n".join([f"<h2>{escape(heading or f'Slide {number}')}</h2>", *parts])


def _shapes(slide: etree._Element) -> Iterator[etree._Element]:
    """Yield what a slide shows, as its author ordered it."""
    for shape in slide.iter(*_SHAPES):
        about = next(shape.iter(f"{_P}cNvPr"), None)
        if about is None or about.get("hidden") not in {"1", "true"}:
            yield shape


def _kind(shape: etree._Element) -> str:
    place = next(shape.iter(f"{_P}ph"), None)
    return place.get("type", "body") if place is not None else ""


def _shape(shape: etree._Element) -> list[str]:
    tables = [
        html_table(
            [[" ".join(_texts(cell)) for cell in row.iter(f"{_A}tc")] for row in table.iter(f"{_A}tr")], header=True
        )
        for table in shape.iter(f"{_A}tbl")
    ]
    if tables:
        return tables
    texts = _texts(shape)
    if _kind(shape) == "body" and len(texts) > 1:
        return ["<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"]
    return [f"<p>{escape(text)}</p>" for text in texts]


def _texts(shape: etree._Element) -> list[str]:
    """Return the paragraphs of a shape or cell that are not empty."""
    found = []
    for paragraph in shape.iter(f"{_A}p"):
        runs = [" " if one.tag == f"{_A}br" else one.text or "" for one in paragraph.iter(f"{_A}t", f"{_A}br")]
        found.append(" ".join("".join(runs).split()))
    return [text for text in found if text]
