"""Numbers as lists write them: with digits, letters or Roman signs. Not for: what is counted, and
from where."""

from typing import Final

_ROMAN: Final = (
    *(
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
    ),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST_ROMAN: Final = 3999
"""Beyond, lists of HTML are written with digits."""


def roman(number: int) -> str:
    """Return i, ii, iii, iv … for 1, 2, 3, 4 …"""
    text = ""
    for value, numeral in _ROMAN:
        text += numeral * (number // value)
        number %= value
    return text


def lettered(number: int) -> str:
    """Return a, b, … z, aa, ab … for 1, 2, …"""
    text = ""
    while number > 0:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def numeral(number: int, form: str) -> str:
    """Return a number as a list of HTML writes it whose `type` is `form`: `1`, `a`,
    `A`, `i` or `I`; in digits for another form, or a number that the form cannot write.
    """
    if form in {"a", "A"} and number > 0:
        text = lettered(number)
    elif form in {"i", "I"} and 0 < number <= _MOST_ROMAN:
        text = roman(number)
    else:
        return str(number)
    return text.upper() if form.isupper() else text
