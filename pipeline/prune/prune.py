"""Pruning: what several pages hold about a question, within one budget of tokens,
written as pages.

`winnow` (default) takes the units that the core finds relevant (`pipeline/reading`) and
writes them compactly in document order. `paper` deletes the lowest blocks of the block
tree by their cosine with the question (HtmlRAG Algorithms 2 and 3), `blocks` does by
words and cosine. At 256 to 4,096 tokens both lose to plain chunks, since markup costs
tokens and one large block shuts out small ones. Not for: fetching, or cited passages
(`pipeline/evidence`)."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Final, Literal

import numpy as np

from errors import UsageError
from models.protocols import Embedder
from pipeline.document.page import Document
from pipeline.document.tree import LABEL_WORDS, count_words
from pipeline.document.units import tag_sentences
from pipeline.evidence.assemble import UNASKED, fill, quotable
from pipeline.evidence.forms import Form
from pipeline.evidence.passages import END, PassageMaker, UnitRange
from pipeline.evidence.render import Kept, Style, is_header_row, render
from pipeline.html.block_tree import PAPER_WORDS
from pipeline.html.opinion import main_content
from pipeline.prune.paper import (
    PaperBlocks,
    PathRanking,
    PathScorer,
    finer_blocks,
    keep_within,
    kept_units,
    paper_blocks,
    rank_finer,
    spread_scores,
)
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats, standardise, unit_range
from pipeline.reading.extract import read_documents
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import WORTH, Reader, score_texts
from pipeline.text.tokens import count_each, count_tokens
from pipeline.work import check_cancelled, in_thread, traced

Method = Literal["winnow", "blocks", "paper"]
UNASKED_PAGE: Final = 2000
"""Tokens without a question, when there are no scores to go by."""


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """How to prune."""

    max_tokens: int | None = None
    """Budget for the texts of all pages together, by `count_tokens`; None ends where
    units are much weaker."""
    format: Form = "markdown"
    links: bool = False
    """Whether links become numbered references, listed below each page."""
    method: Method = "winnow"
    part: int = 1
    """1 for the best part, 2 for what would have come next, and so on."""
    block_words: int = PAPER_WORDS
    """Most words of a block of the paper's first step; those of the second have half as
    many."""


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
    embedder: Embedder | None = None,
    finer: PathScorer | None = None,
) -> Pruned:
    """Return the parts of `documents` that bear on `question`, within
    `options.max_tokens`.

    Without a question the pages are read from the top. The same arguments give the same
    result. A page without text blocks is read by the default method whatever is asked
    for. A finer step that fails counts for nothing, and `Pruned.scored_by` says why.

    Args:
        options: Budget, form, method, part.
        reader: What judges units.
        embedder: For the paper's method, whose first step scores whole blocks.
        finer: The paper's second step (§3.4.2): a generator's scores of finer blocks.
            In the default method they count beside the reader's.

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
    if options.method != "winnow":
        printed = await _prune_as_printed(documents, question, options, embedder, finer)
        # The paper knows no blocks but texts: a page of described images has none, and is read as
        # others are.
        if printed.pages or printed.left_out or options.part > 1:
            return printed
    if not question:
        reading = await in_thread(_reading_order, documents)
        budget = UNASKED_PAGE if options.max_tokens is None else options.max_tokens
        return await in_thread(
            _fill_parts,
            documents,
            reading,
            replace(options, max_tokens=budget),
            open_end=False,
        )
    # 1. The core scores every unit; a generator's scores of finer blocks are added
    reading = await read_documents(question, documents, reader=reader)
    by = ""
    if finer is not None:
        by, reading = await _with_paths(
            documents, question, reading, options, embedder, finer
        )
    # 2. Fill the budget, once for each part up to the one asked for
    open_end = options.max_tokens is None
    options = replace(options, max_tokens=UNASKED if open_end else options.max_tokens)
    filled = await in_thread(
        _fill_parts, documents, reading, options, open_end=open_end
    )
    return replace(filled, scored_by=by)


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
    documents: Sequence[Document],
    reading: Reading,
    options: PruneOptions,
    *,
    open_end: bool,
) -> Pruned:
    """Return the part that is asked for: passages about the question, or what follows
    in reading order without one. A part after the last is empty."""
    # The title is in the answer's head; the budget is for what it says besides.
    asked = reading.made_by != "content"
    pages = _Pages(
        documents, reading, Style(options.format, options.links, titled=True)
    )
    budget = options.max_tokens or 0
    left = pages.order(WORTH if open_end else 0.0)
    maker = PassageMaker(documents, reading, pages.costs)
    written: tuple[PrunedPage, ...] = ()
    around = 0
    for number in range(1, options.part + 1):
        check_cancelled()
        if asked:
            end = 0.0 if number > 1 else WORTH if open_end else END
            ready = quotable(left, reading.values, pages.injection)
            chosen = _passages(pages, maker, ready, budget, end)
        else:
            # The page's content scores over 1; what is none of it begins a part of its own.
            ready = [row for row in left if reading.values[row] > 1]
            around = len(left) - len(ready) if ready else 0
            ready = ready or left
            chosen = fill(
                ready,
                pages.costs,
                lambda rows: count_tokens(_text(pages.write(rows))),
                budget,
            )
        written = pages.write(chosen)
        if ready and not chosen:  # the best does not fit: its beginning does
            chosen, written = ready[:1], pages.beginning(ready[0], options)
        if not written:
            break
        taken = set(chosen)
        left = [row for row in left if row not in taken]
    tokens = count_tokens(_text(written))
    return Pruned(
        written, tokens, budget, len(left) - around, around=around, reading=reading
    )


