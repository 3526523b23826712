"""What is done with the elements of each name: left out, read through, kept, or asked
for what they say.

One answer a name, made once (`tag_of`), since cleaning asks for each element. Not for:
what an element's attributes or style add to that (`seen.py`)."""

from functools import lru_cache
from typing import Final

from readers.converted import PLACE
from readers.tree import (
    BLOCK_TAGS,
    FURNITURE_NAME,
    LINE_ENDS,
    NEUTRAL,
    STAYS_EMPTY,
    tags,
)

_DROPPED: Final = tags(
    "applet area audio base basefont bgsound canvas col colgroup command datalist embed frame "
    "iframe img input link map math meta noembed noframes noscript object param rp script source "
    "style svg "
    "track video"
)
"""Elements of which a person sees nothing, or nothing in words."""
_KEPT_BLOCKS: Final = tags(
    "address article aside blockquote body caption dd details dl dt figcaption figure footer h1 "
    "h2 h3 h4 h5 h6 header "
    "hr html legend li main menu nav ol option p pre select summary table td textarea th thead "
    "title tr ul"
)
_KEPT_INLINE: Final = tags(
    "a abbr b br cite code del dfn em i ins kbd mark q rt s samp strike strong sub sup time tt u "
    "var"
)
_VALUED: Final = tags("span time")
"""Elements that may hold nothing and yet say something by their attributes, as any may
in a table's cell."""
BLANK: Final = 1 << 8
"""Says so of an element, beside what is found of it (`seen.py`)."""
_UNCHANGED: Final = tags("del ins rt s strike sub sup")
"""Inline tags that add markers in prose but not inside <pre>."""
WATCHED: Final = frozenset(
    {"aria-hidden", "background", "bgcolor", "color", "hidden", "popover", "style"}
)
"""Attributes that may hide an element."""
_MARKING: Final = frozenset({"aria-label", "datetime", "role", "value"})
"""Attributes that may say that an element is not what its name says."""
ROOTS: Final = frozenset({"html", "body"})
"""Never taken as hidden: pages hide them only until their scripts have run."""
_ATTRIBUTES_OF_TAG: Final = {
    "a": ("href",),
    "abbr": ("title",),
    "html": ("lang",),
    "li": ("value",),
    "ol": ("start", "reversed"),
    "td": ("colspan", "rowspan"),
    "th": ("colspan", "rowspan", "scope"),
    "time": ("datetime",),
}
_NUMBERING_ATTRIBUTES: Final = {"li": ("type",), "ol": ("type", "style")}
"""What says in which form numbers of items are written."""
_NODE_ATTRIBUTES: Final = (PLACE, "lang", "role")
"""Attributes of all elements that the making of a node looks at."""
FURNITURE_TAGS: Final = frozenset({"aside", "footer", "nav", "select"})
NAMED_TAGS: Final = tags(
    "aside dialog div fieldset figure form header legend menu ol p section table ul"
)
"""Elements whose class and id are asked for boilerplate names."""

DROP, PLACED, SAYS, IMAGE, FRAME, SHUT, THROUGH, CELL, BOX, LINE, NODE = range(11)
"""Left out; places of segments that came later; left out except for replacement text;
images; frames of other pages; dialogs, which are shut until opened; text kept; as a
cell in a listing; with blanks around it; as a line of a listing; kept."""
_BUILT: Final = {PLACED: THROUGH, SHUT: NODE}
"""What becomes of places that are filled, and of dialogs that are opened."""


class Tag:
    """What is to be done with the elements of one name; made once a name, since asking
    sets for each costs a tenth."""

    __slots__ = (
        "alone",
        "attributes",
        "blank",
        "block",
        "built",
        "counted",
        "decisive",
        "furniture",
        "kept",
        "kind",
        "linking",
        "listed",
        "listing",
        "marking",
        "mute",
        "name",
        "named",
        "neutral",
        "odd",
        "shown",
        "stays",
        "verbatim",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        """Look a name up in all that is said of names above."""
        self.name = name
        self.kind = _kind_of(name)
        self.odd = DROP < self.kind <= SHUT or name in ROOTS
        """Whether its name alone does not say what becomes of it."""
        self.built = _BUILT.get(self.kind, self.kind)
        """What `kind` is once it is seen."""
        valued = name in _VALUED
        self.neutral = name in NEUTRAL
        self.listing = name in {"code", "pre"}
        self.linking = name == "a"
        self.marking = _marking_of(name, self.kind)
        self.block = name in BLOCK_TAGS
        self.blank = BLANK * (name in {"table", "tbody", "tfoot", "thead", "tr"})
        self.verbatim = name in {"pre", "textarea"}
        self.furniture = FURNITURE_NAME * (name in FURNITURE_TAGS)
        self.named = name in NAMED_TAGS and not self.furniture
        self.stays = name in STAYS_EMPTY
        self.alone = self.stays or name in LINE_ENDS or self.block
        """Whether it means something without a child: if no more, then that what is
        around it is apart."""
        self.mute = not (self.alone or valued)
        """Whether it says nothing without a child, but in a cell by its label."""
        self.listed = self._in_listing()
        """What `built` is in a listing, where blocks are lines and boxes colour the
        code."""
        self.shown = name in ROOTS
        self.decisive = self.marking | WATCHED
        self.attributes = _ATTRIBUTES_OF_TAG.get(name, ())
        self.counted = name in _NUMBERING_ATTRIBUTES
        self.kept = frozenset(
            (*self.attributes, *_NODE_ATTRIBUTES, *_NUMBERING_ATTRIBUTES.get(name, ()))
        )

    def _in_listing(self) -> int:
        if self.name == "button":
            return DROP
        if self.stays:
            return CELL
        if self.built == BOX or self.name in _UNCHANGED:
            return THROUGH
        is_line = self.block and self.name not in LINE_ENDS and self.built == NODE
        return LINE if is_line else self.built


def _marking_of(name: str, kind: int) -> frozenset[str]:
    """Return the attributes that may say that an element is not what its name says."""
    is_valued = kind == THROUGH or name in _VALUED
    return _MARKING if is_valued else _MARKING - {"value"}


def _kind_of(name: str) -> int:
    if name in {"canvas", "input", "math", "meter", "progress", "svg"}:
        return SAYS
    if name in {"embed", "frame", "iframe", "object"}:
        return FRAME
    if name in _KEPT_BLOCKS or name in NEUTRAL or name in _KEPT_INLINE:
        return NODE
    kind = {"img": IMAGE, "dialog": SHUT, "template": PLACED}.get(name)
    if kind is not None:
        return kind
    if name.startswith(("-", "!")) or name in _DROPPED:
        return DROP
    return (
        BOX
        if name in {"button", "label", "optgroup", "output"} or "-" in name
        else THROUGH
    )


tag_of: Final = lru_cache(1024)(Tag)
