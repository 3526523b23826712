"""Sentences that cannot be read alone: one that begins with a pronoun leans on the sentence before.

Blanket neighbours cost recall at small budgets (notes/zeroindex §0.7), so only these bring theirs. A rule by first
word, for languages with a list below. Not for: resolving what the pronoun means, or deciding whether there is room.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.documents import Sentence

_LEADS: Final = (
    "it its they their them he she his her this these those both such neither "
    "er sie es dies diese dieser dieses diesem diesen jene jener sein seine ihr ihre dabei damit dazu daher letztere "
    "il elle ils elles ce cette ces celui-ci celle-ci "
    "él ella ellos ellas este esta esto estos estas ese esa eso "
    "он она оно они это этот эта эти его её ее их такой такая такие"
)
_WORDS: Final = frozenset(_LEADS.split())
_CJK_LEAD: Final = re.compile(r"[「『“《（]?(?:它|他|她|这|這|该|該|其|此|これ|それ|この|その|彼|同社|同氏)")
_FIRST: Final = re.compile(r"[\"'“”„«»(\[]*([^\W\d_]+(?:-ci)?)")


def leans(text: str) -> bool:
    """Whether a sentence begins with a word that points back: a pronoun or demonstrative."""
    if _CJK_LEAD.match(text):
        return True
    first = _FIRST.match(text)
    return first is not None and first.group(1).lower() in _WORDS


def antecedents(sentences: Sequence[Sentence], numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the numbers of sentences that the given ones lean on and that are not among them, in reading order.

    Args:
        sentences: All sentences of one document, as tagged (number n stands at n - 1).
        numbers: Numbers of the chosen sentences.

    Only the sentence directly before, in the same block, is brought; where that one leans as well, so is its own.
    """
    chosen = set(numbers)
    brought: set[int] = set()
    for number in sorted(chosen):
        place = number - 1
        while place >= 1 and leans(sentences[place].text) and sentences[place - 1].block == sentences[place].block:
            brought.add(place)
            place -= 1
    return tuple(sorted(brought - chosen))
