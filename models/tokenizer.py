"""Tokenizers of ONNX models.

BERT's uncased WordPiece, used by the built-in embedder and reader, is implemented here,
because the library `tokenizers` and its dependencies take 28 MB, a tenth of the
installation. XLM-R's is in `unigram.py`. The library reads all others (extra `models`). A
page's own `[SEP]` is text here. Source: Devlin et al. 2018, §3.2; Wu et al. 2016, §4.1.
Not for: counting tokens (`pipeline/text/tokens.py`).
"""

import base64
import importlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from errors import ModelError
from extra import importing
from models.unigram import SPACE, Charsmap, Unigram

Ids = list[int]
LOOKUP_CHARACTERS: Final = 100
"""Characters of a word that is looked up; a longer one is unknown (the vocabulary's own
`max_input_chars_per_word`)."""
KNOWN_WORDS: Final = 20_000
"""Words whose tokens are kept, 4 MB: three in four words of 200 pages' markup are among
them when they come."""
_BLANKS: Final = "\t\n\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_UNBLANK_RUN: Final = re.compile(f"[^{_BLANKS}]+")
_IDEOGRAPHS: Final = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f])"
)
"""Each is a word: BERT's own ranges, without kana and Hangul."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs"})
"""Categories of characters that are left out."""
_UNCASED: Final = {
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}
_MODEL: Final = {
    "type": "WordPiece",
    "unk_token": "[UNK]",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": LOOKUP_CHARACTERS,
}
_BERT_TEMPLATE: Final = [
    {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}},
    {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
]


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

    def __init__(self, vocabulary: Mapping[str, int], most: int | None = None) -> None:
        """Take the ids of words, and of their parts, which begin with `##`; `most` as
        in `open_tokenizer`."""
        self._most = most
        self._begins = {
            piece: number
            for piece, number in vocabulary.items()
            if not piece.startswith("##")
        }
        self._goes_on = {
            piece[2:]: number
            for piece, number in vocabulary.items()
            if piece.startswith("##")
        }
        self._cls, self._sep, self._unknown = self.ids_of("[CLS]", "[SEP]", "[UNK]")
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See `Tokenizer.encode`."""
        if self._most is None:
            return [self._ids(text) for text in texts]
        return [
            [self._cls, *self._ids(text)[: self._most - 2], self._sep] for text in texts
        ]

    def ids_of(self, *pieces: str) -> Ids:
        """See `Tokenizer.ids_of`."""
        return [self._begins[piece] for piece in pieces]

    def _ids(self, text: str) -> Ids:
        found: Ids = []
        known = self._known
        for word in _UNBLANK_RUN.findall(text):
            ids = known.get(word)
            if ids is None:
                ids = tuple(self._word_ids(word))
                if len(known) >= KNOWN_WORDS:
                    known = self._known = {}
                if len(word) <= LOOKUP_CHARACTERS:
                    known[word] = ids
            found += ids
        return found

    def _word_ids(self, word: str) -> Ids:
        seen = "".join(
            sign
            for sign in word
            if unicodedata.category(sign) not in _UNSEEN and sign != "\ufffd"
        )
        plain = unicodedata.normalize("NFD", _IDEOGRAPHS.sub(r" \1 ", seen))
        bare = "".join(
            sign for sign in plain if unicodedata.category(sign) != "Mn"
        ).lower()
        return [number for part in _parted(bare) for number in self._pieces(part)]

    def _pieces(self, part: str) -> Ids:
        """Return the longest pieces that `part` begins with, one after the other; one
        unknown for all of it where a piece is missing or it is longer than
        `LOOKUP_CHARACTERS`."""
        if len(part) > LOOKUP_CHARACTERS:
            return [self._unknown]
        found: Ids = []
        start = 0
        pieces = self._begins
        while start < len(part):
            for end in range(len(part), start, -1):
                number = pieces.get(part[start:end])
                if number is not None:
                    break
            else:
                return [self._unknown]
            found.append(number)
            start, pieces = end, self._goes_on
        return found


