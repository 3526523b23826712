"""Citations: the page's URL with a text fragment that a browser scrolls to and
highlights.

The directive is `#:~:text=[prefix-,]start[,end]` (WICG scroll-to-text-fragment). A
browser looks for the first match whose ends are word boundaries; `start` and `end` must
each lie within one block. It finds no words that only the markup has: an image's
description, the author beside the text. Not for: choosing what to cite."""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import quote, unquote, urldefrag

from pipeline.text.words import is_cjk
from readers.converted import is_box
from readers.page import (
    Block,
    Document,
    kept_with_document,
)
from readers.tree import STRUCK

_PART_WORDS: Final = 4
"""Words of a part of a directive, which has at most two: a link is outside the frame,
so that a page's words in it must be too few for an instruction."""
_PART_CHARACTERS: Final = 60
"""Code points of a part: words without blanks between them are words all the same."""
_CJK_PART_CHARACTERS: Final = 12
"""Code points of a part of CJK text, some six words."""
_CONTEXT_REACH: Final = 80
"""Code points before the words in which context is looked for."""
_EARLIER_COMPARED: Final = 64
"""Earlier places of the same words that context is held against."""

_TIMED: Final = re.compile(r"t=([\d:]+),")
_YOUTUBE_PAGE: Final = re.compile(r"https?://(?:www\.|m\.)?youtube\.com/watch\?")
"""Addresses that take a time as an argument, not as a fragment."""
_UNBROKEN: Final = re.compile(r"[^\s\-\u2010-\u2015/\\|]+")
"""A browser sees the border of a word at each of the other characters."""
_BETWEEN_WORDS: Final = re.compile(
    r"(?:[\s!-&(-+/;-@\[-`{-~\u2010-\u2015\u2026-]|[.,:](?!\d)|(?<!\d)[.,:])+"
)
_CLAUSE_ENDS: Final = (
    re.compile(r"(?=[、，,；;：:。！？\s])"),
    re.compile(r"(?<=[的了在是和与はがをにでとのもへ])|(?<=[ぁ-ん])(?=[一-龥ァ-ヴ])"),
)
"""Where CJK text surely has the border of a word, and where it usually has: after
particles and kana."""
_INLINE: Final = (
    "a|abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|"
    "small|span|strong|sub|sup|time|tt|u|var|wbr"
)
_PARTING: Final = re.compile(rf"(<(?!/?(?:{_INLINE})\b)[^>]*>)")
"""A tag that ends a block or a line."""
_LINE: Final = re.compile(r"[^\n\r\v\f\u2028\u2029]+")
_ANY_TAG: Final = re.compile(r"<[^>]*>")
_ALT_TEXT: Final = re.compile(r'<img\b[^>]*?\balt="([^"]+)')
_CONTEXT_BREAK: Final = re.compile(r"\n|\s\|\s|(?<=\w):\s(?=\S)")
"""What our text has between units, cells, terms and definitions, and the page has not."""
_BLANK: Final = re.compile(r"\s")
_EDGE: Final = (
    "~ \t\n\u00a0,;:.!?…\"'“”„‘’«»()[]{}–—-•·*|/。！？，、；：「」『』（）《》"
)
Span = tuple[int, int]
"""Start and end of a stretch of `Document.text`, in code points."""


def cite(document: Document, start: int, end: int) -> str:
    """Return `document.page.final_url` with a text fragment for
    `document.text[start:end]`.

    The URL's own fragment is dropped; a position in a file (`#page=3`) comes before the
    directive, where viewers read it. Offsets are code points, clipped to the text; a
    span without any visible text gives the bare URL."""
    url = urldefrag(document.page.final_url or document.page.url).url
    start, end = max(start, 0), min(end, len(document.text))
    position = position_of(document, start, end)
    if is_box(position):  # viewers cannot search in images
        return f"{url}#{position}"
    if (begins := _TIMED.match(position)) and _YOUTUBE_PAGE.match(url):
        hours, minutes, seconds = map(int, begins[1].split(":"))
        url, position = f"{url}&t={3600 * hours + 60 * minutes + seconds}s", ""
    position = f"#{_short_position(position)}" if position else ""
    directive = _directive(_rendered(document), start, end)
    return (
        f"{url}{position or '#'}:~:text={directive}"
        if directive
        else f"{url}{position}"
    )


