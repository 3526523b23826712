"""PPTX to HTML: a section for each slide in the order shown, with title, texts, tables, charts,
diagrams and notes.

What a slide shows is read from the top down, columns whose boxes follow each other in the file one
after the other. Slides and shapes that are hidden are left out; footers are read once. What the
file holds is counted by itself (`ledger.py`). Not for: what layouts and masters draw, older `.ppt`
files, slides of OpenDocument (`opendocument.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lxml import etree

from extras.documents.drawing import (
    FALLBACK,
    LARGE_IMAGE,
    RELATION,
    A,
    chosen,
    described,
    drawn,
    image_html,
    is_decorative,
    texts_of,
    words_of,
)
from extras.documents.equations import TEXT
from extras.documents.package import Package, all_of, open_package, part_of
from pipeline.document.converted import (
    Converted,
    Unreadable,
    escape,
    placed,
    whole_page,
)
from pipeline.document.ledger import Ledger
from pipeline.work import check_cancelled

_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_GROUP: Final = f"{_P}grpSp"
_INK: Final = f"{_P}contentPart"
_SHAPES: Final = frozenset(
    {_INK, *(f"{_P}{name}" for name in ("sp", "graphicFrame", "cxnSp", "pic"))}
)
_TITLE_PLACEHOLDERS: Final = frozenset({"title", "ctrTitle"})
_UNSHOWN_PLACEHOLDERS: Final = frozenset({"sldNum", "dt", "sldImg"})
"""Places of a slide that say its number and today's date, or show its image."""
_MARGINS: Final = frozenset({"ftr", "hdr"})
_ON: Final = frozenset({"1", "true"})
_WORD_LETTERS: Final = 5
"""Letters of a word, by which lost letters are counted as words."""
_GROUP_DEPTH: Final = 40
"""Groups in groups that are read."""
_MOST_CUTS: Final = 20
"""Cuts of a slide inside of each other, after which shapes are sorted by their corners."""


class _Box(NamedTuple):
    """Where on a slide something is, in EMU."""

    left: float = 0.0
    top: float = 0.0
    width: float = 0.0
    height: float = 0.0


class _SlideShape(NamedTuple):
    element: etree._Element
    box: _Box | None
    """None where neither the slide nor its layout says it."""


