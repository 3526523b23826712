"""The pieces of print of a PDF's page as lines in reading order: scripts, cells, columns, ruled
tables, fields.

The file's own order is kept, which is the reading order in what type-setters and word processors
write, unless it hops between columns of text. Not for: finding the pieces
(`pipeline/read/pdf_page.py`); headings, paragraphs, and tables without rulings
(`pipeline/read/pdf_lines.py`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import mean
from typing import Final

import numpy as np

from pipeline.read.pdf_lines import (
    MOST_BLANKS,
    TYPE,
    Box,
    Cell,
    PrintLine,
    is_ideograph,
)
from pipeline.read.pdf_page import MOST_RULINGS, FieldValue, Piece, Print


@dataclass(frozen=True, slots=True)
class _Set:
    """How print is set on a page. Distances are in heights of the type."""

    level: float = 0.2
    """By which the baselines of one line may differ."""
    blank: float = 0.1
    """Least distance of two words."""
    torn: float = 1.5
    """By which a piece may begin before the last one ends."""
    script: float = 0.85
    """A superscript is at most this part of the type beside it."""
    raised: float = 0.65
    lowered: float = 0.35
    script_gap: float = 0.35
    """Between a script and the type beside it."""
    dropped: float = 1.8
    """A drop cap is at least so many times larger than the type beside it."""
    initial: int = 2
    """Letters of it, with a quotation mark."""
    capital: float = 0.7
    """Height of a capital."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """What columns of text are."""

    hops: float = 0.12
    """Share of the steps from segment to segment that cross the gutter, where the file mixes the
    columns."""
    edge: float = 0.12
    """Part of the width, left and right, in which no gutter is looked for."""
    full: float = 0.45
    """A line of text fills this part of its column, and a column has three such."""
    letters: int = 20
    """Mean letters of such a line; a cell of a table has fewer."""
    text: float = 0.6
    """Share of the letters that are in such lines."""
    gutter: float = 0.5
    """Least width in heights of the type."""
    depth: int = 4


_LINE_EMS: Final = _Set()
_COLUMN_EMS: Final = _Columns()
SNAP: Final = 3.0
"""Points by which rulings that meet may miss each other."""
MOST_PLACES: Final = 10_000
"""Of a page at which a gutter is looked for; a page of 14,400 points, the widest that PDF knows, has
7,200."""
MOST_COLUMNS: Final = 40
MOST_BANDS: Final = 3
"""Rows of rulings up to which a table may have further rows without."""
LEAST_NAMES: Final = 3
ALIGNED: Final = 0.8
"""Share of the first column's lines that have another cell beside them."""
MOST_REPEATED: Final = 0.5
"""Share of a table's cells that may be spanned by others."""
_ORDINALS: Final = frozenset({"st", "nd", "rd", "th", "er", "re", "e", "o", "a"})
_NOTE_AFTER: Final = frozenset(".,;:)”\"'»")


@dataclass(slots=True)
class _Segment:
    """Print on one baseline without a wide gap."""

    text: str
    left: float
    right: float
    y: float
    size: float
    turn: int
    runs: list[tuple[str, float]]
    """The text in the pieces that operators set, with their left edges."""
    origin: int
    fixed: int = 0
    """Letters in a fixed-width font."""
    script: str = ""
    """Of the last piece: `^` or `_`, followed by `]` where it is a note's mark."""
    small: bool = False
    """Whether all of it may be a script of what follows."""
    rows: list[list[str]] = field(default_factory=list)
    """Of a ruled table."""
    low: float = 0.0
    top: float = 0.0
    """How far its letters reach down and up."""
    bands: list[Box] = field(default_factory=list)
    """The box of each of `rows`."""

    def hold(self, addition: "Piece | _Segment") -> None:
        """Reach as far down and up as the letters of another piece."""
        low, top = _reach(addition)
        self.low, self.top = min(self.low, low), max(self.top, top)


def lines_of(page: Print) -> list[PrintLine]:
    """Return the lines of a page in reading order, turned print after all other."""
    segments = _with_initials(_without_doubles(_segments(page.pieces, page.upright)))
    for value in page.values:
        _fill_in(segments, value)
    for grid in _grids(page.upright, page.level):
        segments = _tabled(segments, grid)
    main = [segment for segment in segments if segment.turn == 0]
    turned = [segment for segment in segments if segment.turn]
    lines: list[PrintLine] = []
    for group in (
        main,
        *(
            [segment for segment in turned if segment.turn == turn]
            for turn in (1, 3, 2)
        ),
    ):
        if group:
            lines += _as_lines(_in_order(group) if _may_hop(group) else group)
    return lines


