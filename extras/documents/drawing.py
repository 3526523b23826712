"""What Office files draw: charts as tables of their cached figures, the texts of diagrams
(SmartArt).

Not for: pictures, or where on a slide a drawing is (`slides.py`).
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Final

from lxml import etree

from extras.documents.equations import EQUATION, equation_text
from extras.documents.package import Package, whole_number
from pipeline.document.converted import escape, html_table
from pipeline.document.ledger import Ledger
from pipeline.document.tree import count_words
from pipeline.html.values import DESCRIBED_WORDS
from pipeline.read.text import local_name

A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MC: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
ALTERNATIVES, CHOICE, FALLBACK = (
    f"{_MC}{name}" for name in ("AlternateContent", "Choice", "Fallback")
)
_RAISED: Final = re.compile(r"[-+−]?\d{1,4}")
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
        if made := chart_of(package, name):
            ledger.give("chart")
            yield made
    for diagram in element.iter("{*}relIds"):
        ledger.hold("diagram")
        name = links.get(diagram.get(f"{RELATION}dm", ""), ("", ""))[1]
        root = package.tree(name)
        if root is not None and (made := diagram_to_html(root)):
            ledger.give("diagram")
            yield made


def chart_of(package: Package, part: str) -> str:
    """Return the chart of a part as `chart_to_html` does, with the texts that are drawn
    over it; empty for a part that is missing."""
    chart = package.tree(part)
    if chart is None:
        return ""
    over = package.roots(package.targets(part), "chartUserShapes")
    texts = (text for root in over for text in texts_of(root) if text)
    return "\n".join(
        filter(
            None, [chart_to_html(chart), *(f"<p>{escape(one)}</p>" for one in texts)]
        )
    )


def chart_to_html(chart: etree._Element) -> str:
    """Return a chart as a table: a row for each category, a column for each series;
    without figures its titles alone, empty without either.

    Categories beyond `MOST_POINTS` values are dropped."""
    if chart.find("{*}chartData") is not None:
        return _later_chart(chart)
    series = [_Series(one) for one in chart.iter("{*}ser")]
    rows = _rows(series)
    title = next(
        (words_of(one) for one in chart.iter("{*}title") if _is_of_chart(one)), ""
    )
    axes = [words_of(axis) for axis in chart.iter("{*}title") if not _is_of_chart(axis)]
    said = " · ".join(filter(None, [title, *axes]))
    if not rows:
        return f"<p>{escape(said)}</p>" if said else ""
    header = [
        "",
        *(one.name or f"series {number}" for number, one in enumerate(series, start=1)),
    ]
    caption = f"<caption>{escape(said)}</caption>" if said else ""
    return html_table([header, *rows], header=True, caption=caption)


def _rows(series: list["_Series"]) -> list[list[str]]:
    """Return the figures of several series, a row for each category, as far as there are
    `MOST_POINTS` at most."""
    places = {index for one in series for index in (*one.categories, *one.values)}
    categories = next((one.categories for one in series if one.categories), {})
    return [
        [
            categories.get(index, str(index + 1)),
            *(one.values.get(index, "") for one in series),
        ]
        for index in sorted(places)[: MOST_POINTS // max(1, len(series))]
    ]


def _later_chart(chart: etree._Element) -> str:
    """Return a chart of the kinds that Office 2016 brought (waterfall, funnel, map …),
    whose figures are apart from what is drawn of them.

    Points beyond `MOST_POINTS` are dropped."""
    titles = [words_of(one) for one in chart.iter("{*}title")]
    names = ["".join(one.itertext()) for one in chart.iter("{*}txData")]
    said = escape(" · ".join(filter(None, [*titles, *names])))
    rows = []
    for data in chart.iter("{*}data"):
        columns = [_figures(one) for one in data.iterchildren("{*}strDim", "{*}numDim")]
        places = sorted({index for column in columns for index in column})[:MOST_POINTS]
        rows += [[column.get(index, "") for column in columns] for index in places]
    caption = f"<caption>{said}</caption>" if said else ""
    return (
        html_table(rows, header=False, caption=caption)
        if rows
        else f"<p>{said}</p>" * bool(said)
    )


def _figures(dimension: etree._Element) -> dict[int, str]:
    """Return what a dimension of such a chart has at each place, levels of categories
    joined.

    A point without a valid place comes after those before it."""
    found: dict[int, str] = {}
    for point in dimension.iter("{*}pt"):
        index, text = point.get("idx", ""), "".join(point.itertext())
        key = whole_number(index, len(found), digits=7)
        found[key] = f"{text} {found[key]}" if key in found else text
    return found


class _Series:
    """The name, categories and values of one series, from the caches that the file keeps."""

    def __init__(self, element: etree._Element) -> None:
        self.name = " ".join(_points(element, "tx").values())
        self.categories = _points(element, "cat") or _points(element, "xVal")
        self.values = _points(element, "val") or _points(element, "yVal")


def _points(series: etree._Element, name: str) -> dict[int, str]:
    """Return the cached values of a part of a series, by their place."""
    found: dict[int, str] = {}
    for holder in series.iterchildren(f"{{*}}{name}"):
        for number, point in enumerate(holder.iter("{*}pt")):
            index = point.get("idx", "")
            text = " ".join(
                "".join(value.itertext()) for value in point.iterchildren("{*}v")
            )
            key = whole_number(index, number, digits=7)
            # Levels of categories follow each other, the innermost first.
            found[key] = f"{text} {found[key]}" if key in found else text
        text = "".join(one.text or "" for one in holder.iterchildren("{*}v"))
        if text and not found:
            found[0] = text
    return found


def words_of(element: etree._Element) -> str:
    """Return the text of an element of DrawingML on one line."""
    return " ".join(filter(None, texts_of(element)))


def _is_of_chart(title: etree._Element) -> bool:
    above = title.getparent()
    return above is not None and local_name(above) == "chart"


def diagram_to_html(data: etree._Element) -> str:
    """Return the texts of a diagram's data as a list, empty for one without text."""
    points = map(words_of, data.iter("{*}pt"))
    items = "".join(f"<li>{escape(text)}</li>" for text in points if text)
    return f"<ul>{items}</ul>" if items else ""


