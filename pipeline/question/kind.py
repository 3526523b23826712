"""What kind of answer a question asks for: something whole, or what is chosen among
others.

Not for: which sections and rows that is (`pipeline/evidence/named.py`,
`pipeline/reading/extract.py`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from pipeline.text.words import is_cjk, meanings, whole_words, words

HEAD: Final = 30
"""Characters at the beginning of a question in which it says that it wants all of
something."""
_END_WORDS: Final = whole_words(words("choosing.ends"))
_LEAST_WORDS: Final = whole_words(words("choosing.least"))
_MOST_WORDS: Final = whole_words(words("choosing.most"))
"""Superlatives of both directions; ambiguous ones (`le plus petit`, `самый`) are in
both."""
_MEASURE_WORDS: Final = meanings("choosing.measures")
"""What the column is called whose extreme a word means."""


class WantedWhole(NamedTuple):
    """What a question wants whole."""

    all: bool
    """Every item of a list: "list the exit codes"."""
    sample: bool
    """An example, a listing, a script."""
    steps: bool
    """How something is done."""


def asked_whole(question: str, language: str, *, asks: bool) -> WantedWhole:
    """Return what a question wants whole, by the words of its language.

    One that `asks`, by a question word, about an example or about all of something
    ("Which line of the sample …") does not want it. All of something is looked for at
    its beginning only (`HEAD`)."""
    listing, sample, steps = _patterns(language)
    head = question if is_cjk(question) else question[:HEAD]
    how = steps.search(question) is not None
    return WantedWhole(
        all=not how and listing.search(head) is not None,
        sample=not asks and sample.search(question) is not None,
        steps=how,
    )


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(whole_words(words(f"asked.{kind}", language)).pattern, re.IGNORECASE)
        for kind in ("all", "sample", "steps")
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """What a request's words choose by."""

    ends: bool
    least: bool
    most: bool
    measures: str = ""
    """Names of columns that the words mean."""

    def __bool__(self) -> bool:
        """Whether they choose at all."""
        return self.ends or self.least or self.most


def read_choice(request: str, spoken: Iterable[str]) -> Choice:
    """Return what the words of `request`, which are `spoken`, choose by."""
    text = request.lower()
    ends, least, most = (
        side.search(text) is not None
        for side in (_END_WORDS, _LEAST_WORDS, _MOST_WORDS)
    )
    # German words end in n, too
    forms = {
        form
        for word in map(str.lower, spoken)
        for form in (word, word.removesuffix("n"))
    }
    known = (_MEASURE_WORDS[word] for word in forms & _MEASURE_WORDS.keys())
    return Choice(ends, least, most, " ".join(known))
