"""Turning text into index terms (what BM25, the None gate and the folder search count), and guessing its language.

Latin, Cyrillic and Greek words are lowercased, stripped of accents and stemmed by the Snowball stemmer of the language;
Chinese, Japanese and Korean text becomes character bigrams (and single characters where one stands alone). A language
is guessed by script, then by stop words and letters of its own: good enough to pick a stemmer and a filter for a few
words, where an empty answer is better than a wrong one; whole pages carry their own. Not for: sentence boundaries
(`pipeline/text/sentences.py`) or budgets (`pipeline/text/tokens.py`).
"""

import re
import threading
import unicodedata
from functools import lru_cache
from typing import Final

import Stemmer

from pipeline.text.lexicon import languages, words

_STEMMED_TEXT: Final = "ar da de el en es fi fr hu it nl no pt ro ru sv tr"
_STEMMED: Final = frozenset(_STEMMED_TEXT.split())
"""ISO 639-1 codes with a Snowball stemmer of their own; others are stemmed as English, which leaves most alone."""
_CJK_RANGES: Final = "々-〇぀-ヿ㐀-䶿一-鿿가-힯\U00020000-\U0002fa1f"
_CJK: Final = re.compile(f"[{_CJK_RANGES}]")
_TERM: Final = re.compile(rf"[{_CJK_RANGES}]+|[^\W_{_CJK_RANGES}]+(?:['’][^\W\d_]+)?")
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_HALF_WIDTH: Final = re.compile(r"[ｦ-ﾟ]")
_ELIDED: Final = words("elided")
_CJK_STOPS: Final = words("stop", "zh") | words("stop", "ja")
_KEPT_MARK: Final = "\u0306"
"""The breve: й without it is another letter, and the Russian stemmer then misses its endings."""
_SCRIPTS: Final = (
    ("ja", re.compile(r"[぀-ヿ]")),
    ("ko", re.compile(r"[가-힯ᄀ-ᇿ]")),
    ("zh", re.compile(r"[㐀-䶿一-鿿\U00020000-\U0002fa1f]")),
    ("el", re.compile(r"[Ͱ-Ͽ]")),
    ("he", re.compile(r"[֐-׿]")),
    ("ar", re.compile(r"[؀-ۿ]")),
    ("hi", re.compile(r"[ऀ-ॿ]")),
    ("th", re.compile(r"[฀-๿]")),
    ("uk", re.compile(r"[іїєґІЇЄҐ]")),
    ("ru", re.compile(r"[Ѐ-ӿ]")),
)
OTHER_SCRIPTS: Final = frozenset(code for code, _ in _SCRIPTS)
"""Languages, among those that are told apart, that are not written in Latin letters."""
_LETTER: Final = re.compile(r"[^\W\d_]")
_APOSTROPHE: Final = re.compile(r"\b(\w+)['’]")
_LATIN: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "tr")
"""Of languages with as many points the first is taken."""
LOOKED_AT: Final = 4_000
"""Characters of a request that are looked at; a longer one brings text along, whose words are not asked about."""
_SCRIPT_SHARE: Final = 0.2
"""A script needs this share of the letters: one Greek letter in an English formula is no Greek."""
TELLING_RUNS: Final = 10
"""Runs of three terms from which a text is told from others by its words; what is shorter ("Log in to see more") says
nothing about the page that it is of."""
REMEMBERED: Final = 300_000
"""Words that a memory of them holds before it starts afresh: about 40 MB at most."""
LONGEST_WORD: Final = 40
"""Letters of a word that has other forms, or parts."""


class _Memory(dict[str, str]):
    """Word to index term, the empty string for a stop word; filled as words come."""

    def __init__(self, language: str, *, keep_stop_words: bool) -> None:
        super().__init__()
        self._stems = Stemmer.Stemmer(language if language in _STEMMED else "en", 0)
        self._stops = frozenset() if keep_stop_words else words("stop", language) or words("stop", "en")
        self._lock = threading.Lock()

    def __missing__(self, word: str) -> str:
        plain = bare(word)
        term = "" if plain in self._stops else fold(plain)
        if term:
            with self._lock:  # one stemmer must not be entered twice
                term = self._stems.stemWord(term)
        if len(self) >= REMEMBERED:
            self.clear()
        self[word] = term
        return term


