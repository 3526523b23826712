"""Passages: stretches of units without a hole, grown around what scores best.

    best unit → its better neighbour, again and again → the list or listing that it completes

A passage stays in its section. It grows to `LEAST` tokens in any case, and on to `MOST`
while its neighbours score `EDGE` of its best unit. Not for: scores (`pipeline/reading`),
or how passages are written (`show.py`, `render.py`)."""

import re
from collections.abc import Callable, Iterable, Sequence, Set
from functools import cached_property
from itertools import accumulate, groupby
from typing import Final, NamedTuple

from cancellation import check_cancelled
from pipeline.document.cite import one_position
from pipeline.evidence.render import list_items_of
from pipeline.evidence.show import SHORT_HEADING
from pipeline.reading.reading import Reading
from readers.page import Block, Document, table_of

LEAST: Final = 30
"""Tokens to which a passage grows whatever its neighbours score: a sentence with the
one that completes it."""
MOST: Final = 100
"""Tokens to which a passage grows by neighbours; at most half of the room."""
EDGE: Final = 0.5
"""Share of the best unit's score from which a neighbour is taken beyond `LEAST`."""
SAME_BLOCK: Final = 0.05
"""What a neighbour of the same paragraph gains on one of another."""
FORWARD: Final = 0.02
"""What the unit after a passage gains on the one before it: texts are read onward."""
CODE_SHARE: Final = 0.8
"""Share of the room that a listing may take to come whole: code is of use to its end
only."""
FRAME_TOKENS: Final = 64
"""Tokens that the label, the heading path and the page's head of a passage are taken to
have until the text is counted."""
MISSES: Final = 8
"""Passages one after the other that do not fit, after which no further one is tried."""
_LISTING: Final = re.compile(r".*?/pre\d*(?=/|$)")
"""Path of a listing, whose pieces may be blocks of their own."""
_PART_NAMES: Final = {"item": "item", "row": "row", "code": "line"}


class UnitRange(NamedTuple):
    """Units [start, stop) of one section, numbered through all documents."""

    start: int
    stop: int
    best: int
    """The unit that it was grown around."""


