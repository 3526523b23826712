"""Cleaning (HtmlRAG §3.2): from HTML as it came to a small tree that holds what a person sees, and nothing else.

Scripts, styles, comments, templates, drawings and hidden elements go; attributes without meaning go; tags that only
wrap another are merged with it; empty ones are dropped. Query-free and near-lossless in visible text; words of
different blocks are never glued. Not for: choosing what matters (`prune.py`), cutting into blocks (`blocks.py`).
"""

import re
from collections.abc import Set
from typing import Final, Literal

from selectolax.lexbor import LexborNode

from pipeline.html.furniture import content_words, says_furniture
from pipeline.html.guard import parse
from pipeline.html.hidden import READER_CLASSES, READER_WORDS, Hiding, StyleJudge, colour
from pipeline.html.tree import BLOCK_TAGS, MAX_DEPTH, Node, add_space, add_text, count_words, tags, text_of, trim
from pipeline.work import check_cancelled

_DROPPED: Final = tags(
    "annotation annotation-xml applet area audio base basefont bgsound canvas col colgroup command datalist embed "
    "frame frameset iframe "
    "img input link map meta noembed noframes noscript object param rp script source style "
    "svg template track video"
)
"""Elements of which a person sees nothing, or nothing in words."""
_NEUTRAL: Final = tags("center dir div fieldset form hgroup section search")
"""Blocks that say nothing beyond where a line begins: merged with an only child or an only parent."""
_KEPT_BLOCKS: Final = tags(
    "address article aside blockquote body caption dd details dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header "
    "hr html legend li main menu nav ol option p pre select summary table td textarea th thead title tr ul"
)
_KEPT_INLINE: Final = tags(
    "a abbr b br cite code del dfn em i ins kbd mark math q s samp strike strong sub sup time tt u var"
)
_SPACED: Final = tags("button label optgroup output")
"""Inline elements drawn as boxes of their own; a space keeps their words apart from the text around."""
_HOLDS_ITS_P: Final = tags("blockquote caption dd dt figcaption li summary td th")
_STAYS_EMPTY: Final = frozenset({"td", "th"})
_LINE_ENDS: Final = frozenset({"br", "hr"})
_ROOTS: Final = frozenset({"html", "body"})
"""Never taken as hidden: pages hide them only until their scripts have run."""
_VERBATIM: Final = frozenset({"pre", "textarea"})
_BOXES: Final = frozenset({"form", "pre", "table"})
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
_PERMALINKS: Final = frozenset({"¶", "#", "§", "🔗", "¶ ", "Permalink", "\uf0c1"})
_DRAWN_TEXT: Final = re.compile(r"math|latex|tex\b|emoji", re.IGNORECASE)
_LONGEST_ALT: Final = 300
_NAMED: Final = tags("aside dialog div fieldset figure form header legend menu ol p section table ul")
"""Elements whose class and id are asked for boilerplate names."""


MAX_NODES: Final = 100_000
"""Elements that are kept as such; of further ones the text is kept. The largest of 495 real pages has 9,000."""
WAITING_WORDS: Final = 100
"""Words hidden by opacity or visibility from which a page may be waiting for its scripts."""

_DROP, _THROUGH, _BOX, _NODE = range(4)


