"""Style: which declarations of a sheet hold on a desktop's screen, and what they hide.

Hidden text is noise, and the place where instructions to language models are planted. What is only closed, and by its
markup opens with a click (accordions, answers, tabs, product sheets), is read, and ranks with the page's furniture;
text that no click brings to light (tiny, off the screen, without contrast) stays hidden there, too.

Classes for screen readers (`sr-only`, `visually-hidden`, …) move text off the screen although it is meant to be read,
and often carry what is drawn otherwise (prices, labels of icons). Text of at most `LABEL_WORDS` words in them stays,
whatever the page's rules say; longer text goes. Not for: which elements a rule matches, and which style each has
(`sheets.py`), or where PDF and Word keep their colours (`pipeline/read`).
"""

import colorsys
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, NamedTuple

from selectolax.lexbor import LexborNode

from pipeline.html.tree import LABEL_WORDS, count_words, tags
from pipeline.read.converted import MAX_ITEMS

# Colours

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


# What a style hides

READER_CLASSES: Final = tags(
    "sr-only visually-hidden visuallyhidden screen-reader-text screenreader a-offscreen show-for-sr u-hidden-visually "
    "element-invisible assistive-text cdk-visually-hidden"
)

NOT_PLAIN: Final = re.compile(
    r"display|float|visib|opacity|font|posit|indent|clip|color|width|height|transform|margin|backgr|filter|scale|zoom|inset|--"
)
"""What a style attribute, in lower case, must hold to be worth reading."""
_USED: Final = re.compile(
    r"display|float|visib|opacity|font|posit|indent|clip|color|width|height|transform|margin|backgr|filter|scale|zoom"
    r"|inset|overflow|left|top|right|bottom|translate|animation|transition|-text-fill"
)
"""What names of properties hold that something is said about below."""
TELLING: Final = re.compile(
    r"(?=[dvoc\-sfwhtziblp])"
    r"(?:display|float\s*:\s*right|position\s*:\s*(?:absolute|fixed)|visib|opacity|clip|-\d{3}|scale|filter|transform|zoom"
    r"|inset|font(?:-size)?\s*:\s*[^;]{0,99}?(?<![\d.])[01.]"
    r"|(?:width|height)\s*:\s*(?:[01](?:px)?\s*(?:;|!|$)|calc|var)|(?:text-indent|left|top)[^;]{0,99}calc)",
)
"""What a rule's body, in lower case, must hold to be worth matching; the class of first letters only makes it fast."""
_CLEARED: Final = re.compile(r"opacity\(\s*(\d*\.?\d+%?)")
COLOURED: Final = re.compile(r"color|background|-text-fill")
"""The same on a page whose ground is known."""
_NUMBER: Final = re.compile(r"(-?\d*\.?\d+)\s*([a-z%]*)")
_SHIFT: Final = re.compile(
    r"translate(?:3d|x|y)?\(\s*(-?[\d.]+(?:px|em|rem|vw|vh|%)?)(?:\s*,\s*(-?[\d.]+(?:px|em|rem|vw|vh|%)?))?"
)
_SCALED: Final = re.compile(r"(?:scale(?:3d|x|y)?|matrix)\(([^()]*)\)")
_CLIPPED: Final = re.compile(r"rect\(\s*(?:[01](?:px)?[\s,]*){4}\)|inset\(\s*(?:50|100)%|circle\(\s*0|polygon\(\s*0")
Hiding = Literal["", "soft", "begun", "shut", "hard"]
"""Not, until a script runs (opacity, visibility), at the begin of an animation, while it is closed (not displayed, no
height), or for good."""
_MOVING: Final = ("animation", "transform", "transition", "will-change")
SHOWN: Final[Hiding] = ""
_PIXEL: Final = frozenset({"0", "1", "2", "0px", "1px", "2px"})
PIXELS: Final = {"px": 1.0, "": 1.0, "pt": 1.3, "em": 16.0, "rem": 16.0, "vw": 12.0, "vh": 8.0, "ch": 8.0}
_FAR: Final = -480.0
"""Pixels to the left or above beyond which nothing of a paragraph reaches the screen."""
_OWN_SIZE: Final = re.compile(r"medium|(?:xx?-)?(?:small|large)|(?:\d*\.)?\d+(?:px|pt|rem|vw|vh|mm|cm|q)")
"""A size of type that is not counted from the one around it."""


@lru_cache(1024)
def is_used(name: str) -> bool:
    """Whether something is said about a property below."""
    return not name.lstrip().startswith("--") and _USED.search(name) is not None


def declarations(style: str) -> dict[str, str]:
    """Return the declarations of a style attribute or rule body, names and values lowercased, without `!important`."""
    found: dict[str, str] = {}
    for part in style.lower().split(";"):
        name, colon, value = part.partition(":")
        if colon:
            found[name.strip()] = value.replace("!important", "").strip()
    return found


