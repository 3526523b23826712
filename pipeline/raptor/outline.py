"""What the nodes of a tree are called, and the tree as indented text for a person or a
model that wants to see it.

Not for: evidence (`query.py`), or the tree as a page (`draw.py`).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from pipeline.raptor.leaves import common_path
from pipeline.raptor.tree import Tree, TreeNode
from pipeline.text.frame import TITLE_TOKENS, inert
from pipeline.text.tokens import Budget, count_tokens, cut_to_tokens
from pipeline.text.words import guess_language, index_terms, is_cjk, lower_runs
from pipeline.work import check_cancelled

WORDS: Final = 5
"""Maximum words of a theme's or node's name."""
SAMPLED_LEAVES: Final = 24
"""Leaves sampled for a node's name."""


def outline(tree: Tree, *, max_tokens: int) -> str:
    """Return the tree's outline in at most `max_tokens` tokens, upper layers before
    lower ones.

    One line per node: name and number of leaves below it. The first line is about the
    tree; where it does not fit, only its beginning is returned."""
    head = (
        f"{len(tree.sources)} documents, {len(tree.leaves)} leaves, {len(tree.layers)} layers, "
        f"vectors: {tree.built_with.embedder}, summaries: {tree.built_with.summariser}"
    )
    budget = Budget(max_tokens)
    if not budget.spend(count_tokens(head)):
        return cut_to_tokens(head, max_tokens)
    kept = _kept(tree, budget)
    lines = [head]
    stack = [(node, 0) for node in reversed(tree.roots)]
    while stack:
        index, depth = stack.pop()
        if index in kept:
            # A node is shown once, under its first parent.
            kept.remove(index)
            lines.append(_line(tree, tree.nodes[index], depth))
            stack.extend(
                (child, depth + 1) for child in reversed(tree.nodes[index].children)
            )
    return "\n".join(lines)


def _kept(tree: Tree, budget: Budget) -> set[int]:
    """The nodes whose lines fit, level by level from the roots."""
    kept: set[int] = set()
    level, depth = list(tree.roots), 0
    while level:
        for index in level:
            # A line may end up one step deeper than it is here; a deeper indentation costs at most
            # 1.
            if not budget.spend(
                count_tokens(_line(tree, tree.nodes[index], depth)) + 2
            ):
                return kept
            kept.add(index)
        below = dict.fromkeys(
            child for index in level for child in tree.nodes[index].children
        )
        level, depth = [index for index in below if index not in kept], depth + 1
    return kept


def _line(tree: Tree, node: TreeNode, depth: int) -> str:
    name = label(tree, node)
    short = inert(cut_to_tokens(name, TITLE_TOKENS))
    documents = len(tree.documents_below(node))
    across = f" of {documents} documents" if documents > 1 else ""
    below = f" [{len(node.leaves)} leaves{across}]" if node.is_summary else ""
    return f"{'  ' * depth}- {short}{'' if short == name else ' …'}{below}"


def _few(names: Sequence[str]) -> str:
    """Return up to six names on one line; of more the first five, and how many others
    there are."""
    if len(names) > 6:
        names = [*names[:4], f"{names[4]} and {len(names) - 5} more"]
    return "; ".join(names)


def label(tree: Tree, node: TreeNode) -> str:
    """Return what a node is called, on one line: titles of its documents, headings of
    its part, else words it shares.

    Of several titles or headings the last that all leaves share, then those below it:
    `Title: Heading; Heading`; of many documents the words that they share and the first
    few titles. A leaf without headings has its first words."""
    leaves = list(map(tree.leaves.__getitem__, node.leaves))
    paths = [(tree.sources[leaf.document].title, *leaf.heading_path) for leaf in leaves]
    shared = common_path(paths)
    below = dict.fromkeys(
        path[len(shared)] for path in paths if len(path) > len(shared)
    )
    parts = [*shared[-1:], _few(list(below))]
    if len(shared) == 1 and not below:
        # A part of a text without headings; a whole one has its title.
        whole = len(leaves) == len(tree.leaves_of[leaves[0].document])
        parts = [shared[0] if whole else shared_words(tree, node) or node.text]
    elif len(below) > 6 and leaves[0].document != leaves[-1].document:
        parts.insert(0, shared_words(tree, node))
    name = ": ".join(" ".join(part.split()) for part in parts if part)
    return name or " ".join(node.text.split())


def shared_words(tree: Tree, node: TreeNode) -> str:
    """Return the words that most of a summary's leaves share, the rarest in other leaves
    first, by a sample of many leaves.

    It is "" for a leaf, and where no word is in half of the leaves."""
    if not node.is_summary:
        return ""
    leaves = node.leaves[:: 1 + len(node.leaves) // SAMPLED_LEAVES]
    return ", ".join(
        telling_words(
            [word_forms([tree.leaves[i].shown]) for i in leaves],
            tree.spread,
            len(tree.leaves),
        )
    )


def word_forms(texts: Sequence[str]) -> dict[str, Counter[str]]:
    """Return the index terms of `texts`, each with its whole words and their counts.
    All are taken for the language of the first three."""
    check_cancelled()
    language = guess_language(" ".join(texts[:3])) or "en"
    found: dict[str, Counter[str]] = {}
    for word, count in Counter(
        word for text in texts for word in lower_runs(text)
    ).items():
        for term in set(index_terms(word, language=language)):
            # Of a run of Chinese or Japanese a pair of characters is what can be said alone.
            found.setdefault(term, Counter())[term if is_cjk(word) else word] += count
    return found


def telling_words(
    own: Sequence[Mapping[str, Counter[str]]], spread: Mapping[str, int], n: int
) -> tuple[str, ...]:
    """Return the words that at least half of some texts contain and few others do, in
    their most frequent spelling.

    Args:
        own: Terms and words of each text, as `word_forms` gives them.
        spread: Number of texts that contain each term. One of `own` that it lacks
            raises `KeyError`; a `Counter` counts it as 0.
        n: All texts.
    """
    inside = Counter(chain.from_iterable(own))
    often: dict[str, float] = {}
    for term, counts in (pair for words in own for pair in words.items()):
        often[term] = often.get(term, 0.0) + math.log1p(counts.total())
    worth = {
        term: often[term] * count * math.log((n + 1) / max(1, spread[term] - count + 1))
        for term, count in inside.items()
        if 2 * count >= len(own)
        and (len(term) > 2 or is_cjk(term))
        and not term[0].isdigit()
    }
    best = sorted(worth, key=lambda term: (-worth[term], term))[:WORDS]
    return tuple(
        sum((words.get(term, Counter()) for words in own), Counter()).most_common(1)[0][
            0
        ]
        for term in best
    )