# --- segments
# ---------------------------------------------------------------------------------------------------------


def _segments(
    pieces: Iterable[Piece], upright: Sequence[tuple[float, float, float]]
) -> list[_Segment]:
    segments: list[_Segment] = []
    for piece in pieces:
        before = segments[-1] if segments and segments[-1].turn == piece.turn else None
        if before is not None and _joins(before, piece, upright):
            _append(before, piece)
        elif before is not None and (script := _script_of(before, piece)):
            _add_script(before, piece, script)
        elif before is not None and before.small and _script_of(_begun(piece), before):
            _set_before(before, piece)
        else:
            segments.append(_begun(piece))
    for segment in segments:
        _end_script(segment)
    return segments


def _begun(piece: Piece) -> _Segment:
    fixed = len(piece.text) if piece.fixed else 0
    runs = [(piece.text, piece.left)]
    return _Segment(
        piece.text,
        piece.left,
        piece.right,
        piece.y,
        piece.size,
        piece.turn,
        runs,
        piece.origin,
        fixed,
        "",
        True,
        [],
        *_reach(piece),
    )


def _reach(piece: "Piece | _Segment") -> tuple[float, float]:
    """Return how far letters reach down and up."""
    if isinstance(piece, _Segment):
        return piece.low, piece.top
    return piece.y - TYPE.descent * piece.size, piece.y + TYPE.ascent * piece.size


def _away(segment: _Segment, piece: Piece | _Segment) -> float:
    """Return the distance of two pieces on a line, whichever is first; below zero where they
    overlap."""
    return max(piece.left - segment.right, segment.left - piece.right)


def _joins(
    before: _Segment, piece: Piece, upright: Sequence[tuple[float, float, float]]
) -> bool:
    """Return whether a piece goes on a segment on its baseline, or below it where the writing is
    upright."""
    em = max(before.size, 1.0)
    gap, level = _away(before, piece), abs(piece.y - before.y)
    if level == 0:
        return _goes_on(before, piece, gap, upright)
    if _is_below(before, piece):
        return True
    is_close = (
        -0.4 * em < gap < (_LINE_EMS.level if piece.tight else _LINE_EMS.blank) * em
    )
    dropped = _begins_with(before, piece)
    if (
        is_close
        and level < _LINE_EMS.raised * em
        and not dropped
        and _is_plain(before, piece, level)
    ):
        return True
    if dropped or level > _LINE_EMS.level * min(em, piece.size or em):
        return False
    return _goes_on(before, piece, gap, upright)


def _goes_on(
    before: _Segment,
    piece: Piece,
    gap: float,
    upright: Sequence[tuple[float, float, float]],
) -> bool:
    """Return whether a piece goes on a segment on its baseline."""
    em = max(before.size, 1.0)
    if not -_LINE_EMS.torn * em < gap < TYPE.gap * em:
        return False
    if before.script and piece.size < _LINE_EMS.script * before.size:
        return False
    parted = bool(upright) and gap > 0.1 * em
    return not (parted and _is_ruled(before.right, piece.left, before.y, upright))


def _is_below(before: _Segment, piece: Piece) -> bool:
    """Return whether an ideograph goes on upright writing."""
    if len(piece.text) > 1 or not (
        is_ideograph(piece.text) and is_ideograph(before.text[-1])
    ):
        return False
    return (
        abs(piece.left - before.runs[-1][1]) < 0.3 * before.size
        and 0.8 < (before.y - piece.y) / before.size < 1.6
    )


def _is_plain(before: _Segment, piece: Piece, level: float) -> bool:
    """Return whether a piece off the baseline is a part of a word: `TeX`, `LaTeX`, `2nd`, a trade
    mark."""
    if piece.size > _LINE_EMS.script * before.size:
        return level < _LINE_EMS.lowered * before.size
    ordinal = before.text[-1:].isdigit() and piece.text in _ORDINALS
    return ordinal or (
        piece.text.isupper() and piece.text.isalpha() and before.text[-1:].isalpha()
    )


