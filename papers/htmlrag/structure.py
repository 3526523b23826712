"""HtmlRAG's lossless structural compression (§3.2.2), which §3.4.1 repeats after blocks are
deleted: single-nested tags are merged, empty ones removed, whatever they are.

For the paper's pruning alone. Not for: what every page goes through
(`readers/html/clean.py`), which merges wrappers without a meaning of their own and
keeps the empty cells that hold a table's columns apart."""

from readers.tree import VOID_TAGS, Node


def compressed(root: Node) -> Node:
    """Return the tree below `root`, which stays, without empty and single-nested
    tags."""
    made = Node(root.tag, root.attrs)
    made.breaks = root.breaks
    for child in root.children:
        kept = child if isinstance(child, str) else _merged(child)
        if kept is not None:
            made.children.append(kept)
    return made


def unwrapped(node: Node) -> Node | None:
    """Return what stays of a node whose children are compressed: nothing of an empty one,
    its only child of a single-nested one."""
    held = [one for one in node.children if isinstance(one, Node) or one.strip()]
    if not held:
        return None
    only = held[0]
    return only if len(held) == 1 and isinstance(only, Node) else node


def _merged(node: Node) -> Node | None:
    """Return what stays of a node and what is below it. Recursive, since a tree is at most
    `html.tree.MAX_DEPTH` deep."""
    return node if node.tag in VOID_TAGS else unwrapped(compressed(node))
