"""Style: which declarations of a sheet hold on a desktop's screen, and what they hide.

Hidden text is noise, and the place where instructions to language models are planted.
What is only closed, and by its markup opens with a click (accordions, answers, tabs,
product sheets), is read, and ranks with the page's furniture; text that no click brings
to light (tiny, off the screen, without contrast) stays hidden there, too.

Classes for screen readers (`sr-only`, `visually-hidden`, …) move text off the screen
although it is meant to be read, and often carry what is drawn otherwise (prices, labels
of icons). Text of at most `LABEL_WORDS` words in them stays, whatever the page's rules
say; longer text goes. Not for: which elements a rule matches, and which style each has
(`sheets.py`), or where PDF and Word keep their colours (`pipeline/read`)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import Final, Literal, NamedTuple

from selectolax.lexbor import LexborNode

from pipeline.document.tree import LABEL_WORDS, count_words, tags
from pipeline.html.colours import (
    LEAST_ALPHA,
    Rgb,
    is_clear_colour,
    is_faint,
    parted,
    rgb_of,
)
from pipeline.html.rules import PIXELS, length

# What a style hides

READER_CLASSES: Final = tags(
    "sr-only visually-hidden visuallyhidden screen-reader-text screenreader a-offscreen "
    "show-for-sr u-hidden-visually "
    "element-invisible assistive-text cdk-visually-hidden"
)

NOT_PLAIN: Final = re.compile(
    r"display|float|visib|opacity|font|posit|indent|clip|color|width|height|transform|margin|backgr|filter|scale|zoom|inset|--"
    r"|-size|translate|rotate|mask|contain|letter-|-security|content\s*:|\\"
)
"""What a style attribute, in lower case, must hold to be worth reading."""
_USED: Final = re.compile(
    r"display|float|visib|opacity|font|posit|indent|clip|color|width|height|transform|margin|backgr|filter|scale|zoom"
    r"|inset|overflow|left|top|right|bottom|translate|animation|transition|-text-fill|rotate|mask|contain|letter-"
    r"|-security|^content$|white-space|padding|sizing"
)
"""What names of properties hold that something is said about below."""
_WORKED_OUT: Final = r"m(?:in|ax)\(|clamp|calc|var"
_DECISIVE_SIZE: Final = rf"\s*:\s*(?:[.0-3][^;]{{0,9}}(?:;|!|$)|{_WORKED_OUT})"
_DECISIVE_PLACE: Final = r"[^;]{0,99}(?:calc|[1-9]\d\d)"
DECISIVE: Final = re.compile(
    r"display|float\s*:\s*right|position\s*:\s*(?:absolute|fixed)|visib|opacity|clip|-\d{3}|scale|filter|transform|zoom"
    rf"|inset|font(?:-size)?\s*:\s*[^;]{{0,99}}?(?:(?<![\d.])[01.]|{_WORKED_OUT})"
    rf"|width{_DECISIVE_SIZE}|height{_DECISIVE_SIZE}|-size{_DECISIVE_SIZE}|text-indent{_DECISIVE_PLACE}"
    rf"|left{_DECISIVE_PLACE}|right{_DECISIVE_PLACE}|top{_DECISIVE_PLACE}|bottom{_DECISIVE_PLACE}|translate|rotate"
    r"|mask|contain\b|letter-spacing\s*:\s*-|-security|content\s*:\s*url|border-box",
)
"""What a rule's body, in lower case, must hold to be worth matching; each choice begins
with a letter of its own, by which the search is fast."""
CUTTING: Final = re.compile(r"overflow(?:-[xy])?\s*:[^;]*(?:hidden|clip|auto|scroll)")
"""What a rule's body holds that cuts off what does not fit."""
SIZED: Final = tags("height max-height width max-width line-height text-indent")
"""Properties that hide what is in an element that cuts off."""
_CLEARED: Final = re.compile(r"opacity\(\s*(\d*\.?\d+%?)")
COLOURED: Final = re.compile(r"color|background|-text-fill")
"""Same test, for pages whose background color is known."""
_SHIFT: Final = re.compile(
    r"translate(?:3d|x|y)?\(\s*(-?[\d.]+(?:px|em|rem|vw|vh|%)?)(?:\s*,\s*(-?[\d.]+(?:px|em|rem|vw|vh|%)?))?"
)
_SCALED: Final = re.compile(r"(?:scale(?:3d|x|y)?|matrix(?:3d)?)\(([^()]*)\)")
_CLIPPED: Final = re.compile(
    r"(?:rect|xywh)\(\s*(?:[01](?:px)?[\s,]*){4}\)|inset\(\s*(?:50|100)%|(?:circle|ellipse)\(\s*0"
    r"|inset\(\s*[1-9]\d{3,}px|path\(\s*[\"'][\s\d.,-]*m[\s\d.,-]*z?\s*[\"']"
)
_POLYGON: Final = re.compile(r"polygon\((?:\s*(?:nonzero|evenodd)\s*,)?([^()]*)\)")
_EDGEWISE: Final = re.compile(
    r"rotate3d\([^,()]*,[^,()]*,\s*0\s*,\s*-?(?:90|270)deg|skew[xy]?\(\s*-?(?:90|270)deg|"
    r"rotate[xy]\(\s*-?(?:90|270)deg|rotate[xy]\(\s*-?0?\.[27]5turn|(?<![\w(])[xy]\s+-?90deg"
)
"""Turned so that its edge alone faces the reader."""
_FLAT: Final = 3.0
"""Pixels of height or width in which no letter can be read."""
_TIGHT: Final = -8.0
"""Pixels between letters below which they lie over one another, half of the usual size
of type."""
_CUTTING: Final = tags("overflow overflow-x overflow-y")
_PLACING: Final = tags(
    "text-indent margin margin-left margin-top position scale zoom transform -webkit-transform "
    "translate rotate"
)
_CLIPPING: Final = tags("clip clip-path")
_MASKING: Final = tags("-webkit-text-security content letter-spacing mask mask-image")
"""Properties without which an element is not cut off, moved off the screen, clipped, or
masked."""
Hiding = Literal["", "soft", "begun", "shut", "hard"]
"""Not, until a script runs (opacity, visibility), at the begin of an animation, while
it is closed (not displayed, no height), or for good."""
_MOVING_PROPERTIES: Final = ("animation", "transform", "transition", "will-change")
VISIBLE: Final[Hiding] = ""
_PIXEL: Final = frozenset({"0", "1", "2", "0px", "1px", "2px"})
_OFF_SCREEN_PIXELS: Final = -480.0
"""Pixels to the left or above beyond which nothing of a paragraph reaches the
screen."""
_FAR_RIGHT: Final = 5_000.0
"""Pixels to the right beyond which text is off-screen (waiting slides are within some
screens)."""
_FROM_RIGHT: Final = 2_000.0
"""Pixels from a box's right or lower edge that lead off the screen on its other
side."""
_BELOW: Final = 1_200.0
"""Pixels from the upper edge of the screen below which a box that does not scroll is
not seen."""
_OWN_SIZE: Final = re.compile(
    r"medium|(?:xx?-)?(?:small|large)|(?:\d*\.)?\d+(?:px|pt|rem|vw|vh|mm|cm|q)"
)
"""A size of type that is not counted from the one around it."""


