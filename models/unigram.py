"""XLM-R's tokeniser: a text cut into the pieces of a vocabulary that are together most
likely.

A unigram language model gives each piece a log-probability; Viterbi finds the best cut
of a word. Before, characters are mapped (sentencepiece's `nmt_nfkc`, as a compiled
table that the file carries), white space parts words, and each word begins with `▁`. It
is here because the library `tokenizers`, which does the same, takes a tenth of an
installation (`text.py`); ids are its ids, also where its reading of the table is odd.
Work grows with the length of a text: no piece is longer than a few characters, and one
word of a megabyte is cut like a page of them.

Source: Kudo 2018 (arXiv 1804.10959), §3.2; Kudo and Richardson 2018 (arXiv 1808.06226),
    §3.5. Not
for: BERT's WordPiece and files (`text.py`), or training a vocabulary.
"""

import math
import re
import struct
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

SPACE: Final = "\u2581"
"""The sign that a word begins with."""
UNKNOWN_COST: Final = 10.0
"""What a character without a piece costs beyond the least likely piece, in nats."""
KNOWN_WORDS: Final = 20_000
"""Words whose pieces are kept, 4 MB."""
CACHED_CHARACTERS: Final = 40
"""Characters of a word that is kept: what is longer comes once."""
BEGINNING_CHARACTERS: Final = 3
"""Characters by which the lengths of the pieces that begin with them are found: with
two, twice as many lengths are tried for each character of Latin text."""
ONLY_PAIRS: Final = (2,)
"""Lengths to try where no longer piece begins so."""
CLUSTER_BYTES: Final = 6
"""Bytes from which a character with its marks is mapped sign by sign; below,
together."""
_SPACED_WORD: Final = re.compile(f"{SPACE}[^{SPACE}]*")
_SHORT_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u07eb-\u07f3"
)
"""Marks of two bytes, which may follow a character of three within a short cluster."""
_LONG_MARKS: Final = "".join(
    sign
    for sign in map(chr, range(0x800, 0x10000))
    if unicodedata.category(sign) in ("Mn", "Me", "Mc")
    or sign in "\u200c\u200d\u0e33\u0eb3\uff9e\uff9f"
)
"""Those of three bytes, which may follow a character of two."""
_CLUSTER: Final = re.compile(
    f"[\x20-\u02ff\u0370-\u07ff][{_SHORT_MARKS}{_LONG_MARKS}]+|[^\0-\u07ff{_LONG_MARKS}][{_SHORT_MARKS}][{_SHORT_MARKS}{_LONG_MARKS}]*"
)
_HAS_VALUE: Final = 1 << 8
_LABEL_BITS: Final = 0x800000FF
_VALUE_BITS: Final = 0x7FFFFFFF


class Charsmap:
    """What a text's characters become: sentencepiece's compiled table.

    The table is a trie of UTF-8 bytes in a double array (Darts), and the texts that its
    leaves name."""

    def __init__(self, compiled: bytes) -> None:
        """Take the table as the file has it; raises `ValueError` where it is none."""
        try:
            (size,) = struct.unpack_from("<I", compiled)
            self._units = struct.unpack_from(f"<{size // 4}I", compiled, 4)
            self._base = _next(0, self._units[0])
        except (struct.error, IndexError) as error:
            raise ValueError(f"its precompiled_charsmap is invalid: {error}") from error
        self._texts = compiled[4 + size :]
        self._table = _Table(self)

    def mapped(self, text: str) -> str:
        """Return `text` with each character as the vocabulary has it."""
        if text.isascii() and text.isprintable():
            return text
        if not text.isascii() and _CLUSTER.search(text):
            text = _CLUSTER.sub(self._cluster, text)
        return text.translate(self._table)

    def of(self, signs: str) -> str | None:
        """Return what the shortest beginning of `signs` that the table has becomes;
        None without one."""
        units, base = self._units, self._base
        for byte in signs.encode("utf-8", "surrogatepass"):
            state = base ^ byte
            if state >= len(units) or units[state] & _LABEL_BITS != byte:
                return None
            base = _next(state, units[state])
            if units[state] & _HAS_VALUE:
                start = units[base] & _VALUE_BITS
                return self._texts[start : self._texts.index(b"\0", start)].decode()
        return None

    def _cluster(self, found: re.Match[str]) -> str:
        whole = found[0]
        if len(whole.encode("utf-8", "surrogatepass")) >= CLUSTER_BYTES:
            return whole
        # The library takes the shortest beginning for the whole: a second mark is lost.
        mapped = self.of(whole)
        return whole if mapped is None else mapped


