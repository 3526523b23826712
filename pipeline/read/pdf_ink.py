"""Which text of a PDF page is seen: what is drawn without ink, on its own colour, tiny, outside, switched off, covered.

Followed is the graphics state that decides it (ISO 32000-1 §8.4, §9.3.6): rendering mode, fill colour and alpha, size,
clipping path, optional content, and what is painted below and above. Where a colour cannot be known (patterns, spot
colours, images below) text counts as seen. Not for: words and lines (`pdf.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from pypdf import PageObject, PdfReader
from pypdf.generic import ArrayObject, IndirectObject, TextStringObject

from pipeline.html.style import LEAST_ALPHA, WHITE, Rgb, is_faint
from pipeline.read.converted import LEAST_SIZE

MOST_PAINTS: Final = 2_000
"""Painted areas of a page that are remembered."""
_UNSEEN_MODES: Final = frozenset({3, 7})
"""Text rendering modes that draw nothing: invisible, and clipping alone."""
SHOWS: Final = {b"Tj": 0, b"TJ": 0, b"'": 0, b'"': 2}
"""Operators that show text, and the operand that holds it."""
_FILLS: Final = frozenset((b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*"))
_ENDS: Final = _FILLS | {b"S", b"s", b"n"}
_DEVICES: Final = {"/DeviceGray": 1, "/CalGray": 1, "/G": 1, "/DeviceRGB": 3, "/CalRGB": 3, "/RGB": 3, "/DeviceCMYK": 4}

Box = tuple[float, float, float, float]
Matrix = Sequence[float]
_PLAIN: Final = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_MISSHAPEN: Final = (LookupError, TypeError, ValueError, AttributeError)
"""What operands and resources of another form than the standard's raise; they change nothing then."""


@dataclass(frozen=True, slots=True)
class _State:
    """The part of the graphics state that decides whether text is seen."""

    ink: Rgb | None = (0.0, 0.0, 0.0)
    """Fill colour, None where it cannot be known."""
    parts: int = 1
    """Numbers of a colour in the current colour space, 0 where they mean no colour that we know."""
    mode: int = 0
    size: float = 0.0
    stretch: float = 1.0
    alpha: float = 1.0
    blends: bool = False
    clip: Box | None = None


@dataclass(frozen=True, slots=True)
class _Paint:
    """An area that something was painted on."""

    after: int
    """Pieces of text shown before it."""
    box: Box
    colour: Rgb | None
    covers: bool
    """Whether nothing below is seen any more."""


