"""The block tree of HtmlRAG (§3.3, Algorithm 1): a cleaned page cut by its number of words, for the
paper's pruning.

Every visible word is in exactly one block. Linear in the page. Not for: units of content
(`readers/html/blocks.py`), or choosing blocks (`prune.py`).
"""

from collections import deque
from typing import Final

from readers.page import Block
from readers.tree import Node, count_words, label_children, text_of, to_html

PAPER_WORDS: Final = 256
"""Words in a block for pruning by embedding (HtmlRAG §4.4); the generative step has half as
many."""


def block_tree(root: Node, *, max_words: int) -> tuple[Block, ...]:
    """Return the blocks of the paper's block tree, in breadth-first order (HtmlRAG §3.3, Algorithm
    1).

    A node without child nodes, or with fewer than `max_words` words below it, is a block. Any other
    node is opened: its children are visited, and the text attached directly to it, if any, is a
    block of its own under its path. Blocks without a word are left out. Linear in the size of the
    tree.
    """
    words = _word_counts(root)
    found: list[tuple[str, str, str]] = []
    queue: deque[tuple[Node, str]] = deque([(root, root.tag)])
    while queue:
        node, path = queue.popleft()
        children = [child for child in node.children if isinstance(child, Node)]
        if not children or words[id(node)] < max_words:
            text = text_of(node)
            if text:
                found.append((path, text, to_html(node)))
            continue
        for child, label in zip(children, label_children(node), strict=True):
            queue.append((child, f"{path}/{label}"))
        own = " ".join(
            " ".join(child for child in node.children if isinstance(child, str)).split()
        )
        if own:
            shell = Node(node.tag, node.attrs)
            shell.children = [own]
            found.append((path, own, to_html(shell)))
    return tuple(
        Block(path=path, heading_path=(), text=text, html=html)
        for path, text, html in found
    )


def _word_counts(root: Node) -> dict[int, int]:
    """Return the number of words below each node, by its `id`."""
    counts: dict[int, int] = {}
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            counts[id(node)] = sum(
                count_words(child) if isinstance(child, str) else counts[id(child)]
                for child in node.children
            )
            continue
        stack.append((node, True))
        stack.extend(
            (child, False) for child in node.children if isinstance(child, Node)
        )
    return counts