def _plan_of(name: str) -> int:
    if name in _DROPPED:
        return _DROP
    if name in _KEPT_BLOCKS or name in _NEUTRAL or name in _KEPT_INLINE:
        return _NODE
    return _BOX if name in _SPACED or "-" in name else _THROUGH


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
        self._plans: dict[int, tuple[str, int]] = {}
        self._boilerplate: dict[str, bool] = {}
        self._verdicts: dict[str, Literal["", "soft", "hard", "reader", "dropped"]] = {"": ""}
        self._watched = {"aria-hidden", "color", "hidden", "style"}

    def run(self, top: LexborNode) -> Node:  # noqa: PLR0912, PLR0915  one walk; calls per element cost a third
        """Return the tree below `top`; `above` holds, for each element being read, where to go on after it."""
        root = self._begun(top)
        plans, verdicts, watched = self._plans, self._verdicts, self._watched
        above: list[tuple[LexborNode | None, Node, bool, str, bool]] = []
        node, pre, behind, steps, made = root, False, "", 0, 0
        item = top.first_child
        while item is not None or above:
            if item is None:
                done = node
                item, node, pre, behind, boxed = above.pop()
                if done is not node:
                    _attach(node, done)
                elif boxed:
                    add_space(node)
                continue
            steps += 1
            if not steps & 0x3FFF:
                check_cancelled()
            current, item = item, item.next
            tag = current.tag_id
            if tag == _TEXT:
                add_text(node, current.text_content or "", pre=pre)
                continue
            name, plan = plans.get(tag) or self._plan(current, tag)
            if plan == _DROP:
                if name == "img":
                    _add_image(node, current)
                continue
            attributes = current.attributes
            shade = behind
            if name == "dialog" and "open" not in attributes and not self._show:
                continue
            told = attributes and name not in _ROOTS
            if told and (verdicts.get(attributes.get("class") or "") != "" or not watched.isdisjoint(attributes)):
                hides, shade = self._hides(current, attributes, behind)
                if hides:
                    self.hid = True
                    continue
            below = current.first_child
            if below is None and name not in _STAYS_EMPTY and name not in _LINE_ENDS:
                continue
            if plan == _NODE:
                made += 1
                if len(above) >= MAX_DEPTH or made > MAX_NODES:
                    plan = _BOX
            if below is not None and below.tag_id == _TEXT and below.next is None:
                self._add_leaf(node, name, attributes, below.text_content or "", plan, pre)
                continue
            above.append((item, node, pre, behind, plan == _BOX))
            behind = shade
            if plan == _NODE:
                node = self._make(name, attributes)
                pre = pre or name in _VERBATIM
            elif plan == _BOX:
                add_space(node)
            item = below
        trim(root)
        return root

    def _add_leaf(
        self, parent: Node, name: str, attributes: dict[str, str | None], text: str, plan: int, pre: bool
    ) -> None:
        """Add an element that holds one text and nothing else."""
        if plan == _NODE:
            node = self._make(name, attributes)
            add_text(node, text, pre=pre or name in _VERBATIM)
            _attach(parent, node)
            return
        if plan == _BOX:
            add_space(parent)
        add_text(parent, text, pre=pre)
        if plan == _BOX:
            add_space(parent)

    def _begun(self, top: LexborNode) -> Node:
        """Read the page's own style sheets; return the root that the walk fills."""
        root = Node("html")
        if language := top.attributes.get("lang"):
            root.attrs = {"lang": language}
        for sheet in top.css("style"):
            self._styles.read_sheet(sheet.text(deep=True))
        if self._styles.has_id_rules:
            self._watched.add("id")
        return root

    def _plan(self, current: LexborNode, tag: int) -> tuple[str, int]:
        name = current.tag or ""
        found = name, _DROP if name.startswith(("-", "!")) else _plan_of(name)
        if tag < 1000:  # ids above are addresses, which another document may use for another name
            self._plans[tag] = found
        return found

    def _hides(  # noqa: PLR0911  one return a reason
        self, current: LexborNode, attributes: dict[str, str | None], behind: str
    ) -> tuple[bool, str]:
        """Return whether an element is hidden, and the background behind its text."""
        classes = attributes.get("class") or ""
        verdict = self._verdicts.get(classes)
        if verdict is None:
            verdict = self._verdicts[classes] = self._judge_classes(classes)
        if not verdict and attributes.keys().isdisjoint(self._watched):
            return False, behind
        if verdict == "dropped":
            return True, behind
        if self._show == "all":
            return False, behind
        if "hidden" in attributes and attributes["hidden"] != "until-found":
            return True, behind
        if attributes.get("aria-hidden") == "true" and current.mem_id not in self._uncovered:
            self._cover(current)
            return True, behind
        if verdict == "reader":
            return len(current.text(deep=True).split()) > READER_WORDS, behind
        hiding: Hiding = verdict
        if self._styles.has_id_rules and (anchor := attributes.get("id")):
            hiding = self._styles.judge_names([f"#{anchor}", *(f".{name}" for name in classes.split())])
        if style := attributes.get("style"):
            own, own_background = self._styles.judge(style, behind)
            hiding = own or hiding
            behind = own_background or behind
        if hiding:
            if hiding == "soft" and not self._show:
                self.soft_words += len(current.text(deep=True).split())
            return hiding == "hard" or self._show != "soft", behind
        ink = attributes.get("color")
        if ink and behind and current.tag == "font" and colour(ink) == behind:
            return True, behind
        return False, behind

    def _cover(self, current: LexborNode) -> None:
        """Note an element that `aria-hidden` covers, if it is long."""
        words = len(current.text(deep=True).split())
        if words > WAITING_WORDS:
            self.covered.add(current.mem_id)
            self.covered_words += words

    def _judge_classes(self, classes: str) -> Literal["", "soft", "hard", "reader", "dropped"]:
        """Return what the value of a class attribute alone says about an element."""
        names = classes.split()
        if not _DROPPED_CLASSES.isdisjoint(names):
            return "dropped"
        if not READER_CLASSES.isdisjoint(names):
            return "reader"
        return self._styles.judge_names([f".{name}" for name in names])

    def _make(self, name: str, attributes: dict[str, str | None]) -> Node:
        """Return the node of an element, with the attributes that mean something."""
        if not attributes:
            node = Node(name)
            node.furniture = name in _FURNITURE
            return node
        role = attributes.get("role")
        if role and name in _NEUTRAL:
            name = _ROLES.get(role) or name
            if role == "heading":
                level = attributes.get("aria-level") or "2"
                name = f"h{level}" if level in "123456" else "h6"
        node = Node(name)
        node.furniture = name in _FURNITURE
        wanted = _ATTRIBUTES.get(name)
        kept = {key: attributes[key] or "" for key in wanted if key in attributes} if wanted else {}
        if (language := attributes.get("lang")) and name not in _KEPT_INLINE:
            kept["lang"] = language
        if kept:
            node.attrs = kept
        if name == "table" and role in {"presentation", "none"}:
            node.attrs = {**node.attrs, "role": "presentation"}
        if not node.furniture and name in _NAMED:
            label = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
            known = self._boilerplate.get(label)
            if known is None:
                known = self._boilerplate[label] = says_furniture(label.lower())
            node.furniture = known
        return node


