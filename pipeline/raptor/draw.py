"""A tree as one HTML file that opens in any browser: a picture of layers and clusters, then summaries and sources.

Self-contained: no script, no style or picture from elsewhere; every text of a page is escaped. Not for: text
(`outline.py`).
"""

from collections import Counter
from html import escape
from typing import Final
from urllib.parse import urlsplit

from pipeline.raptor.picture import picture
from pipeline.raptor.tree import Tree, TreeNode
from pipeline.work import check_cancelled

MOST_DRAWN: Final = 20_000
"""Nodes in one file, some 10 MB; browsers grow slow beyond."""

OPEN_FROM: Final = 2
"""Uppermost layers that stand open, unless leaves lie below: a reader sees the themes at once and opens the rest."""
LISTED: Final = 12
"""Sources up to which their list stands open."""

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
details{margin:.35rem 0 .35rem .3rem;padding-left:.7rem;border-left:2px solid #bbb}
details.list{border:0;padding:0;margin:.5rem 0}
summary{cursor:pointer}p{margin:.2rem 0;white-space:pre-line;max-width:50rem}
.leaf{margin:.4rem 0 .4rem .3rem;padding-left:.7rem;border-left:2px dotted #ccc}
.about,.leaf small,.size{color:#666}.size{font-size:.85em;white-space:nowrap}sup a{text-decoration:none}
table{border-collapse:collapse}td,th{padding:.1rem 1.2rem .1rem 0;text-align:right}
svg{width:100%;height:auto;margin:.5rem 0}svg text{font:9px system-ui,sans-serif;fill:#222;pointer-events:none}
svg path{stroke:#999;stroke-width:.6;fill:none}svg a:hover rect{stroke:#222}:target{background:#fff3c4}
.left-out{color:#a33}
"""
_HEAD: Final = (
    '<!doctype html><html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)


def draw(tree: Tree) -> str:
    """Return an HTML page of `tree`: a picture of its layers, its sources, then the nodes from the roots down.

    A node with several parents is drawn whole under the first and named by its id under the others.
    """
    title = _title(tree)
    built = tree.built_with
    listed = " open" if len(tree.sources) <= LISTED else ""
    parts = [
        _HEAD,
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>",
        f'<p class="about">{len(tree.leaves)} leaves, {len(tree.nodes) - len(tree.leaves)} summaries in '
        f"{max(0, len(tree.layers) - 1)} layers; ask it again as {escape(tree.id)}<br>vectors: "
        f"{escape(built.embedder)}; summaries: {escape(built.summariser)}{_written(tree)}; clusters: "
        f"{escape(built.options.clustering)}</p>",
        picture(tree),
        '<p class="about">A row is a layer, a box as wide as the leaves below it, its colour the source (grey: '
        "several); a line leads to a second parent. A click opens the node.</p>",
        f'<details class="list"{listed}><summary><b>{_count(len(tree.sources), "source")}</b></summary><ol>',
        *_sources(tree),
        '</ol></details><details class="list"><summary><b>Layers</b></summary>',
        _layers(tree),
        "</details><h2>From the roots down</h2>",
        *_nodes(tree),
        "</body></html>",
    ]
    return "".join(parts)


def _written(tree: Tree) -> str:
    """How many summaries a generator wrote, if any: a tree by a generator may hold extracted ones, and the reverse."""
    summaries = [node for node in tree.nodes if node.is_summary]
    written = sum(not node.quotes for node in summaries)
    return f" ({written} of {len(summaries)} written)" if written else ""


def _title(tree: Tree) -> str:
    if len(tree.sources) == 1:
        return f"Tree of {tree.sources[0].title or tree.sources[0].url}"
    return f"Tree of {len(tree.sources)} sources"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _sources(tree: Tree) -> list[str]:
    leaves = Counter(leaf.document for leaf in tree.leaves)
    return [
        f'<li>{_link(source.url, source.title or source.url)} <span class="size">{leaves[i]} leaves</span></li>'
        for i, source in enumerate(tree.sources)
    ]


def _layers(tree: Tree) -> str:
    rows = ["<table><tr><th>layer<th>nodes<th>tokens<th>children a node<th>in several clusters</tr>"]
    parents = Counter(child for node in tree.nodes for child in node.children)
    for layer in range(len(tree.layers) - 1, -1, -1):
        places = tree.layers[layer]
        nodes = [tree.nodes[i] for i in places]
        tokens = sum(node.tokens for node in nodes)
        children = f"{sum(len(node.children) for node in nodes) / max(1, len(nodes)):.1f}" if layer else "–"
        soft = sum(parents[i] > 1 for i in places)
        rows.append(f"<tr><td>{layer}<td>{len(nodes)}<td>{tokens}<td>{children}<td>{soft}</tr>")
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
    sources = [tree.sources[i] for i in documents]
    where = "From " + "; ".join(_link(source.url, source.title or source.url) for source in sources[:5])
    more = f" and {len(documents) - 5} more" if len(documents) > 5 else ""
    marks = ", ".join(escape(mark) for mark in node.unborne)
    lost = f'<p class="left-out">Left out for what no child has: {marks}</p>' if marks else ""
    top = len(tree.layers) - 1
    told = f'<p class="about">{where}{more}</p>' if len(tree.sources) > 1 else ""
    is_open = " open" if node.layer == top or 1 < node.layer > top - OPEN_FROM else ""
    return (
        f'<details id="n{node.id}"{is_open}><summary>{_words(node.text, 14)} <span class="size">layer {node.layer}, '
        f"{len(node.children)} children, {len(node.leaves)} leaves</span></summary>"
        f"<p>{_quoted(tree, node)}</p>{lost}{told}"
    )


def _quoted(tree: Tree, node: TreeNode) -> str:
    """The summary; after it, for one of extracted sentences, a link to the leaf of each."""
    links = [
        f'<sup><a href="#n{tree.nodes[quote.leaf].id}">{n}</a></sup>' for n, quote in enumerate(node.quotes, start=1)
    ]
    return escape(node.text) + (f" {' '.join(links)}" if links else "")


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
