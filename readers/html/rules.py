"""Style sheets: their rules that hold on a desktop's screen, and the declarations of a
rule or style attribute.

Rules are cut out here, since most say nothing that hides; what a plain reading of their
declarations would stumble over (escapes, comments, strings) goes through tinycss2. Not
for: what declarations do to text (`style.py`), or which elements a rule matches
(`style_sheets.py`)."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

import tinycss2
from selectolax.lexbor import LexborNode

from readers.converted import MAX_ITEMS

# Declarations

_UNPLAIN: Final = re.compile(r"""/\*|[\\"'{}\[\]]|\([^)]*;""")
"""What a reading of declarations from semicolon to semicolon would stumble over."""
_MOST_BRACKETS: Final = 200
"""In declarations that tinycss2 parses; it calls itself for what is nested."""
_IMPORTANT: Final = re.compile(r"!\s*important\s*\Z")
_ALIASES: Final = {
    "block-size": "height", "max-block-size": "max-height", "inline-size": "width", "max-inline-size": "max-width",
    "inset-inline-start": "left", "inset-inline-end": "right", "inset-block-start": "top", "inset-block-end": "bottom",
    "margin-inline-start": "margin-left", "margin-block-start": "margin-top", "overflow-block": "overflow-y",
    "overflow-inline": "overflow-x", "-webkit-clip-path": "clip-path", "-webkit-filter": "filter",
    "-webkit-opacity": "opacity", "-webkit-transform": "transform",
}  # fmt: skip
"""Properties by another name: in a text that runs from left to right and down, and in
engines of old."""


class Declaration(NamedTuple):
    """A property and its value, in lower case."""

    name: str
    value: str
    important: bool


def declared(style: str) -> tuple[Declaration, ...]:
    """Return the declarations of a style attribute or rule body; what is none is left
    out."""
    style = style.lower()
    if _UNPLAIN.search(style) and sum(map(style.count, "([{")) <= _MOST_BRACKETS:
        return tuple(_parsed(style))
    entries = []
    for text in style.split(";"):
        name, colon, value = text.partition(":")
        if colon:
            value = value.strip()
            important = value.endswith("important") and _IMPORTANT.search(value)
            value = value[: important.start()].rstrip() if important else value
            entries.append(_named(name.strip(), value, important=bool(important)))
    return tuple(entries)


def _parsed(style: str) -> Iterator[Declaration]:
    for item in tinycss2.parse_blocks_contents(style, skip_comments=True):
        if item.type == "declaration":
            value = [token for token in item.value if token.type != "comment"]
            text = tinycss2.serialize(value).strip().lower()
            yield _named(item.lower_name, text, important=item.important)


def _named(name: str, value: str, *, important: bool) -> Declaration:
    return Declaration(_ALIASES.get(name, name), value, important)


def declarations(style: str) -> dict[str, str]:
    """Return of each property of a style attribute the value that counts: the last, an
    important one before all others."""
    ordered = sorted(declared(style), key=lambda declaration: declaration.important)
    return {name: value for name, value, _ in ordered}


# Lengths

PIXELS: Final = {
    "px": 1.0, "": 1.0, "pt": 1.3, "em": 16.0, "rem": 16.0, "vw": 12.0, "vh": 8.0, "ch": 8.0, "ex": 8.0, "lh": 20.0,
    "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.94, "pc": 16.0, "vmin": 8.0, "vmax": 12.0,
    "dvw": 12.0, "dvh": 8.0, "svw": 12.0, "svh": 8.0, "lvw": 12.0, "lvh": 8.0,
}  # fmt: skip
_CSS_NUMBER: Final = re.compile(r"([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*([a-z%]*)")
_SUM: Final = re.compile(
    r"calc\(\s*(-?\d*\.?\d+[a-z%]*)\s*(?:([-+])\s*(-?\d*\.?\d+[a-z%]*)\s*)?\)"
)


def length(value: str, *, percent: float = 10.0) -> float | None:
    """Return the pixels of a length, None where it is none."""
    match = _CSS_NUMBER.match(value)
    if match is None:
        return None
    return float(match[1]) * (percent if match[2] == "%" else PIXELS.get(match[2], 1.0))


def summed(value: str) -> str:
    """Return a value with its sums and differences (`calc`) of one or two lengths in
    pixels."""
    return _SUM.sub(_sum, value) if "calc(" in value else value


def _sum(match: re.Match[str]) -> str:
    if match[3] is None:
        return match[1]
    first, second = length(match[1]) or 0.0, length(match[3]) or 0.0
    return f"{first + second if match[2] == '+' else first - second:f}px"


