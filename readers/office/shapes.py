"""What Office files draw: charts as tables of their cached figures, the texts of diagrams
(SmartArt).

Not for: pictures, or where on a slide a drawing is (`slides.py`); charts of the kinds that
Office 2016 brought, which are counted as unread.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Final

from lxml import etree

from readers.converted import escape, html_table
from readers.html.values import DESCRIBED_WORDS
from readers.ledger import Ledger
from readers.office.equations import EQUATION, equation_text
from readers.office.number_format import without_noise
from readers.office.package import Package, whole_number
from readers.tree import count_words

A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MC: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
ALTERNATIVES, CHOICE, FALLBACK = (
    f"{_MC}{name}" for name in ("AlternateContent", "Choice", "Fallback")
)
RAISED: Final = re.compile(r"[-+−]?\d{1,4}")
"""What is a power where it is raised."""
RELATION: Final = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
)
LARGE_IMAGE: Final = 15 * 360_000**2
"""Square EMU, 15 cm²: a picture of less is a logo or an icon."""
MOST_POINTS: Final = 20_000
"""Figures of one chart that are read."""


def drawn(
    element: etree._Element,
    package: Package,
    links: Mapping[str, tuple[str, str]],
    ledger: Ledger,
) -> Iterator[str]:
    """Yield the charts and diagrams to which an element refers by `links`; in the ledger
    those that are missing or empty are unread."""
    for chart in element.iter("{*}chart"):
        ledger.hold("chart")
        name = links.get(chart.get(f"{RELATION}id", ""), ("", ""))[1]
        root = package.tree(name)
        if root is not None and (table := chart_to_html(root)):
            ledger.give("chart")
            yield table
    for diagram in element.iter("{*}relIds"):
        ledger.hold("diagram")
        name = links.get(diagram.get(f"{RELATION}dm", ""), ("", ""))[1]
        root = package.tree(name)
        points = root.iter("{*}pt") if root is not None else ()
        if items := "".join(
            f"<li>{escape(text)}</li>" for text in map(words_of, points) if text
        ):
            ledger.give("diagram")
            yield f"<ul>{items}</ul>"


def chart_to_html(chart: etree._Element) -> str:
    """Return a chart as a table: a row for each category, a column for each series;
    without figures its titles alone, empty without either, and for one of a later kind.

    Categories beyond `MOST_POINTS` values are dropped."""
    if chart.find("{*}chartData") is not None:
        return ""
    series = list(chart.iter("{*}ser"))
    values = [_points(element, "val", "yVal") for element in series]
    category_points = (_points(element, "cat", "xVal") for element in series)
    categories = next(filter(None, category_points), {})
    places = sorted({*categories, *(index for column in values for index in column)})
    rows = [
        [
            categories.get(index, str(index + 1)),
            *(column.get(index, "") for column in values),
        ]
        for index in places[: MOST_POINTS // max(1, len(series))]
    ]
    titles = escape(" · ".join(filter(None, map(words_of, chart.iter("{*}title")))))
    if not rows:
        return f"<p>{titles}</p>" if titles else ""
    names = [
        " ".join(_points(element, "tx").values()) or f"series {number}"
        for number, element in enumerate(series, start=1)
    ]
    caption = f"<caption>{titles}</caption>" if titles else ""
    return html_table([["", *names], *rows], header=True, caption=caption)


def _points(series: etree._Element, *names: str) -> dict[int, str]:
    """Return the cached values of a part of a series by their place, or its one value."""
    points: dict[int, str] = {}
    for holder in series.iterchildren(*(f"{{*}}{name}" for name in names)):
        for number, point in enumerate(holder.iter("{*}pt")):
            values = point.iterchildren("{*}v")
            text = " ".join(
                without_noise("".join(value.itertext())) for value in values
            )
            key = whole_number(point.get("idx", ""), number, digits=7)
            # Levels of categories follow each other, the innermost first.
            points[key] = f"{text} {points[key]}" if key in points else text
        if not points:
            text = "".join(value.text or "" for value in holder.iterchildren("{*}v"))
            points |= {0: text} if text else {}
    return points


def words_of(element: etree._Element) -> str:
    """Return the text of an element of DrawingML on one line."""
    return " ".join(filter(None, texts_of(element)))


def texts_of(element: etree._Element) -> list[str]:
    """Return the paragraphs of DrawingML in an element, each on one line."""
    paragraphs = element.iter(f"{A}p")
    return [" ".join(_inline(paragraph).split()) for paragraph in paragraphs]


def _inline(element: etree._Element) -> str:
    """Return the text of an element within a paragraph, raised digits and equations on
    the line."""
    tag = element.tag
    if tag == f"{A}t":
        return element.text or ""
    if tag == f"{A}br":
        return " "
    if tag == EQUATION:
        return f" {equation_text(element)} "
    text = "".join(map(_inline, chosen(element)))
    about = element.find(f"{A}rPr") if tag == f"{A}r" else None
    baseline = about.get("baseline", "0") if about is not None else "0"
    is_raised = baseline.isdecimal() and int(baseline) > 0
    return f"^{text}" if is_raised and RAISED.fullmatch(text) else text


def chosen(element: etree._Element) -> Iterator[etree._Element]:
    """Yield the elements inside of one; of alternatives those of the first choice that
    holds something, else of the fallback, if there is one."""
    for child in element.iterchildren(tag=etree.Element):
        if child.tag == ALTERNATIVES:
            yield from alternative(child)
        else:
            yield child


def alternative(element: etree._Element) -> list[etree._Element]:
    """Return what is read of alternatives."""
    choice, fallback = element.find(CHOICE), element.find(FALLBACK)
    if choice is not None and len(choice):
        return list(choice)
    return list(fallback) if fallback is not None else []


def picture(
    shape: etree._Element, about: etree._Element | None, area: float, ledger: Ledger
) -> str:
    """Return what an author says that a shape shows; "" where nothing is, or a word that
    describes nothing: then a picture of some `area` (square EMU) that is not marked as
    decorative counts as unread."""
    alt = "" if about is None else " ".join((about.get("descr") or "").split())
    if about is not None and count_words(alt) >= DESCRIBED_WORDS:
        return f'<img alt="{html.escape(alt)}">'
    marks = () if about is None else about.iter("{*}decorative")
    is_decorative = any(flag.get("val") in {"1", "true"} for flag in marks)
    has_picture = next(shape.iter("{*}blip", "{*}blipFill", "{*}pic"), None) is not None
    ledger.hold("image", has_picture and area >= LARGE_IMAGE and not is_decorative)
    return ""
