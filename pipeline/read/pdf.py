"""PDF to HTML: lines with their font sizes become headings, paragraphs and tables, each page a section with its place.

A PDF says where glyphs stand, not what they are: a line set clearly larger than most text is a heading, a gap wider
than the usual leading ends a paragraph, a fixed-width font is code, a line that recurs at the edge of most pages is
furniture, and neighbouring lines whose pieces stand below one another are a table. Text keeps the order in which the
file draws it, which is the reading order of columns in what type-setters and word processors write. Pages that are
images, and image files, are recognised where the extra `ocr` is installed (`pipeline/read/scan.py`). Not for: tables
drawn column by column, rotated text, cells that span columns.
"""

import io
import json
import logging
import re
import struct
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pypdf import Configuration, PageObject, PdfReader, apply_configuration
from pypdf.errors import DependencyError, PyPdfError

from pipeline.documents import Trust
from pipeline.read.converted import (
    INSTALL_OCR,
    MOST_PIXELS,
    PAGE_SECONDS,
    PLACE,
    WHOLE,
    Converted,
    Span,
    Unreadable,
    can_recognise,
    person,
    placed,
    whole_page,
)
from pipeline.read.pdf_ink import SHOWS, Ink, layers_off, letters_of, times
from pipeline.read.pdf_lines import TYPE, Cell, Line, parts_of, sizes_of
from pipeline.read.sniff import PDF
from pipeline.work import check_cancelled

if TYPE_CHECKING:
    from pipeline.read.images import ImageScans, PdfScans

