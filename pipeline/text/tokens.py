"""The one token counter: every budget, every `tokens` figure and every cut in Winnow counts with it.

A caller's model has its own tokenizer, which we cannot know, so this counts by rule: runs of characters of one class
cost a whole number by class and length. The rule follows cl100k_base within a few per cent (figures below), needs no
file, is the same on every machine, and is additive: texts joined by line breaks cost the sum of their counts plus one
a run of breaks (as long as they do not begin or end with blanks). Not for: a model's own context limit, which its
backend counts.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

# How closely, measured over the real texts in ../shared/data as the ratio of this count to cl100k_base (docs/log.md):
# English prose 1.01, papers 0.99, web text 1.07, raw HTML 1.11, Russian 1.01, Chinese 0.92, German 0.84.
_SPACE, _BREAK, _LATIN, _ACCENTED, _DIGIT, _PUNCT, _GREEK_CYRILLIC, _HAN, _KANA, _HANGUL, _OTHER = range(11)
_LONGEST = 4096
"""Runs are costed by table up to this length; longer ones are cut there."""


def _class_table() -> NDArray[np.uint8]:
    table = np.full(0x110000, _OTHER, dtype=np.uint8)
    table[0x00:0x80] = _PUNCT
    table[0x80:0xC0] = _PUNCT
    table[0x2000:0x2E80] = _PUNCT
    table[0x3000:0x3040] = _PUNCT
    table[0xFF00:0xFF21] = _PUNCT
    for code in (0x09, 0x0C, 0x20, 0xA0, 0x3000):
        table[code] = _SPACE
    table[0x0A] = table[0x0D] = table[0x2028] = table[0x2029] = _BREAK
    table[ord("0") : ord("9") + 1] = _DIGIT
    table[ord("A") : ord("Z") + 1] = _LATIN
    table[ord("a") : ord("z") + 1] = _LATIN
    table[0xC0:0x250] = _ACCENTED
    table[0x370:0x530] = _GREEK_CYRILLIC
    table[0x3040:0x3100] = _KANA
    table[0x3400:0xA000] = _HAN
    table[0x20000:0x32000] = _HAN
    table[0xAC00:0xD7B0] = _HANGUL
    return table


def _cost_table() -> NDArray[np.int64]:
    n = np.arange(_LONGEST + 1)
    cost = np.zeros((11, _LONGEST + 1), dtype=np.int64)
    cost[_SPACE] = n > 1
    cost[_BREAK] = 1
    cost[_LATIN] = 1 + (n - 1) // 8
    cost[_ACCENTED] = n + 1
    cost[_DIGIT] = (n + 2) // 3
    cost[_PUNCT] = 1 + (n - 1) // 3
    cost[_GREEK_CYRILLIC] = 1 + (n - 1) // 2
    cost[_HAN] = n + n // 4
    cost[_KANA] = n
    cost[_HANGUL] = n + n // 5
    cost[_OTHER] = n
    cost[:, 0] = 0
    return cost


_CLASSES: Final = _class_table()
_COSTS: Final = _cost_table()


def _runs(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts of the runs, in code points with the text's length appended, and the cost of each run."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    classes = _CLASSES[codes]
    edges = np.flatnonzero(classes[1:] != classes[:-1]) + 1
    starts = np.concatenate(([0], edges, [len(codes)]))
    lengths = np.minimum(np.diff(starts), _LONGEST)
    return starts, _COSTS[classes[starts[:-1]], lengths]


def count_tokens(text: str) -> int:
    """Return the number of tokens in `text`; 0 for the empty text."""
    if not text:
        return 0
    return int(_runs(text)[1].sum())


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
    starts, costs = _runs(text)
    kept = int(np.searchsorted(np.cumsum(costs), max_tokens, side="right"))
    return text if kept == len(costs) else text[: int(starts[kept])].rstrip()
