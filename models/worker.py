"""A process for native model code, connected by stdin and stdout: a crash fails one
call, not the server.

The process is a fresh interpreter (spawned, never forked), started at the first call
and again after it died, with a growing pause when it dies again and again. Calls run
side by side; a canceled one gets a stop request, and its process is killed if it does
not stop. What native code prints goes to a log of its own, never to our stdout. Not
for: what the process computes (`models/llama/process.py`).
"""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.buffered import BufferedByteReceiveStream

from errors import ModelError
from models.pipe import EXIT_IDLE, MESSAGE_HEADER, Fields, Frame, accepted

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
PIPE_FAILURES: Final = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    ConnectionError,
)
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
    starts: int = 3
    """Starts that one call may see through no fault of its own: the process went idle,
    or was killed for another."""


class Child:
    """One running process, its pipes and its log."""

    def __init__(
        self, process: anyio.abc.Process, log: IO[bytes], *, limits: Limits
    ) -> None:
        """Take over a started process and the file that its stderr goes to.

        Raises `ModelError` for a process without pipes.
        """
        if process.stdin is None or process.stdout is None:
            raise ModelError(
                "A model's process was started without pipes.", hint="Try again."
            )
        self._process = process
        self._log = log
        self._limits = limits
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self._sending = anyio.Lock()
        self._sizes: tuple[int, int] | None = None
        self._fields: Fields | None = None

    @classmethod
    async def start(cls, entry: str, arguments: Fields, *, limits: Limits) -> "Child":
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
                process = await anyio.open_process(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**os.environ, **ENVIRONMENT},
                    # an interrupt at the terminal is the server's to handle
                    start_new_session=True,
                )
        except OSError as error:
            log.close()
            raise ModelError(
                f"The process of a model cannot be started: {error}.",
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

    async def send(self, frame: Frame, call: int) -> None:
        """Write one whole request; a cancellation waits until it is written, for half
        of one would end the process.

        Raises `anyio.BrokenResourceError` where that takes longer than
        `limits.sending`.
        """
        with (
            anyio.CancelScope(shield=True),
            anyio.move_on_after(self._limits.sending) as scope,
        ):
            async with self._sending:
                await self._stdin.send(frame.packed(call))
        if scope.cancelled_caught:
            raise anyio.BrokenResourceError

    async def receive(self) -> tuple[int, Frame]:
        """Return the next answer and its call's number; cancelled half-way, it goes on
        from there when called again.

        Waits without limit; raises one of `PIPE_FAILURES` where the pipe ends.
        """
        if self._sizes is None:
            self._sizes = MESSAGE_HEADER.unpack(
                await self._stdout.receive_exactly(MESSAGE_HEADER.size)
            )
        text, blob = self._sizes
        if self._fields is None:
            self._fields = json.loads(await self._stdout.receive_exactly(text))
        rest = await self._stdout.receive_exactly(blob) if blob else b""
        fields, self._fields, self._sizes = dict(self._fields), None, None
        return int(str(fields.pop("call"))), Frame(fields, rest)

    async def ending(self) -> tuple[int | None, str]:
        """Wait a little for the end; return its status (None while it goes on) and the
        end of its log ("" if that is closed)."""
        code: int | None = None
        with anyio.move_on_after(self._limits.closing):
            code = await self._process.wait()
        if self._log.closed:
            return code, ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 400))
        return code, " ".join(self._log.read().decode("utf-8", "replace").split())

    async def end(self, *, at_once: bool) -> None:
        """Close the child's stdin and wait a little for it to go (not `at_once`), kill
        it, let go of everything."""
        with anyio.CancelScope(shield=True):
            if self.alive and not at_once:
                await self._stdin.aclose()
                with anyio.move_on_after(self._limits.closing):
                    await self._process.wait()
            if self.alive:
                self._process.kill()
                await self._process.wait()
            await self._process.aclose()
            self._log.close()


@dataclass(slots=True)
class _Call:
    """One call in flight."""

    doing: str
    event: anyio.Event = field(default_factory=anyio.Event)
    done: bool = False
    outcome: Frame | ModelError | None = None
    """The answer, or why there is none; None while it is not `done`, and where it is to
    be asked again."""


