"""A page's main content for a reader who asks nothing: what stands there once, between what two readers call content.

Furniture that says so of itself is known by then (`furniture.py`). What goes besides are introductions of the site and
lists of other pages that say nothing of themselves, above the page's one `h1`, before the first and behind the last
block that trafilatura takes for content as well; buttons, and labels among what it does not take; texts that stand
there a second time, for another width of screen. It costs four times what reading the page does, so it is not for
questions: to them no block is lost, and ranking tells content from the rest.
"""

import logging
import re
from collections.abc import Sequence
from typing import Final

from pipeline.documents import Block, Document
from pipeline.html.metadata import FAILURES, LXML
from pipeline.html.tree import LABEL_WORDS

RUN: Final = 3
"""Words of a run that both readers have."""
TOLD: Final = 4
"""Words from which a block says enough to be found in another text, and to be told twice."""
AGREED: Final = 0.4
"""Share of the content's words that trafilatura must have as well to be believed. On half of the labelled sites word F1
is .860 with .25, .861 with .4, .855 with .6."""
LONG: Final = 100
"""Words of content from which a second opinion is asked: a shorter page is read at a glance."""
LONGEST: Final = 1_000_000
"""Characters of markup, scripts and styles left out, up to which a second opinion is asked; most take a tenth of a
second, the longest half of one."""
LABEL: Final = 8
"""Words up to which a block that trafilatura does not have, nor its neighbours, is a label (`Add to cart`, `5,421`)."""
BELOW: Final = 0.7
"""Share of the content below the page's one `h1` from which what stands above it is none."""
_WHOLE: Final = frozenset({"code", "row"})
"""Kinds of blocks that trafilatura often loses, and that may say the same twice."""
_WORD: Final = re.compile(r"\w+")
_UNSHOWN: Final = ("script", "style", "svg")
_TAG: Final = re.compile("<[^<>]*>")
_LINK: Final = re.compile(r"<a>(.*?)</a>", re.DOTALL)
_log: Final = logging.getLogger("winnow.html")


def main_content(document: Document) -> list[bool]:
    """Return for each block whether it is main content."""
    blocks = document.blocks
    content = [(block.main or block.closed) and block.kind != "about" for block in blocks]
    words = [_WORD.findall(block.text.lower()) if told else [] for block, told in zip(blocks, content, strict=True)]
    agreed = _agreed(document, words)
    near = {number + step for number in agreed for step in (-1, 0, 1)}
    first = max(_top(blocks, words), agreed[0] if agreed else 0)
    last = agreed[-1] if agreed else len(blocks) - 1
    said, buttons = set[str](), _buttons(document.page.html)
    main: list[bool] = []
    for number, block in enumerate(blocks):
        fresh = first <= number <= last and (len(words[number]) < TOLD or block.text not in said)
        label = block.kind == "block" and " ".join(words[number]) in buttons
        if agreed and number not in agreed:
            label = label or _is_label(block, len(words[number]), apart=number not in near)
        main.append(content[number] and ((fresh and not label) or block.kind in _WHOLE))
        said.add(block.text)
    return main


def _buttons(html: str) -> set[str]:
    """Return what stands on a page's buttons."""
    inner = (part.partition(">")[2].partition("</button")[0] for part in html.split("<button")[1:])
    return {" ".join(_WORD.findall(_TAG.sub(" ", text).lower())) for text in inner}


def _top(blocks: Sequence[Block], words: list[list[str]]) -> int:
    """Return the number of the page's one `h1` where the content stands below it, else 0."""
    tops = [number for number, block in enumerate(blocks) if block.main and block.html.startswith("<h1>")]
    below = sum(map(len, words[tops[0] :])) if len(tops) == 1 else 0
    return tops[0] if below and below >= BELOW * sum(map(len, words)) else 0


def _is_label(block: Block, words: int, *, apart: bool) -> bool:
    """Whether a block is a label, or a link that leads on."""
    if block.kind == "block" and apart and words <= LABEL:
        return True
    if block.kind not in {"block", "paragraph"} or words > LABEL_WORDS:
        return False
    return 2 * sum(map(len, _LINK.findall(block.html))) > len(block.text)


def _agreed(document: Document, words: list[list[str]]) -> list[int]:
    """Return the blocks that trafilatura calls content as well; none where it agrees on too little."""
    of_all = sum(map(len, words))
    if of_all < LONG or "html" not in document.page.media_type:
        return []
    html = _shown(document.page.html)
    if len(html) > LONGEST:
        return []
    other = _WORD.findall(_extracted(html, document.page.final_url).lower())
    runs = set(zip(*(other[place:] for place in range(RUN)), strict=False))
    found = [number for number, of in enumerate(words) if len(of) >= TOLD and _is_in(of, runs)]
    shared = sum(len(words[number]) for number in found)
    return found if shared >= AGREED * of_all else []


def _shown(html: str) -> str:
    """Return a page without scripts, styles and drawings, in time that is as long as the page."""
    for name in _UNSHOWN:
        *inner, last = html.split(f"</{name}>")
        html = "".join([*(part.partition(f"<{name}")[0] for part in inner), last])
    return html


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
