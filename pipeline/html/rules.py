"""Style sheets: their rules that hold on a desktop's screen, and the declarations of a
rule or style attribute.

One parser for both (CSS Syntax 3): comments part words, escapes are letters, a
semicolon within brackets or a string parts nothing, and what a browser takes for no
value of a property changes nothing. Not for: what declarations do to text (`style.py`),
or which elements a rule matches (`sheets.py`)."""

import re
from base64 import b64decode
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final
from urllib.parse import unquote_to_bytes

from selectolax.lexbor import LexborNode

from pipeline.document.converted import MAX_ITEMS
from pipeline.html.colours import rgb_of

# Declarations

_CSS_PIECE: Final = re.compile(
    r"""/\*.*?(?:\*/|\Z)|\\(?:[\da-fA-F]{1,6}\s?|.)|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|[(){}\[\];]""",
    re.DOTALL,
)
"""What a plain reading of declarations would stumble over."""
_UNPLAIN: Final = re.compile(r"""/\*|[\\"'(){}\[\]]""")
_BRACES: Final = re.compile(r"/\*|[{}\[\]]")
_IMPORTANT: Final = re.compile(r"!\s*important\s*\Z")
_CSS_ESCAPE: Final = re.compile(r"\\(?:([\da-fA-F]{1,6})\s?|(.))", re.DOTALL)
_CSS_SIGNS: Final = frozenset("\"'(){}[];:,!/\\")
"""Characters that an escape represents only as letters."""
_ALIASES: Final = {
    "block-size": "height", "max-block-size": "max-height", "inline-size": "width", "max-inline-size": "max-width",
    "inset-inline-start": "left", "inset-inline-end": "right", "inset-block-start": "top", "inset-block-end": "bottom",
    "margin-inline-start": "margin-left", "margin-block-start": "margin-top", "overflow-block": "overflow-y",
    "overflow-inline": "overflow-x", "-webkit-mask": "mask", "-webkit-mask-image": "mask-image",
    "-webkit-clip-path": "clip-path", "-webkit-filter": "filter",
    "-webkit-opacity": "opacity", "padding-block-start": "padding-top",
}  # fmt: skip
"""Properties by another name: in a text that runs from left to right and down, and in
engines of old."""
_ALWAYS: Final = "inherit|initial|unset|revert|revert-layer"
_CSS_LENGTH: Final = r"[-+]?\d*\.?\d+(?:e[-+]?\d+)?(?:[a-z]{1,5}|%)?"
_CSS_SIZES: Final = rf"{_CSS_LENGTH}|auto|none|(?:-webkit-)?(?:min|max|fit)-content|-webkit-fill-available|stretch"
_OVERFLOWS: Final = "visible|hidden|clip|scroll|auto|overlay"
_VALUES: Final = {
    name: re.compile(rf"(?:{values}|{_ALWAYS})")
    for name, values in {
        "display": r"none|contents|(?:inline-)?(?:block|flex|grid|table)|inline|flow|flow-root|list-item|math"
        r"|ruby(?:-[a-z]+)*|table-[a-z-]+|-webkit-[a-z-]+|(?:block|inline|run-in|flow|flow-root|flex|grid| )+",
        "visibility": "visible|hidden|collapse",
        "opacity": r"[-+]?\d*\.?\d+(?:e[-+]?\d+)?%?",
        "font-size": rf"{_CSS_LENGTH}|(?:xx?-|xxx-)?(?:small|large)|medium|smaller|larger|math",
        "position": "static|relative|absolute|fixed|(?:-webkit-)?sticky",
        **dict.fromkeys(("width", "height", "max-width", "max-height"), _CSS_SIZES),
        **dict.fromkeys(("overflow-x", "overflow-y"), _OVERFLOWS),
        "overflow": rf"(?:{_OVERFLOWS})(?: +(?:{_OVERFLOWS}))?",
    }.items()
}
"""What a browser takes for a value; another changes nothing."""
_COLOUR_PROPERTIES: Final = frozenset({"background-color", "color"})
_JUDGED: Final = _COLOUR_PROPERTIES | _VALUES.keys()
"""Properties whose values are compared with those that a browser takes."""


def declared(style: str) -> tuple[tuple[str, str, bool], ...]:
    """Return the declarations of a style attribute or rule body as a browser takes
    them.

    A declaration with a value that a browser refuses is left out, as far as that is
    known.

    Returns:
        Property and value in lower case, and whether the declaration is important.
    """
    found = []
    style = style.lower()
    parts = style.split(";")
    if _UNPLAIN.search(style) and ("\\" in style or not all(map(_is_whole, parts))):
        parts = list(_parts(style))
    for part in parts:
        name, colon, value = part.partition(":")
        if not colon:
            continue
        name, value = name.strip(), value.strip()
        name = _ALIASES.get(name, name)
        important = value.endswith("important") and _IMPORTANT.search(value)
        value = value[: important.start()].rstrip() if important else value
        if name not in _JUDGED or _is_valid(name, value):
            found.append((name, value, bool(important)))
    return tuple(found)


