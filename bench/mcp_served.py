"""Servers of ours as processes, connected raw, so that benchmarks can watch them start,
work and end.

Not for: the figures (`bench/mcp.py`).
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
LIBRARY: Final = ROOT / "examples" / "library"
WITHIN: Final = 40.0
POLL: Final = 0.005
ABOUT: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: Final[dict[str, Any]] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "0"},
}


@dataclass(slots=True)
class Served:
    """One server of ours."""

    process: subprocess.Popen[bytes]
    """What was started: the server, or its parent."""
    pid: int
    """Of the server itself."""
    port: int
    """0 on stdio."""
    cache: Path
    began: float
    modern: bool = True
    """Whether requests carry what revision 2026-07-28 wants of them."""


@contextmanager
def served(transport: str, cache: Path, **settings: str) -> Iterator[Served]:
    """Start a server over `stdio` or `HTTP` with its own cache folder; killed at the
    end if it still runs."""
    port = free_port() if transport == "HTTP" else 0
    arguments = ["serve", "--http", "--port", str(port)] if port else []
    began = time.perf_counter()
    with subprocess.Popen(  # noqa: S603  our own server
        [sys.executable, "-m", "server", *arguments],
        cwd=ROOT,
        env=environment(cache, **settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield Served(process, process.pid, port, cache, began)
        finally:
            end_all(tree(process.pid))


def environment(cache: Path, **settings: str) -> dict[str, str]:
    """Return what a server is started with; nothing unbuffered, which would hide what
    is left in a buffer."""
    kept = {
        name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"
    }
    given = {f"WINNOW_{name.upper()}": value for name, value in settings.items()}
    own = {
        "WINNOW_CACHE": str(cache),
        "WINNOW_FOLDERS": str(LIBRARY),
        "WINNOW_NETWORKS": "loopback",
        "WINNOW_WEB": "named",
    }
    return {**kept, **own, "WINNOW_HTTP": "rate=0", **given}


def free_port() -> int:
    """Return a port of loopback that no one uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def hello(server: Served, method: str) -> dict[str, Any]:
    """Send `initialize` or `server/discover` as the first message and return the
    answer."""
    if server.port:
        until = time.perf_counter() + WITHIN
        while time.perf_counter() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                    break
            time.sleep(POLL)
    server.modern = method != "initialize"
    answer = ask(server, 1, method, {} if server.modern else HELLO)
    if not server.modern:
        say(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return answer


def ask(
    server: Served, number: int, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Send a request and return its answer."""
    return answer_of(server, send(server, number, method, params), number)


def send(
    server: Served,
    number: int,
    method: str,
    params: dict[str, Any],
    more: Mapping[str, str] = {},
) -> http.client.HTTPConnection | None:
    """Send a request; returns the connection that the answer comes on, None on
    stdio. `more` are headers."""
    given = {**params, "_meta": ABOUT} if server.modern else params
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": given}
    if not server.port:
        say(server, message)
        return None
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, **more}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WITHIN)
    connection.request("POST", "/mcp", json.dumps(message), headers)
    return connection


def say(server: Served, message: dict[str, Any]) -> None:
    """Write one message to a server on stdio."""
    assert server.process.stdin is not None
    server.process.stdin.write(json.dumps(message).encode() + b"\n")
    server.process.stdin.flush()


def answer_of(
    server: Served, connection: http.client.HTTPConnection | None, number: int
) -> dict[str, Any]:
    """Return the answer to request `number`; on HTTP from its connection."""
    if connection is not None:
        body = connection.getresponse().read().decode()
        connection.close()
        lines = [
            line.removeprefix("data:").strip()
            for line in body.splitlines()
            if line.startswith("data:")
        ]
        found: dict[str, Any] = json.loads(lines[-1] if lines else body)
        return found
    assert server.process.stdout is not None
    until = time.perf_counter() + WITHIN
    while time.perf_counter() < until:
        message: dict[str, Any] = json.loads(server.process.stdout.readline())
        if message.get("id") == number:
            return message
    raise SystemExit(f"no answer to request {number}")


def tree(pid: int) -> list[int]:
    """Return a process and all processes below it."""
    found = [pid]
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = listed.read_text(encoding="ascii").split()
        except OSError:  # the thread has ended meanwhile
            continue
        for child in children:
            found.extend(tree(int(child)))
    return found


def spent(pids: list[int]) -> tuple[float, float]:
    """Return the seconds that processes ran, and that they waited for a processor, over
    all their threads."""
    ran = waited = 0
    for pid in pids:
        for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                one = stat.read_text(encoding="ascii").split()
            except OSError:  # as above
                continue
            ran += int(one[0])
            waited += int(one[1])
    return ran / 1e9, waited / 1e9


def waited_first(pid: int) -> float:
    """Return the seconds that a process's first thread has waited for a processor."""
    return (
        int(
            Path(f"/proc/{pid}/task/{pid}/schedstat")
            .read_text(encoding="ascii")
            .split()[1]
        )
        / 1e9
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8")
            .rpartition(")")[2]
            .split()[0]
            != "Z"
        )
    except OSError:
        return False


def end_all(pids: list[int]) -> None:
    """Kill processes by their ids."""
    for pid in pids:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
