"""What a page hides: by attribute, by inline style, by simple rules of its own style sheets.

Hidden text is noise, and the place where instructions to language models are planted. Judged are declarations that
hide at once and for certain. What is only closed, and by its markup opens with a click (accordions, answers, tabs,
product sheets), is read, and ranks with the page's furniture; text that no click brings to light (tiny, off the screen,
without colour) stays hidden there, too. Not judged: external style sheets, selectors other than a single class or id,
media queries other than on a desktop screen's width.

Classes for screen readers (`sr-only`, `visually-hidden`, …) move text off the screen although it is meant to be read,
and often carry what is drawn otherwise (prices, labels of icons). Text of at most `LABEL_WORDS` words in them stays,
whatever the page's rules say; longer text goes.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import islice
from typing import Final, Literal

from selectolax.lexbor import LexborNode

from pipeline.html.tree import LABEL_WORDS, count_words, tags
from pipeline.read.converted import MAX_ITEMS

READER_CLASSES: Final = tags(
    "sr-only visually-hidden visuallyhidden screen-reader-text screenreader a-offscreen show-for-sr u-hidden-visually "
    "element-invisible assistive-text cdk-visually-hidden"
)

_NOT_PLAIN: Final = re.compile(
    r"display|visib|opacity|font|posit|indent|clip|color|width|height|transform|margin|backgr"
)
"""What a style attribute, in lower case, must hold to be worth reading."""
_TELLING: Final = re.compile(
    r"(?=[dvoc\-sfwh])"
    r"(?:display|visib|opacity\s*:\s*0?\.?0|clip|-\d{3}|scale\(0|font-size\s*:\s*[01.]"
    r"|(?:width|height)\s*:\s*[01](?:px)?\s*(?:;|!|$))",
)
"""What a rule's body, in lower case, must hold to be worth reading; the class of first letters only makes it fast."""
_NUMBER: Final = re.compile(r"(-?\d*\.?\d+)\s*([a-z%]*)")
_SHIFT: Final = re.compile(
    r"translate(?:3d|x|y)?\(\s*(-?[\d.]+(?:px|em|rem|vw|vh|%)?)(?:\s*,\s*(-?[\d.]+(?:px|em|rem|vw|vh|%)?))?"
)
_CLIPPED: Final = re.compile(r"rect\(\s*(?:[01](?:px)?[\s,]*){4}\)|inset\(\s*(?:50|100)%|circle\(\s*0|polygon\(\s*0")
_SIMPLE: Final = re.compile(r"[.#]-?[A-Za-z_][\w-]*")
_OPENED: Final = re.compile(
    r"accordion|carousel-item|collaps|faq|product|slick-slide|spoiler|swiper-slide|tab[-_]*(?:pan|content)|toggle-?(?:content|panel)"
)
"""Names of what a reader opens: on 28 asked pages a sixth of what cleaning lost stood in closed product sheets."""
_SHUT: Final = re.compile(
    r"cloned|cookie|consent|duplicate|newsletter|subscri|login|sign|cart|search|menu|nav|share|load|error|alert|warn|age-"
)
"""Names of closed things that hold no content."""
_OPENER_NODES: Final = 12
"""Elements in front of a closed one, from the first down, among which the button that opens it is looked for."""
Hiding = Literal["", "soft", "begun", "shut", "hard"]
"""Not, until a script runs (opacity, visibility), at the begin of an animation, while it is closed (not displayed, no
height), or for good."""
_MOVING: Final = ("animation", "transform", "transition", "will-change")
_SHOWN: Final[Hiding] = ""
_NO_CONTENT: Final = frozenset({"alert", "listbox", "menu", "navigation", "search", "status", "tooltip"})
"""Roles of closed things that hold no content."""
_PIXEL: Final = frozenset({"0", "1", "2", "0px", "1px", "2px"})
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
"""One that never ends swallows the rest, which also keeps the search linear."""
_PIXELS: Final = {"px": 1.0, "": 1.0, "pt": 1.3, "em": 16.0, "rem": 16.0, "vw": 12.0, "vh": 8.0, "ch": 8.0}
_FAR: Final = -480.0
"""Pixels to the left or above beyond which nothing of a paragraph reaches the screen."""
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
_BRACE: Final = re.compile(r"[{};]")
_WIDTH: Final = re.compile(r"(min|max)-width\s*:\s*([\d.]+)(px|em|rem)?")
SCREEN: Final = 1280
"""Width in pixels of the screen that media queries are asked about."""


