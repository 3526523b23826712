"""Tables of databases to HTML, and all of their rows for queries: SQLite's file format,
and what Parquet files share with it.

A database is opened in memory and may only be read; its schema is not trusted, so that
no view, trigger or virtual table of it runs. Browsers and keychains keep cookies and
passwords in such files: these are refused. Not for: what a program has not merged into
the file yet, and binary values, which the page says."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Final, NamedTuple

from cancellation import check_cancelled
from readers.converted import (
    MAX_ITEMS,
    MAX_TABLE_CELLS,
    Converted,
    Unreadable,
    escape,
    html_table,
    most_unpacked,
    whole_page,
)
from readers.ledger import Ledger

_SECRET_TABLES: Final = frozenset(
    {
        *("cookies", "moz_cookies", "logins", "moz_logins", "stats_logins"),
        *("password_notes", "credit_cards", "token_service"),
        *("genp", "inet", "keys", "nssprivate"),
    }
)
"""Tables in which browsers and keychains keep cookies, passwords and keys."""
_WAL: Final = b"\x02\x02"
"""Bytes 18 and 19 of a database whose program writes changes beside it first."""
_FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What damage raises, the latter in names."""
_ALLOWED: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})


class DataTable(NamedTuple):
    """A table of a data file."""

    name: str
    rows: list[list[str]]
    """The first has the names of the columns."""


def sqlite_to_html(body: bytes) -> Converted:
    """Return the tables of a database; raises `Unreadable` for one that is damaged, empty,
    or keeps cookies, passwords or keys."""
    # As its header has it: bytes of a page, 1 for 65,536, and how many pages
    page_bytes = int.from_bytes(body[16:18]) if body[16:18] != b"\x00\x01" else 65_536
    if len(body) < page_bytes * int.from_bytes(body[28:32]):
        raise Unreadable("it is a database that is cut short")
    is_wal = body[18:20] == _WAL
    if is_wal:  # as one that is whole by itself: there is nothing beside it in memory
        body = body[:18] + b"\x01\x01" + body[20:]
    ledger = Ledger()
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(body)
            database.text_factory = _text
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most_unpacked())
            database.execute("PRAGMA trusted_schema = OFF")
            database.set_authorizer(_guard)
            tables, left_out = _tables(database, ledger)
    except _FAULTS as error:
        raise Unreadable(f"it is a damaged database ({error})") from error
    beside = (
        "database: changes that its program keeps beside the file (-wal) are not read"
    )
    return tables_to_html(
        tables,
        ledger,
        notes=(beside,) if is_wal else (),
        unread=f"tables that are virtual or damaged: {left_out}" if left_out else "",
    )


def tables_to_html(
    tables: Sequence[DataTable],
    ledger: Ledger,
    *,
    notes: tuple[str, ...] = (),
    unread: str = "",
) -> Converted:
    """Return tables as a page, each below its name; the page has the first `MAX_ITEMS`
    rows, and `Converted.tables` all up to `MAX_TABLE_CELLS` cells. Raises `Unreadable`
    where no row is."""
    if not any(len(table.rows) > 1 for table in tables):
        raise Unreadable("it is a data file without a row")
    left, parts = MAX_ITEMS, []
    for table in tables:
        shown = table.rows[: left + 1]
        left -= len(shown) - 1
        parts.append(f"<h2>{escape(table.name)}</h2>" if table.name else "")
        parts.append(html_table(shown, header=True))
    count = sum(len(table.rows) - 1 for table in tables)
    cells = sum(len(table.rows) * len(table.rows[0]) for table in tables)
    is_cut = count > MAX_ITEMS or cells > MAX_TABLE_CELLS
    first = f"what follows its first {min(count, MAX_ITEMS):,} rows" if is_cut else ""
    return Converted(
        whole_page("\n".join(filter(None, parts))),
        notes=notes,
        unread=", ".join(filter(None, (first, unread))),
        ledger=ledger,
        tables=json.dumps(tables) if cells <= MAX_TABLE_CELLS else "",
    )


def cell_text(value: object, ledger: Ledger) -> str:
    """Return a value as text; a binary one is empty and counted as an unread cell."""
    if isinstance(value, bytes):
        ledger.hold("cell")
        return ""
    return "" if value is None else " ".join(str(value).split())


def _tables(
    database: sqlite3.Connection, ledger: Ledger
) -> tuple[list[DataTable], int]:
    """Return the tables of a database, and how many are left out: virtual ones, and those
    that cannot be read to their end; a table over `MAX_TABLE_CELLS` ends there."""
    schema = database.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    made = {name: sql or "" for kind, name, sql in schema if kind == "table"}
    if _SECRET_TABLES & {name.lower() for name in made}:
        raise Unreadable("it is a program's store of cookies, passwords or keys")
    virtual = [
        name for name, sql in made.items() if sql.upper().startswith("CREATE VIRTUAL")
    ]
    tables, left_out = list[DataTable](), len(virtual)
    for name in made:
        # A virtual table keeps its rows in tables of its name and a further word.
        is_of_virtual = any(f"{name}_".startswith(f"{one}_") for one in virtual)
        if is_of_virtual or name.startswith("sqlite_"):
            continue
        try:
            tables.append(_table(database, name, ledger))
        except _FAULTS:
            left_out += 1
    return tables, left_out


def _table(database: sqlite3.Connection, name: str, ledger: Ledger) -> DataTable:
    quoted = name.replace('"', '""')
    found = database.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608  a name cannot be a parameter
    rows = [[column[0] for column in found.description]]
    for row in found:
        check_cancelled()
        rows.append([cell_text(value, ledger) for value in row])
        if len(rows) * len(row) > MAX_TABLE_CELLS:
            break
    return DataTable(name, rows)


def _guard(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