@dataclass(slots=True)
class _Deck:
    """What was read of a presentation so far."""

    package: Package
    ledger: Ledger = field(default_factory=Ledger)
    footers: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Slide:
    """One slide's part."""

    deck: _Deck
    root: etree._Element
    links: dict[str, tuple[str, str]]
    places: dict[tuple[str, str], _Box]
    """Boxes of the layout, by kind and number of the placeholder."""

    def html(self, number: int) -> str:
        """Return the slide with its notes and comments, empty where it has nothing to read."""
        ledger = self.deck.ledger
        _hold_words(ledger, self.root)
        ledger.hold("image", len(self.root.findall(f"{_P}cSld/{_P}bg//{A}blip")))
        ledger.hold("form field", len(self.root.findall(f".//{_P}control")))
        heading, parts = "", list[str]()
        tree = self.root.find(f"{_P}cSld/{_P}spTree")
        for shape in _in_order(
            list(self._shapes(tree if tree is not None else self.root))
        ):
            kind = _kind(shape.element)
            if kind in _TITLE_PLACEHOLDERS and not heading:
                heading = words_of(shape.element)
            elif _is_margin(kind, shape.element):
                self.deck.footers |= dict.fromkeys(
                    filter(None, texts_of(shape.element))
                )
            elif kind not in _UNSHOWN_PLACEHOLDERS:
                parts += self._shape(shape)
            _give_words(ledger, shape.element)
        parts += [*self._notes(), *self._comments()]
        if not heading and not any(parts):
            return ""
        return "\n".join([f"<h2>{escape(heading or f'Slide {number}')}</h2>", *parts])

    def _shapes(
        self, tree: etree._Element, depth: int = 0, within: "_GroupSpace | None" = None
    ) -> Iterator[_SlideShape]:
        """Yield what a slide shows, groups by their shapes; hidden shapes, and groups
        deeper than `_GROUP_DEPTH`, are left out."""
        frame = within or _GroupSpace()
        for element in chosen(tree):
            if _is_hidden(element):
                _give_words(self.deck.ledger, element)
            elif element.tag == _GROUP and depth < _GROUP_DEPTH:
                yield from self._shapes(element, depth + 1, frame.inner(element))
            elif element.tag in _SHAPES:
                box = _box_of(element)
                holder = next(element.iter(f"{_P}ph"), None)
                if box is None and holder is not None:
                    box = self.places.get(
                        ("", holder.get("idx", ""))
                    ) or self.places.get((_kind(element), ""))
                    yield _SlideShape(element, box)
                else:
                    yield _SlideShape(
                        element, frame.placed(box) if box is not None else None
                    )

    def _shape(self, shape: _SlideShape) -> list[str]:
        element = shape.element
        tables = [_table(table) for table in element.iter(f"{A}tbl")]
        figures = list(drawn(element, self.deck.package, self.links, self.deck.ledger))
        if element.tag == f"{_P}pic":
            return self._picture(shape)
        if next(element.iter(f"{_P}oleObj"), None) is not None:
            self.deck.ledger.hold("embedded object")
        if tables or figures:
            return [*tables, *figures]
        texts = list(filter(None, texts_of(element)))
        if not texts:
            return self._picture(shape)
        if _kind(element) == "body" and len(texts) > 1:
            return [
                "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"
            ]
        return [f"<p>{escape(text)}</p>" for text in texts]

    def _picture(self, shape: _SlideShape) -> list[str]:
        """Return a shape without text by its description; without one nothing, and a
        picture that may show something counts as unread."""
        about = next(shape.element.iter("{*}cNvPr"), None)
        if next(shape.element.iter("{*}videoFile", "{*}audioFile"), None) is not None:
            self.deck.ledger.hold("embedded object")
        if alt := described(about):
            return [f"<p>{image_html(alt)}</p>"]
        area = shape.box.width * shape.box.height if shape.box is not None else 0
        shows = next(shape.element.iter(f"{A}blip", f"{_P}pic"), None) is not None
        if shape.element.tag == _INK or (
            shows and area >= LARGE_IMAGE and not is_decorative(about)
        ):
            self.deck.ledger.hold("image")
        return []

    def _notes(self) -> list[str]:
        """Return what the speaker's notes say below a heading, empty without any."""
        said = list[str]()
        for root in self.deck.package.roots(self.links, "notesSlide"):
            for shape in root.iter(*_SHAPES):
                tables = [_table(table) for table in shape.iter(f"{A}tbl")]
                if tables or _kind(shape) in _UNSHOWN_PLACEHOLDERS | _MARGINS:
                    said += tables
                else:
                    said += [
                        f"<p>{escape(text)}</p>" for text in texts_of(shape) if text
                    ]
        return ["<h3>Notes</h3>", *said] if said else []

    def _comments(self) -> Iterator[str]:
        for root in self.deck.package.roots(self.links, "comments"):
            for comment in root.iter("{*}cm"):
                plain = comment.find(f"{_P}text")
                text = (
                    (plain.text or "")
                    if plain is not None
                    else " ".join(texts_of(comment))
                )
                if text.strip():
                    self.deck.ledger.hold("comment")
                    self.deck.ledger.give("comment")
                    yield f"<p>Comment: {escape(' '.join(text.split()))}</p>"


class _GroupSpace(NamedTuple):
    """How the places inside of a group become those on the slide."""

    scale: tuple[float, float] = (1.0, 1.0)
    shift: tuple[float, float] = (0.0, 0.0)

    def placed(self, box: _Box) -> _Box:
        """Return a box of the group, in its own units, as a box on the slide; a group
        without extent is not scaled."""
        across, down = self.scale
        left, top = self.shift
        return _Box(
            left + box.left * across,
            top + box.top * down,
            box.width * across,
            box.height * down,
        )

    def inner(self, group: etree._Element) -> "_GroupSpace":
        """Return the frame of the shapes in a group, this one where the group names
        none."""
        form = group.find(f"{_P}grpSpPr/{A}xfrm")
        outer = _box_of(group)
        if form is None or outer is None:
            return self
        (left, top), (width, height) = (
            _pair(form, "chOff", "x", "y"),
            _pair(form, "chExt", "cx", "cy"),
        )
        there = self.placed(outer)
        scale = (
            there.width / width if width else 1.0,
            there.height / height if height else 1.0,
        )
        return _GroupSpace(
            scale, (there.left - left * scale[0], there.top - top * scale[1])
        )


