"""Term counts of local files in flat arrays: BM25 over thousands of files in milliseconds, kept in one piece on disk.

Words are stored as they stand (folded, not stemmed); a query stems the part of the vocabulary that it can meet, so one
set of digests serves queries in any language. Not for: reading files (`pipeline/search/light.py`) or finding them.
"""

import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.rank.bm25 import K1, B
from pipeline.rank.words import fold, index_terms
from pipeline.search.listing import FileStamp

VERSION: Final = "1"
"""Part of the stored form; raise it when counting changes."""
MAX_DISTINCT: Final = 20_000
"""Different words counted of one file; the commonest stay."""
_LONGEST_WORD: Final = 40
_PREFIX: Final = 3
"""Characters that a word and its stem share in every Snowball language but Arabic."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What is known of one file without opening it."""

    stamp: FileStamp
    title: str
    words: NDArray[np.uint32]
    """Numbers of its words in the vocabulary; one may stand twice where two spellings fold to it."""
    counts: NDArray[np.uint16]
    """How often each occurs, title words weighted."""
    failure: str = ""
    """Why it could not be read; such a file has no words and is not tried again until it changes."""


class _Vocabulary(dict[bytes, int]):
    """Spelling to number; a spelling not met before is folded and numbered as it is looked up."""

    def __init__(self, listed: Iterable[str] = ()) -> None:
        super().__init__()
        self.listed: list[str] = []
        self._prefixes: dict[str, list[int]] = {}
        for word in listed:
            self._enter(word)

    def __missing__(self, spelling: bytes) -> int:
        if spelling.isascii() and len(spelling) <= _LONGEST_WORD:
            return self._enter(spelling.decode("ascii"))
        folded = fold(spelling.decode("utf-8", "replace").partition("'")[0].partition("’")[0])[:_LONGEST_WORD]
        number = self.get(folded.encode("utf-8", "surrogatepass"), -1)
        if number < 0:
            number = self._enter(folded)
        self[spelling] = number
        return number

    def _enter(self, word: str) -> int:
        number = len(self.listed)
        self.listed.append(word)
        self[word.encode("utf-8", "surrogatepass")] = number
        self._prefixes.setdefault(word[:_PREFIX], []).append(number)
        return number

    def with_term(self, term: str, language: str) -> list[int]:
        """Return the numbers of the words that have this index term in `language`."""
        near: Iterable[int] = self._prefixes.get(term[:_PREFIX], [])
        if len(term) < _PREFIX:  # a stem may be shorter than the part that its words share
            near = [n for prefix, numbers in self._prefixes.items() if prefix.startswith(term) for n in numbers]
        return [
            number
            for number in near
            if (word := self.listed[number]) == term
            or index_terms(word, language=language, keep_stop_words=True) == [term]
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

    def add(self, stamp: FileStamp, *, title: str, counts: Mapping[bytes, int], failure: str = "") -> None:
        """Take in one file, in place of an older state of it; `counts` as `count_words` gives them."""
        if len(counts) > MAX_DISTINCT:
            counts = dict(sorted(counts.items(), key=lambda item: -item[1])[:MAX_DISTINCT])
        self._files[stamp.path] = Digest(
            stamp,
            title,
            np.fromiter(map(self._words.__getitem__, counts), dtype=np.uint32, count=len(counts)),
            np.minimum(np.fromiter(counts.values(), dtype=np.int64, count=len(counts)), 65_535).astype(np.uint16),
            failure,
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
            "files": [[d.stamp.path, d.stamp.mtime_ns, d.stamp.size, d.title, d.failure, len(d.words)] for d in files],
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
        total = sum(row[5] for row in head["files"])
        words = np.frombuffer(data, dtype=np.uint32, count=total, offset=12 + length)
        counts = np.frombuffer(data, dtype=np.uint16, count=total, offset=12 + length + 4 * total)
        digests._words = _Vocabulary(head["vocabulary"])
        at = 0
        for path, mtime_ns, size, title, failure, n in head["files"]:
            stamp = FileStamp(path, mtime_ns, size)
            digests._files[path] = Digest(stamp, title, words[at : at + n], counts[at : at + n], failure)
            at += n
        return digests


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
