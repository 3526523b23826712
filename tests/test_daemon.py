"""One process for the stdio clients of a person: shared, kept apart, and outlived."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters

from tests.support import LIBRARY, ROOT, text_of
from tests.support.daemons import END_SECONDS, Person, first_answer, leave, person, watched
from tests.support.processes import HELLO, READY, answer_to, call, line, say

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches processes by pidfd"),
]

PAGE = str(LIBRARY / "ferry-timetable.html")
ASKED = {"question": "When does the first ferry leave on Sundays?", "sources": [PAGE]}
INTERRUPTED = "The process of Winnow ended during this call and was started again."


@pytest.fixture
def ann(tmp_path: Path, cache_folder: Path) -> Iterator[Person]:
    """A person with a runtime folder of her own."""
    with person(tmp_path / "run", cache_folder) as one:
        yield one


def test_clients_share_one_process_that_lists_them_and_ends_with_the_last(ann: Person) -> None:
    names = ["Desktop", "Code", "Cursor"]
    clients = [ann.connected(name) for name in names]
    for client in clients:
        say(client, call(2, "extract_relevant", **ASKED))
        assert "erry" in first_answer(client, 2)
    [daemon] = ann.daemons()
    assert [seen.split(" (")[0] for seen in daemon["clients"]] == names
    assert daemon["settings"] == 1
    assert daemon["models"]
    shown = ann.run("status")
    assert f"daemon {daemon['process']}: version " in shown.stdout
    assert "Cursor" in shown.stdout
    assert "begins with process" in ann.run("logs").stdout
    with watched(daemon["process"]):
        assert [leave(client) for client in clients] == [0, 0, 0]
    assert ann.files == []


def test_a_daemon_outlives_its_first_client_until_it_is_stopped(ann: Person) -> None:
    first = ann.connected(daemon="on idle=60")
    pid = ann.daemon()
    leave(first)
    ann.connected(daemon="on idle=60")
    assert ann.daemon() == pid
    with watched(pid):
        stopped = ann.run("stop")
    assert (stopped.returncode, ann.files) == (0, [])
    assert "stopped the daemon" in stopped.stdout


@pytest.mark.parametrize("number", range(3))
def test_a_killed_daemon_costs_a_client_one_call_at_most(ann: Person, number: int) -> None:
    clients = [ann.connected(f"client {n}") for n in range(2)]
    tool = ["research", "raptor_query", "fetch_and_prune_html"][number]
    arguments = ASKED if tool != "research" else {"question": ASKED["question"]}
    for client in clients:
        say(client, call(2, tool, **arguments))
    pid = ann.daemon()
    with watched(pid):
        os.kill(pid, signal.SIGKILL)
    for client in clients:
        text = first_answer(client, 2)
        assert "erry" in text or text.startswith(INTERRUPTED)
        say(client, call(3, "extract_relevant", **ASKED))
        assert "erry" in first_answer(client, 3)
    assert ann.daemon() != pid


def test_a_call_that_ends_every_daemon_is_given_up_with_a_sentence(ann: Person) -> None:
    client = ann.connected()
    say(client, call(2, "raptor_query", question="the harbour", sources=[str(LIBRARY)]))
    for _ in range(2):
        pid = ann.daemon()
        with watched(pid):
            os.kill(pid, signal.SIGKILL)
        say(client, {"jsonrpc": "2.0", "id": "alive", "method": "ping"})
        while (answer := line(client)).get("id") != "alive":
            assert answer["id"] == 2
            assert INTERRUPTED in json.dumps(answer["result"])
            return
    raise AssertionError("the call was asked for a third time")


def test_a_socket_that_a_killed_daemon_left_does_no_harm(ann: Person) -> None:
    leave(ann.connected())
    ann.connected(daemon="on idle=60")
    with watched(ann.daemon()):
        os.kill(ann.daemon(), signal.SIGKILL)
    assert [name for name in ann.files if name.endswith(".sock")]
    assert ann.daemons() == []
    ann.connected()
    assert len(ann.daemons()) == 1


def test_settings_that_differ_are_kept_apart_in_one_process(tmp_path: Path, ann: Person) -> None:
    """Neither a path, nor a handle of a page, a tree or a session leads from one to the other."""
    for name in ("mine", "yours"):
        (tmp_path / name).mkdir()
        text = f"The lighthouse of {name} was lit in 1907. Its keeper was called Tamsin."
        (tmp_path / name / f"{name}.txt").write_text(text, encoding="utf-8")
    mine, yours = (ann.connected(name, folders=str(tmp_path / name)) for name in ("mine", "yours"))
    [daemon] = ann.daemons()
    assert daemon["settings"] == 2
    question = "When was the lighthouse lit?"
    say(mine, call(2, "research", question=question))
    answered: Any = answer_to(mine, 2)["result"]
    assert "lighthouse of mine" in json.dumps(answered)
    session = answered["_meta"]["winnow/result"]["session"]
    say(mine, call(3, "fetch_and_prune_html", sources=["mine.txt"]))
    page: Any = answer_to(mine, 3)["result"]
    handle = page["_meta"]["winnow/result"]["pages"][0]["handle"]
    say(mine, call(4, "raptor_query", question=question, sources=["mine.txt"]))
    tree: Any = answer_to(mine, 4)["result"]
    handles = [handle, tree["_meta"]["winnow/result"]["tree"]]
    sources = ["mine.txt", str(tmp_path / "mine" / "mine.txt"), *handles]
    for number, source in enumerate(sources, 10):
        say(yours, call(number, "extract_relevant", question=question, sources=[source]))
        assert "lighthouse of mine" not in json.dumps(answer_to(yours, number))
    say(yours, call(20, "research", question=question, session=session))
    refused = first_answer(yours, 20)
    assert "unknown or has expired" in refused
    say(yours, call(21, "research", question=question))
    answer = json.dumps(answer_to(yours, 21))
    assert "lighthouse of yours" in answer
    assert "of mine" not in answer


def test_another_environment_has_a_daemon_of_its_own(ann: Person) -> None:
    ann.connected()
    ann.connected(TZ="Asia/Tokyo")
    assert len(ann.daemons()) == 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"log": "level=DEBUG"}, "its log is its own"),
        ({"colour": "red"}, "WINNOW_COLOUR: It is not"),
    ],
)
def test_what_a_process_would_say_on_stderr_is_said_there(
    ann: Person, settings: dict[str, str], said: str
) -> None:
    client = ann.connected(**{"daemon": "auto idle=0", **settings})
    say(client, call(2, "extract_relevant", **ASKED))
    assert "erry" in first_answer(client, 2)
    _, noise = client.communicate(timeout=END_SECONDS)
    assert said in noise.decode()


def test_a_client_that_is_killed_in_mid_call_leaves_no_call_and_no_process(ann: Person) -> None:
    other = ann.connected()
    for _ in range(5):
        client = ann.connected()
        say(client, call(2, "raptor_query", question="the harbour", sources=[str(LIBRARY)]))
        say(client, {"jsonrpc": "2.0", "id": 3, "method": "ping"})
        answer_to(client, 3)
        client.kill()
        client.wait()
    say(other, call(3, "extract_relevant", **ASKED))
    assert "erry" in first_answer(other, 3)
    [daemon] = ann.daemons()
    assert (daemon["running"], daemon["waiting"], len(daemon["clients"])) == (0, 0, 1)


def test_what_a_daemon_does_is_shown_live(ann: Person) -> None:
    """Line by line, from none to one with its client, and until Ctrl-C."""
    command = [sys.executable, str(ROOT / "server"), "status", "--watch"]
    with subprocess.Popen(
        command, env=ann.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "daemon: none runs\n"
        ann.connected("Cursor")
        shown = ""
        while "clients Cursor (process " not in shown:
            shown = watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, noise = watching.communicate(timeout=END_SECONDS)
    assert "Traceback" not in noise


@pytest.mark.anyio
async def test_a_session_of_a_call_that_was_cut_is_seen_and_continued_elsewhere(
    ann: Person,
) -> None:
    """The client gives up as soon as it knows the handle; another process has the question."""
    server = StdioServerParameters(
        command=sys.executable, args=[str(ROOT / "server")], env=ann.variables()
    )
    handles: list[str] = []

    async with Client(server) as client:
        with anyio.CancelScope() as call_scope:

            async def cut(progress: float, total: float | None, message: str | None) -> None:
                if (message or "").startswith("winnow://session/"):
                    handles.append(str(message))
                    call_scope.cancel()

            asked_first = {"question": ASKED["question"]}
            await client.call_tool("research", asked_first, progress_callback=cut)
        shown = await anyio.to_thread.run_sync(ann.run, "sessions", "show", handles[0])
        assert str(ASKED["question"]) in shown.stdout
        again = {"question": ASKED["question"], "session": handles[0]}
        assert "erry" in text_of(await client.call_tool("research", again))


def test_a_daemon_is_no_child_of_the_client_that_started_it(ann: Person) -> None:
    client = ann.connected()
    below = Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text(encoding="ascii")
    assert (below, ann.daemon() != client.pid) == ("", True)


def test_a_client_whose_folder_was_removed_is_served(tmp_path: Path, ann: Person) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    shown = subprocess.run(
        ["/bin/sh", "-c", GONE, "sh", gone, sys.executable, ROOT / "server"],
        input=json.dumps(HELLO) + "\n",
        env=ann.variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stderr == ""


GONE = 'cd "$1" && rmdir "$1" && exec "$2" "$3"'


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_progress_goes_to_the_client_that_asked(ann: Person, mode: str) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=[str(ROOT / "server")], env=ann.variables()
    )
    mine: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        mine.append(progress)

    async with Client(server, mode=mode) as asking, Client(server, mode=mode) as other:
        result = await asking.call_tool(
            "research", {"question": ASKED["question"]}, progress_callback=report
        )
        assert "erry" in text_of(result)
        assert mine
        assert len((await other.list_tools()).tools) >= 5


def test_a_cancelled_call_is_not_answered_and_takes_no_place(ann: Person) -> None:
    client = ann.connected()
    say(
        client,
        call(2, "raptor_query", question="harbour", sources=[str(LIBRARY)]),
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 2, "reason": "not needed"},
        },
        call(3, "extract_relevant", **ASKED),
    )
    assert line(client)["id"] == 3
    assert ann.daemons()[0]["running"] == 0


@pytest.mark.parametrize(
    ("daemon", "code", "said"),
    [
        ("auto", 0, "this process serves without a daemon"),
        ("on", 1, "WINNOW_DAEMON is on, and there is no daemon"),
    ],
)
def test_where_no_daemon_is_possible_the_process_serves_or_says_why(
    tmp_path: Path, ann: Person, daemon: str, code: int, said: str
) -> None:
    blocked = ann.runtime
    blocked.write_text("a file, where a folder is needed", encoding="utf-8")
    client = ann.begin(daemon=daemon)
    if not code:
        say(client, HELLO)
        line(client)
        say(client, READY, call(2, "extract_relevant", **ASKED))
        assert "erry" in first_answer(client, 2)
    _, noise = client.communicate(timeout=END_SECONDS)
    assert (client.returncode, said in noise.decode()) == (code, True)
    blocked.unlink()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seconds": "soon"}, "seconds is 'soon'"),
        ({"embedder": "nonsense:x"}, "'nonsense:x' is not a valid value"),
        ({"daemon": "perhaps"}, "daemon is 'perhaps'"),
    ],
)
def test_a_wrong_setting_ends_its_client_with_a_sentence_and_no_other(
    ann: Person, settings: dict[str, str], said: str
) -> None:
    other = ann.connected()
    wrong = ann.begin(**{"daemon": "auto", **settings})
    with suppress(BrokenPipeError):  # it has ended already
        say(wrong, HELLO)
    assert wrong.wait(END_SECONDS) == 2
    assert wrong.stderr is not None
    noise = wrong.stderr.read().decode()
    assert noise.startswith("winnow: ")
    assert said in noise
    assert len(noise.splitlines()) == 1
    say(other, call(2, "extract_relevant", **ASKED))
    assert "erry" in first_answer(other, 2)


PEER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from server.daemon.place import asked, connect
# as another user
try:
    print(asked(connect(sys.argv[2], 60), {"do": "status"}))
except ConnectionError:
    print("cut off")
except PermissionError:
    print("kept out")
"""
STRANGER = PEER.replace("# as another user", "os.setgroups([]), os.setgid(65534), os.setuid(65534)")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("is_open", [False, True])
def test_another_user_is_refused_by_the_folder_and_by_the_daemon(
    ann: Person, is_open: bool
) -> None:
    """The second, with every folder on the way opened, meets the check of the peer alone."""
    ann.connected()
    [path] = ann.runtime.glob("*.sock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    if is_open:
        path.chmod(0o666)
        for folder in [*path.parents][:-2]:
            folder.chmod(folder.stat().st_mode | 0o055)
    # Both ends look: without the check of its own end, the daemon's is met.
    stranger = STRANGER.replace("connect(sys.argv[2], 60)", LINK) if is_open else STRANGER
    ran = subprocess.run(
        [sys.executable, "-c", stranger, str(ROOT), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    path.parent.chmod(0o700)
    assert ran.stdout.strip() == ("cut off" if is_open else "kept out")
    if is_open:
        assert "a process of another user, or in another sandbox" in ann.run("logs").stdout


LINK = "(lambda link: (link.connect(sys.argv[2]), link)[1])(__import__('socket').socket(1))"


def test_an_upgrade_is_taken_over_by_a_new_daemon_and_no_client_notices(
    tmp_path: Path, cache_folder: Path
) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    for name in ("server", "cli"):
        shutil.copytree(ROOT / name, installed / name)
    for name in ("cache", "extras", "models", "papers", "pipeline", "prompts", "readers", "tools"):
        if (ROOT / name).is_dir():
            (installed / name).symlink_to(ROOT / name)
    for path in ROOT.glob("*.py"):
        (installed / path.name).symlink_to(path)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (installed / "pyproject.toml").write_text(project, encoding="utf-8")
    with person(tmp_path / "run", cache_folder, installed) as ben:
        before = ben.connected("before")
        say(before, call(2, "research", **{"question": ASKED["question"]}))
        pid = ben.daemon()
        with watched(pid):
            newer = re.sub('(?m)^version = ".*"', 'version = "99.1"', project)
            (installed / "pyproject.toml").write_text(newer, encoding="utf-8")
            shutil.copy2(ROOT / "server" / "version.py", installed / "server" / "new.py")
            (installed / "server" / "new.py").replace(installed / "server" / "version.py")
            after = ben.connected("after")
        assert ben.daemon() != pid
        assert "erry" in first_answer(before, 2)
        for client in (before, after):
            say(client, call(3, "extract_relevant", **ASKED))
            assert "erry" in first_answer(client, 3)
        [daemon] = ben.daemons()
        assert (daemon["version"], len(daemon["clients"])) == ("99.1", 2)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv")
def test_a_sandboxed_client_has_a_daemon_of_its_own_and_none_reaches_past_it(ann: Person) -> None:
    """Else it could have files read that are kept from it, or bring others into its sandbox."""
    ann.connected()
    [path] = ann.runtime.glob("*.sock")
    boxed = ["setpriv", "--no-new-privs", sys.executable]
    ran = subprocess.run(
        [*boxed, "-c", PEER, str(ROOT), str(path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "cut off"
    with subprocess.Popen(
        [*boxed, str(ROOT / "server")],
        env=ann.variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as client:
        say(client, HELLO)
        assert "result" in line(client)
        assert len([*ann.runtime.glob("*.sock")]) == 2
        client.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_client_and_not_the_daemon(ann: Person, number: signal.Signals) -> None:
    client, other = ann.connected(), ann.connected()
    pid = ann.daemon()
    client.send_signal(number)
    assert client.wait(END_SECONDS) == 128 + number
    assert ann.daemon() == pid
    leave(other)


def test_a_line_of_no_known_request_ends_its_connection_alone(ann: Person) -> None:
    ann.connected()
    [path] = ann.runtime.glob("*.sock")
    for request in ({"do": "nothing"}, {}, {"do": "serve"}):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(path))
            link.sendall(json.dumps(request).encode() + b"\n")
            assert link.recv(1) == b""
    assert len(ann.daemons()) == 1


def test_what_a_client_starts_imports_nothing_heavy() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "import sys, server.daemon.proxy; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"anyio", "asyncio", "mcp", "numpy", "pydantic", "dataclasses", "subprocess"}
    assert heavy & set(shown.stdout.split()) == set()
