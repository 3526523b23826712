"""The cleaned tree: a light node of our own, ways to walk it, and its text and HTML.

Every walk is a loop with its own stack, so that a page cannot exhaust Python's; a tree is at most `MAX_DEPTH` deep
because `pipeline/html/clean.py` builds it so. Not for: parsing (`guard.py`, `clean.py`) or cutting into blocks.
"""

import html as entities
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from pipeline.rank.words import is_cjk

MAX_DEPTH: Final = 256
"""Levels that are kept; deeper wrappers vanish and what they hold stays. The deepest of 495 real pages has 60."""


def tags(names: str) -> frozenset[str]:
    """Return names written one after another as a set."""
    return frozenset(names.split())


BLOCK_TAGS: Final = tags(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre search "
    "section select summary table tbody td textarea tfoot th thead title tr ul"
)
"""Elements that begin and end a line."""

VOID_TAGS: Final = frozenset({"br", "hr", "img", "wbr"})
NO_ATTRS: Final[Mapping[str, str]] = {}
_INVISIBLE: Final = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e01ef]"
)
"""Characters without a glyph. Joiners (U+200C, U+200D) stay: they shape words of living scripts and emoji."""
_CJK_CHARACTER: Final = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯\U00020000-\U0002fa1f]")


class Node:
    """One element of a cleaned page."""

    __slots__ = ("attrs", "boxed", "breaks", "children", "furniture", "tag")

    def __init__(self, tag: str, attrs: Mapping[str, str] = NO_ATTRS) -> None:
        """Make a node without children."""
        self.tag = tag
        self.attrs = attrs
        self.children: list[Node | str] = []
        self.breaks = tag in BLOCK_TAGS
        """Whether it is a block-level element or holds one."""
        self.boxed = False
        """Whether a table, form or listing stands below it."""
        self.furniture = False
        """Whether its name, role or class says navigation, footer, banner or the like."""

    def __repr__(self) -> str:
        """Tag and number of children."""
        return f"<Node {self.tag} with {len(self.children)} children>"


def add_text(node: Node, text: str, *, pre: bool) -> None:
    """Append a text, blanks folded (not inside `pre`) and dropped where a line begins."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    children = node.children
    if pre:
        if text:
            children.append(text)
        return
    if text.isspace() or not text:
        if text:
            add_space(node)
        return
    folded = " ".join(text.split())
    if text[0].isspace():
        add_space(node)
    children.append(folded + " " if text[-1].isspace() else folded)


def add_space(node: Node) -> None:
    """Append a space unless the line begins here or ends in a space already."""
    if not node.children:
        if node.tag not in BLOCK_TAGS and node.tag != "html":  # inside an inline element the line has begun before
            node.children.append(" ")
        return
    last = node.children[-1]
    if isinstance(last, str):
        if not last.endswith((" ", "\n")):
            node.children.append(" ")
    elif last.tag not in BLOCK_TAGS and last.tag not in VOID_TAGS:
        node.children.append(" ")


def trim(node: Node) -> None:
    """Drop the blanks at the end of a line."""
    children = node.children
    while children and children[-1] == " ":
        children.pop()
    if children and isinstance(last := children[-1], str) and last.endswith(" "):
        children[-1] = last[:-1]


def walk(root: Node) -> Iterator[Node]:
    """Yield `root` and every node below it, in document order."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(child for child in reversed(node.children) if isinstance(child, Node))


def pieces(root: Node) -> Iterator[str]:
    """Yield the texts below `root` in document order, with `"\\n"` at every block boundary and line break."""
    stack: list[Node | str] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif item.tag in VOID_TAGS:
            if item.tag != "img":
                yield "\n"
        elif item.tag in BLOCK_TAGS:
            stack.append("\n")
            stack.extend(reversed(item.children))
            yield "\n"
        else:
            stack.extend(reversed(item.children))


def text_of(root: Node) -> str:
    """Return the visible text below `root` on one line, words of different blocks separated."""
    children = root.children
    if len(children) == 1 and isinstance(children[0], str):
        return " ".join(children[0].split())
    return " ".join("".join(pieces(root)).split())


def code_of(root: Node) -> str:
    """Return the text below `root` with its line breaks and indentation, without empty lines around it."""
    lines = "".join(pieces(root)).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def count_words(text: str) -> int:
    """Return the number of words in `text`; every two Chinese, Japanese or Korean characters count as one word."""
    words = len(text.split())
    if text.isascii() or not is_cjk(text):
        return words
    spaced, found = _CJK_CHARACTER.subn(" ", text)
    return len(spaced.split()) + (found + 1) // 2


def to_html(root: Node, *, links: bool = False) -> str:
    """Return the HTML of a cleaned tree, valid and without line breaks of our own; `href` only with `links`."""
    out: list[str] = []
    stack: list[Node | str | None] = [root]
    closing: list[str] = []
    while stack:
        item = stack.pop()
        if item is None:
            out.append(closing.pop())
        elif isinstance(item, str):
            out.append(entities.escape(item, quote=False))
        else:
            out.append(_opening(item, links=links))
            if item.tag not in VOID_TAGS:
                closing.append(f"</{item.tag}>")
                stack.append(None)
                stack.extend(reversed(item.children))
    return "".join(out)


def _opening(node: Node, *, links: bool) -> str:
    if not node.attrs:
        return f"<{node.tag}>"
    values = [f' {name}="{entities.escape(value)}"' for name, value in node.attrs.items() if links or name != "href"]
    return f"<{node.tag}{''.join(values)}>"


def label_children(node: Node) -> list[str]:
    """Return one path label for each child node of `node`; equal siblings are numbered (`div1`, `div2`)."""
    tags = [child.tag for child in node.children if isinstance(child, Node)]
    totals = Counter(tags)
    seen: Counter[str] = Counter()
    labels: list[str] = []
    for tag in tags:
        if totals[tag] == 1:
            labels.append(tag)
        else:
            seen[tag] += 1
            labels.append(f"{tag}{seen[tag]}")
    return labels
