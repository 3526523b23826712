"""XLSX to HTML: the sheets that are shown, each cell as its format shows it, with
notes, charts and texts of drawings.

Rows are read one after the other, each freed when it is written down. Merged cells span
what they cover. Hidden rows, columns, sheets and values are left out and counted,
formulas that were never computed are written and said. Not for: older `.xls` and binary
`.xlsb` files, pivot caches, how rows become tables (`sheets.py`)."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from lxml import etree

from extras.documents.drawing import (
    FALLBACK,
    RELATION,
    described,
    drawn,
    image_html,
    is_decorative,
    texts_of,
)
from extras.documents.number_format import (
    BUILT_IN,
    EPOCH,
    EPOCH_1904,
    shown,
    shown_text,
)
from extras.documents.package import Package, all_of, open_package, whole_number
from extras.documents.sheets import UNREAD_CELLS, Merged, Row, address, sheet_to_html
from extras.documents.workbook_looks import Unseen
from pipeline.document.converted import (
    LEAST_SIZE,
    MAX_CELLS,
    Converted,
    Unreadable,
    escape,
    placed,
    whole_page,
)
from pipeline.document.ledger import Ledger
from pipeline.read.text import XML_OPTIONS
from pipeline.work import check_cancelled

_VML: Final = "{urn:schemas-microsoft-com:vml}"
X: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
MAX_ROW_BYTES: Final = 2_000_000
"""Of XML, which is held in memory as one; 16,384 cells take a third of it."""
LAST_COLUMN: Final = 16_384
_LEAST_WIDTH: Final = 0.3
"""Letters of width below which a column shows none."""
_ROW_END: Final = re.compile(rb"</(?:\w+:)?row>")
_MERGED_CELLS: Final = re.compile(
    rb"<(?:\w+:)?mergeCell\b[^<>]*?\bref=[\"']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})[\"']"
)
_COLUMN: Final = re.compile(rb"<(?:\w+:)?col\b([^<>]*)>")
_CELL_VALUE: Final = re.compile(rb"<(?:\w+:)?(?:v|is)(?:\s[^<>]*)?>(?!</)")
_ON: Final = frozenset({"1", "true"})
_CHUNK: Final = 1 << 18
"""Bytes of XML that are parsed at a time."""
_MARGIN_CODE: Final = re.compile(r'&(?:"[^"]*"|\d{1,3}|K[\dA-F]{6}|[A-Z])')
_MEANINGFUL_LETTERS: Final = 5
"""Letters from which one word is more than the name of the page's number."""
_VALIDATION: Final = re.compile(rb"<(?:\w+:)?dataValidation\b([^<>]*)>")
_RAISED: Final = re.compile(r"[-+−]?\d{1,4}")


@dataclass(slots=True)
class _Book:
    """What holds for all sheets of a file."""

    package: Package
    strings: Sequence[str] = ()
    formats: Sequence[str] = ()
    """By the number of a cell's style."""
    epoch: datetime = EPOCH
    ledger: Ledger = field(default_factory=Ledger)
    left: int = MAX_CELLS
    """Cells that may still be read."""
    unseen: Unseen = field(default_factory=Unseen)
    hidden_rows: int = 0
    hidden_columns: int = 0
    hidden_words: int = 0

    def text(self, cell: etree._Element) -> str:
        """Return a cell as it is shown; empty for one without content, and for a
        picture or record in a cell, which counts as unread."""
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            inline = cell.find(f"{X}is")
            return "" if inline is None else self._words(_string(inline), cell)
        value, formula = cell.find(f"{X}v"), cell.find(f"{X}f")
        if value is not None and value.text:
            return self._value(kind, value.text, cell)
        is_open = formula is not None and kind != "str"
        return self._uncomputed(formula) if is_open else ""

    def _value(self, kind: str, said: str, cell: etree._Element) -> str:
        """Return what a cell of a kind says, as it is shown."""
        match kind:
            case "n":
                return self._number(said, cell)
            case "s":
                known = said.isdecimal() and int(said) < len(self.strings)
                return self._words(self.strings[int(said)] if known else "", cell)
            case "str":
                return self._words(said, cell)
            case "b":
                return "TRUE" if said == "1" else "FALSE"
            case "e" if cell.get("vm"):
                self.ledger.hold("cell")  # a picture, or a record of another service
                return ""
        return said.strip()

    def _words(self, said: str, cell: etree._Element) -> str:
        return shown_text(" ".join(said.split()), self._format(cell))

    def _number(self, said: str, cell: etree._Element) -> str:
        try:
            number = float(said)
        except ValueError:
            return said
        made = shown(number, self._format(cell), self.epoch)
        self.hidden_words += not made
        return made

    def _format(self, cell: etree._Element) -> str:
        style = cell.get("s", "0")
        number = whole_number(style, digits=5)
        return self.formats[number] if number < len(self.formats) else "General"

    def _uncomputed(self, formula: etree._Element) -> str:
        self.ledger.hold("formula")
        return f"={formula.text or '…'}"