def _is_whole(part: str) -> bool:
    """Return whether the text between two semicolons has no comment and no bracket or
    string that continues after one."""
    return (
        part.count("(") == part.count(")")
        and not (part.count('"') & 1 or part.count("'") & 1)
        and _BRACES.search(part) is None
    )


def _parts(style: str) -> Iterator[str]:
    """Yield declarations, comments taken for blanks and escapes for letters."""
    pieces, depth, at = list[str](), 0, 0
    for found in _CSS_PIECE.finditer(style):
        pieces.append(style[at : found.start()])
        at, piece = found.end(), found[0]
        if piece == ";" and depth <= 0:
            yield "".join(pieces)
            pieces = []
            continue
        depth += (piece in "([{") - (piece in ")]}")
        if piece.startswith("/*"):
            piece = " "
        elif piece.startswith("\\"):
            piece = _letter(piece)
        pieces.append(piece)
    yield "".join([*pieces, style[at:]])


def _letter(escape: str) -> str:
    """Return the character of an escape, or one that no name has if it is not a
    letter."""
    letter = _CSS_ESCAPE.sub(unescaped, escape).lower()
    return "\ufffd" if letter in _CSS_SIGNS or letter.isspace() else letter


def unescaped(found: re.Match[str]) -> str:
    """Return the letter of an escape that was found by digits in group 1, or a letter
    in group 2."""
    code = int(found[1] or "0", 16)
    return chr(code) if 0 < code < 0x110000 else found[2] or "\ufffd"


@lru_cache(4096)
def _is_valid(name: str, value: str) -> bool:
    """Whether a browser takes a value for one of a property, as far as that is known;
    True for properties without a known form and for functions."""
    form = _VALUES.get(name)
    if "(" in value:
        return True
    if name in _COLOUR_PROPERTIES:
        return (
            value in {"transparent", "currentcolor"}
            or _is_always(value)
            or rgb_of(value) is not None
        )
    return form is None or form.fullmatch(value) is not None


def _is_always(value: str) -> bool:
    return value in {"inherit", "initial", "unset", "revert", "revert-layer"}


def declarations(style: str) -> dict[str, str]:
    """Return the declarations that count of a style attribute, names and values
    lowercased, without `!important`.

    Of equal names the last counts, an important one before all others."""
    found: dict[str, str] = {}
    kept: set[str] = set()
    for name, value, important in declared(style):
        if important or name not in kept:
            found[name] = value
        if important:
            kept.add(name)
    return found


# Lengths

PIXELS: Final = {
    "px": 1.0, "": 1.0, "pt": 1.3, "em": 16.0, "rem": 16.0, "vw": 12.0, "vh": 8.0, "ch": 8.0, "ex": 8.0, "lh": 20.0,
    "rlh": 20.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.94, "pc": 16.0, "vmin": 8.0, "vmax": 12.0, "vi": 12.0,
    "vb": 8.0, "cqw": 12.0, "cqh": 8.0, "dvw": 12.0, "dvh": 8.0, "svw": 12.0, "svh": 8.0, "lvw": 12.0, "lvh": 8.0,
}  # fmt: skip
_CSS_NUMBER: Final = re.compile(r"([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*([a-z%]*)")
_CSS_CALC: Final = re.compile(
    r"calc\(\s*(-?[\d.]+)([a-z%]*)\s*(?:([-+*/])\s*(-?[\d.]+)([a-z%]*)\s*)?\)"
)
_CHOICE: Final = re.compile(r"(?<![\w-])(min|max|clamp)\(([^()]*)\)")


def length(value: str, *, percent: float = 10.0) -> float | None:
    """Return the pixels of a length, None where it is none."""
    match = _CSS_NUMBER.match(value)
    if match is None:
        return None
    return float(match[1]) * (percent if match[2] == "%" else PIXELS.get(match[2], 1.0))


def worked_out(value: str) -> str:
    """Return a value with its sums (`calc`) and choices (`min`, `max`, `clamp`) worked
    out."""
    value = _decided(value) if "if(" in value else value
    value = _CSS_CALC.sub(_sum, value) if "calc(" in value else value
    return _CHOICE.sub(_chosen, value) if "(" in value else value


