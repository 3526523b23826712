"""Non-text marks in table cells: ticks and crosses by class or image name, checked
boxes.

A cell without words says ✓ or ✗ where its markup names one of the two and nothing else:
a name counts only where all of its parts are words for it (`fa-check-circle`,
`cross_red.png`, but not `no-wrap`). Not for: labels and alternative texts, which are
words (`values.py`, `table.py`)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborNode

from pipeline.document.tree import Node, tags

YES: Final = "✓"
NO: Final = "✗"
_YES: Final = tags(
    "available check checked checkmark correct done enabled included ok okay on positive success "
    "supported tick ticked "
    "true yes"
)
_NO: Final = tags(
    "cancel clear close cross crossmark disabled excluded false negative no off remove times "
    "unavailable unchecked "
    "unsupported wrong x xmark"
)
_NOT: Final = tags("not non un")
_ICON_FILLERS: Final = tags(
    "2x alt bi big bold box cell circle codicon col color danger dashicons el fa fab fal far fas fat feather "
    "feature fill "
    "filled fw glyphicon gray green grey heroicon icofont icon iconify icons image img la lar "
    "large las lg light "
    "line lucide mark material mdi o octicon outline outlined ph pi plan red regular ri round "
    "rounded sign sm "
    "small solid square status svg symbol symbols tabler text thin ti uil value xl xs"
)
"""Other allowed parts of a name."""
_CAMEL_PART: Final = re.compile(r"[A-Z]?[a-z]+|\d*[a-z]+|[A-Z]+")
_FILE_NAME: Final = re.compile(r"([^/?#]+?)(?:\.\w{2,4})?(?:[?#].*)?$")
_URL_FRAGMENT: Final = re.compile(r"#([\w-]+)$")
_NODES: Final = 12
"""Elements of a cell that are looked at."""
_ICON_CHARACTERS: Final = 24
"""Characters of a name, and of a cell's text that may be the name of an icon."""
_SAYING: Final = frozenset({"class", "data-value"})
_NAMING_ATTRIBUTES: Final = frozenset(
    {"data-icon", "data-testid", "data-value", "icon", "name", "title"}
)
_ICON: Final = re.compile(r"icon|material|symbol")
_PRESSED: Final = frozenset({"a", "button"})
_CHECK_BOXES: Final = frozenset({"checkbox", "radio"})


def mark_cells(cells: Iterable[tuple[Node, LexborNode]]) -> None:
    """Write a mark into each cell of a page that holds no words and says by its markup
    which it is; a cell whose signs differ stays as it is. Boxes of which none is ticked
    count for nothing."""
    candidates = [
        (cell, list(_said(cell, current)))
        for cell, current in cells
        if _may_be_marked(cell, current)
    ]
    # Boxes of which none is ticked are there to choose rows with.
    ticks = any("ticked" in signs for _, signs in candidates)
    for cell, signs in candidates:
        marks = {
            "yes"
            if sign_name == "ticked"
            else "no"
            if sign_name == "open"
            else sign_name
            for sign_name in signs
            if ticks or sign_name != "open"
        }
        if len(marks) == 1:
            cell.children = [YES if "yes" in marks else NO]


def _may_be_marked(cell: Node, current: LexborNode) -> bool:
    if not cell.children:
        return current.first_child is not None or not _SAYING.isdisjoint(
            current.attributes
        )
    text = cell.children[0] if len(cell.children) == 1 else None
    return isinstance(text, str) and may_be_icon(text)


def may_be_icon(text: str) -> bool:
    """Return whether a cell that holds this text alone may hold no words."""
    return text.strip() in _LIGATURES


_LIGATURES: Final = frozenset(
    {"", "cancel", "check", "check_circle", "clear", "close", "done"}
)
"""Texts that a font draws as an icon."""


def _said(cell: Node, current: LexborNode) -> Iterator[str]:
    """Yield `yes`, `no`, `ticked` or `open` for each sign of a cell.

    What can be pressed ends the search; hidden parts, and all after `_NODES` nodes, are
    not asked."""
    yield from _of_names(_names("td", current.attributes))
    for node in islice(current.traverse(), 1, _NODES):
        attributes = node.attributes
        if node.tag in _PRESSED or "onclick" in attributes:
            return
        if "hidden" in attributes or "none" in (attributes.get("style") or ""):
            continue
        if node.tag == "input":
            yield from _of_box(attributes)
        elif not cell.children:
            yield from _of_names(_names(node.tag or "", attributes))
        if cell.children:
            yield from _of_icon(node, attributes)


def _of_box(attributes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the state of a checkbox, nothing for another input."""
    if attributes.get("type") not in _CHECK_BOXES:
        return
    if "checked" in attributes:
        yield "ticked"
    else:
        yield "no" if "disabled" in attributes else "open"


def _of_icon(node: LexborNode, attributes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the signs that the text of an icon names."""
    if _ICON.search(f"{node.tag} {attributes.get('class') or ''}"):
        yield from _of_names(re.split(r"\W+", node.text(deep=True)[:_ICON_CHARACTERS]))


def _names(tag: str, attributes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the names that may say which mark an element draws."""
    yield from (attributes.get("class") or "").split()
    if not _NAMING_ATTRIBUTES.isdisjoint(attributes):
        yield from filter(None, map(attributes.get, sorted(_NAMING_ATTRIBUTES)))
    if tag == "img" and (file := _FILE_NAME.search(attributes.get("src") or "")):
        yield file[1]
    if tag == "use" and (
        fragment := _URL_FRAGMENT.search(
            attributes.get("href") or attributes.get("xlink:href") or ""
        )
    ):
        yield fragment[1]


def _of_names(names: Iterable[str]) -> Iterator[str]:
    """Yield `yes` or `no` for each name that says one of them and nothing else; a name
    longer than `_ICON_CHARACTERS` says none."""
    for name in names:
        words = (
            {word.lower() for word in _CAMEL_PART.findall(name)}
            if len(name) <= _ICON_CHARACTERS
            else set()
        )
        telltale = words - _ICON_FILLERS
        if telltale and telltale <= _YES | _NO | _NOT:
            yield "no" if telltale & (_NO | _NOT) else "yes"
