"""A process for native code, connected by stdin and stdout: a crash fails one call, not
the server.

The process is a fresh interpreter (spawned, never forked), started at the first call
and again after it ended. It computes one call at a time, others wait; a cancelled one
gets a stop request, and the process is killed if it does not stop. What native code
prints goes to a log of its own, never to our stdout. Not for: what the process computes
(`models/llama/process.py`, `pipeline/conversion/process.py`).
"""

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple

import anyio

from errors import ModelError
from models.pipe import CANCEL, MESSAGE_HEADER, Fields, Frame, accepted

ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder that our packages are imported from, in a checkout and in a wheel."""
ENVIRONMENT: Final = {
    "OMP_WAIT_POLICY": "passive",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}
"""Waiting threads sleep (spinning ones cost 3 to 10 times the CPU on a busy machine),
numpy starts none (0.08 s of each start), and nothing is fetched."""
PIPE_FAILURES: Final = (ConnectionError, asyncio.IncompleteReadError)
"""What the pipes raise once their process is gone."""
STOP_SECONDS: Final = 0.4
"""For a cancelled call to stop by itself; then its process is killed."""
CLOSE_SECONDS: Final = 5 * STOP_SECONDS
"""For an idle process to end after its stdin was closed."""
MEMORY_WORDS: Final = ("bad_alloc", "MemoryError", "allocate", "failed to map segment")
"""One of these is among the last words of a process that had no memory left."""

_KILLED: Final = -9
"""Exit code of a process that SIGKILL ended; on Windows no code is negative."""

_log: Final = logging.getLogger("winnow.models")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may take."""

    idle_seconds: float = 900.0
    """Without a call: then it ends, which gives its memory back."""
    memory_bytes: int | None = None
    """Most address space (RLIMIT_AS) beyond what it has at its start; None for no
    limit. Not for GPU builds, whose drivers map far more than they use."""


class ProcessDied(ModelError):
    """A process ended during a call."""

    def __init__(self, ending: str, *, output: str, was_killed: bool) -> None:
        """Keep the `ending` as a sentence, and whether that was by SIGKILL, which
        comes from outside."""
        quoted = f" Its last output: {output}" if output else ""
        super().__init__(
            ending + quoted,
            hint="Try again: it is restarted. If it crashes again, set a smaller model, "
            "or free memory.",
        )
        self.how = ending
        self.was_killed = was_killed