def _decided(value: str) -> str:
    """Return a value with the branch of its first condition that holds on a desktop's
    screen; one that asks for styles is taken to hold.

    Where none holds the condition is left out; one that is not closed stays as it
    is."""
    begin = value.find("if(")
    depth, pieces, at = 0, list[str](), begin + 3
    for end in range(at, len(value)):
        depth += (value[end] == "(") - (value[end] == ")")
        if depth < 0 or (value[end] == ";" and depth == 0):
            pieces.append(value[at:end])
            at = end + 1
        if depth < 0:
            break
    chosen = next((said for said in map(_branch, pieces) if said is not None), "")
    return f"{value[:begin]}{chosen}{value[at:]}" if depth < 0 else value


def _branch(branch: str) -> str | None:
    """Return the value of a branch of a condition; None where that does not hold or
    cannot be read."""
    asked = _CSS_CONDITION.match(branch)
    if asked is None:
        return None
    holds = True
    if asked[1] == "media":
        holds = media_holds(asked[2])
    elif asked[1] == "supports":
        holds = _holds_on_desktop(f"@supports {asked[2]}")
    return branch[asked.end() :].strip() if holds else None


_CSS_CONDITION: Final = re.compile(
    r"\s*(?:else|(media|supports|style)(\((?:[^()]|\([^()]*\))*\)))\s*:"
)


def _pixels(number: float, unit: str) -> float:
    return length(f"{number:f}{unit}") or 0.0


def _sum(found: re.Match[str]) -> str:
    """Return a sum or product of two numbers as one; of two units in pixels. A division
    by zero gives 0; what is no number stays as it is written."""
    unit = found[2] or found[5] or ""
    try:
        one, other = float(found[1]), float(found[4] or 0)
        if found[2] and found[5] and found[2] != found[5] and found[3] in {"+", "-"}:
            one, other = _pixels(one, found[2]), _pixels(other, found[5])
            unit = "px"
        done = {
            "+": one + other,
            "-": one - other,
            "*": one * other,
            "/": one / other if other else 0.0,
        }
    except ValueError:
        return found[0]
    return f"{done[found[3]] if found[3] else one:g}{unit}"


def _chosen(found: re.Match[str]) -> str:
    """Return the one of some lengths that a function takes, as it is written.

    Where one of them is not known the function stays."""
    written = [one.strip() for one in found[2].split(",")]
    sizes = [size for one in written if (size := length(one)) is not None]
    if len(sizes) != len(written) or (found[1] == "clamp" and len(sizes) != 3):
        return found[0]
    if found[1] == "clamp":
        size = max(sizes[0], min(sizes[1], sizes[2]))
    else:
        size = min(sizes) if found[1] == "min" else max(sizes)
    return written[sizes.index(size)]


# Rules of a sheet

SELECTOR_CHARACTERS: Final = 1_000
"""Characters of a selector, and of a value with custom properties filled in; real
selectors have 582 at most. Nested rules and properties multiply."""
SCREEN: Final = {"width": 1280.0, "height": 800.0}
"""Pixels of the screen that media queries are asked about."""
_DESKTOP: Final = {
    "orientation": "landscape", "prefers-color-scheme": "light", "hover": "hover", "any-hover": "hover",
    "pointer": "fine", "any-pointer": "fine", "prefers-reduced-motion": "no-preference", "scripting": "enabled",
    "color": "", "update": "fast", "forced-colors": "none", "prefers-contrast": "no-preference",
    "display-mode": "browser", "grid": "0", "monochrome": "0", "inverted-colors": "none", "overflow-block": "scroll",
    "dynamic-range": "standard", "color-gamut": "srgb",
}  # fmt: skip
"""What a person's desktop answers to media queries."""
_FEATURE: Final = re.compile(r"\(\s*([a-z-]+)\s*(?::\s*([\w.-]+)\s*)?\)")
_RANGE: Final = re.compile(
    r"\(\s*(width|height)\s*([<>])=?\s*([\d.]+)(px|em|rem)?\s*\)"
)
_BOUNDS: Final = re.compile(
    r"\(\s*([\d.]+[a-z]*)\s*([<>])=?\s*(width|height)\s*(?:([<>])=?\s*([\d.]+[a-z]*)\s*)?\)"
)
"""A range that begins with a size."""
_SUPPORTED: Final = re.compile(r"(not\s+)?\(\s*([a-z-]+)\s*:([^():]*)\)\s*")
"""A property and a value that a browser is asked for."""
_STYLE_QUERY: Final = re.compile(r"style\([^()]*(?:\([^()]*\)[^()]*)*\)")
_CONTAINED: Final = re.compile(r"(\([^()]*\))")
_NO_SCREENS: Final = re.compile(
    r"\b(?:print|speech|aural|tty|tv|projection|handheld|braille|embossed)\b"
)
_TURNED: Final = {"<": ">", ">": "<"}
COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
"""One that never ends swallows the rest, which also keeps the search linear."""
_OF_HTML: Final = re.compile("<!--|-->")
"""Signs of comments of HTML, which are blanks to CSS."""
_LEAF: Final = re.compile(
    r"""\s*+([^{}"';@]*+(?:"[^"\\]*+"[^{}"';@]*+)*+)(?<!\\)\{([^{}"'\\]*+(?:(?:"[^"\\]*+"|'[^'\\]*+')[^{}"'\\]*+)*+)\}"""
)
"""A rule with no other in it."""
_CSS_TOKEN: Final = re.compile(
    r"""\\.|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|url\([^)"']*+|[{};]""",
    re.DOTALL,
)
"""What parts a style sheet; escapes, strings and addresses are passed over."""


