"""`winnow install`: what it writes into clients' configurations, what it leaves alone, and how it
is undone."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from cli.doctor import WHEELS, check_wheels
from errors import SourceError, how_to_add
from extras.install.update import update
from server.version import VERSION
from tests.support import LIBRARY, ROOT, Site, text_of
from tests.support.commands import run_command
from tests.support.extras import need

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]
FILES = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "gemini": ".gemini/settings.json",
    "lmstudio": ".lmstudio/mcp.json",
}
KEYS = {"vscode": "servers"}
LIST = ".config/winnow/folders.txt"
if sys.platform != "linux":
    pytest.skip("the paths below are those of Linux", allow_module_level=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's home that holds nothing yet."""
    return tmp_path / "home"


@pytest.fixture
def install(plain: dict[str, str], tmp_path: Path) -> Run:
    """Return a function that runs `winnow install` in that home."""
    project = tmp_path / "project"
    project.mkdir()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command("install", *arguments, environment=plain, folder=project)

    return run


def read(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    config: dict[str, Any] = json.loads(text)
    return config


def test_an_entry_is_written_also_where_the_reader_of_the_output_has_left(home: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "server", "install", "cursor", "--yes"],
        cwd=ROOT,
        env={**os.environ, "HOME": str(home), "PYTHONUNBUFFERED": "1"},
        stdout=writing,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert "winnow" in read(home / FILES["cursor"])["mcpServers"]


@pytest.mark.parametrize("client", FILES)
def test_every_client_gets_the_entry_in_its_own_file_under_its_own_key(
    install: Run, home: Path, client: str
) -> None:
    run = install(client, "--yes", "--folder", str(LIBRARY))
    assert run.returncode == 0, run.stderr
    config = read(home / FILES[client])
    entry = config[KEYS.get(client, "mcpServers")]["winnow"]
    assert Path(entry["command"]).is_absolute()
    # Gemini CLI starts no server whose entry has PYTHONPATH.
    assert entry["env"] == {}
    listed = home / LIST
    assert listed.read_text(encoding="utf-8") == f"{LIBRARY}\n"
    assert listed.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("here", "prefix", "command"),
    [
        ("/home/me/winnow", "/home/me/winnow/.venv", "make -C /home/me/winnow extras EXTRAS=ocr"),
        ("/lib/_app", "/venvs/pipx/x", "pipx runpip winnow-mcp install 'winnow-mcp[ocr]'"),
        ("/lib/_app", "/uv/archive-v0/x", "uvx --from 'winnow-mcp[ocr] @ git+https://"),
        ("/lib/_app", "/venv", f"{sys.executable} -m pip install 'winnow-mcp[ocr]'"),
    ],
)
def test_what_adds_an_extra_is_a_command_for_the_way_this_copy_was_installed(
    here: str, prefix: str, command: str
) -> None:
    assert how_to_add("ocr", Path(here), Path(prefix)).startswith(command)


@pytest.mark.parametrize(
    "former", ['// mine\n{"mcpServers": {}}', '{"mcpServers": {}, /* a */ "b": [1, 2,]}']
)
def test_a_file_with_comments_is_left_alone_and_the_entry_to_paste_is_named(
    install: Run, home: Path, former: str
) -> None:
    path = home / FILES["gemini"]
    path.parent.mkdir(parents=True)
    path.write_text(former, encoding="utf-8")
    run = install("gemini", "--yes", "--folder", str(LIBRARY), "--set", "keys=brave=s3cret")
    assert run.returncode == 2
    assert f'"WINNOW_FOLDERS": "{LIBRARY}"' in run.stderr
    assert "s3cret" not in run.stderr
    assert path.read_text(encoding="utf-8") == former


def test_for_any_other_client_the_entry_is_printed(install: Run, home: Path) -> None:
    run = install("other", "--folder", str(LIBRARY))
    assert run.returncode == 0, run.stderr
    entry = json.loads(run.stdout)["mcpServers"]["winnow"]
    assert Path(entry["command"]).is_absolute()
    assert entry["env"]["WINNOW_FOLDERS"] == str(LIBRARY)
    assert not home.exists() or list(home.iterdir()) == []


