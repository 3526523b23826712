"""PDF to HTML: lines with their font sizes become headings, paragraphs and tables, each page a section with an anchor.

A PDF says where glyphs stand, not what they are: a line set clearly larger than most text is a heading, a gap wider
than the usual leading ends a paragraph, a fixed-width font is code, a line that recurs at the edge of most pages is
furniture, and neighbouring lines whose pieces stand below one another are a table. Text keeps the order in which the
file draws it, which is the reading order of columns in what type-setters and word processors write. Not for: scanned
pages, which need OCR; tables drawn column by column, rotated text, cells that span columns.
"""

import io
import json
import logging
import re
import struct
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from pypdf import Configuration, PageObject, PdfReader, apply_configuration
from pypdf.errors import DependencyError, PyPdfError

from pipeline.html.tree import LONGEST_LABEL
from pipeline.read.converted import WHOLE, Converted, Span, Unreadable, escape, whole_page
from pipeline.read.pdf_ink import Ink, Unseen, layers_off
from pipeline.read.pdf_tables import TYPE, Cell, Line, find_tables, table_to_html
from pipeline.work import check_cancelled

SECONDS: Final = 60.0
"""Processor time for one reading: 400 pages as heavy as any seen (a browser's print, 140 ms each). Far above what files
need, since where time cuts a file another run would cut it elsewhere."""
PAGE_SECONDS: Final = 8.0
"""Processor time for one page, fifty times what the heaviest pages seen take; one that needs more is left out."""
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
_NEAR: Final = 6
"""Characters by which the start of a piece may be misjudged: one byte need not be one letter."""
_SHOW: Final = frozenset((b"Tj", b"TJ", b"'", b'"'))
"""Operators that set text."""
_FIXED_WIDTH: Final = re.compile(r"mono|courier|consol|cmtt|typewriter|menlo", re.IGNORECASE)
_BULLETS: Final = frozenset("•–▪◦‣●■")
_LIGATURES: Final = str.maketrans(dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)))
"""Letters that type-setters join; nobody searches for the joined form."""
_LEADERS: Final = re.compile(r"(?:\. ?){5}")
"""The dots of a table of contents."""
_DIGITS: Final = re.compile(r"\d+")
_TROUBLE: Final = {"slow": "take too long to read", "damaged": "are damaged", "image": "are images without text"}
"""What keeps a page from being read."""
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
    """Text that was set in one go."""

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

    def to_bytes(self) -> bytes:
        """Return the page as a line of JSON."""
        lines = [
            [line.text, line.size, line.y, line.fixed, [[cell.left, cell.right, cell.parts] for cell in line.cells]]
            for line in self.lines
        ]
        return json.dumps([self.trouble, self.hidden, self.is_scan, lines]).encode("ascii") + b"\n"


def _page_from(line: bytes) -> _PageLines:
    """Return the page that `_PageLines.to_bytes` wrote."""
    trouble, hidden, is_scan, lines = json.loads(line)
    return _PageLines(
        [
            Line(text, size, y, fixed, [Cell(left, right, [(a, b) for a, b in parts]) for left, right, parts in cells])
            for text, size, y, fixed, cells in lines
        ],
        trouble,
        hidden,
        is_scan,
    )


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
        if operator in _SHOW and isinstance(operands, list):
            self.shown.append((_place(cm, tm)[0], _length(operands)))
        self.operations += 1
        if self.operations % 256 == 0:
            check_cancelled()
            if time.thread_time() > self.ends:
                raise _OutOfTime

    def write(self, text: str, cm: Sequence[float], tm: Sequence[float], font: object, size: float | None) -> None:
        """Take one piece of text with its matrices and font."""
        height = abs(size or 0.0) * (abs(tm[3]) or abs(tm[1]) or 1.0) * (abs(cm[3]) or abs(cm[1]) or 1.0)
        x, y = _place(cm, tm)
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
        """Make the pieces since the last break one line."""
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


def _place(cm: Sequence[float], tm: Sequence[float]) -> tuple[float, float]:
    """Return where a text matrix stands on the page."""
    return tm[4] * cm[0] + tm[5] * cm[2] + cm[4], tm[4] * cm[1] + tm[5] * cm[3] + cm[5]


