"""EXTRACTOR: the core's reading of some documents, and a model that writes beside it if
one is set.

`read_documents` is what every tool asks.
`lift_rows` raises the rows that a request's choosing words point at: a table's ends for
"the last", a column's extremes for "the lowest". No row says of itself that it is the
last or has the least, its place and its numbers among the others do; it stays below the
best sentence, for a page may have other tables than the one that is meant. Not for:
scores by words and meaning (`pipeline/reading/relevance.py`), saying that nothing
answers (`pipeline/reading/verdict.py`), or filling a budget (`pipeline/evidence`)."""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from cancellation import check_cancelled
from errors import unopened
from pipeline.document.units import is_aside, tag_sentences
from pipeline.question.kind import Choice
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats, PageUnits, page_units
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import Reader, Relevance
from pipeline.reading.verdict import absent_literals, judge
from pipeline.text.cells import number_of
from pipeline.text.frame import failure_text
from pipeline.text.words import index_terms
from pipeline.work import in_thread, time_left, traced
from readers.page import TITLE_CHARACTERS, Block, Document, Failure, Sentence

_PARTLY_COMPARED: Final = "parts that are less likely to answer, since time ran out."
FURNITURE_FACTOR: Final = 0.8
"""Factor on the scores of menu, footer and similar lines, which would otherwise rank
next to answers; their sentences are not lowered (figures: docs/log.md, 2026-11-27)."""
UNITS_SHARE: Final = 0.06
"""Part of the call's time for cutting documents into units; what is done with a unit after that
takes some seven times as long."""
UNITS_SECONDS: Final = 0.1
"""Seconds for it in any case, so that what a search said is read when time is up."""
Extractor = Callable[[Question, Sequence[Document], Reading], Awaitable[Reading]]
"""Revises the reading that the rules made of some documents, by a model that writes
(`papers/zero_index`). One that fails or is too slow leaves it, and the note says
so."""


@traced("read")
async def read_documents(
    question: Question,
    documents: Sequence[Document],
    *,
    reader: Reader,
    extractor: Extractor | None = None,
) -> Reading:
    """Return one score a unit of `documents`, all competing with each other, and
    whether any of them answers, as `extractor` revises it if one is set.

    Documents that are not cut into units within `UNITS_SHARE` of the call's time are
    named in `Reading.unread`. A model that fails is named in `Reading.failure`; where
    time ends before a model has seen what it would, the reading is `late`."""
    # 1. Tag: sentences, items, rows, code
    seconds = max(UNITS_SECONDS, UNITS_SHARE * time_left())
    pages, tagged, unread = await in_thread(_units, documents, seconds)
    # 2. Judge every unit
    reading = await read_units(question, documents, pages, tagged, reader=reader)
    reading = replace(reading, unread=unread)
    return (
        reading if extractor is None else await extractor(question, documents, reading)
    )


async def read_units(
    question: Question,
    documents: Sequence[Document],
    pages: Sequence[PageUnits],
    tagged: tuple[tuple[Sentence, ...], ...],
    *,
    reader: Reader,
) -> Reading:
    """Return the reading of some units of each document, `tagged`, which `pages` holds
    as the core reads them."""
    # 1. Relevance of every unit
    relevance = await reader.read(question, pages)
    # 2. Verdict, and rows that "the last" or "the lowest" points at
    return await in_thread(_judged, question, documents, tagged, relevance)


def _units(
    documents: Sequence[Document], seconds: float
) -> tuple[list[PageUnits], tuple[tuple[Sentence, ...], ...], tuple[str, ...]]:
    """Return each document's units, and the addresses of those that have only what was
    cut in time. Short documents come first, so that a long one costs itself alone."""
    ends = time.monotonic() + seconds
    tagged: list[tuple[Sentence, ...]] = [()] * len(documents)
    unread: list[str] = []
    by_size = sorted(range(len(documents)), key=lambda row: len(documents[row].text))
    for done, row in enumerate(by_size):
        now = time.monotonic()
        limit = now + (ends - now) / (len(documents) - done)
        tagged[row] = tag_sentences(documents[row], ends=limit)
        unread += [documents[row].page.final_url] * (time.monotonic() > limit)
    return list(map(page_units, documents, tagged)), tuple(tagged), tuple(unread)