@dataclass(slots=True)
class Ink:
    """Follows one page while its text is taken out, and empties the operands that show what nobody sees."""

    page: PageObject
    off: frozenset[int]
    """Object numbers of the layers that are switched off (`layers_off`)."""
    unseen: frozenset[int] = frozenset()
    """Pieces to be left out beside, by number: those that `covered` found."""
    shown: int = 0
    """Pieces of text so far."""
    hidden: int = 0
    """Those of them that are not seen."""
    boxes: list[Box] = field(default_factory=list)
    paints: list[_Paint] = field(default_factory=list)
    has_image: bool = False
    _state: _State = field(default_factory=_State)
    _saved: list[_State] = field(default_factory=list)
    _marked: list[bool] = field(default_factory=list)
    """For each open marked content, whether its layer is off."""
    _forms: list[tuple[Matrix, Any, _State, int]] = field(default_factory=list)
    _base: Matrix = _PLAIN
    _resources: Any = None
    _path: list[tuple[float, float]] = field(default_factory=list)
    _rectangles: int = 0
    _clips: bool = False

    def __post_init__(self) -> None:
        """Begin with the page's own box and resources."""
        box = self.page.cropbox
        self._state = _State(clip=(float(box.left), float(box.bottom), float(box.right), float(box.top)))
        self._resources = _got(self.page.get("/Resources"))

    def before(self, operator: bytes, operands: list[Any], cm: Matrix, tm: Matrix) -> None:
        """Take note of an operator before it is worked on."""
        with suppress(*_MISSHAPEN):
            if (at := SHOWS.get(operator)) is not None:
                self._show(operands, at, cm, tm)
            elif operator in _ENDS:
                self._end_path(cm, fills=operator in _FILLS)
            elif (given := _SETS.get(operator)) is not None:
                self._state = replace(self._state, **given(operands))
            elif (change := _CHANGES.get(operator)) is not None:
                change(self, operands)
            elif operator == b"Do":
                self._enter(operands, cm)

    def after(self, operator: bytes, operands: list[Any], cm: Matrix, tm: Matrix) -> None:
        """Go back to where a form was drawn from, once it is done."""
        if operator == b"Do" and self._forms:
            self._base, self._resources, self._state, depth = self._forms.pop()
            del self._marked[depth:]

    def covered(self) -> frozenset[int]:
        """Return the numbers of the pieces of text that something opaque was painted over later."""
        if not self.boxes:
            return frozenset()
        boxes = np.asarray(self.boxes)
        found = np.zeros(len(boxes), dtype=np.bool_)
        for paint in self.paints:
            if paint.covers:
                left, low, right, high = paint.box
                inside = (boxes[:, 0] >= left - 1) & (boxes[:, 2] <= right + 1)
                inside &= (boxes[:, 1] >= low - 1) & (boxes[:, 3] <= high + 1)
                found[: paint.after] |= inside[: paint.after]
        return frozenset(np.flatnonzero(found).tolist())

    def _show(self, operands: list[Any], at: int, cm: Matrix, tm: Matrix) -> None:
        number, state = self.shown, self._state
        self.shown += 1
        whole = times(times(tm, cm), self._base)
        height = state.size * (whole[2] ** 2 + whole[3] ** 2) ** 0.5
        letters = letters_of(operands)
        # From the start of the text to about its end, half a height of type around: a letter is half as wide as high.
        x, y, step = whole[4], whole[5], 0.5 * letters * state.size * state.stretch
        ends = (x, x + step * whole[0]), (y, y + step * whole[1])
        box = (min(ends[0]), min(ends[1]), max(ends[0]), max(ends[1]) + 0.7 * height)
        self.boxes.append(box)
        if (
            number in self.unseen
            or state.mode in _UNSEEN_MODES
            or state.alpha < LEAST_ALPHA
            or height < LEAST_SIZE
            or height * state.stretch < LEAST_SIZE / 4
            or any(self._marked)
            or (state.clip is not None and not _meet(box, state.clip))
            or (state.mode not in {1, 2, 5, 6} and self._is_inkless(box))
        ):
            self.hidden += bool(letters)
            operands[at] = ArrayObject() if isinstance(operands[at], list) else TextStringObject("")

    def _is_inkless(self, box: Box) -> bool:
        """Whether text has the colour of what it stands on: the last area painted below it, else the white page."""
        ink = self._state.ink
        if ink is None:
            return False
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        below = (p for p in reversed(self.paints) if p.box[0] <= x <= p.box[2] and p.box[1] <= y <= p.box[3])
        ground = next(below, None)
        colour = WHITE if ground is None else ground.colour
        return colour is not None and is_faint(ink, colour)

    def _enter(self, operands: list[Any], cm: Matrix) -> None:
        """Take note of an image, or begin a form, which `after` ends."""
        self._forms.append((self._base, self._resources, self._state, len(self._marked)))
        drawn = _got(_got(self._resources["/XObject"])[operands[0]])
        self._marked.append(self._is_off(drawn.raw_get("/OC")) if "/OC" in drawn else False)
        if drawn.get("/Subtype") == "/Image":
            self.has_image = True
            if not any(self._marked):
                clear = bool(drawn.get("/ImageMask")) or "/SMask" in drawn or "/Mask" in drawn
                self._paint(times(cm, self._base), [(0, 0), (1, 1)], None, covers=not clear)
            return
        self._base = times(times([float(part) for part in drawn.get("/Matrix", _PLAIN)], cm), self._base)
        self._resources = _got(drawn.get("/Resources")) or self._resources

    def _paint(
        self, matrix: Matrix, points: Sequence[tuple[float, float]], colour: Rgb | None, *, covers: bool
    ) -> None:
        clear = self._state.blends or self._state.alpha < 1
        box = _around(matrix, points)
        if self._state.clip is not None:
            box = _shared(box, self._state.clip)
        if len(self.paints) < MOST_PAINTS and self._state.alpha >= LEAST_ALPHA and box[0] < box[2] and box[1] < box[3]:
            self.paints.append(_Paint(self.shown, box, None if clear else colour, covers and not clear))

    def _end_path(self, cm: Matrix, *, fills: bool) -> None:
        if self._path:
            matrix = times(cm, self._base)
            if fills and not any(self._marked):
                covers = self._rectangles == 1 and len(self._path) == 2
                self._paint(matrix, self._path, self._state.ink, covers=covers)
            if self._clips:
                box = _around(matrix, self._path)
                self._state = replace(self._state, clip=_shared(self._state.clip, box) if self._state.clip else box)
        self._path, self._rectangles, self._clips = [], 0, False

    def _rectangle(self, operands: list[Any]) -> None:
        x, y, width, height = map(float, operands)
        self._path += [(x, y), (x + width, y + height)]
        self._rectangles += 1

    def _points(self, operands: list[Any]) -> None:
        self._path += list(zip(map(float, operands[::2]), map(float, operands[1::2]), strict=False))

    def _clip(self, _operands: list[Any]) -> None:
        self._clips = True

    def _colour(self, operands: list[Any]) -> None:
        parts = [float(part) for part in operands] if self._state.parts == len(operands) else []
        self._state = replace(self._state, ink=_rgb(parts))

    def _colour_space(self, operands: list[Any]) -> None:
        name: Any = operands[0]
        parts = _DEVICES.get(str(name), 0)
        self._state = replace(self._state, parts=0, ink=None)  # where what follows finds no space that it knows
        if not parts:
            space = _got(_got(self._resources["/ColorSpace"])[name])
            kind = str(space[0] if isinstance(space, list) else space)
            parts = int(_got(space[1])["/N"]) if kind == "/ICCBased" else _DEVICES.get(kind, 0)
        self._state = replace(self._state, parts=parts, ink=(0.0, 0.0, 0.0) if parts else None)

    def _parameters(self, operands: list[Any]) -> None:
        given = _got(_got(self._resources["/ExtGState"])[operands[0]])
        mode = given.get("/BM", "/Normal" if not self._state.blends else "")
        masked = given.get("/SMask", "/None") != "/None"
        self._state = replace(
            self._state,
            alpha=float(given.get("/ca", self._state.alpha)),
            blends=masked or mode not in {"/Normal", "/Compatible"},
        )

    def _begin_marked(self, operands: list[Any]) -> None:
        self._marked.append(False)
        if len(operands) > 1 and operands[0] == "/OC":
            self._marked[-1] = self._is_off(_got(self._resources["/Properties"]).raw_get(operands[1]))

    def _is_off(self, layer: Any) -> bool:
        """Whether a layer, or each of those that membership asks for, is switched off."""
        if isinstance(layer, IndirectObject) and layer.idnum in self.off:
            return True
        listed = _got(layer).raw_get("/OCGs") if "/OCGs" in _got(layer) else None
        groups = listed if isinstance(listed, list) else [listed]
        return all(isinstance(one, IndirectObject) and one.idnum in self.off for one in groups)

    def _save(self, _operands: list[Any]) -> None:
        self._saved.append(self._state)

    def _restore(self, _operands: list[Any]) -> None:
        if self._saved:
            self._state = self._saved.pop()

    def _end_marked(self, _operands: list[Any]) -> None:
        if self._marked:
            self._marked.pop()


