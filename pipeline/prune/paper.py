"""Pruning as the paper prints it: delete the lowest blocks of the block tree until the budget holds (Algorithm 2).

Kept for comparison and for readers who want whole HTML subtrees; `prune.py` says why it is not the default. Not for:
the generative step (§3.4.2), which scores the finer blocks (`generate.py`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pipeline.documents import Block, Document
from pipeline.html.blocks import PAPER_WORDS, block_tree
from pipeline.html.tree import Node, label_children, to_html
from pipeline.text.tokens import count_tokens
from pipeline.work import check_cancelled

_MERGED: Final = frozenset({"article", "body", "div", "main", "section"})
"""Wrappers that vanish when one child is left in them."""


@dataclass(slots=True)
class PaperBlocks:
    """The blocks of several pages, as one list."""

    documents: list[int] = field(default_factory=list)
    """Index of the document, for each block."""
    blocks: list[Block] = field(default_factory=list)
    split: dict[int, set[str]] = field(default_factory=dict)
    """By document, the paths of nodes that were opened: a block there is the node's own text only."""


def paper_blocks(documents: Sequence[Document], *, max_words: int = PAPER_WORDS) -> PaperBlocks:
    """Return the blocks of each document's block tree."""
    found = PaperBlocks()
    for number, document in enumerate(documents):
        blocks = block_tree(document.root, max_words=max_words)
        found.blocks.extend(blocks)
        found.documents.extend([number] * len(blocks))
        found.split[number] = ancestors(block.path for block in blocks)
    return found


def finer_blocks(
    documents: Sequence[Document], found: PaperBlocks, kept: Sequence[int], *, max_words: int = PAPER_WORDS // 2
) -> PaperBlocks:
    """Return the blocks of at most `max_words` words that the `kept` blocks of `found` are made of.

    Algorithm 1 at fewer words only cuts further, so each finer block lies in exactly one block of the first step.
    """
    finer = paper_blocks(documents, max_words=max_words)
    survivors = {(found.documents[number], found.blocks[number].path) for number in kept}
    result = PaperBlocks(split=finer.split)
    for index, block in zip(finer.documents, finer.blocks, strict=True):
        # A node that was opened already in the first step stands for its own text alone.
        above = ancestors([block.path]) - found.split[index]
        if any((index, path) in survivors for path in (block.path, *above)):
            result.documents.append(index)
            result.blocks.append(block)
    return result


def keep_within(
    documents: Sequence[Document], found: PaperBlocks, order: Sequence[int], max_tokens: int
) -> tuple[list[int], dict[int, str]]:
    """Delete blocks, lowest first, until what remains is within `max_tokens`; repair the structure.

    Args:
        order: Indices of the blocks that may be kept, best first.
        max_tokens: Budget for the HTML of all pages joined by line breaks.

    Returns:
        The blocks that are kept, best first, and the HTML by document. The number of deletions is found by bisection
        (the length falls with each one), then settled one by one.
    """

    def is_over(count: int) -> bool:
        check_cancelled()
        return count_tokens("\n".join(_texts(documents, found, order[:count]).values())) > max_tokens

    kept = bisect_left(range(1, len(order) + 1), True, key=is_over)
    while kept and is_over(kept):
        kept -= 1
    return list(order[:kept]), _texts(documents, found, order[:kept])


def _texts(documents: Sequence[Document], found: PaperBlocks, kept: Sequence[int]) -> dict[int, str]:
    paths: dict[int, set[str]] = {}
    for number in kept:
        paths.setdefault(found.documents[number], set()).add(found.blocks[number].path)
    return {
        index: to_html(repaired)
        for index in sorted(paths)
        if (repaired := _repaired(documents[index].root, paths[index], found.split[index]))
    }


def _repaired(root: Node, paths: set[str], split: set[str]) -> Node | None:
    return _remaining(root, root.tag, paths, split, ancestors(paths))


def _remaining(node: Node, path: str, paths: set[str], split: set[str], inner: set[str]) -> Node | None:
    """Return a tree of the kept blocks only: emptied parents are gone, single-nested ones merged.

    A block that is a whole node keeps all below it; one that is a split node's own text keeps the text alone.
    Recursive, since a cleaned tree is at most `html.tree.MAX_DEPTH` deep.
    """
    if path in paths and path not in split:
        return node
    shell = Node(node.tag, node.attrs)
    labels = iter(label_children(node))
    for child in node.children:
        if isinstance(child, str):
            shell.children.extend([child] if path in paths else [])
            continue
        name = f"{path}/{next(labels)}"
        if (name in paths or name in inner) and (kept := _remaining(child, name, paths, split, inner)):
            shell.children.append(kept)
    if not shell.children:
        return None
    only = shell.children[0]
    merges = len(shell.children) == 1 and isinstance(only, Node) and node.tag in _MERGED and only.breaks
    return only if merges and isinstance(only, Node) else shell


def ancestors(paths: Iterable[str]) -> set[str]:
    """Return the paths above `paths`."""
    above: set[str] = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in above:
            above.add(parent)
            parent = parent.rpartition("/")[0]
    return above


def kept_units(document: Document, paths: set[str], split: set[str]) -> tuple[int, ...]:
    """Return the indices of the content units that stand in the kept blocks of one page."""
    whole, own = paths - split, paths & split
    kept: list[int] = []
    for number, block in enumerate(document.blocks):
        parent, _, step = block.path.rpartition("/")
        is_own = parent in own and step.removeprefix("text").isdigit()
        if is_own or not whole.isdisjoint((block.path, *ancestors([block.path]))):
            kept.append(number)
    return tuple(kept)
