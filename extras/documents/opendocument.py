"""ODT, ODS and ODP to HTML: headings, paragraphs, lists, tables; sheets by their cells;
slides with number and notes.

What a file hides (text, sheets, slides by their styles) and deleted text are left out;
comments and what is embedded, but for formulas and charts, are said to be unread. Not
for: drawings."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from extras.documents.opendocument_looks import Looks
from extras.documents.package import (
    MAX_PART_TAGS,
    all_of,
    open_package,
    whole_number,
)
from extras.documents.sheets import UNREAD_CELLS, Row, sheet_to_html
from pipeline.document.converted import (
    MAX_CELLS,
    Converted,
    Unreadable,
    escape,
    html_table,
    placed,
    whole_page,
)
from pipeline.document.ledger import Ledger
from pipeline.read.text import child_text, parse_xml
from pipeline.text.numerals import numeral
from pipeline.work import check_cancelled

_TEXT, _TABLES, _DRAW, _STYLE, _OFFICE, _SHOW, _FORM = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("text", "table", "drawing", "style", "office", "presentation", "form")
)
_H, _P, _ITEM, _NOTE = (f"{_TEXT}{name}" for name in ("h", "p", "list-item", "note"))
_TABLE, _ROW, _CELL, _COVERED = (
    f"{_TABLES}{name}"
    for name in ("table", "table-row", "table-cell", "covered-table-cell")
)
_PAGE, _FRAME, _NOTES, _NAMED = (
    f"{_DRAW}page",
    f"{_DRAW}frame",
    f"{_SHOW}notes",
    f"{_STYLE}style",
)
_LIST, _LIST_STYLE, _NUMBER = (
    f"{_TEXT}{name}" for name in ("list", "list-style", "list-level-style-number")
)
_NUMBER_DIGITS: Final = 5
"""Most digits of a number which a file gives."""
_RAISED_LETTERS: Final = 4
"""Letters of a superscript that is a power or a mark."""
_ODF_SHEETS: Final = f"{_OFFICE}spreadsheet"
_SECTION, _HIDDEN_TEXT = f"{_TEXT}section", f"{_TEXT}hidden-text"
_GROUPS: Final = (f"{_TABLES}table-row-group", f"{_TABLES}table-column-group")
_UNSHOWN_ELEMENTS: Final = (f"{_TEXT}tracked-changes", f"{_OFFICE}annotation")
_APART: Final = frozenset({*_UNSHOWN_ELEMENTS, _H, _P, _TABLE})
"""What is inside of a paragraph without belonging to its text."""
_ODF_OBJECT: Final = f"{_DRAW}object"
_CHART: Final = "{urn:oasis:names:tc:opendocument:xmlns:chart:1.0}"
_SVG: Final = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_MATH: Final = "{http://www.w3.org/1998/Math/MathML}math"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_DESCRIPTION_TAGS: Final = frozenset(
    {f"{_SVG}title", f"{_SVG}desc", f"{_DRAW}text-box", _TABLE}
)
"""What in a frame says the same as a picture in it, or more."""
_LARGE_IMAGE_CM2: Final = 15.0
"""Square centimetres: a picture of less is a logo or an icon."""
_CENTIMETRES: Final = {"cm": 1.0, "mm": 0.1, "in": 2.54, "pt": 2.54 / 72}
_ODF_LENGTH: Final = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)(cm|mm|in|pt)")
_MEANINGFUL: Final = re.compile(r"[^\W\d_]{2,}.*?[\s\W][^\W_]|[^\W\d_]{5,}")
"""More than a page's number with a word."""
_BLANK_TAGS: Final = {f"{_TEXT}s": " ", f"{_TEXT}tab": " ", f"{_TEXT}line-break": " "}
_REPEATED: Final = frozenset({"header", "footer"})
"""Frames of a slide that repeat on all."""
_PLACEHOLDERS: Final = frozenset({"title", "page-number", "date-time"})
"""Frames of a slide that are its heading, its number or today."""
_FORM_FIELDS: Final = frozenset(
    f"{_FORM}{name}"
    for name in (
        "text",
        "textarea",
        "formatted-text",
        "combobox",
        "number",
        "date",
        "time",
    )
)
_NAMED_FIELDS: Final = frozenset(
    f"{_FORM}{name}" for name in ("button", "checkbox", "radio", "fixed-text", "frame")
)
"""Parts of a form that show their label, as others show their value."""
_EMBEDDED_OBJECTS: Final = tuple(
    f"{_DRAW}{name}" for name in ("plugin", "applet", "floating-frame")
)
_HIDING: Final = {
    f"{_STYLE}text-properties": (f"{_TEXT}display", "none"),
    f"{_STYLE}table-properties": (f"{_TABLES}display", "false"),
    f"{_STYLE}drawing-page-properties": (f"{_SHOW}visibility", "hidden"),
}
"""What in a style hides text, a sheet or a slide."""


