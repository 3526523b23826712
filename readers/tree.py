"""The cleaned tree: a light node of our own, ways to walk it, and its text and HTML.

Every walk is a loop with its own stack, so that a page cannot exhaust Python's; a tree
is at most `MAX_DEPTH` deep because `readers/html/clean.py` builds it so. An element's
end parts no word (`un<b>break</b>able`), and often is all that parts two: a capital or
a digit right after a whole word begins a new word. Not for: parsing (`guard.py`,
`clean.py`) or cutting into blocks.
"""

import html as entities
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from selectolax.lexbor import LexborNode

TEXT_NODE: Final = 2
"""Lexbor's tag id of text."""
MAX_DEPTH: Final = 256
"""Maximum tree depth; deeper wrappers are flattened. The deepest of 495 real pages has
60."""

LABEL_WORDS: Final = 12
"""Words up to which a text is a label (of a link, a row, an icon) rather than a
sentence."""


def tags(names: str) -> frozenset[str]:
    """Return names written one after another as a set."""
    return frozenset(names.split())


BLOCK_TAGS: Final = tags(
    "address article aside blockquote body caption center dd details dialog dir div dl dt "
    "fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup "
    "option p pre search "
    "section select summary table tbody td textarea tfoot th thead title tr ul"
)
"""Elements that begin and end a line."""

VOID_TAGS: Final = frozenset({"br", "hr", "img", "wbr"})
LINE_TAGS: Final = BLOCK_TAGS | {"html"}
_ENDS_LINE: Final = BLOCK_TAGS | VOID_TAGS - {"img"}
NEUTRAL: Final = tags("center dir div fieldset form hgroup section search")
"""Blocks that say nothing beyond where a line begins: merged with an only child or an
only parent."""
STAYS_EMPTY: Final = frozenset({"td", "th"})
LINE_ENDS: Final = frozenset({"br", "hr"})
_HOLDS_ITS_P: Final = tags("blockquote caption dd dt figcaption li summary td th")
_PERMALINKS: Final = frozenset({"¶", "#", "§", "🔗", "¶ ", "Permalink", "\uf0c1"})
FURNITURE_NAME: Final = 2
OPENED_NAME: Final = 1
NO_ATTRS: Final[Mapping[str, str]] = {}
_INVISIBLE: Final = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e01ef]"
)
"""Characters without a glyph. Joiners (U+200C, U+200D) stay: they shape words of living
scripts and emoji."""
_MARKED: Final = tags("del ins rt s strike sub sup")
"""Elements whose meaning is lost where only their text is read."""
_RAISED_NUMBER: Final = re.compile(r"[-−–+]?\d+")
_NOTE_NUMBERS: Final = re.compile(r"\[?\d+\]?(?:\s*[,–-]\s*\[?\d+\]?)+")
"""Several notes at once."""
_EXPONENT: Final = re.compile(
    r"(?:[-−–+]?\d*[nkxyijpNT]|\d+)(?:[-−–+](?:\d+|[nkxyij]))?"
)
"""Superscript after a number or variable that is not an ordinal suffix (`2nd`, `2e`) or
an hour (`5h`)."""
_VARIABLE_END: Final = re.compile(r"(?:[\d)\]]|(?<![^\W\d_])[^\W\d_])$")
_NUMERATOR: Final = re.compile(r"\^\d+")
STRUCK: Final = "~~"
"""Around what a page shows struck out, as Markdown writes it: an old price reads like
the new one without."""
_POWER_BASE: Final = re.compile(r"(?:\d|\)|(?<![^\W\d_])[^\W\d_]{1,3})$")
"""What may precede an exponent: a number, a bracket, a variable or unit."""
_PRICE_END: Final = re.compile(r"[$€£¥₹]\s?\d[\d,]*[.,]?$")
_THOUSANDS_COMMA: Final = re.compile(r"\d+,")
"""Text of an element before the superscript cents of a price."""
_WHOLE_NUMBER: Final = re.compile(r"\s*\d[\d,]*")
CURRENCY_SIGNS: Final = tuple("$€£¥₹")
_CURRENCY_AHEAD: Final = re.compile(r"\s*(?:[$€£¥₹]|EUR|USD|zł|kr\b)")
_CENTS: Final = re.compile(r"cent|decimal|fraction|minor", re.IGNORECASE)
"""Class names of the element with the cents of a price."""
_CJK_CHARACTER: Final = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯\U00020000-\U0002fa1f]")
_THAI_CHARACTER: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Thai, Lao, Burmese, Khmer: written without blanks between words of about five
characters with their marks."""


class Node:
    """One element of a cleaned page."""

    __slots__ = ("attrs", "boxed", "breaks", "children", "furniture", "place", "tag")

    def __init__(self, tag: str, attrs: Mapping[str, str] = NO_ATTRS) -> None:
        self.tag = tag
        self.attrs = attrs
        self.children: list[Node | str] = []
        self.breaks = tag in BLOCK_TAGS
        """Whether it is a block-level element or holds one."""
        self.boxed = False
        """Whether it contains a table or listing."""
        self.furniture = 0
        """`FURNITURE_NAME` where its name, role or class says navigation, footer, banner or the
        like, `OPENED_NAME` where a reader opens it with a click, else 0."""
        self.place = ""
        """`Block.place`, where one begins here."""

    def __repr__(self) -> str:
        return f"<Node {self.tag} with {len(self.children)} children>"


def add_text(node: Node, text: str, pre: bool) -> None:
    """Append a text, blanks folded (not inside `pre`) and dropped where a line
    begins."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    if pre:
        if text:
            node.children.append(text)
        return
    if text.isspace():
        if node.children or node.tag not in LINE_TAGS:  # most are between blocks
            add_space(node)
        return
    folded = " ".join(text.split())
    if len(folded) == len(text):
        if text:
            node.children.append(folded)
        return
    if text[0].isspace():
        add_space(node)
    node.children.append(folded + " " if text[-1].isspace() else folded)


