"""Counts of terms in the units of some pages, and BM25 of units and of any stretches of them (windows).

Built per call over all pages at hand; each page is stemmed in its own language, and a question's word is looked up in
every page's form of it. Not for: persistent indexes (`pipeline/search/folder`), or lists of plain texts (`bm25.py`).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.rank.bm25 import idf, okapi
from pipeline.rank.fuse import Floats
from pipeline.rank.units import PageUnits
from pipeline.text.language import guess_language
from pipeline.text.words import index_terms
from pipeline.work import check_cancelled

Windows = NDArray[np.int64]
"""Stretches of units, first and last-plus-one [n, 2]; none crosses a page."""
WINDOW_B: Final = 0.5
"""Length normalisation of BM25 over windows; .3 and .75 give the same on asked pages."""
_CHECK_EVERY: Final = 512


class TermIndex:
    """How often every term stands in every unit, and whether it stands above it."""

    def __init__(self, pages: Sequence[PageUnits]) -> None:
        """Count the terms of all units of all pages; units are numbered through, page after page.

        Raises:
            Stopped: The call was cancelled (in a worker thread only).
        """
        self.languages = [page.language or guess_language(" ".join(page.texts[:60])) or "en" for page in pages]
        self.page_starts = np.concatenate(([0], np.cumsum([len(page.texts) for page in pages]))).astype(np.int64)
        self.size = int(self.page_starts[-1])
        self._own: dict[str, dict[str, list[tuple[int, int]]]] = {}
        self._above: dict[str, dict[str, list[int]]] = {}
        self._lengths = np.zeros(self.size, dtype=np.float64)
        self._above_lengths = np.zeros(self.size, dtype=np.float64)
        row = 0
        for page, language in zip(pages, self.languages, strict=True):
            own = self._own.setdefault(language, {})
            above = self._above.setdefault(language, {})
            known: dict[str, list[str]] = {}
            for text, headings in zip(page.texts, page.above, strict=True):
                if row % _CHECK_EVERY == 0:
                    check_cancelled()
                terms = index_terms(text, language=language)
                self._lengths[row] = len(terms)
                for term, count in Counter(terms).items():
                    own.setdefault(term, []).append((row, count))
                if headings not in known:
                    known[headings] = list(dict.fromkeys(index_terms(headings, language=language)))
                self._above_lengths[row] = len(known[headings])
                for term in known[headings]:
                    above.setdefault(term, []).append(row)
                row += 1

    def terms(self, text: str, *, language: str = "") -> list[dict[str, str]]:
        """Return the distinct terms of a text, each as {page language: index term}, without stop words.

        Args:
            text: A question, or a unit whose words expand one.
            language: ISO 639-1 code of `text`; guessed where empty.
        """
        own = language or guess_language(text) or "en"
        languages = list(dict.fromkeys(self.languages)) or [own]
        forms = {code: index_terms(text, language=code, keep_stop_words=True) for code in {own, *languages}}
        content = set(index_terms(text, language=own)) or set(forms[own])
        found: dict[str, dict[str, str]] = {}
        for place, term in enumerate(forms[own]):
            if term in content:
                found.setdefault(term, {code: forms[code][place] for code in languages})
        return list(found.values())

    def counts(self, terms: Sequence[dict[str, str]]) -> tuple[Floats, Floats]:
        """Return how often each term stands in each unit, and whether it stands above it: two [terms, units]."""
        own = np.zeros((len(terms), self.size), dtype=np.float32)
        above = np.zeros((len(terms), self.size), dtype=np.float32)
        for place, forms in enumerate(terms):
            for language, term in forms.items():
                for row, count in self._own.get(language, {}).get(term, ()):
                    own[place, row] = count
                rows = self._above.get(language, {}).get(term)
                if rows:
                    above[place, rows] = 1.0
        return own, above

    def unit_scores(self, counts: Floats, weights: Floats | None = None) -> Floats:
        """Return BM25 of each unit with what stands above it [units]; `counts` [terms, units] is own plus above."""
        return okapi(counts, self._lengths + self._above_lengths, idf(counts) if weights is None else weights)

    def window_scores(self, own: Floats, above: Floats, windows: Windows) -> Floats:
        """Return BM25 of windows of units [n]; what stands above counts once a window."""
        counts = window_sums(own, windows) + (window_sums(above, windows) > 0)
        running = np.pad(np.cumsum(self._lengths), (1, 0))
        lengths = running[windows[:, 1]] - running[windows[:, 0]]
        return okapi(counts, lengths, idf(counts), b=WINDOW_B)


def window_sums(counts: Floats, windows: Windows) -> Floats:
    """Return the sums of `counts` [terms, units] over each window: [terms, n]."""
    running = np.pad(np.cumsum(counts, axis=1, dtype=np.float32), ((0, 0), (1, 0)))
    return running[:, windows[:, 1]] - running[:, windows[:, 0]]
