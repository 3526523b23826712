"""Which text of a Word file is not seen: runs that vanish, are tiny, squeezed, or have
the colour of their ground.

A run's own properties, its styles', then the file's defaults decide (ECMA-376 part 1,
17.7.2). A ground that cannot be known (a table's style, a drawn shape) hides nothing.
Not for: the text itself (`docx.py`)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lxml import etree

from pipeline.document.converted import LEAST_SIZE
from pipeline.html.colours import WHITE, Rgb, is_faint, rgb_of

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
RUN_TAG: Final = f"{W}r"
_DRAWINGS: Final = frozenset({f"{W}txbxContent", f"{W}pict", f"{W}drawing"})
_SWITCHED_ON: Final = frozenset({"1", "true", "on"})
_NOTHING: Final = etree.Element("none")
LEAST_WIDTH: Final = 10
"""Per cent of its usual width below which type cannot be read; condensed type has
80."""
_OFF_PAGE_HALF_POINTS: Final = 1_000
"""Half points above or below the line beyond which text leaves its page; raised text
has up to 24."""
_WORD_PER_CENT: Final = re.compile(r"(\d{1,4})%?")
_THEME_NAMES: Final = {
    "background1": "lt1",
    "text1": "dk1",
    "background2": "lt2",
    "text2": "dk2",
}
"""Names in properties of what a theme calls otherwise; the settings of a file may
change them, which is rare."""
_HEX: Final = re.compile(r"[0-9A-Fa-f]{1,2}")
_USUAL_THEME: Final[Mapping[str, str]] = {"lt1": "ffffff", "dk1": "000000"}


class _Look(NamedTuple):
    """How runs with the same properties look."""

    said: list[etree._Element]
    gone: bool
    """Whether they are not seen on any ground."""
    ink: Rgb | None
    """None where that is the usual one."""


@dataclass(slots=True)
class Seen:
    """What a file's styles say, and how many words were taken out."""

    styles: dict[str, etree._Element] = field(default_factory=dict)
    default: etree._Element = field(default_factory=lambda: _NOTHING)
    """The `w:rPr` that holds where nothing else does."""
    first: str = ""
    """Id of the style of paragraphs that name none."""
    ground: Rgb | None = WHITE
    theme: Mapping[str, str] = field(default_factory=lambda: _USUAL_THEME)
    """Colours by the theme's names, six hex digits each."""
    words: int = 0
    _looks: "dict[tuple[bytes, str], _Look]" = field(default_factory=dict)
    """By the properties that a run has of its own, and the style of its paragraph."""

    def drop_unseen(self, part: etree._Element) -> None:
        """Empty the runs of a part of the file that no reader sees, in place; their
        words are counted in `words`."""
        for run in list(part.iter(RUN_TAG)):
            texts = [
                text
                for text in run.iterchildren(f"{W}t")
                if text.text and text.text.strip()
            ]
            if texts and self._is_unseen(run):
                self.words += sum(len((text.text or "").split()) for text in texts)
                for text in texts:
                    text.text = ""

    def _is_unseen(self, run: etree._Element) -> bool:
        paragraph = next(run.iterancestors(f"{W}p"), _NOTHING)
        own = run.find(f"{W}rPr")
        name = value_in(paragraph.find(f"{W}pPr"), "pStyle") or self.first
        key = (etree.tostring(own) if own is not None else b"", name)
        look = self._looks.get(key)
        if look is None:
            # What counts most first.
            said = (
                [own, *self._of_style(value_in(own, "rStyle"))]
                if own is not None
                else []
            )
            look = self._looks[key] = self._look(
                [*said, *self._of_style(name), self.default]
            )
        if look.ink is None:
            return look.gone
        ground = self._ground(look.said, paragraph)
        return ground is not None and is_faint(look.ink, ground)

    def _look(self, said: list[etree._Element]) -> "_Look":
        gone, inked = _is_gone(said), _first(said, f"{W}color")
        usual = gone or inked is None
        ink = None if usual else self._colour(inked, "val", "themeColor")
        return _Look(said, gone, ink)

    def _colour(self, element: etree._Element, value: str, theme: str) -> Rgb | None:
        """Return a colour by the theme's name for it, else by its value; None for the
        usual one.

        `value` and `theme` name the attributes, such as `fill` and `themeFill`.
        """
        named = element.get(f"{W}{theme}", "")
        digits = self.theme.get(_THEME_NAMES.get(named, named), "")
        plain = rgb_of(f"#{digits or element.get(f'{W}{value}') or 'auto'}")
        if plain is None or not digits:
            return plain
        stem = theme.removesuffix("Color")
        tint, shade = (
            element.get(f"{W}{stem}{name}", "") for name in ("Tint", "Shade")
        )
        light, dark = (
            int(one, 16) / 255 if _HEX.fullmatch(one) else 1.0 for one in (tint, shade)
        )
        red, green, blue = (1 - light * (1 - part * dark) for part in plain)
        return red, green, blue

    def _of_style(
        self, name: str, properties_of: str = "rPr"
    ) -> Iterator[etree._Element]:
        for _ in range(len(self.styles)):
            style = self.styles.get(name)
            if style is None:
                return
            properties = style.find(f"{W}{properties_of}")
            if properties is not None:
                yield properties
            name = value_in(style, "basedOn")

    def _ground(
        self, said: list[etree._Element], paragraph: etree._Element
    ) -> Rgb | None:
        """Return the background color of a run; None if unknown."""
        cell = next(paragraph.iterancestors(f"{W}tc"), None)
        own = paragraph.find(f"{W}pPr")
        of_style = self._of_style(value_in(own, "pStyle") or self.first, "pPr")
        shades = [
            *said,
            own,
            *of_style,
            cell.find(f"{W}tcPr") if cell is not None else None,
        ]
        for holder in shades:
            lit = value_in(holder, "highlight")
            if lit and lit != "none":
                return rgb_of(lit)
            shade = holder.find(f"{W}shd") if holder is not None else None
            ground = (
                self._colour(shade, "fill", "themeFill") if shade is not None else None
            )
            if ground is not None:
                return ground
        return self._page_ground(paragraph)

    def _page_ground(self, paragraph: etree._Element) -> Rgb | None:
        """Return the background color of a paragraph without one of its own; None in a
        drawing, and in a table whose style may have one."""
        if next(paragraph.iterancestors(*_DRAWINGS), None) is not None:
            return None
        table = next(paragraph.iterancestors(f"{W}tbl"), None)
        about = table.find(f"{W}tblPr") if table is not None else _NOTHING
        return None if about is None or value_in(about, "tblStyle") else self.ground


