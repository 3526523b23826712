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

from extras.documents.docx_looks import W, value_in, value_of
from extras.documents.package import all_of, whole_number
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
        own = (n for n, level in levels.items() if value_in(level, "pStyle") == style)
        number = whole_number(said, next(own, 0), digits=2)
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
        if value_in(level, "numFmt") in _BULLET_FORMATS:
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
        style = value_in(paragraph.find(f"{W}pPr"), "pStyle")
        # A file without the style has its id only.
        names = [style, *(value_in(one, "name") for one in self._chain(style))]
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
        style = value_in(paragraph.find(f"{W}pPr"), "pStyle") or self.first
        key = value_in(said, "numId")
        if not key:  # it has a level of its own, and the list of its style
            lists = (
                _within(one.find(f"{W}pPr"), "numPr") for one in self._chain(style)
            )
            key = next(filter(None, (value_in(one, "numId") for one in lists)), "")
        if key == "0":
            return None
        return self.numbering.next(key, value_in(said, "ilvl"), style)

    def _chain(self, style: str) -> Iterator[etree._Element]:
        for _ in range(_BASED):
            found = self.named.get(style)
            if found is None:
                return
            yield found
            style = value_in(found, "basedOn")

    def _property(self, paragraph: etree._Element, name: str) -> etree._Element | None:
        own = paragraph.find(f"{W}pPr")
        found = _within(own, name)
        if found is not None:
            return found
        chain = self._chain(value_in(own, "pStyle") or self.first)
        given = (_within(style.find(f"{W}pPr"), name) for style in chain)
        return next((one for one in given if one is not None), None)


def _written(
    level: etree._Element, levels: dict[int, etree._Element], counts: dict[int, int]
) -> str:
    """Return a number in the form of its level."""
    all_digits = level.find(f"{W}isLgl") is not None

    def shown(mark: re.Match[str]) -> str:
        index = int(mark[1]) - 1
        other = levels.get(index)
        plain = other is None or all_digits
        form = "decimal" if plain else value_in(other, "numFmt")
        return in_form(counts.get(index, 1), form)

    return _LEVEL_MARK.sub(shown, value_in(level, "lvlText")).strip()


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
    return whole_number(value_in(level, "start"), 1, digits=5)


def read_styles(
    styles: etree._Element | None, numbering: etree._Element | None
) -> Styles:
    """Return what the parts of styles and numbering say, either of which may be
    missing; malformed start numbers are dropped."""
    found = Styles()
    for style in all_of(styles, f"{W}style"):
        key = style.get(f"{W}styleId", "")
        found.named[key] = style
        is_default = style.get(f"{W}default") in {"1", "true"}
        if is_default and style.get(f"{W}type") == "paragraph":
            found.first = key
    if numbering is not None:
        _read_numbering(numbering, found)
    return found


def _read_numbering(numbering: etree._Element, found: Styles) -> None:
    """Take the lists and their forms; a form that refers to a style of lists has the
    levels of that one's list."""
    lists, forms = found.numbering.lists, found.numbering.forms
    for one in numbering.iterchildren(f"{W}abstractNum"):
        levels = {_level_of(level): level for level in one.iterchildren(f"{W}lvl")}
        forms[one.get(f"{W}abstractNumId", "")] = levels
    for one in numbering.iterchildren(f"{W}num"):
        starts = {
            _level_of(other): int(start)
            for other in one.iterchildren(f"{W}lvlOverride")
            if (start := value_in(other, "startOverride")).isdecimal()
            and len(start) < 6
        }
        lists[one.get(f"{W}numId", "")] = _List(value_in(one, "abstractNumId"), starts)
    for one in numbering.iterchildren(f"{W}abstractNum"):
        style = found.named.get(value_in(one, "numStyleLink"))
        said = _within(_within(style, "pPr"), "numPr")
        other = lists.get(value_in(said, "numId"))
        if other is not None:
            forms[one.get(f"{W}abstractNumId", "")] = forms.get(other.form, {})


def _level_of(element: etree._Element) -> int:
    return whole_number(element.get(f"{W}ilvl", ""), digits=2)


def _within(element: etree._Element | None, name: str) -> etree._Element | None:
    return element.find(f"{W}{name}") if element is not None else None