def _is_ruled(
    from_x: float, right: float, y: float, upright: Sequence[tuple[float, float, float]]
) -> bool:
    return any(
        from_x - 1 <= x <= right + 1 and low - 1 <= y <= top for x, low, top in upright
    )


def _append(segment: _Segment, piece: Piece) -> None:
    if piece.size != segment.size or piece.y != segment.y:
        segment.hold(piece)
    closed = bool(segment.script)
    _end_script(segment)
    blank = _blank(segment, piece, after_script=closed)
    if blank and piece.origin != segment.origin:
        segment.runs.append((piece.text, piece.left))
    else:
        text, run_left = segment.runs[-1]
        segment.runs[-1] = (text + blank + piece.text, run_left)
    segment.text += blank + piece.text
    segment.left, segment.right = (
        min(segment.left, piece.left),
        max(segment.right, piece.right),
    )
    segment.fixed += len(piece.text) if piece.fixed else 0
    segment.small = segment.small and piece.size <= segment.size
    if segment.y - piece.y > 0.8 * segment.size:  # upright writing goes down
        segment.y = piece.y
    segment.origin = piece.origin


def _blank(segment: _Segment, piece: Piece, *, after_script: bool) -> str:
    gap, em = _away(segment, piece), max(segment.size, 1.0)
    if is_ideograph(segment.text[-1]) and is_ideograph(piece.text[0]):
        return " " if gap > 0.3 * em else ""
    if piece.fixed and segment.fixed and not piece.tight:
        letter = (segment.right - segment.left) / max(len(segment.text), 1)
        return (
            " " * min(max(1, round(gap / letter)), MOST_BLANKS) if letter > 0 else " "
        )
    return (
        " "
        if piece.parted
        or ((not piece.tight or after_script) and gap > _LINE_EMS.blank * em)
        else ""
    )


def _script_of(base: _Segment, piece: Piece | _Segment) -> str:
    """Return `^` or `_` for a piece that is a script of a segment, before or after it; else
    nothing."""
    em = base.size
    level = piece.y - base.y
    if _begins_with(base, piece):
        return ""
    if (
        piece.size > _LINE_EMS.script * em
        or not -_LINE_EMS.lowered * em <= level <= _LINE_EMS.raised * em
    ):
        return ""
    if (
        abs(level) < 0.05 * em
        or not -0.4 * em < _away(base, piece) < _LINE_EMS.script_gap * em
    ):
        return ""
    return "^" if level > 0 else "_"


def _add_script(segment: _Segment, piece: Piece, script: str) -> None:
    """Write a script after its base: `10^6`, `H_2`; a number after a word is a note's mark,
    `crowns[2]`."""
    script_text = piece.text
    if segment.script[:1] != script:
        _end_script(segment)
        word = re.split(r"[^\w]", segment.text.rstrip("".join(_NOTE_AFTER)))[-1]
        is_word = len(word) > 2 and word.isalpha()
        note = (
            script == "^"
            and piece.text.strip("*,").isdigit()
            and (is_word or segment.text[-1] in _NOTE_AFTER)
        )
        segment.script = script + ("]" if note else "")
        script_text = ("[" if note else script) + script_text
    elif not piece.tight and script_text.isdigit():
        script_text = ("][" if segment.script.endswith("]") else ",") + script_text
    text, run_left = segment.runs[-1]
    segment.runs[-1] = (text + script_text, run_left)
    segment.text += script_text
    segment.right = max(segment.right, piece.right)
    segment.hold(piece)


def _end_script(segment: _Segment) -> None:
    if segment.script.endswith("]"):
        segment.text += "]"
        text, run_left = segment.runs[-1]
        segment.runs[-1] = (text + "]", run_left)
    segment.script = ""


def _set_before(segment: _Segment, piece: Piece) -> None:
    """Take a small number before a larger piece as that note's own mark."""
    note_number = segment.text
    line_text = (
        f"[{note_number}] {piece.text}"
        if note_number.isdigit()
        else f"{note_number} {piece.text}"
    )
    segment.hold(piece)
    segment.text, segment.runs = line_text, [(line_text, segment.left)]
    segment.right, segment.y, segment.size = piece.right, piece.y, piece.size
    segment.fixed, segment.origin, segment.small = 0, piece.origin, False


