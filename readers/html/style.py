"""Style: which declarations hide text (the table of `docs/security.md`).

Hidden text is noise, and the place where instructions to language models are planted.
What is only closed, and by its markup opens with a click, is read, and ranks with the
page's furniture; text that no click brings to light (tiny, off the screen, without
contrast) stays hidden there, too.

Classes for screen readers (`sr-only`, `visually-hidden`, …) move text off the screen
although it is meant to be read, and often carry what is drawn otherwise (prices, labels
of icons). Text of at most `LABEL_WORDS` words in them stays, whatever the page's rules
say; longer text goes. Not for: which elements a rule matches, and which style each has
(`style_sheets.py`), or where PDF and Word keep their colours (`readers`)."""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from selectolax.lexbor import LexborNode

from readers.html.colours import (
    LEAST_ALPHA,
    Rgb,
    is_clear_colour,
    is_faint,
    rgb_of,
)
from readers.html.rules import PIXELS, length
from readers.tree import LABEL_WORDS, count_words, tags

READER_CLASSES: Final = tags(
    "sr-only visually-hidden visuallyhidden screen-reader-text screenreader a-offscreen "
    "show-for-sr u-hidden-visually "
    "element-invisible assistive-text cdk-visually-hidden"
)
_FEW_PIXELS: Final = r"\s*:\s*(?:[.0-3][^;]{0,9}(?:;|!|$)|calc|var)"
_FAR: Final = r"[^;]{0,99}(?:calc|var|[1-9]\d\d|\d(?:%|v[wh]))"
DECISIVE: Final = re.compile(
    r"display|line-through|float\s*:\s*right|position\s*:\s*(?:absolute|fixed)|visib|opacity|clip"
    rf"|-\d{{3}}|scale|zoom|inset|font(?:-size)?\s*:|translate|width{_FEW_PIXELS}|(?:height|block-size){_FEW_PIXELS}"
    rf"|inline-size{_FEW_PIXELS}|text-indent{_FAR}|left{_FAR}|right{_FAR}|top{_FAR}|bottom{_FAR}|\\"
)
"""What declarations, in lower case, must hold to be worth matching."""
COLOURED: Final = re.compile(r"color|background|-text-fill")
"""Same test, for pages whose background color is known."""
Hiding = Literal["", "soft", "begun", "shut", "hard"]
"""Not, until a script runs (opacity, visibility), at the begin of an animation, while
it is closed (not displayed, no height), or for good."""
_FLAT: Final = 3.0
"""Pixels of height or width in which no letter can be read."""
_OFF_SCREEN_PIXELS: Final = -480.0
"""Pixels to the left or above beyond which nothing of a paragraph reaches the
screen."""
_FAR_RIGHT: Final = 5_000.0
"""Pixels to the right beyond which text is off-screen (waiting slides are within some
screens)."""
_FROM_RIGHT: Final = 2_000.0
"""Pixels from a box's right or lower edge that lead off the screen on its other
side."""
_SHADING: Final = tags(
    "background background-color background-image color font font-size -webkit-text-fill-color "
    "display position float text-decoration text-decoration-line"
)
"""Properties that `Shade` depends on."""
_OWN_SIZE: Final = re.compile(
    r"medium|(?:xx?-)?(?:small|large)|(?:\d*\.)?\d+(?:px|pt|rem|vw|vh|mm|cm|q)"
)
"""A size of type that is not counted from the one around it."""


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
    lays_out: bool = False
    """Whether all of its direct text is hidden."""
    struck: bool = False

    @property
    def is_even(self) -> bool:
        """Whether text that inherits this is as if it had no style."""
        return not (self.unseen or self.lays_out or self.struck)

    def under(self, declarations: Mapping[str, str]) -> "Shade":
        """Return what the text of an element with these declarations has."""
        if _SHADING.isdisjoint(declarations):
            return self
        ink, inkless, tiny = (
            self.ink,
            self.inkless,
            _tiny_under(declarations, tiny=self.tiny),
        )
        ground = _ground(declarations, self.ground)
        over = declarations.get("-webkit-text-fill-color") or declarations.get(
            "color", ""
        )
        if over and over not in {"inherit", "currentcolor"}:
            # Letters may be cut out of the ground, which then is their ink.
            clips = "text" in (
                declarations.get("background-clip", "")
                + declarations.get("-webkit-background-clip", "")
            )
            inkless = is_clear_colour(over) and not clips
            ink = None if clips else rgb_of(over)
        faint = ink is not None and ground is not None and is_faint(ink, ground)
        display = declarations.get("display", "")
        lays_out = (
            "flex" in display
            or "grid" in display
            or (self.lays_out and display == "contents")
        )
        unseen, apart = tiny or inkless or faint, _is_apart(declarations)
        lines = (
            declarations.get(name, "")
            for name in ("text-decoration", "text-decoration-line")
        )
        struck = self.struck or "line-through" in " ".join(lines)
        return Shade(ground, ink, inkless, tiny, unseen, apart, lays_out, struck)