def _passages(
    pages: "_Pages", maker: PassageMaker, ready: Sequence[int], budget: int, end: float
) -> list[int]:
    """Return the units of the passages that fit the budget, the best passage first."""

    def over(passages: Sequence[UnitRange]) -> int:
        return count_tokens(_text(pages.write(_units_in(passages)))) - budget

    chosen = maker.choose(ready, pages.cost, budget, end=end)
    if chosen and (
        more := maker.choose(ready, pages.cost, -over(chosen), end=end, further=True)
    ):
        chosen += more
    while chosen and over(chosen) > 0:
        chosen.pop()
    return _units_in(chosen)


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
        self._content: set[tuple[int, int]] | None = None
        """Page and block of what is content, where nothing is asked."""
        if reading.made_by == "content":
            scored = zip(self.places, reading.values, strict=True)
            self._content = {
                (index, unit.block) for (index, unit), value in scored if value > 1
            }

    def _around(self, index: int) -> set[int]:
        """Return the blocks of a page that are none of its content."""
        blocks = range(len(self.documents[index].blocks))
        return {
            number for number in blocks if (index, number) not in (self._content or ())
        }

    def order(self, end: float) -> list[int]:
        """Return the rows that say something by themselves, best first, down to the
        share `end` of the best score."""
        rows: list[int] = np.argsort(-self._values, kind="stable").tolist()
        worth = [
            row for row in rows if self._values[row] >= end * self._values[rows[0]]
        ]
        # A page of a word or two is shown all the same.
        return list(filter(self._says_something, worth)) or worth

    def cost(self, passage: UnitRange) -> int:
        """Return the tokens of a passage as it is written alone, with the line that
        parts it from others."""
        index = self.places[passage.start][0]
        kept = [self._kept(index, row) for row in range(passage.start, passage.stop)]
        return count_tokens(render(self.documents[index], kept, self._style)) + 1

    def injection(self, row: int) -> bool:
        """Return whether a unit looks like a prompt injection."""
        index, unit = self.places[row]
        return self.documents[index].blocks[unit.block].injection

    def _says_something(self, row: int) -> bool:
        """Whether a unit says something by itself: short headings and header rows come
        with the text below them."""
        index, unit = self.places[row]
        blocks = self.documents[index].blocks
        block = blocks[unit.block]
        if block.kind == "heading":
            following = (
                unit.block + 1 < len(blocks)
                and blocks[unit.block + 1].kind != "heading"
            )
            return not following or count_words(block.text) > LABEL_WORDS
        return not is_header_row(blocks, unit.block)

    def write(self, rows: Sequence[int]) -> tuple[PrunedPage, ...]:
        by_page: dict[int, list[Kept]] = {}
        for row in rows:
            index = self.places[row][0]
            by_page.setdefault(index, []).append(self._kept(index, row))
        is_content = self._content is not None and all(
            self._values[row] > 1 for row in rows
        )
        pages: list[PrunedPage] = []
        for index in sorted(by_page):
            around = self._around(index) if is_content else None
            text = render(self.documents[index], by_page[index], self._style, around)
            blocks = tuple(sorted({kept.block for kept in by_page[index]}))
            pages.append(PrunedPage(index, text, count_tokens(text), blocks))
        return tuple(pages)

    def _kept(self, index: int, row: int) -> Kept:
        unit = self.places[row][1]
        block = self.documents[index].blocks[unit.block]
        if block.kind == "row":
            return Kept(unit.block)
        return Kept(unit.block, unit.start - block.start, unit.end - block.start)

    def beginning(self, row: int, options: PruneOptions) -> tuple[PrunedPage, ...]:
        """Return what fits of a unit that is over the budget alone; a budget too small
        for a word gives nothing."""
        index, unit = self.places[row]
        text = _cut_to_form(unit.text, options.format, options.max_tokens or 0)
        if not text:
            return ()
        return (PrunedPage(index, text, count_tokens(text), (unit.block,)),)


