"""The rows of a table that a question names, where it asks for one thing that they say.

"the net generation from renewables in Iowa in 2017" names one row of fifty by two of
its cells. The rows beside it score nearly as high by meaning, and none of them answers.
Not for: extremes and ends of a table (`extract.lift_rows`) or what is computed from
rows (`pipeline/tables`)."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np

from pipeline.document.page import Document
from pipeline.reading.bm25 import Floats
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import WORTH
from pipeline.text.words import index_terms
from pipeline.work import check_cancelled

FEW: Final = 3
"""Rows up to which those are meant that have most of the question's words; more are a
list."""
FEWEST_ROWS: Final = 4
"""Rows of a page below which all of them may be shown."""


def named_rows_first(documents: Sequence[Document], reading: Reading) -> Reading:
    """Return the reading with the rows foremost that its question names, and the others
    of their page at 0.

    It is unchanged if the best unit is not a row, where the question asks for an
    extreme or has several parts, or where more than `FEW` rows contain equally many of
    its words.
    """
    if reading.verdict == "none" or not len(reading.values):
        return reading
    best = int(np.argmax(reading.values))
    owner, unit = reading.places[best]
    if reading.parts or documents[owner].blocks[unit.block].kind != "row":
        return reading
    if reading.question.choice:
        return reading
    rows = _rows(documents[owner], reading, owner)
    named = _named(documents[owner], reading, rows)
    if (
        not named
        or max(reading.values[row] for row in named) < WORTH * reading.values[best]
    ):
        return reading
    values: Floats = reading.values.copy()
    values[rows] = 0.0
    values[named] = reading.values[best]
    return replace(reading, values=values)


def _rows(document: Document, reading: Reading, owner: int) -> list[int]:
    """Return the numbers of the units of a document, the `owner`-th, that are rows
    below a header."""
    return [
        number
        for number, (index, unit) in enumerate(reading.places)
        if index == owner and document.blocks[unit.block].header
    ]


def _named(document: Document, reading: Reading, rows: Sequence[int]) -> list[int]:
    """Return those of `rows` that have, with the heading above them, most of the question's words
    by their rarity: "Ajazz AK820 Pro Specs" says whose battery a row is about.

    Words of the page's title name no row. Empty where the rows are too many, or are
    named by one word without a digit."""
    if len(rows) < FEWEST_ROWS:
        return []
    found, shared = _words_asked(document, reading, rows)
    counts = Counter(chain.from_iterable(shared.values()))
    rare = {term: math.log(1 + len(rows) / count) for term, count in counts.items()}
    scores = {row: sum(map(rare.__getitem__, terms)) for row, terms in shared.items()}
    most = max(scores.values(), default=0.0)
    named = [row for row, score in scores.items() if math.isclose(score, most)]
    if not 0 < len(named) <= FEW:
        return []
    said = found[named[0]]
    exact = len(said) > 1 or any(any(map(str.isdigit, term)) for term in said)
    return named if exact else []


def _words_asked(
    document: Document, reading: Reading, rows: Sequence[int]
) -> tuple[dict[int, set[str]], dict[int, set[str]]]:
    """Return for each row which of the question's terms it has, and which it has
    together with the heading above it; without those of the page's title."""
    language = document.page.language or "en"
    title = index_terms(document.page.title, language=language)
    asked = set(reading.question.terms(language)).difference(title)
    found: dict[int, set[str]] = {}
    shared: dict[int, set[str]] = {}
    above: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        check_cancelled()
        _, unit = reading.places[row]
        cells = document.text[unit.start : unit.end]
        found[row] = asked.intersection(index_terms(cells, language=language))
        heading = unit.heading_path[-1:]
        if heading not in above:
            terms = index_terms(" ".join(heading), language=language)
            above[heading] = asked.intersection(terms)
        shared[row] = found[row] | above[heading]
    return found, shared
