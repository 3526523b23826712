"""What a page hides: the style that its attributes and its own style sheets give to each element.

Hidden text is noise, and the place where instructions to language models are planted. Every rule of the page's own
sheets that may hide is matched against its elements; of each property the declaration counts that a browser would take
(CSS Cascade 4, §6), with custom properties filled in. What is only closed, and by its markup opens with a click
(accordions, answers, tabs, product sheets), is read, and ranks with the page's furniture; text that no click brings to
light (tiny, off the screen, without contrast) stays hidden there, too. Not judged: linked style sheets, which are not
fetched; where there are any, a ground that the page does not name itself may have any colour.

Classes for screen readers (`sr-only`, `visually-hidden`, …) move text off the screen although it is meant to be read,
and often carry what is drawn otherwise (prices, labels of icons). Text of at most `LABEL_WORDS` words in them stays,
whatever the page's rules say; longer text goes.
"""

import re
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import islice
from math import comb
from typing import Final, Literal, NamedTuple

from selectolax.lexbor import LexborNode, SelectolaxError

from pipeline.html.colour import LEAST_ALPHA, WHITE, Rgb, is_clear_colour, is_faint, rgb_of
from pipeline.html.tree import LABEL_WORDS, count_words, tags
from pipeline.read.converted import MAX_ITEMS

READER_CLASSES: Final = tags(
    "sr-only visually-hidden visuallyhidden screen-reader-text screenreader a-offscreen show-for-sr u-hidden-visually "
    "element-invisible assistive-text cdk-visually-hidden"
)

_NOT_PLAIN: Final = re.compile(
    r"display|visib|opacity|font|posit|indent|clip|color|width|height|transform|margin|backgr|filter|scale|zoom|inset|--"
)
"""What a style attribute, in lower case, must hold to be worth reading."""
_USED: Final = re.compile(
    r"^(?!--).*(?:display|visib|opacity|font|posit|indent|clip|color|width|height|transform|margin|backgr|filter|scale|zoom"
    r"|inset|overflow|left|top|right|bottom|translate|animation|transition|-text-fill)"
)
"""Names of properties that something is said about below."""
_TELLING: Final = re.compile(
    r"(?=[dvoc\-sfwhtzibl])"
    r"(?:display|visib|opacity|clip|-\d{3}|scale|filter|transform|zoom|inset|font(?:-size)?\s*:\s*[^;]*?(?<![\d.])[01.]"
    r"|(?:width|height)\s*:\s*(?:[01](?:px)?\s*(?:;|!|$)|calc|var)|(?:text-indent|left|top)[^;]*calc)",
)
"""What a rule's body, in lower case, must hold to be worth matching; the class of first letters only makes it fast."""
_CLEARED: Final = re.compile(r"opacity\(\s*(\d*\.?\d+%?)")
_POINTED_AT: Final = re.compile(r":(?:hover|focus|active|target\b|:)")
_EITHER: Final = re.compile(r":(?:not|is|where|has)\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\]")
_NAMED: Final = re.compile(r"[.#]((?:[\w-]|\\.)+)")
_COLOURED: Final = re.compile(r"color|background|-text-fill")
"""The same on a page whose ground is known."""
_NUMBER: Final = re.compile(r"(-?\d*\.?\d+)\s*([a-z%]*)")
_SHIFT: Final = re.compile(
    r"translate(?:3d|x|y)?\(\s*(-?[\d.]+(?:px|em|rem|vw|vh|%)?)(?:\s*,\s*(-?[\d.]+(?:px|em|rem|vw|vh|%)?))?"
)
_SCALED: Final = re.compile(r"(?:scale(?:3d|x|y)?|matrix)\(([^()]*)\)")
LEAST_SCALE: Final = 0.06
"""A factor below which type of 16 pixels has less than one."""
_CLIPPED: Final = re.compile(r"rect\(\s*(?:[01](?:px)?[\s,]*){4}\)|inset\(\s*(?:50|100)%|circle\(\s*0|polygon\(\s*0")
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
_TOKEN: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|url\([^)"']*\)|[{};]""")
"""What parts a style sheet; strings and addresses are passed over."""
_FEATURE: Final = re.compile(r"\(\s*([a-z-]+)\s*(?::\s*([\w.-]+)\s*)?\)")
_RANGE: Final = re.compile(r"\(\s*(width|height)\s*([<>])=?\s*([\d.]+)(px|em|rem)?\s*\)")
_DESKTOP: Final = {
    "orientation": "landscape", "prefers-color-scheme": "light", "hover": "hover", "any-hover": "hover",
    "pointer": "fine", "any-pointer": "fine", "prefers-reduced-motion": "no-preference", "scripting": "enabled",
    "color": "", "update": "fast", "forced-colors": "none", "prefers-contrast": "no-preference",
}  # fmt: skip
"""What a person's desktop answers to media queries."""
_VARIABLE: Final = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_NESTED_VARIABLES: Final = 5
_SUM: Final = re.compile(r"calc\(\s*(-?[\d.]+)([a-z%]*)\s*(?:([-+*/])\s*(-?[\d.]+)([a-z%]*)\s*)?\)")
_OWN_SIZE: Final = re.compile(r"medium|(?:xx?-)?(?:small|large)|(?:\d*\.)?\d+(?:px|pt|rem|vw|vh|mm|cm|q)")
"""A size of type that is not counted from the one around it."""
MOST_STEPS: Final = 100_000_000
"""Of matching one selector, at worst: 0.3 s. Lexbor goes back over every way to place ancestors and siblings, so that
`i ~ p ~ p ~ p` takes 2.4 s over 400 paragraphs, and 24 s go into three nested `:has`."""
MATCHING_SECONDS: Final = 0.5
"""Processor time for all selectors of a page; the slowest of 495 real pages takes 0.1 s."""
_BY_SIBLINGS: Final = re.compile(r"~|:nth-|-of-type|:only-")
MOST_SELECTORS: Final = 5_000
"""Of one page; nested rules multiply."""
SCREEN: Final = {"width": 1280.0, "height": 800.0}
"""Pixels of the screen that media queries are asked about."""


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

    def under(self, found: Mapping[str, str]) -> "Shade":
        """Return what the text of an element with these declarations has."""
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
        return Shade(ground, ink, inkless, tiny, unseen)


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
    value = _length(opacity, percent=0.01)
    return value is not None and value < LEAST_ALPHA


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


