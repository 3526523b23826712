"""A page's main content for reading without a question: text that occurs once, between
blocks that two extractors keep.

Furniture that says so of itself is known by then (`furniture.py`). Also removed:
sections whose headings lead on to other pages, ask for something or share this one, and comments
below an article; what is above the title, or before the first and after the last block
that trafilatura keeps too; where its text is one piece, what is apart from it; buttons,
labels and captions; repeated texts for another screen width. It costs four times what
reading the page does, so it is not for questions: for them every block is kept, and
ranking separates content from the rest."""

import logging
import re
import threading
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import cache
from html import unescape
from itertools import accumulate, pairwise, takewhile
from typing import Final

from pipeline.text.words import any_of, whole_words
from pipeline.text.words import words as entries
from readers.html.furniture import PROSE
from readers.page import Block, Document
from readers.tree import LABEL_WORDS, count_words, shape_of

_Words = Sequence[Sequence[str]]
"""The words of each block, none of those that are not content."""
_RUN_WORDS: Final = 3
"""Words of a run that both readers have."""
_LONG_TEXT: Final = 100
"""Words of content from which a second opinion is asked, and believed."""
_IN_ONE_PIECE: Final = 0.8
"""Share of trafilatura's blocks in the text from the first to the last of them from
which its text is one piece: then it is believed though it is small, and what is apart
from it is left out."""
_MOST: Final = 0.7
"""Share of the content that is above a heading that ends the page (figures: docs/log.md,
2026-11-27)."""
_STORY: Final = 60
"""Words of running text below a page's title, or in one box, that are its story. With
40 to 100 the figures are the same."""
_OPINION_CHARACTERS: Final = 1_000_000
"""Characters of markup, scripts and styles left out, up to which a second opinion is
asked; most take a tenth of a second, the longest half of one."""
_BUTTON: Final = 20
"""Words up to which a button is looked for in a text; the longest that is one on 108
pages has 16."""
_PROSE_KINDS: Final = frozenset({"block", "item", "paragraph"})
"""Kinds of blocks that may be buttons or links."""
_WHOLE_KINDS: Final = frozenset({"code", "row"})
"""Kinds of blocks that trafilatura often loses, and that may say the same twice."""
_WORD: Final = re.compile(r"\w+")
_PHRASE: Final = re.compile(r"\w+|#")
"""A word, or a number, of what headings say."""
_TAG: Final = re.compile("<[^<>]*>")
_LXML: Final = threading.Lock()
"""trafilatura has one lxml parser for all threads, and two at once ended the process
("free(): invalid pointer")."""
_PARSER_FAILURES: Final = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
    AssertionError,
)
"""What trafilatura raises on strange markup; AssertionError is lxml's own, on fragments
such as an svg root."""
_log: Final = logging.getLogger("winnow.html")


def main_content(document: Document) -> list[bool]:
    """Return for each block whether it is main content.

    Where trafilatura agrees on too little, its opinion counts for nothing, and the
    content ends with the page."""
    blocks = document.blocks
    # 1. What may be content: no furniture, no way to other pages.
    words: list[Sequence[str]] = [
        _WORD.findall(block.text.lower()) if block.kind != "about" else []
        for block in blocks
    ]
    is_main = [block.main or block.closed for block in blocks]
    words = _only(words, is_main)
    for number in _asides(blocks, words):
        is_main[number] = False
    words = _only(words, is_main)

    # 2. Where it begins and ends, by what another reader has as well.
    # Above the title of a text of one's own is its front matter, not a site's banner.
    is_web = "html" in document.page.media_type
    title = _title(document, words) if is_web else None
    agreed = _agreed(blocks, words, _other_runs(document, words), title)
    start, stop = _span(blocks, words, title, agreed)

    # 3. Repeated text, and labels among it.
    inside = [number for number in range(start, stop) if words[number]]
    dropped = _again(blocks, words, inside) | _pressed(document, words, inside)
    dropped |= _apart(blocks, words, inside, agreed)
    content = set(range(start, stop)) - dropped
    return [
        keep and (block.kind in _WHOLE_KINDS or number in content)
        for number, (block, keep) in enumerate(zip(blocks, is_main, strict=True))
    ]