def _without_doubles(segments: Iterable[_Segment]) -> list[_Segment]:
    """Return segments without those whose text is printed a second time at nearly the
    same position; the first is kept."""
    distinct: list[_Segment] = []
    places: dict[str, list[_Segment]] = {}
    for segment in segments:
        same = places.setdefault(segment.text, [])
        tolerance = 0.2 * segment.size
        if any(
            abs(segment.left - double.left) < tolerance
            and abs(segment.y - double.y) < tolerance
            for double in same
        ):
            continue
        same.append(segment)
        distinct.append(segment)
    return distinct


def _begins_with(cap: _Segment, piece: Piece | _Segment) -> bool:
    """Return whether a segment may be a drop cap of a piece: one capital, much larger than
    words."""
    letter = cap.text.strip("\"'“‘«„")
    is_word = len(piece.text) > 1 and piece.text[0].isalpha()
    return (
        len(letter) == 1
        and letter.isupper()
        and is_word
        and piece.size * _LINE_EMS.dropped <= cap.size
    )


def _with_initials(segments: list[_Segment]) -> list[_Segment]:
    """Return segments with each drop cap, whose line is the topmost beside it, at the beginning of
    that line."""
    for cap in [
        segment
        for segment in segments
        if segment.turn == 0 and len(segment.text) <= _LINE_EMS.initial
    ]:
        beside_cap = [
            segment
            for segment in segments
            if segment.turn == 0
            and _begins_with(cap, segment)
            and 0 <= segment.y - cap.y + 1 <= cap.size
            and -_LINE_EMS.script_gap * segment.size
            <= segment.left - cap.right
            <= segment.size
        ]
        if len(beside_cap) < 2:  # the capital is as deep as one line below it
            continue
        beside_cap.sort(key=lambda segment: -segment.y)
        top_line, second = beside_cap[:2]
        if (
            abs(
                cap.y
                + _LINE_EMS.capital * cap.size
                - top_line.y
                - _LINE_EMS.capital * top_line.size
            )
            > top_line.size
        ):
            continue
        parted = top_line.left - second.left > _LINE_EMS.blank * top_line.size
        text, _ = top_line.runs[0]
        top_line.text = cap.text + " " * parted + top_line.text
        top_line.runs[0], top_line.left = (
            (cap.text + " " * parted + text, cap.left),
            cap.left,
        )
        top_line.hold(cap)
        segments.remove(cap)
    return segments


def _fill_in(segments: list[_Segment], value: FieldValue) -> None:
    """Put what a form's field holds after the print before it in its row; nothing where
    the row shows it already."""
    left, low, right, top = value.box
    size = min(12.0, max(6.0, top - low))
    in_row = [
        (number, segment)
        for number, segment in enumerate(segments)
        if segment.turn == 0
        and low - 0.3 * size <= segment.y <= top
        and segment.left < right
    ]
    if any(segment.text == value.text for _, segment in in_row):
        return
    before = max(
        (pair for pair in in_row if pair[1].left <= left),
        key=lambda pair: pair[1].right,
        default=None,
    )
    y = before[1].y if before is not None else low + 0.3 * (top - low)
    if before is not None:
        index = before[0] + 1
    else:
        index = next(
            (number for number, segment in enumerate(segments) if segment.y < y),
            len(segments),
        )
    text = " ".join(value.text.split())
    filled = _Segment(
        text, left, right, y, size, 0, [(text, left)], 0, low=low, top=top
    )
    segments.insert(index, filled)


# --- ruled tables
# -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Grid:
    """Rulings that meet: where columns and rows begin, and the rulings themselves."""

    xs: list[float]
    ys: list[float]
    """From top to bottom."""
    upright: list[tuple[float, float, float]]
    level: list[tuple[float, float, float]]


