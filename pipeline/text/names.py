"""Finding the names and unknown words of a request, so that nothing takes them apart (zero-index §3.1).

By form only: quotation marks, capitals inside a sentence, mixed case, digits inside words, katakana runs, Latin words
in CJK text, letter pairs that English does not have. No dictionary, no model. Not for: typing entities or linking
them.
"""

import re
from typing import Final

from pipeline.text.lexicon import words
from pipeline.text.words import LOOKED_AT, is_cjk

MAX_ENTITIES: Final = 12
FIGURE: Final = re.compile(r"\d[\d.,:/-]*\d|\d")
"""A number as it is written, with the marks inside."""
_QUOTED: Final = re.compile(
    r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|«\s?([^»\n]{2,80}?)\s?»|「([^」\n]{1,40})」|"
    r"『([^』\n]{1,40})』|"
    r"《([^》\n]{1,40})》|(?<!\w)'([^'\n]{2,60})'(?!\w)|(?<!\w)‘([^’\n]{2,60})’(?!\w)|`([^`\n]{2,80})`"
)
_TOKEN: Final = re.compile(r"[^\W_][\w.+#&/@:'’-]*[\w+#]|[^\W_]")
_KATAKANA: Final = re.compile(r"[ァ-ヴー]{2,}(?:[・･][ァ-ヴー]+)*")
_LATIN: Final = r"[A-Za-z0-9À-ɏ.+#&/'_-]*"
_LATIN_IN_CJK: Final = re.compile(rf"[A-Za-zÀ-ɏ]{_LATIN}(?:[ ][A-Za-z0-9À-ɏ]{_LATIN})*|\d+[A-Za-z]{_LATIN}")
_SENTENCE_END: Final = re.compile(r"[.!?:;…。！？]['\")\]]?\s*$")
_JOINING: Final = words("names.joining")
_ROLES: Final = words("names.roles")
_COMMON: Final = words("names.never")
_PAIRS_NO_WORD_HAS: Final = re.compile(
    r"(?:[bcdfghjklmnpqrstvwxz]{6,}|q(?![uaei'])|[jqvwxz]{2,}|[bcdfghjklmnpqrstvwxz]x(?=[a-z])|v[bcdfghjkmnpqstwxz]|"
    r"j[bcdfghklmnpqrstvwxz]|z[bcdfgjkmnpqrstvx](?=[a-z]))"
)
_CAPITAL_NOUNS: Final = frozenset({"de"})
"""Languages that write every noun with a capital: there one capital word alone is no sign of a name."""


def find_entities(text: str, *, language: str) -> tuple[str, ...]:
    """Return names and unknown words of a request (its language ISO 639-1 or empty), verbatim, in order, few."""
    text = text[:LOOKED_AT]
    found: list[tuple[int, str]] = []
    covered: list[tuple[int, int]] = []
    for match in _QUOTED.finditer(text):
        quoted = next(group for group in match.groups() if group)
        found.append((match.start(), quoted.strip()))
        covered.append(match.span())
    if is_cjk(text):
        found += [(m.start(), m[0]) for m in _KATAKANA.finditer(text) if not _inside(m.start(), covered)]
        found += [
            (m.start(), m[0].rstrip(" .,'-/")) for m in _LATIN_IN_CJK.finditer(text) if not _inside(m.start(), covered)
        ]
    else:
        found += _named_runs(text, covered, language)
    entities = dict.fromkeys(name for _, name in sorted(found) if len(name) > 1)
    whole = [name for name in entities if not any(name != other and f" {name} " in f" {other} " for other in entities)]
    return tuple(whole[:MAX_ENTITIES])


def _inside(position: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)


def _named_runs(text: str, covered: list[tuple[int, int]], language: str) -> list[tuple[int, str]]:
    """Runs of name-like tokens, joined over small words between two capitals ("Lord of the Rings")."""
    tokens = [(m.start(), m.end(), m[0]) for m in _TOKEN.finditer(text)]
    runs: list[tuple[int, str]] = []
    i = 0
    while i < len(tokens):
        start, end, word = tokens[i]
        if _inside(start, covered) or not _starts_name(text, start, word, language):
            i += 1
            continue
        last = i
        ahead = i + 1
        while (
            ahead < len(tokens)
            and not tokens[ahead - 1][2].endswith(("'s", "’s"))
            and text[tokens[ahead - 1][1] : tokens[ahead][0]] in (" ", ": ", " & ")
        ):
            following = tokens[ahead][2]
            if following in _ROLES:
                break
            if following[0].isupper() or _odd(following) or (following.isdigit() and ahead == last + 1):
                last = ahead
            elif following.lower() not in _JOINING or ahead - last > 2:
                break
            ahead += 1
        end = tokens[last][1]
        name = re.sub(r"['’]s?$", "", text[start:end])
        alone = last == i and word[0].isupper() and not _odd(word)
        if not (alone and language in _CAPITAL_NOUNS):
            runs.append((start, name))
        i = last + 1
    return runs


def _starts_name(text: str, start: int, word: str, language: str) -> bool:
    bare = re.sub(r"['’]s?$", "", word)
    if bare in _ROLES:
        return False
    if _odd(bare):
        return True
    if not bare[0].isupper() or bare.lower() in _COMMON:
        return False
    first = start == 0 or bool(_SENTENCE_END.search(text[max(0, start - 6) : start])) or text[start - 1] == "\n"
    return not (first and bare.lower() in (words("stop", language) or words("stop", "en")))


def _odd(word: str) -> bool:
    """Whether the form alone says "keep whole": digits among letters, capitals inside, symbols, no word's letters."""
    if len(word) < 2:
        return False
    letters = sum(c.isalpha() for c in word)
    digits = sum(c.isdigit() for c in word)
    if (
        letters
        and digits
        and not re.fullmatch(r"\d+(?:st|nd|rd|th|s|e|er|º|ª|km|m|cm|kg|g|h|min|%)", word, re.IGNORECASE)
    ):
        return True
    if letters >= 2 and any(c.isupper() for c in word[1:]):
        return True
    if re.search(r"\w[.+#@/]\w|[+#]$", word) and letters:
        return True
    return word.isascii() and word.islower() and len(word) >= 4 and bool(_PAIRS_NO_WORD_HAS.search(word))