def add_boxed(node: Node, text: str, *, pre: bool) -> None:
    """Append a text with a space on both sides."""
    children = node.children
    if (
        not children
        or (last_child := children[-1]).__class__ is not str
        or last_child[-1:] != " "
    ):
        add_space(node)
    if pre or not text.isascii():
        add_text(node, text, pre=pre)
        add_space(node)
    elif folded := " ".join(text.split()):
        children.append(folded + " ")


def add_line(node: Node, separator: str = "\n") -> None:
    """Begin a line of a listing, or with a tab a cell in it, unless one begins here
    already."""
    last_child: Node | str = node
    while isinstance(last_child, Node):
        if last_child.tag in LINE_ENDS or not last_child.children:
            return
        last_child = last_child.children[-1]
    if not last_child.endswith(("\n", separator)):
        node.children.append(separator)


def point_before(node: Node, label: str, following: str) -> str:
    """Return "." if two digits are the cents of a price in an element of their own,
    else "".

    Args:
        node: Parent of the digits.
        label: Class of their element.
        following: Text after them.
    """
    children = node.children
    whole_number = children[-1] if children else ""
    if not isinstance(whole_number, str) or not _WHOLE_NUMBER.fullmatch(whole_number):
        return ""
    currency = children[-2] if len(children) > 1 else ""
    is_price = isinstance(currency, str) and currency.rstrip().endswith(CURRENCY_SIGNS)
    return (
        "."
        if is_price or _CURRENCY_AHEAD.match(following) or _CENTS.search(label)
        else ""
    )


def last_text(node: Node) -> str:
    """Return the last text in or below a node, or ""."""
    last_child: Node | str = node
    while isinstance(last_child, Node):
        if not last_child.children:
            return ""
        last_child = last_child.children[-1]
    return last_child


def add_space(node: Node) -> None:
    """Append a space unless the line begins here or ends in a space already."""
    children = node.children
    if not children:
        if (
            node.tag not in LINE_TAGS
        ):  # inside an inline element the line has begun before
            children.append(" ")
        return
    last_child = children[-1]
    if isinstance(last_child, str):
        if not last_child.endswith((" ", "\n")):
            children.append(" ")
    elif last_child.tag not in _ENDS_LINE:
        children.append(" ")


def trim(node: Node) -> None:
    """Drop the blanks at the end of a line."""
    children = node.children
    while children:
        last_child = children[-1]
        if last_child.__class__ is not str or last_child[-1:] != " ":
            return
        if last_child != " ":
            children[-1] = last_child[:-1]
            return
        children.pop()


