"""A page of a PDF as PDFium has it: pieces of print with their places, rulings, images,
form values, comments.

Places are points from the lower left of the page as it is shown. PDFium looks at no
clock and serves one thread at a time. Not for: lines and their order
(`readers/pdf/pdf_layout.py`); which print is seen (`readers/pdf/pdf_seen.py`); what
may be loaded (`readers/pdf/pdf_guard.py`)."""

import ctypes
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pypdfium2
import pypdfium2.raw as pdfium

from readers.converted import LEAST_SIZE, Unreadable
from readers.html.colours import LEAST_ALPHA
from readers.pdf.pdf_seen import Box, looked_at
from readers.text.markup import plain_text

MOST_LETTERS: Final = 200_000
"""Of a page; a dense one has 8,000."""
MOST_OBJECTS: Final = 200_000
PICTURE: Final = 0.2
"""Minimum share of a page for an image to be content."""
MOST_RULINGS: Final = 1_500
"""A page with more of them is a drawing, not a table."""
MOST_FIELDS: Final = 2_000
"""Annotations of a page that are looked at."""
MOST_OTHER_TEXT: Final = 64
"""Bytes of text in the place of print above which it holds letters."""
FORM_DEPTH: Final = 8
_THIN: Final = 3.0
"""Points up to which a filled area is a ruling."""
_PRINTED_WORD: Final = re.compile("[^\x00\x01\x03-\x20\xa0\u3000]+")
_FIXED_WIDTH: Final = re.compile(
    rb"mono|courier|consol|cmtt|typewriter|menlo", re.IGNORECASE
)
_LETTERS_OF_SIGN: Final = str.maketrans(
    {
        **dict(
            zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)
        ),
        "\x02": "-",
        "\ufffe": "-",
    }
)
"""Ligatures, which searches do not use; PDFium's mark of a hyphen at a line's end."""
_UNSEEN_MODES: Final = frozenset({3, 7})
"""Text rendering modes that draw nothing: invisible, and clipping alone."""
_NOT_SHOWN: Final = 0b100010
"""Flags of an annotation (ISO 32000-1 §12.5.3): hidden, not viewed."""
_SEGMENTS: Final = 400
_EMBEDDING: Final = frozenset(
    {
        pdfium.FPDF_ANNOT_FILEATTACHMENT,
        pdfium.FPDF_ANNOT_SOUND,
        pdfium.FPDF_ANNOT_MOVIE,
        pdfium.FPDF_ANNOT_SCREEN,
        pdfium.FPDF_ANNOT_THREED,
        pdfium.FPDF_ANNOT_RICHMEDIA,
    }
)


def _direct(function: Any, returned: Any, *argument_types: Any) -> Any:
    """Return a function of PDFium that takes and returns addresses and numbers as they
    are, for what is called for each word: half the time of objects for pointers."""
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    return ctypes.PYFUNCTYPE(returned, *argument_types)(address)


_TEXT_OBJECT: Final = _direct(
    pdfium.FPDFText_GetTextObject, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int
)
_LOOSE_BOX: Final = _direct(
    pdfium.FPDFText_GetLooseCharBox,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_void_p,
)
_UNICODE: Final = _direct(
    pdfium.FPDFText_GetUnicode, ctypes.c_uint, ctypes.c_void_p, ctypes.c_int
)
_IS_GENERATED: Final = _direct(
    pdfium.FPDFText_IsGenerated, ctypes.c_int, ctypes.c_void_p, ctypes.c_int
)
_RECTANGLE: Final = struct.Struct("4f")
"""PDFium's FS_RECTF: left, top, right and bottom."""

Matrix = tuple[float, float, float, float, float, float]
Ruling = tuple[float, float, float]
"""Its place, and where it begins and ends along the other axis."""


@dataclass(slots=True)
class Piece:
    """Print of one size on one baseline without a blank in it. Its places are those
    along its own direction."""

    text: str
    left: float
    right: float
    y: float
    """Of the baseline."""
    size: float
    """Height of the type."""
    fixed: bool
    turn: int
    """Quarters of a circle by which it is turned to the left."""
    tight: bool
    """Whether no blank is before it."""
    parted: bool
    """Whether the file itself has a blank before it, and not PDFium by the distance
    alone."""
    origin: int
    """Names the operator that showed it, within its page."""
    unmapped: int = 0
    """Letters of which the file does not say what they are."""