class Shade(NamedTuple):
    """What an element's text inherits: its ground, its ink and whether it is too small to be read."""

    ground: Rgb | None = None
    """None where it is not known."""
    ink: Rgb | None = None
    """None for the usual one, or one that is not known."""
    inkless: bool = False
    """Whether the ink is no colour at all."""
    tiny: bool = False
    unseen: bool = False
    """Whether text that inherits this is not seen."""
    apart: bool = False
    """Whether the element itself is drawn as a box of its own, which no word goes on over; not inherited."""
    parts: bool = False
    """Whether all that stands right in it is."""

    def under(self, found: Mapping[str, str]) -> "Shade":
        """Return what the text of an element with these declarations has."""
        if SHADING.isdisjoint(found):
            return self
        ground, ink, inkless, tiny = self.ground, self.ink, self.inkless, self.tiny
        behind = found.get("background-color") or found.get("background", "")
        if behind and behind not in _NO_GROUND and not is_clear_colour(behind):
            drawn = "url(" in behind or "gradient(" in behind
            ground = None if drawn else rgb_of(behind if "(" in behind else behind.split()[0])
        if found.get("background-image", "none") not in _NO_GROUND:
            ground = None
        over = found.get("-webkit-text-fill-color") or found.get("color", "")
        if over and over not in _KEPT_WORDS:
            clips = "text" in found.get("background-clip", "") + found.get("-webkit-background-clip", "")
            inkless = is_clear_colour(over) and not clips
            ink = None if clips or inkless else rgb_of(over)
        if size := _font_size(found):
            tiny = _is_tiny(size) or (tiny and not _OWN_SIZE.fullmatch(size))
        unseen = tiny or inkless or (ink is not None and ground is not None and is_faint(ink, ground))
        display = found.get("display", "")
        parts = "flex" in display or "grid" in display or (self.parts and display == "contents")
        away = found.get("position") in {"absolute", "fixed"} or found.get("float") == "right"
        return Shade(ground, ink, inkless, tiny, unseen, away or display.startswith(_BOXES), parts)


_BOXES: Final = ("block", "flex", "flow-root", "grid", "list-item", "table")
SHADING: Final = tags(
    "background background-color background-image color font font-size -webkit-text-fill-color display position float"
)
"""Properties that `Shade` depends on."""
_NO_GROUND: Final = frozenset({"none", "transparent", "inherit", "initial", "unset", "revert"})
_KEPT_WORDS: Final = frozenset({"inherit", "currentcolor"})


def how_hidden(found: Mapping[str, str], *, in_sheet: bool = False) -> Hiding:
    """Return whether declarations hide an element with all that is in it, and how surely.

    Args:
        found: Of each property its value, in lower case.
        in_sheet: They are a style sheet's: what is set before an animation starts (opacity, visibility) is left out.
    """
    if _is_shifted_away(found) or _is_clipped(found) or _is_flat(found, "width", "max-width"):
        return "hard"
    is_off = found.get("display") == "none" or found.get("content-visibility") == "hidden"
    if is_off or _is_flat(found, "height", "max-height"):
        return "shut"
    if in_sheet and any(name.startswith(("animation", "transition")) for name in found):
        return ""
    cleared = _CLEARED.search(found["filter"]) if "filter" in found else None
    clear = _is_clear(cleared[1] if cleared else found.get("opacity", ""))
    if clear and not cleared and any(name.startswith(_MOVING) for name in found):
        return "begun"
    return "soft" if clear or found.get("visibility") in {"hidden", "collapse"} else ""


def _font_size(found: Mapping[str, str]) -> str:
    """Return the size of type that declarations set, empty for none; that of the short form stands before a slash."""
    if size := found.get("font-size", ""):
        return size
    if not (short := found.get("font", "")):
        return ""
    sizes = re.findall(r"(?<![\w.#-])(\d*\.?\d+(?:px|pt|em|rem|%|vw|vh)|0(?=[\s/]))", short)
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


def length(value: str, *, percent: float = 10.0) -> float | None:
    """Return the pixels of a length, None where it is none."""
    match = _NUMBER.match(value)
    if match is None:
        return None
    return float(match[1]) * (percent if match[2] == "%" else PIXELS.get(match[2], 1.0))


def _is_shifted_away(found: Mapping[str, str]) -> bool:
    names = ["text-indent", "margin-left", "margin-top"]
    if found.get("position") in {"absolute", "fixed", "relative"}:
        names += ["left", "top", "right", "bottom", "inset"]
    if any((length(found[name]) or 0) <= _FAR for name in names if name in found):
        return True
    if any(_scales_away(found[name]) for name in ("scale", "zoom") if name in found):
        return True
    if "transform" not in found and "translate" not in found:
        return False
    transform = f"{found.get('transform', '')} {found.get('translate', '')}".strip()
    if any(_scales_away(scaled[1]) for scaled in _SCALED.finditer(transform)):
        return True
    match = _SHIFT.search(transform)
    moves = [match[1], match[2]] if match else transform.split()
    return any((length(move or "") or 0) <= _FAR * 2 for move in moves)


