"""Colours: which one a CSS value names (by tinycss2), and whether ink of one is seen on
a ground of another.

Not for: which colour an element has (`style.py`)."""

from functools import lru_cache
from typing import Final

from tinycss2.color4 import Color, parse_color

Rgb = tuple[float, float, float]
"""Red, green, blue, each 0..1."""
WHITE: Final[Rgb] = (1.0, 1.0, 1.0)
LEAST_CONTRAST: Final = 1.15
"""Ratio of luminances (WCAG 2.2, 1.4.3) below which text is invisible on its
background; #ccc on white, the palest print of real pages, has 1.6, #f0f0f0 has 1.14."""
LEAST_ALPHA: Final = 0.05
"""Opacity below which nothing is seen."""
_COLOUR_CHARACTERS: Final = 100
"""Of a value that is parsed as a colour."""
_SPACES: Final = frozenset({"srgb", "hsl", "hwb"})
"""Whose colours are compared; of wider ones nothing is said."""


@lru_cache(1024)
def _parsed(value: str) -> Color | None:
    """Return the colour that a value names, in sRGB; None for any other value."""
    colour = parse_color(value) if len(value) <= _COLOUR_CHARACTERS else None
    if not isinstance(colour, Color) or colour.space not in _SPACES:
        return None
    return colour.to("srgb")


def rgb_of(value: str) -> Rgb | None:
    """Return the colour that a CSS value names, on white where it is half transparent;
    None where that is not known or nearly transparent."""
    colour = _parsed(value)
    if colour is None or colour.alpha < LEAST_ALPHA:
        return None
    red, green, blue = (
        1 - colour.alpha * (1 - min(max(coordinate, 0.0), 1.0))
        for coordinate in colour.coordinates
    )
    return red, green, blue


def is_clear_colour(value: str) -> bool:
    """Return whether a colour is nearly transparent; False where a value is none."""
    colour = _parsed(value)
    return colour is not None and colour.alpha < LEAST_ALPHA


@lru_cache(1024)
def is_faint(ink: Rgb, ground: Rgb) -> bool:
    """Return whether text of one colour cannot be seen on the other."""
    dark, light = sorted((_luminance(ink), _luminance(ground)))
    return (light + 0.05) / (dark + 0.05) < LEAST_CONTRAST


def _luminance(colour: Rgb) -> float:
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
