"""Filling a token budget with evidence from several pages: the one assembler (design:
docs/how-it-works.md).

`assemble` makes cited passages of a reading (`passages.py` chooses them). A statement
that several pages have letter by letter is shown once, with its other places. Not for:
scores (`pipeline/reading`) or finding pages (`pipeline/sources/gather.py`)."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from cancellation import check_cancelled
from pipeline.document.cite import cite, position_of
from pipeline.document.units import is_injected
from pipeline.evidence.passages import PassageMaker, UnitRange
from pipeline.evidence.show import (
    LINK_TOKENS,
    WIDE,
    Shown,
    headings_to_show,
    passage_text,
    show_evidence,
)
from pipeline.reading.reading import Reading
from pipeline.text.frame import inert, is_injection
from pipeline.text.tokens import count_each, cut_to_tokens
from pipeline.text.words import index_terms
from pipeline.work import traced
from readers.page import Document, Evidence, Score, Verdict, least_trust

UNASKED: Final = 700
"""Most tokens of an answer whose budget the caller leaves open."""
SHOWN_SHARE: Final = 0.4
"""Share of the best score, by `least_shown`, from which a passage begins, whatever room is left: of 340
questions at 256 and 512 tokens none is lost, and answers of 512 are 42 tokens
shorter."""
NEAREST_TOKENS: Final = 150
"""Room for the nearest passages where nothing answers."""
SHORT_SOURCES: Final = 300
"""Tokens up to which sources are shown whole where nothing surely answers."""
ASKED_ABOUT: Final = 0.7
"""Minimum share of the best score at which a prompt injection is quoted as relevant: 0
of 121 unrelated units (docs/log.md) reach it, 76 of 119 related ones do."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """Evidence within its budget: the page of the best unit first, on each page the
    passages in reading order."""

    evidence: tuple[Evidence, ...]
    shown: Shown
    left_out: int
    """Units worth showing that did not fit."""

    def lacks(self, verdict: Verdict, *, named: bool) -> bool:
        """Whether a larger budget may show what the question wants: something answers,
        units are left out, and the caller `named` a budget, it is `unsure`, or a
        passage ends inside a list or a table."""
        cut = any(passage.more for passage in self.evidence)
        is_wanted = named or verdict == "unsure" or cut
        return verdict != "none" and self.left_out > 0 and is_wanted


def fill(
    order: Sequence[int], measure: Callable[[Sequence[int]], int], max_tokens: int
) -> list[int]:
    """Return as many of the first units of `order` as fit `max_tokens`; the first that
    does not fit ends it.

    `measure` counts the tokens of the text that shows some units."""
    count, excess = 0, 1
    while excess <= len(order) and measure(order[:excess]) <= max_tokens:
        check_cancelled()
        count, excess = excess, 2 * excess
    excess = min(excess, len(order) + 1)
    while excess - count > 1:
        middle = (count + excess) // 2
        if measure(order[:middle]) <= max_tokens:
            count = middle
        else:
            excess = middle
    return list(order[:count])


def quotable(
    order: Sequence[int], documents: Sequence[Document], reading: Reading
) -> list[int]:
    """Return the units of `order`, best first, without prompt injections that are far
    from the question.

    Planted instructions would fill the rest of the budget; if the question is about
    them, they are quoted. The first of `order` is always kept."""
    values, places = reading.values, reading.places
    return [
        row
        for row in order
        if values[row] >= ASKED_ABOUT * values[order[0]]
        or not is_injected(documents[places[row][0]], places[row][1].block)
    ]


def least_shown(
    order: Sequence[int], documents: Sequence[Document], reading: Reading
) -> float:
    """Return the score from which a passage begins: `SHOWN_SHARE` of the best of
    `order` that has a word beyond the question's own.

    A page that repeats the question answers nothing, and would leave out what does."""
    if not order:
        return 0.0
    telling = (row for row in order if not _only_asks(row, documents, reading))
    return SHOWN_SHARE * float(reading.values[next(telling, order[0])])


def _only_asks(row: int, documents: Sequence[Document], reading: Reading) -> bool:
    index, unit = reading.places[row]
    language = documents[index].page.language or reading.question.language
    asked = reading.question.translated_to(language)
    known = asked.terms(language, keep_stop_words=True)
    return set(index_terms(unit.text, language=language)).issubset(known)


@traced("assemble")
def assemble(
    documents: Sequence[Document],
    reading: Reading,
    *,
    max_tokens: int,
    delimiter: str,
    open_end: bool = False,
) -> Assembled:
    """Choose units best first until `max_tokens` are used, and write them out as cited
    passages.

    Pages are numbered by their best unit; of a `none` only the nearest are chosen, in
    `NEAREST_TOKENS`. Of `SHORT_SOURCES` everything is, unless it is `answered`. `delimiter` is the answer's own for
    untrusted text (`pipeline/text/frame.py`). With `open_end` room is kept for links.
    Where no passage fits, the beginning of the best unit is shown; where not even a
    word of it does, nothing is."""
    if not len(reading.values):
        return Assembled((), show_evidence((), delimiter, max_tokens=max_tokens), 0)
    tokens = count_each([unit.text for _, unit in reading.places])
    is_short = sum(tokens) <= SHORT_SOURCES
    if reading.verdict == "none" and not is_short:
        max_tokens = min(max_tokens, NEAREST_TOKENS)
    writer = _Writer(documents, reading, delimiter, max_tokens, tokens)
    # 1. Units that passages may begin with, each statement once
    order = writer.statements()
    near = quotable(order, documents, reading)
    writer.unquoted = len(order) - len(near)
    # only what a model named begins a passage; of the rest what scores enough is counted
    # as left out, and has the cursor
    named = [row for row in near if row in reading.only] or near
    # 2. Passages around the best of them, as many as there is room for
    whole = is_short and not reading.answered
    least_score = 0.0 if whole else least_shown(near, documents, reading)
    chosen = writer.maker.choose(
        named,
        lambda passages: writer.write(passages).tokens,
        max_tokens - 2 * LINK_TOKENS if open_end else max_tokens,
        least_score=least_score,
    )
    # 3. The best unit is always shown, if only its beginning fits
    if not chosen:
        return writer.beginning(near[0], len(near) - 1)
    evidence = writer.evidence(chosen, cited=True)
    shown = show_evidence(
        evidence,
        delimiter,
        max_tokens=max_tokens,
        links="rest" if open_end else "frame",
        unquoted=writer.unquoted,
    )
    left_out = writer.maker.left_out(near, least_score)
    return Assembled(evidence, shown, left_out)


class _Writer:
    """Makes passages of the chosen units of a reading."""

    def __init__(
        self,
        documents: Sequence[Document],
        reading: Reading,
        delimiter: str,
        max_tokens: int,
        tokens: Sequence[int],
    ) -> None:
        self.documents = documents
        self.reading = reading
        self.places = reading.places
        self.delimiter = delimiter
        self.max_tokens = max_tokens
        self.unquoted = 0
        """Number of units left out as prompt injections."""
        self._rows_of: dict[tuple[tuple[str, ...], str], list[int]] = {}
        """Of each statement the rows that say it, best first."""
        self.maker = PassageMaker(documents, reading, [count + 1 for count in tokens])

    def statements(self) -> list[int]:
        """Return the rows, best first, of equal statements the best. It notes the
        rows of each statement, so it is called once."""
        for row in np.argsort(-self.reading.values, kind="stable").tolist():
            self._rows_of.setdefault(self._statement(row), []).append(row)
        return [rows[0] for rows in self._rows_of.values()]

    def _statement(self, row: int) -> tuple[tuple[str, ...], str]:
        """Return what equal statements share: their letters and the headings above."""
        _, unit = self.places[row]
        return unit.heading_path, " ".join(unit.text.split())

    def _is_heading(self, row: int) -> bool:
        index, unit = self.places[row]
        return self.documents[index].blocks[unit.block].kind == "heading"

    def write(self, passages: Sequence[UnitRange]) -> Shown:
        """Return passages as text, without their links."""
        evidence = self.evidence(passages, cited=False)
        return show_evidence(
            evidence, self.delimiter, max_tokens=self.max_tokens, unquoted=self.unquoted
        )

    def evidence(
        self, passages: Sequence[UnitRange], *, cited: bool
    ) -> tuple[Evidence, ...]:
        """Return passages as evidence: pages by their best passage, the passages of each
        in reading order."""
        by_page: dict[int, list[UnitRange]] = {}
        for passage in passages:
            by_page.setdefault(self.places[passage.start][0], []).append(passage)
        runs = [run for of_page in by_page.values() for run in self.maker.runs(of_page)]
        shown = {row for run in runs for row in run}
        return tuple(self._passage(run, shown, cited=cited) for run in runs)

    def _passage(self, run: Sequence[int], shown: Set[int], *, cited: bool) -> Evidence:
        document = self.documents[self.places[run[0]][0]]
        units = [self.places[row][1] for row in run]
        best = max(run, key=lambda row: float(self.reading.values[row]))
        page = document.page
        # A passage that begins with a heading names itself
        names_itself = self._is_heading(run[0]) and self.max_tokens < WIDE
        path = () if names_itself else units[0].heading_path
        headings = headings_to_show(page.title, path)
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
            more=self.maker.more(run, shown),
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
        """Return the citations of other pages that have the words of every unit of a
        passage under the same headings, at its best unit."""
        own = self.places[best][0]
        holding = [
            {self.places[copy][0] for copy in self._rows_of[self._statement(row)]}
            for row in run
        ]
        cited: dict[str, str] = {self.documents[own].page.final_url: ""}
        for row in self._rows_of[self._statement(best)]:
            index, unit = self.places[row]
            document = self.documents[index]
            url = document.page.final_url
            # A page may say one sentence thousands of times.
            if url not in cited and all(index in pages for pages in holding):
                cited[url] = cite(document, unit.start, unit.end)
        return tuple(filter(None, cited.values()))

    def beginning(self, row: int, left_out: int) -> Assembled:
        """Return the best unit alone, without headings and copies, cut to what fits; no
        passage where not even a word does."""
        passage = self._passage([row], {row}, cited=True)
        bare = replace(passage, heading_path=(), also=())
        around = show_evidence(
            (replace(bare, text="."),), self.delimiter, max_tokens=self.max_tokens
        ).tokens
        text = cut_to_tokens(passage.text, self.max_tokens - around - 1)
        if not text:
            return Assembled(
                (),
                show_evidence((), self.delimiter, max_tokens=self.max_tokens),
                left_out + 1,
            )
        cut = replace(bare, text=text if text == passage.text else f"{text} …")
        shown = show_evidence((cut,), self.delimiter, max_tokens=self.max_tokens)
        return Assembled((cut,), shown, left_out)
