"""Telling content from furniture (navigation, footers, link lists, banners) by the units alone, at next to no cost.

Two signs: what the page says of itself (elements, roles, class names; `clean.py` marks them) and link density over
neighbouring units. Not for: removing anything; a unit that is furniture is only weighed less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.documents import BlockKind
from pipeline.html.tree import count_words

LINKED: Final = 0.6
"""Share of linked characters from which a short unit counts as a link."""
SHORT: Final = 12
"""Words up to which a linked unit is a link rather than a sentence with links."""
NEIGHBOURS: Final = 3
"""Links in a row that make a menu."""
WHOLE: Final = 0.5
"""If marked units hold more of the page's words than this, the marks are wrong and only link density counts."""


@dataclass(slots=True)
class Unit:
    """A content unit before offsets are known."""

    path: str
    headings: tuple[str, ...]
    text: str
    shown: str
    html: str
    kind: BlockKind
    main: bool
    """False where an element around it is marked as furniture."""
    linked: int
    """Characters of `shown` that stand in links."""
    cells: tuple[str, ...] = ()
    lead: str = ""


def judge(units: Sequence[Unit]) -> list[bool]:
    """Return for each unit whether it is content."""
    words = [count_words(unit.text) for unit in units]
    marked = sum(count for unit, count in zip(units, words, strict=True) if not unit.main)
    main = [unit.main for unit in units] if marked <= WHOLE * sum(words) else [True] * len(units)
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
