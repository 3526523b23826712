"""The list of folders, its commands, and who uses it."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from mcp_types import TextResourceContents

from tests.support import LIBRARY, ROOT, Connect
from tests.support.commands import run_command
from tests.support.pdf import make_pdf
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
Run = Callable[..., CompletedProcess[str]]
if sys.platform != "linux":
    pytest.skip("the paths below are those of Linux", allow_module_level=True)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a person who has set nothing."""
    names = ("WINNOW_", "XDG_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return own | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """Return a function that runs a command in that person's home; variables by keyword."""

    def command(*arguments: str, **variables: str) -> CompletedProcess[str]:
        own = environment | variables
        return run_command(*arguments, environment=own, folder=tmp_path, seconds=120)

    return command


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """A folder with one letter."""
    (folder := tmp_path / "letters").mkdir()
    (folder / "ann.md").write_text("# Ann\n\nThe boiler of the quokka house was mended in May.")
    return folder


def test_folders_are_added_listed_and_removed_by_any_way_of_writing_them(
    run: Run, letters: Path, tmp_path: Path
) -> None:
    assert "winnow folders add DIR" in run("folders").stdout
    assert run("folders", "add", "letters", str(LIBRARY)).stdout == f"{letters}\n{LIBRARY}\n"
    assert run("folders", "add", "~/letters").stdout == f"{letters}\n{LIBRARY}\n"
    listed = tmp_path / ".config" / "winnow" / "folders.txt"
    assert listed.stat().st_mode & 0o777 == 0o600
    assert json.loads(run("folders", "list", "--json").stdout) == {
        "folders": [str(letters), str(LIBRARY)],
        "list": str(listed),
    }
    (letters / "ann.md").unlink()
    letters.rmdir()  # what is gone can be removed
    done = run("folders", "remove", "letters")
    assert done.stdout == f"{LIBRARY}\n"
    assert "winnow cache clear" in done.stderr
    assert "questions search the web" in run("folders", "remove", str(LIBRARY)).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "letter"], "letter' does not exist, or"),
        (["remove", "letterz"], "is not on the list"),
    ],
)
def test_what_cannot_be_listed_is_refused_and_the_list_stays(
    run: Run, letters: Path, arguments: list[str], said: str
) -> None:
    run("folders", "add", "letters")
    done = run("folders", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert run("folders").stdout == f"{letters}\n"


def test_a_question_goes_to_the_listed_folders_unless_others_are_named(
    run: Run, letters: Path
) -> None:
    run("folders", "add", "letters")
    asked = ["search", "When was the boiler mended?"]
    assert "ann.md" in run(*asked).stdout
    for named in (
        run(*asked, "--folder", str(LIBRARY)),
        run(*asked, WINNOW_FOLDERS=str(LIBRARY)),
    ):
        assert "ann.md" not in named.stdout
    doctor = run("doctor", "--set", "search=folder", "--set", "embedder=none")
    assert f"✓ folders: {letters}" in doctor.stdout


def test_no_question_goes_to_the_web_where_the_list_cannot_be_used(
    run: Run, letters: Path, tmp_path: Path
) -> None:
    run("folders", "add", "letters")
    letters.rename(tmp_path / "moved")
    done = run("search", "When was the boiler mended?")
    assert done.returncode == 2
    assert f"'{letters}' does not exist" in done.stderr
    assert "winnow folders remove" in done.stderr
    listed = tmp_path / ".config" / "winnow" / "folders.txt"
    listed.unlink()
    listed.mkdir()
    done = run("search", "When was the boiler mended?")
    assert done.returncode == 2
    assert "The list of folders" in done.stderr


def test_an_index_is_built_shown_and_gone_on_with(run: Run, letters: Path) -> None:
    (letters / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    (letters / "lease.pdf").write_bytes(
        make_pdf([[("Pets are allowed.", 12)], [("Rent is due.", 12)]])
    )
    (letters / "tape.mp3").write_bytes(b"ID3")
    none = run("index")
    assert none.returncode == 2
    assert "winnow folders add DIR" in none.stderr
    assert "folders: none; winnow folders add DIR" in run("status").stdout
    run("folders", "add", "letters")
    before = run("status").stdout
    assert "files: 0 read, 0 could not be read, 3 to be read" in before
    built = run("index")
    assert built.returncode == 0, built.stderr
    assert built.stdout.startswith("indexed: 3 files in ")
    status = json.loads(run("status", "--json").stdout)
    assert status["folders"] == str(letters)
    assert status["files"] == "2 read, 1 could not be read, 0 to be read"
    assert (status["pages"], status["vectors"]) == ("2 of PDFs", "2 files")
    assert status["last change"].endswith(str(letters / "lease.pdf"))
    assert status["left out"] == "1 file not searched: .mp3 1."
    assert status[str(letters / "broken.pdf")].startswith("not read: ")
    assert "all-MiniLM" in status["embedder"]
    (letters / "bob.md").write_text("Bob keeps the keys.")
    assert run("index", "letters", "--quiet").stdout.startswith("indexed: 1 files in ")
    assert "files: 3 read" in run("status", "--folder", "letters").stdout


def test_a_watched_folder_is_indexed_as_it_changes(
    environment: dict[str, str], letters: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "server", "index", str(letters), "--watch", "--quiet"]

    def indexed() -> list[tuple[str]]:
        query = "SELECT title FROM files WHERE vector IS NOT NULL ORDER BY title"
        [path] = (tmp_path / ".cache" / "winnow" / "folders").glob("*.sqlite")
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(path)) as database:
            return database.execute(query).fetchall()
        return []

    with subprocess.Popen(command, env=environment, cwd=ROOT) as watching:
        try:
            wait_until(lambda: any(tmp_path.rglob("*.sqlite")) and indexed() == [("Ann",)])
            (letters / "bob.md").write_text("# Bob\n\nHe keeps the keys.")
            wait_until(lambda: indexed() == [("Ann",), ("Bob",)])
        finally:
            watching.kill()


@pytest.mark.anyio
async def test_a_server_shows_how_far_the_index_is(connect: Connect, letters: Path) -> None:
    async with connect(folders=str(letters)) as client:
        await client.call_tool("search_web", {"question": "When was the boiler mended?"})
        (content,) = (await client.read_resource("winnow://status")).contents
    assert isinstance(content, TextResourceContents)
    assert f"folders: {letters}\nfiles: 1 read, 0 could not be read" in content.text
