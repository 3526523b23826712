"""Sentences of a document: running text is split; every unit is numbered, with offsets.

The cutter is a finite state machine over stops, for any language. It visits only
candidates (a stop, its closing marks, white space) and decides by the words before and
after, so it is linear and needs no model. Spans are offsets into the original text.
Headings, items, rows, captions, definition pairs and code are units of their own. Not
for: scoring, or finding content units.
"""

import math
import re
import time
from collections.abc import Iterable, Iterator
from typing import Final

from cancellation import check_cancelled
from pipeline.text.frame import is_injection, one_line
from pipeline.text.words import is_unspaced, words
from readers.page import Block, Document, Sentence, kept_with_document
from readers.tree import LABEL_WORDS, count_words

UNIT_CHARACTERS: Final = 600
"""Code points a span may have; chat logs and boilerplate give "sentences" of
thousands."""
UNSPACED_LONGEST: Final = 160
"""Those of a text in Thai or the like, which has blanks between clauses and no stops:
an English sentence has as many."""
_LOOK_BACK: Final = 120
"""Code points before a stop in which its words are looked for; a CJK quotation shorter
than this stays in one piece."""

_NEVER_FINAL: Final = words("abbreviations")
"""No boundary after these, whatever follows."""
_MAYBE_FINAL: Final = words("abbreviations.final")
"""A boundary only before a word that commonly begins sentences."""
_STARTERS: Final = words("starters")
"""Capitalised words that often begin a sentence and seldom continue a name."""
_LOWER_STARTERS: Final = words("starters.lower")
"""What begins a sentence in text without capitals: only where the stop follows a word
and nothing closes with it."""
_BEFORE_ORDINAL: Final = words("ordinals.before")
_AFTER_ORDINAL: Final = words("ordinals.after")
"""Words around a number whose period makes an ordinal of it (`der 2. Satz`, `3.
Oktober`)."""

