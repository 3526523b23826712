"""BM25 over a handful to some ten thousand texts, built per call: nothing is indexed beforehand.

Terms are numbered as they come and kept as one flat array, so that building costs little more than cutting the texts
into terms; a query scans the array once a term. Not for: persistent indexes (`pipeline/search/word_index.py` for
files), or cutting text into terms (`pipeline/text/words.py`).
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.text.words import index_terms

K1: Final = 1.2
B: Final = 0.3
"""Length normalisation; 0.3 beat 0.75 for running text on the development pages (notes/htmlrag)."""


class _Numbers(dict[str, int]):
    """Term to number, in the order of first use."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class BM25:
    """Scores texts against queries by the Okapi formula, with the idf that never goes below zero."""

    def __init__(self, texts: Sequence[str], *, language: str = "en", k1: float = K1, b: float = B) -> None:
        """Count the terms of `texts`; `language` picks the stemmer for texts and queries alike."""
        self._language = language
        self._k1 = k1
        self._numbers = _Numbers()
        terms: list[int] = []
        lengths = np.zeros(len(texts), dtype=np.int64)
        known: dict[str, list[int]] = {}  # all pieces of a section have the same headings above them
        for i, text in enumerate(texts):
            numbers = known.get(text)
            if numbers is None:
                numbers = known[text] = list(map(self._numbers.__getitem__, index_terms(text, language=language)))
            terms.extend(numbers)
            lengths[i] = len(numbers)
        self._terms = np.asarray(terms, dtype=np.int32)
        self._text_of = np.repeat(np.arange(len(texts)), lengths)
        mean = lengths.mean() if terms else 1.0
        self._norm: NDArray[np.float64] = k1 * (1 - b + b * lengths / mean)

    def idf(self, term: str) -> float:
        """Return ln(1 + (N - n + 0.5) / (n + 0.5)) of an index term."""
        return self._idf(int(np.count_nonzero(self._counts(term))))

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return one score a text [n], 0 where no term of `query` occurs."""
        scores = np.zeros(len(self._norm), dtype=np.float64)
        terms = index_terms(query, language=self._language) or index_terms(
            query, language=self._language, keep_stop_words=True
        )
        for term in dict.fromkeys(terms):
            counts = self._counts(term)
            found = int(np.count_nonzero(counts))
            if found:
                scores += self._idf(found) * counts * (self._k1 + 1) / (counts + self._norm)
        return scores.astype(np.float32)

    def _counts(self, term: str) -> NDArray[np.int64]:
        """How often `term` occurs in each text [n]."""
        number = self._numbers.get(term, -1)
        return np.bincount(self._text_of[self._terms == number], minlength=len(self._norm))

    def _idf(self, found: int) -> float:
        return math.log1p((len(self._norm) - found + 0.5) / (found + 0.5))
