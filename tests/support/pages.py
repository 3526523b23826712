"""Pages as fetching leaves them, for tests of what is done with them."""

import re

from readers.html.document import read_document
from readers.page import Document, Page
from readers.tree import Node, label_children

RIVERS = (
    """<title>Rivers - Atlas</title><nav><ul><li><a>Home</a><li><a>Maps</a><li><a>Shop</a></ul></nav>
<main><h1>Rivers</h1><p>Rivers carry water from the mountains to the sea.</p><h2>Europe</h2>
<p>The Danube flows through ten countries, more than any other river of the world.</p>
<table><caption>Longest rivers</caption><tr><th>River<th>Length km<th>Mouth<tr><td>Volga<td>3531<td>Caspian Sea
<tr><td>Danube<td>2850<td>Black Sea<tr><td>Ural<td>2428<td>Caspian Sea<tr><td>Dnieper<td>2201<td>Black Sea</table>
<h2>Asia</h2><p>To measure a river:</p><ul><li>choose a source<li>follow the deepest channel<li>stop at the mouth</ul>
<pre>length = 0
for part in parts:
    length += part</pre><p>The Yangtze is the longest river of Asia. """
    + "It has many dams. " * 60
    + "</p></main>"
)
"""A page with a heading, a table, a list, code, furniture and a long paragraph."""


def document(
    html: str = RIVERS,
    url: str = "https://example.org/",
    title: str = "",
    *,
    author: str = "",
    published: str = "",
) -> Document:
    """Return the page that `url` answers with `html`, read."""
    return read_document(
        Page(url, url, title, html, "text/html", author=author, published=published)
    )


def resolve(root: Node, path: str) -> Node | None:
    """Return the node that a block's path names; for a run of text, the node that holds it; None for
    no such path."""
    node, steps = root, path.split("/")
    if steps[0] != root.tag:
        return None
    for step in steps[1:]:
        if re.fullmatch(r"text\d+", step):
            return node
        children = [child for child in node.children if isinstance(child, Node)]
        labels = dict(zip(label_children(node), children, strict=True))
        if step not in labels:
            return None
        node = labels[step]
    return node