def _short_position(position: str) -> str:
    """Return a position in a file, without the sheet's name if that is too long."""
    name, separator, cells = position.rpartition("!")
    return position if not separator or _is_part(unquote(name)) else f"…!{cells}"


# What a browser renders


@dataclass(frozen=True, slots=True)
class _Rendered:
    """A document as a browser searches it."""

    text: str
    """`Document.text`."""
    lower: str
    """In lower case, each white space a blank, a line end for each letter that
    is not rendered; of the same length."""
    pieces: list[Span]
    """Stretches that a browser finds as one: lines of blocks and cells, in order."""
    row_starts: frozenset[int]
    """Where a row of a table begins."""

    def offsets(self, phrase: str, low: int = 0) -> Iterator[int]:
        """Yield where whole words are from `low` on, whatever their case."""
        lowered = _lowered(phrase)
        offset = self.lower.find(lowered, low)
        while offset >= 0:
            if self._is_apart(offset, offset + len(phrase)):
                yield offset
            offset = self.lower.find(lowered, offset + 1)

    def is_first(self, start: int, end: int, low: int = 0) -> bool:
        """Whether a browser that searches from `low` finds these words here first."""
        return next(self.offsets(self.text[start:end], low), start) == start

    def _is_apart(self, start: int, end: int) -> bool:
        """Whether a match begins and ends at borders of words, where its ends need
        that."""
        text = self.text

        def joins(inner: int, outer: int) -> bool:
            if not 0 <= outer < len(text):
                return False
            letter = text[inner]
            return letter.isalnum() and not is_cjk(letter) and text[outer].isalnum()

        return not joins(start, start - 1) and not joins(end - 1, end)

    def within(self, start: int, end: int) -> list[Span]:
        """Return the pieces of a stretch of text, without marks at their ends."""
        first = bisect_right(self.pieces, (start, start))
        if first and self.pieces[first - 1][1] > start:
            first -= 1
        clipped: list[Span] = []
        for low, high in islice(self.pieces, first, None):
            if low >= end:
                break
            if trimmed := _trimmed(self.text, max(low, start), min(high, end)):
                clipped.append(trimmed)
        return clipped


@kept_with_document
def _rendered(document: Document) -> _Rendered:
    """Return what a browser renders of a document; kept for a page's next citation."""
    pieces: list[Span] = []
    unseen: list[Span] = []
    for block in document.blocks:
        if block.kind == "about" or block.trust == "attribute":
            unseen.append((block.start, block.end))
            continue
        shown, pictures = _pieces(document.text, block)
        pieces += shown
        unseen += pictures
    lower = _lowered(document.text)
    runs, offset = list[str](), 0
    for start, end in unseen:
        runs += lower[offset:start], "\n" * (end - start)
        offset = end
    row_starts = frozenset(block.start for block in document.blocks if block.cells)
    return _Rendered(
        document.text, "".join((*runs, lower[offset:])), pieces, row_starts
    )


def _lowered(text: str) -> str:
    """Return a text in lower case, each white space a blank, of the same length."""
    lowered = text.lower()
    if len(lowered) != len(text):
        letters = ((char, char.lower()) for char in text)
        lowered = "".join(low if len(low) == 1 else char for char, low in letters)
    return _BLANK.sub(" ", lowered.replace("ς", "σ"))


def _pieces(text: str, block: Block) -> tuple[list[Span], list[Span]]:
    """Return the stretches of a unit that a browser finds as one (what elements
    separate, a row's cells, the lines of code), and the descriptions of its images."""
    parting = [] if block.kind == "code" else _PARTING.split(block.html)
    pictures = [_ALT_TEXT.match(piece) for piece in parting]
    texts = [
        html.unescape(picture[1] if picture else _ANY_TAG.sub("", piece))
        for piece, picture in zip(parting, pictures, strict=True)
    ]
    spans: list[Span] = []
    described: list[Span] = []
    offset = block.start
    for piece, picture in zip(texts, pictures, strict=True):
        words = " ".join(piece.split())
        start = text.find(words, offset, block.end) if words else -1
        if start >= 0:
            offset = start + len(words)
            (described if picture else spans).append((start, offset))
    if len(spans) + len(described) > 1 or (spans and not block.cells):
        return spans, described
    if block.cells:
        return _cells(text, block), []
    lines = _LINE.finditer(text, block.start, block.end)
    return [line.span() for line in lines], described


