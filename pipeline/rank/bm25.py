"""BM25 over a handful to some ten thousand texts, built per call, and putting several score lists together.

Terms are numbered as they come and kept as one flat array, so that building costs little more than cutting the texts
into terms; a query scans the array once a term. `okapi` is the formula for whoever has counts already,
`word_vectors` stand in for an embedder that cannot read a text. `blend` keeps distances and is the default inside a
page (75.0 against 70.7 recall at 256 tokens); `reciprocal_rank_fusion` keeps order only and is for lists whose scales
cannot be compared, such as an engine's order. Not for: persistent indexes
(`pipeline/search/word_index.py`), or cutting text into terms (`pipeline/text/words.py`).
"""

import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.protocols import unit_rows
from pipeline.text.words import index_terms

Floats = NDArray[np.float32]
RRF_K: Final = 60
"""The constant of the original RRF paper; results hardly move between 20 and 100."""
K1: Final = 1.2
B: Final = 0.3
"""Length normalisation; 0.3 beat 0.75 for running text on the development pages."""


def rarity(found: NDArray[np.integer], size: int) -> NDArray[np.float64]:
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)) of terms that stand in n of N texts; never below zero."""
    weights: NDArray[np.float64] = np.log1p((size - found + 0.5) / (found + 0.5))
    return weights


def okapi(counts: NDArray[np.floating] | NDArray[np.integer], lengths: NDArray[np.floating]) -> Floats:
    """Return the Okapi scores [n] of texts with `counts` [terms, n] and `lengths` [n]."""
    weights = rarity(np.count_nonzero(counts, axis=1), counts.shape[1]).astype(np.float32)
    mean = float(lengths.mean()) if len(lengths) and lengths.any() else 1.0
    norm = K1 * (1 - B + B * lengths / mean)
    scores: Floats = (weights[:, None] * counts * (K1 + 1) / (counts + norm)).sum(axis=0).astype(np.float32)
    return scores


class _Numbers(dict[str, int]):
    """Term to number, in the order of first use."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class BM25:
    """Scores texts against queries."""

    def __init__(self, texts: Sequence[str], *, language: str = "en") -> None:
        """Count the terms of `texts`; `language` picks the stemmer for texts and queries alike."""
        self._language = language
        self._numbers = _Numbers()
        terms: list[int] = []
        lengths = np.zeros(len(texts), dtype=np.int64)
        known: dict[str, list[int]] = {}  # texts that repeat, such as headings, are cut once
        for i, text in enumerate(texts):
            numbers = known.get(text)
            if numbers is None:
                numbers = known[text] = list(map(self._numbers.__getitem__, index_terms(text, language=language)))
            terms.extend(numbers)
            lengths[i] = len(numbers)
        self._terms = np.asarray(terms, dtype=np.int32)
        self._text_of = np.repeat(np.arange(len(texts)), lengths)
        self._lengths = lengths.astype(np.float64)

    def scores(self, query: str) -> Floats:
        """Return one score a text [n], 0 where no term of `query` occurs."""
        cut = index_terms(query, language=self._language)
        terms = dict.fromkeys(cut or index_terms(query, language=self._language, keep_stop_words=True))
        numbers = [self._numbers[term] for term in terms if term in self._numbers]
        if not numbers:
            return np.zeros(len(self._lengths), dtype=np.float32)
        size = len(self._lengths)
        counts = np.stack([np.bincount(self._text_of[self._terms == number], minlength=size) for number in numbers])
        return okapi(counts, self._lengths)


def rarities(texts: Sequence[Counter[str]]) -> dict[str, float]:
    """Return `rarity` of each term of `texts`, which come as counts of their terms."""
    found = Counter(chain.from_iterable(texts))
    weights = rarity(np.fromiter(found.values(), dtype=np.int64), len(texts))
    return dict(zip(found, weights.tolist(), strict=True))


def word_vectors(texts: Sequence[Counter[str]]) -> Floats:
    """Return unit vectors [n, 256] of TF-IDF weights, terms hashed with a sign (the hashing trick).

    At 256 two of a passage's some 50 terms rarely fall together. Texts that share rare words are near; one without
    terms gets an even vector.

    Args:
        texts: How often each term stands in each text, [n].
    """
    weights = rarities(texts)
    hashes = {term: zlib.crc32(term.encode("utf-8", "surrogatepass")) for term in weights}
    vectors = np.zeros((len(texts), 256), dtype=np.float32)
    for vector, counts in zip(vectors, texts, strict=True):
        for term, count in counts.items():
            weight = (1 + np.log(count)) * weights[term]
            vector[hashes[term] % 256] += weight if hashes[term] & 256 else -weight
        if not vector.any():
            vector[:] = 1.0
    return unit_rows(vectors)


def unit_range(scores: Floats) -> Floats:
    """Scale scores to 0..1; all zeros where they do not differ."""
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def standardise(scores: Floats) -> Floats:
    """Scale scores to mean 0 and standard deviation 1; all zeros where they do not differ."""
    if not len(scores):
        return scores
    deviation = float(scores.std())
    return (scores - scores.mean()) / deviation if deviation > 0 else np.zeros_like(scores)


def blend(lists: Sequence[Floats]) -> Floats:
    """Return the mean of the standardised lists, each [n] over the same items."""
    return np.asarray(np.mean([standardise(scores) for scores in lists], axis=0), dtype=np.float32)


def reciprocal_rank_fusion(orders: Sequence[Sequence[int]], count: int) -> Floats:
    """Return fused scores [count]; each order lists item indices best first and may leave items out."""
    fused = np.zeros(count, dtype=np.float32)
    for order in orders:
        for place, item in enumerate(order, start=1):
            fused[item] += 1.0 / (RRF_K + place)
    return fused
