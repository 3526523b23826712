"""Databases of SQLite and Parquet files: their tables as text and for queries, and what is not read."""

import io
import json
import sqlite3
from importlib import import_module
from pathlib import Path

import pytest

from errors import SourceUnreadable
from readers import read
from tests.support import Connect, text_of
from tests.support.extras import need


def database(*statements: str, wal: bool = False) -> bytes:
    """Return a file of SQLite after some statements."""
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    body = connection.serialize()
    return body[:18] + b"\x02\x02" + body[20:] if wal else body


PORTS = (
    "CREATE TABLE ports(name TEXT, fare REAL, tide INTEGER)",
    "INSERT INTO ports VALUES ('Mossund', 84.5, 1234567890123451), ('Arnvik', NULL, 2)",
)
NOTES = ("CREATE TABLE notes(text)", "INSERT INTO notes VALUES ('The Sunday ferry is cancelled.')")


def test_each_table_of_a_database_is_below_its_name_with_values_as_they_are() -> None:
    page = read(database(*PORTS, *NOTES), name="a.bin")
    for line in (
        "ports",
        "Mossund | 84.5 | 1234567890123451",
        "notes",
        "The Sunday ferry is cancelled.",
    ):
        assert line in page.text
    tables = dict(json.loads(page.page.tables))
    assert tables["ports"][0] == ["name", "fare", "tide"]
    assert tables["ports"][2] == ["Arnvik", "", "2"]


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ((*PORTS, "INSERT INTO ports VALUES (x'00ff', 1, 1)"), "1 cell"),
        (
            (*PORTS, "CREATE VIRTUAL TABLE words USING fts5(text)"),
            "virtual or damaged: 1",
        ),
        (
            (
                *PORTS,
                "CREATE TABLE g(a, b AS (zeroblob(a)))",
                "INSERT INTO g(a) VALUES (900000000)",
            ),
            "virtual or damaged: 1",
        ),
        (
            (
                "CREATE TABLE steps(n)",
                "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20010)"
                " INSERT INTO steps SELECT n FROM c",
            ),
            "what follows its first 20,000 rows",
        ),
    ],
    ids=["a binary value", "a virtual table", "a computed column", "many rows"],
)
def test_what_of_a_database_is_not_read_is_said(statements: tuple[str, ...], said: str) -> None:
    assert said in read(database(*statements), name="a.db").page.unread


def test_a_database_whose_program_writes_beside_it_is_read_and_says_so() -> None:
    page = read(database(*PORTS, wal=True), name="a.db")
    assert "Mossund" in page.text
    assert any("-wal" in note for note in page.page.notes)


@pytest.mark.parametrize(
    "body",
    [
        database("CREATE TABLE moz_cookies(value)", "INSERT INTO moz_cookies VALUES ('planted9')"),
        database("CREATE TABLE Logins(password_value)", "INSERT INTO Logins VALUES ('planted9')"),
        database("CREATE TABLE empty(a)"),
        database(*PORTS)[:5000],
        b"SQLite format 3\x00" + bytes(4000),
    ],
    ids=[
        "cookies",
        "passwords",
        "no row",
        "half of a file",
        "no database",
    ],
)
def test_a_database_of_secrets_or_damaged_is_refused(body: bytes) -> None:
    with pytest.raises(SourceUnreadable) as refused:
        read(body, name="a.sqlite")
    assert "planted9" not in str(refused.value)


@pytest.mark.anyio
async def test_a_database_in_a_folder_is_found_and_queried(
    tmp_path: Path, connect: Connect
) -> None:
    (tmp_path / "harbour.db").write_bytes(database(*PORTS, *NOTES))
    async with connect(folders=str(tmp_path)) as client:
        found = await client.call_tool("research", {"question": "Is the Sunday ferry cancelled?"})
        summed = await client.call_tool(
            "fetch_and_prune_html",
            {"sources": [str(tmp_path / "harbour.db")], "part": "sql: SELECT sum(fare) FROM t1"},
        )
    assert "The Sunday ferry is cancelled." in text_of(found)
    assert "84.5" in text_of(summed)


def parquet(columns: dict[str, list[object]]) -> bytes:
    """Return a Parquet file of some columns."""
    buffer = io.BytesIO()
    table = import_module("pyarrow").table(columns)
    import_module("pyarrow.parquet").write_table(table, buffer)
    return buffer.getvalue()


def test_a_parquet_file_is_a_table_with_its_columns() -> None:
    need("parquet")
    page = read(parquet({"port": ["Mossund", "Arnvik"], "fare": [84.5, None]}), name="a.bin")
    assert "Mossund | 84.5" in page.text
    assert json.loads(page.page.tables) == [
        ["", [["port", "fare"], ["Mossund", "84.5"], ["Arnvik", ""]]]
    ]


@pytest.mark.parametrize("cut", [20, 200])
def test_a_damaged_parquet_file_is_refused(cut: int) -> None:
    need("parquet")
    body = parquet({"port": ["Mossund"] * 50})
    with pytest.raises(SourceUnreadable):
        read(body[:cut] + bytes(len(body) - cut), name="a.parquet")
