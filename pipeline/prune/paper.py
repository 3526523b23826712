"""Pruning as the paper prints it: delete the lowest blocks of the block tree until the budget holds (Algorithm 2).

Kept for comparison and for readers who want whole HTML subtrees; `prune.py` says why it is not the default. Not for:
the generative step (§3.4.2), which scores the finer blocks (`generate.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
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
        found.split[number] = _ancestors(block.path for block in blocks)
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
        split = found.split[index]
        path = block.path
        # A node that was opened already in the first step stands for its own text alone.
        inside = (index, path) in survivors
        while not inside and "/" in path:
            path = path.rpartition("/")[0]
            inside = path not in split and (index, path) in survivors
        if inside:
            result.documents.append(index)
            result.blocks.append(block)
    return result


def keep_within(
    documents: Sequence[Document], found: PaperBlocks, order: Sequence[int], max_tokens: int
) -> tuple[list[int], dict[int, str]]:
    """Delete blocks, lowest first, until what remains is within `max_tokens`; repair the structure.

    Args:
        documents: The pages.
        found: Their blocks.
        order: Indices of the blocks that may be kept, best first.
        max_tokens: Budget for the HTML of all pages joined by line breaks.

    Returns:
        The blocks that are kept, best first, and the HTML by document. The number of deletions is found by bisection
        (the length falls with each one), then settled one by one.
    """
    low, high = 0, len(order)
    while low < high:
        check_cancelled()
        middle = (low + high + 1) // 2
        if _size(_texts(documents, found, order[:middle])) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    texts = _texts(documents, found, order[:low])
    while low and _size(texts) > max_tokens:
        low -= 1
        texts = _texts(documents, found, order[:low])
    return list(order[:low]), texts


def _size(texts: Mapping[int, str]) -> int:
    return count_tokens("\n".join(texts.values()))


def _texts(documents: Sequence[Document], found: PaperBlocks, kept: Sequence[int]) -> dict[int, str]:
    paths: dict[int, set[str]] = {}
    for number in kept:
        paths.setdefault(found.documents[number], set()).add(found.blocks[number].path)
    return {
        index: to_html(repaired)
        for index in sorted(paths)
        if (repaired := _remaining(documents[index], paths[index], found.split[index]))
    }


def _remaining(document: Document, paths: set[str], split: set[str]) -> Node | None:
    """Return a tree of the kept blocks only: emptied parents are gone, single-nested ones merged.

    A block that is a whole node keeps all below it; one that is a split node's own text keeps the text alone.
    """
    inner = _ancestors(paths)
    done: dict[str, Node | None] = {}
    stack: list[tuple[Node, str, bool]] = [(document.root, document.root.tag, False)]
    while stack:
        node, path, ready = stack.pop()
        if not ready and path in paths and path not in split:
            done[path] = node
            continue
        labels = label_children(node)
        children = [child for child in node.children if isinstance(child, Node)]
        below = [(child, f"{path}/{label}") for child, label in zip(children, labels, strict=True)]
        wanted = [(child, name) for child, name in below if name in paths or name in inner]
        if not ready:
            stack.append((node, path, True))
            stack.extend((child, name, False) for child, name in wanted)
            continue
        names = {id(child): name for child, name in wanted}
        done[path] = _shell(node, names, done, with_text=path in paths)
    return done.get(document.root.tag)


def _ancestors(paths: Iterable[str]) -> set[str]:
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
        path = block.path
        parent = path.rpartition("/")[0]
        inside = path in whole or (parent in own and path.rpartition("/")[2].removeprefix("text").isdigit())
        while not inside and "/" in path:
            path = path.rpartition("/")[0]
            inside = path in whole
        if inside:
            kept.append(number)
    return tuple(kept)


def _shell(node: Node, names: Mapping[int, str], done: Mapping[str, Node | None], *, with_text: bool) -> Node | None:
    shell = Node(node.tag, node.attrs)
    for child in node.children:
        if isinstance(child, str):
            if with_text:
                shell.children.append(child)
        elif (name := names.get(id(child))) and (kept := done.get(name)) is not None:
            shell.children.append(kept)
    if not shell.children:
        return None
    only = shell.children[0]
    if len(shell.children) == 1 and isinstance(only, Node) and node.tag in _MERGED and only.breaks:
        return only
    return shell
