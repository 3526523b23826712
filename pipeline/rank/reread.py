"""The core's second look: the best windows of a reading, read together with the question by a cross-encoder.

Words and sentence vectors cannot tell "mentions it" from "answers it"; a cross-encoder can, at some 20 ms a window, so
it reads only where the blend's best units stand. What it finds is added to the blend's scores rather than put in their
place: alone it orders worse. Not for: the model (`models/reader.py`), or saying whether anything answers
(`verdict.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import anyio
import numpy as np

from models.protocols import CrossEncoder, Window, WindowReading
from pipeline.rank.fuse import Floats, unit_range
from pipeline.rank.relevance import Reader, Relevance
from pipeline.rank.terms import Windows
from pipeline.rank.units import PageUnits
from pipeline.text.tokens import count_each
from pipeline.work import in_thread, time_left

WINDOWS: Final = 12
"""Windows of one page that are read, some .3 processor seconds: 8, 12, 16 show .746, .761, .780 of 209 asked questions
at 256 tokens, and level shares of 127 others."""
WINDOWS_OF_PAGES: Final = 20
"""Windows of several pages: the sample library's dev questions at 1,000 tokens .93 (12: .92)."""
WINDOW_TOKENS: Final = 160
"""Tokens of a window; with question and headings it stays within the model's 256."""
SENTENCE_TOKENS: Final = 80
"""Tokens of a sentence that the model sees at most."""
READ_SHARE: Final = 0.4
"""Part of the time left that the model may take; windows that it has not read by then keep the blend's score."""
READ_AT_ONCE: Final = 4
"""Windows between two looks at the time; the model reads one a batch."""
WEIGHT: Final = 1.0
"""Weight of the root of a probability against the blend's scores, both 0..1."""


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
        added = (np.float32(WEIGHT) * np.sqrt(found)).astype(np.float32)
        values = unit_range(relevance.values + added)
        return replace(relevance, values=values, made_by="read", read=found)


def _best_windows(pages: Sequence[PageUnits], relevance: Relevance) -> tuple[list[tuple[int, int]], list[Window]]:
    """Return the windows that hold the best units, each by the window in which it stands most central."""
    owners = [(page, place) for page in pages for place in range(len(page.texts))]
    windows = _windows(pages, relevance)
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


def _windows(pages: Sequence[PageUnits], relevance: Relevance) -> Windows:
    """Return stretches of whole units of about `WINDOW_TOKENS` [n, 2], each beginning half a window after the last."""
    counted = np.minimum(count_each([text for page in pages for text in page.texts]), SENTENCE_TOKENS)
    ends = np.cumsum(counted)
    found: list[tuple[int, int]] = []
    for low, high in pairwise(relevance.index.page_starts.tolist()):
        start = low
        while start < high:
            before = ends[start] - counted[start]
            stop = max(start + 1, min(high, int(np.searchsorted(ends, before + WINDOW_TOKENS, side="right"))))
            found.append((start, stop))
            if stop == high:
                break
            start = max(start + 1, int(np.searchsorted(ends, before + WINDOW_TOKENS // 2, side="right")))
    return np.array(found, dtype=np.int64).reshape(-1, 2)