async def _first_step(
    documents: Sequence[Document],
    question: Question,
    options: PruneOptions,
    embedder: Embedder | None,
) -> tuple[PaperBlocks, list[int]]:
    """Return the paper's blocks and their order (HtmlRAG §3.4.1): by cosine for
    `paper`, else by words and cosine; by words where no embedder reads the question."""
    found = await in_thread(paper_blocks, documents, max_words=options.block_words)
    texts = [block.text for block in found.blocks]
    if (
        options.method == "paper"
        and texts
        and embedder is not None
        and embedder.reads(question.text)
    ):
        asked = await embedder.embed([question.text], kind="query")
        return found, best_first(await embedder.embed(texts, kind="passage") @ asked[0])
    return found, best_first(await score_texts(texts, question, embedder=embedder))


async def _with_paths(
    documents: Sequence[Document],
    question: Question,
    reading: Reading,
    options: PruneOptions,
    embedder: Embedder | None,
    finer: PathScorer,
) -> tuple[str, Reading]:
    """Return who scored the paths, and the reading with the score of the finer block
    around each unit; where the scorer fails, their order stays."""
    found, order = await _first_step(documents, question, options, embedder)
    budget = options.max_tokens or UNASKED
    ranking = await rank_finer(
        documents, question.text, found, order, finer, budget=budget
    )
    places = [(index, unit.block) for index, unit in reading.places]
    spread = await in_thread(spread_scores, documents, ranking, places)
    mixed = unit_range(standardise(reading.values) + np.float32(finer.weight) * spread)
    return _made_by(finer, ranking), replace(reading, values=mixed)


def _made_by(finer: PathScorer, ranking: PathRanking) -> str:
    if not ranking.shown:
        return f"no scores of block paths, since {finer.name} failed: {ranking.failure}"
    return (
        f"scores of block paths by {finer.name}, which was shown "
        f"{ranking.shown} of {ranking.total} blocks"
    )


async def _prune_as_printed(
    documents: Sequence[Document],
    question: Question,
    options: PruneOptions,
    embedder: Embedder | None,
    finer: PathScorer | None,
) -> Pruned:
    """Prune by HtmlRAG Algorithm 2; the text is HTML whatever the format asked for."""
    if not question:
        found = await in_thread(paper_blocks, documents, max_words=options.block_words)
        return await in_thread(
            _paper_parts, documents, found, list(range(len(found.blocks))), options
        )
    # 1. By embedding
    found, order = await _first_step(documents, question, options, embedder)
    by = ""
    if finer is not None:
        # 2. By generation, at half the words, on what the scorer can be shown of the first step's
        # survivors; the others follow in their order
        budget = options.max_tokens or UNASKED_PAGE
        words = options.block_words // 2
        ranking = await rank_finer(
            documents,
            question.text,
            found,
            order,
            finer,
            budget=budget,
            max_words=words,
        )
        by = _made_by(finer, ranking)
        if ranking.shown:
            scored = best_first(ranking.scores)
            found = await in_thread(
                finer_blocks, documents, found, order, max_words=words
            )
            order = [*scored, *range(len(scored), len(found.blocks))]
    return replace(
        await in_thread(_paper_parts, documents, found, order, options), scored_by=by
    )


def best_first(values: Floats) -> list[int]:
    """Return the indices of `values`, highest first, equal ones in their order."""
    return [int(number) for number in np.argsort(-values, kind="stable")]


def _paper_parts(
    documents: Sequence[Document],
    found: PaperBlocks,
    order: list[int],
    options: PruneOptions,
) -> Pruned:
    budget = UNASKED_PAGE if options.max_tokens is None else options.max_tokens
    texts: dict[int, str] = {}
    kept: list[int] = []
    for number in range(1, options.part + 1):
        kept, texts = keep_within(documents, found, order, budget)
        # A part that not even one block fits holds the beginning of the best.
        order = order[max(len(kept), number < options.part) :]
        if not order:
            break
    pages: list[PrunedPage] = []
    for index, text in texts.items():
        paths = {
            found.blocks[number].path
            for number in kept
            if found.documents[number] == index
        }
        units = kept_units(documents[index], paths, found.split[index])
        pages.append(PrunedPage(index, text, count_tokens(text), units))
    if (
        not pages
        and order
        and (text := _cut_to_form(found.blocks[order[0]].text, "html", budget))
    ):
        index = found.documents[order[0]]
        path = {found.blocks[order[0]].path}
        units = kept_units(documents[index], path, found.split[index])
        pages, order = [PrunedPage(index, text, count_tokens(text), units)], order[1:]
    return Pruned(tuple(pages), count_tokens(_text(pages)), budget, left_out=len(order))


def _cut_to_form(text: str, form: Form, most: int) -> str:
    """Return the beginning of a text on one line, written in a form, in at most `most`
    tokens.

    Words are whole, unless the first alone is over them. "" where not even a letter
    fits."""
    line = " ".join(text.split())

    def written(end: int) -> str:
        return escape(line[:end], quote=False) if form == "html" else line[:end]

    end = bisect_left(
        range(1, len(line) + 1), True, key=lambda end: count_tokens(written(end)) > most
    )
    if end < len(line) and line[end] != " ":
        end = line.rfind(" ", 0, end) if " " in line[:end] else end
    return written(end).rstrip()
