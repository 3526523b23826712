"""Colours: which one a CSS value names (CSS Color 4 and 5), and whether ink of one is
seen on a ground of another.

Wide spaces (`display-p3`, `rec2020`, …) are taken for sRGB: white, black and greys are
the same in all of them, and only contrast is asked for. Not for: which colour an
element has (`style.py`)."""

import colorsys
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

_NAMED_COLOURS: Final = """
aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc
bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a
burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50 cornflowerblue
6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b darkgoldenrod
b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b darkmagenta 8b008b
darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000 darksalmon e9967a
darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f darkslategrey 2f4f4f darkturquoise
00ced1 darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff dimgray 696969 dimgrey 696969
dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0 forestgreen 228b22 fuchsia ff00ff gainsboro
dcdcdc ghostwhite f8f8ff gold ffd700 goldenrod daa520 gray 808080 green 008000 greenyellow adff2f
grey 808080 honeydew f0fff0 hotpink ff69b4 indianred cd5c5c indigo 4b0082 ivory fffff0 khaki
f0e68c lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6
lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow fafad2 lightgray d3d3d3 lightgreen 90ee90
lightgrey d3d3d3 lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa lightskyblue 87cefa
lightslategray 778899 lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00
limegreen 32cd32 linen faf0e6 magenta ff00ff maroon 800000 mediumaquamarine 66cdaa mediumblue
0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee
mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970
mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6
olive 808000 olivedrab 6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa
palegreen 98fb98 paleturquoise afeeee palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru
cd853f pink ffc0cb plum dda0dd powderblue b0e0e6 purple 800080 rebeccapurple 663399 red ff0000
rosybrown bc8f8f royalblue 4169e1 saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen
2e8b57 seashell fff5ee sienna a0522d silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray
708090 slategrey 708090 snow fffafa springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080
thistle d8bfd8 tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff whitesmoke
f5f5f5 yellow ffff00 yellowgreen 9acd32 canvas ffffff canvastext 000000 field ffffff fieldtext
000000 buttonface efefef window ffffff
"""
_NAMES_AND_CODES: Final = _NAMED_COLOURS.split()
_HEX_BY_NAME: Final = dict(
    zip(_NAMES_AND_CODES[::2], _NAMES_AND_CODES[1::2], strict=True)
)
"""Six digits of each name, of the system's colours those of a light desktop."""
Rgb = tuple[float, float, float]
"""Red, green, blue, each 0..1."""
WHITE: Final[Rgb] = (1.0, 1.0, 1.0)
LEAST_CONTRAST: Final = 1.15
"""Ratio of luminances (WCAG 2.2, 1.4.3) below which text is invisible on its
background; #ccc on white, the palest print of real pages, has 1.6, #f0f0f0 has 1.14."""
LEAST_ALPHA: Final = 0.05
"""Opacity below which nothing is seen."""
_COLOUR_DEPTH: Final = 4
"""Colours within colours (`color-mix`, `light-dark`, `from`) that are looked into."""
_COLOUR_CHARACTERS: Final = 300
"""Characters of a colour."""
_HEX_COLOUR: Final = re.compile(r"#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})")
_COLOUR_FUNCTION: Final = re.compile(r"([a-z-]+)\((.*)\)")
_INNER_COLOUR: Final = re.compile(r"[a-z-]+\([^()]*\)")
_COLOUR_NUMBER: Final = re.compile(
    r"(none|[-+]?\d*\.?\d+(?:e[-+]?\d+)?)(%|deg|grad|rad|turn)?"
)
_TURNS: Final = {"deg": 1.0, "grad": 0.9, "rad": 180 / math.pi, "turn": 360.0}
"""Degrees of a unit of angles."""
_SHARE: Final = re.compile(r"\s([\d.]+)%\s*$|^\s*([\d.]+)%\s")
_Parsed = tuple[float, float, float, float]
"""Red, green, blue and alpha."""
_Matrix = tuple[Rgb, Rgb, Rgb]
_FROM_D50: Final[_Matrix] = (
    (3.1338561, -1.6168667, -0.4906146),
    (-0.9787684, 1.9161415, 0.0334540),
    (0.0719453, -0.2289914, 1.4052427),
)
_FROM_D65: Final[_Matrix] = (
    (3.2404542, -1.5371385, -0.4985314),
    (-0.9692660, 1.8760108, 0.0415560),
    (0.0556434, -0.2040259, 1.0572252),
)
"""From XYZ to linear sRGB."""
_D50: Final[Rgb] = (0.9642956, 1.0, 0.8251046)
_TO_CONES: Final[_Matrix] = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_FROM_CONES: Final[_Matrix] = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
"""Of Oklab (CSS Color 4, §18)."""


