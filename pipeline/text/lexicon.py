"""The words of languages that rules need, read from one text file a language: `pipeline/text/words/LANG.txt`.

A file is named by its ISO 639-1 code and has sections:

    # a comment
    [stop]
    a, about, after
    the, their
    [freshness.day]
    today, right now

Entries stand between commas or ends of lines and may be phrases; all are lower case where the text that they are looked
for in is lowered. What an entry says of another word stands behind a colon (`lightest: weight mass`), for its user
to part. Every section is optional: a rule that asks for one that a file lacks finds no words there.

To add a language, write its file; nothing is registered. `[stop]` (function words only, never a noun) already gives it
index terms, recognition by `guess_language` and names at the beginning of sentences; then `[abbreviations]` (before a
period that ends no sentence) and `[freshness.*]` help most. `en.txt` shows nearly all sections. Abbreviations,
sentence starters, freshness and question words of all languages are used together, because texts mix languages and are
too short to tell which: keep out of them what is a common word elsewhere. To add a section, name it by its user
(`verdict.asking`), write it into the files, and ask for it here.

Not for: patterns of characters, which are code, or the terms that an index counts (`pipeline/text/words.py`).
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("words")
_UNPARTED: Final = re.compile("[\u3040-\ud7ff]")
"""Scripts that write words without blanks between them, or with endings that hang on them."""


def words(section: str, language: str = "") -> frozenset[str]:
    """Return the entries of `section` for a language (ISO 639-1), or for all; empty where there are none."""
    if not language:
        return frozenset().union(*(words(section, code) for code in languages()))
    return _sections(language).get(section, frozenset()) if language in languages() else frozenset()


@cache
def languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a file, in order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.txt")))


def any_of(entries: Iterable[str]) -> str:
    """Return a regular expression for any of `entries`, the longest first; one that never matches for none.

    A phrase's blanks match any white space.
    """
    ordered = sorted(entries, key=lambda entry: (-len(entry), entry))
    return "|".join(re.escape(entry).replace(r"\ ", r"\s+") for entry in ordered) or r"(?!)"


def whole_words(entries: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of `entries` as whole words; Chinese, Japanese and Korean ones anywhere."""
    entries = frozenset(entries)
    unparted = frozenset(filter(_UNPARTED.match, entries))
    return re.compile(rf"(?<!\w)(?:{any_of(entries - unparted)})(?!\w)|{any_of(unparted)}")


@cache
def _sections(language: str) -> dict[str, frozenset[str]]:
    sections: dict[str, set[str]] = {}
    entries: set[str] = set()
    for line in (_FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            entries = sections.setdefault(line.strip("[] "), set())
        elif not line.startswith("#"):
            entries.update(entry.strip() for entry in line.split(",") if entry.strip())
    return {name: frozenset(entries) for name, entries in sections.items()}