def _cells(text: str, block: Block) -> list[Span]:
    """Return the spans of a row's cells in the text; the row where none is found.

    A cell that is carried down is not on the page there."""
    spans: list[Span] = []
    offset = block.start
    for column, cell in enumerate(block.cells):
        start = text.find(cell, offset, block.end) if cell.strip() else -1
        if start >= 0:
            offset = start + len(cell)
            if column not in block.carried:
                spans.append((start, offset))
    return spans or [(block.start, block.end)]


# The directive


def _directive(page: _Rendered, start: int, end: int) -> str:
    """Return the text directive of a stretch of text, "" where nothing of it is
    rendered."""
    pieces = page.within(start, end)
    if not pieces:
        return ""
    if start in page.row_starts:
        pieces = _from_distinct(page, pieces)
    head_start, head_end = _head(page.text, *pieces[0])
    if not _is_part(page.text[head_start:head_end]):
        return ""
    head = page.text[head_start:head_end]
    is_first = page.is_first(head_start, head_end)
    context = "" if is_first else _context(page, head_start, head_end)
    directive = f"{_encode(context)}-,{_encode(head)}" if context else _encode(head)
    room = 2 * _PART_WORDS - _count_words(context) - _count_words(head)
    for last_start, last_end in reversed(pieces):
        tail = _tail(page.text, max(last_start, head_end), last_end, room)
        if tail and page.is_first(*tail, low=head_end):
            return f"{directive},{_encode(page.text[slice(*tail)])}"
    return directive


def _from_distinct(page: _Rendered, pieces: list[Span]) -> list[Span]:
    """Return the pieces of a row from the first that occurs nowhere before it, so that
    none begins with `1` or `yes`; all where there is no such piece."""
    for index, (start, end) in enumerate(pieces):
        is_word = any(map(str.isalnum, page.text[start:end]))
        if is_word and page.is_first(start, end):
            return pieces[index:]
    return pieces


def _context(page: _Rendered, start: int, end: int) -> str:
    """Return the fewest words before a stretch that precede no earlier place of its
    words, all that a part may have where every number of them does; "" for none."""
    text = page.text
    before = text[max(0, start - _CONTEXT_REACH) : start]
    parts = [part for part in _CONTEXT_BREAK.split(before) if part.strip()]
    if not parts:
        return ""
    if is_cjk(parts[-1]):
        return parts[-1].strip()[-_CJK_PART_CHARACTERS:]
    words = parts[-1].split()[-_PART_WORDS:]
    places = islice(page.offsets(text[start:end]), _EARLIER_COMPARED)
    earlier = [
        page.lower[max(0, offset - _CONTEXT_REACH) : offset].rstrip(" |")
        for offset in places
        if offset < start
    ]
    phrases = [" ".join(words[-count:]) for count in range(1, len(words) + 1)]
    phrases = [phrase for phrase in phrases if _is_part(phrase)]
    telling = (
        phrase
        for phrase in phrases
        if not any(above.endswith(_lowered(phrase)) for above in earlier)
    )
    return next(telling, phrases[-1] if phrases else "")


def _head(text: str, start: int, end: int) -> Span:
    """Return the first words of a piece, as many as a part may have."""
    piece = text[start:end]
    if _is_part(piece):
        return start, end
    cuts = _cuts(piece, lambda cut: cut > 0 and _is_part(piece[:cut]))
    least = _CJK_PART_CHARACTERS if is_cjk(piece) else end - start
    return _trimmed(text, start, start + max(cuts, default=least)) or (start, end)