def _is_shifted_away(found: Mapping[str, str]) -> bool:
    names = ["text-indent", "margin-left", "margin-top"]
    if found.get("position") in {"absolute", "fixed", "relative"}:
        names += ["left", "top", "right", "bottom", "inset"]
    if any((_length(found[name]) or 0) <= _FAR for name in names if name in found):
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
    return any((_length(move or "") or 0) <= _FAR * 2 for move in moves)


def _scales_away(factors: str) -> bool:
    """Whether the factors that sizes are multiplied with, one or two or a matrix of six, leave nothing to be read."""
    found = [float(number) * (0.01 if unit else 1) for number, unit in re.findall(r"(-?\d*\.?\d+)(%?)", factors)]
    if len(found) == 6:
        found = [(abs(found[0] * found[3] - found[1] * found[2])) ** 0.5]
    return any(abs(factor) < LEAST_SCALE for factor in found[:2])


def _is_clipped(found: Mapping[str, str]) -> bool:
    if "clip" in found and found.get("position") in {"absolute", "fixed"} and _CLIPPED.search(found["clip"]):
        return True
    return "clip-path" in found and _CLIPPED.search(found["clip-path"]) is not None


def _is_flat(found: Mapping[str, str], *sides: str) -> bool:
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


class _Rule(NamedTuple):
    """A rule of a sheet that may hide, or show again."""

    selector: str
    body: str