def test_a_settings_file_that_is_a_link_stays_one(install: Run, home: Path) -> None:
    own = home / "dotfiles" / "gemini.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"theme": "dark"}', encoding="utf-8")
    link = home / FILES["gemini"]
    link.parent.mkdir(parents=True)
    link.symlink_to(own)
    assert install("gemini", "--yes").returncode == 0
    assert link.is_symlink()
    assert '"winnow": {' in own.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("embedder=nope", "embedder"),
        ("reader=onnx:/nowhere", "/nowhere"),
        ("generator=openai:127.0.0.1#m", "openai"),
        ("papers=extractor=tags", "WINNOW_PAPERS"),
        ("proxy=ftp://proxy", "proxy"),
        ("cookies=/nowhere/cookies.txt", "/nowhere/cookies.txt"),
        ("browser=/nowhere/chrome", "/nowhere/chrome"),
        ("seconds=soon", "seconds"),
        ("search=brave", "WINNOW_KEYS=brave=KEY"),
        ("folders=/nowhere", "/nowhere"),
        (f"folders={os.pathsep.join([str(LIBRARY), '/nowhere'])}", "/nowhere"),
        ("embeder=none", "Did you mean embedder?"),
    ],
)
def test_what_a_server_would_refuse_is_refused_before_it_is_written(
    install: Run, home: Path, given: str, said: str
) -> None:
    run = install("cursor", "--yes", "--set", given)
    assert run.returncode in (1, 2)  # an extra that is not installed is a failure
    assert said in run.stderr or "install the extra" in run.stderr.lower()
    assert "Traceback" not in run.stderr
    assert not (home / FILES["cursor"]).exists()


def test_a_broken_setting_of_the_shell_keeps_no_one_from_undoing(install: Run, home: Path) -> None:
    assert install("cursor", "--yes").returncode == 0
    assert install("cursor", "--yes", "--undo", "--set", "embedder=nope").returncode == 0
    assert not (home / FILES["cursor"]).exists()


def test_folders_are_written_so_that_a_client_finds_them_from_anywhere(
    install: Run, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "project" / "docs").mkdir()
    assert install("cursor", "--yes", "--folder", "docs", "--set", "cache=kept").returncode == 0
    environment = read(home / FILES["cursor"])["mcpServers"]["winnow"]["env"]
    listed = (home / LIST).read_text(encoding="utf-8")
    assert listed == f"{tmp_path / 'project' / 'docs'}\n"
    assert environment["WINNOW_CACHE"] == str(tmp_path / "project" / "kept")


def test_the_change_is_shown_without_keys(install: Run, home: Path) -> None:
    run = install("cursor", "--yes", "--set", "keys=brave=BSA-s3cret")
    assert "s3cret" not in run.stdout + run.stderr
    assert (
        read(home / FILES["cursor"])["mcpServers"]["winnow"]["env"]["WINNOW_KEYS"]
        == "brave=BSA-s3cret"
    )


@pytest.mark.anyio
async def test_the_entry_starts_a_server_that_answers_from_any_folder(
    install: Run, home: Path, tmp_path: Path
) -> None:
    install("cursor", "--yes", "--folder", str(LIBRARY), "--set", f"cache={tmp_path / 'cache'}")
    entry = read(home / FILES["cursor"])["mcpServers"]["winnow"]
    parameters = StdioServerParameters(
        command=entry["command"],
        args=entry["args"],
        env={**entry["env"], "HOME": str(home)},
        cwd=tmp_path,
    )
    async with Client(parameters) as client:
        result = await client.call_tool("search_web", {"question": "ferry timetable"})
    assert "erry" in text_of(result)


def test_a_dry_run_shows_the_change_and_writes_nothing(install: Run, home: Path) -> None:
    run = install("claude-code", "--dry-run")
    assert run.returncode == 0
    assert '+    "winnow": {' in run.stdout
    assert not (home / FILES["claude-code"]).exists()


