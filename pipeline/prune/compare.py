"""Questions that compare the rows of a table: the most, the first, the one after. Words alone do not find their rows.

For such questions the rows at the edges of a table, those with the extreme values of a column, and the neighbours of
rows that match are raised. English question words only; other questions are left as they are. Not for: computing the
answer.
"""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from pipeline.documents import Document
from pipeline.prune.pieces import Piece
from pipeline.prune.render import header_of, table_of
from pipeline.rank.fuse import Floats
from pipeline.text.words import index_terms

_MOST: Final = re.compile(
    r"\b(?:most|least|fewest|highest|lowest|largest|smallest|biggest|longest|shortest|greatest|oldest|youngest|earliest|"
    r"latest|fastest|slowest|newest|tallest|heaviest|best|worst|maximum|minimum|top|more|less|fewer|only)\b",
    re.IGNORECASE,
)
_EDGE: Final = re.compile(
    r"\b(?:first|last|final|earliest|latest|initial|begin|began|start|started|end|ended|top|bottom|recent|most recent|"
    r"newest|oldest|debut|currently|listed)\b",
    re.IGNORECASE,
)
_NEXT: Final = re.compile(
    r"\b(?:after|before|next|previous|previously|prior|following|followed|preceding|preceded|precedes|follows|later|"
    r"earlier|above|below|consecutive|besides|between)\b",
    re.IGNORECASE,
)
_CLOCK: Final = re.compile(r"(\d+):(\d\d)(?:[:.](\d+))?")
_NUMBER: Final = re.compile(r"[-−–]?\d[\d,]*(?:\.\d+)?")
_YEAR: Final = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
NAMED: Final = 1.0
"""Weight of an extreme in a column that the question names."""
OTHER: Final = 0.35
"""Weight of an extreme in any other column."""


def compare_rows(pieces: Sequence[Piece], documents: Sequence[Document], query: str) -> tuple[Floats, Floats]:
    """Return two arrays over the pieces [n].

    First: how much a row is at the edge or extreme that the question asks for, 0..1. Second: 1 for rows where the
    question asks for a neighbour of a row that it names, so that matches should spread to the rows beside.
    """
    standing = np.zeros(len(pieces), dtype=np.float32)
    spreading = np.zeros(len(pieces), dtype=np.float32)
    most, edge, beside = _MOST.search(query), _EDGE.search(query), _NEXT.search(query)
    if not (most or edge or beside):
        return standing, spreading
    terms = set(index_terms(query))
    for rows in _tables(pieces, documents).values():
        if len(rows) < 3:
            continue
        if beside:
            spreading[rows] = 1
        if edge:
            standing[[rows[0], rows[-1]]] = 1
            standing[[rows[1], rows[-2]]] = np.maximum(standing[[rows[1], rows[-2]]], 0.5)
        if most:
            for row, weight in _extremes(rows, pieces, documents, terms):
                standing[row] = max(standing[row], weight)
    return standing, spreading


def spread(scores: Floats, spreading: Floats, *, share: float) -> Floats:
    """Return `scores` with each row's part of its neighbours' scores added, where `spreading` says so."""
    if not spreading.any():
        return scores
    around = np.zeros_like(scores)
    around[1:] = scores[:-1] * (spreading[:-1] > 0)
    around[:-1] = np.maximum(around[:-1], scores[1:] * (spreading[1:] > 0))
    result: Floats = np.maximum(scores, scores + np.float32(share) * around * spreading)
    return result


def _tables(pieces: Sequence[Piece], documents: Sequence[Document]) -> dict[tuple[int, str], list[int]]:
    found: dict[tuple[int, str], list[int]] = {}
    for number, piece in enumerate(pieces):
        if piece.block < 0:
            continue
        block = documents[piece.document].blocks[piece.block]
        if block.kind == "row" and len(block.cells) > 1:
            found.setdefault((piece.document, table_of(block)), []).append(number)
    return found


def _extremes(
    rows: Sequence[int], pieces: Sequence[Piece], documents: Sequence[Document], terms: set[str]
) -> list[tuple[int, float]]:
    """Return the rows with the largest and smallest value of each numeric column, weighted by the column."""
    blocks = [documents[pieces[row].document].blocks[pieces[row].block] for row in rows]
    headers = header_of(blocks[0]).split(" | ")
    width = max(len(block.cells) for block in blocks)
    found: list[tuple[int, float]] = []
    for column in range(min(width, 40)):
        values = [(_value(block.cells[column]) if column < len(block.cells) else None) for block in blocks]
        known = sorted((value, row) for value, row in zip(values, rows, strict=True) if value is not None)
        if len(known) < 3 or 2 * len(known) < len(rows):
            continue
        named = column < len(headers) and not terms.isdisjoint(index_terms(headers[column]))
        weight = NAMED if named else OTHER
        for place in (0, -1):
            extreme = known[place][0]
            ties = [row for value, row in known if value == extreme]
            if len(ties) <= 3:
                found.extend((row, weight) for row in ties)
        if named and len(known) > 3:
            found.extend((known[place][1], 0.6 * weight) for place in (1, -2))
    return found


def _value(cell: str) -> float | None:
    if not cell or len(cell) > 80:
        return None
    clock = _CLOCK.search(cell)
    if clock:
        return int(clock[1]) * 60.0 + int(clock[2])
    year = _YEAR.search(cell)
    if year:
        return float(year[1])
    match = _NUMBER.search(cell)
    if match is None:
        return None
    digits = match[0].replace(",", "").replace("−", "-").replace("–", "-")
    return float(digits) if len(digits) < 30 else None
