"""Which words stand in which local files: counted without parsing, kept as flat arrays, searched by BM25.

Counting serves to find a file, not to show it. Markup is blanked by one regular expression, and what stands between
blanks is a word: some twenty times faster than reading the document properly. Words are kept as they stand (folded, not
stemmed); a query stems the part of the vocabulary that it can meet, so one index serves queries in any language. Not
for: finding and reading files (`pipeline/search/folder.py`).
"""

import html
import json
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.rank.bm25 import okapi
from pipeline.rank.fuse import Floats
from pipeline.text.words import bigrams, fold, index_terms, is_cjk, lower_runs

VERSION: Final = "5"
"""Part of the stored form; raise it when counting changes."""
MOST_BYTES: Final = 4_000_000
"""Bytes of one file that are counted; what stands behind cannot be found by this search."""
OUTLINE: Final = 500
"""Letters of a file's outline, about 100 tokens: 200 tokens of headings, or first paragraphs, find no more."""
LONGEST_WORD: Final = 80
"""Bytes of a word that count; what follows makes no other word."""
_PREFIX: Final = 3
"""Characters that a word and its stem share in every Snowball language but Arabic."""
_BLANKS: Final = bytes(
    code if code >= 0x80 else ord(chr(code).lower()) if chr(code).isalnum() else 0x20 for code in range(256)
)
"""Upper case ASCII to lower, ASCII that is no letter or digit to blanks, bytes of other characters as they are."""
# Linear on any input: an unclosed piece of markup ends at the end of the data, and `*+` never tries again.
_MARKUP: Final = re.compile(
    rb"<(?:!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)"
    rb"|(script|style|template|svg)\b[^<]*+(?:<(?!/\1\s*>)[^<]*+)*+(?:</\1\s*>|\Z)"
    rb"|/?[a-z!?][^>]*+(?:>|\Z))",
    re.DOTALL | re.IGNORECASE,
)
_ENTITY: Final = re.compile(rb"&(?:#x?)?\w{2,31};")
_PLAIN_ENTITY: Final = re.compile(
    rb"&(?:nbsp|amp|lt|gt|quot|apos|#39|ndash|mdash|hellip|copy|middot|rsquo|ldquo|rdquo);"
)
_TITLE: Final = re.compile(rb"<title[^>]{0,200}>([^<]{1,500})", re.IGNORECASE)
_HEADING: Final = re.compile(rb"<h1[^>]{0,500}>(.{1,500}?)</h1", re.IGNORECASE | re.DOTALL)
_HEADINGS: Final = re.compile(rb"<h[1-4]\b[^>]{0,500}>(.{1,400}?)</h[1-4]", re.IGNORECASE | re.DOTALL)
_MARKDOWN_HEADINGS: Final = re.compile(rb"^#{1,4}[ \t]+(.{1,300})$", re.MULTILINE)
_MARKDOWN_TITLE: Final = re.compile(rb"^(?:#[ \t]+|title:[ \t]*)(.{1,300})$", re.MULTILINE | re.IGNORECASE)
_JSON_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)")
_MARKED_UP: Final = frozenset({".html", ".htm", ".xhtml", ".xml", ".pdf", ".docx"})
"""Endings of files that are markup, or come as such from their readers."""
_JSON: Final = frozenset({".json", ".jsonl", ".ndjson", ".ipynb"})


def title_and_text(data: bytes, suffix: str) -> tuple[str, bytes]:
    """Return title (empty where none is given) and text, markup blanked, of a file in UTF-8 with this ending."""
    data = data[:MOST_BYTES]
    if suffix in _JSON:
        return "", _JSON_ESCAPE.sub(_character, data)
    if suffix not in _MARKED_UP:
        heading = _MARKDOWN_TITLE.search(data[:4_000])
        return (heading[1].decode("utf-8", "replace").strip(" #\"'\r") if heading else ""), data
    named = _TITLE.search(data[:20_000]) or _HEADING.search(data)
    title = html.unescape(_MARKUP.sub(b" ", named[1]).decode("utf-8", "replace")) if named else ""
    text = _MARKUP.sub(b" ", data)
    if b"&" in text:
        text = _PLAIN_ENTITY.sub(b" ", text)
        if _ENTITY.search(text):
            text = html.unescape(text.decode("utf-8", "replace")).encode("utf-8", "surrogatepass")
    return " ".join(title.split()), text


