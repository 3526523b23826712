"""Cutting documents into leaves: about 100 tokens each, whole sentences, with their place (RAPTOR §3).

A leaf is one unbroken stretch of a document, so its text stands on the page exactly so. Not for: finding sentences
(`pipeline/extract/tag.py`) or subject changes (`pipeline/segment`).
"""

import itertools
from collections.abc import Sequence
from typing import Final

from pipeline.documents import Document, Sentence
from pipeline.extract.tag import tag_sentences
from pipeline.raptor.tree import Leaf
from pipeline.text.tokens import count_tokens

SHORT_SHARE: Final = 0.4
"""A heading closes the leaf before it once that holds this share of its length; shorter sections stay together."""
SHOWN_HEADINGS: Final = 2
"""Innermost headings that are read with a leaf; the page's title before every leaf costs 3 points (notes §3)."""


def main_sentences(document: Document) -> tuple[Sentence, ...]:
    """Return the sentences of the main blocks, or all of them where no block looks like main text."""
    sentences = tag_sentences(document)
    main = tuple(sentence for sentence in sentences if document.blocks[sentence.block].main)
    return main or sentences


def pack_sentences(document: Document, sentences: Sequence[Sentence], *, leaf_tokens: int) -> list[tuple[int, int]]:
    """Return ranges [start, end) of `sentences`, each at most `leaf_tokens` long unless it is one longer sentence.

    A range never crosses left-out text, never ends with a heading that text follows, and a heading opens a new
    range once the one before it is long enough.
    """
    ranges: list[tuple[int, int]] = []
    begin, used = 0, 0
    costs = [count_tokens(s.text) + 1 for s in sentences]
    for i, cost in enumerate(costs):
        is_heading = _is_heading(document, sentences[i])
        full = used + cost > leaf_tokens + 1
        opens = is_heading and used >= SHORT_SHARE * leaf_tokens
        if i > begin and (full or opens or _gap(sentences, i)):
            end = i if _gap(sentences, i) else _before_headings(document, sentences, begin, i)
            ranges.append((begin, end))
            begin, used = end, sum(costs[end:i])
        used += cost
    if begin < len(sentences):
        ranges.append((begin, len(sentences)))
    return ranges


def unbroken(sentences: Sequence[Sentence], ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return `ranges` cut again wherever text was left out between two sentences."""
    cut: list[tuple[int, int]] = []
    for begin, end in ranges:
        edges = [begin, *(i for i in range(begin + 1, end) if _gap(sentences, i)), end]
        cut.extend(itertools.pairwise(edges))
    return cut


def _gap(sentences: Sequence[Sentence], i: int) -> bool:
    return sentences[i].number != sentences[i - 1].number + 1


def _is_heading(document: Document, sentence: Sentence) -> bool:
    return document.blocks[sentence.block].kind == "heading"


def _before_headings(document: Document, sentences: Sequence[Sentence], begin: int, end: int) -> int:
    """Where to cut so that headings at the end go with the text that follows; `end` where nothing else is there."""
    cut = end
    while cut > begin and _is_heading(document, sentences[cut - 1]):
        cut -= 1
    return cut if cut > begin else end


def make_leaves(
    document: Document, sentences: Sequence[Sentence], ranges: Sequence[tuple[int, int]], *, number: int
) -> list[Leaf]:
    """Return the leaves of one document; `number` is its index among the tree's sources."""
    page = document.page
    leaves: list[Leaf] = []
    for begin, end in ranges:
        part = sentences[begin:end]
        start, stop = part[0].start, part[-1].end
        text = document.text[start:stop]
        shown = _shown(part)
        leaves.append(
            Leaf(
                text=text,
                document=number,
                url=page.final_url or page.url,
                title=page.title,
                heading_path=_shared_path(document, part),
                block_path=document.blocks[part[0].block].path,
                start=start,
                end=stop,
                tokens=count_tokens(shown),
                sentences=tuple((s.start, s.end) for s in part),
                shown="" if shown == text else shown,
            )
        )
    return leaves


def _shown(part: Sequence[Sentence]) -> str:
    """The sentences as they are read: a line a block, rows with their headers, nothing invisible."""
    pieces = [part[0].text]
    for before, sentence in itertools.pairwise(part):
        pieces.extend((" " if sentence.block == before.block else "\n", sentence.text))
    return "".join(pieces)


def _shared_path(document: Document, part: Sequence[Sentence]) -> tuple[str, ...]:
    """The headings that stand over all of `part`; a heading counts only where nothing else is there."""
    paths = [s.heading_path for s in part if not _is_heading(document, s)] or [s.heading_path for s in part]
    shared = list(paths[0])
    for path in paths[1:]:
        same = 0
        while same < min(len(shared), len(path)) and shared[same] == path[same]:
            same += 1
        del shared[same:]
    return tuple(shared)


def heading_line(leaf: Leaf) -> str:
    """Return the innermost headings over a leaf as one line, without the page's own title; often empty."""
    title = leaf.title.casefold()
    shown = [heading for heading in leaf.heading_path if heading.casefold() not in title]
    return " > ".join(shown[-SHOWN_HEADINGS:])


def embedded_text(leaf: Leaf, form: str = "") -> str:
    """Return what an embedder reads for a leaf: its heading line, then its text, or the `form` written for it."""
    line, text = heading_line(leaf), form or leaf.shown or leaf.text
    return f"{line}\n{text}" if line else text
