"""Mixed ranking of pages: snippet and content compete, the engines' order has a vote
(zero-index §3.2).

The paper scores the bare snippet and the whole content as separate items, 2n for n
pages, and takes each page's better one. As printed that lets short snippets outrank
pages, so the default puts the title in front of the snippet and uses the best passage
as the content. It then fuses the order by each page's better item with the engines'
order by reciprocal ranks, three votes to one. The
best passage by BM25 ranks pages better than the whole content as one text (nDCG@10 .891
against .848 and .974 against .965). Not for: fetching, ranking inside a page, or the
form as printed (`papers/zero_index/ranking.py`)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import anyio
import numpy as np

from errors import ModelError
from models.protocols import Embedder, Reranker
from pipeline.document.units import is_injected, tag_sentences
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, RRF_K, Floats, cut_windows
from pipeline.reading.relevance import SIZES, score_texts
from pipeline.search.query import SearchResult
from pipeline.text.tokens import count_each
from pipeline.text.words import guess_language
from pipeline.work import STEP_SHARE, in_thread, time_left, traced
from readers.page import Document, Score, ScoreMaker, kept_with_document

RankForm = Literal["mixed", "engine"]
PASSAGES: Final = (4, 4, 2, 2)
"""Passages of the engines' first pages that a model scores, chosen by BM25; one of each
page after them. nDCG@10 of 161 questions with MiniLM, 15 hits each: .979, as with four
of every page, which are twice as many texts. Words alone cost nothing and score four of
every page: .957 instead of .942."""
ITEM_VOTES: Final = 3.0
"""Votes of the order by best items against one of the engines' order: a place there
weighs as much as three of the engines' (`python -m bench.search`)."""


@dataclass(frozen=True, slots=True)
class RankedPage:
    """One page in its final place."""

    result: SearchResult
    score: Score
    """`value` orders the pages of one answer; `made_by` is the scorer (`engine` where
    none was asked)."""
    passage: str
    """The text that represents the page: its best passage, else the snippet."""
    place: int
    """1-based."""


class _Item(NamedTuple):
    """A text that competes for a page."""

    page: int
    text: str
    """What is scored."""
    passage: str
    """What a reader gets to see for it."""
    number: int = 0
    """Of a page's passages, best first by words."""


class UnitRun(NamedTuple):
    """A run of neighbouring units."""

    text: str
    """The original text in the document."""
    heading_path: tuple[str, ...]

    @property
    def headed(self) -> str:
        """The text with its headings in front, as it is scored."""
        return "\n".join(filter(None, (" > ".join(self.heading_path), self.text)))


@traced("rank")
async def mixed_rank(
    question: Question,
    results: Sequence[SearchResult],
    documents: Mapping[str, Document],
    *,
    embedder: Embedder | None,
    reranker: Reranker | None = None,
    form: RankForm = "mixed",
) -> tuple[RankedPage, ...]:
    """Return all pages of `results`, best first; by words where a model takes too long
    or fails.

    Args:
        question: The standalone request.
        results: Hits in the engines' (fused) order.
        documents: Pages that came in time, by result URL; the others are ranked by
            their snippet.
        embedder: Left out where it does not read the question's script.
        reranker: Scores every item where given, instead of embedder and BM25.
        form: `mixed` (the better of title+snippet and best passage, fused with the
            engines' order), or `engine` (the engines' order).
    """
    engine = np.arange(1, len(results) + 1, dtype=np.float32)
    made_by: ScoreMaker = "engine"
    votes = 1.0 / (RRF_K + engine)
    passages = [result.snippet for result in results]
    strength = np.zeros_like(engine)
    if form == "mixed" and results:
        # 1. Items: a snippet for every page, and its content where it came in time
        passages_of: dict[str, list[UnitRun]] = {}
        with anyio.move_on_after(STEP_SHARE * time_left()):
            # Short ones first, so that a long one costs itself alone
            for url in sorted(documents, key=lambda url: len(documents[url].text)):
                passages_of[url] = await in_thread(
                    best_passages, documents[url], question, limit=PASSAGES[0]
                )
        items = _items(results, documents, passages_of)
        # 2. One score an item
        items, scores, made_by = await _scored(question, items, embedder, reranker)
        # 3. Each page is represented by its best item
        strength[:] = -np.inf
        for item, score in zip(items, scores.tolist(), strict=True):
            if score > strength[item.page]:
                strength[item.page], passages[item.page] = score, item.passage
        # 4. Pages by their best item, the engines' order having a vote
        votes = ITEM_VOTES / (RRF_K + _ranks(strength)) + votes
    order = np.lexsort((engine, -strength, -votes)).tolist()
    return tuple(
        RankedPage(
            results[page], Score(float(votes[page]), made_by), passages[page], rank
        )
        for rank, page in enumerate(order, start=1)
    )


