"""PDF to HTML: lines with their font sizes become headings, paragraphs and tables, each
page a section with its place.

A PDF has positions of glyphs, not structure. A clearly larger line is a heading; a gap
wider than the usual leading ends a paragraph; a fixed-width font is code. A line that
recurs at the edge of most pages is furniture; adjacent lines with aligned pieces are a
table. PDFium reads and draws the pages, one after the other, each bounded before it is
loaded. Pages that are images, and image files, are recognised where the extra `ocr` is
installed (`extras/ocr/`). Not for: tables without rulings drawn column by
column."""

import json
import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import pypdfium2

from pipeline.document.converted import (
    ALL_PAGES,
    DAMAGED,
    INSTALL_OCR,
    MAX_PAGES,
    MOST_PIXELS,
    PAGE_SECONDS,
    PLACE,
    Converted,
    Span,
    Unreadable,
    can_recognise,
    ended_after,
    escape,
    person,
    placed,
    whole_page,
)
from pipeline.document.ledger import Ledger
from pipeline.document.page import Trust
from pipeline.read.pdf_guard import Guard
from pipeline.read.pdf_layout import lines_of
from pipeline.read.pdf_lines import (
    Band,
    Cell,
    PrintLine,
    around,
    drop_running,
    parts_of,
    sizes_of,
)
from pipeline.read.pdf_page import Print, opened, printed
from pipeline.read.recognition import Recognised, Scans
from pipeline.work import check_cancelled
from seams import later

READING_SECONDS: Final = 60.0
"""Processor time for one reading: 400 pages as heavy as any seen (a browser's print,
140 ms each). Far above what files need, since where time cuts a file another run would
cut it elsewhere."""
MOST_ATTACHED: Final = 100
MOST_PDF_PAGES: Final = 20_000
"""Of a file; one that says that it has more is made to exhaust us."""
SCAN_SECONDS: Final = 12.0
"""Processor time after which one reading begins to recognise no further page, and which
one page may take; a dense page of A4 takes 5 to 9 s. A call waits 25 s, and its answer
says which pages to request next."""
_STRAY: Final = 40
"""Letters up to which the text of a page that shows an image is a stamp or a number,
and the image is looked at."""
_DRAWING_PATHS: Final = 40
"""Paths from which a page without text is a drawing, whose letters may be outlines."""
_OUTLINES: Final = 1_000
"""Paths from which a page with hardly any letters may show outlines of others."""
_UNMAPPED: Final = 0.3
"""Share of a page's letters of which the file does not say what they are, from which it
cannot be read as text."""
_TEXT_OPERATORS: Final = 5
"""Operators that show text, from which a page must have a letter for each."""
_TROUBLE: Final = {
    "slow": "take too long to read",
    "ending": "ended the process that read them",
    "heavy": "draw so much that they take too long to read",
    "unmapped": "cannot be read as text, since the file does not say which letters it shows",
    "damaged": "are damaged",
    "refused": f"show images that are damaged, or have over {MOST_PIXELS:,} pixels",
    "unsighted": f"are images, whose text needs OCR: {INSTALL_OCR}",
    "image": "are images without text",
    "part": "take too long to recognise",
    "waiting": "are images that this reading had no time to recognise",
}
"""What keeps a page from being read, or from being read whole."""
_SCANNED: Final = frozenset({"refused", "unsighted", "image", "waiting"})
_WHOLE_TROUBLES: Final = frozenset({"damaged", "slow", "heavy", "ending", "unmapped"})
"""What keeps a whole file from being read, where all its pages have it."""
_XFA: Final = pypdfium2.raw.FORMTYPE_XFA_FULL
_PDFIUM: Final = threading.Lock()
"""Held while PDFium works, which serves one thread at a time."""


