"""The number or date with which each of several sources answers a question, where they
differ: `60 crowns`, `65 crowns`.

A value is taken only where it is sure. It follows a word of the question with nothing
but stop words between; its unit of text has every other word, and its page every name,
of the question. A cross-encoder takes the unit for an answer. Not for: names that
differ, and whether a statement is contradicted (`papers/raptor/statements.py`)."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats
from pipeline.reading.relevance import WORTH, Relevance
from pipeline.reading.verdict import ASKING
from pipeline.text.months import month_named, month_numbers
from pipeline.text.words import FIGURE, any_of, index_terms, whole_words, words

LEAST_READ: Final = 0.05
"""Least probability, by a cross-encoder, of a unit that has a source's value."""
UNITS_OF_SOURCE: Final = 3
"""Units of a source, from its best, that may have its value."""
_ASKS_DATE: Final = whole_words(words("values.dated"))
"""Words that ask for a date or a time."""
_BARE_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d(?:-\d\d)*")


class Value(NamedTuple):
    """A number or date, and where it is."""

    row: int
    """Its unit of text, numbered through all documents."""
    text: str
    unit: str
    """`date`, `time`, or the word or sign beside a number; empty for none."""
    figures: frozenset[str]
    """Its numbers and its month, whatever their form."""

    def differs(self, other: "Value") -> bool:
        """Whether both cannot be the same: `May 2012` and `1 May 2012` may."""
        return not (self.figures <= other.figures or other.figures <= self.figures)


def differing_values(
    question: Question, texts: Sequence[str], relevance: Relevance, scores: Floats
) -> tuple[Value, ...]:
    """Return the values of pages with units `texts` that differ, best by `scores`
    [units] before others and all of the unit of the best; none for fewer than two."""
    differing: list[Value] = []
    read = relevance.read
    if read is not None and not question.choice:
        for value in sorted(
            _values(question, texts, relevance, read, scores),
            key=lambda one: -scores[one.row],
        ):
            if all(value.unit == one.unit and value.differs(one) for one in differing):
                differing.append(value)
    return tuple(differing) if len(differing) > 1 else ()


def _values(
    question: Question,
    texts: Sequence[str],
    relevance: Relevance,
    read: Floats,
    scores: Floats,
) -> Iterator[Value]:
    """Yield the value of each page that surely has one."""
    index = relevance.index
    names = {
        name: rows
        for name, rows in index.names(question).items()
        if not any(map(str.isdecimal, name))
    }
    named = {term for name in names for term in Question(name).terms()}
    asked = [
        forms
        for forms in index.terms(question)
        if not (ASKING | named).intersection(forms.values())
    ]
    sure = (np.add(*index.counts(asked)) > 0).all(axis=0)
    sure &= (scores >= WORTH) & (read >= LEAST_READ)
    dated = _ASKS_DATE.search(question.text.lower()) is not None
    for language, (low, high) in zip(
        index.languages, pairwise(index.page_starts.tolist()), strict=True
    ):
        if not all(rows[:, low:high].any(axis=1).all() for rows in names.values()):
            continue
        terms = {forms[language] for forms in asked}
        for row in low + np.argsort(-scores[low:high], kind="stable")[:UNITS_OF_SOURCE]:
            value = _value(int(row), texts[row], terms, language) if sure[row] else None
            if value is not None and (value.unit in {"date", "time"}) == dated:
                yield value
                break


def _value(row: int, text: str, terms: Collection[str], language: str) -> Value | None:
    """Return the value that follows one of `terms`; None for none, and for several."""
    values: list[Value] = []
    for match in _pattern().finditer(text):
        before = index_terms(
            text[: match.start()].rpartition(";")[2], language=language
        )
        if before and before[-1] in terms and (value := _read(row, match, language)):
            values.append(value)
    differ = any(value.differs(values[0]) for value in values)
    return values[0] if values and not differ else None


def _read(row: int, match: re.Match[str], language: str) -> Value | None:
    """Return a match of `_pattern` as a value; None for several numbers."""
    text, after = match["value"], match["after"] or ""
    figures = frozenset(str(int(digits)) for digits in re.findall(r"\d+", text))
    if figures and (month := month_named(text)):
        return Value(row, text, "date", figures | {f"month {month}"})
    if _BARE_YEAR.fullmatch(text):
        return Value(row, text, "date", figures)
    if not FIGURE.fullmatch(text):
        return None
    if ":" in text:
        return Value(row, text, "time", figures)
    word = "".join(index_terms(after, language=language))
    unit = match["sign"] or word or ("" if after.isalpha() else after)
    end = match.end("after" if unit and not match["sign"] else "value")
    number = re.sub(r",(?=\d{3})", "", text)
    return Value(row, match.string[match.start() : end], unit, frozenset({number}))


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of numbers and months next to each other, with the sign before
    them and the sign or word after them."""
    piece = rf"(?:{FIGURE.pattern}|(?:{any_of(month_numbers())})\b)"
    return re.compile(
        rf"(?<![\w.])(?:(?P<sign>[$€£¥]) ?)?(?P<value>{piece}(?:(?:st|nd|rd|th)?[ ,.]{{1,2}}{piece})*)"
        r"(?!\d|(?:st|nd|rd|th)\b)(?: ?(?P<after>[%°€$£¥]|[^\W\d_]+))?",
        re.IGNORECASE,
    )
