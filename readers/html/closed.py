"""Hidden text that is content: what a click opens, and what is hidden from screen
readers only.

Both are recognised by elements and by attributes that say so (`aria-expanded`,
`aria-controls`, a label's `for`, `role`), never by names of classes. Not for: what a
style hides, and how surely (`style.py`).
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborNode

from readers.html.style import READER_CLASSES, is_long
from readers.tree import BLOCK_TAGS, LABEL_WORDS, count_words, tags

_NODES_BESIDE: Final = 12
"""Elements in front of a closed one, from the first down, among which the button that
opens it is looked for; also those beside an element that are looked at."""
_NO_CONTENT_ROLES: Final = tags(
    "alert dialog listbox menu navigation search status tooltip"
)
"""Roles of closed things that hold no content."""
CONTROLLING: Final = (
    "aria-controls",
    "popovertarget",
    "data-target",
    "data-bs-target",
    "href",
)
CONTROLS: Final = (
    "[aria-controls], [popovertarget], [data-target], [data-bs-target], "
    "a[href^='#'][role=button], a[href^='#'][data-toggle], a[href^='#'][data-bs-toggle]"
)
"""What opens something with an id, and the attributes that name it."""
_CLOSED_CHARACTERS: Final = 600
_CLOSED_NODES: Final = 200
"""Maximum characters and nodes of an element that are examined; such elements may be
nested."""
_DIGIT_OR_WORDS: Final = re.compile(r"\d|[^\W\d_]{2}\W+[^\W\d_]{2}")


def can_be_opened(
    current: LexborNode,
    attributes: Mapping[str, str | None],
    controlled: Callable[[], Container[str]],
) -> bool:
    """Return whether a closed element is one that a reader opens with a click: a tab's
    panel, what follows the button or label that opens it, or what a button says that it
    controls (`controlled` looks for the ids of such in the whole page, and is asked
    last). Lists of links, and roles of dialogs and the like, are none."""
    role = attributes.get("role")
    if role in _NO_CONTENT_ROLES or _is_menu(current):
        return False
    if role == "tabpanel":
        return True
    before = _before(current)
    if before is not None and (
        _is_ticked_open(before)
        or any(map(_says_that_it_opens, islice(before.traverse(), _NODES_BESIDE)))
    ):
        return True
    name = attributes.get("id") or ""
    return name != "" and name in controlled()


def _before(node: LexborNode) -> LexborNode | None:
    """Return what is before a node, white space left out."""
    before = node.prev
    while (
        before is not None
        and not before.is_element_node
        and (before.text_content or "").isspace()
    ):
        before = before.prev
    return before


def _is_ticked_open(label: LexborNode) -> bool:
    """Whether an element is the label of a box beside it: style sheets open what
    follows a ticked one."""
    box_id = label.attributes.get("for") if label.tag == "label" else None
    return bool(box_id) and any(
        neighbour.tag == "input"
        and neighbour.attributes.get("id") == box_id
        and neighbour.attributes.get("type") in {"checkbox", "radio"}
        for neighbour in _beside(label)
    )


def _says_that_it_opens(node: LexborNode) -> bool:
    return node.tag == "summary" or "aria-expanded" in node.attributes


def _is_menu(current: LexborNode) -> bool:
    """Return whether most of an element's beginning is links; False for one without
    text."""
    texts = [
        (len(node.text_content or ""), node.parent)
        for node in islice(current.traverse(include_text=True), _CLOSED_NODES)
        if node.is_text_node
    ]
    linked = sum(
        size for size, parent in texts if parent is not None and parent.tag == "a"
    )
    return 2 * linked > sum(size for size, _ in texts)


def _beside(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements next to one, at most `_NODES_BESIDE` nodes before and after
    it."""
    for step in ("prev", "next"):
        neighbour: LexborNode | None = node
        for _ in range(_NODES_BESIDE):
            neighbour = getattr(neighbour, step)
            if neighbour is None:
                break
            if neighbour.is_element_node:
                yield neighbour


def is_covered_part(current: LexborNode, attributes: Mapping[str, str | None]) -> bool:
    """Return whether a box that is hidden from screen readers alone is a part of the
    page: it has a heading and text, a table, or several paragraphs, and no role or
    attribute of what waits to be opened."""
    if attributes.get("aria-hidden") != "true" or not {
        "hidden",
        "popover",
        "role",
        "tabindex",
    }.isdisjoint(attributes):
        return False
    if not READER_CLASSES.isdisjoint((attributes.get("class") or "").split()):
        return False
    tag_names = [node.tag for node in islice(current.traverse(), 1, _CLOSED_NODES)]
    prose_count = sum(
        name in {"blockquote", "dd", "li", "p", "pre"} for name in tag_names
    )
    is_story = prose_count > 0 and (
        not {"h1", "h2", "h3", "h4", "h5", "h6"}.isdisjoint(tag_names)
        or is_long(current)
    )
    return is_story or prose_count > 1 or "table" in tag_names


def is_seen_all_the_same(
    current: LexborNode, attributes: Mapping[str, str | None]
) -> bool:
    """Return whether words that are hidden from screen readers alone are part of what
    is seen around them.

    They are in a line with others, or in a cell or item, are more than a letter or an
    icon's name, and have no equivalent for screen readers next to them.
    """
    parent = current.parent
    if (current.tag or "") in BLOCK_TAGS or parent is None or "hidden" in attributes:
        return False
    words = current.text(deep=True)[:_CLOSED_CHARACTERS]
    if not _DIGIT_OR_WORDS.search(words) or count_words(words) > LABEL_WORDS:
        return False
    is_labelled = not {"aria-label", "aria-labelledby", "title"}.isdisjoint(
        parent.attributes
    )
    return not (is_labelled or any(map(_is_for_readers, _beside(current))))


def _is_for_readers(element: LexborNode) -> bool:
    """Whether an element is there for screen readers alone, as a formula's markup."""
    classes = (element.attributes.get("class") or "").split()
    return element.css_first("math") is not None or not READER_CLASSES.isdisjoint(
        classes
    )
