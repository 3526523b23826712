"""EXTRACTOR: the core's reading of some documents, and a model that writes beside it if one is set (zero-index §4.1).

`read_documents` is what every tool asks; `extract` adds the model. Not for: filling a budget (`pipeline/evidence`).
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import anyio
import numpy as np

from errors import ModelError
from models.protocols import Generator
from pipeline.documents import Document, Failure, Reading, Sentence
from pipeline.extract.ask import ASK_FROM, ROOM, Candidate, Chosen, Way, agree, ask, lifted
from pipeline.extract.tag import tag_sentences
from pipeline.rank.fuse import Floats
from pipeline.rank.relevance import Reader, Relevance
from pipeline.rank.table_rows import lift_rows
from pipeline.rank.units import PageUnits, page_units
from pipeline.rank.verdict import judge
from pipeline.text.frame import one_line
from pipeline.trace import traced
from pipeline.work import in_thread, time_left

TOLD: Final = 3
"""Sources that a reason names which were not read."""
UNITS_SHARE: Final = 0.3
"""Part of the time left that cutting documents into units may take; scoring them takes as long again."""
FURNITURE: Final = 0.8
"""Factor on the scores of navigation, footers and the like: the same words count more in the text itself."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A model that writes, and how it is asked."""

    generator: Generator
    way: Way
    seconds: float
    """After so long the answer goes out without it."""


@traced("read")
async def read_documents(
    question: str, documents: Sequence[Document], *, reader: Reader, seconds: float = math.inf
) -> Reading:
    """Return one score a unit of `documents`, all competing with each other, and whether any of them answers.

    Args:
        question: Self-contained, in any language.
        documents: Pages to read.
        reader: What judges units.
        seconds: For cutting documents into units; those that it does not reach are named in `Reading.unread`.

    Raises:
        ModelError: A model failed.
    """
    # 1. Tag: sentences, items, rows, code
    pages, tagged, unread = await in_thread(_units, documents, seconds)
    # 2. Judge every unit
    reading = await read_units(question, documents, pages, tagged, reader=reader)
    return replace(reading, unread=unread)


async def read_units(
    question: str,
    documents: Sequence[Document],
    pages: Sequence[PageUnits],
    tagged: tuple[tuple[Sentence, ...], ...],
    *,
    reader: Reader,
) -> Reading:
    """Return the reading of some units of each document, `tagged`, which `pages` holds as the core reads them.

    Raises:
        ModelError: A model failed.
    """
    # 1. Relevance of every unit
    relevance = await reader.read(question, pages)
    # 2. Verdict, and rows that "the last" or "the lowest" points at
    return await in_thread(_judged, question, documents, pages, tagged, relevance)


def _units(
    documents: Sequence[Document], seconds: float
) -> tuple[list[PageUnits], tuple[tuple[Sentence, ...], ...], tuple[str, ...]]:
    """Return each document's units, and the addresses of those that no time was left for, which are without any."""
    ends = time.monotonic() + seconds
    pages: list[PageUnits] = []
    tagged: list[tuple[Sentence, ...]] = []
    unread: list[str] = []
    for document in documents:
        late = bool(pages) and time.monotonic() > ends
        units = () if late else tuple(tag_sentences(document))
        tagged.append(units)
        pages.append(page_units(document, units))
        unread += [document.page.final_url] * late
    return pages, tuple(tagged), tuple(unread)


def unless_cut(reading: Reading, failures: Sequence[Failure]) -> Reading:
    """Return a reading that is never `none` where something that could hold the answer was not read.

    Args:
        reading: What was found in what was read.
        failures: What was not read; a source that does not exist holds no answer.
    """
    missing = [failure for failure in failures if not failure.gone]
    if not missing or reading.verdict != "none":
        return reading
    told = "; ".join(one_line(f"{one.source}: {one.reason}").rstrip(".") for one in missing[:TOLD])
    more = f"; and {len(missing) - TOLD} more" if len(missing) > TOLD else ""
    said = f"Not everything was read ({told}{more}). {reading.reason}"
    return replace(reading, verdict="unsure", reason=said, cut=True)


def left_unread(reading: Reading) -> list[Failure]:
    """Return the documents that there was no time to read."""
    return [Failure(url, "There was no time left to read it.", late=True) for url in reading.unread]


def _judged(
    question: str,
    documents: Sequence[Document],
    pages: Sequence[PageUnits],
    tagged: tuple[tuple[Sentence, ...], ...],
    relevance: Relevance,
) -> Reading:
    verdict = judge(question, relevance)
    values = lift_rows(question, documents, tagged, _content_first(documents, tagged, relevance.values))
    return Reading(verdict.word, verdict.reason, verdict.confidence, tagged, values, relevance.made_by)


def _content_first(documents: Sequence[Document], tagged: Sequence[Sequence[Sentence]], values: Floats) -> Floats:
    """Return the scores [units] with those of navigation, footers and the like lowered, the best of all at 1 again."""
    main = [d.blocks[unit.block].main for d, units in zip(documents, tagged, strict=True) for unit in units]
    lowered = np.where(np.array(main, dtype=bool), values, np.float32(FURNITURE) * values).astype(np.float32)
    best = lowered.max(initial=0.0)
    return lowered / best if best > 0 else lowered


@traced("extract")
async def extract(
    question: str, documents: Sequence[Document], *, reader: Reader, asking: Asking | None = None
) -> Reading:
    """Return the reading of `documents`, heard by a model that writes too where `asking` names one.

    A model that fails or is too slow is left out, and the reason says so.

    Raises:
        ModelError: A model of `reader` failed.
    """
    reading = await read_documents(question, documents, reader=reader, seconds=UNITS_SHARE * time_left())
    # A model takes seconds: not where the pages are about something else.
    if asking is None or reading.confidence < ASK_FROM:
        return reading
    chosen: Chosen | None = None
    failure = f"no answer of the model within {asking.seconds:.0f} s"
    with anyio.move_on_after(asking.seconds):
        try:
            chosen = await ask(question, _candidates(documents, reading), asking.generator, way=asking.way)
        except ModelError as error:
            failure = f"the model failed: {one_line(str(error))}"
    said = reading.reason.removesuffix(".")
    if chosen is None:
        return replace(reading, reason=f"{said}; {failure}.")
    word, clause = agree(reading.verdict, chosen, reading.values)
    return replace(reading, verdict=word, reason=f"{said}; {clause}.", values=lifted(reading.values, chosen))


def _candidates(documents: Sequence[Document], reading: Reading) -> list[Candidate]:
    """Return the best units that are no headings, best first."""
    places = reading.places
    found: list[Candidate] = []
    for row in np.argsort(-reading.values, kind="stable").tolist():
        place, unit = places[row]
        if len(found) < ROOM.candidates and documents[place].blocks[unit.block].kind != "heading":
            found.append(Candidate(row, documents[place].page.title, unit))
    return found