# Rules of a sheet

SELECTOR_CHARACTERS: Final = 1_000
"""Characters of a selector, and of a value with custom properties filled in; real
selectors have 582 at most. Nested rules and properties multiply."""
SCREEN: Final = {"width": 1280.0, "height": 800.0}
"""Pixels of the screen that media queries are asked about."""
_DESKTOP: Final = {
    "orientation": "landscape", "prefers-color-scheme": "light", "hover": "hover", "any-hover": "hover",
    "pointer": "fine", "any-pointer": "fine", "prefers-reduced-motion": "no-preference", "scripting": "enabled",
    "forced-colors": "none", "prefers-contrast": "no-preference",
    "display-mode": "browser", "grid": "0", "monochrome": "0", "inverted-colors": "none",
}  # fmt: skip
"""What a person's desktop answers to media queries."""
_FEATURE: Final = re.compile(r"\(\s*([a-z-]+)\s*(?::\s*([\w.-]+)\s*)?\)")
_RANGE: Final = re.compile(r"\(\s*(width|height)\s*([<>])=?\s*([\d.]+[a-z]*)\s*\)")
_NO_SCREENS: Final = re.compile(
    r"\b(?:print|speech|aural|tty|tv|projection|handheld|braille|embossed)\b"
)
_CSS_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
"""One that never ends swallows the rest, which also keeps the search linear."""
_OF_HTML: Final = re.compile("<!--|-->")
"""Signs of comments of HTML, which are blanks to CSS."""
_LEAF: Final = re.compile(
    r"""\s*+([^{}"';@]*+(?:"[^"\\]*+"[^{}"';@]*+|(?!))*+)(?<!\\)\{([^{}"'\\]*+(?:(?:"[^"\\]*+"|'[^'\\]*+')[^{}"'\\]*+|(?!))*+)\}"""
)
"""A rule with no other in it."""
_CSS_TOKEN: Final = re.compile(
    r"""\\.|"(?:[^"\\\n]|\\.|(?!))*+"?|'(?:[^'\\\n]|\\.|(?!))*+'?|url\([^)"']*+|[{};]""",
    re.DOTALL,
)
"""What parts a style sheet; escapes, strings and addresses are passed over."""


def rules_of(sheet: str) -> Iterator[tuple[Collection[str], str, str]]:
    """Yield the rules of a style sheet that hold on a desktop's screen: those around
    each, its selectors, its body.

    Nested selectors are bounded by `MAX_ITEMS` for a sheet. What the end of the sheet
    leaves open is closed."""
    sheet = _OF_HTML.sub("", _CSS_COMMENT.sub("", sheet))
    stack: list[tuple[Collection[str], bool, list[str]]] = [((), True, [])]
    start, end, remaining = 0, 0, MAX_ITEMS
    while True:
        parents, holds, body = stack[-1]
        if start == end and (leaf := _LEAF.match(sheet, start)):
            start = end = leaf.end()
            if holds:
                yield parents, leaf[1], leaf[2].lower()
            continue
        token = _CSS_TOKEN.search(sheet, end)
        if token is None:
            # A browser closes what the end of a sheet leaves open.
            yield from _own(parents, [*body, sheet[start:]], holds=holds)
            return
        end = token.end()
        if (delimiter := token[0]) not in "{};":
            continue
        text, start = sheet[start : token.start()].strip(), end
        if delimiter == "{" and text.startswith("@"):
            stack.append((parents, holds and _holds_on_desktop(text.lower()), []))
        elif delimiter == "{":
            selectors = tuple(islice(nested(parents, text), remaining)) if holds else ()
            remaining -= len(selectors)
            stack.append((selectors, selectors != (), []))
        else:
            body.append(text)
            if delimiter == "}" and len(stack) > 1:
                stack.pop()
                yield from _own(parents, body, holds=holds)


def _own(
    parents: Collection[str], body: list[str], *, holds: bool
) -> Iterator[tuple[Collection[str], str, str]]:
    """Yield the rule for what nested declarations are around, if they hold."""
    if holds and parents:
        yield parents, "&", ";".join(body).lower()


def nested(parents: Collection[str], selectors: str) -> Iterator[str]:
    """Yield the selectors of a rule, nested ones with their parent's prepended (CSS
    Nesting); those of `SELECTOR_CHARACTERS` characters and more are dropped."""
    if not parents:
        yield from _listed(selectors)
        return
    for selector in _listed(selectors):
        for outer in parents:
            if (
                len(selector) + len(outer) * max(1, selector.count("&"))
                < SELECTOR_CHARACTERS
            ):
                yield (
                    selector.replace("&", outer)
                    if "&" in selector
                    else f"{outer} {selector}"
                )