class _Child(NamedTuple):
    """A running process, and the file that its stderr goes to."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    log: IO[bytes]

    async def exchange(self, request: Frame) -> Frame:
        """Send a request and return the answer; waits without limit. Raises one of
        `PIPE_FAILURES` where the process is gone."""
        self.stdin.write(request.packed())
        await self.stdin.drain()
        header = await self.stdout.readexactly(MESSAGE_HEADER.size)
        text, blob = MESSAGE_HEADER.unpack(header)
        message = await self.stdout.readexactly(text + blob)
        return Frame(json.loads(message[:text]), message[text:])

    async def end(self, seconds: float = 0.0) -> str:
        """Close the child's stdin, wait `seconds` for it to go, kill it; return its
        last words. Without `seconds` no other task may be reading its answers."""
        self.stdin.close()
        if seconds:
            with anyio.move_on_after(seconds):
                await self.process.wait()
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
        if not seconds:  # an unread answer would keep the pipe open
            await self.stdout.read()
        await self.process.wait()
        # asyncio of Python 3.11.2 logs a broken pipe that is not awaited
        with suppress(ConnectionError):
            await self.stdin.wait_closed()
        size = self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, size - 400))
        words = self.log.read().decode("utf-8", "replace").split()
        self.log.close()
        return " ".join(words)


class Worker:
    """The server's handle of a process. Belongs to one event loop; any number of its
    tasks may call, and one call is computed at a time."""

    def __init__(
        self, entry: str, arguments: Fields, *, label: str, limits: Limits | None = None
    ) -> None:
        """Name what runs in the child: the module `entry`, whose `main(arguments)`
        calls `pipe.serve`, and the `label` of the process in messages.

        `memory_bytes` of the `limits` is added to the `arguments`."""
        self._entry = entry
        self._limits = limits or Limits()
        self._arguments = {**arguments, "memory_bytes": self._limits.memory_bytes}
        self._label = label
        self._turn = anyio.Lock()
        self._child: _Child | None = None
        self._calls = 0

    @property
    def pid(self) -> int | None:
        """Process id while the process lives, for status displays."""
        child = self._child
        alive = child is not None and child.process.returncode is None
        return child.process.pid if child is not None and alive else None

    async def call(self, fields: Fields, blob: bytes = b"") -> Frame:
        """Return the child's answer; start the child if it does not run.

        Waits for its turn and for the answer without limit. Raises `ModelError`: the
        child refused the request, crashed (`ProcessDied`; the next call restarts it),
        or was closed.
        """
        async with self._turn:
            child = await self._started()
            answer = asyncio.ensure_future(child.exchange(Frame(fields, blob)))
            try:
                frame = await asyncio.shield(answer)
            except asyncio.CancelledError:
                with anyio.CancelScope(shield=True):
                    await self._stop(child, answer)
                raise
            except PIPE_FAILURES as error:
                with anyio.CancelScope(shield=True):
                    lost = await self._lost(child, str(fields["do"]))
                raise lost from error
            finally:
                self._end_when_idle(child)
            return accepted(frame)

    async def aclose(self) -> None:
        """End the process; a call in flight fails, a later call would start it
        again."""
        child, self._child = self._child, None
        if child is not None:
            with anyio.CancelScope(shield=True):
                await child.end(CLOSE_SECONDS)

    async def _started(self) -> _Child:
        """Return the running process; raises `ModelError` where none can be started."""
        with anyio.CancelScope(shield=True):  # an interrupted start would orphan it
            child = self._child
            if child is not None and (
                child.process.returncode is not None or child.stdin.is_closing()
            ):
                self._child = None
                await child.end()
            if self._child is None:
                self._child = await self._start()
            running = self._child
        return running

    async def _start(self) -> _Child:
        """Start a fresh interpreter that runs `main(arguments)` of the module."""
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
            f"import {self._entry} as entry; entry.main({json.dumps(self._arguments)!r})"
        )
        log = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", code),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, **ENVIRONMENT},
                # an interrupt at the terminal is the server's to handle
                start_new_session=True,
            )
        except OSError as error:
            log.close()
            raise ModelError(
                f"The process of {self._label} cannot be started: {error}.",
                hint="Free memory.",
            ) from error
        assert process.stdin is not None and process.stdout is not None  # noqa: S101  both were asked for
        return _Child(process, process.stdin, process.stdout, log)

    def _end_when_idle(self, child: _Child) -> None:
        """Close the child's stdin, which ends it, once nothing was asked for long."""
        calls = self._calls = self._calls + 1

        def end() -> None:
            if self._calls == calls and not self._turn.locked():
                child.stdin.close()

        asyncio.get_running_loop().call_later(self._limits.idle_seconds, end)

    async def _stop(self, child: _Child, answer: "asyncio.Future[Frame]") -> None:
        """Ask the child to leave its call; kill it when it does not answer in time."""
        child.stdin.write(Frame({"do": CANCEL}).packed())
        await asyncio.wait([answer], timeout=STOP_SECONDS)
        if answer.done() and answer.exception() is None:
            return
        answer.cancel()
        with suppress(asyncio.CancelledError, *PIPE_FAILURES):
            await answer
        if self._child is child:
            self._child = None
            await child.end()

    async def _lost(self, child: _Child, doing: str) -> ModelError:
        """Collect a child that ended amid a call; return how as an error."""
        if self._child is not child:
            return ModelError(
                f"The process of {self._label} was closed.", hint="Ask again."
            )
        self._child = None
        with anyio.move_on_after(CLOSE_SECONDS):  # it may still be on its way out
            await child.process.wait()
        output = await child.end()
        code = child.process.returncode or 0
        ending = f"ended with status {code}"
        if code < 0:
            ending = f"was killed by signal {-code} ({signal.Signals(-code).name}), often for want of memory"
        if any(words in output for words in MEMORY_WORDS):
            bound = self._limits.memory_bytes
            limit = f" (its limit is {bound / 1e6:.0f} MB)" if bound else ""
            ending = f"ran out of memory{limit}, {ending}"
        error = ProcessDied(
            f"The process of {self._label} {ending} during {doing!r}.",
            output=output,
            was_killed=code == _KILLED,
        )
        _log.warning("%s", error.what)
        return error
