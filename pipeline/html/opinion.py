"""A page's main content for reading without a question: text that occurs once, between
blocks that two extractors keep.

Furniture that says so of itself is known by then (`furniture.py`). Also removed:
everything around the `main` or `article` element with most of the content; sections
whose headings lead on to other pages, ask for something or share this one, and comments
below an article; text above the title, or without one before the first block that
trafilatura keeps too; text after the box of the last such block; buttons, and labels
and captions among what it does not have; repeated texts for another screen width. It
costs four times what reading the page does, so it is not for questions: for them every
block is kept, and ranking separates content from the rest."""

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from itertools import accumulate, chain, pairwise, takewhile
from operator import itemgetter
from typing import Final, Literal

from pipeline.document.page import Block, Document
from pipeline.document.tree import count_words, shape_of
from pipeline.html.document import LXML, PARSER_FAILURES
from pipeline.html.furniture import FEW_LINKS, NAMED_SO, NEIGHBOURS, PROSE
from pipeline.text.words import any_of, whole_words
from pipeline.text.words import words as entries

_Lead = Literal["", "comments", "heading", "label"]
SHARED_RUN_WORDS: Final = 3
"""Words of a run that both readers have."""
ENOUGH_TEXT: Final = 4
"""Minimum words of a block to be found in another text, and to count as repeated."""
AGREED: Final = 0.5
"""Minimum share of the content's words in trafilatura's result to use it everywhere, as
on threads (figures: docs/log.md, 2026-11-27)."""
COMPACT: Final = 0.8
"""Minimum share of the text between the first and last common block to use
trafilatura's result even if it is small: its text is then one piece. Any bound from .5
to .9 gives the same on news."""
DENSE: Final = 0.8
"""Minimum of that share, counted from the beginning of the story, to drop text apart
from trafilatura's blocks (figures: docs/log.md, 2026-11-27)."""
LONG_WORDS: Final = 100
"""Words of content from which a second opinion is asked, and of a piece from which it
is believed."""
PASSED_OVER: Final = 30
"""Most words, a paragraph and a date, between a heading and where trafilatura begins
below it that belong to the content. Word F1 of news held aside is .002 higher with 10
to 40 than with 80 or without a bound."""
MISNAMED: Final = 0.4
"""Share of trafilatura's text from which running text in boxes that are named as
furniture is content. Word F1 of mozilla's pages looked at is .918 without, .935 with
.4, .941 with .3, which costs collections .023."""
STORY: Final = 60
"""Words of running text below a page's title, or in one box, that are its story. With
40 to 100 the figures are the same."""
OPINION_CHARACTERS: Final = 1_000_000
"""Characters of markup, scripts and styles left out, up to which a second opinion is
asked; most take a tenth of a second, the longest half of one."""
LABEL: Final = 8
"""Words up to which a block that trafilatura does not have, nor its neighbours, is a
label (`Add to cart`, `5,421`)."""
BUTTON: Final = 20
"""Words up to which a button is looked for in a text; the longest that is one on 108
pages has 16."""
CONTENT_SHARE: Final = 0.7
"""Minimum share of the content in a `main` or `article` to drop everything around it,
and before a heading that leads away to end the page there (figures: docs/log.md,
2026-11-27)."""
POST: Final = 20
"""Words of trafilatura's in a record, on average, from which it is a post and not a
card."""
_PROSE_KINDS: Final = frozenset({"block", "item", "paragraph"})
"""Kinds of blocks that may be buttons or links."""
_WHOLE_KINDS: Final = frozenset({"code", "row"})
"""Kinds of blocks that trafilatura often loses, and that may say the same twice."""
_REGIONS: Final = (re.compile(r".*?/main\d*(?:/|$)"), re.compile(r".*?/article(?:/|$)"))
_WORD: Final = re.compile(r"\w+")
_PHRASE: Final = re.compile(r"\w+|#")
"""A word, or a number, of what headings say."""
_UNSHOWN_TAGS: Final = ("script", "style", "svg")
_TAG: Final = re.compile("<[^<>]*>")
_ANCHOR_ELEMENT: Final = re.compile(r"<a>(.*?)</a>", re.DOTALL)
_log: Final = logging.getLogger("winnow.html")


