"""The one token counter: every budget, every `tokens` figure and every cut in Winnow counts with it.

A caller's model has its own tokenizer, which we cannot know, so this counts nearly what a text costs by OpenAI's
cl100k_base, without its merges: a table says how often a token begins at a character, by the character before it and
by where in a word it stands, and a set of bits says which words are one token. Both are fitted (`train/tokens.py`). It
is the same on every machine, and additive: texts joined by line breaks cost the sum of their counts plus one a run of
breaks (as long as they do not begin or end with blanks). Not for: a model's own context limit, which its backend
counts.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
TABLE: Final = Path(__file__).with_name("tokens.npz")
WHOLE: Final = 256
"""What one token is in the table."""
STATES: Final = 15
"""Where a character stands: outside a word 0; first in a known word 1, in another 11; further in a known one 6, in
another behind a blank 2 to 5 by its place, behind a sign 7 to 10; second and third of three digits 13 and 14, fourth
12."""
LONGEST_WORD: Final = 63
"""Letters behind which all places of a word are alike."""
_BREAKS: Final = (0x0A, 0x0D, 0x2028, 0x2029)
_LETTERS: Final = "äöüßéèáíóñçàâêôабвгдежзийклмнопрстуфхцчшщъыьэюя"
"""Letters beyond ASCII that are classes of their own."""
_RANGES: Final = (
    (0x80, 0xC0), (0xC0, 0x100), (0x100, 0x250), (0x250, 0x370), (0x370, 0x400), (0x400, 0x530), (0x530, 0x2000),
    (0x2000, 0x2070), (0x2070, 0x3000), (0x3000, 0x3040), (0x3040, 0x3100), (0x3100, 0x4E00), (0x4E00, 0xA000),
    (0xA000, 0xAC00), (0xAC00, 0xD7B0), (0xD7B0, 0xFF00), (0xFF00, 0x10000), (0x10000, 0x110000),
)  # fmt: skip
"""Characters that are one class each, but for `_LETTERS`."""
BREAK: Final = 0
_ALPHABETS: Final = ((0x41, 0x5B), (0x61, 0x7B), (0xC0, 0x250), (0x370, 0x530))
_OTHER, _BLANK, _DIGIT, _LETTER = range(4)
PIECE, PIECES = 1000, 25
"""Characters of a piece, and how many of them stand for a long text."""
_INNER: Final = np.array([2, 2, 3, 3, 4, 4, 4, 5], dtype=np.uint8)
"""State by the place in a word, from the first on."""


def _class_table() -> NDArray[np.uint8]:
    table = np.arange(0x110000, dtype=np.uint32).clip(max=0x7F).astype(np.uint8) + 1
    for number, (low, high) in enumerate(_RANGES, start=0x81):
        table[low:high] = number
    for number, letter in enumerate(_LETTERS, start=0x81 + len(_RANGES)):
        table[ord(letter)] = number
    table[list(_BREAKS)] = BREAK
    return table


def _kind_table() -> NDArray[np.uint8]:
    table = np.full(0x110000, _OTHER, dtype=np.uint8)
    for low, high in _ALPHABETS:
        table[low:high] = _LETTER
    table[[0xD7, 0xF7]] = _OTHER  # the signs of multiplication and division
    table[0x30:0x3A] = _DIGIT
    table[[0x09, 0x0C, 0x20, 0xA0, 0x3000]] = _BLANK
    return table


CLASSES: Final = 0x81 + len(_RANGES) + len(_LETTERS)
_CLASS: Final = _class_table()
_KIND: Final = _kind_table()
_POWERS: Final = np.array([pow(0x01000193, place, 1 << 32) for place in range(LONGEST_WORD + 1)], dtype=np.uint32)
_SPACED, _MIXED = np.uint32(0x9E3779B9), np.uint32(2654435761)
BITS: Final = 22
"""Of a word's hash; 71,000 words set 1.7 % of them, so that one unknown word in sixty passes for a known one."""


