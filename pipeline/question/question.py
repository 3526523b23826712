"""`Question`: what is asked, analysed once for a whole call.

A tool makes it of the words that it was given and passes it on; every step reads its
language, its terms and its translations from it. Each is found when a step
first asks for it. Not for: pages and passages, whose language and terms are counted by
what indexes them (`pipeline/reading/bm25.py`)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from pipeline.question import kind, wants
from pipeline.text.words import (
    OTHER_SCRIPTS,
    UNDETERMINED,
    find_entities,
    guess_language,
    holds_letters,
    index_terms,
    raw_words,
    translated,
    whole_words,
    words,
)


def question_word(text: str, language: str) -> str:
    """Return the first question word of a text, empty where there is none."""
    match = whole_words(words("questions.words", language)).search(text.lower())
    return match[0] if match else ""


@dataclass(frozen=True)
class Question:
    """What is asked; equal to another of the same words.

    Without slots, since each property is found once and kept.
    """

    text: str
    """Without white space around it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.strip())

    def __bool__(self) -> bool:
        return bool(self.text)

    # Language and words

    @cached_property
    def spoken(self) -> str:
        """Its language (ISO 639-1), empty where nothing says."""
        return guess_language(self.text)

    @property
    def language(self) -> str:
        """The language whose rules and stemmer it is read by: its own, else English."""
        return self.spoken or "en"

    def spoken_to(self, languages: Collection[str]) -> str:
        """Return its language to pages in `languages`; `UNDETERMINED` where its letters
        say only that it is not theirs, empty where nothing says."""
        apart = bool(languages) and OTHER_SCRIPTS.issuperset(languages)
        unknown = apart and not self.spoken and holds_letters(self.text)
        return UNDETERMINED if unknown else self.spoken

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words as they are written, in order."""
        return tuple(raw_words(self.text))

    def terms(
        self, language: str = "", *, keep_stop_words: bool = False
    ) -> tuple[str, ...]:
        """Return its index terms in order, repeats kept, by the stemmer of `language`
        or of its own; see `index_terms`."""
        key = language or self.language, keep_stop_words
        if key not in self._terms:
            cut = index_terms(
                self.text, language=key[0], keep_stop_words=keep_stop_words
            )
            self._terms[key] = tuple(cut)
        return self._terms[key]

    @cached_property
    def _terms(self) -> dict[tuple[str, bool], tuple[str, ...]]:
        return {}

    def translated_to(self, language: str) -> "Question":
        """Return it as a page in `language` understands it; itself where no list of
        words helps."""
        if language not in self._translated:
            text = translated(self.text, self.spoken, language)
            self._translated[language] = self if text == self.text else Question(text)
        return self._translated[language]

    @cached_property
    def _translated(self) -> "dict[str, Question]":
        return {}

    @cached_property
    def entities(self) -> tuple[str, ...]:
        """Its names and unknown words, verbatim, in order, few."""
        return find_entities(self.text, language=self.spoken)

    # What answers it

    @cached_property
    def word(self) -> str:
        """Its first question word, empty where it has none."""
        return question_word(self.text, self.language)

    @cached_property
    def choice(self) -> kind.Choice:
        """What its words choose by: the first, the last, the least, the most."""
        return kind.read_choice(self.text, self.words)

    def freshness(self, today: date) -> wants.Freshness:
        """Return how recent results must be by the period that it names, else `any`."""
        return wants.freshness_of(self.text, today=today)


NOTHING = Question("")
"""What is asked where nothing is."""