def _listed(selectors: str) -> Iterator[str]:
    """Yield the selectors of a list, stripped; an empty one as "". After a bracket that
    is not closed the rest is dropped."""
    if "(" not in selectors:
        yield from map(str.strip, selectors.split(","))
        return
    depth, pieces = 0, list[str]()
    for piece in selectors.split(","):
        pieces.append(piece)
        depth += piece.count("(") - piece.count(")")
        if depth <= 0:
            yield ",".join(pieces).strip()
            depth, pieces = 0, []


def specificity(selector: str) -> int:
    """Return the weight of a selector, its ids before classes before names (Selectors
    4, §17)."""
    return sum(
        10_000 if an_id else 100 if a_class else 1
        for an_id, a_class in _WEIGHED.findall(selector)
    )


_WEIGHED: Final = re.compile(
    r"(#[\w-])|(\.[\w-]|\[|(?<!:):(?!:|not|is|where|has))|(?:^|[\s>+~(,])[a-z]",
    re.IGNORECASE,
)
"""What counts in a selector: an id, a class or its like, else a name."""


def _holds_on_desktop(condition: str) -> bool:
    """Whether an at-rule's condition, in lower case, is true on a desktop's screen. A
    feature that is asked for is there; a container's size is not known, and its rules
    are left out as those of any other at-rule."""
    if condition.startswith("@media"):
        return media_holds(condition.removeprefix("@media"))
    name, _, query = condition.partition(" ")
    return name.startswith(("@supports", "@layer", "@scope")) and "not" not in query


@lru_cache(256)
def media_holds(queries: str) -> bool:
    """Whether one of a list of media queries, in lower case, is true on a desktop's
    screen; an empty list is. A feature that is not known is taken to be there."""
    return not queries.strip() or any(
        map(_query_holds, re.split(r",|\)\s*or\b", queries))
    )


def _query_holds(query: str) -> bool:
    query = query if query.count("(") == query.count(")") else f"{query})"
    is_negated = query.split()[:1] == ["not"]
    if _NO_SCREENS.search(query):
        return is_negated
    holds = all(
        ((length(size) or 0.0) >= SCREEN[side]) == (operator == "<")
        for side, operator, size in _RANGE.findall(query)
    )
    for feature, value in _FEATURE.findall(query):
        bound, _, side = feature.partition("-")
        if bound in {"min", "max"} and side in SCREEN:
            holds &= ((length(value) or 0.0) <= SCREEN[side]) == (bound == "min")
        elif answer := _DESKTOP.get(feature):
            holds &= (
                value == answer
                if value
                else answer not in {"0", "none", "no-preference"}
            )
    return holds != is_negated


# Where the sheets of a page are

_CSS_IMPORT: Final = re.compile(r"@import\b", re.IGNORECASE)
_SHADOW_SHEETS: Final = 100
"""Sheets in shadow roots that are read; each looks for the root that it is in."""


class StyleSheet(NamedTuple):
    """The rules of a `style` element."""

    text: str
    scope: LexborNode | None
    """The shadow root in which alone they count; None for the page's own."""


def sheets_of(top: LexborNode) -> tuple[list[StyleSheet], bool, list[str]]:
    """Return the sheets that a page holds for a desktop's screen, in order; whether it
    links or imports others; and what all of its `style` elements hold, sheets for paper
    among them.

    Empty sheets are left out; linked ones are not fetched."""
    texts, sheets, is_linked = list[str](), list[StyleSheet](), False
    shadowed = {
        node.mem_id: index for index, node in enumerate(top.css("shadow-root style"))
    }
    for node in top.css("style, link"):
        about = node.attributes
        holds = media_holds((about.get("media") or "").lower())
        if node.tag == "link":
            is_linked |= (
                holds
                and "stylesheet" in (about.get("rel") or "").lower().split()
                and "disabled" not in about
            )
            continue
        text = node.text(deep=True)
        texts.append(text)
        holds &= shadowed.get(node.mem_id, 0) < _SHADOW_SHEETS
        if holds and text and (about.get("type") or "").lower() in {"", "text/css"}:
            scope = node.parent if node.mem_id in shadowed else None
            while scope is not None and scope.tag != "shadow-root":
                scope = scope.parent
            sheets.append(StyleSheet(text, scope))
            is_linked |= _CSS_IMPORT.search(text) is not None
    return sheets, is_linked, texts