def attach(parent: Node, node: Node) -> None:
    """Put a finished node below its parent: empty ones vanish, single-nested ones are
    merged (HtmlRAG §3.2.2)."""
    children = node.children
    tag = node.tag
    if tag in _MARKED and children:
        if _is_written(parent, node):
            return
        tag = node.tag
    if children and children[-1].__class__ is str and tag in BLOCK_TAGS:
        trim(node)
    if not children:
        if tag not in STAYS_EMPTY and tag not in LINE_ENDS:
            if tag in BLOCK_TAGS:
                add_space(parent)  # it separates two lines
            return
    elif len(children) == 1:
        only = children[0]
        if isinstance(only, Node):
            node = _merged(node, only)
        elif tag == "a" and only in _PERMALINKS:
            return
        elif only == " " and tag not in STAYS_EMPTY:
            add_space(parent)
            return
    if node.breaks:
        _break(parent, node)
    parent.children.append(node)


def _break(parent: Node, node: Node) -> None:
    """End the line of the parent before a node that begins its own."""
    if (
        node.tag in BLOCK_TAGS
        and parent.children
        and parent.children[-1].__class__ is str
    ):
        trim(parent)
    parent.breaks = True
    if node.boxed or node.tag in {"pre", "table"}:
        parent.boxed = True


def _merged(node: Node, only: Node) -> Node:
    """Merge an element with its only child where one of them has no meaning of its own,
    and return the one that stays, changed in place; `node` unchanged where both have
    one."""
    tag = node.tag
    if tag in NEUTRAL and only.breaks and only.tag in BLOCK_TAGS:
        only.furniture = max(only.furniture, node.furniture)
        only.place = only.place or node.place
        if only.tag in NEUTRAL and not only.furniture and node.attrs and not only.attrs:
            only.attrs = node.attrs
        return only
    if tag in BLOCK_TAGS and (
        only.tag in NEUTRAL or (only.tag == "p" and tag in _HOLDS_ITS_P)
    ):
        node.children = only.children
        node.furniture = max(node.furniture, only.furniture)
        node.place = node.place or only.place
    return node


def _is_written(parent: Node, node: Node) -> bool:
    """Write an element whose plain text would lose its meaning into its parent: raised,
    lowered, struck, inserted or ruby.

    Returns whether the parent has its text now; False leaves it to the caller."""
    tag, children = node.tag, parent.children
    if node.breaks:
        return False
    elif tag == "rt":
        children += ["(", *node.children, ")"]
        return True
    elif tag == "ins":
        if children and children[-1] == STRUCK:
            add_space(parent)
    elif tag in {"sub", "sup"}:
        return _is_shifted(parent, node)
    elif 0 < count_words("".join(texts := pieces(node))) <= LABEL_WORDS:
        _strike(parent, node, "".join(texts))
        return True
    return False


def _is_shifted(parent: Node, node: Node) -> bool:
    """Write what is raised or lowered into its parent; return whether it has a meaning
    as text."""
    before = "".join(
        item if isinstance(item, str) else text_of(item)
        for item in parent.children[-3:]
    )
    write = _raised if node.tag == "sup" else _lowered
    written = write(parent, before, text_of(node), node)
    if written:
        parent.children.append(written)
    return written != ""


def _strike(parent: Node, node: Node, text: str) -> None:
    """Write what a page strikes out, its blanks outside of the marks."""
    if text[0].isspace():
        add_space(parent)
    children = node.children
    if isinstance(children[0], str):
        children[0] = children[0].lstrip()
    if isinstance(children[-1], str):
        children[-1] = children[-1].rstrip()
    parent.children += [STRUCK, *children, STRUCK]
    if text[-1].isspace():
        add_space(parent)


def _lowered(parent: Node, before: str, text: str, _: Node) -> str:
    """Return a subscript number after a digit as text, or ""; also handle a fraction's
    numerator."""
    children = parent.children
    numerator = children[-2] if len(children) > 1 and children[-1] in {"/", "⁄"} else ""
    if isinstance(numerator, str) and _NUMERATOR.fullmatch(numerator):
        children[-2] = f" {numerator[1:]}"
    return f"_{text}" if before[-1:].isdigit() and text[:1].isdigit() else ""


