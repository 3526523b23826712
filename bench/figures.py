"""Writes the tables of README.md and docs/figures.md, and says which are too old.

    python -m bench figures                    names the tables, each with its age
    python -m bench figures door490 library    measures these, and writes all tables of
                                               their commands into the documents
    python -m bench figures --check            exit code 1 where a table is missing, was made by another
                                               command, or is too old

`bench/figures.toml` has a row for each table: the document, the command, what it
measures, and what was chosen on its data. In the document a table is between comments
with its name, and its last line records command, commit and date. A table is too old
when what it measures was changed more than `MOST_DAYS` days after the commit that it was
measured at."""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TABLES: Final = Path(__file__).with_suffix(".toml")
MOST_DAYS: Final = 30
DOCUMENTS: Final = ("README.md", "docs/figures.md")
_RECORD: Final = re.compile(
    r"^`python -m (?P<command>[^`]*)`, commit (?P<commit>[0-9a-f]{7,40}), (?P<date>[\d-]{10})",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a document."""

    name: str
    document: str
    command: str
    """What follows `python -m`."""
    measures: tuple[str, ...]
    """Folders and files whose changes make it old."""
    chosen: str
    """What was chosen on its data."""
    lines: str = ""
    """Which lines of the output are the table, as a regular expression; those of a
    Markdown table where it is empty."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Words of the output that the document says otherwise."""

    def place(self) -> tuple[str, re.Pattern[str]]:
        """Return the document's text, and what finds the table in it."""
        name = re.escape(self.name)
        pattern = re.compile(
            rf"(<!-- figures:{name} -->\n)(.*?)(<!-- /figures:{name} -->)", re.DOTALL
        )
        return (ROOT / self.document).read_text("utf-8"), pattern


def tables() -> list[Table]:
    """Return the rows of `figures.toml`."""
    rows = tomllib.loads(TABLES.read_text("utf-8"))
    return [
        Table(**{"name": name, **row, "measures": tuple(row["measures"])})
        for name, row in rows.items()
    ]


def git(*words: str) -> str:
    """Return what a command of git prints in this checkout, nothing where it fails."""
    command = ["git", *words]  # git is on every developer's path
    done = subprocess.run(  # noqa: S603  ours
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def days_old(table: Table, commit: str) -> int | None:
    """Return the days from a commit to the newest one that changes what the table
    measures; None where this checkout does not have the commit."""
    then = git("log", "-1", "--format=%cs", commit)
    newest = git("log", "-1", "--format=%cs", "HEAD", "--", *table.measures)
    if not then or not newest:
        return None
    return max(0, (date.fromisoformat(newest) - date.fromisoformat(then)).days)


def faults(table: Table) -> Iterator[str]:
    """Yield what is wrong with a table."""
    text, pattern = table.place()
    block = pattern.search(text)
    record = _RECORD.search(block[2]) if block else None
    if record is None:
        yield f"{table.name}: {table.document} has no such table with a record"
        return
    if record["command"] != table.command:
        yield f"{table.name}: was made by another command than {table.command!r}"
    yield from (
        f"{table.name}: {path}, which it measures, is not there"
        for path in table.measures
        if not (ROOT / path).exists()
    )
    age = days_old(table, record["commit"])
    if age is None:
        yield f"{table.name}: commit {record['commit']} is unknown here"
    elif age > MOST_DAYS:
        yield f"{table.name}: {age} days old by what it measures"


def unwritten(known: Sequence[Table]) -> Iterator[str]:
    """Yield the tables of the documents that no row writes."""
    names = {(table.document, table.name) for table in known}
    for document in DOCUMENTS:
        text = (ROOT / document).read_text("utf-8")
        yield from (
            f"{name}: no row of {TABLES.name} writes it into {document}"
            for name in re.findall(r"<!-- figures:(\w+) -->", text)
            if (document, name) not in names
        )


def output(command: str) -> list[str]:
    """Return the lines that a command of a table prints."""
    done = subprocess.run(  # noqa: S603  ours
        [sys.executable, "-m", *command.split()],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return [line.rstrip() for line in done.stdout.splitlines()]


def write(table: Table, printed: Sequence[str]) -> None:
    """Write a table into its document, of the lines that its command printed.

    Raises RuntimeError where there are none, or no place for them."""
    wanted = re.compile(table.lines or r"\|")
    lines = [line for line in printed if wanted.match(line)]
    for words, label in table.labels.items():
        lines = [line.replace(words, label) for line in lines]
    if not lines:
        raise RuntimeError(f"{table.command} printed no table")
    body = lines if lines[0].startswith("|") else ["```text", *lines, "```"]
    commit, today = (git("log", "-1", f"--format={what}") for what in ("%h", "%cs"))
    record = (
        f"`python -m {table.command}`, commit {commit}, {today}. "
        f"Chosen on its data: {table.chosen}."
    )
    text, pattern = table.place()
    if not pattern.search(text):
        raise RuntimeError(f"{table.document} has no place for {table.name}")
    block = "\n".join([*body, "", record, ""])
    text = pattern.sub(lambda found: f"{found[1]}{block}{found[3]}", text)
    (ROOT / table.document).write_text(text, encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Read the options; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="bench figures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = {table.name: table for table in tables()}
    parser.add_argument("tables", nargs="*", metavar="TABLE", choices=[*known, []])
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 where one is too old"
    )
    wanted = parser.parse_args(words)
    for command in dict.fromkeys(known[name].command for name in wanted.tables):
        printed = output(command)
        for table in known.values():
            if table.command == command:
                write(table, printed)
                print(f"{table.name}: written into {table.document}", flush=True)
    if wanted.tables and not wanted.check:
        return 0
    wrong = [line for table in known.values() for line in faults(table)]
    wrong += unwritten(list(known.values()))
    for table in known.values() if not wanted.check else ():
        print(f"{table.name:18} {table.document:16} python -m {table.command}")
    print(
        *wrong
        or [
            f"{len(known)} tables are of the last {MOST_DAYS} days of what they measure"
        ],
        sep="\n",
    )
    return int(bool(wrong) and wanted.check)


if __name__ == "__main__":
    sys.exit(main())
