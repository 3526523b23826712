"""Whether anything on the pages answers a question: answered, unsure or none
(zero-index §4.1), by words and meaning.

A logistic over features that anybody can read off a page, taken page by page; the page
that answers best decides. What shares neither words nor meaning with a question cannot
answer it; what shares either may. A plausible question about the page's own subject
stays hard, and the figures below say so. Not for: ordering units (`relevance.py`)."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.pair import ENGLISH
from pipeline.question.question import Question
from pipeline.reading.bm25 import Floats, TermIndex, rarity
from pipeline.reading.relevance import Relevance
from pipeline.text.words import (
    NEVER_NAMES,
    index_terms,
    languages,
    words,
)
from readers.page import Verdict as Word

# Fitted by `python -m train.verdict` on the half of ../shared/data/evidence called `tuned`,
# the sample library's dev questions, and the dev part of the reader's questions with their twins;
# negatives besides are unanswerable questions, pages without the answering paragraph, and other
# pages, which count a quarter for what a reader read. Order: constant, unit, names, length, cosine.
_WORD_WEIGHTS: Final = (-8.4, 5.9, 3.94, 2.38, 0.0)
_MEANING_WEIGHTS: Final = (-5.26, 3.15, 2.34, 1.02, 2.2)
# Order: constant, names, reader's log-odds, size, size times unit (docs/log.md, 2026-11-27).
_READ: Final = (-0.11, 1.09, 0.53, -0.97, 0.98)
# For pages in other languages without a reader, and for questions in another language than
# the page, fitted on bench/asked/pairs_languages.jsonl (docs/log.md, 2026-11-27). Order as above.
_OTHER: Final = (-5.6, 5.45, 0.0, 0.0, 6.55)
_ACROSS: Final = (-4.68, 0.0, 0.0, 0.0, 7.89)
_SMALL: Final = 120
"""Windows of all pages, some 80 tokens each, up to which their number changes nothing:
pages have fewer."""
_READER_CLAMP: Final = 0.001
"""Probability below which a reader is taken by; its log-odds have no end."""
TRANSLATED: Final = 80
"""Characters of a question's translation that a reason shows, so that a reader sees
whether it is right."""
ANSWERED_CONFIDENCE: Final = 0.65
"""Confidence from which a question is taken for answered: .53 of 192 asked questions, .93
of these with what answers shown at 512 tokens, and .19 of their 131 almost-answered
twins; .6 gives .61, .93, .24, and .7 gives .43, .93, .15 (docs/log.md, 2026-11-29)."""
NONE: Final = 0.12
"""Confidence below which nothing answers: of one page where the meaning says so too,
see `NEAR_COSINE`, of several wherever a reader read them."""
NEAR_COSINE: Final = 0.34
"""Cosine from which a window is near enough in meaning that the answer is never None.
With both, .006 of 785 questions are None on their own page and .69 of 459 on another;
with a confidence of .2 .010 and .73."""
FAR_LOGISTIC: Final = 0.06
FAR_ACROSS: Final = 0.08
"""Of the two logistics of other languages, the values below which nothing answers. In
one language the least of the questions on their own page is .083, and .57 of the
questions on other pages of like subjects are None. Across two one of 720 is below it on
its own page and .16 on others; below .09 two and .24, below .05 none and .05."""
NEAR_COSINE_BRIEF: Final = 0.22
"""Cosine from which a page of one window may answer: a note of a few words says too
little for a reader's score. One shared word is enough, too. Without it 10 of 40
questions on twenty such notes are None."""

ABSENT_CHARACTERS: Final = 3
"""Characters of a name or number from which its absence is worth a word: shorter ones are
written in many ways (`GB`, `AK`, 12)."""
ASKING: Final = frozenset(
    term
    for language in languages()
    for section in (
        "verdict.asking",
        "choosing.ends",
        "choosing.least",
        "choosing.most",
    )
    for word in words(section, language)
    for term in index_terms(word, language=language)
)
"""Terms of words that say what kind of answer is wanted, or choose among rows; what
answers seldom repeats them."""
_LITERAL: Final = re.compile(
    r"(?<![\w/.-])(?:--[a-z][\w-]*\w|\w+_\w+|\d+(?:\.\d{1,2})+)(?!\w|\.\w)",
    re.IGNORECASE,
)
"""What is written in one way: an option, an identifier, a version (`3.7`, no date)."""
_STEM: Final = 4
_ENDING_LETTERS: Final = 3
"""Letters by whose lack at its end a name is looked for, down to `_STEM`: a people for
its country, one for several."""
_FLOOR: Final = 0.3
"""Least weight of a word, as a share of the heaviest: common words count little, but
they count."""
_LONG: Final = 10
"""Words of a question from which on its length changes nothing: long questions are
never covered whole."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the verdict sees of one page, each 0..1."""

    unit: float
    """Share of the question's words, rare ones weighing more, in the best unit with its
    headings."""
    names: float
    """Share of its names and numbers that the page contains; 1 if it has none."""
    length: float
    """Words of the question over ten, at most 1."""
    cosine: float | None
    """Best cosine of a window; None without an embedder that reads question and
    page."""
    read: float | None = None
    """Largest probability that a cross-encoder gave a unit to answer; None without
    one."""
    missing: tuple[str, ...] = ()
    """Names and numbers of the question that the page lacks."""
    translated: str = ""
    """The translated question, if the page is in another language."""
    english: bool = True
    """Whether the page is in English, or nothing says what it is in."""
    across: bool = False
    """Whether the question is in another language than the page."""
    size: float = 0.0
    """Natural logarithm of the windows of all pages over `_SMALL`, at least 0."""
    is_brief: bool = False
    """Whether the page is one window."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a question."""

    word: Word
    confidence: float
    """0..1; at least `ANSWERED_CONFIDENCE` where answered."""
    note: str = ""
    """What the verdict rests on beside the passages, as sentences."""
    absent: tuple[str, ...] = ()
    """Names and longer numbers of the question that no page has; empty where it surely
    answers."""


