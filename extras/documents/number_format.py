"""Numbers of a workbook as its formats show them: `00501`, `1,234.50 €`, `12.5%`; dates and times
as ISO writes them.

A format is up to four sections (positive, negative, zero, text), each with literals around one
pattern of digits (ECMA-376 part 1, 18.8.31). Fractions and powers of ten are written as plain
numbers. Not for: which cell has which format (`workbook.py`).
"""

import re
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

EPOCH: Final = datetime(1899, 12, 30)
"""Day 0 of the usual system of dates."""
EPOCH_1904: Final = datetime(1904, 1, 1)
_LEAP: Final = 60
"""Day that the usual system counts, 29 February 1900, and no calendar has."""
_LAST_DAY: Final = 2_958_466
"""First day after the year 9999."""
_DATE, _TIME, _STAMP = "yyyy-mm-dd", "hh:mm:ss", "yyyy-mm-dd hh:mm"
_ACCOUNTS: Final = '#,##0.00;(#,##0.00);"-"'
BUILT_IN: Final = {
    **{
        1: "0",
        2: "0.00",
        3: "#,##0",
        4: "#,##0.00",
        9: "0%",
        10: "0.00%",
        22: _STAMP,
        46: "[h]:mm:ss",
    },
    **dict.fromkeys((14, 15, 16, 17, *range(27, 37), *range(50, 59)), _DATE),
    **dict.fromkeys((18, 19, 20, 21, 45, 47), _TIME),
    **dict.fromkeys((37, 38), "#,##0;(#,##0)"),
    **dict.fromkeys((39, 40), "#,##0.00;(#,##0.00)"),
    **dict.fromkeys((41, 42), '#,##0;(#,##0);"-"'),
    **dict.fromkeys((43, 44), _ACCOUNTS),
    49: "@",
}
"""Formats that files name by number only."""
_FORMAT_TOKEN: Final = re.compile(
    r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.|[#0?][#0?,.]*|.', re.DOTALL
)
_FORMAT_CURRENCY: Final = re.compile(r"\[\$([^\]-]*)(?:-[^\]]*)?\]")
_CONDITION: Final = re.compile(r"\[(<=|>=|<>|<|>|=)(-?[\d.]+)\]")
_DIGIT_SIGN: Final = re.compile(r"[#0?]")
_CLOCK_SIGN: Final = re.compile(r"[hs]", re.IGNORECASE)
_CALENDAR: Final = re.compile(r"[yd]|m{3}", re.IGNORECASE)
_SPENT: Final = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_SECTION: Final = re.compile(r'((?:"[^"]*"|\\.|\[[^\]]*\]|[^;"\\])*)(?:;|\Z)')
_MOST_ROUNDED: Final = 0.005
"""Share of a number that its format may round off; where it rounds more (`0` for 0.4), all digits
are shown."""


class _Section(NamedTuple):
    tokens: tuple[str, ...]
    bare: str
    """Without literals and marks."""
    condition: tuple[str, float] | None


def shown(value: float, form: str, epoch: datetime) -> str:
    """Return a number as a format shows it, empty where that shows nothing; `epoch` is
    day 0 of the file's dates.

    An empty format is General: fifteen digits."""
    sections = _sections(form)
    section, negated = _chosen(sections, value)
    if not section.tokens and len(sections) > 1:
        return ""
    if not section.bare.strip() or section.bare.strip().lower() == "general":
        return _with_literals(section, f"{value:.15g}")
    spent = _SPENT.search("".join(section.tokens))
    if spent:
        return _duration(value, section)
    if _is_moment(section.bare):
        return _moment(value, section.bare, epoch)
    return _number(abs(value) if negated else value, section)


def shown_text(text: str, form: str) -> str:
    """Return a text as a format shows it, which may put words around it; one without a
    section for texts leaves it as it is."""
    sections = _sections(form)
    if len(sections) == 4:
        return _literal("".join(sections[3].tokens)).replace("@", text)
    section = next((one for one in reversed(sections) if "@" in one.bare), None)
    return (
        text
        if section is None
        else _literal("".join(section.tokens)).replace("@", text)
    )


@lru_cache(512)
def _sections(form: str) -> tuple[_Section, ...]:
    found = []
    ends = False
    for match in islice(_SECTION.finditer(form), 4):
        if ends:
            break
        part, ends = match[1], not match[0].endswith(";")
        written = _FORMAT_CURRENCY.sub(lambda sign: f'"{sign[1]}"', part)
        tokens = tuple(_FORMAT_TOKEN.findall(written))
        bare = "".join(one for one in tokens if one[0] not in '"\\[_*')
        said = _CONDITION.search(part)
        condition = (said[1], _read(said[2])) if said else None
        found.append(_Section(tokens, bare, condition))
    return tuple(found) or (_Section((), "", None),)


def _read(number: str) -> float:
    try:
        return float(number)
    except ValueError:
        return 0.0


def _chosen(sections: tuple[_Section, ...], value: float) -> tuple[_Section, bool]:
    """Return the section for a number, and whether it writes the sign itself; where no
    condition holds it is the last."""
    if any(section.condition for section in sections):
        holding = (
            section
            for section in sections
            if section.condition is None or _holds(value, *section.condition)
        )
        return next(holding, sections[-1]), False
    numbers = [section for section in sections[:3] if "@" not in section.bare] or [
        _Section((), "", None)
    ]
    if value < 0 and len(numbers) > 1:
        return numbers[1], True
    if value == 0 and len(numbers) > 2:
        return numbers[2], False
    return numbers[0], False


def _holds(value: float, sign: str, other: float) -> bool:
    return {
        "<": value < other,
        "<=": value <= other,
        ">": value > other,
        ">=": value >= other,
        "=": value == other,
        "<>": value != other,
    }[sign]


def _is_moment(bare: str) -> bool:
    return bool(re.search(r"[ymdhs]", bare, re.IGNORECASE)) and not re.search(
        r"[0#?](?!\d*\Z)", bare
    )


def _moment(value: float, bare: str, epoch: datetime) -> str:
    days = value + (1 if epoch == EPOCH and 0 < value < _LEAP else 0)
    if not 0 <= days < _LAST_DAY:
        return f"{value:.15g}"
    moment = epoch + timedelta(seconds=round(days * 86_400))
    has_clock = bool(_CLOCK_SIGN.search(bare))
    has_day = bool(_CALENDAR.search(bare)) or not has_clock
    clock = moment.strftime(
        "%H:%M:%S" if "s" in bare.lower() or moment.second else "%H:%M"
    )
    day = moment.date().isoformat()
    return f"{day} {clock}" if has_day and has_clock else day if has_day else clock


def _duration(value: float, section: _Section) -> str:
    seconds = round(abs(value) * 86_400)
    sign = "-" if value < 0 else ""
    text = f"{seconds // 3600}:{seconds // 60 % 60:02d}"
    return (
        f"{sign}{text}:{seconds % 60:02d}"
        if seconds % 60 or "s" in section.bare.lower()
        else sign + text
    )


def _number(value: float, section: _Section) -> str:
    groups = [one for one in section.tokens if _DIGIT_SIGN.match(one)]
    if not groups:
        return _with_literals(section, "")
    if re.search(r"[Ee][+-]|/", section.bare):
        return f"{value:.15g}"
    if len(groups) > 1 and value == int(value) and "." not in section.bare:
        return _in_groups(int(value), section, groups)
    pattern, words = groups[0], _literals(section, '"\\').strip()
    if value == 0 and words and "0" not in pattern:
        return _with_literals(section, "")
    scaled = value * (100 if "%" in section.bare else 1)
    scaled /= 1000 ** (len(pattern) - len(pattern.rstrip(",")))
    return _with_literals(section, _digits(scaled, pattern.rstrip(",")))


def _in_groups(value: int, section: _Section, groups: list[str]) -> str:
    """Return a whole number in the several groups of digits of a format, such as a
    telephone number's.

    Digits that are missing are zeros, those too many go to the first group, and a minus
    comes in front."""
    sizes = [len(_DIGIT_SIGN.findall(group)) for group in groups]
    digits = str(abs(value)).zfill(max(sum(sizes[1:]) + 1, "".join(groups).count("0")))
    first = len(digits) - sum(sizes[1:])
    ends = [first + sum(sizes[1:index]) for index in range(1, len(sizes) + 1)]
    cut = iter(
        [
            digits[:first],
            *(
                digits[end - size : end]
                for end, size in zip(ends[1:], sizes[1:], strict=True)
            ),
        ]
    )
    text = "".join(
        next(cut) if _DIGIT_SIGN.match(one) else _literal(one) for one in section.tokens
    )
    return " ".join(f"{'-' if value < 0 else ''}{text}".split())


def _digits(value: float, pattern: str) -> str:
    whole, _, decimals = pattern.partition(".")
    places = len(_DIGIT_SIGN.findall(decimals))
    grouping = "," if "," in whole else ""
    text = f"{value:{grouping}.{places}f}"
    if abs(float(text.replace(",", "")) - value) > _MOST_ROUNDED * abs(value):
        return f"{value:.15g}"
    head, _, tail = text.lstrip("-").partition(".")
    needed = decimals.rstrip("#?").count("0")
    tail = tail[:needed] + tail[needed:].rstrip("0")
    if not grouping:
        head = head.zfill(whole.count("0"))
        head = head if head.strip("0") or whole.count("0") or not tail else ""
    sign = "-" if text.startswith("-") and text.strip("-0.,") else ""
    return f"{sign}{head}{'.' if tail else ''}{tail}"


def _with_literals(section: _Section, digits: str) -> str:
    """Return digits in place of the pattern, between the literals of a section; of one
    without a pattern the literals alone, unless it is General."""
    if not any(_DIGIT_SIGN.match(one) for one in section.tokens):
        words = _literals(section, '"\\[_* ()-')
        general = "general" in section.bare.lower() or not section.tokens
        return (
            (digits if not words.strip() else f"{digits}{words}")
            if general
            else _literal("".join(section.tokens))
        )
    parts, done = [], False
    for one in section.tokens:
        if _DIGIT_SIGN.match(one):
            parts.append("" if done else digits)
            done = True
        else:
            parts.append(_literal(one))
    return " ".join("".join(parts).split())


def _literals(section: _Section, signs: str) -> str:
    """Return what those tokens show that begin with one of some signs."""
    return _literal("".join(one for one in section.tokens if one[0] in signs))


def _literal(text: str) -> str:
    """Return what the tokens of a text show; colours, conditions and fillers show
    nothing."""
    shown_parts = []
    for one in _FORMAT_TOKEN.findall(text):
        if one[0] == '"':
            shown_parts.append(one[1:-1])
        elif one[0] == "\\":
            shown_parts.append(one[1])
        elif one[0] == "_":
            shown_parts.append(" ")
        elif one[0] not in "[*":
            shown_parts.append(one)
    return "".join(shown_parts)
