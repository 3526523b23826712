"""Pruning: what several pages hold about a query, within one budget of tokens.

Two methods: `winnow` (default) chooses small content units by value and writes them compactly; `paper` deletes the
lowest blocks of the block tree (HtmlRAG Algorithm 2). At 256 to 4,096 tokens the paper's loses to plain chunks, since
markup costs tokens and one large block shuts out small ones (notes/htmlrag). Not for: fetching, or exact sentences.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final, Literal

import numpy as np

from errors import UsageError
from models.protocols import Embedder
from pipeline.documents import Document
from pipeline.prune.budget import UNASKED, choose_budget
from pipeline.prune.candidates import candidates_of
from pipeline.prune.forms import Form
from pipeline.prune.generate import PathRanking, rank_finer, spread_scores
from pipeline.prune.paper import BlockScorer, PaperBlocks, keep_within, kept_units, paper_blocks
from pipeline.prune.pieces import Piece, cut_pieces
from pipeline.prune.render import IMPRINT, Kept, Style, render
from pipeline.prune.score import score, score_texts
from pipeline.rank.fuse import Floats, standardise
from pipeline.text.tokens import count_tokens, cut_to_tokens
from pipeline.trace import traced
from pipeline.work import check_cancelled, in_thread

Method = Literal["winnow", "paper"]
COST_POWER: Final = 0.3
"""How much a piece's tokens count against its value: value / tokens ** power."""

WIDE: Final = 1500
"""Tokens from which HTML tables are written cell by cell; below, as pipe rows, which cost a third."""
ROUNDS: Final = 5
"""Rounds of filling and measuring; two nearly always do."""
SMALLEST: Final = 5
"""Tokens of room that are not worth another round."""


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """How to prune."""

    max_tokens: int | None = UNASKED
    """Budget for the texts of all pages together, by `count_tokens`; None chooses one by the spread of the scores."""
    format: Form = "markdown"
    links: bool = False
    """Whether links become numbered references, listed below each page."""
    method: Method = "winnow"
    part: int = 1
    """1 for the best part, 2 for what would have come next, and so on."""

    @property
    def style(self) -> Style:
        """How pages are written: HTML tables cell by cell where the budget is wide."""
        return Style(self.format, wide=(self.max_tokens or 0) >= WIDE, links=self.links)


@dataclass(frozen=True, slots=True)
class PrunedPage:
    """What is kept of one page."""

    document: int
    """Index into the documents that were given."""
    text: str
    tokens: int
    kept: tuple[int, ...]
    """Indices into `Document.blocks`, in order; a long unit may be kept in part."""
    blocks_total: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is kept of all pages."""

    pages: tuple[PrunedPage, ...]
    """Pages of which something is kept, in the order given."""
    tokens: int
    """Of the pages' texts joined by line breaks; at most the budget."""
    budget: int
    """Tokens there were, given or chosen."""
    parts_left: bool
    """Whether a further part would hold anything."""
    left_out: int
    """Pieces (units, or parts of long ones) that are in this part nor in an earlier one."""
    scored_by: str = ""
    """What made the scores besides words and embeddings, and what of the pages it was shown; empty for nothing."""


@traced("prune")
async def prune(
    documents: Sequence[Document],
    query: str,
    *,
    options: PruneOptions,
    embedder: Embedder | None,
    finer: BlockScorer | None = None,
) -> Pruned:
    """Return the parts of `documents` that bear on `query`, within `options.max_tokens`.

    Without a query the pages are read from the top. The same arguments give the same result. With `finer`, the paper's
    method has its second step (§3.4.2): the survivors of the first are cut into finer blocks, which `finer` scores. In
    the other method its scores of those blocks count beside the others.

    Raises:
        UsageError: `options.part` is below 1 or the budget is negative.
    """
    if options.part < 1 or (options.max_tokens or 0) < 0:
        raise UsageError(
            f"Part {options.part} of {options.max_tokens} tokens cannot be made.",
            hint="Parts count from 1; the budget is zero or more tokens.",
        )
    if options.method == "paper":
        return await _prune_as_printed(documents, query, options, embedder, finer)
    # 1. Cut the pages into pieces and score them.
    if query.strip():
        candidates = await candidates_of(documents, language=_language(documents))
        pieces, values = candidates.pieces, await score(candidates, query, embedder=embedder)
    else:
        pieces = await in_thread(cut_pieces, documents)
        values = reading_order(pieces)
    # 2. With a scorer of finer blocks, hear it.
    by = ""
    if finer is not None and query.strip():
        by, values = await _with_paths(documents, query, pieces, values, embedder, finer)
    # 3. Without a budget, choose one.
    if options.max_tokens is None:
        chosen = choose_budget(pieces, values, pages=len(documents)) if query.strip() else UNASKED
        options = replace(options, max_tokens=chosen)
    # 4. Fill the budget, once for each part up to the one asked for.
    filled = await in_thread(_fill_parts, documents, pieces, values, options, bool(query.strip()))
    return replace(filled, scored_by=by)


