"""Months in questions and cells, in the forms that people and programs write: `March
2026`, `mars 2026`, `2026-03`.

Their names are words of languages (`[months]` in `pipeline/text/words/`). Not for:
numbers with units (`cells.py`), or which rows are meant (`extras/tables/asked.py`)."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

from pipeline.text.words import any_of, languages, meanings, words

_YEAR: Final = r"(?:1[5-9]|20)\d\d"
_ISO: Final = re.compile(
    rf"(?<![\w-])(?P<year>{_YEAR})-(?P<month>0[1-9]|1[0-2])(?P<day>-[0-3]\d)?(?![\w-])"
)
COUNTED: Final = re.compile(
    rf"(?:(?<!\d)(?P<year>{_YEAR})\s*(?:{any_of(words('dates.year'))})\s*)?"
    rf"(?<!\d)(?P<month>1[0-2]|0?[1-9])\s*(?:{any_of(words('dates.month'))})"
    rf"(?:\s*(?P<day>[0-3]?\d)\s*(?:{any_of(words('dates.day'))}))?"
)
"""As Chinese, Japanese and Korean write them: 2026年3月."""
_CODED: Final = re.compile(r"\bmonth(?P<year>\d{4})(?P<month>\d\d)(?P<day>)\b")
"""As `coded` writes them."""
_DATE_CHARACTERS: Final = 24
"""Characters of a cell that is a date (`17. September 2026`)."""


class Month(NamedTuple):
    """A month of a year; 0 where the year is not said."""

    year: int
    month: int


class AskedMonth(NamedTuple):
    """A month that a text names, with where."""

    month: Month
    start: int
    end: int


def months_in(text: str, spoken: frozenset[str]) -> list[AskedMonth]:
    """Return the months that a text names in the languages `spoken`, those of whole
    dates aside.

    Words that are also other words (`may`, `march`, Spanish `mar`) count in the form
    that the language gives a name, or beside a year. A month without a year has year 0.
    """
    found = [
        AskedMonth(
            Month(int(one["year"] or 0), _numbers(spoken)[one["name"].lower()]),
            one.start("name"),
            one.end(),
        )
        for one in _named(spoken).finditer(text)
        if not one["day"]
        and not one["after"]
        and (one["year"] or _is_name(one["name"], text, spoken))
    ]
    digits = (
        one
        for form in (_ISO, COUNTED, _CODED)
        for one in form.finditer(text)
        if not one["day"]
    )
    return found + [
        AskedMonth(Month(int(one["year"] or 0), int(one["month"])), *one.span())
        for one in digits
    ]


def coded(text: str, spoken: frozenset[str]) -> str:
    """Return a text with the months that it names as words that no list of words
    changes, and `months_in` reads."""
    for one in sorted(months_in(text, spoken), key=lambda one: -one.start):
        text = f"{text[: one.start]} month{one.month.year:04}{one.month.month:02} {text[one.end :]}"
    return text


@lru_cache(maxsize=20_000)
def month_of(cell: str) -> Month | None:
    """Return the month of a cell that is a date with month and year, with a day or not;
    None for other cells."""
    text = cell.strip()
    if len(text) > _DATE_CHARACTERS:
        return None
    if digits := _ISO.fullmatch(text) or COUNTED.fullmatch(text):
        return (
            Month(int(digits["year"]), int(digits["month"])) if digits["year"] else None
        )
    everywhere = frozenset(languages())
    named = _named(everywhere).fullmatch(text)
    if not named or not named["year"]:
        return None
    return Month(int(named["year"]), _numbers(everywhere)[named["name"].lower()])


def month_named(text: str) -> int:
    """Return the number of the first month that a date names in any language, 0 for
    none."""
    everywhere = frozenset(languages())
    found = _named(everywhere).search(text)
    return _numbers(everywhere)[found["name"].lower()] if found else 0


def _is_name(written: str, text: str, spoken: frozenset[str]) -> bool:
    """Whether a word of a text that is a month's name, without a year, is that name and
    no other word."""
    known = {name for name, _ in _entries(spoken)}
    if written != written.lower():
        return written in known or written == written.capitalize()
    # Where a language writes months small, a short form may be another word: `mar`, `set`, `out`.
    if written in known:
        return not any(name != written and name.startswith(written) for name in known)
    return text == text.lower() and not any(
        written in words("stop", language) for language in spoken
    )


def _entries(spoken: frozenset[str]) -> Iterator[tuple[str, str]]:
    for language in sorted(spoken):
        yield from meanings("months", language).items()


@cache
def _numbers(spoken: frozenset[str]) -> dict[str, int]:
    return {name.lower(): int(number) for name, number in _entries(spoken)}


@cache
def _named(spoken: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of a month's name (group `name`) in the languages `spoken`, where
    given with a day before or after it (`day`, `after`) and a `year`.

    Without languages it matches nothing."""
    of = any_of(
        {word for language in spoken for word in words("months.year", language)}
    )
    return re.compile(
        rf"(?<![\w'’])(?P<day>[0-3]?\d(?:\.|[^\W\d]{{1,2}}\.?)?\s+(?:(?:{of})\s+)?)?"
        rf"(?P<name>{any_of(_numbers(spoken))})\b\.?"
        rf"(?P<after>\s+[0-3]?\d(?:[^\W\d]{{2}})?\b(?!\d))?(?:,?\s+(?:(?:{of})\s+)?(?P<year>{_YEAR})(?!\w))?",
        re.IGNORECASE,
    )
