"""Filling a token budget with evidence from several pages: the one assembler (design:
docs/how-it-works.md).

`assemble` makes cited passages of a reading (`passages.py` chooses them). What several
pages say in the same words is shown once with all its places. Not for: scores
(`pipeline/reading`) or finding pages (`pipeline/sources/gather.py`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from pipeline.document.cite import Copies, cite, cite_copy, position_of
from pipeline.document.page import Document, Evidence, Score, Verdict, least_trust
from pipeline.evidence.passages import CRUMB, END, PassageMaker, UnitRange
from pipeline.evidence.show import (
    HEADING_TOKENS,
    LINK_TOKENS,
    Shown,
    headings_to_show,
    injection_line,
    page_tokens,
    passage_text,
    passage_tokens,
    show_evidence,
)
from pipeline.reading.bm25 import Floats
from pipeline.reading.reading import Reading
from pipeline.reading.relevance import WORTH
from pipeline.reading.verdict import NONE
from pipeline.text.frame import inert, is_injection
from pipeline.text.tokens import Budget, count_each, count_tokens, cut_to_tokens
from pipeline.text.words import index_terms
from pipeline.work import check_cancelled, traced

FILLING_ROUNDS: Final = 8
"""Rounds of filling by estimate and measuring; three nearly always do. Of 5,000 units
that each cost twice what they are estimated at the text is measured 16 times so, and
163 times without a bound."""
SMALLEST: Final = 6
"""Tokens of room that are not worth another round."""
SAME_WORDS: Final = 12
"""Letters and digits from which on equal units of two pages are one statement; `Yes.`
on two pages is two."""
COPY_REACH: Final = 12
"""Units on each side of one near the best in which copies of a passage on other pages
are looked for."""
BESIDE: Final = 4
"""Units of one section up to which a passage is quoted before the best one if it is
before it."""
REPEATED: Final = 3
"""Terms from which a unit that has no other than the question's repeats it; and units
that are passed over for that."""
LISTED_SCORE: Final = 0.25
"""Score of its best unit, of the best page's, from which a page is listed among what
there is about a subject."""
UNASKED: Final = 700
"""Most tokens of an answer whose budget the caller leaves open."""
UNASKED_WHOLE: Final = 1_200
"""Most where the question wants a procedure, a list or an example, which is of use to
its end only."""
UNASKED_BRIEF: Final = 400
"""Maximum tokens if one passage surely answers, or if probably nothing does."""
NEARLY: Final = 0.9
"""Minimum share of the best score for a further page in a clear answer without a set
budget, and for suggesting another call for an omitted unit."""
QUESTION_MARKS: Final = ("?", "？", "؟")
ASKED_ABOUT: Final = 0.7
"""Minimum share of the best score at which a prompt injection is quoted as relevant: 0
of 121 unrelated units of bench/injection.py reach it, 76 of 119 related ones do."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """Evidence within its budget: the page of the best unit first, on each page the
    best passage first."""

    evidence: tuple[Evidence, ...]
    shown: Shown
    left_out: int
    """Units worth showing that did not fit."""
    parts: tuple[str, ...] = ()
    """Label of the best passage for each of `Reading.parts`; "" if none is near."""

    def lacks(self, verdict: Verdict, *, named: bool) -> bool:
        """Whether a larger budget may show what the question wants: units are left out,
        and the caller `named` a budget, it is not `answered`, or a passage ends inside
        a list or a table."""
        cut = any(one.more for one in self.evidence)
        return self.left_out > 0 and (named or verdict != "answered" or cut)

    def label_of(self, url: str, number: int) -> str:
        """Return the label of the passage that holds a unit of a page, empty where none
        does."""
        return labels_of(self.evidence, self.shown.labels).get((url, number), "")


def labels_of(
    evidence: Sequence[Evidence], labels: Sequence[str]
) -> dict[tuple[str, int], str]:
    """Return the label of the passage that holds each quoted unit, by its page's
    address and its number there. A unit in several passages has the label of the last.
    """
    shown = zip(evidence, labels, strict=True)
    return {
        (one.url, number): label for one, label in shown for number in one.sentences
    }


def fill(
    order: Sequence[int],
    costs: Sequence[int],
    measure: Callable[[Sequence[int]], int],
    max_tokens: int,
) -> list[int]:
    """Return the units of `order`, best first, whose text is within `max_tokens`
    exactly.

    `costs` are estimates for each unit; `measure` counts the text that shows some, with
    everything around them. One that does not fit is passed over, and weaker ones that
    do fit are taken."""
    chosen: list[int] = []
    left = list(order)
    budget = Budget(max_tokens)
    for _ in range(FILLING_ROUNDS):
        check_cancelled()
        added: list[int] = []
        skipped: list[int] = []
        for unit in left:
            (added if budget.spend(costs[unit]) else skipped).append(unit)
        if not added:
            break
        chosen += added
        while chosen and (over := measure(chosen) - max_tokens) > 0:
            # The weakest go first; what gave way is not tried again, or rounds would never end.
            while chosen and over > 0:
                over -= costs[chosen.pop()]
        left = skipped
        budget = Budget(max_tokens - measure(chosen))
        if budget.left < SMALLEST:
            break
    return chosen


def quotable(
    order: Sequence[int], values: Floats, injection: Callable[[int], bool]
) -> list[int]:
    """Return the units of `order`, best first, without prompt injections that are far
    from the question.

    Planted instructions would fill the rest of the budget; if the question is about
    them, they are quoted. The first of `order` is always kept."""
    return [
        row
        for row in order
        if values[row] >= ASKED_ABOUT * values[order[0]] or not injection(row)
    ]


@traced("assemble")
def assemble(
    documents: Sequence[Document],
    reading: Reading,
    *,
    max_tokens: int,
    mark: str,
    open_end: bool = False,
    listed: bool = False,
) -> Assembled:
    """Choose units best first until `max_tokens` are used, and write them out as cited
    passages.

    Pages are numbered by their best unit; nothing is chosen from a `none`. `mark` is
    the answer's own for untrusted text (`pipeline/text/frame.py`). With `open_end`
    units much weaker than the best are left out, whatever the room. Where pages are
    `listed`, each is shown by its best unit alone. Where no passage fits, the beginning
    of the best unit is shown; where not even a word of it does, nothing is."""
    if reading.verdict == "none" or not len(reading.values):
        return Assembled((), show_evidence((), mark, max_tokens=max_tokens), 0)
    writer = _Writer(documents, reading, mark, max_tokens)
    alone = listed or reading.made_by == "outline"
    # 1. Candidates: units that say something, each statement once
    near = _candidates(writer, open_end=open_end, listed=listed, alone=alone)
    # 2. Passages around the best of them, as many as there is room for
    room = max_tokens - 2 * LINK_TOKENS if open_end else max_tokens
    room -= count_tokens(injection_line((), writer.unquoted))
    # what a model named goes out alone; the rest is counted as left out, and has the cursor
    named = [row for row in near if row in reading.only] or near
    chosen = _chosen(writer, named, room, open_end=open_end, alone=alone)
    # 3. The weakest give way where the text is longer than was counted
    written = writer.write(chosen).tokens
    while len(chosen) > 1 and written > room:
        chosen.pop()
        written = writer.write(chosen).tokens
    # 4. The best unit is always shown, if only its beginning fits
    if near and (not chosen or written > max_tokens):
        return writer.beginning(near[0], len(near) - 1)
    evidence = writer.evidence(chosen, cited=True)
    shown = show_evidence(
        evidence,
        mark,
        max_tokens=max_tokens,
        links="rest" if open_end or listed else "frame",
        unquoted=writer.unquoted,
    )
    listing = alone and not nearest_alone(reading)
    left_out = len(near) - len(chosen) if listing else _left_out(writer, near, evidence)
    return Assembled(evidence, shown, left_out, writer.speaking(evidence, shown.labels))


def _candidates(
    writer: "_Writer", *, open_end: bool, listed: bool, alone: bool
) -> list[int]:
    """Return the units that passages may begin with, best first; `writer.unquoted`
    counts the prompt injections left out."""
    values = writer.reading.values
    order = writer.candidates()
    near = quotable(order, values, writer.injection)
    writer.unquoted = len(order) - len(near)
    if open_end:
        near = writer.with_literals(writer.on_best_pages(near))
    if listed:
        near = writer.first_each(near)
    return [row for row in near if values[row]] if alone else near


def _chosen(
    writer: "_Writer", near: Sequence[int], room: int, *, open_end: bool, alone: bool
) -> list[UnitRange]:
    """Return the passages around the best of `near` within about `room` tokens; with
    `alone` each is one unit. Where nothing has a name that is asked about, it is the
    first passage only."""
    reading = writer.reading
    beyond = most_unasked(reading) - _usual_unasked(reading) if open_end else 0
    if alone:
        found = writer.alone(near, room - beyond)
    else:
        end = WORTH if open_end else END
        found = _passages(writer, near, room, beyond=beyond, end=end)
    if nearest_alone(reading):
        return found[:1]
    # A procedure that came whole needs nothing beside it
    asked = reading.question.whole
    sure = open_end and ((asked.steps and asks_one_thing(reading)) or asked.sample)
    enough = writer.maker.enough(found) if sure and found else None
    if enough:
        return [enough]
    parts = writer.maker.enough_of_parts(found) if open_end else []
    return parts or found


def _left_out(
    writer: "_Writer", near: Sequence[int], evidence: Sequence[Evidence]
) -> int:
    """Return how many units that no passage has are worth a further call; 0 where
    nothing has a name that is asked about."""
    reading = writer.reading
    if nearest_alone(reading):
        return 0
    # An answer that is clear, and not cut, needs no further call for what is only worth showing
    cut = bool(evidence) and bool(max(evidence, key=lambda one: one.score.value).more)
    share = NEARLY if reading.verdict == "answered" and not cut else WORTH
    return writer.maker.left_out(near, share)


def _passages(
    writer: "_Writer", near: Sequence[int], room: int, *, beyond: int, end: float
) -> list[UnitRange]:
    """Return the passages around the best of `near`, as many as fit.

    `beyond` tokens of `room` are for what the question wants whole. What passages share
    was counted twice, or not at all: there may be room for more."""
    maker, usual = writer.maker, room - beyond
    chosen = maker.choose(near, writer.cost, usual, end=end, whole=room)
    for _ in range(
        FILLING_ROUNDS if chosen and not nearest_alone(writer.reading) else 0
    ):
        rest = usual - writer.write(chosen).tokens
        more = (
            maker.choose(near, writer.cost, rest, end=end, further=True)
            if rest >= CRUMB
            else []
        )
        if not more:
            break
        chosen += more
    return chosen


def most_unasked(reading: Reading) -> int:
    """Return the most tokens of an answer whose budget the caller leaves open."""
    usual = _usual_unasked(reading)
    return max(UNASKED_WHOLE, usual) if any(reading.question.whole) else usual


def _usual_unasked(reading: Reading) -> int:
    """Return the most tokens of an answer without a budget, but for what the question
    wants whole."""
    unlikely = (
        reading.verdict == "unsure" and reading.confidence < NONE and not reading.parts
    )
    brief = asks_one_thing(reading) and not any(reading.question.whole)
    return UNASKED_BRIEF if unlikely or brief else UNASKED


def asks_one_thing(reading: Reading) -> bool:
    """Whether a reading answers a question that one place can answer.

    A message that was pasted wants its remedy as well.
    """
    question = reading.question
    asking = bool(question.word) or question.text.rstrip().endswith(QUESTION_MARKS)
    asking = asking or any(question.whole)
    return reading.verdict == "answered" and asking and not reading.parts


def nearest_alone(reading: Reading) -> bool:
    """Whether nothing that was read has a name that is asked about, so that only the
    nearest passage is shown."""
    return bool(reading.absent) and reading.verdict == "unsure" and not reading.parts


def _letters(text: str) -> str:
    """Return what a heading shares with its line in a table of contents, which may be
    numbered."""
    return "".join(filter(str.isalpha, text.casefold()))


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
        self.costs = [
            tokens + 1 for tokens in count_each([unit.text for _, unit in self.places])
        ]
        self.mark = mark
        self.max_tokens = max_tokens
        self.unquoted = 0
        """Number of units left out as prompt injections."""
        self._language = reading.question.language
        self._terms = set(reading.question.terms())
        self._longest = 2 * len(reading.question.text)
        self.said: dict[str, list[int]] = {}
        """Key of each statement to the rows that say it, best first."""
        self.maker = PassageMaker(
            documents,
            reading,
            self.costs,
            self._copies() if len(documents) > 1 else None,
        )

    def _copies(self) -> dict[int, list[int]]:
        """Return for each row that several pages have all the rows that say the same,
        one list for all of these."""
        alike: dict[str, list[int]] = {}
        for row in range(len(self.places)):
            alike.setdefault(self._key(row), []).append(row)
        several = [
            rows
            for rows in alike.values()
            if self.places[rows[0]][0] != self.places[rows[-1]][0]
        ]
        return {row: rows for rows in several for row in rows}

    def candidates(self) -> list[int]:
        """Return the rows that may be shown, best first; what answers nothing by itself
        gives way to what follows. It fills `said`, so it is called once."""
        best_first = np.argsort(-self.reading.values, kind="stable").tolist()
        least = WORTH * self.reading.values.max(initial=0.0)
        order: dict[int, None] = {}
        for named in best_first:
            row = self._answering(self._contents.get(named, named))
            if self._is_title(named) and self.reading.values[row] < least:
                continue
            key = self._key(row)
            if key not in self.said:
                order[row] = None
            self.said.setdefault(key, []).append(row)
        return list(order)

    def first_each(self, order: Sequence[int]) -> list[int]:
        """Return the first row of `order` of each page that is near enough to be
        listed."""
        first: dict[int, int] = {}
        for row in order:
            if self.reading.values[row] >= LISTED_SCORE:
                first.setdefault(self.places[row][0], row)
        return list(first.values())

    def alone(self, rows: Sequence[int], room: int) -> list[UnitRange]:
        """Return as many of `rows` as fit, best first, each as a passage of that unit
        alone; the first that does not fit ends it."""
        chosen: list[UnitRange] = []
        budget = Budget(room)
        for row in rows:
            passage = UnitRange(row, row + 1, row)
            owner = self.places[row][0]
            head = LINK_TOKENS // 2 if owner not in self.maker.cited else 0
            if not budget.spend(self.cost(passage) + head):
                break
            chosen.append(passage)
            self.maker.cited.add(owner)
        return chosen

    @cached_property
    def _contents(self) -> dict[int, int]:
        """For each item that says what a heading of its page says the heading: a table
        of contents.

        An outline is made of such items.
        """
        if self.reading.made_by == "outline":
            return {}
        items: list[int] = []
        headings: dict[tuple[int, str], int] = {}
        for row, (index, unit) in enumerate(self.places):
            if self._kind(row) == "heading":
                headings[index, _letters(unit.text)] = row
            elif self._kind(row) == "item":
                items.append(row)
        found: dict[int, int] = {}
        for row in items if headings else ():
            index, unit = self.places[row]
            if (named := headings.get((index, _letters(unit.text)))) is not None:
                found[row] = named
        return found

    def _answering(self, row: int) -> int:
        """Return the first row from `row` on that is not a short heading or a repeat of
        the question. It is `row` itself where more than `REPEATED` of these follow each
        other."""
        index, last = self.places[row][0], len(self.places) - 1
        last = min(last, row + REPEATED + 1)
        first = row
        while (
            row < last
            and self.places[row + 1][0] == index
            and (self._is_label(row) or self._repeats(row))
        ):
            row += 1
        return row if row - first <= REPEATED else first

    def _repeats(self, row: int) -> bool:
        """Whether a unit has no word that the question lacks: a title, a message that
        was pasted, a FAQ's question."""
        text = self.places[row][1].text
        if len(text) > self._longest or self._kind(row) == "row":
            return False
        terms = set(index_terms(text, language=self._language))
        return len(terms) >= REPEATED and terms <= self._terms

    def _is_title(self, row: int) -> bool:
        """Whether a unit is the title of its page, which names what the page is about:
        what follows it is the page's beginning, whatever is asked."""
        index, unit = self.places[row]
        if unit.heading_path or not self._is_label(row):
            return False
        return unit.text.casefold() in self.documents[index].page.title.casefold()

    def _is_label(self, row: int) -> bool:
        """Return whether a unit is a heading short enough to be shown above its
        text."""
        return self._kind(row) == "heading" and self.costs[row] <= HEADING_TOKENS

    def on_best_pages(self, order: list[int]) -> list[int]:
        """Return the rows of `order` on the pages that answer best, where these surely
        answer: the best page of each part, or of a question that is one all that answer
        as well. For any other verdict they are all of `order`."""
        reading = self.reading
        if reading.verdict != "answered" or not order:
            return order
        least = NEARLY * reading.values[order[0]]
        best = [row for row in order if reading.values[row] >= least]
        if reading.parts:
            best = [int(part.values.argmax()) for part in reading.parts]
        pages = {self.places[row][0] for row in (order[0], *best)}
        return [row for row in order if self.places[row][0] in pages]

    def with_literals(self, order: list[int]) -> list[int]:
        """Return the rows of `order` that have one of the literals which the question
        shares with the first of them.

        All, where it shares none, or where one place may not be enough.
        """
        reading = self.reading
        called = [literal.casefold() for literal in reading.question.literals]
        if not (order and called and asks_one_thing(reading)):
            return order
        texts = {row: self.places[row][1].text.casefold() for row in order}
        shared = [literal for literal in called if literal in texts[order[0]]]
        return [
            row for row in order if any(map(texts[row].__contains__, shared))
        ] or order

    def injection(self, row: int) -> bool:
        """Return whether a unit looks like a prompt injection."""
        index, unit = self.places[row]
        return self.documents[index].blocks[unit.block].injection

    def _kind(self, row: int) -> str:
        index, unit = self.places[row]
        return self.documents[index].blocks[unit.block].kind

    def _key(self, row: int) -> str:
        """Return what equal statements share: letters and digits in one case; short
        ones are equal on one page only."""
        index, unit = self.places[row]
        letters = "".join(filter(str.isalnum, unit.text.casefold()))
        return (
            letters if len(letters) >= SAME_WORDS else f"{index} {unit.text.casefold()}"
        )

    def cost(self, passage: UnitRange) -> int:
        """Return the tokens of a passage with its label and heading, and with the head
        of its page where it is new."""
        evidence = self._passage(range(passage.start, passage.stop), cited=False)
        tokens = passage_tokens(evidence, max_tokens=self.max_tokens) + 1
        new = self.places[passage.start][0] not in self.maker.cited
        return tokens + page_tokens(evidence, self.mark) if new else tokens

    def write(self, passages: Sequence[UnitRange]) -> Shown:
        """Return passages as text, without their links."""
        evidence = self.evidence(passages, cited=False)
        return show_evidence(
            evidence, self.mark, max_tokens=self.max_tokens, unquoted=self.unquoted
        )

    def evidence(
        self, passages: Sequence[UnitRange], *, cited: bool
    ) -> tuple[Evidence, ...]:
        """Return passages as evidence: pages by their best passage, on each the
        surroundings of the best first, in reading order; neighbours are one."""
        by_page: dict[int, list[UnitRange]] = {}
        for passage in passages:
            by_page.setdefault(self.places[passage.start][0], []).append(passage)
        found: list[Evidence] = []
        for own in by_page.values():
            runs = self.maker.shown(own)
            runs.sort(key=lambda run: not self._is_beside(run, own[0].best))
            found.extend(self._passage(run, cited=cited) for run in runs)
        return tuple(found)

    def _is_beside(self, run: Sequence[int], best: int) -> bool:
        """Whether a chosen stretch is near the best unit and under the same heading, so
        that both are shown in reading order, before the other stretches of the page:
        the end of a story is not understood before its beginning.

        A definition is understood alone.
        """
        far = max(run[0] - best, best - run[-1], 0)
        if not far:
            return True
        headings = {self.places[row][1].heading_path for row in (run[0], best)}
        alone = self._kind(best) == "definition"
        return far <= BESIDE and len(headings) == 1 and not alone

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
            score=Score(
                round(float(self.reading.values[best]), 4), self.reading.made_by
            ),
            citation=cite(document, *self._span(run, best)) if cited else "",
            place=position_of(document, units[0].start, units[-1].end),
            heading_path=headings,
            published=page.published,
            author=page.author,
            doi=page.doi,
            start=units[0].start,
            end=units[-1].end,
            also=self._also(run, best) if cited else (),
            trust=least_trust((page.trust, *(block.trust for block in blocks))),
            hidden=page.hidden,
            injection=is_injection("\n".join((page.title, *headings, text))),
            more=self.maker.rest(run),
        )

    def _span(self, run: Sequence[int], best: int) -> tuple[int, int]:
        """Return where the words around the best unit of a passage begin and end, up to
        the next gap."""
        first = last = run.index(best)
        while first and run[first - 1] == run[first] - 1:
            first -= 1
        while last + 1 < len(run) and run[last + 1] == run[last] + 1:
            last += 1
        return self.places[run[first]][1].start, self.places[run[last]][1].end

    def _also(self, run: Sequence[int], best: int) -> tuple[str, ...]:
        """Return the citations of other pages that hold a passage, or its best unit,
        with what they share around."""
        own = self.documents[self.places[best][0]].page.final_url
        words = " ".join(self._words(row) for row in run)
        equal = {
            self.places[row][0]: self.places[row][1]
            for row in reversed(self.said.get(self._key(best), []))
        }
        cited: dict[str, str] = {}
        for index, document in enumerate(self.documents):
            url = document.page.final_url
            if url in {own, *cited} or not (
                index in equal or self.copies.hold(index, (self._words(best), words))
            ):
                continue
            cited[url] = cite_copy(
                document, self.reading.tagged[index], words, at=equal.get(index)
            )
        return tuple(cited.values())

    @cached_property
    def copies(self) -> Copies:
        """What copies are looked for in; most answers are from one page, and ask for
        none."""
        return Copies(self._near_best())

    def _near_best(self) -> dict[int, str]:
        """Return the text of each page around its units that are near the best, where
        copies are searched."""
        values = self.reading.values
        around: dict[int, set[int]] = {}
        for row in np.flatnonzero(values >= WORTH * values.max()).tolist():
            index, rows = (
                self.places[row][0],
                range(max(0, row - COPY_REACH), min(len(values), row + COPY_REACH + 1)),
            )
            around.setdefault(index, set()).update(
                one for one in rows if self.places[one][0] == index
            )
        return {
            index: "\n".join(map(self._words, sorted(rows)))
            for index, rows in around.items()
        }

    def _words(self, row: int) -> str:
        index, unit = self.places[row]
        return self.documents[index].text[unit.start : unit.end]

    def speaking(
        self, evidence: Sequence[Evidence], labels: Sequence[str]
    ) -> tuple[str, ...]:
        """Return for each part of the question the label of the passage with its best
        unit, "" where none shown is near the part."""
        known = labels_of(evidence, labels)
        held = [
            (self.documents[index].page.final_url, unit.number)
            for index, unit in self.places
        ]
        found: list[str] = []
        for part in self.reading.parts:
            near = (
                np.flatnonzero(part.values >= WORTH * part.values.max(initial=0.0))
                if part.verdict != "none"
                else ()
            )
            best = sorted(near, key=lambda row: -float(part.values[row]))
            found.append(
                next((known[held[row]] for row in best if held[row] in known), "")
            )
        return tuple(found)

    def beginning(self, row: int, left_out: int) -> Assembled:
        """Return the best unit alone, without headings and copies, cut to what fits; no
        passage where not even a word does."""
        passage = self._passage([row], cited=True)
        bare = replace(passage, heading_path=(), also=())
        around = show_evidence(
            (replace(bare, text="."),), self.mark, max_tokens=self.max_tokens
        ).tokens
        text = cut_to_tokens(passage.text, self.max_tokens - around - 1)
        if not text:
            return Assembled(
                (),
                show_evidence((), self.mark, max_tokens=self.max_tokens),
                left_out + 1,
            )
        cut = replace(bare, text=text if text == passage.text else f"{text} …")
        shown = show_evidence((cut,), self.mark, max_tokens=self.max_tokens)
        return Assembled((cut,), shown, left_out)