@dataclass(slots=True)
class Print:
    """What was found on a page."""

    pieces: list[Piece]
    """In the order of the file."""
    width: float
    height: float
    hidden: list[Piece] = field(default_factory=list)
    """That no reader sees."""
    outside: int = 0
    """Pieces beyond its edges: what another page shows, or marks of printers."""
    upright: list[Ruling] = field(default_factory=list)
    """Rulings from top to bottom: x, lower and upper end."""
    level: list[Ruling] = field(default_factory=list)
    """Rulings from left to right: y, left and right end."""
    images: int = 0
    pictures: int = 0
    """Images that take a good part of the page."""
    paths: int = 0
    text_operators: int = 0
    """Operators that show text."""
    values: list[tuple[str, Box]] = field(default_factory=list)
    """What the fields of a form hold, and their boxes."""
    comments: list[str] = field(default_factory=list)
    embedded: int = 0
    """Files, films, sounds and models in space that are at a place of it."""


class PageFrame:
    """Turns places of a page's own space into points from the lower left of the page as
    it is shown."""

    def __init__(self, page: Any) -> None:
        self.width, self.height = page.get_size()
        self.turns = pdfium.FPDFPage_GetRotation(page.raw)
        box = pdfium.FS_RECTF()
        pdfium.FPDF_GetPageBoundingBox(page.raw, box)
        self.left, self._low, self._right, self._top = (
            box.left,
            box.bottom,
            box.right,
            box.top,
        )

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a place is shown."""
        match self.turns:
            case 0:
                return x - self.left, y - self._low
            case 1:
                return y - self._low, self._right - x
            case 2:
                return self._right - x, self._top - y
        return self._top - y, x - self.left

    def box(self, left: float, low: float, right: float, top: float) -> Box:
        """Return a box as it is shown."""
        (a, b), (c, d) = self.at(left, low), self.at(right, top)
        return min(a, c), min(b, d), max(a, c), max(b, d)


def printed(file: Any, number: int) -> Print:
    """Return what a page of a file of pypdfium2 shows, counted from 1. Stamps are made
    part of the page, other annotations are hidden.

    Raises `Unreadable`: more letters or objects than a page can have.
    """
    page = file[number - 1]
    try:
        frame = PageFrame(page)
        page_print = Print([], frame.width, frame.height)
        if _annotated(page, file.formenv, frame, page_print):
            pdfium.FPDFPage_Flatten(page.raw, pdfium.FLAT_NORMALDISPLAY)
            page.close()
            page = file[number - 1]
        return _with_print(page, frame, page_print)
    finally:
        page.close()


def _with_print(page: Any, frame: PageFrame, page_print: Print) -> Print:
    showing, is_text_alone = _drawn(page, frame, page_print)
    text = page.get_textpage()
    try:
        page_text = _Text(text.raw, frame)
        seen = (
            looked_at(
                page,
                showing,
                [printed_piece.origin for printed_piece in page_text.pieces],
                page_text.boxes,
                is_text_alone=is_text_alone,
            )
            if page_text.pieces
            else []
        )
        for piece, box, is_seen, is_unseen in zip(
            page_text.pieces, page_text.boxes, seen, page_text.unseen, strict=True
        ):
            if is_seen and not is_unseen:
                page_print.pieces.append(piece)
            elif _is_outside(box, frame):
                page_print.outside += 1
            else:
                page_print.hidden.append(piece)
        return page_print
    finally:
        text.close()


def _is_outside(box: Box, frame: PageFrame) -> bool:
    left, low, right, top = box
    return right <= 0 or top <= 0 or left >= frame.width or low >= frame.height


@dataclass(frozen=True, slots=True)
class _Face:
    """Properties shared by all letters of one text operator."""

    size: float
    turn: int
    fixed: bool
    unseen: bool
    unmapped: bool
    drawn: bool
    """Whether its font is of drawings (Type 3), whose codes are those of ASCII in all
    that plotting programs and TeX write, though PDFium knows no letter for them."""


class _Text:
    """The letters of a page. PDFium writes what it is asked for into buffers, which
    serve for all letters."""

    def __init__(self, text: Any, frame: PageFrame) -> None:
        self._text, self._frame = text, frame
        self._address = ctypes.cast(text, ctypes.c_void_p).value
        self._letters = self._read_letters()
        self._faces: dict[int, _Face] = {}
        self._fixed: dict[int, bool] = {}
        """Whether a font has one width for all letters, by its address."""
        self._box = ctypes.create_string_buffer(_RECTANGLE.size)
        self._box_address = ctypes.addressof(self._box)
        self._matrix = pdfium.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._ink = [ctypes.c_uint() for _ in range(4)]
        self._name = ctypes.create_string_buffer(128)
        self.pieces: list[Piece] = []
        self.boxes: list[Box] = []
        self.unseen: list[bool] = []
        """Whether each piece is set without ink, or too small for any eye."""
        for word in _PRINTED_WORD.finditer(self._letters):
            self._take(*word.span())

    def _take(self, start: int, stop: int) -> None:
        """Add a word as pieces, one for each size of type and baseline."""
        piece_start, origin = start, self._origin(start)
        if stop - start == 1 or self._origin(stop - 1) == origin:
            self._add(start, stop, origin, tight=False)
            return
        for number in range(start + 1, stop + 1):
            after = self._origin(number) if number < stop else 0
            if after != origin:
                self._add(piece_start, number, origin, tight=piece_start > start)
                piece_start, origin = number, after

    def _add(self, start: int, stop: int, origin: int, *, tight: bool) -> None:
        face = self._faces.get(origin)
        if face is None:
            face = self._faces[origin] = self._face(start)
        piece, box = self._piece(start, stop, face, origin)
        if face.unmapped:
            letters = self._letters[start:stop]
            piece.unmapped = (
                sum(not letter.isascii() for letter in letters)
                if face.drawn
                else len(letters)
            )
        before = self.pieces[-1] if self.pieces and tight else None
        if (
            before is not None
            and _goes_on(before, piece)
            and self.unseen[-1] == face.unseen
        ):
            before.text += piece.text
            before.unmapped += piece.unmapped
            before.left, before.right = (
                min(before.left, piece.left),
                max(before.right, piece.right),
            )
            self.boxes[-1] = _around(self.boxes[-1], box)
            return
        piece.tight = tight
        piece.parted = (
            not tight and start > 0 and _IS_GENERATED(self._address, start - 1) == 0
        )
        self.pieces.append(piece)
        self.boxes.append(box)
        self.unseen.append(face.unseen)

    def _origin(self, number: int) -> int:
        """Return the address of the operator that shows a letter, 0 for a letter that
        PDFium adds."""
        return _TEXT_OBJECT(self._address, number) or 0

    def _letter_box(self, number: int) -> Box:
        _LOOSE_BOX(self._address, number, self._box_address)
        left, top, right, low = _RECTANGLE.unpack_from(self._box)
        return left, low, right, top

    def _face(self, number: int) -> _Face:
        matrix = self._matrix
        pdfium.FPDFText_GetMatrix(self._text, number, matrix)
        points = pdfium.FPDFText_GetFontSize(self._text, number)
        size = points * (math.hypot(matrix.c, matrix.d) or 1.0)
        turn = round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) - self._frame.turns
        unseen = (
            size < LEAST_SIZE
            or points * math.hypot(matrix.a, matrix.b) < LEAST_SIZE / 4
        )
        fixed = False
        if text_object := pdfium.FPDFText_GetTextObject(self._text, number):
            mode = pdfium.FPDFTextObj_GetTextRenderMode(text_object)
            clear = mode == 0 and pdfium.FPDFPageObj_GetFillColor(
                text_object, *self._ink
            )
            unseen |= mode in _UNSEEN_MODES or (
                clear and self._ink[3].value < 255 * LEAST_ALPHA
            )
            fixed = self._is_fixed(pdfium.FPDFTextObj_GetFont(text_object))
        unmapped = pdfium.FPDFText_HasUnicodeMapError(self._text, number) == 1
        drawn = (
            unmapped
            and bool(text_object)
            and _is_drawn(pdfium.FPDFTextObj_GetFont(text_object))
        )
        return _Face(size, turn % 4, fixed, unseen, unmapped, drawn)

    def _read_letters(self) -> str:
        """Return a page's letters, one for each of PDFium's numbers; what is no letter
        becomes U+FFFD. Raises `Unreadable` for more than `MOST_LETTERS`."""
        count = pdfium.FPDFText_CountChars(self._text)
        if count > MOST_LETTERS:
            raise Unreadable(
                f"it has {count:,} letters on one page, more than the limit"
            )
        codes = (_UNICODE(self._address, number) for number in range(count))
        return "".join(chr(code) if code < 0x110000 else "\ufffd" for code in codes)

    def _is_fixed(self, font: Any) -> bool:
        if not font:
            return False
        key = ctypes.addressof(font.contents)
        if key not in self._fixed:
            pdfium.FPDFFont_GetBaseFontName(font, self._name, 128)
            self._fixed[key] = _FIXED_WIDTH.search(self._name.value) is not None
        return self._fixed[key]

    def _piece(
        self, start: int, stop: int, face: _Face, origin: int
    ) -> tuple[Piece, Box]:
        box = self._letter_box(start)
        if stop - start > 1:
            box = _around(box, self._letter_box(stop - 1))
        box = self._frame.box(*box)
        pdfium.FPDFText_GetCharOrigin(self._text, start, self._x, self._y)
        x, y = self._frame.at(self._x.value, self._y.value)
        along = ((box[0], box[2], y), (box[1], box[3], -x), (-box[2], -box[0], -y))
        left, right, base = (*along, (-box[3], -box[1], x))[face.turn]
        if face.turn == 0:
            box = left, base - 0.15 * face.size, right, base + 0.75 * face.size
        text = self._letters[start:stop]
        if not text.isascii() or "\x02" in text:
            text = text.translate(_LETTERS_OF_SIGN)
            # The halves of letters beyond the first plane have numbers of their own.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        size = round(face.size, 1)
        piece = Piece(
            text, left, right, base, size, face.fixed, face.turn, False, False, origin
        )
        return piece, box


def _is_drawn(font: Any) -> bool:
    """Return whether a font has no program of its own, since each letter is a drawing;
    False without a font."""
    size = ctypes.c_size_t(1)
    return (
        bool(font)
        and bool(pdfium.FPDFFont_GetFontData(font, None, 0, size))
        and not size.value
    )


def _goes_on(before: Piece, piece: Piece) -> bool:
    """Return whether a piece of print has the line, size and direction of the one
    before, and begins or ends close to it. Fonts are not compared."""
    level = (
        abs(before.y - piece.y) < 0.05 * before.size
        and abs(before.size - piece.size) < 0.05 * before.size
    )
    is_adjacent = (
        abs(piece.left - before.right) < 0.3 * before.size
        or abs(before.left - piece.right) < 0.3 * before.size
    )
    return level and is_adjacent and before.turn == piece.turn


def _around(box: Box, other_box: Box) -> Box:
    a, b, c, d = box
    e, f, g, h = other_box
    return a if a < e else e, b if b < f else f, c if c > g else g, d if d > h else h


def _drawn(page: Any, frame: PageFrame, page_print: Print) -> tuple[list[Any], bool]:
    """Note images, paths and rulings of a page; return the objects that show text, and
    whether the page has no others.

    Rulings of more than `MOST_RULINGS` paths are not noted. Raises `Unreadable` for too
    many objects."""
    showing = []
    other_objects = 0
    strips: dict[tuple[int, int], float] = {}
    """Area of images by their left edge and width, which the strips of one picture
    share."""
    for drawn, matrix in _objects(page.raw):
        kind = pdfium.FPDFPageObj_GetType(drawn)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            showing.append(drawn)
            _drop_other_text(drawn)
            continue
        other_objects += 1
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            page_print.images += 1
            a, b, c, d, left_edge, _ = _times(_matrix_of(drawn), matrix)
            strip = round(left_edge), round(math.hypot(a, b))
            strips[strip] = strips.get(strip, 0.0) + abs(a * d - b * c)
        elif kind == pdfium.FPDF_PAGEOBJ_PATH:
            page_print.paths += 1
            if page_print.paths <= MOST_RULINGS:
                _ruled(drawn, matrix, frame, page_print)
    page_print.text_operators = len(showing)
    least = PICTURE * frame.width * frame.height
    page_print.pictures = sum(area >= least for area in strips.values())
    return showing, other_objects == 0


def _drop_other_text(drawn: Any) -> None:
    """Take from print the text that the file gives in its place (/ActualText), so that
    what is drawn is read; hyphens and signs without a letter stay."""
    text = ctypes.create_string_buffer(MOST_OTHER_TEXT)
    for number in reversed(range(pdfium.FPDFPageObj_CountMarks(drawn))):
        mark = pdfium.FPDFPageObj_GetMark(drawn, number)
        size = ctypes.c_ulong()
        pdfium.FPDFPageObjMark_GetParamStringValue(
            mark,
            b"ActualText",
            ctypes.cast(text, ctypes.POINTER(ctypes.c_ushort)),
            MOST_OTHER_TEXT,
            size,
        )
        letters = text.raw[: size.value].decode("utf-16-le", "replace")
        if size.value > MOST_OTHER_TEXT or any(map(str.isalnum, letters)):
            pdfium.FPDFPageObj_RemoveMark(drawn, mark)


def _objects(page: Any) -> Iterator[tuple[Any, Matrix | None]]:
    """Yield the objects of a page and of the forms that it draws, each with the form's
    matrix.

    A form nested deeper than `FORM_DEPTH` is yielded itself. Raises `Unreadable` for
    more than `MOST_OBJECTS`."""
    seen = 0
    todo: list[tuple[Iterator[Any], Matrix | None]] = [
        (_listed(pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject, page), None)
    ]
    while todo:
        drawn = next(todo[-1][0], None)
        if drawn is None:
            todo.pop()
            continue
        seen += 1
        if seen > MOST_OBJECTS:
            raise Unreadable(f"it draws more than {MOST_OBJECTS:,} objects on one page")
        form_matrix = todo[-1][1]
        if (
            pdfium.FPDFPageObj_GetType(drawn) == pdfium.FPDF_PAGEOBJ_FORM
            and len(todo) <= FORM_DEPTH
        ):
            form_objects = _listed(
                pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject, drawn
            )
            todo.append((form_objects, _times(_matrix_of(drawn), form_matrix)))
        else:
            yield drawn, form_matrix


def _listed(
    count: Callable[[Any], int], get: Callable[[Any, int], Any], holder: Any
) -> Iterator[Any]:
    return (get(holder, number) for number in range(count(holder)))


def _matrix_of(drawn: Any) -> Matrix:
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(drawn, matrix)
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _times(matrix: Matrix, outer_matrix: Matrix | None) -> Matrix:
    """Return the product of two transformations (ISO 32000-1 §8.3.3)."""
    if outer_matrix is None:
        return matrix
    a, b, c, d, e, f = matrix
    g, h, i, j, k, m = outer_matrix
    return (
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + m,
    )


def _ruled(
    path: Any, form_matrix: Matrix | None, frame: PageFrame, page_print: Print
) -> None:
    """Note the upright and the level lines of a path, thin areas among them.

    Paths that are not drawn, or of more than `_SEGMENTS` segments, are passed over."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(path, fill, stroke)
    count = pdfium.FPDFPath_CountSegments(path)
    if not (fill.value or stroke.value) or count > _SEGMENTS:
        return
    matrix = _times(_matrix_of(path), form_matrix)
    points = _corners(path, count, matrix, frame)
    xs, ys = [x for _, x, _, _ in points], [y for _, _, y, _ in points]
    if not xs:
        return
    left, right, low, top = min(xs), max(xs), min(ys), max(ys)
    if right - left <= _THIN < top - low:
        page_print.upright.append(((left + right) / 2, low, top))
    elif top - low <= _THIN < right - left:
        page_print.level.append(((low + top) / 2, left, right))
    elif stroke.value:
        _edges(points, page_print)


