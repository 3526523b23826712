"""Numbers of a workbook as its formats show them: `00501`, `1,234.50 €`, `12.5%`; dates and times
as ISO writes them.

A format is up to four sections (positive, negative, zero, text), each with literals around a
pattern of digits (ECMA-376 part 1, 18.8.31). Fractions, powers of ten, formats with conditions or
several groups of digits are written as plain numbers. Not for: which cell has which format (`workbook.py`).
"""

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

EPOCH: Final = datetime(1899, 12, 30)
"""Day 0 of the usual system of dates."""
EPOCH_1904: Final = datetime(1904, 1, 1)
_LEAP: Final = 60
"""Day that the usual system counts, 29 February 1900, and no calendar has."""
_LAST_DAY: Final = 2_958_466
"""First day after the year 9999."""
BUILT_IN: Final = {
    **{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%"},
    **{22: "yyyy-mm-dd hh:mm", 46: "[h]:mm:ss", 49: "@"},
    **dict.fromkeys((14, 15, 16, 17, *range(27, 37), *range(50, 59)), "yyyy-mm-dd"),
    **dict.fromkeys((18, 19, 20, 21, 45, 47), "hh:mm:ss"),
    **dict.fromkeys((37, 38), "#,##0;(#,##0)"),
    **dict.fromkeys((39, 40), "#,##0.00;(#,##0.00)"),
    **dict.fromkeys((41, 42), '#,##0;(#,##0);"-"'),
    **dict.fromkeys((43, 44), '#,##0.00;(#,##0.00);"-"'),
}
"""Formats that files name by number only."""
_FORMAT_TOKEN: Final = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|\[(?P<elapsed>[hms]+)\]|\[(?P<condition>[<>=][^\]]*)\]|\[[^\]]*\]|[_*]."
    r"|(?P<digits>[#0?][#0?,.]*)|(?P<bare>.)",
    re.DOTALL | re.IGNORECASE,
)
_WHOLE: Final = 10**16
"""Whole numbers below are shown with all their digits; accounts and cards have 16."""
_NOISY: Final = re.compile(r"-?\d+\.\d{10,}")
"""A number that may end in the noise of its binary form."""
_LITERALS: Final = ("quoted", "escaped", "currency")
_MOST_ROUNDED: Final = 0.005
"""Share of a number that its format may round off; where it rounds more (`0` for 0.4), all digits
are shown."""

Section = list[tuple[str, str]]
"""The kinds and texts of a section's tokens; colours and fillers have none."""


def shown(value: float, form: str, epoch: datetime) -> str:
    """Return a number as a format shows it, empty where that shows nothing; `epoch` is
    day 0 of the file's dates.

    An empty format is General: fifteen digits."""
    sections = _sections(form)
    numbers = [section for section in sections[:3] if "@" not in _of(section, "bare")]
    section = numbers[0] if numbers else []
    if value < 0 and len(numbers) > 1:
        section, value = numbers[1], -value
    elif value == 0 and len(numbers) > 2:
        section = numbers[2]
    if not section and len(sections) > 1:
        return ""
    bare = _of(section, "bare").lower()
    if _of(section, "elapsed"):
        return _duration(value, has_seconds="s" in bare + _of(section, "elapsed"))
    if any(letter in bare for letter in "ymdhs"):
        return _moment(value, bare, epoch)
    patterns = [text for kind, text in section if kind == "digits"]
    is_plain = "general" in bare or "/" in bare or "e" in bare
    if (
        not section
        or is_plain
        or len(patterns) > 1
        or any(_of(candidate, "condition") for candidate in sections)
    ):
        return f"{_plain(value)}{_of(section, *_LITERALS)}"
    digits = iter([_digits(value * (100 if "%" in bare else 1), section, patterns)])
    return _joined(
        [next(digits, "") if kind == "digits" else text for kind, text in section]
    )


def shown_text(text: str, form: str) -> str:
    """Return a text as a format shows it: one whose section for texts is empty hides
    it."""
    sections = _sections(form)
    return "" if len(sections) == 4 and not sections[3] else text


@lru_cache(512)
def _sections(form: str) -> list[Section]:
    sections: list[Section] = [[]]
    for token in _FORMAT_TOKEN.finditer(form):
        if token[0] == ";":
            sections.append([])
        elif token.lastgroup:
            sections[-1].append((token.lastgroup, token[token.lastgroup]))
    return sections[:4]


def without_noise(text: str) -> str:
    """Return a number from a cache with at most fifteen digits, another text as it is."""
    return _plain(float(text)) if _NOISY.fullmatch(text) else text


def _plain(value: float) -> str:
    """Return a number with fifteen digits, whole ones with all: the last ones of accounts
    and cards differ."""
    is_whole = value.is_integer() and abs(value) < _WHOLE
    return str(int(value)) if is_whole else f"{value:.15g}"


def _of(section: Section, *kinds: str) -> str:
    return "".join(text for kind, text in section if kind in kinds)


def _joined(texts: list[str]) -> str:
    return " ".join("".join(texts).split())


def _moment(value: float, bare: str, epoch: datetime) -> str:
    days = value + (1 if epoch == EPOCH and 0 < value < _LEAP else 0)
    if not 0 <= days < _LAST_DAY:
        return _plain(value)
    moment = epoch + timedelta(seconds=round(days * 86_400))
    day = moment.date().isoformat()
    if "h" not in bare and "s" not in bare:
        return day
    clock = moment.strftime("%H:%M:%S" if "s" in bare or moment.second else "%H:%M")
    has_day = "y" in bare or "d" in bare or "mmm" in bare
    return f"{day} {clock}" if has_day else clock


def _duration(value: float, *, has_seconds: bool) -> str:
    minutes, seconds = divmod(round(abs(value) * 86_400), 60)
    minus = "-" if value < 0 else ""
    text = f"{minus}{minutes // 60}:{minutes % 60:02d}"
    return f"{text}:{seconds:02d}" if seconds or has_seconds else text


def _digits(value: float, section: Section, patterns: list[str]) -> str:
    """Return the digits of a number in the pattern of its section; of a zero without a
    place for it the literals alone are shown."""
    if not patterns:
        return ""
    pattern = patterns[0].rstrip(",")
    if value == 0 and "0" not in pattern and _of(section, *_LITERALS).strip():
        return ""
    value /= 1000 ** (len(patterns[0]) - len(pattern))
    integer, _, decimals = pattern.partition(".")
    text = f"{value:{',' if ',' in integer else ''}.{len(decimals)}f}"
    if abs(float(text.replace(",", "")) - value) > _MOST_ROUNDED * abs(value):
        return _plain(value)
    head, _, tail = text.partition(".")
    if "," not in integer:
        head = head.zfill(integer.count("0") + (value < 0))
    needed = decimals.count("0")
    tail = tail[:needed] + tail[needed:].rstrip("0")
    return f"{head}.{tail}" if tail else head