def _items(
    results: Sequence[SearchResult],
    documents: Mapping[str, Document],
    passages_of: Mapping[str, Sequence[UnitRun]],
) -> list[_Item]:
    items: list[_Item] = []
    for page, result in enumerate(results):
        document = documents.get(result.url)
        passages = passages_of.get(result.url, ())
        # Files of a folder come without a snippet.
        if result.snippet or not passages:
            titled = f"{result.title}\n{result.snippet}".strip()
            items.append(_Item(page, titled, result.snippet))
        title = document.page.title if document else ""
        items += [
            _Item(page, f"{title or result.title}\n{run.headed}", run.text, number)
            for number, run in enumerate(passages)
        ]
    return items


async def _scored(
    question: Question,
    items: list[_Item],
    embedder: Embedder | None,
    reranker: Reranker | None,
) -> tuple[list[_Item], Floats, ScoreMaker]:
    """Return what was scored, and a score of each [n]: by a model in the time that is
    left, else by words, as where it fails."""
    chosen = [
        item
        for item in items
        if item.number < (PASSAGES[item.page] if item.page < len(PASSAGES) else 1)
    ]
    texts = [item.text for item in chosen]
    with (
        suppress(ModelError),
        anyio.move_on_after(STEP_SHARE * time_left()),
    ):
        if reranker is not None:
            return chosen, await reranker.score(question.text, texts), "rerank"
        if embedder is not None and embedder.reads(question.translated_to("en").text):
            return (
                chosen,
                await score_texts(texts, question, embedder=embedder),
                "blend",
            )
    texts = [item.text for item in items]
    return items, await score_texts(texts, question, embedder=None), "bm25"


def _ranks(values: Floats) -> Floats:
    """Places [n] by falling value. Equal values share a place: a list that knows
    nothing must not repeat the engine."""
    _, group, sizes = np.unique(-values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    return np.asarray((ends - (sizes - 1) / 2)[group], dtype=np.float32)


# The best passages of a page


def best_passages(
    document: Document, question: Question, *, limit: int
) -> list[UnitRun]:
    """Return up to `limit` passages, best first; those without any term of `question`
    last."""
    language = document.page.language or _guessed(document)
    passages, words = _counted(document, language)
    scores = words.scores(question.translated_to(language))
    return [passages[index] for index in np.argsort(-scores, kind="stable")[:limit]]


@kept_with_document
def _guessed(document: Document) -> str:
    return guess_language(document.text)


@kept_with_document
def _counted(document: Document, language: str) -> tuple[list[UnitRun], BM25]:
    passages = cut_passages(document)
    return passages, BM25([passage.headed for passage in passages], language=language)


def cut_passages(document: Document) -> list[UnitRun]:
    """Return the core's largest windows in reading order, none over a heading.

    Furniture (`Block.main` false) is left out unless the page has nothing else, and so
    is text that is not prose. A prompt injection is a passage by itself: it is shown
    only if it is nearest to the question."""
    tagged, blocks = tag_sentences(document), document.blocks
    prose = [
        unit for unit in tagged if blocks[unit.block].kind not in {"heading", "about"}
    ]
    units = [unit for unit in prose if blocks[unit.block].main] or prose or [*tagged]
    # Between two that do not follow each other was a heading, or furniture.
    kinds = [
        (unit.number - index, is_injected(document, unit.block))
        for index, unit in enumerate(units)
    ]
    starts = [
        index
        for index, kind in enumerate(kinds)
        if not index or kind != kinds[index - 1]
    ]
    tokens = np.array(count_each([unit.text for unit in units]), dtype=np.float32)
    windows = cut_windows(tokens, [*starts, len(units)], SIZES[-1]).tolist()
    return [
        UnitRun(
            document.text[units[start].start : units[stop - 1].end],
            units[start].heading_path,
        )
        for start, stop in windows
    ]
