"""A tree as indented text, from the roots down, for a person or a model that wants to see what is there.

Not for: evidence (`query.py`); lines are the beginnings of summaries, not whole sentences.
"""

from typing import Final

from pipeline.raptor.tree import Tree, TreeNode
from pipeline.text.tokens import count_tokens, cut_to_tokens

LINE_TOKENS: Final = 24
"""Tokens of a node's own words in its line."""
MORE: Final = "…"


def outline(tree: Tree, *, max_tokens: int) -> str:
    """Return the tree's outline in at most `max_tokens` tokens, upper layers before lower ones.

    One line a node: words of its text, how many leaves stand below it, and where they come from.
    """
    head = (
        f"{len(tree.sources)} documents, {len(tree.leaves)} leaves, {len(tree.layers)} layers, "
        f"vectors: {tree.built_with.embedder}, summaries: {tree.built_with.summariser}"
    )
    room = max_tokens - count_tokens(head)
    if room < 0:
        return cut_to_tokens(head, max_tokens)
    kept = _kept(tree, room)
    lines = [head]
    shown: set[int] = set()
    stack = [(node, 0) for node in reversed(tree.roots)]
    while stack:
        place, depth = stack.pop()
        if place not in kept or place in shown:
            continue
        shown.add(place)
        lines.append(_line(tree, tree.nodes[place], depth))
        stack.extend((child, depth + 1) for child in reversed(tree.nodes[place].children))
    return "\n".join(lines)


def _kept(tree: Tree, room: int) -> set[int]:
    """The nodes whose lines fit, level by level from the roots; a node shows once, under its first parent."""
    kept: set[int] = set()
    level = [(node, 0) for node in tree.roots]
    while level:
        below: list[tuple[int, int]] = []
        for place, depth in level:
            if place in kept:
                continue
            # A depth-first line may end up one step deeper than breadth-first reached it; indentation costs at most 1.
            cost = count_tokens(_line(tree, tree.nodes[place], depth)) + 2
            if cost > room:
                return kept
            room -= cost
            kept.add(place)
            below.extend((child, depth + 1) for child in tree.nodes[place].children)
        level = below
    return kept


def _line(tree: Tree, node: TreeNode, depth: int) -> str:
    words = " ".join(node.text.split())
    short = cut_to_tokens(words, LINE_TOKENS)
    text = short if short == words else f"{short} {MORE}"
    first = tree.leaves[node.leaves[0]]
    documents = {tree.leaves[leaf].document for leaf in node.leaves}
    where = f"{first.title or first.url}" if len(documents) == 1 else f"{len(documents)} documents"
    if not node.is_summary:
        return f"{'  ' * depth}- {text}"
    return f"{'  ' * depth}- {text} [{len(node.leaves)} leaves, {cut_to_tokens(where, LINE_TOKENS)}]"