def _only(words: _Words, is_main: Sequence[bool]) -> list[Sequence[str]]:
    """Return the words of the kept blocks, none for the others."""
    return [
        block_words if keep else []
        for block_words, keep in zip(words, is_main, strict=True)
    ]


def _box(block: Block) -> str:
    return block.path.rpartition("/")[0]


def _prose(words: _Words, numbers: Iterable[int]) -> int:
    """Return the words of running text in some blocks."""
    return sum(count for number in numbers if (count := len(words[number])) >= PROSE)


# Sections that lead away


def _asides(blocks: Sequence[Block], words: _Words) -> list[int]:
    """Return the sections whose headings lead away from the content, and all that
    follows such a heading near the end.

    Such a section ends where the text above goes on below in its own box, as around an
    inset. Sections with more than `1 - _MOST` of the words are kept as content, unless a
    story is above them, as above comments and teasers."""
    before = list(accumulate(map(len, words), initial=0))
    story = _first_story(blocks, words)
    asides: list[int] = []
    reached = 0
    for number in _leads(blocks, words):
        if number < reached:
            continue
        is_final = before[number] >= _MOST * before[-1]
        stop = _end_of_section(blocks, words, number, is_final=is_final)
        size = before[stop] - before[number]
        if number > story or size <= (1 - _MOST) * before[-1]:
            section = range(number, stop)
            asides += (n for n in section if blocks[n].kind not in _WHOLE_KINDS)
            reached = stop
    return asides


def _leads(blocks: Sequence[Block], words: _Words) -> list[int]:
    """Return the headings that say that what is below them is about other pages, comments
    on this one, asks for something, or shares it. Where several say comments, each is
    about a part of the content, as on boards, and none leads away."""
    full_headings, begins, comments = _phrases()
    leads, on_this = list[int](), list[int]()
    for number, block_words in enumerate(words):
        text = " ".join("#" if word.isdecimal() else word for word in block_words)
        if not text or blocks[number].kind != "heading":
            continue
        if comments.fullmatch(text):
            on_this.append(number)
        elif full_headings.fullmatch(text.strip(" #")) or begins.match(text):
            leads.append(number)
    return sorted(leads + on_this) if len(on_this) == 1 else leads


