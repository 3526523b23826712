"""Term counts of sentences and of the passages around them: what the lexical scores and the None gate read.

Built per call over all pages at hand; each page is stemmed in its own language and a request's word is looked up in
every page's form of it. Not for: persistent indexes, or ranking whole pages (`pipeline/rank`).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.text.words import index_terms
from pipeline.work import check_cancelled

Floats = NDArray[np.float32]

PASSAGE: Final = 5
"""Sentences of a passage; scoring with the passage carries long documents (+.11 R@256, notes/zeroindex §0.8)."""
_K1: Final = 1.2
_B_SENTENCE: Final = 0.3
_B_PASSAGE: Final = 0.75
"""0.75 against 0.3: R@256 on the tuned half of the long documents .720 -> .753, held-out .766 both; Russian held-out
.882 -> .897; HotpotQA and German level."""
_LANGUAGES: Final = ("en", "de", "fr", "es", "ru")
_SAMPLE: Final = 3000
"""Code points from which a page's language is guessed."""
_CHECK_EVERY: Final = 512


@dataclass(frozen=True, slots=True)
class PageText:
    """One page as the scorers read it: parallel lists, one entry a sentence."""

    sentences: Sequence[str]
    headings: Sequence[str]
    """What stands above each sentence, outermost first, joined; empty strings where nothing does."""
    priors: Sequence[float] = ()
    """Factor on each sentence's score, below 1 for furniture and headings; empty means 1 throughout."""
    language: str = ""
    """ISO 639-1 code; guessed where empty."""
    tabular: bool = False
    """Whether some of the sentences are rows of tables."""


def guess_language(text: str) -> str:
    """Return the language whose stop words fill most of `text`, among en, de, fr, es and ru; English where none do."""
    sample = text[:_SAMPLE]
    left = {code: len(index_terms(sample, language=code)) for code in _LANGUAGES}
    return min(_LANGUAGES, key=lambda code: left[code])