@lru_cache(1024)
def is_used(name: str) -> bool:
    """Whether something is said about a property below."""
    return not name.lstrip().startswith("--") and _USED.search(name) is not None


class Shade(NamedTuple):
    """What an element's text inherits: its ground, its ink and whether it is too small
    to be read."""

    ground: Rgb | None = None
    """None where it is not known."""
    ink: Rgb | None = None
    """None for the usual one, or one that is not known."""
    inkless: bool = False
    """Whether the text color is transparent."""
    tiny: bool = False
    unseen: bool = False
    """Whether text that inherits this is not seen."""
    apart: bool = False
    """Whether the element itself is drawn as a box of its own, which no word goes on
    over; not inherited."""
    parts: bool = False
    """Whether all of its direct text is hidden."""

    def under(self, found: Mapping[str, str]) -> "Shade":
        """Return what the text of an element with these declarations has."""
        if SHADING.isdisjoint(found):
            return self
        ink, inkless, tiny = self.ink, self.inkless, _tiny_under(found, tiny=self.tiny)
        background = found.get("background-color") or found.get("background", "")
        ground = _ground(found, background, self.ground)
        over = found.get("-webkit-text-fill-color") or found.get("color", "")
        if over and over not in _KEPT_WORDS:
            inkless, ink = _inked(found, over)
        # A ground of the ink's own colour, unless letters are filled with another.
        drowned = (
            background.strip() == "currentcolor"
            and "-webkit-text-fill-color" not in found
        )
        faint = ink is not None and ground is not None and is_faint(ink, ground)
        unseen = tiny or inkless or drowned or faint
        display = found.get("display", "")
        parts = (
            "flex" in display
            or "grid" in display
            or (self.parts and display == "contents")
        )
        return Shade(ground, ink, inkless, tiny, unseen, _is_apart(found), parts)