def main_content(document: Document) -> list[bool]:
    """Return for each block whether it is main content.

    Where trafilatura agrees on too little, its opinion counts for nothing, and the
    content ends with the page."""
    blocks = document.blocks
    # 1. What may be content: no furniture, nothing around the story, no way to other pages.
    words = list(map(_words_of, blocks))
    runs = _other_runs(document, words)
    is_main = [block.main or block.closed for block in blocks]
    for number in _misnamed(blocks, words, runs):
        is_main[number] = True
    words = _only(words, is_main)
    of_all = sum(map(len, words))
    titles = _titles(document, words)
    story = [*chain.from_iterable(_section(blocks, title) for title in titles)]
    for number in (*_around(blocks, words, story), *_asides(blocks, words)):
        is_main[number] = False
    words = _only(words, is_main)

    # 2. Where it begins and ends, by what another reader has as well.
    agreed = _agreed(blocks, words, of_all, runs, story)
    shared = _Parts.of(blocks, words, agreed)
    first_block, last_block = _span(blocks, words, titles, agreed)

    # 3. Repeated text, and labels among it.
    inside = [number for number in range(first_block, last_block + 1) if words[number]]
    dropped = _again(blocks, words, inside) | _labels(
        document, words, inside, first_block, shared
    )
    content = set(range(first_block, last_block + 1)) - dropped
    return [
        keep and (block.kind in _WHOLE_KINDS or number in content)
        for number, (block, keep) in enumerate(zip(blocks, is_main, strict=True))
    ]


def _words_of(block: Block) -> list[str]:
    return _WORD.findall(block.text.lower()) if block.kind != "about" else []


def _only(words: Sequence[list[str]], is_main: Sequence[bool]) -> list[list[str]]:
    """Return the words of the kept blocks, none for the others."""
    return [
        block_words if keep else []
        for block_words, keep in zip(words, is_main, strict=True)
    ]


@dataclass(slots=True)
class _Alike:
    """Paths that differ in their numbers only: posts, cards, or the same field in each
    of them."""

    places: set[str] = field(default_factory=set)
    words: int = 0
    agreed: int = 0
    """Words in blocks that trafilatura has as well."""

    def add(self, path: str, words: int, agreed: int) -> None:
        self.places.add(path)
        self.words += words
        self.agreed += agreed

    @property
    def repeats(self) -> bool:
        return len(self.places) >= NEIGHBOURS


@dataclass(slots=True)
class _Parts:
    """Blocks that both extractors keep, and similar blocks in records."""

    agreed: set[int]
    """Blocks that trafilatura has as well."""
    similar: set[int] = field(default_factory=set)
    """Blocks of a field of records of which it has most: a short post among long
    ones."""
    badges: set[int] = field(default_factory=set)
    """Short fields of posts of which it has none: name and rank of who wrote, dates,
    counts."""

    @classmethod
    def of(
        cls, blocks: Sequence[Block], words: Sequence[Sequence[str]], agreed: set[int]
    ) -> "_Parts":
        shared = cls(agreed)
        if not agreed:
            return shared
        fields, boxes = _alike(blocks, words, agreed)
        for number, block_words in enumerate(words):
            block = blocks[number]
            group = fields[shape_of(block.path)]
            if not block_words or number in agreed or not group.repeats:
                continue
            if 2 * group.agreed >= group.words:
                shared.similar.add(number)
            elif (
                not group.agreed
                and _is_field(block, block_words)
                and _is_in_post(block, boxes)
            ):
                shared.badges.add(number)
        return shared


def _alike(
    blocks: Sequence[Block], words: Sequence[Sequence[str]], agreed: Set[int]
) -> tuple[Mapping[str, _Alike], Mapping[str, _Alike]]:
    """Return by shape of path the blocks that are alike, and the boxes around them."""
    fields, boxes = (
        defaultdict[str, _Alike](_Alike),
        defaultdict[str, _Alike](_Alike),
    )
    for number, block_words in enumerate(words):
        if block_words:
            path, shared = blocks[number].path, len(block_words) * (number in agreed)
            fields[shape_of(path)].add(_box(blocks[number]), len(block_words), shared)
            for box in _boxes(path):
                boxes[shape_of(box)].add(box, len(block_words), shared)
    return fields, boxes


def _is_in_post(block: Block, boxes: Mapping[str, _Alike]) -> bool:
    """Whether the innermost box around a block that repeats, and that trafilatura has,
    is one of several posts."""
    groups = (boxes[shape_of(box)] for box in _boxes(block.path))
    record = next((group for group in groups if group.repeats and group.agreed), None)
    return record is not None and _are_posts(record)