def _tail(text: str, start: int, end: int, most: int) -> Span | None:
    """Return the last words of a piece, as many as a part may have and at most `most`;
    None where none are left, and where they have neither a letter nor a digit."""
    piece = text[start:end]

    def fits(cut: int) -> bool:
        words = piece[cut:].strip(_EDGE)
        return bool(words) and _is_part(words) and _count_words(words) <= most

    cuts = [0] if fits(0) else _cuts(piece, fits)
    tail = _trimmed(text, start + min(cuts), end) if cuts else None
    return tail if tail and any(map(str.isalnum, text[slice(*tail)])) else None


def _cuts(piece: str, fits: Callable[[int], bool]) -> list[int]:
    """Return where a piece may be cut between words and `fits` says so; of CJK text
    where clauses end, else after particles."""
    if is_cjk(piece):
        ends = ([cut.start() for cut in end.finditer(piece)] for end in _CLAUSE_ENDS)
        return next(filter(None, (list(filter(fits, cuts)) for cuts in ends)), [])
    words = [word.span() for word in _UNBROKEN.finditer(piece) if word[0].strip(_EDGE)]
    near = words[: 2 * _PART_WORDS] + words[-2 * _PART_WORDS :]
    return list(filter(fits, {cut for word in near for cut in word}))


def _is_part(text: str) -> bool:
    if is_cjk(text):
        return len(text) <= _CJK_PART_CHARACTERS
    return len(text) <= _PART_CHARACTERS and _count_words(text) <= _PART_WORDS


def _count_words(text: str) -> int:
    """Return the number of words of a text; CJK text has those of a part."""
    if is_cjk(text):
        return _PART_WORDS
    return sum(map(bool, _BETWEEN_WORDS.split(text)))


def _trimmed(text: str, start: int, end: int) -> Span | None:
    """Return a stretch without white space and marks at both ends: ends must be word
    boundaries. None if nothing else is left."""
    while start < end and text[start] in _EDGE:
        start += 1
    while end > start and text[end - 1] in _EDGE:
        end -= 1
    return (start, end) if end > start else None


def _encode(words: str) -> str:
    """Percent-encode, without our marks of struck words; the hyphen too, since it marks
    context in a directive."""
    text = " ".join(words.replace(STRUCK, "").split())
    return quote(text, safe="").replace("-", "%2D")


# Positions in files


def _block_at(document: Document, offset: int) -> Block | None:
    """Return the content unit that holds `offset`; None between units."""
    blocks = document.blocks
    after = bisect_right(blocks, offset, key=lambda block: block.start)
    return blocks[after - 1] if after and offset < blocks[after - 1].end else None


def position_of(document: Document, start: int, end: int) -> str:
    """Return the position of `document.text[start:end]` in its file as a link fragment;
    "" for web pages.

    From one row, cell or cue to another it is a range: `Costs!A4:C9`, `row=2-7` (RFC
    7111), `t=00:12:31,00:12:52`. What a link cannot express is the position of the
    first; a start between units has none."""
    first_block = _block_at(document, start)
    last_block = _block_at(document, max(start, end - 1))
    if first_block is None or last_block is None:
        return first_block.place if first_block else ""
    reaching = one_position(first_block.place, last_block.place)
    return first_block.place if reaching is None else reaching


def one_position(first_position: str, last_position: str) -> str | None:
    """Return the range between two positions of a file; None if a link cannot express
    it."""
    if first_position == last_position:
        return first_position
    if is_box(first_position):
        return None
    if _TIMED.match(first_position) and _TIMED.match(last_position):
        return f"{first_position.partition(',')[0]},{last_position.partition(',')[2]}"
    if (kind := first_position.partition("=")[0]) in {
        "row",
        "cell",
    } and last_position.startswith(f"{kind}="):
        return f"{first_position}-{last_position.partition('=')[2]}"
    sheet, separator, cells = first_position.partition("!")
    if separator and last_position.startswith(f"{sheet}!"):
        return f"{sheet}!{cells.partition(':')[0]}:{last_position.rpartition('!')[2].rpartition(':')[2]}"
    return None


def position_name(position: str) -> str:
    """Return a position in a file as people write it: `p. 3`, `slide 2`, `Costs!A4:C9`,
    `00:12:31,00:12:52`."""
    if is_box(position):
        position = position.partition("&")[0] if "&" in position else ""
    return (
        unquote(position).removeprefix("t=").replace("page=", "p. ").replace("=", " ")
    )
