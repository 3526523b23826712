"""Passages: stretches of units without a hole, grown around what scores best.

    best unit not yet covered → its record → neighbours, the better one first → the
    whole that it is part of

A passage ends at the headings around it, at `GROWN_TOKENS` tokens, or where its neighbours
score under half of the best unit of all. The best passage of an answer may be a whole
list, table, listing or record, as far as there is room: one place whole before many in
part. Not for: scores (`pipeline/reading`), or how passages are written (`show.py`,
`pipeline/evidence/render.py`)."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Final, NamedTuple

from pipeline.document.cite import one_position
from pipeline.document.page import Block, Document, Sentence
from pipeline.document.tree import count_words
from pipeline.document.units import is_aside
from pipeline.evidence.named import named_sections
from pipeline.evidence.render import is_header_row
from pipeline.evidence.show import SHORT_HEADING
from pipeline.evidence.wholes import Whole, Wholes, find_wholes
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import WORTH
from pipeline.work import check_cancelled

GROWN_AT_LEAST: Final = 30
"""Tokens to which a passage grows whatever its neighbours score: a sentence with the
one that completes it."""
GROWN_TOKENS: Final = 100
"""Tokens beyond which a passage grows no further, except to the end of what is
whole."""
ROUND: Final = 20
"""Most tokens by which a passage grows to the beginning and to the end of a paragraph,
whatever they score; of little room, that part of it."""
BRIDGE: Final = 16
"""Most tokens between two passages of a page that are quoted to make them one: a label
and a heading cost as many."""
END: Final = 0.4
"""Share of the best score below which no passage begins, whatever room is left."""
WHOLE_SHARE: Final = 0.8
"""Share of the room that the best passage may take to come whole; the rest is for what
a page says elsewhere."""
BEARS: Final = 0.2
"""Share of the best score that the middle unit of a whole must have for it to come
whole beyond `GROWN_TOKENS` tokens."""
_PART_NAMES: Final = {"list": "item", "table": "row", "listing": "line"}
NAMED_SCORE: Final = 0.4
"""Share of the best score that a section must have somewhere to come whole because the
question names its heading."""
PROCEDURE_SCORE: Final = 0.9
"""Share of the best score that the beginning of a section must have to be quoted as the
procedure that is asked for."""
COLONS: Final = (":", "：")
"""Marks at the end of a unit that announces what follows it."""
FEWEST_WORDS: Final = 8
"""Words of a further passage; fewer are a label or a heading."""
CRUMB: Final = 16
"""Tokens of room in which no further passage is begun."""


class UnitRange(NamedTuple):
    """A range of units [start, stop) of one document, numbered through all documents of
    a reading."""

    start: int
    stop: int
    best: int
    """The unit that it was grown around."""


class PassageLimits(NamedTuple):
    """Tokens of units to which a passage may grow."""

    most: int
    """By neighbors."""
    whole: int
    """Where that completes a list, a table or a record."""
    listing: int
    """Where that completes a listing: code is of use to its end only."""
    paragraph: int
    """By which it completes a paragraph, at each end."""


def joined(passages: Iterable[UnitRange], parts: Callable[[int], bool]) -> list[range]:
    """Return the units of passages of one document in reading order, those of
    neighbours together.

    A unit that `parts` from the one before it begins a stretch of its own. Passages
    must not overlap."""
    runs: list[range] = []
    for row in (
        row
        for passage in sorted(passages)
        for row in range(passage.start, passage.stop)
    ):
        if runs and row == runs[-1].stop and not parts(row):
            runs[-1] = range(runs[-1].start, row + 1)
        else:
            runs.append(range(row, row + 1))
    return runs


class PassageMaker:
    """Grows passages in the documents of a reading; no two of its passages share a
    unit."""

    def __init__(
        self,
        documents: Sequence[Document],
        reading: Reading,
        costs: Sequence[int],
        copies: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Prepare the units of `reading`.

        Args:
            documents: What was read.
            reading: Units and their scores.
            costs: Tokens of each unit [units].
            copies: For a unit all that say the same, in one list that they share; those
                of other pages than its own are not shown beside it."""
        self._copies = copies or {}
        self._documents = documents
        self._tagged = reading.tagged
        self._values: list[float] = reading.values.tolist()
        self._ends = list(accumulate(costs, initial=0))
        self._owners = [
            index for index, units in enumerate(reading.tagged) for _ in units
        ]
        self._firsts = list(accumulate(map(len, reading.tagged), initial=0))
        self._taken = [False] * len(self._values)
        self._said: set[int] = set()
        """First unit of each list of copies that a page has shown."""
        self._found: dict[int, Wholes] = {}
        self._kept: list[UnitRange] = []
        """All that are chosen."""
        self.cited: set[int] = set()
        """Documents of which a passage is chosen."""
        self._list_entries: dict[tuple[int, str], list[int]] = {}
        """First unit of each entry of a list, by the list's first unit and its
        element."""
        self._lines: dict[int, list[int]] = {}
        self._rows: dict[int, Counter[str]] = {}
        """Of tables, by their first unit, how many rows are below each header."""
        self._best = max(self._values, default=0.0)
        self._asked = reading.question.whole
        all_answered = all(part.answered for part in reading.parts)
        self._heads = [
            int(part.values.argmax()) for part in reading.parts if all_answered
        ]
        """The best unit of each part of the question, where all are answered."""
        self._sections = list(
            named_sections(documents, reading.tagged, reading.question)
        )

    def choose(
        self,
        order: Iterable[int],
        cost: Callable[[UnitRange], int],
        room: int,
        *,
        end: float = END,
        further: bool = False,
        whole: int = 0,
    ) -> list[UnitRange]:
        """Return passages around the units of `order`, best first, whose costs are
        within `room` tokens together.

        Args:
            order: Units that a passage may begin with.
            cost: Tokens of a passage with all that is written for it.
            room: Tokens for all of them.
            end: Share of the best score below which no passage begins.
            further: Whether others are chosen already; of these only listings come
                whole at the cost of all others.
            whole: Tokens that a whole may take which the question wants, where these
                are more than `room`.

        Returns:
            Empty where not even the first unit of `order` fits, or is worth it.
        """
        rows = self._one_page_first(order)
        if further:
            chosen = []
        else:
            most = max(whole, room)
            chosen = self._named(cost, most) or self._first(rows[:1], cost, room, most)
            if not chosen:
                return []
        # The first passage of a page costs the page's head as well
        spent = sum(map(cost, chosen))
        self._keep(chosen)
        for row in rows:
            check_cancelled()
            left = room - spent
            if left < CRUMB or self._values[row] < end * self._best:
                break
            if self._taken[row]:
                continue
            if begun := self._begun(row):
                spent += self._gone_on(begun, row, chosen, cost, left)
                continue
            passage, used = self._fitting(row, cost, left, 0.0)
            if passage is not None and self._is_complete(passage):
                passage = self._bridged(passage, left - used)
                spent += cost(passage)
                chosen.append(passage)
                self._keep([passage])
        return chosen

    def _first(
        self,
        best: Iterable[int],
        cost: Callable[[UnitRange], int],
        room: int,
        whole: int,
    ) -> list[UnitRange]:
        """Return the passage around the best unit, if there is one; it may be a whole,
        for which `whole` tokens are left if the question wants that. Empty where not
        even the unit fits."""
        found = (
            self._fitting(row, cost, whole, 1.0)
            if self._is_wanted(row)
            else self._fitting(row, cost, room, WHOLE_SHARE)
            for row in best
        )
        return [passage for passage, _ in found if passage is not None]

    def _bridged(self, passage: UnitRange, room: int) -> UnitRange:
        """Return a passage that reaches to those before and after it on its page where
        little is between them. It is unchanged where none is within `BRIDGE` tokens and
        `room`."""
        most = min(BRIDGE, room)
        start = low = passage.start
        while (
            self._goes_on(low)
            and not self._taken[low - 1]
            and self._cost(low - 1, start) <= most
        ):
            low -= 1
        if self._goes_on(low) and self._taken[low - 1]:
            start = low
        most -= self._cost(start, passage.start)
        stop = high = passage.stop
        while (
            self._goes_on(high)
            and not self._taken[high]
            and self._cost(stop, high + 1) <= most
        ):
            high += 1
        if self._goes_on(high) and self._taken[high]:
            stop = high
        return UnitRange(start, stop, passage.best)

    def _goes_on(self, row: int) -> bool:
        """Whether a unit is on the page of the one before it and begins no section."""
        return (
            0 < row < len(self._owners)
            and self._owners[row] == self._owners[row - 1]
            and not self._begins_section(row)
        )

    def _is_wanted(self, row: int) -> bool:
        """Whether the question wants all of what a unit is part of; an explanation of
        options is not a procedure."""
        steps = self._asked.steps and self._kind(row) not in {"definition", "row"}
        return self._asked.all or self._asked.sample or steps

    def _begun(self, row: int) -> UnitRange | None:
        """Return the passage that already has a part of the listing of a unit, so that
        code is not quoted in two pieces. None if the unit is in no listing, or no
        passage has a part of it."""
        listing = next(
            (one for one in self._around(row) if one.kind == "listing"), None
        )
        if listing is None:
            return None
        return next(
            (
                one
                for one in self._kept
                if one.start < listing.stop and listing.start < one.stop
            ),
            None,
        )

    def _gone_on(
        self,
        begun: UnitRange,
        row: int,
        chosen: list[UnitRange],
        cost: Callable[[UnitRange], int],
        room: int,
    ) -> int:
        """Let a chosen passage go on to a unit, if that fits, and return the tokens
        that it takes. These are 0 where it stays as it is: the unit does not fit,
        another passage is between, or `begun` is not among `chosen`."""
        longer = UnitRange(min(begun.start, row), max(begun.stop, row + 1), begun.best)
        between = (*range(longer.start, begun.start), *range(begun.stop, longer.stop))
        more = cost(longer) - cost(begun)
        if (
            begun not in chosen
            or more > min(room, GROWN_TOKENS)
            or any(self._taken[unit] for unit in between)
        ):
            return 0
        chosen[chosen.index(begun)] = longer
        self._kept.remove(begun)
        self._keep([longer])
        return more

    def _keep(self, passages: Iterable[UnitRange]) -> None:
        """Let no other passage have the units of these."""
        for passage in passages:
            self._kept.append(passage)
            self.cited.add(self._owners[passage.best])
            for unit in range(passage.start, passage.stop):
                self._take(unit)

    def _named(self, cost: Callable[[UnitRange], int], room: int) -> list[UnitRange]:
        """Return the section whose heading the question names and that bears on it
        best, or the wanted part of one that does not fit whole; empty where none fits.
        """
        found: list[tuple[float, UnitRange]] = []
        for heading, end in self._sections:
            start, stop = self._named_range(heading, end)
            # A section that lacks the example that is asked for only shares a word with the
            # question.
            if self._asked.sample and all(
                self._kind(row) != "code" for row in range(start, stop)
            ):
                continue
            best = max(range(start, stop), key=self._values.__getitem__)
            least = PROCEDURE_SCORE if self._asked.steps else NAMED_SCORE
            if self._values[best] >= least * self._best:
                shown = (
                    UnitRange(start, stop, best)
                    if self._cost(start, stop) <= room
                    else self._part(start, stop, room)
                )
                found += [(self._values[best], shown)] if shown else []
        # Of those that bear on it alike the smallest says it.
        found.sort(key=lambda one: (-one[0], one[1].stop - one[1].start))
        return next(([passage] for _, passage in found if cost(passage) <= room), [])

    def _named_range(self, start: int, stop: int) -> tuple[int, int]:
        """Return the units of a named section; of a card, whose name may be in its
        middle, all units."""
        wholes, first = self._wholes(start)
        own = start - first
        if own in wholes.begins:
            return start, stop
        return first + wholes.starts[own], first + wholes.stops[own]

    def _part(self, start: int, stop: int, room: int) -> UnitRange | None:
        """Return what of a section that does not fit is wanted most: its first example,
        or its list. None where it has neither, or its beginning bears too little on the
        question."""
        if self._asked.sample:
            code = next(
                (row for row in range(start, stop) if self._kind(row) == "code"), None
            )
            listing = (
                next((one for one in self._around(code) if one.kind == "listing"), None)
                if code
                else None
            )
            end = listing.stop if listing else (code or 0) + 1
            if code:
                return UnitRange(
                    code - 1,
                    min(end, self._end_within(code - 1, int(WHOLE_SHARE * room))),
                    code,
                )
        if self._asked.all or self._asked.steps:
            end = self._end_within(start, int(WHOLE_SHARE * room))
            # The beginning of a chapter that answers later is not a procedure
            best = max(self._values[start:end], default=0.0)
            answers = self._asked.all or best >= PROCEDURE_SCORE * self._best
            return UnitRange(start, end, start) if end > start + 1 and answers else None
        return None

    def _end_within(self, start: int, most: int) -> int:
        """Return where a passage ends that begins with a unit and has at most so many
        tokens."""
        return bisect_right(self._ends, self._ends[start] + most) - 1

    def _one_page_first(self, order: Iterable[int]) -> list[int]:
        """Return an order in which the steps of the best page come before what other
        pages mention."""
        rows = list(order)
        if not self._asked.steps or len(self._documents) < 2 or not rows:
            return rows
        own = self._owners[rows[0]]
        return sorted(
            rows,
            key=lambda row: (
                self._owners[row] != own or self._values[row] < WORTH * self._best
            ),
        )

    def _take(self, unit: int) -> None:
        """Let no other passage have a unit, or what says the same on another page."""
        self._taken[unit] = True
        alike = self._copies.get(unit, ())
        # Once a page has shown it, no other page does: each list is walked once.
        if not alike or alike[0] in self._said:
            return
        self._said.add(alike[0])
        for copy in alike:
            self._taken[copy] = (
                self._taken[copy] or self._owners[copy] != self._owners[unit]
            )

    def left_out(self, order: Iterable[int], share: float = WORTH) -> int:
        """Return how many units of `order` with at least a `share` of the best score no
        passage holds."""
        return sum(
            not self._taken[row] and self._values[row] >= share * self._best
            for row in order
        )

    def _is_complete(self, passage: UnitRange) -> bool:
        """Whether a passage says enough alone: a sentence, a row, code, or all of its
        page. Words that lead into what is not quoted do not."""
        stop = passage.stop
        leads = self._opens(stop - 1) and not (
            self._goes_on(stop) and self._taken[stop]
        )
        rows = range(passage.start, stop)
        whole = len(rows) == len(self._tagged[self._owners[passage.start]])
        return whole or not (leads or self._says_little(rows))

    def _fitting(
        self, row: int, cost: Callable[[UnitRange], int], room: int, share: float
    ) -> tuple[UnitRange | None, int]:
        """Return the largest of the passages around a unit that fits, and its cost.

        `share` of the room may go to a list, table or record that it completes. These
        are None and 0 where not even the unit alone fits."""
        most = min(GROWN_TOKENS, room // 2 if share else room)
        listing = int(max(share, WHOLE_SHARE) * room)
        paragraph = min(ROUND, room // 20)
        for limits in (
            PassageLimits(most, int(share * room), listing, paragraph),
            PassageLimits(most, 0, 0, 0),
        ):
            passage = self.grow(row, limits)
            used = cost(passage)
            if used <= room:
                return passage, used
        # What is written around the words takes the rest
        around = used - self._cost(passage.start, passage.stop)
        passage = self.grow(row, PassageLimits(room - around, 0, 0, 0))
        used = cost(passage)
        return (passage, used) if used <= room else (None, 0)

    def grow(self, row: int, limits: PassageLimits) -> UnitRange:
        """Return the passage around a unit, as far as `limits` let it grow. The unit
        alone may exceed them."""
        most = limits.most
        # 1. The unit with its record
        start, stop = self._atom(row, most)
        # 2. Neighbours, the better one first
        while (wider := self._wider(start, stop, most)) is not None:
            start, stop = wider
        # 3. What it is part of
        start, stop = self._completed(row, start, stop, limits)
        start, stop = self._rounded(start, stop, limits.paragraph)
        start, stop = self._trimmed(row, start, stop)
        # 4. No heading and no lead-in at its end, whose text would be missing
        while stop - 1 > row and self._opens(stop - 1):
            stop -= 1
        # 5. Headings above it that score as an answer does: they are quoted, not only named
        while (
            start
            and self._precedes(start)
            and self._answers_as_heading(start - 1, most)
        ):
            start -= 1
        # A page may be nothing but headings
        while (
            self._opens(stop - 1)
            and self._follows(stop)
            and self._cost(start, stop) <= most
        ):
            stop += 1
        return UnitRange(start, stop, row)

    def _trimmed(self, row: int, start: int, stop: int) -> tuple[int, int]:
        """Return a stretch without the lines of menus and the like at its ends that
        score low."""
        while start < row and self._is_furniture(start):
            start += 1
        while stop - 1 > row and self._is_furniture(stop - 1):
            stop -= 1
        return start, stop

    def _is_furniture(self, row: int) -> bool:
        """Return whether a unit is furniture and has no word of the question."""
        return is_aside(self._block(row)) and self._values[row] < END * self._best

    def shown(self, passages: Iterable[UnitRange]) -> list[list[int]]:
        """Return the units of one document's passages in reading order: neighbors
        together, rows by their table."""
        tables: dict[tuple[int, int], list[int]] = {}
        found: list[list[int]] = []
        for run in self._stretches(passages):
            table = self._table(run)
            if table in tables and self._kind(run[0]) in {"row", "heading"}:
                tables[table] += run
                continue
            if table:
                tables[table] = run
            found.append(run)
        return found

    def _stretches(self, passages: Iterable[UnitRange]) -> list[list[int]]:
        """Return passages of one document in reading order, cut where a section begins;
        what does not name or say anything goes with what follows it, else with what it
        follows."""
        found: list[list[int]] = []
        for run in reversed(joined(passages, self._begins_section)):
            last = found[-1] if found else []
            follows = bool(last) and last[0] == run.stop
            if follows and (self._depends(run) or self._depends(last)):
                last[:0] = run
            else:
                found.append(list(run))
        return found[::-1]

    def _depends(self, rows: Sequence[int]) -> bool:
        """Whether units are headings alone, or a few words without one; a card has its
        name."""
        headings = sum(self._kind(row) == "heading" for row in rows)
        return headings == len(rows) or (not headings and self._says_little(rows))

    def _says_little(self, rows: Sequence[int]) -> bool:
        """Whether units are headings or a table's header, or too few words to be a
        passage by themselves; a row and code are not."""
        kinds = set(map(self._kind, rows))
        if kinds == {"heading"} or all(map(self._is_header_row, rows)):
            return True
        words = sum(count_words(self._unit(row).text) for row in rows)
        return words < FEWEST_WORDS and kinds.isdisjoint(("row", "code"))

    def enough(self, chosen: Sequence[UnitRange]) -> UnitRange | None:
        """Return the first of `chosen`, with what was chosen beside it, where that says
        how something is done: all under a heading, or an option's explanation. None
        where it does not; `chosen` is not empty."""
        best = chosen[0].best
        runs = joined(chosen, lambda row: self._owners[row] != self._owners[row - 1])
        run = next(run for run in runs if best in run)
        wholes, first = self._wholes(best)
        low, high = wholes.starts[best - first], wholes.stops[best - first]
        if run.start <= first + low and first + high <= run.stop:
            headed = low - 1 if low - 1 in wholes.begins else low
            return UnitRange(max(run.start, first + headed), first + high, best)
        return chosen[0] if self._kind(best) == "definition" else None

    def _is_header_row(self, row: int) -> bool:
        """Whether a unit is the header of a table, which names what no row says here."""
        if self._kind(row) != "row":
            return False
        blocks = self._documents[self._owners[row]].blocks
        return is_header_row(blocks, self._unit(row).block)

    def enough_of_parts(self, chosen: Sequence[UnitRange]) -> list[UnitRange]:
        """Return of `chosen` what says enough of each part of the question; empty where
        that is not so for a part, or the question has none. No two share a unit."""
        found: list[UnitRange] = []
        for row in self._heads:
            if any(one.start <= row < one.stop for one in found):
                continue
            begun = next((one for one in chosen if one.start <= row < one.stop), None)
            if begun is None:
                return []
            around = [
                begun._replace(best=row),
                *(one for one in chosen if one != begun),
            ]
            enough = self.enough(around)
            if enough is None or any(
                one.start < enough.stop and enough.start < one.stop for one in found
            ):
                return []
            found.append(enough)
        return found

    def _begins_section(self, row: int) -> bool:
        """Whether a passage that begins with a unit is shown by itself: under a heading
        of its own, which the passage before it is not under, or at another place of its
        file."""
        wholes, first = self._wholes(row)
        return row - first in wholes.begins or self._begins_place(row)

    def _begins_place(self, row: int) -> bool:
        """Whether a unit begins a page, slide or message of its file: a passage is
        cited by one of them."""
        blocks = self._documents[self._owners[row]].blocks
        first, last = blocks[self._unit(row - 1).block], blocks[self._unit(row).block]
        return one_position(first.place, last.place) is None

    def _table(self, run: Sequence[int]) -> tuple[int, int] | None:
        """Return the range of the table whose rows a stretch ends with, None for
        anything else, and for rows without a header: below one, rows with others left
        out between them read as a shorter table; without one, as a hole."""
        kinds = [self._kind(row) for row in run]
        if kinds[-1] != "row" or not self._header(run[-1]):
            return None
        first = kinds.index("row")
        table = next(
            (one for one in self._around(run[first]) if one.kind == "table"), None
        )
        if table is None or run[-1] >= table.stop or set(kinds[first:]) != {"row"}:
            return None
        return table.start, table.stop

    def rest(self, run: Sequence[int]) -> str:
        """Return how much of the whole that a stretch ends in is not in it: `12 more
        items`; empty for nothing.

        Of a table it counts all other rows, of anything else what follows. A single row
        or item does not look like a complete list."""
        last = run[-1]
        whole = next(
            (one for one in self._around(last) if one.kind in _PART_NAMES), None
        )
        if whole is None or (
            whole.kind != "listing" and self._is_one_entry(run, whole)
        ):
            return ""
        if whole.kind == "table":
            rows = (
                row
                for row in run
                if whole.start <= row < whole.stop and self._kind(row) == "row"
            )
            header = self._header(last)
            count = self._rows_in(whole, header) - sum(
                self._header(row) == header for row in rows
            )
        else:
            count = self._count_after(last, whole)
        part = _PART_NAMES[whole.kind]
        return f"{count} more {part if count == 1 else f'{part}s'}" if count else ""

    def _is_one_entry(self, run: Sequence[int], whole: Whole) -> bool:
        """Whether a stretch is one block, or part of one entry of a list, without the
        words that lead into the list."""
        one_block = self._unit(run[0]).block == self._unit(run[-1]).block
        inside = run[0] >= whole.start and whole.kind == "list"
        return one_block or (
            inside and self._entry(run[0], whole) == self._entry(run[-1], whole)
        )

    def _entry(self, row: int, whole: Whole) -> str:
        """Return the name of the child of a whole's element that a unit is in."""
        blocks = self._documents[self._owners[row]].blocks
        below = blocks[self._unit(row).block].path[len(whole.path) + 1 :]
        return below.partition("/")[0]

    def _count_after(self, last: int, whole: Whole) -> int:
        """Return how many entries of a list, lines of a listing, follow a unit in
        it."""
        owner = self._owners[last]
        if whole.kind == "listing":
            ends = self._line_ends(owner)
            return bisect_right(ends, self._unit(whole.stop - 1).end) - bisect_right(
                ends, self._unit(last).end
            )
        entries = self._entries(whole)
        return len(entries) - bisect_right(entries, last)

    def _entries(self, whole: Whole) -> list[int]:
        """Return the first unit of each entry of a list; found once."""
        known = whole.start, whole.path
        if known not in self._list_entries:
            rows = range(whole.start, whole.stop)
            named = groupby(rows, key=lambda row: self._entry(row, whole))
            self._list_entries[known] = [next(entry) for _, entry in named]
        return self._list_entries[known]

    def _rows_in(self, table: Whole, header: str) -> int:
        """Return how many rows a table has below a header; counted once."""
        if table.start not in self._rows:
            inside = range(table.start, table.stop)
            self._rows[table.start] = Counter(
                self._header(row) for row in inside if self._kind(row) == "row"
            )
        return self._rows[table.start][header]

    def _header(self, row: int) -> str:
        return self._block(row).header

    def _block(self, row: int) -> Block:
        return self._documents[self._owners[row]].blocks[self._unit(row).block]

    def _line_ends(self, owner: int) -> list[int]:
        """Return where each line of a document ends that has more than white space;
        found once."""
        if owner not in self._lines:
            lines = self._documents[owner].text.split("\n")
            starts = accumulate((len(line) + 1 for line in lines), initial=0)
            said = zip(starts, map(str.rstrip, lines), strict=False)
            self._lines[owner] = [start + len(line) for start, line in said if line]
        return self._lines[owner]

    def _kind(self, row: int) -> str:
        return self._documents[self._owners[row]].blocks[self._unit(row).block].kind

    def _unit(self, row: int) -> Sentence:
        owner = self._owners[row]
        return self._tagged[owner][row - self._firsts[owner]]

    def _opens(self, row: int) -> bool:
        """Whether a unit is a heading, or ends with a colon: what follows belongs to
        it."""
        return self._kind(row) == "heading" or self._leads(row)

    def _follows(self, row: int) -> bool:
        """Whether unit `row` is on the page of the one before and in no passage yet."""
        return (
            row < len(self._owners)
            and self._owners[row] == self._owners[row - 1]
            and not self._taken[row]
        )

    def _precedes(self, row: int) -> bool:
        """Whether the unit before `row` is on its page and in no passage yet."""
        return (
            row > 0
            and self._owners[row] == self._owners[row - 1]
            and not self._taken[row - 1]
        )

    def _answers_as_heading(self, row: int, most: int) -> bool:
        """Whether a heading scores as an answer does; where room is small, one that is
        not named whole anyway."""
        answers = (
            self._kind(row) == "heading" and self._values[row] >= WORTH * self._best
        )
        return answers and (
            most >= GROWN_TOKENS or self._cost(row, row + 1) > SHORT_HEADING
        )

    def _cost(self, start: int, stop: int) -> int:
        return self._ends[stop] - self._ends[start]

    def _wholes(self, row: int) -> tuple[Wholes, int]:
        """Return the wholes of a unit's document, and the number of the document's
        first unit."""
        owner = self._owners[row]
        if owner not in self._found:
            self._found[owner] = find_wholes(
                self._documents[owner], self._tagged[owner]
            )
        return self._found[owner], self._firsts[owner]

    def _around(self, row: int) -> Iterator[Whole]:
        """Yield the wholes around a unit, the smallest first, numbered as the units of
        all documents are."""
        wholes, first = self._wholes(row)
        for whole in wholes.around(row - first):
            yield whole._replace(start=first + whole.start, stop=first + whole.stop)

    def _free(self, start: int, stop: int) -> bool:
        return not any(self._taken[start:stop])

    def _atom(self, row: int, most: int) -> tuple[int, int]:
        """Return what is shown together at least: a unit or its record, with its
        lead-in, or what it leads in. The unit alone where another passage has what
        belongs to it."""
        record = next(
            (whole for whole in self._around(row) if whole.kind == "record"), None
        )
        if (
            record
            and self._cost(record.start, record.stop) <= most
            and self._free(record.start, record.stop)
        ):
            return record.start, record.stop
        start, stop = row, row + 1
        if (
            self._leads(row)
            and self._continues(stop)
            and self._cost(start, stop + 1) <= most
        ):
            stop += 1
        if (
            self._continues(start)
            and self._leads(start - 1)
            and self._cost(start - 1, stop) <= most
        ):
            start -= 1
        return (start, stop) if self._free(start, stop) else (row, row + 1)

    def _leads(self, row: int) -> bool:
        """Return whether a unit introduces what follows: it ends with a colon and is
        not a row, or it is a term whose definition is a listing, a list or a table."""
        kind, text = self._kind(row), self._unit(row).text
        if kind in {"row", "heading"} or text.endswith(COLONS):
            return kind not in {"row", "heading"}
        defines = kind == "definition" and self._goes_on(row + 1)
        return defines and self._block(row + 1).lead.startswith(text)

    def _continues(self, row: int) -> bool:
        """Whether a unit follows another of the same section."""
        first = self._firsts[self._owners[min(row, len(self._owners) - 1)]]
        return (
            first < row < len(self._owners)
            and self._wholes(row)[0].starts[row - first] + first < row
        )

    def _wider(self, start: int, stop: int, most: int) -> tuple[int, int] | None:
        """Return a stretch with its better neighbour, None where it has grown
        enough."""
        wholes, first = self._wholes(start)
        low = first + min(wholes.starts[start - first], start - first)
        high = first + max(wholes.stops[stop - 1 - first], stop - first)
        used = self._cost(start, stop)
        # A row is read under its header; anything else that is short wants what is beside it.
        short = used < GROWN_AT_LEAST and self._kind(start) != "row"
        little = self._says_little(range(start, stop))
        options: list[tuple[float, int, int]] = []
        if (
            start > low
            and not self._taken[start - 1]
            and (little or not self._parts(start))
        ):
            before, _ = self._atom(start - 1, most - used)
            if before >= low:
                options.append((max(self._values[before:start]), before, stop))
        if stop < high and not self._taken[stop] and (little or not self._parts(stop)):
            _, after = self._atom(stop, most - used)
            if after <= high:
                options.append((max(self._values[stop:after]), start, after))
        wanted = [
            option
            for option in options
            if self._cost(*option[1:]) <= most
            and (short or option[0] >= WORTH * self._best)
        ]
        return max(wanted, key=lambda option: option[0])[1:] if wanted else None

    def _parts(self, row: int) -> bool:
        """Whether a unit begins a definition that what is before it does not lead into: each says
        all of its term alone."""
        return self._kind(row) == "definition" and not self._opens(row - 1)

    def _bears(self, whole: Whole) -> bool:
        """Whether a whole is worth more than `GROWN_TOKENS` tokens: half of it bears on the
        question, or it is code.

        Code is of use to its end only, and its lines score low by themselves; so is a
        list that all of is asked for."""
        if whole.kind == "listing" or (
            self._asked.all and whole.kind in {"list", "table"}
        ):
            return True
        values = sorted(self._values[whole.start : whole.stop])
        return (
            whole.kind != "paragraph" and values[len(values) // 2] >= BEARS * self._best
        )

    def _completed(
        self, row: int, start: int, stop: int, limits: PassageLimits
    ) -> tuple[int, int]:
        """Return a stretch with each whole completed that it holds a part of, as far as
        there is room."""
        for edge in (row, start, stop - 1):
            for one in self._around(edge):
                low, high = min(start, one.start), max(stop, one.stop)
                cost = self._cost(low, high)
                limit = limits.listing if one.kind == "listing" else limits.whole
                if self._defines(one):
                    return start, stop
                # The cheap question first: a list of thousands is asked about for each of its
                # items.
                if cost > max(limits.most, limit) or (
                    cost > limits.most and not self._bears(one)
                ):
                    return self._as_far(one, start, stop, limit)
                if not self._free(low, high):
                    break
                start, stop = low, high
        return start, stop

    def _defines(self, whole: Whole) -> bool:
        """Whether a whole is a list of definitions that the question does not want all of."""
        defining = whole.kind == "list" and self._kind(whole.stop - 1) == "definition"
        return defining and not self._asked.all

    def _rounded(self, start: int, stop: int, most: int) -> tuple[int, int]:
        """Return a stretch with the paragraphs completed that it begins and ends in,
        where they lack little."""
        block = self._unit(start).block
        low = start
        while (
            self._precedes(low)
            and self._unit(low - 1).block == block
            and self._cost(low - 1, start) <= most
        ):
            low -= 1
        whole = not (self._precedes(low) and self._unit(low - 1).block == block)
        start = low if whole else start
        block = self._unit(stop - 1).block
        high = stop
        while (
            self._follows(high)
            and self._unit(high).block == block
            and self._cost(stop, high + 1) <= most
        ):
            high += 1
        whole = not (self._follows(high) and self._unit(high).block == block)
        return start, high if whole else stop

    def _as_far(
        self, whole: Whole, start: int, stop: int, room: int
    ) -> tuple[int, int]:
        """Return a stretch with a list from its beginning, cut at the end, where steps
        or all items are wanted. It is unchanged where that is not wanted or does not
        fit."""
        wanted = (
            self._is_wanted(start) and not self._asked.sample and whole.kind == "list"
        )
        low = min(start, whole.start)
        high = min(whole.stop, self._end_within(low, room))
        fits = high >= stop and self._free(low, high)
        return (low, high) if wanted and fits else (start, stop)