def unless_cut(reading: Reading, failures: Sequence[Failure]) -> Reading:
    """Return a reading that is never `none` where something that could hold the answer
    was not read.

    A source that does not exist holds no answer.
    """
    missing = [failure for failure in failures if not failure.gone]
    if not missing or reading.verdict != "none":
        return reading
    unread = "; ".join(
        failure_text(one.source, one.reason).rstrip(".") for one in missing
    )
    note = f"Not read: {unopened(unread[:TITLE_CHARACTERS])}. {reading.note}".strip()
    return replace(reading, verdict="unsure", note=note, cut=True)


def left_unread(reading: Reading, documents: Sequence[Document]) -> list[Failure]:
    """Return the documents that there was no time to read, or to compare with the
    question, and the model that failed to do so."""
    late = [document.page.final_url for document in documents if reading.late]
    return [
        *([model_failure(reading.failure)] if reading.failure else []),
        *(Failure(url, _PARTLY_COMPARED, late=True) for url in late),
        *(
            Failure(url, "No time was left to read all of it.", late=True)
            for url in reading.unread
        ),
    ]


def model_failure(reason: str) -> Failure:
    """Return that a model failed, for which words take over."""
    return Failure("model", f"words alone decided. {reason}")


def _judged(
    question: Question,
    documents: Sequence[Document],
    tagged: tuple[tuple[Sentence, ...], ...],
    relevance: Relevance,
) -> Reading:
    verdict = judge(question, relevance)
    values = _content_first(documents, tagged, relevance.values)
    values = lift_rows(question, documents, tagged, values)
    whole = [f"{one.page.final_url}\n{one.page.title}\n{one.text}" for one in documents]
    literals = absent_literals(question, whole)
    return Reading(
        verdict.word,
        verdict.note,
        verdict.confidence,
        tagged,
        values,
        relevance.made_by,
        question=question,
        absent=(
            *literals,
            *(one for one in verdict.absent if one not in " ".join(literals)),
        ),
        late=relevance.late,
        failure=relevance.failure,
    )


def _content_first(
    documents: Sequence[Document], tagged: Sequence[Sequence[Sentence]], values: Floats
) -> Floats:
    """Return the scores [units] with those of furniture lowered, rescaled to a maximum
    of 1."""
    low = [
        is_aside(document.blocks[unit.block])
        for document, units in zip(documents, tagged, strict=True)
        for unit in units
    ]
    lowered = np.where(
        np.array(low, dtype=bool), np.float32(FURNITURE_FACTOR) * values, values
    ).astype(np.float32)
    best = lowered.max(initial=0.0)
    return lowered / best if best > 0 else lowered


# Rows that a request chooses

FEWEST_CHOSEN_FROM: Final = 3
"""Rows of a table in which something can be chosen, and this many with the same extreme
are not a choice."""
EXTREME_LIFT: Final = 0.9
"""Part of the distance to the best score that the extremes of a column gain which the
question names; not all of it, so that lifted rows stay in their own order (`python -m
bench run tables`)."""
UNNAMED: Final = 0.6
"""Part that a table's ends gain for "first" and "last", and extremes of columns that
are not named ("the shortest song" means one headed Length). With more, timetables crowd
out what "the last boat" is asked of; with less, questions about tables lose."""


