"""Cleaning (HtmlRAG §3.2): from HTML as it came to a small tree that holds what a person sees, and nothing else.

Scripts, styles, comments, templates, drawings and hidden elements go; attributes without meaning go; tags that only
wrap another are merged with it; empty ones are dropped. Query-free and near-lossless in visible text; words of
different blocks are never glued. Not for: choosing what matters (`pipeline/prune`), cutting into blocks (`blocks.py`).
"""

import re
from collections.abc import Set
from functools import lru_cache
from typing import Final, Literal

from selectolax.lexbor import LexborNode

from pipeline.html.furniture import content_words, is_title_of, says_furniture
from pipeline.html.guard import Segments, parse
from pipeline.html.sheets import Place, StyleJudge
from pipeline.html.style import READER_CLASSES, Hiding, Shade, can_be_opened, is_drawn, is_long
from pipeline.html.tree import (
    BLOCK_TAGS,
    LINE_ENDS,
    LINES,
    MAX_DEPTH,
    NAMED,
    NEUTRAL,
    OPENED,
    ROLE_ROW,
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
    tags,
    text_of,
    trim,
)
from pipeline.html.values import bare_tex, is_listing, language_of, said_by, stands_for, title_of
from pipeline.read.converted import PLACE
from pipeline.text.frame import LONGEST
from pipeline.work import check_cancelled

_DROPPED: Final = tags(
    "applet area audio base basefont bgsound canvas col colgroup command datalist embed frame "
    "frameset iframe img input link map math meta noembed noframes noscript object param rp script source style svg "
    "track video"
)
"""Elements of which a person sees nothing, or nothing in words."""
_KEPT_BLOCKS: Final = tags(
    "address article aside blockquote body caption dd details dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header "
    "hr html legend li main menu nav ol option p pre select summary table td textarea th thead title tr ul"
)
_KEPT_INLINE: Final = tags(
    "a abbr b br cite code del dfn em i ins kbd mark q rt s samp strike strong sub sup time tt u var"
)
_SPACED: Final = tags("button label meter optgroup output progress")
"""Inline elements drawn as boxes of their own; a space keeps their words apart from the text around."""
_SPEAKING: Final = tags("canvas input math script svg")
"""Elements without text of their own that may stand for words."""
_VALUED: Final = tags("meter progress span time")
"""Elements that may hold nothing and yet say something by their attributes, as any may in a table's cell."""
_UNCHANGED: Final = tags("del ins rt s strike sub sup")
"""Marked where they stand in a sentence, but nothing is inserted in a listing."""
_GRID_ROLES: Final = {
    "table": "table", "grid": "table", "treegrid": "table", "row": "tr", "rowgroup": "span",
    "cell": "td", "gridcell": "td", "columnheader": "th", "rowheader": "th",
}  # fmt: skip
_ROLE_PARENTS: Final = frozenset({"table", ROLE_ROW})
"""In them, what has no role only wraps rows or cells."""
_TABLE_TAGS: Final = tags("table tbody td tfoot th thead tr")
_HOLDERS: Final = {"table": "", "tr": "table", "td": ROLE_ROW, "th": ROLE_ROW, "span": "table"}
"""The element that a table's part must stand in; elsewhere a role makes no table."""
_DRAWN_AS_LINE: Final = re.compile(r"display\s*:\s*(?:block|flex|grid|list-item|table(?!-cell))")
_LINE_CLASSES: Final = tags("line code-line codeLine view-line")
_LISTINGS: Final = frozenset({"code", "pre"})
_COPIES: Final = frozenset({"copy", "copied", "copied!", "copy code", "copy to clipboard"})
_WATCHED: Final = frozenset({"aria-hidden", "background", "bgcolor", "color", "hidden", "popover", "style"})
"""Attributes that may hide an element."""
_MARKING: Final = frozenset({"aria-label", "datetime", "role", "value"})
"""Attributes that may say that an element is not what its name says."""
_ROOTS: Final = frozenset({"html", "body"})
"""Never taken as hidden: pages hide them only until their scripts have run."""
_VERBATIM: Final = frozenset({"pre", "textarea"})
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
_DROPPED_CLASSES: Final = frozenset({"mw-editsection", "mw-empty-elt", "mw-jump-link", "sortkey", "MathJax_Preview"})
_NUMBER_CLASSES: Final = tags(
    "blob-num crayon-nums gutter hljs-ln-numbers line-number linenumber linenumbers lineno linenos ln lnt rouge-gutter"
)
"""What holds the numbers of a listing's lines, and is left out where it holds numbers only."""
_DRAWN_TEXT: Final = re.compile(r"math|latex|tex\b|emoji", re.IGNORECASE)
_NAMED: Final = tags("aside dialog div fieldset figure form header legend menu ol p section table ul")
"""Elements whose class and id are asked for boilerplate names."""