@dataclass(slots=True)
class _Numbered:
    """A list that is being read."""

    style: str
    count: int


@dataclass(slots=True)
class _OpenDocumentReader:
    """What was read so far."""

    hiding: frozenset[str]
    """Names of styles that hide."""
    slides: int = 0
    hidden: int = 0
    raised: frozenset[str] = frozenset()
    """Names of styles of superscripts."""
    numbers: dict[tuple[str, int], etree._Element] = field(default_factory=dict)
    """How lists are numbered, by the name of their style and the level."""
    lists: list[_Numbered] = field(default_factory=list)
    """Those around what is read."""
    last: dict[tuple[str, int], int] = field(default_factory=dict)
    """Where a list of a style and level ended."""
    label: str = ""
    """The number of an item whose paragraph comes next."""
    left: int = MAX_CELLS
    """Cells that may still be read."""
    looks: Looks = field(default_factory=Looks)
    hidden_rows: int = 0
    hidden_columns: int = 0
    parts: Callable[[str], etree._Element | None] = lambda _: None
    """Returns a file inside this one by its name."""
    ledger: Ledger = field(default_factory=Ledger)
    repeated: dict[str, None] = field(default_factory=dict)
    """Heads and feet of slides."""

    def blocks(self, parent: etree._Element, *, in_item: bool = False) -> Iterator[str]:
        """Yield an element's content as HTML; a paragraph comes after the frames
        anchored in it."""
        for child in parent.iterchildren(tag=etree.Element):
            check_cancelled()
            if child.tag in _UNSHOWN_ELEMENTS or self._is_apart(child):
                continue
            if read := _WHOLE_ELEMENTS.get(child.tag):
                yield from read(self, child)
                continue
            if title := child.get(
                f"{_TABLES}title"
            ):  # of what a cell says to whom fills it in
                yield f"<p>{escape(title)}</p>"
            if child.tag.startswith(_FORM):
                yield from self._field(child)
            if child.tag == _ITEM:
                self._next_item(child)
            yield from self.blocks(child, in_item=in_item or child.tag == _ITEM)
            if child.tag in {_H, _P}:
                yield from self._paragraph(child, in_item=in_item)

    def _paragraph(self, element: etree._Element, *, in_item: bool) -> Iterator[str]:
        """Yield a heading or paragraph with its number, then its notes; nothing where it
        has no text."""
        text = self._text(element)
        if not text:
            return
        label, self.label = self.label, ""
        numbered = escape(f"{label} {text}" if label else text)
        yield _block(element, numbered, in_item=in_item and not label)
        yield from self._notes(element)

    def _speaker_notes(self, element: etree._Element) -> Iterator[str]:
        said = list(self.blocks(element))
        yield from ["<h3>Notes</h3>", *said] if said else []

    def _is_apart(self, element: etree._Element) -> bool:
        """Whether an element is a hidden section, or a frame that is read elsewhere."""
        if element.tag == _SECTION and element.get(f"{_TEXT}display", "true") != "true":
            self._miss(element)
            return True
        kind = element.get(f"{_SHOW}class") if element.tag == _FRAME else None
        if kind in _REPEATED:
            self.repeated |= dict.fromkeys(self.blocks(element))
        return kind in _PLACEHOLDERS or kind in _REPEATED

    def _object(self, element: etree._Element) -> Iterator[str]:
        """Yield an embedded formula as it was typed, a chart as its title and figures;
        what else is embedded is not read; what is not there or not read gives
        nothing."""
        name = element.get(_HREF, "").removeprefix("./")
        tree = self.parts(f"{name}/content.xml")
        if tree is None:  # a file of one part has it inside
            tree = next(element.iterchildren(f"{_OFFICE}document", _MATH), None)
        if tree is None:
            return
        typed = next(tree.iter("{*}annotation"), None) if tree.tag == _MATH else None
        if tree.tag == _MATH:
            said = "".join(typed.itertext() if typed is not None else tree.itertext())
            yield f"<p>{escape(' '.join(said.split()))}</p>"
        elif (chart := next(tree.iter(f"{_CHART}chart"), None)) is not None:
            for title in chart.iter(f"{_CHART}title"):
                yield from self.blocks(title)
            for table in chart.iter(_TABLE):
                yield from self._table(table)
        else:
            return
        self.ledger.give("embedded object")

    def margins(
        self, styles: etree._Element | None, content: etree._Element
    ) -> Iterator[str]:
        """Yield heads and feet of pages and slides, and what their masters print, where
        they say something, each once."""
        sides = ("", "-left", "-first")
        names = {
            f"{{*}}{name}{side}" for name in ("header", "footer") for side in sides
        }
        said = {**self.repeated}
        for declared in content.iter(f"{_SHOW}footer-decl", f"{_SHOW}header-decl"):
            said[f"<p>{escape(' '.join(declared.itertext()))}</p>"] = None
        for margin in all_of(styles, *names):
            if margin.get(f"{_STYLE}display") != "false":
                said |= dict.fromkeys(self.blocks(margin))
        for master in all_of(styles, f"{_STYLE}master-page"):
            for shape in master.iterchildren(tag=etree.Element):
                if shape.tag.startswith(_DRAW) and shape.get(f"{_SHOW}class") is None:
                    said |= dict.fromkeys(self.blocks(shape))
        yield from (
            one for one in said if _MEANINGFUL.search(re.sub("<[^>]*>", "", one))
        )

    def _field(self, control: etree._Element) -> Iterator[str]:
        """Yield what a part of a form shows: nothing for a box that is not ticked, or a
        field without a value."""
        said = ""
        if control.tag in _FORM_FIELDS:
            said = control.get(f"{_FORM}current-value") or control.get(
                f"{_FORM}value", ""
            )
        elif control.tag in _NAMED_FIELDS or "true" in {
            control.get(f"{_FORM}{name}") for name in ("selected", "current-selected")
        }:
            said = control.get(f"{_FORM}label", "")
        if said.strip():
            yield f"<p>{escape(' '.join(said.split()))}</p>"

    def count(self, content: etree._Element) -> None:
        """Count what a document holds beside its text."""
        self.ledger.hold(
            "comment", sum(1 for _ in content.iter(f"{_OFFICE}annotation"))
        )
        self.ledger.hold(
            "embedded object", sum(1 for _ in content.iter(*_EMBEDDED_OBJECTS))
        )
        for linked in content.iter(f"{_TEXT}section-source"):
            section = linked.getparent()
            is_read = (
                section is not None and next(section.iter(_H, _P), None) is not None
            )
            self.ledger.hold("embedded object", not is_read)
        for frame in content.iter(_FRAME):
            held = {child.tag for child in frame.iterchildren(tag=etree.Element)}
            if held & {_ODF_OBJECT, f"{_ODF_OBJECT}-ole"}:
                self.ledger.hold("embedded object")
            elif (
                f"{_DRAW}image" in held
                and not held & _DESCRIPTION_TAGS
                and _area(frame) >= _LARGE_IMAGE_CM2
            ):
                self.ledger.hold("image")

    def _list(self, element: etree._Element) -> Iterator[str]:
        """Yield the items of a list, numbered as its style says; one inside another
        goes on with the outer's style."""
        style = element.get(f"{_TEXT}style-name") or (
            self.lists[-1].style if self.lists else ""
        )
        level = _Numbered(style, 0)
        if element.get(f"{_TEXT}continue-numbering") == "true":
            level.count = self.last.get((style, len(self.lists)), 0)
        self.lists.append(level)
        yield from self.blocks(element, in_item=True)
        self.lists.pop()
        self.label = ""
        self.last[style, len(self.lists)] = level.count

    def _next_item(self, item: etree._Element) -> None:
        """Count an item, and keep its number for its first paragraph; outside of lists
        nothing. A malformed start value is passed over."""
        if not self.lists:
            return
        own, depth = self.lists[-1], len(self.lists)
        form = self.numbers.get((own.style, depth))
        given = item.get(f"{_TEXT}start-value") or (
            form.get(f"{_TEXT}start-value")
            if form is not None and not own.count
            else None
        )
        own.count = whole_number(given or "", own.count + 1, digits=_NUMBER_DIGITS)
        self.label = "" if form is None else self._label(form, depth)

    def _label(self, form: etree._Element, depth: int) -> str:
        shown = form.get(f"{_TEXT}display-levels", "1")
        first = max(0, depth - whole_number(shown, 1, digits=_NUMBER_DIGITS))
        forms = [
            self.numbers.get((self.lists[-1].style, level))
            for level in range(first + 1, depth + 1)
        ]
        said = [
            spelled(one.count, kind)
            for one, own in zip(self.lists[first:], forms, strict=True)
            if (kind := own.get(f"{_STYLE}num-format", "") if own is not None else "")
        ]
        before, after = (
            form.get(f"{_STYLE}num-prefix", ""),
            form.get(f"{_STYLE}num-suffix", ""),
        )
        return f"{before}{'.'.join(said)}{after}".strip() if said else ""

    def _notes(self, paragraph: etree._Element) -> Iterator[str]:
        """Yield the notes of a paragraph after it, each with its mark."""
        for note in paragraph.iter(_NOTE):
            if (
                note.getparent() is not None
                and next(note.iterancestors(_H, _P)) is paragraph
            ):
                said = " ".join(filter(None, map(self._text, note.iter(_H, _P))))
                yield (
                    f"<p>[{escape(_citation(note))}] {escape(said)}</p>" if said else ""
                )

    def _is_hidden(self, element: etree._Element, space: str) -> bool:
        hides = element.get(f"{space}style-name") in self.hiding
        self.hidden += hides
        return hides

    def _slide(self, page: etree._Element) -> Iterator[str]:
        self.slides += 1
        if self._is_hidden(page, _DRAW):
            return
        titles = (
            frame
            for frame in page.iter(_FRAME)
            if frame.get(f"{_SHOW}class") == "title"
        )
        title = " ".join(
            filter(
                None,
                (self._text(line) for frame in titles for line in frame.iter(_H, _P)),
            )
        )
        inner = list(self.blocks(page))
        if inner or title:
            heading = f"<h2>{escape(title or f'Slide {self.slides}')}</h2>"
            yield placed("\n".join([heading, *inner]), f"slide={self.slides}")

    def _table(self, table: etree._Element) -> Iterator[str]:
        rows = (
            row for row in table.iter(_ROW) if next(row.iterancestors(_TABLE)) is table
        )
        if table.getparent().tag != _ODF_SHEETS:
            cells = [
                cells_of_row for row in rows if any(cells_of_row := self._cells(row))
            ]
            if cells:
                yield html_table(cells, header=len(cells) > 1)
        elif self._is_hidden(table, _TABLES):
            return
        else:
            yield from self._sheet(table, rows)
        for held in table.iter(_ODF_OBJECT):
            if next(held.iterancestors(_TABLE)) is table and _is_in_cell(held):
                yield from self._object(held)

    def _sheet(
        self, table: etree._Element, rows: Iterator[etree._Element]
    ) -> Iterator[str]:
        """Yield a sheet that is shown, then what is drawn over it."""
        name, gone = table.get(f"{_TABLES}name", ""), _hidden_columns(table)
        made = sheet_to_html(name, self._numbered(rows, gone), MAX_CELLS).html
        shapes = table.iterchildren(f"{_TABLES}shapes")
        drawn = [block for shape in shapes for block in self.blocks(shape)]
        yield from [made or f"<h2>{escape(name)}</h2>" * bool(drawn), *drawn]
        self.hidden_columns += len(gone)

    def _numbered(
        self, rows: Iterator[etree._Element], gone: frozenset[int]
    ) -> Iterator[Row]:
        """Yield the filled rows of a sheet that are shown, as often as each is
        repeated, while cells are left.

        Hidden rows are counted and left out, hidden columns emptied."""
        number = 0
        for row in rows:
            check_cancelled()
            cells = self._shown_cells(row, gone)
            times = _count(row, "number-rows-repeated")
            for repeated in range(number + 1, number + 1 + times if cells else 0):
                if self.left < 0:
                    return
                self.left -= len(cells)
                yield repeated, cells
            number += times

    def _shown_cells(self, row: etree._Element, gone: frozenset[int]) -> list[str]:
        """Return the cells of a row of a sheet, those of hidden columns emptied, none of
        a hidden row; hidden words are counted."""
        cells = self._cells(row)
        if cells and _is_collapsed(row):
            self.hidden_rows += 1
            missed, cells = cells, []
        else:
            hidden = gone.intersection(range(len(cells)))
            missed = [cells[column] for column in hidden]
            for column in hidden:
                cells[column] = ""
        self.looks.words += sum(len(said.split()) for said in missed)
        return cells

    def _cells(self, row: etree._Element) -> list[str]:
        cells_of_row = [
            (
                " ".join(filter(None, map(self._text, cell.iter(_H, _P))))
                or cell.get(f"{_OFFICE}string-value", ""),
                _count(cell, "number-columns-repeated"),
            )
            for cell in row.iterchildren(_CELL, _COVERED)
        ]
        while cells_of_row and not cells_of_row[-1][0]:
            cells_of_row.pop()  # rows end in thousands of empty cells
        return [
            text
            for text, count in cells_of_row
            for _ in range(min(count, self.left + 1))
        ]

    def _text(self, element: etree._Element) -> str:
        """Return the visible text of a paragraph, without its frames; "" for one that
        is hidden. Hidden words are counted."""
        if _is_gone(element) or element.get(f"{_TEXT}style-name") in self.hiding:
            self._miss(element)
            return ""
        pieces: list[str] = []
        cell = next(element.iterancestors(_CELL), None)
        under = cell is not None and self.looks.is_unseen(cell, above=False)
        stack: list[tuple[etree._Element | str, bool]] = [(element, under)]
        while stack:
            one, unseen = stack.pop()
            if isinstance(one, str):
                pieces.append(self._seen(one, unseen=unseen))
                continue
            unseen = self.looks.is_unseen(one, above=unseen)
            pieces.append(_BLANK_TAGS.get(one.tag, ""))
            if not unseen and self._is_raised(one):
                pieces.append("^")
            if one.tag == _NOTE:
                pieces.append(f"[{_citation(one)}]")
            elif self._is_left_out(one):
                self._miss(one)
            else:
                stack += [(piece, unseen) for piece in _last_to_first(one)]
        return " ".join("".join(pieces).split())

    def _seen(self, text: str, *, unseen: bool) -> str:
        self.looks.words += unseen * len(text.split())
        return "" if unseen else text

    def _is_raised(self, element: etree._Element) -> bool:
        """Whether a piece of text is a short raised one, as an exponent is."""
        raised = element.get(f"{_TEXT}style-name") in self.raised
        return raised and 0 < len(element.text or "") <= _RAISED_LETTERS

    def _is_left_out(self, element: etree._Element) -> bool:
        """Whether its style hides a piece of text, or a field that hides now."""
        styled = element.get(f"{_TEXT}style-name") in self.hiding
        return styled or (element.tag == _HIDDEN_TEXT and _is_on(element))

    def _miss(self, element: etree._Element) -> None:
        """Count the words of what is left out."""
        self.looks.words += len(" ".join(element.itertext()).split())


