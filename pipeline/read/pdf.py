"""PDF to HTML: lines with their font sizes become headings, paragraphs and tables, each page a section with an anchor.

A PDF says where glyphs stand, not what they are: a line set clearly larger than most text is a heading, a gap wider
than the usual leading ends a paragraph, a fixed-width font is code, a line that recurs at the edge of most pages is
furniture, and neighbouring lines whose pieces stand below one another are a table. Text keeps the order in which the
file draws it, which is the reading order of columns in what type-setters and word processors write. Not for: scanned
pages, which need OCR; tables drawn column by column, rotated text, cells that span columns.
"""

import io
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
from pipeline.read.converted import Converted, Unreadable, escape, html_table, whole_page
from pipeline.read.pdf_ink import Ink, Unseen, layers_off
from pipeline.work import check_cancelled

SECONDS: Final = 8.0
"""Processor time for one file; what was read by then is kept."""
MAX_PAGES: Final = 500
"""A page takes 5 to 20 ms, so that this many may use up the time budget by themselves."""
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


@dataclass(frozen=True, slots=True)
class _Type:
    """How print is set. Distances are in ems, that is in heights of the type."""

    letter: float = 0.5
    """Mean width of a letter: Helvetica 0.50, Times 0.44 over English text."""
    capital: float = 0.65
    """Mean width of a capital, or of any letter in a fixed-width font."""
    ideograph: float = 1.0
    gap: float = 1.2
    """Between two cells of a line; a space is 0.25 to 0.35, justified text stretches it to about 0.8."""
    edge: float = 0.6
    """By which the edges of the cells in a column may differ."""
    row: float = 3.2
    """From one row of a table to the next at most; a row with cells of two lines has 2.4."""
    heading: float = 1.12
    """A line this many times larger than most text is a heading; LaTeX's smallest step is 1.2, Word's 1.08."""
    leading: float = 1.35
    """A paragraph ends where the step to the next line is this many times the usual one."""


@dataclass(frozen=True, slots=True)
class _TableLimits:
    """What lines must have to count as the rows of a table."""

    rows: int = 3
    """Two lines with two aligned pieces each are too often a title page or a letter's head."""
    columns: int = 30
    cell: int = 60
    """Mean characters of a cell above which the columns are running text, printed across."""
    share: float = 0.75
    """Of the cells that must stand in line with their column."""
    full: float = 0.8
    """Share of the rows that must have two cells or more with text."""