def test_without_a_person_to_ask_nothing_is_written_unless_yes_is_given(
    install: Run, home: Path
) -> None:
    run = install("claude-code")
    assert run.returncode == 2
    assert "--yes" in run.stderr
    assert not (home / FILES["claude-code"]).exists()


def test_what_is_there_stays_and_undo_takes_out_our_entry_alone(install: Run, home: Path) -> None:
    path = home / FILES["claude-code"]
    path.parent.mkdir(parents=True)
    former = {
        "theme": "dark",
        "mcpServers": {"other": {"command": "x"}, "winnow": {"command": "old"}},
        "ünï": [1],
    }
    path.write_text(json.dumps(former), encoding="utf-8")
    path.chmod(0o600)
    assert install("claude-code", "--yes").returncode == 0
    config = read(path)
    assert config["mcpServers"]["other"] == {"command": "x"}
    assert config["mcpServers"]["winnow"]["command"] != "old"
    assert (config["theme"], config["ünï"]) == ("dark", [1])
    assert path.stat().st_mode & 0o777 == 0o600
    config["added_meanwhile"] = True
    path.write_text(json.dumps(config), encoding="utf-8")
    assert install("claude-code", "--undo", "--yes").returncode == 0
    others = {"other": {"command": "x"}}
    assert read(path) == {**former, "mcpServers": others, "added_meanwhile": True}


def test_undo_takes_away_a_file_that_winnow_made(install: Run, home: Path) -> None:
    install("windsurf", "--yes")
    assert (home / FILES["windsurf"]).exists()
    install("windsurf", "--undo", "--yes")
    assert list((home / FILES["windsurf"]).parent.iterdir()) == []


def test_a_further_install_changes_what_it_names_and_keeps_the_rest(
    install: Run, home: Path
) -> None:
    client = "claude-desktop"

    def environment() -> dict[str, str]:
        found: dict[str, str] = read(home / FILES[client])["mcpServers"]["winnow"]["env"]
        return found

    own = f"folders={LIBRARY}"
    install(client, "--yes", "--set", own, "--set", "keys=brave=BSA-s3cret")
    config = read(home / FILES[client])  # what a person has added by hand
    config["mcpServers"]["winnow"]["env"]["HTTPS_PROXY"] = "http://proxy:3128"
    (home / FILES[client]).write_text(json.dumps(config), encoding="utf-8")
    run = install(client, "--yes", "--set", "embedder=none")
    assert "s3cret" not in run.stdout + run.stderr
    kept = environment()
    assert kept["WINNOW_FOLDERS"] == str(LIBRARY)
    assert (kept["WINNOW_KEYS"], kept["WINNOW_EMBEDDER"]) == ("brave=BSA-s3cret", "none")
    assert kept["HTTPS_PROXY"] == "http://proxy:3128"
    run = install(client, "--yes", "--set", "keys=", "--set", "embedder=none")
    assert "WINNOW_KEYS" not in environment()
    assert "s3cret" not in run.stdout
    run = install(client, "--undo", "--yes")
    assert "s3cret" not in run.stdout


def test_a_further_install_is_refused_for_what_the_kept_settings_do_not_allow(
    install: Run, home: Path, tmp_path: Path
) -> None:
    (gone := tmp_path / "gone").mkdir()
    install("cursor", "--yes", "--set", f"folders={gone}")
    gone.rmdir()
    run = install("cursor", "--yes", "--set", "embedder=none")
    assert run.returncode == 2
    assert str(gone) in run.stderr
    # Folders of its own would keep the list from this client.
    assert install("cursor", "--yes", "--folder", str(LIBRARY)).returncode == 0
    assert read(home / FILES["cursor"])["mcpServers"]["winnow"]["env"] == {}


