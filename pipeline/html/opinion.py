"""A page's main content for a reader who asks nothing: what stands there once, between what two readers call content.

Furniture that says so of itself is known by then (`furniture.py`). What goes besides are introductions of the site and
lists of other pages that say nothing of themselves, before the first and behind the last block that trafilatura takes
for content as well, and texts that stand there a second time, for another width of screen. It costs four times what
reading the page does, so it is not for questions: to them no block is lost, and ranking tells content from the rest.
"""

import logging
import re
from typing import Final

from pipeline.documents import Document
from pipeline.html.metadata import FAILURES, LARGEST, LXML

RUN: Final = 3
"""Words of a run that both readers have."""
TOLD: Final = 4
"""Words from which a block says enough to be found in another text, and to be told twice."""
AGREED: Final = 0.4
"""Share of the content's words that trafilatura must have as well to be believed about its ends. On half of
the labelled sites word F1 is .860 with .25, .861 with .4, .855 with .6."""
LONG: Final = 100
"""Words of content from which a second opinion is asked: a shorter page is read at a glance."""
_WHOLE: Final = frozenset({"code", "row"})
"""Kinds of blocks that trafilatura often loses, and that may say the same twice."""
_WORD: Final = re.compile(r"\w+")
_log: Final = logging.getLogger("winnow.html")


def main_content(document: Document) -> list[bool]:
    """Return for each block whether it is main content."""
    blocks = document.blocks
    words = [_WORD.findall(block.text.lower()) if block.main else [] for block in blocks]
    agreed = _agreed(document, words)
    first, last = (agreed[0], agreed[-1]) if agreed else (0, len(blocks) - 1)
    said: set[str] = set()
    main: list[bool] = []
    for number, block in enumerate(blocks):
        fresh = first <= number <= last and (len(words[number]) < TOLD or block.text not in said)
        main.append(block.main and (fresh or block.kind in _WHOLE))
        said.add(block.text)
    return main


def _agreed(document: Document, words: list[list[str]]) -> list[int]:
    """Return the blocks that trafilatura calls content as well; none where it agrees on too little."""
    html, of_all = document.page.html, sum(map(len, words))
    if of_all < LONG or len(html) > LARGEST or "html" not in document.page.media_type:
        return []
    other = _WORD.findall(_extracted(html, document.page.final_url).lower())
    runs = set(zip(*(other[place:] for place in range(RUN)), strict=False))
    found = [number for number, of in enumerate(words) if len(of) >= TOLD and _is_in(of, runs)]
    shared = sum(len(words[number]) for number in found)
    return found if shared >= AGREED * of_all else []


def _is_in(words: list[str], runs: set[tuple[str, ...]]) -> bool:
    """Whether half of the runs of a block are among those of a text."""
    own = list(zip(*(words[place:] for place in range(RUN)), strict=False))
    return 2 * sum(run in runs for run in own) >= len(own)


def _extracted(html: str, url: str) -> str:
    # Half a second of imports that a question never needs.
    from trafilatura import extract  # noqa: PLC0415

    try:
        with LXML:
            return extract(html) or ""
    except FAILURES as error:
        _log.info("trafilatura could not read the text of %s: %r", url, error)
        return ""