def read_looks(
    styles: etree._Element | None, theme: etree._Element | None = None
) -> Seen:
    """Return what a file's styles and theme say of how text looks; for a missing part
    the usual ones."""
    colours = _theme(theme) if theme is not None else _USUAL_THEME
    if styles is None:
        return Seen(theme=colours)
    named = {style.get(f"{W}styleId", ""): style for style in styles.iter(f"{W}style")}
    usual = styles.find(f"{W}style[@{W}type='paragraph'][@{W}default='1']")
    first = usual.get(f"{W}styleId", "") if usual is not None else ""
    default = styles.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr")
    return Seen(
        named, default if default is not None else _NOTHING, first, theme=colours
    )


def _theme(theme: etree._Element) -> Mapping[str, str]:
    """Return a theme's colours by name, the usual one for each that is missing or
    malformed."""
    found = dict(_USUAL_THEME)
    for scheme in theme.iter("{*}clrScheme"):
        for named in scheme.iterchildren(tag=etree.Element):
            inner = next(named.iterchildren("{*}srgbClr", "{*}sysClr"), None)
            digits = (
                (inner.get("lastClr") or inner.get("val") or "")
                if inner is not None
                else ""
            )
            if re.fullmatch(r"[0-9A-Fa-f]{6}", digits):
                found[etree.QName(named).localname] = digits
    return found


def _is_gone(said: list[etree._Element]) -> bool:
    """Whether runs with some properties are not seen on any ground."""
    size, width, raised = (_value(said, name) for name in ("sz", "w", "position"))
    small = size.isdigit() and int(size) < 2 * LEAST_SIZE  # in half points
    narrow = _WORD_PER_CENT.fullmatch(width)
    squeezed = narrow is not None and int(narrow[1]) < LEAST_WIDTH
    away = raised.lstrip("-").isdigit() and abs(int(raised)) > _OFF_PAGE_HALF_POINTS
    filled = _first(said, "{*}textFill")
    hollow = filled is not None and filled.find("{*}noFill") is not None
    vanished = {_value(said, name) for name in ("vanish", "specVanish")} & _SWITCHED_ON
    return small or squeezed or away or hollow or bool(vanished)


def _first(said: list[etree._Element], tag: str) -> etree._Element | None:
    """Return a property where it is said first."""
    found = (properties.find(tag) for properties in said)
    return next((one for one in found if one is not None), None)


def _value(said: list[etree._Element], name: str) -> str:
    """Return the first value of a property, `1` for one that is switched on without a
    value; "" where none names it."""
    found = _first(said, f"{W}{name}")
    return "" if found is None else found.get(f"{W}val") or "1"


def value_of(element: etree._Element | None) -> str:
    """Return the value of a property, empty where it has none or is missing."""
    return element.get(f"{W}val", "") if element is not None else ""


def value_in(holder: etree._Element | None, name: str) -> str:
    """Return the value of a property by its name among others, empty where it has none
    or is missing."""
    return value_of(holder.find(f"{W}{name}")) if holder is not None else ""
