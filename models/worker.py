"""A process for native model code, spoken to over its stdin and stdout: what dies there costs one call, not the server.

The process is a fresh interpreter (spawned, never forked), started at the first call and again after it died, with a
growing pause when it dies again and again. Calls run side by side; a cancelled one is told to stop, and its process is
killed when it does not. What native code prints goes to a log of its own, never to our stdout. Not for: what the
process computes (`models/llama/process.py`), or how much memory all of them take (`models/memory.py`).
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.lowlevel

from errors import ModelError
from models.child import BROKEN, Child, ending_of
from models.memory import MemoryBudget
from models.pipe import EXIT_IDLE, FACTS, Fields, Frame

GRACE: Final = 0.4
"""Seconds that a cancelled call has to stop by itself; after them its process is killed."""
CLOSING: Final = 2.0
"""Seconds that an idle process has to end after its stdin was closed."""
IDLE: Final = 900.0
"""Seconds without a call after which a process gives its memory back by ending."""
FIRST_PAUSE: Final = 1.0
"""Seconds until the start after the second crash in a row; doubled by each further one. The first costs no pause."""
LONGEST_PAUSE: Final = 60.0
STARTS_A_CALL: Final = 3
"""Starts that one call may see through no fault of its own: the process went idle, or was killed for another call."""
MEGABYTE: Final = 1_000_000
MEMORY_WORDS: Final = ("bad_alloc", "MemoryError", "failed to allocate", "unable to allocate", "annot allocate memory")
"""What a process writes last when it has no memory left."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may take, and the clock that its pauses are measured by."""

    idle_seconds: float = IDLE
    memory_bytes: int | None = None
    """Most address space (RLIMIT_AS); None for no limit. Not for GPU builds, whose drivers map far more than they
    use."""
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class _Call:
    """One call in flight."""

    doing: str
    event: anyio.Event = field(default_factory=anyio.Event)
    answer: Frame | None = None
    error: ModelError | None = None
    again: bool = False

    @property
    def done(self) -> bool:
        return self.answer is not None or self.error is not None or self.again