class StyleJudge:
    """Knows the style of a page's elements: what its sheets say of each, and its own style attribute."""

    def __init__(self, top: LexborNode | None = None) -> None:
        """Read the sheets of the page below `top`, and match their rules with its elements."""
        self._styles: dict[str, dict[str, str]] = {}
        self._variables: dict[str, str] = {}
        self.given: dict[int, dict[str, tuple[tuple[bool, int, int], str]]] = {}
        """Of each element by its address and of each property: how much its declaration weighs, and its value."""
        self.ground: Shade = Shade()
        """What the page's text begins with."""
        if top is not None:
            self._read(top)

    def style(self, address: int, own: str | None) -> tuple[Mapping[str, str], bool]:
        """Return the declarations that count for an element, and whether they are all of sheets."""
        given = self.given.get(address)
        mine = self._own(own) if own else {}
        if given is None:
            return mine, False
        found = {name: self._filled(value) for name, (_, value) in given.items()}
        inline = {name: value for name, value in mine.items() if name not in given or not given[name][0][0]}
        return found | inline, not inline

    def _own(self, style: str) -> dict[str, str]:
        """Return the declarations of a style attribute."""
        style = style.lower()
        if not _NOT_PLAIN.search(style):
            return {}
        known = self._styles.get(style)
        if known is None:
            known = declarations(style)
            self._variables |= {name: value for name, value in known.items() if name.startswith("--")}
            known = {name: self._filled(value) for name, value in known.items()}
            if "var(" not in style:
                self._styles[style] = known
        return known

    def _filled(self, value: str) -> str:
        """Return a value with custom properties and small sums worked out."""
        for _ in range(_NESTED_VARIABLES):
            if "var(" not in value:
                break
            value = _VARIABLE.sub(lambda use: self._variables.get(use[1], use[2] or "").strip(), value)
        return _SUM.sub(_worked_out, value) if "calc(" in value else value

    def _read(self, top: LexborNode) -> None:
        """Take the rules of all `<style>` elements; the ground is known where no linked sheet may set it."""
        sheets = [sheet.text(deep=True) for sheet in top.css("style")]
        linked = bool(top.css('link[rel~="stylesheet"]')) or any("@import" in sheet for sheet in sheets)
        ground = Shade() if linked else Shade(WHITE)
        rules: list[_Rule] = []
        for sheet in sheets:
            for rule in islice(rules_of(sheet), MAX_ITEMS):
                if "--" in rule.body:
                    found = declarations(rule.body)
                    self._variables |= {name: value for name, value in found.items() if name.startswith("--")}
                if _TELLING.search(rule.body) or (not linked and _COLOURED.search(rule.body)):
                    rules.append(rule)
        if rules:
            ends = time.thread_time() + MATCHING_SECONDS
            shape, names = _Shape(len(top.css("*")), _reach(top, ">"), _reach(top, "+")), _names_in(top)
            for order, rule in enumerate(rules[:MOST_SELECTORS]):
                if time.thread_time() > ends:
                    break
                # Most rules of a sheet are for other pages: knowing that takes a fifth of what matching one does.
                if _can_match(rule.selector, names) and shape.steps(rule.selector) <= MOST_STEPS:
                    self._match(top, rule, order)
        for node in (top, top.css_first("body")):
            if node is not None:
                attributes = node.attributes
                found = dict(self.style(node.mem_id, attributes.get("style"))[0])
                ground = ground.under(_presented(attributes) | found)
        self.ground = ground

    def _match(self, top: LexborNode, rule: _Rule, order: int) -> None:
        try:
            nodes = top.css(rule.selector)
        except SelectolaxError:  # a pseudo-element, or what only one browser knows
            return
        if not nodes:
            return
        weight = _specificity(rule.selector)
        said = [
            (name, value.replace("!important", "").strip(), "!important" in value)
            for part in rule.body.split(";")
            for name, colon, value in [(piece.strip() for piece in part.partition(":"))]
            if colon and _USED.search(name)
        ]
        for node in nodes:
            given = self.given.setdefault(node.mem_id, {})
            for name, value, important in said:
                rank = (important, weight, order)
                if name not in given or given[name][0] <= rank:
                    given[name] = rank, value


def _names_in(top: LexborNode) -> frozenset[str]:
    """Return all classes and ids of a page in lower case: a page without a doctype knows no other."""
    found: set[str] = set()
    for node in top.css("[class],[id]"):
        attributes = node.attributes
        found.update((attributes.get("class") or "", attributes.get("id") or ""))
    return frozenset(name for names in found for name in names.lower().split())


def _can_match(selector: str, names: frozenset[str]) -> bool:
    """Return whether a page with these classes and ids has what a selector names, and nobody must point at it."""
    # What stands within `:not(:hover)` and the like holds while nobody points.
    bare = _EITHER.sub("", selector).lower()
    if _POINTED_AT.search(bare):
        return False
    return all("\\" in name or name in names for name in _NAMED.findall(bare))


class _Shape(NamedTuple):
    """How large a page is, for what matching a selector may cost."""

    elements: int
    depth: int
    siblings: int

    def steps(self, selector: str) -> int:
        """Return how many steps a selector may take at worst."""
        bare = re.sub(r"\s*([>+~,()])\s*", r"\1", re.sub(r"\[[^\]]*\]", "[]", selector)).strip()
        beside = len(_BY_SIBLINGS.findall(bare))
        ways = comb(self.depth, bare.count(" ")) * pow(self.siblings, beside) * pow(self.elements, bare.count(":has("))
        return int(self.elements * ways)


