"""Questions about a text as a whole: "Summarise the workflows document", "What is this about?".

Not for: what such a question is answered with (`pipeline/raptor/overview.py`).
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from pipeline.text.words import languages, raw_words, whole_words, words

_TITLE_PART_LETTERS: Final = 3
"""Letters of a question's word from which it may be a part of a title's word: `git workflows`,
`gitworkflows`."""


def is_broad(question: str, titles: Sequence[str] = ()) -> bool:
    """Whether a question is about a text as a whole: it asks for that, and no word of it narrows
    that down.

    It asks by a word such as "summary", or by "what" together with a word for the text or what
    texts do. All of its words are of one language; they are in `pipeline/text/words/*.txt`,
    sections `whole.*`. Beside a word such as "summary" the words of `titles` narrow nothing down:
    they name the texts, also where a title has them only inside a longer word.
    """
    title_words = frozenset(
        word for title in titles for word in raw_words(title.lower())
    )
    return any(
        _asks_for_all(question.lower(), language, title_words)
        for language in languages()
    )


def _asks_for_all(text: str, language: str, title_words: frozenset[str]) -> bool:
    text, asks = _pattern("whole.asking", language).subn(" ", text)
    text, names = _pattern("whole.text", language).subn(" ", text)
    text, interrogatives = _pattern("whole.what", language).subn(" ", text)
    if not (asks or (names and interrogatives)):
        return False
    stops = words("stop", language) | words("whole.filler", language)
    narrowing = [
        word
        for word in raw_words(_pattern("whole.filler", language).sub(" ", text))
        if word not in stops
    ]
    return not narrowing or (
        bool(asks)
        and all(
            word in title_words or _is_part(word, title_words) for word in narrowing
        )
    )


def _is_part(word: str, title_words: frozenset[str]) -> bool:
    """Whether a word is a part of a title's word, as `workflows` is of `gitworkflows`."""
    return len(word) >= _TITLE_PART_LETTERS and any(
        word in title_word for title_word in title_words
    )


@cache
def _pattern(section: str, language: str) -> re.Pattern[str]:
    return whole_words(words(section, language))
