"""Turning text into index terms: what BM25, the None gate and the folder search count.

Latin, Cyrillic and Greek words are lowercased, stripped of accents and stemmed by the Snowball stemmer of the language;
Chinese, Japanese and Korean text becomes character bigrams (and single characters where one stands alone). Not for:
sentence boundaries (`pipeline/extract`) or budgets (`pipeline/tokens.py`).
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

import Stemmer

_SNOWBALL: Final = {
    "da": "danish",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
}
_TERM: Final = re.compile(
    r"[぀-ヿ㐀-䶿一-鿿가-힯\U00020000-\U0002fa1f]+"
    r"|[^\W_぀-ヿ㐀-䶿一-鿿가-힯]+(?:['’][^\W\d_]+)?"
)
_CJK: Final = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯\U00020000-\U0002fa1f]")
_STOP: Final = {
    "en": "a an and any are as at be been but by can could did do does for from had has have he her his how i if in "
    "into is it its just many may me more most much my no not of on or our out she should so some such than that the "
    "their them then there these they this those to us was we were what when where which while who whom whose why "
    "will with would you your",
    "de": "aber als am an auch auf aus bei bis da das dass dem den der des die doch du durch ein eine einem einen "
    "einer eines er es für hat hatte ich ihr im in ist kann man mit nach nicht noch oder sein sich sie sind so über um "
    "und uns von vor war waren was wann wer werden wie wir wird wo zu zum zur",
    "fr": "a au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur lui mais ne nous on ou où "
    "par pas pour qu que qui quel quelle se ses son sont sur un une vous",
    "es": "a al como con cual cuando de del donde el ella en es esta este fue la las lo los más no o para pero por que "
    "qué quien se ser sin sobre su sus un una y",
    "ru": "а без более бы был была были было в вы для до его ее если есть и из или их к как когда которые который кто "
    "ли на не но о об он она они от по при с со так также то у что это",
}
_STOPS: Final = {code: frozenset(words.split()) for code, words in _STOP.items()}


def _fold(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


@lru_cache(maxsize=32)
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(_SNOWBALL.get(language, "english"))


def is_cjk(text: str) -> bool:
    """Whether `text` holds any Chinese, Japanese or Korean character."""
    return _CJK.search(text) is not None


def raw_words(text: str) -> list[str]:
    """Return the words of `text` as they stand, in order: no folding, no stemming, CJK runs whole."""
    return _TERM.findall(text)


def index_terms(text: str, *, language: str = "en", keep_stop_words: bool = False) -> list[str]:
    """Return the index terms of `text` in order, repeats kept.

    Args:
        text: Any text.
        language: ISO 639-1 code that picks the stemmer; English where unknown. Query and texts must agree.
        keep_stop_words: Keep words such as "the"; for texts that are nothing else.
    """
    stops = _STOPS.get(language, _STOPS["en"])
    terms: list[str] = []
    words: list[str] = []
    for run in _TERM.findall(text.lower()):
        if _CJK.match(run):
            terms.extend(run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else terms.append(run)
            continue
        word = run.split("'", 1)[0].split("’", 1)[0]
        if word and (keep_stop_words or word not in stops):
            words.append(_fold(word))
    return terms + _stemmer(language).stemWords(words)
