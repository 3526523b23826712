"""Read-only SQL over the tables of documents, in a SQLite database in memory.

What a query may do is bounded: an authorizer lets it read, SQLite's own limits and its
processor time end it, and its result has at most `MAX_RESULT_ROWS`. Not for: reading
tables (`table.py`), or what an answer shows (`pipeline/sources/places.py`).
"""

import re
import sqlite3
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from cancellation import check_cancelled
from errors import UsageError
from pipeline.tables.columns import Column, Value, typed
from pipeline.tables.table import Table, name_in_sql, tables_of
from pipeline.text.frame import new_delimiter, one_line, quoted
from pipeline.work import time_left
from readers.page import Document

MAX_RESULT_ROWS: Final = 10_000
MAX_RESULT_CHARACTERS: Final = 2_000_000
MAX_SECONDS: Final = 5.0
"""Processor seconds of one query; sums by group over a million rows take .2."""
STEPS_AT_ONCE: Final = 1_000
"""Instructions of SQLite's virtual machine between two looks at the bounds."""
MAX_SQLITE_BYTES: Final = 512_000_000
"""Memory of SQLite in this process; a query that needs more is ended."""
MAX_COLUMNS: Final = 900
"""Of a table; SQLite holds 2,000, and each may have its text beside it."""
_NAME_CHARACTERS: Final = 40
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 10_000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_FUNCTIONS: Final = re.findall(
    r"\w+",
    "abs avg ceil ceiling coalesce concat count cume_dist date datetime dense_rank exp "
    "first_value floor glob group_concat ifnull iif instr julianday lag last_value lead "
    "length like ln log log10 lower ltrim max min mod nth_value ntile nullif "
    "percent_rank pow power rank replace round row_number rtrim sign sqrt strftime "
    "string_agg substr substring sum time total trim typeof unixepoch upper",
)
"""None reaches beyond the database, or makes a large value of a small one."""


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table as queries see it."""

    name: str
    """`t1`, `t2` and so on, through all documents."""
    document: int
    table: Table
    columns: Mapping[str, Column]
    """By name; `price_text` has the cells of `price` where they read otherwise."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows that a query returned."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    cut: bool
    """Whether there are more than `MAX_RESULT_ROWS`."""
    tables: tuple[SqlTable, ...]
    """Those that it read."""


def sql_tables(documents: Sequence[Document]) -> list[SqlTable]:
    """Return the tables of all documents, typed and named; raises what `tables_of`
    raises."""
    tables: list[SqlTable] = []
    for number, document in enumerate(documents):
        language = document.page.language
        for table in tables_of(document):
            name = name_in_sql(len(tables) + 1)
            tables.append(SqlTable(name, number, table, _typed(table, name, language)))
    return tables


def query_tables(tables: Sequence[SqlTable], query: str) -> QueryResult:
    """Return what one SELECT finds in the tables.

    Raises `UsageError` for a query that is wrong, does more than read, or needs more
    than the bounds allow; it names the tables and columns that exist."""
    with closing(sqlite3.connect(":memory:", cached_statements=0)) as database:
        database.execute(f"PRAGMA hard_heap_limit = {MAX_SQLITE_BYTES}")
        database.execute("PRAGMA temp_store = MEMORY")
        guard = _Guard({table.name for table in tables})
        try:
            for table in tables:
                _insert(database, table)
            guard.watch(database)
            cursor = database.execute(query)
            rows = list(_bounded(cursor))
        except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError) as error:
            check_cancelled()
            raise _refusal(error, guard, tables, query) from error
    if cursor.description is None:  # an empty statement
        raise UsageError("The query is empty.", hint='Write part="sql: SELECT …".')
    names = [one_line(column[0]) for column in cursor.description]
    return QueryResult(
        tuple(_unique(names)),
        rows[:MAX_RESULT_ROWS],
        len(rows) > MAX_RESULT_ROWS,
        tuple(table for table in tables if table.name in guard.read),
    )


@dataclass(slots=True)
class _Guard:
    """What a query may read, what it read and was refused, and when it has to end."""

    names: set[str]
    read: set[str] = field(default_factory=set)
    refused: UsageError | None = None
    ends: float = 0.0
    """By the thread's processor seconds."""

    def watch(self, database: sqlite3.Connection) -> None:
        for limit, bound in _LIMITS.items():
            database.setlimit(limit, bound)
        self.ends = time.thread_time() + MAX_SECONDS
        database.set_progress_handler(self._is_over, STEPS_AT_ONCE)
        database.set_authorizer(self._judge)

    @property
    def is_over(self) -> bool:
        return time.thread_time() > self.ends or time_left() <= 0

    def _is_over(self) -> bool:
        check_cancelled()  # SQLite ends the query where this raises
        return self.is_over

    def _judge(
        self, action: int, argument: str | None, second: str | None, *_: str | None
    ) -> int:
        if action == sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ and argument in {*self.names, "sqlite_master"}:
            self.read.add(str(argument))
            return sqlite3.SQLITE_OK
        is_function = action == sqlite3.SQLITE_FUNCTION
        if is_function and str(second).lower() in _FUNCTIONS:
            return sqlite3.SQLITE_OK
        if is_function:
            hint = f"There are these functions: {' '.join(_FUNCTIONS)}."
            self.refused = UsageError(f"There is no function {second}().", hint=hint)
        else:
            self.refused = UsageError(
                "Only reading is allowed.",
                hint="Write one SELECT from these tables, without WITH RECURSIVE.",
            )
        return sqlite3.SQLITE_DENY