def test_a_folder_is_added_to_the_list_or_to_a_projects_file_alone(
    install: Run, home: Path, tmp_path: Path
) -> None:
    (other := tmp_path / "other").mkdir()
    install("cursor", "--yes", "--folder", str(other))
    shown = install("cursor", "--dry-run", "--folder", str(LIBRARY))
    assert f"+{LIBRARY}" in shown.stdout
    assert (home / LIST).read_text(encoding="utf-8") == f"{other}\n"
    run = install("cursor", "--yes", "--folder", str(LIBRARY))
    assert f" {other}\n+{LIBRARY}\n" in run.stdout
    assert (home / LIST).read_text(encoding="utf-8") == f"{other}\n{LIBRARY}\n"
    install("vscode", "--scope", "project", "--yes", "--folder", str(LIBRARY))
    entry = read(tmp_path / "project" / ".vscode" / "mcp.json")["servers"]["winnow"]
    assert entry["env"] == {"WINNOW_FOLDERS": str(LIBRARY)}
    install("cursor", "--undo", "--yes")
    assert (home / LIST).read_text(encoding="utf-8") == f"{other}\n{LIBRARY}\n"


def test_installing_twice_changes_nothing_the_second_time(install: Run) -> None:
    install("cursor", "--yes")
    assert "nothing to change" in install("cursor", "--yes").stdout


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": // mine\n {]}',
        "{'mcpServers': {}}",
        "[1, 2]",
        '{"mcpServers": [1]}',
        "\x00\x01",
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone_and_named(
    install: Run, home: Path, text: str
) -> None:
    path = home / FILES["cursor"]
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    run = install("cursor", "--yes")
    assert run.returncode == 2
    assert "by hand" in run.stderr
    assert (
        "[1]" in text
        or f'under mcpServers: {{"winnow": {{"type": "stdio", "command": "{sys.executable}"'
        in run.stderr
    )
    assert path.read_text(encoding="utf-8") == text


def test_a_project_gets_its_own_file_where_the_client_has_one(install: Run, tmp_path: Path) -> None:
    assert install("vscode", "--scope", "project", "--yes").returncode == 0
    assert "winnow" in read(tmp_path / "project" / ".vscode" / "mcp.json")["servers"]
    refused = install("windsurf", "--scope", "project", "--yes")
    assert refused.returncode == 2
    assert "--scope" in refused.stderr


def test_the_doctor_names_clients_that_have_winnow_and_wrong_entries(
    install: Run, home: Path, doctor: Callable[..., str]
) -> None:
    assert "winnow install CLIENT" in doctor()
    install("cursor", "--yes")
    install("windsurf", "--yes")
    path = home / FILES["windsurf"]
    path.write_text(
        path.read_text(encoding="utf-8").replace(sys.executable, "/nowhere/python"),
        encoding="utf-8",
    )
    reported = doctor(code=1)
    assert "✓ clients: cursor" in reported
    assert "✗ client windsurf" in reported
    assert "run winnow install windsurf again" in reported
    assert reported.endswith("\n1 problem\n")


def test_the_doctor_says_that_a_search_address_does_not_answer(doctor: Callable[..., str]) -> None:
    reported = doctor("--set", "searxng=http://127.0.0.1:9", code=1)
    assert "does not respond" in reported


def test_the_doctor_says_once_that_a_cache_server_is_away(doctor: Callable[..., str]) -> None:
    need("redis")
    reported = doctor("--set", "cache_url=redis://127.0.0.1:9/0", code=1)
    assert reported.count("cannot be used") == 1
    assert reported.lower().count("not used") == 1
    assert "✗ cache: " in reported


def test_the_doctor_names_a_wheel_that_does_not_load_and_how_to_mend_it(
    doctor: Callable[..., str],
) -> None:
    assert f"wheels: all {len(WHEELS)} load" in doctor()
    broken = check_wheels({"json": "whole", "no_such_module": "broken-package"})
    assert not broken.healthy
    assert f"{sys.executable} -m pip install --force-reinstall broken-package" in broken.line
    assert "whole" not in broken.line