@dataclass(frozen=True, slots=True)
class PageLines:
    """What was read of one page."""

    lines: list[PrintLine]
    trouble: str = ""
    """A key of `_TROUBLE` where it could not be read."""
    hidden: int = 0
    """Number of removed hidden text pieces."""
    is_scan: bool = False
    """Whether it shows only an image, with invisible text lines."""
    height: float = 0.0
    """Of the page."""
    recognised: bool = False
    """Whether its lines were recognised by us."""
    took: float = 0.0
    """Processor seconds of that."""
    unsure: int = 0
    """Lines that could not be recognised and were left out."""
    known_scripts: str = ""
    """The writings that the recogniser knows, where lines were left out."""
    comments: Sequence[str] = ()
    """What readers of the file wrote beside its text."""
    vanished: int = 0
    """Operators that show text of which PDFium gave no letter."""
    pictures: int = 0
    """Large images."""
    attached: int = 0
    media: int = 0


def _line(
    text: str,
    size: float,
    y: float,
    fixed: bool,
    cells: Sequence[Any],
    *optional_fields: Any,
) -> PrintLine:
    return PrintLine(
        text, size, y, fixed, [Cell(*cell) for cell in cells], *optional_fields
    )


class PdfReading:
    """A PDF on its way to HTML, page by page; what was read can be kept, and another
    process goes on from there."""

    kind: ClassVar = "a PDF"
    box: ClassVar = "viewrect"
    """How a link names a part of a page (RFC 8118)."""

    def __init__(
        self,
        body: bytes,
        span: Span = ALL_PAGES,
        saved_pages: bytes = b"",
        *,
        sighted: bool = True,
        scan_seconds: float = SCAN_SECONDS,
        ending: Sequence[int] = (),
    ) -> None:
        """Open a file, of whose pages in `span` at most `MAX_PAGES` are read; `saved_pages` is
        what an earlier reading kept.

        Not `sighted`, it recognises nothing: other documents come first, or an image
        has ended a process. After `scan_seconds` of processor time it begins to
        recognise no further page. Pages that are `ending` have ended a process, and are
        left out.

        Raises `Unreadable`: encrypted, damaged, or without these pages.
        """
        self._body, self._sighted, self._scan_seconds, self._ending = (
            body,
            sighted,
            scan_seconds,
            ending,
        )
        with _PDFIUM:
            self._open()
        self._span = span
        self.first = span[0]
        self._wanted = min(span[1] or self.count, self.count)
        self._last = min(self._wanted, self.first + MAX_PAGES - 1)
        if self.count and self.first > self._last:
            raise Unreadable(
                f"it is {self.kind} of {self.count} pages, and pages {self.first} to {span[1]} "
                f"were requested"
            )
        self.pages = [
            PageLines([_line(*line) for line in lines], *about)
            for lines, *about in map(json.loads, saved_pages.splitlines())
        ]

    def _open(self) -> None:
        header_offset = max(0, self._body.find(b"%PDF-", 0, 1024))
        self._body = self._body[header_offset:]
        self._file = opened(self._body)
        self._guard = Guard(self._body)
        self.count = len(self._file)
        if self.count > MOST_PDF_PAGES:
            raise Unreadable(
                f"it is a PDF that claims to have {self.count:,} pages, over the cap of {MOST_PDF_PAGES:,}"
            )
        self._file.init_forms()
        about = self._file.get_metadata_dict()
        tools = f"{about.get('Creator', '')} {about.get('Producer', '')}"
        self._about = (
            about.get("Title", "").strip(),
            person(about.get("Author", ""), tools),
        )
        self._is_xfa = pypdfium2.raw.FPDF_GetFormType(self._file.raw) == _XFA
        attached = range(min(self._file.count_attachments(), MOST_ATTACHED))
        self._attached = [
            self._file.get_attachment(number).get_name() for number in attached
        ]

    @property
    def done(self) -> bool:
        """Whether nothing is left to read."""
        return len(self.pages) >= self._last - self.first + 1

    def read(
        self,
        seconds: float = READING_SECONDS,
        *,
        remaining_seconds: float = READING_SECONDS,
        max_pages: int = MAX_PAGES,
    ) -> None:
        """Read on for about `seconds` of processor time, a page at least, and never
        longer than `remaining_seconds`.

        Of `max_pages` pages at once: one, where a page may end the process. Damaged pages,
        and pages with too much on them, are kept without lines.
        """
        began = time.thread_time()
        until = min(len(self.pages) + max_pages, self._last - self.first + 1)
        while len(self.pages) < until and time.thread_time() < began + min(
            seconds, remaining_seconds
        ):
            check_cancelled()
            number = self.first + len(self.pages)
            if number in self._ending:
                self.pages.append(PageLines([], "ending"))
                continue
            try:
                page_lines = self._read_page(number)
                if page_lines.trouble in {"image", "few", "unmapped"}:
                    page_lines = self._recognised(page_lines, number)
            except (pypdfium2.PdfiumError, *DAMAGED):
                page_lines = PageLines([], "damaged")
            except Unreadable:
                page_lines = PageLines([], "heavy")
            self.pages.append(page_lines)

    def _read_page(self, number: int) -> PageLines:
        if not self._guard.lets_pass(number):
            return PageLines([], "heavy")
        with _PDFIUM, ended_after(PAGE_SECONDS):
            return _read_page(printed(self._file, number))

    def _recognised(self, page_lines: PageLines, number: int) -> PageLines:
        """Return a page that shows an image with what is read off that; one with a few
        letters as it is, if no more.

        If nothing can be recognised now, `trouble` says why, and a page with a few
        letters keeps those."""
        fallback = {
            "few": replace(page_lines, trouble=""),
            "unmapped": replace(page_lines, lines=[]),
        }.get(page_lines.trouble)
        if not can_recognise():
            return fallback or replace(page_lines, trouble="unsighted")
        if not self._sighted:
            return fallback or replace(page_lines, trouble="slow")
        if sum(page.took for page in self.pages) >= self._scan_seconds:
            return replace(page_lines, trouble="waiting")
        try:
            image = self._scans.page(number)
        except Unreadable:
            return fallback or replace(page_lines, trouble="refused")
        began = time.thread_time()
        read: Recognised = later("extras.ocr.scan", "read_scan")(
            image, began + SCAN_SECONDS
        )
        lines, unsure, is_complete, known_scripts = read
        took, height = time.thread_time() - began, len(image.pixels) * image.unit
        letters = (
            sum(len(line.text) for line in page_lines.lines)
            if page_lines.trouble == "few"
            else 0
        )
        if sum(len(line.text) for line in lines) <= letters:
            fallback = replace(page_lines, trouble="") if unsure else fallback
            return replace(
                fallback or page_lines,
                took=took,
                unsure=unsure,
                known_scripts=known_scripts,
            )
        trouble = "" if is_complete else "part"
        return PageLines(
            lines,
            trouble,
            page_lines.hidden,
            False,
            height,
            True,
            took,
            unsure,
            known_scripts,
            page_lines.comments,
        )

    @cached_property
    def _scans(self) -> Scans:
        scans: Scans = later("extras.ocr.images", "PdfScans")(self._body)
        return scans

    def kept(self, skipped_pages: int = 0) -> bytes:
        """Return the pages read, the first few left out, a line each; such pieces are
        joined for a later reading."""
        return b"".join(
            json.dumps(astuple(page)).encode("ascii") + b"\n"
            for page in self.pages[skipped_pages:]
        )

    def converted(self) -> Converted:
        """Return the pages that were read as HTML, with a section for each.

        Raises `Unreadable`: there is no text (scanned, damaged). Pages that were not
        read, or have no text, are named as unread.
        """
        lines = [list(page.lines) for page in self.pages]
        if not any(lines):
            raise Unreadable(self._why_empty())
        title, author = self._about
        hidden, scans = (
            sum(page.hidden for page in self.pages),
            sum(page.is_scan for page in self.pages),
        )
        recognised = sum(page.recognised for page in self.pages)
        noted = {
            f"PDF: hidden pieces of text removed: {hidden}": hidden,
            f"PDF: pages that are images: {scans}; their text is the file's own text layer": scans,
            f"OCR: pages whose images were read: {recognised} of {len(lines)}; letters may be "
            "wrong": (recognised),
        }
        notes = [note for note, count in noted.items() if count]
        if self._span != ALL_PAGES:
            notes.append(
                f"Pages {self.first} to {self.first + len(lines) - 1} of "
                f"{self.count}, as requested"
            )
        drop_running(lines, [page.height for page in self.pages])
        html, printed = self._render(lines, title)
        trust: Trust = (
            "recognised" if scans or recognised == sum(map(bool, lines)) else "visible"
        )
        return Converted(
            html,
            title,
            "",
            author,
            "",
            tuple(notes),
            *self._unread(),
            trust,
            hidden,
            self._ledger(),
            printed,
        )

    def _ledger(self) -> Ledger:
        """Return what no reading gives: attached files, and large images beside
        text."""
        ledger = Ledger()
        ledger.hold(
            "attachment",
            len(self._attached) + sum(page.attached for page in self.pages),
        )
        ledger.hold("embedded object", sum(page.media for page in self.pages))
        ledger.hold(
            "image",
            sum(
                page.pictures
                for page in self.pages
                if not page.recognised and not page.trouble
            ),
        )
        return ledger

    def _unread(self) -> tuple[str, str]:
        """Return which pages were wanted and are missing, in words, and those that can
        be asked for next.

        Both are empty where nothing is missing."""
        reasons = list(filter(None, [self._illegible()]))
        for trouble, why in _TROUBLE.items():
            numbers = [
                number
                for number, page in enumerate(self.pages, self.first)
                if page.trouble == trouble
            ]
            if numbers:
                extent = "read in part" if trouble == "part" else "not read"
                reasons.append(
                    f"pages {extent}: {len(numbers)} of {len(self.pages)} (the first is page "
                    f"{numbers[0]}), since they {why}"
                )
        if vanished := [
            number
            for number, page in enumerate(self.pages, self.first)
            if page.vanished
        ]:
            reasons.append(
                "pages with text that the PDF library could not decode: "
                f"{len(vanished)} (the first is page {vanished[0]})"
            )
        if self._is_xfa:
            reasons.append("its XFA form, which few programs can show")
        next_page, next_span = self.first + len(self.pages), ""
        if next_page <= self._wanted:
            reasons.append(f"pages {next_page} to {self._wanted} of {self.count}")
            next_span = f"{next_page}-{min(next_page + MAX_PAGES - 1, self._wanted)}"
        waiting = next(
            (
                number
                for number, page in enumerate(self.pages, self.first)
                if page.trouble == "waiting"
            ),
            0,
        )
        return ", ".join(reasons), f"{waiting}-{self._wanted}" if waiting else next_span

    def _illegible(self) -> str:
        """Return what of the print in images could not be recognised, in words; empty
        where nothing was left out."""
        pages = [
            (number, page)
            for number, page in enumerate(self.pages, self.first)
            if page.unsure
        ]
        if not pages:
            return ""
        (first_page, page), lines = pages[0], sum(page.unsure for _, page in pages)
        where = (
            f"page {first_page}"
            if len(pages) == 1
            else f"{len(pages)} pages (the first is page {first_page})"
        )
        may = (
            f"may be in a writing that it does not know; it knows {page.known_scripts}"
        )
        return (
            f"{lines} {'lines' if lines > 1 else 'line'} of text on {where} that OCR could "
            f"not read ({may})"
        )

    def _render(self, pages: Sequence[list[PrintLine]], title: str) -> tuple[str, str]:
        """Return pages of lines as HTML and as `Page.printed`; each that was recognised
        has sizes of its own, and places for its parts."""
        read = sizes_of(
            [
                lines
                for lines, page in zip(pages, self.pages, strict=True)
                if not page.recognised
            ]
        )
        markup, printed = [], []
        for number, (lines, page) in enumerate(
            zip(pages, self.pages, strict=True), self.first
        ):
            levels, leading = sizes_of([lines]) if page.recognised else read
            markup.append(f'<section {PLACE}="page={number}">')
            page_parts = list(parts_of(lines, levels, leading))
            if page.recognised:
                markup += [
                    placed(
                        page_part.html,
                        self._place(number, page_part.bands, page.height),
                        tag="div",
                    )
                    for page_part in page_parts
                ]
            else:
                markup += [page_part.html for page_part in page_parts]
                bands = [band for page_part in page_parts for band in page_part.bands]
                printed.append(" ".join((str(number), *_banded(bands, page.height))))
            markup += [
                f"<p>Comment: {escape(comment)}</p>" for comment in page.comments
            ]
            markup.append("</section>")
        if self._attached:
            markup.append(f"<p>Attached files: {escape(', '.join(self._attached))}</p>")
        return whole_page("\n".join(markup), title=title), "\n".join(printed)

    def _place(self, number: int, bands: Sequence[Band], height: float) -> str:
        """Return the box of some lines as the fragment of a link: left, top, width and
        height from the upper left."""
        left, low, right, top = around([band.box for band in bands])
        top, low = height - top, height - low
        box = ",".join(
            f"{max(0, round(edge))}" for edge in (left, top, right - left, low - top)
        )
        return f"page={number}&{self.box}={box}"

    def _why_empty(self) -> str:
        kind, troubles = self.kind, {page.trouble for page in self.pages}
        if self.count == 0:
            return f"it is {kind} without pages"
        if not self.pages:
            return f"it is {kind} whose first page takes too long to read"
        if len(troubles) == 1 and (trouble := troubles.pop()) in _WHOLE_TROUBLES:
            return f"it is {kind} whose pages {_TROUBLE[trouble]}"
        if any(page.hidden for page in self.pages):
            return f"it is {kind} without visible text: all of its text is hidden"
        # Scanned, if at all: what keeps the first such page from being read
        if lines := self._illegible():
            return f"it is scanned: {kind} with {lines}"
        why = next(
            (_TROUBLE[page.trouble] for page in self.pages if page.trouble in _SCANNED),
            "",
        )
        return (
            f"it is scanned: {kind} whose pages {why}"
            if why
            else f"it is {kind} with empty pages"
        )


