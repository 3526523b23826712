"""Commands of ours in copies of one process that has imported what they need.

A new interpreter spends .5 to 1.2 s of processor time on imports before a command begins, a copy
(fork) spends .03 s. Each process of pytest starts one such process when a test first runs a
command, and it ends with that process of pytest. A copy has its own environment, folder, arguments,
streams and exit code, and ends as an interpreter ends. `test_command.py` starts new processes, and
compares one of each command with a copy of it.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from tests.support import LIBRARY, ROOT

NEEDED: Final = (
    "cli.doctor",
    "cli.folders",
    "cli.index",
    "cli.kept",
    "cli.models",
    "extras.http.serve",
    "extras.install.install",
    "server.app",
    "server.stdio",
)
"""Modules that `cli.command` imports for one command or another."""
_NUMBER: Final = struct.Struct("i")
_STREAMS: Final = 3


def run_command(
    *arguments: str, environment: Mapping[str, str], folder: Path = ROOT, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run `winnow` in `folder` without input; return its exit code and what it wrote.

    Raises `subprocess.TimeoutExpired` after so many `seconds`.
    """
    asked = {"arguments": arguments, "environment": dict(environment), "folder": str(folder)}
    with (
        open(os.devnull, "rb") as nothing,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        try:
            code = _prepared().run(json.dumps(asked).encode(), (nothing, output, errors), seconds)
        except TimeoutError as late:
            _prepared().end()
            _prepared.cache_clear()
            raise subprocess.TimeoutExpired(arguments, seconds) from late
        wrote = [_text(file) for file in (output, errors)]
    return subprocess.CompletedProcess(arguments, code, *wrote)


def winnow(
    cache: Path, *arguments: str, folder: Path | None = LIBRARY
) -> subprocess.CompletedProcess[str]:
    """Run a command with a cache of its own over the sample library, as `processes.winnow`."""
    environment = {**os.environ, "WINNOW_CACHE": str(cache)}
    environment.pop("WINNOW_FOLDERS", None)
    given = ["--folder", str(folder)] if folder else []
    return run_command(*arguments, *given, environment=environment, seconds=300)


@dataclass
class _Prepared:
    """The process that has imported everything, and the socket on which it is asked."""

    process: subprocess.Popen[bytes]
    asked: socket.socket

    def run(self, request: bytes, streams: tuple[IO[bytes], ...], seconds: float) -> int:
        """Return the exit code of a copy; raise `TimeoutError` where it takes longer."""
        self.asked.settimeout(seconds)
        numbers = [stream.fileno() for stream in streams]
        socket.send_fds(self.asked, [_NUMBER.pack(len(request))], numbers)
        self.asked.sendall(request)
        answer = self.asked.recv(_NUMBER.size)
        if len(answer) < _NUMBER.size:
            raise RuntimeError(f"the prepared process ended with {self.process.wait()}")
        code: int = _NUMBER.unpack(answer)[0]
        return code

    def end(self) -> None:
        """End the process and the copy that runs."""
        self.asked.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@cache
def _prepared() -> _Prepared:
    ours, theirs = socket.socketpair()
    # A process with threads is not copied safely, and numpy's library starts one for each core.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.commands", str(theirs.fileno())],
            cwd=ROOT,
            env=environment,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    prepared = _Prepared(process, ours)
    atexit.register(prepared.end)
    return prepared


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


def _serve(number: int) -> None:
    """Import what commands need, and run each that is asked for in a copy until no one asks."""
    command = importlib.import_module("cli.command")
    for name in NEEDED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=number) as asking:
        while True:
            head, streams, _, _ = socket.recv_fds(asking, _NUMBER.size, _STREAMS)
            if not head:
                return
            request = asking.recv(_NUMBER.unpack(head)[0], socket.MSG_WAITALL)
            copy = os.fork()
            if copy == 0:
                asking.close()
                command.main(_become(json.loads(request), streams))
            for stream in streams:
                os.close(stream)
            _, status = os.waitpid(copy, 0)
            asking.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _become(asked: dict[str, Any], streams: list[int]) -> list[str]:
    """Give this copy what its command begins with; return the command's arguments."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    arguments: list[str] = asked["arguments"]
    sys.argv = ["winnow", *arguments]
    return arguments


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