def _raised(_: Node, before: str, text: str, node: Node) -> str:
    """Return a superscript as text that cannot be read as part of the text before it,
    or "" if it is not a value.

    After a number, bracket or unit it is an exponent (`10^6`, `2^(n+1)`) or the cents
    of a price (`$129.00`); after a longer word or a period, or as a link within the
    page, a note mark (`word[3]`).
    """
    if not before[-1:].strip():
        return ""
    if _NOTE_NUMBERS.fullmatch(text):
        return text if text.startswith("[") else f"[{text}]"
    if not _RAISED_NUMBER.fullmatch(text):
        return _exponent(before, text)
    if len(text) == 2 and _is_price(before):
        return text if before[-1] in ".," else f".{text}"
    is_link = any("#" in element.attrs.get("href", "") for element in walk(node))
    return f"[{text}]" if is_link or not _POWER_BASE.search(before) else f"^{text}"


def _exponent(before: str, text: str) -> str:
    """Return a superscript other than a number as an exponent, "" if it is none."""
    if not _EXPONENT.fullmatch(text) or not _VARIABLE_END.search(before):
        return ""
    return f"^{text}" if len(text) == 1 else f"^({text})"


def _is_price(text: str) -> bool:
    """Whether a text ends in a price without its cents."""
    return bool(_PRICE_END.search(text) or _THOUSANDS_COMMA.fullmatch(text))


def join_texts(root: Node) -> Node:
    """Make one text of texts that follow one another; they may be a million, where
    elements were not kept as such.

    `root` itself is changed and returned."""
    for node in walk(root):
        if len(node.children) < 2:
            continue
        joined: list[Node | str] = []
        texts: list[str] = []
        for child in node.children:
            if isinstance(child, str):
                texts.append(child)
                continue
            if texts:
                joined.append("".join(texts))
                texts = []
            joined.append(child)
        node.children = [*joined, "".join(texts)] if texts else joined
    return root


def walk(root: Node) -> Iterator[Node]:
    """Yield `root` and every node below it, in document order."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(
            child for child in reversed(node.children) if isinstance(child, Node)
        )


def pieces(root: Node) -> list[str]:
    """Return the texts below `root` in document order, with `"\\n"` at every block
    boundary and line break."""
    out: list[str] = []
    stack: list[tuple[Iterator[Node | str], str]] = []
    items: Iterator[Node | str] = iter((root,))
    closing = ""
    while True:
        for item in items:
            if isinstance(item, str):
                out.append(item)
            elif item.tag in VOID_TAGS:
                if item.tag != "img":
                    out.append("\n")
            else:
                stack.append((items, closing))
                items, closing = iter(item.children), ""
                if item.tag in BLOCK_TAGS:
                    out.append("\n")
                    closing = "\n"
                break
        else:
            if not stack:
                return out
            out.append(closing)
            items, closing = stack.pop()


def text_of(root: Node) -> str:
    """Return the visible text below `root` on one line, words of different blocks
    separated."""
    children = root.children
    if len(children) == 1 and isinstance(children[0], str):
        return " ".join(children[0].split())
    return " ".join("".join(pieces(root)).split())


def code_of(root: Node) -> str:
    """Return the text below `root` with its line breaks and indentation, without empty
    lines around it."""
    lines = "".join(pieces(root)).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


@lru_cache(maxsize=8_192)
def shape_of(path: str) -> str:
    """Return a path without the numbers of its steps: that of all fields that are built
    alike."""
    return "/".join(step.rstrip("0123456789") for step in path.split("/"))


def count_words(text: str) -> int:
    """Return the number of words in `text`, in languages without blanks by its
    characters.

    Every two Chinese, Japanese or Korean characters count as one word, and every five
    Thai ones and the like."""
    if text.isascii():
        return len(text.split())
    spaced, pairs = _CJK_CHARACTER.subn(" ", text)
    spaced, fives = _THAI_CHARACTER.subn(" ", spaced)
    return len(spaced.split()) + (pairs + 1) // 2 + (fives + 4) // 5


def to_html(root: Node) -> str:
    """Return the HTML of a cleaned tree, valid and without line breaks of our own, and
    without `href`."""
    out: list[str] = []
    stack: list[tuple[Iterator[Node | str], str]] = []
    items: Iterator[Node | str] = iter((root,))
    closing = ""
    while True:
        for item in items:
            if isinstance(item, str):
                out.append(escaped(item))
                continue
            out.append(_opening(item) if item.attrs else f"<{item.tag}>")
            if item.tag in VOID_TAGS:
                continue
            children = item.children
            if len(children) == 1 and isinstance(only := children[0], str):
                out.append(f"{escaped(only)}</{item.tag}>")
                continue
            stack.append((items, closing))
            items, closing = iter(children), f"</{item.tag}>"
            break
        else:
            if not stack:
                return "".join(out)
            out.append(closing)
            items, closing = stack.pop()


def escaped(text: str) -> str:
    """Return a text escaped for HTML."""
    return (
        entities.escape(text, quote=False)
        if "&" in text or "<" in text or ">" in text
        else text
    )


def _opening(node: Node) -> str:
    values = [
        f' {name}="{entities.escape(value)}"'
        for name, value in node.attrs.items()
        if name != "href"
    ]
    return f"<{node.tag}{''.join(values)}>"


def label_children(node: Node) -> list[str]:
    """Return one path label for each child node of `node`; equal siblings are numbered
    (`div1`, `div2`)."""
    names = [child.tag for child in node.children if isinstance(child, Node)]
    if len(set(names)) == len(names):
        return names
    once = {name for name, count in Counter(names).items() if count == 1}
    seen: dict[str, int] = {}
    labels: list[str] = []
    for name in names:
        if name in once:
            labels.append(name)
        else:
            seen[name] = number = seen.get(name, 0) + 1
            labels.append(f"{name}{number}")
    return labels


# Adjacent words without a space: links, labels, numbers and counts

_BEGUN: Final = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,2}$")
"""Letters too few to be a word that ends where an element begins."""
_COUNTED_THING: Final = re.compile(r"\d[\d.,]*\s+[^\W\d]")
"""A number with the word that it counts, which is no other number's end: `4.9` and
`2,695 reviews`."""
_FRACTION: Final = re.compile(r"\d[.,]\d+$")
"""The end of a number that a further element's digits seldom go on: `4.6` and `120`."""
_NUMBER_END: Final = re.compile(r"\d[^\W\d_]?$")
_WORD_END: Final = re.compile(r"[^\W\d_]{2}[a-z]$")
"""The end of a word in small letters, as no name ends that goes on with a number
(`COVID19`)."""


