"""Citations: the page's URL with a text fragment that a browser scrolls to and
highlights.

The directive is `#:~:text=[prefix-,]start[,end][,-suffix]` (WICG
scroll-to-text-fragment). A browser looks for the first match whose ends are word
boundaries; `start` and `end` must each lie within one block, the context may not. It
finds no words that only the markup has: an image's description, the author beside the
text. Not for: choosing what to cite."""

import html
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urldefrag

from pipeline.document.converted import is_box
from pipeline.document.page import (
    Block,
    Document,
    kept_with_document,
)
from pipeline.document.tree import STRUCK
from pipeline.text.words import is_cjk

_DIRECTIVE_WORDS: Final = 4
"""Words of a part of a directive, which has at most two: a link is outside the frame,
so that a page's words in it must be too few for an instruction. A text of no more is
cited whole."""
_PART_CHARACTERS: Final = 60
"""Code points of a part: words without blanks between them are words all the same. A
longer one is left out."""
_CONTEXT_REACH: Final = 80
"""Code points around the words in which context is looked for."""
_EARLIER_COMPARED: Final = 64
"""Earlier places of the same words that context is held against."""
_CJK_PART_CHARACTERS: Final = 12
"""Code points of a part of CJK text, some six words."""

_TIMED: Final = re.compile(r"t=([\d:]+),")
_YOUTUBE_PAGE: Final = re.compile(r"https?://(?:www\.|m\.)?youtube\.com/watch\?")
"""Addresses that take a time as an argument, not as a fragment."""
_UNBROKEN: Final = re.compile(r"[^\s\-\u2010-\u2015/\\|]+")
"""A browser sees the border of a word at each of these."""
_BETWEEN_WORDS: Final = re.compile(r"[\s!-&(-/:-@\[-`{-~\u2010-\u2015\u2026]+")
_WITHIN_NUMBER: Final = re.compile(r"(?<=\d)[.,:](?=\d)")
"""Separators of words, and characters within numbers."""
_WORDLIKE: Final = re.compile(r"\w")
_WHITE_SPACE: Final = re.compile(r"\s+")
_BLANK_RUN: Final = re.compile(r"\s{2,}")
_CLAUSE_ENDS: Final = (
    re.compile(r"[、，,；;：:。！？\s]+"),
    re.compile(r"(?<=[的了在是和与はがをにでとのもへ])|(?<=[ぁ-ん])(?=[一-龥ァ-ヴ])"),
)
"""Where CJK text surely has the border of a word, and where it usually has: after
particles and kana."""
_INLINE: Final = "a|abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strong"
_PARTING: Final = re.compile(
    rf"(<(?!/?(?:{_INLINE}|sub|sup|time|tt|u|var|wbr)\b)[^>]*>)"
)
"""A tag that ends a block or a line."""
_LINE: Final = re.compile(r"[^\n\r\v\f\u2028\u2029]+")
_ANY_TAG: Final = re.compile(r"<[^>]*>")
_ALT_TEXT: Final = re.compile(r'<img\b[^>]*?\balt="([^"]+)')
_CONTEXT_GAP: Final = r"[\s|]*"
"""What may separate words from their context: white space, and our marks between
cells."""
_SEPARATOR: Final = re.compile(r"\n|\s\|\s")
"""Separators between units and cells in `Document.text`, which the page does not
have."""
_CONTEXT_BREAK: Final = re.compile(r"\n|\s\|\s|(?<=\w):\s(?=\S)")
"""`_SEPARATOR`, plus the `: ` that we insert between <dt> and <dd>."""
_EDGE: Final = (
    "~ \t\n\u00a0,;:.!?…\"'“”„‘’«»()[]{}–—-•·*|/。！？，、；：「」『』（）《》"
)