class Worker:
    """The server's handle of a model's process. Belongs to one event loop; any number of its tasks may call at once."""

    def __init__(
        self,
        entry: str,
        arguments: Fields,
        *,
        label: str,
        limits: Limits | None = None,
        budget: MemoryBudget | None = None,
        needs: int = 0,
    ) -> None:
        """Name what runs in the child.

        Args:
            entry: Module with a function `main(arguments)` that calls `pipe.serve`.
            arguments: JSON values for it; `idle_seconds` and `memory_bytes` are added.
            label: How messages name the model.
            limits: What the process may take.
            budget: Memory that this process shares with others; None for one without a bound.
            needs: Bytes that the process will take, counted against the budget.
        """
        self._entry = entry
        self._limits = limits or Limits()
        self._arguments = {
            **arguments,
            "idle_seconds": self._limits.idle_seconds,
            "memory_bytes": self._limits.memory_bytes,
        }
        self._label = label
        self._budget = budget
        self._needs = needs
        self._starting = anyio.Lock()
        self._child: Child | None = None
        self._calls: dict[int, _Call] = {}
        self._last = 0
        self._reader: _Call | None = None
        self._facts: Fields = {}
        self._crashes = 0
        self._not_before = 0.0
        self._loop: object | None = None

    @property
    def label(self) -> str:
        """How messages name the model."""
        return self._label

    @property
    def pid(self) -> int | None:
        """Process id while the process lives, for status displays."""
        return self._child.pid if self._child is not None and self._child.alive else None

    @property
    def facts(self) -> Fields:
        """What the process said of its model when it was loaded; empty before."""
        return self._facts

    @property
    def busy(self) -> bool:
        """Whether a call is in flight or a start under way."""
        return bool(self._calls) or self._starting.locked()

    async def call(self, fields: Fields, blob: bytes = b"") -> Frame:
        """Return the child's answer; start the child if it does not run.

        Raises:
            ModelError: The child refused the request, died of it (the next call starts it anew), died so often that
                it rests, or the call comes from another event loop than the first.
        """
        self._check_loop()
        for _ in range(STARTS_A_CALL):
            frame = await self._attempt(Frame(fields, blob))
            if frame is None:
                continue
            self._crashes = 0
            if "error" in frame.fields:
                raise ModelError(str(frame.fields["error"]), hint=str(frame.fields.get("hint", "")))
            return frame
        raise ModelError(f"The process of {self._label} was ended {STARTS_A_CALL} times for others.", hint="Try again.")

    async def aclose(self) -> None:
        """End the process; calls in flight fail, a later call would start it again."""
        child, self._child = self._child, None
        self._settle(error=ModelError(f"The process of {self._label} was closed.", hint="Ask again."))
        if child is not None:
            await child.end(patience=CLOSING)
        if self._budget is not None:
            self._budget.left(self)

    def _check_loop(self) -> None:
        token = anyio.lowlevel.current_token()
        if self._loop is None:
            self._loop = token
        elif self._loop != token:
            raise ModelError(
                f"{self._label} was called from a second event loop; its pipes belong to the first.",
                hint="Call it from the task that made it, or make another.",
            )

    async def _attempt(self, frame: Frame) -> Frame | None:
        """Return the answer, or None when the child ended for a reason that is not this call's."""
        child = await self._started()
        self._last += 1
        number, call = self._last, _Call(str(frame.fields.get("do", "call")))
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
            except BROKEN:
                await self._lost(child)
        finally:
            del self._calls[number]
        if call.error is not None:
            raise call.error
        return call.answer

    async def _started(self) -> Child:
        async with self._starting:
            if self._child is not None and not self._child.alive:
                await self._lost(self._child)
            if self._child is None:
                wait = self._not_before - self._limits.clock()
                if wait > 0:
                    raise ModelError(
                        f"The process of {self._label} died {self._crashes} times in a row and rests.",
                        hint=f"Try again in {wait:.0f} seconds, or set a smaller model.",
                    )
                if self._budget is not None:
                    await self._budget.make_room(self, self._needs)
                self._child = await Child.start(self._entry, self._arguments)
                self._reader = None
            if self._budget is not None:
                self._budget.used(self)
            return self._child

    async def _answered(self, child: Child, call: _Call) -> None:
        """Wait until `call` is done; one of the waiting calls reads the pipe for all."""
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
        if number == FACTS:
            self._facts = frame.fields
            _log.info("%s: %s", self._label, json.dumps(dict(frame.fields)))
            return
        call = self._calls.get(number)
        if call is not None:
            call.answer = frame
            call.event.set()

    async def _stop_call(self, child: Child, number: int, call: _Call, *, sent: bool) -> None:
        """Ask the child to leave its call; kill it when it does not answer in time, or got only part of the request."""
        with anyio.CancelScope(shield=True):
            try:
                if sent:
                    with anyio.fail_after(GRACE):
                        await child.send(Frame({"do": "cancel"}), number)
                        await self._answered(child, call)
                    return
            except (TimeoutError, *BROKEN):
                pass
            if self._child is child:
                self._child = None
                self._settle(again=True)
                await child.end(patience=0)

    async def _lost(self, child: Child) -> None:
        """Collect a child that ended and settle its calls: asked again if it was idle, else an error that says how."""
        with anyio.CancelScope(shield=True):
            code, words = await child.ending(CLOSING)
            if self._child is not child:
                return
            self._child = None
            await child.end(patience=0)
            if code == EXIT_IDLE:
                self._settle(again=True)
                return
            self._crashes += 1
            if self._crashes > 1:
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._crashes - 2))
                self._not_before = self._limits.clock() + pause
            self._settle(error=self._death(code, words))

    def _death(self, code: int | None, words: str) -> ModelError:
        doing = " and ".join(sorted({call.doing for call in self._calls.values() if not call.done})) or "nothing"
        how = ending_of(code)
        if any(word in words for word in MEMORY_WORDS):
            bound = self._limits.memory_bytes
            how = "ran out of memory" + (f" (its limit is {bound / MEGABYTE:.0f} MB)" if bound else "") + f", {how}"
        quoted = f" Its last words: {words}" if words else ""
        error = ModelError(
            f"The process of {self._label} {how} during {doing!r}.{quoted}",
            hint="Try again: it is started anew. If it dies again, set a smaller model, or free memory.",
        )
        _log.warning("%s", error.what)
        return error

    def _settle(self, *, error: ModelError | None = None, again: bool = False) -> None:
        for call in self._calls.values():
            if not call.done:
                call.error, call.again = error, again
            call.event.set()