@lru_cache(1024)
def rgb_of(value: str) -> Rgb | None:
    """Return the colour that a CSS value names, on white where it is half transparent;
    None where that is not known or `transparent`."""
    parsed = _parsed(value.strip().lower())
    if parsed is None or parsed is _CLEAR:
        return None
    *parts, alpha = parsed
    red, green, blue = (1 - alpha * (1 - min(max(part, 0.0), 1.0)) for part in parts)
    return red, green, blue


@lru_cache(1024)
def is_clear_colour(value: str) -> bool:
    """Return whether a colour (lower case) is nearly transparent; of a longer value the
    first colour counts. False where there is none."""
    parsed = _parsed(value)
    if parsed is None:
        parsed = next(
            filter(None, (_parsed(one[0]) for one in _INNER_COLOUR.finditer(value))),
            None,
        )
    return parsed is not None and parsed[3] < LEAST_ALPHA


@lru_cache(1024)
def is_faint(ink: Rgb, ground: Rgb) -> bool:
    """Return whether text of one colour cannot be seen on the other."""
    dark, light = sorted((_luminance(ink), _luminance(ground)))
    return (light + 0.05) / (dark + 0.05) < LEAST_CONTRAST


def _luminance(colour: Rgb) -> float:
    red, green, blue = map(_linear, colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _curved(part: float) -> float:
    """Return a linear part of sRGB as it is written."""
    part = min(max(part, 0.0), 1.0)
    return 12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055


def _times(matrix: _Matrix, vector: Sequence[float]) -> Rgb:
    one, two, three = (
        sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix
    )
    return one, two, three


def _from_linear(matrix: _Matrix, vector: Sequence[float]) -> Rgb:
    red, green, blue = map(_curved, _times(matrix, vector))
    return red, green, blue


_CLEAR: Final[_Parsed] = (0.0, 0.0, 0.0, 0.0)


def _parsed(value: str, depth: int = 0) -> _Parsed | None:
    """Return red, green, blue and alpha of a value in lower case, None if it is not a
    color."""
    if value == "transparent":
        return _CLEAR
    value = f"#{_HEX_BY_NAME[value]}" if value in _HEX_BY_NAME else value
    if _HEX_COLOUR.fullmatch(value):
        return _of_digits(value[1:])
    found = (
        _COLOUR_FUNCTION.fullmatch(value)
        if len(value) <= _COLOUR_CHARACTERS and depth < _COLOUR_DEPTH
        else None
    )
    if found is None:
        return None
    name, inner = found[1], found[2].strip()
    if name == "color-mix":
        return _mixed(inner, depth + 1)
    if name == "light-dark":
        return _parsed(next(parted(inner, ",")), depth + 1)
    return _of_function(name, inner, depth)


def _of_function(name: str, inner: str, depth: int) -> _Parsed | None:
    """Return the colour of a function with numbers, `from` another or not; None for an
    unknown function. With fewer than three numbers it is that other colour."""
    space = name.removesuffix("a") if name in {"rgba", "hsla"} else name
    base: _Parsed | None = None
    if inner.startswith("from "):
        origin, *rest = parted(inner.removeprefix("from ").strip(), " ")
        base, inner = _parsed(origin, depth + 1), " ".join(rest)
    if space == "color":
        space, _, inner = inner.partition(" ")
        space = f"color {space}"
    how = _SPACES.get(space)
    if how is None:
        return None
    own, slash, alpha_part = inner.partition("/")
    numbers = [_number(*one) for one in _COLOUR_NUMBER.findall(own)]
    if len(numbers) < 3:  # names of the other's own parts
        return base
    alpha = numbers[3:4] or (
        [_number(*one) for one in _COLOUR_NUMBER.findall(alpha_part)] if slash else []
    )
    red, green, blue = how(numbers)
    return red, green, blue, _share(alpha[0]) if alpha else 1.0


_Number = tuple[float, str]
"""A number with its unit."""


def _number(digits: str, unit: str) -> _Number:
    return (0.0 if digits == "none" else float(digits)), unit


def _share(number: _Number, whole: float = 1.0) -> float:
    """Return a number as it is, of a per cent its part of `whole`."""
    return number[0] / 100 * whole if number[1] == "%" else number[0]


def _angle(number: _Number) -> float:
    """Return degrees."""
    return number[0] * _TURNS.get(number[1], 1.0)


def _rgb(numbers: Sequence[_Number]) -> Rgb:
    red, green, blue = (_share(one, 255) / 255 for one in numbers[:3])
    return red, green, blue


def _hsl(numbers: Sequence[_Number]) -> Rgb:
    full, light = (min(max(one[0] / 100, 0.0), 1.0) for one in numbers[1:3])
    return colorsys.hls_to_rgb(_angle(numbers[0]) / 360 % 1, light, full)


def _hwb(numbers: Sequence[_Number]) -> Rgb:
    white, black = (min(max(one[0] / 100, 0.0), 1.0) for one in numbers[1:3])
    if white + black >= 1:
        return (white / (white + black),) * 3
    pure = colorsys.hls_to_rgb(_angle(numbers[0]) / 360 % 1, 0.5, 1.0)
    red, green, blue = (part * (1 - white - black) + white for part in pure)
    return red, green, blue


def _polar(numbers: Sequence[_Number], whole: float) -> list[_Number]:
    """Return lightness, chroma and hue as lightness and two axes."""
    chroma, hue = _share(numbers[1], whole), math.radians(_angle(numbers[2]))
    return [numbers[0], (chroma * math.cos(hue), ""), (chroma * math.sin(hue), "")]


def _lab(numbers: Sequence[_Number]) -> Rgb:
    light, green, blue = (
        (numbers[0][0] + 16) / 116,
        *(_share(one, 125) for one in numbers[1:3]),
    )
    roots = light + green / 500, light, light - blue / 200
    cubes = [one**3 if one > 6 / 29 else (116 * one - 16) / 903.3 for one in roots]
    return _from_linear(_FROM_D50, [a * b for a, b in zip(cubes, _D50, strict=True)])


def _oklab(numbers: Sequence[_Number]) -> Rgb:
    given = _share(numbers[0]), *(_share(one, 0.4) for one in numbers[1:3])
    return _from_linear(_FROM_CONES, [one**3 for one in _times(_TO_CONES, given)])


def _plain(numbers: Sequence[_Number]) -> Rgb:
    red, green, blue = (_share(one) for one in numbers[:3])
    return red, green, blue


def _linear_rgb(numbers: Sequence[_Number]) -> Rgb:
    red, green, blue = map(_curved, _plain(numbers))
    return red, green, blue


_SPACES: Final[dict[str, Callable[[Sequence[_Number]], Rgb]]] = {
    "rgb": _rgb,
    "hsl": _hsl,
    "hwb": _hwb,
    "lab": _lab,
    "lch": lambda numbers: _lab(_polar(numbers, 150)),
    "oklab": _oklab,
    "oklch": lambda numbers: _oklab(_polar(numbers, 0.4)),
    "color srgb-linear": _linear_rgb,
    "color xyz": lambda numbers: _from_linear(_FROM_D65, _plain(numbers)),
    "color xyz-d65": lambda numbers: _from_linear(_FROM_D65, _plain(numbers)),
    "color xyz-d50": lambda numbers: _from_linear(_FROM_D50, _plain(numbers)),
    **dict.fromkeys(
        (
            "color srgb",
            "color display-p3",
            "color a98-rgb",
            "color prophoto-rgb",
            "color rec2020",
        ),
        _plain,
    ),
}
"""Red, green and blue of the numbers of a space."""


def _of_digits(digits: str) -> _Parsed:
    """Return the colour of three, four, six or eight hexadecimal digits."""
    if len(digits) < 5:
        digits = "".join(2 * digit for digit in digits)
    red, green, blue, alpha = bytes.fromhex(digits.ljust(8, "f"))
    return red / 255, green / 255, blue / 255, alpha / 255


def _mixed(inner: str, depth: int) -> _Parsed | None:
    """Return the mixture of two colours in RGB, whatever space it is mixed in; None
    unless there are two known ones."""
    _, *mixed = parted(inner, ",")
    if len(mixed) != 2:
        return None
    shares, found = list[float | None](), list[_Parsed]()
    for one in mixed:
        said = _SHARE.search(f" {one} ")
        colour = _parsed(_SHARE.sub(" ", f" {one} ").strip(), depth)
        if colour is None:
            return None
        shares.append(float(said[1] or said[2]) / 100 if said else None)
        found.append(colour)
    first, second = _filled(*shares)
    total = first + second or 1.0
    alpha = (first * found[0][3] + second * found[1][3]) / total
    red, green, blue = (
        (first * one * found[0][3] + second * other * found[1][3])
        / (total * alpha or 1.0)
        for one, other in zip(found[0][:3], found[1][:3], strict=True)
    )
    return red, green, blue, alpha * min(total, 1.0)


def _filled(first: float | None, second: float | None) -> tuple[float, float]:
    """Return the shares of two colours, those that are not said (None) from the
    other."""
    if first is None:
        first = 0.5 if second is None else 1 - second
    return first, 1 - first if second is None else second


def parted(value: str, sign: str) -> Iterator[str]:
    """Split a value at a character outside of brackets; parts are stripped; empty ones
    are dropped."""
    depth, begin = 0, 0
    for at, letter in enumerate(value):
        depth += (letter == "(") - (letter == ")")
        if letter == sign and depth <= 0:
            if part := value[begin:at].strip():
                yield part
            begin = at + 1
    if part := value[begin:].strip():
        yield part
