"""Words that stand side by side on the screen without a blank between them: links, labels, numbers and counts.

An element's end parts no word (`un<b>break</b>able`), and often is all that parts two. What begins with a capital or a
digit right behind a whole word is a word of its own. Not for: blocks and boxes, which are always apart (`clean.py`).
"""

import re
from typing import Final

from selectolax.lexbor import LexborNode

from pipeline.html.tree import TEXT_NODE, Node, add_space, last_text, point_before

_BEGUN: Final = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,2}$")
"""Letters too few to be a word that ends where an element begins."""
_SENTENCE_ENDS: Final = frozenset(".!?)")
_COUNTED: Final = re.compile(r"\d[\d.,]*\s+[^\W\d]")
"""A number with the word that it counts, which is no other number's end: `4.9` and `2,695 reviews`."""
_FRACTION: Final = re.compile(r"\d[.,]\d+$")
"""The end of a number that a further element's digits seldom go on: `4.6` and `120`."""
_NUMBER: Final = re.compile(r"\d[^\W\d_]?$")
_WORD: Final = re.compile(r"[^\W\d_]{2}[a-z]$")
"""The end of a word in small letters, as no name ends that goes on with a number (`COVID19`)."""


def part_links(node: Node) -> None:
    """Put a blank behind a link where another one begins: of 15 such pairs in small letters one is one word."""
    last = node.children[-1]
    if isinstance(last, Node) and last.tag == "a":
        node.children.append(" ")


def part_number(parent: Node, text: str, current: LexborNode, *, raised: bool) -> str:
    """Return a text that begins with a digit, parted from the number or word before it that it does not go on with.

    Args:
        parent: What it is added to.
        text: All that its element holds.
        current: The element.
        raised: Whether it is raised, so that it may be a price's cents and nothing else.
    """
    if len(text) == 2 and text.isdecimal():
        behind = current.next
        if behind is not None and behind.tag_id != TEXT_NODE:
            behind = behind.first_child
        following = (behind.text_content or "")[:8] if behind is not None else ""
        return point_before(parent, current.attributes.get("class") or "", following) + text
    if not raised and _is_counted_apart(parent, current, text):
        add_space(parent)
    return text


def _is_counted_apart(node: Node, current: LexborNode, text: str) -> bool:
    """Whether a number or count in an element is none of the number or word that stands right before it."""
    before = last_text(node)
    if not before[-1:].isalnum():
        return False
    if current.prev is None or current.prev.tag_id != TEXT_NODE:
        return any(
            found is not None for found in (_COUNTED.match(text), _WORD.search(before), _FRACTION.search(before))
        )
    return _COUNTED.match(text) is not None and _NUMBER.search(before) is not None


def is_apart(parent: Node, text: str, current: LexborNode, *, marks: bool) -> bool:
    """Whether an element that begins with a capital goes on with no word that ends right before it.

    A word in small letters may (`i<b>Phone</b>`, `Mac<b>Book</b>`) where text stands before an element that only
    `marks` words, and where it has been begun with one letter or two. One in capitals is its own before `Excellent`.
    """
    before = last_text(parent)
    follows_text = current.prev is not None and current.prev.tag_id == TEXT_NODE
    if before[-2:].isupper() and text[1:2].islower():
        return not follows_text
    if not before[-1:].islower() and before[-1:] not in _SENTENCE_ENDS:
        return False
    if follows_text and marks:
        return False
    return not (follows_text or marks) or _BEGUN.search(before) is None
