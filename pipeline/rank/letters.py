"""Groups of letters that a question shares with texts in another language: names, loan words, cognates.

`Temperatur`, `température` and `temperature` share `temp`, `empe`, `mper`; Cyrillic is written in Latin letters first.
Stemmed words find none of it. Not for: texts in the question's own language, where words tell more (`terms.py`).
"""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from pipeline.rank.fuse import Floats
from pipeline.text.words import fold
from pipeline.work import check_cancelled

GROUP: Final = 4
"""Letters of a group; 3 and 5 find as much."""
_WORD: Final = re.compile(rf"[^\W\d_]{{{GROUP},}}|\d{{2,}}")
_LATIN: Final = "a b v g d e e zh z i i k l m n o p r s t u f h ts ch sh sch y e yu ya"
_CYRILLIC: Final = str.maketrans(
    dict(zip("абвгдеёжзийклмнопрстуфхцчшщыэюя", _LATIN.split(), strict=True)) | {"ъ": "", "ь": ""}
)


def letter_groups(text: str) -> list[str]:
    """Return the distinct groups of `GROUP` letters in the words of `text`, and its numbers."""
    groups: dict[str, None] = {}
    for word in _WORD.findall(_latin(text)):
        whole = word.isdigit() or len(word) <= GROUP
        groups.update(dict.fromkeys([word] if whole else [word[i : i + GROUP] for i in range(len(word) - GROUP + 1)]))
    return list(groups)


def letter_counts(question: str, texts: Sequence[str]) -> Floats:
    """Return how often each of the question's groups stands in each text: [groups, texts]."""
    groups = letter_groups(question)
    counts = np.zeros((len(groups), len(texts)), dtype=np.float32)
    for place, text in enumerate(texts):
        check_cancelled()
        latin = _latin(text)
        counts[:, place] = [latin.count(group) for group in groups]
    return counts


def _latin(text: str) -> str:
    return fold(text.lower()).translate(_CYRILLIC)
