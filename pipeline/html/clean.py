"""Cleaning (HtmlRAG §3.2): from HTML as it came to a small tree that holds what a person sees, and nothing else.

Scripts, styles, comments, templates, drawings and hidden elements go; attributes without meaning go; tags that only
wrap another are merged with it; empty ones are dropped. Query-free and near-lossless in visible text; words of
different blocks are never glued. Not for: choosing what matters (`pipeline/prune`), cutting into blocks (`blocks.py`).
"""

import re
from collections.abc import Set
from typing import Final, Literal

from selectolax.lexbor import LexborNode

from pipeline.html.furniture import content_words, says_furniture
from pipeline.html.guard import parse
from pipeline.html.hidden import READER_CLASSES, Hiding, StyleJudge, can_be_opened, colour, is_drawn, is_long
from pipeline.html.tree import (
    BLOCK_TAGS,
    LINE_ENDS,
    LONGEST_LABEL,
    MAX_DEPTH,
    NEUTRAL,
    STAYS_EMPTY,
    Node,
    add_boxed,
    add_space,
    add_text,
    attach,
    count_words,
    ends_a_line,
    join_texts,
    tags,
    text_of,
    trim,
)
from pipeline.work import check_cancelled

_DROPPED: Final = tags(
    "annotation annotation-xml applet area audio base basefont bgsound canvas col colgroup command datalist embed "
    "frame frameset iframe img input link map meta noembed noframes noscript object param rp script source style svg "
    "track video"
)
"""Elements of which a person sees nothing, or nothing in words."""
_KEPT_BLOCKS: Final = tags(
    "address article aside blockquote body caption dd details dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header "
    "hr html legend li main menu nav ol option p pre select summary table td textarea th thead title tr ul"
)
_KEPT_INLINE: Final = tags(
    "a abbr b br cite code del dfn em i ins kbd mark math q s samp strike strong sub sup time tt u var"
)
_SPACED: Final = tags("button label optgroup output")
"""Inline elements drawn as boxes of their own; a space keeps their words apart from the text around."""
_WATCHED: Final = frozenset({"aria-hidden", "color", "hidden", "style"})
"""Attributes that may hide an element."""
_ROOTS: Final = frozenset({"html", "body"})
"""Never taken as hidden: pages hide them only until their scripts have run."""
_VERBATIM: Final = frozenset({"pre", "textarea"})
_TEXT: Final = 2
"""Lexbor's tag id of text."""
_ROLES: Final = {
    "banner": "header",
    "complementary": "aside",
    "contentinfo": "footer",
    "main": "main",
    "navigation": "nav",
    "heading": "",
}
_ATTRIBUTES: Final = {
    "a": ("href",),
    "abbr": ("title",),
    "html": ("lang",),
    "li": ("value",),
    "ol": ("start", "type", "reversed"),
    "td": ("colspan", "rowspan"),
    "th": ("colspan", "rowspan", "scope"),
    "time": ("datetime",),
}
_FURNITURE: Final = frozenset({"aside", "footer", "nav", "select"})
_DROPPED_CLASSES: Final = frozenset({"mw-editsection", "mw-empty-elt", "mw-jump-link", "sortkey"})
_TELLING_CLASSES: Final = _DROPPED_CLASSES | READER_CLASSES
_DRAWN_TEXT: Final = re.compile(r"math|latex|tex\b|emoji", re.IGNORECASE)
_NAMED: Final = tags("aside dialog div fieldset figure form header legend menu ol p section table ul")
"""Elements whose class and id are asked for boilerplate names."""

MAX_NODES: Final = 60_000
"""Elements that are kept as such, and images; of further ones the text is kept. The largest of 495 real pages has
9,000; 10 MB of their bodies, one behind the other, have 36,000."""
WAITING_WORDS: Final = 100
"""Words hidden by opacity or visibility from which a page may be waiting for its scripts."""

_SEGMENT_PLACE: Final = re.compile(r"(.*)[BP]:([0-9a-f]+)")
"""Id of the place of a segment `S:…`: a page streamed by React sends it closed, and a script moves it there. The pair
is enough, as pages are stored without their scripts."""
MAX_FALLBACK: Final = 100
"""Nodes beside the place of a segment among which the end of what stands there meanwhile is looked for."""

_DROP, _IMAGE, _SHUT, _PLACE, _THROUGH, _BOX, _NODE = range(7)
"""Left out; images; dialogs, which are shut until opened; places of segments that came later; text kept; text kept with
blanks around it; kept."""
_Verdict = Literal["", "soft", "shut", "hard", "reader", "dropped"]


