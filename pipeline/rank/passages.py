"""The passages of a page that speak best for it, by BM25: what ranks it among others, and what a reader is shown of it.

The best passage of about 900 characters ranks pages better than the whole content as one text (nDCG@10 .891 against
.848 and .974 against .965, notes/zeroindex §5). Not for: pruning (`pipeline/prune/prune.py`) or sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.documents import Block, Document
from pipeline.rank.bm25 import BM25

UNITS: Final = 5
"""Content units (paragraphs, items, rows) that a passage joins at most."""
CHARACTERS: Final = 900
"""Length of a passage; a longer unit is cut into pieces of this length."""
OVERLAP: Final = 150
"""Characters that pieces of one long unit share, so that no sentence is lost at a cut."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of neighbouring content units."""

    text: str
    """The units, one a line."""
    heading_path: tuple[str, ...]

    @property
    def headed(self) -> str:
        """The text with its headings in front, as it is scored."""
        return f"{' > '.join(self.heading_path)}\n{self.text}" if self.heading_path else self.text


def best_passages(document: Document, question: str, *, limit: int, language: str = "en") -> list[Passage]:
    """Return up to `limit` passages, best first; those without any term of `question` last."""
    passages = cut_passages(document)
    scores = BM25([passage.headed for passage in passages], language=language).scores(question)
    return [passages[place] for place in np.argsort(-scores, kind="stable")[:limit]]


def cut_passages(document: Document) -> list[Passage]:
    """Return overlapping passages in reading order: each begins halfway through the one before.

    None runs over a heading. Furniture (`Block.main` false) is left out unless the page has nothing else.
    """
    units = [block for block in document.blocks if block.text and block.kind != "heading"]
    units = [block for block in units if block.main] or units or [block for block in document.blocks if block.text]
    passages: list[Passage] = []
    first = 0
    while first < len(units):
        last = _last(units, first)
        passages += _passages(units[first : last + 1])
        if last + 1 == len(units):
            break
        follows = units[last + 1].heading_path == units[first].heading_path
        first += (last - first) // 2 + 1 if follows else last - first + 1
    return passages


def _last(units: Sequence[Block], first: int) -> int:
    """Return the last of the units from `first` on that stand under its heading and share a passage with it."""
    last, length = first, len(units[first].text)
    for place in range(first + 1, min(first + UNITS, len(units))):
        length += 1 + len(units[place].text)
        if length > CHARACTERS or units[place].heading_path != units[first].heading_path:
            break
        last = place
    return last


def _passages(units: Sequence[Block]) -> list[Passage]:
    """Return units as one passage, or a single one that is too long as several."""
    text = "\n".join(unit.text for unit in units)
    starts = range(0, max(1, len(text) - OVERLAP), CHARACTERS - OVERLAP)
    return [Passage(text[at : at + CHARACTERS], units[0].heading_path) for at in starts]
