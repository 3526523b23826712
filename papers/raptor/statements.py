"""Whether sources support a statement: supported, contradicted (with what differs), or
not found.

The core's order names the sentences that may support it; those that together hold most
of its words are the evidence. A logistic over what they hold says whether they support
it. Where one of them says nearly the same in the same words, the difference is looked
at: another number, another name, names in each other's place, a negation more or less.
Not for: quotations, where each word counts."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats, TermIndex, rarity
from pipeline.reading.relevance import Relevance
from pipeline.text.words import (
    index_terms,
    meanings,
    raw_words,
    whole_words,
    words,
)

Support = Literal["supported", "contradicted", "not found"]
SUPPORTING_SENTENCES: Final = 4
"""Sentences that together may support a statement."""
GAIN: Final = 0.1
"""Least share of a statement's words that a further sentence must bring to be cited: F1
against people's evidence on WiCE .686, with .05 .670, with .15 .683; the best two by
BM25 .629."""
LIKE_SHARE: Final = 0.85
"""Share of a statement's words beside numbers and names that one sentence must have for
a difference to contradict; with less, more right statements are taken for wrong."""
_WEIGHTS: Final = {
    False: (-4.27, 3.69, 1.26, 1.09, 0.0),
    True: (-5.69, 3.48, 1.36, 0.82, 2.69),
}
"""Constant, words, numbers, names, cosine: without an embedder and with one. Logistic
regression on 348 dev claims of WiCE, supported against the rest; balanced accuracy .718
both, by eight-fold cross-validation .697 and .703."""
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_MEASURE: Final = re.compile(
    r"(\d+(?:[.,:]\d+)*)\s?(sq\.?\s|square\s)?([^\W\d_]+)(\^?2|²)?", re.IGNORECASE
)
"""A number with its unit, and what makes the unit one of area."""
_UNIT_WORDS: Final = meanings("units")
CELLS: Final = 16
"""Maximum words of a table row with one measure (`Max. depth: 213 m`); a longer one has
several."""
CLEAR: Final = 0.8
"""Most of the first unit's score that the second may have where a row shares no word
with a statement (`deep`, `Max. depth`): rows that measure something else come first
narrowly."""
_NEGATION: Final = whole_words(words("negation"))
_PASSIVE: Final = whole_words(words("negation.turned"))
"""Words that invert a sentence, so that exchanged names mean the same."""


@dataclass(frozen=True, slots=True)
class Supported:
    """Whether sources support a statement."""

    support: Support
    confidence: float
    """0..1 that the evidence supports it, by its words and meaning."""
    rows: tuple[int, ...]
    """Units that bear on it, the nearest first; numbered as in the relevance that was
    judged."""
    differs: tuple[str, str] = ("", "")
    """If contradicted: what the draft states and what the source has."""


def judge_statement(
    statement: Question, texts: Sequence[str], relevance: Relevance
) -> Supported:
    """Return whether the units `texts` [units], in the order of `relevance` for this
    statement, support it.

    No more than `SUPPORTING_SENTENCES` of them are used; without any it is `not found`."""
    if not texts:
        return Supported("not found", 0.0, ())
    language, text = statement.language, statement.text
    held, weights = _held(statement, relevance.index)
    rows, cited = _chosen(held, weights, relevance.values)
    # 1. Nearly the same words: return what differs
    differs = _difference(text, texts[rows[0]], language)
    if any(differs):
        return Supported("contradicted", 0.0, tuple(rows[:1]), differs)
    # 2. A table's row that measures it otherwise
    first, *others = np.argsort(-relevance.values, kind="stable")[:2].tolist()
    if held[first].any() or all(
        relevance.values[other] <= CLEAR * relevance.values[first] for other in others
    ):
        differs = _measured_else(text, texts[first])
    if any(differs):
        return Supported("contradicted", 0.0, (first,), differs)
    # 3. How much of it the sentences hold together
    together = " ".join(map(texts.__getitem__, rows))
    known = _every_term(together, language)
    numbers, names = _numbers(text), _names(text, language)
    found = (
        1.0,
        float(held[rows].any(axis=0) @ weights),
        _share(number in _numbers(together) for number in numbers),
        _share(terms <= known for terms in names.values()),
        float(np.nanmax(relevance.cosines)) if relevance.cosines is not None else 0.0,
    )
    total = float(np.dot(_WEIGHTS[relevance.cosines is not None], found))
    confidence = float(1.0 / (1.0 + np.exp(-total)))
    likelier: Support = "supported" if total >= 0 else "not found"
    return Supported(likelier, round(confidence, 3), tuple(rows[:cited]))


def _held(statement: Question, index: TermIndex) -> tuple[NDArray[np.bool_], Floats]:
    """Return which of the statement's terms each unit contains [units, terms], and
    their weights (sum 1)."""
    held = (index.counts(index.terms(statement))[0] > 0).T
    weights = rarity(np.maximum(held.sum(axis=0), 2), max(index.size, 3))
    return held, np.asarray(weights / max(float(weights.sum()), 1e-9), dtype=np.float32)


def _chosen(
    held: NDArray[np.bool_], weights: Floats, values: Floats
) -> tuple[list[int], int]:
    """Return the rows that bear on a statement, each for the words that those before it
    lack, and how many to cite."""
    rows = [int(np.argmax(values + held @ weights))]
    cited = 1
    while len(rows) < min(SUPPORTING_SENTENCES, len(values)):
        new = (held & ~held[rows].any(axis=0)) @ weights
        # Of two sentences with the same words the one that the core puts first.
        gains = new + 0.3 * values
        gains[rows] = -1.0
        best = int(np.argmax(gains))
        if new[best] < GAIN / 2:
            break
        cited += new[best] >= GAIN and cited == len(rows)
        rows.append(best)
    return rows, cited


def _difference(statement: str, sentence: str, language: str) -> tuple[str, str]:
    """Return what is stated and what a sentence of nearly the same words says instead;
    both empty where it says it, or shares too few words."""
    stated, said = _every_term(statement, language), _every_term(sentence, language)
    mine, theirs = _numbers(statement), _numbers(sentence)
    names, others = _names(statement, language), _names(sentence, language, first=True)
    # What may differ is left aside: a short sentence with one number changed shares few words else.
    denials = [found[0] for found in _NEGATION.finditer(statement.lower())]
    aside = (_every_term(one, language) for one in (*mine, *denials))
    rest = stated.difference(*aside, *names.values())
    if len(rest & said) < LIKE_SHARE * len(rest) or not rest:
        return ("", "")
    differ = (
        _first_of_each(
            (one for one in mine if one not in theirs),
            (one for one in theirs if one not in mine),
        ),
        _first_of_each(
            (name for name, terms in names.items() if not terms <= said),
            (name for name, terms in others.items() if not terms <= stated),
        ),
        _denied(statement, sentence),
    )
    found = next(filter(any, differ), ("", ""))
    if any(found) or not stated <= said:
        return found
    return _exchanged(statement, sentence, language)


def _first_of_each(stated: Iterable[str], said: Iterable[str]) -> tuple[str, str]:
    """Return the first of each, both empty where one of them has none."""
    found = next(iter(stated), ""), next(iter(said), "")
    return found if all(found) else ("", "")


def _denied(statement: str, sentence: str) -> tuple[str, str]:
    """Return the negation that one of the two texts has, in the order of statement and
    source; both empty where both or none have one."""
    denied = _NEGATION.search(statement.lower())
    denies = _NEGATION.search(sentence.lower())
    if bool(denied) == bool(denies):
        return ("", "")
    return (denied[0] if denied else "", denies[0] if denies else "")


def _every_term(text: str, language: str) -> set[str]:
    """Return the terms of a text, those of stop words among them."""
    return set(index_terms(text, language=language, keep_stop_words=True))


def _measured_else(statement: str, row: str) -> tuple[str, str]:
    """Return a measure that is stated and the one of the same unit in a table's row;
    both empty where it says it too, or is not such a row."""
    label, _, value = row.partition(": ")
    if len(raw_words(row)) > CELLS or _NUMBER.search(label):
        return ("", "")
    theirs = _measures(value)
    for unit, (number, written) in _measures(statement).items():
        if unit in theirs and number not in _numbers(value):
            return written, theirs[unit][1]
    return ("", "")


def _measures(text: str) -> dict[str, tuple[str, str]]:
    """Return unit to the first number with it: its value and its text."""
    found: dict[str, tuple[str, str]] = {}
    for measure in _MEASURE.finditer(text):
        if unit := _UNIT_WORDS.get(measure[3].lower(), ""):
            unit += "²" if measure[2] or measure[4] else ""
            found.setdefault(unit, (measure[1].replace(",", ""), measure[0]))
    return found


def _exchanged(statement: str, sentence: str, language: str) -> tuple[str, str]:
    """Return two names that are exchanged, in the order of statement and source.

    Both are empty where none are, or where one of the two is in the passive."""
    if bool(_PASSIVE.search(statement.lower())) != bool(
        _PASSIVE.search(sentence.lower())
    ):
        return ("", "")
    shared = [
        name for name in _names(statement, language, first=True) if name in sentence
    ]
    for one, other in combinations(shared, 2):
        if (statement.find(one) < statement.find(other)) != (
            sentence.find(one) < sentence.find(other)
        ):
            return f"{one} … {other}", f"{other} … {one}"
    return ("", "")


def _numbers(text: str) -> list[str]:
    return [number.replace(",", "") for number in _NUMBER.findall(text)]


def _names(text: str, language: str, *, first: bool = False) -> dict[str, set[str]]:
    """Return the capitalised words of a text with their terms; the first word only
    where `first`."""
    found = raw_words(text)
    named = [
        word
        for index, word in enumerate(found)
        if (index or first) and word[:1].isupper()
    ]
    return {
        word: terms
        for word in named
        if (terms := set(index_terms(word, language=language)))
    }


def _share(held: Iterable[bool]) -> float:
    found = list(held)
    return sum(found) / len(found) if found else 1.0
