"""Cleaning (HtmlRAG §3.2): from HTML as it came to a small tree that holds what a
person sees, and nothing else.

Scripts, styles, comments, templates, drawings and hidden elements go; attributes
without meaning go; tags that only wrap another are merged with it; empty ones are
dropped. Query-free and near-lossless in visible text; words of different blocks are
never glued.

This module walks the page and builds the tree; `seen.py` says what of an element is
seen. Not for: choosing what matters (`pipeline/prune`), cutting into blocks
(`blocks.py`).
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

from selectolax.lexbor import LexborNode

from cancellation import check_cancelled
from readers.html.addresses import base_of, rebase
from readers.html.furniture import content_words, is_title_of, says_furniture
from readers.html.guard import parse
from readers.html.marks import mark_cells
from readers.html.names import (
    BLANK,
    BOX,
    CELL,
    DROP,
    FRAME,
    IMAGE,
    LINE,
    NODE,
    PLACED,
    SAYS,
    THROUGH,
    Tag,
)
from readers.html.roles import as_marked, keep
from readers.html.seen import (
    APART,
    BOXED,
    EMPTY,
    MARKED,
    OPENS,
    PLAIN,
    STRUCK,
    UNEVEN,
    UNSEEN,
    WAITING_WORDS,
    Seen,
    Sight,
)
from readers.html.style import Shade
from readers.html.style_sheets import StyleJudge
from readers.html.values import bare_tex, text_of_media, title_of
from readers.page import TITLE_CHARACTERS
from readers.tree import (
    FURNITURE_NAME,
    MAX_DEPTH,
    NO_ATTRS,
    OPENED_NAME,
    STAYS_EMPTY,
    TEXT_NODE,
    Node,
    add_boxed,
    add_line,
    add_space,
    add_text,
    attach,
    count_words,
    is_apart,
    join_texts,
    part_links,
    part_number,
    text_of,
    trim,
)

_DRAWN_TEXT: Final = re.compile(r"math|latex|tex\b|emoji", re.IGNORECASE)

MAX_NODES: Final = 60_000
"""Maximum elements (and images) that are kept; of further ones only the text is kept.
The largest of 495 real pages has 9,000; 10 MB of their bodies, concatenated, have
36,000."""
MAX_FRAMES: Final = 20
"""Frames of a page that hold their own HTML (`srcdoc`) and are read."""
DRAWN: Final = " · "
"""Between the words of a drawing."""
Shown = Literal["", "waiting", "all"]
"""What of a page is read though its styles hide it: what waits for its scripts; all, since most is
hidden, and of many words."""


def clean(html: str) -> Node:
    """Return the cleaned tree of `html`; the root is always an `html` node, empty where
    there is nothing to see.

    A page that keeps nearly all of its words invisible until its scripts run is read as
    if they had run. One that was saved with a dialog open, so that `aria-hidden` covers
    most of its words, is read without the attribute there. One of which most is hidden
    for good is read as if nothing were, so that a style that we misread loses no
    page."""
    top = parse(html)
    return Node("html") if top is None else clean_parsed(top)[0]


def clean_parsed(
    top: LexborNode, most_nodes: int = MAX_NODES
) -> tuple[Node, int, Shown, int]:
    """Return the cleaned tree below the root element that `guard.parse` returned, the
    number of hidden words, what was read though styles hide it, and the number of hidden
    rows of tables."""
    styles = StyleJudge(top)  # once for all readings
    sight = Sight(top, styles)
    root, unseen = _Builder(sight, most_nodes).build()
    bodies = [
        child
        for child in root.children
        if isinstance(child, Node) and child.tag != "title"
    ]
    shown_words = sum(count_words(text_of(body)) for body in bodies)
    if sight.hid and (not bodies or unseen > max(shown_words, WAITING_WORDS)):
        return (
            _Builder(Sight(top, styles, show="all"), most_nodes).build()[0],
            0,
            "all",
            0,
        )
    if max(sight.soft_words, sight.covered_words) <= WAITING_WORDS:
        return root, unseen, "", sight.rows
    waits = sight.soft_words > 2 * sum(map(content_words, bodies))
    is_covered = sight.covered_words > shown_words
    if not (waits or is_covered):
        return root, unseen, "", sight.rows
    sight = Sight(
        top,
        styles,
        show="soft" if waits else "",
        uncovered=sight.covered if is_covered else frozenset(),
    )
    return *_Builder(sight, most_nodes).build(), "waiting", sight.rows


_LINE_MARKS: Final = {LINE: "\n", CELL: "\t"}
_UNSEEN_OR_BLANK: Final = UNSEEN | BLANK
"""What texts are left out."""
_NO_LEAF: Final = OPENS | UNSEEN | APART | STRUCK
"""What is found of an element whose only text is added as any other."""
_Begun = tuple[Node, bool, bool]
"""What an element's inside is added to, whether that is a listing, and whether the
element is a box or line of its own in what is around it."""
_Around = tuple[LexborNode | None, Node, bool, int, Shade, bool]
"""What holds again after an element: the next node, what that is added to, whether that
is a listing; of texts there `UNSEEN`, `BLANK` and `UNEVEN` where they are, and what
they inherit. Last whether the element was a box or line of its own."""


def _end_box(node: Node, pre: bool) -> None:
    """End a box in a node, or a line where that is a listing."""
    add_line(node) if pre else add_space(node)


def _add(node: Node, text: str, pre: bool, struck: int) -> None:
    """Add a text, in an element of its own where a style strikes it out."""
    if struck and not pre and not text.isspace():
        struck_text = Node("s")
        add_text(struck_text, text, pre)
        attach(node, struck_text)
    else:
        add_text(node, text, pre)


class _Furniture(dict[str, bool]):
    """Whether a class attribute or id names navigation, a banner or the like."""

    def __missing__(self, label: str) -> bool:
        """Return what a new label says, and remember it."""
        is_furniture = self[label] = says_furniture(label.lower())
        return is_furniture


class _Builder:
    """The walk over one page, which builds the tree of what is seen."""

    def __init__(
        self, sight: Sight, most_nodes: int = MAX_NODES, *, is_frame: bool = False
    ) -> None:
        """Take a page's sight; frames within a frame (`is_frame`) are not read."""
        self._sight = sight
        self._is_frame = is_frame
        self._most_nodes = most_nodes
        self._frames = self._images = self._made = self._steps = 0
        self._unseen_words = 0
        """Words in frames that no click brings to light."""
        self._furniture = _Furniture()
        self._cells: list[tuple[Node, LexborNode]] = []

    def build(self) -> tuple[Node, int]:
        """Return the tree of what is seen, and the number of words that no click brings
        to light."""
        sight = self._sight
        top, met, styled, verdicts = sight.top, sight.met, sight.styled, sight.verdicts
        language = top.attributes.get("lang")
        node = root = Node("html", {"lang": language} if language else NO_ATTRS)
        inherited, item = sight.styles.ground, top.first_child
        pre = False
        inside = inherited.unseen * (UNSEEN | UNEVEN) | inherited.lays_out * UNEVEN
        stack: list[_Around] = [(None, root, pre, inside, inherited, False)]
        while stack:
            while item is not None:
                current, number, item = item, item.tag_id, item.next
                if number == TEXT_NODE:
                    if not inside & _UNSEEN_OR_BLANK:
                        _add(node, current.text_content or "", pre, inside & STRUCK)
                    elif inside & UNSEEN:
                        sight.miss(current)
                    continue
                tag = met.get(number) or sight.meet(number, current)
                first_child = current.first_child
                if tag.kind <= PLACED:
                    first_child, item = sight.placed(tag, current, item)
                    if first_child is None:
                        continue
                attributes = current.attributes
                seen: Seen | None
                seen = current, tag, attributes, PLAIN, first_child, inherited
                if (
                    inside & UNEVEN
                    or tag.odd
                    or first_child is None
                    or (styled and current.mem_id in styled)
                    or (
                        attributes
                        and (
                            verdicts[attributes.get("class")]
                            or not tag.decisive.isdisjoint(attributes)
                        )
                    )
                ):
                    seen = sight.look(seen)
                    if seen is None:
                        continue
                opened = self._begin(seen, node, pre, len(stack))
                if opened is None:
                    continue
                stack.append((item, node, pre, inside, inherited, opened[2]))
                node, pre, _ = opened
                _, _, _, flags, item, inherited = seen
                inside = flags & (UNSEEN | UNEVEN | STRUCK) | tag.blank
            done = node
            item, node, pre, inside, inherited, boxed = stack.pop()
            if done is not node:
                attach(node, done)
            if boxed:
                _end_box(node, pre)
        trim(root)
        mark_cells(self._cells)
        root = join_texts(root) if self._made > self._most_nodes else root
        return root, sight.unseen_words + self._unseen_words

    def _begin(self, seen: Seen, parent: Node, pre: bool, depth: int) -> _Begun | None:
        """Return where the inside of an element is added; None where nothing is left to
        be added.

        Beyond `MAX_DEPTH` or `MAX_NODES` an element has no node of its own, and its
        text goes to `parent`.

        Args:
            seen: The element.
            parent: Its parent.
            pre: Whether that is a listing.
            depth: Elements around it, the root with them.
        """
        self._steps += 1
        if not self._steps & 0x3FFF:
            check_cancelled()
        _, tag, _, flags, first_child, _ = seen
        kind = tag.built
        if pre:
            kind = DROP if flags & OPENS else tag.listed
        if kind <= FRAME:
            self._add_replacement(seen, kind, parent, pre)
            return None
        if pre or flags:
            tag, kind, flags = self._as_found(seen, kind, parent, pre)
            if kind == DROP:
                return None
        if kind == NODE:
            self._made += 1
            if depth > MAX_DEPTH or self._made > self._most_nodes:
                kind = THROUGH if pre else BOX
        if (
            first_child is not None
            and first_child.tag_id == TEXT_NODE
            and first_child.next is None
            and not flags & _NO_LEAF
        ):
            self._add_leaf(seen, tag, kind, first_child, parent, pre)
            return None
        boxed = flags & APART != 0 or CELL < kind < NODE
        if kind == NODE:
            node = self._make(seen, tag, parent, pre)
            if flags & OPENS and not node.furniture:
                node.furniture = OPENED_NAME
            return node, pre or tag.verbatim, boxed
        if kind == BOX:
            add_space(parent)
        elif kind > THROUGH:
            add_line(parent, _LINE_MARKS[kind])
        return parent, pre, boxed

    def _as_found(
        self, seen: Seen, kind: int, parent: Node, pre: bool
    ) -> tuple[Tag, int, int]:
        """Return what an element is by what was found of it, and what was found that
        counts in its parent; what says a value is written, and dropped."""
        current, tag, attributes, flags, _, _ = seen
        is_empty = flags & EMPTY != 0
        if is_empty and tag.mute and parent.tag not in STAYS_EMPTY:
            return tag, DROP, flags
        if pre or flags & MARKED:
            tag, kind = as_marked(current, tag, kind, attributes, parent, pre)
        if is_empty and not tag.alone:
            return tag, DROP, flags
        if pre and kind == THROUGH and flags & BOXED:
            kind = LINE
        if pre or tag.block:
            flags &= ~APART
        elif flags & APART and kind != DROP:
            add_space(parent)
        return tag, kind, flags

    # Replacements for words

    def _add_replacement(self, seen: Seen, kind: int, parent: Node, pre: bool) -> None:
        """Add the text of an image, frame, drawing or the like; beyond `MAX_NODES`
        images, frames and drawings no more are added."""
        current, tag, attributes, _, _, shade = seen
        if kind == SAYS and tag.name != "svg":
            _add_said(parent, current, tag.name, attributes)
        elif kind != DROP and self._images < MAX_NODES and (kind == IMAGE or not pre):
            self._images += 1
            if kind == IMAGE:
                _add_image(parent, attributes)
            elif kind == FRAME:
                self._add_frame(parent, tag.name, attributes)
            else:
                words = self._sight.words_in(current, shade)
                _add_drawing(parent, current, attributes, words)

    def _add_frame(
        self, parent: Node, name: str, attributes: Mapping[str, str | None]
    ) -> None:
        """Read what a frame holds (`srcdoc`) in place of it; of another keep the
        address.

        A frame within a frame is not read, nor one after the first `MAX_FRAMES`;
        without an address it is dropped."""
        self._frames += 1
        held = attributes.get("srcdoc") or ""
        address = attributes.get("data-src") or attributes.get(
            "data" if name == "object" else "src"
        )
        is_read = name == "iframe" and not self._is_frame
        is_read = is_read and held != "" and self._frames <= MAX_FRAMES
        top = parse(held) if is_read else None
        if top is not None:
            self._add_framed(parent, held, top)
        elif address and self._frames <= MAX_NODES:
            parent.children.append(Node("iframe", {"href": address}))

    def _add_framed(self, parent: Node, held: str, top: LexborNode) -> None:
        """Add what the page in a frame shows, whose HTML and root these are."""
        builder = _Builder(Sight(top, StyleJudge(top)), is_frame=True)
        root, unseen = builder.build()
        box = Node("div")
        for child in _body_of(root):
            if isinstance(child, Node):
                attach(box, child)
            else:
                add_text(box, child, pre=False)
        rebase(box, base_of(held, ""))
        self._unseen_words += unseen
        attach(parent, box)

    def _add_leaf(
        self, seen: Seen, tag: Tag, kind: int, only: LexborNode, parent: Node, pre: bool
    ) -> None:
        """Add an element that holds one text and nothing else."""
        text = only.text_content or ""
        first_letter = text[:1]
        if not pre and (first_letter.isupper() or first_letter.isdecimal()):
            text = _parted(parent, tag, kind, text, seen[0])
        if kind == THROUGH:
            add_text(parent, text, pre)
        elif kind == BOX:
            if tag.name != "button" or text.strip().lower() not in {
                "copy",
                "copied",
                "copied!",
                "copy code",
                "copy to clipboard",
            }:
                add_boxed(parent, text, pre=pre)
        elif kind < NODE:  # of a listing
            add_line(parent, _LINE_MARKS[kind])
            add_text(parent, text, pre=True)
            if kind == LINE:
                add_line(parent)
        elif (verbatim := pre or tag.verbatim) or tag.stays or not text.isspace():
            node = self._make(seen, tag, parent, pre)
            add_text(node, text, verbatim)
            attach(parent, node)
        else:
            add_space(parent)

    def _make(self, seen: Seen, tag: Tag, parent: Node, pre: bool) -> Node:
        """Return the node of an element, with its meaningful attributes, marked as
        furniture by its tag, class or id.

        An id made from the element's own title does not mark it. Links before it are
        parted, in a listing (`pre`) not."""
        current, attributes = seen[0], seen[2]
        if tag.linking and not pre and parent.children:
            part_links(parent)
        node = Node(tag.name)
        node.furniture = tag.furniture
        if tag.name == "td":
            self._cells.append((node, current))
        if not (attributes or tag.listing):
            return node
        is_judged_by_name = tag.named
        if tag.listing or not tag.kept.isdisjoint(attributes):
            is_judged_by_name = keep(node, tag, attributes, current)
        if is_judged_by_name and (label := attributes.get("class")):
            node.furniture = FURNITURE_NAME * self._furniture[label]
        if is_judged_by_name and not node.furniture and (label := attributes.get("id")):
            node.furniture = FURNITURE_NAME * (
                self._furniture[label] and not is_title_of(label, current)
            )
        return node