def _reach(top: LexborNode, joint: str) -> int:
    """Return a bound on how many elements stand within each other (`>`), or beside each other (`+`)."""
    for most in (16, 32, 64, 128, 256, 512):
        if not top.css("*" + f"{joint}*" * most):
            return most
    return MAX_ITEMS


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


_PRESENTING: Final = frozenset({"bgcolor", "background", "color", "text"})


def _hashed(colour: str) -> str:
    colour = colour.strip().lower()
    return f"#{colour}" if re.fullmatch("[0-9a-f]{6}", colour) else colour


def shade_under(above: Shade, attributes: Mapping[str, str | None], found: Mapping[str, str]) -> Shade:
    """Return what the text of an element inherits, by its style and by its attributes of old."""
    presented = _presented(attributes) if not _PRESENTING.isdisjoint(attributes) else {}
    return above.under({**presented, **found}) if presented or found else above


def _worked_out(found: re.Match[str]) -> str:
    """Return a sum or product of two numbers as one."""
    try:
        one, other = float(found[1]), float(found[4] or 0)
        done = {"+": one + other, "-": one - other, "*": one * other, "/": one / other if other else 0.0}
    except ValueError:
        return found[0]
    return f"{done[found[3]] if found[3] else one:g}{found[2] or found[5] or ''}"


def _specificity(selector: str) -> int:
    """Return the weight of a selector, its ids before classes before names (Selectors 4, §17)."""
    ids = len(re.findall(r"#[\w-]", selector))
    classes = len(re.findall(r"\.[\w-]|\[|(?<!:):(?!:|not|is|where|has)", selector))
    names = len(re.findall(r"(?:^|[\s>+~(,])[a-z]", selector, re.IGNORECASE))
    return 10_000 * ids + 100 * classes + names


def rules_of(sheet: str) -> Iterator[_Rule]:
    """Yield the rules of a style sheet that hold on a desktop's screen, one selector each, nested ones written out."""
    sheet = _COMMENT.sub("", sheet)
    stack: list[tuple[tuple[str, ...], bool, list[str]]] = [((), True, [])]
    begin = 0
    for token in _TOKEN.finditer(sheet):
        sign = token[0]
        if sign not in "{};":
            continue
        text, begin = sheet[begin : token.start()].strip(), token.end()
        selectors, holds, body = stack[-1]
        if sign == "{":
            if text.startswith("@"):
                stack.append((selectors, holds and _holds_on_desktop(text.lower()), []))
            else:
                stack.append((_nested(selectors, text), holds, []))
            continue
        if ":" in text:
            body.append(text)
        if sign == "}" and len(stack) > 1:
            stack.pop()
            if holds and body:
                declared = ";".join(body).lower()
                yield from (_Rule(selector, declared) for selector in selectors)


def _nested(above: Sequence[str], selector: str) -> tuple[str, ...]:
    """Return the selectors of a rule, those that stand within another with it in front (CSS Nesting)."""
    own = [part.strip() for part in re.split(r",(?![^(]*\))", selector)]
    if not above:
        return tuple(own[:MOST_SELECTORS])
    pairs = islice(((outer, inner) for outer in above for inner in own), MOST_SELECTORS)
    return tuple(inner.replace("&", outer) if "&" in inner else f"{outer} {inner}" for outer, inner in pairs)


def _holds_on_desktop(condition: str) -> bool:
    """Whether an at-rule's condition is true on a desktop's screen; one of the queries of a list is enough."""
    name, _, query = condition.partition(" ")
    if name.startswith(("@supports", "@layer", "@scope")):
        return "not" not in query
    if not condition.startswith("@media"):
        return False
    return any(map(_query_holds, condition.removeprefix("@media").split(",")))


def _query_holds(query: str) -> bool:
    words = _FEATURE.sub(" ", _RANGE.sub(" ", query)).replace("only", " ").replace("and", " ").split()
    if not set(words) <= {"screen", "all", "not"} or "not" in words[1:]:
        return False
    holds = all(
        (float(size) * _PIXELS.get(unit, 1.0) >= SCREEN[side]) == (sign == "<")
        for side, sign, size, unit in _RANGE.findall(query)
    )
    for feature, value in _FEATURE.findall(query):
        bound, _, side = feature.partition("-")
        if bound in {"min", "max"} and side in SCREEN:
            holds &= ((_length(value) or 0.0) <= SCREEN[side]) == (bound == "min")
        else:
            holds &= feature in _DESKTOP and _DESKTOP[feature] in {value, ""}
    return holds != ("not" in words)
