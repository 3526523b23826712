"""Numbers, dates and proper names of a statement, and which of them no source has.

Numbers are compared by value: 1,000 is 1000, and 5.0 is 5; where digits can be read in
two ways, either counts. Dates are compared by the day, month and year that they name,
names by their words in one case or by their stems. Not for: what a statement says of
them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.text.months import month_named
from pipeline.text.words import find_entities, index_terms, is_cjk, raw_words

_DIGITS: Final = re.compile(
    r"(?<![\w.,])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)|(?<![^\W_])\d+(?:[.,:]\d+)*"
)
_UNIT: Final = re.compile(r"[ \u00a0]?(?:[^\W\d_]+|[%‰°€$£¥]\w?)")
_DATE_IN_DIGITS: Final = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_WRITTEN_DATE: Final = re.compile(
    r"(?:(?<!\d)(?P<before>[0-3]?\d)(?:st|nd|rd|th|er|\.|º)?\s+(?:of\s+|de\s+)?)?"
    r"(?P<month>[^\W\d_]{3,12})\b\.?"
    r"(?:\s+(?P<after>[0-3]?\d)(?:st|nd|rd|th)?(?![\d.:,]\d))?"
    r"(?:,?\s+(?:de\s+|of\s+)?(?P<year>\d{4})(?!\d))?"
)
Date = tuple[int, int, int]
"""Year, month and day; 0 for one that is not written."""


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """What the texts of sources have."""

    numbers: frozenset[str] = frozenset()
    dates: frozenset[Date] = frozenset()
    names: frozenset[str] = frozenset()
    """Words in one case, and their stems."""
    unspaced: str = ""
    """Texts in scripts without spaces, in which names are looked for as they are."""


def source_details(texts: Sequence[str], language: str) -> SourceDetails:
    """Return the numbers, dates and words of `texts`; stems are of `language` (ISO
    639-1)."""
    joined = "\n".join(texts)
    written_words = {word.casefold() for word in raw_words(joined)}
    return SourceDetails(
        frozenset().union(*(_values(digits) for digits in _DIGITS.findall(joined))),
        frozenset(date for _, date in _dates(joined)),
        frozenset(written_words.union(index_terms(joined, language=language))),
        joined.casefold() if is_cjk(joined) else "",
    )


def missing_details(
    statement: str, language: str, sources: SourceDetails
) -> tuple[str, ...]:
    """Return the numbers with their units, the dates and the names of a statement that
    `sources` lack, as it writes them."""
    missing: list[str] = []
    undated = statement
    for (start, stop), date in _dates(statement):
        undated = undated[:start] + "|" * (stop - start) + undated[stop:]
        if not _has_date(sources, date):
            missing.append(statement[start:stop])
    missing += [
        digits[0] + _unit(statement, digits.end(), language)
        for digits in _DIGITS.finditer(undated)
        if sources.numbers.isdisjoint(_values(digits[0]))
    ]
    for name in _names(undated, language):
        absent = [
            word
            for word in raw_words(name)
            if (word != word.lower() or is_cjk(word))
            and not _has_name(sources, word, language)
        ]
        missing += [" ".join(absent)] if absent else []
    return tuple(dict.fromkeys(missing))


def _names(statement: str, language: str) -> list[str]:
    """Return the names of a statement, and its further words that begin with a capital;
    German nouns all do."""
    names = list(find_entities(statement, language=language))
    named_words = {word for name in names for word in raw_words(name)}
    capitals = (word for word in raw_words(statement)[1:] if word[:1].isupper())
    if language != "de":
        names += [word for word in capitals if word not in named_words]
    return names


def _unit(statement: str, offset: int, language: str) -> str:
    """Return the word or sign after a number, empty for a stop word."""
    unit = _UNIT.match(statement, offset)
    if unit is None:
        return ""
    is_word = unit[0].strip().isalpha()
    return unit[0] if not is_word or index_terms(unit[0], language=language) else ""


def _values(digits: str) -> set[str]:
    """Return what digits may be worth: `1.000` is 1000 or 1, `1,5` is 1.5."""
    joined = "".join(digits.split())
    ungrouped = re.sub(r"[.,](?=\d{3}(?!\d))", "", joined)
    values = set()
    for reading in (joined, ungrouped, *digits.split()):
        value = reading.replace(",", ".").lstrip("0")
        if value.count(".") == 1:
            value = value.rstrip("0").rstrip(".")
        values.add(value)
    return values


def _dates(text: str) -> Iterator[tuple[tuple[int, int], Date]]:
    """Yield the span of each date, and what it names: a month with a day or a year."""
    for iso in _DATE_IN_DIGITS.finditer(text):
        yield iso.span(), (int(iso[1]), int(iso[2]), int(iso[3]))
    for date in _WRITTEN_DATE.finditer(text):
        day, year = date["before"] or date["after"], date["year"]
        if (day or year) and (month := month_named(date["month"])):
            yield date.span(), (int(year or 0), month, int(day or 0))


def _has_date(sources: SourceDetails, date: Date) -> bool:
    """Whether sources have a date, its year perhaps elsewhere."""
    year, month, day = date
    return any(
        month == source_month
        and day in (0, source_day)
        and (
            year in (0, source_year)
            or (not source_year and str(year) in sources.numbers)
        )
        for source_year, source_month, source_day in sources.dates
    )


def _has_name(sources: SourceDetails, word: str, language: str) -> bool:
    folded = word.casefold()
    return (
        folded in sources.names
        or not sources.names.isdisjoint(index_terms(word, language=language))
        or (is_cjk(word) and folded in sources.unspaced)
    )