def rules_of(sheet: str) -> Iterator[tuple[Collection[str], str, str]]:
    """Yield the rules of a style sheet that hold on a desktop's screen: those around
    each, its selectors, its body.

    Nested selectors are bounded by `MAX_ITEMS` for a sheet. What the end of the sheet
    leaves open is closed."""
    sheet = _without_comments(sheet)
    stack: list[tuple[Collection[str], bool, list[str]]] = [((), True, [])]
    begin, end, left = 0, 0, MAX_ITEMS
    while True:
        above, holds, body = stack[-1]
        if begin == end and (leaf := _LEAF.match(sheet, begin)):
            begin = end = leaf.end()
            if holds:
                yield above, leaf[1], leaf[2].lower()
            continue
        token = _CSS_TOKEN.search(sheet, end)
        if token is None:
            # A browser closes what the end of a sheet leaves open.
            yield from _own(above, [*body, sheet[begin:]], holds=holds)
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
                yield from _own(above, body, holds=holds)


def _without_comments(sheet: str) -> str:
    if "/*" in sheet:
        sheet = COMMENT.sub("", sheet)
    return _OF_HTML.sub("", sheet) if "<!--" in sheet or "-->" in sheet else sheet


def _own(
    above: Collection[str], body: list[str], *, holds: bool
) -> Iterator[tuple[Collection[str], str, str]]:
    """Yield the rule for what nested declarations are around, if they hold."""
    if holds and above:
        yield above, "&", _plain(";".join(body).lower())


def _plain(body: str) -> str:
    """Return a rule's body, in lower case, without escapes of its names and values."""
    return ";".join(_parts(body)) if "\\" in body else body


def nested(above: Collection[str], selectors: str) -> Iterator[str]:
    """Yield the selectors of a rule, nested ones with their parent's prepended (CSS
    Nesting); those of `SELECTOR_CHARACTERS` characters and more are dropped."""
    if not above:
        yield from listed(selectors)
        return
    for inner in listed(selectors):
        for outer in above:
            if len(inner) + len(outer) * max(1, inner.count("&")) < SELECTOR_CHARACTERS:
                yield inner.replace("&", outer) if "&" in inner else f"{outer} {inner}"


def listed(selectors: str) -> Iterator[str]:
    """Yield the selectors of a list, stripped; an empty one as "". After a bracket that
    is not closed the rest is dropped."""
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


@lru_cache(1024)
def _holds_on_desktop(condition: str) -> bool:
    """Whether an at-rule's condition is true on a desktop's screen; one of the queries
    of a list is enough; an at-rule that is not known does not hold."""
    name, _, query = condition.partition(" ")
    if name == "@supports" and (asked := _SUPPORTED.fullmatch(query)):
        return _is_valid(asked[2], asked[3].strip()) != bool(asked[1])
    if name.startswith(("@supports", "@layer", "@scope")):
        return "not" not in query
    if condition.startswith("@container"):
        return _container_holds(condition.removeprefix("@container"))
    return condition.startswith("@media") and media_holds(
        condition.removeprefix("@media")
    )


@lru_cache(256)
def media_holds(queries: str) -> bool:
    """Whether a list of media queries, in lower case, is true on a desktop's screen; an
    empty one is."""
    return not queries.strip() or any(
        map(_query_holds, re.split(r",|\)\s*or\b", queries))
    )


def _container_holds(query: str) -> bool:
    """Whether a container is such a one; it is taken to be as large as the screen, and
    styled as asked for."""
    query = _STYLE_QUERY.sub(" ", query)
    begin = query.find("(")
    own = "" if begin < 0 else query[begin:]
    return "scroll-state" not in query and _query_holds(
        _CONTAINED.sub(_as_media, own.replace("not ", " not "))
    )


