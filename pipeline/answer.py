"""From documents to a cited answer: the steps under every tool that quotes (zero-index §2).

A tool finds its documents and says what follows the passages; what is between is here, once:

1. read: documents are cut into units, each is scored, and judged whether any answers (`reading/extract.py`);
2. grow: passages around the best units, within a budget (`evidence/assemble.py`);
3. write: the verdict, then the passages, on the sheet of the answer (`write`).

Not for: finding documents (`pipeline/sources`, `pipeline/search`), or an answer in a generator's words
(`pipeline/generated.py`)."""

from collections.abc import Sequence
from typing import Final

from pipeline.document.page import Document
from pipeline.evidence.assemble import Assembled, assemble
from pipeline.evidence.show import Sheet, doubt
from pipeline.reading.reading import Reading

NOT_ANSWERED: Final = "None: no sentence that was read seems to answer the question."
"""First line of an answer without one."""
NEAREST_LINE: Final = "Nearest lines, which may not answer it:"
"""Above the passages where nothing answers."""


def write(
    documents: Sequence[Document],
    reading: Reading,
    sheet: Sheet,
    mark: str,
    *,
    open_end: bool = False,
    beside: Sequence[str] = (),
) -> Assembled:
    """Write the verdict of a reading and its passages to a sheet.

    `mark` is the answer's own for untrusted text. With `open_end` (no budget was named) passages that score far
    below the best are left out though they fit. `beside` are lines that the caller adds below the passages: room is
    kept for them."""
    sheet.add(doubt(reading))
    if reading.verdict == "none" or not documents:
        sheet.add_cut(f"{NOT_ANSWERED} {reading.reason}")
        sheet.add(f"Sources read: {len(documents)}.")
        sheet.add(NEAREST_LINE if len(reading.values) else "")
    assembled = assemble(
        documents,
        reading,
        max_tokens=sheet.room_beside(*beside),
        mark=mark,
        open_end=open_end,
    )
    sheet.add(assembled.shown.text)
    return assembled
