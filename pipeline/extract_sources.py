"""EXTRACTOR over sources that a caller names: the sentences that answer, as an answer within a budget,
or none (zero-index §4.1).

Not for: searching for sources (`pipeline/research.py`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pipeline.answer import settled, write
from pipeline.evidence.assemble import UNASKED, Assembled
from pipeline.evidence.show import Sheet, notice_within
from pipeline.question.question import Question
from pipeline.reading.extract import extract
from pipeline.reading.reading import Reading
from pipeline.services import Services
from pipeline.sources.gather import Loaded, load_sources, room_for
from pipeline.text.frame import new_delimiter
from pipeline.work import LONG_SHARE, Report, in_thread


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
    reading, unread = settled(reading, loaded.documents, loaded.failures)
    loaded = replace(loaded, failures=(*loaded.failures, *unread))
    # 3. The verdict and cited passages, within the budget
    most = max_tokens or UNASKED
    delimiter = new_delimiter()
    sheet = Sheet(most, reserve=offer(most) + room_for(loaded.failures, most))
    assembled = await in_thread(
        write,
        loaded.documents,
        reading,
        sheet,
        delimiter,
        head=notice_within(delimiter, most),
        open_end=not max_tokens,
    )
    sheet.release()
    return Extracted(loaded, reading, sheet, assembled)