def _add_image(node: Node, image: LexborNode) -> None:
    """Keep an image that says what it shows; formulas and emoji drawn as images become the text they stand for."""
    attributes = image.attributes
    alt = " ".join((attributes.get("alt") or "").split())
    if not alt or attributes.get("aria-hidden") == "true" or "hidden" in attributes:
        return
    if _DRAWN_TEXT.search(attributes.get("class") or ""):
        node.children.append(alt)
    elif len(alt) <= _LONGEST_ALT:
        node.children.append(Node("img", {"alt": alt}))


def _attach(parent: Node, node: Node) -> None:
    """Put a finished node below its parent: empty ones vanish, single-nested ones are merged (HtmlRAG §3.2.2)."""
    children = node.children
    tag = node.tag
    if children and tag in BLOCK_TAGS and children[-1].__class__ is str:
        trim(node)
    if not children:
        if tag not in _STAYS_EMPTY and tag not in _LINE_ENDS:
            return
    elif len(children) == 1:
        only = children[0]
        if isinstance(only, Node):
            if tag in _NEUTRAL and only.breaks and only.tag in BLOCK_TAGS:
                only.furniture = only.furniture or node.furniture
                if only.tag in _NEUTRAL and not only.furniture and node.attrs and not only.attrs:
                    only.attrs = node.attrs
                node = only
            elif node.tag in BLOCK_TAGS and (only.tag in _NEUTRAL or (only.tag == "p" and tag in _HOLDS_ITS_P)):
                node.children = only.children
                node.furniture = node.furniture or only.furniture
        elif tag == "a" and only in _PERMALINKS:
            return
        elif only == " " and tag not in _STAYS_EMPTY:
            if not node.breaks:
                add_space(parent)
            return
    if node.breaks:
        _note_block(parent, node)
    parent.children.append(node)


def _note_block(parent: Node, node: Node) -> None:
    """Say of `parent` what is known of a node that is a block or holds one."""
    if node.tag in BLOCK_TAGS:
        trim(parent)
    parent.breaks = True
    parent.boxed = parent.boxed or node.boxed or node.tag in _BOXES