class Worker:
    """The server's handle of a model's process. Belongs to one event loop; any number
    of its tasks may call at once."""

    def __init__(
        self,
        entry: str,
        arguments: Fields,
        *,
        label: str,
        limits: Limits | None = None,
        budget: "MemoryBudget | None" = None,
        needs: int = 0,
    ) -> None:
        """Name what runs in the child: the module `entry`, whose `main(arguments)`
        calls `pipe.serve`.

        `idle_seconds` and `memory_bytes` of the `limits` are added to the `arguments`.
        The process will take `needs` bytes of the `budget` that it shares with others;
        no `budget` has no bound."""
        self._entry = entry
        self._limits = limits or Limits()
        self._arguments = {
            **arguments,
            "idle_seconds": self._limits.idle_seconds,
            "memory_bytes": self._limits.memory_bytes,
        }
        self.label = label
        """How messages name the model."""
        self._budget = budget or MemoryBudget(sys.maxsize)
        self._needs = needs
        self._starting = anyio.Lock()
        self._child: Child | None = None
        self._calls: dict[int, _Call] = {}
        self._last = 0
        self._reader: _Call | None = None
        self.facts: Fields = {}
        """What the process said of its model when it was loaded; empty before."""
        self._crashes = 0
        self._not_before = 0.0
        self._loop: object | None = None

    @property
    def pid(self) -> int | None:
        """Process id while the process lives, for status displays."""
        return (
            self._child.pid if self._child is not None and self._child.alive else None
        )

    @property
    def busy(self) -> bool:
        """Whether a call is in flight or a start under way."""
        return bool(self._calls) or self._starting.locked()

    async def call(self, fields: Fields, blob: bytes = b"") -> Frame:
        """Return the child's answer; start the child if it does not run.

        Waits for the answer without limit. Raises `ModelError`: the child refused the
        request, crashed (the next call restarts it), is paused after crashes, or was
        ended too often for others. So does a call from another event loop than the
        first.
        """
        self._check_loop()
        for _ in range(self._limits.starts):
            frame = await self._attempt(Frame(fields, blob))
            if frame is not None:
                self._crashes = 0
                return accepted(frame)
        raise ModelError(
            (
                f"The process of {self.label} was ended in each of {self._limits.starts} "
                "attempts, to make room for other models or because another call was cancelled."
            ),
            hint="Try again.",
        )

    async def aclose(self) -> None:
        """End the process; calls in flight fail, a later call would start it again."""
        child, self._child = self._child, None
        self._settle(
            ModelError(f"The process of {self.label} was closed.", hint="Ask again.")
        )
        if child is not None:
            await child.end(at_once=False)
        self._budget.held.pop(self, None)

    def _check_loop(self) -> None:
        token = anyio.lowlevel.current_token()
        if self._loop is None:
            self._loop = token
        elif self._loop != token:
            raise ModelError(
                f"{self.label} was called from a second event loop; its pipes belong to the first.",
                hint="Call it in the event loop of its first call, or create another model object for this loop.",
            )

    async def _attempt(self, frame: Frame) -> Frame | None:
        """Return the answer, or None when the child ended for a reason that is not this
        call's.

        Raises the `ModelError` of the call itself.
        """
        child = await self._started()
        self._last += 1
        number, call = self._last, _Call(str(frame.fields["do"]))
        self._calls[number] = call
        try:
            sent = False
            try:
                await child.send(frame, number)
                sent = True
                await self._answered(child, call)
            except anyio.get_cancelled_exc_class():
                await self._stop_call(child, number, call, sent=sent)
                raise
            except PIPE_FAILURES:
                await self._lost(child)
        finally:
            del self._calls[number]
        if isinstance(call.outcome, ModelError):
            raise call.outcome
        return call.outcome

    async def _started(self) -> Child:
        async with self._starting:
            if self._child is not None and not self._child.alive:
                await self._lost(self._child)
            if self._child is None:
                wait = self._not_before - self._limits.clock()
                if wait > 0:
                    raise ModelError(
                        f"The process of {self.label} died {self._crashes} times in a "
                        f"row and is paused.",
                        hint=f"Try again in {wait:.0f} seconds, or set a smaller model.",
                    )
                await self._budget.make_room(self, self._needs)
                self._child = await Child.start(
                    self._entry, self._arguments, limits=self._limits
                )
                self._reader = None
            if self in self._budget.held:  # just called, so last to be ended for others
                self._budget.held[self] = self._budget.held.pop(self)
            return self._child

    async def _answered(self, child: Child, call: _Call) -> None:
        """Wait without limit until `call` is done; one of the waiting calls reads the
        pipe for all. Raises the pipe's error (`PIPE_FAILURES`) where the process ends.
        """
        while not call.done:
            if self._reader is not None:
                call.event = anyio.Event()
                await call.event.wait()
                continue
            self._reader = call
            try:
                while not call.done:
                    self._deliver(*await child.receive())
            finally:
                if self._reader is call:
                    self._reader = None
                    for other in self._calls.values():
                        other.event.set()

    def _deliver(self, number: int, frame: Frame) -> None:
        if isinstance(facts := frame.fields.get("facts"), dict):
            self.facts = facts
            _log.info("%s: %s", self.label, json.dumps(facts))
            return
        call = self._calls.get(number)
        if call is not None:
            call.done, call.outcome = True, frame
            call.event.set()

    async def _stop_call(
        self, child: Child, number: int, call: _Call, *, sent: bool
    ) -> None:
        """Ask the child to leave its call; kill it when it does not answer in time, or
        got only part of the request.

        Killing it makes its other calls start again in a new process.
        """
        with anyio.CancelScope(shield=True):
            try:
                if sent:
                    with anyio.fail_after(self._limits.stopping):
                        await child.send(Frame({"do": "cancel"}), number)
                        await self._answered(child, call)
                    return
            except (TimeoutError, *PIPE_FAILURES):
                pass
            if self._child is child:
                self._child = None
                self._settle(None)
                await child.end(at_once=True)

    async def _lost(self, child: Child) -> None:
        """Collect a child that ended and settle its calls: asked again if it was idle,
        else an error that says how."""
        with anyio.CancelScope(shield=True):
            code, words = await child.ending()
            if self._child is not child:
                return
            self._child = None
            await child.end(at_once=True)
            if code == EXIT_IDLE:
                self._settle(None)
                return
            self._crashes += 1
            if self._crashes > 1:
                pause = min(
                    self._limits.longest_pause,
                    self._limits.first_pause * 2 ** (self._crashes - 2),
                )
                self._not_before = self._limits.clock() + pause
            self._settle(self._death(code, words))

    def _death(self, code: int | None, words: str) -> ModelError:
        doing = (
            " and ".join(
                sorted({call.doing for call in self._calls.values() if not call.done})
            )
            or "nothing"
        )
        how = _ending(code)
        if any(word in words for word in MEMORY_WORDS):
            bound = self._limits.memory_bytes
            how = (
                "ran out of memory"
                + (f" (its limit is {bound / 1e6:.0f} MB)" if bound else "")
                + f", {how}"
            )
        quoted = f" Its last output: {words}" if words else ""
        error = ModelError(
            f"The process of {self.label} {how} during {doing!r}.{quoted}",
            hint="Try again: it is restarted. If it crashes again, set a smaller model, or free memory.",
        )
        _log.warning("%s", error.what)
        return error

    def _settle(self, error: ModelError | None) -> None:
        """End all calls with `error`; None lets them be asked again."""
        for call in self._calls.values():
            if not call.done:
                call.done, call.outcome = True, error
            call.event.set()


