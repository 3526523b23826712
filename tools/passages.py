"""The structured twin of evidence: what `extract_relevant` and `research` return beside their text.

Not a tool itself, and nothing that the text says already.
"""

from itertools import islice
from typing import Final

from pydantic import BaseModel, Field

from pipeline.evidence.assemble import Assembled

MOST: Final = 5
"""Passages that the structured part has: those shown first; the text has them all."""


class Passage(BaseModel):
    """One verbatim passage; its words, page and headings stand in the text part under `label`."""

    label: str = Field(description="Where the text part shows it, such as 1a")
    citation: str = Field(description="URL that opens the page at these words")
    also: list[str] = Field(description="Citations of other pages that hold the same words")
    score: float = Field(description="0..1, the best unit of all at 1")


def passages(assembled: Assembled) -> list[Passage]:
    """Return the structured twin of the passages that a text shows first."""
    shown = zip(assembled.shown.labels, assembled.evidence, strict=True)
    return [
        Passage(label=label, citation=one.citation, also=list(one.also), score=round(one.score.value, 3))
        for label, one in islice(shown, MOST)
    ]
