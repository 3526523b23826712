"""Separates content from furniture (navigation, footers, link lists, banners) by the
units alone.

Two signs: what the page says of itself (elements, roles, class names; `clean.py` marks
them) and link density over neighbouring units. Not for: removing anything; a unit that
is furniture is only weighed less."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress, groupby
from typing import Final

from selectolax.lexbor import LexborNode

from readers.page import BlockKind, Ordinal
from readers.tree import LABEL_WORDS, Node, count_words, tags

_BOILERPLATE: Final = tags(
    "ad ads advert adverts breadcrumb breadcrumbs catlinks consent cookie cookies footer gdpr "
    "jump login menu modal nav navbar navbox navfooter navheader navigation newsletter noprint "
    "pager pagination popup recommended related share sharing sidebar signup sitesub skip social "
    "subscribe toolbar tags"
)
"""Parts of class names and ids, cut at `-` and `_`, that say furniture. Not banner,
promo, toc and widget: on 130 pages tuned on they held as much main text as furniture
(prose kept .965 with them, .974 without)."""
_STYLE_SIGNS: Final = frozenset("[(:")
"""A name with one of them is a style in short (`top-[var(--nav-height)]`) and says
nothing about its element."""
NEIGHBOURS: Final = 3
"""Links in a row that make a menu, and boxes in a row that begin alike and are
records."""
_TITLE_WORDS: Final = 4
"""Words of a thread's title, on average; entries of menus have one or two."""
_MARKED_SHARE: Final = 0.75
"""Maximum share of the page's words in an element marked as furniture. Links with a
larger share of the content are content. If all marks leave less than the rest, only
nav, footer and pure links count."""
_MAIN_PROSE: Final = 0.4
"""Minimum share of the page's prose in an element of the main part that is content in
spite of its name."""
PROSE: Final = 15
"""Words from which a unit with few links is running text."""
FEW_LINKS: Final = 0.15
"""Share of characters in links below which a unit or an element has few; also of an
element's words outside of running text, below which it holds little else."""
_HEADLINE_WORDS: Final = 5
"""Words up to which a heading is furniture with what follows it; a longer one is a
headline and says something. A class or id of more parts is a title turned into an
anchor, and says nothing about its element."""
_IN_MAIN: Final = re.compile(r"/(?:main|article)\d*/")
_NAV_PATH: Final = re.compile(r"/(?:nav|footer)\d*(?=/|$)")
_THE_MAIN: Final = re.compile(r"/main\d*(?=/)")
_ALPHANUMERIC: Final = re.compile(r"[^\W_]+")


@dataclass(slots=True, eq=False)
class Mark:
    """An element that says of itself that it is furniture."""

    path: str
    outer: "Mark | None"
    """The next such element around it."""
    opens: bool = False
    """Whether all that is said of it is that a reader opens it with a click."""
    words: int = 0
    prose: int = 0
    """Words of running text."""
    characters: int = 0
    linked: int = 0
    """Characters in links."""
    holds_main: bool = False
    """Whether it is around the page's `main`, or in it."""
    depth: int = field(init=False)
    """Marks around it."""
    believed: bool = False
    """Whether it or one around it is furniture."""
    closed: bool = False
    """Whether it is so only because a reader has to open it: no menu, and in nothing
    else that is furniture."""

    def __post_init__(self) -> None:
        """Count the marks around it."""
        self.depth = 0 if self.outer is None else self.outer.depth + 1

    def add(self, words: int, prose: int, characters: int, linked: int) -> None:
        """Count a unit, or a region, in it."""
        self.words += words
        self.prose += prose
        self.characters += characters
        self.linked += linked

    def may_be(self, page_words: int) -> bool:
        """Whether it may be furniture: no more words than that has, or a menu of links,
        which may be long; not around the page's `main`."""
        is_menu = _NAV_PATH.search(self.path) and 2 * self.linked > self.characters
        is_short = self.words <= _MARKED_SHARE * page_words
        is_around = self.holds_main and not _THE_MAIN.search(f"{self.path}/")
        return bool(is_short or is_menu) and not is_around

    def is_text(self, page_prose: int) -> bool:
        """Whether it is content in spite of its name: running text in the main part that
        is an aside or much of the page's. Outside of the main part nothing is."""
        is_prose = (
            self.prose >= (1 - FEW_LINKS) * self.words
            and self.linked < FEW_LINKS * self.characters
        )
        is_large = self.prose >= _MAIN_PROSE * page_prose or "/aside" in self.path
        return is_prose and is_large and _IN_MAIN.search(self.path) is not None


@dataclass(slots=True)
class Unit:
    """A content unit before offsets are known."""

    path: str
    text: str
    html: str
    kind: BlockKind
    furniture: Mark | None
    """The innermost mark of furniture around it."""
    linked: int = 0
    """Characters of `shown_text` in links."""
    lead: str = ""
    shown_text: str = ""
    """As on the page; `text` where that is empty."""
    headings: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    carried: tuple[int, ...] = ()
    described: bool = False
    """Whether it is what an image is said to show, beside the text."""
    ordinal: Ordinal | None = None
    place: str = ""
    """`Block.place`."""

    def __post_init__(self) -> None:
        """Show the text where nothing else is shown."""
        self.shown_text = self.shown_text or self.text


def says_furniture(label: str) -> bool:
    """Whether classes and ids, in lower case, name navigation, a dialog or the like."""
    if _BOILERPLATE.isdisjoint(_parts(label)):  # as nearly all do not
        return False
    names = filter(_STYLE_SIGNS.isdisjoint, label.split())
    return any(
        len(parts) <= _HEADLINE_WORDS and not _BOILERPLATE.isdisjoint(parts)
        for parts in map(_parts, names)
    )


