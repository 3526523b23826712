"""The rows of a table that a question names: they are lifted to the best score.

"the net generation from renewables in Iowa in 2017" names one row of fifty by two of
its cells. The rows beside it score nearly as high by meaning, and none of them answers.
Not for: extremes and ends of a table (`extract.lift_rows`)."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Final

import numpy as np

from pipeline.document.page import Document, Sentence
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.text.words import index_terms
from pipeline.work import check_cancelled

FEW: Final = 3
"""Rows up to which those are meant that have most of the question's words; more are a
list."""
FEWEST_ROWS: Final = 4
"""Rows of a page below which all of them may be shown."""


def lift_named_rows(
    question: Question,
    documents: Sequence[Document],
    tagged: Sequence[Sequence[Sentence]],
    values: Floats,
) -> Floats:
    """Return the scores [units] with the rows lifted above all others of their page that
    `question` names.

    They are unchanged where the best unit is not a row, where the question asks for an
    extreme, or where more than `FEW` rows have equally many of its words."""
    if question.choice or not len(values):
        return values
    best = int(np.argmax(values))
    ends = np.cumsum([len(units) for units in tagged])
    page = int(np.searchsorted(ends, best, side="right"))
    document, units = documents[page], tagged[page]
    first = int(ends[page]) - len(units)
    if document.blocks[units[best - first].block].kind != "row":
        return values
    lifted = values.copy()
    lifted[[first + row for row in _named_rows(question, document, units)]] = (
        np.nextafter(values[best], np.float32(np.inf))
    )
    return lifted


def _named_rows(
    question: Question, document: Document, units: Sequence[Sentence]
) -> list[int]:
    """Return the rows of a document that have, with the heading above them, most of the
    question's words by their rarity: "Ajazz AK820 Pro Specs" says whose battery a row is
    about.

    Words of the page's title name no row. Empty where the rows are too many, or are
    named by one word without a digit."""
    rows = [
        number
        for number, unit in enumerate(units)
        if document.blocks[unit.block].header
    ]
    if len(rows) < FEWEST_ROWS:
        return []
    language = document.page.language or "en"
    title = index_terms(document.page.title, language=language)
    terms = set(question.terms(language)).difference(title)
    in_cells: dict[int, set[str]] = {}
    with_heading: dict[int, set[str]] = {}
    for row in rows:
        check_cancelled()
        cells = document.text[units[row].start : units[row].end]
        heading = " ".join(units[row].heading_path[-1:])
        in_cells[row] = terms.intersection(index_terms(cells, language=language))
        with_heading[row] = in_cells[row] | terms.intersection(
            index_terms(heading, language=language)
        )
    counts = Counter(chain.from_iterable(with_heading.values()))
    rarity = {term: math.log(1 + len(rows) / count) for term, count in counts.items()}
    scores = {
        row: sum(map(rarity.__getitem__, held)) for row, held in with_heading.items()
    }
    most = max(scores.values(), default=0.0)
    named = [row for row, score in scores.items() if math.isclose(score, most)]
    if not 0 < len(named) <= FEW:
        return []
    held = in_cells[named[0]]
    is_exact = len(held) > 1 or any(any(map(str.isdigit, term)) for term in held)
    return named if is_exact else []