def cite(document: Document, start: int, end: int) -> str:
    """Return `document.page.final_url` with a text fragment for
    `document.text[start:end]`.

    The URL's own fragment is dropped; a position in a file (`#page=3`) comes before the
    directive, where viewers read it. Offsets are code points, clipped to the text; a
    span without any visible text gives the bare URL."""
    url = urldefrag(document.page.final_url or document.page.url).url
    directive = _directive(
        _rendered(document), max(start, 0), min(end, len(document.text))
    )
    position = position_of(document, max(start, 0), min(end, len(document.text)))
    if is_box(position):  # viewers cannot search in images
        return f"{url}#{position}"
    if (begins := _TIMED.match(position)) and _YOUTUBE_PAGE.match(url):
        hours, minutes, seconds = map(int, begins[1].split(":"))
        url, position = f"{url}&t={3600 * hours + 60 * minutes + seconds}s", ""
    position = f"#{_short_position(position)}" if position else ""
    return (
        f"{url}{position or '#'}:~:text={directive}"
        if directive
        else f"{url}{position}"
    )


def _short_position(position: str) -> str:
    """Return a position in a file, without the sheet's name if that is too long."""
    name, separator, cells = position.rpartition("!")
    return position if not separator or _is_part(unquote(name)) else f"…!{cells}"


@kept_with_document
def _rendered(document: Document) -> Document:
    """Return the document with line ends in its text for all that a browser does not
    render; kept for a page's next."""
    unseen: list[tuple[int, int]] = []
    for block in document.blocks:
        if block.kind == "about" or block.trust == "attribute":
            unseen.append((block.start, block.end))
        elif "<img" in block.html:
            unseen += _descriptions(document.text, block)
    text_pieces, offset = list[str](), 0
    for start, end in unseen:
        text_pieces += document.text[offset:start], "\n" * (end - start)
        offset = end
    return replace(document, text="".join((*text_pieces, document.text[offset:])))


def _descriptions(text: str, block: Block) -> list[tuple[int, int]]:
    """Return the spans of image descriptions in a unit's text."""
    spans: list[tuple[int, int]] = []
    offset = block.start
    pieces = _PARTING.split(block.html)
    described = [_ALT_TEXT.match(piece) for piece in pieces]
    words = [
        _words(alt_match[1] if alt_match else piece)
        for alt_match, piece in zip(described, pieces, strict=True)
    ]
    for index, alt_match in enumerate(described):
        start = text.find(words[index], offset, block.end) if words[index] else -1
        if start < 0 or (alt_match and text[offset:start].strip(" |\n")):
            continue
        stop = start + len(words[index])
        if alt_match:
            following_text = _first_shown(words[index:], described[index:])
            # A button's icon that is described by the button's own words is not in the text beside
            # them.
            if text.find(following_text, stop, block.end) < 0:
                continue
            spans.append((start, stop))
        offset = stop
    return spans


def _first_shown(words: list[str], described: list[re.Match[str] | None]) -> str:
    """Return the first text that describes no image, "" where there is none."""
    texts = (
        text for text, alt_match in zip(words, described, strict=True) if not alt_match
    )
    return next(filter(None, texts), "")


def _words(piece: str) -> str:
    """What a piece of HTML reads like in a document's text."""
    return " ".join(html.unescape(_ANY_TAG.sub("", piece)).split())


def _directive(document: Document, start: int, end: int) -> str:
    text = document.text
    pieces = _pieces(document, start, end)
    if not pieces:
        return ""
    first_start, first_end = pieces[0]
    first_text = text[first_start:first_end]
    if len(pieces) == 1 and _is_part(first_text):
        return _with_context(document, first_start, first_end, _encode(first_text))
    head_end = _head(text, first_start, first_end)
    head = text[first_start:head_end]
    if not _is_part(head):
        return ""
    directive = _with_context(document, first_start, head_end, _encode(head))
    if directive != _encode(
        head
    ):  # fewer words leave room for their context and the end
        head_end = _head(text, first_start, first_end, max_words=_DIRECTIVE_WORDS - 1)
        directive = _with_context(
            document, first_start, head_end, _encode(text[first_start:head_end])
        )
    if ",-" in directive:
        return directive
    last_words = _end(document, pieces, head_end)
    # The end gives way: a browser that finds the start opens the page there.
    return _ranged(text, directive, *last_words) or directive


