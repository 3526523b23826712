"""Colours of CSS as numbers, and which of them can be told apart.

Not for: what an element's text inherits (`hidden.py`), or where PDF and Word keep their colours (`pipeline/read`).
"""

import colorsys
import re
from functools import lru_cache
from typing import Final

_COLOURS: Final = {
    "white": "#ffffff",
    "black": "#000000",
    "red": "#ff0000",
    "lime": "#00ff00",
    "blue": "#0000ff",
    "yellow": "#ffff00",
    "gray": "#808080",
    "grey": "#808080",
}
Rgb = tuple[float, float, float]
"""Red, green, blue, each 0..1."""
WHITE: Final[Rgb] = (1.0, 1.0, 1.0)
LEAST_CONTRAST: Final = 1.15
"""Ratio of luminances (WCAG 2.2, 1.4.3) below which text cannot be told from its ground; #ccc on white,
the palest print of real pages, has 1.6, #f0f0f0 has 1.14."""
LEAST_ALPHA: Final = 0.05
"""Opacity below which nothing is seen."""
_ALPHA: Final = re.compile(r"(?:^(?:rgb|hsl)a?\([^,/]*,[^,/]*,[^,/]*,|/)\s*(\d*\.?\d+)(%?)\s*\)")
_CLEAR_DIGITS: Final = re.compile(r"#(?:[\da-f]{3}0|[\da-f]{6}0\d)")
_FUNCTION: Final = re.compile(r"(rgb|hsl)a?\(([^()]*)\)")


@lru_cache(1024)
def rgb_of(value: str) -> Rgb | None:
    """Return the colour that a CSS value names, on white where it is half transparent; None where that is not known."""
    value = value.strip().lower()
    value = _COLOURS.get(value, value)
    if re.fullmatch(r"#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})", value):
        digits = value[1:] if len(value) > 5 else "".join(2 * digit for digit in value[1:])
        parts = [int(digits[place : place + 2], 16) / 255 for place in range(0, len(digits), 2)]
    elif found := _FUNCTION.match(value):
        numbers = [float(number) / (100 if unit else 1) for number, unit in re.findall(r"(-?[\d.]*\d)(%?)", found[2])]
        if len(numbers) < 3:
            return None
        if found[1] == "hsl":
            parts = [*colorsys.hls_to_rgb(numbers[0] / 360 % 1, min(numbers[2], 1), min(numbers[1], 1)), *numbers[3:]]
        else:
            whole = 1 if "%" in found[2].split("/")[0] else 255
            parts = [*(number / whole for number in numbers[:3]), *numbers[3:]]
    else:
        return None
    alpha = parts[3] if len(parts) > 3 else 1.0
    red, green, blue = (1 - alpha * (1 - min(max(part, 0.0), 1.0)) for part in parts[:3])
    return red, green, blue


def is_clear_colour(value: str) -> bool:
    """Whether a colour is no colour at all."""
    if found := _ALPHA.search(value):
        return float(found[1]) / (100 if found[2] else 1) < LEAST_ALPHA
    return value == "transparent" or bool(_CLEAR_DIGITS.fullmatch(value))


@lru_cache(1024)
def is_faint(ink: Rgb, ground: Rgb) -> bool:
    """Return whether text of one colour cannot be seen on the other."""
    dark, light = sorted((_luminance(ink), _luminance(ground)))
    return (light + 0.05) / (dark + 0.05) < LEAST_CONTRAST


def _luminance(colour: Rgb) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