def _length(operands: Sequence[object]) -> int:
    """Return the bytes of text among the operands of an operator that shows text."""
    parts = operands[0] if operands and isinstance(operands[0], list) else operands
    return sum(len(part) for part in parts if isinstance(part, str | bytes))


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

    def __init__(self, body: bytes, span: Span = WHOLE, kept: bytes = b"") -> None:
        """Open a file.

        Args:
            body: The file.
            span: The pages wanted; `MAX_PAGES` of them are read.
            kept: What `kept` gave of an earlier reading of the same pages.

        Raises:
            Unreadable: Encrypted, damaged, or without these pages.
        """
        with apply_configuration(_CAPS):
            self._reader, self.count = _open(body)
            self._off = layers_off(self._reader)
        self._span = span
        self.first = span[0]
        self._wanted = min(span[1] or self.count, self.count)
        self._last = min(self._wanted, self.first + MAX_PAGES - 1)
        if self.count and self.first > self._last:
            raise Unreadable(f"it is a PDF of {self.count} pages, and pages {self.first} to {span[1]} were asked for")
        self.pages = [_page_from(line) for line in kept.splitlines()]

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
                try:
                    page: PageObject = self._reader.pages[self.first - 1 + len(self.pages)]
                    found = _read_page(page, self._off, min(page_began + PAGE_SECONDS, began + left))
                except _OutOfTime:
                    if time.thread_time() >= began + left:
                        return
                    found = _PageLines([], "slow")
                except _DAMAGED:
                    found = _PageLines([], "damaged")
                self.pages.append(found)

    def kept(self, first: int = 0) -> bytes:
        """Return the pages read, the first few left out, a line each; such pieces are joined for a later reading."""
        return b"".join(page.to_bytes() for page in self.pages[first:])

    def converted(self) -> Converted:
        """Return the pages that were read as HTML, with `<section id="page-N">` for each.

        Raises:
            Unreadable: There is no text (scanned, damaged).
        """
        lines = [list(page.lines) for page in self.pages]
        with apply_configuration(_CAPS):
            if not any(lines):
                raise Unreadable(self._why_empty())
            title, author, published = _about(self._reader)
        hidden, scans = sum(page.hidden for page in self.pages), sum(page.is_scan for page in self.pages)
        notes = Unseen(hidden, scans).notes()
        if self._span != WHOLE:
            notes.append(f"PDF: pages {self.first} to {self.first + len(lines) - 1} of {self.count}, as asked")
        _drop_furniture(lines)
        html = _render(lines, title, self.first)
        return Converted(html, title, "", author, published, tuple(notes), *self._unread())

    def _unread(self) -> tuple[str, str]:
        """Return which pages were wanted and are missing, in words, and those that can be asked for next."""
        parts = []
        for trouble, why in _TROUBLE.items():
            numbers = [number for number, page in enumerate(self.pages, self.first) if page.trouble == trouble]
            if numbers:
                parts.append(f"{len(numbers)} of {len(self.pages)} pages, which {why} (the first is page {numbers[0]})")
        begin, rest = self.first + len(self.pages), ""
        if begin <= self._wanted:
            parts.append(f"pages {begin} to {self._wanted} of {self.count}")
            rest = f"{begin}-{min(begin + MAX_PAGES - 1, self._wanted)}"
        return ", ".join(parts), rest

    def _why_empty(self) -> str:
        if self.count == 0:
            return "it is a PDF without pages"
        if not self.pages or self.pages[0].trouble == "slow":
            return "it is a PDF whose first page takes too long to read"
        if all(page.trouble == "damaged" for page in self.pages):
            return "it is a PDF whose pages are damaged"
        if any(page.hidden for page in self.pages):
            return "it is a PDF that shows no text: what it holds is hidden from its readers"
        if any(page.trouble == "image" for page in self.pages):
            return "it is a scanned PDF: its pages are images, which needs OCR"
        return "it is a PDF with empty pages"


def pdf_to_html(body: bytes, *, span: Span = WHOLE, seconds: float = SECONDS) -> Converted:
    """Return a PDF as HTML, with `<section id="page-N">` for each page.

    Args:
        body: The file.
        span: The pages wanted.
        seconds: Processor time, so that a busy machine cuts nothing; pages that do not fit are left out and noted.

    Raises:
        Unreadable: Encrypted, damaged, or without text (scanned).
    """
    reading = PdfReading(body, span)
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
    if not pen.lines and ink.hidden and ink.has_image:
        return _PageLines(_taken(page, _Pen(ends)).lines, is_scan=True)
    is_image = not pen.lines and "/XObject" in (page.get("/Resources") or {})
    return _PageLines(pen.lines, "image" if is_image else "", hidden=ink.hidden)