def _inked(found: Mapping[str, str], over: str) -> tuple[bool, Rgb | None]:
    """Return whether letters of the colour `over` have no ink, and their ink; None for
    ink that is not known."""
    clip = found.get("background-clip", "") + found.get("-webkit-background-clip", "")
    clips = "text" in clip
    inkless = is_clear_colour(over) and not clips
    return inkless, None if clips or inkless else rgb_of(over)


def _ground(
    found: Mapping[str, str], background: str, ground: Rgb | None
) -> Rgb | None:
    """Return what is painted below an element on `ground`, `background` being its
    background; None if it is an image or unknown."""
    image = found.get("background-image", "none")
    if "background-size" in found and (
        "gradient(" in image or "gradient(" in background
    ):
        return None
    if image not in _NO_GROUND:
        return _even(image)
    if background and background not in _NO_GROUND and not is_clear_colour(background):
        return _painted(background, ground)
    return ground


def _painted(value: str, ground: Rgb | None) -> Rgb | None:
    """Return the ground that a background gives: its colour, None for one that is drawn
    or not known."""
    if "gradient(" in value:
        return _even(value)
    if "url(" in value:
        return None
    parts = list(parted(value, " "))
    colours = [colour for part in parts if (colour := rgb_of(part)) is not None]
    if colours:
        return colours[0]
    return ground if all(map(_NO_PAINT.fullmatch, parts)) else None


def _even(value: str) -> Rgb | None:
    """Return the colour of a gradient that fills an element with one; None for any
    other image."""
    gradient = _GRADIENT.fullmatch(value.strip())
    stops = list(parted(gradient[1], ",")) if gradient else []
    colours = [rgb_of(next(parted(stop.strip(), " "), "")) for stop in stops]
    if colours and colours[0] is None:  # where it leads to
        del colours[0]
    return colours[0] if colours and len({*colours}) == 1 else None


_GRADIENT: Final = re.compile(
    r"(?:linear|radial|conic)-gradient\(((?:[^()]|\([^()]*\))*)\)"
)
_NO_PAINT: Final = re.compile(
    r"none|transparent|(?:no-)?repeat(?:-[xy])?|scroll|fixed|local|space|round|center|left|right|top|bottom|/|cover"
    r"|contain|auto|(?:border|padding|content)-box|-?[\d.]+(?:px|%|r?em)?"
)
"""Words of a background that paint nothing."""
_BOX_DISPLAYS: Final = ("block", "flex", "flow-root", "grid", "list-item", "table")
SHADING: Final = tags(
    "background background-color background-image color font font-size -webkit-text-fill-color "
    "display position float"
)
"""Properties that `Shade` depends on."""
_NO_GROUND: Final = frozenset(
    {"none", "transparent", "inherit", "initial", "unset", "revert"}
)
_KEPT_WORDS: Final = frozenset({"inherit", "currentcolor"})


def how_hidden(found: Mapping[str, str], *, in_sheet: bool = False) -> Hiding:
    """Return whether declarations hide an element with all that is in it, and how
    surely.

    "" is shown, "hard" hidden for good, "shut" not displayed; "soft" and "begun"
    (before an animation) may be shown by scripts.

    Args:
        found: Of each property its value, in lower case.
        in_sheet: They are a style sheet's: what is set before an animation starts
    (opacity, visibility) is left out."""
    cuts = not _CUTTING.isdisjoint(found) and _cuts(found)
    if _is_gone(found, cuts=cuts):
        return "hard"
    if _is_shut(found, cuts=cuts):
        return "shut"
    if in_sheet and _sets_one(found, ("animation", "transition")):
        return ""
    return _how_clear(found)


