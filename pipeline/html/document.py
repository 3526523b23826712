"""From a fetched page to a document: clean, cut into content units, fill in what the page says of itself.

Not for: fetching (`pipeline/fetch`), choosing what to keep (`prune.py`).
"""

from dataclasses import replace
from typing import Final

from pipeline.documents import Document, Page
from pipeline.html.blocks import content_blocks
from pipeline.html.clean import clean_parsed
from pipeline.html.embedded import recover
from pipeline.html.guard import MAX_TAGS, parse
from pipeline.html.metadata import Metadata, read_metadata
from pipeline.html.opinion import find_metadata
from pipeline.html.tree import Node, count_words, to_html

EMPTY_WORDS: Final = 60
"""Content words below which a page may be waiting for its scripts."""
GAIN: Final = 3
"""How many times more words its data must hold to be read instead."""


def read_document(page: Page) -> Document:
    """Return `page` cleaned and cut into content units, its empty metadata filled from what it says of itself.

    A client-side page whose markup holds next to nothing is read from its JSON-LD or framework data, and says so in
    `page.notes`. Never fails on markup: a page without visible text gives a document without blocks.
    """
    # 1. Parse once: what the page says of itself, what it shows. Its tree is freed before ours grows into units.
    top = parse(page.html)
    known = None if top is None else read_metadata(page.html, top)
    root = Node("html") if top is None else clean_parsed(top)
    del top
    # 2. Cut into content units. Next to nothing to see: what would its scripts have drawn?
    text, blocks = content_blocks(root)
    words = 0
    for block in blocks:
        words += count_words(block.text) if block.main else 0
        if words >= EMPTY_WORDS:
            break
    notes: tuple[str, ...] = ()
    if words < EMPTY_WORDS and (drawn := recover(page.html)) is not None:
        drawn_text, drawn_blocks = content_blocks(drawn)
        if count_words(drawn_text) > GAIN * words:
            root, text, blocks = drawn, drawn_text, drawn_blocks
            notes = ("the text was read from the page's embedded data, since its markup is empty without scripts",)
    if page.html.count("<") > MAX_TAGS:
        notes = (*notes, f"the page has more than {MAX_TAGS:,} tags, and what stands behind them was not read")
    # 3. Where the page gives no date, trafilatura is asked for all that it does not say of itself.
    if known is not None:
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
    page = replace(page, notes=(*page.notes, *notes))
    return Document(page=page, html=to_html(root), text=text, blocks=blocks, root=root)