def _is_field(block: Block, words: Sequence[str]) -> bool:
    """Whether a block may be a field of a record beside its text: short, no heading, no
    item of the text."""
    return block.kind in {"block", "paragraph", "definition"} and len(words) < PROSE


def _are_posts(records: _Alike) -> bool:
    """Whether records are running text by most of their words."""
    return 2 * records.agreed >= records.words and records.agreed >= POST * len(
        records.places
    )


def _boxes(path: str) -> Iterator[str]:
    """Yield the elements around one, the innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _span(
    blocks: Sequence[Block],
    words: Sequence[Sequence[str]],
    titles: Sequence[int],
    agreed: Set[int],
) -> tuple[int, int]:
    """Return the first and the last block of the content."""
    top = _top(blocks, titles, words, agreed)
    if not agreed:
        return top, len(blocks) - 1
    first_common = min(agreed)
    heading = _heading_over(blocks, first_common)
    passed_over = sum(map(len, words[heading + 1 : first_common]))
    return max(top, heading if passed_over <= PASSED_OVER else first_common), _end(
        blocks, max(agreed)
    )


def _density(
    words: Sequence[Sequence[str]], first_block: int, agreed: Set[int]
) -> float:
    """Return the share of common blocks in the text from a block to the last common
    one."""
    word_count = sum(map(len, words[first_block : max(agreed, default=0) + 1]))
    return sum(len(words[number]) for number in agreed) / max(1, word_count)


def _labels(
    document: Document,
    words: Sequence[Sequence[str]],
    inside: Sequence[int],
    first_block: int,
    shared: _Parts,
) -> set[int]:
    """Return which of some blocks are buttons, labels, captions and notes between the
    content."""
    blocks = document.blocks
    labels = shared.badges | _pressed(document, words, inside)
    common = shared.agreed | shared.similar
    if not common:
        return labels
    boxes = {
        _box(blocks[number]) for number in common if blocks[number].kind != "heading"
    }
    is_piece = _density(words, first_block, shared.agreed) >= DENSE
    for number in inside:
        if number in shared.agreed:
            continue
        block = blocks[number]
        apart = common.isdisjoint((number - 1, number, number + 1))
        length = _length(block, words[number])
        is_outside = (
            block.kind in _PROSE_KINDS and length < PROSE and _box(block) not in boxes
        )
        if (is_piece and (apart or is_outside)) or _is_label(
            block, length, apart=apart
        ):
            labels.add(number)
    return labels


def _pressed(
    document: Document, words: Sequence[Sequence[str]], inside: Sequence[int]
) -> set[int]:
    """Return which of some blocks hold nothing but buttons."""
    buttons = _buttons(document.page.html)
    return {
        number
        for number in inside
        if document.blocks[number].kind in _PROSE_KINDS
        and _is_buttons(words[number], buttons)
    }


def _again(
    blocks: Sequence[Block], words: Sequence[Sequence[str]], inside: Sequence[int]
) -> set[int]:
    """Return which blocks are prose that occurs a second time, for another screen width
    or as a quotation.

    The repeat is below the same headings, or next to another repeat, but not in the box
    of the first."""
    copies, pairs, seen = (
        set[int](),
        set[tuple[str, str]](),
        set[tuple[str, str | tuple[str, ...]]](),
    )
    for index, number in enumerate(inside):
        block = blocks[number]
        box, in_section = (block.text, _box(block)), (block.text, block.heading_path)
        adjacent = [
            blocks[neighbour].text
            for neighbour in inside[max(0, index - 1) : index + 2]
        ]
        is_copy = in_section in seen or not pairs.isdisjoint(pairwise(adjacent))
        if is_copy and len(words[number]) >= PROSE and box not in seen:
            copies.add(number)
        seen |= {box, in_section}
        if index:
            pairs.add((adjacent[0], block.text))
    return copies


def _end(blocks: Sequence[Block], number: int) -> int:
    """Return the last block of a block's box: trafilatura may stop before a text or
    list ends."""
    box = f"{_box(blocks[number])}/"
    while number + 1 < len(blocks) and blocks[number + 1].path.startswith(box):
        number += 1
    return number


def _around(
    blocks: Sequence[Block], words: Sequence[Sequence[str]], story: Sequence[int]
) -> list[int]:
    """Return the blocks outside of the `main` or `article` element with most of the
    content; none where no such element has `CONTENT_SHARE` of the words, or the story is outside
    of it."""
    outside = set[int]()
    for region in _REGIONS:
        inside = Counter[str]()
        for block, block_words in zip(blocks, words, strict=True):
            if match := region.match(block.path):
                inside[match[0]] += len(block_words)
        box, held = max(inside.items(), key=itemgetter(1), default=("", 0))
        apart = [number for number in story if not blocks[number].path.startswith(box)]
        if (
            box
            and held >= CONTENT_SHARE * sum(map(len, words))
            and _prose(words, apart) < STORY
        ):
            outside |= {
                number
                for number, block in enumerate(blocks)
                if not block.path.startswith(box)
            }
    return sorted(outside)


def _asides(blocks: Sequence[Block], words: Sequence[Sequence[str]]) -> list[int]:
    """Return the sections whose headings lead away from the content, and all that
    follows such a heading near the end.

    Such a section ends where the text above goes on below in its own box, as around an
    inset. Comments are none of it where they come after what they comment on: one
    heading, more words above it than below. Other sections with more than
    `1 - CONTENT_SHARE` of the words are kept as content, unless a story is above them,
    as above teasers."""
    before = list(accumulate(map(len, words), initial=0))
    running = {
        _box(blocks[index]): index
        for index in reversed(range(len(blocks)))
        if len(words[index]) >= PROSE
    }
    story = _first_story(blocks, words)
    asides: list[int] = []
    reached = 0
    for number, kind in _leads(blocks, words).items():
        if number < reached:
            continue
        is_last = kind != "label" and before[number] >= CONTENT_SHARE * before[-1]
        stop = len(blocks) if is_last else _end_of_section(blocks, number)
        stop = _end_of_inset(blocks, words, running, number, stop)
        size = before[stop] - before[number]
        is_below = size <= before[number] if kind == "comments" else number > story
        if is_below or size <= (1 - CONTENT_SHARE) * before[-1]:
            asides += (
                index
                for index in range(number, stop)
                if blocks[index].kind not in _WHOLE_KINDS
            )
            reached = stop
    return asides


def _leads(blocks: Sequence[Block], words: Sequence[Sequence[str]]) -> dict[int, _Lead]:
    """Return the blocks that lead away from the content; none to comments where several
    do."""
    kinds = {
        number: _leads_away(blocks[number], block_words)
        for number, block_words in enumerate(words)
        if block_words
    }
    many_comments = list(kinds.values()).count("comments") > 1
    left_out = {"", "comments"} if many_comments else {""}
    return {number: kind for number, kind in kinds.items() if kind not in left_out}


def _end_of_inset(
    blocks: Sequence[Block],
    words: Sequence[Sequence[str]],
    running: Mapping[str, int],
    number: int,
    stop: int,
) -> int:
    """Return where the text above a heading goes on below it in its own box; `stop`
    where it does not, and where the heading is of that text itself.

    `running` holds the first block of running text in each box."""
    if running.get(_box(blocks[number]), number) < number:
        return stop
    continuations = (
        index
        for index in range(number, stop)
        if len(words[index]) >= PROSE and running[_box(blocks[index])] < number
    )
    return next(continuations, stop)


def _first_story(blocks: Sequence[Block], words: Sequence[Sequence[str]]) -> int:
    """Return the first block by which one box holds `STORY` words of running text; the
    number of blocks if none does."""
    running = Counter[str]()
    for number, block_words in enumerate(words):
        if len(block_words) >= PROSE:
            running[_box(blocks[number])] += len(block_words)
            if running[_box(blocks[number])] >= STORY:
                return number
    return len(blocks)


def _leads_away(block: Block, words: Sequence[str]) -> _Lead:
    """Return how a block says that what is below it is about other pages, asks for
    something, or shares this one; "" for one that does none of these."""
    is_label = block.kind in {"block", "paragraph"} and _length(block, words) <= LABEL
    if not is_label and block.kind != "heading":
        return ""
    text = " ".join("#" if word.isdecimal() else word for word in words)
    full_headings, begins, comments = _phrases()
    if comments.fullmatch(text):
        return "comments"
    if full_headings.fullmatch(text.strip(" #")):
        return "heading"
    return ("label" if is_label else "heading") if begins.match(text) else ""


def _end_of_section(blocks: Sequence[Block], number: int) -> int:
    """Return where the section of a heading ends: before the next of its level, or with
    the box that it begins."""
    stop, head = number + 1, blocks[number]
    while (
        head.kind == "heading"
        and stop < len(blocks)
        and head.text in blocks[stop].heading_path
    ):
        stop += 1
    before = f"{blocks[number - 1].path}/" if number else ""
    box = head.path
    while (outer := box.rpartition("/")[0]) and not before.startswith(f"{outer}/"):
        box = outer
    while stop < len(blocks) and blocks[stop].path.startswith(f"{box}/"):
        stop += 1
    return stop


@cache
def _phrases() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return what headings that lead away say as a whole, how others begin, and what
    headings of comments say."""
    full_headings, begins, comments = (
        {" ".join(_PHRASE.findall(entry)) for entry in entries(f"asides.{name}")}
        for name in ("whole", "begins", "comments")
    )
    counted = {
        entry for entry in comments if entry.startswith("#")
    }  # `15 replies to "Our new licence"`
    thread = re.compile(rf"(?:{any_of(comments)})|(?:{any_of(counted)}) .*")
    return re.compile(any_of(full_headings)), whole_words(begins), thread