def declarations(style: str) -> dict[str, str]:
    """Return the declarations of a style attribute or rule body, names and values lowercased, without `!important`."""
    found: dict[str, str] = {}
    for part in style.lower().split(";"):
        name, colon, value = part.partition(":")
        if colon:
            found[name.strip()] = value.replace("!important", "").strip()
    return found


def colour(value: str) -> str:
    """Return a colour in one spelling (`#rrggbb`), or the value itself where it is none that we know."""
    value = value.strip().lower()
    value = _COLOURS.get(value, value)
    if len(value) == 4 and value.startswith("#"):
        value = "#" + "".join(2 * digit for digit in value[1:])
    numbers = re.findall(r"[\d.]+", value) if value.startswith(("rgb", "hsl")) else []
    if len(numbers) == 4 and float("0" + numbers[3].rstrip(".")) < 0.05:
        return "transparent"
    if len(numbers) >= 3 and value.startswith("rgb") and all(number.isdigit() for number in numbers[:3]):
        return "#" + "".join(f"{min(int(number), 255):02x}" for number in numbers[:3])
    return value


def background(found: dict[str, str]) -> str:
    """Return the background colour that declarations set, empty where they set none."""
    value = found.get("background-color") or found.get("background", "")
    first = value.split("url(", 1)[0].strip()
    return "" if not first or first in {"none", "transparent", "inherit"} else colour(first)


def how_hidden(found: dict[str, str], *, behind: str = "", in_sheet: bool = False) -> Hiding:
    """Return whether declarations hide an element's text, and how surely.

    Args:
        found: What `declarations` returned.
        behind: Background colour of the elements around it, empty when unknown.
        in_sheet: They are a style sheet's: colours are left out, since other rules change them, and so is what is
            set before an animation starts (opacity, visibility).
    """
    if _is_tiny(found.get("font-size", "")) or _is_shifted_away(found) or _is_clipped(found):
        return "hard"
    if (not in_sheet and _is_inkless(found, behind)) or _is_flat(found, "width", "max-width"):
        return "hard"
    is_off = found.get("display") == "none" or found.get("content-visibility") == "hidden"
    if is_off or _is_flat(found, "height", "max-height"):
        return "shut"
    if in_sheet and any(name.startswith(("animation", "transition")) for name in found):
        return ""
    clear = _is_clear(found.get("opacity", ""))
    if clear and any(name.startswith(_MOVING) for name in found):
        return "begun"
    return "soft" if clear or found.get("visibility") in {"hidden", "collapse"} else ""


def _is_inkless(found: dict[str, str], behind: str) -> bool:
    """Whether the text has no colour of its own, or that of its background."""
    ink = found.get("color", "")
    if not ink or "text" in found.get("background-clip", "") + found.get("-webkit-background-clip", ""):
        return False
    ink = colour(ink)
    return ink == "transparent" or ink == (background(found) or behind or "-")


def _is_clear(opacity: str) -> bool:
    value = _length(opacity, percent=0.01)
    return value is not None and value < 0.05


def _is_tiny(size: str) -> bool:
    """Whether a font size is at most a pixel; percentages count against 16 pixels."""
    value = _length(size, percent=0.16)
    return value is not None and value <= 1


def _length(value: str, *, percent: float = 10.0) -> float | None:
    """Return the pixels of a length, None where it is none."""
    match = _NUMBER.match(value)
    if match is None:
        return None
    return float(match[1]) * (percent if match[2] == "%" else _PIXELS.get(match[2], 1.0))


def _is_shifted_away(found: dict[str, str]) -> bool:
    names = ["text-indent", "margin-left", "margin-top"]
    if found.get("position") in {"absolute", "fixed", "relative"}:
        names += ["left", "top", "right", "bottom"]
    if any((_length(found[name]) or 0) <= _FAR for name in names if name in found):
        return True
    transform = found.get("transform", "")
    if not transform:
        return False
    if "scale(0)" in transform or "scale(0," in transform:
        return True
    match = _SHIFT.search(transform)
    moves = [match[1], match[2]] if match else []
    return any((_length(move or "") or 0) <= _FAR * 2 for move in moves)


def _is_clipped(found: dict[str, str]) -> bool:
    if found.get("position") in {"absolute", "fixed"} and _CLIPPED.search(found.get("clip", "")):
        return True
    return _CLIPPED.search(found.get("clip-path", "")) is not None


def _is_flat(found: dict[str, str], *sides: str) -> bool:
    """Whether an element cuts off its text at one of `sides` of at most a pixel."""
    if not found.get("overflow", found.get("overflow-y", "")).startswith(("hidden", "clip")):
        return False
    return any((size := _length(found.get(name, ""))) is not None and size <= 1.0 for name in sides)


