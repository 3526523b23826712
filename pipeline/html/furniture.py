"""Separates content from furniture (navigation, footers, link lists, banners) by the
units alone.

Two signs: what the page says of itself (elements, roles, class names; `clean.py` marks
them) and link density over neighbouring units. Not for: removing anything; a unit that
is furniture is only weighed less."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

from selectolax.lexbor import LexborNode

from pipeline.document.page import BlockKind, Ordinal
from pipeline.document.tree import LABEL_WORDS, Node, count_words, shape_of, tags

_BOILERPLATE: Final = tags(
    "ad ads advert adverts breadcrumb breadcrumbs catlinks consent cookie cookies footer gdpr "
    "jump login menu modal "
    "nav navbar navbox navfooter navheader navigation newsletter noprint pager pagination popup "
    "recommended related "
    "share sharing sidebar signup sitesub skip social subscribe toolbar tags"
)
"""Parts of class names and ids, cut at `-` and `_`, that say furniture. Not banner,
promo, toc and widget: on 130 pages tuned on they held as much main text as furniture
(prose kept .965 with them, .974 without)."""
_STYLE_SIGNS: Final = "[(:"
"""A name with one of them is a style in short (`top-[var(--nav-height)]`) and says
nothing about its element."""
_BOILERPLATE_PAIRS: Final = re.compile(r"\b(?:comment-form|read-more)\b")
NEIGHBOURS: Final = 3
"""Links in a row that make a menu, and boxes in a row that begin alike and are
records."""
TITLE_WORDS: Final = 4
"""Words of a thread's title, on average; entries of menus have one or two."""
MARKED_SHARE: Final = 0.75
"""Maximum share of the page's words in an element marked as furniture, except a nav or
footer of links. Links with a larger share of the content are content. If all marks
leave less than the rest, only nav, footer and pure links count."""
MAIN_PROSE: Final = 0.4
"""Maximum share of the page's prose in a furniture element of the main part that has
little else."""
PROSE: Final = 15
"""Words from which a unit with few links is running text."""
FEW_LINKS: Final = 0.15
"""Share of characters in links below which a unit or an element has few; also of an
element's words outside of running text, below which it holds little else."""
ALONE: Final = 5
"""Words up to which a heading is furniture with what follows it; a longer one is a
headline and says something. A class or id of more parts is a title turned into an
anchor, and says nothing about its element."""
_IN_MAIN: Final = re.compile(r"/(?:main|article)\d*(?=/)")
_IN_ITEM: Final = re.compile(r".*?/(?:main|article)\d*/(?:.*?/)?li\d*/")
_NAV_PATH: Final = re.compile(r"/(?:nav|footer)\d*(?=/|$)")
_ASIDE_PATH: Final = re.compile(r"/aside\d*(?=/|$)")
NAMED_SO: Final = re.compile(r"/(?:nav|footer|aside|select)\d*(?=/|$)")
_THE_MAIN: Final = re.compile(r"/main\d*(?=/)")
_ALPHANUMERIC: Final = re.compile(r"[^\W_]+")
_NO_PROSE: Final = frozenset({"code", "heading", "row"})


@dataclass(slots=True, eq=False)
class Mark:
    """An element that says of itself that it is furniture."""

    outer: "Mark | None"
    """The next such element around it."""
    opens: bool = False
    """Whether all that is said of it is that a reader opens it with a click."""
    words: int = 0
    prose: int = 0
    """Words of running text."""
    characters: int = 0
    """Characters."""
    linked: int = 0
    """Characters in links."""
    first_unit: int = -1
    """Number of the first unit in it; -1 for none yet."""
    last_unit: int = -1
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


@dataclass(slots=True)
class Unit:
    """A content unit before offsets are known."""

    path: str
    headings: tuple[str, ...]
    text: str
    shown_text: str
    html: str
    kind: BlockKind
    furniture: Mark | None
    """The innermost mark of furniture around it."""
    linked: int
    """Characters of `shown_text` in links."""
    cells: tuple[str, ...] = ()
    carried: tuple[int, ...] = ()
    lead: str = ""
    main: bool = True
    """False where its own text says that it is none, as line numbers do."""
    described: bool = False
    """Whether it is what an image is said to show, beside the text."""
    ordinal: Ordinal | None = None
    place: str = ""
    """`Block.place`."""


