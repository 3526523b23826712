"""The None gate: whether anything on the pages answers the request (zero-index §4.1), without a model that writes.

A logistic over five features that anybody can read off the page. What tells an answering page from others is mostly
lexical (notes/zeroindex §0.9); a plausible request about the page's own subject stays hard for it, and its figures
below say so. Not for: ordering sentences (`pipeline/extract/score.py`).
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.extract.choosing import CHOOSING
from pipeline.extract.lexical import Floats, TermIndex
from pipeline.extract.score import Scored
from pipeline.text.words import index_terms, raw_words

# Fitted by `python -m bench.extract --fit` on the half of ../shared/data/evidence called `tuned` and the sample
# library's dev questions; negatives are unanswerable questions, pages without the answering paragraph, and other pages.
# Order: constant, sentence, passage, pages, names, length, cosine.
_WITH_EMBEDDER: Final = (-7.99, 1.73, 1.46, 1.27, 3.11, 1.45, 2.37)
_WORDS_ONLY: Final = (-8.19, 2.47, 1.71, 1.52, 3.56, 2.07, 0.0)
THRESHOLD: Final = 0.2
"""Below it the answer is None. Set low: a false None loses the answer, while false evidence is read by a model that can
still say no. The operating point, held out, 100 requests of each of six sets (`python -m bench.extract --limit 100`):
false None .06; false evidence .06 on another request's page, .51 on the page whose answering paragraph was cut out."""
THRESHOLD_ELSEWHERE: Final = 0.15
"""The same where no page is in English: inflection and compounds hide words, so answering pages cover less (held-out
false None at 0.2: German .19, Chinese .13, Russian .10, English .06)."""

SURE: Final = 0.4
"""From here on the gate takes the request for answered. Between the threshold and this the sentences are shown with a
warning. Of the sample library's dev questions 9 of 60 answerable and 5 of 12 unanswerable ones lie below."""

_ASKING: Final = (
    "year date day time number name many much kind type sort jahr datum tag zahl name viel année date nombre nom año "
    "fecha número nombre год дата число имя сколько"
)
_ASKING_WORDS: Final = frozenset(_ASKING.split())
"""Words that say what kind of answer is wanted; a page that answers seldom repeats them."""
_LISTING: Final = {
    "en": "second third only total list listed chart table according next previous before after above below more less "
    "than same both consecutive ranked rank place placed amount average difference between other another besides "
    "either",
    "de": "zweite dritte schlechteste einzige liste tabelle nächste mehr weniger durchschnitt",
    "fr": "grand petit meilleur pire seul total liste tableau moyenne",
    "es": "mejor peor único única total lista tabla promedio",
    "ru": "лучший худший единственный список таблица",
}
_CHOOSING_WORDS: Final = frozenset(
    term
    for language in _LISTING
    for term in index_terms(f"{_LISTING[language]} {CHOOSING[language]}", language=language)
)
"""Words that choose among a table's rows or speak of it as one, which rows do not repeat. Left out where the pages hold
tables: 160 questions about tables of real pages, false None .19 -> .10 (66 of them held aside .20 -> .12), false
evidence on another page with tables .01 both (`python -m bench.extract`)."""
_FLOOR: Final = 0.3
"""Least weight of a word, as a share of the heaviest: common words count little, but they count."""
_BEST: Final = 3
"""Best sentences in which the cosine is looked for."""
_LONG: Final = 10
"""Words of a request from which on its length changes nothing: long requests are never covered whole."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the gate sees, each 0..1."""

    sentence: float
    """Share of the request's words, rare ones weighing more, in the best sentence with its headings."""
    passage: float
    """The same for the best passage of `PASSAGE` sentences."""
    pages: float
    """Share of the request's words that stand anywhere on the pages."""
    names: float
    """Share of its names and numbers that stand anywhere on the pages; 1 where it has none."""
    length: float
    """Words of the request over ten, at most 1."""
    cosine: float | None
    """Best cosine among the best sentences; None without an embedder that reads request and pages."""
    missing: tuple[str, ...]
    """Names and numbers of the request that stand nowhere on the pages."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says and why."""

    answered: bool
    sure: bool
    """Whether the confidence also reaches `SURE`; what lies between is shown, and said to be uncertain."""
    confidence: float
    """0..1; at least the threshold where `answered`."""
    reason: str


