"""From a fetched page to a document: clean, cut into content units, fill in what the page says of itself.

Not for: fetching (`pipeline/fetch`), choosing what to keep (`pipeline/prune`).
"""

import re
from dataclasses import replace
from typing import Final

from pipeline.documents import Block, Document, Page
from pipeline.html.blocks import content_blocks
from pipeline.html.clean import clean, clean_parsed
from pipeline.html.guard import MAX_TAGS, parse
from pipeline.html.metadata import Metadata, find_metadata, read_metadata
from pipeline.html.tree import LABEL_WORDS, Node, to_html
from pipeline.read.scripts import may_be_filled, script_texts
from pipeline.text.frame import LONGEST_AUTHOR, one_line
from pipeline.text.words import words

FROM_SCRIPTS: Final = "the page is built by scripts in a browser; text was taken from its JSON-LD or script data"
_TAGGED: Final = re.compile(
    r"</?(?:p|div|ul|ol|li|h[1-6]|br|table|strong|em|a|span|blockquote|section)\b", re.IGNORECASE
)


def read_document(page: Page) -> Document:
    """Return `page` cleaned and cut into content units, its empty metadata filled from what it says of itself.

    A client-side page whose markup shows next to nothing is read from its JSON-LD or framework data, too, and says so
    in `page.notes`. Never fails on markup: a page without visible text gives a document without blocks.
    """
    # 1. Parse once: what the page says of itself, what it shows. Its tree is freed before ours grows into units.
    top = parse(page.html)
    known = None if top is None else read_metadata(page.html, top)
    root, unseen, waits = (Node("html"), 0, False) if top is None else clean_parsed(top)
    del top
    # 2. Where the page gives no date, trafilatura is asked for all that it does not say of itself.
    said = page
    if known is not None:
        said = replace(page, author=page.author or known.author, published=page.published or known.published)
        silent = not (page.published or known.published)
        # In a text file or PDF any date of the text would be taken for its own.
        other = find_metadata(page.html, page.final_url) if silent and "html" in page.media_type else Metadata()
        page = replace(
            page,
            title=page.title or known.title or other.title,
            author=page.author or known.author or other.author,
            published=page.published or known.published or other.published,
            language=page.language or known.language or other.language,
        )
    # 3. Next to nothing to see: what would its scripts have drawn?
    about = _about(said)
    text, blocks = content_blocks(root, about)
    notes = page.notes
    drawn = _drawn(page.html, blocks[len(about) :])
    if drawn is not None:
        root.children.append(drawn)
        text, blocks = content_blocks(root, about)
        notes = (*notes, FROM_SCRIPTS)
    if drawn is not None or waits:
        page = replace(page, trust="script")
    if unseen >= LABEL_WORDS:  # fewer are labels that a design moves away
        page = replace(page, hidden=page.hidden + unseen)
        notes = (*notes, f"{unseen} words that no reader of the page sees were left out")
    if page.html.count("<") > MAX_TAGS:
        page = replace(page, unread=f"what follows its first {MAX_TAGS:,} tags")
    page = replace(page, notes=notes)
    return Document(page=page, html=to_html(root), text=text, blocks=blocks, root=root)


def _about(page: Page) -> list[str]:
    """Return who wrote a page and when it came out, named in its language: what is asked of pages, and seldom so named
    in their text."""
    names = dict(entry.split(": ") for entry in words("about", page.language or "en") or words("about", "en"))
    said = {"author": one_line(page.author)[:LONGEST_AUTHOR], "published": page.published}
    return [f"{names[key]}: {value}" for key, value in said.items() if value]


def _drawn(html: str, blocks: tuple[Block, ...]) -> Node | None:
    """Return the texts in a page's scripts as a body, or None where what the page shows must stand alone."""
    shown = [block.text for block in blocks if block.main]
    if not may_be_filled(html, shown):
        return None
    body = Node("body")
    for tag, text in script_texts(html):
        if tag == "dd":
            body.children.append(_definition(text))
        elif tag == "noscript" or _TAGGED.search(text):
            body.children += _fragment(text)
        else:
            body.children += [_leaf(tag, line) for line in text.split("\n") if line.strip()]
    return body if body.children else None


def _fragment(html: str) -> list[Node]:
    """Return the body of HTML that came inside something else, as a block of another page."""
    nodes = [node for node in clean(html).children if isinstance(node, Node) and node.tag == "body"]
    for node in nodes:
        node.tag = "div"
    return nodes


def _definition(text: str) -> Node:
    """Return `name: value` as a definition list."""
    term, _, value = text.partition(": ")
    pair = Node("dl")
    pair.children += [_leaf("dt", term), _leaf("dd", value)]
    return pair


def _leaf(tag: str, text: str) -> Node:
    node = Node(tag)
    node.children.append(" ".join(text.split()))
    return node
