"""Filling a token budget with evidence from several pages: the one assembler (design: docs/how-it-works.md).

`fill` chooses units best first, measures what their text really takes, and refills; pruning uses it with a text of its
own. `assemble` makes cited passages of a reading. What several pages say in the same words is shown once with
all their places. Not for: scores (`pipeline/rank`) or finding pages (`pipeline/gather.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from pipeline.documents import Document, Evidence, Reading, Score, least_trust
from pipeline.evidence.cite import Copies, cite, cite_copy, place_of
from pipeline.evidence.show import HEADING_TOKENS, LINK_TOKENS, Shown, headings_to_show, passage_text, show_evidence
from pipeline.rank.bm25 import Floats
from pipeline.rank.relevance import WORTH
from pipeline.text.frame import inert, speaks_to_models
from pipeline.text.tokens import count_each, cut_to_tokens
from pipeline.work import check_cancelled, traced

ROUNDS: Final = 8
"""Rounds of filling by estimate and measuring; three nearly always do. Of 5,000 units that each cost twice what they
are estimated at the text is measured 16 times so, and 163 times without a bound."""
SMALLEST: Final = 6
"""Tokens of room that are not worth another round, and of a gap that is closed rather than marked."""
SAME_WORDS: Final = 12
"""Letters and digits from which on equal units of two pages are one statement; `Yes.` on two pages is two."""
REACH: Final = 12
"""Units between two of one heading up to which they are one passage."""
UNASKED: Final = 700
"""Most tokens of an answer whose budget the caller leaves open."""
SHORT: Final = 60
"""Tokens of pages that are shown whole then; and of a budget for each page, from which every page is shown."""
ASKED_ABOUT: Final = 0.7
"""Share of the best score from which a unit that speaks to a model is what the question is about: of the forms of
bench/injection.py, 0 of 121 units off the subject have it (the best .65, 5 over `WORTH`), 76 of 119 on it."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """Evidence within its budget: the page of the best unit first, on each page the best passage first."""

    evidence: tuple[Evidence, ...]
    shown: Shown
    left_out: int
    """Units worth showing that did not fit."""
    parts: tuple[str, ...] = ()
    """Label of the passage that speaks best to each of `Reading.parts`, empty where none is near."""

    def label_of(self, url: str, number: int) -> str:
        """Return the label of the passage that holds a unit of a page, empty where none does."""
        return labels_of(self.evidence, self.shown.labels).get((url, number), "")


def labels_of(evidence: Sequence[Evidence], labels: Sequence[str]) -> dict[tuple[str, int], str]:
    """Return the label of the passage that holds each quoted unit, by its page's address and its number there."""
    shown = zip(evidence, labels, strict=True)
    return {(one.url, number): label for one, label in shown for number in one.sentences}


def fill(
    order: Sequence[int], costs: Sequence[int], measure: Callable[[Sequence[int]], int], max_tokens: int
) -> list[int]:
    """Return the units of `order`, best first, whose text is within `max_tokens` exactly.

    `costs` are estimates for each unit; `measure` counts the text that shows some, with all that stands around them.
    """
    chosen: list[int] = []
    left = list(order)
    room = max_tokens
    for _ in range(ROUNDS):
        check_cancelled()
        added: list[int] = []
        skipped: list[int] = []
        for unit in left:
            fits = costs[unit] <= room
            (added if fits else skipped).append(unit)
            room -= costs[unit] if fits else 0
        if not added:
            break
        chosen += added
        while chosen and (over := measure(chosen) - max_tokens) > 0:
            # The weakest go first; what gave way is not tried again, or rounds would never end.
            while chosen and over > 0:
                over -= costs[chosen.pop()]
        left = skipped
        room = max_tokens - measure(chosen)
        if room < SMALLEST:
            break
    return chosen


def worth_showing(order: Sequence[int], values: Floats, costs: Sequence[int]) -> list[int]:
    """Return the units of `order`, best first, that an answer without a named budget shows: all of a short page."""
    if sum(costs[unit] for unit in order) <= SHORT:
        return list(order)
    return [unit for unit in order if values[unit] >= WORTH * values[order[0]]]


def quotable(order: Sequence[int], values: Floats, speaks: Callable[[int], bool]) -> list[int]:
    """Return the units of `order`, best first, without those that speak to a model and are far from the question.

    An order that somebody planted would fill what room is left; where the question is about it, it is quoted.
    """
    return [row for row in order if values[row] >= ASKED_ABOUT * values[order[0]] or not speaks(row)]


