"""The server as a process on stdio: a clean wire, a quiet stderr, and a quick end."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import ANY

import pytest
from mcp import Client, StdioServerParameters

from tests.support import LIBRARY, ROOT, text_of
from tests.support.extras import needs_llama
from tests.support.pdf import make_pdf
from tests.support.processes import (
    EXIT_SECONDS,
    HELLO,
    READY,
    answer_to,
    call,
    line,
    rest_of,
    say,
)

pytestmark = pytest.mark.slow


def environment(cache: Path, **settings: str) -> dict[str, str]:
    # PYTHONUNBUFFERED would hide text that is left in a buffer and drained onto the wire at the
    # end.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**kept, "WINNOW_FOLDERS": str(LIBRARY), "WINNOW_CACHE": str(cache), **settings}


@contextmanager
def server(cache: Path, *started: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, *(started or ("-m", "server"))],
        cwd=ROOT,
        env=environment(cache, **settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_every_byte_on_stdout_is_protocol_until_the_process_ends_and_eof_ends_it(
    cache_folder: Path,
) -> None:
    with server(cache_folder) as process:
        say(process, HELLO)
        assert "winnow" in json.dumps(line(process))
        say(
            process,
            READY,
            call(2, "research", question="When does the first ferry leave on Sundays?"),
        )
        assert "error" not in answer_to(process, 2)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        rest = rest_of(process)
        noise = process.stderr.read()
        assert process.wait(EXIT_SECONDS) == 0
    for left in rest.splitlines():
        json.loads(left)
    assert len(noise) < 2000, noise.decode()


NOISY = """
import ctypes, sys, threading
def noise():
    native = ctypes.CDLL(None)
    while True:
        print("a banner")
        native.puts(b"a native banner")
        threading.Event().wait(0.005)
threading.Thread(target=noise, daemon=True).start()
from cli.command import main
main(["serve"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="asks the C library by no name")
def test_what_libraries_print_while_it_serves_never_reaches_the_wire(cache_folder: Path) -> None:
    with server(cache_folder, "-c", NOISY) as process:
        say(process, HELLO)
        line(process)
        say(process, READY, call(2, "search_web", query="ferry timetable"))
        assert "error" not in answer_to(process, 2)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        rest = rest_of(process)
    for left in rest.splitlines():
        json.loads(left)


@needs_llama
def test_models_in_own_processes_leave_the_wire_clean_and_end_with_the_server(
    tmp_path: Path, shared: Path
) -> None:
    weights = shared / "models"
    models = {
        "WINNOW_EMBEDDER": f"llama:{weights / 'all-minilm-l6-v2-f16.gguf'}",
        "WINNOW_GENERATOR": f"llama:{weights / 'stories260K' / 'stories260K-f32.gguf'}",
    }
    page = str(LIBRARY / "ferry-timetable.html")
    with server(tmp_path, **models) as process:
        say(process, HELLO)
        line(process)
        say(
            process,
            READY,
            call(2, "raptor_query", question="When is the first ferry?", sources=[page]),
        )
        assert "error" not in answer_to(process, 2)
        below = children(process.pid)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        rest = rest_of(process)
        assert process.wait(EXIT_SECONDS) == 0
        wait_for_the_end_of(below)
    assert below
    for left in rest.splitlines():
        json.loads(left)


@pytest.mark.parametrize("how", ["eof", "sigterm", "sigkill"])
def test_a_conversion_under_way_ends_with_the_server_and_leaves_the_wire_clean(
    tmp_path: Path, how: str
) -> None:
    document = tmp_path / "long.pdf"
    document.write_bytes(
        make_pdf([[(f"Line {n} of page {page}.", 11) for n in range(80)] for page in range(400)])
    )
    with server(tmp_path / "cache", WINNOW_FOLDERS=str(tmp_path)) as process:
        say(process, HELLO)
        line(process)
        say(process, READY, call(2, "search_web", question="the ferry of the harbour"))
        while not (below := children(process.pid)):
            select.select([], [], [], 0.01)
        assert process.stdin is not None
        assert process.stdout is not None
        if how == "eof":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM if how == "sigterm" else signal.SIGKILL)
        rest = rest_of(process)
        process.wait(EXIT_SECONDS)
        wait_for_the_end_of(below)
    for left in rest.splitlines():
        json.loads(left)