@pytest.mark.parametrize(
    ("given", "problems", "said"),
    [
        (["--set", "seconds=soon"], 1, "✗ setting seconds: seconds is 'soon'."),
        (["--set", "embedder=nope", "--set", "robots=maybe"], 2, "✗ setting embedder: 'nope'"),
        (["--set", "search=brave"], 1, "✗ setting search: The setting search contains brave, "),
        (["--folder", "/nowhere"], 1, "✗ setting folders: The folder '/nowhere' does not exist."),
        (["--folder", "/nowhere", "--folder", str(LIBRARY)], 1, "✗ folder /nowhere: "),
    ],
)
def test_the_doctor_finds_what_is_wrong_with_a_configuration_and_tries_the_rest(
    doctor: Callable[..., str], given: list[str], problems: int, said: str
) -> None:
    reported = doctor(*given, code=1)
    assert said in reported
    assert reported.splitlines()[-1] == ("1 problem" if problems == 1 else f"{problems} problems")
    assert reported.count("✗") == problems
    assert "✓ wheels: all " in reported


def test_the_doctor_names_a_variable_that_is_no_setting_and_the_nearest_that_is_one(
    doctor: Callable[..., str],
) -> None:
    assert doctor().splitlines()[-1] == "No problems"
    reported = doctor(code=1, variables={"WINNOW_FOLDER": str(LIBRARY)})
    assert (
        "✗ WINNOW_FOLDER: It is not a setting and is ignored. Did you mean WINNOW_FOLDERS?"
        in reported
    )


def test_the_doctors_report_for_an_issue_holds_nothing_that_a_person_named(
    doctor: Callable[..., str], install: Run, home: Path, tmp_path: Path
) -> None:
    (secret := tmp_path / "divorce-papers").mkdir()
    (home / ".cursor").mkdir(parents=True)
    (home / ".cursor/mcp.json").write_text("not JSON", encoding="utf-8")
    private = {
        "WINNOW_FOLDERS": f"{secret}{os.pathsep}{tmp_path / 'tax-2025'}",
        "WINNOW_KEYS": "brave=BSA-s3cret",
        "WINNOW_SEARXNG": "http://me:pass@127.0.0.1:9/private",
        "WINNOW_ACME_PLAN": "takeover",
        "WINNOW_SECONDS": "soon-s3cret",
    }
    said = doctor("--report", code=1, variables=private)
    for word in ("divorce", "tax-2025", "s3cret", "me:pass", "ACME", "127.0.0.1", str(home)):
        assert word not in said, word
    assert str(tmp_path) not in said
    lines = said.splitlines()
    assert re.fullmatch(r"winnow \d+\.\d+\.\d+, Python 3\.\d+\.\d+\S*, \w+ \w+", lines[0])
    assert "keys" in lines[2].removeprefix("settings: ").split(", ")
    assert "fails: setting seconds" in lines
    assert {line.partition(": ")[0] for line in lines[3:]} == {"ok", "fails"}
    # What it counts is what the whole report counts.
    whole = doctor(code=1, variables=private)
    assert said.count("fails: ") == whole.count("✗")


def uninstall(environment: dict[str, str], *given: str) -> subprocess.CompletedProcess[str]:
    """Run `winnow uninstall` in a new process: a copy would have the cache folder of the person who
    runs the tests as its default."""
    command = [sys.executable, "-m", "server", "uninstall", *given]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_uninstall_takes_winnow_out_of_every_client_with_what_it_stored(
    install: Run, home: Path, plain: dict[str, str]
) -> None:
    (home / ".claude.json").parent.mkdir(parents=True)
    (home / ".claude.json").write_text('{"mcpServers": {"other": {"command": "x"}}}', "utf-8")
    for client in ("claude-code", "cursor"):
        install(client, "--yes", "--folder", str(LIBRARY))
    cache = home / ".cache/winnow"
    cache.mkdir(parents=True)
    (cache / "cache.db").write_bytes(b"rows")
    refused = uninstall(plain)
    assert refused.returncode == 2
    assert "no terminal" in refused.stderr
    assert "winnow" in read(home / FILES["cursor"])["mcpServers"]
    assert cache.exists()
    assert (home / LIST).exists()
    done = uninstall(plain, "--yes")
    assert done.returncode == 0, done.stderr
    assert read(home / ".claude.json") == {"mcpServers": {"other": {"command": "x"}}}
    assert not (home / FILES["cursor"]).exists()
    assert not cache.exists()
    assert not (home / LIST).exists()
    assert f"delete the folder {ROOT}, which holds the program" in done.stdout