def word_hashes(codes: NDArray[np.uint32], places: Ints, starts: Ints, spaced: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return a hash of each word.

    Args:
        codes: One more than the code point of each letter [n].
        places: In the word [n].
        starts: Of the words [words].
        spaced: Whether a blank stands before it [words].
    """
    sums = np.add.reduceat(codes * _POWERS[np.minimum(places, LONGEST_WORD)], starts, dtype=np.uint32)
    return ((sums ^ (spaced * _SPACED)) * _MIXED) >> np.uint32(32 - BITS)


def _load() -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    with np.load(TABLE) as found:
        return found["begins"].ravel(), found["words"]


_BEGINS, _WORDS = _load()


def contexts(text: str, words: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32]]:
    """Return for each character its class and kind, and the entry of the table for where it stands [n].

    Args:
        text: Not empty.
        words: Bits of the hashes of words that are one token, packed.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    classes, kinds = _CLASS[codes], _KIND[codes]
    states = np.zeros(len(codes), dtype=np.uint8)
    digits, letters = np.flatnonzero(kinds == _DIGIT), np.flatnonzero(kinds == _LETTER)
    if len(digits):
        _, _, places = _runs_of(digits)
        states[digits] = np.where(places == 0, 0, 12 + places % 3)
    if len(letters):
        states[letters] = _states_of(codes, classes, words, letters)
    entries = states.astype(np.int32) * CLASSES
    entries[1:] += classes[:-1]
    entries *= CLASSES
    entries += classes
    return classes, kinds, entries


def _runs_of(found: Ints) -> tuple[Ints, Ints, Ints]:
    """Return where runs of places that follow each other start, their lengths [runs], and each one's place in its."""
    starts = np.concatenate(([0], np.flatnonzero(np.diff(found) != 1) + 1))
    lengths = np.diff(starts, append=len(found))
    return starts, lengths, np.arange(len(found)) - np.repeat(starts, lengths)


def _states_of(
    codes: NDArray[np.uint32], classes: NDArray[np.uint8], words: NDArray[np.uint8], letters: Ints
) -> NDArray[np.uint8]:
    """Return the states of the characters that are letters."""
    starts, lengths, places = _runs_of(letters)
    begins = letters[starts]
    spaced = classes[begins - 1] == ord(" ") + 1
    spaced[0] &= begins[0] > 0
    hashes = word_hashes(codes[letters] + np.uint32(1), places, starts, spaced)
    known = (words[hashes >> 3] >> (7 - (hashes & 7)).astype(np.uint8)) & 1 == 1
    states = _INNER[np.minimum(places, len(_INNER) - 1)] + np.repeat(np.where(spaced, 0, 5).astype(np.uint8), lengths)
    states[np.repeat(known, lengths)] = 6
    states[starts] = np.where(known, 1, 11)
    return states


def _begun(text: str) -> tuple[Ints, Ints, NDArray[np.uint8]]:
    """Starts of the runs of breaks and of lines, with the text's length appended; what begins before each character.

    The third are the kinds of characters.
    """
    classes, kinds, entries = contexts(text, _WORDS)
    begun = np.zeros(len(classes) + 1, dtype=np.int64)
    np.cumsum(_BEGINS[entries], out=begun[1:])
    broken = classes == BREAK
    edges = np.flatnonzero(broken[1:] != broken[:-1]) + 1
    return np.concatenate(([0], edges, [len(classes)])), begun, kinds


def _costs(starts: Ints, begun: Ints, text: str) -> Ints:
    """Cost of each run: one for breaks, at least one for a line."""
    costs = np.maximum(1, _tokens(np.diff(begun[starts])))
    first = int(ord(text[0]) not in _BREAKS)
    costs[first::2] = 1
    return costs


def _tokens(begun: Ints) -> Ints:
    return (begun + WHOLE // 2) // WHOLE


def _runs(text: str) -> tuple[Ints, Ints]:
    starts, begun, _ = _begun(text)
    return starts, _costs(starts, begun, text)


def count_tokens(text: str) -> int:
    """Return the number of tokens in `text`; 0 for the empty text."""
    if not text:
        return 0
    return int(_runs(text)[1].sum())


def about_tokens(text: str) -> int:
    """Return about the number of tokens in a text, of a long one by pieces of it, for figures that bound nothing."""
    pieces = [text[start : start + PIECE] for start in range(0, len(text), max(PIECE, len(text) // PIECES))]
    return sum(map(count_tokens, pieces)) * len(text) // max(1, sum(map(len, pieces)))


def count_each(texts: Sequence[str]) -> list[int]:
    """Return `count_tokens` of each text, counted in one go; the texts must not begin or end with blanks."""
    if not texts:
        return []
    starts, costs = _runs("\n".join(texts))
    total = np.concatenate(([0], np.cumsum(costs)))
    ends = np.cumsum([len(text) + 1 for text in texts]) - 1
    begins = np.concatenate(([0], ends[:-1] + 1))
    first = np.searchsorted(starts, begins)
    last = np.searchsorted(starts, ends)
    return [int(count) for count in total[last] - total[first]]


def cut_to_tokens(text: str, max_tokens: int) -> str:
    """Return the longest prefix of whole runs (words, spaces, …) with at most `max_tokens` tokens, end trimmed."""
    if not text or max_tokens <= 0:
        return ""
    starts, begun, kinds = _begun(text)
    total = np.concatenate(([0], np.cumsum(_costs(starts, begun, text))))
    run = int(np.searchsorted(total, max_tokens, side="right")) - 1
    if run == len(starts) - 1:
        return text
    # Of the first run that does not fit, the words that do.
    low, high = int(starts[run]), int(starts[run + 1])
    cuts = low + 1 + np.flatnonzero(kinds[low + 1 : high] != kinds[low : high - 1])
    room = max_tokens - int(total[run])
    fitting = np.searchsorted(np.maximum(1, _tokens(begun[cuts] - begun[low])), room, side="right")
    return text[: int(cuts[fitting - 1]) if fitting else low].rstrip()