class MemoryBudget:
    """Bytes that the processes of one server share. Belongs to one event loop."""

    def __init__(self, limit: int | None = None) -> None:
        """Take `limit` bytes as the bound, or 70 % of what is free now: the rest is the
        system's and the buffers'."""
        self.limit = limit if limit is not None else int(_free_memory() * 0.7)
        self.held: dict[Worker, int] = {}
        """Bytes of each process that runs, least recently used first."""
        self._entering = anyio.Lock()

    async def make_room(self, worker: "Worker", needs: int) -> None:
        """Let `worker` in with `needs` bytes: end idle processes, least recently used
        first, wait for busy ones.

        Waits without limit. Raises `ModelError` where `needs` is more than the whole
        budget.
        """
        if needs > self.limit:
            raise ModelError(
                f"{worker.label} needs about {needs / 1e6:.0f} MB of memory; all models together "
                f"are allowed {self.limit / 1e6:.0f} MB.",
                hint="Set a smaller model or quantisation, or free memory.",
            )
        async with self._entering:
            self.held.pop(worker, None)
            while not await self._fits(needs):
                await anyio.sleep(0.05)
            self.held[worker] = needs

    async def _fits(self, needs: int) -> bool:
        for other in list(self.held):
            if other.pid is None and not other.busy:
                del self.held[other]  # it ended by itself
        for other in list(self.held):
            if sum(self.held.values()) + needs <= self.limit:
                return True
            if not other.busy:
                await other.aclose()
        return sum(self.held.values()) + needs <= self.limit


def _free_memory() -> int:
    """Return the bytes that programs may still take: what Linux calls available;
    elsewhere half of what is built in."""
    try:
        found = re.search(
            r"^MemAvailable:\s+(\d+) kB",
            Path("/proc/meminfo").read_text(encoding="ascii"),
            re.MULTILINE,
        )
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) * 1024
    return (
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        if hasattr(os, "sysconf")
        else 4 << 30
    )


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its pipe"
    if code >= 0:
        return f"ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    reason = _REASONS.get(name, "")
    return f"was killed by signal {-code} ({name}{reason})"


_REASONS: Final = {
    "SIGKILL": ": killed, often for want of memory",
    **dict.fromkeys(
        ("SIGABRT", "SIGILL", "SIGTRAP"),
        ": given up by native code, often for want of memory",
    ),
}
"""Why signals end a process that says nothing itself."""
