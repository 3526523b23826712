"""PPTX to HTML: a section for each slide in the order shown, with title, texts, tables, charts,
diagrams and notes.

What a slide shows is read in the order of the file, but for boxes that are above what the file has
before them. What is hidden is left out: slides, shapes, text beside the slide, tiny, without ink, or
white on a slide where nothing is drawn but text; footers are read once. Not for: what layouts and
masters draw, older `.ppt` files, slides of OpenDocument (`opendocument.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from lxml import etree

from cancellation import check_cancelled
from readers.converted import (
    LEAST_SIZE,
    Converted,
    Unreadable,
    escape,
    placed,
    shows_hidden,
    whole_page,
)
from readers.html.colours import WHITE, is_faint, rgb_of
from readers.ledger import Ledger
from readers.office.package import (
    ON,
    Package,
    all_of,
    cell_html,
    hidden_notes,
    open_package,
    part_of,
    whole_number,
)
from readers.office.shapes import (
    RELATION,
    A,
    chosen,
    drawn,
    picture,
    texts_of,
    words_of,
)
from readers.tree import count_words

_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_GROUP: Final = f"{_P}grpSp"
_INK: Final = f"{_P}contentPart"
_SHAPES: Final = (
    *(_INK, _GROUP),
    *(f"{_P}{name}" for name in ("sp", "graphicFrame", "cxnSp", "pic")),
)
_TITLE_PLACEHOLDERS: Final = frozenset({"title", "ctrTitle"})
_UNSHOWN_PLACEHOLDERS: Final = frozenset({"sldNum", "dt", "sldImg"})
"""Places of a slide that say its number and today's date, or show its image."""
_MARGINS: Final = frozenset({"ftr", "hdr"})
_GROUNDS: Final = (
    *(f".//{_P}{name}" for name in ("pic", "graphicFrame", "grpSp", "style", "bgPr")),
    *(f".//{_P}spPr/{A}{name}Fill" for name in ("solid", "grad", "blip", "patt")),
    *(f"{_P}clrMap[@bg1='dk1']", f".//{A}overrideClrMapping"),
)
"""What may make a ground other than white."""
_MOST_ORDERED: Final = 1_000
"""Shapes of a slide or group beyond which they are read in the order of the file."""


class _Box(NamedTuple):
    """Where on a slide, or in a group, something is, in EMU."""

    x: int
    y: int
    width: int
    height: int

    def is_above(self, lower: "_Box") -> bool:
        """Whether another box is below this one, in the same column; boxes that touch by
        a tenth of their height are apart all the same."""
        overlap = min(self.x + self.width, lower.x + lower.width) - max(self.x, lower.x)
        return overlap > 0 and self.y + self.height * 0.9 <= lower.y