def _ranged(text: str, directive: str, start: int, end: int, after: str) -> str:
    """Return a directive with the last words of its range and what follows them, as
    many words as leave it short; "" where none do."""
    while end > start:
        ranged = ",".join((directive, _encode(text[start:end])))
        ranged += f",-{_encode(after)}" if after else ""
        if _is_short(ranged):
            return ranged
        later = (offset for offset in _word_starts(text, start, end) if offset > start)
        start = next(later, end)
    return ""


def _is_short(directive: str) -> bool:
    """Whether a directive has no more than two parts may have."""
    phrases = [unquote(piece.strip("-")) for piece in directive.split(",")]
    words = [
        _DIRECTIVE_WORDS if is_cjk(phrase) else _count(phrase) for phrase in phrases
    ]
    return (
        sum(words) <= 2 * _DIRECTIVE_WORDS
        and sum(map(len, phrases)) <= 2 * _PART_CHARACTERS
    )


def _is_part(text: str) -> bool:
    """Whether some words are few enough for a part of a directive."""
    if is_cjk(text):
        return len(text) <= _CJK_PART_CHARACTERS
    return len(text) <= _PART_CHARACTERS and _count(text) <= _DIRECTIVE_WORDS


def _count(text: str) -> int:
    """Return the number of words of a text; any separator counts."""
    return sum(map(bool, _BETWEEN_WORDS.split(_WITHIN_NUMBER.sub("", text))))


def _end(
    document: Document, pieces: list[tuple[int, int]], head_end: int
) -> tuple[int, int, str]:
    """Return the span of a range's last words (empty if none are left) and the text
    that must follow them.

    The browser uses the first match after the range's start, so a last cell with
    repeated text needs following context, or is replaced by the cell before it.
    """
    text = document.text
    block, _ = _block_at(document, pieces[-1][0])
    tails: list[tuple[int, int, str]] = []
    for start, end in reversed(pieces):
        if tails and (block is None or start < block.start):
            break
        tail = _tail(text, max(start, head_end), end)
        if tail is not None:
            if _first_offset(text, tail, end, low=head_end) == tail:
                return tail, end, ""
            after = "" if tails else _after(text, end)
            if (
                after
                and _first_offset(text, tail, end, low=head_end, after=after) == tail
            ):
                return tail, end, after
            tails.append((tail, end, ""))
    return tails[0] if tails else (head_end, head_end, "")


def _pieces(document: Document, start: int, end: int) -> list[tuple[int, int]]:
    """Spans of text that each lie within one block or cell or line, in order,
    trimmed."""
    spans: list[tuple[int, int]] = []
    offset = start
    while offset < end:
        block, block_end = _block_at(document, offset)
        stop = min(end, block_end)
        spans += _pieces_in(document.text, block, offset, stop)
        offset = max(stop, offset + 1)
    return _trimmed(document.text, spans)


def _pieces_in(
    text: str, block: Block | None, start: int, stop: int
) -> list[tuple[int, int]]:
    """Spans of cells, of what elements separate, or of lines within a part of one
    block; of lines between two (None)."""
    part_spans = [] if block is None else _parts(text, block)
    if block is not None and block.cells and start <= block.start:
        return _from_distinct(text, part_spans) or _cells(text, block)
    if part_spans:
        return [
            (max(a, start), min(b, stop))
            for a, b in part_spans
            if a < stop and b > start
        ]
    lines = _LINE.finditer(text[start:stop])
    return [(start + line.start(), start + line.end()) for line in lines]


def _block_at(document: Document, offset: int) -> tuple[Block | None, int]:
    """The content unit that holds `offset` and where it ends; None between units, and
    where the next one begins."""
    blocks = document.blocks
    after = bisect_right(blocks, offset, key=lambda block: block.start)
    if after and offset < blocks[after - 1].end:
        return blocks[after - 1], blocks[after - 1].end
    return None, blocks[after].start if after < len(blocks) else len(document.text)