def _grids(
    upright: Sequence[tuple[float, float, float]],
    level: Sequence[tuple[float, float, float]],
) -> list[_Grid]:
    """Return groups of rulings that meet, of three and more each way; none where the
    page has more than `MOST_RULINGS`, or a group more than `MOST_COLUMNS`."""
    if (
        min(len(upright), len(level)) < 2
        or max(len(upright), len(level)) > MOST_RULINGS
    ):
        return []
    standing, lying = np.asarray(upright), np.asarray(level)
    meet = (
        (lying[None, :, 1] - SNAP <= standing[:, None, 0])
        & (standing[:, None, 0] <= lying[None, :, 2] + SNAP)
        & (standing[:, None, 1] - SNAP <= lying[None, :, 0])
        & (lying[None, :, 0] <= standing[:, None, 2] + SNAP)
    )
    unassigned = set(range(len(standing)))
    grids = []
    while unassigned:
        mine, todo, across = set[int](), [unassigned.pop()], set[int]()
        while todo:
            upright_index = todo.pop()
            mine.add(upright_index)
            for level_index in (
                set(np.flatnonzero(meet[upright_index]).tolist()) - across
            ):
                across.add(level_index)
                joined = unassigned.intersection(
                    np.flatnonzero(meet[:, level_index]).tolist()
                )
                unassigned -= joined
                todo += joined
        if len(across) < 2:
            continue
        # Tables often have no rulings around them: those within reach as far.
        ours, theirs = standing[sorted(mine)], lying[sorted(across)]
        xs = _apart([*ours[:, 0], theirs[:, 1].min(), theirs[:, 2].max()])
        ys = _apart([*theirs[:, 0], ours[:, 1].min(), ours[:, 2].max()])[::-1]
        if len(xs) > 2 and len(ys) > 2 and len(xs) <= MOST_COLUMNS:
            grids.append(
                _Grid(
                    xs,
                    ys,
                    [upright[n] for n in sorted(mine)],
                    [level[n] for n in sorted(across)],
                )
            )
    return grids


def _apart(places: Iterable[float]) -> list[float]:
    distinct: list[float] = []
    for index in sorted(places):
        if not distinct or index - distinct[-1] > SNAP:
            distinct.append(float(index))
    return distinct


def _tabled(segments: list[_Segment], grid: _Grid) -> list[_Segment]:
    """Return segments with those within a grid as one table, at the position of the
    first.

    They are returned as they are where they do not fill it like a table."""
    inside = [segment for segment in segments if _is_within(segment, grid)]
    if not inside:
        return segments
    rows, bands = _cells(inside, _parted(grid, inside))
    if not _is_table(rows):
        return segments
    first_segment = inside[0]
    table = replace(
        first_segment,
        text="",
        left=grid.xs[0],
        right=grid.xs[-1],
        y=max(segment.y for segment in inside),
        runs=[],
        rows=rows,
        bands=bands,
    )
    taken = {id(segment) for segment in inside}
    return [
        table if segment is first_segment else segment
        for segment in segments
        if segment is first_segment or id(segment) not in taken
    ]


def _is_within(segment: _Segment, grid: _Grid) -> bool:
    """Whether text that is upright, and no table yet, lies in a grid."""
    xs, ys = grid.xs, grid.ys
    return (
        segment.turn == 0
        and not segment.rows
        and xs[0] - 2 <= (segment.left + segment.right) / 2 <= xs[-1] + 2
        and ys[-1] - 2 <= segment.y + 0.3 * segment.size <= ys[0] + 2
    )


def _cells(segments: list[_Segment], grid: _Grid) -> tuple[list[list[str]], list[Box]]:
    """Return the rows of a grid that hold text, without empty columns, and the place of
    each row."""
    left, right = grid.xs[0], grid.xs[-1]
    banded = [
        (row, (left, low, right, top))
        for row, (top, low) in zip(
            _rows(segments, grid), pairwise(grid.ys), strict=True
        )
        if any(row)
    ]
    columns = zip(*(row for row, _ in banded), strict=True)
    used = [column for column in columns if any(column)]
    rows = [list(row) for row in zip(*used, strict=True)]
    return rows, [band for _, band in banded]


def _is_table(rows: list[list[str]]) -> bool:
    """Whether at least two rows have two cells, and few cells repeat their
    neighbours."""
    cells, full = sum(map(len, rows)), sum(sum(map(bool, row)) > 1 for row in rows)
    return full >= 2 and _repeated(rows) <= MOST_REPEATED * cells


def _parted(grid: _Grid, inside: Sequence[_Segment]) -> _Grid:
    """Return a grid without rulings between its rows with those parted: each has a name
    in the first column.

    One of more than `MOST_BANDS` rows stays as it is."""
    if len(grid.ys) - 1 > MOST_BANDS:
        return grid
    cuts: list[float] = []
    for top, low in pairwise(grid.ys):
        band = [
            segment
            for segment in inside
            if low <= segment.y + 0.3 * segment.size <= top
        ]
        names = sorted(
            (
                segment
                for segment in band
                if (segment.left + segment.right) / 2 < grid.xs[1]
            ),
            key=lambda segment: -segment.y,
        )
        other_segments = [
            segment
            for segment in band
            if (segment.left + segment.right) / 2 >= grid.xs[1]
        ]
        level = sum(
            any(abs(segment.y - name.y) < 0.3 * name.size for segment in other_segments)
            for name in names
        )
        if len(names) >= LEAST_NAMES and level >= ALIGNED * len(names):
            cuts += [name.y + name.size for name in names[1:]]
    ys = sorted([*grid.ys, *cuts], reverse=True)
    return _Grid(
        grid.xs,
        ys,
        grid.upright,
        [*grid.level, *((cut, grid.xs[0], grid.xs[-1]) for cut in cuts)],
    )