def _ground(declarations: Mapping[str, str], ground: Rgb | None) -> Rgb | None:
    """Return the colour below an element on `ground`; None for an image, or one that is
    not known."""
    images = f"{declarations.get('background-image', '')} {declarations.get('background', '')}"
    if "url(" in images or "gradient(" in images or "var(" in images:
        return None
    colour = declarations.get("background-color") or declarations.get("background", "")
    if colour in {
        "",
        "none",
        "transparent",
        "inherit",
        "initial",
        "unset",
        "revert",
    } or is_clear_colour(colour):
        return ground
    if "(" in colour:
        return rgb_of(colour)
    # Of the short form a word may be a colour; the others paint nothing.
    inks = [ink for word in colour.split() if (ink := rgb_of(word)) is not None]
    return inks[0] if inks else ground


def _tiny_under(declarations: Mapping[str, str], *, tiny: bool) -> bool:
    """Return whether the text of an element is too small to be read, whose parent's is
    or is not (`tiny`); percentages count against 16 pixels."""
    size = _font_size(declarations)
    if not size:
        return tiny
    pixels = length(size, percent=0.16)
    is_tiny = pixels is not None and pixels <= 1
    return is_tiny or (tiny and not _OWN_SIZE.fullmatch(size))


def _font_size(declarations: Mapping[str, str]) -> str:
    """Return the size of type that declarations set, empty for none; in the shorthand
    it precedes a slash; a size in words there is not found."""
    if size := declarations.get("font-size", ""):
        return size
    sizes = re.findall(
        r"(?<![\w.#-])(\d*\.?\d+(?:px|pt|em|rem|%|vw|vh)|0(?=[\s/]))",
        declarations.get("font", ""),
    )
    return sizes[0] if sizes else ""


def _is_apart(declarations: Mapping[str, str]) -> bool:
    """Whether an element is a box of its own, or placed out of the text around it."""
    return (
        declarations.get("position") in {"absolute", "fixed"}
        or declarations.get("float") == "right"
        or declarations.get("display", "").startswith(
            ("block", "flex", "flow-root", "grid", "list-item", "table")
        )
    )


# What a style hides


def how_hidden(declarations: Mapping[str, str], *, in_sheet: bool = False) -> Hiding:
    """Return whether declarations hide an element with all that is in it, and how
    surely.

    "" is shown, "hard" hidden for good, "shut" not displayed; "soft" and "begun"
    (before an animation) may be shown by scripts.

    Args:
        declarations: Of each property its value, in lower case.
        in_sheet: They are a style sheet's: what is set before an animation starts
    (opacity, visibility) is left out."""
    cuts = any(
        "hidden" in value or "clip" in value or value.startswith(("auto", "scroll"))
        for value in map(declarations.get, ("overflow", "overflow-x", "overflow-y"))
        if value
    )
    if (
        any(_is_far(side, pixels) for side, pixels in _places(declarations).items())
        or _is_clipped(declarations)
        or _is_scaled_away(declarations)
        or (cuts and _is_flat(declarations, "width", "max-width"))
    ):
        return "hard"
    if (
        declarations.get("display") == "none"
        or declarations.get("content-visibility") == "hidden"
        or (cuts and _is_flat(declarations, "height", "max-height"))
    ):
        return "shut"
    if in_sheet and any(
        name.startswith(("animation", "transition")) for name in declarations
    ):
        return ""
    cleared = re.search(r"opacity\(\s*([^)]*)", declarations.get("filter", ""))
    opacity = length(
        cleared[1] if cleared else declarations.get("opacity", ""), percent=0.01
    )
    if opacity is not None and opacity < LEAST_ALPHA:
        moves = any(
            name.startswith(("animation", "transform", "transition", "will-change"))
            for name in declarations
        )
        return "begun" if moves and not cleared else "soft"
    return "soft" if declarations.get("visibility") in {"hidden", "collapse"} else ""