def _parted(word: str) -> list[str]:
    """Split at spaces and punctuation; each punctuation character is a word."""
    spaced = "".join(f" {sign} " if _is_punctuation(sign) else sign for sign in word)
    return spaced.split()


def _is_punctuation(sign: str) -> bool:
    """Whether a sign is a word of its own: Unicode's punctuation, and what else ASCII
    has beside letters and digits."""
    return unicodedata.category(sign).startswith("P") or (
        sign.isascii() and sign.isprintable() and not sign.isalnum()
    )


class _Library:
    """Any other tokeniser, read by the library `tokenizers`."""

    def __init__(self, tokenizer: Any, most: int | None) -> None:
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        # Set once: the library refuses a change while another thread encodes.
        if most is None:
            tokenizer.no_truncation()
        else:
            tokenizer.enable_truncation(most)
        self._special = most is not None
        self._tokenizer = tokenizer

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See `Tokenizer.encode`."""
        return [
            one.ids
            for one in self._tokenizer.encode_batch_fast(
                list(texts), add_special_tokens=self._special
            )
        ]

    def ids_of(self, *pieces: str) -> Ids:
        """See `Tokenizer.ids_of`."""
        return [self._tokenizer.token_to_id(piece) for piece in pieces]


def open_tokenizer(
    data: bytes, path: Path, *, most: int | None = None, hint: str
) -> Tokenizer:
    """Return the tokeniser of a `tokenizer.json`.

    It gives bare ids without `most`, else those that a model reads: with special
    tokens, together at most `most`.

    Raises:
        MissingExtra: It is neither BERT's uncased one nor XLM-R's, and the library is
            not installed.
        ModelError: The file at `path` is none; says `hint`.
    """
    try:
        card = json.loads(data)
        if _is_uncased(card):
            return WordPiece(card["model"]["vocab"], most)
        if _is_unigram(card):
            return _unigram(card, most)
        with importing("models", str(path)):
            library = importlib.import_module("tokenizers")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} is not a tokenizer: {error!r}", hint=hint) from error
    try:
        return _Library(library.Tokenizer.from_buffer(data), most)
    except (
        Exception
    ) as error:  # tokenizers raises bare Exception and no class of its own
        raise ModelError(f"{path} is not a tokenizer: {error}", hint=hint) from error


def _is_uncased(card: Mapping[str, Any]) -> bool:
    """Whether a `tokenizer.json` says what `WordPiece` does.

    Raises `KeyError`, `TypeError` or `AttributeError` for one of another structure.
    """
    model = {name: value for name, value in card["model"].items() if name != "vocab"}
    around = (card["post_processor"] or {}).get("single")
    return (
        model == _MODEL
        and around == _BERT_TEMPLATE
        and all(card[part] == _UNCASED[part] for part in _UNCASED)
    )


def _is_unigram(card: Mapping[str, Any]) -> bool:
    """Whether a `tokenizer.json` says what `Unigram` does."""
    model, before = card["model"], card["pre_tokenizer"] or {}
    steps = before.get("pretokenizers", ())
    around = (card["post_processor"] or {}).get("single", ())
    return (
        model.get("type") == "Unigram"
        and not model.get("byte_fallback")
        and (card["normalizer"] or {}).get("type") == "Precompiled"
        and [step.get("type") for step in steps] == ["WhitespaceSplit", "Metaspace"]
        and steps[1].get("replacement") == SPACE
        and steps[1].get("prepend_scheme", "always") == "always"
        and [*map(next, map(iter, around))]
        == ["SpecialToken", "Sequence", "SpecialToken"]
    )


def _unigram(card: Mapping[str, Any], most: int | None) -> Unigram:
    model = card["model"]
    first, _, last = card["post_processor"]["single"]
    opening = [side["SpecialToken"]["id"] for side in (first, last)]
    others = [
        one["content"] for one in card["added_tokens"] if one["content"] not in opening
    ]
    table = Charsmap(base64.b64decode(card["normalizer"]["precompiled_charsmap"]))
    return Unigram(
        model["vocab"],
        table,
        specials=[*opening, *others],
        unknown=model["unk_id"],
        most=most,
    )
