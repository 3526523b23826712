"""A small query of one table: `where price < 50 and city = Porto sort price desc top 3
columns name, price`.

Clauses come in any order, each at most once: `where`, `sort COLUMN [desc]`, `top N`,
`columns A, B`, and `by COLUMN` for one value a group; any number of `count`, `sum`,
`min`, `max`, `mean` with their columns. Names and values with such words must be
quoted. Not for: writing the rows
(`table.py`)."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import takewhile
from typing import Final, Literal

from errors import UsageError
from pipeline.document.table import Table
from pipeline.tables.table import name_terms
from pipeline.text.cells import Value, value_of
from pipeline.text.frame import new_mark, quoted
from pipeline.text.words import words

Measure = Literal["count", "sum", "min", "max", "mean"]
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains"]

_QUERY_TOKEN: Final = re.compile(
    r"\"[^\"]*\"|'[^']*'|[<>!=]=|<>|[<>=~]|[,;()]|[^\s,;()<>=!~\"]+"
)
_SYNONYMS: Final = {
    "order": "sort",
    "group": "by",
    "limit": "top",
    "first": "top",
    "select": "columns",
    "column": "columns",
    "average": "mean",
    "avg": "mean",
    "total": "sum",
}
"""Other words for a clause."""
_MEASURES: Final = ("count", "sum", "min", "max", "mean")
_CLAUSES: Final = ("where", "sort", "top", "columns", "by", *_MEASURES)
CLAUSE: Final = re.compile(
    rf"\b(?:{'|'.join((*_CLAUSES, *_SYNONYMS))})\b", re.IGNORECASE
)
"""A word that begins a clause."""
CONDITION: Final = re.compile(r"[^<>=~]+(?:[<>!=]=|<>|[<>=~])\s*[^\s<>=~]")
"""Words that compare a column with a value."""
_NAMING_WORDS: Final = frozenset({"sum", "min", "max", "mean", "by", "where"})
"""Clauses whose next word is a column's name, whatever it is."""
_OPERATORS: Final[dict[str, Operator]] = {
    **{sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")},
    "==": "=",
    "<>": "!=",
    "~": "contains",
    "contains": "contains",
    "is": "=",
}
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
FORM: Final = "table 2 where price < 50 and city = Porto sort price desc top 3 columns name, price"
MORE: Final = (
    "also: count; sum, min, max or mean and a column (sum price); "
    "each of them with a group (mean price by city). Put column "
    "names that contain one of these keywords in quotes"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """What the cells of a column have to be."""

    column: int
    operator: Operator
    value: str


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of one table."""

    conditions: tuple[Condition, ...] = ()
    measure: Measure | None = None
    measured: int = -1
    """Column of the measure; -1 for `count`."""
    further: tuple[tuple[Measure, int], ...] = ()
    """More measures of the same rows, with their columns."""
    group: int = -1
    """Column whose values each get a measure of their own; -1 for none."""
    sort: int = -1
    descending: bool = False
    top: int = 0
    """0 for all rows."""
    columns: tuple[int, ...] = ()
    """Columns to be shown; none for all."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A value, and the rows that it is computed from."""

    value: str
    rows: tuple[int, ...]
    group: str = ""
    left_out: int = 0
    """Rows among them without a number in the column, or that are totals of the
    others."""


def _clauses(text: str) -> tuple[dict[str, list[str]], list[tuple[Measure, list[str]]]]:
    """Return the tokens of each clause of a query by its word, and those of each
    measure, in order.

    Raises `UsageError`: a word begins no clause.
    """
    tokens = _QUERY_TOKEN.findall(text)
    clauses: dict[str, list[str]] = {}
    asked: list[tuple[Measure, list[str]]] = []
    last, said = "", list[str]()
    for index, token in enumerate(tokens):
        word = _SYNONYMS.get(token.lower(), token.lower())
        if word == ";" or (word == "by" and last == "sort" and not said):
            continue
        names = last in _NAMING_WORDS and not said and index + 1 < len(tokens)
        if not names and (
            word in _MEASURES or (word in _CLAUSES and word not in clauses)
        ):
            last, said = word, []
            if word in _MEASURES:
                asked.append((word, said))
            else:
                clauses[word] = said
        elif last:
            said.append(token)
        elif token not in {":", ","}:
            raise _wrong(f"{token!r} is not a clause of a query")
    return clauses, asked


def parse_query(text: str, table: Table, language: str = "en") -> Query:
    """Return what the clauses of `text` ask of `table`; raises `UsageError`, which
    shows the right call."""
    clauses, asked = _clauses(text)
    reader = _ClauseReader(table, language)
    sort, descending = reader.sort(clauses.get("sort", []))
    top = _said(clauses.get("top", []))
    if top and not (top.isdigit() and int(top)):
        raise _wrong(f"top is {top!r}, which is no number of rows")
    measures = [
        pair for measure, said in asked for pair in reader.measures(measure, said)
    ]
    measure, measured = measures[0] if measures else (None, -1)
    return Query(
        conditions=reader.conditions(clauses.get("where", [])),
        measure=measure,
        measured=measured,
        further=tuple(measures[1:]),
        group=reader.column(clauses["by"]) if "by" in clauses else -1,
        sort=sort,
        descending=descending,
        top=int(top or 0),
        columns=tuple(map(reader.column, _split(clauses.get("columns", []), ","))),
    )


class _ClauseReader:
    """Reads the words of clauses as columns and values of a table."""

    def __init__(self, table: Table, language: str) -> None:
        self._table = table
        self._language = language

    def column(self, tokens: Sequence[str]) -> int:
        named = _said(
            [
                token
                for token in tokens
                if token not in {"(", ")"} and token.lower() != "of"
            ]
        )
        found = find_column(self._table, named, self._language)
        if found < 0:
            listed = quoted(", ".join(self._table.columns), new_mark())
            raise _wrong(
                f"Table {self._table.number} has no one column {named!r}; its columns are {listed}"
            )
        return found

    def measures(
        self, measure: Measure, tokens: list[str]
    ) -> list[tuple[Measure, int]]:
        """Return a measure with each column that is named for it; a count has none."""
        if measure == "count":
            return [(measure, -1)]
        return [(measure, self.column(said)) for said in _split(tokens, ",") or [[]]]

    def sort(self, tokens: list[str]) -> tuple[int, bool]:
        if not tokens:
            return -1, False
        way = tokens[-1].lower()
        return self.column(
            tokens[:-1] if way in {"asc", "desc"} else tokens
        ), way == "desc"

    def conditions(self, tokens: Sequence[str]) -> tuple[Condition, ...]:
        return tuple(map(self._condition, _split(tokens, "and")))

    def _condition(self, tokens: list[str]) -> Condition:
        name = list(takewhile(lambda token: token.lower() not in _OPERATORS, tokens))
        rest = tokens[len(name) :]
        if not name or len(rest) < 2:
            raise _wrong(
                f"{' '.join(tokens)!r} is not a condition (COLUMN = != < <= > >= "
                f"contains VALUE)"
            )
        if any(token.lower() == "or" for token in rest):
            raise _wrong("Conditions are joined by 'and' only; ask twice for 'or'")
        operator = _OPERATORS[rest[0].lower()]
        value = _said(rest[1:])
        if operator == "=" and value.lower().startswith("not "):
            operator, value = "!=", value[4:]
        condition = Condition(self.column(name), operator, value)
        if operator in {"<", "<=", ">", ">="} and value_of(value) is None:
            raise _wrong(
                f"{value!r} cannot be compared by {operator}; it is no number, date or time"
            )
        return condition


def find_column(table: Table, name: str, language: str) -> int:
    """Return the one column that a name means, -1 for none or several."""
    exact = [
        index
        for index, column in enumerate(table.columns)
        if column.casefold() == name.casefold()
    ]
    wanted = name_terms(name, language)
    terms = [name_terms(column, language) for column in table.columns]
    same = [index for index, column in enumerate(terms) if wanted and column == wanted]
    within = [
        index
        for index, column in enumerate(terms)
        if wanted and set(wanted) <= set(column)
    ]
    return next((found[0] for found in (exact, same, within) if len(found) == 1), -1)


def _split(tokens: Sequence[str], at: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token.lower() == at:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _said(tokens: Sequence[str]) -> str:
    """Return tokens as they were written, without quotes around them."""
    return " ".join(
        token.strip("\"'") if token[0] in "\"'" else token for token in tokens
    ).strip()


def _wrong(what: str) -> UsageError:
    return UsageError(f"{what}.", hint=f'Write part="{FORM}"; {MORE}.')


# Running one


def rows_of(table: Table, query: Query) -> list[int]:
    """Return the rows that a query keeps, in its order.

    `top` does not cut the rows of a measure."""
    values = {
        condition.column: table.values(condition.column)
        for condition in query.conditions
    }
    kept = [
        row
        for row, cells in enumerate(table.rows)
        if all(
            _holds(one, cells[one.column], values[one.column][row])
            for one in query.conditions
        )
    ]
    if query.sort >= 0:
        kept = _sorted(table, kept, query)
    return kept[: query.top] if query.top and not query.measure else kept


def _holds(condition: Condition, cell: str, value: Value | None) -> bool:
    wanted, sign, asked = (
        condition.value.casefold(),
        condition.operator,
        value_of(condition.value),
    )
    if sign == "contains":
        return wanted in cell.casefold()
    equals = sign in {"=", "!="}
    if equals and cell.casefold() == wanted:
        return sign == "="
    if asked is None or value is None or (equals and not asked.plain):
        return sign == "!="
    number = value.number
    if (asked.kind, value.kind) == ("number", "date"):
        number = math.floor(number)  # a year names all its days
    elif asked.kind != value.kind:
        return sign == "!="
    return _COMPARE[sign](number, asked.number)


def _sorted(table: Table, rows: Sequence[int], query: Query) -> list[int]:
    """Return rows by a column's numbers, or by its words where it holds few; what has
    none comes last."""
    cells, values = table.cells(query.sort), table.values(query.sort)
    keys: dict[int, float] | dict[int, str]
    if table.is_numeric(query.sort):
        keys = {row: value.number for row in rows if (value := values[row]) is not None}
    else:
        keys = {row: cells[row].casefold() for row in rows if cells[row]}
    known = sorted(keys, key=keys.__getitem__, reverse=query.descending)
    return known + [row for row in rows if row not in keys]


def compute(table: Table, query: Query) -> list[Computed]:
    """Return the measure of a query: one for all rows, or one a group, the largest
    first.

    Rows that are totals of the others are left out of it. Raises `UsageError` for a
    column without numbers, or with some that do not add up. A group without a number in
    the column comes last, with "" as its measure. Without a measure in the query there
    are none."""
    if query.measure is None:
        return []
    rows = rows_of(table, query)
    if query.group < 0:
        return [measured(table, query.measure, query.measured, rows)[1]]
    groups: dict[str, list[int]] = {}
    for row in rows:
        groups.setdefault(table.rows[row][query.group], []).append(row)
    known = _with_numbers(table, query, groups)
    empty = (-math.inf, Computed("", ()))
    found = [
        (
            *(
                measured(table, query.measure, query.measured, own)
                if name in known
                else empty
            ),
            name,
        )
        for name, own in groups.items()
    ]
    found.sort(key=lambda one: -one[0])
    return [replace(one, group=name) for _, one, name in found[: query.top or None]]


def _with_numbers(
    table: Table, query: Query, groups: Mapping[str, Sequence[int]]
) -> Collection[str]:
    """Return the groups with a number in the measured column, which alone have a
    measure; all of them where none has one: then it is the column that is wrong."""
    if query.measured < 0:
        return groups.keys()
    values = table.values(query.measured)
    known = {name for name, own in groups.items() if any(values[row] for row in own)}
    return known or groups.keys()


def measured(
    table: Table, measure: Measure, column: int, rows: Sequence[int]
) -> tuple[float, Computed]:
    """Return a measure of some rows as a number, and as text with those rows; raises
    `UsageError` where there is none.

    That is a column without numbers in these rows, with several units, with formulas
    that were never computed, or with dates that are to be added. Rows that are totals
    are left out."""
    own = without_totals(table, rows)
    if measure == "count":
        return len(own), Computed(
            str(len(own)), tuple(own), left_out=len(rows) - len(own)
        )
    known = _values(table, measure, column, own)
    numbers = [value.number for _, value in known]
    left_out = len(rows) - len(known)
    if measure in {"min", "max"}:
        extreme = min(numbers) if measure == "min" else max(numbers)
        chosen = tuple(row for row, value in known if value.number == extreme)
        return extreme, Computed(
            table.rows[chosen[0]][column], chosen, left_out=left_out
        )
    if known[0][1].kind == "date":
        name = quoted(table.columns[column], new_mark())
        raise _wrong(f"Column {name} holds dates, of which there is no {measure}")
    total = math.fsum(numbers) / (len(numbers) if measure == "mean" else 1)
    number_text = _described(
        total,
        numbers,
        [table.rows[row][column] for row, _ in known],
        known[0][1],
        mean=measure == "mean",
    )
    return total, Computed(
        number_text, tuple(row for row, _ in known), left_out=left_out
    )


def _values(
    table: Table, measure: Measure, column: int, rows: Sequence[int]
) -> list[tuple[int, Value]]:
    """Return the rows with a value to measure, and that; raises `UsageError` where
    there is none, or they do not go together."""
    values = table.values(column)
    known = [(row, value) for row in rows if (value := values[row]) is not None]
    name = quoted(table.columns[column], new_mark())
    if any(table.rows[row][column].startswith("=") for row in rows):
        raise _wrong(
            f"Column {name} holds formulas that were never computed; open and save the file in "
            f"Excel"
        )
    if measure in {"sum", "mean"} and table.carried:
        known = _once(table, column, known, name, measure)
    if not known:
        raise _wrong(f"Column {name} has no number in these {len(rows)} rows")
    if len({(value.kind, value.unit) for _, value in known}) > 1:
        raise _wrong(f"Column {name} holds several units, which do not add up")
    return known


def _anchors(table: Table, column: int) -> list[int]:
    """Return for each row the first row that its cell of a column covers."""
    anchors = [0] * len(table.rows)
    for row, carried in enumerate(table.carried):
        anchors[row] = anchors[row - 1] if row and column in carried else row
    return anchors


def _once(
    table: Table,
    column: int,
    known: list[tuple[int, Value]],
    name: str,
    measure: Measure,
) -> list[tuple[int, Value]]:
    """Return rows with their values, a cell that covers several rows once; raises
    `UsageError` where rows are left out that it covers, or a mean is asked for."""
    rows = {row for row, _ in known}
    anchors = _anchors(table, column)
    covered = Counter(anchors)
    shared = {anchors[row] for row in rows if covered[anchors[row]] > 1}
    split = any(
        anchor in shared and row not in rows for row, anchor in enumerate(anchors)
    )
    if shared and (split or measure == "mean"):
        raise _wrong(
            f"Cells of column {name} cover several rows at once, so that there is no {measure} of "
            f"these rows"
        )
    return [(row, value) for row, value in known if anchors[row] == row]


def without_totals(table: Table, rows: Sequence[int]) -> list[int]:
    """Return rows without those whose first words say that they are totals or means of
    the others.

    Where that would be half of them or more, all are returned."""
    totals = words("tables.totals")
    labels = {
        row: next(filter(None, table.rows[row]), "").casefold().strip(" :.()")
        for row in rows
    }
    kept = [
        row
        for row, label in labels.items()
        if totals.isdisjoint((label, label.partition(" ")[0]))
    ]
    return kept if 2 * len(kept) > len(rows) else list(rows)


def _described(
    number: float,
    numbers: Sequence[float],
    cells: Sequence[str],
    value: Value,
    *,
    mean: bool,
) -> str:
    """Return a number in the form of the cells that it is made of, with as many
    decimals as they have.

    Decimals are six at most, and two more for a mean."""
    if value.kind == "clock":
        parts = 1 + max(cell.count(":") for cell in cells)
        whole = round(number)
        clock = f"{whole // 60}:{whole % 60:02d}"
        return (
            f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
            if parts > 2
            else clock
        )
    decimals = max(
        -int(Decimal(repr(one)).normalize().as_tuple().exponent) for one in numbers
    )
    number_text = f"{number:.{min(max(decimals, 0), 6) + (2 if mean else 0)}f}"
    number_text = (
        number_text.rstrip("0").rstrip(".") if "." in number_text else number_text
    )
    return f"{number_text} {value.unit}".strip()
