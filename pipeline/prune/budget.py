"""How many tokens an answer gets when no budget is named: few where one part stands out, more where many are near.

Not for: filling a budget (`prune.py`).
"""

from collections.abc import Sequence
from typing import Final

from pipeline.prune.pieces import Piece
from pipeline.rank.fuse import Floats

NEAR: Final = 3.5
"""Distance from the best score, in standard deviations, within which a part may be the answer. On the cloze and author
questions tuned on, in HTML: 3.0 gives .966 of answers at 346 tokens, 3.5 .966 at 476, 4.0 .966 at 607 (docs/log.md)."""
LEAST: Final = 256
"""Tokens for one page; at 200 a fortieth of the answers is lost."""
MOST: Final = 1536
MORE_LEAST: Final = 64
MORE_MOST: Final = 256
"""Tokens that each further page adds to both bounds."""
UNASKED: Final = 2000
"""Tokens without a query, when there are no scores to go by."""


def choose_budget(pieces: Sequence[Piece], values: Floats, *, pages: int) -> int:
    """Return the tokens of the pieces [n] whose score is near the best, between bounds that grow with the pages."""
    if not len(pieces):
        return LEAST
    near = float(values.max()) - NEAR
    wanted = sum(piece.tokens for piece, value in zip(pieces, values, strict=True) if value >= near)
    more = max(0, pages - 1)
    return max(LEAST + MORE_LEAST * more, min(wanted, MOST + MORE_MOST * more))
