"""The server and its command line as processes: messages of the protocol by line, and one command
run to its end."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from weakref import WeakKeyDictionary

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support import LIBRARY, ROOT
from tests.support.waiting import moment

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "0"},
    },
}
READY: dict[str, object] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
EXIT_SECONDS = 30.0
"""After this a process that should end hangs, however busy the machine is."""


@asynccontextmanager
async def as_caller(url: str, token: str, *, mode: str = "auto") -> AsyncIterator[Client]:
    """Connect over HTTP with a token, as a client that has just come."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def call(number: int, tool: str, **arguments: object) -> dict[str, object]:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


def say(process: subprocess.Popen[bytes], *messages: dict[str, object]) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def line(process: subprocess.Popen[bytes], seconds: float = 40) -> dict[str, object]:
    """Return the next message; of several that came at once the others are held for later calls."""
    assert process.stdout is not None
    held = _HELD.setdefault(process, bytearray())
    while b"\n" not in held:
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        assert ready, "the server said nothing"
        piece = os.read(process.stdout.fileno(), 1 << 16)
        if not piece:
            code = process.wait(EXIT_SECONDS)
            raise AssertionError(f"the server ended with {code}: {last_words(process)}")
        held += piece
    reported, _, rest = held.partition(b"\n")
    held[:] = rest
    answer: dict[str, object] = json.loads(reported)
    return answer


def rest_of(process: subprocess.Popen[bytes]) -> bytes:
    """Return what a server writes until it closes its output, and what of it was read already."""
    assert process.stdout is not None
    return bytes(_HELD.pop(process, b"")) + process.stdout.read()


_HELD: WeakKeyDictionary[subprocess.Popen[bytes], bytearray] = WeakKeyDictionary()
"""What was read of a server's output and not asked for yet."""


def last_words(process: subprocess.Popen[bytes]) -> str:
    if process.stderr is None:
        return "what it wrote is not kept"
    return process.stderr.read()[-3000:].decode("utf-8", "replace")


def answer_to(process: subprocess.Popen[bytes], number: int) -> dict[str, object]:
    """Return the answer to a call; messages before it are passed over."""
    while (message := line(process)).get("id") != number:
        pass
    return message


def winnow(
    cache: Path, *arguments: str, folder: Path | None = LIBRARY
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WINNOW_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    environment.pop("WINNOW_FOLDERS", None)
    given = ["--folder", str(folder)] if folder else []
    return subprocess.run(
        [sys.executable, "-m", "server", *arguments, *given],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@contextmanager
def served(
    cache: Path, *arguments: str, **settings: str
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Start a server over HTTP on a free port of loopback; yield its process and its address,
    without a path."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "WINNOW_FOLDERS": str(LIBRARY), "WINNOW_CACHE": str(cache)}
    environment |= {"WINNOW_WEB": "named"}
    environment |= {f"WINNOW_{name.upper()}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "server", "serve", "--http", "--port", str(port), *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE) as process:
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()


async def healthy(url: str) -> dict[str, str]:
    """Wait until the server at `url` takes calls; return what its /health says."""
    await ready(url)
    return await health(url)


async def health(url: str) -> dict[str, str]:
    """What the /health of a running server says, which one that drains answers too."""
    async with httpx2.AsyncClient(timeout=60) as http:
        said: dict[str, str] = (await http.get(f"{url}/health")).json()
    return said


async def ready(url: str) -> None:
    """Wait until the server, or a balancer with a server after it, at `url` takes calls."""
    async with httpx2.AsyncClient(timeout=60) as http:
        for _ in range(2400):
            with suppress(httpx2.TransportError):
                if (await http.get(f"{url}/readyz")).status_code == httpx2.codes.OK:
                    return
            await moment()
    raise AssertionError("the server was never ready")
