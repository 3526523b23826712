"""The command line as a person or a script meets it: output, exit codes, errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import TOOLS, main
from tests.support import LIBRARY, ROOT
from tests.support.processes import winnow

pytestmark = pytest.mark.slow


def test_an_answer_is_on_stdout_alone_and_the_exit_code_is_zero(cache_folder: Path) -> None:
    run = winnow(cache_folder, "research", "When does the first ferry leave on Sundays?")
    assert run.returncode == 0, run.stderr
    assert "#:~:text=" in run.stdout
    assert run.stderr == ""


def test_json_holds_the_text_and_the_data_for_machines(cache_folder: Path) -> None:
    run = winnow(cache_folder, "search", "ferry timetable", "--json", "--max-results", "2")
    data = json.loads(run.stdout)
    assert len(data["hits"]) == 2
    assert data["tokens"] > 0
    assert data["text"]


def test_no_answer_has_its_own_exit_code(cache_folder: Path) -> None:
    page = str(LIBRARY / "ferry-timetable.html")
    run = winnow(cache_folder, "extract", "Which enzyme unwinds the DNA double helix during replication?", page)
    assert run.returncode == 3, run.stdout
    assert "None" in run.stdout


def test_every_argument_of_a_tool_is_one_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    schemas = {tool["name"]: tool["inputSchema"] for tool in json.loads((ROOT / "server/tools_list.json").read_text())}
    for command, (tool, _) in TOOLS.items():
        with pytest.raises(SystemExit, match="0"):
            main([command, "--help"])
        shown = capsys.readouterr().out
        for name in schemas[tool]["properties"]:
            assert name in shown.replace("-", "_"), (command, name)


@pytest.mark.parametrize(
    "arguments",
    [["dance"], ["search"], ["research", "x", "--max-tokens", "few"], ["models", "--set", "nonsense=1"]],
)
def test_wrong_usage_is_exit_code_two_with_a_sentence(cache_folder: Path, arguments: list[str]) -> None:
    run = winnow(cache_folder, *arguments, folder=None)
    assert run.returncode == 2
    assert "winnow" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_file_that_is_not_there_is_called_so(cache_folder: Path) -> None:
    run = winnow(cache_folder, "extract", "What does mooring cost?", "no-such-note.md", folder=None)
    assert run.returncode == 2
    assert "There is no file 'no-such-note.md'." in run.stderr


def test_a_setting_that_is_refused_repeats_no_secret(cache_folder: Path) -> None:
    for given in ("searxng=http://ann:sesame@127.0.0.1:1", "brave-key=sesame", "brave_key=ses ame"):
        run = winnow(cache_folder, "search", "ferry", "--set", given)
        assert run.returncode == 2
        assert given.partition("=")[0] in run.stderr
        assert "ame" not in run.stderr.replace("NAME", "").replace("name", "")


def test_a_failure_is_exit_code_one_with_its_reason(cache_folder: Path) -> None:
    run = winnow(cache_folder, "fetch", "http://10.0.0.1/")
    assert run.returncode == 1
    assert "10.0.0.1" in run.stderr
    assert run.stdout == ""


def test_a_file_named_on_the_line_may_be_read_without_any_setting(cache_folder: Path, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Mooring\n\nThe mooring fee is 14 crowns a night.\n", encoding="utf-8")
    run = winnow(cache_folder, "extract", "What does mooring cost?", str(note), folder=None)
    assert run.returncode == 0, run.stderr
    assert "14 crowns" in run.stdout


@pytest.mark.parametrize("command", ["models", "cache", "doctor"])
def test_care_commands_tell_the_state_of_the_installation(cache_folder: Path, command: str) -> None:
    run = winnow(cache_folder, command, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)


def test_clearing_the_cache_empties_it(tmp_path: Path) -> None:
    winnow(tmp_path, "search", "ferry")
    assert winnow(tmp_path, "cache", "clear").returncode == 0
    assert "0 entries" in winnow(tmp_path, "cache").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_is_shown_progress_and_a_pipe_is_not(tmp_path: Path) -> None:
    screen, terminal = os.openpty()
    environment = {**os.environ, "WINNOW_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "server", "research", "When does the boat leave?", "--folder", str(LIBRARY)]
    run = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=terminal, check=True)
    os.close(terminal)
    shown = os.read(screen, 65536).decode("utf-8", "replace")
    os.close(screen)
    assert "searching" in shown
    assert "searching" not in run.stdout.decode()


def test_a_log_file_takes_the_log_and_stderr_keeps_the_answer_alone(tmp_path: Path) -> None:
    log = tmp_path / "winnow.log"
    settings = ["--set", f"log_file={log}", "--set", "log_level=INFO"]
    run = winnow(tmp_path / "kept", "fetch", "http://10.0.0.1/", *settings)
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
    assert "10.0.0.1" in log.read_text(encoding="utf-8")