def _repeated(rows: Sequence[Sequence[str]]) -> int:
    """Return how many cells say what one beside them says: many do where boxes of a drawing are
    within one another."""
    repeated_in_rows = sum(
        bool(cell) and cell == neighbour
        for row in rows
        for cell, neighbour in pairwise(row)
    )
    return repeated_in_rows + sum(
        bool(cell) and cell == neighbour
        for pair in pairwise(rows)
        for cell, neighbour in zip(*pair, strict=True)
    )


def _rows(inside: Sequence[_Segment], grid: _Grid) -> list[list[str]]:
    """Return the cells of a grid; what spans several is repeated in each, as a table of HTML is
    read."""
    xs, ys = grid.xs, grid.ys
    count, width = len(ys) - 1, len(xs) - 1
    parent = {
        (row, column): (row, column) for row in range(count) for column in range(width)
    }

    def root(cell: tuple[int, int]) -> tuple[int, int]:
        while parent[cell] != cell:
            cell = parent[cell]
        return cell

    for row, column in list(parent):
        y, x = (ys[row] + ys[row + 1]) / 2, (xs[column] + xs[column + 1]) / 2
        if column + 1 < width and not _has(grid.upright, xs[column + 1], y):
            parent[root((row, column + 1))] = root((row, column))
        if row + 1 < count and not _has(grid.level, ys[row + 1], x):
            parent[root((row + 1, column))] = root((row, column))
    cells: dict[tuple[int, int], list[str]] = {}
    for segment in sorted(
        inside, key=lambda segment: (-round(segment.y), segment.left)
    ):
        y, x = segment.y + 0.3 * segment.size, (segment.left + segment.right) / 2
        row = next(
            (number for number in range(count) if ys[number + 1] <= y), count - 1
        )
        column = next(
            (number for number in range(width) if x <= xs[number + 1]), width - 1
        )
        cells.setdefault(root((row, column)), []).append(segment.text)
    return [
        [" ".join(cells.get(root((row, column)), [])) for column in range(width)]
        for row in range(count)
    ]


def _has(rulings: Sequence[tuple[float, float, float]], x: float, along: float) -> bool:
    return any(
        abs(position - x) <= SNAP and start - 2 <= along <= stop + 2
        for position, start, stop in rulings
    )


# --- order
# ------------------------------------------------------------------------------------------------------------


def _may_hop(segments: Sequence[_Segment]) -> bool:
    """Return whether many steps of the file go from one side to the other, as they do where it
    mixes columns."""
    if len(segments) < 6:
        return False
    sideways = sum(
        _away(segment, next_segment) > 0 for segment, next_segment in pairwise(segments)
    )
    return sideways >= _COLUMN_EMS.hops * len(segments)


def _in_order(segments: Sequence[_Segment], depth: int = 0) -> list[_Segment]:
    """Return segments column by column, those that cross a gutter between; in their own order where
    none is found."""
    gutter = (
        _gutter(segments) if len(segments) >= 6 and depth <= _COLUMN_EMS.depth else None
    )
    if gutter is None:
        return list(segments)
    pairs = [
        pair
        for pair in pairwise(segments)
        if _parts(gutter, *pair) or _parts(gutter, *reversed(pair))
    ]
    hopping = [segment for pair in pairs for segment in pair]
    sides = [
        [segment for segment in hopping if segment.right <= gutter],
        [segment for segment in hopping if segment.left >= gutter],
    ]
    # A table's names are short beside what is said of each: where those hop, its rows stay whole.
    if len(pairs) < _COLUMN_EMS.hops * len(segments) or not all(map(_is_text, sides)):
        return list(segments)
    ordered: list[_Segment] = []
    band: list[_Segment] = []
    for segment in sorted(
        segments, key=lambda segment: (-round(segment.y), segment.left)
    ):
        if segment.left < gutter < segment.right:
            ordered += [*_sided(band, gutter, depth), segment]
            band = []
        else:
            band.append(segment)
    return [*ordered, *_sided(band, gutter, depth)]