def test_a_server_that_read_no_document_has_started_no_process(cache_folder: Path) -> None:
    with server(cache_folder) as process:
        say(process, HELLO)
        line(process)
        say(process, READY, call(2, "search_web", question="ferry timetable"))
        assert "error" not in answer_to(process, 2)
        assert children(process.pid) == []


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for listed in found for child in listed.read_text(encoding="ascii").split()]


def wait_for_the_end_of(processes: list[int]) -> None:
    """The runner's limit ends a wait for a process that stays."""
    while any(map(alive, processes)):
        select.select([], [], [], 0.01)


def alive(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            != "Z"
        )
    except OSError:
        return False


def test_the_first_answer_waits_for_no_pipeline_and_no_cache(tmp_path: Path) -> None:
    asked = (
        "import sys, server.app; print(sorted({'numpy', 'pipeline.services', "
        "'tools.research'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
    with server(tmp_path / "cache", WINNOW_CACHE_URL="redis://127.0.0.1:1/0") as process:
        say(process, HELLO)
        assert "winnow" in json.dumps(line(process))


def test_a_setting_that_is_wrong_ends_the_server_with_a_sentence(tmp_path: Path) -> None:
    with server(tmp_path, WINNOW_EMBEDDER="nonsense:x") as process:
        say(process, HELLO)
        line(process)
        assert process.wait(40) == 2
        assert process.stderr is not None
        noise = process.stderr.read().decode()
    assert noise.startswith("winnow: 'nonsense:x' is not a valid value")
    assert len(noise.splitlines()) == 1


@pytest.mark.parametrize(("level", "calls", "length"), [("WARNING", 40, 500), ("DEBUG", 200, 1500)])
def test_a_client_that_never_reads_stderr_cannot_hang_the_server(
    tmp_path: Path, level: str, calls: int, length: int
) -> None:
    with server(tmp_path, WINNOW_LOG=f"level={level}") as process:
        say(process, HELLO)
        line(process)
        say(process, READY)
        for number in range(2, calls + 2):
            say(
                process,
                call(number, "fetch_and_prune_html", urls=["http://10.0.0.1/" + "x" * length]),
            )
            assert answer_to(process, number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_at_once_even_in_the_middle_of_a_call(
    cache_folder: Path, number: signal.Signals
) -> None:
    with server(cache_folder) as process:
        say(process, HELLO)
        line(process)
        say(process, READY, call(2, "raptor_query", question="harbour", sources=[str(LIBRARY)]))
        process.send_signal(number)
        assert process.wait(EXIT_SECONDS) == 128 + number


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_calls_every_tool_over_stdio(cache_folder: Path, mode: str) -> None:
    page = str(LIBRARY / "ferry-timetable.html")
    calls: dict[str, dict[str, object]] = {
        "search_web": {"question": "ferry timetable"},
        "fetch_and_prune_html": {"sources": [page], "question": "Sunday"},
        "extract_relevant": {"question": "When is the first ferry on Sundays?", "sources": [page]},
        "raptor_query": {"question": "When is the first ferry on Sundays?", "sources": [page]},
        "research": {"question": "When is the first ferry on Sundays?"},
    }
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "server"], env=environment(cache_folder), cwd=ROOT
    )
    async with Client(parameters, mode=mode) as client:
        for tool, arguments in calls.items():
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, text_of(result)
            assert "erry" in text_of(result)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (
            b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"q":"half an emoji \\ud83d"}}',
            -32700,
        ),
        (b'{"jsonrpc":"2.0","id":2,"method":"ping",,}', -32700),
        (b"[" * 300 + b"]" * 300, -32700),
        (b"hello", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":2,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":[2],"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', -32600),
    ],
)
def test_a_line_that_is_no_message_is_answered_and_the_connection_lives(
    cache_folder: Path, sent: bytes, code: int
) -> None:
    with server(cache_folder) as process:
        say(process, HELLO)
        line(process)
        assert process.stdin is not None
        process.stdin.write(sent + b"\n")
        process.stdin.flush()
        refused = line(process)
        assert refused["id"] is None
        assert refused["error"] == {"code": code, "message": ANY}
        say(process, {"jsonrpc": "2.0", "id": 3, "method": "ping"})
        assert answer_to(process, 3)["result"] == {}