_EDGES: Final = ("top", "right", "bottom", "left")
_TRANSLATE: Final = re.compile(r"translate(?:3d|x|y)?\(([^()]*)\)")
_SCALED: Final = re.compile(r"scale(?:3d|x|y)?\(([^()]*)\)")
_CLIPPED: Final = re.compile(
    r"rect\(\s*(?:[01](?:px)?[\s,]*){4}\)|inset\(\s*(?:50|100)%|circle\(\s*0"
)


def _places(declarations: Mapping[str, str]) -> dict[str, float]:
    """Return the pixels by which an element is shifted, by property; of translations
    the least and the most."""
    places = {
        name: length(declarations[name]) or 0.0
        for name in ("text-indent", "margin-left", "margin-top")
        if name in declarations
    }
    if "margin" in declarations:
        sides = _sides(declarations["margin"])
        places |= {
            f"margin-{name}": sides[name] for name in sides.keys() & {"top", "left"}
        }
    if declarations.get("position") in {"absolute", "fixed", "relative"}:
        places |= _sides(declarations.get("inset", ""))
        places |= {
            name: length(declarations[name]) or 0.0
            for name in _EDGES
            if name in declarations
        }
    shifts = ",".join(_TRANSLATE.findall(declarations.get("transform", "")))
    shifts += f",{declarations.get('translate', '').replace(' ', ',')}"
    # Slides that wait are a hundred per cent apart.
    moves = [length(move.strip(), percent=0.0) or 0.0 for move in shifts.split(",")]
    # From where an element would be, half of the way leads nowhere yet.
    return places | {"least": min(moves) / 2, "most": max(moves)}


def _sides(value: str) -> dict[str, float]:
    """Return the pixels of the sides that a short form of one to four values sets; no
    sides for an empty value, and 0 for a length that is not known."""
    sizes = [length(size_text) or 0.0 for size_text in value.split()][:4]
    if not sizes:
        return {}
    sizes = [*sizes, sizes[1]] if len(sizes) == 3 else (sizes * 4)[:4]
    return dict(zip(_EDGES, sizes, strict=True))


def _is_far(side: str, size: float) -> bool:
    """Whether pixels from a side, or of a margin or indent, lead off the screen."""
    limit = _FROM_RIGHT if side in {"right", "bottom"} else _FAR_RIGHT
    return size <= _OFF_SCREEN_PIXELS or (
        size >= limit and side not in {"top", "margin-top", "text-indent"}
    )


def _is_scaled_away(declarations: Mapping[str, str]) -> bool:
    """Whether an element is so small that type is of less than a pixel."""
    scales = ",".join(_SCALED.findall(declarations.get("transform", "")))
    scales = f"{scales},{declarations.get('scale', '')},{declarations.get('zoom', '')}"
    factors = [
        length(text, percent=0.01) for text in scales.replace(" ", ",").split(",")
    ]
    return any(
        factor is not None and abs(factor) * PIXELS["em"] < 1 for factor in factors
    )


def _is_clipped(declarations: Mapping[str, str]) -> bool:
    is_placed = declarations.get("position") in {"absolute", "fixed"}
    shapes = f"{declarations.get('clip', '') if is_placed else ''} {declarations.get('clip-path', '')}"
    return _CLIPPED.search(shapes) is not None


def _is_flat(declarations: Mapping[str, str], *sides: str) -> bool:
    """Whether one of `sides` of an element that cuts off is of hardly a pixel."""
    return any(
        (size := length(declarations.get(name, ""))) is not None and size <= _FLAT
        for name in sides
    )


_PIXEL: Final = frozenset({"0", "1", "2", "0px", "1px", "2px"})


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


PRESENTING: Final = frozenset({"bgcolor", "background", "color", "text"})
"""Attributes of old that say which colours an element has."""


def presented(attributes: Mapping[str, str | None]) -> tuple[tuple[str, str], ...]:
    """Return what attributes of old say of colours, as properties and values."""
    declarations = []
    if ground := attributes.get("bgcolor"):
        declarations.append(("background-color", _hashed(ground)))
    if attributes.get("background"):
        declarations.append(("background-image", "url("))
    if ink := attributes.get("color") or attributes.get("text"):
        declarations.append(("color", _hashed(ink)))
    return tuple(declarations)


def _hashed(colour: str) -> str:
    colour = colour.strip().lower()
    return f"#{colour}" if re.fullmatch("[0-9a-f]{6}", colour) else colour