def judge(question: Question, relevance: Relevance) -> Verdict:
    """Say whether the pages answer `question`. Without units it is `none`. For a
    question in another language than a page without vectors it is never `none`."""
    pages = read_features(question, relevance)
    best = max(pages, key=confidence_of, default=None)
    if best is None:
        return Verdict("none", 0.0, "The pages contain no text.")
    confidence = round(confidence_of(best), 4)
    if confidence >= ANSWERED_CONFIDENCE:
        return Verdict("answered", confidence, _translation(best))
    absent = _absent(question, pages, relevance.index)
    # Among the windows of several pages one is near to any question
    never = best.read is not None and len(pages) > 1 and confidence < NONE
    # Words do not match across languages: that does not mean that nothing answers
    unknown = relevance.foreign and any(page.cosine is None for page in pages)
    near = confidence >= NONE or any(map(_is_near, pages))
    noted = not absent and any(map(_may_be_noted, pages))
    word: Word = "unsure" if unknown or noted or (near and not never) else "none"
    return Verdict(word, confidence, _translation(best), () if unknown else absent)


def _translation(best: Features) -> str:
    """Return the sentence that says how the question was translated."""
    wording = best.translated[:TRANSLATED]
    translated = (
        f"For pages in another language the question was translated as: {wording}."
    )
    return translated if wording else ""


def _is_near(page: Features) -> bool:
    """Whether a page is so near to the question in meaning that the verdict is never
    `none`; False without a cosine."""
    if page.cosine is None:
        return False
    if page.across:
        return _logistic(_ACROSS, _meaning_row(page)) >= FAR_ACROSS
    if not page.english:
        return _logistic(_OTHER, _meaning_row(page)) >= FAR_LOGISTIC
    return page.cosine >= NEAR_COSINE


def _may_be_noted(page: Features) -> bool:
    """Whether a page is an English note of a few words that may answer."""
    near = page.unit > 0 or (page.cosine or 0.0) >= NEAR_COSINE_BRIEF
    return near and page.is_brief and page.english and not page.across


def _absent(
    question: Question, pages: Sequence[Features], index: TermIndex
) -> tuple[str, ...]:
    """Return the names and numbers of the question that no page has.

    Left out is what a page may well say in another form: short numbers (in words),
    groups of a number's digits, months and days (in digits, or shorter), and names that
    a word of a page begins like (`Norwegian`, `Norway`). Nothing is known, and the
    result empty, where the question was translated."""
    if any(page.translated or page.across for page in pages):
        return ()
    names = [
        name
        for name in pages[0].missing
        if all(name in page.missing for page in pages[1:])
    ]
    return tuple(
        name for name in names if not _may_be_written_otherwise(name, question, index)
    )