def _refusal(
    error: BaseException, guard: _Guard, tables: Sequence[SqlTable], query: str
) -> UsageError:
    if guard.refused:
        return guard.refused
    if guard.is_over or isinstance(error, MemoryError):
        return UsageError(
            "The query was stopped: it took too long or too much memory.",
            hint="Filter rows first, and join tables by equal columns.",
        )
    words = set(re.findall(r"\w+", query.lower()))
    mentioned = [table for table in tables if table.name in words] or tables[:3]
    columns = "; ".join(
        f"{table.name} has: {', '.join(table.columns)}" for table in mentioned
    )
    names = ", ".join(table.name for table in tables)
    return UsageError(
        f"SQL error: {one_line(str(error)).rstrip('.')}. "
        f"{quoted(columns, new_delimiter())}. Tables: {names}.",
        hint='part="tables" shows their columns, types and rows.',
    )


def _bounded(cursor: sqlite3.Cursor) -> Iterator[tuple[str, ...]]:
    """Yield the first rows of a result, one more than may be shown.

    Raises `UsageError` beyond `MAX_RESULT_CHARACTERS`."""
    characters = 0
    for row in islice(cursor, MAX_RESULT_ROWS + 1):
        cells = tuple(map(_shown, row))
        characters += sum(map(len, cells))
        if characters > MAX_RESULT_CHARACTERS:
            raise UsageError(
                f"The result has more than {MAX_RESULT_CHARACTERS:,} characters.",
                hint="Select fewer columns, aggregate, or add LIMIT.",
            )
        yield cells


def _insert(database: sqlite3.Connection, table: SqlTable) -> None:
    declared = ", ".join(
        f'"{name}" {"NUMERIC" if column.type == "number" else "TEXT"}'
        for name, column in table.columns.items()
    )
    marks = ", ".join("?" * len(table.columns))
    database.execute(f"CREATE TABLE {table.name} ({declared})")
    rows = zip(*(column.values for column in table.columns.values()), strict=True)
    database.executemany(f"INSERT INTO {table.name} VALUES ({marks})", _checked(rows))  # noqa: S608  names are ours


def _checked(rows: Iterable[tuple[Value, ...]]) -> Iterable[tuple[Value, ...]]:
    for number, row in enumerate(rows):
        if not number & 0xFFF:
            check_cancelled()
        yield row


def _typed(table: Table, name: str, language: str) -> dict[str, Column]:
    """Return the columns of a table by their names in SQL, each followed by its text
    where that reads otherwise."""
    if len(table.columns) > MAX_COLUMNS:
        raise UsageError(
            f"Table {name} has {len(table.columns)} columns; SQL reads at most "
            f"{MAX_COLUMNS}.",
            hint="Ask a question instead of part.",
        )
    columns: dict[str, Column] = {}
    with closing(sqlite3.connect(":memory:")) as scratch:
        safe = [
            _safe(text, number, scratch) for number, text in enumerate(table.columns, 1)
        ]
    names = _unique(safe)
    for index, column_name in enumerate(names):
        check_cancelled()
        cells = [row[index].strip() for row in table.rows]
        columns[column_name] = column = typed(cells, language)
        text_name = f"{column_name}_text"
        if column.rewritten and text_name not in names:
            columns[text_name] = Column("text", [cell or None for cell in cells])
    return columns


def _safe(text: str, number: int, scratch: sqlite3.Connection) -> str:
    """Return the name of a column as SQL takes it without quotes; one that SQLite takes
    for a keyword or value ends with `_`."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).lower())
    name = "_".join(words)[:_NAME_CHARACTERS].rstrip("_") or f"column_{number}"
    name = f"c_{name}" if name[0].isdigit() else name
    try:
        query = f"SELECT {name} FROM (SELECT 'x' AS \"{name}\")"  # noqa: S608  of letters, digits and _
        row = scratch.execute(query).fetchone()
    except sqlite3.Error:
        return f"{name}_"
    return name if row == ("x",) else f"{name}_"


def _unique(names: Sequence[str]) -> list[str]:
    """Return names, of which each that came before gets a number."""
    taken: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}_{number}" for number in range(2, len(names) + 2))
        free = next(
            candidate for candidate in chain([name], numbered) if candidate not in taken
        )
        taken[free] = None
    return list(taken)


def _shown(value: object) -> str:
    """Return a value as a result shows it, "" for NULL. What a float has beyond 15 digits
    is how it is kept, not what the table holds."""
    if value is None:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)
