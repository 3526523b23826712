"""Words that a drawing (SVG) shows: its `text` elements and the HTML in it, as far as a
reader sees them.

Not for: what a drawing is said to show (`values.py`).
"""

import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Final

from selectolax.lexbor import LexborNode

from pipeline.document.tree import TEXT_NODE, tags
from pipeline.html.style import Shade

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
_DRAWN_TEXTS: Final = tags("foreignobject text")
_PRESENTED: Final = ("display", "font-size", "opacity", "transform", "visibility")
_LOOK_ATTRIBUTES: Final = frozenset({*_PRESENTED, "fill", "fill-opacity", "style"})
_SHIFTED: Final = re.compile(r"-?\d{4,}")
_DRAWING_ELEMENTS: Final = 2_000
"""Elements of a drawing that are looked at."""
DRAWING_CHARACTERS: Final = 2_000
"""Characters of all words of a drawing."""
_SIZE_NUMBER: Final = re.compile(r"-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})")
_COORDINATE: Final = re.compile(r"\s*(-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))")


def words_of(svg: LexborNode, look: Look, shade: Shade) -> list[str]:
    """Return the texts that a drawing shows, in its order; `shade` is that of the
    drawing itself.

    Texts that are hidden or outside of its edges are left out, as are those beyond
    `DRAWING_CHARACTERS` characters or `_DRAWING_ELEMENTS` elements."""
    edges = _edges_of(svg)
    texts: list[str] = []
    waiting = _inside(svg, shade)
    for _ in range(_DRAWING_ELEMENTS):
        if not waiting:
            break
        node, inherited = waiting.pop()
        name = (node.tag or "").lower()
        attributes = presented(node.attributes)
        if (
            name in _UNDRAWN
            or _is_shifted(attributes)
            or not _is_inside(attributes, edges)
        ):
            continue
        hidden, inherited = look(node, attributes, inherited)
        if hidden or inherited.unseen:
            continue
        if name in _DRAWN_TEXTS:
            texts += filter(None, [_text_of(node, look, inherited)])
        else:
            waiting += _inside(node, inherited)
    sizes = accumulate(map(len, texts))
    return [
        text
        for text, size in zip(texts, sizes, strict=True)
        if size <= DRAWING_CHARACTERS
    ]


def _inside(
    node: LexborNode, shade: Shade, *, texts: bool = False
) -> list[tuple[LexborNode, Shade]]:
    """Return what is in an element, last first, with the style that it inherits."""
    return [(child, shade) for child in [*node.iter(include_text=texts)][::-1]]


def _is_shifted(attributes: Mapping[str, str | None]) -> bool:
    return _SHIFTED.search(attributes.get("transform") or "") is not None


def _edges_of(svg: LexborNode) -> tuple[float, float, float, float]:
    """Return the left, right, upper and lower edge of a drawing, in its own units."""
    view_box = next(
        (value for name, value in svg.attributes.items() if name.lower() == "viewbox"),
        "",
    )
    box = [float(number) for number in _SIZE_NUMBER.findall(view_box or "")[:4]]
    if len(box) < 4:
        return -1e4, 1e4, -1e4, 1e4
    left, top, width, height = box
    return left, left + width, top, top + height


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


def _is_inside(
    attributes: Mapping[str, str | None], edges: tuple[float, float, float, float]
) -> bool:
    """Return whether the position of an element is within its drawing or half its size
    beside it; True where none is named in numbers."""
    left, right, top, bottom = edges
    for name, least, greatest in (("x", left, right), ("y", top, bottom)):
        match = _COORDINATE.match(attributes.get(name) or "")
        slack = (greatest - least) / 2
        if (
            match
            and "%" not in (attributes.get(name) or "")
            and not least - slack <= float(match[1]) <= greatest + slack
        ):
            return False
    return True


def _text_of(text: LexborNode, look: Look, shade: Shade) -> str:
    """Return the words of a text, its lines and nested texts separated; hidden ones are
    left out, as are those beyond `_DRAWING_ELEMENTS` nodes."""
    fragments: list[str] = []
    waiting = [(text, shade)]
    for _ in range(_DRAWING_ELEMENTS):
        if not waiting:
            break
        node, inherited = waiting.pop()
        if node.tag_id == TEXT_NODE:
            fragments.append(node.text_content or "")
            continue
        if node is not text:
            attributes = presented(node.attributes)
            hidden, inherited = look(node, attributes, inherited)
            if hidden or inherited.unseen or node.tag in _UNDRAWN:
                continue
            if node.tag != "tspan" or {"x", "y", "dy"} & attributes.keys():
                fragments.append(" ")
        waiting += _inside(node, inherited, texts=True)
    return " ".join("".join(fragments).split())
