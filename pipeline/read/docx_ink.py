"""Which text of a Word file is seen: runs that vanish, are under two points, or have the colour of their ground.

A run's own properties, then those of its styles, then the file's defaults decide (ECMA-376 part 1, 17.7.2). A ground
that cannot be known (a table's style, a drawn shape) hides nothing. Not for: turning the file into HTML (`docx.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lxml import etree

from pipeline.html.colour import WHITE, Rgb, is_faint, rgb_of

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
RUN: Final = f"{W}r"
_SMALLEST: Final = 4
"""Half points of type that can be read; a footnote's mark has 12."""
_DRAWN: Final = frozenset({f"{W}txbxContent", f"{W}pict", f"{W}drawing"})
_ON: Final = frozenset({"1", "true", "on"})
_NOTHING: Final = etree.Element("none")


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
    words: int = 0
    _looks: "dict[tuple[bytes, str], _Look]" = field(default_factory=dict)
    """By the properties that a run has of its own, and the style of its paragraph."""

    def drop_unseen(self, part: etree._Element) -> None:
        """Empty the runs of a part of the file that nobody sees."""
        for run in list(part.iter(RUN)):
            texts = [text for text in run.iter(f"{W}t") if text.text and text.text.strip()]
            if texts and self._is_unseen(run):
                self.words += sum(len((text.text or "").split()) for text in texts)
                for text in texts:
                    text.text = ""

    def _is_unseen(self, run: etree._Element) -> bool:
        paragraph = next(run.iterancestors(f"{W}p"), _NOTHING)
        own, name = run.find(f"{W}rPr"), _said(paragraph.find(f"{W}pPr"), "pStyle") or self.first
        key = (etree.tostring(own) if own is not None else b"", name)
        look = self._looks.get(key)
        if look is None:
            look = self._looks[key] = self._look(list(self._properties(own, name)))
        if look.ink is None:
            return look.gone
        ground = self._ground(look.said, paragraph)
        return ground is not None and is_faint(look.ink, ground)

    def _look(self, said: list[etree._Element]) -> "_Look":
        size = _value(said, "sz") or ""
        small = size.isdigit() and int(size) < _SMALLEST
        gone = small or any(_value(said, name) in _ON for name in ("vanish", "specVanish"))
        return _Look(said, gone, None if gone else rgb_of(f"#{_value(said, 'color') or 'auto'}"))

    def _properties(self, own: etree._Element | None, style: str) -> Iterator[etree._Element]:
        """Yield what says how a run looks, what counts most first."""
        if own is not None:
            yield own
            yield from self._of_style(_said(own, "rStyle"))
        yield from self._of_style(style)
        yield self.default

    def _of_style(self, name: str) -> Iterator[etree._Element]:
        for _ in range(len(self.styles)):
            style = self.styles.get(name)
            if style is None:
                return
            properties = style.find(f"{W}rPr")
            if properties is not None:
                yield properties
            name = _said(style, "basedOn")

    def _ground(self, said: list[etree._Element], paragraph: etree._Element) -> Rgb | None:
        """Return the colour behind a run, None where it cannot be known."""
        cell = next(paragraph.iterancestors(f"{W}tc"), None)
        shades = [*said, paragraph.find(f"{W}pPr"), cell.find(f"{W}tcPr") if cell is not None else None]
        for holder in shades:
            lit = _said(holder, "highlight")
            if lit and lit != "none":
                return rgb_of(lit)
            fill = _said(holder, "shd", "fill")
            if fill and fill != "auto":
                return rgb_of(f"#{fill}")
        table = next(paragraph.iterancestors(f"{W}tbl"), None)
        if table is not None and (table.find(f"{W}tblPr") is None or _said(table.find(f"{W}tblPr"), "tblStyle")):
            return None
        return None if any(above.tag in _DRAWN for above in paragraph.iterancestors()) else self.ground


def read_styles(styles: etree._Element | None) -> Seen:
    """Return what the part `word/styles.xml` says of how text looks."""
    if styles is None:
        return Seen()
    named = {style.get(f"{W}styleId", ""): style for style in styles.iter(f"{W}style")}
    usual = styles.find(f"{W}style[@{W}type='paragraph'][@{W}default='1']")
    first = usual.get(f"{W}styleId", "") if usual is not None else ""
    default = styles.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr")
    return Seen(named, default if default is not None else _NOTHING, first)


def _value(said: list[etree._Element], name: str) -> str | None:
    """Return the first value of a property, `1` for one that is switched on without a value."""
    for properties in said:
        found = properties.find(f"{W}{name}")
        if found is not None:
            return found.get(f"{W}val") or "1"
    return None


def _said(holder: etree._Element | None, name: str, attribute: str = "val") -> str:
    found = holder.find(f"{W}{name}") if holder is not None else None
    return found.get(f"{W}{attribute}", "") if found is not None else ""
