"""Cutting documents into leaves: about 100 tokens each, whole sentences, with their
place (RAPTOR §3).

A leaf is one unbroken stretch of a document, so its text is verbatim on the page. Not
for: finding sentences (`pipeline/document/units.py`) or subject changes
(`papers/idms`, a `Chunker`).
"""

import itertools
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from cancellation import check_cancelled
from models.protocols import Embedder
from pipeline.document.units import tag_sentences
from pipeline.evidence.show import headings_to_show
from pipeline.raptor.tree import Leaf, Source, hashed
from pipeline.text.tokens import count_each, count_tokens
from readers.page import Block, Document, Page, Sentence
from readers.tree import Node

Ranges = list[tuple[int, int]]
"""[start, end) ranges of items that cover all of them in order."""
SHORT_SHARE: Final = 0.4
"""Minimum filled share of a leaf before it may end early; shorter sections are merged
(figures: docs/log.md, 2026-11-27)."""


class Chunker(Protocol):
    """Cuts documents where the subject changes (`chunking="idms"`)."""

    @property
    def version(self) -> str:
        """What made the leaves besides sentences and embedder; part of a tree's
        handle."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Sentences for the reader: who found the boundaries, and what failed."""
        ...

    @property
    def writes(self) -> bool:
        """Whether its forms are to be used."""
        ...

    async def ranges(
        self,
        sentences: Sequence[Sentence],
        *,
        embedder: Embedder | None,
        minimum: int,
        maximum: int,
    ) -> Ranges:
        """Return the sentences of each chunk of a document, of `minimum` to `maximum`
        tokens where possible. Raises `ModelError`: the embedder failed."""
        ...

    async def forms(
        self, chunks: Sequence[Sequence[str]], *, language: str
    ) -> Sequence[str]:
        """Return what the index reads beside each chunk of one document, or ""."""
        ...


def sentence_costs(texts: Sequence[str]) -> list[int]:
    """Return the tokens of each text, with one for what parts it from the next."""
    return [tokens + 1 for tokens in count_each(texts)]


def main_sentences(document: Document) -> tuple[Sentence, ...]:
    """Return the sentences of the main blocks, or all of them where no block looks like
    main text."""
    sentences = tag_sentences(document)
    main = tuple(
        sentence for sentence in sentences if document.blocks[sentence.block].main
    )
    return main or sentences


def pack_sentences(
    document: Document, sentences: Sequence[Sentence], *, leaf_tokens: int
) -> Ranges:
    """Return ranges [start, end) of `sentences`, each at most `leaf_tokens` long unless
    it is one longer sentence.

    A range never crosses left-out text, never ends with a heading that text follows,
    and a heading opens a new range unless the one before it is a short section of its
    own. A full one ends where a block does, and of several such places where the
    sentence before has the least hash: the cut depends on local text only, so that an
    inserted sentence changes the leaves around it and not all that follow.
    """
    ends = list(
        itertools.accumulate(
            sentence_costs([sentence.text for sentence in sentences]), initial=0
        )
    )
    ranges: Ranges = []
    start = 0
    while start < len(sentences):
        check_cancelled()
        least = ends[start] + SHORT_SHARE * leaf_tokens
        inside = not _is_heading(document, sentences[start])
        stop = start + 1
        while stop < len(sentences) and not (
            stops := _stops(document, sentences, stop, inside or ends[stop] >= least)
        ):
            if ends[stop + 1] > ends[start] + leaf_tokens + 1:
                break
            stop += 1
        if stop < len(sentences) and not stops:
            cuts = [
                cut for cut in range(start + 1, stop + 1) if ends[cut] >= least
            ] or [stop]
            stop = min(cuts, key=lambda cut: _reluctance(sentences, cut))
        if stop < len(sentences) and not _gap(sentences, stop):
            stop = _before_headings(document, sentences, start, stop)
        ranges.append((start, stop))
        start = stop
    return ranges


def _stops(
    document: Document, sentences: Sequence[Sentence], i: int, by_heading: bool
) -> bool:
    return _gap(sentences, i) or (by_heading and _is_heading(document, sentences[i]))