def can_be_opened(
    current: LexborNode, attributes: Mapping[str, str | None], controlled: Callable[[], Container[str]]
) -> bool:
    """Return whether a closed element is one that a reader opens with a click.

    It is a tab's panel, named like what opens, what follows the button, or what a button says that it controls
    (`controlled` looks for the ids of such in the whole page, and is asked last).
    """
    name = attributes.get("id") or ""
    label = f"{attributes.get('class') or ''} {name}".lower()
    if _SHUT.search(label) or attributes.get("role") in _NO_CONTENT:
        return False
    if attributes.get("role") == "tabpanel" or _OPENED.search(label):
        return True
    before = current.prev
    while before is not None and not before.is_element_node and (before.text_content or "").isspace():
        before = before.prev
    if before is not None and any(
        node.tag == "summary" or "aria-expanded" in node.attributes for node in islice(before.traverse(), _OPENER_NODES)
    ):
        return True
    return name != "" and name in controlled()


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


class StyleJudge:
    """Decides for the style attributes and classes of one page, each distinct value once."""

    def __init__(self) -> None:
        """Start without rules."""
        self._styles: dict[tuple[str, str], tuple[Hiding, str]] = {}
        self._rules: dict[str, tuple[int, Hiding]] = {}
        self._read = 0

    def judge(self, style: str, behind: str) -> tuple[Hiding, str]:
        """Return how a style attribute hides, and the background colour it sets (empty for none)."""
        style = style.lower()
        if not _NOT_PLAIN.search(style):
            return "", ""
        key = (style, behind)
        known = self._styles.get(key)
        if known is None:
            found = declarations(style)
            known = how_hidden(found, behind=behind), background(found)
            self._styles[key] = known
        return known

    def judge_names(self, names: Sequence[str]) -> Hiding:
        """Return how the rules for these selectors (`.class`, `#id`) hide; of several, the last in the sheets wins.

        What is closed by one and never seen by another is never seen.
        """
        rules = [rule for name in names if (rule := self._rules.get(name))]
        last = max(rules, default=(0, _SHOWN))[1]
        return "hard" if last == "shut" and any(hiding == "hard" for _, hiding in rules) else last

    def names(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the classes and the ids that the rules are for."""
        classes = frozenset(name[1:] for name in self._rules if name[0] == ".")
        return classes, frozenset(name[1:] for name in self._rules if name[0] == "#")

    def read_sheet(self, sheet: str) -> None:
        """Take the rules of a `<style>` element for single classes and ids."""
        for rule in _applied(sheet).split("}")[:-1]:
            head, _, body = rule.rpartition("{")
            selectors = head.rpartition("{")[2]
            if not selectors:
                continue
            self._read += 1
            if self._read > MAX_ITEMS:
                return
            names = [name for part in selectors.split(",") if _SIMPLE.fullmatch(name := part.strip())]
            if not names or not _TELLING.search(body := body.lower()):
                continue
            found = declarations(body)
            hiding = how_hidden(found, in_sheet=True)
            if not hiding and "display" not in found and "visibility" not in found:
                continue
            for name in names:
                # An id outweighs any number of classes.
                self._rules[name] = self._read + (MAX_ITEMS if name[0] == "#" else 0), hiding


def _applied(sheet: str) -> str:
    """Return `sheet` without comments, with the at-rules opened that hold on a desktop screen and the others gone."""
    sheet = _COMMENT.sub("", sheet)
    kept: list[str] = []
    position = 0
    while (at := sheet.find("@", position)) >= 0:
        kept.append(sheet[position:at])
        position = _end_of_at_rule(sheet, at)
        opening = sheet.find("{", at, position)
        if opening > 0 and _holds_on_desktop(sheet[at:opening]):
            inner = sheet[opening + 1 : position].rstrip().removesuffix("}")
            if "@" not in inner:
                kept.append(inner)
    kept.append(sheet[position:])
    return "".join(kept)


def _holds_on_desktop(condition: str) -> bool:
    """Whether an at-rule's condition is true for a screen `SCREEN` pixels wide."""
    if condition.startswith(("@supports", "@layer")):
        return "not" not in condition
    if not condition.startswith("@media") or "print" in condition or "not" in condition or "hover" in condition:
        return False
    widths = _WIDTH.findall(condition)
    return bool(widths) and all(
        (float(number) * _PIXELS.get(unit, 1.0) <= SCREEN) == (side == "min") for side, number, unit in widths
    )


def _end_of_at_rule(sheet: str, at: int) -> int:
    depth = 0
    for match in _BRACE.finditer(sheet, at):
        sign = match[0]
        if sign == ";" and depth == 0:
            return match.end()
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "}" and depth <= 0:
            return match.end()
    return len(sheet)