_WHOLE_ELEMENTS: Final[
    dict[str, Callable[[_OpenDocumentReader, etree._Element], Iterator[str]]]
] = {
    _ODF_OBJECT: _OpenDocumentReader._object,
    _PAGE: _OpenDocumentReader._slide,
    _TABLE: _OpenDocumentReader._table,
    _LIST: _OpenDocumentReader._list,
    _NOTES: _OpenDocumentReader._speaker_notes,
    _NOTE: lambda _reader, _note: iter(()),  # after its paragraph
}
"""Elements that are read by one method with all that they hold."""


def _last_to_first(element: etree._Element) -> Iterator[etree._Element | str]:
    """Yield the texts and the elements of a piece of text, from its end; what is read
    elsewhere, or not shown, is left out."""
    for child in reversed(element):
        yield child.tail or ""
        if isinstance(child.tag, str) and child.tag not in _APART:
            yield child
    yield element.text or ""


def _is_in_cell(element: etree._Element) -> bool:
    return next(element.iterancestors(_CELL), None) is not None


def _area(frame: etree._Element) -> float:
    """Return how large a frame is, in square centimetres; 0 where that is not said."""
    area = 1.0
    for side in ("width", "height"):
        found = _ODF_LENGTH.fullmatch(frame.get(f"{_SVG}{side}", ""))
        area *= float(found[1]) * _CENTIMETRES[found[2]] if found else 0.0
    return area