class _Table(dict[int, str]):
    """A table for `str.translate` that looks a character up when it first comes."""

    def __init__(self, charsmap: Charsmap) -> None:
        super().__init__()
        self._charsmap = charsmap

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        mapped = self._charsmap.of(sign)
        self[code] = sign if mapped is None else mapped
        return self[code]


def _next(state: int, unit: int) -> int:
    """Return where the children of the node at `state` are counted from."""
    return state ^ (unit >> 10) << (unit >> 6 & 8)


class Unigram:
    """A `Tokenizer` of XLM-R's form; safe to call from many threads at once."""

    def __init__(
        self,
        pieces: Sequence[tuple[str, float]],
        charsmap: Charsmap,
        *,
        specials: Sequence[str],
        unknown: int,
        most: int | None = None,
    ) -> None:
        """Take the vocabulary: pieces by their ids, with log-probabilities.

        `specials` are pieces that no text can bring, of them the first opens and the
        second ends one. `most` as in `open_tokenizer`."""
        self._charsmap = charsmap
        self._most = most
        self._unknown = unknown
        self._ids = {piece: number for number, (piece, _) in enumerate(pieces)}
        self._first, self._last = self.ids_of(*specials[:2])
        self._scores = {
            piece: score for piece, score in pieces if piece not in set(specials)
        }
        self._unknown_score = min(self._scores.values()) - UNKNOWN_COST
        self._lengths = _lengths_by_beginning(self._scores)
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """See `Tokenizer.encode`."""
        if self._most is None:
            return [self._text_ids(text) for text in texts]
        inner = self._most - 2
        return [
            [self._first, *self._text_ids(text)[:inner], self._last] for text in texts
        ]

    def ids_of(self, *pieces: str) -> list[int]:
        """See `Tokenizer.ids_of`."""
        return [self._ids[piece] for piece in pieces]

    def _text_ids(self, text: str) -> list[int]:
        found: list[int] = []
        known = self._known
        for word in self._charsmap.mapped(text).split():
            ids = known.get(word)
            if ids is None:
                ids = tuple(self._word_ids(word))
                if len(word) <= CACHED_CHARACTERS:
                    if len(known) >= KNOWN_WORDS:
                        known = self._known = {}
                    known[word] = ids
            found += ids
        return found

    def _word_ids(self, word: str) -> Iterator[int]:
        begun = word if word[0] == SPACE else SPACE + word
        for part in _SPACED_WORD.findall(begun):
            before = -1
            for piece in self._best_cut(part):
                number = self._ids[piece] if piece in self._scores else self._unknown
                # Neighbours that are unknown are one.
                if number != self._unknown or before != number:
                    yield number
                before = number

    def _best_cut(self, part: str) -> list[str]:
        """Return the most likely pieces of `part`; a character without one is a piece
        by itself."""
        size = len(part)
        scores, lengths = self._scores, self._lengths
        best = [0.0] + [-math.inf] * size
        begins = [0] * (size + 1)
        for start in range(size):
            here = best[start]
            after = start + 1
            score = here + scores.get(part[start], self._unknown_score)
            if score > best[after]:
                best[after] = score
                begins[after] = start
            for length in lengths.get(
                part[start : start + BEGINNING_CHARACTERS], ONLY_PAIRS
            ):
                end = start + length
                if end > size:
                    break
                piece_score = scores.get(part[start:end])
                if piece_score is not None and here + piece_score > best[end]:
                    best[end] = here + piece_score
                    begins[end] = start
        pieces: list[str] = []
        while size:
            pieces.append(part[begins[size] : size])
            size = begins[size]
        return pieces[::-1]


def _lengths_by_beginning(pieces: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return for each three characters the lengths from two on of the pieces that may
    begin there."""
    found: dict[str, set[int]] = {}
    for piece in pieces:
        if len(piece) >= BEGINNING_CHARACTERS:
            found.setdefault(piece[:BEGINNING_CHARACTERS], {2}).add(len(piece))
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    ordered = (
        (beginning, tuple(sorted(lengths))) for beginning, lengths in found.items()
    )
    return {
        beginning: shared.setdefault(lengths, lengths) for beginning, lengths in ordered
    }