def _how_clear(found: Mapping[str, str]) -> Hiding:
    """Return how filters, opacity and visibility hide an element."""
    if "filter" in found and (cleared := _CLEARED.search(found["filter"])):
        if _is_clear(cleared[1]):
            return "soft"
    elif _is_clear(found.get("opacity", "")):
        return "begun" if _sets_one(found, _MOVING_PROPERTIES) else "soft"
    return "soft" if found.get("visibility") in {"hidden", "collapse"} else ""


def _is_gone(found: Mapping[str, str], *, cuts: bool) -> bool:
    """Whether an element is off the screen, clipped, hardly a pixel wide or masked."""
    return (
        (not _PLACING.isdisjoint(found) and _is_shifted_away(found, cuts=cuts))
        or (not _CLIPPING.isdisjoint(found) and _is_clipped(found))
        or (cuts and _is_flat(found, "width", "max-width"))
        or (not _MASKING.isdisjoint(found) and _is_masked(found))
    )


def _is_shut(found: Mapping[str, str], *, cuts: bool) -> bool:
    """Whether an element is not displayed, or has no height."""
    return (
        found.get("display") == "none"
        or found.get("content-visibility") == "hidden"
        or (cuts and (_is_flat(found, "height", "max-height") or _is_cut(found)))
        or ("contain" in found and _is_contained(found))
    )


def _tiny_under(found: Mapping[str, str], *, tiny: bool) -> bool:
    """Return whether the text of an element is too small to be read, whose parent's is
    or is not (`tiny`)."""
    size = _font_size(found)
    if not size:
        return tiny
    return _is_tiny(size) or (tiny and not _OWN_SIZE.fullmatch(size))


def _is_apart(found: Mapping[str, str]) -> bool:
    """Whether an element is a box of its own, or placed out of the text around it."""
    return (
        found.get("position") in {"absolute", "fixed"}
        or found.get("float") == "right"
        or found.get("display", "").startswith(_BOX_DISPLAYS)
    )


def _font_size(found: Mapping[str, str]) -> str:
    """Return the size of type that declarations set, empty for none; in the shorthand
    it precedes a slash; a size in words there is not found."""
    if size := found.get("font-size", ""):
        return size
    if not (short := found.get("font", "")):
        return ""
    sizes = re.findall(
        r"(?<![\w.#-])(\d*\.?\d+(?:px|pt|em|rem|%|vw|vh)|0(?=[\s/]))", short
    )
    return sizes[0] if sizes else ""


def _is_clear(opacity: str) -> bool:
    if not opacity:
        return False
    value = length(opacity, percent=0.01)
    return value is not None and value < LEAST_ALPHA


def _is_tiny(size: str) -> bool:
    """Whether a font size is at most a pixel; percentages count against 16 pixels."""
    value = length(size, percent=0.16)
    return value is not None and value <= 1


def _sets_one(found: Mapping[str, str], prefixes: tuple[str, ...]) -> bool:
    return any(name.startswith(prefixes) for name in found)


def _places(found: Mapping[str, str]) -> dict[str, float]:
    """Return the pixels by which an element is shifted, by property."""
    places = {name: length(found[name]) or 0.0 for name in _SHIFTING if name in found}
    if "margin" in found:
        places |= _sides(found["margin"], "margin-top", "", "", "margin-left")
    if found.get("position") in {"absolute", "fixed", "relative"}:
        if "inset" in found:
            places |= _sides(found["inset"], *_EDGES)
        places |= {name: length(found[name]) or 0.0 for name in _EDGES if name in found}
    return places


def _is_shifted_away(found: Mapping[str, str], *, cuts: bool) -> bool:
    places = _places(found)
    is_below = places.get("top", 0.0) >= _BELOW
    return (
        any(_is_far(name, size) for name, size in places.items())
        or (is_below and found.get("position") == "fixed")
        or (cuts and _is_indented_away(found))
        or any(_scales_away(found[name]) for name in ("scale", "zoom") if name in found)
        or (not _TURNING.isdisjoint(found) and _is_transformed_away(found))
    )


