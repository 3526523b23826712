"""The server and its command line as processes: messages of the protocol by line, and one command run to its end."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

from tests.support import LIBRARY, ROOT

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}},
}


READY: dict[str, object] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


EXIT_SECONDS = 3.0
"""The issue's bar is one second; CI's two cores are shared with other work."""


def call(number: int, tool: str, **arguments: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def say(process: subprocess.Popen[bytes], *messages: dict[str, object]) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def line(process: subprocess.Popen[bytes], seconds: float = 40) -> dict[str, object]:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    assert ready, "the server said nothing"
    told = process.stdout.readline()
    if not told:
        raise AssertionError(f"the server ended with {process.wait(EXIT_SECONDS)}: {last_words(process)}")
    answer: dict[str, object] = json.loads(told)
    return answer


def last_words(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    return process.stderr.read()[-3000:].decode("utf-8", "replace")


def answer_to(process: subprocess.Popen[bytes], number: int) -> dict[str, object]:
    for _ in range(100):
        message = line(process)
        if message.get("id") == number:
            return message
    raise AssertionError(f"no answer to {number}")


def winnow(cache: Path, *arguments: str, folder: Path | None = LIBRARY) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WINNOW_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    environment.pop("WINNOW_FOLDERS", None)
    given = ["--folder", str(folder)] if folder else []
    return subprocess.run(
        [sys.executable, "-m", "server", *arguments, *given],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
