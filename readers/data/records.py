"""JSON and JSON Lines to HTML: arrays of records as tables, all else as
nested lists of `name: value`.

Numbers keep the digits of the file, so that a table here is the one that the same rows
as CSV make. Not for: which of these a text is (`sniff.py`)."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from cancellation import check_cancelled
from readers.converted import (
    MAX_CELLS,
    MAX_ITEMS,
    MAX_TABLE_CELLS,
    Converted,
    escape,
    html_table,
    whole_page,
)
from readers.data.chats import chats_to_html, in_utf8
from readers.text.markup import fragment_to_html, plain_text
from readers.tree import MAX_DEPTH

_MOST_COLUMNS: Final = 64
"""Of a table; records with more fields are documents."""
_FILLED_CELLS: Final = 0.5
"""Share of a table's cells that hold something, above which records are of one kind."""
_CELL_LETTERS: Final = 200
"""Mean letters of a cell from which records are texts to be read, not rows."""
_JSON_NUMBER: Final = re.compile(r"-?\d[\d.eE+-]*")
_DEPTH: Final = 3
"""Levels of objects in a record that become columns (`address.city`), and in front of a
table that become headings."""


def json_to_html(text: str) -> Converted | None:
    """Return a JSON document, or one JSON value a line, as HTML; None for no JSON."""
    try:
        value = _loaded(text)
    except (ValueError, RecursionError):
        try:
            value = list(map(_loaded, filter(str.strip, text.splitlines())))
        except (ValueError, RecursionError):
            return None
    return chats_to_html(value) or _as_page(value)


def _loaded(text: str) -> object:
    value: object = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    return value


def _as_page(value: object) -> Converted:
    writer = _ValueWriter()
    for names, section in _parts(value, ()):
        writer.section(names, section)
    title_values = (
        [value.get(key) for key in ("title", "name", "headline")]
        if isinstance(value, dict)
        else []
    )
    title = next((name for name in title_values if isinstance(name, str)), "")
    cells = sum(len(rows) * len(rows[0]) for _, rows in writer.tables)
    return Converted(
        whole_page("".join(writer.parts), title=title),
        title,
        unread=writer.cut,
        tables=json.dumps(writer.tables) if 0 < cells <= MAX_TABLE_CELLS else "",
    )


def _parts(
    value: object, names: tuple[str, ...]
) -> list[tuple[tuple[str, ...], object]]:
    """Return an object's non-table values first, then its tables, each with its path of
    names.

    What is nested deeper than `_DEPTH` stays whole."""
    if not isinstance(value, dict) or len(names) >= _DEPTH or _table(value) is not None:
        return [(names, value)]
    remaining_fields: dict[object, object] = {}
    tables: list[tuple[tuple[str, ...], object]] = []
    for name, field_value in value.items():
        sections = _parts(field_value, (*names, str(name)))
        if any(_table(section) is not None for _, section in sections):
            tables += sections
        else:
            remaining_fields[name] = field_value
    if not tables:
        return [(names, value)]
    return [(names, remaining_fields), *tables] if remaining_fields else tables


def _table(value: object) -> list[list[str]] | None:
    """Return records as rows below the names of their fields; None if it is not an
    array of similar records, an object of them by their names, or of columns."""
    if not isinstance(value, dict):
        return _array_table(value, least=2, columns=2)
    if columns := _columns(value):
        return columns
    table = _array_table(list(value.values()), least=3, columns=1)
    if table is None:
        return None
    names, *rows = table
    key_column = "name" if "name" not in names else "key"
    return [
        [key_column, *names],
        *([str(key), *row] for key, row in zip(value, rows, strict=True)),
    ]


def _columns(value: Mapping[object, object]) -> list[list[str]]:
    """Return an object of equally long lists of plain values as columns below their
    names; nothing for another, or where each has fewer than three."""
    lists = [column for column in value.values() if isinstance(column, list)]
    is_plain = not any(isinstance(cell, dict | list) for cell in chain(*lists))
    if not is_plain or not 2 <= len(lists) == len(value) <= _MOST_COLUMNS:
        return []
    if len(lists[0]) < 3 or len(set(map(len, lists))) > 1:
        return []
    columns = [list(map(_said, column)) for column in lists]
    if not any(all(map(_JSON_NUMBER.fullmatch, column)) for column in columns):
        return []  # lists of words beside each other say nothing about each other
    return [list(map(str, value)), *map(list, zip(*columns, strict=True))]