@traced("assemble")
def assemble(
    documents: Sequence[Document],
    reading: Reading,
    *,
    max_tokens: int,
    mark: str,
    open_end: bool = False,
) -> Assembled:
    """Choose units best first until `max_tokens` are used, and write them out as cited passages.

    Pages are numbered by their best unit; nothing is chosen from a `none`. `mark` is the answer's own for untrusted
    text (`pipeline/text/frame.py`). With `open_end` units much weaker than the best are left out, whatever the room.
    """
    if reading.verdict == "none" or not len(reading.values):
        return Assembled((), show_evidence((), mark, max_tokens=max_tokens), 0)
    writer = _Writer(documents, reading, mark, max_tokens)
    # 1. Candidates: units that say something, each statement once
    order = writer.candidates()
    # 2. Of the pages whose best unit is near the best of all; their heads share the frame, however many they are
    values = reading.values
    near_pages = {writer.places[row][0] for row in order if values[row] >= WORTH * values[order[0]]}
    order = [row for row in order if writer.places[row][0] in near_pages]
    near = quotable(order, values, writer.speaks)
    writer.unquoted, order = len(order) - len(near), near
    order = worth_showing(order, values, writer.costs) if open_end else order
    # 3. Fill, measure, refill
    # Without a named budget there is room for the addresses of some pages, and the link of the best passage.
    room = max_tokens - 3 * LINK_TOKENS if open_end else max_tokens
    chosen = fill(order, writer.costs, lambda rows: writer.write(rows).tokens, room)
    # 4. The best unit is always shown, if only its beginning fits
    if order and order[0] not in chosen:
        return writer.beginning(order[0], len(order) - 1)
    evidence = writer.evidence(chosen, cited=True)
    shown = show_evidence(
        evidence, mark, max_tokens=max_tokens, links="rest" if open_end else "frame", unquoted=writer.unquoted
    )
    return Assembled(evidence, shown, len(order) - len(chosen), writer.speaking(evidence, shown.labels))