def is_title_of(label: str, element: LexborNode) -> bool:
    """Whether an id is made of words of the element's first heading
    (`related-packages`, `session-cookie-age`); False for an id of one word."""
    names = _parts(label.lower())
    heading = element.css_first("h1, h2, h3, h4, h5, h6") if len(names) > 1 else None
    return heading is not None and set(names) <= set(
        _ALPHANUMERIC.findall(heading.text(deep=True).lower())
    )


def _parts(label: str) -> list[str]:
    return (
        label.replace("-", " ").replace("_", " ").split()
    )  # a fifth of what `str.translate` takes


def content_words(body: Node) -> int:
    """Return the number of words below a node outside of elements marked as furniture,
    0 for such a node itself."""
    words = 0
    stack = [body]
    while stack:
        node = stack.pop()
        if not node.furniture:
            words += sum(
                count_words(child) for child in node.children if isinstance(child, str)
            )
            stack.extend(child for child in node.children if isinstance(child, Node))
    return words


def judge(units: Sequence[Unit]) -> list[bool]:
    """Return for each unit whether it is content; images say nothing of the text around
    them."""
    judged = iter(_judge([unit for unit in units if not unit.described]))
    return [not unit.described and next(judged) for unit in units]


def _judge(units: Sequence[Unit]) -> list[bool]:
    words = [count_words(unit.text) for unit in units]
    _believe(units, words)
    main = _unmarked(units, words)
    _leave_out_menus(units, words, main)
    # A short heading belongs to what follows it.
    for number in range(len(units) - 2, -1, -1):
        is_short = units[number].kind == "heading" and words[number] <= _HEADLINE_WORDS
        if is_short and units[number + 1].kind != "heading":
            main[number] = main[number] and main[number + 1]
    return main


def _believe(units: Sequence[Unit], words: Sequence[int]) -> None:
    """Decide on the marks from the outermost inwards: which are believed to be
    furniture, and which only closed.

    A region is not believed where it holds nearly all words or a story, unless the one
    around it is believed."""
    marks: dict[int, Mark] = {}
    page_prose = 0
    for unit, count in zip(units, words, strict=True):
        prose = count if _is_prose(unit, count) else 0
        page_prose += prose
        region = unit.furniture
        if region is not None:
            region.add(count, prose, len(unit.shown_text), unit.linked)
            region.holds_main |= _THE_MAIN.search(unit.path) is not None
        while region is not None and id(region) not in marks:
            marks[id(region)] = region
            region = region.outer
    inwards = sorted(marks.values(), key=lambda region: region.depth)
    for region in reversed(inwards):
        if region.outer is not None:
            region.outer.holds_main |= region.holds_main
            region.outer.add(
                region.words, region.prose, region.characters, region.linked
            )
    page_words = sum(words)
    for region in inwards:
        outer = region.outer if region.outer and region.outer.believed else None
        is_furniture = region.may_be(page_words) and not region.is_text(page_prose)
        is_content = region.opens and 2 * region.linked < region.characters
        region.believed = outer is not None or is_furniture
        region.closed = (
            region.believed
            and (is_content or not is_furniture)
            and (outer is None or outer.closed)
        )


def _is_prose(unit: Unit, words: int) -> bool:
    return (
        words >= PROSE
        and unit.kind not in {"code", "heading", "row"}
        and unit.linked < FEW_LINKS * len(unit.shown_text)
    )


def _unmarked(units: Sequence[Unit], words: Sequence[int]) -> list[bool]:
    """Return for each unit whether it is in no region that is believed; where that leaves
    too few words, in none that holds links there."""
    covered = [unit.furniture is not None and unit.furniture.believed for unit in units]
    main = [not hidden for hidden in covered]
    if sum(compress(words, main)) >= (1 - _MARKED_SHARE) * sum(words):
        return main
    return [
        not (hidden and _is_linking(unit))
        for unit, hidden in zip(units, covered, strict=True)
    ]


def _is_linking(unit: Unit) -> bool:
    in_menu = _NAV_PATH.search(unit.path) is not None
    return in_menu or 2 * unit.linked > len(unit.shown_text)


def _leave_out_menus(
    units: Sequence[Unit], words: Sequence[int], main: list[bool]
) -> None:
    """Take links out of the main content where as many as a menu has follow each other,
    unless they are the page's list or nearly all of it; changes `main`."""
    links = [_is_link(unit, count) for unit, count in zip(units, words, strict=True)]
    linked = sum(compress(words, map(all, zip(main, links, strict=True))))
    if linked > _MARKED_SHARE * sum(compress(words, main)):
        return
    for is_link, group in groupby(range(len(units)), key=links.__getitem__):
        run = list(group)
        if is_link and len(run) >= NEIGHBOURS and not _is_index(units, words, run):
            for number in run:
                main[number] = False


def _is_index(units: Sequence[Unit], words: Sequence[int], run: Sequence[int]) -> bool:
    """Return whether adjacent links are the page's list: directly below its title, with
    several words in each, like threads of a board and unlike menus."""
    is_first = run[0] > 0 and units[run[0] - 1].html.startswith("<h1")
    return is_first and sum(words[n] for n in run) >= _TITLE_WORDS * len(run)


def _is_link(unit: Unit, words: int) -> bool:
    """Whether a unit is a link and little else; what ends in a colon leads in what
    follows."""
    return (
        unit.kind in {"item", "block", "paragraph"}
        and words <= LABEL_WORDS
        and 2 * unit.linked > len(unit.shown_text)
        and not unit.text.endswith(":")
    )