def _is_far(side: str, size: float) -> bool:
    """Whether pixels from a side, or of a margin or indent, lead off the screen."""
    most = _FROM_RIGHT if side in {"right", "bottom"} else _FAR_RIGHT
    return size <= _OFF_SCREEN_PIXELS or (
        size >= most and side not in {"top", "margin-top", "text-indent"}
    )


_SHIFTING: Final = ("text-indent", "margin-left", "margin-top")
_EDGES: Final = ("top", "right", "bottom", "left")
_TURNING: Final = frozenset({"transform", "-webkit-transform", "translate", "rotate"})


def _is_transformed_away(found: Mapping[str, str]) -> bool:
    turned = found.get("transform", found.get("-webkit-transform", ""))
    if any(_scales_away(scaled[1]) for scaled in _SCALED.finditer(turned)):
        return True
    if _EDGEWISE.search(turned) or _EDGEWISE.search(found.get("rotate", "")):
        return True
    shifts = chain.from_iterable(map(re.Match[str].groups, _SHIFT.finditer(turned)))
    moves = [*filter(None, shifts), *found.get("translate", "").split()]
    # Slides that wait are a hundred per cent apart.
    far = any((length(move, percent=0.0) or 0.0) >= _FAR_RIGHT for move in moves)
    return far or any((length(move) or 0) <= _OFF_SCREEN_PIXELS * 2 for move in moves)


def _is_indented_away(found: Mapping[str, str]) -> bool:
    """Return whether a line of a clipping element begins beyond its edge and does not
    wrap."""
    if found.get("white-space") not in {"nowrap", "pre"}:
        return False
    indent = found.get("text-indent", "")
    if indent.endswith("vw"):
        return (length(indent) or 0.0) >= 100 * PIXELS["vw"]
    return (length(indent, percent=_FROM_RIGHT / 100) or 0.0) >= _FROM_RIGHT


def _sides(value: str, *names: str) -> dict[str, float]:
    """Return the pixels of the sides that a short form of one to four values sets, the
    top first; no sides for an empty value, and 0 for a length that is not known."""
    sizes = [length(part) or 0.0 for part in parted(value, " ")][:4]
    if not sizes:
        return {}
    whole = [*sizes, sizes[1]] if len(sizes) == 3 else (sizes * 4)[:4]
    return {name: size for name, size in zip(names, whole, strict=True) if name}


def _scales_away(factors: str) -> bool:
    """Whether the factors that sizes are multiplied with, one or two or a matrix of
    six, leave nothing to be read; of a matrix in space (sixteen) those of the plane
    count."""
    found = [
        float(number) * (0.01 if unit else 1)
        for number, unit in re.findall(r"(-?\d*\.?\d+)(%?)", factors)
    ]
    if len(found) == 16:
        found = [found[0], found[1], found[4], found[5], found[12], found[13]]
    if len(found) == 6:
        found = [(abs(found[0] * found[3] - found[1] * found[2])) ** 0.5]
    return any(
        abs(factor) * PIXELS["em"] < 1 for factor in found[:2]
    )  # type of less than a pixel


def _is_clipped(found: Mapping[str, str]) -> bool:
    if (
        "clip" in found
        and found.get("position") in {"absolute", "fixed"}
        and _CLIPPED.search(found["clip"])
    ):
        return True
    if (path := found.get("clip-path")) is None:
        return False
    corners = _POLYGON.search(path)
    return _CLIPPED.search(path) is not None or (
        corners is not None and _is_empty(corners[1])
    )


def _is_empty(corners: str) -> bool:
    """Whether nothing lies within the corners of a polygon: pairs of lengths, parted by
    commas. False where one of them is not known."""
    points = [
        [length(size) for size in corner.split()] for corner in corners.split(",")
    ]
    known = [
        (x, y)
        for point in points
        if len(point) == 2
        for x, y in [point]
        if x is not None and y is not None
    ]
    if len(known) < len(points):
        return False
    area = sum(
        x * below - over * y
        for (x, y), (over, below) in zip(known, [*known[1:], known[0]], strict=True)
    )
    return abs(area) < _FLAT


