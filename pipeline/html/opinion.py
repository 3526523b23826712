"""A second opinion on a web page, trafilatura's: metadata where the page's own is silent, and what is its main text.

Own readers come first: they are free, and on the development pages as good for titles and better for main text. What
trafilatura adds there is measured in docs/log.md. Not for: the text of the page, which stays ours whole.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from pipeline.documents import Block, Document
from pipeline.html.metadata import Metadata
from pipeline.work import check_cancelled

LARGEST: Final = 400_000
"""Characters; trafilatura reads 2 to 4 MB a second, so a longer page would cost more than its opinion is worth."""
RUN: Final = 4
"""Words of the runs by which a block is found in its main text."""
NEAR: Final = 8
"""Blocks to either side among which something must be main, for a short block to be main."""
SHORT: Final = 12
"""Runs below which a block is short; longer ones are never overruled."""
AGREED: Final = 0.3
"""Share of our main text that it must call main too, before it is believed about the rest. With these three, on 50
development pages furniture left in falls from .100 to .059 and prose kept from .968 to .958; among 2 blocks instead of
8 it would be .047 and .948, without the bound on length .058 and .958, by its word alone .021 and .818."""
DOUBTED: Final = 20
"""Blocks from which a page without any furniture is doubted. Asked of every page, it took .009 of the prose on 214
pages and no furniture, since a page's own marks tell more; where there are none, it is all there is."""
REMEMBERED: Final = 8
"""Pages whose main text is remembered, so that the next part of one is not asked for again."""
_TRUSTED: Final = frozenset({"code", "row"})
"""Kinds that are never overruled: it took 3% of the rows of tables on 23 development pages."""
_YEAR: Final = re.compile(r"(?:19|20)\d\d(?<!\d\d\d\d\d)(?!\d)")
_SHORT_DATE: Final = re.compile(r"\d[./-]\d{1,2}[./-]\d\d(?!\d)")
"""A page without either has no date to find, and asking takes as long as reading it. Two patterns, each of which begins
with a digit, so that the text is scanned for digits: as one they take five times as long."""
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_WORD: Final = re.compile(r"\w+")
_LONGEST_NAME: Final = 80
_log: Final = logging.getLogger("winnow.html")

_FAILURES: Final = (ValueError, TypeError, AttributeError, LookupError, RecursionError, AssertionError)
"""What it raises on strange markup; AssertionError is lxml's own, on fragments such as an svg root."""

Runs = set[tuple[str, ...]]


def find_metadata(html: str, url: str) -> Metadata:
    """Return the metadata that trafilatura finds; empty where it fails, or the page is undated or over `LARGEST`."""
    if len(html) > LARGEST or not (_YEAR.search(html) or _SHORT_DATE.search(html)):
        return Metadata()
    # Half a second of imports that pages which say their own date never need.
    from trafilatura.metadata import extract_metadata  # noqa: PLC0415

    try:
        found = extract_metadata(html, default_url=url, extensive=False)
    except _FAILURES as error:
        _log.info("trafilatura could not read the metadata of %s: %r", url, error)
        return Metadata()
    if found is None:
        return Metadata()
    day = str(found.date or "")
    return Metadata(
        title=str(found.title or ""),
        author=_name(str(found.author or "")),
        published=day if _DAY.match(day) else "",
        language=str(found.language or "")[:2],
    )


def with_second_opinion(documents: Sequence[Document]) -> list[Document]:
    """Return the documents with short blocks that trafilatura does not call main taken for furniture.

    It costs three times as much as reading the page, so it is asked where no query says what matters, about pages on
    which our own reading found no furniture at all.
    """
    return [
        replace(document, blocks=overrule(document.blocks, _main_text(document.page.html, document.page.final_url)))
        if "html" in document.page.media_type and _is_doubted(document)
        else document
        for document in documents
    ]


def _is_doubted(document: Document) -> bool:
    blocks = document.blocks
    return len(blocks) >= DOUBTED and all(block.main for block in blocks) and len(document.page.html) <= LARGEST


@lru_cache(maxsize=REMEMBERED)
def _main_text(html: str, url: str) -> str:
    from trafilatura import extract  # noqa: PLC0415  as above

    check_cancelled()
    try:
        return str(extract(html, url=url, fast=True) or "")
    except _FAILURES as error:
        _log.info("trafilatura could not read %s: %r", url, error)
        return ""


def overrule(blocks: tuple[Block, ...], main_text: str) -> tuple[Block, ...]:
    """Take `main` from short blocks with nothing main around them in trafilatura's view.

    Nothing changes where the two disagree too much for it to be believed.
    """
    theirs = _runs(main_text)
    if not theirs:
        return blocks
    mine = [_runs(block.text) for block in blocks]
    ours = set().union(*(runs for block, runs in zip(blocks, mine, strict=True) if block.main))
    if len(ours & theirs) <= AGREED * len(ours):
        return blocks
    main = [2 * len(runs & theirs) > len(runs) for runs in mine]
    return tuple(
        replace(block, main=False)
        if block.main
        and block.kind not in _TRUSTED
        and len(mine[at]) < SHORT
        and not any(main[max(0, at - NEAR) : at + NEAR + 1])
        else block
        for at, block in enumerate(blocks)
    )


def _runs(text: str) -> Runs:
    words = _WORD.findall(text.lower())
    return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}


def _name(author: str) -> str:
    return author.replace("; ", ", ") if len(author) <= _LONGEST_NAME else ""
