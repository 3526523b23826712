"""Filling a budget with nodes of a tree, best first, nothing said twice.

Not for: scores (`query.py`).
"""

from collections.abc import Sequence
from typing import Final

from pipeline.raptor.tree import Tree
from pipeline.text.words import is_cjk, raw_words

REPEATED_SHARE: Final = 0.5
"""A leaf with this part of its word triples already chosen is passed over (notes/raptor §3)."""
MISSES: Final = 400
"""Nodes in a row that do not fit before the search for a smaller one ends."""
TOLD_SHARE: Final = 0.75
"""A summary with this part of its leaves in the answer is left out.

Collapsed recall on the meetings at 500, 1,000, 2,000 tokens: .298, .430, .547; at 0.5 .304, .424, .539; without it
.298, .432, .548."""
ROUNDS: Final = 8
"""Times an answer is filled anew; each leaves out one summary or more, and two are the rule."""


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


def fill_once(tree: Tree, order: Sequence[int], max_tokens: int) -> list[int]:
    """Return nodes as `fill` does with `distinct`, and no summary most of whose leaves stand in the answer anyway.

    Such a summary says again, in fewer words, what is read in full; its room goes to the next node.
    """
    banned: set[int] = set()
    for _ in range(ROUNDS):
        chosen = fill(tree, [i for i in order if i not in banned], max_tokens, distinct=True)
        leaves = {i for i in chosen if not tree.nodes[i].is_summary}
        told = {i for i in chosen if i not in leaves and _share(tree, i, leaves) >= TOLD_SHARE}
        if not told:
            break
        banned |= told
    return [i for i in chosen if i not in banned]


def _share(tree: Tree, summary: int, leaves: set[int]) -> float:
    below = tree.nodes[summary].leaves
    return sum(leaf in leaves for leaf in below) / len(below)


def word_triples(text: str) -> set[tuple[str, ...]]:
    """Return the sets of three words in a row; single characters count as words where the text is Chinese or alike."""
    words = [w for word in raw_words(text.lower()) for w in (word if is_cjk(word) else (word,))]
    if len(words) < 3:
        return {tuple(words)} if words else set()
    return set(zip(words, words[1:], words[2:], strict=False))