_TYPE: Final = _Type()
_TABLE: Final = _TableLimits()
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
# What pypdf is known to raise over damaged files; it has no single base for them.
_DAMAGED: Final = (
    *(PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
    *(AssertionError, NotImplementedError, OSError, EOFError, struct.error, zlib.error),
)

logging.getLogger("pypdf").setLevel(logging.ERROR)


class _OutOfTime(BaseException):
    """The time budget is used up inside a page; no `Exception`, which pypdf swallows inside of forms."""


@dataclass(slots=True)
class _Cell:
    """A piece of a line with wide gaps around it."""

    left: float
    """Points from the page's left edge."""
    right: float
    """Estimated from the number of letters."""
    parts: list[tuple[str, float]]
    """The text in the pieces that it was set in, with their left edges."""

    @property
    def text(self) -> str:
        """The pieces joined."""
        return " ".join(text for text, _ in self.parts)


@dataclass(slots=True)
class _Line:
    text: str
    size: float
    """Height of the type in points."""
    y: float
    """Place of the baseline, in points from the page's bottom."""
    fixed: bool
    cells: list[_Cell]
    """From left to right."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text that was set in one go."""

    text: str
    height: float
    x: float
    y: float
    fixed: bool


@dataclass(slots=True)
class _Pen:
    """Collects what pypdf's visitor reports into lines."""

    ends: float
    """Processor time of this thread at which the budget is used up."""
    ink: Ink | None = None
    """Leaves out what nobody sees; None takes all."""
    lines: list[_Line] = field(default_factory=list)
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
            self.lines.append(_Line(text, sizes.most_common(1)[0][0], y, is_fixed, _cells(self.pieces)))
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


def _cells(pieces: Sequence[_Piece]) -> list[_Cell]:
    """Return the pieces of a line joined where no wide gap is between them."""
    cells: list[_Cell] = []
    before = pieces[0]
    for piece in pieces:
        text = piece.text.strip()
        if not text:
            continue
        size = piece.height or 1.0
        right = piece.x + _width(text, size, fixed=piece.fixed)
        if cells and -size < piece.x - cells[-1].left and piece.x - cells[-1].right < _TYPE.gap * size:
            if piece.text[:1].isspace() or before.text[-1:].isspace():
                cells[-1].parts.append((text, piece.x))
            else:
                whole, left = cells[-1].parts[-1]
                cells[-1].parts[-1] = (whole + text, left)
            cells[-1].right = max(cells[-1].right, right)
        else:
            cells.append(_Cell(piece.x, right, [(text, piece.x)]))
        before = piece
    return cells


def pdf_to_html(body: bytes, *, seconds: float = SECONDS) -> Converted:
    """Return a PDF as HTML, with `<section id="page-N">` for each page.

    Args:
        body: The file.
        seconds: Processor time, so that a busy machine cuts nothing; pages that do not fit are left out and noted.

    Raises:
        Unreadable: Encrypted, damaged, or without text (scanned).
    """
    with apply_configuration(_CAPS):
        ends = time.thread_time() + seconds
        reader, count = _open(body)
        pages, damaged, unseen = _read_pages(reader, min(count, MAX_PAGES), ends)
        if not any(pages):
            raise Unreadable(_why_empty(reader, count, damaged, len(pages), hides=unseen.pieces > 0))
        title, author, published = _about(reader)
    notes = unseen.notes()
    if len(pages) < count:
        notes.append(f"PDF: pages 1 to {len(pages)} of {count} were read")
    empty = sum(not page for page in pages)
    if empty:
        notes.append(f"PDF: {empty} of {len(pages)} pages hold no text (images or damaged)")
    _drop_furniture(pages)
    return Converted(_render(pages, title), title, "", author, published, tuple(notes))


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


def _read_pages(reader: PdfReader, count: int, ends: float) -> tuple[list[list[_Line]], int, Unseen]:
    """Return the lines of the first pages, as many as fit the time, how many are damaged, and what is not seen."""
    pages: list[list[_Line]] = []
    damaged, unseen, off = 0, Unseen(), layers_off(reader)
    for number in range(count):
        check_cancelled()
        lines: list[_Line] = []
        try:
            lines = _read_page(reader.pages[number], off, ends, unseen)
        except _OutOfTime:
            break
        except _DAMAGED:
            damaged += 1
        pages.append(lines)
    return pages, damaged, unseen


def _read_page(page: PageObject, off: frozenset[int], ends: float, unseen: Unseen) -> list[_Line]:
    """Return the lines of a page that are seen; of a scanned one that shows no text, those behind its image."""
    ink = Ink(page, off)
    pen = _taken(page, _Pen(ends, ink))
    if covered := ink.covered():
        pen = _taken(page, _Pen(ends, ink := Ink(page, off, covered)))
    if not pen.lines and ink.hidden and ink.has_image:
        unseen.scans += 1
        return _taken(page, _Pen(ends)).lines
    unseen.pieces += ink.hidden
    return pen.lines


def _taken(page: PageObject, pen: _Pen) -> _Pen:
    after = pen.ink.after if pen.ink is not None else None
    page.extract_text(visitor_text=pen.write, visitor_operand_before=pen.look, visitor_operand_after=after)
    pen.end_line()
    return pen


def _why_empty(reader: PdfReader, count: int, damaged: int, tried: int, *, hides: bool) -> str:
    if count == 0:
        return "it is a PDF without pages"
    if tried == 0:
        return "it is a PDF whose first page takes too long to read"
    if damaged == tried:
        return "it is a PDF whose pages are damaged"
    if hides:
        return "it is a PDF that shows no text: what it holds is hidden from its readers"
    try:
        scanned = any("/XObject" in (page.get("/Resources") or {}) for page in reader.pages[:3])
    except _DAMAGED:
        scanned = False
    return "it is a scanned PDF: its pages are images, which needs OCR" if scanned else "it is a PDF with empty pages"


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


def _drop_furniture(pages: list[list[_Line]]) -> None:
    """Take away first and last lines that recur, numbers aside, on more than half of at least four pages."""
    if len(pages) < 4:
        return
    for place in (0, -1):
        seen = Counter(_DIGITS.sub("#", page[place].text.strip()) for page in pages if page)
        for page in pages[1:]:  # the first page keeps its line: it is often the title
            if len(page) > 2 and seen[_DIGITS.sub("#", page[place].text.strip())] * 2 > len(pages):
                del page[place]


def _render(pages: list[list[_Line]], title: str) -> str:
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
    larger = sorted((size for size in sizes if body and size >= body * _TYPE.heading), reverse=True)
    levels = {size: min(place + 2, 6) for place, size in enumerate(larger)}
    parts = []
    for number, page in enumerate(pages, 1):
        blocks = "\n".join(_page(page, levels, leading))
        parts.append(f'<section id="page-{number}">\n{blocks}\n</section>')
    return whole_page("\n".join(parts), title=title)


def _page(page: list[_Line], levels: dict[float, int], leading: float) -> Iterator[str]:
    """Yield the HTML of a page's blocks and tables in order."""
    at = 0
    for first, end, rows in _find_tables(page):
        yield from (_block(block, levels) for block in _blocks(page[at:first], levels, leading))
        yield _table_to_html(rows)
        at = end
    yield from (_block(block, levels) for block in _blocks(page[at:], levels, leading))


def _blocks(page: list[_Line], levels: dict[float, int], leading: float) -> list[list[_Line]]:
    """Return the page's lines in groups: one heading, one paragraph, one piece of code each."""
    blocks: list[list[_Line]] = []
    for line in page:
        before = blocks[-1][-1] if blocks else None
        if before is not None and _joins(before, line, levels, leading):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _joins(before: _Line, line: _Line, levels: dict[float, int], leading: float) -> bool:
    if line.text.lstrip()[:1] in _BULLETS:
        return False
    if before.fixed != line.fixed or levels.get(before.size) != levels.get(line.size):
        return False
    step = (before.y - line.y) / (before.size or 1.0)
    return 0 <= step <= max(leading, 1.0) * _TYPE.leading * (1.6 if line.fixed else 1.0)


def _block(lines: list[_Line], levels: dict[float, int]) -> str:
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
    return size * (_TYPE.capital * capitals + _TYPE.ideograph * ideographs + _TYPE.letter * letters)


def _find_tables(lines: Sequence[_Line]) -> Iterator[tuple[int, int, list[list[str]]]]:
    """Yield the tables of a page as first line, line after the last, and rows of cells; linear in the lines."""
    at = 0
    while at < len(lines):
        end = _run(lines, at)
        if end - at < _TABLE.rows:
            at += 1
            continue
        table = _table(lines[at:end])
        if table is not None:
            yield at, end, table
        at = end


def _table_to_html(rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its first row is the header where it holds no figures and the rows below do."""
    first, rest = rows[0], rows[1:]
    header = not any(map(_is_figure, first)) and any(_is_figure(cell) for row in rest for cell in row)
    return html_table(rows, header=header)


def _is_figure(text: str) -> bool:
    digits = sum(map(str.isdigit, text))
    return digits > 0 and digits * 3 >= len(text.replace(" ", ""))


def _run(lines: Sequence[_Line], start: int) -> int:
    """Return where the lines that may be rows of one table end; a line of one cell may continue the row above."""
    if not 2 <= len(lines[start].cells) <= _TABLE.columns or lines[start].fixed:
        return start
    end = start + 1
    while end < len(lines):
        before, line = lines[end - 1], lines[end]
        step = (before.y - line.y) / (before.size or 1.0)
        if line.fixed or len(line.cells) > _TABLE.columns or not -0.5 < step <= _TYPE.row:
            break
        if len(line.cells) >= 2:
            joins = _aligned(lines[max(start, end - 3) : end], line)
        else:
            joins = step > 0 and _continues(lines, end, before, line)
        if not joins:
            break
        end += 1
    while end > start and len(lines[end - 1].cells) < 2:
        end -= 1  # a line below the last row is text after the table
    return end


def _aligned(above: Sequence[_Line], line: _Line) -> bool:
    """Return whether two or more cells overlap cells of one of the last rows."""
    return any(sum(any(_overlap(cell, other) for other in row.cells) for cell in line.cells) >= 2 for row in above)


def _continues(lines: Sequence[_Line], place: int, before: _Line, line: _Line) -> bool:
    """Return whether a lone piece stands below a cell, narrower than the row, with another row after it."""
    after = lines[place + 1] if place + 1 < len(lines) else None
    return (
        after is not None
        and len(after.cells) >= 2
        and len(line.cells) == 1
        and sum(_overlap(line.cells[0], cell) for cell in before.cells) <= 1
    )


def _overlap(one: _Cell, other: _Cell) -> bool:
    return one.left < other.right and other.left < one.right


def _table(lines: Sequence[_Line]) -> list[list[str]] | None:
    """Return the rows of a table, None where the lines share no columns."""
    rows = [line for line in lines if len(line.cells) >= 2]
    columns = _columns(rows)
    if len(rows) < _TABLE.rows or not 2 <= len(columns) <= _TABLE.columns:
        return None
    cells = [cell for line in rows for cell in line.cells]
    characters = sum(len(cell.text) for cell in cells)
    if characters > _TABLE.cell * len(cells) or not _in_line(rows, columns):
        return None
    table: list[list[str]] = []
    for line in lines:
        row = [""] * len(columns)
        for cell in line.cells:
            place = _column_of(cell, columns)
            for text, left in cell.parts:
                # Columns may stand so near that two cells look like one; what begins where a column does is of it.
                begun = [n for n, column in enumerate(columns) if abs(column[0] - left) < _TYPE.edge * line.size]
                place = begun[0] if begun else place
                row[place] = f"{row[place]} {text}".strip()
        if len(line.cells) >= 2:
            table.append(row)
        else:
            table[-1] = [f"{upper} {lower}".strip() for upper, lower in zip(table[-1], row, strict=True)]
    full = sum(sum(bool(cell) for cell in row) >= 2 for row in table)
    return table if full >= _TABLE.full * len(table) else None


def _in_line(rows: Sequence[_Line], columns: Sequence[tuple[float, float]]) -> bool:
    """Return whether the cells of the columns share a left edge, a right edge or a middle: prose with gaps does not."""
    in_line = counted = 0
    for number in range(len(columns)):
        found = [(cell, line.size) for line in rows for cell in line.cells if _column_of(cell, columns) == number]
        if len(found) < 2:
            continue
        counted += len(found)
        in_line += max(
            _sharing([(cell.left, _TYPE.edge * size) for cell, size in found]),
            _sharing([(cell.right, 2 * _TYPE.edge * size) for cell, size in found]),
            _sharing([((cell.left + cell.right) / 2, _TYPE.edge * size) for cell, size in found]),
        )
    return counted > 0 and in_line >= _TABLE.share * counted


def _sharing(places: Sequence[tuple[float, float]]) -> int:
    """Return how many places lie within their tolerance of the middle one."""
    middle = sorted(place for place, _ in places)[len(places) // 2]
    return sum(abs(place - middle) <= tolerance for place, tolerance in places)


def _columns(rows: Sequence[_Line]) -> list[tuple[float, float]]:
    """Return the columns as the row with most cells has them, widened by the cells that overlap one column only."""
    widest = max(rows, key=lambda line: len(line.cells))
    columns = [(cell.left, cell.right) for cell in widest.cells]
    for line in rows:
        for cell in line.cells:
            over = [n for n, (left, right) in enumerate(columns) if cell.left < right and left < cell.right]
            if len(over) == 1:
                left, right = columns[over[0]]
                columns[over[0]] = (min(left, cell.left), max(right, cell.right))
    return columns


def _column_of(cell: _Cell, columns: Sequence[tuple[float, float]]) -> int:
    """Return the column that a cell shares most with, or the nearest one."""
    shared = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
    return max(range(len(columns)), key=shared.__getitem__)
