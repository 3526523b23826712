"""Databases of SQLite."""

from typing import Final

from readers.format import Format
from seams import later

FORMAT: Final = Format(
    types=("application/vnd.sqlite3",),
    to_html=later("readers.data.database", "sqlite_to_html"),
    also=("application/x-sqlite3",),
    endings=(".sqlite", ".sqlite3", ".db"),
    magic={b"SQLite format 3\x00": "application/vnd.sqlite3"},
    binary=True,
    heavy=True,
)