@cache
def _phrases() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return what headings that lead away say as a whole, how others begin, and what
    headings of comments say."""
    full_headings, begins, comments = (
        {" ".join(_PHRASE.findall(entry)) for entry in entries(f"asides.{name}")}
        for name in ("whole", "begins", "comments")
    )
    # `15 comments on "Our new licence"`
    counted = {entry for entry in comments if entry.startswith("#")}
    thread = re.compile(rf"(?:{any_of(comments)})|(?:{any_of(counted)}) .*")
    return re.compile(any_of(full_headings)), whole_words(begins), thread


def _first_story(blocks: Sequence[Block], words: _Words) -> int:
    """Return the first block by which one box holds `_STORY` words of running text; the
    number of blocks if none does."""
    running = Counter[str]()
    for number, block_words in enumerate(words):
        if len(block_words) >= PROSE:
            running[_box(blocks[number])] += len(block_words)
            if running[_box(blocks[number])] >= _STORY:
                return number
    return len(blocks)


def _end_of_section(
    blocks: Sequence[Block], words: _Words, number: int, *, is_final: bool
) -> int:
    """Return where the section of a heading ends: before the next heading that is not
    below it, the page's end if it is the final one, or before the text that a box around
    it goes on with."""
    head = blocks[number]
    running = {_box(blocks[n]) for n in range(number) if len(words[n]) >= PROSE}
    stop = number + 1
    while stop < len(blocks) and (is_final or head.text in blocks[stop].heading_path):
        is_continued = _box(blocks[stop]) in running and _box(head) not in running
        if is_continued and len(words[stop]) >= PROSE:
            break
        stop += 1
    return stop


def _title(document: Document, words: _Words) -> int | None:
    """Return the number of the first heading of two words or more that the page's title
    names, else of its first `h1`; None where it has neither."""
    blocks = document.blocks
    title = f" {' '.join(_WORD.findall(document.page.title.lower()))} "
    heads = [
        number
        for number, block in enumerate(blocks)
        if words[number] and block.kind == "heading"
    ]
    matching = [n for n in heads if f" {' '.join(words[n])} " in title]
    titles = [number for number in matching if len(words[number]) > 1]
    titles += [number for number in heads if blocks[number].html.startswith("<h1>")]
    return titles[0] if titles else None


def _section(blocks: Sequence[Block], heading: int) -> list[int]:
    following = range(heading + 1, len(blocks))
    numbers = takewhile(lambda number: blocks[number].kind != "heading", following)
    return [heading, *numbers]


# What the other reader has


def _other_runs(document: Document, words: _Words) -> Set[tuple[str, ...]]:
    """Return the runs of words in what trafilatura calls content; none for less than
    `_LONG_TEXT` words, for no markup, or more than `_OPINION_CHARACTERS`."""
    page = document.page
    if sum(map(len, words)) < _LONG_TEXT or "html" not in page.media_type:
        return set()
    html = _shown(page.html)
    is_asked = len(html) <= _OPINION_CHARACTERS
    text = _extracted(html) if is_asked else ""
    return set(_runs(_WORD.findall(text.lower())))


def _runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[index:] for index in range(_RUN_WORDS)), strict=False))


def _shown(html: str) -> str:
    """Return a page without scripts, styles and drawings, in time that is as long as
    the page."""
    for name in ("script", "style", "svg"):
        *sections, tail = html.split(f"</{name}>")
        html = "".join(
            [*(section.partition(f"<{name}")[0] for section in sections), tail]
        )
    return html


def _extracted(html: str) -> str:
    # Half a second of imports that a question never needs.
    from trafilatura import extract  # noqa: PLC0415

    try:
        with _LXML:
            return extract(html) or ""
    except _PARSER_FAILURES as error:
        _log.info("trafilatura could not read a page: %s", type(error).__name__)
        return ""


def _is_in(words: Sequence[str], runs: Set[tuple[str, ...]]) -> bool:
    """Whether a block has a run of words, and half of its runs are among those of a
    text."""
    block_runs = _runs(words)
    count = sum(run in runs for run in block_runs)
    return len(words) > _RUN_WORDS and 2 * count >= len(block_runs)


def _agreed(
    blocks: Sequence[Block],
    words: _Words,
    runs: Set[tuple[str, ...]],
    title: int | None,
) -> set[int]:
    """Return the blocks that trafilatura calls content as well, with the text under the
    page's title where it lacks that; none where it has too little."""
    agreed = {
        number for number, block_words in enumerate(words) if _is_in(block_words, runs)
    }
    if not agreed:
        return set()
    story = [] if title is None else _section(blocks, title)
    lacking = _prose(words, set(story) - agreed)
    if lacking >= _STORY and 2 * lacking >= _prose(words, story):
        agreed |= {number for number in story if len(words[number]) > _RUN_WORDS}
    shared = sum(len(words[number]) for number in agreed)
    span = sum(map(len, words[min(agreed) : max(agreed) + 1]))
    is_most = 2 * shared >= sum(map(len, words))
    least = max(_STORY if min(agreed) in story else _LONG_TEXT, _IN_ONE_PIECE * span)
    return agreed if is_most or shared >= least else set()


def _span(
    blocks: Sequence[Block], words: _Words, title: int | None, agreed: Set[int]
) -> tuple[int, int]:
    """Return where the content begins and ends: with the heading over the first common
    block and a paragraph between them, and the box of the last, but not above a title
    that is above most of the text."""
    start, stop = min(agreed, default=0), max(agreed, default=len(words) - 1) + 1
    heads = reversed([*enumerate(blocks[: start + 1])])
    head = next((n for n, block in heads if block.kind == "heading"), start)
    if sum(map(len, words[head + 1 : start])) <= 2 * PROSE:
        start = head
    box = f"{_box(blocks[stop - 1])}/" if stop else ""
    while stop < len(blocks) and blocks[stop].path.startswith(box):
        stop += 1
    if title is not None:
        counted = agreed or range(len(words))
        upper = sum(len(words[number]) for number in counted if number < title)
        if 2 * upper < sum(len(words[number]) for number in counted):
            start = max(start, title)
    return start, stop


