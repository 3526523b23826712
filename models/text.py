"""What backends do to texts before a model sees them (cut, clean, instruct, tokenise),
and to a reply in JSON.

BERT's uncased WordPiece, used by the built-in embedder and reader, is implemented here,
because the library `tokenizers` and its dependencies take 28 MB, a tenth of the
installation. XLM-R's is in `unigram.py`. The library reads all other tokenisers (extra
`models`). A page's own `[SEP]` is text here. Source: Devlin et al. 2018, §3.2; Wu et
al. 2016, §4.1. Not for: cleaning pages, generators' prompts, or counting tokens
(`pipeline/text/tokens.py`).
"""

import base64
import importlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from errors import ModelError, said
from extra import importing
from models.unigram import SPACE, Charsmap, Unigram

LATIN_SHARE: Final = 0.6
"""Least share of Latin letters in a text that an English model is asked about."""
MANY_SCRIPTS: Final = 100_000
"""A vocabulary of this size marks a multilingual model (English BERT has 30 522
entries, XLM-RoBERTa 250 002)."""
CHARACTERS_A_TOKEN: Final = 64
"""A text is cut to this many characters for each token that fits, before it is
tokenised: a page of 30 MB costs no more than a paragraph. Only text whose tokens are
longer than this on average (base64) loses tokens that had fitted."""
TEXTS_AT_ONCE: Final = 256
"""Texts that go to a tokeniser or a process at once; between two lots a cancelled call
ends."""
TEXTS_A_REQUEST: Final = TEXTS_AT_ONCE // 8
"""Texts of one request to a server or one call into torch: TEI refuses more than 32 by
default."""

TASK: Final = (
    "Given a web search query, retrieve relevant passages that answer the query"
)
"""The task that instruction-following embedders name in their own examples for
search."""
SEARCHING: Final = "Represent this sentence for searching relevant passages: "

_LETTER: Final = re.compile(r"[^\W\d_]")
_LATIN_LETTER: Final = re.compile(
    "[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d25\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff"
    "\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a]"
)


def reads_latin(text: str) -> bool:
    """Return whether six in ten letters of the text's beginning are Latin; True where
    there are no letters."""
    sample = text[:4_000]  # enough to detect a page's script, and cheap for long ones
    if sample.isascii():
        return True
    letters = len(_LETTER.findall(sample))
    return letters == 0 or len(_LATIN_LETTER.findall(sample)) / letters >= LATIN_SHARE


def printable(text: str) -> str:
    """Return `text` as UTF-8 can carry it: a lone surrogate, left by a page's broken
    escape, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Instructions:
    """The words that an embedding model was trained to see before each kind of text."""

    query: str = ""
    passage: str = ""

    def prepend(self, text: str, *, kind: str) -> str:
        """Return `text` with the words of its kind in front."""
        return (self.query if kind == "query" else self.passage) + text


INSTRUCTIONS_BY_NAME: Final = (
    # The first match wins: special cases come before their family.
    (r"nomic[-_ ]?embed", Instructions("search_query: ", "search_document: ")),
    (
        r"embedding[-_ ]?gemma",
        Instructions("task: search result | query: ", "title: none | text: "),
    ),
    (r"qwen3[-_ .].*embed", Instructions(f"Instruct: {TASK}\nQuery:")),
    (r"gte[-_ ]?qwen2", Instructions(f"Instruct: {TASK}\nQuery: ")),
    (
        r"\be5[-_ ].*instruct|e5[-_ ]?mistral",
        Instructions(f"Instruct: {TASK}\nQuery: "),
    ),
    (
        r"\be5[-_ ](?:small|base|large)|multilingual[-_ ]e5",
        Instructions("query: ", "passage: "),
    ),
    (r"bge[-_ ]?m3", Instructions()),
    (
        r"bge[-_ ](?:small|base|large)[-_ ]zh",
        Instructions("为这个句子生成表示以用于检索相关文章："),
    ),
    (r"bge[-_ ](?:small|base|large)", Instructions(SEARCHING)),
    (r"arctic[-_ ]embed[-_ ].*v2", Instructions("query: ")),
    (r"arctic[-_ ]embed|mxbai[-_ ]embed", Instructions(SEARCHING)),
)
"""Pattern on a model's lower-case name, and its words, as the models' own pages have
them."""


def instructions_for(*names: str) -> Instructions:
    """Return the words of the first of a model's names that the table knows; none where
    it knows none."""
    for name in names:
        for pattern, words in INSTRUCTIONS_BY_NAME:
            if re.search(pattern, name.lower()):
                return words
    return Instructions()


_THINKING_START: Final = re.compile(
    r"\s*(?:<\|channel\|>analysis<\|message\|>|<(?:think|thinking|thought|reasoning|seed:think)>|"
    r"\[THINK\])",
    re.IGNORECASE,
)
"""How thoughts begin: Qwen, DeepSeek and SmolLM3; Seed; gpt-oss in its raw form;
Magistral."""
_THINKING_END: Final = re.compile(
    r"(?:<\|end\|>\s*)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>|"
    r"</(?:think|thinking|thought|reasoning|seed:think)>|\[/THINK\]",
    re.IGNORECASE,
)

_ALONE: Final = re.compile(
    r"^\s*</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE
)


def without_thoughts(text: str) -> tuple[str, str]:
    """Return the answer in `text` and the thoughts before it, each "" where there is
    none.

    Some chat templates open the thoughts in the prompt, so that only their end is in
    the text: it then counts on a line of its own, for an answer may quote it. Thoughts
    that are opened and never closed leave no answer."""
    opened = _THINKING_START.match(text)
    closed = _THINKING_END.search(text, opened.end()) if opened else _ALONE.search(text)
    if closed:
        thoughts = text[opened.end() if opened else 0 : closed.start()]
        return text[closed.end() :].lstrip(), thoughts.strip()
    return ("", text[opened.end() :].strip()) if opened else (text, "")


def checked_json(text: str, schema: dict[str, object], *, model: str, cut: bool) -> str:
    """Return `text` without blanks around it, once it is JSON and valid under `schema`;
    else raise `ModelError`.

    `cut` says that the answer ended because its tokens ran out, which is then named as
    the likely cause."""
    # A server without a generator never gets here, and starts 0.07 s sooner.
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415  published without types; see above

    cause = (
        "the answer was cut at max_tokens"
        if cut
        else "the model did not keep to the schema"
    )
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{model} did not return JSON ({cause}): {said(text.strip())}",
            hint="Try again, or allow more tokens.",
        ) from error
    except jsonschema.ValidationError as error:
        path = "/".join(str(part) for part in error.absolute_path) or "the answer"
        raise ModelError(
            f"{model} returned JSON that is invalid at {path}: {said(error.message)}; "
            f"it wrote "
            f"{said(text.strip())}",
            hint="Try again, or set a larger model.",
        ) from error
    return text.strip()


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