class _Writer:
    """Makes passages of the chosen units of a reading."""

    def __init__(
        self,
        documents: Sequence[Document],
        reading: Reading,
        mark: str,
        max_tokens: int,
    ) -> None:
        self.documents = documents
        self.reading = reading
        self.places = reading.places
        self.costs = [tokens + 1 for tokens in count_each([unit.text for _, unit in self.places])]
        self.mark = mark
        self.max_tokens = max_tokens
        self.unquoted = 0
        """Units left out since they speak to a model."""
        self.said: dict[str, list[int]] = {}
        """Key of each statement to the rows that say it, best first."""

    def candidates(self) -> list[int]:
        """Return the rows that may be shown, best first; a short heading stands for the first unit below it."""
        shown_for = self._below_headings()
        rows = [shown_for[row] for row in np.argsort(-self.reading.values, kind="stable").tolist()]
        order: dict[int, None] = {}
        for row in rows:
            key = self._key(row)
            if key not in self.said:
                order[row] = None
            self.said.setdefault(key, []).append(row)
        return list(order)

    def _below_headings(self) -> list[int]:
        """Return for each row the one that is shown for it: itself, or the first below a run of short headings."""
        last = len(self.places) - 1
        found = list(range(last + 1))
        # From the end on, so that a page of nothing but headings is walked once.
        for row in range(last - 1, -1, -1):
            if self._is_label(row) and self.places[row + 1][0] == self.places[row][0]:
                found[row] = found[row + 1]
        return found

    def _is_label(self, row: int) -> bool:
        """Whether a unit is a heading that stands whole above the words below it; a longer one is a statement."""
        return self._kind(row) == "heading" and self.costs[row] <= HEADING_TOKENS

    def speaks(self, row: int) -> bool:
        """Whether a unit speaks to a model."""
        place, unit = self.places[row]
        return self.documents[place].blocks[unit.block].speaks

    def _kind(self, row: int) -> str:
        place, unit = self.places[row]
        return self.documents[place].blocks[unit.block].kind

    def _key(self, row: int) -> str:
        """Return what equal statements share: letters and digits in one case; short ones are equal on one page only."""
        place, unit = self.places[row]
        letters = "".join(filter(str.isalnum, unit.text.casefold()))
        return letters if len(letters) >= SAME_WORDS else f"{place} {unit.text.casefold()}"

    def write(self, rows: Sequence[int]) -> Shown:
        evidence = self.evidence(rows, cited=False)
        return show_evidence(evidence, self.mark, max_tokens=self.max_tokens, unquoted=self.unquoted)

    def evidence(self, rows: Sequence[int], *, cited: bool) -> tuple[Evidence, ...]:
        """Return the passages of `rows`: pages by their best row, on each the best first."""
        by_page: dict[int, list[int]] = {}
        for row in rows:
            by_page.setdefault(self.places[row][0], []).append(row)
        found: list[Evidence] = []
        for own in by_page.values():
            runs = list(self._runs(sorted(own)))
            runs.sort(key=lambda run: own[0] not in run)
            found.extend(self._passage(run, cited=cited) for run in runs)
        return tuple(found)

    def _runs(self, rows: Sequence[int]) -> Iterator[list[int]]:
        """Yield the units of each heading; a gap of a few words between two of them is closed rather than marked."""
        run: list[int] = []
        for row in rows:
            if run and not self._near(run[-1], row):
                yield run
                run = []
            run.extend(range(run[-1] + 1, row + 1) if run and self._follows(run[-1], row) else [row])
        if run:
            yield run

    def _near(self, row: int, after: int) -> bool:
        """Whether two units stand under one heading, near enough for one passage."""
        same = self.places[row][1].heading_path == self.places[after][1].heading_path
        return same and after - row <= REACH

    def _follows(self, row: int, after: int) -> bool:
        between = [self.places[place][1].text for place in range(row + 1, min(after, row + 1 + SMALLEST))]
        # Of a tree, units between two may not have been read.
        known = self.places[after][1].number - self.places[row][1].number == after - row
        return known and after - row <= SMALLEST and sum(count_each(between)) + len(between) <= SMALLEST

    def _passage(self, run: Sequence[int], *, cited: bool) -> Evidence:
        document = self.documents[self.places[run[0]][0]]
        units = [self.places[row][1] for row in run]
        best = max(run, key=lambda row: float(self.reading.values[row]))
        page = document.page
        headings = headings_to_show(page.title, units[0].heading_path)
        text = inert(passage_text(document, units))
        blocks = [document.blocks[unit.block] for unit in units]
        return Evidence(
            text=text,
            url=page.final_url,
            title=page.title,
            block_path=blocks[0].path,
            sentences=tuple(unit.number for unit in units),
            score=Score(round(float(self.reading.values[best]), 4), self.reading.made_by),
            citation=cite(document, *self._span(run, best)) if cited else "",
            place=place_of(document, units[0].start, units[-1].end),
            heading_path=headings,
            published=page.published,
            author=page.author,
            doi=page.doi,
            start=units[0].start,
            end=units[-1].end,
            also=self._also(run, best) if cited else (),
            trust=least_trust((page.trust, *(block.trust for block in blocks))),
            hidden=page.hidden,
            speaks=speaks_to_models("\n".join((page.title, *headings, text))),
        )

    def _span(self, run: Sequence[int], best: int) -> tuple[int, int]:
        """Return where the words around the best unit of a passage begin and end, up to the next gap."""
        first = last = run.index(best)
        while first and run[first - 1] == run[first] - 1:
            first -= 1
        while last + 1 < len(run) and run[last + 1] == run[last] + 1:
            last += 1
        return self.places[run[first]][1].start, self.places[run[last]][1].end

    def _also(self, run: Sequence[int], best: int) -> tuple[str, ...]:
        """Return the citations of other pages that hold a passage, or its best unit, with what they share around."""
        own = self.documents[self.places[best][0]].page.final_url
        words = " ".join(self._words(row) for row in run)
        equal = {self.places[row][0]: self.places[row][1] for row in reversed(self.said.get(self._key(best), []))}
        cited: dict[str, str] = {}
        for place, document in enumerate(self.documents):
            url = document.page.final_url
            if url in {own, *cited} or not (place in equal or self.copies.hold(place, (self._words(best), words))):
                continue
            cited[url] = cite_copy(document, self.reading.tagged[place], words, at=equal.get(place))
        return tuple(cited.values())

    @cached_property
    def copies(self) -> Copies:
        """What copies are looked for in; most answers are from one page, and ask for none."""
        return Copies(self._near_best())

    def _near_best(self) -> dict[int, str]:
        """Return the words of each page around units that are near the best of all: where a copy of these stands."""
        values = self.reading.values
        around: dict[int, set[int]] = {}
        for row in np.flatnonzero(values >= WORTH * values.max()).tolist():
            place, rows = self.places[row][0], range(max(0, row - REACH), min(len(values), row + REACH + 1))
            around.setdefault(place, set()).update(one for one in rows if self.places[one][0] == place)
        return {place: "\n".join(map(self._words, sorted(rows))) for place, rows in around.items()}

    def _words(self, row: int) -> str:
        place, unit = self.places[row]
        return self.documents[place].text[unit.start : unit.end]

    def speaking(self, evidence: Sequence[Evidence], labels: Sequence[str]) -> tuple[str, ...]:
        """Return for each part of the question the label of the passage with its best unit."""
        known = labels_of(evidence, labels)
        held = [(self.documents[place].page.final_url, unit.number) for place, unit in self.places]
        found: list[str] = []
        for part in self.reading.parts:
            near = np.flatnonzero(part.values >= WORTH * part.values.max(initial=0.0)) if part.verdict != "none" else ()
            best = sorted(near, key=lambda row: -float(part.values[row]))
            found.append(next((known[held[row]] for row in best if held[row] in known), ""))
        return tuple(found)

    def beginning(self, row: int, left_out: int) -> Assembled:
        """Return the best unit alone, cut to what fits."""
        passage = self._passage([row], cited=True)
        bare = replace(passage, heading_path=(), also=())
        around = show_evidence((replace(bare, text="."),), self.mark, max_tokens=self.max_tokens).tokens
        text = cut_to_tokens(passage.text, self.max_tokens - around - 1)
        if not text:
            return Assembled((), show_evidence((), self.mark, max_tokens=self.max_tokens), left_out + 1)
        cut = replace(bare, text=text if text == passage.text else f"{text} …")
        shown = show_evidence((cut,), self.mark, max_tokens=self.max_tokens)
        return Assembled((cut,), shown, left_out)