async def _first_step(
    documents: Sequence[Document], query: str, embedder: Embedder | None
) -> tuple[PaperBlocks, list[int]]:
    """Return the paper's blocks at 256 words, and their order by words and embedding (HtmlRAG §3.4.1)."""
    found = await in_thread(paper_blocks, documents)
    texts = [block.text for block in found.blocks]
    relevance = await score_texts(texts, query, language=_language(documents), embedder=embedder)
    return found, best_first(relevance)


async def _with_paths(
    documents: Sequence[Document],
    query: str,
    pieces: Sequence[Piece],
    values: Floats,
    embedder: Embedder | None,
    finer: BlockScorer,
) -> tuple[str, Floats]:
    """Return who scored the paths, and `values` with the score of the finer block around each piece."""
    found, order = await _first_step(documents, query, embedder)
    ranking = await rank_finer(documents, query, found, order, finer)
    places = [(piece.document, piece.block) for piece in pieces]
    spread = await in_thread(spread_scores, documents, ranking, places)
    mixed: Floats = standardise(values) + np.float32(finer.weight) * spread
    return _made_by(finer, ranking), mixed


def _made_by(finer: BlockScorer, ranking: PathRanking) -> str:
    if not ranking.shown:
        return f"no block paths by {finer.name}: {ranking.failure}"
    return f"block paths by {finer.name}, which was shown {ranking.shown} of {ranking.total} blocks"


async def _prune_as_printed(
    documents: Sequence[Document],
    query: str,
    options: PruneOptions,
    embedder: Embedder | None,
    finer: BlockScorer | None,
) -> Pruned:
    """Prune by HtmlRAG Algorithm 2; the text is HTML whatever the format asked for."""
    if not query.strip():
        found = await in_thread(paper_blocks, documents)
        return await in_thread(_paper_parts, documents, found, list(range(len(found.blocks))), options)
    # 1. By embedding, at 256 words.
    found, order = await _first_step(documents, query, embedder)
    by = ""
    if finer is not None:
        # 2. By generation, at 128 words, on what the scorer can be shown of the first step's survivors.
        ranking = await rank_finer(documents, query, found, order, finer)
        by = _made_by(finer, ranking)
        if ranking.shown:
            found, order = ranking.blocks, best_first(ranking.scores)
    return replace(await in_thread(_paper_parts, documents, found, order, options), scored_by=by)


def best_first(values: Floats) -> list[int]:
    """Return the indices of `values`, highest first, equal ones in their order."""
    return [int(number) for number in np.argsort(-values, kind="stable")]


def _paper_parts(documents: Sequence[Document], found: PaperBlocks, order: list[int], options: PruneOptions) -> Pruned:
    budget = UNASKED if options.max_tokens is None else options.max_tokens
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
        paths = {found.blocks[number].path for number in kept if found.documents[number] == index}
        units = kept_units(documents[index], paths, found.split[index])
        pages.append(PrunedPage(index, text, count_tokens(text), units, len(documents[index].blocks)))
    if not pages and order and (text := _cut_to_form(found.blocks[order[0]].text, "html", budget)):
        index = found.documents[order[0]]
        path = {found.blocks[order[0]].path}
        units = kept_units(documents[index], path, found.split[index])
        pages, order = [PrunedPage(index, text, count_tokens(text), units, len(documents[index].blocks))], order[1:]
    tokens = count_tokens("\n".join(page.text for page in pages))
    return Pruned(tuple(pages), tokens, budget, parts_left=bool(order) and bool(pages), left_out=len(order))


def reading_order(pieces: Sequence[Piece]) -> Floats:
    """Return scores that fall with the place on the page, content before furniture."""
    longest = max((piece.block for piece in pieces), default=0) + 2  # an imprint's block is -1
    return np.array(
        [2.0 * piece.main - piece.block / longest - 1e-9 * piece.start for piece in pieces], dtype=np.float32
    )


def _language(documents: Sequence[Document]) -> str:
    """Return the language of most pages, by which words are stemmed."""
    spoken = Counter(document.page.language for document in documents if document.page.language)
    return spoken.most_common(1)[0][0] if spoken else "en"


