"""Finds a draft's quotations in its sources: verbatim, similar (with differences), or
not.

Letters and digits decide, in their order: white space, hyphens, quotation marks, case
and marks between words may differ, and an ellipsis or an editor's brackets may replace
words. Not for: what a sentence states (`pipeline/reading/statements.py`)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from pipeline.document.cite import cite
from pipeline.document.page import Document
from pipeline.text.words import is_cjk
from pipeline.work import check_cancelled

Standing = Literal["verbatim", "near", "nowhere"]
ALIKE: Final = 0.6
"""Share of words in common, in order, from which a passage is what was meant; of 300
made drafts' invented quotations none comes near it (`python -m bench.claims`)."""
COMPARED_PLACES: Final = 3
"""Places of a source that are compared word by word: those with most of the quotation's
words in line."""
_ELLIPSIS: Final = re.compile(r"\[[^\[\]]{0,80}\]|\(?\s?(?:…|\.\s?\.\s?\.)\s?\)?")
_QUOTED_WORD: Final = re.compile(
    r"(?<![^\W_])[-−–‒]\d+(?:[.,:/]\d+)*|\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*"
)
_PLAIN_SIGNS: Final = str.maketrans("’‘ʼ´`−–‒", "'''''---")
_BROKEN: Final = re.compile(
    r"(?<=[^\W\d_])[-\u2010\u2011\u00ad]\s*\n\s*(?=[^\W\d_])|\u00ad|[\u200b\u2060\ufeff]"
)


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """The best match of a quotation."""

    standing: Standing
    url: str = ""
    """Citation that opens at the words; empty for nowhere."""
    words: str = ""
    """The source's own words, where they are near and not the same."""
    differs: tuple[tuple[str, str], ...] = ()
    """Pairs of quoted and actual words, for each difference; either may be empty."""


class Text:
    """A source's words with their offsets."""

    def __init__(self, document: Document) -> None:
        """Count the words of a document."""
        self.document = document
        self.words, self.spans = _words(document.text)
        letters = [_letters(word) for word in self.words]
        self.joined = "".join(letters)
        self.starts: dict[int, int] = {}
        place = 0
        for number, word in enumerate(letters):
            self.starts[place] = number
            place += len(word)
        self.starts[place] = len(self.words)
        self.places: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            self.places.setdefault(word, []).append(number)


def find_quote(quote: str, texts: Sequence[Text]) -> QuoteMatch:
    """Return the best match of `quote` among `texts`, the first of equals.

    It is `nowhere` for a quotation without words, and where less than `ALIKE` of it is
    found."""
    pieces = [words for piece in _ELLIPSIS.split(quote) if (words := _words(piece)[0])]
    for text in texts:
        check_cancelled()
        if pieces and (span := _verbatim(pieces, text)):
            return QuoteMatch("verbatim", _cited(text, span))
    asked = [word for piece in pieces for word in piece]
    near = max(
        ((*_near(asked, text), text) for text in texts),
        key=lambda one: one[0],
        default=None,
    )
    if near is None or near[0] < ALIKE:
        return QuoteMatch("nowhere")
    _, span, text = near
    actual = text.words[slice(*span)]
    differs = [
        (" ".join(asked[a:b]), " ".join(actual[c:d]))
        for sign, a, b, c, d in SequenceMatcher(
            None, asked, actual, autojunk=False
        ).get_opcodes()
        if sign != "equal"
    ]
    start, end = text.spans[span[0]][0], text.spans[span[1] - 1][1]
    return QuoteMatch(
        "near",
        _cited(text, span),
        " ".join(text.document.text[start:end].split()),
        tuple(differs),
    )


def _words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return normalized words with offsets; each CJK character is a word."""
    # A hyphen at the end of a line parts a word; blanks in its place keep every offset.
    whole = _BROKEN.sub(lambda broken: "\u00ad" * len(broken[0]), text)
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    for found in re.finditer(r"[^\s\u00ad](?:[^\s]|\u00ad)*", whole):
        bare = found[0].replace("\u00ad", "")
        is_one = found[0] != bare or is_cjk(bare)
        for word in (
            re.finditer(r"\w", bare) if is_cjk(bare) else _QUOTED_WORD.finditer(bare)
        ):
            words.append(_folded(word[0]))
            spans.append(
                found.span()
                if is_one
                else (found.start() + word.start(), found.start() + word.end())
            )
    return words, spans


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().translate(_PLAIN_SIGNS)


def _letters(word: str) -> str:
    """A word as it is joined with others: `well-known` is `wellknown`, while `3.5` is
    not `35`."""
    return word if any(map(str.isdigit, word)) else word.replace("'", "")


def _verbatim(pieces: Sequence[Sequence[str]], text: Text) -> tuple[int, int] | None:
    """Return the word range [start, end) that contains all pieces in order, each whole,
    or None."""
    first: int | None = None
    offset = 0
    for piece in pieces:
        wanted = "".join(map(_letters, piece))
        offset = text.joined.find(wanted, offset)
        while offset >= 0 and (
            offset not in text.starts or offset + len(wanted) not in text.starts
        ):
            offset = text.joined.find(wanted, offset + 1)
        if offset < 0:
            return None
        first = text.starts[offset] if first is None else first
        offset += len(wanted)
    return (first, text.starts[offset]) if first is not None else None


def _near(asked: Sequence[str], text: Text) -> tuple[float, tuple[int, int]]:
    """Return the share of `asked` found in order in the most similar stretch of a text,
    and its word range [start, end); 0 and an empty range without a common word."""
    votes: Counter[int] = Counter()
    for offset, word in enumerate(asked):
        standing = text.places.get(word, ())
        for index in standing:
            # Shifts by one or two words vote together; frequent words weigh little.
            votes[(index - offset) // 4] += 1 / len(standing) ** 0.5
    best = (0.0, (0, 0))
    for shift, _ in votes.most_common(COMPARED_PLACES):
        low = max(0, 4 * shift - 4)
        high = min(len(text.words), 4 * shift + len(asked) + 8)
        stretch = text.words[low:high]
        blocks = [
            m
            for m in SequenceMatcher(
                None, asked, stretch, autojunk=False
            ).get_matching_blocks()
            if m.size
        ]
        if not blocks:
            continue
        # Include the quotation's ends: a changed first word belongs to the stretch.
        start = max(low, low + blocks[0].b - blocks[0].a)
        end = min(
            len(text.words),
            low
            + blocks[-1].b
            + blocks[-1].size
            + len(asked)
            - blocks[-1].a
            - blocks[-1].size,
        )
        share = sum(block.size for block in blocks) / max(len(asked), 1)
        best = max(best, (share, (start, max(end, start + 1))))
    return best


def _cited(text: Text, span: tuple[int, int]) -> str:
    return cite(text.document, text.spans[span[0]][0], text.spans[span[1] - 1][1])