def _corners(
    path: Any, count: int, matrix: Matrix, frame: PageFrame
) -> list[tuple[int, float, float, bool]]:
    """Return the points of a path: kind of segment, place, and whether it closes."""
    x, y = ctypes.c_float(), ctypes.c_float()
    a, b, c, d, e, f = matrix
    corners = []
    for number in range(count):
        segment = pdfium.FPDFPath_GetPathSegment(path, number)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        corner = frame.at(a * x.value + c * y.value + e, b * x.value + d * y.value + f)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        corners.append((kind, *corner, bool(pdfium.FPDFPathSegment_GetClose(segment))))
    return corners


def _edges(points: Sequence[tuple[int, float, float, bool]], page_print: Print) -> None:
    start = previous_point = (0.0, 0.0)
    for kind, x, y, closes in points:
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            start = (x, y)
        elif kind == pdfium.FPDF_SEGMENT_LINETO:
            for (a, b), (c, d) in [
                (previous_point, (x, y)),
                *([((x, y), start)] if closes else []),
            ]:
                if abs(a - c) < 1 < abs(b - d):
                    page_print.upright.append((a, min(b, d), max(b, d)))
                elif abs(b - d) < 1 < abs(a - c):
                    page_print.level.append((b, min(a, c), max(a, c)))
        previous_point = (x, y)


