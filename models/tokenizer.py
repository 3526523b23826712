"""Tokenizers of ONNX models.

BERT's uncased WordPiece, used by the built-in embedder and reader, is implemented here,
because the library `tokenizers` and its dependencies take 28 MB, a tenth of the
installation. The pieces of the
built-in embedder of many languages are cut by the library sentencepiece. A page's own
`[SEP]` is text here. Source: Devlin et al. 2018, §3.2; Wu et al. 2016, §4.1; Kudo and
Richardson 2018 (arXiv 1808.06226). Not for: counting tokens (`pipeline/text/tokens.py`).
"""

import functools
import importlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

Ids = list[int]
PIECES: Final = "pieces.model"
"""Name of a vocabulary that sentencepiece reads."""
LOOKUP_CHARACTERS: Final = 100
"""Characters of a word that is looked up; a longer one is unknown (the vocabulary's own
`max_input_chars_per_word`)."""
CACHED_WORDS: Final = 20_000
"""Words whose tokens are kept, 4 MB: three in four words of 200 pages' markup are among
them when they come."""
_IDEOGRAPHS: Final = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f])"
)
"""Each is a word: BERT's own ranges, without kana and Hangul."""


class Tokenizer(Protocol):
    """What turns texts into token ids."""

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Return the ids of each text, as `open_tokenizer` says; safe to call from many
        threads at once."""
        ...

    def ids_of(self, *pieces: str) -> Ids:
        """Return the id of each piece of the vocabulary, such as `[SEP]`."""
        ...


class WordPiece:
    """A `Tokenizer` of BERT's uncased form."""

    def __init__(
        self, vocabulary: Mapping[str, int], max_tokens: int | None = None
    ) -> None:
        """Take the ids of words, and of their parts, which begin with `##`;
        `max_tokens` as in `open_tokenizer`."""
        self._max_tokens = max_tokens
        self._vocabulary = vocabulary
        self._cls, self._sep, self._unknown = self.ids_of("[CLS]", "[SEP]", "[UNK]")
        self._ids_of_word = functools.lru_cache(CACHED_WORDS)(self._word_ids)

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See `Tokenizer.encode`."""
        if self._max_tokens is None:
            return [self._ids(text) for text in texts]
        length = self._max_tokens - 2
        return [[self._cls, *self._ids(text)[:length], self._sep] for text in texts]

    def ids_of(self, *pieces: str) -> Ids:
        """See `Tokenizer.ids_of`."""
        return [self._vocabulary[piece] for piece in pieces]

    def _ids(self, text: str) -> Ids:
        ids: Ids = []
        for word in text.split():
            short = len(word) <= LOOKUP_CHARACTERS
            ids += self._ids_of_word(word) if short else self._word_ids(word)
        return ids

    def _word_ids(self, word: str) -> tuple[int, ...]:
        clean = "".join(
            letter
            for letter in word
            if unicodedata.category(letter) not in ("Cc", "Cf", "Co", "Cs")
            and letter != "\ufffd"
        )
        split = unicodedata.normalize("NFD", _IDEOGRAPHS.sub(r" \1 ", clean))
        bare = "".join(
            f" {letter} " if _is_punctuation(letter) else letter
            for letter in split
            if unicodedata.category(letter) != "Mn"
        ).lower()
        return tuple(number for token in bare.split() for number in self._pieces(token))

    def _pieces(self, token: str) -> Ids:
        """Return the longest pieces that `token` begins with, one after the other; one
        unknown for all of it where a piece is missing or it is longer than
        `LOOKUP_CHARACTERS`."""
        ids: Ids = []
        start = 0 if len(token) <= LOOKUP_CHARACTERS else len(token) + 1
        while start < len(token):
            prefix = "##" if start else ""
            for stop in range(len(token), start, -1):
                number = self._vocabulary.get(prefix + token[start:stop])
                if number is not None:
                    break
            else:
                return [self._unknown]
            ids.append(number)
            start = stop
        return ids or [self._unknown]


def _is_punctuation(letter: str) -> bool:
    """Whether a character is a word of its own: Unicode's punctuation, and what else
    ASCII has beside letters and digits."""
    return unicodedata.category(letter).startswith("P") or (
        letter.isascii() and letter.isprintable() and not letter.isalnum()
    )


class SentencePiece:
    """A `Tokenizer` of XLM-R's form: `<s>` opens and `</s>` closes a text, whose own
    spellings of them are text."""

    def __init__(self, data: bytes, max_tokens: int | None) -> None:
        """Take the file; `max_tokens` as in `open_tokenizer`. Raises `RuntimeError`
        where it is none."""
        library = importlib.import_module("sentencepiece")
        self._pieces = library.SentencePieceProcessor(model_proto=data)
        self._max_tokens = max_tokens

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See `Tokenizer.encode`."""
        ids: list[Ids] = self._pieces.encode(list(texts), num_threads=1)
        if self._max_tokens is None:
            return ids
        opening, closing = self.ids_of("<s>", "</s>")
        length = self._max_tokens - 2
        return [[opening, *text_ids[:length], closing] for text_ids in ids]

    def ids_of(self, *pieces: str) -> Ids:
        """See `Tokenizer.ids_of`."""
        return [self._pieces.piece_to_id(piece) for piece in pieces]


def open_tokenizer(
    data: bytes, path: Path, *, max_tokens: int | None = None
) -> Tokenizer:
    """Return the tokeniser of a `tokenizer.json`, or of `PIECES`.

    It gives bare ids without `max_tokens`, else those that a model reads: with special
    tokens, together at most so many. Raises `ValueError`, `KeyError`, `TypeError` or
    `RuntimeError` where the file is none.
    """
    if path.name == PIECES:
        return SentencePiece(data, max_tokens)
    return WordPiece(json.loads(data)["model"]["vocab"], max_tokens)
