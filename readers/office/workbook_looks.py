"""Which styles of a workbook's cells show nothing: type too small for any eye, or in the colour of
its ground.

Not for: formats of numbers (`number_format.py`), or hidden rows and columns (`workbook.py`).
"""

from typing import Final

from lxml import etree

from readers.converted import LEAST_SIZE
from readers.html.colours import WHITE, Rgb, is_faint, rgb_of
from readers.office.package import whole_number

_BLACK: Final[Rgb] = (0.0, 0.0, 0.0)
_NAMED: Final = {
    **dict.fromkeys(
        ("theme 1", "indexed 0", "indexed 8", "indexed 64", "auto 1"), _BLACK
    ),
    **dict.fromkeys(("theme 0", "indexed 1", "indexed 9", "indexed 65"), WHITE),
}
"""Colours that nearly every theme has, and those of the palette of old that say most."""


def unseen_styles(styles: etree._Element | None, *, is_filled: bool) -> frozenset[str]:
    """Return the numbers of styles whose cells show nothing; where something else may fill
    the cells (`is_filled`), whatever their colour, none without a part of styles."""
    if styles is None:
        return frozenset()
    fonts, fills = (
        list(styles.iterfind(path)) for path in ("{*}fonts/*", "{*}fills/*")
    )
    unseen = set[str]()
    for number, cell in enumerate(styles.iterfind("{*}cellXfs/{*}xf")):
        font, fill = _nth(fonts, cell, "fontId"), _nth(fills, cell, "fillId")
        if font is None:
            continue
        ink, ground = _colour(font.find("{*}color")), _ground(fill)
        is_pale = ink is not None and ground is not None and is_faint(ink, ground)
        if _points(font.find("{*}sz")) < LEAST_SIZE or (is_pale and not is_filled):
            unseen.add(str(number))
    return frozenset(unseen)


def _nth(
    elements: list[etree._Element], cell: etree._Element, name: str
) -> etree._Element | None:
    number = whole_number(cell.get(name, ""), len(elements), digits=5)
    return elements[number] if number < len(elements) else None


def _points(size: etree._Element | None) -> float:
    """Return the size of type, one that can be read where none is said."""
    try:
        return float(size.get("val", "")) if size is not None else LEAST_SIZE
    except ValueError:
        return LEAST_SIZE


def _ground(fill: etree._Element | None) -> Rgb | None:
    """Return what fills a cell: white for none, None for a gradient or pattern that is
    not known."""
    if fill is None:
        return WHITE
    pattern = fill.find("{*}patternFill")
    kind = pattern.get("patternType", "none") if pattern is not None else "gradient"
    if kind in {"none", ""}:
        return WHITE
    colour = pattern.find("{*}fgColor") if kind == "solid" else None
    return _colour(colour) if colour is not None else None


def _colour(element: etree._Element | None) -> Rgb | None:
    """Return a colour, black where none is said; None for one that is tinted or not
    known."""
    if element is None:
        return _BLACK
    if digits := element.get("rgb"):
        return rgb_of(f"#{digits[-6:]}")
    names = (f"{key} {value}" for key, value in element.items() if key != "tint")
    is_tinted = element.get("tint", "0").strip("-0.") != ""
    return None if is_tinted else next(filter(None, map(_NAMED.get, names)), None)
