"""Term counts of local files in flat arrays: BM25 over thousands of files in milliseconds, kept in one piece on disk.

Words are stored as they stand (folded, not stemmed); a query stems the part of the vocabulary that it can meet, so one
set of digests serves queries in any language. Not for: reading files (`light.py`) or finding them.
"""

import json
import math
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.rank.bm25 import K1, B
from pipeline.search.folder.light import REMEMBERED, words_in
from pipeline.search.folder.listing import FileStamp
from pipeline.search.folder.spellings import Counted, Ints
from pipeline.text.words import index_terms

VERSION: Final = "2"
"""Part of the stored form; raise it when counting changes."""
MAX_DISTINCT: Final = 20_000
"""Different words counted of one file; the commonest stay."""
_PREFIX: Final = 3
"""Characters that a word and its stem share in every Snowball language but Arabic."""
_LAST: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Light:
    """A file as it is taken in: all but its words."""

    stamp: FileStamp
    title: str = ""
    mark: str = ""
    """Hash of its bytes."""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """What is known of one file without opening it."""

    stamp: FileStamp
    title: str
    words: NDArray[np.uint32]
    """Numbers of its words in the vocabulary; one may stand twice where two spellings fold to it."""
    counts: NDArray[np.uint16]
    """How often each occurs, title words weighted."""
    mark: str = ""
    """Hash of its bytes: a file that was only touched is not counted again."""
    failure: str = ""
    """Why it could not be read; such a file has no words and is not tried again until it changes."""


class _Vocabulary:
    """The words of all files, numbered as they come."""

    def __init__(self, listed: Sequence[str] = ()) -> None:
        self.listed = list(listed)
        self._number_of = dict(zip(self.listed, range(len(self.listed)), strict=True))
        self._spelled: dict[int, tuple[int, ...]] = {}
        self._sorted: list[str] = []

    def of(self, counted: Counted) -> list[tuple[int, ...]]:
        """Number the words of every spelling: one, save in scripts that `count_spellings` does not cut."""
        known = self._spelled.get
        return [known(number) or self._learn(number, counted.spelling(i)) for i, number in enumerate(counted.numbers)]

    def _learn(self, number: int, spelling: bytes) -> tuple[int, ...]:
        words = (spelling.decode("ascii"),) if spelling.isascii() else words_in(spelling)
        numbers = tuple(map(self._number, words))
        if len(spelling) <= REMEMBERED:
            self._spelled[number] = numbers
        return numbers

    def _number(self, word: str) -> int:
        number = self._number_of.setdefault(word, len(self.listed))
        if number == len(self.listed):
            self.listed.append(word)
        return number

    def with_term(self, term: str, language: str) -> list[int]:
        """Return the numbers of the words that have this index term in `language`."""
        if len(self._sorted) != len(self.listed):
            self._sorted = sorted(self.listed)
        prefix = term[:_PREFIX]
        near = self._sorted[bisect_left(self._sorted, prefix) : bisect_right(self._sorted, prefix + _LAST)]
        return [
            self._number_of[word]
            for word in near
            if word == term or index_terms(word, language=language, keep_stop_words=True) == [term]
        ]


