"""Finds a draft's quotations in its sources: verbatim, similar (with differences), or
not.

Letters and digits decide, in their order: white space, hyphens, quotation marks,
accents, case and marks between words may differ, and an ellipsis or an editor's brackets
may replace words. Numbers and names are found in the same way. Not for: what a
sentence states."""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from cancellation import check_cancelled
from pipeline.document.cite import cite
from pipeline.document.units import tag_sentences
from pipeline.question.question import Question
from pipeline.reading.bm25 import page_units
from pipeline.text.words import is_cjk, raw_words
from readers.page import Document

Standing = Literal["verbatim", "near", "nowhere"]
ALIKE: Final = 0.6
"""Share of words in common, in order, from which a passage is what was meant; of 300
made drafts' invented quotations none comes near it (docs/log.md)."""
COMPARED_PLACES: Final = 3
"""Places of a source that are compared word by word: those with most of the quotation's
words in line."""
_ELLIPSIS: Final = re.compile(r"\[[^\[\]]{0,80}\]|\(?\s?(?:…|\.\s?\.\s?\.)\s?\)?")
_QUOTED_LETTER: Final = re.compile(
    r"[^\W_]|(?<=\d)[.,:/](?=\d)|(?<![^\W_])[-−–‒](?=\d)"
)
"""What decides: a letter or digit, and a sign of a number."""
_QUOTED_WORD: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|\d+(?:[.,:/]\d+)*|[^\W\d_]+"
)
_DRAFT_NUMBER: Final = re.compile(r"(?<![^\W_])[-−–‒]?\d+(?:[.,:/]\d+)*")


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
    """A source's letters and words with their offsets, and its units."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.tagged = tag_sentences(document)
        self.units = page_units(document, self.tagged)
        self.letters, self.offsets = _letters(document.text)
        spans = [word.span() for word in _QUOTED_WORD.finditer(document.text)]
        self.spans = spans
        self.words = [document.text[start:stop].casefold() for start, stop in spans]
        self.places: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            self.places.setdefault(word, []).append(number)

    def find(self, letters: str, start: int) -> int:
        """Return the place of whole words with these letters, -1 for none."""
        position = self.letters.find(letters, start)
        while position >= 0 and not (
            self._is_edge(position) and self._is_edge(position + len(letters))
        ):
            position = self.letters.find(letters, position + 1)
        return position

    def _is_edge(self, position: int) -> bool:
        """Whether a word begins or ends before a letter."""
        if position in {0, len(self.letters)}:
            return True
        before, after = self.offsets[position - 1 : position + 1]
        return after > before + 1 or is_cjk(self.document.text[before : after + 1])


def find_quote(quote: str, texts: Sequence[Text]) -> QuoteMatch:
    """Return the best match of `quote` among `texts`, the first of equals.

    It is `nowhere` for a quotation without words, and where less than `ALIKE` of it is
    found."""
    pieces = [_letters(piece)[0] for piece in _ELLIPSIS.split(quote)]
    pieces = list(filter(None, pieces))
    if not pieces or not texts:
        return QuoteMatch("nowhere")
    for text in texts:
        check_cancelled()
        if span := _verbatim(pieces, text):
            return QuoteMatch("verbatim", cite(text.document, *span))
    words = _QUOTED_WORD.findall(_ELLIPSIS.sub(" ", quote).casefold())
    candidates = [(*_near(words, text), text) for text in texts]
    share, span, text = max(candidates, key=lambda candidate: candidate[0])
    if share < ALIKE:
        return QuoteMatch("nowhere")
    actual = text.words[slice(*span)]
    changes = SequenceMatcher(None, words, actual, autojunk=False).get_opcodes()
    differs = [
        (" ".join(words[a:b]), " ".join(actual[c:d]))
        for change, a, b, c, d in changes
        if change != "equal"
    ]
    start, stop = text.spans[span[0]][0], text.spans[span[1] - 1][1]
    return QuoteMatch(
        "near",
        cite(text.document, start, stop),
        " ".join(text.document.text[start:stop].split()),
        tuple(differs),
    )


def unwritten(statement: Question, texts: Sequence[Text]) -> list[str]:
    """Return the numbers of a statement, and the words of its names, that no text has
    as whole words."""
    names = [
        word
        for name in statement.entities
        for word in raw_words(name)
        # "of" and "the" join the words of a name.
        if not (word.isalpha() and word.islower())
    ]
    return [
        token
        for token in dict.fromkeys([*_DRAFT_NUMBER.findall(statement.text), *names])
        if not any(text.find(_letters(token)[0], 0) >= 0 for text in texts)
    ]


def _letters(text: str) -> tuple[str, list[int]]:
    """Return the letters of a text in one form, and the offset of each."""
    letters: list[str] = []
    offsets: list[int] = []
    for match in _QUOTED_LETTER.finditer(text):
        folded = _folded(match[0])
        letters.append(folded)
        offsets += [match.start()] * len(folded)
    return "".join(letters), offsets


@functools.lru_cache(maxsize=10_000)
def _folded(letter: str) -> str:
    if not letter.isalnum():
        return "-" if letter in "-−–‒" else letter
    decomposed = unicodedata.normalize("NFKD", letter).casefold()
    return "".join(filter(str.isalnum, decomposed))


def _verbatim(pieces: Sequence[str], text: Text) -> tuple[int, int] | None:
    """Return the stretch of a text that contains all pieces in order, or None."""
    places: list[int] = []
    stop = 0
    for piece in pieces:
        position = text.find(piece, stop)
        if position < 0:
            return None
        places.append(position)
        stop = position + len(piece)
    return text.offsets[places[0]], text.offsets[stop - 1] + 1


def _near(words: Sequence[str], text: Text) -> tuple[float, tuple[int, int]]:
    """Return the share of `words` found in order in the most similar stretch of a text,
    and its word range [start, end); 0 and an empty range without a common word."""
    votes: Counter[int] = Counter()
    for offset, word in enumerate(words):
        places = text.places.get(word, ())
        for position in places:
            # Shifts by one or two words vote together; frequent words weigh little.
            votes[(position - offset) // 4] += 1 / len(places) ** 0.5
    nearest = (0.0, (0, 0))
    for shift, _ in votes.most_common(COMPARED_PLACES):
        low = max(0, 4 * shift - 4)
        stretch = text.words[low : max(0, 4 * shift) + len(words) + 8]
        matcher = SequenceMatcher(None, words, stretch, autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size]
        if not blocks:
            continue
        # Include the quotation's ends: a changed word there belongs to the stretch.
        start = max(0, blocks[0].b - blocks[0].a)
        stop = min(len(stretch), blocks[-1].b - blocks[-1].a + len(words))
        share = sum(block.size for block in blocks) / len(words)
        nearest = max(nearest, (share, (low + start, low + max(stop, start + 1))))
    return nearest
