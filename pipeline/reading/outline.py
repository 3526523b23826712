"""A question about one document as a whole is answered with its outline: the first sentence under
each heading.

`raptor_query` gives an overview from a tree's summaries; this needs none, so that `research` and
`extract_relevant` answer "Summarise the workflows document" by what its sections begin with, not by
passages about summaries. Not for: whether a question is broad (`pipeline/question/broad.py`).
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pipeline.document.page import Document, Sentence
from pipeline.document.tree import count_words
from pipeline.question.broad import has_word_for_all, is_broad, names_summary
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.reading.reading import Reading

_SITE_SEPARATOR: Final = re.compile(r"\s[|·–—-]\s")
"""What parts a title from the name of its site."""
SAYS: Final = 6
"""Words from which a unit says something by itself."""
DEEPER: Final = 0.1
"""What a unit's score loses for each heading above its own, so that chapters come before their
sections."""
DEEPEST_SCORE: Final = 0.5
"""Score of the deepest heading's first unit."""


def outlined(
    question: Question, documents: Sequence[Document], reading: Reading
) -> Reading:
    """Return `reading` as the outline of the document that `question` is about as a whole; itself
    for any other."""
    index = _about(question, documents, reading)
    if index is None:
        return reading
    values: Floats = np.zeros_like(reading.values)
    first = sum(map(len, reading.tagged[:index]))
    own = _outline(documents[index], reading.tagged[index])
    values[first : first + len(own)] = own
    title = documents[index].page.title or documents[index].page.final_url
    reason = f"The question is about all of {title!r}: these are the first words of its sections."
    return replace(
        reading,
        verdict="answered",
        reason=reason,
        values=values,
        made_by="outline",
        parts=(),
        absent=(),
        lacking=(),
    )


def _about(
    question: Question, documents: Sequence[Document], reading: Reading
) -> int | None:
    """Return the document that a question is about as a whole, None where there is none, or where
    it is not clear."""
    if question.is_broad:
        return 0 if len(documents) == 1 and reading.tagged[0] else None
    if not has_word_for_all(question.text):
        return None
    read = [index for index, units in enumerate(reading.tagged) if units]
    named = [
        index for index in read if is_broad(question.text, _names(documents[index]))
    ]
    exact = [
        index
        for index in named
        if is_broad(question.text, _names(documents[index]), parts=False)
    ]
    # Of several the one whose title says least besides
    return min(
        exact or named, key=lambda index: len(documents[index].page.title), default=None
    )


def _names(document: Document) -> list[str]:
    """Return what a document is called: its title without the name of its site, and the name of its
    file."""
    title = _SITE_SEPARATOR.split(document.page.title, maxsplit=1)[0]
    return [title, document.page.final_url.rpartition("/")[2].rpartition(".")[0]]


def _outline(document: Document, units: Sequence[Sentence]) -> list[float]:
    """Return scores of a document's units: the first that says something under each
    heading, all of a summary; others are 0."""
    seen: set[tuple[str, ...]] = set()
    headings = {unit.heading_path[-1] for unit in units if unit.heading_path}
    summaries = set(filter(names_summary, headings))
    scores: list[float] = []
    for number, unit in enumerate(units):
        block = document.blocks[unit.block]
        summary = bool(summaries.intersection(unit.heading_path[-1:]))
        says = block.main and block.kind not in {"heading", "row", "code"}
        says = says and (summary or count_words(unit.text) >= SAYS)
        new = says and (summary or unit.heading_path not in seen)
        seen |= {unit.heading_path} if new else set()
        depth = max(DEEPEST_SCORE, 1.0 - DEEPER * len(unit.heading_path))
        scores.append(depth - number / (1e3 * len(units)) if new else 0.0)
    return scores
