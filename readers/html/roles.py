"""What an element is beside its name: a heading or cell by its role, a value by its
attributes; and which of its attributes are kept.

Not for: what is done with names (`names.py`), what hides (`style.py`).
"""

from typing import Final, Literal

from selectolax.lexbor import LexborNode

from readers.converted import PLACE
from readers.html.names import (
    BOX,
    DROP,
    FURNITURE_TAGS,
    NAMED_TAGS,
    NODE,
    THROUGH,
    Tag,
    tag_of,
)
from readers.html.ordinals import type_of
from readers.html.values import language_of, said_by
from readers.tree import (
    FURNITURE_NAME,
    Node,
    add_boxed,
    add_line,
)

Verdict = Literal["", "reader", "dropped"]
"""What the class of an element says: that it is for screen readers, or nothing to
read."""
_TABLE_PARTS: Final = frozenset({"table", "tbody", "td", "tfoot", "th", "thead", "tr"})
_LINE_CLASSES: Final = frozenset({"code-line", "codeLine", "line", "view-line"})
"""What highlighters call a line of a listing."""
_TAG_OF_ROLE: Final = {
    "banner": "header",
    "complementary": "aside",
    "contentinfo": "footer",
    "main": "main",
    "navigation": "nav",
    "heading": "",
}


def _tag_of_role(role: str, attributes: dict[str, str | None]) -> str:
    """Return the name of an element with this role, "" where it names none."""
    if role != "heading":
        return _TAG_OF_ROLE.get(role, "")
    level = attributes.get("aria-level") or "2"
    return f"h{level}" if level in "123456" else "h6"


def keep(
    node: Node, tag: Tag, attributes: dict[str, str | None], current: LexborNode
) -> bool:
    """Give a node those attributes that mean something; return whether its names are
    asked for furniture.

    Changes `node`: a role may give it another tag."""
    node.place = attributes.get(PLACE) or ""
    is_judged_by_name = tag.named
    role = attributes.get("role")
    if tag.neutral and role:
        node.tag = _tag_of_role(role, attributes) or tag.name
        node.furniture = FURNITURE_NAME * (node.tag in FURNITURE_TAGS)
        is_judged_by_name = node.tag in NAMED_TAGS and not node.furniture
    if kept_attributes := _kept(tag, attributes, current):
        node.attrs = kept_attributes
    return is_judged_by_name


def _kept(
    tag: Tag, attributes: dict[str, str | None], current: LexborNode
) -> dict[str, str]:
    kept_attributes = {
        key: attributes[key] or "" for key in tag.attributes if key in attributes
    }
    if tag.listing and (code_language := language_of(current)):
        kept_attributes["class"] = f"language-{code_language}"
    if tag.counted and (form := type_of(attributes)):
        kept_attributes["type"] = form
    if tag.block and (language := attributes.get("lang")):
        kept_attributes["lang"] = language
    if tag.name == "table" and attributes.get("role") in {"presentation", "none"}:
        kept_attributes["role"] = "presentation"
    return kept_attributes


def as_marked(
    current: LexborNode,
    tag: Tag,
    kind: int,
    attributes: dict[str, str | None],
    parent: Node,
    pre: bool,
) -> tuple[Tag, int]:
    """Return what an element is by its role: a row of an ARIA table is a line, its cells
    are apart; one that says a value is written, and dropped."""
    if pre:
        if kind == THROUGH and not _LINE_CLASSES.isdisjoint(
            (attributes.get("class") or "").split()
        ):
            add_line(parent)
        return tag, kind
    if value_text := said_by(current, tag.name, attributes, parent.tag):
        add_boxed(parent, value_text, pre=False)
        return tag, DROP
    if tag.name in _TABLE_PARTS:
        return tag, kind
    role = attributes.get("role")
    if role == "row":
        return tag_of("div"), NODE
    is_cell = role in {"cell", "columnheader", "gridcell", "rowheader"}
    return tag, BOX if is_cell else kind