def lift_rows(
    request: Question,
    documents: Sequence[Document],
    tagged: Sequence[Sequence[Sentence]],
    values: Floats,
) -> Floats:
    """Return the scores [size] with the rows lifted that the words of `request` choose,
    up to the best of all scores.

    Args:
        request: As the user put it.
        documents: Pages in order.
        tagged: Their sentences; all together are the rows of `values`.
        values: Scores [size], at least 0.
    """
    choice = request.choice
    if not choice or not len(values):
        return values
    gains: Floats = np.zeros_like(values)
    least: Floats = np.zeros_like(values)
    begin = 0
    for document, sentences in zip(documents, tagged, strict=True):
        for table in _tables(document, sentences):
            for index, gain in _chosen(request, choice, document, sentences, table):
                gains[begin + index] = max(gains[begin + index], gain)
                if (
                    gain == EXTREME_LIFT
                ):  # before the other rows of its table, which may say as much in the same words
                    least[begin + index] = np.nextafter(
                        values[begin + table.start : begin + table.stop].max(), np.inf
                    )
        begin += len(sentences)
    lifted: Floats = np.maximum(values + gains * (values.max() - values), least)
    return lifted


def _tables(document: Document, sentences: Sequence[Sentence]) -> Iterator[range]:
    """Yield the places of rows that follow each other below one header. Stretches of
    fewer than `FEWEST_CHOSEN_FROM` rows are left out."""
    start = 0
    for index in range(1, len(sentences) + 1):
        if index < len(sentences) and _table(document, sentences[index]) == _table(
            document, sentences[start]
        ):
            continue
        if (
            index - start >= FEWEST_CHOSEN_FROM
            and document.blocks[sentences[start].block].kind == "row"
        ):
            yield range(start, index)
        start = index


def _table(document: Document, sentence: Sentence) -> tuple[str, str, tuple[str, ...]]:
    block = document.blocks[sentence.block]
    return block.kind, block.lead, sentence.heading_path


def _chosen(
    request: Question,
    choice: Choice,
    document: Document,
    sentences: Sequence[Sentence],
    table: range,
) -> Iterator[tuple[int, float]]:
    """Yield a table's rows that are chosen, each with the part of its distance to the
    best that it gains."""
    if choice.ends:
        yield from ((table[0], UNNAMED), (table[-1], UNNAMED))
    if not (choice.least or choice.most):
        return
    named: dict[int, list[int]] = {}
    language = document.page.language
    spoken = language or "en"
    asked = [
        set(request.translated_to(spoken).terms(spoken)),
        set(index_terms(choice.measures, language=language)),
    ]
    blocks = [document.blocks[sentences[index].block] for index in table]
    for name, rows in _extremes(blocks, choice):
        terms = index_terms(name, language=language)
        rank = next(
            (rank for rank, known in enumerate(asked) if not known.isdisjoint(terms)),
            len(asked),
        )
        named.setdefault(rank, []).extend(map(table.__getitem__, rows))
    if named:
        # The columns that the request names, or else those that its words mean, or else all.
        best = min(named)
        yield from (
            (index, EXTREME_LIFT if best < len(asked) else UNNAMED)
            for index in named[best]
        )


def _extremes(rows: Sequence[Block], choice: Choice) -> Iterator[tuple[str, list[int]]]:
    """Yield for each column its name and the rows with its least or its most number, as
    `choice` asks; no rows where `FEWEST_CHOSEN_FROM` or more have it."""
    for name, numbers in _columns(rows):
        least, most = min(numbers.values()), max(numbers.values())
        for extreme in [least] * choice.least + [most] * choice.most:
            places = [row for row, number in numbers.items() if number == extreme]
            if len(places) < FEWEST_CHOSEN_FROM:
                yield name, places


def _columns(rows: Sequence[Block]) -> Iterator[tuple[str, dict[int, float]]]:
    """Yield header and cells of the columns most of whose cells are numbers."""
    header = rows[0].header.split(" | ")
    columns: dict[int, dict[int, float]] = {}
    for index, row in enumerate(rows):
        check_cancelled()
        for column, cell in enumerate(row.cells):
            if (number := number_of(cell)) is not None:
                columns.setdefault(column, {})[index] = number
    for column, numbers in sorted(columns.items()):
        if len(numbers) >= max(FEWEST_CHOSEN_FROM, len(rows) / 2):
            yield header[column] if column < len(header) else "", numbers