def _buttons(html: str) -> dict[str, set[tuple[str, ...]]]:
    """Return the labels of a page's buttons by their first word, except buttons that
    open a section."""
    labels: dict[str, set[tuple[str, ...]]] = {}
    for markup in html.split("<button")[1:]:
        head, _, content = markup.partition(">")
        text = unescape(_TAG.sub(" ", content.partition("</button")[0]))
        if "aria-expanded" not in head and (
            words := tuple(_WORD.findall(text.lower()))
        ):
            labels.setdefault(words[0], set()).add(words)
    return labels


def _is_buttons(
    words: Sequence[str], buttons: Mapping[str, Set[tuple[str, ...]]]
) -> bool:
    """Return whether a text is a sequence of button labels of at most `BUTTON` words
    each; False for an empty text."""
    ends = {0}
    for start, word in enumerate(words):
        if start in ends and word in buttons:
            limit = min(len(words), start + BUTTON)
            ends |= {
                end
                for end in range(start + 1, limit + 1)
                if tuple(words[start:end]) in buttons[word]
            }
    return len(words) in ends and bool(words)


def _titles(document: Document, words: Sequence[Sequence[str]]) -> list[int]:
    """Return the number of the first heading of two words or more that the page's title
    names, else of its one `h1`; empty if it has neither."""
    blocks = document.blocks
    heads = [
        number
        for number, block in enumerate(blocks)
        if words[number] and block.kind == "heading"
    ]
    h1_headings = [number for number in heads if blocks[number].html.startswith("<h1>")]
    title = f" {' '.join(_WORD.findall(document.page.title.lower()))} "
    matching = (number for number in heads if f" {' '.join(words[number])} " in title)
    titles = [number for number in matching if len(words[number]) > 1]
    return titles[:1] or (h1_headings if len(h1_headings) == 1 else [])