def _taken(page: PageObject, pen: _Pen) -> _Pen:
    after = pen.ink.after if pen.ink is not None else None
    page.extract_text(visitor_text=pen.write, visitor_operand_before=pen.look, visitor_operand_after=after)
    pen.end_line()
    return pen


def _about(reader: PdfReader) -> tuple[str, str, str]:
    """Return title, author and ISO date from the document information."""
    try:
        about = reader.metadata
        if about is None:
            return "", "", ""
        made = about.creation_date
        return str(about.title or "").strip(), str(about.author or "").strip(), made.date().isoformat() if made else ""
    except _DAMAGED:
        return "", "", ""


def _drop_furniture(pages: list[list[Line]]) -> None:
    """Take away first and last lines that recur, numbers aside, on more than half of at least four pages."""
    if len(pages) < 4:
        return
    for place in (0, -1):
        seen = Counter(_DIGITS.sub("#", page[place].text.strip()) for page in pages if page)
        for page in pages[1:]:  # the first page keeps its line: it is often the title
            if len(page) > 2 and seen[_DIGITS.sub("#", page[place].text.strip())] * 2 > len(pages):
                del page[place]


def _render(pages: list[list[Line]], title: str, first: int) -> str:
    sizes: Counter[float] = Counter()
    gaps: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
        for line, after in pairwise(page):
            if line.y > after.y:
                gaps[round((line.y - after.y) / (line.size or 1.0), 1)] += 1
    body = sizes.most_common(1)[0][0] if sizes else 0.0
    leading = gaps.most_common(1)[0][0] if gaps else 1.2
    larger = sorted((size for size in sizes if body and size >= body * TYPE.heading), reverse=True)
    levels = {size: min(place + 2, 6) for place, size in enumerate(larger)}
    parts = []
    for number, page in enumerate(pages, first):
        blocks = "\n".join(_page(page, levels, leading))
        parts.append(f'<section id="page-{number}">\n{blocks}\n</section>')
    return whole_page("\n".join(parts), title=title)


def _page(page: list[Line], levels: dict[float, int], leading: float) -> Iterator[str]:
    """Yield the HTML of a page's blocks and tables in order."""
    at = 0
    for first, end, rows in find_tables(page):
        yield from (_block(block, levels) for block in _blocks(page[at:first], levels, leading))
        yield table_to_html(rows)
        at = end
    yield from (_block(block, levels) for block in _blocks(page[at:], levels, leading))


def _blocks(page: list[Line], levels: dict[float, int], leading: float) -> list[list[Line]]:
    """Return the page's lines in groups: one heading, one paragraph, one piece of code each."""
    blocks: list[list[Line]] = []
    for line in page:
        before = blocks[-1][-1] if blocks else None
        if before is not None and _joins(before, line, levels, leading):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _joins(before: Line, line: Line, levels: dict[float, int], leading: float) -> bool:
    if line.text.lstrip()[:1] in _BULLETS:
        return False
    if before.fixed != line.fixed or levels.get(before.size) != levels.get(line.size):
        return False
    step = (before.y - line.y) / (before.size or 1.0)
    return 0 <= step <= max(leading, 1.0) * TYPE.leading * (1.6 if line.fixed else 1.0)


def _block(lines: list[Line], levels: dict[float, int]) -> str:
    item = lines[0].text.lstrip()[:1] in _BULLETS
    if lines[0].fixed and not item:
        return f"<pre>{escape(chr(10).join(line.text for line in lines))}</pre>"
    text = lines[0].text.strip()
    for line in lines[1:]:
        after = line.text.strip()
        hyphen = text.endswith("-") and text[-2:-1].isalpha() and after[:1].islower()
        text = text[:-1] + after if hyphen else f"{text} {after}"
    if item:
        return f"<ul><li>{escape(text[1:].strip())}</li></ul>"
    level = levels.get(lines[0].size)
    if (
        level is not None
        and not _LEADERS.search(text)
        and len(text) <= LONGEST_LABEL
        and any(letter.isalpha() for letter in text)
    ):
        return f"<h{level}>{escape(text)}</h{level}>"
    return f"<p>{escape(text)}</p>"


def _width(text: str, size: float, *, fixed: bool) -> float:
    """Return about how wide `text` is in points."""
    capitals = len(text) if fixed else sum(letter.isupper() or letter in "mw—" for letter in text)
    ideographs = 0 if fixed else sum(letter > "⺀" for letter in text)
    letters = len(text) - capitals - ideographs
    return size * (TYPE.capital * capitals + TYPE.ideograph * ideographs + TYPE.letter * letters)
