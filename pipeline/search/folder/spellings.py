"""Counting the words of many files at once, in flat arrays: no object is made for a word that was met before.

Texts are laid end to end and every stretch between blanks becomes a 64-bit number, so that counting is
sorting: faster than a `Counter` a file, and the sorts leave the interpreter to other threads. Not for: which words a
stretch of other characters than ASCII holds (`pipeline/search/folder/light.py`), nor remembering them
(`pipeline/search/folder/digests.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

LONGEST_WORD: Final = 40
"""Characters of a word that count; what follows makes no other word."""
_STRIDE: Final = 8
_FACTORS: Final = tuple(
    np.uint64(factor)
    for factor in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
)
"""Odd multipliers, one for each eight bytes of a word."""
_FIRST: Final = np.asarray([(1 << (8 * n)) - 1 for n in range(_STRIDE + 1)], dtype=np.uint64)
"""By number of bytes: the mask that keeps so many of eight."""
_BLANKS: Final = bytes(
    code
    if code >= 0x80 or (chr(code).isalnum() and not chr(code).isupper())
    else ord(chr(code).lower())
    if chr(code).isupper()
    else 0x20
    for code in range(256)
)
"""Upper case ASCII to lower, ASCII that is no letter or digit to blanks, bytes of other characters as they are."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counted:
    """How often each spelling stands in each text, ordered by text.

    A spelling is what stands between ASCII blanks, in lower case: one word, or several of other scripts.
    """

    numbers: list[int]
    """A number of 64 bits for every spelling, the same in every call of this process; once save for an accident."""
    data: bytes
    spans: tuple[Ints, Ints]
    """Start and end of every spelling in `data`."""
    text_of: Ints
    """Number of the text, [n]."""
    spelling_of: Ints
    """Index into `numbers`, [n]."""
    counts: Ints

    def spelling(self, index: int) -> bytes:
        """Return the bytes (UTF-8) of the spelling `numbers[index]`."""
        return self.data[self.spans[0][index] : self.spans[1][index]]


def count_spellings(texts: Sequence[bytes]) -> Counted:
    """Return the spellings of all `texts` (UTF-8) with their counts in each.

    Two spellings are taken for one if their numbers meet: among a million, once in 30 million times; a search may err.
    """
    data = (b" " + b" ".join(texts) + b" " * (_STRIDE + 1)).translate(_BLANKS)
    starts, ends = _stretches(data)
    numbers, ends = _numbers(data, starts, ends)
    first, index = _distinct(numbers)
    # A text ends before the blank behind it
    borders = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) + 1)
    words = np.diff(np.searchsorted(starts, borders), prepend=0)
    small = len(texts) * len(first) < 1 << 31  # half the bytes sort in half the time
    text_of = np.repeat(np.arange(len(texts), dtype=np.int32 if small else np.int64), words)
    keys = np.sort(text_of * np.asarray(len(first), dtype=text_of.dtype) + index.astype(text_of.dtype))
    changes = np.flatnonzero(np.diff(keys, prepend=-1))
    pairs = keys[changes].astype(np.int64)
    counts = np.diff(changes, append=len(keys))
    text, spelling = np.divmod(pairs, max(1, len(first)))
    return Counted(numbers[first].tolist(), data, (starts[first], ends[first]), text, spelling, counts)


def _distinct(numbers: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """The first place of each distinct number, and for each number [n] which of them it is.

    The place is packed into the low bits: a plain sort is twice as fast as one that returns the order. Two
    numbers that differ in the low bits only may come out in turns, that is, more than once each.
    """
    low = np.uint64((1 << len(numbers).bit_length()) - 1)
    packed = np.sort(numbers & ~low | np.arange(len(numbers), dtype=np.uint64))
    order = (packed & low).astype(np.int64)
    ordered = numbers[order]
    changed = np.ones(len(ordered), dtype=bool)
    changed[1:] = ordered[1:] != ordered[:-1]
    index = np.empty(len(numbers), dtype=np.int64)
    index[order] = np.cumsum(changed) - 1
    return order[changed], index


def _stretches(data: bytes) -> tuple[Ints, Ints]:
    """Starts and ends of what stands between blanks; `data` begins and ends with one."""
    blank = np.frombuffer(data, dtype=np.uint8) == 0x20
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    return edges[::2], edges[1::2]


def _numbers(data: bytes, starts: Ints, ends: Ints) -> tuple[NDArray[np.uint64], Ints]:
    """A number for each stretch, the same for the same bytes, and the ends with long ASCII words cut."""
    eight = np.ndarray((len(data) - _STRIDE + 1,), dtype="<u8", buffer=data, strides=(1,))
    lengths = ends - starts
    numbers = (eight[starts] & _FIRST[np.minimum(lengths, _STRIDE)]) ^ lengths.astype(np.uint64) << np.uint64(56)
    numbers *= _FACTORS[0]
    numbers ^= numbers >> np.uint64(29)
    rest = np.arange(len(starts))
    for turn in range(1, LONGEST_WORD // _STRIDE):
        at = turn * _STRIDE
        rest = rest[lengths[rest] > at]
        part = eight[starts[rest] + at] & _FIRST[np.minimum(lengths[rest] - at, _STRIDE)]
        mixed = (numbers[rest] ^ part) * _FACTORS[turn]
        numbers[rest] = mixed ^ mixed >> np.uint64(32)
    ends = ends.copy()
    for i in np.flatnonzero(lengths > LONGEST_WORD).tolist():
        piece = data[starts[i] : ends[i]]
        if piece.isascii():
            piece = piece[:LONGEST_WORD]
            ends[i] = starts[i] + LONGEST_WORD
        numbers[i] = hash(piece) & 0xFFFF_FFFF_FFFF_FFFF
    return numbers, ends
