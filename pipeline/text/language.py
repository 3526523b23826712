"""Guessing the language of a short text: by script, then by stop words and letters of its own.

Good enough to pick a stemmer and a provider's language filter for a question of a few words; an empty answer is better
than a wrong one. Not for: whole pages, which carry their own language (`pipeline/html`).
"""

import re
from functools import cache
from typing import Final

from pipeline.text.lexicon import any_of, words
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
OTHER_SCRIPTS: Final = frozenset(code for code, _ in _SCRIPTS)
"""Languages, among those that are told apart, that are not written in Latin letters."""
_LETTER: Final = re.compile(r"[^\W\d_]")
_LATIN: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "tr")
"""Of languages with as many points the first is taken."""
LOOKED_AT: Final = 4_000
"""Characters of a request that are looked at; a longer one brings text along, whose words are not asked about."""
_SCRIPT_SHARE: Final = 0.2
"""A script needs this share of the letters: one Greek letter in an English formula is no Greek."""


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
    points = {}
    for code in _LATIN:
        stops = words("stop", code)
        # A letter or an elision (`l'`) of its own counts as one and a half words
        points[code] = sum(word in stops for word in small) + 1.5 * bool(_own_form(code).search(lowered))
    best = max(points, key=lambda code: points[code])
    return best if points[best] > 0 else ""


@cache
def _own_form(language: str) -> re.Pattern[str]:
    letters, elided = any_of(words("letters", language)), any_of(words("elided", language))
    return re.compile(rf"{letters}|\b(?:{elided})['’]")
