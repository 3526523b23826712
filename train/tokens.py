"""Fits the table of the token counter (`pipeline/text/tokens.py`) to cl100k_base, on texts of every kind.

    python -m train.tokens

It needs the package bpe-openai, which holds the table of tokens, and `../shared/data`. A table of how often a token
begins at a character is a count over half of the texts (`bench/tokens.py` measures the other half); rare contexts lean
on the same place in a word behind any character. Of tokens that are words only bits of their hashes are kept.
"""

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.tokens import Tokenizer, samples, tokenizer
from pipeline.text.tokens import BITS, BREAK, CLASSES, STATES, TABLE, WHOLE, contexts, word_hashes

Floats = NDArray[np.float64]
WEIGHTS: Final = {
    "raw HTML": 0.15, "prose de": 13, "prose ru": 4, "tables": 6, "tables in HTML": 3, "code": 14,
}  # fmt: skip
"""Of kinds whose unknown words are cut otherwise than English ones, so that each kind comes out within 3 %."""
RARE: Final = 2.0
"""Texts' worth of characters, in thousands of weights, below which a context leans on the wider one."""
_WORD: Final = re.compile(r" ?[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u052f]+")


def known_words(model: Tokenizer) -> NDArray[np.uint8]:
    """Return the packed bits of the hashes of words that are one token, with and without a blank before them."""
    bits = np.zeros(1 << BITS, dtype=bool)
    for token in range(model.n_vocab):
        try:
            text = model.decode_single_token_bytes(token).decode()
        except (KeyError, UnicodeDecodeError):
            continue
        if _WORD.fullmatch(text):
            word = text.lstrip(" ")
            codes = np.array([ord(letter) + 1 for letter in word], dtype=np.uint32)
            spaced = np.array([word != text])
            bits[word_hashes(codes, np.arange(len(word)), np.array([0]), spaced)] = True
    return np.packbits(bits)


def begun(text: str, model: Tokenizer) -> Floats:
    """Return how many tokens begin at each character."""
    lengths = [len(model.decode_single_token_bytes(token)) for token in model.encode_ordinary(text)]
    encoded = np.frombuffer(text.encode(), dtype=np.uint8)
    characters = np.cumsum((encoded & 0xC0) != 0x80) - 1
    places = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)
    return np.bincount(characters[places], minlength=len(text)).astype(np.float64)


def moved(begins: Floats, classes: NDArray[np.uint8]) -> Floats:
    """Return the counts where each run of breaks costs one: what it costs less or more is the next character's."""
    broken = classes == BREAK
    runs = np.cumsum(broken & ~np.concatenate(([False], broken[:-1])))
    costs = np.bincount(runs[broken], weights=begins[broken], minlength=int(runs[-1]) + 1)
    behind = np.flatnonzero(~broken[1:] & broken[:-1]) + 1
    begins[behind] += costs[runs[behind]] - 1
    begins[broken] = 0
    return begins


def fit(model: Tokenizer) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return the table [states, classes before, classes] and the bits of words."""
    words = known_words(model)
    size = STATES * CLASSES * CLASSES
    sums, seen = np.zeros(size), np.zeros(size)
    for name, texts in samples().items():
        half = texts[::2]
        weight = 1e5 * WEIGHTS.get(name, 1) / sum(map(len, half))
        for text in half:
            classes, _, entries = contexts(text, words)
            begins = moved(begun(text, model), classes)
            sums += weight * np.bincount(entries, weights=begins, minlength=size)
            seen += weight * np.bincount(entries, minlength=size)
    shape = (STATES, CLASSES, CLASSES)
    sums, seen = sums.reshape(shape), seen.reshape(shape)
    mean = sums.sum((1, 2), keepdims=True) / np.maximum(1, seen.sum((1, 2), keepdims=True))
    wide = (sums.sum(1, keepdims=True) + 0.5 * mean) / (seen.sum(1, keepdims=True) + 0.5)
    table = np.rint(WHOLE * (sums + RARE * wide) / (seen + RARE)).clip(0)
    table[:, :, BREAK] = 0
    return table.astype(np.uint16), words


def main() -> None:
    """Write the table."""
    begins, words = fit(tokenizer("cl100k_base"))
    np.savez_compressed(TABLE, begins=begins, words=words)
    print(f"{TABLE.name}: {TABLE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