def test_uninstall_goes_on_after_a_file_that_it_cannot_edit_and_names_it(
    install: Run, home: Path, plain: dict[str, str]
) -> None:
    for file in FILES.values():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / FILES["vscode"]).write_text('{"servers": {}} // mine', encoding="utf-8")
    commented = '{"mcpServers": {"winnow": {"command": "x"}}} // mine'
    (home / FILES["claude-code"]).write_text(commented, encoding="utf-8")
    install("lmstudio", "--yes", "--folder", str(LIBRARY))
    done = uninstall(plain, "--yes")
    assert done.returncode == 1
    assert f"{home / FILES['claude-code']} cannot be edited" in done.stderr
    assert FILES["vscode"] not in done.stderr
    assert (home / FILES["claude-code"]).read_text(encoding="utf-8") == commented
    assert not (home / FILES["lmstudio"]).exists()
    assert not (home / LIST).exists()


@pytest.mark.parametrize("beside", [(), ("thesis.md",)])
def test_uninstall_deletes_the_caches_in_use_unless_other_files_are_in_them(
    install: Run, plain: dict[str, str], tmp_path: Path, beside: tuple[str, ...]
) -> None:
    caches = [tmp_path / "mine", tmp_path / "of the client"]
    for cache in caches:
        (cache / "pages").mkdir(parents=True)
        (cache / "cookies-0123456789abcdef").mkdir()
        for name in beside:
            (cache / name).write_text("words", encoding="utf-8")
    install("cursor", "--yes", "--set", f"cache={caches[1]}")
    done = uninstall({**plain, "WINNOW_CACHE": str(caches[0])}, "--yes")
    assert done.returncode == len(beside), done.stderr
    for cache in caches:
        assert cache.exists() == bool(beside)
        assert all((cache / name).exists() for name in beside)
        assert (f"{cache} is not deleted" in done.stderr) == bool(beside)


def test_a_folder_that_holds_no_cache_is_not_deleted(plain: dict[str, str], tmp_path: Path) -> None:
    (own := tmp_path / "own").mkdir()
    (own / "thesis.md").write_text("words", encoding="utf-8")
    done = uninstall({**plain, "WINNOW_CACHE": str(own)}, "--yes")
    assert done.returncode == 0, done.stderr
    assert (own / "thesis.md").exists()


@pytest.mark.parametrize(
    ("release", "says"),
    [
        (f"v{VERSION}", f"This is the newest release, {VERSION}."),
        ("v99.0.0", f"The newest release is 99.0.0, this is {VERSION}."),
    ],
)
def test_update_says_whether_a_newer_release_is_there_and_how_it_is_installed(
    site: Site, capsys: pytest.CaptureFixture[str], release: str, says: str
) -> None:
    site.put("/latest", json.dumps({"tag_name": release}), kind="application/json")
    assert update(None, {}, site.url("/latest")) == 0
    assert says in capsys.readouterr().out


def test_update_says_that_releases_cannot_be_read(site: Site) -> None:
    site.put("/latest", json.dumps({"message": "rate limit"}), kind="application/json")
    for path in ("/latest", "/none"):
        with pytest.raises(SourceError, match="names no release"):
            update(None, {}, site.url(path))


@pytest.fixture
def plain(home: Path) -> dict[str, str]:
    """That home's environment, with no setting in it."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WINNOW_", "XDG_"))
    }
    return environment | {"HOME": str(home), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def doctor(plain: dict[str, str], tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs `winnow doctor` in that home and returns what it says."""
    environment = {**plain, "WINNOW_CACHE": str(tmp_path / "cache")}
    environment["WINNOW_SEARCH"] = "none"  # who is not searched is not asked
    # Models take a second to open, and `test_command.py` has the doctor open them.
    environment |= {"WINNOW_EMBEDDER": "none", "WINNOW_READER": "none"}

    def run(*arguments: str, code: int = 0, variables: dict[str, str] | None = None) -> str:
        own = {**environment, **(variables or {})}
        done = run_command("doctor", *arguments, environment=own)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run