def _array_table(value: object, *, least: int, columns: int) -> list[list[str]] | None:
    """Return an array of at least so many records, with so many columns, as a table;
    None for another."""
    if not isinstance(value, list) or len(value) < least:
        return None
    rows = _flat_records(value)
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    if not columns <= len(names) <= _MOST_COLUMNS or not _is_full(rows, len(names)):
        return None
    return [names, *([row.get(name, "") for name in names] for row in rows)]


def _flat_records(values: Sequence[object]) -> list[dict[str, str]]:
    records = [value for value in values if isinstance(value, dict) and value]
    if len(records) < len(values):
        return []
    flat: list[dict[str, str]] = []
    for record in records:
        fields = _flat(record)
        if fields is None:
            return []
        flat.append(fields)
    return flat


def _is_full(rows: Sequence[Mapping[str, str]], width: int) -> bool:
    """Return whether most cells are filled, and with few letters."""
    filled = sum(map(len, rows))
    letters = sum(len(cell) for row in rows for cell in row.values())
    return (
        filled > _FILLED_CELLS * width * len(rows) and letters <= _CELL_LETTERS * filled
    )


def _flat(
    record: Mapping[object, object], prefix: str = "", depth: int = 1
) -> dict[str, str] | None:
    """Return a record's fields as texts, inner objects by dotted names; None for lists
    of objects or lists, and for objects deeper than `_DEPTH`."""
    fields: dict[str, str] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            nested_fields = (
                _flat(value, f"{name}.", depth + 1) if depth < _DEPTH else None
            )
            if nested_fields is None:
                return None
            fields |= nested_fields
        elif isinstance(value, list):
            if any(isinstance(element, dict | list) for element in value):
                return None
            fields[name] = ", ".join(map(_said, value))
        else:
            text = _said(value)
            fields[name] = plain_text(text) if "</p>" in text else text
    return fields


def _said(value: object) -> str:
    """Return a value as a cell says it: nothing for null, as CSV has it."""
    if isinstance(value, str):
        return in_utf8(value)
    return "" if value is None else str(value).lower()


class _ValueWriter:
    """HTML of values, as far as `MAX_ITEMS` of them; of a table as many rows."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.tables: list[tuple[str, list[list[str]]]] = []
        """Title and rows of each table, all of them."""
        self.cut = ""
        self._count = 0

    def section(self, names: Sequence[str], value: object) -> None:
        """Write a value below the names that lead to it; if a table is cut, `cut` says
        after which record."""
        table = _table(value)
        if table is None:
            for name in names:
                self.parts.append(f"<ul><li>{escape(name)}: ")
            self._write(value)
            self.parts.append("</li></ul>\n" * len(names))
            return
        if names:
            self.parts.append(f"<h2>{escape(' '.join(names))}</h2>\n")
        self.tables.append((" ".join(names), table))
        max_records = min(MAX_ITEMS, MAX_CELLS // len(table[0]))
        self.parts.append(html_table(table[: max_records + 1], header=True) + "\n")
        if len(table) - 1 > max_records:
            self.cut = f"what follows its first {max_records} records"

    def _write(self, value: object, depth: int = 0) -> None:
        self._count += 1
        if self._count % 500 == 0:
            check_cancelled()
        if (
            self._count > MAX_ITEMS or 2 * depth > MAX_DEPTH
        ):  # a level is a list and its item
            self.cut = f"what follows its first {MAX_ITEMS} values"
        elif isinstance(value, dict | list):
            self.parts.append("<ul>")
            for name, child in _pairs(value):
                if self.cut:
                    break
                self.parts.append(f"<li>{escape(name)}: " if name else "<li>")
                self._write(child, depth + 1)
                self.parts.append("</li>\n")
            self.parts.append("</ul>\n")
        else:
            text = "null" if value is None else _said(value)
            is_html = "</p>" in text  # tags without it may be a program's
            self.parts.append(fragment_to_html(text) if is_html else escape(text))


def _pairs(
    value: Mapping[object, object] | Sequence[object],
) -> Iterable[tuple[str, object]]:
    return (
        ((str(name), child) for name, child in value.items())
        if isinstance(value, Mapping)
        else (("", child) for child in value)
    )
