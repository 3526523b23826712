"""A tree as one HTML file that opens in any browser: a picture of layers and clusters, then summaries and sources.

Self-contained: no script, no style or picture from elsewhere; every text of a page is escaped. Not for: text
(`outline.py`).
"""

import math
from collections import Counter
from html import escape
from typing import Final
from urllib.parse import urlsplit

from pipeline.raptor.outline import label
from pipeline.raptor.tree import Tree, TreeNode
from pipeline.work import check_cancelled

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
details{margin:.35rem 0 .35rem .3rem;padding-left:.7rem;border-left:2px solid #bbb}
details.list{border:0;padding:0;margin:.5rem 0}.list ol{max-height:20em;overflow:auto}
summary{cursor:pointer}p{margin:.2rem 0;white-space:pre-line;max-width:50rem}
.leaf{margin:.4rem 0 .4rem .3rem;padding-left:.7rem;border-left:2px dotted #ccc}
.about,.leaf small,.size{color:#666}.size{font-size:.85em;white-space:nowrap}sup a{text-decoration:none}
table{border-collapse:collapse}td,th{padding:.1rem 1.2rem .1rem 0;text-align:right}
.picture{position:relative;margin:.5rem 0;font-size:11px}.picture a{position:absolute;height:2em;line-height:2em;
overflow:hidden;text-overflow:ellipsis;white-space:nowrap;box-sizing:border-box;border-right:1px solid #fff;
padding-left:.3em;color:#222;text-decoration:none}.picture a:hover{outline:1px solid #222}
.picture svg{position:absolute;width:100%;height:100%;pointer-events:none}
path{stroke:#999;stroke-width:.6;fill:none;vector-effect:non-scaling-stroke}
[id]{scroll-margin-top:4em}:target{background:#fff3c4}.left-out{color:#a33}.swatch{padding:0 .6em;margin-right:.4em}
"""
_HEAD: Final = (
    '<!doctype html><html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)


def draw(tree: Tree) -> str:
    """Return an HTML page of `tree`: a picture of its layers, its sources, then the nodes from the roots down.

    A node with several parents is drawn whole under the first and named under the others.
    """
    only = tree.sources[0] if len(tree.sources) == 1 else None
    title = escape(f"Tree of {only.title or only.url if only else f'{len(tree.sources)} sources'}")
    built = tree.built_with
    summaries = tree.nodes[len(tree.leaves) :]
    # A tree by a generator may hold extracted summaries, and the reverse.
    written = sum(not node.quotes for node in summaries)
    parts = [
        _HEAD,
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>",
        f'<p class="about">{len(tree.leaves)} leaves, {len(summaries)} summaries in {max(0, len(tree.layers) - 1)} '
        f"layers; ask it again as {escape(tree.id)}<br>vectors: {escape(built.embedder)}; summaries: "
        f"{escape(built.summariser)}{f' ({written} of {len(summaries)} written)' if written else ''}; clusters: "
        f"{escape(built.options.clustering)}</p>",
        _picture(tree),
        '<p class="about">A row is a layer, a box as wide as the leaves below it, its colour the source (grey: '
        "several); a line leads to a second parent. A click opens the node.</p>",
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
    """Return what draws `tree` on the desk: sources, and every node with its children and its place among the leaves.

    `begin` and `end` count leaves, ordered so that each stands below its first parent.
    """
    nodes = [
        {
            "id": node.id,
            "layer": node.layer,
            "name": label(tree, node),
            "text": tree.leaves[place].shown if place < len(tree.leaves) else node.text,
            "children": node.children,
            "begin": begin,
            "end": end,
            "documents": tree.documents_below(node),
            "span": [tree.leaves[place].start, tree.leaves[place].end] if place < len(tree.leaves) else [],
        }
        for place, (node, (begin, end)) in enumerate(zip(tree.nodes, _spans(tree), strict=True))
    ]
    sources = [{"url": source.url, "title": source.title} for source in tree.sources]
    return {"tree": tree.id, "leaves": len(tree.leaves), "sources": sources, "roots": tree.roots, "nodes": nodes}


def _colour(document: int, lightness: int) -> str:
    """Hues a golden angle apart, so that sources that follow each other look different."""
    return f"hsl({document * 180 * (3 - math.sqrt(5)) % 360:.0f} 60% {lightness}%)"


def _picture(tree: Tree) -> str:
    """One row a layer, every node as wide as the leaves below it; empty where there is no summary."""
    if len(tree.layers) < 2:
        return ""
    spans = _spans(tree)
    rows = len(tree.layers)
    parts = [
        f'<div class="picture" style="height:{2.6 * rows:.1f}em" role="img" aria-label="The layers of the tree">'
        f'<svg viewBox="0 0 {len(tree.leaves)} {rows}" preserveAspectRatio="none">{_lines(tree, spans)}</svg>'
    ]
    for (begin, end), node in zip(spans, tree.nodes, strict=True):
        check_cancelled()
        name, below = escape(label(tree, node)), tree.documents_below(node)
        colour = "#d5d5d5" if len(below) > 1 else _colour(below[0], 80 if node.is_summary else 86)
        left, width = 100 * begin / len(tree.leaves), 100 * (end - begin) / len(tree.leaves)
        top = 2.6 * (rows - 1 - node.layer)
        parts.append(
            f'<a href="#n{node.id}" title="{name} ({len(node.leaves)} leaves)" style="left:{left:.3f}%;'
            f'width:{width:.3f}%;top:{top:.1f}em;background:{colour}">{name if width > 2 else ""}</a>'
        )
    return "".join([*parts, "</div>"])


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
            placed += not tree.nodes[node].is_summary
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(tree.nodes[node].children))
    return spans


def _lines(tree: Tree, spans: list[tuple[int, int]]) -> str:
    """Lines from nodes to the parents that they do not stand under; units as `_picture`."""
    drawn: set[int] = set()
    found: list[str] = []
    # A node stands under the parent whose span holds it; any other parent gets a line.
    for parent in range(len(tree.leaves), len(tree.nodes)):
        begin, end = spans[parent]
        for child in tree.nodes[parent].children:
            low, high = spans[child]
            if begin <= low and high <= end and child not in drawn:
                drawn.add(child)
                continue
            top = len(tree.layers) - 1 - tree.nodes[parent].layer
            bottom = len(tree.layers) - 1 - tree.nodes[child].layer
            found.append(f'<path d="M{(low + high) / 2} {bottom}L{(begin + end) / 2} {top + 0.77}"/>')
    return "".join(found)


def _sources(tree: Tree) -> list[str]:
    leaves = Counter(leaf.document for leaf in tree.leaves)
    return [
        f'<li><span class="swatch" style="background:{_colour(i, 80)}"></span>'
        f'{_link(source.url, source.title or source.url)} <span class="size">{leaves[i]} leaves</span></li>'
        for i, source in enumerate(tree.sources)
    ]


def _layers(tree: Tree) -> str:
    rows = ["<table><tr><th>layer<th>nodes<th>tokens<th>children a node<th>in several clusters</tr>"]
    parents = Counter(child for node in tree.nodes for child in node.children)
    for layer, places in reversed(list(enumerate(tree.layers))):
        nodes = [tree.nodes[i] for i in places]
        children = f"{sum(len(node.children) for node in nodes) / len(nodes):.1f}" if layer else "–"
        shared = sum(parents[i] > 1 for i in places)
        tokens = sum(node.tokens for node in nodes)
        rows.append(f"<tr><td>{layer}<td>{len(nodes)}<td>{tokens}<td>{children}<td>{shared}</tr>")
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
            parts.append(f'<p class="about">also here: <a href="#n{node.id}">{escape(label(tree, node))}</a></p>')
        else:
            drawn.add(step)
            node = tree.nodes[step]
            parts.append(_open(tree, node) if node.is_summary else _leaf(tree, step))
            if node.is_summary:
                stack.append("</details>")
                stack.extend(reversed(node.children))
    return parts


def _open(tree: Tree, node: TreeNode) -> str:
    """A summary up to its children. The id stands inside, for a browser opens what is around the target of a link."""
    marks = ", ".join(map(escape, node.unsupported))
    lost = f'<p class="left-out">Left out for what no child has: {marks}</p>' if marks else ""
    links = [
        f'<sup><a href="#n{tree.nodes[quote.leaf].id}">{n}</a></sup>' for n, quote in enumerate(node.quotes, start=1)
    ]
    top = len(tree.layers) - 1
    # The uppermost two layers stand open, unless leaves lie below.
    is_open = " open" if node.layer == top or node.layer == top - 1 > 1 else ""
    return (
        f'<details{is_open}><summary>{escape(label(tree, node))} <span class="size">layer {node.layer}, '
        f"{len(node.children)} children, {len(node.leaves)} leaves</span></summary>"
        f'<p id="n{node.id}">{" ".join([escape(node.text), *links])}</p>{lost}'
    )


def _leaf(tree: Tree, place: int) -> str:
    leaf, source = tree.leaves[place], tree.sources[tree.leaves[place].document]
    path = escape(" › ".join(leaf.heading_path))
    return (
        f'<div class="leaf" id="n{leaf.id}"><p>{escape(leaf.shown)}</p>'
        f"<small>{_link(source.url, source.title or source.url)} {path} ({leaf.start}–{leaf.end})</small></div>"
    )


def _link(url: str, text: str) -> str:
    """A link where the address opens a page; a page cannot make it a script."""
    if urlsplit(url).scheme.lower() not in ("http", "https", "file"):
        return escape(text)
    return f'<a href="{escape(url)}" rel="noreferrer nofollow">{escape(text)}</a>'