def _scales_away(factors: str) -> bool:
    """Whether the factors that sizes are multiplied with, one or two or a matrix of six, leave nothing to be read."""
    found = [float(number) * (0.01 if unit else 1) for number, unit in re.findall(r"(-?\d*\.?\d+)(%?)", factors)]
    if len(found) == 6:
        found = [(abs(found[0] * found[3] - found[1] * found[2])) ** 0.5]
    return any(abs(factor) * PIXELS["em"] < 1 for factor in found[:2])  # type of less than a pixel


def _is_clipped(found: Mapping[str, str]) -> bool:
    if "clip" in found and found.get("position") in {"absolute", "fixed"} and _CLIPPED.search(found["clip"]):
        return True
    return "clip-path" in found and _CLIPPED.search(found["clip-path"]) is not None


def _is_flat(found: Mapping[str, str], *sides: str) -> bool:
    """Whether an element cuts off its text at one of `sides` of at most a pixel."""
    if not found.get("overflow", found.get("overflow-y", "")).startswith(("hidden", "clip")):
        return False
    return any((size := length(found.get(name, ""))) is not None and size <= 1.0 for name in sides)


def is_drawn(attributes: Mapping[str, str | None]) -> bool:
    """Return whether an image is there to be seen: not hidden, not a pixel that counts visits.

    Its colours mean nothing, and frameworks set them until it has come.
    """
    if "hidden" in attributes:
        return False
    if any((attributes.get(side) or "").strip() in _PIXEL for side in ("width", "height")):
        return False
    style = attributes.get("style")
    return not style or not how_hidden(declarations(style), in_sheet=True)


def is_long(current: LexborNode) -> bool:
    """Whether an element holds more than `LABEL_WORDS` words, or more than can be looked at in passing.

    Elements of this kind may stand within each other, so that counting all of their words would be quadratic.
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


def shade_under(above: Shade, attributes: Mapping[str, str | None], found: Mapping[str, str]) -> Shade:
    """Return what the text of an element inherits, by its style and by its attributes of old."""
    presented = _presented(attributes) if not PRESENTING.isdisjoint(attributes) else {}
    return above.under({**presented, **found}) if presented or found else above


# Rules of a sheet

LONGEST: Final = 1_000
"""Characters of a selector, and of a value with custom properties filled in; real selectors have 582 at most. Nested
rules and properties multiply."""
SCREEN: Final = {"width": 1280.0, "height": 800.0}
"""Pixels of the screen that media queries are asked about."""
_DESKTOP: Final = {
    "orientation": "landscape", "prefers-color-scheme": "light", "hover": "hover", "any-hover": "hover",
    "pointer": "fine", "any-pointer": "fine", "prefers-reduced-motion": "no-preference", "scripting": "enabled",
    "color": "", "update": "fast", "forced-colors": "none", "prefers-contrast": "no-preference",
}  # fmt: skip
"""What a person's desktop answers to media queries."""
_FEATURE: Final = re.compile(r"\(\s*([a-z-]+)\s*(?::\s*([\w.-]+)\s*)?\)")
_RANGE: Final = re.compile(r"\(\s*(width|height)\s*([<>])=?\s*([\d.]+)(px|em|rem)?\s*\)")
_BOUNDS: Final = re.compile(r"\(\s*([\d.]+[a-z]*)\s*([<>])=?\s*(width|height)\s*(?:([<>])=?\s*([\d.]+[a-z]*)\s*)?\)")
"""A range that begins with a size."""
_TURNED: Final = {"<": ">", ">": "<"}
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
"""One that never ends swallows the rest, which also keeps the search linear. Those of HTML are blanks to CSS."""
_LEAF: Final = re.compile(
    r"""\s*+([^{}"';@]*+(?:"[^"\\]*+"[^{}"';@]*+)*+)(?<!\\)\{([^{}"'\\]*+(?:(?:"[^"\\]*+"|'[^'\\]*+')[^{}"'\\]*+)*+)\}"""
)
"""A rule with no other in it."""
_TOKEN: Final = re.compile(r"""\\.|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|url\([^)"']*+|[{};]""", re.DOTALL)
"""What parts a style sheet; escapes, strings and addresses are passed over."""
_SUM: Final = re.compile(r"calc\(\s*(-?[\d.]+)([a-z%]*)\s*(?:([-+*/])\s*(-?[\d.]+)([a-z%]*)\s*)?\)")