def _parts(gutter: float, segment: _Segment, next_segment: _Segment) -> bool:
    """Return whether one segment is left of a gutter and the other right of it."""
    return segment.right <= gutter <= next_segment.left


def _sided(band: Sequence[_Segment], gutter: float, depth: int) -> list[_Segment]:
    left_side, right = (
        [segment for segment in band if segment.right <= gutter],
        [segment for segment in band if segment.left >= gutter],
    )
    return [*_in_order(left_side, depth + 1), *_in_order(right, depth + 1)]


def _gutter(segments: Sequence[_Segment]) -> float | None:
    """Return the middle of the widest upright strip that few segments cross, with text
    on both sides; None where there is none."""
    lefts, rights = (
        np.asarray([segment.left for segment in segments]),
        np.asarray([segment.right for segment in segments]),
    )
    leftmost, rightmost = float(lefts.min()), float(rights.max())
    size = (
        Counter(round(segment.size) for segment in segments).most_common(1)[0][0] or 10
    )
    edge = _COLUMN_EMS.edge * (rightmost - leftmost)
    step = max(2.0, 0.4 * size, (rightmost - leftmost) / MOST_PLACES)
    places = np.arange(leftmost + edge, rightmost - edge, step)[:, None]
    crossing = ((lefts < places) & (rights > places)).sum(axis=1)
    before, after = (rights <= places).sum(axis=1), (lefts >= places).sum(axis=1)
    score = np.minimum(before, after) - 2 * crossing
    fits = (before >= 3) & (after >= 3) & (crossing <= 0.5 * len(segments))
    for number in np.argsort(-score, kind="stable").tolist():
        if not fits[number]:
            continue
        x = float(places[number, 0])
        left_side, right = (
            [segment for segment in segments if segment.right <= x],
            [segment for segment in segments if segment.left >= x],
        )
        width = min(segment.left for segment in right) - max(
            segment.right for segment in left_side
        )
        if (
            width > _COLUMN_EMS.gutter * size
            and _is_text(left_side)
            and _is_text(right)
        ):
            return x
        if score[number] < 0:
            break
    return None


def _is_text(column: Sequence[_Segment]) -> bool:
    if not column:
        return False
    width = max(segment.right for segment in column) - min(
        segment.left for segment in column
    )
    full = [
        len(segment.text)
        for segment in column
        if segment.right - segment.left > _COLUMN_EMS.full * width
    ]
    letters = sum(len(segment.text) for segment in column)
    return (
        len(full) >= 3
        and mean(full) >= _COLUMN_EMS.letters
        and sum(full) >= _COLUMN_EMS.text * letters
    )


def _as_lines(segments: Iterable[_Segment]) -> list[PrintLine]:
    """Return segments as lines; what follows on the same baseline is a further cell."""
    rows: list[list[_Segment]] = []
    for segment in segments:
        before = rows[-1][-1] if rows else None
        same_line = before is not None and abs(before.y - segment.y) <= 0.3 * min(
            before.size, segment.size
        )
        if before is not None and same_line and not before.rows and not segment.rows:
            rows[-1].append(segment)
        else:
            rows.append([segment])
    return [_line(row) for row in rows]


def _line(row: list[_Segment]) -> PrintLine:
    first_segment = row[0]
    if first_segment.rows:
        return PrintLine(
            "",
            first_segment.size,
            first_segment.y,
            False,
            [],
            first_segment.rows,
            bands=first_segment.bands,
        )
    sizes: Counter[float] = Counter()
    for segment in row:
        sizes[segment.size] += len(segment.text)
    fixed = 2 * sum(segment.fixed for segment in row) > sum(
        len(segment.text.replace(" ", "")) for segment in row
    )
    text = " ".join(segment.text for segment in row)
    cells = [
        Cell(segment.left, segment.right, segment.runs)
        for segment in sorted(row, key=lambda segment: segment.left)
    ]
    size, low, top = (
        sizes.most_common(1)[0][0],
        min(segment.low for segment in row),
        max(segment.top for segment in row),
    )
    return PrintLine(
        text, size, first_segment.y, fixed, cells, [], low, top, first_segment.turn
    )