class TermIndex:
    """Counts of every term in every sentence, in the sentence itself and in what stands above it."""

    def __init__(self, pages: Sequence[PageText]) -> None:
        """Count the terms of all sentences of all pages; sentences are numbered through, page after page.

        Raises:
            Stopped: The call was cancelled (in a worker thread only).
        """
        self.languages = [page.language or guess_language(" ".join(page.sentences[:60])) for page in pages]
        self.tabular = any(page.tabular for page in pages)
        sizes = [len(page.sentences) for page in pages]
        self.page_starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.size = int(self.page_starts[-1])
        self._own: dict[str, dict[str, list[tuple[int, int]]]] = {}
        self._above: dict[str, dict[str, list[int]]] = {}
        self.lengths = np.zeros(self.size, dtype=np.float64)
        self._above_lengths = np.zeros(self.size, dtype=np.float64)
        row = 0
        for page, language in zip(pages, self.languages, strict=True):
            own = self._own.setdefault(language, {})
            above = self._above.setdefault(language, {})
            known: dict[str, list[str]] = {}
            for sentence, heading in zip(page.sentences, page.headings, strict=True):
                if row % _CHECK_EVERY == 0:
                    check_cancelled()
                terms = index_terms(sentence, language=language)
                self.lengths[row] = len(terms)
                for term, n in Counter(terms).items():
                    own.setdefault(term, []).append((row, n))
                if heading not in known:
                    known[heading] = list(dict.fromkeys(index_terms(heading, language=language)))
                self._above_lengths[row] = len(known[heading])
                for term in known[heading]:
                    above.setdefault(term, []).append(row)
                row += 1

    def terms(self, text: str, *, language: str = "") -> list[dict[str, str]]:
        """Return the distinct terms of a text, each as {page language: index term}, without stop words.

        Args:
            text: A request, or a sentence that joins one.
            language: ISO 639-1 code of `text`; guessed where empty.
        """
        own = language or guess_language(text)
        languages = list(dict.fromkeys(self.languages)) or [own]
        forms = {code: index_terms(text, language=code, keep_stop_words=True) for code in {own, *languages}}
        content = set(index_terms(text, language=own)) or set(forms[own])
        found: dict[str, dict[str, str]] = {}
        for place, term in enumerate(forms[own]):
            if term in content:
                found.setdefault(term, {code: forms[code][place] for code in languages})
        return list(found.values())

    def counts(self, terms: Sequence[dict[str, str]]) -> tuple[Floats, Floats]:
        """Return how often each term stands in each sentence, and whether it stands above it: two [terms, size]."""
        own = np.zeros((len(terms), self.size), dtype=np.float32)
        above = np.zeros((len(terms), self.size), dtype=np.float32)
        for place, forms in enumerate(terms):
            for language, term in forms.items():
                for row, n in self._own.get(language, {}).get(term, ()):
                    own[place, row] = n
                rows = self._above.get(language, {}).get(term)
                if rows:
                    above[place, rows] = 1.0
        return own, above

    def idf(self, counts: Floats) -> Floats:
        """Return the inverse document frequency [terms] over the rows of `counts` [terms, size]."""
        n = (counts > 0).sum(axis=1)
        total = counts.shape[1]
        return np.array([math.log1p((total - k + 0.5) / (k + 0.5)) for k in n], dtype=np.float32)

    def sentence_scores(self, counts: Floats, weights: Floats | None = None) -> Floats:
        """Return BM25 of heading and sentence together [size]; `counts` is own plus above."""
        lengths = self.lengths + self._above_lengths
        return _bm25(counts, lengths, self.idf(counts) if weights is None else weights, b=_B_SENTENCE)

    def passage_scores(self, own: Floats, above: Floats) -> Floats:
        """Return for each sentence [size] BM25 of the best passage of `PASSAGE` sentences of its page that holds it."""
        scores = np.zeros(self.size, dtype=np.float32)
        start, stop = self._passages()
        if not len(start):
            return scores
        windows = _window_sums(own, start, stop) + (_window_sums(above, start, stop) > 0)
        lengths = np.pad(np.cumsum(self.lengths), (1, 0))
        values = _bm25(windows, lengths[stop] - lengths[start], self.idf(windows), b=_B_PASSAGE)
        for shift in range(PASSAGE):
            rows = start + shift
            inside = rows < stop
            np.maximum.at(scores, rows[inside], values[inside])
        return scores

    def in_passages(self, own: Floats, above: Floats) -> Floats:
        """Return for each term whether it stands in each passage or above it: ones and zeros [terms, passages]."""
        start, stop = self._passages()
        held: Floats = (_window_sums(own, start, stop) + _window_sums(above, start, stop) > 0).astype(np.float32)
        return held

    def _passages(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last-plus-one rows of all overlapping passages; they do not cross pages."""
        starts: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        stops: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        for low, high in zip(self.page_starts[:-1], self.page_starts[1:], strict=True):
            first = np.arange(low, max(high - PASSAGE + 1, low + 1 if high > low else low))
            starts.append(first)
            stops.append(np.minimum(first + PASSAGE, high))
        return np.concatenate(starts), np.concatenate(stops)


def _window_sums(counts: Floats, start: NDArray[np.int64], stop: NDArray[np.int64]) -> Floats:
    """Sums of rows [start, stop) of each term, [terms, windows]."""
    running = np.pad(np.cumsum(counts, axis=1, dtype=np.float32), ((0, 0), (1, 0)))
    return running[:, stop] - running[:, start]


def _bm25(counts: Floats, lengths: NDArray[np.float64], weights: Floats, *, b: float) -> Floats:
    mean = float(lengths.mean()) if len(lengths) and lengths.any() else 1.0
    norm = (_K1 * (1 - b + b * lengths / mean)).astype(np.float32)
    scores: Floats = (weights[:, None] * counts * (_K1 + 1) / (counts + norm)).sum(axis=0, dtype=np.float32)
    return scores