MAX_NODES: Final = 60_000
"""Elements that are kept as such, and images; of further ones the text is kept. The largest of 495 real pages has
9,000; 10 MB of their bodies, one behind the other, have 36,000."""
WAITING_WORDS: Final = 100
"""Words hidden by opacity or visibility from which a page may be waiting for its scripts."""

_DROP, _SAYS, _IMAGE, _SHUT, _PLACE, _THROUGH, _CELL, _BOX, _LINE, _NODE = range(10)
"""Left out; but for words that it may stand for; images; dialogs, which are shut until opened; places of segments that
came later; text kept; as a cell in a listing; with blanks around it; as a line of a listing; kept."""
_Verdict = Literal["", "reader", "dropped", "number"]


class _Tag:
    """What is to be done with the elements of one name; made once a name, since asking sets for each costs a tenth."""

    __slots__ = (
        "alone", "attributes", "block", "furniture", "kept", "kind", "linking", "listed", "listing", "marking", "name",
        "named", "neutral", "shown", "stays", "telling", "valued", "wraps",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        """Look a name up in all that is said of names above."""
        self.name = name
        self.kind = {"img": _IMAGE, "dialog": _SHUT, "template": _PLACE}.get(name, _DROP)
        if name in _KEPT_BLOCKS or name in NEUTRAL or name in _KEPT_INLINE:
            self.kind = _NODE
        elif not name.startswith(("-", "!")) and name not in _DROPPED and self.kind == _DROP:
            self.kind = _BOX if name in _SPACED or "-" in name else _THROUGH
        if name in _SPEAKING:
            self.kind = _SAYS
        self.valued = name in _VALUED
        self.listing = name in _LISTINGS
        self.linking = name == "a"
        self.marking = _MARKING | {"style"} if self.kind == _THROUGH or self.valued else _MARKING - {"value"}
        if name == "table":
            self.marking |= {"class"}
        self.block = name in BLOCK_TAGS
        self.furniture = NAMED * (name in _FURNITURE)
        self.named = name in _NAMED and not self.furniture
        self.neutral = name in NEUTRAL
        self.wraps = _ROLE_PARENTS if self.neutral else frozenset[str]()
        self.stays = name in STAYS_EMPTY
        self.alone = self.stays or name in LINE_ENDS or self.block
        """Whether it means something without a child: if no more, then that what is around it is apart."""
        self.listed = self.kind
        """What `kind` is in a listing, where blocks are lines and boxes colour the code."""
        if name == "button":
            self.listed = _DROP
        elif self.stays:
            self.listed = _CELL
        elif self.kind == _BOX or name in _UNCHANGED:
            self.listed = _THROUGH
        elif self.block and name not in LINE_ENDS and self.kind == _NODE:
            self.listed = _LINE
        self.shown = name in _ROOTS
        self.attributes = _ATTRIBUTES.get(name, ())
        self.telling = self.marking | _WATCHED
        self.kept = frozenset((*self.attributes, PLACE, "lang", "role"))  # attributes that `_make` looks at


_tag_of: Final = lru_cache(1024)(_Tag)


def clean(html: str) -> Node:
    """Return the cleaned tree of `html`; the root is always an `html` node, empty where there is nothing to see.

    A page that keeps nearly all of its words invisible until its scripts run is read as if they had run. One that was
    saved with a dialog open, so that `aria-hidden` covers most of its words, is read without the attribute there.
    """
    top = parse(html)
    return Node("html") if top is None else clean_parsed(top)[0]


def clean_parsed(top: LexborNode) -> tuple[Node, int, bool]:
    """Return the cleaned tree below the root element that `guard.parse` returned, the words that nobody sees, and
    whether it was read as if scripts had shown what the page's styles hide."""
    styles = StyleJudge(top)  # once for all readings
    cleaner = _Cleaner(top, styles)
    root = cleaner.run()
    bodies = [child for child in root.children if isinstance(child, Node) and child.tag != "title"]
    if cleaner.hid and not bodies:
        return _Cleaner(top, styles, show="all").run(), 0, True
    waits = False
    if max(cleaner.soft_words, cleaner.covered_words) > WAITING_WORDS:
        shown = sum(count_words(text_of(body)) for body in bodies)
        waits = cleaner.soft_words > 2 * sum(content_words(body) for body in bodies)
        if waits or cleaner.covered_words > shown:
            covered = cleaner.covered if cleaner.covered_words > shown else set()
            cleaner = _Cleaner(top, styles, show="soft" if waits else "", uncovered=covered)
            root, waits = cleaner.run(), True
    return root, cleaner.unseen_words, waits


class _Cleaner:
    """State of one cleaning."""

    def __init__(
        self,
        top: LexborNode,
        styles: StyleJudge,
        *,
        show: Literal["", "soft", "all"] = "",
        uncovered: Set[int] = frozenset(),
    ) -> None:
        self._top = top
        self._show = show
        self._uncovered = uncovered
        self.covered: set[int] = set()
        """Addresses of elements of more than `WAITING_WORDS` words that `aria-hidden` covers."""
        self.covered_words = 0
        """Words in them."""
        self._styles = styles
        self._around = styles.place if show != "all" else None
        self.hid = False
        """Whether anything was hidden."""
        self.unseen_words = 0
        """Words that no click brings to light."""
        self.soft_words = 0
        """Words that were hidden by opacity or visibility, which pages use before an animation."""
        self._boilerplate: dict[str, bool] = {}
        self._images = 0
        self._met: dict[int, _Tag] = {}
        """By Lexbor's numbers for names, which mean something in one page only."""
        self._verdicts: dict[str | None, _Verdict] = {None: ""}
        self._controlled: Set[str] | None = None
        self._segments = Segments(top)

    def run(self) -> Node:  # noqa: PLR0912, PLR0915  one walk; calls per element cost a third
        """Return the tree below the root; `above` holds, for each element being read, where to go on after it."""
        root, verdicts, enter, met, steps, made = self._begun(), self._verdicts, self._styles.enter, self._met, 0, 0
        above: list[tuple[LexborNode | None, Node, bool, Shade, Place | None, bool]] = []
        item, node, pre, behind, around = self._top.first_child, root, False, self._styles.ground, self._around
        while item is not None or above:
            if item is None:
                item, node, pre, behind, around = _left(node, *above.pop())
                continue
            current, number, item = item, item.tag_id, item.next
            if number == TEXT_NODE:
                if behind.unseen:
                    self._miss(current)
                elif not (text := current.text_content or "").isspace() or pre:
                    add_text(node, text, pre=pre)
                elif node.children or node.tag not in LINES:  # most are blanks between blocks
                    add_space(node)
                continue
            if not (steps := steps + 1) & 0x3FFF:
                check_cancelled()
            tag = met.get(number) or met.setdefault(number, _tag_of((current.tag or "-")[:LONGEST]))
            if (kind := tag.listed if pre else tag.kind) == _DROP:
                continue
            below, attributes, shade, opened, apart = current.first_child, current.attributes, behind, False, False
            if kind <= _PLACE:
                kind, below, item, opened = self._entered(current, tag, kind, node, pre, around)
            if below is None and (kind == _DROP or not (tag.alone or tag.valued or node.tag in STAYS_EMPTY)):
                continue
            place = enter(around, tag.name, attributes) if around is not None else None
            known = behind if place is None or place.is_plain else place.shade_in(behind)
            told = (verdict := verdicts.get(attributes.get("class"))) != "" or pre or known is not behind
            if (told or not tag.telling.isdisjoint(attributes)) and not tag.shown:
                shade = known or behind
                if verdict is None:
                    verdict = self._judge_classes(attributes["class"] or "")
                if known is None or verdict or not _WATCHED.isdisjoint(attributes):
                    hiding, shade = self._hides(current, attributes, behind, verdict, place)
                    if hiding and not (opened := self._opens(current, tag, attributes, hiding, pre)):
                        continue
                if pre or not tag.marking.isdisjoint(attributes):
                    tag, kind = _as_marked(current, tag, kind, attributes, node, pre)
            if kind == _DROP or (below is None and not tag.alone):
                continue
            if shade.apart or shade.parts or behind.parts:
                kind, apart, shade = _laid(node, shade, behind, kind, pre=pre, inline=not (tag.block or pre))
            made += kind == _NODE
            if kind == _NODE and (len(above) >= MAX_DEPTH or made > MAX_NODES or node.tag in tag.wraps):
                kind = _THROUGH if pre else _BOX
            if below and below.tag_id == TEXT_NODE and below.next is None and not (opened or apart or shade.unseen):
                self._add_leaf(node, tag, kind, attributes, below.text_content or "", pre, current)
                continue
            above.append((item, node, pre, behind, around, apart or _CELL < kind < _NODE))
            behind, item, around = shade, below, place
            if kind == _NODE:
                node = self._make(tag, attributes, current, None if pre else node)
                node.furniture, pre = node.furniture or opened * OPENED, pre or tag.name in _VERBATIM
            elif kind > _THROUGH:
                add_space(node) if kind == _BOX else add_line(node, "\n" if kind == _LINE else "\t")
        trim(root)
        return join_texts(root) if made > MAX_NODES else root

    def _entered(
        self, current: LexborNode, tag: _Tag, kind: int, parent: Node, pre: bool, around: Place | None
    ) -> tuple[int, LexborNode | None, LexborNode | None, bool]:
        """Return how and from which node on an element is read that may be left out, whole or but for what it says.

        Returns:
            Its kind; the first node in it, none where it is left out; the node behind; whether a reader has to open it.
        """
        if kind == _PLACE:
            below, behind = self._segments.at(current)
            return (_DROP if below is None else _THROUGH), below, behind, False
        attributes = current.attributes
        place = self._styles.enter(around, tag.name, attributes) if around is not None else None
        if kind == _SHUT:
            if "open" in attributes:
                return (_LINE if pre else _NODE), current.first_child, current.next, False
            if not pre and (self._show or can_be_opened(current, attributes, self._ids_of_buttons)):
                return _NODE, current.first_child, current.next, True
        elif kind == _IMAGE:
            if self._images < MAX_NODES and attributes.get("alt"):
                self._images += 1
                # Hidden from screen readers only, an image is drawn all the same.
                drawn = {name: value for name, value in attributes.items() if name != "aria-hidden"}
                hiding, _ = self._hides(current, drawn, Shade(), self._verdict(attributes), place)
                if hiding in {"", "soft"} and is_drawn(attributes):
                    _add_image(parent, attributes)
        elif (
            (tag.name != "script" or parent.tag not in _ROOTS)
            and (said := stands_for(current, tag.name, attributes, parent.tag))
            and not self._hides(current, attributes, Shade(), self._verdict(attributes), place)[0]
        ):
            if tag.name == "math" and attributes.get("display") != "block":
                add_text(parent, said, pre=False)
            else:
                add_boxed(parent, said, pre=False)
        elif tag.name == "svg" and self._images < MAX_NODES and (alt := title_of(current, attributes)):
            self._images += 1
            hiding, _ = self._hides(current, attributes, Shade(), self._verdict(attributes), place)
            if not hiding and is_drawn(attributes):
                _add_image(parent, {"alt": alt})
        return _DROP, None, current.next, False

    def _opens(
        self, current: LexborNode, tag: _Tag, attributes: dict[str, str | None], hiding: Hiding, pre: bool
    ) -> bool:
        """Whether a hidden element is a block that a reader opens; in a listing, which has no furniture, none is."""
        self.hid = True
        if not tag.block or pre:
            return False
        if hiding == "begun":
            return True
        return hiding == "shut" and can_be_opened(current, attributes, self._ids_of_buttons)

    def _ids_of_buttons(self) -> Set[str]:
        """Return the ids of what the page's buttons say that they control."""
        if self._controlled is None:
            buttons = [button.attributes for button in self._top.css("[aria-controls], [popovertarget]")]
            named = [button.get(name) or "" for button in buttons for name in ("aria-controls", "popovertarget")]
            self._controlled = frozenset(" ".join(named).split())
        return self._controlled

    def _verdict(self, attributes: dict[str, str | None]) -> _Verdict:
        """Return what the class of an element that is read by its attributes says about it."""
        verdict = self._verdicts.get(attributes.get("class"))
        return self._judge_classes(attributes["class"] or "") if verdict is None else verdict

    def _add_leaf(
        self,
        parent: Node,
        tag: _Tag,
        kind: int,
        attributes: dict[str, str | None],
        text: str,
        pre: bool,
        current: LexborNode,
    ) -> None:
        """Add an element that holds one text and nothing else."""
        first = "" if pre else text[:1]
        if first.isdecimal():
            if kind == _THROUGH or tag.name in {"sup", "time"}:
                text = part_number(parent, text, current, raised=tag.name == "sup")
        elif (
            first.isupper()
            and not tag.block
            and parent.children
            and is_apart(parent, text, current, marks=kind == _NODE and tag.name != "time")
        ):
            add_space(parent)  # spans, dates and labels drawn as lines of their own
        if kind == _THROUGH:
            add_text(parent, text, pre=pre)
        elif kind == _BOX:
            if tag.name != "button" or text.strip().lower() not in _COPIES:
                add_boxed(parent, text, pre=pre)
        elif kind == _CELL:
            add_line(parent, "\t")
            add_text(parent, text, pre=True)
        elif kind == _LINE:
            add_line(parent)
            add_text(parent, text, pre=True)
            add_line(parent)
        elif pre or tag.name in _VERBATIM:
            node = self._make(tag, attributes, current)
            add_text(node, text, pre=True)
            attach(parent, node)
        elif not text.isspace() or tag.stays:
            node = self._make(tag, attributes, current, parent)
            add_text(node, text, pre=False)
            attach(parent, node)
        else:
            add_space(parent)

    def _begun(self) -> Node:
        """Return the root that the walk fills."""
        top = self._top
        root = Node("html")
        if language := top.attributes.get("lang"):
            root.attrs = {"lang": language}
        return root

    def _miss(self, current: LexborNode) -> None:
        """Count words that are left out since nobody sees them."""
        self.hid = True
        self.unseen_words += count_words(current.text(deep=True))

    def _hides(  # noqa: PLR0911  one return a reason
        self,
        current: LexborNode,
        attributes: dict[str, str | None],
        behind: Shade,
        verdict: _Verdict,
        place: Place | None,
    ) -> tuple[Hiding, Shade]:
        """Return how an element is hidden, and what its text inherits."""
        if verdict == "dropped":
            return "hard", behind
        if self._show == "all":
            return "", behind
        closed = "hidden" in attributes or "popover" in attributes
        if not closed and attributes.get("aria-hidden") == "true" and current.mem_id not in self._uncovered:
            # A second link to a page is for the mouse: seen, and only left out where links are read out.
            closed = (attributes.get("href") or "#").startswith("#")
            if closed:
                self._cover(current)
        if verdict == "reader":
            return "hard" if closed or is_long(current) else "", behind
        if verdict == "number" and not current.text(deep=True).strip("0123456789 \t\r\n"):
            return "hard", behind
        style = attributes.get("style")
        if style and "user-select" in style and (number := current.text(deep=True).strip()).isdecimal() and number:
            return "hard", behind  # a line's number, which copying leaves out
        hiding, behind = self._styles.look(place, current, attributes, behind)
        if hiding == "hard":
            self._miss(current)
        if hiding == "hard" or closed:
            return hiding if hiding == "hard" else "shut", behind
        if hiding in {"soft", "begun"}:
            if not self._show:
                self.soft_words += count_words(current.text(deep=True))
            return "" if self._show == "soft" else hiding, behind
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
        if not _DROPPED_CLASSES.isdisjoint(names):
            verdict = "dropped"
        elif not READER_CLASSES.isdisjoint(names):
            verdict = "reader"
        elif not _NUMBER_CLASSES.isdisjoint(names):
            verdict = "number"
        self._verdicts[classes] = verdict
        return verdict

    def _make(
        self, tag: _Tag, attributes: dict[str, str | None], current: LexborNode, parent: Node | None = None
    ) -> Node:
        """Return the node of an element, with the attributes that mean something; in a listing it has no parent."""
        if tag.linking and parent is not None and parent.children:
            part_links(parent)
        node = Node(tag.name)
        node.furniture = tag.furniture
        named = tag.named
        if tag.listing or not tag.kept.isdisjoint(attributes):
            named = _keep(node, tag, attributes, current)
        if named and (label := attributes.get("class")):
            node.furniture = NAMED * self._says_furniture(label)
        if named and not node.furniture and (label := attributes.get("id")):
            node.furniture = NAMED * (self._says_furniture(label) and not is_title_of(label, current))
        return node

    def _says_furniture(self, label: str) -> bool:
        """Whether a class attribute or id names navigation, a banner or the like."""
        known = self._boilerplate.get(label)
        if known is None:
            known = self._boilerplate[label] = says_furniture(label.lower())
        return known


def _left(
    done: Node, item: LexborNode | None, node: Node, pre: bool, behind: Shade, around: Place | None, boxed: bool
) -> tuple[LexborNode | None, Node, bool, Shade, Place | None]:
    """Return where to go on once an element is read to its end, and hang it into its parent."""
    if done is not node:
        attach(node, done)
    if boxed:
        add_line(node) if pre else add_space(node)
    return item, node, pre, behind, around


def _keep(node: Node, tag: _Tag, attributes: dict[str, str | None], current: LexborNode) -> bool:
    """Give a node those attributes that mean something; return whether its names are asked for furniture."""
    node.place = attributes.get(PLACE) or ""
    named = tag.named
    role = attributes.get("role")
    if tag.neutral and role:
        name = _ROLES.get(role) or tag.name
        if role == "heading":
            level = attributes.get("aria-level") or "2"
            name = f"h{level}" if level in "123456" else "h6"
        node.tag = name
        node.furniture = NAMED * (name in _FURNITURE)
        named = name in _NAMED and not node.furniture
    kept = {key: attributes[key] or "" for key in tag.attributes if key in attributes}
    if tag.listing and (spoken := language_of(current)):
        kept["class"] = f"language-{spoken}"
    if tag.block and (language := attributes.get("lang")):
        kept["lang"] = language
    if tag.name == "table" and role in {"presentation", "none"}:
        kept["role"] = "presentation"
    if kept:
        node.attrs = kept
    return named


def _laid(parent: Node, shade: Shade, behind: Shade, kind: int, *, pre: bool, inline: bool) -> tuple[int, bool, Shade]:
    """Return how an element is read, whether it is a box apart from the words around it, what its text inherits."""
    own = shade is not behind
    apart = inline and (behind.parts or (shade.apart and own))
    if apart:
        add_space(parent)
    kind = _LINE if pre and kind == _THROUGH and shade.apart and own else kind
    return kind, apart, shade._replace(apart=False, parts=shade.parts and own)


def _as_marked(
    current: LexborNode, tag: _Tag, kind: int, attributes: dict[str, str | None], parent: Node, pre: bool
) -> tuple[_Tag, int]:
    """Return what an element is by its role and style; one that says a value is written, and dropped."""
    if pre:
        if kind == _THROUGH and not _LINE_CLASSES.isdisjoint((attributes.get("class") or "").split()):
            add_line(parent)
        if tag.name == "code" and (before := current.prev) is not None and before.tag == "code" and language_of(before):
            add_line(parent, "\n\n")  # the listing again, in a language of which a sheet shows one at a time
    elif tag.name == "table" and "class" in attributes and is_listing(current, attributes["class"] or ""):
        return _tag_of("pre"), _NODE
    elif said := said_by(current, tag.name, attributes, parent.tag):
        add_boxed(parent, said, pre=False)
        return tag, _DROP
    elif (name := _GRID_ROLES.get(attributes.get("role") or "")) and (
        _HOLDERS[name] in {"", parent.tag} and tag.name not in _TABLE_TAGS
    ):
        tag = _Tag(name)
        if name == "tr":
            tag.name = ROLE_ROW
        return tag, tag.kind
    if pre and kind == _THROUGH and (style := attributes.get("style")) and _DRAWN_AS_LINE.search(style):
        kind = _LINE
    return tag, kind


def _add_image(node: Node, attributes: dict[str, str | None]) -> None:
    """Keep an image that says what it shows; formulas and emoji drawn as images become the text they stand for."""
    alt = " ".join((attributes.get("alt") or "").split())
    if not alt:
        return
    if _DRAWN_TEXT.search(attributes.get("class") or ""):
        node.children.append(bare_tex(alt))
    elif attributes.get("aria-hidden") == "true":
        return
    elif len(alt) <= LONGEST:
        node.children.append(Node("img", {"alt": alt}))
