"""The command line as a person or a script meets it: output, exit codes, errors."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import main
from tests.support import LIBRARY, ROOT, commands
from tests.support.clients import QUESTION
from tests.support.processes import winnow
from tools.common.tool import OURS

pytestmark = pytest.mark.slow


def test_an_answer_is_on_stdout_alone_and_the_exit_code_is_zero(cache_folder: Path) -> None:
    run = winnow(cache_folder, "research", "When does the first ferry leave on Sundays?")
    assert run.returncode == 0, run.stderr
    assert "[1] file://" in run.stdout
    assert "#:~:text=" not in run.stdout  # viewers of local files search for no words
    assert run.stderr == ""


def test_json_holds_the_text_and_the_data_for_machines(cache_folder: Path) -> None:
    run = winnow(cache_folder, "search", "ferry timetable", "--json", "--max-results", "2")
    data = json.loads(run.stdout)
    assert len(data["hits"]) == 2
    assert data["tokens"] > 0
    assert data["text"]


def test_no_answer_has_its_own_exit_code(cache_folder: Path) -> None:
    page = str(LIBRARY / "ferry-timetable.html")
    run = winnow(
        cache_folder,
        "extract",
        "Which enzyme unwinds the DNA double helix during replication?",
        page,
    )
    assert run.returncode == 3, run.stdout
    assert "None" in run.stdout


def test_every_argument_of_a_tool_is_one_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    schemas = {
        tool[OURS]["command"]: tool["inputSchema"]
        for tool in json.loads((ROOT / "server/tools_list.json").read_text())
    }
    for command, schema in schemas.items():
        with pytest.raises(SystemExit, match="0"):
            main([command, "--help"])
        shown = capsys.readouterr().out
        for name in schema["properties"]:
            assert name in shown.replace("-", "_"), (command, name)


@pytest.mark.parametrize(
    "arguments",
    [
        ["dance"],
        ["search"],
        ["research", "x", "--max-tokens", "few"],
        ["models", "--set", "nonsense=1"],
        ["extract", "What does mooring cost?"],
    ],
)
def test_wrong_usage_is_exit_code_two_with_a_sentence(
    cache_folder: Path, arguments: list[str]
) -> None:
    run = winnow(cache_folder, *arguments, folder=None)
    assert run.returncode == 2
    assert "winnow" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["reserch", "x"], "Did you mean research?"),
        (["docter"], "Did you mean doctor?"),
        (["models", "--set", "serxng=http://127.0.0.1:1"], "Did you mean searxng?"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    cache_folder: Path, arguments: list[str], nearest: str
) -> None:
    run = winnow(cache_folder, *arguments, folder=None)
    assert run.returncode == 2
    assert nearest in run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "typed", ["--max-tokens 100", "max_tokens=100", "max_tokens=100 fresh=true"]
)
def test_arguments_can_be_typed_as_answers_name_them(cache_folder: Path, typed: str) -> None:
    ferry = str(LIBRARY / "ferry-timetable.html")
    question = "Which ferries run on Sundays, if answer=true?"
    run = winnow(cache_folder, "extract", question, ferry, *typed.split(), "--json")
    assert run.returncode in (0, 3), run.stderr
    assert 50 < json.loads(run.stdout)["tokens"] <= 100


def test_a_call_that_an_answer_names_can_be_typed(cache_folder: Path, tmp_path: Path) -> None:
    ferry = str(shutil.copy(LIBRARY / "ferry-timetable.html", tmp_path / "ferry times.html"))
    for sources in (f'sources=["{ferry}"]', f"sources=[{ferry}]"):
        run = winnow(cache_folder, "fetch_and_prune_html", sources, "max_tokens=300")
        assert run.returncode == 0, run.stderr
        assert "ferry" in run.stdout.lower()


def test_a_file_that_an_answer_cites_can_be_named_by_its_address(
    cache_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "fees v1.md").write_text("# Fees\n\nThe mooring fee is 40 crowns.\n")
    address = f"{(tmp_path / 'fees v1.md').as_uri()}#page=1"
    run = winnow(cache_folder, "extract", "What is the mooring fee?", address, folder=None)
    assert "40 crowns" in run.stdout, run.stderr
    gone = winnow(cache_folder, "fetch", (tmp_path / "gone.md").as_uri(), folder=None)
    assert gone.returncode == 2
    assert "no such file" in gone.stderr


def test_a_missing_folder_among_several_is_a_warning_on_stderr(
    cache_folder: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    run = winnow(cache_folder, "search", "ferry timetable", "--folder", str(gone))
    assert run.returncode == 0, run.stderr
    assert f"folder {gone}: It does not exist" in run.stderr
    assert "ferry-timetable.html" in run.stdout
    assert (
        winnow(cache_folder, "search", "ferry", "--folder", str(gone), folder=None).returncode == 2
    )


@pytest.mark.parametrize("arguments", [["desk", "--no-browser"], ["serve", "--http"]])
def test_a_port_in_use_is_one_line_with_what_to_do(
    cache_folder: Path, arguments: list[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        run = winnow(cache_folder, *arguments, "--port", str(port))
    assert run.returncode == 1
    assert run.stderr.startswith(f"winnow: Port {port} of 127.0.0.1 is in use. ")
    assert "--port" in run.stderr.partition("in use")[2]
    assert len(run.stderr.splitlines()) == 1
    assert winnow(cache_folder, *arguments, "--port", "70000").returncode == 2


@pytest.mark.parametrize("arguments", [["models"], ["cache"], ["search", "ferry timetable"]])
def test_a_variable_that_is_no_setting_is_answered_with_the_nearest_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("WINNOW_EMBEDER", "none")
    run = commands.winnow(tmp_path / "cache", *arguments, "--set", "embedder=none")
    assert run.returncode == 0, run.stderr
    assert "WINNOW_EMBEDER: It is not a setting and is ignored." in run.stderr
    assert "Did you mean WINNOW_EMBEDDER?" in run.stderr
    assert "WINNOW_EMBEDER" not in run.stdout


def test_a_file_that_is_not_there_is_called_so(cache_folder: Path) -> None:
    run = winnow(cache_folder, "extract", "What does mooring cost?", "no-such-note.md", folder=None)
    assert run.returncode == 2
    assert "no such file: 'no-such-note.md'." in run.stderr


def test_a_setting_that_is_refused_repeats_no_secret(cache_folder: Path) -> None:
    for given in ("searxng=ftp://ann:sesame@127.0.0.1:1", "brave-key=sesame", "keys=brave=ses ame"):
        run = winnow(cache_folder, "search", "ferry", "--set", given)
        assert run.returncode == 2
        assert given.partition("=")[0] in run.stderr
        assert "ame" not in run.stderr.replace("NAME", "").replace("name", "")


def test_a_failure_is_exit_code_one_with_its_reason(cache_folder: Path) -> None:
    run = winnow(cache_folder, "fetch", "http://10.0.0.1/")
    assert run.returncode == 1
    assert "10.0.0.1" in run.stderr
    assert run.stdout == ""


def test_a_file_named_on_the_line_may_be_read_without_any_setting(
    cache_folder: Path, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Mooring\n\nThe mooring fee is 14 crowns a night.\n", encoding="utf-8")
    run = winnow(cache_folder, "extract", "What does mooring cost?", str(note), folder=None)
    assert run.returncode == 0, run.stderr
    assert "14 crowns" in run.stdout


def test_a_draft_is_checked_against_a_file_without_any_question(
    cache_folder: Path, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Mooring\n\nThe mooring fee is 14 crowns a night.\n", encoding="utf-8")
    draft = "The mooring fee is 15 crowns a night."
    run = winnow(cache_folder, "extract", str(note), "--draft", draft, folder=None)
    assert run.returncode == 3, run.stderr
    assert "in no source: 15" in run.stdout


@pytest.mark.parametrize("command", ["models", "cache", "doctor"])
def test_care_commands_report_the_state_of_the_installation(
    cache_folder: Path, command: str
) -> None:
    run = winnow(cache_folder, command, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ["cache", "path"],
        ["check", str(LIBRARY / "no-such-report.md")],
        [
            "doctor",
            *(word for role in ("embedder", "reader") for word in ("--set", f"{role}=none")),
        ],
        ["eval", "/nowhere"],
        ["install", "cursor", "--dry-run", "--set", "seconds=20"],
        ["models", "list"],
        ["sessions", "show", "winnow://session/0000000000000000"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_copy_of_a_process_that_has_imported_commands_does_what_a_new_process_does(
    tmp_path: Path, arguments: list[str]
) -> None:
    new, copy = (
        run(tmp_path / "cache", *arguments, folder=None) for run in (winnow, commands.winnow)
    )
    assert (copy.returncode, copy.stdout, copy.stderr) == (new.returncode, new.stdout, new.stderr)
    assert new.stdout or new.stderr


def test_clearing_the_cache_empties_it(tmp_path: Path) -> None:
    cache, docs = tmp_path / "cache", tmp_path / "docs"
    docs.mkdir()
    (docs / "note.md").write_text("# Ferry\n\nThe ferry leaves at 17:30.\n", encoding="utf-8")
    found = winnow(cache, "search", "ferry", folder=docs)
    assert "note.md" in found.stdout
    before = winnow(cache, "status").stdout
    assert winnow(cache, "cache", "clear").returncode == 0
    after = winnow(cache, "status").stdout
    assert after.count(": 0 entries") > before.count(": 0 entries")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_is_shown_progress_and_a_pipe_is_not(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "note.md").write_text("The boat leaves at 17:30.\n", encoding="utf-8")
    screen, terminal = os.openpty()
    environment = {**os.environ, "WINNOW_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "server", "research", "When does the boat leave?"]
    command += ["--folder", str(docs)]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=terminal, check=True
    )
    os.close(terminal)
    shown = os.read(screen, 65536).decode("utf-8", "replace")
    os.close(screen)
    assert "searching" in shown
    assert "searching" not in run.stdout.decode()


def test_a_log_file_takes_the_log_and_stderr_keeps_the_answer_alone(tmp_path: Path) -> None:
    log = tmp_path / "winnow.log"
    settings = ["--set", f"log=level=INFO file={log}"]
    run = winnow(tmp_path / "kept", "fetch", "http://10.0.0.1/", *settings)
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
    written = log.read_text(encoding="utf-8")
    assert "fetch_and_prune_html failed" in written
    assert "10.0.0.1" not in written


@pytest.mark.parametrize(
    "before", ["exec 2>&-", "export PYTHONIOENCODING=latin-1", "export LC_ALL=POSIX PYTHONUTF8=0"]
)
def test_an_answer_is_printed_whatever_the_locale_spells_and_stderr_is(
    cache_folder: Path, before: str
) -> None:
    page = str(LIBRARY / "ferry-winter-cuts.html")
    run = subprocess.run(
        [
            "/bin/sh",
            "-c",
            f'{before}; exec "$0" -m server extract "$1" "$2"',
            sys.executable,
            QUESTION,
            page,
        ],
        cwd=ROOT,
        env={**os.environ, "WINNOW_CACHE": str(cache_folder)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert b"9 crowns" in run.stdout