def judge(request: str, scored: Scored) -> Verdict:
    """Say whether the scored sentences answer `request`."""
    features = read_features(request, scored)
    confidence = confidence_of(features)
    seen = f"The best sentence holds {features.sentence:.0%} of the request's words, weighted by rarity"
    if features.cosine is not None:
        seen += f", and its closest meaning has cosine {features.cosine:.2f}"
    if features.missing:
        seen += f"; not on any page: {', '.join(features.missing[:5])}"
    answered = confidence >= (THRESHOLD if "en" in scored.index.languages else THRESHOLD_ELSEWHERE)
    return Verdict(answered, confidence >= SURE, round(confidence, 4), f"{seen}.")


def confidence_of(features: Features) -> float:
    """Return the logistic of the features, 0..1."""
    weights = _WORDS_ONLY if features.cosine is None else _WITH_EMBEDDER
    total = weights[0] + sum(weight * value for weight, value in zip(weights[1:], as_row(features), strict=True))
    return 1.0 / (1.0 + math.exp(-total))


def as_row(features: Features) -> tuple[float, ...]:
    """Return the features in the order of the weights."""
    return features.sentence, features.passage, features.pages, features.names, features.length, features.cosine or 0.0


def read_features(request: str, scored: Scored) -> Features:
    """Return what the gate sees of a request and its scored sentences."""
    index = scored.index
    terms = index.terms(request)
    usual = _ASKING_WORDS | _CHOOSING_WORDS if index.tabular else _ASKING_WORDS
    asked = [term for term in terms if not usual.intersection(term.values())] or terms
    own, above = index.counts(asked)
    held = (own + above) > 0
    anywhere = held.any(axis=1)
    weights = _weights(held)
    missing = _missing_names(request, index)
    return Features(
        sentence=float(_shares(weights, held).max()) if held.size else 0.0,
        passage=float(_shares(weights, index.in_passages(own, above)).max()) if held.size else 0.0,
        pages=float(anywhere.mean()) if len(asked) else 0.0,
        names=missing[1],
        length=min(len(asked), _LONG) / _LONG,
        cosine=_cosine(scored),
        missing=missing[0],
    )


def _shares(weights: Floats, held: Floats | NDArray[np.bool_]) -> Floats:
    """Weighted share of the words in each column.

    Not a matrix product, whose BLAS may warn of invalid values where there are none.
    """
    shares: Floats = (weights[:, None] * held).sum(axis=0)
    return shares


def _weights(held: NDArray[np.bool_]) -> Floats:
    """Weights of the words, summing to 1: idf, words that stand nowhere no heavier than those that stand twice."""
    total = held.shape[1]
    n = np.maximum(held.sum(axis=1), 2)
    idf = np.log1p((max(total, 3) - n + 0.5) / (n + 0.5)) if len(n) else np.zeros(0)
    idf = np.maximum(idf, _FLOOR * idf.max(initial=0.0))
    weights: Floats = (idf / idf.sum()).astype(np.float32) if idf.sum() > 0 else idf.astype(np.float32)
    return weights


def _missing_names(request: str, index: TermIndex) -> tuple[tuple[str, ...], float]:
    """Names and numbers of the request that stand nowhere, and the share that does stand somewhere."""
    words = raw_words(request)
    nouns_too = "de" in index.languages
    names = [
        word
        for place, word in enumerate(words)
        if any(c.isdecimal() for c in word) or (place > 0 and word[0].isupper() and (not nouns_too or word.isupper()))
    ]
    missing: list[str] = []
    asked = 0
    for name in dict.fromkeys(names):
        if not index_terms(name):
            continue
        asked += 1
        own, above = index.counts(index.terms(name))
        if not ((own + above) > 0).any(axis=1).all():
            missing.append(name)
    return tuple(missing), 1.0 - len(missing) / asked if asked else 1.0


def _cosine(scored: Scored) -> float | None:
    if scored.cosines is None:
        return None
    best = np.argsort(-scored.values, kind="stable")[:_BEST]
    known = scored.cosines[best]
    known = known[~np.isnan(known)]
    if not len(known):
        known = scored.cosines[~np.isnan(scored.cosines)]
    return float(known.max()) if len(known) else None
