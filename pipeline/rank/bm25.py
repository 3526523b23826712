"""BM25 over a handful to some ten thousand texts, built per call: nothing is indexed beforehand.

Not for: persistent indexes, or cutting text into terms (`pipeline/rank/words.py`).
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.rank.words import index_terms

K1: Final = 1.2
B: Final = 0.3
"""Length normalisation; 0.3 beat 0.75 for running text on the development pages (notes/htmlrag)."""


class BM25:
    """Scores texts against queries by the Okapi formula, with the idf that never goes below zero."""

    def __init__(self, texts: Sequence[str], *, language: str = "en", k1: float = K1, b: float = B) -> None:
        """Count the terms of `texts`; `language` picks the stemmer for texts and queries alike."""
        self._language = language
        self._k1 = k1
        self._postings: dict[str, tuple[list[int], list[int]]] = {}
        lengths = np.zeros(len(texts), dtype=np.float64)
        for i, text in enumerate(texts):
            counts = Counter(index_terms(text, language=language))
            lengths[i] = counts.total()
            for term, n in counts.items():
                rows, values = self._postings.setdefault(term, ([], []))
                rows.append(i)
                values.append(n)
        mean = lengths.mean() if len(texts) and lengths.any() else 1.0
        self._norm = k1 * (1 - b + b * lengths / mean)

    def idf(self, term: str) -> float:
        """Return ln(1 + (N - n + 0.5) / (n + 0.5)) of an index term."""
        n = len(self._postings[term][0]) if term in self._postings else 0
        return math.log1p((len(self._norm) - n + 0.5) / (n + 0.5))

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return one score a text [n], 0 where no term of `query` occurs."""
        scores = np.zeros(len(self._norm), dtype=np.float64)
        terms = index_terms(query, language=self._language) or index_terms(
            query, language=self._language, keep_stop_words=True
        )
        for term in dict.fromkeys(terms):
            if term in self._postings:
                rows, values = self._postings[term]
                counts = np.asarray(values, dtype=np.float64)
                scores[rows] += self.idf(term) * counts * (self._k1 + 1) / (counts + self._norm[rows])
        return scores.astype(np.float32)