def _banded(bands: Sequence[Band], height: float) -> Iterator[str]:
    """Yield lines of a page as `Page.printed` has them, rounded outwards."""
    for (left, low, right, top), letters in bands:
        edges = (
            math.floor(left),
            math.floor(height - top),
            math.ceil(right),
            math.ceil(height - low),
        )
        yield ",".join(map(str, (*edges, letters)))


def pdf_to_html(body: bytes, *, seconds: float = READING_SECONDS) -> Converted:
    """Return the pages of a PDF as HTML, as far as they are read in `seconds` of
    processor time.

    Raises `Unreadable`: encrypted, damaged, or without text. Of more than `MAX_PAGES`
    pages the first are read; the result says which are not.
    """
    reading = PdfReading(body)
    reading.read(seconds, remaining_seconds=seconds)
    return reading.converted()


def _trouble(
    page: Print, lines: Sequence[PrintLine], letters: int, vanished: int
) -> str:
    """Return why the lines of a page are not all of its text, as in `PageLines`; empty
    where they may be."""
    if not lines and (page.images or page.paths >= _DRAWING_PATHS or vanished):
        return "image"
    if letters and page.unmapped > _UNMAPPED * letters:
        return "unmapped"
    return "few" if page.images and letters < _STRAY else ""


def _read_page(page: Print) -> PageLines:
    """Return the visible lines of a page; of a scanned page without visible text, its
    invisible ones."""
    hidden = len(page.hidden)
    if only_hidden := not page.pieces and hidden > 0 and page.images > 0:
        page.pieces = page.hidden
    lines = lines_of(page)
    letters = sum(len(piece.text) for piece in page.pieces)
    vanished = (
        page.text_operators
        if page.text_operators >= _TEXT_OPERATORS
        and letters + sum(len(hidden_piece.text) for hidden_piece in page.hidden) == 0
        else 0
    )
    return PageLines(
        lines,
        _trouble(page, lines, letters, vanished),
        0 if only_hidden else hidden,
        only_hidden,
        page.height,
        comments=page.comments,
        vanished=vanished,
        pictures=0
        if only_hidden
        else page.pictures + (letters < _STRAY and page.paths >= _OUTLINES),
        attached=page.attached,
        media=page.media,
    )