class _Tag:
    """What is to be done with the elements of one name; made once a name, since asking sets for each costs a tenth."""

    __slots__ = (
        "attributes", "block", "drawn", "furniture", "is_custom", "kind", "name", "named", "neutral", "shown", "stays",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        """Look a name up in all that is said of names above."""
        self.name = name
        self.kind = {"img": _IMAGE, "dialog": _SHUT, "template": _PLACE}.get(name, _DROP)
        if name in _KEPT_BLOCKS or name in NEUTRAL or name in _KEPT_INLINE:
            self.kind = _NODE
        elif not name.startswith(("-", "!")) and name not in _DROPPED and self.kind == _DROP:
            self.kind = _BOX if name in _SPACED or "-" in name else _THROUGH
        self.is_custom = self.kind == _BOX and "-" in name
        """A custom element: drawn as a box, but in a listing it colours the code."""
        self.block = name in BLOCK_TAGS
        self.furniture = name in _FURNITURE
        self.named = name in _NAMED and not self.furniture
        self.neutral = name in NEUTRAL
        self.stays = name in STAYS_EMPTY
        self.drawn = self.stays or name in LINE_ENDS
        """Whether it means something without a child."""
        self.shown = name in _ROOTS
        self.attributes = _ATTRIBUTES.get(name, ())


def clean(html: str) -> Node:
    """Return the cleaned tree of `html`; the root is always an `html` node, empty where there is nothing to see.

    A page that keeps nearly all of its words invisible until its scripts run is read as if they had run. One that was
    saved with a dialog open, so that `aria-hidden` covers most of its words, is read without the attribute there.
    """
    top = parse(html)
    return Node("html") if top is None else clean_parsed(top)


def clean_parsed(top: LexborNode) -> Node:
    """Return the cleaned tree below the root element that `guard.parse` returned."""
    cleaner = _Cleaner()
    root = cleaner.run(top)
    bodies = [child for child in root.children if isinstance(child, Node) and child.tag != "title"]
    if cleaner.hid and not bodies:
        return _Cleaner(show="all").run(top)
    if max(cleaner.soft_words, cleaner.covered_words) > WAITING_WORDS:
        shown = sum(count_words(text_of(body)) for body in bodies)
        waits = cleaner.soft_words > 2 * sum(content_words(body) for body in bodies)
        if waits or cleaner.covered_words > shown:
            covered = cleaner.covered if cleaner.covered_words > shown else set()
            return _Cleaner(show="soft" if waits else "", uncovered=covered).run(top)
    return root


class _Cleaner:
    """State of one cleaning."""

    def __init__(self, *, show: Literal["", "soft", "all"] = "", uncovered: Set[int] = frozenset()) -> None:
        self._show = show
        self._uncovered = uncovered
        self.covered: set[int] = set()
        """Addresses of elements of more than `WAITING_WORDS` words that `aria-hidden` covers."""
        self.covered_words = 0
        """Words in them."""
        self._styles = StyleJudge()
        self.hid = False
        """Whether anything was hidden."""
        self.soft_words = 0
        """Words that were hidden by opacity or visibility, which pages use before an animation."""
        self._boilerplate: dict[str, bool] = {}
        self._images = 0
        self._met: dict[int, _Tag] = {}
        """By Lexbor's numbers for names, which mean something in one page only."""
        self._verdicts: dict[str | None, _Verdict] = {None: ""}
        self._telling: Set[str] = _TELLING_CLASSES
        self._ids: Set[str] = frozenset()
        self._top: LexborNode | None = None
        self._controlled: Set[str] | None = None
        self._segments: dict[str, LexborNode] | None = None

    def run(self, top: LexborNode) -> Node:  # noqa: PLR0912, PLR0915  one walk; calls per element cost a third
        """Return the tree below `top`; `above` holds, for each element being read, where to go on after it."""
        root = self._begun(top)
        verdicts, ids, met = self._verdicts, self._ids, self._met
        above: list[tuple[LexborNode | None, Node, bool, str, bool]] = []
        item, node, pre, behind, steps, made = top.first_child, root, False, "", 0, 0
        while item is not None or above:
            if item is None:
                done = node
                item, node, pre, behind, boxed = above.pop()
                if done is not node:
                    attach(node, done)
                elif boxed:
                    add_space(node)
                continue
            current, item = item, item.next
            number = current.tag_id
            if number == _TEXT:
                add_text(node, current.text_content or "", pre=pre)
                continue
            steps += 1
            if not steps & 0x3FFF:
                check_cancelled()
            tag = met.get(number) or self._meet(current, number)
            kind = _THROUGH if pre and tag.is_custom else tag.kind
            below, opened = current.first_child, False
            if kind <= _SHUT:
                if self._is_left_out(current, kind, node):
                    continue
                kind, opened = _NODE, "open" not in current.attributes
            elif kind == _PLACE:
                below, item, kind = *self._segment(current), _THROUGH
            if below is None and not tag.drawn:
                continue
            attributes, shade = current.attributes, behind
            if attributes and not tag.shown:
                verdict = verdicts.get(attributes.get("class"))
                if verdict is None:
                    verdict = self._judge_classes(attributes["class"] or "")
                if verdict or not _WATCHED.isdisjoint(attributes) or (ids and attributes.get("id") in ids):
                    hiding, shade = self._hides(current, attributes, behind, verdict)
                    self.hid = self.hid or hiding != ""
                    if hiding and not (opened := hiding == "shut" and tag.block and self._opens(current, attributes)):
                        continue
            made += kind == _NODE
            if kind == _NODE and (len(above) >= MAX_DEPTH or made > MAX_NODES):
                kind = _BOX
            if below is not None and below.tag_id == _TEXT and below.next is None and not opened:
                self._add_leaf(node, tag, kind, attributes, below.text_content or "", pre)
                continue
            above.append((item, node, pre, behind, kind == _BOX))
            behind, item = shade, below
            if kind == _NODE:
                node = self._make(tag, attributes)
                node.furniture = node.furniture or opened
                pre = pre or tag.name in _VERBATIM
            elif kind == _BOX:
                add_space(node)
        trim(root)
        return join_texts(root) if made > MAX_NODES else root

    def _meet(self, current: LexborNode, number: int) -> _Tag:
        """Return what is to be done with an element whose name is met for the first time."""
        tag = self._met[number] = _Tag(current.tag or "-")
        return tag

    def _is_left_out(self, current: LexborNode, kind: int, parent: Node) -> bool:
        """Whether nothing below an element is read: what shows no words, images, and dialogs that stay shut."""
        if kind == _DROP:
            return True
        attributes = current.attributes
        if kind == _IMAGE and self._images < MAX_NODES and attributes.get("alt"):
            self._images += 1
            if self._judge_classes(attributes.get("class") or "") in {"", "soft"} and is_drawn(attributes):
                _add_image(parent, attributes)
        return kind != _SHUT or not ("open" in attributes or self._show or self._opens(current, attributes))

    def _opens(self, current: LexborNode, attributes: dict[str, str | None]) -> bool:
        """Whether a closed element is one that a reader opens."""
        if self._controlled is None:
            buttons = self._top.css("[aria-controls]") if self._top else []
            self._controlled = frozenset(
                " ".join(button.attributes["aria-controls"] or "" for button in buttons).split()
            )
        return can_be_opened(current, attributes, self._controlled)

    def _segment(self, place: LexborNode) -> tuple[LexborNode | None, LexborNode | None]:
        """Return the first node of the segment that belongs at `place`, once, and the node to go on with behind it.

        What stands there meanwhile, between the marks `$?` and `/$`, is passed over.
        """
        named = _SEGMENT_PLACE.fullmatch(place.attributes.get("id") or "")
        if named is None:
            return None, place.next
        if self._segments is None:
            nodes = self._top.css("[hidden][id*='S:']") if self._top else []
            self._segments = {node.attributes["id"] or "": node for node in nodes}
        segment = self._segments.pop(f"{named[1]}S:{named[2]}", None)
        if segment is None:
            return None, place.next
        before, depth, behind = place.prev, 0, place.next
        if before is not None and _mark(before).startswith("$"):
            for _ in range(MAX_FALLBACK):
                if behind is None or (depth == 0 and _mark(behind) == "/$"):
                    return segment.first_child, behind
                depth += {"/$": -1, "$": 1, "$?": 1, "$!": 1}.get(_mark(behind), 0)
                behind = behind.next
        return segment.first_child, place.next

    def _add_leaf(
        self, parent: Node, tag: _Tag, kind: int, attributes: dict[str, str | None], text: str, pre: bool
    ) -> None:
        """Add an element that holds one text and nothing else."""
        if (
            not pre
            and text[:1].isupper()
            and (
                ((kind == _THROUGH or tag.name == "time") and ends_a_line(parent))
                or (tag.name == "a" and _ends_in_link(parent))
            )
        ):
            add_space(parent)  # spans, dates and links drawn as lines of their own
        if kind == _THROUGH:
            add_text(parent, text, pre=pre)
        elif kind == _BOX:
            add_boxed(parent, text, pre=pre)
        elif pre or tag.name in _VERBATIM:
            node = self._make(tag, attributes)
            add_text(node, text, pre=True)
            attach(parent, node)
        elif not text.isspace() or tag.stays:
            node = self._make(tag, attributes)
            add_text(node, text, pre=False)
            attach(parent, node)
        elif not tag.block:
            add_space(parent)

    def _begun(self, top: LexborNode) -> Node:
        """Read the page's own style sheets; return the root that the walk fills."""
        self._top = top
        root = Node("html")
        if language := top.attributes.get("lang"):
            root.attrs = {"lang": language}
        for sheet in top.css("style"):
            self._styles.read_sheet(sheet.text(deep=True))
        classes, self._ids = self._styles.names()
        self._telling = _TELLING_CLASSES | classes
        return root

    def _hides(  # noqa: PLR0911  one return a reason
        self, current: LexborNode, attributes: dict[str, str | None], behind: str, verdict: _Verdict
    ) -> tuple[Hiding, str]:
        """Return how an element is hidden, and the background behind its text."""
        if verdict == "dropped":
            return "hard", behind
        if self._show == "all":
            return "", behind
        closed = "hidden" in attributes and attributes["hidden"] != "until-found"
        if not closed and attributes.get("aria-hidden") == "true" and current.mem_id not in self._uncovered:
            self._cover(current)
            closed = True
        if verdict == "reader":
            return "hard" if closed or is_long(current) else "", behind
        hiding: Hiding = verdict
        if self._ids and (anchor := attributes.get("id")) in self._ids:
            classes = (attributes.get("class") or "").split()
            hiding = self._styles.judge_names([f"#{anchor}", *(f".{name}" for name in classes)])
        if style := attributes.get("style"):
            own, own_background = self._styles.judge(style, behind)
            hiding = hiding if hiding == "hard" else own or hiding
            behind = own_background or behind
        if hiding == "hard" or closed:
            return hiding if hiding == "hard" else "shut", behind
        if hiding == "soft":
            if not self._show:
                self.soft_words += count_words(current.text(deep=True))
            return "" if self._show == "soft" else "soft", behind
        ink = attributes.get("color")
        if ink and behind and current.tag == "font" and colour(ink) == behind:
            return "hard", behind
        return hiding, behind

    def _cover(self, current: LexborNode) -> None:
        """Note an element that `aria-hidden` covers, if it is long."""
        words = count_words(current.text(deep=True))
        if words > WAITING_WORDS:
            self.covered.add(current.mem_id)
            self.covered_words += words

    def _judge_classes(self, classes: str) -> _Verdict:
        """Return what the value of a class attribute alone says about an element, and remember it."""
        names = classes.split()
        verdict: _Verdict = ""
        if not self._telling.isdisjoint(names):
            if not _DROPPED_CLASSES.isdisjoint(names):
                verdict = "dropped"
            elif not READER_CLASSES.isdisjoint(names):
                verdict = "reader"
            else:
                verdict = self._styles.judge_names([f".{name}" for name in names])
        self._verdicts[classes] = verdict
        return verdict

    def _make(self, tag: _Tag, attributes: dict[str, str | None]) -> Node:
        """Return the node of an element, with the attributes that mean something."""
        node = Node(tag.name)
        node.furniture = tag.furniture
        if not attributes:
            return node
        named = tag.named
        if tag.neutral and (role := attributes.get("role")):
            name = _ROLES.get(role) or tag.name
            if role == "heading":
                level = attributes.get("aria-level") or "2"
                name = f"h{level}" if level in "123456" else "h6"
            node.tag = name
            node.furniture = name in _FURNITURE
            named = name in _NAMED and not node.furniture
        kept = {}
        for key in tag.attributes:
            if key in attributes:
                kept[key] = attributes[key] or ""
        if tag.block and (language := attributes.get("lang")):
            kept["lang"] = language
        if tag.name == "table" and attributes.get("role") in {"presentation", "none"}:
            kept["role"] = "presentation"
        if kept:
            node.attrs = kept
        if named and (label := attributes.get("class")):
            node.furniture = self._says_furniture(label)
        if named and not node.furniture and (label := attributes.get("id")):
            node.furniture = self._says_furniture(label)
        return node

    def _says_furniture(self, label: str) -> bool:
        """Whether a class attribute or id names navigation, a banner or the like."""
        known = self._boilerplate.get(label)
        if known is None:
            known = self._boilerplate[label] = says_furniture(label.lower())
        return known


def _ends_in_link(node: Node) -> bool:
    """Whether a link to whole words stands last, as no link goes on with a capital right behind it."""
    last = node.children[-1] if node.children else ""
    return isinstance(last, Node) and last.tag == "a" and ends_a_line(last)


def _mark(node: LexborNode) -> str:
    """Return the text of a comment, empty for any other node."""
    return (node.comment_content or "").strip() if node.is_comment_node else ""


def _add_image(node: Node, attributes: dict[str, str | None]) -> None:
    """Keep an image that says what it shows; formulas and emoji drawn as images become the text they stand for."""
    alt = " ".join((attributes.get("alt") or "").split())
    if not alt:
        return
    if _DRAWN_TEXT.search(attributes.get("class") or ""):
        node.children.append(alt)
    elif len(alt) <= LONGEST_LABEL:
        node.children.append(Node("img", {"alt": alt}))
