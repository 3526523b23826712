"""What of a page a person sees.

The walk over the page (`clean.py`) asks it about each element: whether that is seen, or
opened by a reader with a click, and what its style adds to its name. Not for: what
becomes of an element that is seen (`clean.py`), what a style hides (`style.py`), what
opens (`closed.py`).
"""

from collections.abc import Set
from functools import cached_property, lru_cache
from typing import Final, Literal

from selectolax.lexbor import LexborNode

from readers.html.closed import (
    CONTROLLING,
    CONTROLS,
    can_be_opened,
    is_covered_part,
    is_seen_all_the_same,
)
from readers.html.drawing import BLANK_FILL, presented, words_of
from readers.html.guard import Segments
from readers.html.names import (
    DROP,
    FRAME,
    IMAGE,
    PLACED,
    SAYS,
    SHUT,
    WATCHED,
    Tag,
    tag_of,
)
from readers.html.roles import Verdict
from readers.html.style import READER_CLASSES, Hiding, Shade, is_long, is_pixel
from readers.html.style_sheets import StyleJudge
from readers.page import TITLE_CHARACTERS
from readers.tree import count_words

_DROPPED_CLASSES: Final = frozenset(
    {"mw-editsection", "mw-empty-elt", "mw-jump-link", "sortkey", "MathJax_Preview"}
)
_DRAWN_ALL_THE_SAME: Final = {IMAGE: {"", "soft"}, FRAME: {""}, SAYS: {""}}
"""How an image, frame or drawing may be hidden and yet be drawn once it has come."""
WAITING_WORDS: Final = 100
"""Words hidden by opacity or visibility from which a page may be waiting for its
scripts, and of any hiding from which it may be misread."""

PLAIN, MARKED, STRUCK, OPENS, APART, BOXED, UNSEEN, EMPTY, UNEVEN = (
    0,
    *(1 << bit for bit in range(8)),
)
"""What is found of an element, added up: an attribute may say that it is not what its
name says; its direct text is struck out; a reader opens it; it is drawn apart from the
text around it; that is by its own style; its direct text is hidden; it is empty; its
direct text is hidden or its direct elements are drawn apart."""
_Attributes = dict[str, str | None]
Seen = tuple[LexborNode, Tag, _Attributes, int, LexborNode | None, Shade]
"""An element, what is done with its name, its attributes, what was found of it, its
first node, and what text in it inherits."""


_SAYING: Final[dict[Verdict, frozenset[str]]] = {
    "dropped": _DROPPED_CLASSES,
    "reader": READER_CLASSES,
}


class _Verdicts(dict[str | None, Verdict]):
    """What the value of a class attribute alone says about an element, looked up
    once."""

    def __missing__(self, classes: str | None) -> Verdict:
        """Return and remember what is said by classes that were not asked for
        before."""
        names = (classes or "").split()
        matches = (
            name for name, listed in _SAYING.items() if not listed.isdisjoint(names)
        )
        verdict: Verdict = next(matches, "")
        self[classes] = verdict
        return verdict