def _box_of(element: etree._Element) -> _Box | None:
    """Return the box in which a shape is drawn, None where the shape has no position of
    its own (a placeholder takes its layout's)."""
    holder = next(element.iterchildren(f"{_P}spPr", f"{_P}grpSpPr"), element)
    form = next(holder.iterchildren(f"{A}xfrm", f"{_P}xfrm"), None)
    if form is None or form.find(f"{A}off") is None:
        return None
    return _Box(*_pair(form, "off", "x", "y"), *_pair(form, "ext", "cx", "cy"))


def _pair(form: etree._Element, name: str, *keys: str) -> tuple[float, float]:
    found = form.find(f"{A}{name}")
    one, other = (
        _number(found.get(key, "")) if found is not None else 0.0 for key in keys
    )
    return one, other


def _number(said: str) -> float:
    return float(said) if said.lstrip("-").isdecimal() and len(said) < 14 else 0.0


def _in_order(shapes: list[_SlideShape]) -> Iterator[_SlideShape]:
    """Yield shapes as they are read: titles, then from the top down; if one has no
    position, all in the order of the file."""
    titles = [shape for shape in shapes if _kind(shape.element) in _TITLE_PLACEHOLDERS]
    rest = [
        shape for shape in shapes if _kind(shape.element) not in _TITLE_PLACEHOLDERS
    ]
    yield from titles
    if all(shape.box is not None for shape in rest):
        yield from _cut(rest)
    else:
        yield from rest


def _cut(shapes: Sequence[_SlideShape], depth: int = 0) -> Iterator[_SlideShape]:
    """Yield shapes column by column where the file has them so, else row by row
    (XY-cut); those that cannot be cut, or too deeply nested ones, from the top."""
    if len(shapes) < 2:
        yield from shapes
        return
    columns, rows = _apart(shapes, across=True), _apart(shapes, across=False)
    groups = columns if len(columns) > 1 and _follow(shapes, columns) else rows
    groups = groups if len(groups) > 1 else columns
    if len(groups) < 2 or depth > _MOST_CUTS:
        yield from sorted(shapes, key=lambda one: (one.box or _Box())[1::-1])
        return
    for group in groups:
        yield from _cut(group, depth + 1)


def _apart(shapes: Sequence[_SlideShape], *, across: bool) -> list[list[_SlideShape]]:
    """Return groups of shapes with nothing between them but empty ground, from the left or from the
    top."""
    at, size = (0, 2) if across else (1, 3)
    groups: list[list[_SlideShape]] = []
    end = 0.0
    for shape in sorted(shapes, key=lambda one: (one.box or _Box())[at]):
        box = shape.box or _Box()
        # Boxes that touch by a tenth of their size are apart all the same.
        if groups and box[at] < end - box[size] / 10:
            groups[-1].append(shape)
        else:
            groups.append([shape])
        end = max(end, box[at] + box[size])
    order = {id(shape.element): index for index, shape in enumerate(shapes)}
    return [sorted(group, key=lambda one: order[id(one.element)]) for group in groups]


def _follow(
    shapes: Sequence[_SlideShape], groups: Sequence[Sequence[_SlideShape]]
) -> bool:
    """Whether the file has each group of several shapes as one run, in the order of the groups."""
    of = {
        id(shape.element): index
        for index, group in enumerate(groups)
        for shape in group
    }
    places = [of[id(shape.element)] for shape in shapes]
    return places == sorted(places) and any(len(group) > 1 for group in groups)


def _is_hidden(shape: etree._Element) -> bool:
    about = next(shape.iter("{*}cNvPr"), None)
    return about is not None and about.get("hidden") in _ON


def _kind(shape: etree._Element) -> str:
    place = next(shape.iter(f"{_P}ph"), None)
    return place.get("type", "body") if place is not None else ""


def _is_margin(kind: str, shape: etree._Element) -> bool:
    """Whether a shape repeats on all slides: a header, a footer, a date that is not
    today's."""
    fixed = kind == "dt" and shape.find(".//{*}fld") is None
    return fixed or kind in _MARGINS


def _table(table: etree._Element) -> str:
    """Return a table with its merged cells, its first row as the header."""
    rows = []
    for index, row in enumerate(table.iter(f"{A}tr")):
        tag = "th" if index == 0 else "td"
        cells = (
            cell
            for cell in row.iter(f"{A}tc")
            if not {cell.get("hMerge"), cell.get("vMerge")} & _ON
        )
        rows.append(
            "".join(
                f"<{tag}{_spans(cell)}>{escape(words_of(cell))}</{tag}>"
                for cell in cells
            )
        )
    return "<table>\n" + "\n".join(f"<tr>{row}</tr>" for row in rows) + "\n</table>"


