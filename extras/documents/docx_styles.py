"""What the styles and the numbering of a Word file say of a paragraph: level of a
heading, number of an item.

Properties of a paragraph come from itself, then its style, then the styles that this
one is based on (ECMA-376 part 1, 17.7). Numbers are counted as Word counts them (17.9).
Not for: how letters look (`docx_looks.py`)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lxml import etree

from extras.documents.docx_looks import W
from pipeline.text.numerals import roman

_HEADING_STYLE: Final = re.compile(
    r"(?:heading|berschrift|titre|t[ií]tulo)\s?([1-9])\Z", re.IGNORECASE
)
"""Names of the heading styles: English ones in most files whatever the language,
German, French and Spanish ones."""
LOWEST: Final = 6
"""Level of headings in HTML."""
_BODY_TEXT: Final = 9
"""Outline level of non-headings; levels of headings count from 0."""
_BASED: Final = 20
"""Styles in a chain of those that are based on another."""
_LEVEL_MARK: Final = re.compile(r"%([1-9])")
_LARGEST_COUNTED: Final = 100_000
"""Beyond, a number is written with digits, whatever its format."""
_BULLET_FORMATS: Final = frozenset({"bullet", "none"})


class Number(NamedTuple):
    """Number or bullet before a list paragraph."""

    text: str
    """As it is seen, such as `2.1` or `Rule 7`; empty for a bullet."""
    level: int


class _List(NamedTuple):
    """A list that paragraphs belong to: its form, and the numbers that it begins with
    instead, by level."""

    form: str
    starts: dict[int, int]


@dataclass(slots=True)
class Numbering:
    """The forms of lists, and how far each has counted."""

    lists: dict[str, _List] = field(default_factory=dict)
    forms: dict[str, dict[int, etree._Element]] = field(default_factory=dict)
    """Levels of each form."""
    _counts: dict[str, dict[int, int]] = field(default_factory=dict)
    _begun: set[tuple[str, int]] = field(default_factory=set)

    def next(self, key: str, said: str, style: str) -> Number | None:
        """Count one paragraph of a list: its level as it says it, else the one that is
        its style's.

        An unknown list or level gives a number without text, an empty `key` None."""
        one = self.lists.get(key)
        if one is None:
            return Number("", 0) if key else None
        levels = self.forms.get(one.form, {})
        own = (
            number
            for number, level in levels.items()
            if value_of(level.find(f"{W}pStyle")) == style
        )
        number = int(said) if said.isdecimal() and len(said) < 3 else next(own, 0)
        level = levels.get(number)
        if level is None:
            return Number("", number)
        counts = self._counts.setdefault(one.form, {})
        if number in one.starts and (key, number) not in self._begun:
            counts[number] = one.starts[number] - 1
        self._begun.add((key, number))
        counts[number] = counts.get(number, _start(level) - 1) + 1
        for deeper in [other for other in counts if other > number]:
            del counts[deeper]
        if value_of(level.find(f"{W}numFmt")) in _BULLET_FORMATS:
            return Number("", number)
        for above in range(number):
            counts.setdefault(above, _start(levels.get(above)))
        return Number(_written(level, levels, counts), number)


@dataclass(slots=True)
class Styles:
    """Styles by id, and how far each list has counted."""

    named: dict[str, etree._Element] = field(default_factory=dict)
    first: str = ""
    """Id of the style of paragraphs that name none."""
    numbering: Numbering = field(default_factory=Numbering)
    _levels: dict[bytes, int] = field(default_factory=dict)
    """By the properties of a paragraph."""

    def level(self, paragraph: etree._Element) -> int:
        """Return the level of a heading from 1 to `LOWEST`, 0 for other paragraphs."""
        own = paragraph.find(f"{W}pPr")
        known = self._levels.get(key := etree.tostring(own) if own is not None else b"")
        if known is None:
            known = self._levels[key] = self._level(paragraph)
        return known

    def _level(self, paragraph: etree._Element) -> int:
        outline = value_of(self._property(paragraph, "outlineLvl"))
        if outline.isdecimal():
            return min(int(outline) + 1, LOWEST) if int(outline) < _BODY_TEXT else 0
        style = value_of(_within(paragraph.find(f"{W}pPr"), "pStyle"))
        # A file without the style has its id only.
        names = [style, *(value_of(one.find(f"{W}name")) for one in self._chain(style))]
        found = next(filter(None, map(_HEADING_STYLE.search, names)), None)
        if found is not None:
            return min(int(found[1]), LOWEST)
        return int("title" in map(str.lower, names[1:]))

    def number(self, paragraph: etree._Element) -> Number | None:
        """Return the number that the next paragraph has, None for one outside of
        lists."""
        if not self.numbering.lists and paragraph.find(f"{W}pPr") is None:
            return None
        said = self._property(paragraph, "numPr")
        if said is None:
            return None
        style = value_of(_within(paragraph.find(f"{W}pPr"), "pStyle")) or self.first
        key = value_of(_within(said, "numId"))
        if not key:  # it has a level of its own, and the list of its style
            lists = (
                _within(one.find(f"{W}pPr"), "numPr") for one in self._chain(style)
            )
            key = next(
                filter(None, (value_of(_within(one, "numId")) for one in lists)), ""
            )
        return (
            self.numbering.next(key, value_of(_within(said, "ilvl")), style)
            if key != "0"
            else None
        )

    def _chain(self, style: str) -> Iterator[etree._Element]:
        for _ in range(_BASED):
            found = self.named.get(style)
            if found is None:
                return
            yield found
            style = value_of(found.find(f"{W}basedOn"))

    def _property(self, paragraph: etree._Element, name: str) -> etree._Element | None:
        own = paragraph.find(f"{W}pPr")
        found = _within(own, name)
        if found is not None:
            return found
        chain = self._chain(value_of(_within(own, "pStyle")) or self.first)
        given = (_within(style.find(f"{W}pPr"), name) for style in chain)
        return next((one for one in given if one is not None), None)


def _written(
    level: etree._Element, levels: dict[int, etree._Element], counts: dict[int, int]
) -> str:
    """Return a number in the form of its level."""
    all_digits = level.find(f"{W}isLgl") is not None

    def shown(mark: re.Match[str]) -> str:
        place = int(mark[1]) - 1
        other = levels.get(place)
        form = (
            value_of(other.find(f"{W}numFmt"))
            if other is not None and not all_digits
            else "decimal"
        )
        return in_form(counts.get(place, 1), form)

    return _LEVEL_MARK.sub(shown, value_of(level.find(f"{W}lvlText"))).strip()


def in_form(number: int, form: str) -> str:
    """Return a number as a format of lists writes it; with digits for any other format,
    and where letters or Roman numbers cannot write it."""
    if form in {"lowerLetter", "upperLetter"} and 0 < number < _LARGEST_COUNTED:
        letter = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 9)
        return letter.upper() if form == "upperLetter" else letter
    if form in {"lowerRoman", "upperRoman"} and 0 < number < _LARGEST_COUNTED:
        text = roman(number)
        return text.upper() if form == "upperRoman" else text
    return f"{number:02d}" if form == "decimalZero" else str(number)


def _start(level: etree._Element | None) -> int:
    start = value_of(level.find(f"{W}start")) if level is not None else ""
    return int(start) if start.isdecimal() and len(start) < 6 else 1


def read_styles(
    styles: etree._Element | None, numbering: etree._Element | None
) -> Styles:
    """Return what the parts of styles and numbering say, either of which may be
    missing; malformed start numbers are dropped."""
    found = Styles()
    for style in styles.iter(f"{W}style") if styles is not None else ():
        key = style.get(f"{W}styleId", "")
        found.named[key] = style
        if style.get(f"{W}type") == "paragraph" and style.get(f"{W}default") in {
            "1",
            "true",
        }:
            found.first = key
    for one in numbering if numbering is not None else ():
        if one.tag == f"{W}abstractNum":
            levels = {_level_of(level): level for level in one.iterchildren(f"{W}lvl")}
            found.numbering.forms[one.get(f"{W}abstractNumId", "")] = levels
        elif one.tag == f"{W}num":
            starts = {
                _level_of(other): int(start)
                for other in one.iterchildren(f"{W}lvlOverride")
                if (start := value_of(other.find(f"{W}startOverride"))).isdecimal()
                and len(start) < 6
            }
            form = value_of(one.find(f"{W}abstractNumId"))
            found.numbering.lists[one.get(f"{W}numId", "")] = _List(form, starts)
    for one in (
        numbering.iterchildren(f"{W}abstractNum") if numbering is not None else ()
    ):
        style = found.named.get(value_of(one.find(f"{W}numStyleLink")))
        said = _within(_within(style, "pPr"), "numPr")
        other = found.numbering.lists.get(value_of(_within(said, "numId")))
        if other is not None:  # its levels are those of a style of lists
            own = found.numbering.forms.get(other.form, {})
            found.numbering.forms[one.get(f"{W}abstractNumId", "")] = own
    return found


def _level_of(element: etree._Element) -> int:
    level = element.get(f"{W}ilvl", "")
    return int(level) if level.isdecimal() and len(level) < 3 else 0


def value_of(element: etree._Element | None) -> str:
    """Return the value of a property, empty where it has none or is missing."""
    return element.get(f"{W}val", "") if element is not None else ""


def _within(element: etree._Element | None, name: str) -> etree._Element | None:
    return element.find(f"{W}{name}") if element is not None else None
