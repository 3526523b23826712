"""Pruning: what several pages hold about a question, within one budget of tokens,
written as pages.

The units that the core finds relevant (`pipeline/reading`) are written compactly in
document order. Not for: fetching, cited passages (`pipeline/evidence`), or whole
blocks of a page (`papers/htmlrag`)."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape, unescape
from typing import Final

import numpy as np

from cancellation import check_cancelled
from errors import UsageError
from pipeline.document.units import tag_sentences
from pipeline.evidence.assemble import UNASKED, fill, least_shown, quotable
from pipeline.evidence.forms import Form
from pipeline.evidence.passages import PassageMaker, UnitRange
from pipeline.evidence.render import (
    Kept,
    Style,
    headings_over,
    is_header_row,
    render,
    render_headings,
)
from pipeline.prune.main_content import main_content
from pipeline.question.question import Question
from pipeline.reading.bm25 import JOINT
from pipeline.reading.extract import read_documents
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import Reader
from pipeline.text.tokens import count_each, count_tokens
from pipeline.work import in_thread, traced
from readers.page import Document
from readers.tree import LABEL_WORDS, count_words

UNASKED_PAGE: Final = 2000
"""Tokens without a question, when there are no scores to go by."""


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """How to prune."""

    max_tokens: int | None = None
    """Budget for the texts of all pages together, by `count_tokens`; None is `UNASKED`."""
    format: Form = "markdown"
    part: int = 1
    """1 for the best part, 2 for what would have come next, and so on."""


@dataclass(frozen=True, slots=True)
class PrunedPage:
    """What is kept of one page."""

    document: int
    text: str
    tokens: int
    kept: tuple[int, ...]
    """Indices into `Document.blocks`, in order; a long block may be kept in part."""
    said: str = ""
    """What we say of it, in words of ours."""
    also: tuple[int, ...] = ()
    """Further documents that the text is of."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is kept of all pages."""

    pages: tuple[PrunedPage, ...]
    """Pages of which something is kept, in the order given."""
    tokens: int
    """Of the pages' texts joined by line breaks; at most the budget."""
    budget: int
    """Tokens there were, given or chosen."""
    left_out: int
    """Units that are neither in this part nor in an earlier one; of main content, while
    it is read from the top."""
    around: int = 0
    """Units around the main content of pages read from the top, which follow it as a
    separate part."""
    following: int = 0
    """Number under which what follows is had, where that is not the next one."""
    scored_by: str = ""
    """What made the scores besides the core, and what of the pages it was shown; empty
    for nothing."""
    reading: Reading | None = field(default=None, repr=False, compare=False)
    """The scores of all units; None where whole blocks were scored."""

    @property
    def parts_left(self) -> bool:
        """Whether a further part would hold anything."""
        return bool(self.pages) and self.left_out > 0


@traced("prune")
async def prune(
    documents: Sequence[Document],
    question: Question,
    *,
    options: PruneOptions,
    reader: Reader,
) -> Pruned:
    """Return the parts of `documents` that bear on `question`, within
    `options.max_tokens`.

    Without a question the pages are read from the top. The same arguments give the same
    result.

    Args:
        options: Budget, form, part.
        reader: What judges units.

    Raises:
        UsageError: `options.part` is below 1 or the budget is negative.
        ModelError: A model of `reader` failed.
    """
    if options.part < 1 or (options.max_tokens or 0) < 0:
        raise UsageError(
            (
                f"Part {options.part} with a budget of {options.max_tokens} "
                "tokens cannot be returned."
            ),
            hint="Parts count from 1; the budget is zero or more tokens.",
        )
    if not question:
        reading = await in_thread(_reading_order, documents)
        budget = UNASKED_PAGE if options.max_tokens is None else options.max_tokens
        return await in_thread(
            _fill_parts,
            documents,
            reading,
            replace(options, max_tokens=budget),
        )
    # 1. The core scores every unit
    reading = await read_documents(question, documents, reader=reader)
    # 2. Fill the budget, once for each part up to the one asked for
    budget = UNASKED if options.max_tokens is None else options.max_tokens
    options = replace(options, max_tokens=budget)
    return await in_thread(_fill_parts, documents, reading, options)


