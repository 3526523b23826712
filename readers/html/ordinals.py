"""The numbers that a reader sees before the items of a list: its start, its values, its type,
counted down or up.

Not for: numbers that style sheets draw (counters), which no markup has.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from readers.numerals import numeral
from readers.page import Ordinal
from readers.tree import Node

_INTEGER: Final = re.compile(r"\s*([-+]?\d{1,9})")
_LIST_STYLE: Final = re.compile(
    r"list-style(?:-type)?\s*:[^;]*?\b(?:(none)\b|(lower|upper)-(alpha|latin|roman))"
)
_NONE: Final = "none"
"""Type of a list whose items have no numbers."""
_OWN_NUMBER: Final = re.compile(
    r"\s*(?:§+\s*\d|\d{1,4}(?:\.\d{1,3})*[.)]\s|\((?:\d{1,3}|[a-z]|[ivx]{2,5})\)\s)"
)
"""A number in an item's own text; where all items have one, a page shows no others."""


def ordinals_of(items: Node) -> Iterator[Ordinal]:
    """Yield the number of each item of an ordered list of a cleaned page; none where
    the list shows no numbers, or all items write their own."""
    form = items.attrs.get("type", "1")
    down = "reversed" in items.attrs
    list_items = items_of(items)
    if form == _NONE or (
        list_items and all(_OWN_NUMBER.match(_begin(item)) for item in list_items)
    ):
        return
    following = _integer(items.attrs.get("start", ""), len(list_items) if down else 1)
    for item in list_items:
        value = _integer(item.attrs.get("value", ""), following)
        item_form = item.attrs.get("type", form)
        yield Ordinal(value, item_form, f"{numeral(value, item_form)}.")
        following = value - 1 if down else value + 1


def items_of(items: Node) -> list[Node]:
    """Return the items of a list."""
    return [
        child
        for child in items.children
        if isinstance(child, Node) and child.tag == "li"
    ]


def _begin(item: Node) -> str:
    node: Node | str = item
    while isinstance(node, Node):
        node = next((child for child in node.children if child and child != " "), "")
    return node


def type_of(attributes: Mapping[str, str | None]) -> str:
    """Return the `type` of a list, or of an item with one of its own, by its style or
    attribute; empty for none, `none` where its style shows no numbers."""
    styled = _LIST_STYLE.search((attributes.get("style") or "").lower())
    if styled is None:
        type_name = (attributes.get("type") or "").strip()
        return type_name if type_name in {"1", "a", "A", "i", "I"} else ""
    if styled[1]:
        return _NONE
    form = {"lower-alpha": "a", "lower-latin": "a", "lower-roman": "i"}[
        f"lower-{styled[3]}"
    ]
    return form.upper() if styled[2] == "upper" else form


def _integer(text: str, default: int) -> int:
    match = _INTEGER.match(text)
    return int(match[1]) if match else default