def says_furniture(label: str) -> bool:
    """Whether classes and ids, in lower case, name navigation, a dialog or the like."""
    if not _names_it(label):  # as nearly all do not
        return False
    names = [
        name
        for name in label.split()
        if not any(style_sign in name for style_sign in _STYLE_SIGNS)
    ]
    return any(_names_it(name) and len(_parts(name)) <= ALONE for name in names)


def _names_it(label: str) -> bool:
    return (
        not _BOILERPLATE.isdisjoint(_parts(label))
        or _BOILERPLATE_PAIRS.search(label) is not None
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
    links = [_is_link(unit, count) for unit, count in zip(units, words, strict=True)]
    _leave_out_runs(units, words, main, _menus(units, words, main, links))
    # A short heading belongs to what follows it.
    for number in range(len(units) - 2, -1, -1):
        if (
            units[number].kind == "heading"
            and words[number] <= ALONE
            and units[number + 1].kind != "heading"
        ):
            main[number] = main[number] and main[number + 1]
    return main


def _unmarked(units: Sequence[Unit], words: Sequence[int]) -> list[bool]:
    """Return for each unit whether it is in no mark that is believed; where that leaves
    too few words, in none that holds links there."""
    covered = [unit.furniture is not None and unit.furniture.believed for unit in units]
    main = [
        unit.main and not hidden for unit, hidden in zip(units, covered, strict=True)
    ]
    if sum(compress(words, main)) >= (1 - MARKED_SHARE) * sum(words):
        return main
    return [
        unit.main and not (hidden and _is_linking(unit))
        for unit, hidden in zip(units, covered, strict=True)
    ]


def _is_linking(unit: Unit) -> bool:
    in_menu = _NAV_PATH.search(unit.path) is not None
    return in_menu or 2 * unit.linked > len(unit.shown_text)


def _leave_out_runs(
    units: Sequence[Unit], words: Sequence[int], main: list[bool], links: Sequence[bool]
) -> None:
    """Take links out of the main content where as many as a menu has follow each other,
    unless they are the page's list; changes `main`."""
    start = 0
    while start < len(links):
        end = start
        while end < len(links) and links[end]:
            end += 1
        if end - start >= NEIGHBOURS and not _is_index(units, words, range(start, end)):
            main[start:end] = [False] * (end - start)
        start = end + 1


def _menus(
    units: Sequence[Unit], words: Sequence[int], main: Sequence[bool], links: list[bool]
) -> list[bool]:
    """Return which links may be a menu: none if they are the content, as on an index or
    a list of chapters.

    They are where nearly all that is left of a page is links. Where more than half of
    its main part is, those in it are."""
    inside = [_IN_MAIN.search(unit.path) is not None for unit in units]
    of_all = of_links = of_main = of_main_links = 0
    for count, is_main, link, within in zip(words, main, links, inside, strict=True):
        of_all += count * is_main
        of_links += count * (is_main and link)
        of_main += count * (is_main and within)
        of_main_links += count * (is_main and link and within)
    if of_links > MARKED_SHARE * of_all:
        return [False] * len(units)
    if 2 * of_main_links > of_main:
        return [link and not within for link, within in zip(links, inside, strict=True)]
    return links


def _is_index(units: Sequence[Unit], words: Sequence[int], run: range) -> bool:
    """Return whether adjacent links are the page's list: directly below its title, with
    several words in one field of each record, like threads of a board and unlike
    menus."""
    top, shape = run.start, shape_of(units[run.start].path)
    while (
        top and shape_of(units[top - 1].path) == shape
    ):  # a title too long for a link in a menu
        top -= 1
    if not top or not units[top - 1].html.startswith("<h1"):
        return False
    fields = defaultdict[str, list[int]](list)
    for number in run:
        fields[shape_of(units[number].path)].append(words[number])
    return any(
        len(counts) >= NEIGHBOURS and sum(counts) >= TITLE_WORDS * len(counts)
        for counts in fields.values()
    )


def _is_link(unit: Unit, words: int) -> bool:
    """Whether a unit is a link and little else; what ends in a colon leads in what
    follows."""
    return (
        unit.kind in {"item", "block", "paragraph"}
        and words <= LABEL_WORDS
        and 2 * unit.linked > len(unit.shown_text)
        and not unit.text.endswith(":")
    )


def _believe(units: Sequence[Unit], words: Sequence[int]) -> None:
    """Decide on the marks from the outermost inwards: which are believed to be
    furniture, and which only closed.

    A mark is not believed where it holds nearly all words (a menu may), a story or the
    page's `main`, unless the one around it is believed."""
    inwards, running = _counted(units, words)
    word_limit = MARKED_SHARE * sum(words)
    centre = [
        number for number, unit in enumerate(units) if _THE_MAIN.search(unit.path)
    ]
    for furniture in inwards:
        is_outer_believed = furniture.outer is not None and furniture.outer.believed
        may_be = furniture.words <= word_limit or _is_menu(furniture, units)
        is_believed = may_be and not _holds_content(furniture, units, running, centre)
        furniture.believed = is_outer_believed or is_believed
        is_content = not is_believed or (
            furniture.opens and 2 * furniture.linked < furniture.characters
        )
        furniture.closed = (
            furniture.believed
            and is_content
            and (
                furniture.outer is None
                or not is_outer_believed
                or furniture.outer.closed
            )
        )


def _holds_content(
    furniture: Mark, units: Sequence[Unit], running: int, centre: list[int]
) -> bool:
    """Whether a mark holds a story, or the page's `main` (units `centre`)."""
    if _is_story(furniture, units, running):
        return True
    return bool(centre) and _holds(furniture, units, centre)


def _counted(units: Sequence[Unit], words: Sequence[int]) -> tuple[list[Mark], int]:
    """Return the marks from the outermost inwards, what they hold counted, and the
    words of prose in all."""
    marks: dict[int, Mark] = {}
    running = 0
    for number, (unit, count) in enumerate(zip(units, words, strict=True)):
        prose = count if _is_prose(unit, count) else 0
        running += prose
        furniture = unit.furniture
        if furniture is not None:
            _add(
                furniture,
                Mark(
                    None,
                    False,
                    count,
                    prose,
                    len(unit.shown_text),
                    unit.linked,
                    number,
                    number,
                ),
            )
        while furniture is not None and id(furniture) not in marks:
            marks[id(furniture)] = furniture
            furniture = furniture.outer
    inwards = sorted(marks.values(), key=lambda furniture: furniture.depth)
    for furniture in reversed(inwards):
        if furniture.outer is not None:
            _add(furniture.outer, furniture)
    return inwards, running


def _is_prose(unit: Unit, words: int) -> bool:
    return (
        words >= PROSE
        and unit.kind not in _NO_PROSE
        and unit.linked < FEW_LINKS * len(unit.shown_text)
    )


def _add(furniture: Mark, nested: Mark) -> None:
    """Count a part of a mark with it."""
    furniture.words += nested.words
    furniture.prose += nested.prose
    furniture.characters += nested.characters
    furniture.linked += nested.linked
    furniture.first_unit = (
        nested.first_unit
        if furniture.first_unit < 0
        else min(furniture.first_unit, nested.first_unit)
    )
    furniture.last_unit = max(furniture.last_unit, nested.last_unit)


def _path_of(furniture: Mark, units: Sequence[Unit]) -> str:
    return posixpath.commonpath(
        (units[furniture.first_unit].path, units[furniture.last_unit].path)
    )


def _is_menu(furniture: Mark, units: Sequence[Unit]) -> bool:
    """Whether an element nav or footer holds links and little else, and so is furniture
    however long it is."""
    return (
        2 * furniture.linked > furniture.characters
        and _NAV_PATH.search(_path_of(furniture, units)) is not None
    )


def _holds(furniture: Mark, units: Sequence[Unit], centre: Sequence[int]) -> bool:
    """Whether an element holds the page's `main`, the units numbered in `centre`, and
    so is furniture by name only."""
    is_around = furniture.first_unit <= centre[0] and furniture.last_unit >= centre[-1]
    return is_around and not _THE_MAIN.search(f"{_path_of(furniture, units)}/")


def _is_story(furniture: Mark, units: Sequence[Unit], running: int) -> bool:
    """Whether an element in the main part is content in spite of its name.

    So is one that holds much of the page's `running` words and little else, an aside of
    running text, and the end of a list's item, such as the byline under a headline.
    Outside of the main part nothing is."""
    path = _path_of(furniture, units)
    if not _IN_MAIN.search(path):
        return False
    is_text = (
        furniture.prose >= (1 - FEW_LINKS) * furniture.words
        and furniture.linked < FEW_LINKS * furniture.characters
    )
    if is_text and (
        furniture.prose >= MAIN_PROSE * running or _ASIDE_PATH.search(path)
    ):
        return True
    item = _IN_ITEM.match(path)
    if item is None or NAMED_SO.search(path):
        return False
    return furniture.first_unit > 0 and units[furniture.first_unit - 1].path.startswith(
        item[0]
    )