def _spans(cell: etree._Element) -> str:
    spans = {"colspan": cell.get("gridSpan", ""), "rowspan": cell.get("rowSpan", "")}
    return "".join(
        f' {name}="{said}"'
        for name, said in spans.items()
        if said.isdecimal() and said != "1"
    )


def _hold_words(ledger: Ledger, slide: etree._Element) -> None:
    """Count the words of a slide's text nodes, those of fallbacks left out."""
    ledger.hold(
        "word", sum(len((one.text or "").split()) for one in _text_nodes(slide))
    )


def _give_words(ledger: Ledger, shape: etree._Element) -> None:
    """Count the words of a shape that was read, less those whose letters its text lacks."""
    nodes = [one.text or "" for one in _text_nodes(shape)]
    held = sum(len("".join(text.split())) for text in nodes)
    written = sum(len("".join(text.split())) for text in texts_of(shape))
    lost = max(0, held - written + _WORD_LETTERS - 1) // _WORD_LETTERS
    ledger.give("word", max(0, sum(len(text.split()) for text in nodes) - lost))


def _text_nodes(element: etree._Element) -> Iterator[etree._Element]:
    for one in element.iter(f"{A}t", TEXT):
        if not any(above.tag == FALLBACK for above in one.iterancestors()):
            yield one


def _layout(
    package: Package, links: dict[str, tuple[str, str]]
) -> tuple[dict[tuple[str, str], _Box], list[str]]:
    """Return the boxes of the placeholders on a slide's layout, then on its master, by
    number and by kind, and the texts that both print on each slide.

    A missing layout or master has none."""
    found: dict[tuple[str, str], _Box] = {}
    printed = list[str]()
    name = part_of(links, "slideLayout")
    master = part_of(package.targets(name), "slideMaster") if name else ""
    for part in filter(None, (name, master)):
        for shape in all_of(package.tree(part), f"{_P}sp"):
            holder, box = next(shape.iter(f"{_P}ph"), None), _box_of(shape)
            if holder is not None and box is not None:
                if part == name:
                    found.setdefault(("", holder.get("idx", "")), box)
                found.setdefault((_kind(shape), ""), box)
            elif holder is None and not _is_hidden(shape):
                printed += filter(None, texts_of(shape))
    return found, printed


def _slides(package: Package) -> list[str]:
    """Return the names of the slides, each once, in the order shown."""
    main = package.main("ppt/presentation.xml")
    known = package.targets(main)
    shown = all_of(package.tree(main), f"{_P}sldId")
    keys = (one.get(f"{RELATION}id", "") for one in shown)
    return list(dict.fromkeys(known[key][1] for key in keys if key in known))


def pptx_to_html(body: bytes) -> Converted:
    """Return a presentation as HTML; raises `Unreadable` for one that is damaged, too
    large unpacked, or without text.

    Hidden slides are left out, and a note says how many."""
    with open_package(body, "a presentation") as package:
        title, author = package.about()
        deck, layouts = _Deck(package), dict[str, dict[tuple[str, str], _Box]]()
        sections, hidden = list[str](), 0
        for number, name in enumerate(_slides(package), start=1):
            check_cancelled()
            root = package.tree(name)
            if root is None or root.get("show") in {"0", "false"}:
                hidden += root is not None
                continue
            links = package.targets(name)
            key = part_of(links, "slideLayout")
            if key not in layouts:
                layouts[key], printed = _layout(package, links)
                deck.footers |= dict.fromkeys(printed)
            if inner := _Slide(deck, root, links, layouts[key]).html(number):
                sections.append(placed(inner, f"slide={number}"))
        unread = package.unread
    if not sections:
        lacking = f": {deck.ledger.unread}" if deck.ledger.unread else ""
        raise Unreadable(f"it is a presentation without text{lacking}")
    sections += [f"<p>{escape(text)}</p>" for text in deck.footers]
    notes = (f"presentation: hidden slides left out: {hidden}",) if hidden else ()
    html = whole_page("\n".join(sections), title=title)
    return Converted(*(html, title, "", author, "", notes, unread), ledger=deck.ledger)
