"""Cleaning (HtmlRAG §3.2): from HTML as it came to a small tree that holds what a person sees, and
nothing else.

Scripts, styles, comments, templates, drawings and hidden elements go; attributes without meaning
go; tags that only wrap another are merged with it; empty ones are dropped. Query-free and
near-lossless in visible text; words of different blocks are never glued. Not for: choosing what
matters (`pipeline/prune`), cutting into blocks (`blocks.py`).
"""

import re
from collections.abc import Mapping, Set
from typing import Final, Literal

from selectolax.lexbor import LexborNode

from pipeline.document.tree import (
    LINES,
    MAX_DEPTH,
    NAMED,
    OPENED,
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
from pipeline.html.addresses import base_of, rebase
from pipeline.html.closed import (
    CONTROLLING,
    CONTROLS,
    can_be_opened,
    is_covered_part,
    is_seen_all_the_same,
    moves_into_sight,
    something_moves,
)
from pipeline.html.drawing import BLANK_FILL, presented, words_of
from pipeline.html.furniture import content_words, is_title_of, says_furniture
from pipeline.html.guard import Segments, parse
from pipeline.html.marks import mark_cells
from pipeline.html.names import (
    BOX,
    CELL,
    DROP,
    FRAME,
    IMAGE,
    LINE,
    NODE,
    PLACED,
    ROOTS,
    SHUT,
    THROUGH,
    VERBATIM,
    WATCHED,
    Tag,
    tag_of,
)
from pipeline.html.roles import Verdict, as_marked, keep, line_keepers
from pipeline.html.sheets import ElementContext, StyleJudge
from pipeline.html.style import READER_CLASSES, Hiding, Shade, is_drawn, is_long
from pipeline.html.values import bare_tex, stands_for, title_of
from pipeline.text.frame import LONGEST
from pipeline.work import check_cancelled

_COPIES: Final = frozenset({"copy", "copied", "copied!", "copy code", "copy to clipboard"})
_DROPPED_CLASSES: Final = frozenset(
    {"mw-editsection", "mw-empty-elt", "mw-jump-link", "sortkey", "MathJax_Preview"}
)
_NUMBER_CLASSES: Final = tags(
    "blob-num crayon-nums gutter hljs-ln-numbers line-number linenumber linenumbers lineno "
    "linenos ln lnt rouge-gutter"
)
"""What holds the numbers of a listing's lines, and is left out where it holds numbers only."""
_DRAWN_KINDS: Final = frozenset({FRAME, IMAGE})
_DRAWN_TEXT: Final = re.compile(r"math|latex|tex\b|emoji", re.IGNORECASE)

MAX_NODES: Final = 60_000
"""Elements that are kept as such, and images; of further ones the text is kept. The largest of 495
real pages has 9,000; 10 MB of their bodies, one behind the other, have 36,000."""
MAX_FRAMES: Final = 20
"""Frames of a page that hold their own HTML (`srcdoc`) and are read."""
DRAWN: Final = " · "
"""Between the words of a drawing."""
WAITING_WORDS: Final = 100
"""Words hidden by opacity or visibility from which a page may be waiting for its scripts."""


def clean(html: str) -> Node:
    """Return the cleaned tree of `html`; the root is always an `html` node, empty where there is
    nothing to see.

    A page that keeps nearly all of its words invisible until its scripts run is read as if they had
    run. One that was saved with a dialog open, so that `aria-hidden` covers most of its words, is
    read without the attribute there.
    """
    top = parse(html)
    return Node("html") if top is None else clean_parsed(top)[0]


def clean_parsed(top: LexborNode) -> tuple[Node, int, bool]:
    """Return the cleaned tree below the root element that `guard.parse` returned, the words that
    nobody sees, and whether it was read as if scripts had shown what the page's styles hide."""
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
        is_frame: bool = False,
    ) -> None:
        self._top = top
        self._show = show
        self._is_frame = is_frame
        self._frames = 0
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
        self._met: dict[int, Tag] = {}
        """By Lexbor's numbers for names, which mean something in one page only."""
        self._verdicts: dict[str | None, Verdict] = {None: ""}
        self._cells: list[tuple[Node, LexborNode]] = []
        self._controlled: Set[str] | None = None
        self._line_keepers = line_keepers(top)
        self._is_drawn = False
        """Whether the last element that was asked about is hidden from screen readers and by no
        style."""
        self._moves: bool | None = None
        self._draws: bool | None = None
        self._segments = Segments(top)

    def run(self) -> Node:  # noqa: PLR0912, PLR0915  one walk; calls per element cost a third
        """Return the tree below the root; `above` holds, for each element being read, where to go
        on after it."""
        root, verdicts, enter, met, steps, made = (
            self._begun(),
            self._verdicts,
            self._styles.enter,
            self._met,
            0,
            0,
        )
        above: list[tuple[LexborNode | None, Node, bool, Shade, ElementContext | None, bool]] = []
        item, node, pre, behind, around = (
            self._top.first_child,
            root,
            False,
            self._styles.ground,
            self._around,
        )
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
            tag = met.get(number) or met.setdefault(number, tag_of((current.tag or "-")[:LONGEST]))
            if (kind := tag.listed if pre else tag.kind) == DROP:
                continue
            below, attributes, shade, opened, apart = (
                current.first_child,
                current.attributes,
                behind,
                False,
                False,
            )
            if kind <= PLACED:
                kind, below, item, opened = self._entered(current, tag, kind, node, pre, around)
            if below is None and (
                kind == DROP or not (tag.alone or tag.valued or node.tag in STAYS_EMPTY)
            ):
                continue
            place = enter(around, tag.name, attributes) if around is not None else None
            known = behind if place is None or place.is_plain else place.shade_in(behind)
            told = (
                (verdict := verdicts.get(attributes.get("class"))) != ""
                or pre
                or known is not behind
            )
            if (told or not tag.telling.isdisjoint(attributes)) and not tag.shown:
                shade = known or behind
                if verdict is None:
                    verdict = self._judge_classes(attributes["class"] or "")
                if known is None or verdict or not WATCHED.isdisjoint(attributes):
                    hiding, shade = self._hides(current, attributes, behind, verdict, place)
                    if hiding and not (
                        opened := self._opens(current, tag, attributes, hiding, pre)
                    ):
                        continue
                if pre or verdict == "lines" or not tag.marking.isdisjoint(attributes):
                    tag, kind = as_marked(current, tag, kind, attributes, node, pre, verdict)
            if kind == DROP or (below is None and not tag.alone):
                continue
            if shade.apart or shade.parts or behind.parts:
                kind, apart, shade = _laid(
                    node, shade, behind, kind, pre=pre, inline=not (tag.block or pre)
                )
            made += kind == NODE
            if kind == NODE and (
                len(above) >= MAX_DEPTH or made > MAX_NODES or node.tag in tag.wraps
            ):
                kind = THROUGH if pre else BOX
            if (
                below
                and below.tag_id == TEXT_NODE
                and below.next is None
                and not (opened or apart or shade.unseen)
            ):
                self._add_leaf(node, tag, kind, attributes, below.text_content or "", pre, current)
                continue
            above.append((item, node, pre, behind, around, apart or CELL < kind < NODE))
            behind, item, around = shade, below, place
            if kind == NODE:
                node = self._make(tag, attributes, current, None if pre else node)
                node.furniture, pre = node.furniture or opened * OPENED, pre or tag.name in VERBATIM
            elif kind > THROUGH:
                add_space(node) if kind == BOX else add_line(node, "\n" if kind == LINE else "\t")
        return self._done(root, made)

    def _done(self, root: Node, made: int) -> Node:
        """Return the tree that was filled with so many elements, its end trimmed and its cells
        marked."""
        trim(root)
        mark_cells(self._cells)
        return join_texts(root) if made > MAX_NODES else root

    def _entered(
        self,
        current: LexborNode,
        tag: Tag,
        kind: int,
        parent: Node,
        pre: bool,
        around: ElementContext | None,
    ) -> tuple[int, LexborNode | None, LexborNode | None, bool]:
        """Return how and from which node on an element is read that may be left out, whole or but
        for what it says.

        Returns:
            Its kind; the first node in it, none where it is left out; the node behind; whether a reader has to open it.
        """
        if kind == PLACED:
            below, behind = self._segments.at(current)
            return (DROP if below is None else THROUGH), below, behind, False
        attributes = current.attributes
        place = self._styles.enter(around, tag.name, attributes) if around is not None else None
        if kind == SHUT:
            if "open" in attributes:
                return (LINE if pre else NODE), current.first_child, current.next, False
            if not pre and (self._show or can_be_opened(current, attributes, self._ids_of_buttons)):
                return NODE, current.first_child, current.next, True
        elif kind in _DRAWN_KINDS or tag.name == "svg":
            self._draw(current, tag.name, parent, pre, place)
        elif (
            (tag.name != "script" or parent.tag not in ROOTS)
            and (said := stands_for(current, tag.name, attributes, parent.tag))
            and not self._hides(current, attributes, Shade(), self._verdict(attributes), place)[0]
        ):
            if tag.name == "math" and attributes.get("display") != "block":
                add_text(parent, said, pre=False)
            else:
                add_boxed(parent, said, pre=False)
        return DROP, None, current.next, False

    def _draw(
        self, current: LexborNode, name: str, parent: Node, pre: bool, place: ElementContext | None
    ) -> None:
        """Add what a frame, image or drawing shows, or is said to show, unless it is hidden."""
        own = current.attributes
        if self._images >= MAX_NODES or (not own.get("alt") if name == "img" else pre):
            return
        # Hidden from screen readers only, it is drawn all the same.
        said = presented(current) if name == "svg" else own
        attributes = {key: value for key, value in said.items() if key != "aria-hidden"}
        hiding, shade = self._hides(
            current, attributes, self._styles.ground, self._verdict(attributes), place
        )
        if hiding not in ({"", "soft"} if name == "img" else {""}) or not is_drawn(attributes):
            return
        self._images += 1
        if name == "img":
            _add_image(parent, own)
        elif name == "svg":
            self._add_drawing(current, parent, shade, place)
        else:
            self._add_frame(parent, name, attributes)

    def _add_drawing(
        self, svg: LexborNode, parent: Node, shade: Shade, place: ElementContext | None
    ) -> None:
        """Add the words of a drawing, and what it is said to show."""
        attributes = svg.attributes
        if said := stands_for(svg, "svg", attributes, parent.tag):
            add_boxed(parent, said, pre=False)
            return
        if alt := title_of(svg, attributes):
            _add_image(parent, {"alt": alt})
        if not self._draws_words():
            return
        words = words_of(svg, self._looked, shade, place)
        if len(words) > 1 and parent.breaks:
            box = Node("div")
            add_text(box, DRAWN.join(words), pre=False)
            attach(parent, box)
        elif words:
            add_boxed(parent, DRAWN.join(words), pre=False)

    def _looked(
        self,
        node: LexborNode,
        attributes: dict[str, str | None],
        behind: Shade,
        around: ElementContext | None,
    ) -> tuple[bool, Shade, ElementContext | None]:
        """Return whether an element of a drawing is hidden, and what what stands in it inherits."""
        place = (
            self._styles.enter(around, node.tag or "", attributes) if around is not None else None
        )
        hiding, shade = self._hides(node, attributes, behind, self._verdict(attributes), place)
        return hiding != "", shade, place

    def _draws_words(self) -> bool:
        """Whether drawings of the page have words, and no style sheet may fill them so that nobody
        sees them."""
        if self._draws is None:
            sheets = (
                self._top.css("style")
                if self._top.css_first("text, foreignobject") is not None
                else None
            )
            self._draws = sheets is not None and not any(
                BLANK_FILL.search(sheet.text(deep=True)) for sheet in sheets
            )
        return self._draws

    def _add_frame(self, parent: Node, name: str, attributes: Mapping[str, str | None]) -> None:
        """Read what a frame holds in place of it; of another keep the address."""
        self._frames += 1
        held = attributes.get("srcdoc") or ""
        top = (
            parse(held)
            if held and name == "iframe" and not self._is_frame and self._frames <= MAX_FRAMES
            else None
        )
        if top is not None:
            inner, box = _Cleaner(top, StyleJudge(top), is_frame=True), Node("div")
            for part in _body_of(inner.run()):
                if isinstance(part, Node):
                    attach(box, part)
                else:
                    add_text(box, part, pre=False)
            rebase(box, base_of(held, ""))
            self.unseen_words += inner.unseen_words
            attach(parent, box)
        elif (
            address := attributes.get("data" if name == "object" else "src")
        ) and self._frames <= MAX_NODES:
            parent.children.append(Node("iframe", {"href": address}))

    def _opens(
        self,
        current: LexborNode,
        tag: Tag,
        attributes: dict[str, str | None],
        hiding: Hiding,
        pre: bool,
    ) -> bool:
        """Whether a hidden element is a block that a reader opens; in a listing, which has no
        furniture, none is."""
        self.hid = True
        if not tag.block or pre:
            return False
        if hiding == "begun":
            return True
        if hiding == "shut" and self._is_drawn and is_covered_part(current, attributes):
            return True
        if hiding == "soft" and moves_into_sight(current, attributes, self._something_moves):
            return True
        return hiding in {"shut", "soft"} and can_be_opened(
            current, attributes, self._ids_of_buttons
        )

    def _something_moves(self) -> bool:
        if self._moves is None:
            self._moves = something_moves(self._top)
        return self._moves

    def _ids_of_buttons(self) -> Set[str]:
        """Return the ids of what the page's buttons say that they control."""
        if self._controlled is None:
            buttons = [button.attributes for button in self._top.css(CONTROLS)]
            named = [button.get(name) or "" for button in buttons for name in CONTROLLING]
            self._controlled = frozenset(" ".join(named).replace("#", " ").split())
        return self._controlled

    def _verdict(self, attributes: dict[str, str | None]) -> Verdict:
        """Return what the class of an element that is read by its attributes says about it."""
        verdict = self._verdicts.get(attributes.get("class"))
        return self._judge_classes(attributes["class"] or "") if verdict is None else verdict

    def _add_leaf(
        self,
        parent: Node,
        tag: Tag,
        kind: int,
        attributes: dict[str, str | None],
        text: str,
        pre: bool,
        current: LexborNode,
    ) -> None:
        """Add an element that holds one text and nothing else."""
        first = "" if pre else text[:1]
        if first.isdecimal():
            if kind == THROUGH or tag.name in {"sup", "time"}:
                text = part_number(parent, text, current, raised=tag.name == "sup")
        elif (
            first.isupper()
            and not tag.block
            and parent.children
            and is_apart(parent, text, current, marks=kind == NODE and tag.name != "time")
        ):
            add_space(parent)  # spans, dates and labels drawn as lines of their own
        if kind == THROUGH:
            add_text(parent, text, pre=pre)
        elif kind == BOX:
            if tag.name != "button" or text.strip().lower() not in _COPIES:
                add_boxed(parent, text, pre=pre)
        elif kind == CELL:
            add_line(parent, "\t")
            add_text(parent, text, pre=True)
        elif kind == LINE:
            add_line(parent)
            add_text(parent, text, pre=True)
            add_line(parent)
        elif pre or tag.name in VERBATIM:
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
        verdict: Verdict,
        place: ElementContext | None,
    ) -> tuple[Hiding, Shade]:
        """Return how an element is hidden, and what its text inherits."""
        if verdict == "dropped":
            return "hard", behind
        if self._show == "all":
            return "", behind
        closed = "hidden" in attributes or "popover" in attributes
        if (
            not closed
            and attributes.get("aria-hidden") == "true"
            and current.mem_id not in self._uncovered
        ):
            # A second link to a page is for the mouse: seen, and only left out where links are read
            # out.
            for_ears = (attributes.get("href") or "#").startswith("#")
            closed = for_ears and not is_seen_all_the_same(current, attributes)
            if closed:
                self._cover(current)
        if verdict == "reader":
            return "hard" if closed or is_long(current) else "", behind
        if verdict == "number" and not current.text(deep=True).strip("0123456789 \t\r\n"):
            return "hard", behind
        style = attributes.get("style")
        if (
            style
            and "user-select" in style
            and (number := current.text(deep=True).strip()).isdecimal()
            and number
        ):
            return "hard", behind  # a line's number, which copying leaves out
        hiding, behind = self._styles.look(place, current, attributes, behind)
        if hiding == "hard":
            self._miss(current)
        self._is_drawn = not hiding and attributes.get("aria-hidden") == "true"
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

    def _judge_classes(self, classes: str) -> Verdict:
        """Return what the value of a class attribute alone says about an element, and remember
        it."""
        names = classes.split()
        verdict: Verdict = ""
        if not _DROPPED_CLASSES.isdisjoint(names):
            verdict = "dropped"
        elif not READER_CLASSES.isdisjoint(names):
            verdict = "reader"
        elif not _NUMBER_CLASSES.isdisjoint(names):
            verdict = "number"
        elif self._line_keepers and not self._line_keepers.isdisjoint(names):
            verdict = "lines"
        self._verdicts[classes] = verdict
        return verdict

    def _make(
        self,
        tag: Tag,
        attributes: dict[str, str | None],
        current: LexborNode,
        parent: Node | None = None,
    ) -> Node:
        """Return the node of an element, with the attributes that mean something; in a listing it
        has no parent."""
        if tag.linking and parent is not None and parent.children:
            part_links(parent)
        node = Node(tag.name)
        node.furniture = tag.furniture
        if tag.name == "td":
            self._cells.append((node, current))
        named = tag.named
        if tag.listing or not tag.kept.isdisjoint(attributes):
            named = keep(node, tag, attributes, current)
        if named and (label := attributes.get("class")):
            node.furniture = NAMED * self._says_furniture(label)
        if named and not node.furniture and (label := attributes.get("id")):
            node.furniture = NAMED * (
                self._says_furniture(label) and not is_title_of(label, current)
            )
        return node

    def _says_furniture(self, label: str) -> bool:
        """Whether a class attribute or id names navigation, a banner or the like."""
        known = self._boilerplate.get(label)
        if known is None:
            known = self._boilerplate[label] = says_furniture(label.lower())
        return known


