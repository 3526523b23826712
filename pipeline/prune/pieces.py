"""The parts that pruning chooses among: content units, long ones cut between sentences, each with its context.

Not for: scoring (`score.py`) or choosing (`prune.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.documents import Block, Document
from pipeline.html.tree import count_words
from pipeline.prune.render import IMPRINT, header_of, headings_above, imprint, is_header_row, table_of
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import count_tokens

PIECE_WORDS: Final = 60
"""Words of a piece of a longer unit: 40 to 80 beat 256 by 9 points of recall at small budgets (notes/htmlrag)."""
TINY_WORDS: Final = 8
"""Words below which a unit is scored together with its neighbours."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One choice."""

    document: int
    block: int
    start: int
    """Code point offsets into the block's text."""
    end: int
    tokens: int
    """Of its own line, without headings and the like."""
    context: str
    """What stands above it: headings, caption, lead-in."""
    text: str
    near: str
    """Neighbouring text that a tiny unit is scored with."""
    needs: tuple[tuple[str, int], ...]
    """What must be shown with it (a key and its tokens): headings, header row, lead-in."""
    main: bool
    place: int
    """How many content units of the page stand before it."""


def cut_pieces(documents: Sequence[Document]) -> list[Piece]:
    """Return the pieces of all documents, in reading order."""
    pieces: list[Piece] = []
    for number, document in enumerate(documents):
        pieces.extend(_pieces_of(document, number))
    return pieces


def _pieces_of(document: Document, number: int) -> list[Piece]:
    blocks = document.blocks
    above = headings_above(blocks)
    found: list[Piece] = _imprint_piece(document, number)
    place = 0
    for index, block in enumerate(blocks):
        following = blocks[index + 1] if index + 1 < len(blocks) else None
        if is_header_row(block, following):
            continue
        needs = tuple((f"{number}:{heading}", blocks[heading].tokens + 2) for heading in above[index])
        needs += _own_needs(block, number)
        context = " ".join((*block.heading_path[-3:], block.lead.replace("\n", " ")))
        words = count_words(block.text)
        near = _neighbours(blocks, index) if words < TINY_WORDS and block.kind != "row" else ""
        for start, end in _cuts(block, words):
            text = block.text[start:end]
            tokens = block.tokens if end - start == len(block.text) else count_tokens(text) + 1
            found.append(Piece(number, index, start, end, tokens + 2, context, text, near, needs, block.main, place))
        place += block.main and block.kind != "heading"
    return found


def _imprint_piece(document: Document, number: int) -> list[Piece]:
    """Return who wrote the page and when as a piece, where the page says so."""
    text = imprint(document)
    if not text:
        return []
    asked = f"author written by wrote writer published publication date {document.page.title}"
    return [Piece(number, IMPRINT, 0, len(text), count_tokens(text) + 1, asked, text, asked, (), True, 0)]


def _own_needs(block: Block, number: int) -> tuple[tuple[str, int], ...]:
    if not block.lead:
        return ()
    if block.kind == "row":
        header = header_of(block)
        return (
            (
                f"{number}:{table_of(block)}",
                count_tokens(header) + count_tokens(block.lead.replace("\n", " ")) // 2 + 2,
            ),
        )
    if block.kind == "item":
        return ((f"{number}:{block.lead}", count_tokens(block.lead) + 1),)
    return ()


def _cuts(block: Block, words: int) -> list[tuple[int, int]]:
    """Cut running text of more than about one and a half pieces between its sentences."""
    whole = [(0, len(block.text))]
    if words <= 1.5 * PIECE_WORDS or block.kind in {"row", "code", "heading"}:
        return whole
    cuts: list[tuple[int, int]] = []
    begin, count = -1, 0
    last = 0
    for start, end in split_sentences(block.text):
        size = count_words(block.text[start:end])
        if begin >= 0 and count + size > PIECE_WORDS:
            cuts.append((begin, last))
            begin, count = -1, 0
        begin = start if begin < 0 else begin
        count += size
        last = end
    if begin >= 0:
        cuts.append((begin, last))
    return cuts or whole


def _neighbours(blocks: Sequence[Block], index: int) -> str:
    around = [blocks[i].text[:200] for i in (index - 1, index + 1) if 0 <= i < len(blocks)]
    return " ".join(around)
