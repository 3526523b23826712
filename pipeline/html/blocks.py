"""Two ways to cut a cleaned tree: the paper's block tree (Algorithm 1), and content units in reading order.

`block_tree` is for the paper's pruning; `content_blocks` is what every other step reads: headings, paragraphs, items,
table rows, code, definitions, captions, each with the headings above it and what makes it readable alone. Both put
every visible word in exactly one block and are linear in the page. Not for: choosing blocks (`pipeline/prune`).
"""

import re
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from pipeline.documents import Block, Trust
from pipeline.html.furniture import Unit, judge
from pipeline.html.tree import Node, count_words, escaped, label_children, text_of, to_html
from pipeline.html.units import read_units
from pipeline.read.converted import is_box
from pipeline.text.frame import speaks_to_models
from pipeline.text.tokens import count_each

PAPER_WORDS: Final = 256
"""Words in a block for pruning by embedding (HtmlRAG §4.3); the generative step has half as many."""
_RUN: Final = re.compile(r"text\d+")
"""Last step of the path of a run of text, which has no element of its own."""


def resolve(root: Node, path: str) -> Node | None:
    """Return the node that a block's path names; for a run of text, the node that holds it; None for no such path."""
    node = root
    steps = path.split("/")
    if steps[0] != root.tag:
        return None
    for step in steps[1:]:
        if _RUN.fullmatch(step):
            return node
        children = [child for child in node.children if isinstance(child, Node)]
        found = [child for child, label in zip(children, label_children(node), strict=True) if label == step]
        if not found:
            return None
        node = found[0]
    return node


def block_tree(root: Node, *, max_words: int) -> tuple[Block, ...]:
    """Return the blocks of the paper's block tree, in breadth-first order (HtmlRAG §3.3, Algorithm 1).

    A node without child nodes, or with fewer than `max_words` words below it, is a block. Any other node is opened:
    its children are visited, and the text attached directly to it, if any, is a block of its own under its path.
    Blocks without a word are left out. Linear in the size of the tree.
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
        own = " ".join(" ".join(child for child in node.children if isinstance(child, str)).split())
        if own:
            shell = Node(node.tag, node.attrs)
            shell.children = [own]
            found.append((path, own, to_html(shell)))
    tokens = count_each([text for _, text, _ in found])
    return tuple(
        Block(path=path, heading_path=(), text=text, html=html, tokens=count)
        for (path, text, html), count in zip(found, tokens, strict=True)
    )


def _word_counts(root: Node) -> dict[int, int]:
    """Return the number of words below each node, by its `id`."""
    counts: dict[int, int] = {}
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            counts[id(node)] = sum(
                count_words(child) if isinstance(child, str) else counts[id(child)] for child in node.children
            )
            continue
        stack.append((node, True))
        stack.extend((child, False) for child in node.children if isinstance(child, Node))
    return counts


def content_blocks(root: Node, about: Sequence[str] = ()) -> tuple[str, tuple[Block, ...]]:
    """Return the visible text of a cleaned tree, one content unit a line, and the units in reading order.

    Every word below `root` (the `title` element aside) is in exactly one unit, and `text[block.start:block.end]` is
    the unit as it stands on the page: cells joined by ` | ` for rows, line breaks kept for code. `Block.text` of a
    row under known headers reads `header: value; header: value` instead. What images are said to show follows the
    text beside them.

    Args:
        root: The cleaned tree.
        about: What a page with any text says of itself beside its text, each a unit before all others.
    """
    units = read_units(root)
    main = judge(units)
    if units:
        units = [*(_about(root, place, text) for place, text in enumerate(about, start=1)), *units]
        main = [*[True] * (len(units) - len(main)), *main]
    starts = list(accumulate((len(unit.shown) + 1 for unit in units), initial=0))
    tokens = count_each([unit.text for unit in units])
    blocks = tuple(
        Block(
            path=unit.path,
            heading_path=unit.headings,
            text=unit.text,
            html=unit.html,
            tokens=count,
            kind=unit.kind,
            start=start,
            end=start + len(unit.shown),
            main=main,
            cells=unit.cells,
            lead=unit.lead,
            speaks=speaks_to_models(unit.text),
            place=unit.place,
            trust=_trust(unit),
            closed=unit.mark is not None and unit.mark.closed and not unit.described,
        )
        for unit, start, count, main in zip(units, starts[:-1], tokens, main, strict=True)
    )
    return "\n".join(unit.shown for unit in units), blocks


def _trust(unit: Unit) -> Trust:
    """Return where a unit's words come from; recognised ones alone stand in a box of their page."""
    if unit.described or unit.kind == "about":
        return "attribute"
    return "recognised" if is_box(unit.place) else "visible"


def _about(root: Node, place: int, text: str) -> Unit:
    return Unit(f"{root.tag}/head/about{place}", (), text, text, f"<p>{escaped(text)}</p>", "about", None, 0)
