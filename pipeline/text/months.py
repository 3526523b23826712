"""Months of dates in cells, in the forms that people write: `March 2026`, `mars 2026`.

Their names are words of languages (`[months]` in `pipeline/text/words/`). Not for:
numbers with units (`cells.py`)."""

import re
from functools import cache
from typing import Final

from pipeline.text.words import any_of, languages, meanings, words

COUNTED: Final = re.compile(
    rf"(?:(?<!\d)(?P<year>(?:1[5-9]|20)\d\d)\s*(?:{any_of(words('dates.year'))})\s*)?"
    rf"(?<!\d)(?P<month>1[0-2]|0?[1-9])\s*(?:{any_of(words('dates.month'))})"
    rf"(?:\s*(?P<day>[0-3]?\d)\s*(?:{any_of(words('dates.day'))}))?"
)
"""As Chinese, Japanese and Korean write them: 2026年3月."""


def month_named(text: str) -> int:
    """Return the number of the first month that a date names in any language, 0 for
    none."""
    month = _name_pattern().search(text)
    return month_numbers()[month[0].lower()] if month else 0


@cache
def month_numbers() -> dict[str, int]:
    """Return the number of each month by its names, in lower case."""
    return {
        name.lower(): int(number)
        for language in sorted(languages())
        for name, number in meanings("months", language).items()
    }


@cache
def _name_pattern() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'’])(?:{any_of(month_numbers())})\b", re.IGNORECASE)
