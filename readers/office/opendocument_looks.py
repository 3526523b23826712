"""Which text of an OpenDocument file is not seen: not displayed, tiny, squeezed, clear,
or in the colour of its ground.

A style's properties are its own, then its parent's (ODF 1.3 part 3, 16.2). A ground
that cannot be known (a slide's, a drawn shape's) hides nothing. Not for: the text
itself (`opendocument.py`)."""

import re
from typing import Final

from lxml import etree

from readers.converted import LEAST_SIZE, shows_hidden
from readers.html.colours import WHITE, Rgb, is_faint, rgb_of
from readers.html.rules import PIXELS, length
from readers.office.package import LEAST_WIDTH, MOST_BASED, all_of

TEXT, TABLES, DRAW, STYLE, SHOW, _FO = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in (
        *("text", "table", "drawing", "style", "presentation", "xsl-fo-compatible"),
    )
)
_LO: Final = "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}"
_DRAWN_ELEMENTS: Final = frozenset(
    f"{DRAW}{name}"
    for name in ("page", "frame", "custom-shape", "rect", "ellipse", "g")
)
_HIDING: Final = {
    (f"{TEXT}display", "none"),
    (f"{TABLES}display", "false"),
    (f"{SHOW}visibility", "hidden"),
}
"""What in a style hides text, a sheet or a slide."""


class Looks:
    """What a file's styles say of how text looks."""

    def __init__(self, *trees: etree._Element | None) -> None:
        """Take the styles of some parts of the file, of like names the last."""
        self.styles = {
            style.get(f"{STYLE}name", ""): style
            for tree in trees
            for style in all_of(tree, f"{STYLE}style")
        }
        self._unseen: dict[str, bool] = {}
        """Whether a style hides on any ground."""

    def hides(self, element: etree._Element) -> bool:
        """Whether the style of an element says that it is not displayed."""
        style = self.styles.get(_style_of(element))
        return style is not None and any(
            (key, value) in _HIDING
            for properties in style.iterchildren(tag=etree.Element)
            for key, value in properties.items()
        )

    def is_unseen(self, element: etree._Element, *, parent: bool) -> bool:
        """Return whether an element's direct text is hidden; `parent`: whether its
        parent's is. An element without a style or a colour is as its parent."""
        name = _style_of(element)
        if not name or shows_hidden():
            return parent
        if name not in self._unseen:
            self._unseen[name] = self._is_gone(name)
        ink = self._colour(name, f"{_FO}color")
        if self._unseen[name] or ink is None:
            return self._unseen[name] or parent
        ground = self._ground(element)
        return ground is not None and is_faint(ink, ground)

    def _is_gone(self, name: str) -> bool:
        size = length(self.value(name, f"{_FO}font-size"), percent=LEAST_SIZE * 10)
        width = _per_cent(self.value(name, f"{STYLE}text-scale"))
        solid = _per_cent(self.value(name, f"{_LO}opacity"))
        # LibreOffice writes 0 % beside the usual colour, too, which it draws.
        inked = self.value(name, f"{_FO}color") != ""
        tiny = size is not None and size < LEAST_SIZE * PIXELS["pt"]
        return tiny or width < LEAST_WIDTH or (inked and solid < LEAST_WIDTH / 2)

    def value(self, name: str, attribute: str) -> str:
        """Return what a style, or the nearest of its parents, says; "" where none does
        within `MOST_BASED` styles."""
        for _ in range(MOST_BASED):
            style = self.styles.get(name)
            if style is None:
                break
            for properties in style.iterchildren(tag=etree.Element):
                if value := properties.get(attribute):
                    return str(value)
            name = style.get(f"{STYLE}parent-style-name", "")
        return ""

    def _colour(self, name: str, attribute: str) -> Rgb | None:
        value = self.value(name, attribute)
        return None if value in {"", "transparent"} else rgb_of(value)

    def _ground(self, element: etree._Element) -> Rgb | None:
        """Return the background colour of an element's text: white where none is named,
        None over a drawing."""
        for holder in (element, *element.iterancestors()):
            if holder.tag in _DRAWN_ELEMENTS:
                return None
            ground = self._colour(_style_of(holder), f"{_FO}background-color")
            if ground is not None:
                return ground
        return WHITE


def _style_of(element: etree._Element) -> str:
    names = (element.get(f"{space}style-name") for space in (TEXT, TABLES, DRAW))
    return next(filter(None, names), "")


def _per_cent(value: str) -> float:
    number = re.match(r"\d{1,4}(?:\.\d+)?(?=%)", value)
    return float(number[0]) if number else 100.0