_SETS: Final[Mapping[bytes, Callable[[list[Any]], dict[str, Any]]]] = {
    **dict.fromkeys((b"g", b"rg", b"k"), lambda given: {"parts": len(given), "ink": _rgb(list(map(float, given)))}),
    b"Tf": lambda given: {"size": abs(float(given[1]))},
    b"Tr": lambda given: {"mode": int(given[0])},
    b"Tz": lambda given: {"stretch": abs(float(given[0])) / 100},
}
"""Operators that set parts of the graphics state, and to what."""
_CHANGES: Final[Mapping[bytes, Callable[[Ink, list[Any]], None]]] = {
    b"re": Ink._rectangle,
    **dict.fromkeys((b"m", b"l", b"c", b"v", b"y"), Ink._points),
    **dict.fromkeys((b"sc", b"scn"), Ink._colour),
    **dict.fromkeys((b"W", b"W*"), Ink._clip),
    **dict.fromkeys((b"BDC", b"BMC"), Ink._begin_marked),
    b"EMC": Ink._end_marked,
    b"Q": Ink._restore,
    b"cs": Ink._colour_space,
    b"gs": Ink._parameters,
    b"q": Ink._save,
}


def layers_off(reader: PdfReader) -> frozenset[int]:
    """Return the object numbers of the layers that a file opens with switched off."""
    with suppress(*_MISSHAPEN):
        about = _got(_got(reader.trailer["/Root"])["/OCProperties"])
        default = _got(about["/D"])
        off = set(_numbers(default.get("/OFF")))
        if default.get("/BaseState") == "/OFF":
            off |= set(_numbers(about.get("/OCGs"))) - set(_numbers(default.get("/ON")))
        return frozenset(off)
    return frozenset()


def _numbers(listed: Any) -> Iterator[int]:
    return (one.idnum for one in _got(listed) or () if isinstance(one, IndirectObject))


def _got(value: Any) -> Any:
    """Return an object, also where only its number stands."""
    return value.get_object() if value is not None else None


def _rgb(parts: Sequence[float]) -> Rgb | None:
    """Return the colour of one, three or four numbers, None for any other."""
    if len(parts) == 1:
        return parts[0], parts[0], parts[0]
    if len(parts) == 4:
        red, green, blue = ((1 - part) * (1 - parts[3]) for part in parts[:3])
        return red, green, blue
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None


def letters_of(operands: Sequence[object]) -> int:
    """Return the bytes of text among the operands of an operator that shows text."""
    parts = operands[0] if operands and isinstance(operands[0], list) else operands
    return sum(len(part) for part in parts if isinstance(part, str | bytes))


def times(one: Matrix, other: Matrix) -> Matrix:
    """Return the product of two transformations (ISO 32000-1 §8.3.3); its last two numbers are where it stands."""
    a, b, c, d, e, f = one
    g, h, i, j, k, m = other
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def _around(matrix: Matrix, points: Sequence[tuple[float, float]]) -> Box:
    """Return the box around points; two are the corners of a rectangle, which may be turned."""
    a, b, c, d, e, f = matrix
    xs, ys = zip(*points, strict=True)
    corners = [(x, y) for x in (min(xs), max(xs)) for y in (min(ys), max(ys))]
    xs, ys = zip(*((x * a + y * c + e, x * b + y * d + f) for x, y in corners), strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _shared(one: Box, other: Box) -> Box:
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])


def _meet(one: Box, other: Box) -> bool:
    shared = _shared(one, other)
    return shared[0] <= shared[2] and shared[1] <= shared[3]