def absent_literals(question: Question, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the options, identifiers and versions of a question that no text has, with
    whatever signs between their words."""
    absent: list[str] = []
    for literal in dict.fromkeys(_LITERAL.findall(question.text)):
        between = r"[\W_]{1,2}".join(re.findall(r"[^\W_]+", literal))
        written = re.compile(rf"(?<!\d){between}(?!\d)", re.IGNORECASE)
        absent += [literal] * (not any(map(written.search, texts)))
    return tuple(absent)


def _may_be_written_otherwise(name: str, question: Question, index: TermIndex) -> bool:
    """Whether a page may have a name or number that it lacks in another form."""
    if any(map(str.isdecimal, name)):
        is_piece = any(f"{sign}{name}" in question.text for sign in ".,")
        return name.isdecimal() and (is_piece or len(name) < ABSENT_CHARACTERS)
    stem = name.lower()[: max(_STEM, len(name) - _ENDING_LETTERS)]
    is_known = name.lower() in NEVER_NAMES or index.has_prefix(stem)
    return is_known or len(name) < ABSENT_CHARACTERS


def confidence_of(features: Features) -> float:
    """Return the logistic of the features, 0..1."""
    weights: tuple[float, ...]
    if features.read is not None:
        weights = _READ
    elif features.cosine is None:
        weights = _WORD_WEIGHTS
    elif features.across:
        weights = _ACROSS
    else:
        weights = _MEANING_WEIGHTS if features.english else _OTHER
    return _logistic(weights, as_row(features))


def _logistic(weights: Sequence[float], row: Sequence[float]) -> float:
    total = weights[0] + sum(
        weight * value for weight, value in zip(weights[1:], row, strict=True)
    )
    return 1.0 / (1.0 + math.exp(-total))


def as_row(features: Features) -> tuple[float, ...]:
    """Return the features in the order of the weights."""
    if features.read is not None:
        odds = min(max(features.read, _READER_CLAMP), 1.0 - _READER_CLAMP)
        sized = features.size, features.size * features.unit
        return features.names, math.log(odds / (1.0 - odds)), *sized
    return _meaning_row(features)


def _meaning_row(features: Features) -> tuple[float, ...]:
    return features.unit, features.names, features.length, features.cosine or 0.0


def read_features(question: Question, relevance: Relevance) -> list[Features]:
    """Return what the verdict sees of each page that holds units; other pages are left
    out."""
    index = relevance.index
    translated = [question.translated_to(language) for language in index.languages]
    looked_for = {one: _Asked(one, index) for one in dict.fromkeys(translated)}
    spoken = question.spoken_to(index.languages)
    size = math.log(max(len(relevance.windows), _SMALL) / _SMALL)
    begins = relevance.windows[:, 0]
    stretches = pairwise(index.page_starts.tolist())
    found: list[Features] = []
    for wording, language, (low, high) in zip(
        translated, index.languages, stretches, strict=True
    ):
        if high == low:
            continue
        asked = looked_for[wording]
        shares, names = asked.shares, asked.names
        missing = tuple(
            name
            for name, rows in names.items()
            if not rows[:, low:high].any(axis=1).all()
        )
        found.append(
            Features(
                unit=float(shares[low:high].max()),
                names=1.0 - len(missing) / len(names) if names else 1.0,
                length=min(asked.length, _LONG) / _LONG,
                cosine=_best(relevance.cosines, low, high),
                read=_best(relevance.read, low, high),
                missing=missing,
                translated=wording.text if wording != question else "",
                english=language == ENGLISH,
                across=bool(spoken) and spoken != language,
                size=size,
                is_brief=int(((begins >= low) & (begins < high)).sum()) == 1,
            )
        )
    return found


class _Asked:
    """A translation of the question, with its matches in each unit."""

    def __init__(self, question: Question, index: TermIndex) -> None:
        terms = index.terms(question)
        asked = [
            term for term in terms if not ASKING.intersection(term.values())
        ] or terms
        own, above = index.counts(asked)
        self.length = len(asked)
        self.shares = _shares((own + above) > 0)
        self.names = index.names(question)


def _shares(held: NDArray[np.bool_]) -> Floats:
    """Return the share of the question's words that each unit holds [units] by `held`
    [words, units], rare ones first.

    Words that occur nowhere weigh like those that occur twice. Not a matrix product,
    whose BLAS may warn of invalid values where there are none."""
    weights = rarity(np.maximum(held.sum(axis=1), 2), max(held.shape[1], 3))
    weights = np.maximum(weights, _FLOOR * weights.max(initial=0.0))
    shares: Floats = (
        (weights[:, None] * held).sum(axis=0) / max(weights.sum(), 1e-9)
    ).astype(np.float32)
    return shares


def _best(values: Floats | None, low: int, high: int) -> float | None:
    """Return the best value of a page's units, None where none is known."""
    known = values[low:high][~np.isnan(values[low:high])] if values is not None else ()
    return float(max(known)) if len(known) else None
