"""The one token counter: every budget, every `tokens` figure and every cut in Winnow
counts with it.

A caller's model has its own tokenizer, which we cannot know, so this is OpenAI's
cl100k_base, line by line: its table of tokens, its merges and its way to cut a text
into pieces. Texts joined by line breaks cost the sum of their counts plus one per run
of breaks, unless they begin or end with spaces. For that, the token that a character at
a line's end shares with the break is subtracted from every line. Not for: a model's own
context limit, which its backend counts.
"""

import lzma
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

TOKENS_FILE: Final = Path(__file__).with_name("tokens.xz")
"""The tokens as bytes, by rank, concatenated with `PARTED` between them: a byte that
UTF-8 never has."""
PARTED: Final = "\udcff"
PIECE_CHARACTERS: Final = 64
"""Characters of a piece: longer ones, which the tokenizer leaves whole, cost the square
of their length to merge."""
_PIECE: Final = re.compile(
    rf"(?i:'(?:[stmd]|re|ve|ll))|[\W_]?[^\W\d_]{{1,{PIECE_CHARACTERS}}}|\d{{1,3}}"
    rf"| ?(?:[^\s\w]|_){{1,{PIECE_CHARACTERS}}}|\s{{1,{PIECE_CHARACTERS}}}(?!\S)|\s"
)
_LINE_BREAKS: Final = re.compile(r"[\r\n]+")
_KANA_OR_HAN: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""Letters of Chinese and Japanese, which have no blanks between words."""
_LINE_OR_BREAKS: Final = re.compile(r"[\r\n]+|[^\r\n]+")


@cache
def _ranks() -> dict[str, int]:
    """Return the rank of each token; bytes that are no character of their own are lone
    surrogates."""
    text = lzma.decompress(TOKENS_FILE.read_bytes()).decode(errors="surrogateescape")
    return {token: rank for rank, token in enumerate(text.split(PARTED))}


@lru_cache(1 << 15)
def _merged(piece: str) -> int:
    """Return how many tokens are left of a piece when all neighbours were merged, those
    of the least rank first."""
    ranks = _ranks()
    never = len(ranks)
    tokens = list(piece)
    if not all(map(ranks.__contains__, tokens)):
        tokens = list(
            "".join(letter if letter in ranks else _bytes(letter) for letter in tokens)
        )
    merges = [ranks.get(left + right, never) for left, right in pairwise(tokens)]
    while merges and (least := min(merges)) < never:
        index = merges.index(least)
        tokens[index] += tokens.pop(index + 1)
        del merges[index]
        if index > 0:
            merges[index - 1] = ranks.get(tokens[index - 1] + tokens[index], never)
        if index < len(merges):
            merges[index] = ranks.get(tokens[index] + tokens[index + 1], never)
    return len(tokens)


def _bytes(letter: str) -> str:
    return letter.encode(errors="surrogatepass").decode("ascii", "surrogateescape")


def _line(line: str) -> int:
    """Return the cost of a text without breaks, at least one."""
    pieces, ranks = _PIECE.findall(line), _ranks()
    cost = len(pieces) + sum(
        [_merged(piece) - 1 for piece in pieces if piece not in ranks]
    )
    return cost - (
        cost > 1
        and not pieces[-1][-1].isalnum()
        and _merged(pieces[-1] + "\n\n") == _merged(pieces[-1])
    )


def count_tokens(text: str) -> int:
    """Return the number of tokens in `text`; 0 for the empty text."""
    lines = _LINE_BREAKS.split(text)
    return len(lines) - 1 + sum(map(_line, filter(None, lines)))


class Budget:
    """Tokens that texts may take together: what one spends the others do not have."""

    def __init__(self, tokens: int) -> None:
        """Begin with `tokens`; with fewer than one nothing can be spent."""
        self._left = tokens
        self._aside = 0

    @property
    def left(self) -> int:
        """Tokens that may be spent."""
        return self._left - self._aside

    def spend(self, tokens: int) -> bool:
        """Spend `tokens` where so many are left; return whether they were."""
        if tokens > self.left:
            return False
        self._left -= tokens
        return True

    def set_aside(self, tokens: int) -> None:
        """Keep `tokens`, as many as there are at most, until `release`."""
        self._aside = min(tokens, self._left)

    def release(self) -> None:
        """Let be spent what was set aside."""
        self._aside = 0


def count_each(texts: Sequence[str]) -> list[int]:
    """Return `count_tokens` of each text."""
    return [count_tokens(text) for text in texts]


def cut_to_tokens(text: str, max_tokens: int) -> str:
    """Return the longest prefix of whole words and numbers with at most `max_tokens`
    tokens, its end trimmed; "" where not even one word fits.

    Chinese and Japanese are cut between any two characters."""
    room, cut = max_tokens, 0
    for run in _LINE_OR_BREAKS.finditer(text):
        cost = 1 if run[0][0] in "\r\n" else _line(run[0])
        if cost > room:
            break
        room, cut = room - cost, run.end()
    else:
        return text
    for piece in _PIECE.finditer(text, cut, run.end()):
        cost = _merged(piece[0])
        if cost > room:
            # Without this a Japanese title would be left out whole: it has no blank where it could
            # be cut.
            fit = (
                length
                for length in range(len(piece[0]) - 1, 0, -1)
                if _merged(piece[0][:length]) <= room
            )
            cut = piece.start() + next(fit, 0) if _KANA_OR_HAN.search(piece[0]) else cut
            break
        room -= cost
        if not (piece[0][-1].isalnum() and text[piece.end()].isalnum()):
            cut = piece.end()
    return text[:cut].rstrip()
