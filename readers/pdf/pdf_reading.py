"""PDF to HTML: lines with their font sizes become headings, paragraphs and tables, each
page a section with its place.

A PDF has positions of glyphs, not structure. A clearly larger line is a heading; a gap
wider than the usual leading ends a paragraph; a fixed-width font is code. A line that
recurs at the edge of most pages is furniture; adjacent lines with aligned pieces are a
table. PDFium reads and draws the pages, one after the other, each bounded before it is
loaded. Pages that are images, and image files, are recognised where the extra `ocr` is
installed (`readers/media/`). Not for: tables without rulings drawn column by
column."""

import json
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Final

import pypdfium2

from cancellation import check_cancelled
from readers.converted import (
    ALL_PAGES,
    DAMAGED,
    INSTALL_OCR,
    MAX_ITEMS,
    MAX_PAGES,
    MOST_HIDDEN,
    MOST_PIXELS,
    PAGE_SECONDS,
    WHOLE_PICTURE,
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
from readers.ledger import Ledger
from readers.media.recognition import Recognised, Scans
from readers.page import Trust
from readers.pdf.pdf_guard import Guard
from readers.pdf.pdf_layout import lines_of
from readers.pdf.pdf_lines import (
    Cell,
    PrintLine,
    compounds_of,
    drop_running,
    html_of,
    sizes_of,
)
from readers.pdf.pdf_page import Piece, Print, opened, printed
from seams import later

READING_SECONDS: Final = 60.0
"""Processor time for one reading: 400 pages as heavy as any seen (a browser's print,
140 ms each). Far above what files need, since where time cuts a file another run would
cut it elsewhere."""
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
_GLYPH_CODES: Final = re.compile(r"(?:\(cid:\d+\)|/[A-Za-z]\d[\dA-F])+")
"""What other programs write into a file in the place of letters that they cannot name."""
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
_SCANNED: Final = ("refused", "unsighted", "image", "waiting")
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
    """Whether most of its text is invisible, as that of a scan is, and shown."""
    height: float = 0.0
    """Of the page."""
    recognised: bool = False
    """Whether its lines were recognised by us."""
    took: float = 0.0
    """Processor seconds of that."""
    unsure: int = 0
    """Lines that could not be recognised and were left out."""
    comments: Sequence[str] = ()
    """What readers of the file wrote beside its text."""
    pictures: int = 0
    """Large images."""
    embedded: int = 0
    """Attached files, films and sounds."""


def _line(
    text: str, size: float, y: float, fixed: bool, cells: Sequence[Any], *rest: Any
) -> PrintLine:
    return PrintLine(text, size, y, fixed, [Cell(*cell) for cell in cells], *rest)


class PdfReading:
    """A PDF on its way to HTML, page by page; what was read can be kept, and another
    process goes on from there."""

    kind: ClassVar = "a PDF"

    def __init__(
        self,
        body: bytes,
        span: Span = ALL_PAGES,
        saved_pages: bytes = b"",
        *,
        scan_seconds: float = SCAN_SECONDS,
        ending: Sequence[int] = (),
    ) -> None:
        """Open a file, of whose pages in `span` at most `MAX_PAGES` are read; `saved_pages` is
        what an earlier reading kept.

        After `scan_seconds` of processor time it begins to
        recognise no further page. Pages that are `ending` have ended a process, and are
        left out.

        Raises `Unreadable`: encrypted, damaged, or without these pages.
        """
        self._body, self._scan_seconds, self._ending = body, scan_seconds, ending
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
        attached = range(min(self._file.count_attachments(), MAX_ITEMS))
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
        has_few = page_lines.trouble == "few"
        unread = replace(page_lines, trouble="" if has_few else page_lines.trouble)
        if not can_recognise():
            return _troubled(unread, "unsighted")
        if sum(page.took for page in self.pages) >= self._scan_seconds:
            return replace(unread, trouble="waiting")
        try:
            image = self._scans.page(number)
        except Unreadable:
            return _troubled(unread, "refused")
        began = time.thread_time()
        read: Recognised = later("readers.media.scan", "read_scan")(
            image, began + SCAN_SECONDS
        )
        took = time.thread_time() - began
        if _letters(read.lines) <= _letters(unread.lines):
            return replace(unread, took=took, unsure=read.unsure)
        return replace(
            unread,
            lines=read.lines,
            trouble="" if read.is_complete else "part",
            height=len(image.pixels) * image.unit,
            recognised=True,
            took=took,
            unsure=read.unsure,
        )

    @cached_property
    def _scans(self) -> Scans:
        scans: Scans = later("readers.media.images", "PdfScans")(self._body)
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
        hidden = sum(page.hidden for page in self.pages)
        scans = sum(page.is_scan for page in self.pages)
        recognised = sum(page.recognised for page in self.pages)
        notes = []
        if hidden:
            notes.append(f"PDF: hidden pieces of text removed: {hidden}")
        if scans:
            notes.append(
                f"PDF: pages whose text is a layer that is not drawn, as on scans: {scans}"
            )
        if recognised:
            notes.append(
                f"OCR: pages whose images were read: {recognised} of {len(lines)}; letters may be wrong"
            )
        if self._span != ALL_PAGES:
            notes.append(
                f"Pages read: {self.first} to {self.first + len(lines) - 1} of "
                f"{self.count}"
            )
        drop_running(lines, [page.height for page in self.pages])
        trust: Trust = (
            "recognised" if scans or recognised == sum(map(bool, lines)) else "visible"
        )
        return Converted(
            self._render(lines, title),
            title,
            "",
            author,
            "",
            tuple(notes),
            *self._unread(),
            trust,
            hidden,
            self._ledger(),
        )

    def _ledger(self) -> Ledger:
        """Return what no reading gives: attached files, and large images beside
        text."""
        ledger = Ledger()
        ledger.hold("attachment", len(self._attached))
        ledger.hold("embedded object", sum(page.embedded for page in self.pages))
        pictures = (
            0 if page.recognised or page.trouble else page.pictures
            for page in self.pages
        )
        ledger.hold("image", sum(pictures))
        return ledger

    def _numbered(self, trouble: str, has_lines: bool) -> list[int]:
        return [
            number
            for number, page in enumerate(self.pages, self.first)
            if page.trouble == trouble and bool(page.lines) == has_lines
        ]

    def _unread(self) -> tuple[str, str]:
        """Return which pages were wanted and are missing, in words, and those that can
        be asked for next.

        Both are empty where nothing is missing."""
        reasons = list(filter(None, [self._illegible()]))
        for (trouble, why), has_lines in product(_TROUBLE.items(), (False, True)):
            if numbers := self._numbered(trouble, has_lines):
                extent = "read in part" if has_lines else "not read"
                reasons.append(
                    f"pages {extent}: {len(numbers)} of {len(self.pages)} (the first is page "
                    f"{numbers[0]}), since they {why}"
                )
        if self._is_xfa:
            reasons.append("its XFA form, which few programs can show")
        next_page, next_span = self.first + len(self.pages), ""
        if next_page <= self._wanted:
            reasons.append(f"pages {next_page} to {self._wanted} of {self.count}")
            next_span = f"{next_page}-{min(next_page + MAX_PAGES - 1, self._wanted)}"
        troubles = [page.trouble for page in self.pages]
        if "waiting" in troubles:
            next_span = f"{self.first + troubles.index('waiting')}-{self._wanted}"
        return ", ".join(reasons), next_span

    def _illegible(self) -> str:
        """Return what of the print in images could not be recognised, in words; empty
        where nothing was left out."""
        pages = enumerate(self.pages, self.first)
        numbers = [number for number, page in pages if page.unsure]
        if not numbers:
            return ""
        count = sum(page.unsure for page in self.pages)
        return (
            f"{count} {'lines' if count > 1 else 'line'} of text that OCR could not read (the first "
            f"is on page {numbers[0]}), and may be in a writing that it does not know"
        )

    def _render(self, pages: Sequence[list[PrintLine]], title: str) -> str:
        """Return pages of lines as HTML; each that was recognised has sizes of its
        own."""
        shared = sizes_of(
            [
                lines
                for lines, page in zip(pages, self.pages, strict=True)
                if not page.recognised
            ]
        )
        compounds = compounds_of(pages)
        markup = []
        for number, (lines, page) in enumerate(
            zip(pages, self.pages, strict=True), self.first
        ):
            sizes = sizes_of([lines]) if page.recognised else shared
            comments = (
                f"<p>Comment: {escape(comment)}</p>" for comment in page.comments
            )
            page_html = "\n".join((*html_of(lines, *sizes, compounds), *comments))
            fragment = self._place(number, recognised=page.recognised)
            markup.append(placed(f"\n{page_html}\n", fragment))
        if self._attached:
            markup.append(f"<p>Attached files: {escape(', '.join(self._attached))}</p>")
        return whole_page("\n".join(markup), title=title)

    def _place(self, number: int, *, recognised: bool) -> str:
        """Return a page as the fragment of a link; of one that was recognised the whole
        picture, which is how `is_box` knows it."""
        return f"page={number}{'&' + WHOLE_PICTURE if recognised else ''}"

    def _why_empty(self) -> str:
        kind, troubles = self.kind, {page.trouble for page in self.pages}
        if self.count == 0:
            return f"it is {kind} without pages"
        if not self.pages:
            return f"it is {kind} whose first page takes too long to read"
        if any(page.hidden for page in self.pages):
            return f"it is {kind} without visible text: all of its text is hidden"
        if lines := self._illegible():
            return f"it is scanned: {kind} with {lines}"
        # Scanned, if at all: what keeps the first such page from being read
        trouble = next((reason for reason in _SCANNED if reason in troubles), "")
        if trouble:
            return f"it is scanned: {kind} whose pages {_TROUBLE[trouble]}"
        trouble = next(filter(None, troubles), "")
        return (
            f"it is {kind} whose pages {_TROUBLE[trouble]}"
            if trouble
            else f"it is {kind} with empty pages"
        )


def _letters(lines: Sequence[PrintLine]) -> int:
    return sum(len(line.text) for line in lines)


def _troubled(page_lines: PageLines, trouble: str) -> PageLines:
    """Return a page with why its image cannot be read, where it needs that."""
    is_image = page_lines.trouble == "image"
    return replace(page_lines, trouble=trouble) if is_image else page_lines


def _trouble(page: Print, lines: Sequence[PrintLine], letters: int) -> str:
    """Return why the lines of a page are not all of its text, as in `PageLines`; empty
    where they may be."""
    is_drawing = page.paths >= _DRAWING_PATHS or page.text_operators > 0
    if not lines and not page.hidden and (page.images or is_drawing):
        return "image"
    if letters and sum(map(_unnamed, page.pieces)) > _UNMAPPED * letters:
        return "unmapped"
    return "few" if page.images and letters < _STRAY else ""


def _unnamed(piece: Piece) -> int:
    """Return how many letters of a piece cannot be read, as the file does not name them."""
    return len(piece.text) if _GLYPH_CODES.fullmatch(piece.text) else piece.unmapped


def _read_page(page: Print) -> PageLines:
    """Return the visible lines of a page; the invisible ones too where these are most, or
    all of a scan."""
    hidden = len(page.hidden)
    is_layer = not page.pieces and hidden > 0 and page.images > 0
    is_scan = is_layer or hidden > max(MOST_HIDDEN, len(page.pieces))
    if is_scan:
        page.pieces, hidden = [*page.pieces, *page.hidden], 0
    lines = lines_of(page)
    letters = sum(len(piece.text) for piece in page.pieces)
    outlines = letters < _STRAY and page.paths >= _OUTLINES
    trouble = _trouble(page, lines, letters)
    if trouble == "unmapped":
        page.pieces = [piece for piece in page.pieces if not _unnamed(piece)]
        lines = lines_of(page)
    return PageLines(
        lines,
        trouble,
        hidden + page.outside,
        is_scan,
        page.height,
        comments=page.comments,
        pictures=0 if is_scan else page.pictures + outlines,
        embedded=page.embedded,
    )
