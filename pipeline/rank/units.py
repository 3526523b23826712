"""A page as the core reads it: units in reading order, each with what stands above it.

A unit is what `pipeline/extract/tag.py` makes: a sentence, heading, item, table row, definition or piece of code. Plain
lists, so that data sets without pages can be measured too. Not for: scores (`relevance.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.documents import Block, Document, Sentence
from pipeline.text.frame import one_line

JOINT: Final = " › "
"""Between the title and the headings above a unit, outermost first."""


@dataclass(frozen=True, slots=True)
class PageUnits:
    """One page: parallel lists, one entry a unit."""

    texts: Sequence[str]
    above: Sequence[str]
    """Title, headings and lead-in above each unit, joined by `JOINT`; empty strings where nothing stands above."""
    language: str = ""
    """ISO 639-1 code; guessed from the texts where empty."""
    vectors: NDArray[np.float32] | None = None
    """Unit vectors by the reader's embedder [units, d], where something keeps them; else units are embedded."""

    def headed(self, place: int) -> str:
        """Return a unit with everything above it in front, as a reranker reads it."""
        return f"{self.above[place]}: {self.texts[place]}" if self.above[place] else self.texts[place]


def page_units(document: Document, sentences: Sequence[Sentence]) -> PageUnits:
    """Return a tagged document as the core reads it."""
    title = one_line(document.page.title)
    above: list[str] = []
    for sentence in sentences:
        lead = _lead(document.blocks[sentence.block])
        texts = dict.fromkeys(one_line(text) for text in (title, *sentence.heading_path, lead) if text)
        texts.pop(sentence.text, None)
        above.append(JOINT.join(texts))
    return PageUnits([sentence.text for sentence in sentences], above, document.page.language)


def _lead(block: Block) -> str:
    """Return an item's lead-in or a row's caption; a row's header stands in its own text already."""
    first = block.lead.partition("\n")[0]
    return "" if block.kind == "row" and " | " in first else first
