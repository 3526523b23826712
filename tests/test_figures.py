"""The tables of README and figures: of the days of what they measure, and by a command that is there."""

from importlib.util import find_spec

import pytest

from bench.figures import Table, days_old, faults, git, tables, unwritten

TABLES = {table.name: table for table in tables()}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_of_the_last_thirty_days_of_what_it_measures(name: str) -> None:
    assert list(faults(TABLES[name])) == []


@pytest.mark.parametrize("name", TABLES)
def test_the_command_of_a_table_is_there(name: str) -> None:
    assert find_spec(TABLES[name].command.split()[0]) is not None


def test_a_table_that_is_missing_or_by_another_command_or_commit_is_named() -> None:
    known = TABLES["main_content"]
    wrong = {
        "no such table": Table("nowhere", known.document, "x", known.measures, ""),
        "by another command": Table(known.name, known.document, "x", known.measures, ""),
        "is not there": Table(known.name, known.document, known.command, ("nowhere.py",), ""),
    }
    for words, table in wrong.items():
        assert words in " ".join(faults(table))


def test_the_age_is_counted_to_the_newest_change_of_what_is_measured() -> None:
    newest = git("log", "-1", "--format=%H", "HEAD", "--", *TABLES["main_content"].measures)
    assert days_old(TABLES["main_content"], newest) == 0
    assert days_old(TABLES["main_content"], "0" * 40) is None


def test_a_table_of_a_document_that_no_row_writes_is_named() -> None:
    named = {line.partition(":")[0] for line in unwritten([])}
    assert set(TABLES) <= named
    assert {line.partition(":")[0] for line in unwritten(tables())} == named - set(TABLES)