def _body_of(root: Node) -> list[Node | str]:
    """Return the body of a cleaned page; text and elements beside it, the title aside,
    count as its content."""
    content: list[Node | str] = []
    for child in root.children:
        if isinstance(child, Node) and child.tag == "body":
            content += child.children
        elif isinstance(child, str) or child.tag != "title":
            content.append(child)
    return content


def _parted(parent: Node, tag: Tag, kind: int, text: str, current: LexborNode) -> str:
    """Return an element's only text (which begins with a digit or capital), with a
    space before it if it does not continue the text before."""
    if text[0].isdecimal():
        if kind == THROUGH or tag.name in {"sup", "time"}:
            return part_number(parent, text, current, raised=tag.name == "sup")
    elif not tag.block and parent.children:
        is_marked = kind == NODE and tag.name != "time"
        if is_apart(parent, text, current, marks=is_marked):
            add_space(parent)  # spans, dates and labels drawn as lines of their own
    return text


def _add_drawing(
    parent: Node, svg: LexborNode, attributes: dict[str, str | None], words: list[str]
) -> None:
    """Add the text of a drawing: what it is said to show as its label, else its title
    and the words that it draws."""
    if media_text := text_of_media(svg, "svg", attributes, parent.tag):
        add_boxed(parent, media_text, pre=False)
        return
    if alt := title_of(svg, attributes):
        _add_image(parent, {"alt": alt})
    if len(words) > 1 and parent.breaks:
        box = Node("div")
        add_text(box, DRAWN.join(words), pre=False)
        attach(parent, box)
    elif words:
        add_boxed(parent, DRAWN.join(words), pre=False)


def _add_said(
    node: Node, current: LexborNode, name: str, attributes: dict[str, str | None]
) -> None:
    """Add what an element other than an image says; a formula within a line stays
    there."""
    media_text = text_of_media(current, name, attributes, node.tag)
    if media_text and name == "math" and attributes.get("display") != "block":
        add_text(node, media_text, pre=False)
    elif media_text:
        add_boxed(node, media_text, pre=False)


def _add_image(node: Node, attributes: dict[str, str | None]) -> None:
    """Keep an image with an alt text of at most `TITLE_CHARACTERS` characters; formulas and
    emoji drawn as images become text.

    One without an alt text, or hidden from screen readers, is dropped."""
    alt = " ".join((attributes.get("alt") or "").split())
    if not alt:
        return
    if _DRAWN_TEXT.search(attributes.get("class") or ""):
        node.children.append(bare_tex(alt))
    elif attributes.get("aria-hidden") == "true":
        return
    elif len(alt) <= TITLE_CHARACTERS:
        node.children.append(Node("img", {"alt": alt}))
