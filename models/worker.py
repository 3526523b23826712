"""A process for native code, connected by stdin and stdout: a crash fails one call, not
the server.

The process is a fresh interpreter (spawned, never forked), started at the first call
and again after it died, with a growing pause when it dies again and again. It computes
one call at a time, others wait; a cancelled one gets a stop request, and the process is
killed if it does not stop. What native code prints goes to a log of its own, never to
our stdout. Not for: what the process computes (`models/llama/process.py`,
`pipeline/read/process.py`).
"""

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import anyio
import anyio.lowlevel

from errors import ModelError
from models.pipe import CANCEL, EXIT_IDLE, MESSAGE_HEADER, Fields, Frame, accepted

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

MEMORY_WORDS: Final = (
    "bad_alloc",
    "MemoryError",
    "failed to allocate",
    "unable to allocate",
    "annot allocate memory",
    "failed to map segment",
)
"""One of these is among the last words of a process that had no memory left."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may take, and the times of its life in seconds."""

    idle_seconds: float = 900.0
    """Without a call: then it ends, which gives its memory back."""
    memory_bytes: int | None = None
    """Most address space (RLIMIT_AS) beyond what it has at its start; None for no
    limit. Not for GPU builds, whose drivers map far more than they use."""
    clock: Callable[[], float] = time.monotonic
    stopping: float = 0.4
    """For a cancelled call to stop by itself; then its process is killed."""
    closing: float = 2.0
    """For an idle process to end after its stdin was closed."""
    sending: float = 10.0
    """For a request to go into the pipe; its reader is a thread that does nothing
    else."""
    first_pause: float = 1.0
    """Until the start after the second crash in a row, doubled by each further one. The
    first costs no pause."""
    longest_pause: float = 60.0


class ProcessDied(ModelError):
    """A process ended during a call."""

    def __init__(self, how: str, *, output: str, was_killed: bool) -> None:
        """Keep `how` it ended as a sentence, and whether that was by SIGKILL, which
        comes from outside."""
        quoted = f" Its last output: {output}" if output else ""
        hint = (
            "Try again: it is restarted. If it crashes again, set a smaller model, or "
            "free memory."
        )
        super().__init__(how + quoted, hint=hint)
        self.how = how
        self.was_killed = was_killed


