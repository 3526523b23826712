"""Units that belong together on a page: paragraphs, lists, tables, listings, records, sections.

A whole is a range of units in reading order. Its element says what it is (`ul`, `table`, `pre`); a
record is an element whose siblings have the same structure, as cards, posts, events and rows of
labels and values have. Class names are not read. Not for: choosing units (`passages.py`).
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final, Literal, NamedTuple

from pipeline.document.page import Block, Document, Sentence

WholeKind = Literal["paragraph", "list", "table", "listing", "record"]
SIBLINGS: Final = 3
"""Elements of one structure from which each is a record; two may be columns of a layout."""
SHAPE_SHARE: Final = 0.6
"""Share of the siblings that must have a part in common: a card may lack its picture or its
price."""
COMMON: Final = 2
"""Parts that records have in common at least: a label and its value, a title and its price."""
SHAPE_BLOCKS: Final = 12
"""Blocks of an element beyond which it is a part of a page and no record."""
_KIND_OF_TAG: Final[dict[str, WholeKind]] = {
    "ul": "list",
    "ol": "list",
    "menu": "list",
    "dir": "list",
    "dl": "list",
    "table": "table",
    "pre": "listing",
}
_DIGIT_RUN: Final = re.compile(r"\d+")


class Whole(NamedTuple):
    """A range of units [start, stop) of one document."""

    start: int
    stop: int
    kind: WholeKind
    path: str
    """Of its element."""


@dataclass(frozen=True, slots=True)
class Wholes:
    """The wholes of a document."""

    found: tuple[Whole, ...]
    """In reading order, each before those inside it."""
    inner: tuple[int, ...]
    """Of each unit the index of the smallest whole around it, -1 for none."""
    outer: tuple[int, ...]
    """Of each whole the index of the next larger one, -1 for none."""
    starts: tuple[int, ...]
    """Of each unit the first unit after the heading above it, or of its record that has one."""
    stops: tuple[int, ...]
    """Of each unit the next heading after it, the end of its record, or the number of units."""
    begins: frozenset[int]
    """Units that begin a section: headings, but not inside a record that has a part before it."""

    def around(self, unit: int) -> Iterator[Whole]:
        """Yield the wholes that hold a unit, the smallest first."""
        index = self.inner[unit]
        while index >= 0:
            yield self.found[index]
            index = self.outer[index]


@dataclass(frozen=True, slots=True)
class _Element:
    """An element with units below it."""

    path: str
    start: int
    stop: int


def find_wholes(document: Document, units: Sequence[Sentence]) -> Wholes:
    """Return the wholes of `document`, as ranges of its `units`; linear in their number."""
    blocks = document.blocks
    # 1. Elements, with the range of units below each
    elements = _elements([blocks[unit.block].path for unit in units])
    records = _records(elements, blocks, units)
    # 2. Those that are a whole, each before those inside it
    found: dict[tuple[int, int], Whole] = {}
    for element in sorted(
        elements, key=lambda one: (one.start, -one.stop, len(one.path))
    ):
        kind = _kind(element, blocks, units, records)
        if kind:
            found.setdefault(
                (element.start, element.stop),
                Whole(element.start, element.stop, kind, element.path),
            )
    # 3. What is inside what
    wholes = tuple(found.values())
    inner, outer = _nested(wholes, len(units))
    return Wholes(wholes, inner, outer, *_sections(blocks, units, wholes))


def _elements(paths: Sequence[str]) -> list[_Element]:
    """Return the elements around the units, each with the range of units that follow each other in
    it."""
    found: list[_Element] = []
    opened: list[tuple[str, int]] = []
    for number, path in enumerate([*paths, ""]):
        while opened and not f"{path}/".startswith(f"{opened[-1][0]}/"):
            name, start = opened.pop()
            found.append(_Element(name, start, number))
        offset = len(opened[-1][0]) + 1 if opened else 0
        while path and offset <= len(path):
            end = path.find("/", offset)
            end = len(path) if end < 0 else end
            if end > (len(opened[-1][0]) if opened else 0):
                opened.append((path[:end], number))
            offset = end + 1
    return found


def _records(
    elements: Sequence[_Element], blocks: Sequence[Block], units: Sequence[Sentence]
) -> set[str]:
    """Return the paths of the elements that are records."""
    siblings: defaultdict[tuple[str, str], list[_Element]] = defaultdict(list)
    for element in elements:
        parent, _, step = element.path.rpartition("/")
        if step[-1:].isdecimal():
            siblings[parent, _DIGIT_RUN.sub("", step)].append(element)
    found: set[str] = set()
    for (_, tag), alike in siblings.items():
        if len(alike) < SIBLINGS or tag in {"tr", "text", "p"} or tag in _KIND_OF_TAG:
            continue
        shapes = [_shape(element, blocks, units) for element in alike]
        several = sum(1 < len(shape) <= SHAPE_BLOCKS for shape in shapes)
        shared = Counter(part for shape in shapes for part in _parts(shape)).values()
        common = sum(count >= SHAPE_SHARE * len(alike) for count in shared)
        if several * 2 >= len(alike) and common >= COMMON:
            found.update(element.path for element in alike)
    return found


def _parts(shape: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each path of a shape with how often it was there before."""
    seen: Counter[str] = Counter()
    for path in shape:
        yield path, seen[path]
        seen[path] += 1


