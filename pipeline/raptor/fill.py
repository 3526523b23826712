"""Filling a budget with nodes of a tree, best first, nothing said twice.

Not for: scores (`query.py`).
"""

from collections.abc import Sequence
from typing import Final

from pipeline.rank.words import is_cjk, raw_words
from pipeline.raptor.tree import Tree

REPEATED_SHARE: Final = 0.5
"""A leaf with this part of its word triples already chosen is passed over (notes/raptor §3)."""
MISSES: Final = 400
"""Nodes in a row that do not fit before the search for a smaller one ends."""


def fill(tree: Tree, order: Sequence[int], max_tokens: int, *, distinct: bool) -> list[int]:
    """Return nodes of `order` whose tokens together are at most `max_tokens`; what does not fit is skipped.

    Args:
        tree: The tree.
        order: Node indices, best first.
        max_tokens: The budget, exact.
        distinct: Pass over nodes that mostly repeat words already chosen.
    """
    chosen: list[int] = []
    said: set[tuple[str, ...]] = set()
    room = max_tokens
    missed = 0
    for i in order:
        node = tree.nodes[i]
        if node.tokens > room:
            missed += 1
            if room <= 0 or missed > MISSES:
                break
            continue
        if distinct:
            triples = word_triples(node.text)
            if triples and len(triples & said) >= REPEATED_SHARE * len(triples):
                continue
            said |= triples
        missed = 0
        chosen.append(i)
        room -= node.tokens
    return chosen


def word_triples(text: str) -> set[tuple[str, ...]]:
    """Return the sets of three words in a row; single characters count as words where the text is Chinese or alike."""
    words = [w for word in raw_words(text.lower()) for w in (word if is_cjk(word) else (word,))]
    if len(words) < 3:
        return {tuple(words)} if words else set()
    return set(zip(words, words[1:], words[2:], strict=False))
