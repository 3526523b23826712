"""HtmlRAG's pruning of several pages within one budget: the lowest blocks of the block
tree are deleted by their cosine with the question, then finer ones by a generator.

What `WINNOW_PAPERS=pruning=paper` uses. At 256 to 4,096 tokens it loses to plain chunks, since
markup costs tokens and one large block shuts out small ones. Not for: the blocks and
their paths (`blocks.py`)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from models.protocols import Embedder, Generator
from papers.htmlrag.block_tree import PAPER_WORDS
from papers.htmlrag.blocks import (
    PaperBlocks,
    PathRanking,
    PathScorer,
    finer_blocks,
    keep_within,
    kept_units,
    paper_blocks,
    path_scorer,
    rank_finer,
)
from pipeline.prune.prune import (
    UNASKED_PAGE,
    Pruned,
    PrunedPage,
    PruneOptions,
    cut_to_form,
)
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.reading.relevance import score_texts
from pipeline.text.tokens import count_tokens
from pipeline.work import in_thread
from readers.page import Document


async def prune_by_blocks(
    documents: Sequence[Document],
    question: Question,
    options: PruneOptions,
    *,
    embedder: Embedder | None,
    generator: Generator | None,
    seconds: float,
    setting: str = "paper",
) -> Pruned:
    """Return what both steps keep; the second one where `generator` can score paths,
    within `seconds`. `paper:128` has blocks of 128 words. As `prune_as_printed`."""
    finer = path_scorer(generator, documents, seconds=seconds)
    words = int(setting.partition(":")[2] or PAPER_WORDS)
    return await prune_as_printed(
        documents,
        question,
        options,
        embedder=embedder,
        finer=finer,
        block_words=max(2, words),
    )


async def prune_as_printed(
    documents: Sequence[Document],
    question: Question,
    options: PruneOptions,
    *,
    embedder: Embedder | None = None,
    finer: PathScorer | None = None,
    block_words: int = PAPER_WORDS,
) -> Pruned:
    """Return the blocks of `documents` that HtmlRAG's Algorithms 2 and 3 keep within
    `options.max_tokens`.

    The text is HTML whatever the format; pages without text blocks keep nothing. A
    second step that fails counts for nothing, and `Pruned.scored_by` says why.

    Args:
        question: Without one the blocks are kept in their order.
        embedder: Scores the blocks of the first step; words where it is None or does
            not read the question.
        finer: The second step (§3.4.2): a generator's scores of finer blocks.
        block_words: Most words of a block of the first step; those of the second have
            half as many.

    Raises:
        ModelError: The embedder failed.
    """
    found = await in_thread(paper_blocks, documents, max_words=block_words)
    if not question:
        order = list(range(len(found.blocks)))
        return await in_thread(_parts, documents, found, order, options)
    # 1. By embedding
    order = await _by_embedding(found, question, embedder)
    if finer is None:
        return await in_thread(_parts, documents, found, order, options)
    # 2. By generation, at half the words, on what the scorer can be shown of the first step's
    # survivors; the others follow in their order
    budget = options.max_tokens or UNASKED_PAGE
    words = block_words // 2
    ranking = await rank_finer(
        documents, question.text, found, order, finer, budget=budget, max_words=words
    )
    if ranking.shown:
        scored = best_first(ranking.scores)
        found = await in_thread(finer_blocks, documents, found, order, max_words=words)
        order = [*scored, *range(len(scored), len(found.blocks))]
    pruned = await in_thread(_parts, documents, found, order, options)
    return replace(pruned, scored_by=_made_by(finer, ranking))


async def _by_embedding(
    found: PaperBlocks, question: Question, embedder: Embedder | None
) -> list[int]:
    """Return the order of the blocks (HtmlRAG §3.4.1): by cosine, or by words where no
    embedder reads the question."""
    texts = [block.text for block in found.blocks]
    if not texts or embedder is None or not embedder.reads(question.text):
        return best_first(await score_texts(texts, question, embedder=None))
    query = await embedder.embed([question.text], kind="query")
    return best_first(await embedder.embed(texts, kind="passage") @ query[0])


def _made_by(finer: PathScorer, ranking: PathRanking) -> str:
    if not ranking.shown:
        return f"no scores of block paths, since {finer.name} failed: {ranking.failure}"
    return (
        f"scores of block paths by {finer.name}, which was shown "
        f"{ranking.shown} of {ranking.total} blocks"
    )


def best_first(values: Floats) -> list[int]:
    """Return the indices of `values`, highest first, equal ones in their order."""
    return [int(number) for number in np.argsort(-values, kind="stable")]


def _parts(
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
        and (text := cut_to_form(found.blocks[order[0]].text, "html", budget))
    ):
        index = found.documents[order[0]]
        path = {found.blocks[order[0]].path}
        units = kept_units(documents[index], path, found.split[index])
        pages, order = [PrunedPage(index, text, count_tokens(text), units)], order[1:]
    return Pruned(
        tuple(pages),
        count_tokens("\n".join(page.text for page in pages)),
        budget,
        left_out=len(order),
    )