def _is_on(element: etree._Element) -> bool:
    """Whether a field hides now."""
    said: str = element.get(f"{_TEXT}is-hidden", "true")
    return said != "false"


def _is_gone(paragraph: etree._Element) -> bool:
    """Whether a field in a paragraph hides it."""
    return any(map(_is_on, paragraph.iterchildren(f"{_TEXT}hidden-paragraph")))


def _is_collapsed(part: etree._Element) -> bool:
    """Whether a row or column of a sheet is hidden, by itself or with a group around
    it."""
    above = (one.get(f"{_TABLES}display") for one in part.iterancestors(*_GROUPS))
    return "false" in above or bool(
        part.get(f"{_TABLES}visibility", "visible") != "visible"
    )


def _hidden_columns(table: etree._Element) -> frozenset[int]:
    """Return the columns of a sheet that are hidden, counted from 0."""
    found: set[int] = set()
    at = 0
    for column in table.iter(f"{_TABLES}table-column"):
        times = min(_count(column, "number-columns-repeated"), MAX_CELLS)
        if _is_collapsed(column) and at < MAX_CELLS:
            found.update(range(at, at + times))
        at += times
    return frozenset(found)


def _block(element: etree._Element, text: str, *, in_item: bool) -> str:
    if element.tag == _H:
        level = element.get(f"{_TEXT}outline-level", "2")
        level = min(6, max(1, int(level))) if level.isdigit() else 2
        return f"<h{level}>{text}</h{level}>"
    return f"<ul><li>{text}</li></ul>" if in_item else f"<p>{text}</p>"


