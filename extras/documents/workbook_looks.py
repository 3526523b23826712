"""Which styles of a workbook's cells show nothing: type too small for any eye, or in the colour of
its ground.

Not for: formats of numbers (`number_format.py`), or hidden rows and columns (`workbook.py`).
"""

from collections.abc import Sequence
from typing import Final

from lxml import etree

from extras.documents.package import whole_number
from pipeline.document.converted import LEAST_SIZE
from pipeline.html.colours import WHITE, Rgb, is_faint, rgb_of

_BLACK: Final[Rgb] = (0.0, 0.0, 0.0)
_INDEXED: Final = {
    "0": _BLACK,
    "8": _BLACK,
    "64": _BLACK,
    "1": WHITE,
    "9": WHITE,
    "65": WHITE,
}
"""Of the palette of old the colours that say most; the last two are the system's."""
_THEMED: Final = {"0": WHITE, "1": _BLACK}
"""What nearly every theme has in these places."""
_UNFILLED: Final = frozenset({"none", ""})


class Unseen:
    """Numbers of styles whose cells show nothing, on any ground (`tiny`), or where nothing else
    fills it (`faint`)."""

    def __init__(self, styles: etree._Element | None = None) -> None:
        """Read the part of styles, if a workbook has one; without it nothing is taken
        for hidden."""
        self.tiny: frozenset[str] = frozenset()
        self.faint: frozenset[str] = frozenset()
        if styles is None:
            return
        fonts, fills = (
            list(styles.iterfind(f"{{*}}{name}"))
            for name in ("fonts/{*}font", "fills/{*}fill")
        )
        cells = styles.iterfind("{*}cellXfs/{*}xf")
        inks = [_colour(font.find("{*}color"), _BLACK) for font in fonts]
        grounds = [_ground(fill.find("{*}patternFill")) for fill in fills]
        tiny = {
            index
            for index, font in enumerate(fonts)
            if _points(font.find("{*}sz")) < LEAST_SIZE
        }
        own = [
            (_place(cell, "fontId", fonts), _place(cell, "fillId", fills))
            for cell in cells
        ]
        self.tiny = frozenset(
            str(number) for number, (font, _) in enumerate(own) if font in tiny
        )
        self.faint = frozenset(
            str(number)
            for number, (font, fill) in enumerate(own)
            if font >= 0
            and _is_unreadable(inks[font], grounds[fill] if fill >= 0 else WHITE)
        )


def _place(cell: etree._Element, name: str, among: Sequence[etree._Element]) -> int:
    number = whole_number(cell.get(name, ""), -1, digits=5)
    return number if number < len(among) else -1


def _is_unreadable(ink: Rgb | None, ground: Rgb | None) -> bool:
    return ink is not None and ground is not None and is_faint(ink, ground)


def _points(size: etree._Element | None) -> float:
    """Return the size of type, one that can be read where none is said."""
    if size is None:
        return LEAST_SIZE
    try:
        return float(size.get("val", ""))
    except ValueError:
        return LEAST_SIZE


def _ground(pattern: etree._Element | None) -> Rgb | None:
    """Return what fills a cell: white for none, None for a gradient or pattern that is
    not known."""
    if pattern is None:
        return None  # a gradient
    kind = pattern.get("patternType", "none")
    if kind in _UNFILLED:
        return WHITE
    return _colour(pattern.find("{*}fgColor"), None) if kind == "solid" else None


def _colour(said: etree._Element | None, usual: Rgb | None) -> Rgb | None:
    if said is None or said.get("auto") in {"1", "true"}:
        return usual
    digits, indexed, theme = (
        said.get(name, "") for name in ("rgb", "indexed", "theme")
    )
    if digits:
        return rgb_of(f"#{digits[-6:]}")
    plain = _INDEXED.get(indexed) if indexed else _THEMED.get(theme)
    if plain is None:
        return None
    try:
        tint = float(said.get("tint", "0"))
    except ValueError:
        return None
    red, green, blue = (
        part * (1 + tint) if tint < 0 else part + (1 - part) * tint for part in plain
    )
    return red, green, blue