def _parts(text: str, block: Block) -> list[tuple[int, int]]:
    """Return the spans of a unit's pieces that elements separate: a card's title and
    text, a term and its definition.

    Empty where it is one piece; a browser finds no words across the boundary of a block
    or a line break."""
    if block.kind == "code":
        return []
    words = [_words(piece) for piece in _PARTING.split(block.html)]
    spans: list[tuple[int, int]] = []
    offset = block.start
    for piece in filter(None, words):
        piece_start = text.find(piece, offset, block.end)
        if piece_start >= 0:
            spans.append((piece_start, piece_start + len(piece)))
            offset = piece_start + len(piece)
    return spans if len(spans) > 1 else []


def _cells(text: str, block: Block) -> list[tuple[int, int]]:
    """Return the spans of a row's cells in the text; cells that are not found are left
    out; the whole row where none is."""
    spans: list[tuple[int, int]] = []
    offset = block.start
    for cell in block.cells:
        cell_start = text.find(cell, offset, block.end) if cell.strip() else -1
        if cell_start >= 0:
            spans.append((cell_start, cell_start + len(cell)))
            offset = cell_start + len(cell)
    return _from_distinct(text, spans) or [(block.start, block.end)]


def _from_distinct(text: str, cells: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Trim, and drop leading cells such as `1` or `yes` that occur earlier on the page,
    if another cell does not. All stay where each of them does."""
    cells = _trimmed(text, cells)
    for index, (start, end) in enumerate(cells):
        if _first_offset(text, start, end) == start and any(
            map(str.isalnum, text[start:end])
        ):
            return cells[index:]
    return cells


def _trimmed(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [trimmed for span in spans if (trimmed := _trim(text, *span))]


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return `start` and `end` without white space and marks at both ends: a browser
    matches words, and ends must be word boundaries. None if nothing else is left."""
    while start < end and text[start] in _EDGE:
        start += 1
    while end > start and text[end - 1] in _EDGE:
        end -= 1
    return (start, end) if end > start else None


def _head(text: str, start: int, end: int, *, max_words: int = _DIRECTIVE_WORDS) -> int:
    """End of the first words of a span, as many as a part may have, at `max_words`."""
    ends = _word_ends(text, start, end)[:max_words]
    return next(
        (word_end for word_end in reversed(ends) if _is_part(text[start:word_end])),
        ends[0],
    )


def _tail(text: str, start: int, end: int) -> int | None:
    """Start of a span's last words, as many as a part may have; None where none are
    left, and where they have neither a letter nor a digit."""
    starts = (
        word_start
        for word_start in _word_starts(text, start, end)
        if _is_part(text[word_start:end])
    )
    tail = next(starts, end)
    return tail if any(map(str.isalnum, text[tail:end])) else None


def _word_ends(text: str, start: int, end: int) -> list[int]:
    piece = text[start:end]
    if is_cjk(piece):
        reach = piece[: _CJK_PART_CHARACTERS + 1]
        cuts = (
            [
                start + m.start()
                for m in pattern.finditer(reach)
                if 4 <= m.start() <= _CJK_PART_CHARACTERS
            ]
            for pattern in _CLAUSE_ENDS
        )
        return next(filter(None, cuts), [min(end, start + _CJK_PART_CHARACTERS)])
    ends: list[int] = []
    for match in _UNBROKEN.finditer(piece):
        word = match.group().rstrip(_EDGE)
        if word or ends:  # punctuation alone counts as the end of the word before it
            ends.append(start + match.start() + len(word) if word else ends[-1])
        if len(ends) == _DIRECTIVE_WORDS:  # the paragraph may have two megabytes
            break
    return ends or [end]


def _word_starts(text: str, start: int, end: int) -> list[int]:
    piece = text[start:end]
    if is_cjk(piece):
        low = max(start, end - _CJK_PART_CHARACTERS - 1)
        ends = [
            [m.end() for m in pattern.finditer(text, low, end)]
            for pattern in _CLAUSE_ENDS
        ]
        clause_starts = (
            [cut for cut in cuts if end - _CJK_PART_CHARACTERS <= cut <= end - 4]
            for cuts in ends
        )
        return next(filter(None, clause_starts), [])
    words = (
        (m.group().lstrip(_EDGE), start + m.end()) for m in _UNBROKEN.finditer(piece)
    )
    return list(
        deque((stop - len(word) for word, stop in words if word), _DIRECTIVE_WORDS)
    )


def _pattern(phrase: str) -> str:
    """What a browser takes for `phrase`: any case, any white space, whole words."""
    words = r"\s+".join(re.escape(word) for word in phrase.split())
    left = r"(?<!\w)" if phrase[:1].isalnum() and not is_cjk(phrase[:1]) else ""
    right = r"(?!\w)" if phrase[-1:].isalnum() and not is_cjk(phrase[-1:]) else ""
    return f"{left}{words}{right}"


def _first_offset(
    text: str, start: int, end: int, *, low: int = 0, after: str = ""
) -> int:
    """Where a browser that searches from `low` finds text[start:end] first, of those
    that `after` follows; `start` where it finds none."""
    phrase = text[start:end]
    followed = (
        re.compile(_CONTEXT_GAP + _pattern(after), re.IGNORECASE) if after else None
    )
    for match_start, stop in _offsets(
        _flat(text), _lowered(" ".join(phrase.split())), low
    ):
        if _is_apart(text, match_start, stop, phrase) and (
            followed is None or followed.match(text, stop)
        ):
            return match_start
    return start


def _is_apart(text: str, start: int, end: int, phrase: str) -> bool:
    """Whether text[start:end] begins and ends at the borders of words, where the ends
    of `phrase` need it."""
    left = (
        phrase[:1].isalnum()
        and not is_cjk(phrase[:1])
        and _WORDLIKE.match(text, max(start - 1, 0), start)
    )
    right = (
        phrase[-1:].isalnum()
        and not is_cjk(phrase[-1:])
        and _WORDLIKE.match(text, end, end + 1)
    )
    return not left and not right


class _Flat(NamedTuple):
    """A text in one case, each run of white space one space, so that words are found at
    a library's speed."""

    text: str
    breaks: list[int]
    """Offsets in it after each longer run, ascending from 0."""
    dropped: list[int]
    """Code points that the original has besides up to the next of these places."""

    def original(self, offset: int) -> int:
        """Return where in the original a place is."""
        return offset + self.dropped[bisect_right(self.breaks, offset) - 1]


@lru_cache(maxsize=8)
def _flat(text: str) -> _Flat:
    """Return a text as phrases are looked up in it; kept, for an answer cites one page
    many times."""
    breaks, dropped = [0], [0]
    for run in _BLANK_RUN.finditer(text):
        breaks.append(run.start() - dropped[-1] + 1)
        dropped.append(dropped[-1] + run.end() - run.start() - 1)
    return _Flat(_WHITE_SPACE.sub(" ", _lowered(text)), breaks, dropped)


def _lowered(text: str) -> str:
    """Return a text in one case, of the same length."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join(
            small if len(small := char.lower()) == 1 else char for char in text
        )
    return low.replace("ς", "σ")


def _offsets(flat: _Flat, words: str, low: int) -> Iterator[tuple[int, int]]:
    """Yield start and end (in the original text) of each match of `words` from `low`
    on."""
    offset = flat.text.find(words, max(0, low - flat.dropped[-1]))
    while offset >= 0:
        start = flat.original(offset)
        if start >= low:
            yield start, flat.original(offset + len(words) - 1) + 1
        offset = flat.text.find(words, offset + 1)


def _with_context(document: Document, start: int, end: int, head: str) -> str:
    """Add a prefix or suffix if the words occur earlier on the page; `head` as it is
    where none can be found.

    Context must touch the words but for white space and block boundaries, so its inner
    edge keeps its punctuation."""
    text = document.text
    if _first_offset(text, start, end) == start:
        return head
    words = _words_before(document, start)
    prefix = _telling(text, start, end, words)
    prefix = prefix or (
        words[-1][-_CJK_PART_CHARACTERS:] if words and is_cjk(words[-1]) else ""
    )
    if prefix:
        return f"{_encode(prefix)}-,{head}"
    after = _after(text, end)
    return f"{head},-{_encode(after)}" if after else head


def _words_before(document: Document, offset: int) -> list[str]:
    """Return the last whole words of the block or cell before `offset`, at most
    `_DIRECTIVE_WORDS`."""
    text = document.text
    low = max(0, offset - _CONTEXT_REACH, _part_before(document, offset))
    before = list(filter(str.strip, _CONTEXT_BREAK.split(text[low:offset])))
    if not before:
        return []
    words = before[-1].split()[-_DIRECTIVE_WORDS:]
    is_cut = len(before) == 1 and low > 0 and not text[low - 1].isspace()
    return words[1:] if is_cut else words


def _telling(text: str, start: int, end: int, words: Sequence[str]) -> str:
    """Return the fewest of the last `words` before text[start:end] that precede no
    earlier match.

    If all do, as many as a part may have; "" if not even the last fits.
    """
    flat, phrase = _flat(text), text[start:end]
    places = islice(
        _offsets(flat, _lowered(" ".join(phrase.split())), 0), _EARLIER_COMPARED
    )
    earlier = [
        match_start
        for match_start, stop in places
        if match_start < start and _is_apart(text, match_start, stop, phrase)
    ]
    chosen = ""
    for count in range(1, len(words) + 1):
        prefix = " ".join(words[-count:])
        if not _is_part(prefix):
            break
        chosen, before = (
            prefix,
            re.compile(f"{_pattern(prefix)}{_CONTEXT_GAP}\\Z", re.IGNORECASE),
        )
        if not any(
            before.search(text, max(0, offset - _CONTEXT_REACH), offset)
            for offset in earlier
        ):
            break
    return chosen


def _after(text: str, offset: int) -> str:
    """The words that follow `offset`, of one unit or cell; empty at the end."""
    pieces = _SEPARATOR.split(text[offset : offset + _CONTEXT_REACH])
    words = next(filter(None, (piece.strip(" |") for piece in pieces)), "").split()[
        :_DIRECTIVE_WORDS
    ]
    counts = range(len(words), 0, -1)
    chosen = next(
        (phrase for count in counts if _is_part(phrase := " ".join(words[:count]))), ""
    )
    return chosen or (
        words[0][:_CJK_PART_CHARACTERS] if words and is_cjk(words[0]) else ""
    )


def _part_before(document: Document, offset: int) -> int:
    """Where the piece of a unit begins that ends before `offset`; 0 where the unit is
    one piece."""
    last_offset = len(document.text[:offset].rstrip()) - 1
    block, _ = _block_at(document, last_offset)
    spans = _parts(document.text, block) if block else []
    return next((start for start, end in spans if start <= last_offset < end), 0)


def _encode(words: str) -> str:
    """Percent-encode, without our marks of struck words; the hyphen too, since it marks
    context in a directive."""
    return quote(" ".join(words.replace(STRUCK, "").split()), safe="").replace(
        "-", "%2D"
    )


def position_of(document: Document, start: int, end: int) -> str:
    """Return the position of `document.text[start:end]` in its file as a link fragment;
    "" for web pages.

    From one row, cell or cue to another it is a range: `Costs!A4:C9`, `row=2-7` (RFC
    7111), `t=00:12:31,00:12:52`. What a link cannot express is the position of the
    first; a start between units has none."""
    first_block, _ = _block_at(document, start)
    last_block, _ = _block_at(document, max(start, end - 1))
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
