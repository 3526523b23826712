"""Rows that a request's choosing words point at: a table's ends for "the last", a column's extremes for "the lowest".

No row says of itself that it is the last or has the least: its place and its numbers among the others do. Such rows are
lifted, never above the best sentence, for a page may have other tables than the one that is meant. Not for: scores by
words and meaning (`relevance.py`), or saying that nothing answers (`verdict.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.documents import Block, Document, Sentence
from pipeline.rank.bm25 import Floats
from pipeline.tables.asked import FEWEST
from pipeline.tables.cells import number_of
from pipeline.text.words import heard, index_terms, raw_words, whole_words, words
from pipeline.work import check_cancelled

NAMED: Final = 0.9
"""Part of the distance to the best score that the extremes of a column gain which the question names; not all of it, so
that lifted rows stay in their own order (`python -m bench.extract_tables`)."""
UNNAMED: Final = 0.6
"""Part that a table's ends gain for "first" and "last", and extremes of columns that are not named ("the shortest song"
means one headed Length). At .9 timetables crowd out what "the last boat" is asked of (library at 1,000 tokens .833 to
.783), at .4 table questions lose .04."""

_ENDS: Final = whole_words(words("choosing.ends"))
_LEAST: Final = whole_words(words("choosing.least"))
_MOST: Final = whole_words(words("choosing.most"))
"""Words that say no side by themselves (`le plus petit`, `самый`) stand on both."""
_MEASURES: Final = dict(entry.split(": ") for entry in words("choosing.measures"))
"""What the column is called whose extreme a word means."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a request's words choose by."""

    ends: bool
    least: bool
    most: bool
    measures: str = ""
    """Names of columns that the words mean."""

    def __bool__(self) -> bool:
        """Whether they choose at all."""
        return self.ends or self.least or self.most


def lift_rows(
    request: str, documents: Sequence[Document], tagged: Sequence[Sequence[Sentence]], values: Floats
) -> Floats:
    """Return the scores [size] with the rows lifted that the words of `request` choose, up to the best of all scores.

    Args:
        request: As the user put it.
        documents: Pages in order.
        tagged: Their sentences; all together are the rows of `values`.
        values: Scores [size], at least 0.
    """
    choice = read_choice(request)
    if not choice or not len(values):
        return values
    gains: Floats = np.zeros_like(values)
    least: Floats = np.zeros_like(values)
    begin = 0
    for document, sentences in zip(documents, tagged, strict=True):
        for table in _tables(document, sentences):
            for place, gain in _chosen(request, choice, document, sentences, table):
                gains[begin + place] = max(gains[begin + place], gain)
                if gain == NAMED:  # before the other rows of its table, which may say as much in the same words
                    least[begin + place] = np.nextafter(values[begin + table.start : begin + table.stop].max(), np.inf)
        begin += len(sentences)
    lifted: Floats = np.maximum(values + gains * (values.max() - values), least)
    return lifted


def read_choice(request: str) -> Choice:
    """Return what the words of `request` choose by."""
    text = request.lower()
    ends, least, most = (side.search(text) is not None for side in (_ENDS, _LEAST, _MOST))
    spoken = {form for word in raw_words(text) for form in (word, word.removesuffix("n"))}  # German words end in n, too
    return Choice(ends, least, most, " ".join(_MEASURES[word] for word in spoken & _MEASURES.keys()))


def _tables(document: Document, sentences: Sequence[Sentence]) -> Iterator[range]:
    """Yield the places of rows that follow each other below one header."""
    start = 0
    for place in range(1, len(sentences) + 1):
        if place < len(sentences) and _table(document, sentences[place]) == _table(document, sentences[start]):
            continue
        if place - start >= FEWEST and document.blocks[sentences[start].block].kind == "row":
            yield range(start, place)
        start = place


def _table(document: Document, sentence: Sentence) -> tuple[str, str, tuple[str, ...]]:
    block = document.blocks[sentence.block]
    return block.kind, block.lead, sentence.heading_path


def _chosen(
    request: str, choice: Choice, document: Document, sentences: Sequence[Sentence], table: range
) -> Iterator[tuple[int, float]]:
    """Yield a table's rows that are chosen, each with the part of its distance to the best that it gains."""
    if choice.ends:
        yield from ((table[0], UNNAMED), (table[-1], UNNAMED))
    if not (choice.least or choice.most):
        return
    named: dict[int, list[int]] = {}
    language = document.page.language
    asked = [set(index_terms(text, language=language)) for text in (heard(request, language or "en"), choice.measures)]
    for name, numbers in _columns([document.blocks[sentences[place].block] for place in table]):
        terms = index_terms(name, language=language)
        rank = next((rank for rank, known in enumerate(asked) if not known.isdisjoint(terms)), len(asked))
        for extreme in [min(numbers.values())] * choice.least + [max(numbers.values())] * choice.most:
            places = [table[row] for row, number in numbers.items() if number == extreme]
            if len(places) < FEWEST:
                named.setdefault(rank, []).extend(places)
    if named:
        # The columns that the request names, or else those that its words mean, or else all.
        best = min(named)
        yield from ((place, NAMED if best < len(asked) else UNNAMED) for place in named[best])


def _columns(rows: Sequence[Block]) -> Iterator[tuple[str, dict[int, float]]]:
    """Yield header and cells of the columns most of whose cells are numbers."""
    header = rows[0].header.split(" | ")
    columns: dict[int, dict[int, float]] = {}
    for place, row in enumerate(rows):
        check_cancelled()
        for column, cell in enumerate(row.cells):
            if (number := number_of(cell)) is not None:
                columns.setdefault(column, {})[place] = number
    for column, numbers in sorted(columns.items()):
        if len(numbers) >= max(FEWEST, len(rows) / 2):
            yield header[column] if column < len(header) else "", numbers
