"""Hidden text that is content: text that a click opens, text that moves into view, text
hidden from screen readers only.

Each is recognized by its context, since class names can be arbitrary; text that no
click reveals (tiny, off-screen, without contrast) is not handled here. Not for: what a
style hides, and how surely (`style.py`).
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborNode

from pipeline.document.tree import BLOCK_TAGS, LABEL_WORDS, count_words, tags
from pipeline.html.rules import declarations
from pipeline.html.style import READER_CLASSES, how_hidden, is_long

_OPENED_CLASS: Final = re.compile(
    r"accordion|carousel-item|collaps|faq|product|slick-slide|spoiler|swiper-slide|tab[-_]*(?:pan|content)|toggle-?(?:content|panel)"
)
"""Class names of collapsible content, such as product sheets."""
_FOLDED: Final = re.compile(
    r"accordion|\bacc(?:\b|_)|answer|collaps|details|drawer|expand|faq|fold|panel|spoiler|toggle"
)
"""Names of what holds questions or headings that open, or of what they open."""
_SHUT: Final = re.compile(
    r"cloned|cookie|consent|duplicate|newsletter|subscri|login|sign|cart|search|menu|nav|share|load|error|alert|warn|age-"
)
"""Names of closed things that hold no content."""
_OPENER_NODES: Final = 12
"""Elements in front of a closed one, from the first down, among which the button that
opens it is looked for; also how many of those beside a button are compared with it."""
_NO_CONTENT: Final = frozenset(
    {"alert", "listbox", "menu", "navigation", "search", "status", "tooltip"}
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
_WAITING: Final = re.compile(
    r"modal|overlay|popup|offcanvas|off-canvas|drawer|dropdown|tooltip|backdrop|panel|slide|toast"
)
"""Names of what covers a page once it is opened."""
_PROSE_TAGS: Final = tags("blockquote dd li p pre")
_OPENERS: Final = tags("button dt h2 h3 h4 h5 h6 label summary")
_CLOSED_CHARACTERS: Final = 600
"""Characters of an element that are looked at."""
_HEADING_NAMES: Final = tags("h1 h2 h3 h4 h5 h6")
_CLOSED_NODES: Final = 200
"""Maximum nodes of an element that are examined; such elements may be nested."""
_ANIMATED_ATTRIBUTES: Final = (
    "data-animat",
    "data-aos",
    "data-reveal",
    "data-sal",
    "data-scroll",
)
"""Attributes by which scripts know what to move into sight."""
_MOVED: Final = re.compile(
    r"\b(?:aos|animate|fade-?(?:in|up)|reveal|scroll-?(?:in|trigger)|wow)"
)
"""Names of what scripts move into sight as a reader scrolls to it."""
_ICON_CLASS: Final = re.compile(
    r"icon|glyph|\bfa-|\bfa[bslr]?\b|katex|mathjax|mjx|material|symbol|emoji",
    re.IGNORECASE,
)
"""Names of what letters draw without saying them: icons, formulas."""
_DIGIT_OR_WORDS: Final = re.compile(r"\d|[^\W\d_]{2}\W+[^\W\d_]{2}")


def can_be_opened(
    current: LexborNode,
    attributes: Mapping[str, str | None],
    controlled: Callable[[], Container[str]],
) -> bool:
    """Return whether a closed element is one that a reader opens with a click.

    It is a tab's panel, named like what opens, what follows the button or question that
    opens it, or what a button says that it controls (`controlled` looks for the ids of
    such in the whole page, and is asked last). Names of menus, dialogs and the like say
    no, whatever else says yes."""
    name = attributes.get("id") or ""
    label = f"{attributes.get('class') or ''} {name}".lower()
    if _SHUT.search(label) or attributes.get("role") in _NO_CONTENT:
        return False
    if attributes.get("role") == "tabpanel" or _OPENED_CLASS.search(label):
        return True
    before = _before(current)
    if before is not None and _is_opened_by(before, current, label):
        return True
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


def _is_opened_by(before: LexborNode, current: LexborNode, label: str) -> bool:
    """Whether what is before a closed element, of these names, opens it."""
    return (
        _is_ticked_open(before)
        or any(map(_says_that_it_opens, islice(before.traverse(), _OPENER_NODES)))
        or _opens(before, current, label)
    )


def _is_ticked_open(label: LexborNode) -> bool:
    """Whether an element is the label of a box beside it: style sheets open what
    follows a ticked one."""
    wanted = label.attributes.get("for") if label.tag == "label" else None
    return bool(wanted) and any(
        other.tag == "input"
        and other.attributes.get("id") == wanted
        and other.attributes.get("type") in {"checkbox", "radio"}
        for other in _beside(label)
    )


def _says_that_it_opens(node: LexborNode) -> bool:
    return node.tag == "summary" or "aria-expanded" in node.attributes


def _opens(before: LexborNode, current: LexborNode, label: str) -> bool:
    """Return whether the element before a closed one is a button or heading that opens
    it.

    Their names, or their container's, say so, or several similar buttons are adjacent;
    an element with mostly links is a menu.
    """
    around = current.parent
    if not before.is_element_node or around is None or is_long(before):
        return False
    own = _names(before)
    is_named = _FOLDED.search(own) is not None and not _SHUT.search(own)
    asks = is_named or _is_button(before) or _asks(before)
    if not asks and before.tag not in _OPENERS:
        return False
    names = f"{label} {own if is_named else ''} {_names(around)}"
    if _SHUT.search(names) or (
        not _FOLDED.search(names) and not (asks and _has_like(before))
    ):
        return False
    return not _is_menu(current)


def _is_button(node: LexborNode) -> bool:
    """Whether an element is there to be clicked and leads to no other page."""
    attributes = node.attributes
    if node.tag == "a":
        return (attributes.get("href") or "#").startswith(("#", "javascript:"))
    return node.tag in {"button", "label"} or attributes.get("role") == "button"


def _asks(node: LexborNode) -> bool:
    return node.text(deep=True).rstrip().endswith(("?", "？", "؟"))


def _is_menu(current: LexborNode) -> bool:
    """Return whether most of an element's beginning is links; False for one without
    text."""
    words = [
        node
        for node in islice(current.traverse(include_text=True), _CLOSED_NODES)
        if node.is_text_node
    ]
    sizes = [(len(node.text_content or ""), node.parent) for node in words]
    linked = sum(
        size for size, around in sizes if around is not None and around.tag == "a"
    )
    return 2 * linked > sum(size for size, _ in sizes)


def _has_like(button: LexborNode) -> bool:
    """Return whether an element of the same tag and class is next to a button or
    question, or in a similar box.

    Without a class, only `button`, `dt` and `label` count next to it; in a similar box
    (of the same class) every tag does."""
    own, around = button.attributes.get("class"), button.parent
    is_like = partial(_are_like, button)
    if any(map(is_like, _beside(button))):
        return own is not None or button.tag in {"button", "dt", "label"}
    if around is None or not (own or around.attributes.get("class")):
        return False
    return any(
        box.attributes.get("class") == around.attributes.get("class")
        and any(map(is_like, islice(box.traverse(), _OPENER_NODES)))
        for box in _beside(around)
    )


def _are_like(one: LexborNode, other: LexborNode) -> bool:
    """Whether two elements have the same tag and class."""
    return one.tag == other.tag and one.attributes.get("class") == other.attributes.get(
        "class"
    )


def _beside(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements next to one, at most `_OPENER_NODES` nodes before and after
    it."""
    for step in ("prev", "next"):
        other: LexborNode | None = node
        for _ in range(_OPENER_NODES):
            other = getattr(other, step)
            if other is None:
                break
            if other.is_element_node:
                yield other


