"""EXTRACTOR over sources that a caller names: the sentences that answer, as an answer within a budget,
or none (zero-index §4.1).

Not for: searching for sources (`pipeline/research.py`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pipeline.document.page import Document
from pipeline.evidence.assemble import NEAREST_LINE, UNASKED, Assembled, assemble
from pipeline.evidence.show import Sheet, doubt, notice_within
from pipeline.question.question import Question
from pipeline.reading.extract import extract, left_unread, unless_cut
from pipeline.reading.reading import Reading
from pipeline.services import Services
from pipeline.sources.gather import Loaded, load_sources, room_for
from pipeline.text.frame import new_mark, shown_location
from pipeline.work import LONG_SHARE, Report, in_thread

LISTED_SOURCES: Final = 10
"""Sources that an answer without evidence names."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The answer so far, and what it was made of."""

    loaded: Loaded
    reading: Reading
    sheet: Sheet
    assembled: Assembled


async def extract_sources(
    question: Question,
    sources: Sequence[str],
    services: Services,
    *,
    max_tokens: int,
    offer: Callable[[int], int],
    report: Report,
) -> Extracted:
    """Return the sentences of `sources` that answer `question`, in at most `max_tokens`.

    With 0 `max_tokens` it is `UNASKED`, and weak passages are left out. `offer` gives the tokens of the line that
    offers more than a budget. Raises `SourceError`: no source could be read."""
    # 1. Read the sources
    loaded = await load_sources(
        sources,
        services,
        seconds=services.seconds * LONG_SHARE,
        report=report,
        question=question,
    )
    # 2. The core's reading of all of them
    reading = await extract(
        question, loaded.documents, reader=services.reader, extractor=services.extractor
    )
    unread = left_unread(reading, loaded.documents)
    loaded = replace(loaded, failures=(*loaded.failures, *unread))
    reading = unless_cut(reading, loaded.failures)
    # 3. Fill the budget with cited passages
    most = max_tokens or UNASKED
    sheet = Sheet(most, reserve=offer(most) + room_for(loaded.failures, most))
    assembled = await in_thread(
        _fill, sheet, most, loaded.documents, reading, open_end=not max_tokens
    )
    return Extracted(loaded, reading, sheet, assembled)


def _fill(
    sheet: Sheet,
    most: int,
    documents: Sequence[Document],
    reading: Reading,
    *,
    open_end: bool,
) -> Assembled:
    """Write the reading to a sheet of `most` tokens; return the passages, none for the
    verdict `none`.

    With `open_end` (no budget was named) passages that score far below the best are left
    out though they fit."""
    mark = new_mark()
    is_none = reading.verdict == "none"
    if not is_none:
        sheet.add(notice_within(mark, most))
    sheet.add(doubt(reading))
    if is_none:
        sheet.add_cut(
            f"None: no sentence of the sources answers the question. {reading.reason}"
        )
        read = [shown_location(document.page.final_url) for document in documents]
        sheet.add_cut(f"Read: {', '.join(read[:LISTED_SOURCES])}")
        sheet.add(NEAREST_LINE)

    assembled = assemble(
        documents, reading, max_tokens=sheet.room, mark=mark, open_end=open_end
    )
    sheet.add(assembled.shown.text)

    sheet.release()
    return assembled
