"""Whether sources support a statement, such as a sentence of a written summary.

The core's order names the sentences that may support it; those that together hold most
of its words are the evidence, and a logistic over what they hold decides. Where the
nearest says nearly the same in the same words, no difference is let pass: another
number, another name, names in each other's place, a negation more or less. Not for:
quotations, where each word counts."""

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats, TermIndex, rarity
from pipeline.reading.relevance import Relevance
from pipeline.text.words import (
    index_terms,
    raw_words,
    whole_words,
    words,
)

SUPPORTING_SENTENCES: Final = 4
"""Sentences that together may support a statement."""
GAIN: Final = 0.05
"""Least share of a statement's words that a further sentence must bring."""
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
_NEGATION: Final = whole_words(words("negation"))
_PASSIVE: Final = whole_words(words("negation.turned"))
"""Words that invert a sentence, so that exchanged names mean the same."""


def supports(statement: Question, texts: Sequence[str], relevance: Relevance) -> bool:
    """Return whether the units `texts` [units], in the order of `relevance` for this
    statement, support it; at most `SUPPORTING_SENTENCES` of them are used."""
    if not texts:
        return False
    language, text = statement.language, statement.text
    held, weights = _held(statement, relevance.index)
    rows = _chosen(held, weights, relevance.values)
    if _contradicts(text, texts[rows[0]], language):
        return False
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
    return float(np.dot(_WEIGHTS[relevance.cosines is not None], found)) >= 0


def _held(statement: Question, index: TermIndex) -> tuple[NDArray[np.bool_], Floats]:
    """Return which of the statement's terms each unit contains [units, terms], and
    their weights (sum 1)."""
    held = (index.counts(index.terms(statement))[0] > 0).T
    weights = rarity(np.maximum(held.sum(axis=0), 2), max(index.size, 3))
    return held, np.asarray(weights / max(float(weights.sum()), 1e-9), dtype=np.float32)


def _chosen(held: NDArray[np.bool_], weights: Floats, values: Floats) -> list[int]:
    """Return the rows that bear on a statement, each for the words that those before it
    lack."""
    rows = [int(np.argmax(values + held @ weights))]
    while len(rows) < min(SUPPORTING_SENTENCES, len(values)):
        new = (held & ~held[rows].any(axis=0)) @ weights
        # Of two sentences with the same words the one that the core puts first.
        gains = new + 0.3 * values
        gains[rows] = -1.0
        best = int(np.argmax(gains))
        if new[best] < GAIN:
            break
        rows.append(best)
    return rows


def _contradicts(statement: str, sentence: str, language: str) -> bool:
    """Return whether a sentence of nearly the same words says something else."""
    stated, said = _every_term(statement, language), _every_term(sentence, language)
    mine, theirs = set(_numbers(statement)), set(_numbers(sentence))
    names, others = _names(statement, language), _names(sentence, language, first=True)
    # What may differ is left aside: a short sentence with one number changed shares few words else.
    denials = _NEGATION.findall(statement.lower())
    aside = (_every_term(one, language) for one in (*mine, *denials))
    rest = stated.difference(*aside, *names.values())
    if len(rest & said) < LIKE_SHARE * len(rest) or not rest:
        return False
    other_name = not all(terms <= said for terms in names.values()) and not all(
        terms <= stated for terms in others.values()
    )
    denied = bool(denials) != bool(_NEGATION.search(sentence.lower()))
    if (mine - theirs and theirs - mine) or other_name or denied:
        return True
    return stated <= said and _exchanged(statement, sentence, language)


def _every_term(text: str, language: str) -> set[str]:
    """Return the terms of a text, those of stop words among them."""
    return set(index_terms(text, language=language, keep_stop_words=True))


def _exchanged(statement: str, sentence: str, language: str) -> bool:
    """Return whether two names are in each other's place; False where one of the two
    texts is in the passive."""
    if bool(_PASSIVE.search(statement.lower())) != bool(
        _PASSIVE.search(sentence.lower())
    ):
        return False
    shared = [
        name for name in _names(statement, language, first=True) if name in sentence
    ]
    return any(
        (statement.find(one) < statement.find(other))
        != (sentence.find(one) < sentence.find(other))
        for one, other in combinations(shared, 2)
    )


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