@dataclass(slots=True)
class _SheetPart:
    """One sheet's part."""

    book: _Book
    body: bytes
    part: str
    hidden_columns: frozenset[int] = frozenset()
    """Counted from 0."""
    unseen: frozenset[str] = frozenset()
    """Styles of cells that show nothing."""
    emptied: set[int] = field(default_factory=set)
    """Hidden columns that held something."""
    dropped: int = 0
    """Cells with a value that show nothing or are hidden, less those that show a
    formula."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows that are shown, while cells are left, hidden columns emptied.

        What follows the row that exceeds `left` is not read; a sheet whose XML breaks
        off is noted as damaged."""
        parser = etree.XMLPullParser(
            ("end",), tag=f"{X}row", remove_comments=True, **XML_OPTIONS
        )
        number = 0
        for start in range(0, len(self.body), _CHUNK):
            check_cancelled()
            parser.feed(self.body[start : start + _CHUNK])
            for row in [one for _, one in parser.read_events()]:
                said = row.get("r", "")
                number = whole_number(said, number + 1, digits=7)
                cells = self._cells(row)
                row.clear()
                while row.getprevious() is not None:
                    del row.getparent()[0]
                if not cells:
                    continue
                self.book.left -= len(cells)
                if self.book.left < 0:
                    return
                yield number, cells
        parser.close()
        self.book.package.note_damage(self.part, parser.feed_error_log)

    def _cells(self, row: etree._Element) -> list[str]:
        """Return the cells of a row up to the last that holds something, none of a
        hidden row. Hidden words are counted, columns from `LAST_COLUMN` on dropped."""
        cells: dict[int, str] = {}
        column = -1
        for cell in row.iterchildren(f"{X}c"):
            said = _column(cell.get("r", ""))
            column = said if said >= 0 else column + 1
            text = self.book.text(cell)
            if text and cell.get("s", "0") in self.unseen:
                self.book.hidden_words += len(text.split())
                text = ""
            if text and column < LAST_COLUMN:
                cells[column] = text
            self.dropped += _has_value(cell) - bool(text)
        self._drop_hidden(row, cells)
        return (
            [cells.get(column, "") for column in range(max(cells) + 1)] if cells else []
        )

    def _drop_hidden(self, row: etree._Element, cells: dict[int, str]) -> None:
        """Take out the cells of a hidden row, else those of hidden columns, and count
        them."""
        if row.get("hidden") in _ON or _size(row.get("ht")) < LEAST_SIZE:
            gone = set(cells)
            self.book.hidden_rows += bool(cells)
        else:
            gone = set(cells) & self.hidden_columns
            self.emptied |= gone
        self.dropped += len(gone)
        self.book.hidden_words += sum(len(cells.pop(one).split()) for one in gone)