class Sight:
    """Looks at the elements of one page, and counts what is not seen."""

    def __init__(
        self,
        top: LexborNode,
        styles: StyleJudge,
        *,
        show: Literal["", "soft", "all"] = "",
        uncovered: Set[int] = frozenset(),
    ) -> None:
        """Take a page's root element and its styles.

        Args:
            top: The root element.
            styles: The page's styles.
            show: What is taken as shown: what waits for scripts, or all that styles
                hide.
            uncovered: Addresses of elements of which `aria-hidden` means nothing.
        """
        self.top = top
        self.styles = styles
        self._show = show
        self.styled = styles.rules_at if show != "all" else {}
        """By address, the elements of which the page's rules say something."""
        self._uncovered = uncovered
        self.covered: set[int] = set()
        """Addresses of elements of more than `WAITING_WORDS` words that `aria-hidden`
        covers."""
        self.covered_words = 0
        """Words in them."""
        self.hid = False
        """Whether anything was hidden."""
        self.unseen_words = 0
        """Words that no click brings to light."""
        self.rows = 0
        """Rows of tables that were left out."""
        self.soft_words = 0
        """Words that were hidden by opacity or visibility, which pages use before an
        animation."""
        self.met: dict[int, Tag] = {}
        """By Lexbor's numbers for names, which mean something in one page only."""
        self.verdicts = _Verdicts()
        self._is_drawn = False
        """Whether the last element that was asked about is hidden from screen readers
        and by no style."""
        self._segments = Segments(top)

    def meet(self, number: int, current: LexborNode) -> Tag:
        """Return what is done with elements of a name that the walk met for the first
        time."""
        tag = self.met[number] = tag_of((current.tag or "-")[:TITLE_CHARACTERS])
        return tag

    def placed(
        self, tag: Tag, current: LexborNode, following: LexborNode | None
    ) -> tuple[LexborNode | None, LexborNode | None]:
        """Return the first node of what replaces an element that is left out (None: no
        replacement), and the node to go on with."""
        if tag.kind == DROP:
            return None, following
        return self._segments.at(current)

    def look(self, element: Seen) -> Seen | None:
        """Return an element as it is seen; None where it is left out.

        Args:
            element: The element as if it were plain, with what text inherits around it.
        """
        current, tag, attributes, _, first_child, inherited = element
        if PLACED < tag.kind <= FRAME:
            drawn = self._drawn(current, tag, attributes)
            return drawn and (current, tag, attributes, PLAIN, None, drawn)
        if first_child is None and tag.mute and "aria-label" not in attributes:
            return None
        flags, shade = EMPTY * (first_child is None), inherited
        if tag.kind == SHUT and "open" not in attributes:
            if not (
                self._show
                or can_be_opened(current, attributes, lambda: self._controlled)
            ):
                return None
            flags |= OPENS
        if not tag.shown:
            hiding, shade = self._asked(current, attributes, inherited)
            if hiding:
                if not self._opens(current, tag, attributes, hiding):
                    self.rows += tag.name == "tr"
                    return None
                flags |= OPENS
            flags |= MARKED * (not tag.marking.isdisjoint(attributes))
        if shade.struck and tag.name in {"del", "s", "strike"}:
            shade = shade._replace(struck=False)
        if shade is not inherited or not inherited.is_even:
            flags, shade = _laid(flags, shade, inherited)
        return current, tag, attributes, flags, first_child, shade

    def _asked(
        self,
        current: LexborNode,
        attributes: _Attributes,
        inherited: Shade,
    ) -> tuple[Hiding, Shade]:
        """Return how an element is hidden, and what its text inherits."""
        verdict = self.verdicts[attributes.get("class")]
        if (
            not verdict
            and current.mem_id not in self.styled
            and WATCHED.isdisjoint(attributes)
        ):
            return "", inherited
        return self._hides(current, attributes, inherited, verdict)

    def _hides(
        self,
        current: LexborNode,
        attributes: _Attributes,
        inherited: Shade,
        verdict: Verdict,
    ) -> tuple[Hiding, Shade]:
        """Return how an element is hidden, and what its text inherits.

        Words that are hidden softly are counted, unless the page is read with them
        shown."""
        if verdict == "dropped" or self._show == "all":
            return "hard" if verdict == "dropped" else "", inherited
        may_be_shut = not {"aria-hidden", "hidden", "popover"}.isdisjoint(attributes)
        is_shut = may_be_shut and self._is_shut(current, attributes)
        if verdict == "reader":
            return "hard" if is_shut or is_long(current) else "", inherited
        hiding, inherited = self.styles.look(current, attributes, inherited)
        if not (hiding or may_be_shut):
            return hiding, inherited
        self._is_drawn = not hiding and attributes.get("aria-hidden") == "true"
        if hiding == "hard":
            self.miss(current)
        elif is_shut:
            hiding = "shut"
        elif hiding in {"soft", "begun"}:
            if self._show:
                return "", inherited
            self.soft_words += count_words(current.text(deep=True))
        return hiding, inherited

    def _is_shut(self, current: LexborNode, attributes: _Attributes) -> bool:
        """Whether an element's attributes say that it is not seen; what `aria-hidden`
        covers is counted. A link to another page is seen in spite of `aria-hidden`."""
        if "hidden" in attributes or "popover" in attributes:
            return True
        if attributes.get("aria-hidden") != "true" or current.mem_id in self._uncovered:
            return False
        # A second link to a page is for the mouse: seen, and only left out where links are read out.
        if not (attributes.get("href") or "#").startswith("#"):
            return False
        if is_seen_all_the_same(current, attributes):
            return False
        words = count_words(current.text(deep=True))
        if words > WAITING_WORDS:
            self.covered.add(current.mem_id)
            self.covered_words += words
        return True

    def miss(self, current: LexborNode) -> None:
        """Count words that are left out since no reader sees them."""
        self.hid = True
        self.unseen_words += count_words(current.text(deep=True))

    # What opens

    def _opens(
        self, current: LexborNode, tag: Tag, attributes: _Attributes, hiding: Hiding
    ) -> bool:
        """Return whether a hidden element still counts, since a reader opens it or
        scrolls to it; never one that is inline or hidden for good ("hard").

        Sets `hid` in any case."""
        self.hid = True
        if not tag.block or hiding == "hard":
            return False
        if hiding == "begun":
            return True
        if hiding == "shut" and self._is_drawn and is_covered_part(current, attributes):
            return True
        return can_be_opened(current, attributes, lambda: self._controlled)

    @cached_property
    def _controlled(self) -> Set[str]:
        """The ids of what the page's buttons say that they control."""
        buttons = [button.attributes for button in self.top.css(CONTROLS)]
        id_lists = [
            button.get(name) or "" for button in buttons for name in CONTROLLING
        ]
        return frozenset(" ".join(id_lists).replace("#", " ").split())

    # What is drawn

    def _drawn(
        self, current: LexborNode, tag: Tag, attributes: _Attributes
    ) -> Shade | None:
        """Return the style that text in an image, frame, drawing or the like inherits;
        None if hidden. Elements hidden from screen readers only are visible."""
        if tag.kind == IMAGE and not attributes.get("alt"):
            return None
        if tag.kind == SAYS and tag.name != "svg":
            hiding, shade = self._asked(current, attributes, Shade())
            return None if hiding else shade
        drawn_attributes = presented(attributes) if tag.kind == SAYS else attributes
        drawn_attributes = {
            name: value
            for name, value in drawn_attributes.items()
            if name != "aria-hidden"
        }
        hiding, shade = self._asked(current, drawn_attributes, self.styles.ground)
        if (
            hiding not in _DRAWN_ALL_THE_SAME[tag.kind]
            or "hidden" in drawn_attributes
            or is_pixel(drawn_attributes)
        ):
            return None
        # Its own opacity and the like means nothing, and frameworks set it until it has come.
        style = drawn_attributes.get("style")
        is_styled = hiding or current.mem_id in self.styled
        return None if style and is_styled and self.styles.hides_image(style) else shade

    def words_in(self, svg: LexborNode, shade: Shade) -> list[str]:
        """Return the words that a drawing shows; none if a style sheet may make its
        letters invisible."""
        if svg.css_first("text, foreignobject") is None:
            return []
        return [] if self._fills_blank else words_of(svg, self._looked, shade)

    @cached_property
    def _fills_blank(self) -> bool:
        return any(map(BLANK_FILL.search, self.styles.texts))

    def _looked(
        self, node: LexborNode, attributes: _Attributes, inherited: Shade
    ) -> tuple[bool, Shade]:
        """Return whether an element of a drawing is hidden, and the style that its
        content inherits."""
        hiding, shade = self._asked(node, attributes, inherited)
        return hiding != "", shade


@lru_cache(64)
def _inside(shade: Shade, has_own_shade: bool) -> Shade:
    """Return the shade around the elements right in an element."""
    return shade._replace(apart=False, lays_out=shade.lays_out and has_own_shade)


def _laid(flags: int, shade: Shade, inherited: Shade) -> tuple[int, Shade]:
    """Return what is found of an element, with how it is laid out, and what text in it
    inherits."""
    has_own_shade = shade is not inherited
    if has_own_shade and shade.apart:
        flags |= BOXED | APART
    if inherited.lays_out:
        flags |= APART
    if shade.unseen:
        flags |= UNSEEN
    if shade.apart or (shade.lays_out and not has_own_shade):
        shade = _inside(shade, has_own_shade)
    if shade.struck:
        flags |= STRUCK
    if not shade.is_even:
        flags |= UNEVEN
    return flags, shade
