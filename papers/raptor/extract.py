"""Summaries by extraction: sentences that carry the words most of some leaves share and
that repeat nothing chosen before; every one keeps its place. Not for: choosing what to
summarise (`overview.py`)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cancellation import check_cancelled
from pipeline.raptor.tree import SummaryQuote, Tree
from pipeline.text.tokens import Budget, count_tokens, cut_to_tokens
from pipeline.text.words import guess_language, index_terms

SUMMARY_SENTENCE_TOKENS: Final = range(6, 71)
"""Range of tokens of a sentence in a summary: shorter ones are headings, longer ones
lists."""
DAMPED: Final = 0.25
"""Factors on weights: of a word that a chosen sentence has (SumBasic squares it); of a
sentence per other one from the same child; of table rows, headings and captions."""
ENDS: Final = tuple('.!?。！？…"”»)')


@dataclass(frozen=True, slots=True)
class Quotable:
    """A sentence of a child that a summary may take over."""

    quote: SummaryQuote
    text: str
    """The sentence on one line."""
    terms: Sequence[str]
    likeness: float
    """Cosine of its leaf to the cluster's centre."""
    child: int = 0
    """Which summary below shows it, counted from 1; 0 for a leaf of the node's own."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The text of an inner node."""

    text: str
    quotes: tuple[SummaryQuote, ...] = ()
    """Source of each sentence of an extractive summary; empty for a written one."""
    unsupported: tuple[str, ...] = ()
    """Numbers and names of a written summary that no child has."""


def sentences_of(tree: Tree) -> list[list[tuple[str, list[str]]]]:
    """Return of each leaf its sentences, on one line and with their terms."""
    found: list[list[tuple[str, list[str]]]] = []
    spoken = [
        guess_language(" ".join(leaf.shown for leaf in leaves[:3])) or "en"
        for leaves in tree.leaves_of
    ]
    for leaf in tree.leaves:
        check_cancelled()
        texts = [
            " ".join(leaf.sentence(number).split())
            for number in range(len(leaf.sentences))
        ]
        language = spoken[leaf.document]
        found.append([(text, index_terms(text, language=language)) for text in texts])
    return found


def _usable(candidates: Sequence[Quotable]) -> Sequence[Quotable]:
    """Return each sentence of fitting length and with terms once; all where none is."""
    once: dict[str, Quotable] = {}
    for candidate in candidates:
        if candidate.terms and count_tokens(candidate.text) in SUMMARY_SENTENCE_TOKENS:
            once.setdefault(candidate.text, candidate)
    return list(once.values()) or candidates


def _worth(sentences: Sequence[Quotable], idf: Mapping[str, float]) -> dict[str, float]:
    """Return the worth of each term: its rarity, times the leaves that have it."""
    pairs = {(one.quote.leaf, term) for one in sentences for term in one.terms}
    leaves = Counter(term for _, term in pairs)
    return {term: count * idf[term] for term, count in leaves.items()}


def extract_summary(
    candidates: Sequence[Quotable], idf: Mapping[str, float], *, max_tokens: int
) -> Summary:
    """Return the most central sentences that do not repeat each other, in reading
    order.

    There is at least one candidate, and `idf` has every term.

    Args:
        idf: Inverse document frequency by term.
        max_tokens: Most tokens of the summary; at least one sentence is taken, cut if
    it must be.
    """
    usable = _usable(candidates)
    worth = _worth(usable, idf)
    taken: Counter[int] = Counter()
    chosen: list[int] = []
    # Each with the blank before it, which the first has none of
    budget = Budget(max_tokens + 1)
    costs = [count_tokens(candidate.text) + 1 for candidate in usable]
    waiting = {i for i, cost in enumerate(costs) if cost <= budget.left}
    while waiting:
        best = max(
            waiting,
            key=lambda i: (
                DAMPED ** taken[usable[i].child] * _value(usable[i], worth),
                -i,
            ),
        )
        if _value(usable[best], worth) <= 0 and chosen:
            break
        chosen.append(best)
        budget.spend(costs[best])
        taken[usable[best].child] += 1
        for term in set(usable[best].terms):
            worth[term] *= DAMPED
        waiting.remove(best)
        waiting = {i for i in waiting if costs[i] <= budget.left}
    if not chosen:
        first = usable[0]
        return Summary(cut_to_tokens(first.text, max_tokens), (first.quote,))
    chosen.sort()
    return Summary(
        " ".join(usable[i].text for i in chosen), tuple(usable[i].quote for i in chosen)
    )


def _value(candidate: Quotable, worth: Mapping[str, float]) -> float:
    """Return the worth of a candidate's distinct words, damped by the square root of
    their number so that length neither helps nor hurts much; 0 without words."""
    distinct = set(candidate.terms)
    if not distinct:
        return 0.0
    carried = sum(worth[term] for term in distinct) / math.sqrt(len(distinct))
    whole = 1.0 if candidate.text.endswith(ENDS) else DAMPED
    return carried * whole * (0.5 + max(0.0, candidate.likeness))
