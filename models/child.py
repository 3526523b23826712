"""One running process of a model: start, pipes, log and end. Not for: calls (`models/worker.py`)."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Final

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from errors import ModelError
from models.pipe import HEADER, LARGEST, Fields, Frame

ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder that our packages are imported from, in a checkout and in a wheel."""
LAST_WORDS: Final = 400
"""Bytes of the process's log that an error message quotes."""
SENDING: Final = 10.0
"""Seconds that a request may take into the pipe; its reader is a thread that does nothing else."""
ENVIRONMENT: Final = {"OMP_WAIT_POLICY": "passive", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
"""Waiting threads sleep (spinning ones cost 3 to 10 times the CPU on a busy machine, notes/models §0.5), nothing is
fetched."""
BROKEN: Final = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    ConnectionError,
)
"""What the pipes of a process raise that is gone."""


class Child:
    """One running process, its pipes and its log."""

    def __init__(self, process: anyio.abc.Process, log: IO[bytes]) -> None:
        """Take over a started process and the file that its stderr goes to."""
        if process.stdin is None or process.stdout is None:
            raise ModelError("A model's process was started without pipes.", hint="Try again.")
        self._process = process
        self._log = log
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self._sending = anyio.Lock()
        self._sizes: tuple[int, int] | None = None
        self._fields: Fields | None = None

    @classmethod
    async def start(cls, entry: str, arguments: Fields) -> "Child":
        """Start a fresh interpreter that runs `main(arguments)` of the module `entry`.

        Raises:
            ModelError: The system has no process to give.
        """
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
            f"import {entry} as entry; entry.main({json.dumps(arguments)!r})"
        )
        log = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        try:
            with anyio.CancelScope(shield=True):  # milliseconds; a start that is cut half-way leaves a process behind
                process = await anyio.open_process(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**os.environ, **ENVIRONMENT},
                    start_new_session=True,  # an interrupt at the terminal is the server's to handle
                )
        except OSError as error:
            log.close()
            raise ModelError(f"The process of a model cannot be started: {error}.", hint="Free memory.") from error
        return cls(process, log)

    @property
    def alive(self) -> bool:
        """Whether the process was not yet seen to end."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def send(self, frame: Frame, call: int) -> None:
        """Write one whole request; a cancellation waits until it is written, for half of one would end the process."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(SENDING) as scope:
            async with self._sending:
                await self._stdin.send(frame.packed(call))
        if scope.cancelled_caught:
            raise anyio.BrokenResourceError

    async def receive(self) -> tuple[int, Frame]:
        """Return the next answer and its call's number; cancelled half-way, it goes on from there when called again."""
        if self._sizes is None:
            self._sizes = HEADER.unpack(await self._stdout.receive_exactly(HEADER.size))
        text, blob = self._sizes
        if max(text, blob) > LARGEST:
            raise anyio.BrokenResourceError
        if self._fields is None:
            self._fields = json.loads(await self._stdout.receive_exactly(text))
        rest = await self._stdout.receive_exactly(blob) if blob else b""
        fields, self._fields, self._sizes = dict(self._fields), None, None
        return int(str(fields.pop("call"))), Frame(fields, rest)

    async def ending(self, patience: float) -> tuple[int | None, str]:
        """Wait `patience` seconds for the end; return its status (None while it goes on) and its last words."""
        code: int | None = None
        with anyio.move_on_after(patience):
            code = await self._process.wait()
        if self._log.closed:
            return code, ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LAST_WORDS))
        return code, " ".join(self._log.read().decode("utf-8", "replace").split())

    async def end(self, *, patience: float) -> None:
        """Close the child's stdin, wait `patience` seconds for it to go, kill it, let go of everything."""
        with anyio.CancelScope(shield=True):
            if self.alive and patience:
                await self._stdin.aclose()
                with anyio.move_on_after(patience):
                    await self._process.wait()
            if self.alive:
                self._process.kill()
                await self._process.wait()
            await self._process.aclose()
            self._log.close()


def ending_of(code: int | None) -> str:
    """Return in words how a process with this status ended."""
    if code is None:
        return "closed its pipe"
    if code >= 0:
        return f"ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    reason = ": killed, often for want of memory" if name == "SIGKILL" else ""
    return f"died of signal {-code} ({name}{reason})"
