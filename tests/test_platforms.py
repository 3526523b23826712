"""Windows and macOS: what differs there has a branch, and the branch is tried here by passing the
platform in. What a platform lacks is found by its types (`make check-platforms`)."""

import ast
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.test_layout import modules

BRANCHES = {
    "cli/daemon.py": "there is no daemon on Windows",
    "cli/doctor.py": "names the system in a report",
    "server/__main__.py": "the daemon",
    "server/daemon/place.py": "locks of files; nothing of this folder is used on Windows",
    "winnow/__init__.py": "the daemon",
    "server/process.py": "pipes of stderr, signals, malloc's threshold",
    "models/onnx.py": "malloc_trim",
    "models/pipe.py": "limits of memory",
    "readers/converted.py": "limits of processor time",
    "extras/browser.py": "Chromium's sandbox",
    "pipeline/fetch/files.py": "drive letters in file: addresses",
}
"""Files of the product that ask which system it is, and what for. A new one comes with a test that
passes the platform in."""
UNIX_ALONE = {"fcntl", "grp", "pwd", "termios", "tty", "pty", "syslog", "posix", "readline"}
UNIX_FOLDER = "server/daemon/"
"""One process for all clients of a person: what starts it asks for the system first."""
WINDOWS_ALONE = {"msvcrt", "winreg", "_winapi", "winsound"}
UNIX_CALLS = {"fork", "mkfifo", "getuid", "getgid", "setsid", "killpg", "getpgid", "nice", "chown"}


def product() -> list[Path]:
    return [path for path in modules() if path.relative_to(ROOT).parts[0] != "bench"]


def asks_for_the_system(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return "sys.platform" in text or "os.name" in text or "platform.system" in text


def test_every_file_that_asks_for_the_system_is_listed_with_its_reason() -> None:
    asking = {path.relative_to(ROOT).as_posix() for path in product() if asks_for_the_system(path)}
    assert asking == set(BRANCHES)


def test_no_file_needs_a_module_or_call_of_one_system_at_its_import() -> None:
    found = []
    for path in product():
        if path.relative_to(ROOT).as_posix().startswith(UNIX_FOLDER):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
                names = [node.attr]
            found += [
                f"{path.relative_to(ROOT)}: {name}"
                for name in names
                if name in UNIX_ALONE | WINDOWS_ALONE | UNIX_CALLS
            ]
    assert found == []


def test_no_file_of_text_is_opened_in_the_encoding_of_the_machine() -> None:
    # Windows' is not UTF-8.
    found = []
    for path in product():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            given = {keyword.arg for keyword in node.keywords}
            places = {"read_text": 1, "write_text": 2}.get(node.func.attr)
            if places and len(node.args) < places and "encoding" not in given:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be sent SIGINT there")
def test_ctrl_c_ends_a_server_where_the_event_loop_delivers_no_signals() -> None:
    code = (
        "import anyio, functools, os\n"
        "from server.process import watch_signals\n"
        "async def main():\n"
        "    clean_up = functools.partial(os.write, 1, b'cleaned up\\n')\n"
        "    await watch_signals(clean_up, platform='win32')\n"
        "    print('ready', flush=True)\n"
        "    await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "cleaned up\n"
        assert process.wait(30) == 128 + signal.SIGINT


def test_a_python_that_is_too_old_is_refused_before_an_environment_is_made(tmp_path: Path) -> None:
    made = tmp_path / "venv"
    # `false` in place of the Python 3.9 of macOS: neither imports tomllib.
    command = ["make", f"VENV={made}", "PYTHON=false", f"{made}/base"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "Python 3.11 or newer" in run.stderr
    assert not made.exists()
