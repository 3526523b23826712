"""What the styles and the numbering of a Word file say of a paragraph: level of a
heading, number of an item.

Properties of a paragraph come from itself, then its style, then the styles that this
one is based on (ECMA-376 part 1, 17.7). Numbers are counted as Word counts them (17.9).
Not for: how letters look (`docx_looks.py`)."""

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from readers.numerals import numeral
from readers.office.package import MOST_BASED, ON, all_of, whole_number

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING_STYLE: Final = re.compile(
    r"(?:heading|berschrift|titre|t[ií]tulo)\s?([1-9])\Z", re.IGNORECASE
)
"""Names of the heading styles: English ones in most files whatever the language,
German, French and Spanish ones."""
_LOWEST: Final = 6
"""Level of headings in HTML."""
_BODY_TEXT: Final = 9
"""Outline level of non-headings; levels of headings count from 0."""
_NUMERALS: Final = {
    "lowerLetter": "a",
    "upperLetter": "A",
    "lowerRoman": "i",
    "upperRoman": "I",
}
"""Other formats of numbers are written with digits."""


class Styles:
    """Styles by id, the forms of lists, and how far each list has counted."""

    def __init__(
        self, styles: etree._Element | None, numbering: etree._Element | None
    ) -> None:
        """Read the parts of styles and numbering, either of which may be missing; a style
        without an id is that of no text."""
        self.named = {
            style.get(f"{W}styleId"): style
            for style in all_of(styles, f"{W}style")
            if style.get(f"{W}styleId")
        }
        self.usual = next(
            (
                name
                for name, style in self.named.items()
                if style.get(f"{W}default") in ON
                and style.get(f"{W}type") == "paragraph"
            ),
            "",
        )
        """Id of the style of paragraphs that name none."""
        self._forms = {
            form.get(f"{W}abstractNumId"): {
                _level_of(level): level for level in form.iterchildren(f"{W}lvl")
            }
            for form in all_of(numbering, f"{W}abstractNum")
        }
        self._lists = {
            element.get(f"{W}numId"): (
                value_in(element, "abstractNumId"),
                _starts(element),
            )
            for element in all_of(numbering, f"{W}num")
        }
        """Forms of lists, and the numbers that they begin with instead, by level."""
        self._counts: dict[str, dict[int, int]] = {}
        self._started: set[tuple[str, int]] = set()
        self._levels: dict[bytes, int] = {}

    def chain(self, name: str) -> Iterator[etree._Element]:
        """Yield a style and those that it is based on."""
        for _ in range(MOST_BASED):
            style = self.named.get(name)
            if style is None:
                return
            yield style
            name = value_in(style, "basedOn")

    def level(self, paragraph: etree._Element) -> int:
        """Return the level of a heading from 1 to `_LOWEST`, 0 for other paragraphs."""
        properties = paragraph.find(f"{W}pPr")
        key = etree.tostring(properties) if properties is not None else b""
        if key not in self._levels:
            self._levels[key] = self._level(paragraph)
        return self._levels[key]

    def _level(self, paragraph: etree._Element) -> int:
        outline = value_of(next(self._properties(paragraph, "outlineLvl"), None))
        if outline.isdecimal():
            return min(int(outline) + 1, _LOWEST) if int(outline) < _BODY_TEXT else 0
        style = value_in(paragraph.find(f"{W}pPr"), "pStyle")
        # A file without the style has its id only.
        names = [style, *(value_in(based, "name") for based in self.chain(style))]
        heading = next(filter(None, map(_HEADING_STYLE.search, names)), None)
        if heading is not None:
            return min(int(heading[1]), _LOWEST)
        return int("title" in map(str.lower, names[1:]))

    def number(self, paragraph: etree._Element) -> str | None:
        """Return the number that the next paragraph has as it is seen, such as `2.1` or
        `Rule 7`, "" for a bullet or an unknown level; None for one outside of lists."""
        properties = list(self._properties(paragraph, "numPr"))
        keys = (value_in(element, "numId") for element in properties)
        # A paragraph may have a level of its own, and the list of its style.
        key = next(filter(None, keys), "")
        if not key or key == "0":
            return None
        form, starts = self._lists.get(key, ("", {}))
        number = whole_number(value_in(properties[0], "ilvl"), digits=2)
        levels = self._forms.get(form, {})
        if number not in levels:
            return ""
        counts = self._counts.setdefault(form, {})
        if number in starts and (key, number) not in self._started:
            counts[number] = starts[number] - 1
        self._started.add((key, number))
        for upper in range(number):
            counts.setdefault(upper, _start(levels.get(upper)))
        counts[number] = counts.get(number, _start(levels[number]) - 1) + 1
        for deeper in [level for level in counts if level > number]:
            del counts[deeper]
        is_bullet = value_in(levels[number], "numFmt") in {"bullet", "none"}
        return "" if is_bullet else _written(number, levels, counts)

    def _properties(
        self, paragraph: etree._Element, name: str
    ) -> Iterator[etree._Element]:
        """Yield a property of a paragraph, its own before its styles'."""
        properties = paragraph.find(f"{W}pPr")
        style = value_in(properties, "pStyle") or self.usual
        holders = (based.find(f"{W}pPr") for based in self.chain(style))
        for holder in (properties, *holders):
            if (
                holder is not None
                and (element := holder.find(f"{W}{name}")) is not None
            ):
                yield element


def _written(
    number: int, levels: dict[int, etree._Element], counts: dict[int, int]
) -> str:
    all_digits = levels[number].find(f"{W}isLgl") is not None

    def shown(match: re.Match[str]) -> str:
        level = int(match[1]) - 1
        form = "" if all_digits else value_in(levels.get(level), "numFmt")
        count = counts.get(level, 1)
        return (
            f"{count:02d}"
            if form == "decimalZero"
            else numeral(count, _NUMERALS.get(form, "1"))
        )

    return re.sub(r"%([1-9])", shown, value_in(levels[number], "lvlText")).strip()


def _start(level: etree._Element | None) -> int:
    return whole_number(value_in(level, "start"), 1, digits=5)


def _starts(element: etree._Element) -> dict[int, int]:
    """Return the numbers with which a list begins instead, malformed ones left out."""
    return {
        _level_of(level): int(start)
        for level in element.iterchildren(f"{W}lvlOverride")
        if (start := value_in(level, "startOverride")).isdecimal() and len(start) < 6
    }


def _level_of(element: etree._Element) -> int:
    return whole_number(element.get(f"{W}ilvl", ""), digits=2)


def value_of(element: etree._Element | None) -> str:
    """Return the value of a property, empty where it has none or is missing."""
    return element.get(f"{W}val", "") if element is not None else ""


def value_in(holder: etree._Element | None, name: str) -> str:
    """Return the value of a property by its name among others, empty where it has none
    or is missing."""
    return value_of(holder.find(f"{W}{name}")) if holder is not None else ""