_HAN: Final = "぀-ヿ㐀-䶿一-鿿가-힯\U00020000-\U0002fa1f"
_CLOSERS: Final = r"[\"'”’»«›“）)\]}」』】》〉]*"
_NOTES: Final = r"(?:\ [:;]-?[)(DP](?!\w)|\ ?\[(?:\d[\d\s,–-]{0,12}|[a-z]|note\ \d+|citation\ needed)\]|[⁰¹²³⁴-⁹])*"
_CANDIDATE: Final = re.compile(
    rf"(?P<cjk>[。！？｡][。！？｡!?…]*|(?<=[{_HAN}])[．.!?](?=[{_HAN}])|(?<=[{_HAN}])．(?=\s|$)){_CLOSERS}{_NOTES}\s*"
    rf"|(?P<stop>[.!?…‽؟।۔՝։]+(?:[ \u00a0]\.)*)(?P<closers>{_CLOSERS}){_NOTES}(?:\s+|\Z)"
    r"|(?P<blank>[^\S\n]*\n[^\S\n]*\n\s*)"
)
_NEXT: Final = re.compile(
    r"(?P<opening>[\"'“”„‘’«»‹›(\[{¿¡*_–—-]*\s?)(?P<word>[^\W_]+(?:['’]\w+)?)?"
)
_MARKER: Final = re.compile(
    r"\s*(?:(?P<bullet>[•⁃‣▪◦●])\s?|(?P<number>\d{1,3}|a)(?P<tail>\.\)|\)|\.)\s)"
)
_QUOTATIVE: Final = re.compile(r"[とってなのはがをにもで、，,]")
_STRIP: Final = "\"'“”„‘’«»‹›([{¿¡*_–—-/•⁃‣▪◦●"


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the sentences of `text` as spans of code points (start, end).

    Spans are in order, disjoint, without white space at their ends, at most `UNIT_CHARACTERS`
    long, and cover every visible character. A blank line always ends a sentence, a
    single line break never does by itself. Pure and linear."""
    starts = _items(text)
    forced = len(starts) > 1
    spans: list[tuple[int, int]] = []
    start = 0
    next_item = 1
    for match in _CANDIDATE.finditer(text):
        end = match.end()
        while forced and next_item < len(starts) and starts[next_item] < end:
            _close(text, start, starts[next_item], spans)
            start = starts[next_item]
            next_item += 1
        kind = match.lastgroup
        if kind == "blank" or (
            _ends_cjk(text, match, start)
            if kind == "cjk"
            else _ends(text, match, start)
        ):
            _close(text, start, end, spans)
            start = end
    for item in starts[next_item:]:
        _close(text, start, item, spans)
        start = item
    _close(text, start, len(text), spans)
    return spans


def _items(text: str) -> list[int]:
    """Starts of the items of a list run together (`1) one 2) two`), where the text
    begins as one; else nothing."""
    marker = _MARKER.match(text)
    if marker is None:
        return []
    starts = [0]
    if marker["bullet"]:
        bullet = re.compile(rf"(?<=\s){marker['bullet']}")
        return starts + [match.start() for match in bullet.finditer(text, marker.end())]
    offset = marker.end()
    value = marker["number"]
    while True:
        value = chr(ord(value) + 1) if value.isalpha() else str(int(value) + 1)
        marker_offset = text.find(f" {value}{marker['tail']} ", offset)
        if marker_offset < 0 or (value.isalpha() and value > "z"):
            return starts
        starts.append(marker_offset + 1)
        offset = marker_offset + 1 + len(value) + len(marker["tail"])


def _ends_cjk(text: str, match: re.Match[str], start: int) -> bool:
    """Whether a CJK stop ends the sentence: not inside a title or short quotation, nor
    before "と言った"."""
    offset = match.start()
    low = max(start, offset - _LOOK_BACK)
    for opening, closing in ("《》", "〈〉", "「」", "『』", "（）"):
        opened = text.rfind(opening, low, offset)
        if opened <= text.rfind(closing, low, offset):
            continue
        # `cjk` ends before the closing mark of the quotation unless that mark directly follows the
        # stop.
        closed = text.find(closing, match.end("cjk"), opened + _LOOK_BACK)
        if closed > match.end("cjk") or (
            closed >= 0 and _QUOTATIVE.match(text, closed + 1)
        ):
            return False
    return True


def _ends(text: str, match: re.Match[str], start: int) -> bool:
    """Whether a stop before white space ends the sentence that began at `start`."""
    opening, after, initial = _follows(text, match.end())
    if after and _is_lower(after) and not _begins_lower(text, match, after):
        return False
    if match["stop"] != ".":
        return True
    preceding = text[max(start, match.start() - _LOOK_BACK) : match.start()]
    before, word = _last_words(preceding)
    if not word:  # nothing but marks
        return bool(match["closers"]) or not preceding.strip()
    if _is_marker(word, before):
        return False
    if match["closers"][:1] not in {"", "'", "’"}:
        return word.lower() not in _NEVER_FINAL
    return (
        _ends_number(word, before, after, opening=opening)
        if word.isdecimal()
        else _ends_word(word, before, "" if initial else after)
    )


def _follows(text: str, offset: int) -> tuple[str, str, bool]:
    """Return the opening marks and the word after a stop, and whether that word is an
    initial."""
    match = _NEXT.match(text, offset)
    if match is None:
        return "", "", False
    word, word_end = match["word"] or "", match.end()
    return (
        match["opening"],
        word,
        len(word) == 1 and text[word_end : word_end + 1] == ".",
    )


def _last_words(text: str) -> tuple[str, str]:
    """Return the last two words without marks before them, "" for one that is
    lacking."""
    words = ["", "", *(word.lstrip(_STRIP) for word in text.rsplit(None, 2))]
    return words[-2], words[-1]


def _is_marker(word: str, before: str) -> bool:
    return not before and len(word) < 4 and (word.isdecimal() or len(word) == 1)


def _begins_lower(text: str, match: re.Match[str], after: str) -> bool:
    """Whether a word in small letters begins a sentence after a stop: a name that is
    written so."""
    offset = match.start()
    is_word = not match["closers"] and text[offset - 1 : offset].isalpha()
    return is_word and after in _LOWER_STARTERS


def _ends_word(word: str, before: str, after: str) -> bool:
    """After a word: abbreviation, initial, or the end; `after` is empty before marks
    and before another initial."""
    low = word.lower()
    if low in _NEVER_FINAL:
        return False
    if len(word) == 1 and word.isalpha():
        spaced = len(before) == 2 and before[1] == "." and before[0].islower()
        return (
            after in _STARTERS
            and not spaced
            and f"{before.lower()}{low}" not in _NEVER_FINAL
        )
    if low in _MAYBE_FINAL or _is_dotted(low):
        return not after or after in _STARTERS
    return True


def _ends_number(word: str, before: str, after: str, *, opening: str) -> bool:
    """After a number: German ordinal or the end."""
    if len(word) > 3 or after in _STARTERS:
        return True
    if before.lower() in _BEFORE_ORDINAL:
        return False
    return len(word) > 2 or not (
        after.lower() in _AFTER_ORDINAL or opening.startswith(("-", "–"))
    )


def _is_dotted(word: str) -> bool:
    """`u.s`, `ph.d`: letters with periods between, at most three letters a piece."""
    return (
        "." in word
        and len(word) <= 12
        and all(0 < len(p) <= 3 and p.isalpha() for p in word.split("."))
    )


def _is_lower(word: str) -> bool:
    """Whether a word continues a sentence: a lower-case beginning, names like `iPhone`
    and Georgian excepted."""
    initial = word[0]
    return initial.islower() and not word[1:2].isupper() and not "ა" <= initial <= "ჿ"


def _close(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    """Append text[start:end] without outer white space, cut into pieces of at most
    `UNIT_CHARACTERS` or `UNSPACED_LONGEST`."""
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped:
        return
    start += len(piece) - len(piece.lstrip())
    end = start + len(stripped)
    longest = UNSPACED_LONGEST if is_unspaced(stripped) else UNIT_CHARACTERS
    while end - start > longest:
        cut = _cut(text, start, longest)
        spans.append((start, start + len(text[start:cut].rstrip())))
        start = cut
        while text[start].isspace():
            start += 1
    spans.append((start, end))


def _cut(text: str, start: int, longest: int) -> int:
    """Where to cut a piece that is too long: after the last semicolon, else comma, else
    white space, else anywhere.

    Never in its first third, so that the pieces stay readable.
    """
    low, high = start + longest // 3, start + longest
    for marks in (
        ("; ", "；", "\n"),
        (", ", "，", "、", " – ", " | "),
        (" ", "\t", "\u00a0"),
    ):
        cut = max(
            text.rfind(separator, low, high) + len(separator) for separator in marks
        )
        if cut > low:
            return min(cut, high)
    return high


# Units

_WHOLE_CHARACTERS: Final = UNIT_CHARACTERS // 2
"""Items, definitions and captions up to this many code points stay whole: a list's item
is read as one thing."""
_CODE_GROUP: Final = 240
"""Code points of the code lines that make one unit; a blank line ends a unit as
well."""


def tag_sentences(
    document: Document,
    blocks: Iterable[int] | None = None,
    *,
    ends: float = math.inf,
) -> tuple[Sentence, ...]:
    """Return the sentences and units of `document` in reading order, numbered from 1.

    Each `Sentence.start:end` is a non-empty span of `document.text`; spans are disjoint
    and ascending. `Sentence.text` is the span on one line; for rows it is the block's
    `header: value` text. Only `blocks` are cut where they are given: ascending indices
    into `Document.blocks`. Blocks without text of their own there are left out, as is
    what follows the first after `time.monotonic` passes `ends`."""
    sentences: list[Sentence] = []
    for index in range(len(document.blocks)) if blocks is None else blocks:
        check_cancelled()
        block = document.blocks[index]
        if block.start < 0 or block.end <= block.start:
            continue
        spans = _unit_spans(block, document.text)
        for start, end in spans:
            unit_text = (
                block.text
                if block.kind == "row" and len(spans) == 1
                else document.text[start:end]
            )
            line = one_line(unit_text)
            if line:
                sentences.append(
                    Sentence(
                        len(sentences) + 1, line, start, end, index, block.heading_path
                    )
                )
            if time.monotonic() > ends:
                return tuple(sentences)
    return tuple(sentences)


def _unit_spans(block: Block, text: str) -> list[tuple[int, int]]:
    """Spans of the units of one block, in offsets of the document's text."""
    piece = text[block.start : block.end]
    if block.kind == "code":
        spans = list(_code_groups(piece))
    elif block.kind == "row":
        # A row is one thing however long: cutting it would part a value from its header.
        spans = [(0, len(piece))]
    elif block.kind in {"paragraph", "block"} or len(piece) > (
        UNIT_CHARACTERS if block.kind == "heading" else _WHOLE_CHARACTERS
    ):
        spans = split_sentences(piece)
    else:
        spans = [(0, len(piece))]
    return [
        span
        for start, end in spans
        if (span := _trim(text, block.start + start, block.start + end))
    ]


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped:
        return None
    start += len(piece) - len(piece.lstrip())
    return start, start + len(stripped)


def _code_groups(code: str) -> Iterator[tuple[int, int]]:
    """Spans of runs of code lines, cut at blank lines and at `_CODE_GROUP`; a longer
    line is cut like any text."""
    start = end = 0
    offset = 0
    for line in code.splitlines(keepends=True):
        after = offset + len(line)
        blank = not line.strip()
        if end > start and (blank or after - start > _CODE_GROUP):
            yield start, end
            start = end
        if blank:
            start = end = after
        elif len(line) > UNIT_CHARACTERS:
            yield from ((offset + a, offset + b) for a, b in split_sentences(line))
            start = end = after
        else:
            start = start if end > start else offset
            end = after
        offset = after
    if end > start:
        yield start, end


def is_aside(block: Block) -> bool:
    """Whether a block is a line of a menu or the like, or is beside the text: closed,
    or an image's description."""
    return not block.main and (
        block.closed
        or block.trust != "visible"
        or count_words(block.text) <= LABEL_WORDS
    )


@kept_with_document
def is_injected(document: Document, number: int) -> bool:
    """Return whether a block looks like a prompt injection.

    Block by block: of a long document few are asked for."""
    return is_injection(document.blocks[number].text)
