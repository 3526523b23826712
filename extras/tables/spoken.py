"""What the words of a question ask of tables: to choose, compare, count or add, with
their numbers and months.

Not for: which table, columns and rows they mean (`asked.py`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pipeline.question.question import Question
from pipeline.tables.query import Operator
from pipeline.tables.table import name_terms
from pipeline.text.months import AskedMonth, coded, months_in
from pipeline.text.words import (
    index_terms,
    meanings,
    translated,
    whole_words,
    words,
)

_CONDITION_WORD: Final = re.compile(
    r"\d[\d.,:]*\d|[^\W_]+(?:['’][^\W\d_]+)?|[<>!]=|<>|[<>=≤≥≠%€$£✓✗]"
)
_COMPARISONS: Final[dict[str, Operator]] = {
    "<": "<",
    "<=": "<=",
    "≤": "<=",
    ">": ">",
    ">=": ">=",
    "≥": ">=",
}
"""Signs before a number, as `_COMPARING`."""
_UNEQUAL: Final = frozenset({"!=", "<>", "≠"})
_COMPARING: Final[tuple[tuple[str, Operator], ...]] = (
    ("tables.most", "<="),
    ("tables.least", ">="),
    ("tables.below", "<"),
    ("tables.above", ">"),
)
"""Sections of words before a number and what they ask of it; the first match
applies."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the question."""

    text: str
    stem: str
    """Its index term, a month's short form as its whole name; stop words have one
    too."""
    start: int
    says: bool
    """Whether it is not a stop word."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A number of the question and what is asked of it: `under 50`."""

    operator: Operator
    number: int
    """The number's place among the tokens."""
    words: range
    """Places of the words, or the sign, that compare."""
    signed: bool = False
    """Whether it is a sign, whose column is named right before it: `population >
    10000`."""


@dataclass(slots=True)
class Spoken:
    """What the words of a question ask of a table."""

    tokens: tuple[Token, ...]
    language: str
    least: set[int] = field(default_factory=set)
    """Places of words that ask for the least; those for the most, and of the others,
    likewise."""
    most: set[int] = field(default_factory=set)
    total: set[int] = field(default_factory=set)
    mean: set[int] = field(default_factory=set)
    count: set[int] = field(default_factory=set)
    negated: set[int] = field(default_factory=set)
    compared: tuple[Compared, ...] = ()
    months: tuple[AskedMonth, ...] = ()
    place: int = 1
    """2 for the second least or most."""
    rows: int = 1
    """How many of the least or most are asked for."""
    ranks: set[int] = field(default_factory=set)
    """Places of the words that say `place` or `rows`."""

    @property
    def asks(self) -> bool:
        """Whether it chooses, compares, counts or adds."""
        return bool(
            self.least | self.most | self.total | self.mean | self.count | self.negated
            or self.compared
        )

    @property
    def asks_both(self) -> bool:
        """Whether it asks for the least and for the most, in different words."""
        return bool(self.least and self.most and not self.least & self.most)

    @property
    def operating(self) -> set[int]:
        """Places of the words that say what is to be done."""
        compared = {index for one in self.compared for index in one.words}
        chosen = self.least | self.most | self.ranks
        return chosen | self.total | self.mean | self.count | self.negated | compared


def translated_for(question: Question, language: str) -> str:
    """Return a question in the words of a page's language, its months too."""
    own = question.spoken
    if own == language:
        return question.text
    dated = coded(question.text, frozenset((own, language)))
    return translated(dated, own, language)


def read_question(question: str, language: str) -> Spoken:
    """Return what the words of a question ask of tables of a language."""
    lowered = question.lower()
    tokens = tokens_of(question, language)
    spoken = Spoken(
        tokens, language, months=tuple(months_in(question, frozenset((language,))))
    )
    spoken.compared = _compared(lowered, tokens)
    taken = {index for one in spoken.compared for index in one.words}
    spoken.least = _indexes(lowered, tokens, "choosing.least") - taken
    spoken.most = _indexes(lowered, tokens, "choosing.most") - taken
    spoken.total = _indexes(lowered, tokens, "tables.sum")
    spoken.mean = _indexes(lowered, tokens, "tables.mean")
    count = _indexes(lowered, tokens, "tables.count")
    spoken.count = set() if count & spoken.total else count
    spoken.negated = _indexes(lowered, tokens, "tables.not") - taken
    spoken.negated |= {
        index for index, token in enumerate(tokens) if token.text in _UNEQUAL
    }
    _rank(spoken)
    return spoken


@lru_cache(maxsize=20_000)
def tokens_of(text: str, language: str) -> tuple[Token, ...]:
    """Return the words of a text."""
    return tuple(_token(found, language) for found in _CONDITION_WORD.finditer(text))


def _token(found: re.Match[str], language: str) -> Token:
    text = found[0]
    stems = name_terms(text, language)
    stem = " ".join(stems) or text.lower()
    return Token(
        text,
        stem,
        found.start(),
        bool(index_terms(text, language=language)) or not text.isalpha(),
    )


@lru_cache(maxsize=32)
def _pattern(section: str) -> re.Pattern[str]:
    return whole_words(words(section))


def _indexes(lowered: str, tokens: Sequence[Token], section: str) -> set[int]:
    return {
        index
        for found in _pattern(section).finditer(lowered)
        for index in _places(found, tokens)
    }


def _places(found: re.Match[str], tokens: Sequence[Token]) -> list[int]:
    """Return the places of the words that begin within what was found."""
    start, end = found.span()
    return [at for at, token in enumerate(tokens) if start <= token.start < end]


def _compared(lowered: str, tokens: Sequence[Token]) -> tuple[Compared, ...]:
    """Return each number that words compare with, a currency or a short word between
    them at most."""
    found: dict[int, Compared] = {}
    spent: set[int] = set()
    for section, operator in _COMPARING:
        for match in _pattern(section).finditer(lowered):
            own = _places(match, tokens)
            after = own[-1] + 1 if own else len(tokens)
            near = range(after, min(after + 2, len(tokens)))
            number = next((at for at in near if tokens[at].text[0].isdigit()), None)
            if number is not None and number not in found and spent.isdisjoint(own):
                found[number] = Compared(operator, number, range(own[0], after))
                spent |= set(own)
    for index, token in enumerate(tokens[:-1]):
        if token.text in _COMPARISONS and tokens[index + 1].text[0].isdigit():
            signed = Compared(
                _COMPARISONS[token.text],
                index + 1,
                range(index, index + 1),
                signed=True,
            )
            found.setdefault(index + 1, signed)
    return tuple(found.values())


def _rank(spoken: Spoken) -> None:
    """Read `second highest` and `three cheapest`, whose words are adjacent.

    Of several the last one counts."""
    ordinals, numbers = meanings("tables.ordinals"), meanings("tables.numbers")
    for chosen in sorted(spoken.least | spoken.most):
        before = spoken.tokens[chosen - 1] if chosen else None
        said = before.text.lower() if before else ""
        if said in ordinals:
            spoken.place, spoken.ranks = int(ordinals[said]), {chosen - 1}
        elif said in numbers or (said.isdigit() and len(said) < 3):
            spoken.rows, spoken.ranks = int(numbers.get(said, said)), {chosen - 1}


def said_of(section: str, tokens: Iterable[Token]) -> str:
    """Return what the entries of a section say of some words, "" where they say
    nothing."""
    known = meanings(section)
    spoken = [token.text.lower() for token in tokens]
    # German words end in n, too
    forms = dict.fromkeys(
        form for word in spoken for form in (word, word.removesuffix("n"))
    )
    return " ".join(known[form] for form in forms if form in known)
