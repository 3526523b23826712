"""Whether a question asks for what is chosen among others: the first, the least, the most.

Not for: which rows that is (`pipeline/reading/extract.py`)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pipeline.text.words import meanings, whole_words, words

_END_WORDS: Final = whole_words(words("choosing.ends"))
_LEAST_WORDS: Final = whole_words(words("choosing.least"))
_MOST_WORDS: Final = whole_words(words("choosing.most"))
"""Superlatives of both directions; ambiguous ones (`le plus petit`, `самый`) are in
both."""
_MEASURE_WORDS: Final = meanings("choosing.measures")
"""What the column is called whose extreme a word means."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a request's words choose by."""

    ends: bool
    least: bool
    most: bool
    measures: str = ""
    """Names of columns that the words mean."""

    def __bool__(self) -> bool:
        return self.ends or self.least or self.most


def read_choice(request: str, words_written: Iterable[str]) -> Choice:
    """Return what the words of `request`, which are `words_written`, choose by."""
    text = request.lower()
    ends, least, most = (
        side.search(text) is not None
        for side in (_END_WORDS, _LEAST_WORDS, _MOST_WORDS)
    )
    # German words end in n, too
    forms = {
        form
        for word in map(str.lower, words_written)
        for form in (word, word.removesuffix("n"))
    }
    measures = (_MEASURE_WORDS[word] for word in forms & _MEASURE_WORDS.keys())
    return Choice(ends, least, most, " ".join(measures))
