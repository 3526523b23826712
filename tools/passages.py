"""The structured twin of evidence: what `extract_relevant` and `research` return beside their text.

Not a tool itself, and nothing that the text says already.
"""

from collections.abc import Sequence
from itertools import groupby, islice
from typing import Final

from pydantic import BaseModel, Field

from pipeline.documents import Evidence
from pipeline.evidence.assemble import Assembled

MOST: Final = 5
"""Passages that the structured part has: those shown first; the text has them all."""


class Passage(BaseModel):
    """One verbatim passage; its words, page and headings stand in the text part under `label`."""

    label: str = Field(description="Where the text part shows it, such as 1a")
    link: str = Field(description="To be put behind the page's address, so that it opens at these words")
    also: list[str] = Field(description="Citations of other pages that hold the same words")
    score: float = Field(description="0..1, the best unit of all at 1")


def pages_shown(evidence: Sequence[Evidence]) -> list[str]:
    """Return the addresses of the pages that a text shows, in the order of their numbers."""
    return [url for (url, _), _ in groupby(evidence, key=lambda one: (one.url, one.title))]


def passages(assembled: Assembled) -> list[Passage]:
    """Return the structured twin of the passages that a text shows first."""
    shown = zip(assembled.shown.labels, assembled.evidence, strict=True)
    return [
        Passage(label=label, link=_link(one), also=list(one.also), score=round(one.score.value, 3))
        for label, one in islice(shown, MOST)
    ]


def _link(one: Evidence) -> str:
    """Return the fragment of a passage's citation, or the whole citation where it is no fragment of the page."""
    return one.citation.removeprefix(one.url.partition("#")[0])
