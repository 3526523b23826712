"""The number or date with which each of several sources answers a question, where they
differ: `60 crowns`, `65 crowns`.

A value is taken only where it is sure. It follows a word of the question with nothing
but stop words between; its unit of text has every other word, and its page every name,
of the question. A cross-encoder takes the unit for an answer. Not for: names that
differ, and whether a statement is contradicted (`papers/raptor/statements.py`)."""

import re
from collections.abc import Iterator, Sequence, Set
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
    kind: str
    """`date`, `time`, or the sign or stem of the word beside a number."""
    figures: frozenset[int]
    """Its numbers, and its month below zero: the same in every form."""

    def differs(self, other: "Value") -> bool:
        """Whether both cannot be the same: `May 2012` and `1 May 2012` may."""
        return not (self.figures <= other.figures or other.figures <= self.figures)


def differing_values(
    question: Question, texts: Sequence[str], relevance: Relevance, scores: Floats
) -> tuple[Value, ...]:
    """Return the values of pages with units `texts` that differ, best by `scores`
    [units] before others and all of the kind of the best; none for fewer than two."""
    differing: list[Value] = []
    values = _values(question, texts, relevance, scores)
    for value in sorted(values, key=lambda value: -scores[value.row]):
        if all(value.kind == one.kind and value.differs(one) for one in differing):
            differing.append(value)
    return tuple(differing) if len(differing) > 1 else ()


def _values(
    question: Question, texts: Sequence[str], relevance: Relevance, scores: Floats
) -> Iterator[Value]:
    """Yield the value of each page that surely has one."""
    if relevance.read is None or question.choice:
        return
    index = relevance.index
    dated = _ASKS_DATE.search(question.text.lower()) is not None
    # 1. Names may be anywhere on a page; a unit of text has the other words and numbers
    names = index.names(question)
    names = {name: names[name] for name in names if name.isalpha()}
    aside = ASKING.union(*(Question(name).terms() for name in names))
    asked = [
        forms for forms in index.terms(question) if aside.isdisjoint(forms.values())
    ]
    sure = (np.add(*index.counts(asked)) > 0).all(axis=0)
    sure &= (scores >= WORTH) & (relevance.read >= LEAST_READ)
    # 2. Of each page the best unit with a value of the kind that is asked for
    pages = zip(index.languages, pairwise(index.page_starts.tolist()), strict=True)
    for language, (low, high) in pages:
        terms = {forms[language] for forms in asked}
        named = all(rows[:, low:high].any(axis=1).all() for rows in names.values())
        for row in low + np.argsort(-scores[low:high], kind="stable")[:UNITS_OF_SOURCE]:
            values = list(_after(terms, int(row), texts[row], language))
            alike = not any(value.differs(values[0]) for value in values)
            if (
                named
                and sure[row]
                and values
                and alike
                and (values[0].kind in {"date", "time"}) == dated
            ):
                yield values[0]
                break


def _after(terms: Set[str], row: int, text: str, language: str) -> Iterator[Value]:
    """Yield the values in a text that follow one of `terms`."""
    for match in _pattern().finditer(text):
        number, month = match["value"], month_named(match["value"])
        before = text[: match.start()].rpartition(";")[2]
        if terms.isdisjoint(index_terms(before, language=language)[-1:]):
            continue
        if not month and not FIGURE.fullmatch(number):
            continue
        digits = re.findall(r"\d+", re.sub(r",(?=\d{3})", "", number))
        figures = frozenset({-month} - {0} | set(map(int, digits)))
        if month or _BARE_YEAR.fullmatch(number):
            yield Value(row, number, "date", figures)
        elif ":" in number:
            yield Value(row, number, "time", figures)
        else:
            beside = re.findall(r"[$€£¥%°]", match[0]) or index_terms(
                match["word"] or "", language=language
            )
            yield Value(row, match[0] if beside else number, "".join(beside), figures)


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of numbers and months next to each other, with the sign before
    them and the sign or word after them."""
    piece = rf"(?:{FIGURE.pattern}|(?:{any_of(month_numbers())})\b)"
    return re.compile(
        rf"(?<![\w.])(?:[$€£¥] ?)?(?P<value>{piece}(?:(?:st|nd|rd|th)?[ ,.]{{1,2}}{piece})*)"
        r"(?!\d|(?:st|nd|rd|th)\b)(?: ?(?:[%°€$£¥]|(?P<word>[^\W\d_]+)))?",
        re.IGNORECASE,
    )