def _annotated(page: Any, form: Any, frame: PageFrame, page_print: Print) -> int:
    """Note the values of a form's fields, the comments of a page and what is attached
    to it; return how many others there are, which become part of the page as they are
    drawn.

    Annotations after the first `MOST_FIELDS` are not looked at."""
    stamps = 0
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page.raw), MOST_FIELDS)):
        note = pdfium.FPDFPage_GetAnnot(page.raw, number)
        if not note:
            continue
        flags = pdfium.FPDFAnnot_GetFlags(note)
        if not flags & _NOT_SHOWN:
            if _noted(note, form, frame, page_print):
                pdfium.FPDFAnnot_SetFlags(note, flags | pdfium.FPDF_ANNOT_FLAG_HIDDEN)
            else:
                stamps += 1
        pdfium.FPDFPage_CloseAnnot(note)
    return stamps


def _noted(note: Any, form: Any, frame: PageFrame, page_print: Print) -> bool:
    """Note what an annotation says or holds; return whether it does, or is a link or
    pop-up. An empty field is not noted."""
    kind = pdfium.FPDFAnnot_GetSubtype(note)
    if kind == pdfium.FPDF_ANNOT_WIDGET:
        note_text = _value(note, form.raw) if form is not None else ""
        if note_text.strip():
            box = pdfium.FS_RECTF()
            pdfium.FPDFAnnot_GetRect(note, box)
            box_shown = frame.box(box.left, box.bottom, box.right, box.top)
            page_print.values.append((note_text, box_shown))
        return bool(note_text.strip())
    if kind in (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP):
        return True
    page_print.embedded += kind in _EMBEDDING
    note_text = _wide(pdfium.FPDFAnnot_GetStringValue, note, b"Contents")
    note_text = note_text or plain_text(
        _wide(pdfium.FPDFAnnot_GetStringValue, note, b"RC")
    )
    page_print.comments.extend([note_text.strip()] if note_text.strip() else [])
    return bool(note_text.strip())