def _citation(note: etree._Element) -> str:
    return child_text(note, "note-citation") or "*"


def _count(element: etree._Element, name: str) -> int:
    return whole_number(element.get(f"{_TABLES}{name}", ""), 1, digits=7)


def opendocument_to_html(body: bytes) -> Converted:
    """Return an OpenDocument file as HTML; raises `Unreadable` for one that is damaged,
    has a password, is too large unpacked, or without text."""
    with open_package(body, "an OpenDocument file") as package:
        if b"encryption-data" in package.read("META-INF/manifest.xml"):
            raise Unreadable(
                "it is an OpenDocument file with a password: save a copy without one"
            )
        meta, content = package.tree("meta.xml"), package.tree("content.xml")
        if content is None:
            raise Unreadable("it is an OpenDocument file without text")
        about = meta[0] if meta is not None and len(meta) else None
        return _converted(about, content, package.tree("styles.xml"), package.tree)


def flat_opendocument_to_html(body: bytes) -> Converted | None:
    """Return an OpenDocument file that is one XML file as HTML; None for other XML, and
    for XML with entities of its own.

    Raises `Unreadable` for any XML of more than `MAX_PART_TAGS` tags, and for a file without
    text."""
    if body.count(b"<") > MAX_PART_TAGS:
        raise Unreadable(
            f"it is an OpenDocument file with more than {MAX_PART_TAGS:,} "
            "XML elements: split it"
        )
    root = parse_xml(body)
    if root is None or root.tag != f"{_OFFICE}document":
        return None
    return _converted(root.find(f"{_OFFICE}meta"), root, root, lambda _: None)