def _fill_parts(
    documents: Sequence[Document], pieces: Sequence[Piece], values: Floats, options: PruneOptions, asked: bool
) -> Pruned:
    budget = options.max_tokens or 0
    left = _order(pieces, values, by_cost=asked)
    if asked and len(documents) > 1:
        left = _floor(pieces, values, left, budget // (2 * len(documents)))
    pages: tuple[PrunedPage, ...] = ()
    for _ in range(options.part):
        check_cancelled()
        # Furniture that is not clearly asked for has its turn when no content is left, so that it never fills up room.
        first = [number for number in left if pieces[number].main or values[number] > 0]
        chosen = _choose(documents, pieces, first or left, options)
        pages = _pages(documents, pieces, chosen, options.style)
        if not pages and left:  # not even one piece fits: the beginning of the best does
            chosen = (first or left)[:1]
            pages = _start_of(documents, pieces[chosen[0]], options)
        if not pages:
            break
        taken = set(chosen)
        left = [number for number in left if number not in taken]
    return Pruned(
        pages=pages,
        tokens=count_tokens("\n".join(page.text for page in pages)),
        budget=budget,
        parts_left=bool(left) and bool(pages),
        left_out=len(left),
    )


def _order(pieces: Sequence[Piece], values: Floats, *, by_cost: bool) -> list[int]:
    """Return the pieces best first; with `by_cost`, by value per token, softened by `COST_POWER`."""
    if not by_cost or not len(pieces):
        return best_first(values)
    costs = np.array([piece.tokens for piece in pieces], dtype=np.float32)
    worth: Floats = (np.exp(values) / np.maximum(costs, 8) ** COST_POWER).astype(np.float32)
    return best_first(worth)


def _floor(pieces: Sequence[Piece], values: Floats, order: Sequence[int], most: int) -> list[int]:
    """Return `order` with the best piece of every page moved to the front, where it says more than the average does."""
    best: dict[int, int] = {}
    for number in order:
        piece = pieces[number]
        if piece.document not in best and values[number] > 0 and piece.tokens <= most:
            best[piece.document] = number
    first = sorted(best.values(), key=lambda number: -values[number])
    return first + [number for number in order if number not in set(first)]


def _choose(
    documents: Sequence[Document], pieces: Sequence[Piece], left: Sequence[int], options: PruneOptions
) -> list[int]:
    """Return the pieces of one part, best first, so that their pages are within the budget exactly.

    Costs are estimates until the pages are written, so rounds of filling by estimate and measuring follow each other.
    """
    budget = options.max_tokens or 0
    chosen: list[int] = []
    skipped = list(left)
    room = budget
    for _ in range(ROUNDS):
        added, skipped = _fill(pieces, chosen, skipped, room)
        if not added:
            break
        chosen += added
        while chosen and (over := _measure(documents, pieces, chosen, options.style) - budget) > 0:
            while over > 0 and chosen:
                last = chosen.pop()
                over -= pieces[last].tokens
                skipped.insert(0, last)
        room = budget - _measure(documents, pieces, chosen, options.style)
        if room < SMALLEST:
            break
    return chosen


def _fill(
    pieces: Sequence[Piece], chosen: Sequence[int], left: Sequence[int], room: int
) -> tuple[list[int], list[int]]:
    """Return what fits into `room` by estimated cost, best first, and what does not."""
    shown = {key for number in chosen for key, _ in pieces[number].needs}
    added: list[int] = []
    skipped: list[int] = []
    for number in left:
        piece = pieces[number]
        if room < piece.tokens:
            skipped.append(number)
            continue
        cost = piece.tokens + sum(tokens for key, tokens in piece.needs if key not in shown)
        if cost > room:
            skipped.append(number)
            continue
        added.append(number)
        shown.update(key for key, _ in piece.needs)
        room -= cost
    return added, skipped


def _measure(documents: Sequence[Document], pieces: Sequence[Piece], chosen: Sequence[int], style: Style) -> int:
    return count_tokens("\n".join(page.text for page in _pages(documents, pieces, chosen, style)))


def _start_of(documents: Sequence[Document], piece: Piece, options: PruneOptions) -> tuple[PrunedPage, ...]:
    """Return what fits of a piece that is over the budget alone; a budget too small for a word gives nothing."""
    text = _cut_to_form(piece.text, options.format, options.max_tokens or 0)
    if not text:
        return ()
    blocks = () if piece.block == IMPRINT else (piece.block,)
    return (PrunedPage(piece.document, text, count_tokens(text), blocks, len(documents[piece.document].blocks)),)


def _cut_to_form(text: str, form: Form, most: int) -> str:
    """Return the beginning of a text on one line, written in a form, in at most `most` tokens.

    Words are whole, unless the first alone is over them.
    """
    line = " ".join(text.split())
    begin = cut_to_tokens(line, most) or _cut_word(line.partition(" ")[0], most)
    if form != "html":
        return begin
    while begin and count_tokens(escape(begin, quote=False)) > most:
        begin = cut_to_tokens(begin, count_tokens(begin) - 1) or begin[: len(begin) // 2]
    return escape(begin, quote=False)


def _cut_word(word: str, most: int) -> str:
    """Return the beginning of a word in at most `most` tokens."""
    low, high = 0, len(word)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(word[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    return word[:low]


def _pages(
    documents: Sequence[Document], pieces: Sequence[Piece], chosen: Sequence[int], style: Style
) -> tuple[PrunedPage, ...]:
    by_page: dict[int, list[Piece]] = {}
    for number in chosen:
        by_page.setdefault(pieces[number].document, []).append(pieces[number])
    pages: list[PrunedPage] = []
    for index in sorted(by_page):
        kept = [Kept(piece.block, piece.start, piece.end) for piece in by_page[index]]
        text = render(documents[index], kept, style)
        blocks = tuple(sorted({piece.block for piece in kept} - {IMPRINT}))
        pages.append(PrunedPage(index, text, count_tokens(text), blocks, len(documents[index].blocks)))
    return tuple(pages)