def _chosen(note: Any, form: Any) -> str:
    """Return the labels of what is chosen of the first `MOST_FIELDS` options of a list,
    joined by commas; "" for none."""
    count = min(pdfium.FPDFAnnot_GetOptionCount(form, note), MOST_FIELDS)
    return ", ".join(
        _wide(pdfium.FPDFAnnot_GetOptionLabel, form, note, number)
        for number in range(count)
        if pdfium.FPDFAnnot_IsOptionSelected(form, note, number)
    )


def _value(note: Any, form: Any) -> str:
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, note)
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        return "[x]" if pdfium.FPDFAnnot_IsChecked(form, note) else "[ ]"
    if kind in (pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE):
        return ""
    text = _wide(pdfium.FPDFAnnot_GetFormFieldValue, form, note)
    is_list = kind in (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX)
    return (_chosen(note, form) or text) if is_list else text


def _wide(call: Callable[..., int], *arguments: Any) -> str:
    """Return the UTF-16 text that a function of PDFium writes."""
    size = call(*arguments, None, 0)
    buffer = ctypes.create_string_buffer(max(size, 2))
    call(*arguments, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")


def opened(body: bytes) -> Any:
    """Return a file of pypdfium2. Raises `Unreadable`: damaged, or encrypted with a
    password."""
    try:
        return pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise Unreadable("it is an encrypted PDF that needs a password") from error
        raise Unreadable(f"it is a damaged PDF ({error})") from error
