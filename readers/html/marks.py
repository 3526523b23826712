"""Non-text marks in table cells: ticks and crosses by class or image name, checked
boxes.

A cell without words says ✓ or ✗ where its markup names one of the two and nothing else:
a name counts only where all of its parts are words for it (`fa-check-circle`,
`cross_red.png`, but not `no-wrap`). Not for: labels and alternative texts, which are
words (`values.py`, `table.py`)."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborNode

from readers.tree import Node, tags

_ICON_WORDS: Final = {
    "yes": tags(
        "available check checked checkmark correct done enabled included ok okay on positive "
        "success supported tick ticked true yes"
    ),
    "no": tags(
        "cancel clear close cross crossmark disabled excluded false negative no non not off "
        "remove times un unavailable unchecked unsupported wrong x xmark"
    ),
    "": tags(
        "2x alt bi big bold box cell circle codicon col color danger dashicons el fa fab fal far fas fat feather "
        "feature fill filled fw glyphicon gray green grey heroicon icofont icon iconify icons image img la lar "
        "large las lg light line lucide mark material mdi o octicon outline outlined ph pi plan red regular ri round "
        "rounded sign sm small solid square status svg symbol symbols tabler text thin ti uil value xl xs"
    ),
}
"""Allowed parts of a name, by the mark that they say."""
_CAMEL_PART: Final = re.compile(r"[A-Z]?[a-z]+|\d*[a-z]+|[A-Z]+")
_ICON: Final = re.compile(r"icon|material|symbol")
_NODES: Final = 12
"""Elements of a cell that are looked at."""
_ICON_CHARACTERS: Final = 24
"""Characters of a name, and of a cell's text that may be the name of an icon."""
_NAMING: Final = tags(
    "data-icon data-testid data-value href icon name src title xlink:href"
)
_LIGATURES: Final = tags("cancel check check_circle clear close done")
"""Texts that a font draws as an icon."""


def mark_cells(cells: Iterable[tuple[Node, LexborNode]]) -> None:
    """Write a mark into each cell of a page that holds no words and says by its markup
    which it is; a cell whose signs differ stays as it is. Boxes of which none is ticked
    count for nothing."""
    candidates = [
        (cell, set(_signs(current)))
        for cell, current in cells
        if _may_be_marked(cell, current)
    ]
    # Boxes of which none is ticked are there to choose rows with.
    is_table_of_ticks = any("ticked" in signs for _, signs in candidates)
    for cell, signs in candidates:
        is_yes = not signs.isdisjoint({"yes", "ticked"})
        is_no = "no" in signs or ("open" in signs and is_table_of_ticks)
        if is_yes != is_no:
            cell.children = ["✓" if is_yes else "✗"]


def _may_be_marked(cell: Node, current: LexborNode) -> bool:
    """Whether a cell holds something, or has attributes, but no words."""
    if not cell.children:
        return current.first_child is not None or bool(current.attributes)
    text = cell.children[0]
    return isinstance(text, str) and text.strip() in _LIGATURES


def _signs(cell: LexborNode) -> Iterator[str]:
    """Yield `yes`, `no`, `ticked` or `open` for each sign of a cell.

    What can be pressed ends the search; hidden parts, and all after `_NODES` nodes, are
    not asked."""
    for node in islice(cell.traverse(), _NODES):
        attributes = node.attributes
        if node.tag in {"a", "button"} or "onclick" in attributes:
            return
        if "hidden" in attributes or "none" in (attributes.get("style") or ""):
            continue
        if attributes.get("type") in {"checkbox", "radio"}:
            is_fixed = "disabled" in attributes
            yield "ticked" if "checked" in attributes else "no" if is_fixed else "open"
        else:
            yield from filter(None, map(_sign, _names(node)))


def _names(node: LexborNode) -> Iterator[str]:
    """Yield the names that may say which mark an element draws."""
    attributes = node.attributes
    classes = attributes.get("class") or ""
    yield from classes.split()
    for name in _NAMING.intersection(attributes):
        file = re.split("[/#]", (attributes[name] or "").partition("?")[0])[-1]
        yield file.partition(".")[0]
    if _ICON.search(f"{node.tag} {classes}"):
        yield node.text(deep=True)[: _ICON_CHARACTERS + 1].strip()


def _sign(name: str) -> str:
    """Return `yes` or `no` for a name that says one of them and nothing else, "" for any
    other and one longer than `_ICON_CHARACTERS`."""
    if len(name) > _ICON_CHARACTERS:
        return ""
    words = {word.lower() for word in _CAMEL_PART.findall(name)}
    signs = {
        sign for sign, listed in _ICON_WORDS.items() if not listed.isdisjoint(words)
    }
    if not words.issubset(frozenset[str]().union(*_ICON_WORDS.values())):
        return ""
    return "no" if "no" in signs else max(signs, default="")
