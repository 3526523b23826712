"""A process for native model code, spoken to over its stdin and stdout: what dies there costs one call, not the server.

`Worker` is the parent's side, `serve` the child's. A message is a JSON header and bytes, each with its length in front.
One call runs at a time; a cancelled call is told to stop, and killed with its process when it does not. The child
ends when its stdin does, so it never outlives the parent, and what native code prints goes to a log of its own, never
to our stdout. Not for: what the process computes (`models/llama_process.py`).
"""

import json
import os
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from errors import ModelError

ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder that our packages are imported from, in a checkout and in a wheel."""
GRACE: Final = 0.4
"""Seconds that a cancelled call has to stop by itself; after them its process is killed."""
CLOSING: Final = 2.0
"""Seconds that an idle process has to end after its stdin was closed."""
HEADER: Final = struct.Struct("!II")
LARGEST: Final = 1 << 30
"""Bytes of one message; more means that the two sides lost step."""
LAST_WORDS: Final = 400
"""Bytes of the process's log that an error message quotes."""
ENVIRONMENT: Final = {"OMP_WAIT_POLICY": "passive", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
"""Waiting threads sleep (spinning ones cost 3 to 10 times the CPU on a busy machine, notes/models §0.5), nothing is
fetched."""

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: named JSON values and raw bytes."""

    fields: Fields
    blob: bytes = b""

    def packed(self) -> bytes:
        """Return the bytes that go over the pipe."""
        text = json.dumps(self.fields).encode()
        return HEADER.pack(len(text), len(self.blob)) + text + self.blob


class Worker:
    """The parent's handle of a process that is started at the first call and again after it died.

    Belongs to one event loop. Calls wait for each other.
    """

    def __init__(self, entry: str, arguments: Fields, *, label: str) -> None:
        """Name what runs in the child.

        Args:
            entry: Module with a function `main(arguments)` that calls `serve`.
            arguments: JSON values for it.
            label: How messages name the model.
        """
        self._entry = entry
        self._arguments = arguments
        self._label = label
        self._lock = anyio.Lock()
        self._child: _Child | None = None

    @property
    def pid(self) -> int | None:
        """Process id while the process lives, for status displays."""
        return self._child.pid if self._child is not None and self._child.alive else None

    async def call(self, fields: Fields, blob: bytes = b"") -> Frame:
        """Return the child's answer; start the child if it does not run.

        Raises:
            ModelError: The child refused the request, or died of it (the next call starts it anew).
        """
        async with self._lock:
            child = await self._started()
            sent = False
            try:
                await child.send(Frame(fields, blob))
                sent = True
                frame = await child.receive()
            except anyio.get_cancelled_exc_class():
                await self._stop_call(child, sent=sent)
                raise
            except _BROKEN as error:
                raise await self._died(child, str(fields.get("do", "call"))) from error
        if "error" in frame.fields:
            raise ModelError(str(frame.fields["error"]), hint=str(frame.fields.get("hint", "")))
        return frame

    async def aclose(self) -> None:
        """End the process; a later call would start it again."""
        child, self._child = self._child, None
        if child is not None:
            await child.end(patience=CLOSING)

    async def _started(self) -> "_Child":
        if self._child is not None and not self._child.alive:
            await self._discard()
        if self._child is None:
            self._child = await _Child.start(self._entry, self._arguments)
        return self._child

    async def _stop_call(self, child: "_Child", *, sent: bool) -> None:
        """Ask the child to leave its call; kill it when it does not answer in time, or got only part of the request."""
        with anyio.CancelScope(shield=True):
            if not sent:
                await self._discard()
                return
            try:
                with anyio.fail_after(GRACE):
                    await child.send(Frame({"do": "cancel"}))
                    await child.receive()
            except (TimeoutError, *_BROKEN):
                await self._discard()

    async def _died(self, child: "_Child", doing: str) -> ModelError:
        """Collect the dead child and return the error that says how it ended."""
        with anyio.CancelScope(shield=True):
            ending = await child.ending()
            await self._discard()
        return ModelError(
            f"The process of {self._label} {ending} during {doing!r}.",
            hint="Try again: it is started anew. If it dies again, set a smaller model, or free memory.",
        )

    async def _discard(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.end(patience=0)


class _Child:
    """One running process, its pipes and its log."""

    def __init__(self, process: anyio.abc.Process, log: IO[bytes]) -> None:
        if process.stdin is None or process.stdout is None:
            raise ModelError("A model's process was started without pipes.", hint="Try again.")
        self._process = process
        self._log = log
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self._sizes: tuple[int, int] | None = None
        self._fields: Fields | None = None

    @classmethod
    async def start(cls, entry: str, arguments: Fields) -> "_Child":
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
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(self, frame: Frame) -> None:
        await self._stdin.send(frame.packed())

    async def receive(self) -> Frame:
        """Return the next frame; cancelled half-way, it goes on from there when called again."""
        if self._sizes is None:
            self._sizes = HEADER.unpack(await self._stdout.receive_exactly(HEADER.size))
        text, blob = self._sizes
        if max(text, blob) > LARGEST:
            raise anyio.BrokenResourceError
        if self._fields is None:
            self._fields = json.loads(await self._stdout.receive_exactly(text))
        rest = await self._stdout.receive_exactly(blob) if blob else b""
        fields, self._fields, self._sizes = self._fields, None, None
        return Frame(fields, rest)

    async def ending(self) -> str:
        """Wait a moment for the end, and describe it with the process's last words."""
        code: int | None = None
        with anyio.move_on_after(CLOSING):
            code = await self._process.wait()
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LAST_WORDS))
        words = " ".join(self._log.read().decode("utf-8", "replace").split())
        return _ending(code) + (f" (its last words: {words})" if words else "")

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


_BROKEN: Final = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    ConnectionError,
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
    reason = ": killed, often for want of memory" if name == "SIGKILL" else ""
    return f"died of signal {-code} ({name}{reason})"


Handler = Callable[[Fields, bytes, threading.Event], Frame]
"""What a child does with a request; it leaves early, with any frame, once the event is set."""


def serve(handle: Handler) -> None:
    """Answer requests from stdin until it ends; the child's main loop.

    Claims the two pipes for the protocol: afterwards file descriptor 1 is the log and 0 is empty, so that nothing
    native can write between two frames. A `ModelError` of `handle` is the answer; any other error ends the process,
    as a crash would. Returns never.
    """
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    waiting: queue.SimpleQueue[tuple[Fields, bytes]] = queue.SimpleQueue()
    cancelled = threading.Event()
    threading.Thread(target=_listen, args=(requests, waiting, cancelled), daemon=True).start()
    while True:
        fields, blob = waiting.get()
        if fields.get("do") == "cancel":
            # Comes after the answer of the cancelled call, which the parent no longer waits for as such.
            cancelled.clear()
            continue
        try:
            frame = handle(fields, blob, cancelled)
        except ModelError as error:
            frame = Frame({"error": error.what, "hint": error.hint})
        answers.write(frame.packed())
        answers.flush()


def _listen(
    requests: IO[bytes], waiting: "queue.SimpleQueue[tuple[Fields, bytes]]", cancelled: threading.Event
) -> None:
    """Read requests into the queue, raise the event at once for a cancel, and end the process with the pipe."""
    while True:
        head = requests.read(HEADER.size)
        if len(head) < HEADER.size:
            # The parent closed its side or is gone; native code may be running, so no orderly end.
            os._exit(0)
        text, blob = HEADER.unpack(head)
        fields = json.loads(requests.read(text))
        if fields.get("do") == "cancel":
            cancelled.set()
        waiting.put((fields, requests.read(blob)))