def _names(node: LexborNode) -> str:
    return f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}".lower()


def moves_into_sight(
    current: LexborNode,
    attributes: Mapping[str, str | None],
    others_move: Callable[[], bool],
) -> bool:
    """Return whether a section that is clear now is one that scripts move into sight as
    a reader scrolls to it.

    It has a heading, and a name of such, or others on the page begin so (`others_move`,
    asked last)."""
    style = (attributes.get("style") or "").lower()
    tags_inside = {node.tag for node in islice(current.traverse(), _CLOSED_NODES)}
    if "visib" in style or _HEADING_NAMES.isdisjoint(tags_inside):
        return False
    named = any(name.startswith(_ANIMATED_ATTRIBUTES) for name in attributes)
    return (
        named
        or _MOVED.search((attributes.get("class") or "").lower()) is not None
        or others_move()
    )


def something_moves(top: LexborNode) -> bool:
    """Return whether an element of a page is clear by its own style until an animation
    begins; only the first `_CLOSED_CHARACTERS` styles with an opacity are looked at."""
    found = islice(top.css('[style*="opacity"]'), _CLOSED_CHARACTERS)
    return any(
        how_hidden(declarations(node.attributes.get("style") or "")) == "begun"
        for node in found
    )


def is_covered_part(current: LexborNode, attributes: Mapping[str, str | None]) -> bool:
    """Return whether a box that is hidden from screen readers alone is a part of the
    page: it has a heading and text, a table, or several paragraphs, and no name or role
    of what waits to be opened."""
    if attributes.get("aria-hidden") != "true" or not {
        "hidden",
        "popover",
        "role",
        "tabindex",
    }.isdisjoint(attributes):
        return False
    names = _names(current)
    is_shut = _SHUT.search(names) or _WAITING.search(names)
    if is_shut or not READER_CLASSES.isdisjoint(names.split()):
        return False
    inner = [node.tag for node in islice(current.traverse(), 1, _CLOSED_NODES)]
    parts = sum(name in _PROSE_TAGS for name in inner)
    is_story = parts > 0 and (not _HEADING_NAMES.isdisjoint(inner) or is_long(current))
    return is_story or parts > 1 or "table" in inner


def is_seen_all_the_same(
    current: LexborNode, attributes: Mapping[str, str | None]
) -> bool:
    """Return whether words that are hidden from screen readers alone are part of what
    is seen around them.

    They are in a line with others, or in a cell or item, are not an icon or formula,
    and have no equivalent for screen readers next to them.
    """
    around = current.parent
    if (current.tag or "") in BLOCK_TAGS or around is None or "hidden" in attributes:
        return False
    words = current.text(deep=True)[:_CLOSED_CHARACTERS]
    if not _DIGIT_OR_WORDS.search(words) or count_words(words) > LABEL_WORDS:
        return False
    names = f"{_names(current)} {_names(around)}"
    if _ICON_CLASS.search(names) or not {
        "aria-label",
        "title",
        "aria-labelledby",
    }.isdisjoint(around.attributes):
        return False
    return not any(map(_is_for_readers, _beside(current)))


def _is_for_readers(element: LexborNode) -> bool:
    """Whether an element is there for screen readers alone, as a formula's markup."""
    classes = (element.attributes.get("class") or "").split()
    return element.tag == "math" or not READER_CLASSES.isdisjoint(classes)
