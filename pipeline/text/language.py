"""Guessing the language of a short text: by script, then by stop words.

Good enough to pick a stemmer and a provider's language filter for a question of a few words; an empty answer is better
than a wrong one. Not for: whole pages, which carry their own language (`pipeline/html`).
"""

import re
from typing import Final

from pipeline.text.stop_words import STOP_WORDS
from pipeline.text.words import raw_words

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
_LETTER: Final = re.compile(r"[^\W\d_]")
_TELLING: Final = {
    "de": re.compile(r"[ßäöü]"),
    "es": re.compile(r"[ñ¿¡]"),
    "pt": re.compile(r"[ãõ]"),
    "fr": re.compile(r"[çœèêëîû]|\b(?:qu|l|d|j|n|c|s)['’]"),
    "pl": re.compile(r"[łąęśżźćń]"),
    "sv": re.compile(r"å"),
}
_LATIN: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "tr")
_LONGEST: Final = 4_000
_CJK_SHARE: Final = 0.2
"""A script needs this share of the letters: one Greek letter in an English formula is no Greek."""


def guess_language(text: str) -> str:
    """Return an ISO 639-1 code for the language of `text`, or the empty string where nothing tells."""
    text = text[:_LONGEST]
    letters = len(_LETTER.findall(text))
    if not letters:
        return ""
    for code, script in _SCRIPTS:
        found = len(script.findall(text))
        # Kana among many Han characters are enough for Japanese, and Ukrainian letters are rare among the Cyrillic ones
        if found >= (1 if code == "uk" else 0.05 * letters if code == "ja" else _CJK_SHARE * letters) and found:
            return code
    # A capital inside a sentence is a name, and "Go" no Polish pronoun
    words = [word.lower() for i, word in enumerate(raw_words(text)) if i == 0 or word.islower()]
    points = {code: float(sum(word in stops for word in words)) for code, stops in STOP_WORDS.items() if code in _LATIN}
    lowered = text.lower()
    for code, telling in _TELLING.items():
        points[code] = points.get(code, 0.0) + 1.5 * bool(telling.search(lowered))
    best = max(points, key=lambda code: (points[code], code == "en"))
    return best if points[best] > 0 else ""