def _section(blocks: Sequence[Block], heading: int) -> list[int]:
    """Return a heading and the blocks up to the next one."""
    following = range(heading + 1, len(blocks))
    return [
        heading,
        *takewhile(lambda number: blocks[number].kind != "heading", following),
    ]


def _prose(words: Sequence[Sequence[str]], numbers: Iterable[int]) -> int:
    """Return the words of running text in some blocks."""
    return sum(count for number in numbers if (count := len(words[number])) >= PROSE)


def _top(
    blocks: Sequence[Block],
    titles: Sequence[int],
    words: Sequence[Sequence[str]],
    agreed: Set[int],
) -> int:
    """Return the number of the heading over the story, else 0.

    It is not after the story: above it is less than half of the common blocks, or of
    all words; or, as after a banner in every language, nothing in the same `main`."""
    counts = [
        len(block_words) if number in agreed or not agreed else 0
        for number, block_words in enumerate(words)
    ]
    for top in titles:
        main = _REGIONS[0].match(blocks[top].path)
        preceding = [
            number
            for number in range(top)
            if main and blocks[number].path.startswith(main[0])
        ]
        begins = main is not None and not any(counts[number] for number in preceding)
        if begins or 2 * sum(counts[:top]) < sum(counts):
            return top
    return 0


def _heading_over(blocks: Sequence[Block], number: int) -> int:
    """Return the nearest heading above a block, else the block: trafilatura may begin
    below its title."""
    headings = blocks[number].heading_path
    over = (
        index for index in range(number - 1, -1, -1) if blocks[index].kind == "heading"
    )
    return next((index for index in over if blocks[index].text in headings), number)


def _length(block: Block, words: Sequence[str]) -> int:
    """Return the words of a block, in scripts without blanks between them as well."""
    return max(len(words), count_words(block.text))