SECONDS: Final = 60.0
"""Processor time for one reading: 400 pages as heavy as any seen (a browser's print, 140 ms each). Far above what files
need, since where time cuts a file another run would cut it elsewhere."""
MAX_PAGES: Final = 500
"""Of one reading: some 250,000 words, more than any call shows. The rest can be asked for."""
_CAPS: Final = Configuration(
    zlib_maximum_output_length=20_000_000,
    lzw_maximum_output_length=20_000_000,
    run_length_maximum_output_length=20_000_000,
    array_based_stream_maximum_output_length=20_000_000,
    stream_decoding_work_maximum_length=60_000_000,
    stream_parsing_work_maximum_count=600_000,
    page_tree_maximum_entries=20_000,
    page_tree_maximum_page_entries=300_000,
    xform_maximum_invocations_per_extraction=1_000,
)
"""pypdf's own limits, tightened: the page tree and one page's content stream are read without a look at the clock.
600,000 tokens take about 2 s; the densest real page seen (a street map) has 180,000."""
SCAN_SECONDS: Final = 12.0
"""Processor time after which one reading begins to recognise no further page, and which one page may take; a dense page
of A4 takes 5 to 9 s. A call waits 25 s, and is told which pages to ask for next."""
_STRAY: Final = 40
"""Letters up to which the text of a page that shows an image is a stamp or a number, and the image is looked at."""
_NEAR: Final = 6
"""Characters by which the start of a piece may be misjudged: one byte need not be one letter."""
_FIXED_WIDTH: Final = re.compile(r"mono|courier|consol|cmtt|typewriter|menlo", re.IGNORECASE)
_LIGATURES: Final = str.maketrans(dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)))
"""Letters that type-setters join; nobody searches for the joined form."""
_DIGITS: Final = re.compile(r"\d+")
_TROUBLE: Final = {
    "slow": "take too long to read",
    "damaged": "are damaged",
    "refused": f"show images that are damaged, or have over {MOST_PIXELS:,} pixels",
    "unsighted": f"are images, whose text needs OCR: {INSTALL_OCR}",
    "image": "are images without text",
    "part": "were recognised in part, since they take too long",
    "waiting": "are images that this reading had no time to recognise",
}
"""What keeps a page from being read, or from being read whole."""
_SCANNED: Final = frozenset({"refused", "unsighted", "image", "waiting"})
# What pypdf is known to raise over damaged files; it has no single base for them.
_DAMAGED: Final = (
    *(PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
    *(AssertionError, NotImplementedError, OSError, EOFError, struct.error, zlib.error),
)

logging.getLogger("pypdf").setLevel(logging.ERROR)


class _OutOfTime(BaseException):
    """The time budget is used up inside a page; no `Exception`, which pypdf swallows inside of forms."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text that was set in one go, `x` and `y` points from the page's left and bottom."""

    text: str
    height: float
    x: float
    y: float
    fixed: bool


@dataclass(frozen=True, slots=True)
class _PageLines:
    """What was read of one page."""

    lines: list[Line]
    trouble: str = ""
    """A key of `_TROUBLE` where it could not be read."""
    hidden: int = 0
    """Pieces of text that nobody sees and that were left out."""
    is_scan: bool = False
    """Whether it shows an image only, and its lines lie unseen behind that."""
    height: float = 0.0
    """Of the page, where its lines were recognised by us; else 0."""
    took: float = 0.0
    """Processor seconds of that."""
    unsure: int = 0
    """Lines that could not be recognised and were left out."""
    known: str = ""
    """The writings that the recogniser knows, where lines were left out."""


def _line(text: str, size: float, y: float, fixed: bool, cells: Sequence[Any]) -> Line:
    return Line(text, size, y, fixed, [Cell(*cell) for cell in cells])


@dataclass(slots=True)
class _Pen:
    """Collects what pypdf's visitor reports into lines."""

    ends: float
    """Processor time of this thread at which the budget is used up."""
    ink: Ink | None = None
    """Leaves out what nobody sees; None takes all."""
    lines: list[Line] = field(default_factory=list)
    pieces: list[_Piece] = field(default_factory=list)
    shown: list[tuple[float, int]] = field(default_factory=list)
    """Where text was set since the last piece, and how many bytes of it: pypdf joins what stands on one line."""
    operations: int = 0

    def look(self, operator: object, operands: object, cm: Sequence[float], tm: Sequence[float]) -> None:
        """Note where text is set and seen; leave a page that never ends."""
        if self.ink is not None and isinstance(operator, bytes) and isinstance(operands, list):
            self.ink.before(operator, operands, cm, tm)
        if operator in SHOWS and isinstance(operands, list):
            self.shown.append((times(tm, cm)[4], letters_of(operands)))
        self.operations += 1
        if self.operations % 256 == 0:
            check_cancelled()
            if time.thread_time() > self.ends:
                raise _OutOfTime

    def write(self, text: str, cm: Sequence[float], tm: Sequence[float], font: object, size: float | None) -> None:
        """Take one piece of text with its matrices and font."""
        height = abs(size or 0.0) * (abs(tm[3]) or abs(tm[1]) or 1.0) * (abs(cm[3]) or abs(cm[1]) or 1.0)
        *_, x, y = times(tm, cm)
        name = str(font.get("/BaseFont", "")) if isinstance(font, dict) else ""
        fixed = bool(_FIXED_WIDTH.search(name))
        first, *rest = text.translate(_LIGATURES).split("\n")
        if first:
            self.pieces.extend(_Piece(part, height, at, y, fixed) for part, at in _apart(first, x, self.shown))
        self.shown.clear()
        for part in rest:
            self.end_line()
            if part:
                self.pieces.append(_Piece(part, height, x, y, fixed))

    def end_line(self) -> None:
        text = "".join(piece.text for piece in self.pieces).rstrip()
        if text.strip():
            sizes: Counter[float] = Counter()
            fixed = 0
            for piece in self.pieces:
                letters = len(piece.text.strip())
                sizes[round(piece.height, 1)] += letters
                fixed += letters if piece.fixed else 0
            y = next(piece.y for piece in self.pieces if piece.text.strip())
            is_fixed = fixed * 2 > len(text.strip())
            self.lines.append(Line(text, sizes.most_common(1)[0][0], y, is_fixed, _cells(self.pieces)))
        self.pieces.clear()


def _apart(text: str, x: float, shown: Sequence[tuple[float, int]]) -> list[tuple[str, float]]:
    """Return a text that was set in several goes cut at the spaces nearest to where each go began, with its place."""
    total = sum(length for _, length in shown)
    if len(shown) < 2 or not total:
        return [(text, x)]
    parts: list[tuple[str, float]] = []
    begin, at, done = 0, shown[0][0], shown[0][1]
    for place, length in shown[1:]:
        space = _space_near(text, begin, round(done / total * len(text)))
        if space > begin:
            parts.append((text[begin:space], at))
            begin, at = space, place
        done += length
    parts.append((text[begin:], at))
    return parts


def _space_near(text: str, begin: int, wanted: int) -> int:
    """Return the space after `begin` that is nearest to `wanted`, or -1."""
    before = text.rfind(" ", max(begin, wanted - _NEAR), wanted + 1)
    after = text.find(" ", max(wanted, begin), wanted + _NEAR)
    return min((place for place in (before, after) if place >= 0), key=lambda place: abs(place - wanted), default=-1)


def _cells(pieces: Sequence[_Piece]) -> list[Cell]:
    """Return the pieces of a line joined where no wide gap is between them."""
    cells: list[Cell] = []
    before = pieces[0]
    for piece in pieces:
        text = piece.text.strip()
        if not text:
            continue
        size = piece.height or 1.0
        right = piece.x + _width(text, size, fixed=piece.fixed)
        if cells and -size < piece.x - cells[-1].left and piece.x - cells[-1].right < TYPE.gap * size:
            if piece.text[:1].isspace() or before.text[-1:].isspace():
                cells[-1].parts.append((text, piece.x))
            else:
                whole, left = cells[-1].parts[-1]
                cells[-1].parts[-1] = (whole + text, left)
            cells[-1].right = max(cells[-1].right, right)
        else:
            cells.append(Cell(piece.x, right, [(text, piece.x)]))
        before = piece
    return cells


class PdfReading:
    """A PDF on its way to HTML, page by page; what was read can be kept, and another process goes on from there."""

    kind: ClassVar = "a PDF"
    box: ClassVar = "viewrect"
    """How a link names a part of a page (RFC 8118)."""

    def __init__(
        self,
        body: bytes,
        span: Span = WHOLE,
        kept: bytes = b"",
        *,
        sighted: bool = True,
        scan_seconds: float = SCAN_SECONDS,
    ) -> None:
        """Open a file, of whose pages in `span` at most `MAX_PAGES` are read; `kept` is what an earlier reading kept.

        Not `sighted`, it recognises nothing: other documents come first, or an image has ended a process. After
        `scan_seconds` of processor time it begins to recognise no further page.

        Raises `Unreadable`: encrypted, damaged, or without these pages.
        """
        self._body, self._sighted, self._scan_seconds = body, sighted, scan_seconds
        self._open()
        self._span = span
        self.first = span[0]
        self._wanted = min(span[1] or self.count, self.count)
        self._last = min(self._wanted, self.first + MAX_PAGES - 1)
        if self.count and self.first > self._last:
            raise Unreadable(
                f"it is {self.kind} of {self.count} pages, and pages {self.first} to {span[1]} were asked for"
            )
        self.pages = [
            _PageLines([_line(*line) for line in lines], *about) for lines, *about in map(json.loads, kept.splitlines())
        ]

    def _open(self) -> None:
        with apply_configuration(_CAPS):
            self._reader, self.count = _open(self._body)
            self._off = layers_off(self._reader)

    @property
    def done(self) -> bool:
        """Whether nothing is left to read."""
        return len(self.pages) >= self._last - self.first + 1

    def read(self, seconds: float, *, left: float = SECONDS) -> None:
        """Read on for about `seconds` of processor time, a page at least, and never longer than `left`."""
        with apply_configuration(_CAPS):
            began = time.thread_time()
            while not self.done and time.thread_time() < began + seconds:
                check_cancelled()
                page_began = time.thread_time()
                number = self.first + len(self.pages)
                try:
                    found = self._read_page(number, min(page_began + PAGE_SECONDS, began + left))
                    if found.trouble in {"image", "few"}:
                        found = self._recognised(found, number)
                except _OutOfTime:
                    if time.thread_time() >= began + left:
                        return
                    found = _PageLines([], "slow")
                except _DAMAGED:
                    found = _PageLines([], "damaged")
                self.pages.append(found)

    def _read_page(self, number: int, ends: float) -> _PageLines:
        return _read_page(self._reader.pages[number - 1], self._off, ends)

    def _recognised(self, found: _PageLines, number: int) -> _PageLines:
        """Return a page that shows an image with what is read off that; one with a few letters as it is, if no more."""
        given = replace(found, trouble="") if found.trouble == "few" else None
        if not can_recognise():
            return given or replace(found, trouble="unsighted")
        if not self._sighted:
            return given or replace(found, trouble="slow")
        if sum(page.took for page in self.pages) >= self._scan_seconds:
            return replace(found, trouble="waiting")
        try:
            shown = self._scans.page(number)
        except Unreadable:
            return given or replace(found, trouble="refused")
        from pipeline.read.scan import known_writings, read_lines  # noqa: PLC0415  an extra, and 1.4 s of imports

        began = time.thread_time()
        lines, unsure, whole = read_lines(shown, began + SCAN_SECONDS)
        took, height = time.thread_time() - began, len(shown.pixels) * shown.unit
        known = known_writings() if unsure else ""
        if sum(len(line.text) for line in lines) <= sum(len(line.text) for line in found.lines):
            given = replace(found, trouble="") if unsure else given
            return replace(given or found, took=took, unsure=unsure, known=known)
        return _PageLines(lines, "" if whole else "part", found.hidden, False, height, took, unsure, known)

    @cached_property
    def _scans(self) -> "PdfScans | ImageScans":
        from pipeline.read.images import PdfScans  # noqa: PLC0415  as in `_recognised`

        return PdfScans(self._body)

    def kept(self, first: int = 0) -> bytes:
        """Return the pages read, the first few left out, a line each; such pieces are joined for a later reading."""
        return b"".join(json.dumps(astuple(page)).encode("ascii") + b"\n" for page in self.pages[first:])

    def converted(self) -> Converted:
        """Return the pages that were read as HTML, with a section for each.

        Raises `Unreadable`: there is no text (scanned, damaged).
        """
        lines = [list(page.lines) for page in self.pages]
        with apply_configuration(_CAPS):
            if not any(lines):
                raise Unreadable(self._why_empty())
            title, author = self._about()
        hidden, scans = sum(page.hidden for page in self.pages), sum(page.is_scan for page in self.pages)
        recognised = sum(page.height > 0 for page in self.pages)
        told = {
            f"PDF: {hidden} pieces of text that no reader sees were left out": hidden,
            f"PDF: {scans} pages are images; their text is what the file says that they show": scans,
            f"OCR: text was recognised in the images of {recognised} of {len(lines)} pages; letters may be wrong": (
                recognised
            ),
        }
        notes = [note for note, count in told.items() if count]
        if self._span != WHOLE:
            notes.append(f"Pages {self.first} to {self.first + len(lines) - 1} of {self.count}, as asked")
        _drop_furniture(lines)
        html = self._render(lines, title)
        trust: Trust = "recognised" if scans or recognised == sum(map(bool, lines)) else "visible"
        return Converted(html, title, "", author, "", tuple(notes), *self._unread(), trust, hidden)

    def _unread(self) -> tuple[str, str]:
        """Return which pages were wanted and are missing, in words, and those that can be asked for next."""
        parts = list(filter(None, [self._illegible()]))
        for trouble, why in _TROUBLE.items():
            numbers = [number for number, page in enumerate(self.pages, self.first) if page.trouble == trouble]
            if numbers:
                parts.append(f"{len(numbers)} of {len(self.pages)} pages, which {why} (the first is page {numbers[0]})")
        begin, rest = self.first + len(self.pages), ""
        if begin <= self._wanted:
            parts.append(f"pages {begin} to {self._wanted} of {self.count}")
            rest = f"{begin}-{min(begin + MAX_PAGES - 1, self._wanted)}"
        waiting = next((number for number, page in enumerate(self.pages, self.first) if page.trouble == "waiting"), 0)
        return ", ".join(parts), f"{waiting}-{self._wanted}" if waiting else rest

    def _illegible(self) -> str:
        """Return what of the print in images could not be recognised, in words; empty where nothing was left out."""
        pages = [(number, page) for number, page in enumerate(self.pages, self.first) if page.unsure]
        if not pages:
            return ""
        (first, page), lines = pages[0], sum(page.unsure for _, page in pages)
        where = f"page {first}" if len(pages) == 1 else f"{len(pages)} pages (the first is page {first})"
        may = f"may be in a writing that it does not know; it knows {page.known}"
        return f"{lines} {'lines' if lines > 1 else 'line'} of print on {where} that OCR could not read ({may})"

    def _about(self) -> tuple[str, str]:
        return _about(self._reader)

    def _render(self, pages: Sequence[list[Line]], title: str) -> str:
        """Return pages of lines as HTML; each that was recognised has sizes of its own, and places for its parts."""
        scanned = [page.height > 0 for page in self.pages]
        read = sizes_of([lines for lines, is_scan in zip(pages, scanned, strict=True) if not is_scan])
        parts = []
        for number, (lines, page) in enumerate(zip(pages, self.pages, strict=True), self.first):
            levels, leading = sizes_of([lines]) if page.height else read
            parts.append(f'<section {PLACE}="page={number}">')
            for block, html in parts_of(lines, levels, leading):
                parts.append(placed(html, self._place(number, block, page.height), tag="div") if page.height else html)
            parts.append("</section>")
        return whole_page("\n".join(parts), title=title)

    def _place(self, number: int, lines: Sequence[Line], height: float) -> str:
        """Return the box of some lines as the fragment of a link: left, top, width and height from the upper left."""
        left, right = min(line.cells[0].left for line in lines), max(line.cells[-1].right for line in lines)
        top, low = (
            height - edge for edge in (max(line.y + line.size for line in lines), min(line.y for line in lines))
        )
        box = ",".join(f"{max(0, round(edge))}" for edge in (left, top, right - left, low - top))
        return f"page={number}&{self.box}={box}"

    def _why_empty(self) -> str:
        kind, troubles = self.kind, {page.trouble for page in self.pages}
        if self.count == 0:
            return f"it is {kind} without pages"
        if not self.pages or self.pages[0].trouble == "slow":
            return f"it is {kind} whose first page takes too long to read"
        if troubles == {"damaged"}:
            return f"it is {kind} whose pages are damaged"
        if any(page.hidden for page in self.pages):
            return f"it is {kind} that shows no text: what it holds is hidden from its readers"
        # Scanned, if at all: what keeps the first such page from being read
        if lines := self._illegible():
            return f"it is scanned: {kind} with {lines}"
        why = next((_TROUBLE[page.trouble] for page in self.pages if page.trouble in _SCANNED), "")
        return f"it is scanned: {kind} whose pages {why}" if why else f"it is {kind} with empty pages"


class ImageReading(PdfReading):
    """An image on its way to HTML, a TIFF page by page."""

    kind: ClassVar = "an image"
    box: ClassVar = "xywh"
    """W3C Media Fragments 1.0."""

    def _open(self) -> None:
        if not can_recognise():
            raise Unreadable(f"it is an image, whose text needs OCR: {INSTALL_OCR}")
        from pipeline.read.images import ImageScans  # noqa: PLC0415  as in `_recognised`

        self._images = ImageScans(self._body)
        self.count = self._images.count

    def _read_page(self, number: int, ends: float) -> _PageLines:
        return _PageLines([], "image")

    @cached_property
    def _scans(self) -> "PdfScans | ImageScans":
        return self._images

    def _about(self) -> tuple[str, str]:
        return "", ""

    def _place(self, number: int, lines: Sequence[Line], height: float) -> str:
        place = super()._place(number, lines, height)
        return place if self.count > 1 else place.partition("&")[2]


def reading_of(kind: str) -> type[PdfReading]:
    """Return what reads a media type of `sniff.PAGED`."""
    return PdfReading if kind == PDF else ImageReading


def pdf_to_html(
    body: bytes, *, span: Span = WHOLE, seconds: float = SECONDS, kind: str = PDF, sighted: bool = True
) -> Converted:
    """Return the pages `span` of a PDF or an image as HTML, as far as they are read in `seconds` of processor time.

    Raises `Unreadable`: encrypted, damaged, or without text.
    """
    reading = reading_of(kind)(body, span, sighted=sighted)
    reading.read(seconds, left=seconds)
    return reading.converted()


def _open(body: bytes) -> tuple[PdfReader, int]:
    try:
        reader = PdfReader(io.BytesIO(body), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is an encrypted PDF that needs a password")
        return reader, len(reader.pages)
    except DependencyError as e:
        raise Unreadable("it is an encrypted PDF, and the package `cryptography` is not installed") from e
    except _DAMAGED as e:
        raise Unreadable(f"it is a damaged PDF ({type(e).__name__})") from e


def _read_page(page: PageObject, off: frozenset[int], ends: float) -> _PageLines:
    """Return the lines of a page that are seen; of a scanned one that shows no text, those behind its image."""
    ink = Ink(page, off)
    pen = _taken(page, _Pen(ends, ink))
    if covered := ink.covered():
        pen = _taken(page, _Pen(ends, ink := Ink(page, off, covered)))
    if behind := not pen.lines and ink.hidden > 0 and ink.has_image:
        pen = _taken(page, _Pen(ends))
    is_image = not pen.lines and "/XObject" in (page.get("/Resources") or {})
    few = "few" if ink.has_image and sum(len(line.text) for line in pen.lines) < _STRAY else ""
    return _PageLines(pen.lines, "image" if is_image else few, hidden=0 if behind else ink.hidden, is_scan=behind)


def _taken(page: PageObject, pen: _Pen) -> _Pen:
    after = pen.ink.after if pen.ink is not None else None
    page.extract_text(visitor_text=pen.write, visitor_operand_before=pen.look, visitor_operand_after=after)
    pen.end_line()
    return pen


def _about(reader: PdfReader) -> tuple[str, str]:
    """Return title and author from the document information; its dates tell when the file was printed."""
    try:
        about = reader.metadata
        if about is None:
            return "", ""
        return str(about.title or "").strip(), person(str(about.author or ""), f"{about.creator} {about.producer}")
    except _DAMAGED:
        return "", ""


def _drop_furniture(pages: list[list[Line]]) -> None:
    """Take away first and last lines that recur, numbers aside, on more than half of at least four pages."""
    if len(pages) < 4:
        return
    for place in (0, -1):
        seen = Counter(_DIGITS.sub("#", page[place].text.strip()) for page in pages if page)
        for page in pages[1:]:  # the first page keeps its line: it is often the title
            if len(page) > 2 and seen[_DIGITS.sub("#", page[place].text.strip())] * 2 > len(pages):
                del page[place]


def _width(text: str, size: float, *, fixed: bool) -> float:
    capitals = len(text) if fixed else sum(letter.isupper() or letter in "mw—" for letter in text)
    ideographs = 0 if fixed else sum(letter > "⺀" for letter in text)
    letters = len(text) - capitals - ideographs
    return size * (TYPE.capital * capitals + TYPE.ideograph * ideographs + TYPE.letter * letters)
