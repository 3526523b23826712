"""The passages of a page that speak best for it, by BM25: what ranks it among others, and what a reader is shown of it.

The best passage ranks pages better than the whole content as one text (nDCG@10 .891 against .848 and .974 against .965,
docs/log.md). Not for: pruning (`pipeline/prune/prune.py`) or sentences.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.documents import Document
from pipeline.extract.tag import tag_sentences
from pipeline.rank.bm25 import BM25
from pipeline.rank.relevance import SIZES
from pipeline.rank.terms import cut_windows
from pipeline.text.tokens import count_each


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of neighbouring units."""

    text: str
    """As it stands in the document's text."""
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
    """Return the core's largest windows in reading order, none over a heading.

    Furniture (`Block.main` false) is left out unless the page has nothing else, and so is what is no running text.
    """
    tagged = tag_sentences(document)
    spoken = [unit for unit in tagged if document.blocks[unit.block].kind not in {"heading", "about"}]
    units = [unit for unit in spoken if document.blocks[unit.block].main] or spoken or list(tagged)
    # Between two that do not follow each other stood a heading, or furniture.
    starts = [place for place, unit in enumerate(units) if not place or unit.number != units[place - 1].number + 1]
    tokens = np.array(count_each([unit.text for unit in units]), dtype=np.float32)
    return [
        Passage(document.text[units[first].start : units[stop - 1].end], units[first].heading_path)
        for first, stop in cut_windows(tokens, [*starts, len(units)], SIZES[-1]).tolist()
    ]
