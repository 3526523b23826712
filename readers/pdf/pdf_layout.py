"""The pieces of print of a PDF's page as lines in reading order: scripts, cells, columns, ruled
tables, fields.

The file's own order is kept, which is the reading order in what type-setters and word processors
write, unless it hops between columns of text. Distances are in heights of the type. Not for:
finding the pieces (`readers/pdf/pdf_page.py`); headings, paragraphs, and tables without rulings
(`readers/pdf/pdf_lines.py`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from statistics import mean
from typing import Final

import numpy as np

from readers.pdf.pdf_lines import (
    CELL_GAP,
    MOST_BLANKS,
    Cell,
    PrintLine,
    is_ideograph,
    with_one_head,
)
from readers.pdf.pdf_page import MOST_RULINGS, Piece, Print, Ruling
from readers.pdf.pdf_seen import Box

WORD_GAP: Final = 0.1
"""Least distance of two words."""
LEVEL: Final = 0.2
"""By which the baselines of one line may differ, of one word twice as much."""
SCRIPT: Final = 0.85
"""A script is at most this part of the type beside it."""
INITIAL: Final = 0.5
"""Print is at most this part of an initial that reaches over several lines of it."""
SNAP: Final = 3.0
"""Points by which rulings that meet may miss each other."""
MOST_TABLE_COLUMNS: Final = 40
MOST_REPEATED: Final = 60
"""Letters of a text that is repeated in each cell that it spans: a label, no column
without rulings."""
HOPS: Final = 0.12
"""Share of the steps from segment to segment that cross the gutter, where the file mixes
columns."""
FULL: Final = 0.8
"""Part of the widest line that a line of prose fills; cells differ more."""
COLUMN_DEPTH: Final = 4
_ORDINALS: Final = frozenset({"st", "nd", "rd", "th", "er", "re", "e", "o", "a"})
_STOPS: Final = ".,;:)”\"'»"


@dataclass(slots=True)
class _Segment:
    """Print on one baseline without a wide gap."""

    runs: list[tuple[str, float]]
    """The text in the pieces that operators set, with their left edges."""
    left: float
    right: float
    y: float
    size: float
    turn: int = 0
    origin: int = 0
    """Names the operator that set the end."""
    fixed: int = 0
    """Letters in a fixed-width font."""
    rows: list[list[str]] = field(default_factory=list)
    """Of a ruled table."""

    @property
    def text(self) -> str:
        return " ".join(text for text, _ in self.runs)

    @property
    def middle(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, self.y + 0.3 * self.size

    def append(self, text: str, piece: Piece) -> None:
        """Take a text that a piece shows at the end, and the blank before it."""
        if text[0] == " " and piece.origin != self.origin:
            self.runs.append((text[1:], piece.left))
        else:
            run, left = self.runs[-1]
            self.runs[-1] = run + text, left
        self.origin = piece.origin
        self.left = min(self.left, piece.left)
        self.right = max(self.right, piece.right)
        self.fixed += len(piece.text) if piece.fixed else 0


def lines_of(page: Print) -> list[PrintLine]:
    """Return the lines of a page in reading order, turned print after all other; what
    is turned against most print is aside."""
    segments = _without_doubles(_segments(page.pieces, page.upright))
    for written, box in page.values:
        _fill_in(segments, " ".join(written.split()), box)
    for grid in _grids(page.upright, page.level):
        segments = _tabled(segments, grid)
    turns = Counter[int]()
    for segment in segments:
        cells = (cell for row in segment.rows for cell in row)
        turns[segment.turn] += len(segment.text) + sum(map(len, cells))
    lines: list[PrintLine] = []
    for turn in range(4):
        group = [segment for segment in segments if segment.turn == turn]
        for line in _as_lines(_in_order(group)):
            line.aside = turns[turn] < max(turns.values())
            lines.append(line)
    return lines


# --- segments


def _segments(pieces: Iterable[Piece], upright: Sequence[Ruling]) -> list[_Segment]:
    segments: list[_Segment] = []
    for piece in pieces:
        before = segments[-1] if segments else None
        if before is None or before.turn != piece.turn:
            segments.append(_begun(piece))
        elif _is_initial(before, piece):
            blank = " " * piece.parted
            segments[-1] = _begun(replace(piece, text=before.text + blank + piece.text))
        elif _is_script(before, piece):
            before.append(_script(before, piece), piece)
        elif _joins(before, piece, upright):
            before.append(_blank(before, piece) + piece.text, piece)
        else:
            segments.append(_begun(piece))
    return segments


def _begun(piece: Piece) -> _Segment:
    fixed = len(piece.text) if piece.fixed else 0
    return _Segment(
        [(piece.text, piece.left)],
        piece.left,
        piece.right,
        piece.y,
        piece.size,
        piece.turn,
        piece.origin,
        fixed,
    )


def _away(segment: _Segment, piece: Piece | _Segment) -> float:
    """Return the distance of two pieces on a line, whichever is first; below zero where they
    overlap."""
    return max(piece.left - segment.right, segment.left - piece.right)


def _joins(before: _Segment, piece: Piece, upright: Sequence[Ruling]) -> bool:
    """Return whether a piece goes on a segment on its baseline, without a ruling between."""
    em, gap = max(before.size, 1.0), _away(before, piece)
    level = LEVEL * (2 if piece.tight else 1) * min(em, piece.size or em)
    if abs(piece.y - before.y) > level or not -1.5 * em < gap < CELL_GAP * em:
        return False
    return gap <= WORD_GAP * em or not any(
        before.right - 1 <= x <= piece.left + 1 and low - 1 <= before.y <= top
        for x, low, top in upright
    )


def _blank(segment: _Segment, piece: Piece) -> str:
    """Return what is between a segment and the piece that goes on it."""
    gap, em = _away(segment, piece), max(segment.size, 1.0)
    if is_ideograph(segment.runs[-1][0][-1]) and is_ideograph(piece.text[0]):
        return " " if gap > 0.3 * em else ""
    if piece.fixed and segment.fixed and not piece.tight:
        letter = (segment.right - segment.left) / len(segment.text)
        return " " * min(max(1, round(gap / (letter or em))), MOST_BLANKS)
    is_apart = gap > WORD_GAP * em and not piece.tight
    return " " if piece.parted or is_apart else ""


def _is_initial(before: _Segment, piece: Piece) -> bool:
    """Return whether a segment is the large first letter of the text that a piece goes
    on with."""
    return (
        before.text.isalpha()
        and len(before.text) == 1
        and piece.size <= INITIAL * before.size
        and -0.2 * piece.size <= piece.y - before.y <= before.size
        and -0.5 * piece.size < _away(before, piece) < 1.5 * piece.size
    )


def _is_script(before: _Segment, piece: Piece) -> bool:
    em, level = before.size, piece.y - before.y
    return (
        piece.size <= SCRIPT * em
        and -0.35 * em <= level <= 0.65 * em
        and abs(level) >= 0.05 * em
        and -0.4 * em < _away(before, piece) < 0.35 * em
    )


def _script(before: _Segment, piece: Piece) -> str:
    """Write a script after its base: `10^6`, `H_2`, `2nd`; a number after a word is a note's mark,
    `crowns[2]`."""
    is_raised = piece.y > before.y
    word = before.text.rstrip(_STOPS)
    after_word = word[-3:].isalpha() and len(word) > 2
    if is_raised and piece.text.strip("*,").isdigit() and after_word:
        return f"[{piece.text}]"
    if piece.text in _ORDINALS and before.runs[-1][0][-1].isdigit():
        return piece.text
    return ("^" if is_raised else "_") + piece.text


def _without_doubles(segments: Iterable[_Segment]) -> list[_Segment]:
    """Return segments without those whose text is printed a second time at nearly the
    same position; the first is kept."""
    distinct: list[_Segment] = []
    places: dict[str, list[_Segment]] = {}
    for segment in segments:
        doubles = places.setdefault(segment.text, [])
        tolerance = 0.2 * segment.size
        if not any(
            abs(segment.left - double.left) < tolerance
            and abs(segment.y - double.y) < tolerance
            for double in doubles
        ):
            doubles.append(segment)
            distinct.append(segment)
    return distinct


def _fill_in(segments: list[_Segment], text: str, box: Box) -> None:
    """Put what a form's field holds after the print before it in its row; nothing where
    the row shows it already."""
    left, low, right, top = box
    size = min(12.0, max(6.0, top - low))
    in_row = [
        number
        for number, segment in enumerate(segments)
        if low - 0.3 * size <= segment.y <= top and segment.left < right
    ]
    if any(segments[number].text == text for number in in_row):
        return
    labels = [number for number in in_row if segments[number].left <= left]
    lower = (number for number, segment in enumerate(segments) if segment.y < low)
    index = labels[-1] + 1 if labels else next(lower, len(segments))
    y = segments[labels[-1]].y if labels else low + 0.3 * (top - low)
    segments.insert(index, _Segment([(text, left)], left, right, y, size))


# --- ruled tables


@dataclass(frozen=True, slots=True)
class _Grid:
    """Rulings that meet: where columns and rows begin, and the rulings themselves."""

    xs: list[float]
    ys: list[float]
    """From bottom to top."""
    upright: list[Ruling]
    level: list[Ruling]


def _grids(upright: Sequence[Ruling], level: Sequence[Ruling]) -> Iterator[_Grid]:
    """Yield groups of rulings that meet, of three and more each way; none where the
    page has more than `MOST_RULINGS`."""
    if not upright or not level or max(len(upright), len(level)) > MOST_RULINGS:
        return
    standing, lying = np.asarray(upright), np.asarray(level)
    meet = (
        (lying[None, :, 1] - SNAP <= standing[:, None, 0])
        & (standing[:, None, 0] <= lying[None, :, 2] + SNAP)
        & (standing[:, None, 1] - SNAP <= lying[None, :, 0])
        & (lying[None, :, 0] <= standing[:, None, 2] + SNAP)
    )
    free = set(np.flatnonzero(meet.any(axis=1)).tolist())
    while free:
        grown, members = {free.pop()}, set[int]()
        while grown != members:
            members = grown
            crossing = np.flatnonzero(meet[list(members)].any(axis=0))
            grown = set(np.flatnonzero(meet[:, crossing].any(axis=1)).tolist())
        free -= members
        # Tables often have no rulings around them: those within reach as far.
        ours, theirs = standing[sorted(members)], lying[crossing]
        xs = _apart([*ours[:, 0], theirs[:, 1].min(), theirs[:, 2].max()])
        ys = _apart([*theirs[:, 0], ours[:, 1].min(), ours[:, 2].max()])
        if 2 < len(xs) <= MOST_TABLE_COLUMNS and len(ys) > 2:
            yield _Grid(xs, ys, ours.tolist(), theirs.tolist())


def _apart(places: Iterable[float]) -> list[float]:
    distinct: list[float] = []
    for edge in sorted(places):
        if not distinct or edge - distinct[-1] > SNAP:
            distinct.append(float(edge))
    return distinct


def _tabled(segments: list[_Segment], grid: _Grid) -> list[_Segment]:
    """Return segments with those within a grid as one table, at the position of the
    first.

    They are returned as they are where they do not fill it like a table."""
    inside = [segment for segment in segments if _is_within(segment, grid)]
    rows = _rows(inside, grid)
    if len(rows) < 2:
        return segments
    y, size = max(segment.y for segment in inside), inside[0].size
    table = _Segment([], grid.xs[0], grid.xs[-1], y, size, rows=rows)
    taken = {id(segment) for segment in inside}
    return [
        table if segment is inside[0] else segment
        for segment in segments
        if segment is inside[0] or id(segment) not in taken
    ]


def _is_within(segment: _Segment, grid: _Grid) -> bool:
    """Whether text that is upright, and no table yet, lies in a grid."""
    x, y = segment.middle
    return (
        segment.turn == 0
        and not segment.rows
        and grid.xs[0] - 2 <= x <= grid.xs[-1] + 2
        and grid.ys[0] - 2 <= y <= grid.ys[-1] + 2
    )


def _rows(inside: Sequence[_Segment], grid: _Grid) -> list[list[str]]:
    """Return the rows of a grid that hold text, without empty columns; what spans several
    cells is repeated in each, as a table of HTML is read, unless it is long.

    None where a drawing's boxes lie within one another, so that most cells repeat
    others, and where rows have no rulings between them."""
    spans: dict[tuple[range, range], list[str]] = {}
    levels: set[int] = set()
    for segment in sorted(
        inside, key=lambda segment: (-round(segment.y), segment.left)
    ):
        x, y = segment.middle
        columns = _spanned(grid.xs, x, grid.upright, y)
        bands = _spanned(grid.ys, y, grid.level, x)
        levels |= {round(segment.y)} if columns[0] else set()
        spans.setdefault((bands, columns), []).append(segment.text)
    unruled = len(grid.ys) <= 4 and len(levels) >= 3 * (len(grid.ys) - 1)
    cells: dict[tuple[int, int], list[str]] = {}
    for span, texts in spans.items():
        text = " ".join(texts)
        for cell in product(*span):
            is_first = cell == (span[0][-1], span[1][0])
            repeated = [text] if is_first or len(text) <= MOST_REPEATED else []
            cells.setdefault(cell, []).extend(repeated)
    starting_cells = {(bands[0], columns[0]) for bands, columns in spans}
    if unruled or len(cells) > 2 * len(starting_cells):
        return []
    used_columns = sorted({column for _, column in cells})
    rows = [
        [" ".join(cells.get((band, column), [])) for column in used_columns]
        for band in sorted({band for band, _ in cells}, reverse=True)
    ]
    is_table = sum(sum(map(bool, row)) > 1 for row in rows) >= 2
    return with_one_head(rows) if is_table else []


def _spanned(
    edges: Sequence[float], along: float, rulings: Sequence[Ruling], across: float
) -> range:
    """Return the cells, between edges, from the ruling before a place to the one after
    it."""
    number = sum(edge <= along for edge in edges[1:-1])
    start, stop = number, number + 1
    while start > 0 and not _is_ruled(rulings, edges[start], across):
        start -= 1
    while stop < len(edges) - 1 and not _is_ruled(rulings, edges[stop], across):
        stop += 1
    return range(start, stop)


def _is_ruled(rulings: Sequence[Ruling], edge: float, across: float) -> bool:
    return any(
        abs(place - edge) <= SNAP and start - 2 <= across <= stop + 2
        for place, start, stop in rulings
    )


# --- order


def _in_order(segments: list[_Segment], depth: int = 0) -> list[_Segment]:
    """Return segments column by column, those that cross a gutter between; in their own order where
    the file does not mix columns."""
    gutter = _gutter(segments) if depth <= COLUMN_DEPTH else None
    if gutter is None:
        return segments
    ordered: list[_Segment] = []
    sides: tuple[list[_Segment], list[_Segment]] = [], []
    for segment in sorted(
        segments, key=lambda segment: (-round(segment.y), segment.left)
    ):
        if segment.left < gutter < segment.right:
            for side in sides:
                ordered += _in_order(side, depth + 1)
            ordered.append(segment)
            sides = [], []
        else:
            sides[segment.left >= gutter].append(segment)
    for side in sides:
        ordered += _in_order(side, depth + 1)
    return ordered


def _gutter(segments: Sequence[_Segment]) -> float | None:
    """Return the left edge of a column of text, right of another, between which the file
    hops; None where there is none."""
    starts: list[list[float]] = []
    for segment in sorted(segments, key=lambda segment: segment.left):
        if starts and segment.left - starts[-1][-1] <= max(SNAP, 0.25 * segment.size):
            starts[-1].append(segment.left)
        else:
            starts.append([segment.left])
    for lefts in sorted(starts, key=len, reverse=True)[:8]:
        edge = lefts[0] - 1.0
        left_side = [segment for segment in segments if segment.right <= edge]
        right_side = [segment for segment in segments if segment.left >= edge]
        if not _is_text(left_side) or not _is_text(right_side):
            continue
        sides = [segment.left >= edge for segment in segments]
        hops = sum(side != after for side, after in pairwise(sides))
        if hops >= HOPS * len(segments):
            return edge
    return None


def _is_text(side: Sequence[_Segment]) -> bool:
    """Whether most letters of a side are in lines of 20 letters and more that fill half of
    it, or, where none does since it has further columns, are nearly as wide as its
    widest: cells of a table are not."""
    if not side:
        return False
    width = max(segment.right for segment in side) - min(
        segment.left for segment in side
    )
    widest = max(segment.right - segment.left for segment in side)
    least = 0.45 * width if widest > 0.45 * width else FULL * widest
    full = [
        len(segment.text) for segment in side if segment.right - segment.left > least
    ]
    letters = sum(len(segment.text) for segment in side)
    return len(full) >= 3 and mean(full) >= 20 and sum(full) >= 0.6 * letters


def _as_lines(segments: Iterable[_Segment]) -> list[PrintLine]:
    """Return segments as lines; what follows on the same baseline is a further cell."""
    rows: list[list[_Segment]] = []
    for segment in segments:
        before = rows[-1][-1] if rows else None
        if (
            before is not None
            and not (before.rows or segment.rows)
            and abs(before.y - segment.y) <= 0.3 * min(before.size, segment.size)
        ):
            rows[-1].append(segment)
        else:
            rows.append([segment])
    return [_line(row) for row in rows]


def _line(row: Sequence[_Segment]) -> PrintLine:
    sizes: Counter[float] = Counter()
    for segment in row:
        sizes[segment.size] += len(segment.text)
    text = " ".join(segment.text for segment in row)
    fixed = 2 * sum(segment.fixed for segment in row) > len(text.replace(" ", ""))
    cells = [
        Cell(segment.left, segment.right, segment.runs)
        for segment in sorted(row, key=lambda segment: segment.left)
        if segment.runs
    ]
    size = sizes.most_common(1)[0][0]
    return PrintLine(text, size, row[0].y, fixed, cells, row[0].rows)