def _cuts(found: Mapping[str, str]) -> bool:
    """Whether an element cuts off what does not fit into it."""
    said = " ".join(
        found[name]
        for name in ("overflow", "overflow-x", "overflow-y")
        if name in found
    )
    return (
        said.startswith(("hidden", "clip", "auto", "scroll"))
        or "hidden" in said
        or "clip" in said
    )


def _is_flat(found: Mapping[str, str], *sides: str) -> bool:
    """Whether one of `sides` of an element that cuts off is of hardly a pixel."""
    return any(
        name in found and (size := length(found[name])) is not None and size <= _FLAT
        for name in sides
    )


def _is_cut(found: Mapping[str, str]) -> bool:
    """Whether an element that cuts off leaves no room for lines: they are flat, or its
    padding fills it."""
    high = length(found.get("height", found.get("max-height", "")))
    line = length(found.get("line-height", "1"), percent=0.16)
    if high is None and line == 0.0:
        return True
    if high is None or found.get("box-sizing") != "border-box":
        return False
    above = length(found.get("padding-top", "")) or _sides(
        found.get("padding", ""), "top", "", "", ""
    ).get("top", 0.0)
    return 0.0 < high <= above


def _is_contained(found: Mapping[str, str]) -> bool:
    """Whether an element is as high as if it were empty, and paints nothing outside of
    that."""
    contained = found["contain"].split()
    return ("strict" in contained or {"size", "paint"} <= {*contained}) and not any(
        name in found
        for name in ("height", "contain-intrinsic-size", "aspect-ratio", "min-height")
    )


def _is_masked(found: Mapping[str, str]) -> bool:
    """Return whether text is masked completely, drawn as dots, replaced by an image, or
    overlapping."""
    if found.get("-webkit-text-security", "none") != "none":
        return True
    if found.get("content", "").startswith("url("):
        return True
    if (length(found.get("letter-spacing", ""), percent=0.16) or 0.0) <= _TIGHT:
        return True
    mask = found.get("mask-image") or found.get("mask", "")
    if "gradient(" not in mask:
        return False
    stops = parted(
        mask[mask.index("(") + 1 : mask.rindex(")")] if ")" in mask else "", ","
    )
    colours = [
        part
        for stop in stops
        if rgb_of(part := next(parted(stop, " "))) is not None or part == "transparent"
    ]
    return bool(colours) and all(map(is_clear_colour, colours))


def is_pixel(attributes: Mapping[str, str | None]) -> bool:
    """Return whether an image is not there to be seen, but to count visits."""
    return (attributes.get("width") or "").strip() in _PIXEL or (
        attributes.get("height") or ""
    ).strip() in _PIXEL


def is_long(current: LexborNode) -> bool:
    """Whether an element holds more than `LABEL_WORDS` words, or more than can be
    looked at in passing.

    Such elements may be nested, so that counting all of their words would be quadratic.
    """
    texts: list[str] = []
    size = 0
    for seen, node in enumerate(current.traverse(include_text=True)):
        if node.is_text_node:
            text = node.text_content or ""
            texts.append(text)
            size += len(text)
        if seen > LABEL_WORDS**2 or size > LABEL_WORDS**4:
            return True
    return count_words("".join(texts)) > LABEL_WORDS


def _presented(attributes: Mapping[str, str | None]) -> dict[str, str]:
    """Return what attributes of old say of colours, as declarations."""
    found = {}
    if attributes.get("bgcolor"):
        found["background-color"] = _hashed(attributes["bgcolor"] or "")
    if attributes.get("background"):
        found["background-image"] = "url()"
    if ink := attributes.get("color") or attributes.get("text"):
        found["color"] = _hashed(ink)
    return found


PRESENTING: Final = frozenset({"bgcolor", "background", "color", "text"})


def _hashed(colour: str) -> str:
    colour = colour.strip().lower()
    return f"#{colour}" if re.fullmatch("[0-9a-f]{6}", colour) else colour


def shade_under(
    above: Shade, attributes: Mapping[str, str | None], found: Mapping[str, str]
) -> Shade:
    """Return what the text of an element inherits, by its style and by its attributes
    of old."""
    presented = _presented(attributes) if not PRESENTING.isdisjoint(attributes) else {}
    return above.under({**presented, **found}) if presented or found else above