def texts_of(element: etree._Element) -> list[str]:
    """Return the paragraphs of DrawingML in an element, each on one line."""
    return [" ".join(paragraph_text(one).split()) for one in element.iter(f"{A}p")]


def paragraph_text(paragraph: etree._Element) -> str:
    """Return the text of a paragraph of DrawingML, blanks as they are, raised digits and equations
    on the line."""
    return "".join(map(_inline, chosen(paragraph)))


def _inline(element: etree._Element) -> str:
    tag = element.tag
    if tag == f"{A}t":
        return element.text or ""
    if tag == f"{A}br":
        return " "
    if tag == EQUATION:
        return f" {equation_text(element)} "
    inner = "".join(map(_inline, chosen(element)))
    about = element.find(f"{A}rPr") if tag == f"{A}r" else None
    baseline = about.get("baseline", "0") if about is not None else "0"
    is_raised = baseline.isdecimal() and int(baseline) > 0
    return f"^{inner}" if is_raised and _RAISED.fullmatch(inner) else inner


def chosen(element: etree._Element) -> list[etree._Element]:
    """Return the elements inside of one; of alternatives the first choice that holds
    something, else the fallback.

    Without a fallback nothing is taken."""
    found = []
    for child in element.iterchildren(tag=etree.Element):
        if child.tag != ALTERNATIVES:
            found.append(child)
            continue
        choice, fallback = child.find(CHOICE), child.find(FALLBACK)
        taken = choice if choice is not None and len(choice) else fallback
        found += list(taken) if taken is not None else []
    return found


def described(about: etree._Element | None) -> str:
    """Return what an author says that a picture shows; empty where nothing is, or a word that
    describes nothing."""
    said = "" if about is None else " ".join((about.get("descr") or "").split())
    return said if count_words(said) >= DESCRIBED_WORDS else ""


def is_decorative(about: etree._Element | None) -> bool:
    """Whether a picture is marked as one without content."""
    marks: Iterator[etree._Element] = (
        iter(()) if about is None else about.iter("{*}decorative")
    )
    return any(mark.get("val") in {"1", "true"} for mark in marks)


def image_html(alt: str) -> str:
    """Return a picture by its description."""
    return f'<img alt="{html.escape(alt)}">'
