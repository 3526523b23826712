"""Whether anything on the pages answers a question: answered, unsure or none (zero-index §4.1), by words and meaning.

A logistic over features that anybody can read off a page, taken page by page; the page that answers best decides. What
shares neither words nor meaning with a question cannot answer it; what shares either may. A plausible question about
the page's own subject stays hard, and the figures below say so. Not for: ordering units (`relevance.py`).
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipeline.documents import Verdict as Word
from pipeline.rank.fuse import Floats
from pipeline.rank.relevance import Relevance
from pipeline.rank.terms import TermIndex, Windows, window_sums
from pipeline.text.lexicon import languages, words
from pipeline.text.words import index_terms, raw_words

# Fitted by `python -m bench.extract --fit --limit 40` on the half of ../shared/data/evidence called `tuned`, the sample
# library's dev questions, and the dev part of the reader's questions with their twins; negatives besides are
# unanswerable questions, pages without the answering paragraph, and other pages.
# Order: constant, unit, window, page, names, length, cosine, root of what was read.
_WEIGHTS: Final = {
    (False, False): (-8.19, 2.47, 1.71, 1.52, 3.56, 2.07, 0.0, 0.0),
    (True, False): (-5.23, 2.64, 0.26, 0.28, 2.3, 0.96, 2.1, 0.0),
    (False, True): (-4.69, 1.55, -0.28, 0.62, 1.81, -0.03, 0.0, 4.2),
    (True, True): (-5.02, 1.83, -0.57, 0.17, 1.81, -0.11, 1.46, 4.06),
}
"""By whether there are cosines, and a cross-encoder. Words alone are fitted without the written questions, which share
few with their answers."""
SURE: Final = 0.5
"""Confidence from which a question is taken for answered: .73 of 396 written questions of sites that the reader was
not trained on, .29 of their 304 almost-answered twins, .015 of 198 on other pages; .4 gives .81, .39, .03."""
NONE: Final = 0.12
"""Confidence below which nothing answers, where the meaning says so too."""
NEAR: Final = 0.34
"""Cosine from which a window is near enough in meaning that the answer is never None. With both, .02 of the written
questions are None on their own page and .73 on another; at .2 and .26 .03 and .77, at .2 and .34 .04 and .88."""

_ASKING: Final = words("verdict.asking")
"""Words that say what kind of answer is wanted; a page that answers seldom repeats them."""
_CHOOSING: Final = frozenset(
    term
    for language in languages()
    for side in ("ends", "least", "most", "listing")
    for word in words(f"choosing.{side}", language)
    for term in index_terms(word, language=language)
)
"""Terms of words that choose among a table's rows, which rows do not repeat; left out where pages hold tables."""
_FLOOR: Final = 0.3
"""Least weight of a word, as a share of the heaviest: common words count little, but they count."""
_LONG: Final = 10
"""Words of a question from which on its length changes nothing: long questions are never covered whole."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the verdict sees of one page, each 0..1."""

    unit: float
    """Share of the question's words, rare ones weighing more, in the best unit with what stands above it."""
    window: float
    """The share in the best window of some 80 tokens."""
    page: float
    """Share of the question's words that stand anywhere on the page."""
    names: float
    """Share of its names and numbers that stand on the page; 1 where it has none."""
    length: float
    """Words of the question over ten, at most 1."""
    cosine: float | None
    """Best cosine of a window; None without an embedder that reads question and page."""
    read: float | None = None
    """Largest probability that a cross-encoder gave a unit to answer; None without one."""
    missing: tuple[str, ...] = ()
    """Names and numbers of the question that stand nowhere on the page."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said and why."""

    word: Word
    confidence: float
    """0..1; at least `SURE` where answered."""
    reason: str


def judge(question: str, relevance: Relevance, *, tabular: bool = False) -> Verdict:
    """Say whether the pages answer `question`; `tabular`: some of their units are rows of tables."""
    pages = read_features(question, relevance, tabular=tabular)
    best = max(pages, key=confidence_of, default=None)
    if best is None:
        return Verdict("none", 0.0, "The pages hold no text.")
    confidence = confidence_of(best)
    reason = f"The best passage holds {best.window:.0%} of the question's words, weighted by rarity"
    if best.cosine is not None:
        reason += f", and the closest in meaning has cosine {best.cosine:.2f}"
    if best.missing:
        reason += f"; not on that page: {', '.join(best.missing[:5])}"
    if confidence >= SURE:
        return Verdict("answered", round(confidence, 4), f"{reason}.")
    near = any(page.cosine is not None and page.cosine >= NEAR for page in pages)
    if confidence >= NONE or near:
        return Verdict("unsure", round(confidence, 4), f"{reason}.")
    if relevance.foreign:
        # Words of another language are not found by words: that is no sign that nothing answers.
        return Verdict("unsure", round(confidence, 4), f"{reason}; the question is in another language than the page.")
    return Verdict("none", round(confidence, 4), f"{reason}.")


