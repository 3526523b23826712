"""Telling content from furniture (navigation, footers, link lists, banners) by the units alone, at next to no cost.

Two signs: what the page says of itself (elements, roles, class names; `clean.py` marks them) and link density over
neighbouring units. Not for: removing anything; a unit that is furniture is only weighed less.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pipeline.documents import BlockKind
from pipeline.html.tree import Node, count_words, tags

_BOILERPLATE: Final = tags(
    "ad ads advert adverts banner breadcrumb breadcrumbs catlinks consent cookie cookies footer gdpr jump login menu "
    "modal nav navbar navbox navigation newsletter noprint pager pagination popup promo recommended related share "
    "sharing sidebar signup sitesub skip social subscribe toc toolbar tags widget"
)
"""Parts of class names and ids, cut at `-`, `_` and blanks, that say furniture."""
_BOILERPLATE_PAIRS: Final = re.compile(r"\b(?:comment-form|read-more)\b")
_CUT_NAMES: Final = str.maketrans("-_", "  ")
LINKED: Final = 0.6
"""Share of linked characters from which a short unit counts as a link."""
SHORT: Final = 12
"""Words up to which a linked unit is a link rather than a sentence with links."""
NEIGHBOURS: Final = 3
"""Links in a row that make a menu."""
WHOLE: Final = 0.75
"""An element with more of the page's words than this is no furniture, whatever it says; those inside it may be.
On 77 development pages furniture left in fell from .039 to .014 against one bound on all marks; prose alike."""
LEAST: Final = 0.1
"""If what no mark covers holds less of the page's words than this, no mark is believed; only link density counts."""


@dataclass(slots=True, eq=False)
class Mark:
    """An element that says of itself that it is furniture."""

    around: "Mark | None"
    """The next such element around it."""
    depth: int = field(init=False)
    words: int = 0
    believed: bool = False
    """Whether it or one around it is furniture."""

    def __post_init__(self) -> None:
        """Count the marks around it."""
        self.depth = 0 if self.around is None else self.around.depth + 1


@dataclass(slots=True)
class Unit:
    """A content unit before offsets are known."""

    path: str
    headings: tuple[str, ...]
    text: str
    shown: str
    html: str
    kind: BlockKind
    mark: Mark | None
    """The innermost mark of furniture around it."""
    linked: int
    """Characters of `shown` that stand in links."""
    cells: tuple[str, ...] = ()
    lead: str = ""
    main: bool = True
    """False where its own text says that it is none, as line numbers do."""


def says_furniture(label: str) -> bool:
    """Whether a class or id, in lower case, names navigation, a banner or the like."""
    return (
        not _BOILERPLATE.isdisjoint(label.translate(_CUT_NAMES).split()) or _BOILERPLATE_PAIRS.search(label) is not None
    )


def content_words(body: Node) -> int:
    """Return the words below a node that stand in no element that says it is furniture."""
    words = 0
    stack = [body]
    while stack:
        node = stack.pop()
        if not node.furniture:
            words += sum(count_words(child) for child in node.children if isinstance(child, str))
            stack.extend(child for child in node.children if isinstance(child, Node))
    return words


def judge(units: Sequence[Unit]) -> list[bool]:
    """Return for each unit whether it is content."""
    words = [count_words(unit.text) for unit in units]
    _believe(units, words)
    main = [unit.main and not (unit.mark is not None and unit.mark.believed) for unit in units]
    if sum(count for kept, count in zip(main, words, strict=True) if kept) < LEAST * sum(words):
        main = [unit.main for unit in units]
    links = [
        unit.kind in {"item", "block", "paragraph"} and count <= SHORT and unit.linked >= LINKED * len(unit.shown)
        for unit, count in zip(units, words, strict=True)
    ]
    begin = 0
    while begin < len(units):
        end = begin
        while end < len(units) and links[end]:
            end += 1
        if end - begin >= NEIGHBOURS:
            main[begin:end] = [False] * (end - begin)
        begin = end + 1
    # A heading stands with what follows it.
    for number in range(len(units) - 2, -1, -1):
        if units[number].kind == "heading" and main[number] and units[number + 1].kind != "heading":
            main[number] = main[number + 1]
    return main


def _believe(units: Sequence[Unit], words: Sequence[int]) -> None:
    """Decide on the marks: from the outermost inwards, one that holds nearly the whole page is not believed."""
    marks: dict[int, Mark] = {}
    for unit, count in zip(units, words, strict=True):
        mark = unit.mark
        if mark is not None:
            mark.words += count
        while mark is not None and id(mark) not in marks:
            marks[id(mark)] = mark
            mark = mark.around
    inwards = sorted(marks.values(), key=lambda mark: mark.depth)
    for mark in reversed(inwards):
        if mark.around is not None:
            mark.around.words += mark.words
    most = WHOLE * sum(words)
    for mark in inwards:
        mark.believed = mark.words <= most or (mark.around is not None and mark.around.believed)