def outline(title: str, data: bytes, text: bytes, suffix: str) -> str:
    """Return what a file is about as one line: its title and headings, or its first words where it has none.

    Args:
        title: As `title_and_text` gives it.
        data: The file in UTF-8.
        text: The same, markup blanked.
        suffix: The file's ending.
    """
    headings = (_HEADINGS if suffix in _MARKED_UP else _MARKDOWN_HEADINGS).findall(data[:MOST_BYTES])
    named = [html.unescape(_MARKUP.sub(b" ", heading).decode("utf-8", "replace")) for heading in headings]
    parts = dict.fromkeys(" ".join(part.split()) for part in (title, *named))
    line = ". ".join(filter(None, parts))
    if len(line) < OUTLINE // 4:
        line = f"{line}. {' '.join(text[: 4 * OUTLINE].decode('utf-8', 'replace').split())}"
    return line[:OUTLINE]


def _character(escape: re.Match[bytes]) -> bytes:
    return chr(int(escape[1], 16)).encode("utf-8", "surrogatepass") if escape[1] else b" "


class FileStamp(NamedTuple):
    """A file as it was when listed; the same stamp means the same content."""

    path: str
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """What is known of one file without opening it."""

    stamp: FileStamp
    title: str = ""
    mark: str = ""
    """Hash of its bytes: a file that was only touched is not counted again."""
    failure: str = ""
    """Why it could not be read; such a file has no words and is not tried again until it changes."""
    unread: str = ""
    """What of it was not read, and is not counted."""
    outline: str = ""
    """What it is about, for its meaning."""
    words: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    """Numbers of its words in the vocabulary, [n]."""
    counts: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    """How often each occurs, [n]; words of the title weigh more."""


class _Vocabulary(dict[bytes, int]):
    """Word (UTF-8) to its number, in the order of first use."""

    def __missing__(self, word: bytes) -> int:
        if len(word) > LONGEST_WORD:
            return self[word[:LONGEST_WORD]]
        number = self[word] = len(self)
        return number