def _reading_order(documents: Sequence[Document]) -> Reading:
    """Return a reading without a question: scores fall with the place on the page,
    content before furniture."""
    tagged = tuple(tag_sentences(document) for document in documents)
    content = [main_content(document) for document in documents]
    values = np.array(
        [
            main[unit.block] + 1 - index / (len(units) + 1)
            for main, units in zip(content, tagged, strict=True)
            for index, unit in enumerate(units)
        ],
        dtype=np.float32,
    )
    return Reading("answered", "", 1.0, tagged, values, "content")


def _fill_parts(
    documents: Sequence[Document], reading: Reading, options: PruneOptions
) -> Pruned:
    """Return the part that is asked for: passages about the question, or what follows
    in reading order without one. A part after the last is empty."""
    # The title is in the answer's head; the budget is for what it says besides.
    has_question = reading.made_by != "content"
    pages = _Pages(documents, reading, Style(options.format, titled=True))
    budget = options.max_tokens or 0
    remaining = pages.order()
    maker = PassageMaker(documents, reading, pages.costs)
    written: tuple[PrunedPage, ...] = ()
    outside = 0
    chosen: list[int] = []
    remainder = ""  # of the unit `chosen[0]`, which no part has room for
    least_score = least_shown(remaining, documents, reading)
    for number in range(1, options.part + 1):
        check_cancelled()
        if remainder:
            written, remainder = pages.cut(chosen[0], remainder, options)
            if not written:
                break
            continue
        if has_question:
            ready = quotable(remaining, documents, reading)
            passages = maker.choose(
                ready,
                lambda passages: pages.tokens(_units_in(passages)),
                budget,
                least_score=least_score if number == 1 else 0.0,
            )
            chosen = _units_in(passages)
        else:
            # The page's content scores over 1; what is none of it begins a part of its own.
            ready = [row for row in remaining if reading.values[row] > 1]
            outside = len(remaining) - len(ready) if ready else 0
            ready = ready or remaining
            chosen = fill(ready, pages.tokens, budget)
        written = pages.write(chosen)
        if ready and not chosen:  # the first does not fit: its beginning does
            chosen = ready[:1]
            text = pages.places[chosen[0]][1].text
            written, remainder = pages.cut(chosen[0], text, options)
        if not written:
            break
        written_rows = set(chosen)
        remaining = [row for row in remaining if row not in written_rows]
    tokens = count_tokens(_text(written))
    return Pruned(
        written,
        tokens,
        budget,
        len(remaining) - outside + bool(remainder),
        around=outside,
        reading=reading,
    )


def _units_in(passages: Sequence[UnitRange]) -> list[int]:
    """Return the units of passages, those of the first passage first."""
    return [row for passage in passages for row in range(passage.start, passage.stop)]


def _text(pages: Sequence[PrunedPage]) -> str:
    return "\n".join(page.text for page in pages)


