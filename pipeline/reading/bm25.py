"""BM25: of plain texts, and of the units and windows of pages as the core reads them;
putting score lists together.

All is built per call. Terms are numbered as they come and kept as one flat array, so
that building costs little more than cutting the texts into terms; a query scans the
array once a term. `okapi` scores precomputed term counts; `word_vectors` replace an
embedder that cannot read a text. `blend` keeps distances and is the default inside a
page (75.0 against 70.7 recall at 256 tokens); `reciprocal_rank_fusion` keeps order only
and is for lists whose scales cannot be compared, such as an engine's order.

A page is a list of units in reading order, each with its headings; units
(`pipeline/document/units.py`) are sentences, headings, items, table rows, definitions
and pieces of code. Plain lists, so that data sets without pages can be measured too.
Terms are counted over all pages at hand; each page is stemmed in its own language, and
a question's word is looked up in every page's form of it. Not for: persistent indexes
(`pipeline/search/word_index.py`), or cutting text into terms
(`pipeline/text/words.py`)."""

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cancellation import check_cancelled
from models.protocols import unit_rows
from pipeline.question.question import Question
from pipeline.text.frame import one_line
from pipeline.text.words import fold, index_terms, language_of
from readers.page import Block, Document, Sentence

Floats = NDArray[np.float32]
RRF_K: Final = 60
"""The constant of the original RRF paper; results hardly move between 20 and 100."""
K1: Final = 1.2
B: Final = 0.3
"""Length normalisation; 0.3 beat 0.75 for running text on the development pages."""


def rarity(counts: NDArray[np.integer], size: int) -> NDArray[np.float64]:
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)) of terms that occur in n of N texts;
    never below zero."""
    weights: NDArray[np.float64] = np.log1p((size - counts + 0.5) / (counts + 0.5))
    return weights


def okapi(
    counts: NDArray[np.floating] | NDArray[np.integer], lengths: NDArray[np.floating]
) -> Floats:
    """Return the Okapi BM25 scores [n] of texts with `counts` [terms, n] and `lengths`
    [n], in words; texts without words score 0."""
    weights = rarity(np.count_nonzero(counts, axis=1), counts.shape[1]).astype(
        np.float32
    )
    mean = float(lengths.mean()) if len(lengths) and lengths.any() else 1.0
    norm = K1 * (1 - B + B * lengths / mean)
    scores: Floats = (
        (weights[:, None] * counts * (K1 + 1) / (counts + norm))
        .sum(axis=0)
        .astype(np.float32)
    )
    return scores


class _Numbers(dict[str, int]):
    """Term to number, in the order of first use."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class BM25:
    """Scores texts against queries."""

    def __init__(self, texts: Sequence[str], *, language: str = "en") -> None:
        """Count the terms of `texts`; `language` picks the stemmer for texts and
        queries alike."""
        self._language = language
        self._numbers = _Numbers()
        terms: list[int] = []
        lengths = np.zeros(len(texts), dtype=np.int64)
        numbers_of: dict[
            str, list[int]
        ] = {}  # texts that repeat, such as headings, are cut once
        for i, text in enumerate(texts):
            numbers = numbers_of.get(text)
            if numbers is None:
                numbers = numbers_of[text] = list(
                    map(self._numbers.__getitem__, index_terms(text, language=language))
                )
            terms.extend(numbers)
            lengths[i] = len(numbers)
        self._terms = np.asarray(terms, dtype=np.int32)
        self._text_of = np.repeat(np.arange(len(texts)), lengths)
        self._lengths = lengths.astype(np.float64)

    def scores(self, query: Question) -> Floats:
        """Return one score a text [n], 0 where no term of `query` occurs. Of a query of
        stop words alone these count."""
        cut = query.terms(self._language)
        terms = dict.fromkeys(cut or query.terms(self._language, keep_stop_words=True))
        numbers = [self._numbers[term] for term in terms if term in self._numbers]
        if not numbers:
            return np.zeros(len(self._lengths), dtype=np.float32)
        size = len(self._lengths)
        counts = np.stack(
            [
                np.bincount(self._text_of[self._terms == number], minlength=size)
                for number in numbers
            ]
        )
        return okapi(counts, self._lengths)


