"""Counts of terms in the units of some pages, the windows that units make, and BM25 of windows.

Built per call over all pages at hand; each page is stemmed in its own language, and a question's word is looked up in
every page's form of it. Not for: persistent indexes (`pipeline/search/folder`), or lists of plain texts (`bm25.py`).
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.rank.bm25 import okapi
from pipeline.rank.fuse import Floats
from pipeline.rank.units import PageUnits
from pipeline.text.language import guess_language
from pipeline.text.words import fold, index_terms
from pipeline.work import check_cancelled

Windows = NDArray[np.int64]
"""Stretches of units, first and last-plus-one [n, 2]; none crosses a page."""
WINDOW_B: Final = 0.5
"""Length normalisation of BM25 over windows; .3 and .75 give the same on asked pages."""
GROUP: Final = 4
"""Letters of the groups that a question shares with texts in another language (names, loan words, cognates); 3 and 5
find as much."""
_WORD: Final = re.compile(rf"[^\W\d_]{{{GROUP},}}|\d{{2,}}")
_LATIN: Final = "a b v g d e e zh z i i k l m n o p r s t u f h ts ch sh sch y e yu ya"
_CYRILLIC: Final = str.maketrans(
    dict(zip("абвгдеёжзийклмнопрстуфхцчшщыэюя", _LATIN.split(), strict=True)) | {"ъ": "", "ь": ""}
)


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

    def window_scores(self, own: Floats, above: Floats, windows: Windows) -> Floats:
        """Return BM25 of windows of units [n]; what stands above counts once a window."""
        counts = window_sums(own, windows) + (window_sums(above, windows) > 0)
        running = np.pad(np.cumsum(self._lengths), (1, 0))
        lengths = running[windows[:, 1]] - running[windows[:, 0]]
        return okapi(counts, lengths, b=WINDOW_B)


def window_sums(counts: Floats, windows: Windows) -> Floats:
    """Return the sums of `counts` [terms, units] over each window: [terms, n]."""
    running = np.pad(np.cumsum(counts, axis=1, dtype=np.float32), ((0, 0), (1, 0)))
    return running[:, windows[:, 1]] - running[:, windows[:, 0]]


def cut_windows(tokens: Floats, starts: Sequence[int] | NDArray[np.int64], most: int) -> Windows:
    """Return stretches of whole units of at most `most` tokens, each beginning half a window after the last.

    Args:
        tokens: Of every unit [units]; a unit of more is a window of its own.
        starts: Where a page begins and the last one ends; no window crosses them.
        most: Tokens of a window.
    """
    ends = np.cumsum(tokens + 1)
    found: list[tuple[int, int]] = []
    for low, high in pairwise(starts):
        start = int(low)
        while start < high:
            before = ends[start] - tokens[start] - 1
            stop = max(start + 1, min(int(high), int(np.searchsorted(ends, before + most, side="right"))))
            found.append((start, stop))
            if stop == high:
                break
            start = max(start + 1, int(np.searchsorted(ends, before + most // 2, side="right")))
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def letter_groups(text: str) -> list[str]:
    """Return the distinct groups of `GROUP` letters in the words of `text`, and its numbers."""
    groups: dict[str, None] = {}
    for word in _WORD.findall(_latin(text)):
        whole = word.isdigit() or len(word) <= GROUP
        groups.update(dict.fromkeys([word] if whole else [word[i : i + GROUP] for i in range(len(word) - GROUP + 1)]))
    return list(groups)


def letter_counts(question: str, texts: Sequence[str]) -> Floats:
    """Return how often each of the question's groups stands in each text: [groups, texts]."""
    groups = letter_groups(question)
    counts = np.zeros((len(groups), len(texts)), dtype=np.float32)
    for place, text in enumerate(texts):
        check_cancelled()
        latin = _latin(text)
        counts[:, place] = [latin.count(group) for group in groups]
    return counts


def _latin(text: str) -> str:
    return fold(text.lower()).translate(_CYRILLIC)
