"""Months in questions and cells, in the forms that people and programs write: `March 2026`, `Mar 2026`, `2026-03`.

Not for: numbers with units (`cells.py`), or which rows are meant (`asked.py`).
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

_NAMES: Final = "january february march april may june july august september october november december"
_SHORT: Final = {name[:3]: number for number, name in enumerate(_NAMES.split(), start=1)}
_NAME: Final = "|".join(f"{name[:3].title()}(?:{name[3:]})?" for name in _NAMES.split()).replace(
    "(?:tember)", "t?(?:ember)"
)
_YEAR: Final = r"(?:1[5-9]|20)\d\d"
_NAMED: Final = re.compile(
    rf"(?<![\w'’])(?P<day>[0-3]?\d(?:st|nd|rd|th)?\.?\s+(?:of\s+)?)?(?P<name>{_NAME})\b\.?"
    rf"(?P<after>\s+[0-3]?\d(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(?:of\s+)?(?P<year>{_YEAR})(?!\w))?"
)
_ISO: Final = re.compile(rf"(?<![\w-])(?P<year>{_YEAR})-(?P<month>0[1-9]|1[0-2])(?P<day>-[0-3]\d)?(?![\w-])")
_LONGEST: Final = 20
"""Characters of a cell that is a date (`17 September 2026`)."""


class Month(NamedTuple):
    """A month of a year; 0 where the year is not said."""

    year: int
    month: int


class AskedMonth(NamedTuple):
    """A month that a text names, with where."""

    month: Month
    start: int
    end: int


def months_in(text: str) -> list[AskedMonth]:
    """Return the months that a text names, those of whole dates aside; names begin with a capital letter."""
    found = [
        AskedMonth(Month(int(one["year"] or 0), _SHORT[one["name"][:3].lower()]), one.start("name"), one.end())
        for one in _NAMED.finditer(text)
        if not one["day"] and not one["after"]
    ]
    iso = (one for one in _ISO.finditer(text) if not one["day"])
    return found + [AskedMonth(Month(int(one["year"]), int(one["month"])), *one.span()) for one in iso]


@lru_cache(maxsize=20_000)
def month_of(cell: str) -> Month | None:
    """Return the month of a cell that is a date with month and year, with a day or not; None for other cells."""
    text = cell.strip()
    if len(text) > _LONGEST:
        return None
    if iso := _ISO.fullmatch(text):
        return Month(int(iso["year"]), int(iso["month"]))
    named = _NAMED.fullmatch(text)
    return Month(int(named["year"]), _SHORT[named["name"][:3].lower()]) if named and named["year"] else None