@dataclass(slots=True)
class _Slide:
    package: Package
    ledger: Ledger
    root: etree._Element
    links: dict[str, tuple[str, str]]
    footers: dict[str, None]
    """Of all slides, each once."""

    def html(self, number: int) -> str:
        """Return the slide with its notes and comments, empty where it has nothing to read."""
        self.ledger.hold("image", len(self.root.findall(f"{_P}cSld/{_P}bg//{A}blip")))
        self.ledger.hold("form field", len(self.root.findall(f".//{_P}control")))
        heading, blocks = "", list[str]()
        tree = self.root.find(f"{_P}cSld/{_P}spTree")
        for shape in self._shapes(tree if tree is not None else self.root):
            kind = _kind(shape)
            if kind in _TITLE_PLACEHOLDERS and not heading:
                heading = words_of(shape)
            elif _is_margin(kind, shape):
                self.footers |= dict.fromkeys(filter(None, texts_of(shape)))
            elif kind not in _UNSHOWN_PLACEHOLDERS:
                blocks += self._shape(shape)
        blocks += [*self._notes(), *self._comments()]
        if not heading and not any(blocks):
            return ""
        return "\n".join([f"<h2>{escape(heading or f'Slide {number}')}</h2>", *blocks])

    def _shapes(self, tree: etree._Element) -> Iterator[etree._Element]:
        """Yield what a slide shows in its order, titles before, groups by their shapes;
        hidden shapes are left out."""
        visible = [shape for shape in chosen(tree) if not _is_hidden(shape)]
        titles = [shape for shape in visible if _kind(shape) in _TITLE_PLACEHOLDERS]
        yield from titles
        boxes: list[tuple[etree._Element, _Box | None]] = []
        for shape in visible:
            if shape.tag not in _SHAPES or shape in titles:
                continue
            box, index = _box_of(shape), len(boxes)
            if box is not None and index < _MOST_ORDERED:
                lower_boxes = (
                    number
                    for number, (_, lower) in enumerate(boxes)
                    if lower is not None and box.is_above(lower)
                )
                index = next(lower_boxes, index)
            boxes.insert(index, (shape, box))
        for shape, _ in boxes:
            yield from self._shapes(shape) if shape.tag == _GROUP else [shape]

    def _shape(self, shape: etree._Element) -> list[str]:
        if shape.tag == f"{_P}pic":
            return self._picture(shape)
        embedded = next(shape.iter(f"{_P}oleObj"), None) is not None
        self.ledger.hold("embedded object", embedded)
        figures = [_table(table) for table in shape.iter(f"{A}tbl")]
        figures += drawn(shape, self.package, self.links, self.ledger)
        if figures:
            return figures
        texts = [escape(text) for text in texts_of(shape) if text]
        if not texts:
            return self._picture(shape)
        if _kind(shape) == "body" and len(texts) > 1:
            return ["<ul>" + "".join(f"<li>{text}</li>" for text in texts) + "</ul>"]
        return [f"<p>{text}</p>" for text in texts]

    def _picture(self, shape: etree._Element) -> list[str]:
        """Return a shape without text by its description; without one nothing, and a
        picture that may show something counts as unread."""
        about = next(shape.iter("{*}cNvPr"), None)
        media = next(shape.iter("{*}videoFile", "{*}audioFile"), None)
        self.ledger.hold("embedded object", media is not None)
        box = _box_of(shape)
        area = box.width * box.height if box is not None else 0
        alt = picture(shape, about, area, self.ledger)
        self.ledger.hold("image", not alt and shape.tag == _INK)
        return [f"<p>{alt}</p>"] if alt else []

    def _notes(self) -> list[str]:
        """Return what the speaker's notes say below a heading, empty without any."""
        blocks = list[str]()
        for root in self.package.roots(self.links, "notesSlide"):
            for shape in root.iter(*_SHAPES):
                tables = [_table(table) for table in shape.iter(f"{A}tbl")]
                is_apart = _kind(shape) in _UNSHOWN_PLACEHOLDERS | _MARGINS
                texts = [] if tables or is_apart else texts_of(shape)
                blocks += tables
                blocks += [f"<p>{escape(text)}</p>" for text in texts if text]
        return ["<h3>Notes</h3>", *blocks] if blocks else []

    def _comments(self) -> Iterator[str]:
        for root in self.package.roots(self.links, "comments"):
            for comment in root.iter("{*}cm"):
                older = comment.findtext(f"{_P}text")
                text = words_of(comment) if older is None else older
                if text.strip():
                    yield f"<p>Comment: {escape(' '.join(text.split()))}</p>"


def _box_of(shape: etree._Element) -> _Box | None:
    """Return the box in which a shape is drawn, None where the shape has no position of
    its own (a placeholder takes its layout's)."""
    holder = next(shape.iterchildren(f"{_P}spPr", f"{_P}grpSpPr"), shape)
    form = next(holder.iterchildren(f"{A}xfrm", f"{_P}xfrm"), None)
    offset = form.find(f"{A}off") if form is not None else None
    extent = form.find(f"{A}ext") if form is not None else None
    if offset is None or extent is None:
        return None
    return _Box(*_numbers(offset, "x", "y"), *_numbers(extent, "cx", "cy"))


def _numbers(element: etree._Element, *keys: str) -> Iterator[int]:
    for key in keys:
        value = element.get(key, "")
        number = whole_number(value.removeprefix("-"), digits=13)
        yield -number if value.startswith("-") else number


def _empty_unseen(
    root: etree._Element, under: Sequence[etree._Element], width: int, height: int
) -> int:
    """Empty the text of a slide that no viewer sees; return the number of its words.

    `under` is what it is drawn on: its layout and master."""
    parts = (root, *under)
    backs = [back for part in parts for back in part.iter(f"{_P}bgRef")]
    is_white = all(
        back.get("idx") == "1001" and back.find(f"{A}schemeClr[@val='bg1']") is not None
        for back in backs
    ) and not any(part.find(path) is not None for part in parts for path in _GROUNDS)
    words = 0
    for shape in root.iterfind(f"{_P}cSld/{_P}spTree/*"):
        box = _box_of(shape) or _Box(0, 0, 0, 0)
        is_beside = not (
            -box.width <= box.x <= width and -box.height <= box.y <= height
        )
        for run in shape.iter(f"{A}r"):
            text, about = run.find(f"{A}t"), run.find(f"{A}rPr")
            if text is not None and (is_beside or _is_unseen(about, is_white=is_white)):
                words += count_words(text.text or "")
                text.text = ""
    return words