class Digests:
    """The digests of many files with their common vocabulary."""

    def __init__(self) -> None:
        """Start without files."""
        self._files: dict[str, Digest] = {}
        self._words = _Vocabulary()
        self._flat: _Flat | None = None

    def __len__(self) -> int:
        return len(self._files)

    def known(self, stamp: FileStamp) -> bool:
        """Whether the file is here just as `stamp` says."""
        digest = self._files.get(stamp.path)
        return digest is not None and digest.stamp == stamp

    def unchanged(self, stamp: FileStamp, mark: str) -> bool:
        """Whether the file has the bytes that it had when last counted; it then keeps its words under the new stamp.

        Safe beside `add` in another thread: one entry is put in the place of itself.
        """
        digest = self._files.get(stamp.path)
        if digest is None or digest.failure or digest.mark != mark:
            return False
        self._files[stamp.path] = replace(digest, stamp=stamp)
        self._flat = None
        return True

    def add(self, files: Sequence[Light], counted: Counted) -> None:
        """Take in files, each in place of an older state of it; `counted` are the words of each, in the same order."""
        file_of, words, counts = _spread(counted, self._words.of(counted))
        ends = np.cumsum(np.bincount(file_of, minlength=len(files)))
        numbers, often = words.astype(np.uint32), np.minimum(counts, 65_535).astype(np.uint16)
        start = 0
        for file, end in zip(files, ends.tolist(), strict=True):
            own: slice | NDArray[np.int64] = slice(start, end)
            if end - start > MAX_DISTINCT:
                own = start + np.argsort(-counts[start:end], kind="stable")[:MAX_DISTINCT]
            start = end
            self._files[file.stamp.path] = Digest(
                file.stamp, file.title, numbers[own], often[own], file.mark, file.failure
            )
        self._flat = None

    def keep_only(self, paths: Iterable[str]) -> int:
        """Forget the files that are not in `paths`; returns how many went."""
        gone = self._files.keys() - set(paths)
        for path in gone:
            del self._files[path]
        if gone:
            self._flat = None
        return len(gone)

    def failures(self) -> list[tuple[str, str]]:
        """Path and reason of every file that could not be read."""
        return [(path, digest.failure) for path, digest in self._files.items() if digest.failure]

    def best(self, question: str, *, language: str, limit: int) -> list[tuple[Digest, float]]:
        """Return up to `limit` files with their BM25 scores, best first; only files with a term of `question`."""
        terms = index_terms(question, language=language) or index_terms(
            question, language=language, keep_stop_words=True
        )
        if not self._files or not terms:
            return []
        flat = self._flattened()
        scores = np.zeros(len(flat.files))
        for term in dict.fromkeys(terms):
            numbers = self._words.with_term(term, language)
            if not numbers:
                continue
            wanted = np.zeros(len(self._words.listed), dtype=bool)
            wanted[numbers] = True
            hits = np.flatnonzero(wanted[flat.words])
            counts = np.bincount(flat.file_of[hits], weights=flat.counts[hits], minlength=len(scores))
            found = np.count_nonzero(counts)
            idf = math.log1p((len(scores) - found + 0.5) / (found + 0.5))
            scores += idf * counts * (K1 + 1) / (counts + flat.norm)
        order = np.argsort(-scores, kind="stable")[:limit]
        return [(flat.files[i], float(scores[i])) for i in order if scores[i] > 0]

    def _flattened(self) -> "_Flat":
        if self._flat is None:
            self._flat = _Flat.of(list(self._files.values()))
        return self._flat

    def to_bytes(self) -> bytes:
        """Return everything as bytes for `from_bytes`; about 8 bytes a distinct word of a file."""
        files = list(self._files.values())
        flat = self._flattened()
        head = {
            "version": VERSION,
            "vocabulary": self._words.listed,
            "files": [
                [d.stamp.path, d.stamp.mtime_ns, d.stamp.size, d.title, d.mark, d.failure, len(d.words)] for d in files
            ],
        }
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        body = len(text).to_bytes(8, "little") + text + flat.words.tobytes() + flat.counts.astype(np.uint16).tobytes()
        return zlib.crc32(body).to_bytes(4, "little") + body

    @classmethod
    def from_bytes(cls, data: bytes) -> "Digests":
        """Return what `to_bytes` wrote; without files where `data` is damaged or of another version."""
        digests = cls()
        if len(data) < 12 or zlib.crc32(data[4:]).to_bytes(4, "little") != data[:4]:
            return digests
        length = int.from_bytes(data[4:12], "little")
        head = json.loads(data[12 : 12 + length].decode("utf-8", "surrogatepass"))
        if head.get("version") != VERSION:
            return digests
        total = sum(row[-1] for row in head["files"])
        words = np.frombuffer(data, dtype=np.uint32, count=total, offset=12 + length)
        counts = np.frombuffer(data, dtype=np.uint16, count=total, offset=12 + length + 4 * total)
        digests._words = _Vocabulary(head["vocabulary"])
        at = 0
        for path, mtime_ns, size, title, mark, failure, n in head["files"]:
            stamp = FileStamp(path, mtime_ns, size)
            digests._files[path] = Digest(stamp, title, words[at : at + n], counts[at : at + n], mark, failure)
            at += n
        return digests


def _spread(counted: Counted, numbers: Sequence[tuple[int, ...]]) -> tuple[Ints, Ints, Ints]:
    """File, word and count [n] of the counted spellings, by file; each word once a file where any holds several."""
    sizes = np.fromiter(map(len, numbers), dtype=np.int64, count=len(numbers))
    flat = np.fromiter(chain.from_iterable(numbers), dtype=np.int64, count=int(sizes.sum()))
    if (sizes == 1).all():
        return counted.text_of, flat[counted.spelling_of], counted.counts
    times = sizes[counted.spelling_of]
    behind = np.cumsum(times) - times
    places = np.arange(int(times.sum())) + np.repeat((np.cumsum(sizes) - sizes)[counted.spelling_of] - behind, times)
    keys, index = np.unique(np.repeat(counted.text_of, times) << 32 | flat[places], return_inverse=True)
    counts = np.bincount(index, weights=np.repeat(counted.counts, times), minlength=len(keys))
    return keys >> 32, keys & 0xFFFF_FFFF, counts.astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Flat:
    """All digests end to end."""

    files: list[Digest]
    words: NDArray[np.uint32]
    counts: NDArray[np.float32]
    file_of: NDArray[np.int64]
    norm: NDArray[np.float64]

    @classmethod
    def of(cls, files: list[Digest]) -> "_Flat":
        words = np.concatenate([d.words for d in files]) if files else np.zeros(0, dtype=np.uint32)
        counts = (
            np.concatenate([d.counts for d in files]).astype(np.float32) if files else np.zeros(0, dtype=np.float32)
        )
        sizes = np.asarray([len(d.words) for d in files], dtype=np.int64)
        file_of = np.repeat(np.arange(len(files)), sizes)
        lengths = np.bincount(file_of, weights=counts, minlength=len(files))
        mean = lengths.mean() if lengths.any() else 1.0
        return cls(files, words, counts, file_of, K1 * (1 - B + B * lengths / mean))