def _as_media(found: re.Match[str]) -> str:
    return found[1].replace("inline-size", "width").replace("block-size", "height")


def _query_holds(query: str) -> bool:
    query = _BOUNDS.sub(
        _ranges, query if query.count("(") == query.count(")") else f"{query})"
    )
    if _NO_SCREENS.search(query):
        return query.split()[0] == "not"
    words = (
        _FEATURE.sub(" ", _RANGE.sub(" ", query))
        .replace("only", " ")
        .replace("and", " ")
        .split()
    )
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
    """Return a range that begins with a size as one or two that begin with what is
    measured."""
    least, sign, side, other, most = bounds.groups()
    return f"({side} {_TURNED[sign]} {least})" + (
        f"({side} {other} {most})" if other else ""
    )


# Where the sheets of a page are

_SHEET_TYPES: Final = frozenset({"", "text/css"})
_IMPORTED: Final = re.compile(
    r"""@import\s+(?:url\(\s*)?["']?(data:[^"')]+)["']?\s*\)?([^;]*)(?:;|\Z)""",
    re.IGNORECASE,
)
_IMPORT_RULE: Final = re.compile(
    r"@import(?!\s+(?:url\(\s*)?[\"']?data:)", re.IGNORECASE
)
_CONTAINER_TYPE: Final = re.compile(r"(?<!@)container(?:-type)?\s*:", re.IGNORECASE)
_ASKED_CONTAINER: Final = re.compile(
    r"@container(?![^{]{0,200}\bstyle\()", re.IGNORECASE
)
"""A query of sizes; any element can be asked for its style."""
_IMPORTS: Final = 3
"""Sheets within sheets."""


def sheets_of(top: LexborNode) -> tuple[list[str], bool, list[str]]:
    """Return the sheets that a page holds for a desktop's screen, also as `data:`
    addresses, in order; whether it links others; and what all of its `style` elements
    hold.

    The last includes sheets for paper. Empty sheets are left out; linked ones are not
    fetched."""
    nodes = top.css("style, link")
    texts = [node.text(deep=True) for node in nodes if node.tag != "link"]
    sheets, linked = list[str](), False
    for node in nodes:
        if media_holds((node.attributes.get("media") or "").lower()):
            text, is_lacking = _sheet_in(node)
            sheets.append(text)
            linked |= is_lacking
    if not _may_ask_containers(top, sheets):
        sheets = [_ASKED_CONTAINER.sub("@none", sheet) for sheet in sheets]
    return list(filter(None, sheets)), linked, texts


def _sheet_in(node: LexborNode) -> tuple[str, bool]:
    """Return the sheet of a `style` or `link` element with those that it imports, and
    whether one of them is not in the page."""
    about = node.attributes
    text, is_lacking = "", False
    if node.tag != "link":
        if (about.get("type") or "").lower() in _SHEET_TYPES:
            text = node.text(deep=True)
    elif "stylesheet" in (about.get("rel") or "").lower().split():
        text = _of_data(about.get("href") or "")
        is_lacking = not text and "disabled" not in about
    if "@import" not in text.lower():
        return text, is_lacking
    return _with_imports(text), is_lacking or _IMPORT_RULE.search(text) is not None


def _may_ask_containers(top: LexborNode, sheets: list[str]) -> bool:
    """Whether the page has a container, where its sheets ask for one's size."""
    return (
        not any("@container" in sheet.lower() for sheet in sheets)
        or any(map(_CONTAINER_TYPE.search, sheets))
        or top.css_first('[style*="container" i]') is not None
    )


def _with_imports(sheet: str, depth: int = 0) -> str:
    """Return a sheet with those in front that it imports as `data:` addresses; those
    nested deeper than `_IMPORTS` are dropped."""
    found = [
        _with_imports(_of_data(one[1]), depth + 1)
        for one in _IMPORTED.finditer(sheet)
        if depth < _IMPORTS and media_holds(one[2].lower())
    ]
    return "\n".join([*found, _IMPORTED.sub("", sheet)])


def _of_data(address: str) -> str:
    """Return the sheet in a `data:` address, empty for any other and for a malformed
    one."""
    about, comma, held = address.strip().partition(",")
    if not comma or not about.lower().startswith("data:text/css"):
        return ""
    try:
        whole = unquote_to_bytes(held)
        return (
            b64decode(whole + b"==") if ";base64" in about.lower() else whole
        ).decode("utf-8", "replace")
    except ValueError:
        return ""
