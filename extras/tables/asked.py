"""Questions that choose, compare, count or add, answered from a table where all of
their words are about it.

Every word that says something must be explained: by what is to be done, a column's
name, a cell's value, a number that is compared, or the table's title. If one is not, no
value is returned: a wrong value is worse than none. Not for: reading the question
(`spoken.py`), or computing (`pipeline/tables/query.py`)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Final
from urllib.parse import unquote

from errors import UsageError
from extras.tables.spoken import (
    Compared,
    Spoken,
    Token,
    read_question,
    said_of,
    tokens_of,
    translated_for,
)
from pipeline.document.page import Document
from pipeline.document.table import (
    FEWEST_CHOSEN_FROM,
    GROUP_COLUMN,
    KNOWN,
    Table,
    TableAnswer,
)
from pipeline.question.question import Question
from pipeline.tables.query import (
    Condition,
    Measure,
    Query,
    measured,
    rows_of,
    without_totals,
)
from pipeline.tables.table import all_rows, name_terms, tables_of
from pipeline.text.frame import one_line
from pipeline.text.months import Month, month_of
from pipeline.text.words import index_terms, meanings, words

NAME_CHARACTERS: Final = 80
"""Characters of a cell up to which it is the name of something that a question may
repeat."""
WORD_REACH: Final = 4
"""Words between `not` and what it denies, and between a column's name and the number
that it is compared with."""
WHOLE_COLUMNS: Final = 10
"""Columns of a table up to which a row that is chosen is shown whole."""
CHOSEN_SHARE: Final = 0.5
"""Share of a table above which the rows that match a condition are not a choice."""
GROUPS_NAMED: Final = 20
"""Values of a column that an answer names with a measure of each."""
_EQUAL: Final = "="
_GLOSS: Final = re.compile(r"\b([A-Z]\w+(?:\s[A-Z]\w+)*)\s\(([A-Z][A-Z\d]{1,5})\)")
"""A name, and its code in brackets."""


def ask_tables(question: Question, documents: Sequence[Document]) -> TableAnswer | None:
    """Return the answer of the one table that a question is about; None if uncertain.

    It is uncertain if two tables that fit best disagree, or if another matching table
    has unread rows or cells that do not add up. Tables of fewer than `FEWEST_CHOSEN_FROM` rows, or
    without column names, are left out."""
    found: list[TableAnswer] = []
    silent = -1
    for asking in _askings(question, documents):
        answer = asking.answer()
        if answer is not None and all_rows(documents[asking.document]):
            found.append(answer)
        elif answer is not None or asking.doubtful:
            silent = max(silent, len(asking.used))
    best = _agreed(found)
    return best if best is not None and best.explained > silent else None


def _askings(question: Question, documents: Sequence[Document]) -> "Iterator[_Asking]":
    """Yield a question put to each table, in the language of its file; of a file that
    does not name one, in English and in that of the question."""
    spoken: dict[str, Spoken] = {}
    for index, document in enumerate(documents):
        said = document.page.language
        for language in (said,) if said else dict.fromkeys(("en", question.language)):
            asked = spoken.setdefault(
                language, read_question(translated_for(question, language), language)
            )
            if asked.asks:
                yield from _of_document(asked, document, index)


def _of_document(asked: Spoken, document: Document, index: int) -> "Iterator[_Asking]":
    """Yield a question put to each table of a document that names its columns."""
    about = index_terms(
        f"{document.page.title} {document.page.final_url}", language=asked.language
    )
    for table in tables_of(document):
        if table.named and len(table.rows) >= FEWEST_CHOSEN_FROM:
            yield _Asking(asked, table, index, about)


def ask_parts(
    question: Question, parts: Iterable[Question], documents: Sequence[Document]
) -> tuple[TableAnswer, ...]:
    """Return the table answers to a question, or else to its parts."""
    asked = _asked(question, documents)
    return (
        (asked,)
        if asked
        else tuple(answer for part in parts if (answer := _asked(part, documents)))
    )


def _asked(question: Question, documents: Sequence[Document]) -> TableAnswer | None:
    """Return a table's answer to the first wording of a question that has one, or None.
    If the question names a file, only tables of that file are asked."""
    for index, document in enumerate(documents):
        name = unquote(document.page.final_url.partition("#")[0].rpartition("/")[2])
        if "." in name and name.casefold() in question.text.casefold():
            called = rf"(?:\b\w+\s+)?{re.escape(name)}"
            rest = re.sub(called, " ", question.text, flags=re.IGNORECASE)
            wordings = _wordings(Question(rest))
            answer = next(
                filter(None, (ask_tables(one, [document]) for one in wordings)), None
            )
            return replace(answer, document=index) if answer else None
    return next(
        filter(None, (ask_tables(one, documents) for one in _wordings(question))), None
    )


def _wordings(question: Question) -> Iterator[Question]:
    """Yield a question as it is, then with codes or names alone: `Alaska (AK)` is one
    thing."""
    yield question
    if _GLOSS.search(question.text):
        yield Question(_GLOSS.sub(r"\2", question.text))
        yield Question(_GLOSS.sub(r"\1", question.text))


def _agreed(found: Sequence[TableAnswer]) -> TableAnswer | None:
    """Return the answer of the tables that fit best; None where two of them disagree,
    or where there are none."""
    best = max((answer.fit for answer in found), default=0)
    first = [answer for answer in found if answer.fit == best]
    agree = all(_agree(first[0], other) for other in first[1:])
    return first[0] if first and agree else None


def _agree(one: TableAnswer, other: TableAnswer) -> bool:
    """Return whether two tables agree: the same rows, or the same extreme of rows that
    share a name, as of a table and its longer form."""
    if one.value != other.value:
        return False
    rows, others = (
        [answer.table.rows[row] for row in answer.rows] for answer in (one, other)
    )
    if sorted(rows) == sorted(others):
        return True
    names, known = (
        {cell for row in answer for cell in row if cell and not cell[0].isdigit()}
        for answer in (rows, others)
    )
    return len(rows) == len(others) == 1 and one.value != "" and bool(names & known)


@dataclass(slots=True)
class _Asking:
    """One question put to one table."""

    spoken: Spoken
    table: Table
    document: int
    about: Iterable[str]
    used: set[int] = field(default_factory=set)
    """Places of words that a column or a value explains."""
    conditions: list[Condition] = field(default_factory=list)
    either: dict[int, set[str]] = field(default_factory=dict)
    """Values of a column of which a row has one."""
    columns: list[int] = field(default_factory=list)
    """Columns that the question names or filters by."""
    denied: bool = False
    """Whether what the question denies was found."""
    dated: bool = False
    """Whether a month that the question names chooses rows."""
    doubtful: bool = False
    """Whether all words of the question are about it, but its cells do not add up or
    compare."""

    def answer(self) -> TableAnswer | None:
        """Return the table's answer; None if uncertain.

        `doubtful` is set where the table fits, but has cells that do not add up."""
        if not self._filter() or not self._compare():
            return None
        try:
            answer = self._computed()
        except UsageError:
            answer, self.doubtful = None, True
        explained = self._explained()
        self.doubtful = self.doubtful and explained
        return (
            replace(answer, explained=len(self.used))
            if answer is not None and explained
            else None
        )

    # Which rows

    def _filter(self) -> bool:
        """Find the cells that the question names; False where what it denies is not
        among them, or one may be of several columns."""
        stems = [token.stem for token in self.spoken.tokens]
        spans = self._spans(stems)
        self._months()
        taken = set(self.used)
        for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
            if taken.isdisjoint(range(start, end)):
                of = self._column_of(spans[start, end])
                if of is None:
                    return False
                taken |= set(range(start, end))
                self._take(of, spans[start, end][of], start)
        self.used |= taken
        self._parts_of_cells(stems)
        self._yes_or_no()
        return not self.spoken.negated or self.denied

    def _spans(self, stems: Sequence[str]) -> dict[tuple[int, int], dict[int, str]]:
        """Return the cells that the question names, one a column, by the place of their
        first word and the place after their last."""
        places: dict[str, list[int]] = {}
        for place, stem in enumerate(stems):
            places.setdefault(stem, []).append(place)
        spans: dict[tuple[int, int], dict[int, str]] = {}
        for column, cell, own in self._short_cells():
            wanted = [token.stem for token in own]
            for start in places.get(wanted[0], ()):
                end = start + len(own)
                if stems[start:end] == wanted and self._names(own, range(start, end)):
                    spans.setdefault((start, end), {})[column] = cell
        return spans

    def _short_cells(self) -> Iterator[tuple[int, str, tuple[Token, ...]]]:
        """Yield each cell of a column that may be a name, and its words."""
        for column in self._all_columns:
            for cell in dict.fromkeys(self.table.cells(column)):
                short = cell if len(cell) <= NAME_CHARACTERS else ""
                if own := tokens_of(short, self.spoken.language):
                    yield column, cell, own

    def _months(self) -> None:
        """Filter by months that the question names, whatever form the one column of
        dates gives them.

        A month without a year is one where the column has it in one year only. No month
        is used where several columns hold dates, or where it fits several of the column
        or none."""
        asked = self.spoken.months
        dates = [
            months
            for column in self._all_columns
            if asked and (months := self._dated(column))
        ]
        for one in asked if len(dates) == 1 else ():
            [months] = dates
            found = [
                own
                for own in months
                if own.month == one.month.month and one.month.year in {0, own.year}
            ]
            if len(found) == 1:
                places = [
                    at
                    for at, token in enumerate(self.spoken.tokens)
                    if one.start <= token.start < one.end
                ]
                self.used |= set(places)
                self.dated = True
                for column, cell in months[found[0]]:
                    self._take(column, cell, places[0])

    def _dated(self, column: int) -> dict[Month, list[tuple[int, str]]]:
        """Return the cells of a column by their month, {} if some are not dates with a
        month and a year."""
        found: dict[Month, list[tuple[int, str]]] = {}
        for cell in dict.fromkeys(self.table.cells(column)):
            month = month_of(cell)
            if month is None:
                return {}
            found.setdefault(month, []).append((column, cell))
        return found

    def _parts_of_cells(self, stems: Sequence[str]) -> None:
        """Filter by names that occur in longer cells of one column only (`Porto` in
        `Porto, Portugal`)."""
        named = self._about().union(*map(self._stems, self._all_columns))
        for places in self._free_names():
            run = stems[places.start : places.stop]
            found = {} if named.issuperset(run) else self._cells_with(run)
            if len(found) == 1:
                column, cells = found.popitem()
                self.used |= set(places)
                for cell in sorted(cells):
                    self._take(column, cell, places.start)

    def _free_names(self) -> Iterator[range]:
        """Yield the places of capitalised words in a row that nothing explains, the
        question's first word left out."""
        taken = self.used | self.spoken.operating | {0}
        free = {
            index
            for index, token in enumerate(self.spoken.tokens)
            if index not in taken and token.text[0].isupper() and token.says
        }
        for first in sorted(free):
            if first - 1 not in free:
                yield range(first, next(at for at in count(first) if at not in free))

    def _cells_with(self, run: Sequence[str]) -> dict[int, set[str]]:
        """Return the cells that hold terms one after the other, by their column."""
        found: dict[int, set[str]] = {}
        for column, cell, own in self._short_cells():
            stems = [token.stem for token in own]
            if any(stems[at : at + len(run)] == run for at in range(len(stems))):
                found.setdefault(column, set()).add(cell)
        return found

    def _about(self) -> set[str]:
        """Return the terms of the headings above the table, and of its page's title."""
        language = self.spoken.language
        return {
            *index_terms(f"{self.table.title} {self.table.about}", language=language),
            *self.about,
        }

    def _names(self, cell: Sequence[Token], places: range) -> bool:
        """Whether a cell's words in the question are its name, not words that say what
        is to be done."""
        tokens = self.spoken.tokens
        if set(places) <= self.spoken.operating or not any(
            token.says for token in cell
        ):
            return False
        if any(index == one.number for one in self.spoken.compared for index in places):
            return False
        return (
            len(cell[0].text) > 1
            or len(cell) > 1
            or tokens[places[0]].text == cell[0].text != cell[0].text.lower()
        )

    def _column_of(self, found: dict[int, str]) -> int | None:
        """Return the one of the `found` columns that holds a value: the only one, or
        the only one that the question names; None if several or none are named."""
        if len(found) == 1:
            return next(iter(found))
        return _only([column for column in found if self._matched(column)])

    def _take(self, column: int, cell: str, start: int) -> None:
        if column not in self.columns:
            self.columns.append(column)
        if self._denied(start):
            self.conditions.append(Condition(column, "!=", cell))
            self.denied = True
        else:
            self.either.setdefault(column, set()).add(cell)

    def _denied(self, start: int) -> bool:
        return any(0 < start - index <= WORD_REACH for index in self.spoken.negated)

    def _yes_or_no(self) -> None:
        """Filter by columns of yes and no that the question names."""
        yes, no = words("tables.yes"), words("tables.no")
        for column in self._all_columns:
            said = {cell.strip().lower() for cell in self.table.cells(column)}
            places = self._matched(column) - self.used
            if len(said) == 2 and said <= yes | no and said & yes and places:
                wanted = said & (no if self._denied(min(places)) else yes)
                cell = next(
                    cell
                    for cell in self.table.cells(column)
                    if cell.strip().lower() in wanted
                )
                self.conditions.append(Condition(column, "=", cell))
                self.columns.append(column)
                self.denied |= self._denied(min(places))
                self.used |= places

    def _compare(self) -> bool:
        """Find the column of each number that is compared; False where one is not
        found."""
        for one in self.spoken.compared:
            number = self.spoken.tokens[one.number]
            column = (
                self._named_before(one.words[0])
                if one.signed
                else self._compared_with(one)
            )
            if column is None:
                return False
            self.conditions.append(
                Condition(column, one.operator, number.text.rstrip(".,:"))
            )
            self.columns.append(column)
            self.used |= {one.number, *one.words}
            after = self.spoken.tokens[one.number + 1 : one.number + 2]
            units = {value.unit for value in self.table.values(column) if value}
            if after and (
                after[0].text.lower() in units or not after[0].text.isalnum()
            ):
                self.used.add(one.number + 1)
        return True

    def _compared_with(self, one: Compared) -> int | None:
        """Return the column of a number that words compare.

        None where several fit or none."""
        near = range(one.words[0] - WORD_REACH, one.number + WORD_REACH)
        words_near = (
            said_of("choosing.measures", self._within(one.words))
            + " "
            + self._same(near)
        )
        return self._numeric(near, words_near)

    def _named_before(self, sign: int) -> int | None:
        """Return the column that is named right before a sign (`unit price <= 5`).

        None where that is none, several or a column without numbers."""
        for reach in range(1, WORD_REACH + 1):
            near = range(sign - reach, sign)
            named = [c for c in self._all_columns if self._matched(c, near)]
            if len(named) > 1:
                continue
            if named and self.table.is_numeric(named[0]):
                self.used |= self._matched(named[0], near)
                return named[0]
        return None

    def _within(self, places: Iterable[int]) -> list[Token]:
        return [
            self.spoken.tokens[index]
            for index in places
            if 0 <= index < len(self.spoken.tokens)
        ]

    def _same(self, places: Iterable[int]) -> str:
        return said_of("tables.same", self._within(places))

    # Which column

    @property
    def _all_columns(self) -> range:
        return range(len(self.table.columns))

    def _stems(self, column: int) -> frozenset[str]:
        name = self.table.columns[column]
        return (
            frozenset(name_terms(name, self.spoken.language))
            if name != GROUP_COLUMN
            else frozenset()
        )

    def _matched(self, column: int, near: range | None = None) -> set[int]:
        """Return the places of the question's words that name a column."""
        stems = self._stems(column)
        places = range(len(self.spoken.tokens)) if near is None else near
        own = [index for index in places if 0 <= index < len(self.spoken.tokens)]
        return {index for index in own if self.spoken.tokens[index].stem in stems}

    def _numeric(self, near: range | None, hints: str) -> int | None:
        """Return the column of numbers that is named within `near`, else by `hints`,
        else the only one; None where several fit equally."""
        columns = [
            c
            for c in self._all_columns
            if self.table.is_numeric(c) and not self._numbers_rows(c)
        ]
        hinted = set(index_terms(hints, language=self.spoken.language))
        named: dict[int, int] = {
            c: len(self._matched(c, near) - self.used) for c in columns
        }
        meant: dict[int, int] = {c: len(self._stems(c) & hinted) for c in columns}
        for ways in (named, meant):
            if best := self._best(ways):
                if len(best) == 1 and near is None:
                    self.used |= self._matched(best[0])
                return _only(best)
        return _only([column for column in columns if column not in self.columns])

    def _best(self, shared: dict[int, int]) -> list[int]:
        """Return the columns whose names are `shared` most, by the number of words, then
        by their part of the name; none where no name is."""
        scored = {
            c: (count, count / len(self._stems(c)), self._literal(c))
            for c, count in shared.items()
            if count
        }
        most = max(scored.values(), default=None)
        return self._nearest([c for c, score in scored.items() if score == most])

    def _nearest(self, columns: list[int]) -> list[int]:
        """Return of columns that are named as well those named nearest to what is done: "in which
        year was wheat highest"."""
        done = self.spoken.operating
        far = {
            column: min(
                (abs(index - at) for index in self._matched(column) for at in done),
                default=0,
            )
            for column in columns
        }
        return [column for column in columns if far[column] == min(far.values())]

    def _literal(self, column: int) -> int:
        """Return how many words the question and a column's name share letter by letter
        (`wins`, not `Win %`)."""
        both = (
            self.spoken.tokens,
            tokens_of(self.table.columns[column], self.spoken.language),
        )
        spoken, named = ({token.text.lower() for token in tokens} for tokens in both)
        return len(spoken & named)

    def _numbers_rows(self, column: int) -> bool:
        """Whether a column only counts the rows."""
        values = [
            value.number if value else -1.0 for value in self.table.values(column)
        ]
        return column == 0 and all(
            after - before == 1 for before, after in pairwise(values)
        )

    def _label(self) -> int:
        """Return the column that names the rows: the first of words whose cells differ
        most.

        That is the first column where all hold numbers."""
        columns = [c for c in self._all_columns if not self.table.is_numeric(c)] or [0]
        return max(
            columns,
            key=lambda c: (
                len(set(self.table.cells(c))) > len(self.table.rows) / 2,
                -c,
            ),
        )

    # What is computed

    def _rows(self) -> list[int]:
        kept = rows_of(self.table, Query(conditions=tuple(self.conditions)))
        kept = [
            r
            for r in kept
            if all(self.table.rows[r][c] in cells for c, cells in self.either.items())
        ]
        return without_totals(self.table, kept)

    def _computed(self) -> TableAnswer | None:
        spoken, rows = self.spoken, self._rows()
        adding, meaning = self._unnamed(spoken.total), self._unnamed(spoken.mean)
        if not rows or spoken.asks_both:
            return None
        if spoken.least | spoken.most:
            return self._chosen(rows) if not adding | meaning else None
        if spoken.count:
            return self._counted(rows, adding=bool(adding))
        if adding | meaning:
            group = self._grouping()
            column = self._numeric(None, self._same(range(len(spoken.tokens))))
            return self._measured("sum" if adding else "mean", column, rows, group)
        few = max(FEWEST_CHOSEN_FROM, CHOSEN_SHARE * len(self.table.rows))
        chosen = self.conditions and len(rows) <= few
        return self._answer("", "rows", rows, ()) if chosen else None

    def _unnamed(self, places: set[int]) -> set[int]:
        """Return the places of words that are not of a column's name."""
        named = set().union(*map(self._stems, self._all_columns))
        return {at for at in places if self.spoken.tokens[at].stem not in named}

    def _counted(self, rows: list[int], *, adding: bool) -> TableAnswer | None:
        """Count rows, or add the column whose things are counted (`how many units in
        Porto`); None where it is uncertain which."""
        noun = max(self.spoken.count) + 1
        after = range(noun, noun + 2)
        numeric = filter(self.table.is_numeric, self._all_columns)
        if any(self._matched(c, after) for c in numeric):
            column = self._numeric(None, "")
            return (
                self._measured("sum", column, rows) if adding or self.either else None
            )
        group, headed = self._grouping(), self._matched(self._label(), after)
        self.used |= headed
        if group is not None and headed:
            return self._grouped("count", -1, rows, group)
        if not (headed or self.either or self.conditions or self._says_rows(after)):
            return None
        return self._answer(str(len(rows)), "rows", rows, ())

    def _says_rows(self, places: Iterable[int]) -> bool:
        """Whether one of some words is for rows of any table (`entries`)."""
        rows = words("tables.filler")
        return any(token.text.lower() in rows for token in self._within(places))

    def _grouping(self) -> int | None:
        """Return the column by whose values a measure is asked (`tons by state`, `in
        each port`); None where rows do not share them."""
        by = words("tables.by", self.spoken.language)
        for index, token in enumerate(self.spoken.tokens):
            after = range(index + 1, index + 1 + WORD_REACH)
            for column in self._all_columns if token.text.lower() in by else ():
                named = self._matched(column, after[: max(1, len(self._stems(column)))])
                different = len(set(self.table.cells(column)))
                if len(named) == len(self._stems(column)) > 0 and different < len(
                    self.table.rows
                ):
                    self.used |= {index, *named}
                    return column
        return None

    def _grouped(
        self, measure: Measure, column: int, rows: list[int], group: int
    ) -> TableAnswer:
        """Return a measure of each value of a column, in place of rows alone.

        Values beyond `GROUPS_NAMED` are only counted. Raises `UsageError` where the
        column has no such measure."""
        values: dict[str, list[int]] = {}
        for row in rows:
            values.setdefault(self.table.rows[row][group], []).append(row)
        said = [
            f"{name or '(empty)'} {measured(self.table, measure, column, own)[1].value}"
            for name, own in values.items()
        ]
        more = f"; {len(said) - GROUPS_NAMED} more" if len(said) > GROUPS_NAMED else ""
        noun = "rows" if column < 0 else f"{measure} of {self.table.columns[column]}"
        of = (group, column) if column >= 0 else (group,)
        answer = self._answer("", f"{noun} by {self.table.columns[group]}", rows, of)
        return replace(
            answer,
            what=one_line(f"{answer.what}: {'; '.join(said[:GROUPS_NAMED])}{more}"),
        )

    def _measured(
        self,
        measure: Measure,
        column: int | None,
        rows: list[int],
        group: int | None = None,
    ) -> TableAnswer | None:
        fewest = 1 if self.dated else 2
        if column is None or len(rows) < fewest:
            return None
        if not self._is_plain(column, rows):
            self.doubtful = True
            return None
        if group is not None and group != column:
            return self._grouped(measure, column, rows, group)
        _, computed = measured(self.table, measure, column, rows)
        what = f"{measure} of {self.table.columns[column]}"
        return self._answer(computed.value, what, list(computed.rows), (column,))

    def _chosen(self, rows: list[int]) -> TableAnswer | None:
        """Return the row with the least or the most of the column that is named, or
        that the words mean; None where it is uncertain or too many rows are equal."""
        spoken = self.spoken
        chosen = sorted(spoken.least | spoken.most)
        following = (index + 1 for index in chosen)  # `most expensive`
        hints = said_of("choosing.measures", self._within((*chosen, *following)))
        column = self._numeric(None, hints.replace("+", "").replace("-", ""))
        if column is None:
            column = self._dates(hints)
        if column is None or len(rows) < FEWEST_CHOSEN_FROM:
            return None
        if not self._is_plain(column, rows):
            self.doubtful = True
            return None
        most = self._way(column, hints)
        found = [] if most is None else self._ranked(column, rows, most=most)
        if not found or len(found) >= FEWEST_CHOSEN_FROM + spoken.rows - 1:
            return None
        said = " ".join(
            token.text
            for token in self._within(sorted(spoken.ranks | spoken.least | spoken.most))
        )
        what = f"{said}: {self.table.columns[column]}"
        extreme = self.table.rows[found[0]][column] if spoken.rows == 1 else ""
        return self._answer(extreme, what, found, (column,), over=len(rows), whole=True)

    def _ranked(self, column: int, rows: list[int], *, most: bool) -> list[int]:
        """Return the rows that the question asks for by their place in the order of a
        column's numbers, from the most or the least."""
        place, many = self.spoken.place, self.spoken.rows
        values = self.table.values(column)
        known = {row: value.number for row in rows if (value := values[row])}
        numbers = sorted(set(known.values()), reverse=most)
        wanted = numbers[place - 1 : place] if many == 1 else numbers[:many]
        return [row for number in wanted for row, own in known.items() if own == number]

    def _dates(self, hints: str) -> int | None:
        if not {hint.lstrip("+-") for hint in hints.split()} & {"date", "year"}:
            return None
        values = {
            c: [value for value in self.table.values(c) if value]
            for c in self._all_columns
        }
        return _only(
            [
                c
                for c, own in values.items()
                if own and all(value.kind == "date" for value in own)
            ]
        )

    def _way(self, column: int, hints: str) -> bool | None:
        """Return whether the most of a column is asked for; None where the words do not
        say."""
        kinds = {value.kind for value in self.table.values(column) if value}
        meant = {"date"} & kinds | ({"time"} if "clock" in kinds else set())
        stems = self._stems(column) | meant
        signs = {
            hint[0]
            for hint in hints.split()
            if hint[0] in "+-"
            and stems.intersection(index_terms(hint[1:], language=self.spoken.language))
        }
        if len(signs) == 1:
            return signs == {"+"}
        least, most = bool(self.spoken.least), bool(self.spoken.most)
        return most if least != most and not signs else None

    def _is_plain(self, column: int, rows: Sequence[int]) -> bool:
        values = [self.table.values(column)[row] for row in rows]
        plain = [value for value in values if value is not None and value.plain]
        return (
            len(plain) >= KNOWN * len(rows)
            and len({(value.kind, value.unit) for value in plain}) == 1
        )

    def _answer(
        self,
        value: str,
        what: str,
        rows: list[int],
        of: tuple[int, ...],
        *,
        over: int = 0,
        whole: bool = False,
    ) -> TableAnswer:
        """Return an answer; of rows that are chosen, every column is shown where they
        are few, since the question may ask for any (`in which month`)."""
        named = self.table.columns
        parts = [
            f"{named[one.column]} {one.operator} {one.value}" for one in self.conditions
        ]
        parts += [
            f"{named[column]} = {' or '.join(sorted(cells))}"
            for column, cells in self.either.items()
        ]
        answer = one_line(f"{what} where {' and '.join(parts)}" if parts else what)
        all_columns = range(len(named)) if whole and len(named) <= WHOLE_COLUMNS else ()
        columns = tuple(
            dict.fromkeys((self._label(), *of, *self.columns, *all_columns))
        )
        fit = len(self.used) + 2 * len(of)
        return TableAnswer(
            self.document,
            self.table,
            value,
            answer,
            tuple(rows),
            over or len(self.table.rows),
            columns,
            fit,
        )

    # Whether all is explained

    def _explained(self) -> bool:
        for column in self._all_columns:
            self.used |= self._matched(column)
        about = self._about()
        filler = (
            words("tables.filler")
            | words("verdict.asking")
            | meanings("tables.same").keys()
        )
        filler |= meanings("choosing.measures").keys()
        known = self.used | self.spoken.operating
        known |= {
            index
            for index, token in enumerate(self.spoken.tokens)
            if token.text == _EQUAL
        }
        rest = (
            token
            for index, token in enumerate(self.spoken.tokens)
            if token.says and index not in known
        )
        return all(
            token.stem in about or token.text.lower() in filler for token in rest
        )


def _only(columns: Sequence[int]) -> int | None:
    """Return the one column that there is, None for none or several."""
    return columns[0] if len(columns) == 1 else None
