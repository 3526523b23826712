"""Tagging a document: numbered sentences and units with offsets, and how they are shown to a model (zero-index §4.1).

Running text is cut by `pipeline/text/sentences.py`; headings, items, rows, captions, definition pairs and code are
units of their own. Two prompt forms: one numbered line a sentence (4 % more tokens) and the paper's `<TAG-i>` pairs
(31 %, notes/zeroindex §0.4). Neither can be forged by a page. Not for: scoring, or finding content units.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pipeline.documents import Block, Document, Sentence
from pipeline.text.frame import one_line
from pipeline.text.sentences import LONGEST, split_sentences
from pipeline.work import check_cancelled

_WHOLE: Final = LONGEST // 2
"""Items, definitions and captions up to this many code points stay whole: a list's item is read as one thing."""
_CODE_GROUP: Final = 240
"""Code points of the code lines that make one unit; a blank line ends a unit as well."""

_TAG_OPENING: Final = re.compile(r"[<＜﹤‹〈](?=\s*[/／]?\s*T\s*A\s*G\b)", re.IGNORECASE)
_DEFUSED: Final = "("


def tag_sentences(document: Document, blocks: Iterable[int] | None = None) -> tuple[Sentence, ...]:
    """Return the sentences and units of `document` in reading order, numbered from 1.

    Each `Sentence.start:end` is a non-empty span of `document.text`; spans are disjoint and ascending. `Sentence.text`
    is the span on one line; for rows it is the block's `header: value` text. Only `blocks` are cut where they are
    given: ascending indices into `Document.blocks`.
    """
    sentences: list[Sentence] = []
    for index in range(len(document.blocks)) if blocks is None else blocks:
        check_cancelled()
        block = document.blocks[index]
        if block.start < 0 or block.end <= block.start:
            continue
        spans = _unit_spans(block, document.text)
        for start, end in spans:
            shown = block.text if block.kind == "row" and len(spans) == 1 else document.text[start:end]
            line = one_line(shown)
            if line:
                sentences.append(Sentence(len(sentences) + 1, line, start, end, index, block.heading_path))
    return tuple(sentences)


def numbered(sentences: Iterable[Sentence]) -> str:
    """Return one line a sentence, its number first: `12 The bridge opened in 1932.`

    A page cannot forge a line, since no sentence holds a line break of any kind.
    """
    return "\n".join(f"{sentence.number} {one_line(sentence.text)}" for sentence in sentences)


def paper_tags(sentences: Iterable[Sentence]) -> str:
    """Return `<TAG-i>…</TAG-i>` a sentence, the paper's form; anything like such a tag in the text is defused."""
    return "\n".join(
        f"<TAG-{sentence.number}>{defused(sentence.text)}</TAG-{sentence.number}>" for sentence in sentences
    )


def defused(text: str) -> str:
    """Return `text` on one line with the bracket of anything like one of our tags replaced."""
    return _TAG_OPENING.sub(_DEFUSED, one_line(text))


def _unit_spans(block: Block, text: str) -> list[tuple[int, int]]:
    """Spans of the units of one block, in offsets of the document's text."""
    piece = text[block.start : block.end]
    if block.kind == "code":
        spans = list(_code_groups(piece))
    elif block.kind == "row":
        # A row is one thing however long: cutting it would part a value from its header.
        spans = [(0, len(piece))]
    elif block.kind in {"paragraph", "block"} or len(piece) > (LONGEST if block.kind == "heading" else _WHOLE):
        spans = split_sentences(piece)
    else:
        spans = [(0, len(piece))]
    return [span for start, end in spans if (span := _trim(text, block.start + start, block.start + end))]


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped:
        return None
    start += len(piece) - len(piece.lstrip())
    return start, start + len(stripped)


def _code_groups(code: str) -> Iterator[tuple[int, int]]:
    """Spans of runs of code lines, cut at blank lines and at `_CODE_GROUP`; a longer line is cut like any text."""
    start = end = 0
    place = 0
    for line in code.splitlines(keepends=True):
        after = place + len(line)
        blank = not line.strip()
        if end > start and (blank or after - start > _CODE_GROUP):
            yield start, end
            start = end
        if blank:
            start = end = after
        elif len(line) > LONGEST:
            yield from ((place + a, place + b) for a, b in split_sentences(line))
            start = end = after
        else:
            start = start if end > start else place
            end = after
        place = after
    if end > start:
        yield start, end
