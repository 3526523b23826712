"""The core's second look: the best windows of a reading, read together with the question by a cross-encoder.

Words and sentence vectors cannot tell "mentions it" from "answers it"; a cross-encoder can, at some 20 ms a window, so
it reads only where the blend's best units stand. What it finds is added to the blend's scores rather than put in their
place: alone it orders worse. Not for: the model (`models/reader.py`), or saying whether anything answers
(`verdict.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import anyio
import numpy as np

from models.protocols import CrossEncoder, Window, WindowReading
from pipeline.rank.fuse import Floats, unit_range
from pipeline.rank.relevance import Reader, Relevance
from pipeline.rank.units import PageUnits
from pipeline.work import in_thread, time_left

WINDOWS: Final = 12
"""Windows of one page that are read, some .3 processor seconds: 8, 12, 16 show .746, .761, .780 of 209 asked questions
at 256 tokens, and level shares of 127 others."""
WINDOWS_OF_PAGES: Final = 40
"""Windows of several pages: the sample library's dev questions at 1,000 tokens .93 (12: .92)."""
READ_SHARE: Final = 0.4
"""Part of the time left that the model may take; windows that it has not read by then keep the blend's score."""
READ_AT_ONCE: Final = 4
"""Windows between two looks at the time; the model reads one a batch."""


@dataclass(frozen=True, slots=True)
class Reread:
    """A `Reader` whose best windows a cross-encoder reads again."""

    first: Reader
    encoder: CrossEncoder

    async def read(self, question: str, pages: Sequence[PageUnits]) -> Relevance:
        """Return the first reader's scores with what the cross-encoder found in the best windows added.

        Raises:
            ModelError: A model failed.
        """
        relevance = await self.first.read(question, pages)
        if not relevance.index.size or not self.encoder.reads(question):
            return relevance
        chosen, windows = await in_thread(_best_windows, pages, relevance)
        readings: list[WindowReading] = []
        with anyio.move_on_after(READ_SHARE * time_left()):
            for first in range(0, len(windows), READ_AT_ONCE):
                readings += await self.encoder.read(question, windows[first : first + READ_AT_ONCE])
        if not readings:
            return relevance
        found: Floats = np.zeros_like(relevance.values)
        for (start, stop), reading in zip(chosen, readings, strict=False):
            part = found[start:stop]
            np.maximum(part, reading.keep * np.float32(reading.answers**0.5), out=part)
        # The root of a probability against the blend's scores, both 0..1
        values = unit_range(relevance.values + np.sqrt(found))
        return replace(relevance, values=values, made_by="read", read=found)


def _best_windows(pages: Sequence[PageUnits], relevance: Relevance) -> tuple[list[tuple[int, int]], list[Window]]:
    """Return the windows that hold the best units, each by the window in which it stands most central."""
    owners = [(page, place) for page in pages for place in range(len(page.texts))]
    windows = relevance.windows
    most = WINDOWS if len(pages) == 1 else WINDOWS_OF_PAGES
    middles = windows.sum(axis=1) / 2
    covered = np.zeros(relevance.index.size, dtype=bool)
    chosen: list[tuple[int, int]] = []
    for row in np.argsort(-relevance.values, kind="stable").tolist():
        if covered[row]:
            continue
        holding = np.flatnonzero((windows[:, 0] <= row) & (row < windows[:, 1]))
        start, stop = windows[holding[np.abs(middles[holding] - row).argmin()]].tolist()
        covered[start:stop] = True
        chosen.append((start, stop))
        if len(chosen) == most:
            break
    texts = []
    for start, stop in chosen:
        page, place = owners[start]
        texts.append(Window(page.above[place], tuple(page.texts[place : place + stop - start])))
    return chosen, texts