def _size(said: str | None) -> float:
    """Return a height or width, without end where none is said."""
    try:
        return math.inf if said is None else float(said)
    except ValueError:
        return math.inf


def _has_value(cell: etree._Element) -> bool:
    value = cell.find(f"{X}v")
    return bool(value.text) if value is not None else cell.find(f"{X}is") is not None


@lru_cache(65_536)
def _column(reference: str) -> int:
    """Return the column that the address of a cell begins with (at most three
    capitals), counted from 0; -1 for none."""
    number = 0
    for letter in reference[:3]:
        if not "A" <= letter <= "Z":
            break
        number = number * 26 + ord(letter) - 64
    return number - 1


def xlsx_to_html(body: bytes) -> Converted:
    """Return a workbook as HTML, a section for each sheet that is shown; raises
    `Unreadable` for one that is damaged, too large unpacked, or without text.

    Hidden sheets are left out, and a note says how many. Cells beyond the cap are named
    as unread."""
    with open_package(body, "a workbook") as package:
        title, author = package.about()
        main = package.main("xl/workbook.xml")
        book, known = _open(package, main)
        sections, hidden = list[str](), 0
        for sheet in all_of(package.tree(main), f"{X}sheet"):
            kind, part = known.get(sheet.get(f"{RELATION}id", ""), ("", ""))
            if sheet.get("state", "visible") != "visible":
                hidden += bool(package.read(part))
            elif kind not in {"worksheet", "chartsheet"}:
                book.ledger.hold("sheet", bool(package.read(part)))
            elif book.left >= 0:
                sections.append(
                    _sheet(book, " ".join(sheet.get("name", "").split()), part)
                )
        unread = "; ".join(
            filter(None, (UNREAD_CELLS if book.left < 0 else "", package.unread))
        )
    if not any(sections):
        raise Unreadable(
            f"it is a workbook {'that is damaged' if package.damaged else 'without text'}"
        )
    inner = whole_page("\n".join(filter(None, sections)), title=title)
    notes = _notes(book, hidden)
    return Converted(
        *(inner, title, "", author, "", notes, unread),
        hidden=book.hidden_words,
        ledger=book.ledger,
    )


def _notes(book: _Book, sheets: int) -> tuple[str, ...]:
    gone = {"sheets": sheets, "rows": book.hidden_rows, "columns": book.hidden_columns}
    notes = [
        f"workbook: hidden {kind} left out: {number}"
        for kind, number in gone.items()
        if number
    ]
    if book.hidden_words:
        notes.append(f"workbook: hidden words removed: {book.hidden_words}")
    return tuple(notes)


def _open(package: Package, main: str) -> tuple[_Book, dict[str, tuple[str, str]]]:
    """Return what holds for all sheets, and what the workbook refers to; a missing part
    of strings or styles holds nothing."""
    known = package.targets(main)
    parts = dict(reversed(known.values()))

    def tree(kind: str) -> etree._Element | None:
        return package.tree(parts.get(kind, f"xl/{kind}.xml"))

    book = _Book(package)
    strings, styles, root = tree("sharedStrings"), tree("styles"), package.tree(main)
    if strings is not None:
        book.strings = [_string(one) for one in strings.iterchildren(f"{X}si")]
    if styles is not None:
        book.formats, book.unseen = _formats(styles), Unseen(styles)
    about = root.find(f"{X}workbookPr") if root is not None else None
    if about is not None and about.get("date1904") in _ON:
        book.epoch = EPOCH_1904
    return book, known


def _formats(styles: etree._Element) -> list[str]:
    """Return the format of numbers of each style of cells, `General` for an unknown
    one."""
    known: dict[int, str] = dict(BUILT_IN)
    for one in styles.iter(f"{X}numFmt"):
        known[_number(one.get("numFmtId", ""))] = one.get("formatCode", "")
    return [
        known.get(_number(one.get("numFmtId", "")), "General")
        for one in styles.iterfind(f"{X}cellXfs/*")
    ]


