"""The terms of a tree's leaves: BM25 without reading the texts again, and word vectors where no embedder reads them.

Counted once when the tree is built and kept with it: counting 10,000 leaves takes seconds, scoring them milliseconds.
The formula is that of `pipeline/rank/bm25.py`, which counts per call. Not for: cutting text into terms
(`pipeline/text/words.py`).
"""

import itertools
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from pipeline.rank.bm25 import okapi, rarity
from pipeline.text.words import index_terms
from pipeline.work import check_cancelled

HASHED_DIMENSION: Final = 256
"""Length of a word vector: at 256 two of a leaf's some 50 terms rarely fall together, and a tree stays small."""


@dataclass(frozen=True, slots=True, eq=False)
class LexicalIndex:
    """Postings of the terms of n texts."""

    vocabulary: Mapping[str, int]
    """Term to its number, in order of first sight."""
    starts: NDArray[np.int32]
    """Where the postings of term t begin, [terms + 1]."""
    rows: NDArray[np.int32]
    """Text numbers, by term."""
    counts: NDArray[np.int32]
    """How often the term stands there."""
    lengths: NDArray[np.int32]
    """Terms a text, [n]."""
    languages: tuple[str, ...]
    """Languages whose stemmers cut the texts; a question is cut by each."""

    @property
    def size(self) -> int:
        """Number of texts."""
        return len(self.lengths)

    def idf(self) -> NDArray[np.float64]:
        """Return how rare every term is, [terms]."""
        return rarity(np.diff(self.starts), self.size)

    def scores(self, question: str) -> NDArray[np.float32]:
        """Return the BM25 score of every text, [n]; 0 where no term of `question` occurs."""
        terms = self._terms(question)
        counts = np.zeros((len(terms), self.size), dtype=np.float32)
        for place, term in enumerate(terms):
            begin, end = self.starts[term], self.starts[term + 1]
            counts[place, self.rows[begin:end]] = self.counts[begin:end]
        return okapi(counts, self.lengths.astype(np.float64))

    def _terms(self, question: str) -> list[int]:
        found: dict[int, None] = {}
        for language in self.languages:
            terms = index_terms(question, language=language)
            terms = terms or index_terms(question, language=language, keep_stop_words=True)
            found.update((self.vocabulary[term], None) for term in terms if term in self.vocabulary)
        return list(found)

    def to_bytes(self) -> bytes:
        """Return the arrays as compressed bytes; vocabulary and languages are kept beside as text."""
        counts = np.asarray([len(self.starts), len(self.rows), len(self.lengths)])
        arrays = (counts, self.starts, self.rows, self.counts, self.lengths)
        return zlib.compress(b"".join(array.astype("<i4").tobytes() for array in arrays), level=1)

    @classmethod
    def from_bytes(cls, data: bytes, *, vocabulary: Sequence[str], languages: tuple[str, ...]) -> Self:
        """Return what `to_bytes` wrote."""
        numbers = np.frombuffer(zlib.decompress(data), dtype="<i4").astype(np.int32)
        starts, postings, lengths = (int(n) for n in numbers[:3])
        edges = np.cumsum([3, starts, postings, postings, lengths])
        parts = [numbers[begin:end] for begin, end in itertools.pairwise(edges)]
        numbered = {term: number for number, term in enumerate(vocabulary)}
        return cls(numbered, parts[0], parts[1], parts[2], parts[3], languages)


def count_terms(
    texts: Sequence[Sequence[str]], languages: Sequence[str]
) -> tuple[LexicalIndex, list[list[tuple[int, ...]]]]:
    """Count the terms of texts that come in pieces (headings, then sentences).

    Args:
        texts: The pieces of each text.
        languages: ISO 639-1 code of each text, empty for English; picks the stemmer.

    Returns:
        The index over whole texts, and the term numbers of each piece of each text.
    """
    vocabulary: dict[str, int] = {}
    numbered: list[list[tuple[int, ...]]] = []
    terms: list[int] = []
    rows: list[int] = []
    counts: list[int] = []
    lengths = np.zeros(len(texts), dtype=np.int32)
    for row, (pieces, language) in enumerate(zip(texts, languages, strict=True)):
        if row % 256 == 0:
            check_cancelled()
        found = [
            tuple(
                vocabulary.setdefault(term, len(vocabulary)) for term in index_terms(piece, language=language or "en")
            )
            for piece in pieces
        ]
        counted = Counter(term for piece in found for term in piece)
        numbered.append(found)
        lengths[row] = counted.total()
        terms.extend(counted)
        counts.extend(counted.values())
        rows.extend([row] * len(counted))
    by_term = np.asarray(terms, dtype=np.int32)
    order = np.argsort(by_term, kind="stable")
    starts = np.zeros(len(vocabulary) + 1, dtype=np.int32)
    np.cumsum(np.bincount(by_term, minlength=len(vocabulary)), out=starts[1:])
    index = LexicalIndex(
        vocabulary=vocabulary,
        starts=starts,
        rows=np.asarray(rows, dtype=np.int32)[order],
        counts=np.asarray(counts, dtype=np.int32)[order],
        lengths=lengths,
        languages=tuple(sorted({language or "en" for language in languages})),
    )
    return index, numbered


def word_vectors(index: LexicalIndex) -> NDArray[np.float32]:
    """Return unit vectors [n, HASHED_DIMENSION] of TF-IDF weights, terms hashed with a sign (the hashing trick).

    They stand in for an embedder: texts that share rare words are near. A text without terms gets an even vector.
    """
    idf = index.idf()
    hashes = np.asarray(
        [zlib.crc32(term.encode("utf-8", "surrogatepass")) for term in index.vocabulary], dtype=np.int64
    )
    vectors = np.zeros((index.size, HASHED_DIMENSION), dtype=np.float32)
    if len(hashes):
        of_posting = np.repeat(np.arange(len(hashes)), np.diff(index.starts))
        weights = (1 + np.log(index.counts)) * idf[of_posting] * np.where(hashes[of_posting] & 1, 1.0, -1.0)
        np.add.at(vectors, (index.rows, (hashes[of_posting] >> 1) % HASHED_DIMENSION), weights.astype(np.float32))
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[norms[:, 0] == 0] = 1.0
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
