"""Which text of an OpenDocument file is not seen: not displayed, tiny, squeezed, clear,
or in the colour of its ground.

A style's properties are its own, then its parent's (ODF 1.3 part 3, 16.2). A ground
that cannot be known (a slide's, a drawn shape's) hides nothing. Not for: the text
itself (`opendocument.py`)."""

import re
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

from extras.documents.docx_looks import LEAST_WIDTH
from pipeline.document.converted import LEAST_SIZE
from pipeline.html.colours import WHITE, Rgb, is_faint, rgb_of
from pipeline.html.rules import length

_TEXT, _TABLES, _DRAW, _STYLE, _FO = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("text", "table", "drawing", "style", "xsl-fo-compatible")
)
_LO: Final = "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}"
_TEXT_PROPERTIES: Final = f"{_STYLE}text-properties"
_CHAIN: Final = 20
"""Styles in a chain of parents."""
_DRAWN_ELEMENTS: Final = frozenset(
    f"{_DRAW}{name}"
    for name in ("page", "frame", "custom-shape", "rect", "ellipse", "g")
)
_STYLE_ATTRIBUTES: Final = (f"{_TEXT}style-name", f"{_TABLES}style-name")
_ODF_PER_CENT: Final = re.compile(r"(\d{1,4}(?:\.\d+)?)%")
_POINTS: Final = 1.3
"""Pixels of a point, as `length` counts them."""


@dataclass(slots=True)
class Looks:
    """What a file's styles say of how text looks."""

    styles: dict[str, etree._Element] = field(default_factory=dict)
    words: int = 0
    """Words that were left out since no reader sees them."""
    _known: dict[str, bool | None] = field(default_factory=dict)

    def add(self, tree: etree._Element) -> None:
        """Take the styles of a part of the file."""
        for style in tree.iter(f"{_STYLE}style"):
            self.styles[style.get(f"{_STYLE}name", "")] = style

    def is_unseen(self, element: etree._Element, *, above: bool) -> bool:
        """Return whether an element's direct text is hidden; `above`: whether its
        parent is.

        An element without a style is as its parent."""
        name = next(filter(None, map(element.get, _STYLE_ATTRIBUTES)), "")
        if not name:
            return above
        if name not in self._known:
            self._known[name] = self._alone(name)
        alone = self._known[name]
        if alone is not None:
            return alone
        ink = self._colour(name, _TEXT_PROPERTIES, f"{_FO}color")
        if ink is None:
            return above
        ground = self._ground(element)
        return ground is not None and is_faint(ink, ground)

    def _alone(self, name: str) -> bool | None:
        """Return True for a style that hides on any ground, False for one that says
        nothing, else None."""
        size = length(
            self._said(name, _TEXT_PROPERTIES, f"{_FO}font-size"),
            percent=float(LEAST_SIZE * 10),
        )
        width = _ODF_PER_CENT.fullmatch(
            self._said(name, _TEXT_PROPERTIES, f"{_STYLE}text-scale")
        )
        solid = _ODF_PER_CENT.fullmatch(
            self._said(name, _TEXT_PROPERTIES, f"{_LO}opacity")
        )
        tiny = size is not None and size < LEAST_SIZE * _POINTS
        squeezed = width is not None and float(width[1]) < LEAST_WIDTH
        # LibreOffice writes 0 % beside the usual colour, too, which it draws.
        inked = self._said(name, _TEXT_PROPERTIES, f"{_FO}color") != ""
        clear = inked and solid is not None and float(solid[1]) < LEAST_WIDTH / 2
        return True if tiny or squeezed or clear else None

    def _said(self, name: str, holder: str, attribute: str) -> str:
        """Return what a style, or the nearest of its parents, says; "" where none does
        within `_CHAIN` styles."""
        for _ in range(_CHAIN):
            style = self.styles.get(name)
            if style is None:
                break
            for one in style.iterchildren(holder):
                if said := one.get(attribute):
                    return str(said)
            name = style.get(f"{_STYLE}parent-style-name", "")
        return ""

    def _colour(self, name: str, holder: str, attribute: str) -> Rgb | None:
        said = self._said(name, holder, attribute)
        return None if said in {"", "transparent"} else rgb_of(said)

    def _ground(self, element: etree._Element) -> Rgb | None:
        """Return the background colour of an element's text: white where none is named,
        None over a drawing."""
        for one in (element, *element.iterancestors()):
            if one.tag in _DRAWN_ELEMENTS:
                return None
            for name in filter(None, map(one.get, _STYLE_ATTRIBUTES)):
                for kind in (
                    "text",
                    "paragraph",
                    "table-cell",
                    "table-row",
                    "table",
                    "section",
                ):
                    ground = self._colour(
                        name, f"{_STYLE}{kind}-properties", f"{_FO}background-color"
                    )
                    if ground is not None:
                        return ground
        return WHITE