def _number(said: str) -> int:
    return whole_number(said, digits=7)


def _string(element: etree._Element) -> str:
    """Return the text of a string with its raised digits marked, its readings for
    pronunciation left out."""
    parts = []
    for one in element.iterchildren(f"{X}t", f"{X}r"):
        text = (
            one.text
            if one.tag == f"{X}t"
            else "".join(inner.text or "" for inner in one.iterchildren(f"{X}t"))
        )
        raised = one.find(f"{X}rPr/{X}vertAlign")
        is_raised = raised is not None and raised.get("val") == "superscript"
        parts.append(
            f"^{text}" if is_raised and _RAISED.fullmatch(text or "") else text or ""
        )
    return " ".join("".join(parts).split())


def _sheet(book: _Book, name: str, part: str) -> str:
    """Return a sheet with what belongs to it as HTML, empty where it has nothing.

    Raises `Unreadable` for a row of over `MAX_ROW_BYTES` bytes."""
    body = book.package.read(part)
    if max(map(len, _ROW_END.split(body)), default=0) > MAX_ROW_BYTES:
        raise Unreadable(
            f"it is a workbook with a row of over {MAX_ROW_BYTES:,} bytes: save it as CSV"
        )
    # Tables and conditions fill cells by rules of their own.
    filled = b"<tablePart" in body or b"conditionalFormatting" in body
    grid = _SheetPart(
        book,
        body,
        part,
        _hidden_columns(body),
        book.unseen.tiny | (frozenset() if filled else book.unseen.faint),
    )
    made = sheet_to_html(name, grid.rows(), MAX_CELLS, _merged(body))
    book.hidden_columns += len(grid.emptied)
    if book.left >= 0:  # what follows the cap is said
        book.ledger.hold("cell", sum(1 for _ in _CELL_VALUE.finditer(body)))
        book.ledger.give("cell", made.cells + grid.dropped)
    links = book.package.targets(part)
    further = [
        *_margin(body),
        *_prompts(name, body),
        *_comments(book, name, links),
        *_drawings(book, links),
        *_labels(book, links),
    ]
    if body.count(b"oleObject ") and (
        objects := [
            kind for kind, _ in links.values() if kind in {"oleObject", "package"}
        ]
    ):
        book.ledger.hold("embedded object", len(objects))
    return (
        "\n".join([made.html or f"<h2>{escape(name)}</h2>", *further])
        if further
        else made.html
    )


def _hidden_columns(body: bytes) -> frozenset[int]:
    """Return the columns of a sheet that are hidden or of no width."""
    found: set[int] = set()
    for said in _COLUMN.finditer(
        body[: body.find(b"<sheetData")] if b"<sheetData" in body else body[:_CHUNK]
    ):
        marks = dict(re.findall(rb"(\w+)\s*=\s*[\"']([^\"']*)[\"']", said[1]))
        width = marks.get(b"width")
        narrow = (
            width is not None and _size(width.decode("ascii", "replace")) < _LEAST_WIDTH
        )
        if marks.get(b"hidden") in {b"1", b"true"} or narrow:
            first, last = (
                _number(marks.get(end, b"").decode("ascii", "replace"))
                for end in (b"min", b"max")
            )
            found.update(range(max(first, 1) - 1, min(last, LAST_COLUMN)))
    return frozenset(found)


def _merged(body: bytes) -> list[Merged]:
    """Return the cells of a sheet that cover others."""
    found = []
    for match in _MERGED_CELLS.finditer(body):
        left, top, right, bottom = (one.decode() for one in match.groups())
        found.append(Merged(int(top), _column(left), int(bottom), _column(right)))
    return found


