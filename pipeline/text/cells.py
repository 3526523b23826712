"""The number that a table cell begins with, a date or time too, to compare rows by.

Numbers are read as people write them: separators of both kinds, signs, currencies,
footnote marks. Not for: columns of tables that are queried
(`pipeline/tables/columns.py`)."""

import re
from typing import Final

from pipeline.text.months import COUNTED, month_named

_CELL_NOTE: Final = re.compile(r"\[[^\[\]]{0,9}\]|[*†‡]+$")
_CLOCK: Final = re.compile(r"\D{0,2}(\d{1,4}):([0-5]\d)(?::([0-5]\d))?(\.\d{1,6})?")
_CELL_NUMBER: Final = re.compile(
    r"(\(?)[^\w+−.-]{0,3}(?:[A-Z]{0,3}[$€£¥#] ?)?([+−-]?(?:\d[\d.,\u00a0\u202f ]{0,20}\d|\.?\d+))"
)
_CELL_YEAR: Final = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)")
_ISO_CELL: Final = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?(?!\d)")
_DAY: Final = re.compile(r"(?<!\d)([0-3]?\d)(?!\d)")
_DATED_CHARACTERS: Final = 30
"""Maximum characters of a cell in which a year is a date."""


def number_of(cell: str) -> float | None:
    """Return the number that a cell begins with: a time in its smallest unit, a date in
    years; None for other text."""
    text = _CELL_NOTE.sub("", cell).strip()
    if clock := _CLOCK.match(text):
        return _clock_units(clock)
    if (years := _years(text)) is not None:
        return years
    if number := _CELL_NUMBER.match(text):
        amount = _read_number(number[2])
        # As accounts write what is below nothing
        is_negative = number[1] and text[number.end() :].startswith(")")
        return -abs(amount) if is_negative else amount
    year = _CELL_YEAR.search(text) if len(text) <= _DATED_CHARACTERS else None
    return float(year[1]) if year else None


def _clock_units(clock: re.Match[str]) -> float:
    """Return a time that `_CLOCK` found, in its smallest unit."""
    total = 0.0
    for field in clock.groups()[:3]:
        total = total if field is None else 60 * total + int(field)
    return total + float(clock[4] or 0)


def _years(text: str) -> float | None:
    """Return a date with its month, in years; None where the text has no month."""
    counted = COUNTED.match(text)
    if digits := _ISO_CELL.match(text) or (
        counted if counted and counted["year"] else None
    ):
        year, month, day = (int(field or 0) for field in digits.group(1, 2, 3))
        return year + (month - 1) / 12 + day / 400
    named_year = _CELL_YEAR.search(text) if len(text) <= _DATED_CHARACTERS else None
    month = month_named(text) if named_year else 0
    if named_year is None or not month:
        return None
    day_of_month = _DAY.search(text)
    day = int(day_of_month[1]) if day_of_month else 0
    return float(named_year[1]) + (month - 1) / 12 + day / 400


def _read_number(spelled: str) -> float:
    """Read digits with separators: the last of two kinds is the decimal one, a comma
    before three digits is none. Raises `ValueError` for anything else."""
    digits = re.sub(r"\s", "", spelled).replace("−", "-").rstrip(".,")
    if "," in digits and "." in digits:
        grouping = "," if digits.rfind(".") > digits.rfind(",") else "."
        digits = digits.replace(grouping, "")
    if digits.count(",") > 1 or re.search(r",\d{3}$", digits):
        digits = digits.replace(",", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    return float(digits.replace(",", "."))