# What is left out of it


def _again(blocks: Sequence[Block], words: _Words, inside: Sequence[int]) -> set[int]:
    """Return which blocks are prose that occurs a second time, for another screen width
    or as a quotation.

    The repeat is below the same headings, or next to another repeat, but not in the box
    of the first."""
    copies, pairs, seen = set[int](), set[tuple[str, str]](), set[object]()
    texts = [blocks[number].text for number in inside]
    for index, number in enumerate(inside):
        block = blocks[number]
        box, section = (block.text, _box(block)), (block.text, block.heading_path)
        adjacent = pairwise(texts[max(0, index - 1) : index + 2])
        is_copy = section in seen or not pairs.isdisjoint(adjacent)
        if is_copy and len(words[number]) >= PROSE and box not in seen:
            copies.add(number)
        seen |= {box, section}
        pairs |= {*pairwise(texts[max(0, index - 1) : index + 1])}
    return copies


def _pressed(document: Document, words: _Words, inside: Sequence[int]) -> set[int]:
    buttons = _buttons(document.page.html)
    return {
        number
        for number in inside
        if document.blocks[number].kind in _PROSE_KINDS
        and _is_buttons(words[number], buttons)
    }


def _buttons(html: str) -> set[tuple[str, ...]]:
    """Return the labels of a page's buttons, except buttons that open a section."""
    labels: set[tuple[str, ...]] = set()
    for markup in html.split("<button")[1:]:
        head, _, content = markup.partition(">")
        if "aria-expanded" not in head:
            text = unescape(_TAG.sub(" ", content.partition("</button")[0]))
            labels.add(tuple(_WORD.findall(text.lower())))
    return labels


def _is_buttons(words: Sequence[str], buttons: Set[tuple[str, ...]]) -> bool:
    """Return whether a text is a sequence of button labels of at most `_BUTTON` words
    each."""
    ends = {0}
    for start in range(len(words)):
        if start in ends:
            limit = min(len(words), start + _BUTTON)
            ends |= {
                stop
                for stop in range(start + 1, limit + 1)
                if tuple(words[start:stop]) in buttons
            }
    return len(words) in ends


def _apart(
    blocks: Sequence[Block], words: _Words, inside: Sequence[int], agreed: Set[int]
) -> set[int]:
    """Return which of some blocks are labels, captions and notes between the content;
    where trafilatura's text is one piece, all that is apart from it.

    A block in the same place of a record as one of trafilatura's counts as that: a short
    post among long ones."""
    if not agreed:
        return set()
    shapes = {shape_of(blocks[number].path) for number in agreed}
    common = {n for n in inside if n in agreed or shape_of(blocks[n].path) in shapes}
    boxes = {_box(blocks[n]) for n in common if blocks[n].kind != "heading"}
    word_count = sum(len(words[n]) for n in inside if n <= max(agreed))
    is_piece = sum(len(words[n]) for n in agreed) >= _IN_ONE_PIECE * word_count
    apart: set[int] = set()
    for number in inside:
        block, length = blocks[number], _length(blocks[number], words[number])
        is_alone = common.isdisjoint((number - 1, number, number + 1))
        is_label = is_alone and block.kind == "block" and length <= LABEL_WORDS
        is_short = length < PROSE and block.kind in _PROSE_KINDS
        is_outside = is_alone or (is_short and _box(block) not in boxes)
        if number not in common and (
            block.kind == "caption" or is_label or (is_piece and is_outside)
        ):
            apart.add(number)
    return apart


def _length(block: Block, words: Sequence[str]) -> int:
    """Return the words of a block, in scripts without blanks between them as well."""
    return max(len(words), count_words(block.text))
