"""From documents to a cited answer: the steps under every tool that quotes (zero-index §2).

A tool finds its documents and says what follows the passages; what is between is here, once:

1. read: documents are cut into units, each is scored, and judged whether any answers (`reading/extract.py`);
2. settle: what was not read is named, and takes back a "none" (`settled`);
3. grow: passages around the best units, within a budget (`evidence/assemble.py`);
4. write: the verdict, then the passages, on the sheet of the answer (`write`).

Not for: finding documents (`pipeline/sources`, `pipeline/search`), or an answer in a generator's words
(`pipeline/generated.py`)."""

from collections.abc import Callable, Sequence

from pipeline.evidence.assemble import Assembled, assemble
from pipeline.evidence.show import Sheet, verdict_line
from pipeline.reading.extract import left_unread, unless_cut
from pipeline.reading.reading import Reading
from pipeline.text.frame import one_line
from readers.page import Document, Failure


def settled(
    reading: Reading, documents: Sequence[Document], failures: Sequence[Failure]
) -> tuple[Reading, list[Failure]]:
    """Return a reading that is `none` only if everything was read, and what it did not
    reach of `documents`. `failures` are what was not read before it."""
    unread = left_unread(reading, documents)
    return unless_cut(reading, (*failures, *unread)), unread


def write(
    documents: Sequence[Document],
    reading: Reading,
    sheet: Sheet,
    delimiter: str,
    *,
    head: str = "",
    open_end: bool = False,
) -> Assembled:
    """Write the verdict of a reading, `head` and its passages to a sheet.

    `delimiter` is the answer's own for untrusted text. With `open_end` (no budget was named) passages that score far
    below the best are left out though they fit."""
    sheet.add_cut(verdict_line(reading))
    sheet.add(head)
    if reading.verdict == "none" or not documents:
        sheet.add_cut(reading.note)
        nearest = f"Nearest lines of the sources read ({len(documents)}):"
        sheet.add(nearest if len(reading.values) else "")
    # Its labels are known when the passages are; until then each has three letters
    draft = _differing(documents, reading, lambda *_: "10a")
    assembled = assemble(
        documents,
        reading,
        max_tokens=sheet.room_beside(draft),
        delimiter=delimiter,
        open_end=open_end,
    )
    sheet.add(_differing(documents, reading, assembled.label_of))
    sheet.add(assembled.shown.text)
    return assembled


def _differing(
    documents: Sequence[Document],
    reading: Reading,
    label_of: Callable[[str, int], str],
) -> str:
    """Return the line of the values that sources give differently, each with its
    passage and the date of its page; empty where fewer than two are quoted."""
    cited: list[str] = []
    for value in reading.differing:
        index, unit = reading.places[value.row]
        page = documents[index].page
        if label := label_of(page.final_url, unit.number):
            date = f", {page.published}" if page.published else ""
            cited.append(f"{one_line(value.text)} [{label}{date}]")
    return f"Sources differ: {', '.join(cited)}." if len(cited) > 1 else ""
