"""How much a piece bears on a query: words, meaning, the rows of a table beside each other, and its place on the page.

Not for: choosing under a budget (`prune.py`).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from models.protocols import Embedder
from pipeline.prune.byline import byline
from pipeline.prune.candidates import QUESTIONS, Candidates
from pipeline.prune.compare import compare_rows, spread
from pipeline.prune.pieces import Piece
from pipeline.rank.bm25 import BM25
from pipeline.rank.fuse import Floats, blend, standardise
from pipeline.work import in_thread

# Recall at 256 tokens of 183 development questions (60 % of the pages, docs/log.md): BM25 with the head prior 71.0,
# with the embedder 71.6, with neighbours of rows 77.0, with edges and extremes of tables 80.3, with both 85.2.
EMBEDDING_WEIGHT: Final = 1.0
"""Weight of the embedder against BM25, both standardised."""
NEIGHBOUR_SHARE: Final = 0.7
"""Part of a row's score that its neighbours get where the question asks for the row before or after."""
STANDING_WEIGHT: Final = 1.0
"""Weight of being the first, last or extreme row where the question asks for that, in standard deviations."""
BYLINE_WEIGHT: Final = 3.0
"""Weight of reading like a byline where the question asks who wrote the page: its words are in no question."""
HEAD_UNITS: Final = 6
HEAD_WEIGHT: Final = 0.5
"""The first units of the content say what the page is, who wrote it and when; falls to zero over `HEAD_UNITS`."""
FURNITURE_PENALTY: Final = 1.0
EMBEDDED: Final = 200
"""Pieces that are embedded in one call, the best by words and place: about a second on two busy cores."""
LONGEST_EMBEDDED: Final = 1200
"""Characters of a piece that the embedder is shown; the embedded model reads 256 word pieces."""


def prior(pieces: Sequence[Piece]) -> Floats:
    """Return what speaks for each piece before any query [n]: the head of the page, content before furniture."""
    values = np.zeros(len(pieces), dtype=np.float32)
    for number, piece in enumerate(pieces):
        values[number] = HEAD_WEIGHT * max(0.0, 1 - piece.place / HEAD_UNITS) if piece.main else -FURNITURE_PENALTY
    return values


async def score(candidates: Candidates, query: str, *, embedder: Embedder | None) -> Floats:
    """Return one score a piece [n], higher is better; the embedder votes where it reads query and most texts.

    Args:
        candidates: What to score.
        query: What is looked for; not empty.
        embedder: None for words alone.

    Raises:
        ModelError: The embedder failed.
    """
    key = (query, embedder.name if embedder is not None else "")
    if key not in candidates.heard:
        scores = await _scored(candidates, query, embedder)
        scores.setflags(write=False)  # others will be given the same array
        candidates.heard[key] = scores
        while len(candidates.heard) > QUESTIONS:
            candidates.heard.popitem(last=False)
    return candidates.heard[key]


async def _scored(candidates: Candidates, query: str, embedder: Embedder | None) -> Floats:
    pieces = candidates.pieces
    words, standing, spreading = await in_thread(_by_words, candidates, query)
    total = standardise(spread(words, spreading, share=NEIGHBOUR_SHARE))
    before = prior(pieces) + np.float32(STANDING_WEIGHT) * standing
    before += np.float32(BYLINE_WEIGHT) * byline(pieces, query)
    if embedder is not None and embedder.reads(query):
        best = np.argsort(-(total + before), kind="stable")[:EMBEDDED]
        texts = [f"{pieces[i].context} {pieces[i].text}"[:LONGEST_EMBEDDED] for i in best]
        if 2 * sum(embedder.reads(text) for text in texts) >= len(texts) > 0:
            meaning = await _likeness(texts, query, embedder)
            everywhere = np.full(len(pieces), float(meaning.min()), dtype=np.float32)
            everywhere[best] = meaning
            total = blend([total, everywhere], [1.0, EMBEDDING_WEIGHT])
    result: Floats = total + before
    return result


def _by_words(candidates: Candidates, query: str) -> tuple[Floats, Floats, Floats]:
    standing, spreading = compare_rows(candidates.pieces, candidates.documents, query)
    return candidates.scores(query), standing, spreading


async def score_texts(texts: Sequence[str], query: str, *, language: str, embedder: Embedder | None) -> Floats:
    """Return one score a text [n] by BM25 and, where it reads them, the embedder: for texts without structure."""

    def by_words() -> Floats:
        return standardise(BM25(texts, language=language).scores(query))

    total = await in_thread(by_words)
    if embedder is not None and embedder.reads(query):
        best = np.argsort(-total, kind="stable")[:EMBEDDED]
        meaning = await _likeness([texts[i][:LONGEST_EMBEDDED] for i in best], query, embedder)
        everywhere = np.full(len(texts), float(meaning.min(initial=0)), dtype=np.float32)
        everywhere[best] = meaning
        return blend([total, everywhere])
    return total


async def _likeness(texts: Sequence[str], query: str, embedder: Embedder) -> Floats:
    """Return the cosine of each text with the query [n]."""
    vectors = await embedder.embed(texts, kind="passage")
    asked = await embedder.embed([query], kind="query")
    likeness: Floats = vectors @ asked[0]
    return likeness
