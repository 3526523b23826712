"""What an element is beside its name: a heading or cell by its role, a value by its
attributes; and which of its attributes are kept.

Not for: what is done with names (`names.py`), what hides (`style.py`).
"""

import re
from typing import Final, Literal

from selectolax.lexbor import LexborNode

from pipeline.document.converted import PLACE
from pipeline.document.tree import (
    FURNITURE_NAME,
    ROLE_ROW,
    Node,
    add_boxed,
    add_line,
)
from pipeline.html.names import (
    DROP,
    FURNITURE_TAGS,
    LINE,
    NAMED_TAGS,
    THROUGH,
    Tag,
)
from pipeline.html.ordinals import type_of
from pipeline.html.values import language_of, said_by

Verdict = Literal["", "reader", "dropped", "number"]
"""What the class of an element says: that it is for screen readers, nothing to read, or
a line's number."""
_GRID_ROLES: Final = {
    "table": "table", "grid": "table", "treegrid": "table", "row": "tr", "rowgroup": "span",
    "cell": "td", "gridcell": "td", "columnheader": "th", "rowheader": "th",
}  # fmt: skip
_HOLDERS: Final = {
    "table": "",
    "tr": "table",
    "td": ROLE_ROW,
    "th": ROLE_ROW,
    "span": "table",
}
"""Required parent of a table part; elsewhere a role does not make a table."""
_DRAWN_AS_LINE: Final = re.compile(
    r"display\s*:\s*(?:block|flex|grid|list-item|table(?!-cell))"
)
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
    """Return the attributes of an element's node."""
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
    """Return what an element is by its role; one that says a value is written, and
    dropped."""
    if pre:
        return tag, _in_listing(current, tag, kind, attributes, parent)
    if value_text := said_by(current, tag.name, attributes, parent.tag):
        add_boxed(parent, value_text, pre=False)
        return tag, DROP
    if (name := _GRID_ROLES.get(attributes.get("role") or "")) and (
        _HOLDERS[name] in {"", parent.tag}
        and tag.name not in {"table", "tbody", "td", "tfoot", "th", "thead", "tr"}
    ):
        tag = Tag(name)
        if name == "tr":
            tag.name = ROLE_ROW
        return tag, tag.kind
    return tag, kind


def _in_listing(
    current: LexborNode,
    tag: Tag,
    kind: int,
    attributes: dict[str, str | None],
    parent: Node,
) -> int:
    """Begin the lines that an element of a listing begins; return its kind there."""
    drawn = kind == THROUGH
    if drawn and not {"code-line", "codeLine", "line", "view-line"}.isdisjoint(
        (attributes.get("class") or "").split()
    ):
        add_line(parent)
    before = current.prev if tag.name == "code" else None
    if before is not None and before.tag == "code" and language_of(before):
        # The listing again, in a language of which a sheet shows one at a time
        add_line(parent, "\n\n")
    if drawn and (style := attributes.get("style")) and _DRAWN_AS_LINE.search(style):
        return LINE
    return kind