def part_links(node: Node) -> None:
    """Insert a space between adjacent links (of 15 such pairs in lower case one is one
    word)."""
    last_child = node.children[-1]
    if isinstance(last_child, Node) and last_child.tag == "a":
        node.children.append(" ")


def part_number(parent: Node, text: str, current: LexborNode, *, raised: bool) -> str:
    """Return `text`, which begins with a digit, separated from the number or word
    before it that it does not continue.

    Two digits that are a price's cents get a decimal point before them. Otherwise a
    space is added to the end of `parent` (changed in place), not to the returned text.

    Args:
        parent: Node to which the caller adds the text.
        text: The element's whole text.
        current: The element.
        raised: Whether it is raised, so that it may be a price's cents and nothing
            else."""
    if len(text) == 2 and text.isdecimal():
        after = current.next
        if after is not None and after.tag_id != TEXT_NODE:
            after = after.first_child
        following = (after.text_content or "")[:8] if after is not None else ""
        return (
            point_before(parent, current.attributes.get("class") or "", following)
            + text
        )
    if not raised and _is_counted_apart(parent, current, text):
        add_space(parent)
    return text


def _is_counted_apart(node: Node, current: LexborNode, text: str) -> bool:
    """Return whether a number in an element is separate from the number or word right
    before it."""
    before = last_text(node)
    if not before[-1:].isalnum():
        return False
    if current.prev is None or current.prev.tag_id != TEXT_NODE:
        return any(
            match is not None
            for match in (
                _COUNTED_THING.match(text),
                _WORD_END.search(before),
                _FRACTION.search(before),
            )
        )
    return (
        _COUNTED_THING.match(text) is not None
        and _NUMBER_END.search(before) is not None
    )


def is_apart(parent: Node, text: str, current: LexborNode, *, marks: bool) -> bool:
    """Return whether a capitalized inline element needs a space before it.

    A word in small letters may (`i<b>Phone</b>`, `Mac<b>Book</b>`) where text precedes
    an element that only `marks` words, and where it has been begun with one letter or
    two. One in capitals is its own before `Excellent`.
    """
    before = last_text(parent)
    follows_text = current.prev is not None and current.prev.tag_id == TEXT_NODE
    if before[-2:].isupper() and text[1:2].islower():
        return not follows_text
    if not before[-1:].islower() and before[-1:] not in {".", "!", "?", ")"}:
        return False
    if follows_text and marks:
        return False
    return not (follows_text or marks) or _BEGUN.search(before) is None