class WordIndex:
    """The words of many files. Not for several threads at once."""

    def __init__(self) -> None:
        """Start without files."""
        self._files: dict[str, IndexedFile] = {}
        self._vocabulary = _Vocabulary()
        self._sorted: list[bytes] = []
        self._flat: _Flat | None = None

    def __len__(self) -> int:
        return len(self._files)

    def known(self, stamp: FileStamp) -> bool:
        """Whether the file is here just as `stamp` says."""
        file = self._files.get(stamp.path)
        return file is not None and file.stamp == stamp

    def unchanged(self, stamp: FileStamp, mark: str) -> bool:
        """Whether the file has the bytes that it had when last counted; it then keeps its words under the new stamp."""
        file = self._files.get(stamp.path)
        if file is None or file.failure or file.mark != mark:
            return False
        self._put(replace(file, stamp=stamp))
        return True

    def add(self, file: IndexedFile, text: bytes = b"") -> None:
        """Take in a file with the words of its `text` (UTF-8), in place of an older state of it."""
        words = text.translate(_BLANKS).split()
        if not text.isascii():
            words = [part for word in words for part in ((word,) if word.isascii() else _foreign_words(word))]
        numbers = np.fromiter(map(self._vocabulary.__getitem__, words), dtype=np.uint32, count=len(words))
        found, counts = np.unique(numbers, return_counts=True)
        often = np.minimum(counts, np.iinfo(np.uint16).max).astype(np.uint16)
        self._put(replace(file, words=found, counts=often))

    def _put(self, file: IndexedFile) -> None:
        self._files[file.stamp.path] = file
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
        return [(path, file.failure) for path, file in self._files.items() if file.failure]

    def in_part(self) -> int:
        """How many files were not read to their ends."""
        return sum(bool(file.unread) for file in self._files.values())

    def scores(self, question: str, *, language: str) -> tuple[list[IndexedFile], Floats]:
        """Return all files, and the BM25 score of each [n], 0 without a term of `question`."""
        flat = self._flattened()
        terms = index_terms(question, language=language) or index_terms(
            question, language=language, keep_stop_words=True
        )
        found = []
        for term in dict.fromkeys(terms):
            wanted = np.zeros(len(self._vocabulary), dtype=bool)
            wanted[self._numbers(term, language)] = True
            hits = np.flatnonzero(wanted[flat.words])
            found.append(np.bincount(flat.file_of[hits], weights=flat.counts[hits], minlength=len(flat.files)))
        if not found or not flat.files:
            return flat.files, np.zeros(len(flat.files), dtype=np.float32)
        counts = np.stack(found)
        return flat.files, np.asarray(okapi(counts, flat.lengths), dtype=np.float32)

    def _numbers(self, term: str, language: str) -> list[int]:
        """The numbers of the words that have this index term in `language`."""
        if len(self._sorted) != len(self._vocabulary):
            self._sorted = sorted(self._vocabulary)
        prefix = term[:_PREFIX].encode("utf-8", "surrogatepass")
        near = self._sorted[bisect_left(self._sorted, prefix) : bisect_right(self._sorted, prefix + b"\xff")]
        return [
            self._vocabulary[spelled]
            for spelled in near
            if (word := spelled.decode("utf-8", "replace")) == term
            or index_terms(word, language=language, keep_stop_words=True) == [term]
        ]

    def _flattened(self) -> "_Flat":
        if self._flat is None:
            self._flat = _Flat.of(list(self._files.values()))
        return self._flat

    def to_bytes(self) -> bytes:
        """Return everything as bytes for `from_bytes`; about 8 bytes a distinct word of a file."""
        flat = self._flattened()
        vocabulary = b" ".join(self._vocabulary)
        head = {
            "version": VERSION,
            "vocabulary": len(vocabulary),
            "files": [
                [*file.stamp, file.title, file.mark, file.failure, file.unread, file.outline, len(file.words)]
                for file in flat.files
            ],
        }
        text = json.dumps(head, separators=(",", ":")).encode()
        counts = flat.counts.astype(np.uint16).tobytes()
        body = len(text).to_bytes(8, "little") + text + vocabulary + flat.words.tobytes() + counts
        return zlib.crc32(body).to_bytes(4, "little") + body

    @classmethod
    def from_bytes(cls, data: bytes) -> "WordIndex":
        """Return what `to_bytes` wrote; without files where `data` is damaged or of another version."""
        index = cls()
        if len(data) < 12 or zlib.crc32(data[4:]).to_bytes(4, "little") != data[:4]:
            return index
        at = 12 + int.from_bytes(data[4:12], "little")
        head = json.loads(data[12:at])
        if head.get("version") != VERSION:
            return index
        total = sum(row[-1] for row in head["files"])
        vocabulary, at = data[at : at + head["vocabulary"]], at + head["vocabulary"]
        words = np.frombuffer(data, dtype=np.uint32, count=total, offset=at)
        counts = np.frombuffer(data, dtype=np.uint16, count=total, offset=at + words.nbytes)
        index._vocabulary.update((word, number) for number, word in enumerate(vocabulary.split()))
        start = 0
        for path, mtime_ns, size, title, mark, failure, unread, about, n in head["files"]:
            stamp, end = FileStamp(path, mtime_ns, size), start + n
            own = words[start:end], counts[start:end]
            index._files[path] = IndexedFile(stamp, title, mark, failure, unread, about, *own)
            start = end
        return index


def _foreign_words(stretch: bytes) -> tuple[bytes, ...]:
    """The words and CJK pairs, folded, of a stretch between ASCII blanks that holds other characters."""
    return _remembered(stretch) if len(stretch) <= LONGEST_WORD else _cut(stretch)


def _cut(stretch: bytes) -> tuple[bytes, ...]:
    words: list[str] = []
    for run in lower_runs(stretch.decode("utf-8", "replace").replace("’", " ")):
        words.extend(bigrams(run) if is_cjk(run) else [run])
    return tuple(fold(word).encode("utf-8", "surrogatepass") for word in words)


_remembered = lru_cache(maxsize=100_000)(_cut)
"""Words with other characters than ASCII, about 20 MB at most; whole CJK sentences are not worth it."""


@dataclass(frozen=True, slots=True)
class _Flat:
    """All files end to end."""

    files: list[IndexedFile]
    words: NDArray[np.uint32]
    counts: NDArray[np.float32]
    file_of: NDArray[np.int64]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, files: list[IndexedFile]) -> "_Flat":
        words = np.concatenate([np.zeros(0, dtype=np.uint32), *(file.words for file in files)])
        counts = np.concatenate([np.zeros(0, dtype=np.float32), *(file.counts for file in files)]).astype(np.float32)
        sizes = np.asarray([len(file.words) for file in files], dtype=np.int64)
        file_of = np.repeat(np.arange(len(files)), sizes)
        lengths = np.bincount(file_of, weights=counts, minlength=len(files)).astype(np.float64)
        return cls(files, words, counts, file_of, lengths)
