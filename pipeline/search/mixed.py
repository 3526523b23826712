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
from dataclasses import dataclass
from typing import Final, Literal

import anyio
import numpy as np

from models.protocols import Embedder, Reranker
from pipeline.document.page import Document, Score, ScoreMaker, kept_with_document
from pipeline.document.units import tag_sentences
from pipeline.question.question import Question
from pipeline.reading.bm25 import BM25, RRF_K, Floats, cut_windows
from pipeline.reading.relevance import SIZES, score_texts
from pipeline.search.query import SearchResult
from pipeline.text.frame import one_line
from pipeline.text.tokens import count_each
from pipeline.text.words import guess_language
from pipeline.work import STEP_SHARE, in_thread, time_left, traced

RankForm = Literal["mixed", "snippet", "engine"]
WonBy = Literal["snippet", "content", "engine"]
PASSAGES: Final = (4, 4, 2, 2)
"""Passages of the engines' first pages that a model scores, chosen by BM25; one of each
page after them. nDCG@10 of 161 questions with MiniLM, 15 hits each: .979, as with four
of every page, which are twice as many texts. Words alone cost nothing and score four of
every page: .957 instead of .942."""
ITEM_VOTES: Final = 3.0
"""Votes of the order by best items against one of the engines' order: a place there
weighs as much as three of the engines'. Chosen on half of 161 questions, nDCG@10 of
BM25 and of BM25 with MiniLM (`python -m bench.search`): this .959 and .976, without the
engines .946 and .978, a vote each for title+snippet, best passage and engines .945 and
.957."""


@dataclass(frozen=True, slots=True)
class RankedPage:
    """One page in its final place."""

    result: SearchResult
    score: Score
    """`value` orders the pages of one answer; `made_by` is the scorer (`engine` where
    none was asked)."""
    won_by: WonBy
    """Which of the page's items brought it here."""
    passage: str
    """The text that represents the page: its best passage, else the snippet."""
    place: int
    """1-based."""


@dataclass(frozen=True, slots=True)
class _Item:
    page: int
    kind: Literal["snippet", "content"]
    text: str
    """What is scored."""
    shown: str
    """What a reader gets to see for it."""
    number: int = 0
    """Of a page's passages, best first by words."""


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
    """Return all pages of `results`, best first; by words where a model takes too long.

    Args:
        question: The standalone request.
        results: Hits in the engines' (fused) order.
        documents: Pages that came in time, by result URL; the others are ranked by
            their snippet.
        embedder: Left out where it does not read the question's script.
        reranker: Scores every item where given, instead of embedder and BM25.
        form: `mixed` (the better of title+snippet and best passage, fused with the
            engines' order), `snippet` (title+snippet only), `engine` (the engines'
            order), `paper` (bare snippet or whole content, the better one wins).

    Raises:
        ModelError: A model failed."""
    if not results:
        return ()
    # 1. Items: a snippet for every page, and its content where it came in time
    items = await in_thread(_items, question, results, documents, form)
    # 2. One score an item
    models = (None, None) if form == "engine" else (embedder, reranker)
    items, scores, made_by = await _scored(question, items, *models)
    # 3. Each page keeps its best item of each kind
    best = _best_items(items, scores, len(results))
    # 4. Pages by their best item, the engines' order having a vote
    strongest = np.asarray(
        [max(float(scores[item]) for item in kinds.values()) for kinds in best],
        dtype=np.float32,
    )
    places, engine = _ranks(strongest), np.arange(1, len(best) + 1, dtype=np.float32)
    fused = strongest
    if form == "engine":
        fused, made_by = 1.0 / (RRF_K + engine), "engine"
    elif form == "mixed":
        fused = ITEM_VOTES / (RRF_K + places) + 1.0 / (RRF_K + engine)
    order = [int(page) for page in np.lexsort((engine, -strongest, -fused))]
    return tuple(
        RankedPage(
            result=results[page],
            score=Score(float(fused[page]), made_by),
            won_by=_winner(
                best[page], scores, ahead=bool(engine[page] < places[page]), form=form
            ),
            passage=items[
                max(best[page].values(), key=lambda item: float(scores[item]))
            ].shown,
            place=index,
        )
        for index, page in enumerate(order, start=1)
    )


