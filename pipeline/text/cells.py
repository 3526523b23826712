"""Values of table cells: a number with its unit, a date, a time, or words.

Numbers are read as people write them: separators of both kinds, signs, currencies,
footnote marks, thousands as letters. Not for: what a column is called (`words.py`), or
which rows are meant (`query.py`)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pipeline.text.months import COUNTED, month_named

CellKind = Literal["number", "date", "clock"]

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
_SCALES: Final = {
    **dict.fromkeys(("k", "thousand"), 1e3),
    **dict.fromkeys(("m", "mn", "million", "millions"), 1e6),
    **dict.fromkeys(("bn", "b", "billion", "billions"), 1e9),
}
_CURRENCY: Final = re.compile(
    r"[$€£¥]|(?<![A-Za-z])(?:EUR|USD|GBP|CHF|JPY)(?![A-Za-z])"
)
_UNIT: Final = re.compile(r"[^\W\d_]+|[%°'\"]")
_UNIT_SIGNS: Final = 12
"""Characters of a unit, beyond which a cell says more than a number (`3 of 12 were
new`)."""


@dataclass(frozen=True, slots=True)
class Value:
    """The number that a cell holds."""

    number: float
    """A time in its smallest unit, a date in years."""
    kind: CellKind
    unit: str = ""
    """What is written beside the number, in lower case: `km`, `€`, `%`."""
    plain: bool = True
    """Whether the cell says nothing else."""


def number_of(cell: str) -> float | None:
    """Return the number that a cell begins with: a time in its smallest unit, a date in
    years; None for other text."""
    found = value_of(cell)
    return found.number if found is not None else None


def value_of(cell: str, *, decimal_comma: bool = False) -> Value | None:
    """Return the value of a cell, None where it begins with no number.

    `decimal_comma` says that the column writes `2,500` for two and a half.
    """
    text = _CELL_NOTE.sub("", cell).strip()
    if clock := _CLOCK.match(text):
        return _clocked(clock)
    if dated := _dated(text):
        return dated
    if number := _CELL_NUMBER.match(text):
        return _counted(number, decimal_comma=decimal_comma)
    year = _CELL_YEAR.search(text) if len(text) <= _DATED_CHARACTERS else None
    return Value(float(year[1]), "date") if year else None


def _clocked(found: re.Match[str]) -> Value:
    """Return a time that `_CLOCK` found."""
    total = 0.0
    for part in found.groups()[:3]:
        total = total if part is None else 60 * total + int(part)
    plain = len(found.string) - found.end() <= len(" pm")
    return Value(total + float(found[4] or 0), "clock", plain=plain)


def _counted(found: re.Match[str], *, decimal_comma: bool) -> Value:
    """Return a number that `_CELL_NUMBER` found, with the unit beside it."""
    text, rest = found.string, found.string[found.end() :]
    number = _read_number(found[2], decimal_comma=decimal_comma)
    if found[1] and rest.startswith(")"):  # as accounts write what is below nothing
        number, rest = -abs(number), rest[1:]
    currency = _CURRENCY.search(text)
    unit = currency[0].lower() if currency else ""
    letters = " ".join(_UNIT.findall(_CURRENCY.sub("", rest))).lower()
    plain = len(rest.strip()) <= _UNIT_SIGNS and not any(map(str.isdigit, rest))
    return Value(number, "number", f"{unit} {letters}".strip(), plain)


def _dated(text: str) -> Value | None:
    """Return a date with its month, in years; None where the text has no month."""
    counted = COUNTED.match(text)
    if digits := _ISO_CELL.match(text) or (
        counted if counted and counted["year"] else None
    ):
        year, month, day = (int(part or 0) for part in digits.group(1, 2, 3))
        return Value(float(year) + (month - 1) / 12 + day / 400, "date")
    if len(text) > _DATED_CHARACTERS or not (found := _CELL_YEAR.search(text)):
        return None
    if not (month := month_named(text)):
        return None
    day_found = _DAY.search(text)
    day = int(day_found[1]) if day_found else 0
    return Value(float(found[1]) + (month - 1) / 12 + day / 400, "date")


def _read_number(spelled: str, *, decimal_comma: bool = False) -> float:
    """Read digits with separators: the last of two kinds is the decimal one, a comma
    before three digits is none. Raises `ValueError` for anything else."""
    digits = re.sub(r"\s", "", spelled).replace("−", "-").rstrip(".,")
    if "," in digits and "." in digits:
        grouping = "," if digits.rfind(".") > digits.rfind(",") else "."
        digits = digits.replace(grouping, "")
    if digits.count(",") > 1 or (not decimal_comma and re.search(r",\d{3}$", digits)):
        digits = digits.replace(",", "")
    if digits.count(".") > 1 or (decimal_comma and re.search(r"\.\d{3}$", digits)):
        digits = digits.replace(".", "")
    return float(digits.replace(",", "."))


def values_of(cells: Sequence[str]) -> list[Value | None]:
    """Return the values of a column's cells, read by one rule: separators and scales as
    the others write them."""
    comma = any(re.search(r"\d,(?:\d{1,2}|\d{4,})(?!\d|,)", cell) for cell in cells)
    values = [value_of(cell, decimal_comma=comma) for cell in cells]
    units = {value.unit for value in values if value is not None}
    if len(units) > 1 and all(
        unit.rpartition(" ")[2] in _SCALES for unit in units if unit
    ):
        return [_scaled(value) if value is not None else None for value in values]
    return values


def _scaled(value: Value) -> Value:
    unit, _, scale = value.unit.rpartition(" ")
    return Value(value.number * _SCALES.get(scale, 1.0), value.kind, unit, value.plain)
