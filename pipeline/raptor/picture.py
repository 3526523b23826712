"""The picture over a drawn tree: one row a layer, every node as wide as the leaves below it, as inline SVG.

Colour tells the source, grey stands for several; a thin line leads to a node's second parent. Not for: what the nodes
say (`draw.py`).
"""

from html import escape
from itertools import islice
from typing import Final

from pipeline.raptor.tree import Tree
from pipeline.work import check_cancelled

WIDTH: Final = 1000.0
ROW: Final = 34
"""Height of a layer's row, the gap below it included."""
BOX: Final = 24
MOST_LEAVES: Final = 1500
"""Leaves up to which their row is drawn: beyond, a leaf is less than a pixel wide."""
NARROWEST: Final = 0.6
"""Boxes narrower than this are left out."""
MOST_LINES: Final = 400
CHARACTER: Final = 5.2
"""Width of a character of a label."""
HUES: Final = 137.508
"""The golden angle: sources that follow each other get colours far apart."""


def picture(tree: Tree) -> str:
    """Return `tree` as an SVG element whose boxes link to `#n` and a node's id; empty where there is no summary."""
    if len(tree.layers) < 2:
        return ""
    spans = _spans(tree)
    with_leaves = len(tree.leaves) <= MOST_LEAVES
    rows = len(tree.layers) - (0 if with_leaves else 1)
    parts = [
        f'<svg viewBox="0 0 {WIDTH:.0f} {rows * ROW}" role="img" aria-label="The layers of the tree, leaves below">'
    ]
    parts.extend(_lines(tree, spans, first=0 if with_leaves else 1))
    scale = WIDTH / max(1, len(tree.leaves))
    for i, (begin, end) in enumerate(spans):
        node = tree.nodes[i]
        wide = (end - begin) * scale
        if wide < NARROWEST or (node.layer == 0 and not with_leaves):
            continue
        if i % 256 == 0:
            check_cancelled()
        parts.append(_box(tree, i, begin * scale, wide))
    return "".join([*parts, "</svg>"])


def _spans(tree: Tree) -> list[tuple[int, int]]:
    """Places [begin, end) of every node in a row of all leaves, ordered so that each stands below its first parent."""
    spans = [(0, 0)] * len(tree.nodes)
    begins: dict[int, int] = {}
    placed = 0
    stack = [(root, False) for root in reversed(tree.roots)]
    while stack:
        node, done = stack.pop()
        if done:
            spans[node] = (begins[node], placed)
        elif node not in begins:
            begins[node] = placed
            if tree.nodes[node].is_summary:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(tree.nodes[node].children))
            else:
                spans[node] = (placed, placed + 1)
                placed += 1
    return spans


def _top(tree: Tree, layer: int) -> int:
    return (len(tree.layers) - 1 - layer) * ROW


def _box(tree: Tree, place: int, left: float, wide: float) -> str:
    node = tree.nodes[place]
    documents = {tree.leaves[leaf].document for leaf in node.leaves}
    fill = (
        "#d5d5d5" if len(documents) > 1 else f"hsl({min(documents) * HUES % 360:.0f} 60% {80 + 6 * (not node.layer)}%)"
    )
    words = " ".join(node.text.split())
    top, gap = _top(tree, node.layer), 1.0 if wide > 4 else 0.1
    room = int((wide - 8) / CHARACTER)
    label = ""
    if room >= 6:
        shown = words if len(words) <= room else words[: room - 1] + "…"
        label = f'<text x="{left + 4:.1f}" y="{top + 16}">{escape(shown)}</text>'
    below = f" ({len(node.leaves)} leaves)" if node.is_summary else ""
    return (
        f'<a href="#n{node.id}"><title>{escape(words[:200])}{below}</title>'
        f'<rect x="{left:.2f}" y="{top}" width="{max(wide - gap, 0.3):.2f}" height="{BOX}" fill="{fill}"/>{label}</a>'
    )


def _lines(tree: Tree, spans: list[tuple[int, int]], *, first: int) -> list[str]:
    """Lines from nodes of layer `first` and above to the parents that they do not stand under."""
    scale = WIDTH / max(1, len(tree.leaves))
    drawn: set[int] = set()
    found: list[str] = []

    def middle(place: int) -> float:
        return (spans[place][0] + spans[place][1]) / 2 * scale

    # A node stands under the parent whose span holds it; any other parent gets a line.
    for parent in range(len(tree.leaves), len(tree.nodes)):
        for child in tree.nodes[parent].children:
            inside = spans[parent][0] <= spans[child][0] and spans[child][1] <= spans[parent][1]
            if (inside and child not in drawn) or tree.nodes[child].layer < first:
                drawn.add(child)
                continue
            low, high = _top(tree, tree.nodes[child].layer), _top(tree, tree.nodes[parent].layer) + BOX
            found.append(f'<path d="M{middle(child):.1f} {low}L{middle(parent):.1f} {high}"/>')
    return list(islice(found, MOST_LINES))
