"""Questions about who wrote a page: the line that says so shares no word with them.

English question words and byline words. Not for: the author a page declares in its metadata (`pieces.py` has a piece
for that), or any other kind of answer.
"""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from pipeline.prune.pieces import Piece
from pipeline.rank.fuse import Floats

_ASKED: Final = re.compile(r"\b(?:authors?|wrote|written|writer|byline|penned)\b", re.IGNORECASE)
_BYLINE: Final = re.compile(
    r"^\W*(?:(?:(?:re)?viewed|written|posted|published|edited|authored|updated|words|story|text|article|post) )?by\b:? "
    r"\S|^\W*(?:authors?|writer|about the author)\b",
    re.IGNORECASE,
)
LONGEST: Final = 40
"""Tokens of a byline; longer units are prose that happens to begin so."""


def byline(pieces: Sequence[Piece], query: str) -> Floats:
    """Return 1 for each piece that reads like a byline, or stands under a heading that does, if authorship is asked."""
    values = np.zeros(len(pieces), dtype=np.float32)
    if _ASKED.search(query):
        for number, piece in enumerate(pieces):
            short = piece.tokens <= LONGEST and _BYLINE.search(piece.text)
            if short or piece.context.lower().endswith(("about the author", "author", "authors")):
                values[number] = 1
    return values
