"""A tree as one HTML file that opens in any browser: its layers, clusters, summaries
and sources.

Self-contained: no script, no style or picture from elsewhere; every text of a page is
escaped. The desk draws the picture of a tree, from `layout`. Not for: text
(`outline.py`)."""

from collections import Counter
from html import escape
from typing import Final
from urllib.parse import urlsplit

from pipeline.raptor.outline import label
from pipeline.raptor.tree import Tree, TreeNode
from pipeline.work import check_cancelled

_TREE_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
details{margin:.35rem 0 .35rem .3rem;padding-left:.7rem;border-left:2px solid #bbb}
details.list{border:0;padding:0;margin:.5rem 0}.list ol{max-height:20em;overflow:auto}
summary{cursor:pointer}p{margin:.2rem 0;white-space:pre-line;max-width:50rem}
.leaf{margin:.4rem 0 .4rem .3rem;padding-left:.7rem;border-left:2px dotted #ccc}
.about,.leaf small,.size{color:#666}.size{font-size:.85em;white-space:nowrap}sup a{text-decoration:none}
table{border-collapse:collapse}td,th{padding:.1rem 1.2rem .1rem 0;text-align:right}
[id]{scroll-margin-top:4em}:target{background:#fff3c4}.left-out{color:#a33}
"""
_TREE_HEAD: Final = (
    '<!doctype html><html><head><meta charset="utf-8"><meta name="viewport" '
    'content="width=device-width">'
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
    "'unsafe-inline'\">"
)


def draw(tree: Tree) -> str:
    """Return an HTML page of `tree`: its sources and layers, then the nodes from the
    roots down.

    A node with several parents is drawn whole under the first and named under the
    others."""
    only = tree.sources[0] if len(tree.sources) == 1 else None
    title = escape(
        f"Tree of {only.title or only.url if only else f'{len(tree.sources)} sources'}"
    )
    built = tree.built_with
    summaries = tree.nodes[len(tree.leaves) :]
    # A tree by a generator may hold extracted summaries, and the reverse.
    written = sum(not node.quotes for node in summaries)
    shares = (
        f" ({written} of {len(summaries)} in its words, the others extracted)"
        * bool(written)
    )
    parts = [
        _TREE_HEAD,
        f"<title>{title}</title><style>{_TREE_STYLE}</style></head><body><h1>{title}</h1>",
        f'<p class="about">{len(tree.leaves)} leaves, {len(summaries)} summaries in '
        f"{max(0, len(tree.layers) - 1)} "
        f"layers; ask it again as {escape(tree.id)}<br>vectors: {escape(built.embedder)}; "
        f"summaries: "
        f"{escape(built.summariser)}{shares}; clusters: "
        f"{escape(built.options.clustering)}</p>",
        f'<details class="list" open><summary><b>Sources ({len(tree.sources)})</b></summary><ol>',
        *_sources(tree),
        '</ol></details><details class="list"><summary><b>Layers</b></summary>',
        _layers(tree),
        "</details><h2>From the roots down</h2>",
        *_nodes(tree),
        "</body></html>",
    ]
    return "".join(parts)


def layout(tree: Tree) -> dict[str, object]:
    """Return drawing data of `tree` for the desk: sources, and every node with children
    and leaf range.

    `begin` and `end` count leaves, ordered so that each is below its first parent.
    """
    nodes = [
        {
            "id": node.id,
            "layer": node.layer,
            "name": label(tree, node),
            "text": tree.leaves[index].shown if index < len(tree.leaves) else node.text,
            "children": node.children,
            "begin": begin,
            "end": end,
            "documents": tree.documents_below(node),
            "span": [tree.leaves[index].start, tree.leaves[index].end]
            if index < len(tree.leaves)
            else [],
        }
        for index, (node, (begin, end)) in enumerate(
            zip(tree.nodes, _spans(tree), strict=True)
        )
    ]
    sources = [{"url": source.url, "title": source.title} for source in tree.sources]
    return {
        "tree": tree.id,
        "leaves": len(tree.leaves),
        "sources": sources,
        "roots": tree.roots,
        "nodes": nodes,
    }


def _spans(tree: Tree) -> list[tuple[int, int]]:
    """Places [begin, end) of every node in a row of all leaves, ordered so that each is
    below its first parent."""
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
            placed += not tree.nodes[node].is_summary
            stack.append((node, True))
            stack.extend(
                (child, False) for child in reversed(tree.nodes[node].children)
            )
    return spans


def _sources(tree: Tree) -> list[str]:
    leaves = Counter(leaf.document for leaf in tree.leaves)
    return [
        f'<li>{_link(source.url, source.title or source.url)} <span class="size">{leaves[i]} '
        f"leaves</span></li>"
        for i, source in enumerate(tree.sources)
    ]


def _layers(tree: Tree) -> str:
    rows = [
        "<table><tr><th>layer<th>nodes<th>tokens<th>children a node<th>in several clusters</tr>"
    ]
    parents = Counter(child for node in tree.nodes for child in node.children)
    for layer, places in reversed(list(enumerate(tree.layers))):
        nodes = [tree.nodes[i] for i in places]
        children = (
            f"{sum(len(node.children) for node in nodes) / len(nodes):.1f}"
            if layer
            else "–"
        )
        shared = sum(parents[i] > 1 for i in places)
        tokens = sum(node.tokens for node in nodes)
        rows.append(
            f"<tr><td>{layer}<td>{len(nodes)}<td>{tokens}<td>{children}<td>{shared}</tr>"
        )
    return "".join([*rows, "</table>"])


def _nodes(tree: Tree) -> list[str]:
    parts: list[str] = []
    drawn: set[int] = set()
    stack: list[int | str] = list(reversed(tree.roots))
    while stack:
        check_cancelled()
        step = stack.pop()
        if isinstance(step, str):
            parts.append(step)
        elif step in drawn:
            node = tree.nodes[step]
            parts.append(
                f'<p class="about">also here: <a '
                f'href="#n{node.id}">{escape(label(tree, node))}</a></p>'
            )
        else:
            drawn.add(step)
            node = tree.nodes[step]
            parts.append(_open(tree, node) if node.is_summary else _leaf(tree, step))
            if node.is_summary:
                stack.append("</details>")
                stack.extend(reversed(node.children))
    return parts


def _open(tree: Tree, node: TreeNode) -> str:
    """A summary up to its children. The id is inside, because a browser opens the
    element around a link's target."""
    marks = ", ".join(map(escape, node.unsupported))
    lost = (
        f'<p class="left-out">Left out for what no child has: {marks}</p>'
        if marks
        else ""
    )
    links = [
        f'<sup><a href="#n{tree.nodes[quote.leaf].id}">{n}</a></sup>'
        for n, quote in enumerate(node.quotes, start=1)
    ]
    top = len(tree.layers) - 1
    # The top two layers are open, unless leaves are below.
    is_open = " open" if node.layer == top or node.layer == top - 1 > 1 else ""
    return (
        f'<details{is_open}><summary>{escape(label(tree, node))} <span class="size">layer '
        f"{node.layer}, "
        f"{len(node.children)} children, {len(node.leaves)} leaves</span></summary>"
        f'<p id="n{node.id}">{" ".join([escape(node.text), *links])}</p>{lost}'
    )


def _leaf(tree: Tree, index: int) -> str:
    leaf, source = tree.leaves[index], tree.sources[tree.leaves[index].document]
    path = escape(" › ".join(leaf.heading_path))
    return (
        f'<div class="leaf" id="n{leaf.id}"><p>{escape(leaf.shown)}</p>'
        f"<small>{_link(source.url, source.title or source.url)} {path} "
        f"({leaf.start}–{leaf.end})</small></div>"
    )


def _link(url: str, text: str) -> str:
    """A link where the address opens a page; a page cannot make it a script."""
    if urlsplit(url).scheme.lower() not in ("http", "https", "file"):
        return escape(text)
    return f'<a href="{escape(url)}" rel="noreferrer nofollow">{escape(text)}</a>'
