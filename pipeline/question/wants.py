"""What a request wants besides an answer to its words: a period, published research,
the pages of a site.

All by the forms and words of the request. Not for: what kind of answer it asks for
(`kind.py`)."""

import re
from datetime import date
from typing import Final, Literal

from pipeline.text.words import whole_words, words

Freshness = Literal["any", "day", "week", "month", "year"]

# Sites

SITE: Final = "site:"
"""In front of the address of a whole site, as a source and in a question."""
_NAMED_SITE: Final = re.compile(rf"(?<!\S){SITE}(https?://\S+)\s*", re.IGNORECASE)


def is_site(source: str) -> bool:
    """Return whether a source names a site."""
    return source[: len(SITE)].lower() == SITE


def split_sites(question: str) -> tuple[str, tuple[str, ...]]:
    """Return a question without the sites that it names as `site:https://…`, and these
    as sources. One that is nothing else stays whole."""
    sites = tuple(SITE + url for url in dict.fromkeys(_NAMED_SITE.findall(question)))
    return (
        (_NAMED_SITE.sub("", question).strip() or question, sites)
        if sites
        else (question, ())
    )


# Periods and research

_PERIODS: Final[dict[str, Freshness]] = {
    "freshness.day": "day",
    "freshness.week": "week",
    "freshness.month": "month",
    "freshness.daily": "day",
    "freshness.year": "year",
}
"""Sections of words; the first in this order that a request has a word of counts, so
that the narrowest period wins. `daily` holds what changes by the day without a word of
time ("weather")."""
_SECTION_OF: Final = {
    word: section for section in reversed(_PERIODS) for word in words(section)
}
_TIME_WORDS: Final = whole_words(_SECTION_OF.keys() | words("freshness.none"))
"""All of them, with the phrases in which such a word is none of time ("electric
current")."""
"""Words for what holds for some years at most: prices, records, ages, "last season"."""
_SCHOLARLY: Final = whole_words(words("scholarly"))
_IDENTIFIER: Final = re.compile(
    r"\b10\.\d{4,9}/\S+|\barxiv:?\s?\d{4}\.\d{4,5}", re.IGNORECASE
)
"""A DOI, or an arXiv number."""
_YEAR_NUMBER: Final = re.compile(
    r"(?<![\d.,/$€£-])(1[5-9]\d\d|20\d\d)(?![\d,]|\.\d|[-/]\d{3})"
)
_FULL_DATE: Final = re.compile(
    r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
)


def freshness_of(text: str, *, today: date) -> Freshness:
    """Return how recent results must be: the narrowest period that the words of `text`
    name, else `any`.

    It becomes a filter, never words: people write "latest" where they mean "no old
    pages", and a year added to the words narrows a search wrongly. A request that
    carries a date needs no filter, with one exception: "latest" beside the running year
    means this year."""
    sections = {
        _SECTION_OF.get(" ".join(word.split()))
        for word in _TIME_WORDS.findall(text.lower().replace("’", "'"))
    }
    period: Freshness = next(
        (period for section, period in _PERIODS.items() if section in sections), "any"
    )
    if period == "any":
        return "any"
    years = [int(year) for year in _YEAR_NUMBER.findall(text)]
    if (years and max(years) != today.year) or _FULL_DATE.search(text):
        return "any"
    return "year" if years and period in ("month", "year") else period


def asks_for_research(text: str) -> bool:
    """Whether `text` asks for published research, by words such as "papers on", or by a
    DOI or an arXiv number."""
    return bool(
        _SCHOLARLY.search(text.lower().replace("’", "'")) or _IDENTIFIER.search(text)
    )