def rarities(texts: Sequence[Counter[str]]) -> dict[str, float]:
    """Return `rarity` of each term of `texts`, which come as counts of their terms."""
    counts = Counter(chain.from_iterable(texts))
    weights = rarity(np.fromiter(counts.values(), dtype=np.int64), len(texts))
    return dict(zip(counts, weights.tolist(), strict=True))


def word_vectors(texts: Sequence[Counter[str]]) -> Floats:
    """Return unit vectors [n, 256] of TF-IDF weights, terms hashed with a sign (the
    hashing trick).

    At 256 two of a passage's some 50 terms rarely fall together. Texts that share rare
    words are near; one without terms gets an even vector.

    Args:
        texts: Counts of each term in each text, [n].
    """
    weights = rarities(texts)
    hashes = {
        term: zlib.crc32(term.encode("utf-8", "surrogatepass")) for term in weights
    }
    vectors = np.zeros((len(texts), 256), dtype=np.float32)
    for vector, counts in zip(vectors, texts, strict=True):
        for term, count in counts.items():
            weight = (1 + np.log(count)) * weights[term]
            vector[hashes[term] % 256] += weight if hashes[term] & 256 else -weight
        if not vector.any():
            vector[:] = 1.0
    return unit_rows(vectors)


def unit_range(scores: Floats) -> Floats:
    """Scale scores to 0..1; all zeros where they do not differ."""
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def standardise(scores: Floats) -> Floats:
    """Scale scores to mean 0 and standard deviation 1; all zeros where they do not
    differ."""
    if not len(scores):
        return scores
    deviation = float(scores.std())
    return (
        (scores - scores.mean()) / deviation if deviation > 0 else np.zeros_like(scores)
    )


def blend(lists: Sequence[Floats]) -> Floats:
    """Return the mean of the standardised lists, each [n] over the same items."""
    return np.asarray(
        np.mean([standardise(scores) for scores in lists], axis=0), dtype=np.float32
    )


def reciprocal_rank_fusion(orders: Sequence[Sequence[int]], count: int) -> Floats:
    """Return fused scores [count]; each order lists item indices best first and may
    leave items out."""
    fused = np.zeros(count, dtype=np.float32)
    for order in orders:
        for index, item in enumerate(order, start=1):
            fused[item] += 1.0 / (RRF_K + index)
    return fused


# Pages, units and windows

Windows = NDArray[np.int64]
"""Stretches of units, first and last-plus-one [n, 2]; none crosses a page."""
GROUP_LETTERS: Final = 4
"""Letters of the groups that a question shares with texts in another language (names,
loan words, cognates); 3 and 5 find as much."""
_GROUPED_WORD: Final = re.compile(rf"[^\W\d_]{{{GROUP_LETTERS},}}|\d{{2,}}")
_TRANSLITERATED: Final = (
    "a b v g d e e zh z i i k l m n o p r s t u f h ts ch sh sch y e yu ya"
)
_CYRILLIC: Final = str.maketrans(
    dict(zip("абвгдеёжзийклмнопрстуфхцчшщыэюя", _TRANSLITERATED.split(), strict=True))
    | {"ъ": "", "ь": ""}
)


JOINT: Final = " › "
"""Between the title and the headings above a unit, outermost first."""


@dataclass(frozen=True, slots=True)
class PageUnits:
    """One page: parallel lists, one entry a unit."""

    texts: Sequence[str]
    above: Sequence[str]
    """Title, headings and lead-in above each unit, joined by `JOINT`; "" if none."""
    language: str = ""
    """ISO 639-1 code; guessed from the texts where empty."""
    vectors: NDArray[np.float32] | None = None
    """Unit vectors by the reader's embedder [units, d], where something keeps them;
    else units are embedded."""

    def headed(self, index: int) -> str:
        """Return a unit with everything above it in front, as a reranker reads it."""
        return (
            f"{self.above[index]}: {self.texts[index]}"
            if self.above[index]
            else self.texts[index]
        )