class _Pages:
    def __init__(
        self, documents: Sequence[Document], reading: Reading, style: Style
    ) -> None:
        self.documents = documents
        self.places = reading.places
        self.costs = [
            tokens + 1 for tokens in count_each([unit.text for _, unit in self.places])
        ]
        self._values = reading.values
        self._style = style
        self._content: set[tuple[int, int]] = set()
        """Page and block of what is content, where nothing is asked."""
        if reading.made_by == "content":
            scored = zip(self.places, reading.values, strict=True)
            self._content = {
                (index, unit.block) for (index, unit), value in scored if value > 1
            }

    def _is_content(self, index: int, number: int) -> bool:
        return (index, number) in self._content

    def _around(self, rows: Sequence[int], index: int) -> set[int] | None:
        """Return the blocks of a page that are none of its content, if these rows are."""
        places = (self.places[row] for row in rows)
        if not all(self._is_content(page, unit.block) for page, unit in places):
            return None
        blocks = range(len(self.documents[index].blocks))
        return {number for number in blocks if not self._is_content(index, number)}

    def order(self) -> list[int]:
        """Return the rows that say something by themselves, best first."""
        rows: list[int] = np.argsort(-self._values, kind="stable").tolist()
        # A page of a word or two is shown all the same.
        return list(filter(self._says_something, rows)) or rows

    def tokens(self, rows: Sequence[int]) -> int:
        """Return the tokens of the pages' texts with these rows."""
        return count_tokens(_text(self.write(rows)))

    def _says_something(self, row: int) -> bool:
        """Whether a unit says something by itself: short headings and header rows come
        with the text below them."""
        index, unit = self.places[row]
        blocks = self.documents[index].blocks
        block = blocks[unit.block]
        if block.kind == "heading":
            below = unit.block + 1
            is_written_below = (
                below < len(blocks)
                and blocks[below].kind != "heading"
                and unit.block in headings_over(self.documents[index])[below]
                and self._is_content(index, unit.block)
                == self._is_content(index, below)
            )
            return not is_written_below or count_words(block.text) > LABEL_WORDS
        return not is_header_row(blocks, unit.block)

    def write(self, rows: Sequence[int]) -> tuple[PrunedPage, ...]:
        by_page: dict[int, list[Kept]] = {}
        for row in rows:
            index = self.places[row][0]
            by_page.setdefault(index, []).append(self._kept(index, row))
        pages: list[PrunedPage] = []
        for index in sorted(by_page):
            outside = self._around(rows, index)
            text = render(self.documents[index], by_page[index], self._style, outside)
            blocks = tuple(sorted({unit.block for unit in by_page[index]}))
            pages.append(PrunedPage(index, text, count_tokens(text), blocks))
        return tuple(pages)

    def _kept(self, index: int, row: int) -> Kept:
        unit = self.places[row][1]
        block = self.documents[index].blocks[unit.block]
        if block.kind == "row":
            return Kept(unit.block)
        return Kept(unit.block, unit.start - block.start, unit.end - block.start)

    def cut(
        self, row: int, text: str, options: PruneOptions
    ) -> tuple[tuple[PrunedPage, ...], str]:
        """Return what fits of a unit's `text` under its headings, and the text that
        follows it; a budget too small for a word gives no page and leaves nothing."""
        index, unit = self.places[row]
        document = self.documents[index]
        budget = options.max_tokens or 0
        around = self._around([row], index)
        head = render_headings(document, unit.block, self._style, around)
        if 2 * count_tokens(head) > budget:  # read on in them as in the text, once
            is_first = text == unit.text
            text = f"{JOINT.join(unit.heading_path)} {text}" if is_first else text
            head = ""
        line = " ".join(text.split())
        above = f"{head}\n" if head else ""
        cut = cut_to_form(line, options.format, budget - count_tokens(above))
        if not cut:
            return (), ""
        length = len(unescape(cut) if options.format == "html" else cut)
        shown = f"{above}{cut}"
        page = PrunedPage(index, shown, count_tokens(shown), (unit.block,))
        return (page,), line[length:].strip()


def cut_to_form(text: str, form: Form, max_tokens: int) -> str:
    """Return the beginning of a text on one line, written in a form, in at most
    `max_tokens`.

    Words are whole, unless the first alone is over them. "" where not even a letter
    fits."""
    line = " ".join(text.split())

    def written(stop: int) -> str:
        return escape(line[:stop], quote=False) if form == "html" else line[:stop]

    stop = bisect_left(
        range(1, len(line) + 1),
        True,
        key=lambda stop: count_tokens(written(stop)) > max_tokens,
    )
    if stop < len(line) and line[stop] != " ":
        stop = line.rfind(" ", 0, stop) if " " in line[:stop] else stop
    return written(stop).rstrip()