def confidence_of(features: Features) -> float:
    """Return the logistic of the features, 0..1."""
    weights = _WEIGHTS[features.cosine is not None, features.read is not None]
    total = weights[0] + sum(weight * value for weight, value in zip(weights[1:], as_row(features), strict=True))
    return 1.0 / (1.0 + math.exp(-total))


def as_row(features: Features) -> tuple[float, ...]:
    """Return the features in the order of the weights."""
    read = math.sqrt(features.read or 0.0)
    return features.unit, features.window, features.page, features.names, features.length, features.cosine or 0.0, read


def read_features(question: str, relevance: Relevance, *, tabular: bool = False) -> list[Features]:
    """Return what the verdict sees of each page that holds units."""
    index = relevance.index
    terms = index.terms(question)
    usual = _ASKING | _CHOOSING if tabular else _ASKING
    asked = [term for term in terms if not usual.intersection(term.values())] or terms
    own, above = index.counts(asked)
    held = (own + above) > 0
    weights = _weights(held)
    names = _names(question, index)
    found: list[Features] = []
    for low, high in pairwise(index.page_starts.tolist()):
        if high == low:
            continue
        of_page = (relevance.windows[:, 0] >= low) & (relevance.windows[:, 1] <= high)
        windows = relevance.windows[of_page]
        missing = tuple(name for name, rows in names.items() if not rows[:, low:high].any(axis=1).all())
        found.append(
            Features(
                unit=_best_share(weights, held[:, low:high]),
                window=_best_share(weights, _in_windows(own + above, windows)),
                page=float(held[:, low:high].any(axis=1).mean()) if len(asked) else 0.0,
                names=1.0 - len(missing) / len(names) if names else 1.0,
                length=min(len(asked), _LONG) / _LONG,
                cosine=_best_cosine(relevance.cosines, of_page),
                read=float(relevance.read[low:high].max()) if relevance.read is not None else None,
                missing=missing,
            )
        )
    return found


def _in_windows(counts: Floats, windows: Windows) -> NDArray[np.bool_]:
    return window_sums(counts, windows) > 0


def _best_share(weights: Floats, held: NDArray[np.bool_]) -> float:
    """Return the largest weighted share of the words in one column of `held` [words, n].

    Not a matrix product, whose BLAS may warn of invalid values where there are none.
    """
    return float((weights[:, None] * held).sum(axis=0).max(initial=0.0))


def _best_cosine(cosines: Floats | None, of_page: NDArray[np.bool_]) -> float | None:
    if cosines is None:
        return None
    known = cosines[of_page]
    known = known[~np.isnan(known)]
    return float(known.max()) if len(known) else None


def _weights(held: NDArray[np.bool_]) -> Floats:
    """Return weights of the words, summing to 1: idf; words that stand nowhere weigh like those that stand twice."""
    total = held.shape[1]
    n = np.maximum(held.sum(axis=1), 2)
    idf = np.log1p((max(total, 3) - n + 0.5) / (n + 0.5)) if len(n) else np.zeros(0)
    idf = np.maximum(idf, _FLOOR * idf.max(initial=0.0))
    weights: Floats = (idf / idf.sum()).astype(np.float32) if idf.sum() > 0 else idf.astype(np.float32)
    return weights


def _names(question: str, index: TermIndex) -> dict[str, NDArray[np.bool_]]:
    """Return the names and numbers of the question, each with where its words stand [words, units]."""
    nouns_too = "de" in index.languages
    found: dict[str, NDArray[np.bool_]] = {}
    for place, word in enumerate(raw_words(question)):
        capital = place > 0 and word[0].isupper() and (not nouns_too or word.isupper())
        if (capital or any(c.isdecimal() for c in word)) and index_terms(word):
            own, above = index.counts(index.terms(word))
            found[word] = (own + above) > 0
    return found
