"""The rules of a style sheet that hold on a desktop's screen.

Not for: which elements they match (`sheets.py`).
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

from pipeline.html.hidden import PIXELS, length
from pipeline.read.converted import MAX_ITEMS

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