def rules_of(sheet: str) -> Iterator[tuple[Collection[str], str, str]]:
    """Yield the rules of a style sheet that hold on a desktop's screen: those around each, its selectors, its body."""
    sheet = _COMMENT.sub("", sheet)
    stack: list[tuple[Collection[str], bool, list[str]]] = [((), True, [])]
    begin, end, left = 0, 0, MAX_ITEMS
    while True:
        above, holds, body = stack[-1]
        if begin == end and (leaf := _LEAF.match(sheet, begin)):
            begin = end = leaf.end()
            if holds:
                yield above, leaf[1], leaf[2].lower()
            continue
        token = _TOKEN.search(sheet, end)
        if token is None:
            return
        end = token.end()
        if (sign := token[0]) not in "{};":
            continue
        text, begin = sheet[begin : token.start()].strip(), end
        if sign == "{" and text.startswith("@"):
            stack.append((above, holds and _holds_on_desktop(text.lower()), []))
        elif sign == "{":
            inner = tuple(islice(nested(above, text), left)) if holds else ()
            left -= len(inner)
            stack.append((inner, inner != (), []))
        else:
            body.append(text)
            if sign == "}" and len(stack) > 1:
                stack.pop()
                if holds and above:
                    yield above, "&", ";".join(body).lower()


def nested(above: Collection[str], selectors: str) -> Iterator[str]:
    """Yield the selectors of a rule, those that stand within another with it in front (CSS Nesting)."""
    if not above:
        yield from listed(selectors)
        return
    for inner in listed(selectors):
        for outer in above:
            if len(inner) + len(outer) * max(1, inner.count("&")) < LONGEST:
                yield inner.replace("&", outer) if "&" in inner else f"{outer} {inner}"


def listed(selectors: str) -> Iterator[str]:
    """Yield the selectors of a list."""
    if "(" not in selectors:
        yield from map(str.strip, selectors.split(","))
        return
    depth, parts = 0, list[str]()
    for part in selectors.split(","):
        parts.append(part)
        depth += part.count("(") - part.count(")")
        if depth <= 0:
            yield ",".join(parts).strip()
            depth, parts = 0, []


def specificity(selector: str) -> int:
    """Return the weight of a selector, its ids before classes before names (Selectors 4, §17)."""
    ids = len(re.findall(r"#[\w-]", selector))
    classes = len(re.findall(r"\.[\w-]|\[|(?<!:):(?!:|not|is|where|has)", selector))
    names = len(re.findall(r"(?:^|[\s>+~(,])[a-z]", selector, re.IGNORECASE))
    return 10_000 * ids + 100 * classes + names


@lru_cache(1024)
def _holds_on_desktop(condition: str) -> bool:
    """Whether an at-rule's condition is true on a desktop's screen; one of the queries of a list is enough."""
    name, _, query = condition.partition(" ")
    if name.startswith(("@supports", "@layer", "@scope")):
        return "not" not in query
    if not condition.startswith("@media"):
        return False
    return any(map(_query_holds, condition.removeprefix("@media").split(",")))


def _query_holds(query: str) -> bool:
    query = _BOUNDS.sub(_ranges, query)
    words = _FEATURE.sub(" ", _RANGE.sub(" ", query)).replace("only", " ").replace("and", " ").split()
    if not set(words) <= {"screen", "all", "not"} or "not" in words[1:]:
        return False
    holds = all(
        (float(size) * PIXELS.get(unit, 1.0) >= SCREEN[side]) == (sign == "<")
        for side, sign, size, unit in _RANGE.findall(query)
    )
    for feature, value in _FEATURE.findall(query):
        bound, _, side = feature.partition("-")
        if bound in {"min", "max"} and side in SCREEN:
            holds &= ((length(value) or 0.0) <= SCREEN[side]) == (bound == "min")
        else:
            holds &= feature in _DESKTOP and _DESKTOP[feature] in {value, ""}
    return holds != ("not" in words)


def _ranges(bounds: re.Match[str]) -> str:
    """Return a range that begins with a size as one or two that begin with what is measured."""
    least, sign, side, other, most = bounds.groups()
    return f"({side} {_TURNED[sign]} {least})" + (f"({side} {other} {most})" if other else "")


def worked_out(value: str) -> str:
    """Return a value with its sums (`calc`) worked out."""
    return _SUM.sub(_sum, value) if "calc(" in value else value


def _sum(found: re.Match[str]) -> str:
    """Return a sum or product of two numbers as one."""
    try:
        one, other = float(found[1]), float(found[4] or 0)
        done = {"+": one + other, "-": one - other, "*": one * other, "/": one / other if other else 0.0}
    except ValueError:
        return found[0]
    return f"{done[found[3]] if found[3] else one:g}{found[2] or found[5] or ''}"
