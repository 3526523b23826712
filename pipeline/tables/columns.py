"""The cells of a column as numbers, dates or text, read by one rule for all of them.

Not for: single cells that a question compares (`pipeline/text/cells.py`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final, Literal

from pipeline.text.months import COUNTED, month_named
from readers.tree import CURRENCY_SIGNS

ColumnType = Literal["number", "date", "text"]
Value = int | float | str | None

TYPED_SHARE: Final = 0.9
"""Minimum share of a column's filled cells that are numbers, or dates, for it to hold
these; the others are then NULL."""
_MISSING: Final = frozenset(
    ["-", "–", "—", "−", "n/a", "na", "none", "null", "nan", "?", "…", "..", "tbd"]
)
"""Cells that say that nothing is known, in lower case."""
_DECIMAL_COMMA: Final = re.findall(
    r"\w+", "cs da de es fi fr hu it nl no pl pt ro ru sv tr uk vi"
)
"""Languages in which 1.234 is a thousand and more."""
_NOTE: Final = re.compile(r"\s*(?:\[[^\[\]]{0,9}\]|[*†‡]+)$")
_FLOAT: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d{1,3}")
_AMOUNT: Final = re.compile(
    r"(\()?([+−–-]?)\s?([^\w\s.,()+−–-]|[A-Z]{3}|)\s?([−(-]?)"
    r"(\.?\d[\d.,'’\s]*?)\s?([^\d\s.,()]{1,12})?(\)?)\s?(%?)"
)
"""Parenthesis, sign, unit, sign or parenthesis, digits, unit, parenthesis, unit."""
_INTEGER_DIGITS: Final = 18
"""Digits of an integer that SQLite holds, whatever they are."""
_ISO: Final = re.compile(r"\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?\S{0,8})?)?")
_DIGIT_DATE: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_YEAR_FIRST: Final = re.compile(r"(\d{4})[./](\d{1,2})[./](\d{1,2})")
_YEAR: Final = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)")
_DAY: Final = re.compile(r"(?<!\d)([0-3]?\d)(?!\d)")
_DATE_CHARACTERS: Final = 30


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a column."""

    type: ColumnType
    values: Sequence[Value]
    """Dates as ISO 8601; None where a cell is empty, or of another type."""
    unit: str = ""
    """What is written beside all of its numbers, such as `€` or `km`."""
    rewritten: bool = False
    """Whether some filled cell does not read as its value."""


def typed(cells: Sequence[str], language: str) -> Column:
    """Return the values of a column's cells; `language` says what an ambiguous comma or
    point is."""
    filled = [cell for cell in cells if cell and cell.lower() not in _MISSING]
    enough = TYPED_SHARE * len(filled)
    number, unit = _number_reader(filled, language)
    readers: tuple[tuple[ColumnType, Callable[[str], Value]], ...] = (
        ("number", number),
        ("date", _date_reader(filled, language)),
    )
    for kind, reader in readers:
        values = [reader(cell) for cell in cells]
        if filled and sum(value is not None for value in values) >= enough:
            rewritten = any(
                cell and cell != str(value) and not _is_plain(cell, value)
                for cell, value in zip(cells, values, strict=True)
            )
            return Column(kind, values, unit if kind == "number" else "", rewritten)
    return Column("text", [cell or None for cell in cells])


def _is_plain(cell: str, value: Value) -> bool:
    """Whether a cell is a number as programs write it, such as `1.50`."""
    try:
        return float(cell) == value
    except ValueError:
        return False


