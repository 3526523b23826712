"""What pruning chooses among, ready to be asked: pieces and their word indexes, remembered for the next question.

An agent asks one page several things, and asks for its next part; cutting and counting the words took two thirds of a
repeated call. Not for: how a page is cut (`pieces.py`), or what else counts than words (`score.py`).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pipeline.documents import Document
from pipeline.prune.pieces import Piece, cut_pieces
from pipeline.rank.bm25 import BM25
from pipeline.rank.fuse import Floats
from pipeline.work import in_thread

CONTEXT_WEIGHT: Final = 0.75
"""Weight of headings, caption and lead-in against a piece's own words; on 183 development questions 0.25 loses 2 points
of recall, 1.0 one at 256 tokens (docs/log.md)."""
REMEMBERED: Final = 8
"""Sets of pages whose pieces are kept."""
QUESTIONS: Final = 16
"""Questions to a set whose scores are kept."""
MOST_PIECES: Final = 5_000
"""Of a set that is kept; at some 1.5 kB a piece, all sets take 60 MB at most."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The pieces of some pages, and their words."""

    documents: tuple[Document, ...]
    pieces: list[Piece]
    own: BM25
    """Over each piece's text, tiny ones with their neighbours."""
    context: BM25
    """Over what stands above each."""
    heard: OrderedDict[tuple[str, str], Floats] = field(default_factory=OrderedDict)
    """Scores of the last questions, by question and embedder: a further part of an answer asks the same one again."""

    def scores(self, query: str) -> Floats:
        """Return the BM25 score of each piece [n] for `query`: its own words, and those of its context."""
        return self.own.scores(query) + np.float32(CONTEXT_WEIGHT) * self.context.scores(query)


_kept: Final[OrderedDict[tuple[str, tuple[int, ...]], Candidates]] = OrderedDict()
"""By language and the identities of documents, which stay theirs for as long as they are held here."""


async def candidates_of(documents: Sequence[Document], *, language: str) -> Candidates:
    """Return the pieces of `documents` in reading order with their indexes; `language` picks the stemmer."""
    key = (language, tuple(map(id, documents)))
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    made = await in_thread(_made, tuple(documents), language)
    if len(made.pieces) <= MOST_PIECES:
        _kept[key] = made
        while len(_kept) > REMEMBERED:
            _kept.popitem(last=False)
    return made


def _made(documents: tuple[Document, ...], language: str) -> Candidates:
    pieces = cut_pieces(documents)
    own = BM25([f"{piece.text} {piece.near}" for piece in pieces], language=language)
    context = BM25([piece.context for piece in pieces], language=language)
    return Candidates(documents, pieces, own, context)