def _items(
    question: Question,
    results: Sequence[SearchResult],
    documents: Mapping[str, Document],
    form: RankForm,
) -> list[_Item]:
    items: list[_Item] = []
    for page, result in enumerate(results):
        document = documents.get(result.url) if form != "snippet" else None
        passages = (
            best_passages(document, question, limit=PASSAGES[0]) if document else []
        )
        # A folder's snippet is a passage of the file, which need not be scored twice.
        if all(one_line(one.text) != result.snippet for one in passages):
            titled = f"{result.title}\n{result.snippet}".strip()
            items.append(_Item(page, "snippet", titled, result.snippet))
        if document is None:
            continue
        title = document.page.title or result.title
        for number, one in enumerate(passages):
            items.append(
                _Item(page, "content", f"{title}\n{one.headed}", one.text, number)
            )
    return items


async def _scored(
    question: Question,
    items: list[_Item],
    embedder: Embedder | None,
    reranker: Reranker | None,
) -> tuple[list[_Item], Floats, ScoreMaker]:
    """Return what was scored, and a score of each [n]: by a model in the time that is
    left, else by words.

    Raises `ModelError`."""
    few = [
        item
        for item in items
        if item.number < (PASSAGES[item.page] if item.page < len(PASSAGES) else 1)
    ]
    texts = [item.text for item in few]
    with anyio.move_on_after(STEP_SHARE * time_left()):
        if reranker is not None:
            return few, await reranker.score(question.text, texts), "rerank"
        if embedder is not None and embedder.reads(question.translated_to("en").text):
            return few, await score_texts(texts, question, embedder=embedder), "blend"
    return (
        items,
        await score_texts([item.text for item in items], question, embedder=None),
        "bm25",
    )


def _best_items(
    items: Sequence[_Item], scores: Floats, pages: int
) -> list[dict[WonBy, int]]:
    """For each page the index of its best item of each kind."""
    best: list[dict[WonBy, int]] = [{} for _ in range(pages)]
    for i, item in enumerate(items):
        known = best[item.page].get(item.kind)
        if known is None or scores[i] > scores[known]:
            best[item.page][item.kind] = i
    return best


def _ranks(values: Floats) -> Floats:
    """Places [n] by falling value. Equal values share a place: a list that knows
    nothing must not repeat the engine."""
    _, group, sizes = np.unique(-values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return np.asarray((last - (sizes - 1) / 2)[group], dtype=np.float32)


def _winner(
    kinds: Mapping[WonBy, int], scores: Floats, *, ahead: bool, form: RankForm
) -> WonBy:
    """The kind that brought the page here: its better item (the content where they are
    equal), or the engines where they have it `ahead` of its items."""
    if form == "engine" or (form == "mixed" and ahead):
        return "engine"
    return max(kinds, key=lambda kind: (float(scores[kinds[kind]]), kind == "content"))


# The best passages of a page


@dataclass(frozen=True, slots=True)
class UnitRun:
    """A run of neighbouring units."""

    text: str
    """The original text in the document."""
    heading_path: tuple[str, ...]

    @property
    def headed(self) -> str:
        """The text with its headings in front, as it is scored."""
        return (
            f"{' > '.join(self.heading_path)}\n{self.text}"
            if self.heading_path
            else self.text
        )


def best_passages(
    document: Document, question: Question, *, limit: int, language: str = ""
) -> list[UnitRun]:
    """Return up to `limit` passages, best first; those without any term of `question`
    last."""
    page = document.page.language or _guessed(document)
    asked = question.translated_to(page)
    own = language or question.language
    passages, words = _counted(document, own if asked == question else page)
    scores = words.scores(asked)
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
    tagged = tag_sentences(document)
    spoken = [
        unit
        for unit in tagged
        if document.blocks[unit.block].kind not in {"heading", "about"}
    ]
    units = (
        [unit for unit in spoken if document.blocks[unit.block].main]
        or spoken
        or list(tagged)
    )
    # Between two that do not follow each other was a heading, or furniture.
    kinds = [
        (unit.number - index, document.blocks[unit.block].injection)
        for index, unit in enumerate(units)
    ]
    starts = [
        index
        for index, kind in enumerate(kinds)
        if not index or kind != kinds[index - 1]
    ]
    tokens = np.array(count_each([unit.text for unit in units]), dtype=np.float32)
    return [
        UnitRun(
            document.text[units[first].start : units[stop - 1].end],
            units[first].heading_path,
        )
        for first, stop in cut_windows(
            tokens, [*starts, len(units)], SIZES[-1]
        ).tolist()
    ]
