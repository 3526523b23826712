"""Mixed ranking as printed: snippet and whole content compete as 2n items, and each
page has its better one's score (zero-index §3.2).

Not for: the default order (`pipeline/search/mixed.py`)."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from models.protocols import Embedder, Reranker
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.reading.relevance import score_texts
from pipeline.search.mixed import RankedPage, best_passages
from pipeline.search.query import SearchResult
from pipeline.text.tokens import cut_to_tokens
from pipeline.work import in_thread
from readers.page import Document, Score, ScoreMaker

CONTENT_TOKENS: Final = 512
"""Tokens of a content that are scored: the default cut of the paper's model, BGE-M3."""


async def rank_as_printed(
    question: Question,
    results: Sequence[SearchResult],
    documents: Mapping[str, Document],
    *,
    embedder: Embedder | None,
    reranker: Reranker | None = None,
    keywords: Sequence[str] = (),
) -> tuple[RankedPage, ...]:
    """Return all pages of `results`, best first: by the reranker, else by the cosine of
    the embedder alone, else by words.

    What is scored against is the keywords that a model extracted, as printed; the
    question where there are none. Equal pages stay in the engines' order. Raises `ModelError`: a model failed."""
    contents = {
        page: cut_to_tokens(documents[result.url].text, CONTENT_TOKENS)
        for page, result in enumerate(results)
        if result.url in documents
    }
    texts = [*(result.snippet for result in results), *contents.values()]
    if not results:
        return ()
    asked = Question("; ".join(keywords)) if keywords else question
    scores, made_by = await _scores(asked, texts, embedder, reranker)
    snippets = scores[: len(results)]
    by_page = dict(zip(contents, scores[len(results) :].tolist(), strict=True))
    best = np.array(
        [
            max(by_page.get(page, -np.inf), snippets[page])
            for page in range(len(results))
        ]
    )
    ranked = []
    for place, page in enumerate(np.argsort(-best, kind="stable").tolist(), start=1):
        result = results[page]
        passage = result.snippet
        if best[page] <= by_page.get(page, -np.inf):
            document = documents[result.url]
            found = await in_thread(best_passages, document, question, limit=1)
            passage = found[0].text if found else passage
        score = Score(float(best[page]), made_by)
        ranked.append(RankedPage(result, score, passage, place))
    return tuple(ranked)


async def _scores(
    asked: Question,
    texts: Sequence[str],
    embedder: Embedder | None,
    reranker: Reranker | None,
) -> tuple[Floats, ScoreMaker]:
    if reranker is not None:
        return await reranker.score(asked.text, texts), "rerank"
    if embedder is None or not embedder.reads(asked.text):
        return await score_texts(texts, asked, embedder=None), "bm25"
    query = (await embedder.embed([asked.text], kind="query"))[0]
    return await embedder.embed(texts, kind="passage") @ query, "embedding"