def _shape(
    element: _Element, blocks: Sequence[Block], units: Sequence[Sentence]
) -> tuple[str, ...]:
    """Return where the blocks of an element are below it, without numbers."""
    stop = min(element.stop, element.start + 4 * SHAPE_BLOCKS)
    paths = (blocks[unit.block].path for unit in units[element.start : stop])
    below = (path[len(element.path) :] for path, _ in groupby(paths))
    return tuple(_DIGIT_RUN.sub("", path) for path in below)


def _kind(
    element: _Element,
    blocks: Sequence[Block],
    units: Sequence[Sentence],
    records: set[str],
) -> WholeKind | None:
    """Return what whole an element is, None for one that is a part of the layout only."""
    if element.path in records:
        return "record"
    if element.stop - element.start < 2:
        return None
    tag = _DIGIT_RUN.sub("", element.path.rpartition("/")[2])
    kind = _KIND_OF_TAG.get(tag)
    if kind == "table":
        rows = sum(
            blocks[unit.block].kind == "row"
            for unit in units[element.start : element.stop]
        )
        return "table" if 2 * rows >= element.stop - element.start else None
    if kind:
        return kind
    first, last = units[element.start].block, units[element.stop - 1].block
    return "paragraph" if first == last else None


def _nested(
    wholes: Sequence[Whole], size: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the innermost whole of each unit, and of each whole the one around it.
    Both are -1 where there is none."""
    inner = [-1] * size
    outer: list[int] = []
    opened: list[int] = []
    for index, whole in enumerate(wholes):
        while opened and wholes[opened[-1]].stop <= whole.start:
            opened.pop()
        outer.append(opened[-1] if opened else -1)
        opened.append(index)
        inner[whole.start : whole.stop] = [index] * (whole.stop - whole.start)
    return tuple(inner), tuple(outer)


def _sections(
    blocks: Sequence[Block], units: Sequence[Sentence], wholes: Iterable[Whole]
) -> tuple[tuple[int, ...], tuple[int, ...], frozenset[int]]:
    """Return `starts`, `stops` and `begins` of `Wholes`.

    A heading inside a small record names that record alone, wherever in it the heading is.
    """
    heads = [
        number
        for number, unit in enumerate(units)
        if blocks[unit.block].kind == "heading"
    ]
    starts: list[int] = []
    stops: list[int] = []
    edges = [-1, *heads, len(units)]
    for before, after in pairwise(edges):
        if before >= 0:
            starts.append(before)
            stops.append(after)
        starts += [before + 1] * (after - before - 1)
        stops += [after] * (after - before - 1)

    begins = set(heads)
    for one in wholes:
        size = one.stop - one.start
        if one.kind != "record" or size > SHAPE_BLOCKS:
            continue
        inside = heads[bisect_left(heads, one.start) : bisect_left(heads, one.stop)]
        if inside:
            starts[one.start : one.stop] = [one.start] * size
            stops[one.start : one.stop] = [one.stop] * size
            begins.difference_update(inside)
            begins.add(one.start)
    return tuple(starts), tuple(stops), frozenset(begins)
