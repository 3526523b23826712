"""Literals, words with exact spelling: options, versions, file names, functions.

`--merge`, `^1.2.3`, `scram-sha-256`, `pg_hba.conf`, `.requiredOption`. Stems and
vectors see `^1.2.3` and `~1.2.3` as one word, so such words are compared letter by
letter. Not for: names of persons and places (`words.find_entities`)."""

import re
from typing import Final

_NONBLANK: Final = re.compile(r"\S+")
_PUNCTUATION_AROUND: Final = "\"'`«»“”‘’()[]{}<>,;:?!¿¡。、？！"
"""Punctuation around a word that is not part of it."""
_LEADING: Final = re.compile(r"[-^~@#$./\\+*%&]+\w")
_INNER: Final = re.compile(r"\w(?:[_@#\\]|::)\w|[^\W\d][-.]\w*\d|\w{2}\.\w{2}")
_DECIMAL: Final = re.compile(r"[\d.,/%$€£-]+")


def literals(text: str) -> tuple[str, ...]:
    """Return the words of `text` that count letter by letter, in order, each once."""
    called = (
        match[0].lstrip(_PUNCTUATION_AROUND).partition("(")[0]
        for match in _NONBLANK.finditer(text)
    )
    tokens = (token.rstrip(f"{_PUNCTUATION_AROUND}.") for token in called)
    return tuple(dict.fromkeys(filter(is_literal, tokens)))


def is_literal(token: str) -> bool:
    """Whether a word's form says that it is code: a sign in front of it, or inside it
    beside digits or letters. An address or a plain number is none."""
    if len(token) < 2 or "://" in token or not any(map(str.isalnum, token)):
        return False
    if _DECIMAL.fullmatch(token) and not token.startswith("--"):
        return False
    return bool(_LEADING.match(token) or _INNER.search(token))


def begins_with(text: str, literal: str) -> bool:
    """Whether `text` begins with a literal that ends there: `--merge: …` with
    `--merge`, not with `--mer`."""
    if not text.casefold().startswith(literal.casefold()):
        return False
    remainder = text[len(literal) :]
    return not remainder or not (remainder[0].isalnum() or remainder[0] in "-_.")
