"""Words that a drawing (SVG) shows: its `text` elements and the HTML in it, as far as a
reader sees them.

Not for: what a drawing is said to show (`values.py`).
"""

import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Final

from selectolax.lexbor import LexborNode

from readers.html.style import Shade
from readers.tree import TEXT_NODE, tags

Look = Callable[[LexborNode, dict[str, str | None], Shade], tuple[bool, Shade]]
"""Returns whether an element is hidden, and the style that its content inherits."""
BLANK_FILL: Final = re.compile(
    r"(?:fill|stroke)(?:-opacity)?\s*:\s*(?:none|transparent|white|#f{3}|#f{6}|0|hsla?\(|rgba?\(|var\()",
    re.IGNORECASE,
)
"""Of a style sheet: it may fill letters with no colour, or with that of the ground."""
_UNDRAWN: Final = tags(
    "clippath defs desc filter marker mask metadata pattern script style symbol title"
)
_PRESENTED: Final = ("display", "font-size", "opacity", "transform", "visibility")
_LOOK_ATTRIBUTES: Final = frozenset({*_PRESENTED, "fill", "fill-opacity", "style"})
_SHIFTED: Final = re.compile(r"-?\d{4,}")
_DRAWING_ELEMENTS: Final = 2_000
"""Elements of a drawing that are looked at."""
DRAWING_CHARACTERS: Final = 2_000
"""Characters of all words of a drawing."""
_LARGE_DRAWING: Final = 5_000.0
"""Units from a drawing's corner that are outside of it where it names no size."""
_COORDINATE: Final = re.compile(r"-?\d*\.?\d+")


def words_of(svg: LexborNode, look: Look, shade: Shade) -> list[str]:
    """Return the texts that a drawing shows, in its order, the lines of one separated by
    a space; `shade` is that of the drawing itself.

    Texts that are hidden or outside of its edges are left out, as are those beyond
    `DRAWING_CHARACTERS` characters or `_DRAWING_ELEMENTS` nodes."""
    view_box = next(
        (value for name, value in svg.attributes.items() if name.lower() == "viewbox"),
        "",
    )
    sizes = map(abs, map(float, _COORDINATE.findall(view_box or "")))
    limit = 2 * max(sizes, default=_LARGE_DRAWING)
    texts: list[list[str]] = []
    waiting: list[tuple[LexborNode, Shade, list[str] | None]] = [(svg, shade, None)]
    for _ in range(_DRAWING_ELEMENTS):
        if not waiting:
            break
        node, inherited, text = waiting.pop()
        if node.tag_id == TEXT_NODE:
            if text is not None:
                text.append(node.text_content or "")
            continue
        name, attributes = (node.tag or "").lower(), presented(node.attributes)
        if node is not svg:
            if name in _UNDRAWN or _is_away(attributes, limit):
                continue
            hidden, inherited = look(node, attributes, inherited)
            if hidden or inherited.unseen:
                continue
        if text is None and name in {"foreignobject", "text"}:
            texts.append(text := [])
        elif text is not None and (
            name != "tspan" or not {"x", "y", "dy"}.isdisjoint(attributes)
        ):
            text.append(" ")
        nodes = [*node.iter(include_text=True)][::-1]
        waiting += ((child, inherited, text) for child in nodes)
    lines = [" ".join("".join(text).split()) for text in texts]
    lengths = accumulate(map(len, lines))
    return [
        line
        for line, length in zip(lines, lengths, strict=True)
        if line and length <= DRAWING_CHARACTERS
    ]


def _is_away(attributes: Mapping[str, str | None], limit: float) -> bool:
    """Whether an element is moved far, or more than `limit` from the drawing's corner."""
    positions = (_COORDINATE.match(attributes.get(name) or "") for name in ("x", "y"))
    is_far = any(match and abs(float(match[0])) > limit for match in positions)
    return is_far or _SHIFTED.search(attributes.get("transform") or "") is not None


def presented(attributes: dict[str, str | None]) -> dict[str, str | None]:
    """Return the attributes of an element of a drawing, those of its looks as a
    style."""
    if _LOOK_ATTRIBUTES.isdisjoint(attributes):
        return attributes
    declarations = [
        f"{name}:{attributes[name]}" for name in _PRESENTED if attributes.get(name)
    ]
    declarations += [f"color:{attributes['fill']}"] if attributes.get("fill") else []
    if (
        attributes.get("fill") == "none"
        or (attributes.get("fill-opacity") or "1").strip("0.%") == ""
    ):
        declarations.append("opacity:0")
    style = (attributes.get("style") or "").replace("fill:", "color:")
    return (
        {**attributes, "style": ";".join([*declarations, style])}
        if declarations or style
        else attributes
    )