def _number_reader(
    filled: Sequence[str], language: str
) -> tuple[Callable[[str], Value], str]:
    """Return what reads the numbers of a column, None for another cell, and their unit.

    The decimal sign is the one by which more cells are numbers."""
    # A post code or the like, or an integer that SQLite does not hold
    if any(re.match(r"0\d|\d{19}", cell) for cell in filled):
        return lambda _cell: None, ""
    pairs: dict[str, tuple[int | float, str]] = {}
    for decimal_mark in ",." if language in _DECIMAL_COMMA else ".,":
        parsed = {
            cell: pair for cell in filled if (pair := _number(cell, decimal_mark))
        }
        if len(parsed) > len(pairs):
            pairs = parsed
        if len(pairs) == len(set(filled)):
            break
    units = {unit for _, unit in pairs.values()}
    # Accounts write a currency at the first number and the sum of a column.
    if len(units) == 2 and max(units) in CURRENCY_SIGNS:
        units.discard("")
    if len(units) > 1:  # they do not add up
        return lambda _cell: None, ""
    numbers = {cell: number for cell, (number, _) in pairs.items()}
    return numbers.get, next(iter(units), "")


def _number(cell: str, decimal: str) -> tuple[int | float, str] | None:
    """Return the number of a cell that says nothing else, and its unit."""
    if cell.isdecimal() and len(cell) <= _INTEGER_DIGITS:
        return int(cell), ""
    text = _NOTE.sub("", cell)
    if _FLOAT.fullmatch(text):
        return float(text), ""
    form = _AMOUNT.fullmatch(text)
    if form is None or (form[1] or "") + form[4].strip("−-") != "(" * len(form[7]):
        return None
    grouping = "," if decimal == "." else "."
    digits = re.fullmatch(
        rf"(\d{{1,3}}(?:[{grouping}'’\s]\d{{2,3}})*[{grouping}'’\s]\d{{3}}|\d*)(?:\{decimal}(\d+))?",
        form[5],
    )
    units = [unit for unit in (form[3], form[6], form[8]) if unit]
    if digits is None or len(units) > 1:
        return None
    integer, fraction = re.sub(r"\D", "", digits[1]) or "0", digits[2]
    number = float(f"{integer}.{fraction or 0}")
    if not fraction and len(integer) <= _INTEGER_DIGITS:
        number = int(integer)
    is_negative = form[1] or form[2] in {"-", "−", "–"} or form[4]
    return -number if is_negative else number, "".join(units)


def _date_reader(filled: Sequence[str], language: str) -> Callable[[str], Value]:
    """Return what reads the dates of a column as ISO 8601, None for another cell.

    Where days and months in digits may be either, a point says that the day is first,
    and so does a language other than English; else they are text."""
    digits = [form for cell in filled if (form := _DIGIT_DATE.fullmatch(cell))]
    first_number, second_number = (
        max((int(form[group]) for form in digits), default=0) for group in (1, 3)
    )
    if first_number > 12 >= second_number or (
        max(first_number, second_number) <= 12
        and (language not in {"", "en"} or all(form[2] == "." for form in digits))
    ):
        return partial(_iso_date, day_at=1)
    return partial(_iso_date, day_at=3 if second_number > 12 >= first_number else 0)


def _iso_date(cell: str, *, day_at: int) -> str | None:
    """Return a date as ISO 8601; `day_at` is the group of `_DIGIT_DATE` with the day, 0
    where that is not known."""
    if _ISO.fullmatch(cell):
        return cell
    year = _YEAR.search(cell)
    if year is None or len(cell) > _DATE_CHARACTERS:
        return None
    digits = _DIGIT_DATE.fullmatch(cell)
    if digits:
        return _day(digits[4], digits[4 - day_at], digits[day_at]) if day_at else None
    year_first = _YEAR_FIRST.fullmatch(cell) or COUNTED.fullmatch(cell)
    if year_first and year_first[1]:
        return _day(*year_first.groups())
    month, day = month_named(cell), _DAY.search(cell)
    return _day(year[1], str(month), day[1] if day else None) if month else None


def _day(year: str, month: str, day: str | None) -> str | None:
    """Return a day or month of the calendar, None for one that it does not have."""
    try:
        iso_day = date(int(year), int(month), int(day or 1)).isoformat()
    except ValueError:
        return None
    return iso_day if day else iso_day[:7]