def _is_unseen(about: etree._Element | None, *, is_white: bool) -> bool:
    """Whether letters with these properties are too small, without ink, or white where the ground
    is."""
    if about is None:
        return False
    size = whole_number(about.get("sz", ""), 1800, digits=6)
    colours = (colour.get("val", "") for colour in about.iterfind(f"{A}solidFill/*"))
    inks = (rgb_of("white" if colour == "bg1" else f"#{colour}") for colour in colours)
    is_pale = is_white and any(ink is not None and is_faint(ink, WHITE) for ink in inks)
    is_hollow = about.find(f"{A}noFill") is not None
    return size < 100 * LEAST_SIZE or is_hollow or is_pale


def _is_hidden(shape: etree._Element) -> bool:
    about = next(shape.iter("{*}cNvPr"), None)
    return about is not None and about.get("hidden") in ON


def _kind(shape: etree._Element) -> str:
    placeholder = next(shape.iter(f"{_P}ph"), None) if shape.tag != _GROUP else None
    return placeholder.get("type", "body") if placeholder is not None else ""


def _is_margin(kind: str, shape: etree._Element) -> bool:
    """Whether a shape repeats on all slides: a header, a footer, a date that is not
    today's."""
    fixed = kind == "dt" and shape.find(".//{*}fld") is None
    return fixed or kind in _MARGINS


def _table(table: etree._Element) -> str:
    """Return a table with its merged cells, its first row as the header."""
    rows = []
    for index, row in enumerate(table.iter(f"{A}tr")):
        tag, html = "th" if index == 0 else "td", ""
        for cell in row.iter(f"{A}tc"):
            if {cell.get("hMerge"), cell.get("vMerge")} & ON:
                continue
            width, height = (
                whole_number(cell.get(name, ""), 1, digits=4)
                for name in ("gridSpan", "rowSpan")
            )
            html += cell_html(tag, escape(words_of(cell)), width, height)
        rows.append(f"<tr>{html}</tr>")
    return "<table>\n" + "\n".join(rows) + "\n</table>"


def _under(package: Package, layout: str) -> list[etree._Element]:
    """Return what a slide is drawn on: its layout and the master of that."""
    master = part_of(package.targets(layout), "slideMaster") if layout else ""
    trees = map(package.tree, filter(None, (layout, master)))
    return [tree for tree in trees if tree is not None]


def _printed(under: Sequence[etree._Element]) -> Iterator[str]:
    """Yield the texts that a slide's layout and master print on it."""
    for shape in (shape for part in under for shape in part.iter(f"{_P}sp")):
        is_place = next(shape.iter(f"{_P}ph"), None) is not None
        if not is_place and not _is_hidden(shape):
            yield from filter(None, texts_of(shape))


def pptx_to_html(body: bytes) -> Converted:
    """Return a presentation as HTML; raises `Unreadable` for one that is damaged, too
    large unpacked, or without text.

    Hidden slides and words are left out, and a note says how many."""
    ledger, footers = Ledger(), dict[str, None]()
    layouts = dict[str, list[etree._Element]]()
    sections, hidden, words = list[str](), 0, 0
    with open_package(body, "a presentation") as package:
        title, author = package.about()
        main = package.main("ppt/presentation.xml")
        deck, links = package.tree(main), package.targets(main)
        size = next(all_of(deck, f"{_P}sldSz"), None)
        # each once, in the order shown
        keys = [slide.get(f"{RELATION}id", "") for slide in all_of(deck, f"{_P}sldId")]
        names = dict.fromkeys(links[key][1] for key in keys if key in links)
        for number, name in enumerate(names, start=1):
            check_cancelled()
            root = package.tree(name)
            if root is None or root.get("show") in {"0", "false"}:
                hidden += root is not None
                continue
            links = package.targets(name)
            layout = part_of(links, "slideLayout")
            if layout not in layouts:
                layouts[layout] = _under(package, layout)
                footers |= dict.fromkeys(_printed(layouts[layout]))
            if size is not None and not shows_hidden():
                extent = _numbers(size, "cx", "cy")
                words += _empty_unseen(root, layouts[layout], *extent)
            slide = _Slide(package, ledger, root, links, footers)
            if html := slide.html(number):
                sections.append(placed(html, f"slide={number}"))
    if not sections:
        lacking = f": {ledger.unread}" if ledger.unread else ""
        raise Unreadable(f"it is a presentation without text{lacking}")
    sections += [f"<p>{escape(text)}</p>" for text in footers]
    notes = hidden_notes("presentation", {"slides": hidden, "words": words})
    html = whole_page("\n".join(sections), title=title)
    return Converted(
        *(html, title, "", author, "", notes, package.unread),
        hidden=words,
        ledger=ledger,
    )
