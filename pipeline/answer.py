"""From documents to a cited answer: the steps of every tool that quotes (zero-index §2).

1. load: the tool's own (`pipeline/sources`, `pipeline/search`, `pipeline/raptor`);
2. to 7.: `answer`.

How an answer ends is `tools/common/ending.py`. Not for: an answer in a generator's words
(`pipeline/generated.py`)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from pipeline.evidence.assemble import UNASKED, Assembled, assemble
from pipeline.evidence.near_equal import near_equal_files, near_equal_line
from pipeline.evidence.show import Sheet, notice_within, verdict_line
from pipeline.question.question import Question
from pipeline.reading.extract import left_unread, read_documents, unless_cut
from pipeline.reading.reading import Reading
from pipeline.services import Services
from pipeline.sources.gather import room_for
from pipeline.text.frame import new_delimiter
from pipeline.work import in_thread
from readers.page import Document, Failure

Read = Callable[[], Awaitable[tuple[Sequence[Document], Reading]]]
"""Returns documents in the order of their reading."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict and passages on a sheet that has room for how to go on, and what they
    were made of."""

    documents: Sequence[Document]
    failures: Sequence[Failure]
    """What was not read."""
    reading: Reading
    sheet: Sheet
    assembled: Assembled
    delimiter: str
    """The answer's own delimiter for untrusted text."""


async def answer(
    read: Read,
    failures: Sequence[Failure],
    *,
    max_tokens: int,
    reserve: int,
    head: Callable[[Reading, str], str] | None = None,
) -> Answer:
    """Return the verdict and passages of what `read` returns, in at most `max_tokens`.

    `failures` are what was not loaded. With 0 `max_tokens` the budget is `UNASKED`, and
    passages that score far below the best are left out though they fit. `reserve` tokens
    are kept for how to go on. `head` is written below the verdict, by default what
    delimiters mean."""
    # 2. Read: units of the documents, a score each, and whether any answers
    documents, reading = await read()
    # 3. Settle: what was not read is named, and takes back a `none`
    failures = (*failures, *left_unread(reading, documents))
    reading = unless_cut(reading, failures)
    if not documents:
        reading = replace(reading, note="No pages were found.")
    # 4. Open a sheet with room for what follows the passages
    budget, delimiter = max_tokens or UNASKED, new_delimiter()
    sheet = Sheet(budget, reserve=reserve + room_for(failures, budget))
    # 5. Write the verdict
    sheet.add_cut(verdict_line(reading))
    sheet.add(head(reading, delimiter) if head else notice_within(delimiter, budget))
    if reading.verdict == "none" or not documents:
        sheet.add_cut(reading.note)
        sheet.add("Nearest lines:" if len(reading.values) else "")
    # 6. Grow passages around the best units; which files are nearly one is said above
    # them, in labels that are known then
    near_equal = await in_thread(near_equal_files, documents)
    assembled = await in_thread(
        assemble,
        documents,
        reading,
        max_tokens=sheet.room_beside(near_equal_line(near_equal)),
        delimiter=delimiter,
        open_end=not max_tokens,
    )
    # 7. Write them
    sheet.add(near_equal_line(near_equal, assembled))
    sheet.add(assembled.shown.text)
    sheet.release()
    return Answer(documents, failures, reading, sheet, assembled, delimiter)


async def read_within(
    question: Question, services: Services, documents: Sequence[Document]
) -> tuple[Sequence[Document], Reading]:
    """Return documents and their reading."""
    return documents, await read_documents(
        question, documents, reader=services.reader, extractor=services.extractor
    )