def _margin(body: bytes) -> list[str]:
    """Return what header and footer of the printed sheet say, once.

    Texts of over 2,000 bytes, and single short words, are dropped."""
    found = re.findall(
        rb"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)>([^<]{1,2000})<", body
    )
    texts = (one.decode("utf-8", "replace").replace("&amp;", "&") for one in found)
    said = (" ".join(_MARGIN_CODE.sub(" ", text).split()) for text in texts)
    return [
        f"<p>{text}</p>"
        for text in dict.fromkeys(said)
        if any(map(str.isalpha, text))
        and (" " in text or len(text) >= _MEANINGFUL_LETTERS)
    ]


def _prompts(name: str, body: bytes) -> Iterator[str]:
    """Yield what cells say to whom fills them in."""
    for found in _VALIDATION.finditer(body):
        asked = etree.fromstring(
            b"<a " + found[1].rstrip(b"/") + b"/>", etree.XMLParser(**XML_OPTIONS)
        )
        said = (
            [asked.get(key, "") for key in ("promptTitle", "prompt")]
            if asked is not None
            else []
        )
        text = " ".join(" ".join(said).split())
        if text:
            yield _note(name, asked.get("sqref", "").partition(" ")[0], text)


def _note(sheet: str, position: str, text: str) -> str:
    """Return what is said at a cell, or at a range by its first cell."""
    first = position.partition(":")[0]
    row = _number(first.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    place = address(sheet, row, [_column(first)])
    return placed(escape(f"Note at {position}: {text}"), place, tag="p")


def _labels(book: _Book, links: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the texts of buttons, boxes and other controls on a sheet."""
    for root in book.package.roots(links, "vmlDrawing"):
        for box in root.iter(f"{_VML}textbox"):
            if text := " ".join(" ".join(box.itertext()).split()):
                yield f"<p>{escape(text)}</p>"


def _comments(
    book: _Book, name: str, links: dict[str, tuple[str, str]]
) -> Iterator[str]:
    """Yield the notes of a sheet, threaded comments instead of their placeholder
    notes."""
    found = [
        (one.get("ref", ""), _joined(one, "{*}text"))
        for root in book.package.roots(links, "threadedComment")
        for one in root.iter("{*}threadedComment")
    ]
    anchored = {reference for reference, _ in found}
    found += [
        (one.get("ref", ""), _joined(one, f"{X}t"))
        for root in book.package.roots(links, "comments")
        for one in root.iter(f"{X}comment")
        if one.get("ref", "") not in anchored
    ]
    for reference, text in found:
        if text:
            book.ledger.hold("comment")
            book.ledger.give("comment")
            yield _note(name, reference, text)


def _joined(comment: etree._Element, tag: str) -> str:
    """Return the texts of a comment's elements with a tag as one line."""
    return " ".join("".join(one.text or "" for one in comment.iter(tag)).split())


def _drawings(book: _Book, links: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the charts, texts and described pictures that are drawn over a sheet; what
    cannot be read counts as unread."""
    for kind, part in links.values():
        root = book.package.tree(part) if kind == "drawing" else None
        if root is None:
            continue
        for twin in list(root.iter(FALLBACK)):
            twin.clear()
        for shape in root.iter("{*}sp", "{*}cxnSp", "{*}pic"):
            yield from _shape(book, shape)
        yield from drawn(root, book.package, book.package.targets(part), book.ledger)


def _shape(book: _Book, shape: etree._Element) -> Iterator[str]:
    """Yield the texts of a shape, without any its description; one that shows a picture
    without either is in the ledger."""
    texts = [text for text in texts_of(shape) if text]
    about = next(shape.iter("{*}cNvPr"), None)
    if texts:
        yield from (f"<p>{escape(text)}</p>" for text in texts)
    elif alt := described(about):
        yield f"<p>{image_html(alt)}</p>"
    elif next(
        shape.iter("{*}blip", "{*}blipFill"), None
    ) is not None and not is_decorative(about):
        book.ledger.hold("image")