class PassageMaker:
    """Grows passages in the documents of a reading; no two of its passages share a
    unit."""

    def __init__(
        self,
        documents: Sequence[Document],
        reading: Reading,
        tokens: Sequence[int],
    ) -> None:
        """Prepare the units of `reading`, which are of `tokens` each [units]."""
        self._documents = documents
        self._places = reading.places
        self._scores: list[float] = reading.values.tolist()
        self._ends = list(accumulate(tokens, initial=0))
        self._blocks = [
            documents[index].blocks[unit.block] for index, unit in reading.places
        ]
        self._sections = self._numbered_sections()
        self._taken = [False] * len(self._scores)

    def choose(
        self,
        order: Iterable[int],
        written: Callable[[Sequence[UnitRange]], int],
        room: int,
        *,
        least_score: float = 0.0,
    ) -> list[UnitRange]:
        """Return passages around the units of `order`, best first, that `written` counts
        as at most `room` tokens together.

        What does not fit comes as its best unit alone, or not. No passage begins below
        `least_score`."""
        answer = _Chosen(written, room)
        misses = 0
        for row in order:
            check_cancelled()
            if misses == MISSES or self._scores[row] < least_score:
                break
            if self._taken[row] or self._names_taken(row):
                continue
            tries = dict.fromkeys((self.grow(row, room), UnitRange(row, row + 1, row)))
            passage = next(
                (one for one in tries if answer.add(one, self._cost(*one[:2]))), None
            )
            if passage is None:
                misses += 1
                continue
            misses = 0
            for unit in range(passage.start, passage.stop):
                self._taken[unit] = True
        return answer.fitting()

    def grow(self, row: int, room: int) -> UnitRange:
        """Return the passage around a unit in an answer of `room` tokens. The unit alone
        may exceed them."""
        most = min(MOST, max(LEAST, room // 2))
        start, stop = row, row + 1
        while neighbours := self._neighbours(start, stop, most):
            score, low, high = max(neighbours)
            size = self._cost(start, stop)
            if size >= LEAST and score < EDGE * self._scores[row]:
                break
            start, stop = low, high
        code = self._blocks[row].kind == "code"
        low, high = self._enclosed[row]
        low, high = min(start, low), max(stop, high)
        limit = int(CODE_SHARE * room) if code else most
        if self._cost(low, high) <= limit and not any(self._taken[low:high]):
            start, stop = low, high
        return UnitRange(start, stop, row)

    def _neighbours(
        self, start: int, stop: int, most: int
    ) -> list[tuple[float, int, int]]:
        """Return the stretches that are a unit longer, each after that unit's score."""
        options: list[tuple[float, int, int]] = []
        for unit, inside, gain in (
            (start - 1, start, 0.0),
            (stop, stop - 1, FORWARD),
        ):
            if (
                not 0 <= unit < len(self._scores)
                or self._taken[unit]
                or self._sections[unit] != self._sections[inside]
            ):
                continue
            low, high = min(start, unit), max(stop, unit + 1)
            if self._cost(low, high) <= most:
                same = self._blocks[unit] is self._blocks[inside]
                score = self._scores[unit] + SAME_BLOCK * same + gain
                options.append((score, low, high))
        return options

    def runs(self, passages: Iterable[UnitRange]) -> list[list[int]]:
        """Return the units of one document's passages in reading order, cut where a
        section or a page of its file begins; rows below one header are together."""
        runs: list[list[int]] = []
        units = {
            row for passage in passages for row in range(passage.start, passage.stop)
        }
        for row in sorted(units):
            if runs and self._continues(runs[-1][-1], row):
                runs[-1].append(row)
            else:
                runs.append([row])
        return list(map(self._without_title, runs))

    def more(self, run: Sequence[int], shown: Set[int]) -> str:
        """Return how much of the list, table or listing that a stretch ends in is not in
        the answer, of which `shown` are the units: `12 more items`; empty for nothing.

        Of a table it counts all other rows, of anything else what follows. A single row
        or item does not look like a complete list."""
        row = run[-1]
        start, stop = self._enclosed[row]
        kind = self._blocks[row].kind
        if (len(run) == 1 and kind != "code") or kind not in _PART_NAMES:
            return ""
        if kind == "row":
            header = self._blocks[row].header
            rows = (unit for unit in range(start, stop) if unit not in shown)
            count = sum(self._blocks[unit].header == header for unit in rows)
        elif kind == "item":
            below = range(row + 1, stop)
            quoted = {id(self._blocks[unit]) for unit in below if unit in shown}
            count = len({id(self._blocks[unit]) for unit in below} - quoted)
        else:
            units = (unit for unit in range(row + 1, stop) if unit not in shown)
            lines = (self._places[unit][1].text.split("\n") for unit in units)
            count = sum(bool(line.strip()) for listed in lines for line in listed)
        name = _PART_NAMES[kind]
        return f"{count} more {name if count == 1 else f'{name}s'}" if count else ""

    def left_out(self, order: Iterable[int], least_score: float) -> int:
        """Return how many units of `order` with at least a score no passage holds."""
        return sum(
            not self._taken[row] and self._scores[row] >= least_score for row in order
        )

    def _cost(self, start: int, stop: int) -> int:
        return self._ends[stop] - self._ends[start]

    def _is_label(self, row: int) -> bool:
        """Whether a unit is a heading that a heading path names in full."""
        heading = self._blocks[row].kind == "heading"
        return heading and self._cost(row, row + 1) <= SHORT_HEADING + 1

    def _names_taken(self, row: int) -> bool:
        """Whether a unit is a short heading, and what it names is in a passage."""
        return self._is_label(row) and self._taken[min(row + 1, len(self._taken) - 1)]

    def _without_title(self, run: list[int]) -> list[int]:
        """Return a stretch without a first heading that only repeats the page's title,
        which is written above its passages."""
        index, unit = self._places[run[0]]
        is_heading = self._blocks[run[0]].kind == "heading"
        title = self._documents[index].page.title
        repeats = is_heading and unit.text.strip() in title
        return run[1:] if repeats and len(run) > 1 else run

    def _continues(self, row: int, following: int) -> bool:
        """Whether a unit is written in one stretch with the one before it."""
        if self._places[row][0] != self._places[following][0]:
            return False
        block, after = self._blocks[row], self._blocks[following]
        if following == row + 1 and self._sections[row] == self._sections[following]:
            return one_position(block.place, after.place) is not None
        # The header row itself has none above it.
        return bool(after.header) and _container(block) == _container(after)

    def _numbered_sections(self) -> list[int]:
        """Return the number of the section of each unit [units]; a section begins at a
        document, at a heading that follows text, and where the headings above change."""
        numbers: list[int] = []
        for row, (index, unit) in enumerate(self._places):
            if not row:
                numbers.append(0)
                continue
            index_before, unit_before = self._places[row - 1]
            kinds = [self._blocks[row - 1].kind, self._blocks[row].kind]
            begins = index != index_before or (
                kinds[0] != "heading"
                and (
                    kinds[1] == "heading"
                    or unit.heading_path != unit_before.heading_path
                )
            )
            numbers.append(numbers[-1] + begins)
        return numbers

    @cached_property
    def _enclosed(self) -> list[tuple[int, int]]:
        """Of each unit the units of its list, table or listing around it; of any other
        itself."""
        spans: list[tuple[int, int]] = []
        keys = (
            (index, _container(block))
            for (index, _), block in zip(self._places, self._blocks, strict=True)
        )
        for (_, container), group in groupby(keys):
            count = len(list(group))
            start = len(spans)
            spans += (
                [(start, start + count)] * count
                if container
                else [(row, row + 1) for row in range(start, start + count)]
            )
        return spans


class _Chosen:
    """Passages within a budget: their tokens are estimated while it is far from full,
    then counted, since writing all of them for each costs the square of their number."""

    def __init__(
        self, written: Callable[[Sequence[UnitRange]], int], max_tokens: int
    ) -> None:
        self.passages: list[UnitRange] = []
        self._written = written
        self._max_tokens = max_tokens
        self._used = 0
        self._is_counted = True

    def add(self, passage: UnitRange, tokens: int) -> bool:
        """Add a passage whose units have so many tokens, if it fits; return whether."""
        if self._used + tokens + FRAME_TOKENS <= self._max_tokens:
            self._used += tokens + FRAME_TOKENS
            self._is_counted = False
        else:
            if not self._is_counted:
                self._used, self._is_counted = self._written(self.passages), True
            if self._used + tokens > self._max_tokens:
                return False
            counted = self._written([*self.passages, passage])
            if counted > self._max_tokens:
                return False
            self._used = counted
        self.passages.append(passage)
        return True

    def fitting(self) -> list[UnitRange]:
        """Return the passages; where an estimate was too low the last give way."""
        while self.passages and self._written(self.passages) > self._max_tokens:
            self.passages.pop()
        return self.passages


def _container(block: Block) -> str:
    """Return the path of the list, table or listing that a block is directly in or is;
    empty for any other block."""
    if block.kind == "row":
        return table_of(block)
    if block.kind == "code":
        listing = _LISTING.match(block.path)
        return listing[0] if listing else block.path
    items = list_items_of(block)
    return items[-1].list if items else ""