def bare(word: str) -> str:
    """Return a word without what hangs on it by an apostrophe: `dog's` as `dog`, `l'eau` as `eau`."""
    head, mark, tail = word.replace("’", "'").partition("'")
    return tail if mark and len(tail) > 2 and (len(head) <= 2 or head in _ELIDED) else head


@lru_cache(maxsize=64)
def _memory(language: str, keep_stop_words: bool) -> _Memory:
    return _Memory(language, keep_stop_words=keep_stop_words)


def fold(word: str) -> str:
    """Return a lowercase word without accents, in its plain width (`ü` as `u`, `ß` as `ss`, `２` as `2`); й stays."""
    if word.isascii():
        return word
    marks = (
        c
        for c in unicodedata.normalize("NFKD", word.replace("ß", "ss"))
        if c == _KEPT_MARK or not unicodedata.combining(c)
    )
    return unicodedata.normalize("NFC", "".join(marks))


def is_cjk(text: str) -> bool:
    """Whether `text` holds any Chinese, Japanese or Korean character."""
    return not text.isascii() and _CJK.search(text) is not None


def raw_words(text: str) -> list[str]:
    """Return the words of `text` as they stand, in order: no folding, no stemming, CJK runs whole."""
    return _TERM.findall(text)


def lower_runs(text: str) -> list[str]:
    """Return the words of `text` in lower case and the CJK runs whole, in order."""
    lowered = full_width(text).lower()
    if lowered.isascii():
        return _ASCII_WORD.findall(lowered)
    return (_TERM if _CJK.search(lowered) else _WORD).findall(lowered)


def full_width(text: str) -> str:
    """Return `text` with half-width katakana in their usual form; anything else as it is."""
    return unicodedata.normalize("NFKC", text) if not text.isascii() and _HALF_WIDTH.search(text) else text


def bigrams(run: str) -> list[str]:
    """Return the character pairs of a CJK run, or the run itself where it is one character."""
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 1 else [run]


def word_runs(text: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of three terms of `text`, by which two texts are told to be one in spite of small edits."""
    terms = index_terms(text, keep_stop_words=True)
    return frozenset(zip(terms, terms[1:], terms[2:], strict=False))


def index_terms(text: str, *, language: str = "en", keep_stop_words: bool = False) -> list[str]:
    """Return the index terms of `text` in order, repeats kept; query and texts must agree in the arguments.

    `language` (ISO 639-1) picks the stemmer, English where unknown; stop words such as "the" go unless they are kept.
    """
    memory = _memory(language if language in _STEMMED or language in languages() else "en", keep_stop_words)
    text = full_width(text)
    runs = lower_runs(text)
    if not is_cjk(text):
        return list(filter(None, map(memory.__getitem__, runs)))
    stops = frozenset() if keep_stop_words else _CJK_STOPS
    terms: list[str] = []
    for run in runs:
        if _CJK.match(run):
            terms.extend(pair for pair in bigrams(run) if pair not in stops)
        elif term := memory[run]:
            terms.append(term)
    return terms


def guess_language(text: str) -> str:
    """Return an ISO 639-1 code for the language of `text`, or the empty string where nothing tells."""
    text = text[:LOOKED_AT]
    letters = len(_LETTER.findall(text))
    if not letters:
        return ""
    for code, script in _SCRIPTS:
        found = len(script.findall(text))
        # Kana among many Han characters are enough for Japanese, and Ukrainian letters are rare among the Cyrillic ones
        if found >= (1 if code == "uk" else 0.05 * letters if code == "ja" else _SCRIPT_SHARE * letters) and found:
            return code
    # A capital inside a sentence is a name, and "Go" no Polish pronoun
    small = [word.lower() for i, word in enumerate(raw_words(text)) if i == 0 or word.islower()]
    lowered = text.lower()
    signs, elided = frozenset(lowered), frozenset(_APOSTROPHE.findall(lowered))
    points = {}
    for code in _LATIN:
        # A letter or an elision (`l'`) of its own counts as one and a half words
        own = not (signs.isdisjoint(words("letters", code)) and elided.isdisjoint(words("elided", code)))
        points[code] = sum(map(words("stop", code).__contains__, small)) + 1.5 * own
    best = max(points, key=lambda code: points[code])
    return best if points[best] > 0 else ""