def _converted(
    about: etree._Element | None,
    content: etree._Element,
    styles: etree._Element | None,
    parts: Callable[[str], etree._Element | None],
) -> Converted:
    """Return a file as HTML by what it says of itself, its content and its styles;
    `parts` returns a file inside it by its name, None for a missing one.

    Hidden parts are left out, and notes say how many. Raises `Unreadable` for a file
    without text."""
    title = child_text(about, "title") if about is not None else ""
    author = (
        child_text(about, "creator", "initial-creator") if about is not None else ""
    )
    # Automatic styles of the other part are those of headers and masters, by the same names.
    common = styles.find(f"{_OFFICE}styles") if styles is not None else None
    named = [tree for tree in (common, content) if tree is not None]
    reader = _OpenDocumentReader(frozenset().union(*map(_hiding, named)), parts=parts)
    reader.raised = _raised(content)
    reader.numbers = _numbers(styles) | _numbers(content)
    for tree in named:
        reader.looks.add(tree)
    body = content.find(f"{_OFFICE}body")
    body = content if body is None else body
    blocks = list(reader.blocks(body))
    reader.count(body)
    blocks += reader.margins(styles, body)
    if not any(blocks):
        raise Unreadable("it is an OpenDocument file without text")
    unread = UNREAD_CELLS if reader.left < 0 else ""
    return Converted(
        whole_page("\n".join(blocks), title=title),
        title,
        author=author,
        notes=_notes(reader),
        unread=unread,
        hidden=reader.looks.words,
        ledger=reader.ledger,
    )


