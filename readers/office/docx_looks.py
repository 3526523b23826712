"""Which text of a Word file is not seen: runs that vanish, are tiny, squeezed, or have
the colour of their ground.

A run's own properties, its styles', then the file's defaults decide (ECMA-376 part 1,
17.7.2). A ground that cannot be known (a table's style, a drawn shape) hides nothing.
Not for: the text itself (`docx.py`)."""

from typing import Final, NamedTuple

from lxml import etree

from readers.converted import LEAST_SIZE, shows_hidden
from readers.html.colours import WHITE, Rgb, is_faint, rgb_of
from readers.office.docx_styles import Styles, W, value_in
from readers.office.package import LEAST_WIDTH, ON, all_of

_DRAWINGS: Final = (f"{W}txbxContent", f"{W}pict", f"{W}drawing")
_OFF_PAGE_HALF_POINTS: Final = 1_000
"""Half points above or below the line beyond which text leaves its page; raised text
has up to 24."""
_THEMED: Final = {
    **dict.fromkeys(("background1", "light1"), "ffffff"),
    **dict.fromkeys(("text1", "dark1"), "000000"),
}
"""What nearly every theme has in these places, whatever the value beside says."""


class _Look(NamedTuple):
    properties: list[etree._Element]
    """What counts most first."""
    is_gone: bool
    """Whether they are not seen on any ground."""
    ink: Rgb | None
    """None where that is the usual one."""


class Seen:
    """What a file's styles say of how text looks, and how many words were taken out."""

    def __init__(self, styles: Styles, root: etree._Element | None) -> None:
        """Take styles, and the part that they are from, for the file's defaults."""
        self.styles = styles
        defaults = all_of(root, f"{W}rPrDefault")
        self._default = [
            properties
            for holder in defaults
            for properties in holder.iterchildren(f"{W}rPr")
        ]
        self.words = 0
        self._looks: dict[tuple[bytes, str], _Look] = {}
        """By the properties that a run has of its own, and the style of its paragraph."""

    def without_unseen(self, root: etree._Element) -> etree._Element:
        """Return a part of the file, the runs that no reader sees emptied in place; their
        words are counted in `words`."""
        for run in list(root.iter(f"{W}r")):
            texts = [text for text in run.iterchildren(f"{W}t") if text.text]
            words = sum(len(text.text.split()) for text in texts)
            if words and not shows_hidden() and self._is_unseen(run):
                self.words += words
                for text in texts:
                    text.text = ""
        return root

    def _is_unseen(self, run: etree._Element) -> bool:
        paragraph = next(run.iterancestors(f"{W}p"), run)
        properties = run.find(f"{W}rPr")
        style = value_in(paragraph.find(f"{W}pPr"), "pStyle") or self.styles.usual
        key = (etree.tostring(properties) if properties is not None else b"", style)
        if key not in self._looks:
            self._looks[key] = self._look(properties, style)
        look = self._looks[key]
        if look.ink is None:
            return look.is_gone
        ground = self._ground(look, paragraph, style)
        return ground is not None and is_faint(look.ink, ground)

    def _look(self, properties: etree._Element | None, style: str) -> _Look:
        letters = value_in(properties, "rStyle")
        based = [*self.styles.chain(letters), *self.styles.chain(style)]
        holders = [
            properties,
            *(element.find(f"{W}rPr") for element in based),
            *self._default,
        ]
        present = [holder for holder in holders if holder is not None]
        is_gone, inked = _is_gone(present), _first(present, f"{W}color")
        ink = None if is_gone or inked is None else _colour(inked, "val", "theme")
        return _Look(present, is_gone, ink)

    def _ground(self, look: _Look, paragraph: etree._Element, style: str) -> Rgb | None:
        """Return the background color of a run, white where none is said; None in a
        drawing, and in a table whose style may have one."""
        cell = next(paragraph.iterancestors(f"{W}tc"), None)
        holders = [
            *look.properties,
            paragraph.find(f"{W}pPr"),
            *(based.find(f"{W}pPr") for based in self.styles.chain(style)),
            cell.find(f"{W}tcPr") if cell is not None else None,
        ]
        for holder in holders:
            lit = value_in(holder, "highlight")
            if lit and lit != "none":
                return rgb_of(lit)
            shade = holder.find(f"{W}shd") if holder is not None else None
            ground = _colour(shade, "fill", "themeFill") if shade is not None else None
            if ground is not None:
                return ground
        table = next(paragraph.iterancestors(f"{W}tbl"), None)
        about = table.find(f"{W}tblPr") if table is not None else None
        is_drawn = next(paragraph.iterancestors(*_DRAWINGS), None) is not None
        return None if is_drawn or value_in(about, "tblStyle") else WHITE


def _colour(element: etree._Element, value: str, theme: str) -> Rgb | None:
    """Return a colour by the theme's name for it, else by its value, which is the theme's
    colour as it is tinted; None for the usual one.

    `value` and `theme` name the attributes, such as `fill` and `themeFill`."""
    is_tinted = any(element.get(f"{W}{theme}{name}") for name in ("Tint", "Shade"))
    theme_name = element.get(f"{W}{theme}") or element.get(f"{W}{theme}Color", "")
    themed = None if is_tinted else _THEMED.get(theme_name)
    return rgb_of(f"#{themed or element.get(f'{W}{value}') or 'auto'}")


def _is_gone(properties: list[etree._Element]) -> bool:
    """Whether runs with some properties are not seen on any ground."""
    size, width, raised = (
        _number(properties, name) for name in ("sz", "w", "position")
    )
    small = size is not None and size < 2 * LEAST_SIZE  # in half points
    squeezed = width is not None and width < LEAST_WIDTH
    off_page = raised is not None and abs(raised) > _OFF_PAGE_HALF_POINTS
    fill = _first(properties, "{*}textFill")
    hollow = fill is not None and fill.find("{*}noFill") is not None
    vanished = {_value(properties, name) for name in ("vanish", "specVanish")} & ON
    return small or squeezed or off_page or hollow or bool(vanished)


def _first(properties: list[etree._Element], tag: str) -> etree._Element | None:
    """Return a property where it is said first."""
    present = (holder.find(tag) for holder in properties)
    return next((element for element in present if element is not None), None)


def _value(properties: list[etree._Element], name: str) -> str:
    """Return the first value of a property, `1` for one that is switched on without a
    value; "" where none names it."""
    element = _first(properties, f"{W}{name}")
    return "" if element is None else element.get(f"{W}val") or "1"


def _number(properties: list[etree._Element], name: str) -> int | None:
    value = _value(properties, name).removesuffix("%")
    return int(value) if value.lstrip("-").isdecimal() and len(value) < 9 else None
