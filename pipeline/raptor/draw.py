"""A tree as one HTML file that opens in any browser: layers, clusters, summaries, sources.

Self-contained: no script, no style or picture from elsewhere; every text of a page is escaped. Not for: text
(`outline.py`).
"""

from html import escape
from typing import Final
from urllib.parse import urlsplit

from pipeline.raptor.tree import Tree, TreeNode
from pipeline.work import check_cancelled

MOST_DRAWN: Final = 20_000
"""Nodes in one file, some 10 MB; browsers grow slow beyond."""

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
details{margin:.3rem 0 .3rem .4rem;padding-left:.7rem;border-left:2px solid #bbb}
summary{cursor:pointer}p{margin:.2rem 0;white-space:pre-line}.leaf{margin:.4rem 0 .4rem .4rem;padding-left:.7rem}
.about,.leaf small{color:#666}table{border-collapse:collapse}td,th{padding:.1rem .8rem .1rem 0;text-align:left}
.left-out{color:#a33}
"""
_HEAD: Final = (
    '<!doctype html><html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)


def draw(tree: Tree) -> str:
    """Return an HTML page of `tree`: a table of layers, its sources, then the nodes from the roots down.

    A node with several parents is drawn whole under the first and named by its id under the others.
    """
    title = f"Tree of {len(tree.sources)} sources"
    built = tree.built_with
    parts = [
        _HEAD,
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>",
        f'<p class="about">{escape(tree.id)}<br>vectors: {escape(built.embedder)}; '
        f"summaries: {escape(built.summariser)}; clusters: {escape(built.options.clustering)}</p>",
        _layers(tree),
        "<h2>Sources</h2><ol>",
        *(f"<li>{_link(source.url, source.title or source.url)}</li>" for source in tree.sources),
        "</ol><h2>Nodes</h2>",
        *_nodes(tree),
        "</body></html>",
    ]
    return "".join(parts)


def _layers(tree: Tree) -> str:
    rows = ["<h2>Layers</h2><table><tr><th>layer<th>nodes<th>tokens<th>children a node</tr>"]
    for layer in range(len(tree.layers) - 1, -1, -1):
        nodes = [tree.nodes[i] for i in tree.layers[layer]]
        tokens = sum(node.tokens for node in nodes)
        children = sum(len(node.children) for node in nodes) / max(1, len(nodes))
        rows.append(f"<tr><td>{layer}<td>{len(nodes)}<td>{tokens}<td>{children:.1f}</tr>")
    return "".join([*rows, "</table>"])


def _nodes(tree: Tree) -> list[str]:
    """The nodes depth first; a stack, for a tree may be deeper than Python's recursion likes."""
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
            parts.append(f'<p class="about">also here: <a href="#n{node.id}">{_words(node.text, 12)}</a></p>')
        elif len(drawn) >= MOST_DRAWN:
            parts.append(f"<p>Drawn to {MOST_DRAWN} nodes of {len(tree.nodes)}.</p>")
            parts.extend(rest for rest in reversed(stack) if isinstance(rest, str))
            break
        else:
            drawn.add(step)
            node = tree.nodes[step]
            parts.append(_open(tree, node) if node.is_summary else _leaf(tree, step))
            if node.is_summary:
                stack.append("</details>")
                stack.extend(reversed(node.children))
    return parts


def _open(tree: Tree, node: TreeNode) -> str:
    documents = sorted({tree.leaves[leaf].document for leaf in node.leaves})
    where = "; ".join(escape(tree.sources[i].title or tree.sources[i].url) for i in documents[:5])
    more = f" and {len(documents) - 5} more" if len(documents) > 5 else ""
    marks = ", ".join(escape(mark) for mark in node.unborne)
    lost = f'<p class="left-out">Left out for what no child has: {marks}</p>' if marks else ""
    return (
        f'<details id="n{node.id}"><summary><b>Layer {node.layer}</b>, {len(node.children)} children, '
        f"{len(node.leaves)} leaves: {_words(node.text, 14)}</summary>"
        f'<p>{escape(node.text)}</p>{lost}<p class="about">From {where}{more}</p>'
    )


def _leaf(tree: Tree, place: int) -> str:
    leaf, node = tree.leaves[place], tree.nodes[place]
    path = escape(" › ".join(leaf.heading_path))
    return (
        f'<div class="leaf" id="n{node.id}"><p>{escape(node.text)}</p>'
        f"<small>{_link(leaf.url, leaf.title or leaf.url)} {path} ({leaf.start}–{leaf.end})</small></div>"
    )


def _words(text: str, most: int) -> str:
    words = text.split()
    return escape(" ".join(words[:most])) + ("…" if len(words) > most else "")


def _link(url: str, text: str) -> str:
    """A link where the address opens a page; a page cannot make it a script."""
    if urlsplit(url).scheme.lower() not in ("http", "https", "file"):
        return escape(text)
    return f'<a href="{escape(url)}" rel="noreferrer nofollow">{escape(text)}</a>'