def page_units(document: Document, sentences: Sequence[Sentence]) -> PageUnits:
    """Return a tagged document as the core reads it."""
    title = one_line(document.page.title)
    headings: list[str] = []
    for sentence in sentences:
        lead = _lead(document.blocks[sentence.block])
        texts = dict.fromkeys(
            one_line(text) for text in (title, *sentence.heading_path, lead) if text
        )
        texts.pop(sentence.text, None)
        headings.append(JOINT.join(texts))
    return PageUnits(
        [sentence.text for sentence in sentences], headings, document.page.language
    )


def _lead(block: Block) -> str:
    """Return an item's lead-in or a row's caption; a row's own text contains its
    header."""
    first = block.lead.partition("\n")[0]
    return "" if block.kind == "row" and " | " in first else first


class TermIndex:
    """Counts of every term in every unit, and whether it is in the headings above."""

    def __init__(self, pages: Sequence[PageUnits]) -> None:
        """Count the terms of all units of all pages; units are numbered through, page
        after page.

        Raises:
            Stopped: The call was cancelled (in a worker thread only).
        """
        self.languages = [
            language_of(" ".join(page.texts[:60]), page.language) or "en"
            for page in pages
        ]
        self.page_starts = np.concatenate(
            ([0], np.cumsum([len(page.texts) for page in pages]))
        ).astype(np.int64)
        self.size = int(self.page_starts[-1])
        self._own: dict[str, dict[str, list[tuple[int, int]]]] = {}
        self._above: dict[str, dict[str, list[int]]] = {}
        row = 0
        for page, language in zip(pages, self.languages, strict=True):
            in_units = self._own.setdefault(language, {})
            in_headings = self._above.setdefault(language, {})
            heading_terms: dict[str, list[str]] = {}
            for text, headings in zip(page.texts, page.above, strict=True):
                check_cancelled()
                terms = index_terms(text, language=language)
                for term, count in Counter(terms).items():
                    in_units.setdefault(term, []).append((row, count))
                if headings not in heading_terms:
                    heading_terms[headings] = list(
                        dict.fromkeys(index_terms(headings, language=language))
                    )
                for term in heading_terms[headings]:
                    in_headings.setdefault(term, []).append(row)
                row += 1

    def terms(self, question: Question) -> list[dict[str, str]]:
        """Return the distinct terms of a question, each as {page language: index term},
        without stop words; a question of these alone keeps them."""
        language = question.language
        languages = list(dict.fromkeys(self.languages)) or [language]
        forms = {
            code: question.terms(code, keep_stop_words=True)
            for code in {language, *languages}
        }
        content = set(question.terms()) or set(forms[language])
        distinct: dict[str, dict[str, str]] = {}
        for index, term in enumerate(forms[language]):
            if term in content:
                distinct.setdefault(
                    term, {code: forms[code][index] for code in languages}
                )
        return list(distinct.values())

    def has_prefix(self, text: str) -> bool:
        """Whether a word of any page, or of what is above its units, begins with
        `text`, in lower case."""
        terms = chain(*self._own.values(), *self._above.values())
        return any(term.startswith(text) for term in terms)

    def counts(self, terms: Sequence[dict[str, str]]) -> tuple[Floats, Floats]:
        """Return the count of each term in each unit, and whether it is in the headings
        above: two [terms, units]."""
        own = np.zeros((len(terms), self.size), dtype=np.float32)
        above = np.zeros((len(terms), self.size), dtype=np.float32)
        for index, forms in enumerate(terms):
            for language, term in forms.items():
                for row, count in self._own.get(language, {}).get(term, ()):
                    own[index, row] = count
                rows = self._above.get(language, {}).get(term)
                if rows:
                    above[index, rows] = 1.0
        return own, above

    def names(self, question: Question) -> dict[str, NDArray[np.bool_]]:
        """Return the names and numbers of a question, each with the matches of its
        words [words, units]. The first word counts only with a digit, any other German
        one only with a digit or in capitals."""
        nouns_too = question.spoken == "de"
        matches: dict[str, NDArray[np.bool_]] = {}
        for position, word in enumerate(question.words):
            capital = (
                position > 0 and word[0].isupper() and (not nouns_too or word.isupper())
            )
            if (capital or any(c.isdecimal() for c in word)) and index_terms(word):
                own, above = self.counts(self.terms(Question(word)))
                matches[word] = (own + above) > 0
        return matches

    def owners(self, units: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the page of each unit."""
        return np.searchsorted(self.page_starts, units, side="right") - 1

    def translations(self, question: Question) -> dict[Question, NDArray[np.bool_]]:
        """Return what a question is for its pages, each wording with a mask of its
        units."""
        translated = [question.translated_to(code) for code in self.languages] or [
            question
        ]
        pages = self.owners(np.arange(self.size))
        return {
            wording: np.array([one == wording for one in translated])[pages]
            for wording in dict.fromkeys(translated)
        }

    def question_counts(self, question: Question) -> tuple[Floats, Floats]:
        """Return `counts` of a question's terms; of each unit those of its page's
        translation."""
        pairs = [
            (self.counts(self.terms(wording)), units)
            for wording, units in self.translations(question).items()
        ]
        if len(pairs) == 1:
            return pairs[0][0]
        own, above = (
            np.concatenate([counts[side] * units for counts, units in pairs])
            for side in (0, 1)
        )
        return own, above

    def window_scores(self, own: Floats, above: Floats, windows: Windows) -> Floats:
        """Return BM25 of windows of units [n]; headings above count once per window."""
        counts = window_sums(own, windows) + (window_sums(above, windows) > 0)
        # Windows are cut to a length: with BM25's own share of it .5 they show .01 less of table
        # and bridge questions.
        return okapi(counts, np.ones(len(windows)))


def window_sums(counts: Floats, windows: Windows) -> Floats:
    """Return the sums of `counts` [terms, units] over each window: [terms, n]."""
    running = np.pad(np.cumsum(counts, axis=1, dtype=np.float32), ((0, 0), (1, 0)))
    return running[:, windows[:, 1]] - running[:, windows[:, 0]]


def cut_windows(
    tokens: Floats, starts: Sequence[int] | NDArray[np.int64], most: int
) -> Windows:
    """Return stretches of whole units of at most `most` tokens, each beginning half a
    window after the last.

    Args:
        tokens: Of every unit [units]; a unit of more is a window of its own.
        starts: Where a page begins and the last one ends; no window crosses them.
        most: Tokens of a window.
    """
    ends = np.cumsum(tokens + 1)
    before = ends - tokens - 1
    stops, halves = (
        np.searchsorted(ends, before + room, side="right").tolist()
        for room in (most, most // 2)
    )
    windows: list[tuple[int, int]] = []
    for low, high in pairwise(starts):
        start = int(low)
        while start < high:
            stop = max(start + 1, min(int(high), stops[start]))
            windows.append((start, stop))
            if stop == high:
                break
            start = max(start + 1, halves[start])
    return np.array(windows, dtype=np.int64).reshape(-1, 2)


def letter_groups(text: str) -> list[str]:
    """Return the distinct groups of `GROUP_LETTERS` letters in the words of `text`, and its
    numbers; shorter words are whole."""
    groups: dict[str, None] = {}
    for word in _GROUPED_WORD.findall(_latin(text)):
        is_whole = word.isdigit() or len(word) <= GROUP_LETTERS
        groups.update(
            dict.fromkeys(
                [word]
                if is_whole
                else [
                    word[i : i + GROUP_LETTERS]
                    for i in range(len(word) - GROUP_LETTERS + 1)
                ]
            )
        )
    return list(groups)


def letter_counts(question: str, texts: Sequence[str]) -> Floats:
    """Return the count of each of the question's groups in each text: [groups, texts].
    They count inside of longer words, too."""
    groups = letter_groups(question)
    counts = np.zeros((len(groups), len(texts)), dtype=np.float32)
    for index, text in enumerate(texts):
        check_cancelled()
        latin = _latin(text)
        counts[:, index] = [latin.count(group) for group in groups]
    return counts


def _latin(text: str) -> str:
    return fold(text.lower()).translate(_CYRILLIC)