def _body_of(root: Node) -> list[Node | str]:
    """Return what stands in the body of a cleaned page."""
    found: list[Node | str] = []
    for child in root.children:
        if isinstance(child, Node) and child.tag == "body":
            found += child.children
        elif isinstance(child, str) or child.tag != "title":
            found.append(child)
    return found


def _left(
    done: Node,
    item: LexborNode | None,
    node: Node,
    pre: bool,
    behind: Shade,
    around: ElementContext | None,
    boxed: bool,
) -> tuple[LexborNode | None, Node, bool, Shade, ElementContext | None]:
    """Return where to go on once an element is read to its end, and hang it into its parent."""
    if done is not node:
        attach(node, done)
    if boxed:
        add_line(node) if pre else add_space(node)
    return item, node, pre, behind, around


def _laid(
    parent: Node, shade: Shade, behind: Shade, kind: int, *, pre: bool, inline: bool
) -> tuple[int, bool, Shade]:
    """Return how an element is read, whether it is a box apart from the words around it, what its
    text inherits."""
    own = shade is not behind
    apart = inline and (behind.parts or (shade.apart and own))
    if apart:
        add_space(parent)
    kind = LINE if pre and kind == THROUGH and shade.apart and own else kind
    return kind, apart, shade._replace(apart=False, parts=shade.parts and own)


def _add_image(node: Node, attributes: dict[str, str | None]) -> None:
    """Keep an image that says what it shows; formulas and emoji drawn as images become the text
    they stand for."""
    alt = " ".join((attributes.get("alt") or "").split())
    if not alt:
        return
    if _DRAWN_TEXT.search(attributes.get("class") or ""):
        node.children.append(bare_tex(alt))
    elif attributes.get("aria-hidden") == "true":
        return
    elif len(alt) <= LONGEST:
        node.children.append(Node("img", {"alt": alt}))
