"""The structured twin of evidence: what `extract_relevant` and `research` return beside their text.

Not a tool itself, and never the text of a passage, which stands in the text part once.
"""

from pydantic import BaseModel, Field

from pipeline.evidence.assemble import Assembled
from pipeline.text.frame import one_line


class Passage(BaseModel):
    """One verbatim passage; its text stands in the text part under `label`."""

    label: str = Field(description="Where the text part shows it, such as 1a")
    citation: str = Field(description="URL that opens the page at these words")
    also: list[str] = Field(description="Citations of other pages that hold the same words")
    title: str
    published: str = Field(description="ISO date, empty when unknown")
    heading_path: list[str] = Field(description="Headings above, outermost first")
    block_path: str = Field(description="Place in the page's block tree")
    sentences: list[int] = Field(description="Numbers of the sentences on the page")
    score: float
    made_by: str = Field(description="What made the score")


def passages(assembled: Assembled) -> list[Passage]:
    """Return the structured twin of the passages that a text shows."""
    return [
        Passage(
            label=label,
            citation=evidence.citation,
            also=list(evidence.also),
            title=one_line(evidence.title),
            published=evidence.published,
            heading_path=list(evidence.heading_path),
            block_path=evidence.block_path,
            sentences=list(evidence.sentences),
            score=round(evidence.score.value, 4),
            made_by=evidence.score.made_by,
        )
        for label, evidence in zip(assembled.shown.labels, assembled.evidence, strict=True)
    ]