def _reluctance(sentences: Sequence[Sentence], i: int) -> tuple[bool, int]:
    """Orders places to cut before sentence `i`, the best first."""
    before = sentences[i - 1]
    return before.block == sentences[i].block, zlib.crc32(
        before.text.encode("utf-8", "surrogatepass")
    )


def unbroken(sentences: Sequence[Sentence], ranges: Ranges) -> Ranges:
    """Return `ranges` cut again wherever text was left out between two sentences."""
    cut: Ranges = []
    for start, stop in ranges:
        edges = [
            start,
            *(i for i in range(start + 1, stop) if _gap(sentences, i)),
            stop,
        ]
        cut.extend(itertools.pairwise(edges))
    return cut


def _gap(sentences: Sequence[Sentence], i: int) -> bool:
    return sentences[i].number != sentences[i - 1].number + 1


def _is_heading(document: Document, sentence: Sentence) -> bool:
    return document.blocks[sentence.block].kind == "heading"


def _before_headings(
    document: Document, sentences: Sequence[Sentence], start: int, stop: int
) -> int:
    """Where to cut so that headings at the end go with the text that follows; `stop`
    where nothing else is there."""
    cut = stop
    while cut > start and _is_heading(document, sentences[cut - 1]):
        cut -= 1
    return cut if cut > start else stop


def make_leaves(
    document: Document,
    sentences: Sequence[Sentence],
    ranges: Ranges,
    *,
    number: int,
    before: Counter[str],
) -> list[Leaf]:
    """Return the leaves of one document.

    Args:
        number: Index of the document among the tree's sources.
        before: Counts of each address and text in the tree so far; updated.
    """
    url = document.page.final_url or document.page.url
    leaves: list[Leaf] = []
    for low, high in ranges:
        check_cancelled()
        chunk = sentences[low:high]
        start, stop = chunk[0].start, chunk[-1].end
        text, readable = document.text[start:stop], _shown(chunk)
        # A heading's own path counts only where nothing else is there.
        informative = [
            sentence for sentence in chunk if not _is_heading(document, sentence)
        ] or chunk
        heading_path = common_path([sentence.heading_path for sentence in informative])
        name = hashed((url, text, str(len(chunk))))
        leaves.append(
            Leaf(
                id=hashed((name, str(before[name]))),
                text=text,
                document=number,
                heading_path=headings_to_show(document.page.title, heading_path),
                block_path=document.blocks[chunk[0].block].path,
                start=start,
                end=stop,
                tokens=count_tokens(readable),
                sentences=tuple((s.start, s.end) for s in chunk),
                shown=readable,
            )
        )
        before[name] += 1
    return leaves


def _shown(sentences: Sequence[Sentence]) -> str:
    """The sentences as they are read: a line a block, rows with their headers, nothing
    invisible."""
    pieces = [sentences[0].text]
    for before, sentence in itertools.pairwise(sentences):
        pieces.extend((" " if sentence.block == before.block else "\n", sentence.text))
    return "".join(pieces)


def common_path(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the longest beginning that all of `paths` share."""
    same = itertools.takewhile(
        lambda level: len(set(level)) == 1, zip(*paths, strict=False)
    )
    return tuple(level[0] for level in same)


def leaves_as_document(source: Source, leaves: Sequence[Leaf]) -> Document:
    """Return what a tree kept of a page that is gone: its leaves at their places, each
    sentence a block. Text between them is blank; the page is without tables and links.
    """
    pieces: list[str] = []
    blocks: list[Block] = []
    offset = 0
    for leaf in leaves:
        pieces += (" " * (leaf.start - offset), leaf.text)
        offset = leaf.end
        for start, stop in leaf.sentences:
            text = leaf.text[start - leaf.start : stop - leaf.start]
            blocks.append(
                Block(
                    leaf.block_path,
                    leaf.heading_path,
                    text,
                    "",
                    "paragraph",
                    start,
                    stop,
                )
            )
    page = Page(
        source.url, source.url, source.title, "", "", published=source.published
    )
    return Document(page, "", "".join(pieces), tuple(blocks), Node("body"))