def _is_label(block: Block, words: int, *, apart: bool) -> bool:
    """Whether a block is a label or a caption."""
    return block.kind == "caption" or (
        block.kind == "block" and apart and words <= LABEL
    )


def _outside(
    blocks: Sequence[Block], words: Sequence[Sequence[str]], numbers: Iterable[int]
) -> int:
    """Return the words of running text in some blocks, and of links of several words,
    as a board lists its threads."""
    return sum(
        len(words[number])
        for number in numbers
        if len(words[number]) >= PROSE
        or (
            len(words[number]) >= ENOUGH_TEXT
            and 2 * sum(map(len, _ANCHOR_ELEMENT.findall(blocks[number].html)))
            > len(blocks[number].text)
        )
    )


def _agreed(
    blocks: Sequence[Block],
    words: Sequence[Sequence[str]],
    of_all: int,
    runs: Container[tuple[str, ...]],
    story: Sequence[int],
) -> set[int]:
    """Return the blocks that trafilatura calls content as well, with the text under the
    page's title where it lacks that; none where it, or the page, has too little."""
    if of_all < LONG_WORDS:
        return set()
    agreed = {
        number
        for number, block_words in enumerate(words)
        if len(block_words) >= ENOUGH_TEXT and _is_in(block_words, runs)
    }
    lacking = _outside(blocks, words, set(story) - agreed)
    if not agreed:
        return set()
    if lacking >= STORY and 2 * lacking >= _outside(blocks, words, story):
        agreed |= {number for number in story if len(words[number]) >= ENOUGH_TEXT}
    shared = sum(len(words[number]) for number in agreed)
    span = sum(map(len, words[min(agreed) : max(agreed) + 1]))
    least = STORY if min(agreed) in story else LONG_WORDS
    return (
        agreed if shared >= min(AGREED * of_all, max(least, COMPACT * span)) else set()
    )


def _misnamed(
    blocks: Sequence[Block],
    words: Sequence[Sequence[str]],
    runs: Counter[tuple[str, ...]],
) -> set[int]:
    """Return the blocks in boxes that only their names mark as furniture, but that
    contain much of trafilatura's text: the story of a page, the dishes of an inn in its
    `menu`.

    None where they hold too little of it (`MISNAMED`)."""
    misnamed = {
        number
        for number, block in enumerate(blocks)
        if not (block.main or block.closed or NAMED_SO.search(block.path))
        and len(words[number]) >= PROSE
        and sum(map(len, _ANCHOR_ELEMENT.findall(block.html)))
        < FEW_LINKS * len(block.text)
        and _is_in(words[number], runs)
    }
    if sum(len(words[number]) for number in misnamed) < MISNAMED * runs.total():
        return set()
    return misnamed


def _box(block: Block) -> str:
    return block.path.rpartition("/")[0]


def _other_runs(
    document: Document, words: Sequence[Sequence[str]]
) -> Counter[tuple[str, ...]]:
    """Return how often each run of words occurs in what trafilatura calls content;
    empty for less than `LONG_WORDS` words, for no markup, or more than
    `OPINION_CHARACTERS`."""
    if sum(map(len, words)) < LONG_WORDS:
        return Counter()
    html = _shown(document.page.html) if "html" in document.page.media_type else ""
    if not 0 < len(html) <= OPINION_CHARACTERS:
        return Counter()
    other_words = _WORD.findall(_extracted(html, document.page.final_url).lower())
    return Counter(
        zip(*(other_words[index:] for index in range(SHARED_RUN_WORDS)), strict=False)
    )


def _shown(html: str) -> str:
    """Return a page without scripts, styles and drawings, in time that is as long as
    the page."""
    for name in _UNSHOWN_TAGS:
        *sections, tail = html.split(f"</{name}>")
        html = "".join(
            [*(section.partition(f"<{name}")[0] for section in sections), tail]
        )
    return html


def _is_in(words: Sequence[str], runs: Container[tuple[str, ...]]) -> bool:
    """Whether half of the runs of a block are among those of a text."""
    block_runs = list(
        zip(*(words[index:] for index in range(SHARED_RUN_WORDS)), strict=False)
    )
    return 2 * sum(run in runs for run in block_runs) >= len(block_runs)


def _extracted(html: str, url: str) -> str:
    # Half a second of imports that a question never needs.
    from trafilatura import extract  # noqa: PLC0415

    try:
        with LXML:
            return extract(html) or ""
    except PARSER_FAILURES as error:
        _log.info("trafilatura could not read the text of %s: %r", url, error)
        return ""