def _notes(reader: _OpenDocumentReader) -> tuple[str, ...]:
    """Return what of a file was left out as hidden."""
    kind = "slides" if reader.slides else "sheets"
    left_out = {
        f"hidden {kind}": reader.hidden,
        "hidden rows": reader.hidden_rows,
        "hidden columns": reader.hidden_columns,
        "hidden words": reader.looks.words,
    }
    return tuple(
        f"OpenDocument: {what} left out: {number}"
        for what, number in left_out.items()
        if number
    )


def _numbers(tree: etree._Element | None) -> dict[tuple[str, int], etree._Element]:
    """Return how lists are numbered, by style and level; malformed levels are left
    out."""
    return {
        (style.get(f"{_STYLE}name", ""), int(level.get(f"{_TEXT}level", "1"))): level
        for style in all_of(tree, _LIST_STYLE)
        for level in style.iterchildren(_NUMBER)
        if level.get(f"{_TEXT}level", "1").isdecimal()
    }


def _raised(content: etree._Element) -> frozenset[str]:
    """Return the names of the styles that raise what has them."""
    named = (
        style
        for style in content.iter(_NAMED)
        for inner in style.iterchildren(f"{_STYLE}text-properties")
        if inner.get(f"{_STYLE}text-position", "").startswith("super")
    )
    return frozenset(style.get(f"{_STYLE}name", "") for style in named)


def spelled(number: int, form: str) -> str:
    """Return a number as `1`, `a`, `A`, `i` or `I` writes it; in digits for any other
    form, and where letters or Roman numbers cannot write it."""
    if form in {"a", "A"} and number > 0:
        letter = chr(ord(form) + (number - 1) % 26)
        return letter * min(9, (number - 1) // 26 + 1)
    return numeral(number, form)


def _hiding(content: etree._Element) -> frozenset[str]:
    """Return the names of the styles that hide what has them."""
    return frozenset(
        style.get(f"{_STYLE}name", "")
        for style in content.iter(_NAMED)
        for inner in style.iterchildren(*_HIDING)
        if inner.get(_HIDING[inner.tag][0]) == _HIDING[inner.tag][1]
    )