class Child:
    """One running process, its pipes and its log."""

    def __init__(
        self, process: asyncio.subprocess.Process, log: IO[bytes], *, limits: Limits
    ) -> None:
        """Take over a started process and the file that its stderr goes to."""
        assert process.stdin is not None  # noqa: S101  `start` asked for both pipes
        assert process.stdout is not None  # noqa: S101  as above
        self._process = process
        self._log = log
        self._limits = limits
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._sizes: tuple[int, int] | None = None

    @classmethod
    async def start(
        cls, entry: str, arguments: Fields, *, label: str, limits: Limits
    ) -> "Child":
        """Start a fresh interpreter that runs `main(arguments)` of the module `entry`;
        raises `ModelError` where it cannot be started."""
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
            f"import {entry} as entry; entry.main({json.dumps(arguments)!r})"
        )
        log = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        try:
            with anyio.CancelScope(
                shield=True
            ):  # milliseconds; an interrupted start would leave an orphaned process
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
                f"The process of {label} cannot be started: {error}.",
                hint="Free memory.",
            ) from error
        return cls(process, log, limits=limits)

    @property
    def alive(self) -> bool:
        """Whether the process was not yet seen to end."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def send(self, frame: Frame) -> None:
        """Write one whole message; a cancellation waits until it is written, for half
        of one would end the process.

        Raises `ConnectionError` where the pipe is broken, or that takes longer than
        `limits.sending`.
        """
        with (
            anyio.CancelScope(shield=True),
            anyio.move_on_after(self._limits.sending) as scope,
        ):
            self._stdin.write(frame.head() + frame.blob)
            await self._stdin.drain()
        if scope.cancelled_caught:
            raise BrokenPipeError

    async def receive(self) -> Frame:
        """Return the answer; cancelled half-way, it goes on from there when called
        again.

        Waits without limit; raises one of `PIPE_FAILURES` where the pipe ends.
        """
        if self._sizes is None:
            self._sizes = MESSAGE_HEADER.unpack(
                await self._stdout.readexactly(MESSAGE_HEADER.size)
            )
        text, blob = self._sizes
        message = await self._stdout.readexactly(text + blob)
        self._sizes = None
        return Frame(json.loads(message[:text]), message[text:])

    async def ending(self) -> tuple[int | None, str]:
        """Wait a little for the end; return its status (None while it goes on) and the
        end of its log ("" if that is closed)."""
        with anyio.move_on_after(self._limits.closing):
            await self._process.wait()
        code = self._process.returncode
        if self._log.closed:
            return code, ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 400))
        return code, " ".join(self._log.read().decode("utf-8", "replace").split())

    async def end(self, *, at_once: bool) -> None:
        """Close the child's stdin and wait a little for it to go (not `at_once`), kill
        it, let go of everything.

        `at_once` is for the task that sends and receives: it reads what is left."""
        with anyio.CancelScope(shield=True):
            self._stdin.close()
            if not at_once:
                with anyio.move_on_after(self._limits.closing):
                    await self._process.wait()
            if self.alive:
                self._process.kill()
            if at_once:  # an unread answer would keep the pipe open
                await self._stdout.read()
            await self._process.wait()
            # asyncio of Python 3.11.2 logs a broken pipe that is not awaited
            with suppress(ConnectionError):
                await self._stdin.wait_closed()
            self._log.close()


class Worker:
    """The server's handle of a process. Belongs to one event loop; any number of its
    tasks may call, and one call is computed at a time."""

    def __init__(
        self, entry: str, arguments: Fields, *, label: str, limits: Limits | None = None
    ) -> None:
        """Name what runs in the child: the module `entry`, whose `main(arguments)`
        calls `pipe.serve`.

        `idle_seconds` and `memory_bytes` of the `limits` are added to the
        `arguments`."""
        self._entry = entry
        self._limits = limits or Limits()
        self._arguments = {
            **arguments,
            "idle_seconds": self._limits.idle_seconds,
            "memory_bytes": self._limits.memory_bytes,
        }
        self.label = label
        """How messages name what the process is for."""
        self._turn = anyio.Lock()
        self._child: Child | None = None
        self._crashes = 0
        self._not_before = 0.0
        self._loop: object | None = None

    @property
    def pid(self) -> int | None:
        """Process id while the process lives, for status displays."""
        return (
            self._child.pid if self._child is not None and self._child.alive else None
        )

    async def call(self, fields: Fields, blob: bytes = b"") -> Frame:
        """Return the child's answer; start the child if it does not run.

        Waits for its turn and for the answer without limit. Raises `ModelError`: the
        child refused the request, crashed (`ProcessDied`; the next call restarts it),
        was closed, or is paused after crashes. So does a call from another event loop
        than the first.
        """
        self._check_loop()
        request = Frame(fields, blob)
        async with self._turn:
            answer = await self._attempt(request)
            if answer is None:  # it had just gone idle, which a new one does not
                answer = await self._attempt(request)
        if answer is None:
            raise ModelError(
                f"The process of {self.label} ended twice without a call.",
                hint="Try again.",
            )
        self._crashes = 0
        return accepted(answer)

    async def aclose(self) -> None:
        """End the process; a call in flight fails, a later call would start it
        again."""
        child, self._child = self._child, None
        if child is not None:
            await child.end(at_once=False)

    def _check_loop(self) -> None:
        token = anyio.lowlevel.current_token()
        if self._loop is None:
            self._loop = token
        elif self._loop != token:
            raise ModelError(
                f"{self.label} was called from a second event loop; its pipes belong to the first.",
                hint="Call it in the event loop of its first call, or create another model object for this loop.",
            )

    async def _attempt(self, request: Frame) -> Frame | None:
        """Return the answer, or None when the child had ended idle; raises the
        `ModelError` of the call."""
        child = await self._started()
        try:
            await child.send(request)
            return await child.receive()
        except anyio.get_cancelled_exc_class():
            await self._stop(child)
            raise
        except PIPE_FAILURES:
            await self._lost(child, str(request.fields["do"]))
            return None

    async def _started(self) -> Child:
        if self._child is not None and not self._child.alive:
            with suppress(ProcessDied):  # it died between two calls, and is restarted
                await self._lost(self._child, "nothing")
        if self._child is None:
            wait = self._not_before - self._limits.clock()
            if wait > 0:
                raise ModelError(
                    f"The process of {self.label} died {self._crashes} times in a "
                    f"row and is paused.",
                    hint=f"Try again in {wait:.0f} seconds, or set a smaller model.",
                )
            self._child = await Child.start(
                self._entry, self._arguments, label=self.label, limits=self._limits
            )
        return self._child

    async def _stop(self, child: Child) -> None:
        """Ask the child to leave its call; kill it when it does not answer in time."""
        with anyio.CancelScope(shield=True):
            try:
                with anyio.fail_after(self._limits.stopping):
                    await child.send(Frame({"do": CANCEL}))
                    await child.receive()
                    return
            except (TimeoutError, *PIPE_FAILURES):
                pass
            if self._child is child:
                self._child = None
            await child.end(at_once=True)

    async def _lost(self, child: Child, doing: str) -> None:
        """Collect a child that ended; raises how, but returns where it was idle."""
        with anyio.CancelScope(shield=True):
            code, output = await child.ending()
            if self._child is not child:
                raise ModelError(
                    f"The process of {self.label} was closed.", hint="Ask again."
                )
            self._child = None
            await child.end(at_once=True)
        if code == EXIT_IDLE:
            return
        self._crashes += 1
        if self._crashes > 1:
            pause = min(
                self._limits.longest_pause,
                self._limits.first_pause * 2 ** (self._crashes - 2),
            )
            self._not_before = self._limits.clock() + pause
        how = _ending(code)
        if any(word in output for word in MEMORY_WORDS):
            bound = self._limits.memory_bytes
            limit = f" (its limit is {bound / 1e6:.0f} MB)" if bound else ""
            how = f"ran out of memory{limit}, {how}"
        error = ProcessDied(
            f"The process of {self.label} {how} during {doing!r}.",
            output=output,
            was_killed=_signal_name(code) == "SIGKILL",
        )
        _log.warning("%s", error.what)
        raise error


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its pipe"
    name = _signal_name(code)
    if not name:
        return f"ended with status {code}"
    return f"was killed by signal {-code} ({name}{_REASONS.get(name, '')})"


def _signal_name(code: int | None) -> str:
    """Return the signal of a negative exit status; "" for another status."""
    if code is None or code >= 0:
        return ""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return "unknown"


_REASONS: Final = {
    "SIGKILL": ": killed, often for want of memory",
    **dict.fromkeys(
        ("SIGABRT", "SIGILL", "SIGTRAP"),
        ": given up by native code, often for want of memory",
    ),
}
"""Why signals end a process that says nothing itself."""
